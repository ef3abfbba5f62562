"""What a comparison says, in plain sentences."""

from __future__ import annotations

from typing import Any

from qbatch.reports.plot_style import duration_text


def sentence(record: dict[str, Any], a: str, b: str, confidence: float, practical: float) -> str:
    """Say in one sentence what one record of a comparison found: which is better, by how much, or that it is noise.

    ``a`` and ``b`` are what the schedules are called; differences are b - a.
    """
    words, unit, finding = record["words"], record["unit"], record["finding"]
    if record["difference"] is None:
        return f"{words}: there is nothing to compare."
    if finding == "equal":
        return f"{words}: {a} and {b} are equal ({amount(record['a'], unit)})."
    range_words = _range(record, unit, confidence)
    by = f"{signed(record['difference'], unit)}{_relative(record)}"
    if finding == "noise":
        return f"{words}: no difference between {a} and {b} that could be told from noise ({by}; {range_words})."
    if finding == "negligible":
        less = f"less than {practical:.3g} of it" if practical >= 1 else f"less than {practical * 100:.3g} %"
        return f"{words}: {b} differs from {a} by too little to matter, {less} ({by}; {range_words})."
    if finding == "unknown":
        return f"{words}: too few values to tell {a} and {b} apart ({by})."
    better, worse = (b, a) if finding == "better" else (a, b)
    return (
        f"{words}: {better} is better than {worse} ({a} {amount(record['a'], unit)}, {b} {amount(record['b'], unit)}: "
        f"{by}; {range_words})."
    )


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit as people would write it."""
    if value is None:
        return "-"
    if unit == "s":
        return ("-" if value < 0 else "") + duration_text(abs(value))
    if unit == "share":
        return f"{value * 100:.2f} %"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def signed(value: float, unit: str) -> str:
    """Return a difference with its sign; of shares in percentage points."""
    if unit == "share":
        return f"{round(value * 100, 2) + 0.0:+.2f} points" if round(value * 100, 2) else "0.00 points"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    return sign + amount(abs(value), unit)


def _relative(record: dict[str, Any]) -> str:
    relative = record.get("relative")
    if relative is None or record["unit"] == "share":
        return ""
    return f", {relative * 100:+,.0f} %" if abs(relative) >= 1 else f", {relative * 100:+.1f} %"


def _range(record: dict[str, Any], unit: str, confidence: float) -> str:
    if record["low"] is None:
        return "one number for each schedule, no interval"
    return f"{confidence * 100:.3g} % interval {signed(record['low'], unit)} to {signed(record['high'], unit)}"
