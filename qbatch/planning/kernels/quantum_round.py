"""What a scheduler with quanta does in one round of its compiled loop: what ends, what the inner pass sees, who is served.

It is :class:`qbatch.policies.immediate.QuantumService` around a list scheduler on hosts, by the same kernels
(:mod:`quanta`, :func:`host_round.list_round`).  No host closes in a replay, and the jobs of a log may be begun twice.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels import quanta as service
from qbatch.planning.kernels.host_pass import END as PIECE_END
from qbatch.planning.kernels.host_pass import FREE, HOST, MEMORY, PROCS, ROW
from qbatch.planning.kernels.host_pass import HELD as PIECE_HELD
from qbatch.planning.kernels.host_round import book, list_round
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import ARRIVED, JobColumns, LoopState, OnHosts, QuantaState, Scan
from qbatch.planning.kernels.order import stable_order
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.types import Int64Array

SINCE, DONE, EXPECTED, DUE, UNTIL, HELD, HAD, FOR_WHOM, IS_CUT = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Columns of ``runs``: when it last began to run (-1: it does not run); how long it had run before; its expected end; when it
really ends; the end of its quantum (-1: it is no guest); bytes that it holds; how long it ran as a guest (-1: it was none, or it is
over); the guest for whom it is suspended (-1: it is not); whether it has a piece."""

RUN_COLUMNS = 9
"""How many columns ``runs`` has."""

GUEST, IDLE, BEGIN, END, IS_OVER = 0, 1, 2, 3, 4
"""Columns of ``quanta``: the guest, the idle processors that it took, when it began, its end by its estimate and its quantum,
and whether it has gone."""

QUANTUM_COLUMNS = 5
"""How many columns ``quanta`` has."""

RUNNING, SUSPENDED, QUANTA, PIECES, OUTGROWN = 0, 1, 2, 3, 4
"""Places in ``counts``; ``OUTGROWN``: guests that use more memory than they have, and go back at the same instant."""

COUNTS = 5
"""How many there are."""

QUANTUM, PROTECT, MOST_MEMORY = 0, 1, 2
"""Places in ``rules``."""

FAILED = -2
"""``DUE`` of a guest that uses more memory than it has."""

OVERDUE = 1_000_000
"""A job that outlives its estimate is taken to end this many microseconds from now."""


@kernel
def enter(row: int, state: QuantaState) -> None:
    """Enter a row among the running ones."""
    place = state.counts[RUNNING]
    state.counts[RUNNING] += 1
    while place > 0 and state.running[place - 1] > row:
        state.running[place] = state.running[place - 1]
        place -= 1
    state.running[place] = row


@kernel
def leave(row: int, state: QuantaState) -> None:
    """Take a row out of the running ones."""
    state.counts[RUNNING] -= 1
    place = 0
    while state.running[place] != row:
        place += 1
    for behind in range(place, state.counts[RUNNING]):
        state.running[behind] = state.running[behind + 1]
    state.runs[row, SINCE] = -1


@kernel
def cut(row: int, now: int, is_kept: int, procs: Int64Array, on: OnHosts, state: QuantaState) -> None:
    """Note the piece of a run that is over."""
    piece = state.pieces[state.counts[PIECES]]
    state.counts[PIECES] += 1
    state.runs[row, IS_CUT] = 1
    piece[0], piece[1], piece[2] = row, state.runs[row, SINCE], now
    piece[3], piece[4], piece[5] = procs[row], on.where[row], is_kept


@kernel
def begin(row: int, now: int, held: int, until: int, jobs: JobColumns, on: OnHosts, state: QuantaState) -> None:
    """Let a job run from its beginning, as a guest if ``until`` is an instant."""
    run = state.runs[row]
    run[SINCE], run[DONE], run[HELD], run[UNTIL] = now, 0, held, until
    run[EXPECTED], run[DUE] = now + jobs.estimate[row], now + jobs.run[row]
    if until >= 0:
        run[EXPECTED] = min(run[EXPECTED], until)
        used = on.memory[row] if state.used[row] < 0 else state.used[row]
        if on.hosts[MEMORY, on.where[row]] > 0 and used > held:
            run[DUE] = FAILED
            state.counts[OUTGROWN] += 1
    book(on.hosts, on.where[row], -jobs.procs[row], -held)
    enter(row, state)


@kernel
def next_instant(now: int, jobs: JobColumns, arrived: int, state: QuantaState) -> int:
    """Return the instant of the next round."""
    if state.counts[OUTGROWN] > 0:
        return now
    found = FOREVER if arrived >= jobs.submit.shape[0] else jobs.submit[arrived]
    for row in state.running[: state.counts[RUNNING]]:
        found = min(found, state.runs[row, DUE])
        if state.runs[row, UNTIL] >= 0:
            found = min(found, state.runs[row, UNTIL])
    return int(found)


@kernel
def end_runs(now: int, jobs: JobColumns, on: OnHosts, state: QuantaState) -> None:
    """Let those go that end now, in order of sequence."""
    kept = 0
    for place in range(state.counts[RUNNING]):
        row = state.running[place]
        if state.runs[row, DUE] == now:
            state.end[row] = now
            if state.runs[row, IS_CUT]:
                cut(row, now, 1, jobs.procs, on, state)
            book(on.hosts, on.where[row], jobs.procs[row], state.runs[row, HELD])
            state.runs[row, SINCE] = state.runs[row, HAD] = -1
        else:
            state.running[kept] = row
            kept += 1
    state.counts[RUNNING] = kept


@kernel
def wait_again(row: int, waiting: Int64Array, head: int, tail: int) -> None:
    """Put a row to its place in the queue ``waiting[head + 1:tail]``, which begins at ``head`` then."""
    place = head
    while place + 1 < tail and waiting[place + 1] < row:
        waiting[place] = waiting[place + 1]
        place += 1
    waiting[place] = row


@kernel
def end_quanta(
    now: int, waiting: Int64Array, head: int, tail: int, jobs: JobColumns, on: OnHosts, state: QuantaState
) -> int:
    """Put guests back into the queue whose quantum ends now, or which have failed; return its new head.

    There is always room before the head: it has moved on by one for each of them.
    """
    kept = 0
    for place in range(state.counts[RUNNING]):
        row = state.running[place]
        run = state.runs[row]
        if run[DUE] == FAILED or 0 <= run[UNTIL] <= now:
            cut(row, now, 0, jobs.procs, on, state)
            book(on.hosts, on.where[row], jobs.procs[row], run[HELD])
            run[HAD], run[SINCE] = now - run[SINCE], -1
            head -= 1
            wait_again(row, waiting, head, tail)
        else:
            state.running[kept] = row
            kept += 1
    state.counts[RUNNING], state.counts[OUTGROWN] = kept, 0
    return head


@allocating_kernel
def shown_pieces(now: int, jobs: JobColumns, on: OnHosts, state: QuantaState) -> Int64Array:
    """Return the running jobs as the inner pass sees them, in order of expected end.

    A guest is seen on the idle processors that it took, its victims as running, later by the time that it can take.
    """
    counts, most = state.counts, state.counts[RUNNING] + state.counts[SUSPENDED]
    found, ends = np.empty((3, most), np.int64), np.empty(most, np.int64)
    count = 0
    for row in state.running[: counts[RUNNING]]:
        run = state.runs[row]
        if run[UNTIL] < 0:
            is_late = run[EXPECTED] <= now and run[SINCE] < now
            ends[count] = now + OVERDUE if is_late else run[EXPECTED]
            found[0, count], found[1, count], found[2, count] = on.where[row], jobs.procs[row], run[HELD]
            count += 1
    for quantum in state.quanta[: counts[QUANTA]]:
        if not quantum[IS_OVER]:
            guest = quantum[GUEST]
            is_late = quantum[END] <= now and quantum[BEGIN] < now
            ends[count] = now + OVERDUE if is_late else quantum[END]
            found[0, count], found[1, count], found[2, count] = on.where[guest], quantum[IDLE], state.runs[guest, HELD]
            count += 1
        resumes = now if quantum[IS_OVER] else max(quantum[END], now)
        for row in state.suspended[: counts[SUSPENDED]]:
            if state.runs[row, FOR_WHOM] == quantum[GUEST]:
                end = resumes + max(jobs.estimate[row] - state.runs[row, DONE], 0)
                ends[count] = now + OVERDUE if end <= now else end
                found[0, count], found[1, count], found[2, count] = on.where[row], jobs.procs[row], state.runs[row, HELD]
                count += 1
    order = stable_order(ends[:count])
    pieces = np.empty((4, count), np.int64)
    for place in range(count):
        piece = order[place]
        pieces[PIECE_END, place], pieces[HOST, place] = ends[piece], found[0, piece]
        pieces[PROCS, place] = found[1, piece]
        pieces[PIECE_HELD, place] = found[2, piece] if on.hosts[MEMORY, found[0, piece]] > 0 else 0
    return pieces


@kernel
def resume_victims(now: int, jobs: JobColumns, on: OnHosts, state: QuantaState) -> None:
    """Let the victims go on of guests that have gone, on their own processors; forget those quanta."""
    counts, kept = state.counts, 0
    for place in range(counts[SUSPENDED]):
        row = state.suspended[place]
        run = state.runs[row]
        if state.runs[run[FOR_WHOM], SINCE] < 0:
            run[SINCE], run[FOR_WHOM] = now, -1
            run[EXPECTED] = now + max(jobs.estimate[row] - run[DONE], 0)
            run[DUE] = now + jobs.run[row] - run[DONE]
            on.hosts[FREE, on.where[row]] -= jobs.procs[row]
            enter(row, state)
        else:
            state.suspended[kept] = row
            kept += 1
    counts[SUSPENDED], kept = kept, 0
    for place in range(counts[QUANTA]):
        if not state.quanta[place, IS_OVER]:
            for field in range(QUANTUM_COLUMNS):
                state.quanta[kept, field] = state.quanta[place, field]
            kept += 1
    counts[QUANTA] = kept


@allocating_kernel
def shown_hosts(jobs: JobColumns, on: OnHosts, state: QuantaState) -> Int64Array:
    """Return the hosts without what the quanta keep for themselves: what their victims freed beyond the guest's need."""
    hosts = on.hosts.copy()
    for quantum in state.quanta[: state.counts[QUANTA]]:
        guest = quantum[GUEST]
        hosts[FREE, on.where[guest]] -= quantum[IDLE] - jobs.procs[guest]
    for row in state.suspended[: state.counts[SUSPENDED]]:
        hosts[FREE, on.where[row]] -= jobs.procs[row]
    return hosts


@allocating_kernel
def victims_now(now: int, jobs: JobColumns, on: OnHosts, state: QuantaState) -> tuple[Int64Array, Int64Array]:
    """Return who may be suspended, as :func:`service.guest_host` takes them, and their rows."""
    count, protect = 0, state.rules[PROTECT]
    victims, rows = np.empty((4, state.counts[RUNNING]), np.int64), np.empty(state.counts[RUNNING], np.int64)
    for row in state.running[: state.counts[RUNNING]]:
        run = state.runs[row]
        if protect >= 0 and run[SINCE] <= now - max(protect, 1) and run[UNTIL] < 0:
            victims[service.HOST, count], victims[service.PROCS, count] = on.where[row], jobs.procs[row]
            victims[service.TOTAL, count] = now - jobs.submit[row]
            victims[service.EXECUTED, count] = run[DONE] + now - run[SINCE] + max(run[HAD], 0)
            rows[count] = row
            count += 1
    return victims[:, :count].copy(), rows


@kernel
def begin_quantum(
    row: int, now: int, held: int, idle: int, chosen: Int64Array, jobs: JobColumns, on: OnHosts, state: QuantaState
) -> None:
    """Suspend the victims, which keep their memory, and let the guest run."""
    counts, until = state.counts, now + state.rules[QUANTUM]
    for victim in chosen:
        cut(victim, now, 1, jobs.procs, on, state)
        state.runs[victim, DONE] += now - state.runs[victim, SINCE]
        state.runs[victim, FOR_WHOM] = row
        on.hosts[FREE, on.where[victim]] += jobs.procs[victim]
        leave(victim, state)
        state.suspended[counts[SUSPENDED]] = victim
        counts[SUSPENDED] += 1
    begin(row, now, held, until, jobs, on, state)
    state.runs[row, HAD] = 0
    quantum = state.quanta[counts[QUANTA]]
    quantum[GUEST], quantum[IDLE], quantum[BEGIN], quantum[IS_OVER] = row, idle, now, 0
    quantum[END] = min(until, now + jobs.estimate[row])
    counts[QUANTA] += 1


@allocating_kernel
def serve(
    scan: Scan, rows: Int64Array, count: int, hosts: Int64Array, jobs: JobColumns, state: LoopState, on: OnHosts,
    quanta: QuantaState,
) -> int:  # fmt: skip
    """Serve those of ``rows`` that wait and had no quantum; return how many rows have started in this round, with ``count``."""
    victims, named = np.empty((4, 0), np.int64), np.empty(0, np.int64)
    order, chosen = named, named
    is_ready, most = False, hosts[FREE].max()
    for row in rows:
        run = quanta.runs[row]
        if run[SINCE] >= 0 or run[HAD] >= 0 or not quanta.may[row]:
            continue
        if quanta.rules[PROTECT] < 0:
            if jobs.procs[row] > most:
                continue
        elif not is_ready:
            victims, named = victims_now(scan.now, jobs, on, quanta)
            order, chosen = service.by_slowdown(victims), np.empty(victims.shape[1], np.int64)
            is_ready = True
        need = min(on.memory[row], quanta.rules[MOST_MEMORY])
        host, taken = service.guest_host(jobs.procs[row], need, hosts, victims, order, chosen)
        if host < 0:
            continue
        need = need if hosts[MEMORY, host] > 0 else 0
        idle = min(hosts[FREE, host], jobs.procs[row])
        book(hosts, host, -idle, -need)
        on.where[row] = host
        for place in range(taken):
            victims[service.HOST, chosen[place]] = -1
            chosen[place] = named[chosen[place]]
        begin_quantum(row, scan.now, need, idle, chosen[:taken], jobs, on, quanta)
        state.started[count] = row
        count += 1
    return count


@kernel
def forget_holders(on: OnHosts, state: QuantaState) -> None:
    """Forget the reservations of those that do not wait any more: they run as guests, or have ended as such."""
    kept = 0
    for place in range(on.holders[0]):
        row = on.held[ROW, place]
        if state.runs[row, SINCE] < 0 and state.end[row] < 0:
            for field in range(3):
                on.held[field, kept] = on.held[field, place]
            kept += 1
    on.holders[0] = kept


@allocating_kernel
def quantum_round(
    scan: Scan, first: int, jobs: JobColumns, state: LoopState, on: OnHosts, quanta: QuantaState
) -> int:
    """Make one pass: victims of guests that have gone, the inner pass, guests; write the rows that start into
    ``state.started``, and return how many they are.

    Args:
        first: the first row that arrives in this round; those up to ``state.counts[ARRIVED]`` do.
    """
    for quantum in quanta.quanta[: quanta.counts[QUANTA]]:
        quantum[IS_OVER] = quanta.runs[quantum[GUEST], SINCE] < 0
    pieces = shown_pieces(scan.now, jobs, on, quanta)
    resume_victims(scan.now, jobs, on, quanta)
    hosts = shown_hosts(jobs, on, quanta)
    free, count = hosts[FREE].sum(), 0
    if scan.head < scan.tail and (free > 0 or on.is_sticky):
        forget_holders(on, quanta)
        seen = Scan(scan.now, scan.order, scan.depth, scan.has_ended, free, scan.head, scan.tail, scan.active)
        count = list_round(seen, jobs, state, hosts, pieces, on)
    for row in state.started[:count]:
        held = on.memory[row] if hosts[MEMORY, on.where[row]] > 0 else 0
        book(hosts, on.where[row], -jobs.procs[row], -held)
        begin(row, scan.now, held, -1, jobs, on, quanta)
    rows = np.arange(first, state.counts[ARRIVED]) if quanta.rules[PROTECT] >= 0 else state.waiting[scan.head : scan.tail]
    return serve(scan, rows, count, hosts, jobs, state, on, quanta)
