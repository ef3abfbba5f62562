"""The running jobs, as two arrays sorted by expected end: what the passes need to know of them."""

from __future__ import annotations

from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.types import Int64Array


@kernel
def enter(ends: Int64Array, amounts: Int64Array, count: int, end: int, amount: int) -> None:
    """Insert one running job into ``count`` sorted ones; the caller counts."""
    place = count
    while place > 0 and ends[place - 1] > end:
        ends[place] = ends[place - 1]
        amounts[place] = amounts[place - 1]
        place -= 1
    ends[place] = end
    amounts[place] = amount


@kernel
def leave(ends: Int64Array, amounts: Int64Array, count: int, end: int, amount: int) -> None:
    """Remove one running job with this expected end and amount; the caller counts.

    Two jobs with the same end and amount are the same to every pass, so that either may go.
    """
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] < end:
            low = middle + 1
        else:
            high = middle
    while amounts[low] != amount:
        low += 1
    for place in range(low, count - 1):
        ends[place] = ends[place + 1]
        amounts[place] = amounts[place + 1]
