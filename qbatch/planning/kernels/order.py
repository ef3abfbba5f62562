"""The orders in which a policy may scan the queue, as sort keys: less comes first, ties by
sequence.

Keys are integers, or doubles computed from integers by one division, so that they are the same in
every driver and on every machine (law 5 of docs/design.md).
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.orders import FCFS, LXF, SJF_BEHIND
from qbatch.planning.kernels.types import Float64Array, Int64Array

SHORTEST_EXPANDED = 60_000_000
"""The least divisor of an expansion factor, an estimate in microseconds (docs/spec/papers.md 3.7,
item 4)."""


@kernel
def first_from(values: Int64Array, count: int, least: int) -> int:
    """Return the first of ``count`` indices at which an ascending value is ``least`` or more,
    ``count`` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@allocating_kernel
def stable_order(keys: Int64Array | Float64Array) -> Int64Array:
    """Return the indices of ``keys`` in ascending order, ties in order of index (a bottom-up merge
    sort).

    It works for integer and for floating keys.  NumPy's own sort gives the same result and takes
    four times as long to compile as everything else here.
    """
    count = keys.shape[0]
    order = np.arange(count)
    other = np.empty(count, np.int64)
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle = min(begin + width, count)
            end = min(begin + 2 * width, count)
            left = begin
            right = middle
            for place in range(begin, end):
                if left < middle and (right >= end or keys[order[left]] <= keys[order[right]]):
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@allocating_kernel
def sorted_by(keys: Int64Array | Float64Array, rows: Int64Array) -> Int64Array:
    """Return ``rows`` in ascending order of their ``keys``, ties in order of index."""
    order = stable_order(keys)
    for place in range(order.shape[0]):
        order[place] = rows[order[place]]
    return order


@kernel
def is_less(first: int, over: int, second: int, under: int) -> bool:
    """Return whether ``first / over`` is less than ``second / under``, exactly, without products
    that could overflow.

    Numerators are at least 0, denominators positive.
    """
    while True:
        left, right = first // over, second // under
        if left != right:
            return left < right
        first, second = first % over, second % under
        if first == 0 or second == 0:
            return first < second
        # The remainders are proper fractions: they compare like their inverses, in reverse.
        first, over, second, under = under, second, over, first


WAIT, XFACTOR, WIDTH, SPACE, BOTH, BYPASS = range(6)
"""Indices of the weights: wait (hours), expansion factor, processors, memory, the larger of both,
bypasses."""

HOUR = 3_600_000_000.0
MEBIBYTE = float(2**20)

MEMORY_OF_A_PROCESSOR = 358.4
"""MB: 336 GB over 960 processors; this much memory has the weight of one processor."""


@allocating_kernel
def priorities(
    now: int,
    rows: Int64Array,
    submit: Int64Array,
    procs: Int64Array,
    memory: Int64Array,
    estimate: Int64Array,
    bypasses: Float64Array,
    weights: Float64Array,
) -> Float64Array:
    """Return the priority of each row at this instant (docs/spec/papers.md 3.7, item 4): doubles
    from integers.

    ``bypasses``: how often other jobs bypassed each row, one entry per row of ``rows``.
    """
    found = np.empty(rows.shape[0], np.float64)
    has_size = weights[WIDTH] != 0.0 or weights[SPACE] != 0.0 or weights[BOTH] != 0.0
    for place in range(rows.shape[0]):
        row = rows[place]
        wait = now - submit[row]
        asked = max(estimate[row], SHORTEST_EXPANDED)
        total = weights[WAIT] * (wait / HOUR) + weights[XFACTOR] * ((wait + asked) / asked)
        # A term of weight 0 would add +0.0 to a positive number: without it, every bit stays the
        # same.
        if has_size:
            width = float(procs[row])
            space = memory[row] / MEBIBYTE / MEMORY_OF_A_PROCESSOR
            total = (
                total
                + weights[WIDTH] * width
                + weights[SPACE] * space
                + weights[BOTH] * max(width, space)
            )
        if weights[BYPASS] != 0.0:
            total = total + weights[BYPASS] * bypasses[place]
        found[place] = total
    return found


@allocating_kernel
def in_order(
    order: int, now: int, rows: Int64Array, behind: int, submit: Int64Array, estimate: Int64Array
) -> Int64Array:
    """Return rows, given in order of sequence, in an order that has no weights.

    ``FCFS``: unchanged.  ``SJF``: shortest estimate first; ``SJF_BEHIND``: the first ``behind``
    rows unchanged, then ``SJF``. ``LXF``: largest expansion factor first, that is (wait + estimate)
    / estimate with the estimate at least a minute (Chiang and Vernon 2001, section 2.2).
    """
    if order == FCFS:
        return rows.copy()
    keys = np.empty(rows.shape[0], np.float64)
    for place in range(rows.shape[0]):
        row = rows[place]
        if order == LXF:
            length = max(estimate[row], SHORTEST_EXPANDED)
            keys[place] = -(now - submit[row] + length) / length
        elif order == SJF_BEHIND and place < behind:
            keys[place] = -1.0
        else:
            # Microseconds up to 2^53 (285 years) are exact in a double.
            keys[place] = estimate[row]
    return sorted_by(keys, rows)
