"""The compiled event loop of a list scheduler with quanta (``immediate``, ``soon``): jobs pause, go on, and begin again.

Rows are jobs in order of sequence; a round follows the meaning of one instant (design.md), as in :mod:`loops`.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.host_pass import MEMORY, all_free
from qbatch.planning.kernels.host_round import book, list_round
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import (
    ARRIVED,
    HEAD,
    LONGEST,
    NOW,
    TAIL,
    JobColumns,
    OnHosts,
    QuantaState,
    Scan,
    StartColumns,
)
from qbatch.planning.kernels.plan import NOBODY
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.quantum_round import (
    ACTIVE,
    GUEST,
    HELD,
    IS_OVER,
    MAY,
    PIECES,
    PROCS,
    PROTECT,
    QUANTA,
    SINCE,
    WHERE,
    begin,
    end_runs,
    forget_holders,
    hide_quanta,
    next_instant,
    resume_victims,
    serve,
    shown_pieces,
)
from qbatch.planning.kernels.types import Int64Array
from qbatch.replay.kernels.loops import note_kinds

PIECES_OF_A_ROUND = 3
"""A round notes at most so many pieces for each job that can run at once."""


@kernel
def leave_queue(waiting: Int64Array, head: int, tail: int, runs: Int64Array) -> int:
    """Take out of the queue who runs; return its new head."""
    kept = tail
    for place in range(tail - 1, head - 1, -1):
        row = waiting[place]
        if runs[row, SINCE] < 0:
            kept -= 1
            waiting[kept] = row
    return kept


@kernel
def first_starts(started: Int64Array, count: int, now: int, start: Int64Array) -> int:
    """Note who of those that start does so for the first time; bring them to the front, and return how many they are."""
    first = 0
    for place in range(count):
        row = started[place]
        if start[row] < 0:
            start[row] = now
            started[first] = row
            first += 1
    return first


@allocating_kernel
def run_quanta(
    depth: int, order: int, jobs: JobColumns, waiting: Int64Array, started: Int64Array, begun: StartColumns, on: OnHosts,
    state: QuantaState, budget: int,
) -> bool:  # fmt: skip
    """Run up to ``budget`` rounds, or until there may not be room for more pieces; tell whether all is done."""
    counts, runs, rows = state.counts, state.runs, jobs.submit.shape[0]
    arrived, head, tail, now = counts[ARRIVED], counts[HEAD], counts[TAIL], counts[NOW]
    most = state.pieces.shape[0] - PIECES_OF_A_ROUND * started.shape[0]
    while budget > 0 and counts[PIECES] <= most and (arrived < rows or counts[ACTIVE] > 0):
        budget -= 1
        first = arrived
        now = next_instant(now, jobs.submit[arrived] if arrived < rows else FOREVER, state)
        forget_holders(on, state)  # also of guests that end now
        head = end_runs(now, waiting, head, tail, state)
        while arrived < rows and jobs.submit[arrived] == now:
            if runs[arrived, MAY]:
                waiting[tail] = arrived
                tail += 1
            arrived += 1
        for place in range(counts[QUANTA]):
            state.quanta[place, IS_OVER] = runs[state.quanta[place, GUEST], SINCE] < 0
        pieces = shown_pieces(now, state)
        resume_victims(now, state)
        hosts = state.hosts.copy()
        hide_quanta(hosts, state)
        free, count = all_free(hosts), 0
        if head < tail and (free > 0 or on.is_sticky):
            scan = Scan(now, order, depth, False, free, head, tail, 0)
            count = list_round(scan, jobs, waiting, started, hosts, pieces, on)
        for place in range(count):
            run = runs[started[place]]
            run[WHERE] = on.where[started[place]]
            run[HELD] = on.memory[started[place]] if hosts[MEMORY, run[WHERE]] > 0 else 0
            book(hosts, run[WHERE], -run[PROCS], -run[HELD])
            begin(started[place], now, -1, state)
        served = np.arange(first, arrived) if counts[PROTECT] >= 0 else waiting[head:tail]
        count = serve(now, served, started, count, hosts, state)
        if count > 0:
            head = leave_queue(waiting, head, tail, runs)
            count = first_starts(started, count, now, begun.start)
            note_kinds(started[:count], waiting[head] if head < tail else NOBODY, jobs.submit, now, begun.kind)
        counts[LONGEST] = max(counts[LONGEST], tail - head + count)
    counts[ARRIVED], counts[HEAD], counts[TAIL], counts[NOW] = arrived, head, tail, now
    return bool(arrived >= rows and counts[ACTIVE] == 0)
