"""Means over replicas and half their 95 % intervals, as cells and columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qbatch.metrics import Interval, interval
from qbatch.papers.record import Cell, Column


def half(found: Interval) -> float | None:
    """Return half an interval; None where there is none."""
    return None if found.high is None or found.mean is None else found.high - found.mean


def mean_cells(key: str, found: Interval, factor: float = 1.0) -> dict[str, Cell]:
    """Return a mean and half its interval as two cells."""
    width = half(found)
    return {
        key: None if found.mean is None else found.mean * factor,
        f"{key}_half": None if width is None else width * factor,
    }


def spread(key: str, values: Mapping[int, float] | Sequence[float], factor: float = 1.0) -> dict[str, Cell]:
    """Return the mean of values, each times a factor, and half its interval as two cells."""
    listed = list(values.values()) if isinstance(values, Mapping) else list(values)
    return mean_cells(key, interval([factor * value for value in listed]))


def pair(key: str, heading: str, decimals: int) -> list[Column]:
    """Return the columns of a mean and half its interval."""
    return [Column(key, heading, decimals), Column(f"{key}_half", "+-", decimals)]
