"""The findings of a comparison in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qbatch.metrics.interval import SAME
from qbatch.reports.plot_style import duration_text

_LEAST = 1e-300
"""The least ratio in use: the reciprocal of a smaller one would overflow."""


def sentence(record: dict[str, Any], a: str, b: str, confidence: float, practical: float) -> str:
    """Return one sentence about one record of a comparison: which schedule is better, by how much,
    or that it is noise.

    ``a`` and ``b`` are the names of the schedules.  The sentence goes from the higher value to the
    lower one, so that it does not depend on the order of the two.
    """
    words, unit, finding = record["words"], record["unit"], record["finding"]
    if record["difference"] is None:
        return f"{words}: there is nothing to compare."
    if finding == "equal":
        one, other = sorted((a, b))
        return f"{words}: {one} and {other} are equal ({amount(record['a'], unit)})."
    one, other, low, high = record["a"], record["b"], record["low"], record["high"]
    higher, lower, sign = a, b, 1
    if (one, b) < (other, a):  # equal values are ordered by name
        # Bounds over replicas are of a difference, and change their signs.  Within a run they are
        # of the ratio b / a in units of a (:mod:`qbatch.metrics.ratio`); turned, they are of a / b
        # in units of b.
        if low is not None and high is not None:
            if record.get("replicas") or not one:
                low, high = max(-high, -other), -low
            else:
                low, high = (
                    other * (1 / max(1 + bound / one, _LEAST) - 1) for bound in (high, low)
                )
        one, other, higher, lower, sign = other, one, b, a, -1
    by = f"{abs((other - one) / one if one else 0.0) * 100:.1f} % lower"
    values = (
        f"{higher} {amount(one, unit)}, {lower} {amount(other, unit)}: {signed(other - one, unit)}"
    )
    if finding == "described":
        median = record.get("median")
        middle = (
            ""
            if median is None
            else f"; median of the differences {signed(sign * median['difference'], unit)}"
        )
        return f"{words}: {lower} is {by} than {higher} ({values}{middle})."
    if finding == "unknown" and record.get("replicas"):
        return f"{words}: {lower} is {by} than {higher} ({values}; {SAME})."
    if finding == "unknown":
        return (
            f"{words}: too few values to distinguish {higher} from {lower}: {lower} is {by} "
            f"({values})."
        )
    if low is None or high is None:
        values += "; one number for each schedule, no interval"
    else:
        values += f"; {confidence * 100:.3g} % interval {signed(low, unit)} to {signed(high, unit)}"
    if finding == "noise":
        return (
            f"{words}: no difference between {higher} and {lower} that stands out from noise: "
            f"{lower} is {by} ({values})."
        )
    if finding == "negligible":
        less = (
            f"less than {practical:.3g} of it"
            if practical >= 1
            else f"less than {practical * 100:.3g} %"
        )
        return (
            f"{words}: {lower} differs from {higher} by too little to matter, {less}: {by} "
            f"({values})."
        )
    if record.get("is_less_better", True):
        return f"{words}: {lower} is better than {higher}, {by} ({values})."
    return f"{words}: {higher} is better than {lower}, which is {by} ({values})."


def intervals(document: Mapping[str, Any]) -> str:
    """Return one sentence on how the intervals of a comparison were made, or that there are
    none."""
    of = "" if document["is_described"] else f" of {document['confidence'] * 100:g} %"
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
        return (
            f"{round(value * 100, 2) + 0.0:+.2f} points" if round(value * 100, 2) else "0.00 points"
        )
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + amount(abs(value), unit)
