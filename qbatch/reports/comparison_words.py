"""The findings of a comparison in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from qbatch.metrics.interval import SAME
from qbatch.reports.plot_style import duration_text

_LEAST = 1e-300
"""The least ratio in use: the reciprocal of a smaller one would overflow."""


def sentence(record: dict[str, Any], a: str, b: str, confidence: float, practical: float) -> str:
    """Return one sentence about one record of a comparison: which schedule is better, by how much, or that it is noise.

    ``a`` and ``b`` are the names of the schedules.  The sentence goes from the higher value to the lower one, so that it does
    not depend on the order of the two.
    """
    words, unit, finding = record["words"], record["unit"], record["finding"]
    if record["difference"] is None:
        return f"{words}: there is nothing to compare."
    if finding == "equal":
        one, other = sorted((a, b))
        return f"{words}: {one} and {other} are equal ({amount(record['a'], unit)})."
    seen = _from_the_higher(record, a, b)
    higher, lower = seen.higher, seen.lower
    by = f"{abs(seen.share) * 100:.1f} % lower"
    values = f"{higher} {amount(seen.from_value, unit)}, {lower} {amount(seen.to_value, unit)}: {signed(seen.difference, unit)}"
    if finding == "described":
        median = record.get("median")
        middle = "" if median is None else f"; median of the differences {signed(seen.sign * median['difference'], unit)}"
        return f"{words}: {lower} is {by} than {higher} ({values}{middle})."
    if finding == "unknown" and record.get("replicas"):
        return f"{words}: {lower} is {by} than {higher} ({values}; {SAME})."
    if finding == "unknown":
        return f"{words}: too few values to distinguish {higher} from {lower}: {lower} is {by} ({values})."
    values = f"{values}; {_range(seen, unit, confidence)}"
    if finding == "noise":
        return f"{words}: no difference between {higher} and {lower} that stands out from noise: {lower} is {by} ({values})."
    if finding == "negligible":
        less = f"less than {practical:.3g} of it" if practical >= 1 else f"less than {practical * 100:.3g} %"
        return f"{words}: {lower} differs from {higher} by too little to matter, {less}: {by} ({values})."
    if record.get("is_less_better", True):
        return f"{words}: {lower} is better than {higher}, {by} ({values})."
    return f"{words}: {higher} is better than {lower}, which is {by} ({values})."


class _Seen(NamedTuple):
    """A difference as the higher of two values sees the lower one: in units of the higher; ``sign`` is -1 where that is b."""
    """A difference from the higher of two values to the lower, in units of the higher; ``sign`` is -1 if the higher is b."""
    higher: str
    lower: str
    from_value: float
    to_value: float
    share: float
    difference: float
    low: float | None
    high: float | None
    sign: int


def _from_the_higher(record: dict[str, Any], a: str, b: str) -> _Seen:
    """Turn a record of b - a so that it goes from the higher value to the lower; equal values are ordered by name.

    Bounds over replicas are of a difference, and change their signs.  Within a run they are of the ratio b / a in
    units of a (:mod:`qbatch.metrics.ratio`); turned, they are of a / b in units of b.
    """
    one, other, low, high = record["a"], record["b"], record["low"], record["high"]
    if (one, b) >= (other, a):
        return _Seen(a, b, one, other, (other - one) / one if one else 0.0, other - one, low, high, 1)
    if low is not None and high is not None:
        if record.get("replicas") or not one:
            low, high = max(-high, -other), -low
        else:
            low, high = (other * (1 / max(1 + bound / one, _LEAST) - 1) for bound in (high, low))
    return _Seen(b, a, other, one, (one - other) / other, one - other, low, high, -1)


def intervals(document: Mapping[str, Any]) -> str:
    """Return one sentence on how the intervals of a comparison were made, or that there are none."""
    of = "" if document["history"] else f" of {document['confidence'] * 100:g} %"
    return f"Intervals{of}: {document['method']}."


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit in a readable form."""
    if value is None:
        return "-"
    if unit == "s":
        return ("-" if value < 0 else "") + duration_text(abs(value))
    if unit == "share":
        return f"{value * 100:.2f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def signed(value: float, unit: str) -> str:
    """Return a difference with its sign; shares in percentage points."""
    if unit == "share":
        return f"{round(value * 100, 2) + 0.0:+.2f} points" if round(value * 100, 2) else "0.00 points"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + amount(abs(value), unit)


def _range(seen: _Seen, unit: str, confidence: float) -> str:
    if seen.low is None or seen.high is None:
        return "one number for each schedule, no interval"
    return f"{confidence * 100:.3g} % interval {signed(seen.low, unit)} to {signed(seen.high, unit)}"
