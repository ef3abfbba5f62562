"""The expected run time of a job, from the earlier jobs of its user.

Source: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than
user runtime estimates", IEEE TPDS 18(6), 2007.  All times are microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND

LAST = 2
"""The paper takes the mean of this many ended jobs."""

INCREMENTS = (
    _MINUTE,
    5 * _MINUTE,
    15 * _MINUTE,
    30 * _MINUTE,
    _HOUR,
    2 * _HOUR,
    5 * _HOUR,
    10 * _HOUR,
    20 * _HOUR,
    50 * _HOUR,
    100 * _HOUR,
)
"""The increase of a prediction when a job outlives it for the first time, the second, ...; the last
one repeats."""


def mean_run_time(ended: Sequence[int], last: int, estimate: int) -> int | None:
    """Return the mean of run times, at least a second and at most the estimate; None of fewer than
    ``last``."""
    return min(max(sum(ended) // last, _SECOND), estimate) if len(ended) == last else None


def lengthened(outlived: int, corrections: int, estimate: int) -> int:
    """Return the next prediction of a job that has run for ``outlived`` and continues, after so
    many corrections."""
    return min(outlived + INCREMENTS[min(corrections, len(INCREMENTS) - 1)], estimate)


def outlasting(predicted: int, executed: int, estimate: int) -> int:
    """Return the prediction of a job that has run for ``executed`` and continues: longer than that,
    or its estimate."""
    corrections = 0
    while predicted <= executed and predicted < estimate:
        predicted = lengthened(predicted, corrections, estimate)
        corrections += 1
    return predicted
