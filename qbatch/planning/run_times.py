"""What run time is expected of a job, by what jobs of its user ran before.

Source: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates",
IEEE TPDS 18(6), 2007.  All times are microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND

LAST = 2
"""Of how many ended jobs the paper takes the mean."""

INCREMENTS = (
    _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE,
    _HOUR, 2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 20 * _HOUR, 50 * _HOUR, 100 * _HOUR,
)  # fmt: skip
"""How much longer a prediction gets when it is outlived for the first time, the second, ...; the last one for ever."""


def mean_run_time(ended: Sequence[int], last: int, estimate: int) -> int | None:
    """Return the mean of run times, a second at least and the estimate at most; None if they are fewer than ``last``."""
    return min(max(sum(ended) // last, _SECOND), estimate) if len(ended) == last else None


def lengthened(outlived: int, corrections: int, estimate: int) -> int:
    """Return the next prediction of a job that has run for ``outlived`` and goes on, corrected so often before."""
    return min(outlived + INCREMENTS[min(corrections, len(INCREMENTS) - 1)], estimate)


def outlasting(predicted: int, executed: int, estimate: int) -> int:
    """Return what is predicted of a job that has run for ``executed`` and goes on: longer than that, or its estimate."""
    corrections = 0
    while predicted <= executed and predicted < estimate:
        predicted = lengthened(predicted, corrections, estimate)
        corrections += 1
    return predicted
