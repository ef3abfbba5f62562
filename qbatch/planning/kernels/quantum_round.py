"""What a scheduler with quanta does in one round of its compiled loop: what ends, what the inner pass sees, who is served.

It is :class:`qbatch.policies.immediate.QuantumService` around a list scheduler on hosts, by the same kernels
(:mod:`quanta`, :func:`host_round.list_round`).  No host closes in a replay, and the jobs of a log may be begun twice.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels import host_pass
from qbatch.planning.kernels import quanta as service
from qbatch.planning.kernels.host_pass import FREE, most_free
from qbatch.planning.kernels.host_pass import MEMORY as SIZE
from qbatch.planning.kernels.host_round import book
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import OnHosts, QuantaState
from qbatch.planning.kernels.order import stable_order
from qbatch.planning.kernels.types import Int64Array

SUBMIT, PROCS, ESTIMATE, RUN, MEMORY, USED, MAY = 0, 1, 2, 3, 4, 5, 6
"""Columns of ``runs``: what a job asks for; how long it runs; bytes that it asks for, and that it really uses (-1: as many);
whether a host could hold it (if not it is rejected when it arrives)."""

SINCE, DONE, EXPECTED, DUE, UNTIL, HELD, HAD, FOR_WHOM, IS_CUT, WHERE, OVER = 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17
"""Columns of ``runs``: when it last began to run; how long it had run before; its expected end; when it really ends; the end
of its quantum; bytes that it holds; how long it ran as a guest; the guest for whom it is suspended; whether it has a piece; its
host; when it has ended.  -1: it does not run; is no guest; was none, or has ended; is not suspended; has not ended."""

RUN_COLUMNS = 18
"""How many columns ``runs`` has."""

RUNNING, SUSPENDED = 0, 1
"""Rows of ``lists``: the running rows, ascending, and the suspended ones."""

GUEST, IDLE, BEGIN, END, IS_OVER = 0, 1, 2, 3, 4
"""Columns of ``quanta``: the guest, the idle processors that it took, when it began, its end by its estimate and its quantum,
and whether it has gone."""

QUANTUM_COLUMNS = 5
"""How many columns ``quanta`` has."""

ACTIVE, ASLEEP, QUANTA, PIECES, OUTGROWN, QUANTUM, PROTECT, MOST_MEMORY = 8, 9, 10, 11, 12, 13, 14, 15
"""Places in ``counts`` behind those of every loop: how many run, are suspended, are quanta, are pieces, and are guests that use
more memory than they have (they go back at the same instant); the quantum and how long a job is protected (-1: nobody is
suspended), microseconds; the most memory of a guest, bytes."""

COUNTS = 16
"""Length of ``counts``."""

FAILED = -2
"""``DUE`` of a guest that uses more memory than it has."""

OVERDUE = 1_000_000
"""A job that outlives its estimate is taken to end this many microseconds from now."""


@kernel
def enter(row: int, state: QuantaState) -> None:
    """Enter a row among the running ones."""
    running, place = state.lists[RUNNING], state.counts[ACTIVE]
    state.counts[ACTIVE] += 1
    while place > 0 and running[place - 1] > row:
        running[place] = running[place - 1]
        place -= 1
    running[place] = row


@kernel
def leave(row: int, state: QuantaState) -> None:
    """Take a row out of the running ones."""
    running, place = state.lists[RUNNING], 0
    state.counts[ACTIVE] -= 1
    while running[place] != row:
        place += 1
    for behind in range(place, state.counts[ACTIVE]):
        running[behind] = running[behind + 1]


@kernel
def stop(row: int, now: int, is_kept: int, state: QuantaState) -> None:
    """Let a run stop and note the piece that is over."""
    run, piece = state.runs[row], state.pieces[state.counts[PIECES]]
    state.counts[PIECES] += 1
    piece[0], piece[1], piece[2], piece[3], piece[4], piece[5] = row, run[SINCE], now, run[PROCS], run[WHERE], is_kept
    run[SINCE], run[IS_CUT] = -1, 1


@kernel
def begin(row: int, now: int, until: int, state: QuantaState) -> None:
    """Let a job run from its beginning on its host with the memory that it holds, as a guest if ``until`` is an instant."""
    run = state.runs[row]
    run[SINCE], run[DONE], run[UNTIL] = now, 0, until
    run[EXPECTED], run[DUE] = now + run[ESTIMATE], now + run[RUN]
    if until >= 0:
        run[HAD], run[EXPECTED] = 0, min(run[EXPECTED], until)
        used = run[MEMORY] if run[USED] < 0 else run[USED]
        if state.hosts[SIZE, run[WHERE]] > 0 and used > run[HELD]:
            run[DUE] = FAILED
            state.counts[OUTGROWN] += 1
    book(state.hosts, run[WHERE], -run[PROCS], -run[HELD])
    enter(row, state)


@kernel
def next_instant(now: int, arrival: int, state: QuantaState) -> int:
    """Return the instant of the next round.

    Args:
        arrival: the instant of the next arrival.
    """
    if state.counts[OUTGROWN] > 0:
        return now
    for place in range(state.counts[ACTIVE]):
        run = state.runs[state.lists[RUNNING, place]]
        arrival = min(arrival, run[DUE])
        if run[UNTIL] >= 0:
            arrival = min(arrival, run[UNTIL])
    return arrival


@kernel
def wait_again(row: int, waiting: Int64Array, head: int, tail: int) -> None:
    """Put a row to its place in the queue ``waiting[head + 1:tail]``, which begins at ``head`` then."""
    place = head
    while place + 1 < tail and waiting[place + 1] < row:
        waiting[place] = waiting[place + 1]
        place += 1
    waiting[place] = row


@kernel
def end_runs(now: int, waiting: Int64Array, head: int, tail: int, state: QuantaState) -> int:
    """Let those go that end now, then put those guests back into the queue whose quantum is over, or which have failed, both in
    order of sequence; return the new head of the queue.

    There is always room before the head: it has moved on by one for each guest.
    """
    for is_guest in (False, True):
        kept = 0
        for place in range(state.counts[ACTIVE]):
            row = state.lists[RUNNING, place]
            run = state.runs[row]
            is_back = is_guest and (run[DUE] == FAILED or 0 <= run[UNTIL] <= now)
            if run[DUE] != now and not is_back:
                state.lists[RUNNING, kept] = row
                kept += 1
                continue
            book(state.hosts, run[WHERE], run[PROCS], run[HELD])
            run[HAD] = now - run[SINCE] if is_back else -1
            if is_back or run[IS_CUT]:
                stop(row, now, 0 if is_back else 1, state)
            run[SINCE] = -1
            if is_back:
                head -= 1
                wait_again(row, waiting, head, tail)
            else:
                run[OVER] = now
        state.counts[ACTIVE] = kept
    state.counts[OUTGROWN] = 0
    return head


@kernel
def show(pieces: Int64Array, count: int, end: int, row: int, procs: int, state: QuantaState) -> int:
    """Note a running job as the inner pass sees it; return how many there are."""
    run = state.runs[row]
    pieces[host_pass.END, count], pieces[host_pass.HOST, count] = end, run[WHERE]
    pieces[host_pass.PROCS, count], pieces[host_pass.HELD, count] = procs, run[HELD]
    return count + 1


@allocating_kernel
def shown_pieces(now: int, state: QuantaState) -> Int64Array:
    """Return the running jobs as the inner pass sees them, in order of expected end.

    A guest is seen on the idle processors that it took, its victims as running, later by the time that it can take.
    """
    counts, count = state.counts, 0
    found = np.empty((4, counts[ACTIVE] + counts[ASLEEP]), np.int64)
    for place in range(counts[ACTIVE]):
        row = state.lists[RUNNING, place]
        run = state.runs[row]
        if run[UNTIL] < 0:
            is_late = run[EXPECTED] <= now and run[SINCE] < now
            count = show(found, count, now + OVERDUE if is_late else run[EXPECTED], row, run[PROCS], state)
    for place in range(counts[QUANTA]):
        quantum = state.quanta[place]
        resumes = now
        if not quantum[IS_OVER]:
            is_late = quantum[END] <= now and quantum[BEGIN] < now
            count = show(found, count, now + OVERDUE if is_late else quantum[END], quantum[GUEST], quantum[IDLE], state)
            resumes = max(quantum[END], now)
        for other in range(counts[ASLEEP]):
            row = state.lists[SUSPENDED, other]
            run = state.runs[row]
            if run[FOR_WHOM] == quantum[GUEST]:
                end = resumes + max(run[ESTIMATE] - run[DONE], 0)
                count = show(found, count, now + OVERDUE if end <= now else end, row, run[PROCS], state)
    order = stable_order(found[host_pass.END])
    pieces = np.empty((4, count), np.int64)
    for place in range(count):
        for field in range(4):
            pieces[field, place] = found[field, order[place]]
    return pieces


@kernel
def resume_victims(now: int, state: QuantaState) -> None:
    """Let the victims go on of guests that have gone, on their own processors; forget those quanta."""
    counts, kept = state.counts, 0
    for place in range(counts[ASLEEP]):
        row = state.lists[SUSPENDED, place]
        run = state.runs[row]
        if state.runs[run[FOR_WHOM], SINCE] < 0:
            run[SINCE], run[FOR_WHOM] = now, -1
            run[EXPECTED], run[DUE] = now + max(run[ESTIMATE] - run[DONE], 0), now + run[RUN] - run[DONE]
            state.hosts[FREE, run[WHERE]] -= run[PROCS]
            enter(row, state)
        else:
            state.lists[SUSPENDED, kept] = row
            kept += 1
    counts[ASLEEP], kept = kept, 0
    for place in range(counts[QUANTA]):
        if not state.quanta[place, IS_OVER]:
            for field in range(QUANTUM_COLUMNS):
                state.quanta[kept, field] = state.quanta[place, field]
            kept += 1
    counts[QUANTA] = kept


@kernel
def hide_quanta(hosts: Int64Array, state: QuantaState) -> None:
    """Take from what hosts show free what the quanta keep for themselves: what victims freed beyond the guest's need."""
    for place in range(state.counts[QUANTA]):
        quantum = state.quanta[place]
        guest = state.runs[quantum[GUEST]]
        hosts[FREE, guest[WHERE]] += guest[PROCS] - quantum[IDLE]
    for place in range(state.counts[ASLEEP]):
        run = state.runs[state.lists[SUSPENDED, place]]
        hosts[FREE, run[WHERE]] -= run[PROCS]


@kernel
def find_victims(now: int, victims: Int64Array, rows: Int64Array, state: QuantaState) -> int:
    """Write who may be suspended, as :func:`service.guest_host` takes them, and their rows; return how many they are."""
    count, protect = 0, state.counts[PROTECT]
    for place in range(state.counts[ACTIVE] if protect >= 0 else 0):
        row = state.lists[RUNNING, place]
        run = state.runs[row]
        if run[SINCE] <= now - max(protect, 1) and run[UNTIL] < 0:
            rows[count], victims[service.HOST, count], victims[service.PROCS, count] = row, run[WHERE], run[PROCS]
            victims[service.TOTAL, count] = now - run[SUBMIT]
            victims[service.EXECUTED, count] = run[DONE] + now - run[SINCE] + max(run[HAD], 0)
            count += 1
    return count


@kernel
def suspend(row: int, now: int, guest: int, state: QuantaState) -> None:
    """Suspend a victim, which keeps its memory."""
    run = state.runs[row]
    run[DONE] += now - run[SINCE]
    run[FOR_WHOM] = guest
    stop(row, now, 1, state)
    leave(row, state)
    state.hosts[FREE, run[WHERE]] += run[PROCS]
    state.lists[SUSPENDED, state.counts[ASLEEP]] = row
    state.counts[ASLEEP] += 1


@allocating_kernel
def serve(now: int, rows: Int64Array, started: Int64Array, count: int, hosts: Int64Array, state: QuantaState) -> int:
    """Serve those of ``rows`` that wait and had no quantum; return how many have started in this round, with ``count``."""
    counts, is_ready, most = state.counts, False, most_free(hosts)
    chosen = np.empty(counts[ACTIVE], np.int64)
    victims, named, order = np.empty((4, 0), np.int64), chosen, chosen[:0]
    for row in rows:
        run = state.runs[row]
        if run[SINCE] >= 0 or run[HAD] >= 0 or not run[MAY] or (counts[PROTECT] < 0 and run[PROCS] > most):
            continue
        if not is_ready and counts[PROTECT] >= 0:
            found, named = np.empty((4, counts[ACTIVE]), np.int64), np.empty(counts[ACTIVE], np.int64)
            victims = found[:, : find_victims(now, found, named, state)].copy()
            order = service.by_slowdown(victims)
            is_ready = True
        need = min(run[MEMORY], counts[MOST_MEMORY])
        host, taken = service.guest_host(run[PROCS], need, hosts, victims, order, chosen)
        if host < 0:
            continue
        for place in chosen[:taken]:
            victims[service.HOST, place] = -1
            suspend(named[place], now, row, state)
        quantum = state.quanta[counts[QUANTA]]
        quantum[GUEST], quantum[IDLE] = row, min(hosts[FREE, host], run[PROCS])
        quantum[BEGIN], quantum[END] = now, now + min(counts[QUANTUM], run[ESTIMATE])
        counts[QUANTA] += 1
        run[WHERE], run[HELD] = host, need if hosts[SIZE, host] > 0 else 0
        book(hosts, host, -quantum[IDLE], -need)
        begin(row, now, now + counts[QUANTUM], state)
        started[count] = row
        count += 1
    return count


@kernel
def forget_holders(on: OnHosts, state: QuantaState) -> None:
    """Forget the reservations of jobs that run as guests."""
    kept = 0
    for place in range(on.holders[0]):
        if state.runs[on.held[host_pass.ROW, place], SINCE] < 0:
            for field in range(3):
                on.held[field, kept] = on.held[field, place]
            kept += 1
    on.holders[0] = kept
