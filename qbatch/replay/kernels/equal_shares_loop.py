"""The compiled event loop of equal shares (``equispatial``): jobs are resized, stand still, go on, and begin again.

Rows are jobs in order of sequence; a round follows the meaning of one instant (design.md), as in :mod:`loops`.  The pass is that
of the live engine (:func:`qbatch.planning.kernels.equal_shares.share_pass`); no host closes in a replay, and the jobs of a log
may be begun twice.  Here is kept what the engine and its executor keep: how far each job has got, and its pieces.
"""

from __future__ import annotations

from qbatch.planning.kernels.equal_shares import (
    FIRST,
    GUEST,
    HAD,
    HELD,
    HOST,
    NEXT,
    NO_GUEST,
    ROW,
    SHARING,
    USED,
    come,
    depart,
    share_pass,
)
from qbatch.planning.kernels.equal_shares import MEMORY as SIZE
from qbatch.planning.kernels.equal_shares import PROCS as WIDTH
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import (
    ACTIVE,
    ARRIVED,
    LONGEST,
    NOW,
    JobColumns,
    SharesRun,
    SharesState,
    StartColumns,
)
from qbatch.planning.kernels.plan import NOBODY
from qbatch.planning.kernels.profile import FOREVER
from qbatch.replay.kernels.loops import note_kinds

PROCS, MEMORY, USED_MEMORY, MAY, WORK, SINCE, DONE, DUE, UNTIL, IS_CUT, WHERE, OVER = range(12)
"""Columns of ``runs``: processors and bytes that a job asks for, bytes that it really uses (-1: as many); whether a host could
hold it (if not it is rejected when it arrives); processor-microseconds that it takes; when it last began to run; what it had
done by then (-1: it has not begun, or begins anew); when it ends; the end of its quantum; whether it has a piece; its host; when
it has ended.  -1: it does not run; is no guest; has not ended."""

RUN_COLUMNS = 12
"""How many columns ``runs`` has."""

PIECES, OUTGROWN, QUANTUM, TIMER, BURST = 8, 9, 10, 11, 12
"""Places in ``counts`` behind those of every loop, where ``ACTIVE`` is how many jobs are there: how many are pieces, and are
guests that use more memory than they have (they go back at the same instant); how long a quantum is; when a pass is made
although nothing happens; the most jobs that arrive at one instant."""

COUNTS = 13
"""Length of ``counts``."""

FAILED = -2
"""``DUE`` of a guest that uses more memory than it has."""

ENDED, BACK, CHANGED = 0, 1, 2
"""Which jobs are listed: that end now; guests whose quantum is over, or which have failed; that have more or less than before."""


@kernel
def next_instant(now: int, arrival: int, state: SharesState, run: SharesRun) -> int:
    """Return the instant of the next round.

    Args:
        arrival: the instant of the next arrival.
    """
    if run.counts[OUTGROWN] > 0:
        return now
    found = min(arrival, run.counts[TIMER])
    for host in range(state.hosts.shape[0] - 1):
        slot = state.hosts[host, FIRST]
        while slot >= 0:
            job = state.jobs[slot]
            if job[HAD] > 0:
                found = min(found, run.runs[job[ROW], DUE])
                if job[GUEST] != NO_GUEST:
                    found = min(found, run.runs[job[ROW], UNTIL])
            slot = job[NEXT]
    return int(found)


@kernel
def collect(which: int, now: int, state: SharesState, run: SharesRun) -> int:
    """List the slots of some jobs that have a place, in order of sequence; return how many they are."""
    jobs, listed, count = state.jobs, run.listed, 0
    for host in range(state.hosts.shape[0] - 1):
        slot = state.hosts[host, FIRST]
        while slot >= 0:
            job = jobs[slot]
            of = run.runs[job[ROW]]
            if which == ENDED:
                is_it = of[DUE] == now
            elif which == BACK:
                is_it = of[DUE] == FAILED or 0 <= of[UNTIL] <= now
            else:
                is_it = job[WIDTH] != job[HAD]
            if is_it:
                to = count
                while to > 0 and jobs[listed[to - 1], ROW] > job[ROW]:
                    listed[to] = listed[to - 1]
                    to -= 1
                listed[to] = slot
                count += 1
            slot = job[NEXT]
    return count


@kernel
def cut(slot: int, now: int, is_kept: int, state: SharesState, run: SharesRun) -> None:
    """Note the piece of a run that is over, and what it did."""
    job, piece = state.jobs[slot], run.pieces[run.counts[PIECES]]
    of = run.runs[job[ROW]]
    piece[0], piece[1], piece[2], piece[3], piece[4], piece[5] = job[ROW], of[SINCE], now, job[HAD], job[HOST], is_kept
    of[DONE] += (now - of[SINCE]) * job[HAD]
    of[SINCE], of[DUE], of[IS_CUT] = -1, -1, 1
    job[HAD] = 0
    run.counts[PIECES] += 1


@kernel
def go_on(slot: int, now: int, state: SharesState, run: SharesRun) -> None:
    """Let a job run on with the processors that it has now."""
    job = state.jobs[slot]
    of = run.runs[job[ROW]]
    job[HAD], of[SINCE] = job[WIDTH], now
    of[DUE] = now - ((of[DONE] - of[WORK]) // job[WIDTH] if of[WORK] > of[DONE] else 0)


@kernel
def begin(slot: int, now: int, state: SharesState, run: SharesRun) -> None:
    """Let a job run from its beginning."""
    job = state.jobs[slot]
    of = run.runs[job[ROW]]
    of[DONE], of[WHERE] = 0, job[HOST]
    if job[WIDTH] != of[PROCS]:
        of[IS_CUT] = 1
    go_on(slot, now, state, run)
    if job[GUEST] != NO_GUEST:
        of[UNTIL] = now + run.counts[QUANTUM]
        used = of[MEMORY] if of[USED_MEMORY] < 0 else of[USED_MEMORY]
        if state.hosts[job[HOST], SIZE] > 0 and used > job[HELD]:
            of[DUE] = FAILED
            run.counts[OUTGROWN] += 1


@kernel
def end_runs(now: int, state: SharesState, run: SharesRun) -> None:
    """Let those go that end now, then put those guests back into the queue whose quantum is over, or which have failed."""
    for place in range(collect(ENDED, now, state, run)):
        slot = run.listed[place]
        row = state.jobs[slot, ROW]
        if run.runs[row, IS_CUT]:
            cut(slot, now, 1, state, run)
        run.runs[row, DUE], run.runs[row, UNTIL], run.runs[row, OVER] = -1, -1, now
        depart(now, row, state)
        run.counts[ACTIVE] -= 1
    for place in range(collect(BACK, now, state, run)):
        slot = run.listed[place]
        row = state.jobs[slot, ROW]
        cut(slot, now, 0, state, run)
        run.runs[row, DONE], run.runs[row, UNTIL] = -1, -1
        depart(now, row, state)
        come(row, run.runs[row, PROCS], run.runs[row, MEMORY], 0, state)
    run.counts[OUTGROWN] = 0


@kernel
def change_runs(now: int, start: StartColumns, state: SharesState, run: SharesRun) -> int:
    """Do what the pass says, those first who give processors up; list the rows that start for the first time, and return how
    many they are."""
    changed, first = collect(CHANGED, now, state, run), 0
    for place in range(changed):
        slot = run.listed[place]
        if state.jobs[slot, WIDTH] < state.jobs[slot, HAD]:
            cut(slot, now, 1, state, run)
            if state.jobs[slot, WIDTH] > 0:
                go_on(slot, now, state, run)
    for place in range(changed):
        slot = run.listed[place]
        row = state.jobs[slot, ROW]
        if state.jobs[slot, WIDTH] <= state.jobs[slot, HAD]:
            continue
        if run.runs[row, DONE] >= 0:
            if state.jobs[slot, HAD] > 0:
                cut(slot, now, 1, state, run)
            go_on(slot, now, state, run)
            continue
        begin(slot, now, state, run)
        if start.start[row] < 0:
            start.start[row] = now
            run.listed[first] = row
            first += 1
    return first


@kernel
def still_waiting(state: SharesState, run: SharesRun) -> tuple[int, int]:
    """Return how many jobs have not begun, with a place or without, and the first of them."""
    queue, first = state.hosts.shape[0] - 1, FOREVER
    count = state.hosts[queue, SHARING]
    if count > 0:
        first = state.jobs[state.hosts[queue, FIRST], ROW]
    for host in range(queue):
        slot = state.hosts[host, FIRST]
        while slot >= 0:
            job = state.jobs[slot]
            if run.runs[job[ROW], DONE] < 0:
                count += 1
                first = min(first, job[ROW])
            slot = job[NEXT]
    return count, first if count > 0 else NOBODY


@allocating_kernel
def run_shares(jobs: JobColumns, begun: StartColumns, state: SharesState, run: SharesRun, budget: int) -> bool:
    """Run up to ``budget`` rounds, or until there may not be room for more jobs or pieces; tell whether all is done."""
    counts, rows, room = run.counts, jobs.submit.shape[0], state.jobs.shape[0]
    arrived, now = counts[ARRIVED], counts[NOW]
    while (
        budget > 0
        and (arrived < rows or counts[ACTIVE] > 0)
        and counts[PIECES] + room <= run.pieces.shape[0]
        and state.counts[USED] + counts[BURST] <= room
    ):
        budget -= 1
        now = next_instant(now, jobs.submit[arrived] if arrived < rows else FOREVER, state, run)
        end_runs(now, state, run)
        while arrived < rows and jobs.submit[arrived] == now:
            if run.runs[arrived, MAY]:
                come(arrived, jobs.procs[arrived], run.runs[arrived, MEMORY], 1, state)
                counts[ACTIVE] += 1
            arrived += 1
        counts[TIMER] = share_pass(now, state)
        started = change_runs(now, begun, state, run)
        waiting, first = still_waiting(state, run)
        note_kinds(run.listed[:started], first, jobs.submit, now, begun.kind)
        counts[LONGEST] = max(counts[LONGEST], waiting + started)
    counts[ARRIVED], counts[NOW] = arrived, now
    return bool(arrived >= rows and counts[ACTIVE] == 0)
