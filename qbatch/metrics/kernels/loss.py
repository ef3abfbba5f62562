"""One sweep over submits, starts and ends that integrates the capacity lost
(``machine.loss_of_capacity``).

The number of waiting jobs is kept by requested processors, in a Fenwick tree: whether any waiting
job fits the idle processors is one prefix sum, for a machine of any width.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel
from qbatch.planning.kernels.types import Int64Array

# Of a span, as in qbatch.metrics.sums: idle processors x span does not fit in 64 bits.
LOW_BITS = 27
LOW = (1 << LOW_BITS) - 1


@allocating_kernel
def add(tree: Int64Array, at: int, amount: int) -> None:
    """Add to the count at an index, from 1."""
    while at < tree.shape[0]:
        tree[at] += amount
        at += at & -at


@allocating_kernel
def count_up_to(tree: Int64Array, at: int) -> int:
    """Return the sum of the counts at the indices 1 to ``at``."""
    total = 0
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@allocating_kernel
def lost_area(
    submit: Int64Array,
    start: Int64Array,
    end: Int64Array,
    procs: Int64Array,
    by_submit: Int64Array,
    by_start: Int64Array,
    by_end: Int64Array,
    procs_total: int,
) -> tuple[int, int]:
    """Return the processor microseconds lost as (high, low), to be read as high * 2**27 + low.

    ``by_submit`` and similar are the rows in order of that time.  All events of one instant are
    applied before the span that follows it is judged, so their order does not matter.  A job that
    starts when it is submitted never waits.
    """
    count = submit.shape[0]
    widest = 1
    for job in range(count):
        widest = max(widest, procs[job])
    tree = np.zeros(widest + 1, np.int64)
    idle, waiting, high, low = procs_total, 0, 0, 0
    submitted = started = ended = 0
    before = submit[by_submit[0]] if count else 0
    while ended < count:
        now = end[by_end[ended]]
        if started < count:
            now = min(now, start[by_start[started]])
        if submitted < count:
            now = min(now, submit[by_submit[submitted]])
        if waiting > 0 and idle > 0 and count_up_to(tree, min(idle, widest)) > 0:
            span = now - before
            low += idle * (span & LOW)
            high += idle * (span >> LOW_BITS) + (low >> LOW_BITS)
            low &= LOW
        while submitted < count and submit[by_submit[submitted]] == now:
            job = by_submit[submitted]
            if start[job] > now:
                add(tree, procs[job], 1)
                waiting += 1
            submitted += 1
        while started < count and start[by_start[started]] == now:
            job = by_start[started]
            if submit[job] < now:
                add(tree, procs[job], -1)
                waiting -= 1
            idle -= procs[job]
            started += 1
        while ended < count and end[by_end[ended]] == now:
            idle += procs[by_end[ended]]
            ended += 1
        before = now
    return high, low
