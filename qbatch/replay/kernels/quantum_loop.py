"""The compiled event loop of a list scheduler with quanta (``immediate``, ``soon``): jobs pause, go on, and begin again.

Rows are jobs in order of sequence; a round follows the meaning of one instant (design.md), as in :mod:`loops`.
"""

from __future__ import annotations

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import (
    ARRIVED,
    HEAD,
    LONGEST,
    NOW,
    TAIL,
    JobColumns,
    LoopState,
    OnHosts,
    QuantaState,
    Scan,
    StartColumns,
)
from qbatch.planning.kernels.plan import NOBODY
from qbatch.planning.kernels.quantum_round import (
    PIECES,
    RUNNING,
    SINCE,
    end_quanta,
    end_runs,
    next_instant,
    quantum_round,
)
from qbatch.replay.kernels.loops import note_kinds

PIECES_OF_A_ROUND = 3
"""A round notes at most so many pieces for each job that can run at once."""


@kernel
def leave_queue(state: LoopState, head: int, tail: int, quanta: QuantaState) -> int:
    """Take out of the queue who runs; return its new head."""
    kept = tail
    for place in range(tail - 1, head - 1, -1):
        row = state.waiting[place]
        if quanta.runs[row, SINCE] < 0:
            kept -= 1
            state.waiting[kept] = row
    return kept


@kernel
def note_starts(count: int, now: int, head: int, tail: int, jobs: JobColumns, state: LoopState, begun: StartColumns) -> int:
    """Note who of those that start does so for the first time, and how; return how many they are."""
    first = 0
    for place in range(count):
        row = state.started[place]
        if begun.start[row] < 0:
            begun.start[row] = now
            state.started[first] = row
            first += 1
    note_kinds(state.started[:first], state.waiting[head] if head < tail else NOBODY, jobs.submit, now, begun.kind)
    return first


@allocating_kernel
def run_quanta(
    depth: int, order: int, jobs: JobColumns, state: LoopState, begun: StartColumns, on: OnHosts, quanta: QuantaState,
    budget: int,
) -> bool:  # fmt: skip
    """Run up to ``budget`` rounds, or until there may not be room for more pieces; tell whether all is done."""
    counts, rows = state.counts, jobs.submit.shape[0]
    head, tail = counts[HEAD], counts[TAIL]
    most = quanta.pieces.shape[0] - PIECES_OF_A_ROUND * quanta.running.shape[0]
    while budget > 0 and quanta.counts[PIECES] <= most and (counts[ARRIVED] < rows or quanta.counts[RUNNING] > 0):
        budget -= 1
        first = counts[ARRIVED]
        now = next_instant(counts[NOW], jobs, first, quanta)
        end_runs(now, jobs, on, quanta)
        head = end_quanta(now, state.waiting, head, tail, jobs, on, quanta)
        while counts[ARRIVED] < rows and jobs.submit[counts[ARRIVED]] == now:
            if quanta.may[counts[ARRIVED]]:
                state.waiting[tail] = counts[ARRIVED]
                tail += 1
            counts[ARRIVED] += 1
        scan = Scan(now, order, depth, False, 0, head, tail, 0)
        count = quantum_round(scan, first, jobs, state, on, quanta)
        if count > 0:
            head = leave_queue(state, head, tail, quanta)
            count = note_starts(count, now, head, tail, jobs, state, begun)
        counts[LONGEST] = max(counts[LONGEST], tail - head + count)
        counts[NOW] = now
    counts[HEAD], counts[TAIL] = head, tail
    return bool(counts[ARRIVED] >= rows and quanta.counts[RUNNING] == 0)
