"""A binary heap of (instant, row) pairs in an array of two columns; ties are broken by row: the
order is total."""

from __future__ import annotations

from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.types import Int64Array

INSTANT, ROW = 0, 1
"""The columns of a pair."""


@kernel
def push(pairs: Int64Array, count: int, instant: int, row: int) -> None:
    """Add a pair to a heap of ``count`` pairs; the caller updates the count."""
    place = count
    while place > 0:
        parent = (place - 1) >> 1
        if pairs[parent, INSTANT] < instant or (
            pairs[parent, INSTANT] == instant and pairs[parent, ROW] < row
        ):
            break
        pairs[place, INSTANT] = pairs[parent, INSTANT]
        pairs[place, ROW] = pairs[parent, ROW]
        place = parent
    pairs[place, INSTANT] = instant
    pairs[place, ROW] = row


@kernel
def pop(pairs: Int64Array, count: int) -> None:
    """Remove the least pair from a heap of ``count`` pairs; the caller first reads the pair, and
    updates the count."""
    last = count - 1
    instant = pairs[last, INSTANT]
    row = pairs[last, ROW]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= last:
            break
        if child + 1 < last and (
            pairs[child + 1, INSTANT] < pairs[child, INSTANT]
            or (
                pairs[child + 1, INSTANT] == pairs[child, INSTANT]
                and pairs[child + 1, ROW] < pairs[child, ROW]
            )
        ):
            child += 1
        if pairs[child, INSTANT] > instant or (
            pairs[child, INSTANT] == instant and pairs[child, ROW] > row
        ):
            break
        pairs[place, INSTANT] = pairs[child, INSTANT]
        pairs[place, ROW] = pairs[child, ROW]
        place = child
    pairs[place, INSTANT] = instant
    pairs[place, ROW] = row
