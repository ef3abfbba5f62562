"""The verbs of the core: what may change the tables (:mod:`tables`), one kernel each.

The first part serves every policy.  The second serves policies that interrupt jobs: there ``runs`` says how far each job has
got, the heap of ends may hold entries that are out of date, and a run that stops before its job's end, or that does not have all
processors that the job asked for, leaves an execution interval.
"""

from __future__ import annotations

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.host_pass import taken
from qbatch.planning.kernels.jit import inlined_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    END,
    FREE,
    HELD,
    HOST,
    MEMORY,
    NAMED,
    NOBODY,
    OF_ROW,
    PROCS,
    REFUSED_START,
    RESIZE,
    RESUME,
    SINCE,
    SUSPEND,
    THERE,
    TRY,
    JobColumns,
    LogTable,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array

IN_ORDER, IMMEDIATE, BACKFILLED = 0, 1, 2
"""How a job started (design.md, "The meaning of one instant")."""

NOT_WAITING, NO_ROOM, NO_NUMBER, NOT_LATER = 1, 2, 3, 4
"""Why what a policy decided is refused: the row does not wait; there is no room; there is no such number of starts; the next pass
is not later."""


@kernel
def kind_of(row: int, first_left: int, submit: int, now: int) -> int:
    """Return how a job started in a pass that left ``first_left`` as the first row that waits."""
    if first_left != NOBODY and first_left < row:
        return BACKFILLED
    return IMMEDIATE if submit == now else IN_ORDER


@kernel
def close_gaps(waiting: Int64Array, head: int, start: Int64Array, last: int) -> int:
    """Close the gaps that started rows left in ``waiting`` from ``head`` on; return the new head.

    ``start``: by row since when it runs, below 0 if it waits.  ``last`` is the last row that started.  Those before it move up to
    it, so that what stands behind is not touched.
    """
    read = head
    while waiting[read] != last:
        read += 1
    kept = read + 1
    while read >= head:
        row = waiting[read]
        if start[row] < 0:
            kept -= 1
            waiting[kept] = row
        read -= 1
    return kept


@kernel
def refuse(row: int, state: StateTables, done: ScheduleTable) -> None:
    """A job that has just arrived is turned away for good."""
    done.start[row] = REFUSED_START
    state.counts[0].refused += 1


@kernel
def book(hosts: Int64Array, host: int, procs: int, memory: int) -> None:
    """Give processors and memory back to a host, or take them (both negative)."""
    hosts[FREE, CPUS, host] += procs
    if hosts[THERE, MEMORY, host] > 0:
        hosts[FREE, MEMORY, host] += memory


@kernel
def enter_part(parts: Int64Array, count: int) -> None:
    """Bring the part that stands behind ``count`` others, which are sorted by expected end, to its place; the caller counts."""
    # The rows that every machine has are moved together: one row after another takes twice as long.
    place = count
    end, host, procs, held = parts[END, count], parts[HOST, count], parts[PROCS, count], parts[HELD, count]
    while place > 0 and parts[END, place - 1] > end:
        for field in (END, HOST, PROCS, HELD):
            parts[field, place] = parts[field, place - 1]
        place -= 1
    parts[END, place], parts[HOST, place], parts[PROCS, place], parts[HELD, place] = end, host, procs, held
    for field in range(AMOUNTS + NAMED, parts.shape[0]):
        value = parts[field, count]
        for moved in range(count, place, -1):
            parts[field, moved] = parts[field, moved - 1]
        parts[field, place] = value


@kernel
def leave_part(parts: Int64Array, count: int) -> None:
    """Remove the part that is equal to the one that stands behind ``count``; the caller counts.  Two that are equal in everything
    are the same to every pass."""
    low, high, end = 0, count, parts[END, count]
    while low < high:
        middle = (low + high) >> 1
        if parts[END, middle] < end:
            low = middle + 1
        else:
            high = middle
    is_found = False
    while not is_found:
        is_found = True
        for field in range(parts.shape[0]):
            is_found = is_found and parts[field, low] == parts[field, count]
        low += 1
    for place in range(low - 1, count - 1):
        for field in (END, HOST, PROCS, HELD):
            parts[field, place] = parts[field, place + 1]
    for field in range(AMOUNTS + NAMED, parts.shape[0]):
        for place in range(low - 1, count - 1):
            parts[field, place] = parts[field, place + 1]


@kernel
def book_job(row: int, host: int, sign: int, asked: Int64Array, hosts: Int64Array) -> None:
    """Give what a job has back to its host (``sign`` 1), or take it (-1)."""
    for resource in range(hosts.shape[1]):
        hosts[FREE, resource, host] += sign * taken(resource, row, host, asked, hosts)


@kernel
def write_part(
    row: int, host: int, since: int, estimate: int, place: int, asked: Int64Array, hosts: Int64Array, parts: Int64Array
) -> None:
    """Write the part of a job on its host."""
    parts[END, place], parts[HOST, place] = since + estimate, host
    for resource in range(hosts.shape[1]):
        parts[AMOUNTS + resource, place] = taken(resource, row, host, asked, hosts)
    if parts.shape[0] > AMOUNTS + hosts.shape[1]:
        parts[SINCE, place], parts[OF_ROW, place] = since, row


@inlined_kernel
def give_back(
    row: int, running: int, has_parts: bool, jobs: JobColumns, state: StateTables, done: ScheduleTable
) -> None:  # fmt: skip
    """Give back to its host what a job had that ends; ``running``: the jobs that run, with it."""
    host = done.host[row]
    book_job(row, host, 1, jobs.asked, state.hosts)
    if has_parts:
        write_part(row, host, done.start[row], jobs.estimate[row], running, jobs.asked, state.hosts, state.parts)
        leave_part(state.parts, running)


@inlined_kernel
def take(
    row: int, host: int, running: int, now: int, has_parts: bool, is_booked: bool, jobs: JobColumns, state: StateTables,
    done: ScheduleTable,
) -> None:  # fmt: skip
    """Take from a host what a job has that starts, unless that ``is_booked``; ``running``: the jobs that run, without it."""
    done.host[row] = host
    if not is_booked:
        book_job(row, host, -1, jobs.asked, state.hosts)
    if has_parts:
        write_part(row, host, now, jobs.estimate[row], running, jobs.asked, state.hosts, state.parts)
        enter_part(state.parts, running)


@kernel
def has_room(count: int, jobs: JobColumns, state: StateTables) -> bool:
    """Tell whether the place of the last of ``count + 1`` starts has what it and the starts before it there ask for."""
    host, hosts = state.places[count], state.hosts
    if host < 0 or host >= hosts.shape[2]:
        return False
    for resource in range(hosts.shape[1]):
        free = hosts[FREE, resource, host]
        for place in range(count + 1):
            if state.places[place] == host:
                free -= taken(resource, state.started[place], host, jobs.asked, hosts)
        if free < 0:
            return False
    return True


@kernel
def count_allowed(
    count: int, arrived: int, free: int, has_hosts: bool, jobs: JobColumns, state: StateTables, done: ScheduleTable
) -> int:  # fmt: skip
    """Return how many of ``count`` starts may be carried out; the first that may not is noted in ``counts``."""
    counts, allowed = state.counts[0], 0
    if count < 0 or count > state.started.shape[0]:
        counts.fault = NO_NUMBER
    while allowed < count and counts.fault == 0:
        row = state.started[allowed]
        is_waiting = 0 <= row < arrived and done.start[row] == NOBODY
        for other in range(allowed):
            is_waiting = is_waiting and state.started[other] != row
        if not is_waiting:
            counts.fault = NOT_WAITING
        elif jobs.procs[row] > free or (has_hosts and not has_room(allowed, jobs, state)):
            counts.fault = NO_ROOM
        if counts.fault == 0:
            free -= jobs.procs[row]
            allowed += 1
        else:
            counts.fault_row = row
    return allowed


@kernel
def is_due(row: int, instant: int, state: StateTables) -> bool:
    """Tell whether a job, or its trial, is over at an instant."""
    run = state.runs[row]
    return bool(run.since >= 0 and (run.due == instant or run.until == instant))


@kernel
def note_end(instant: int, row: int, state: StateTables) -> None:
    """Enter an instant at which a job, or its trial, is over; where there is no space, keep the entries of running jobs only."""
    counts, endings = state.counts[0], state.endings
    if counts.ends == endings.shape[0]:
        counts.ends = 0
        for place in range(counts.running):
            run = state.runs[state.running[place]]
            for due in (run.due, run.until):
                if due >= 0:
                    heap.push(endings, counts.ends, due, state.running[place])
                    counts.ends += 1
    heap.push(endings, counts.ends, instant, row)
    counts.ends += 1


@inlined_kernel
def next_end(state: StateTables) -> int:
    """Return the next instant at which a job, or a trial, is over, ``FOREVER`` for none."""
    counts, endings = state.counts[0], state.endings
    while counts.ends > 0 and not is_due(endings[0, heap.ROW], endings[0, heap.INSTANT], state):
        heap.pop(endings, counts.ends)
        counts.ends -= 1
    return int(endings[0, heap.INSTANT]) if counts.ends > 0 else FOREVER


@kernel
def note_interval(row: int, now: int, is_kept: int, state: StateTables, done: ScheduleTable) -> None:
    """Note the execution interval of a run that stops now."""
    counts, run = state.counts[0], state.runs[row]
    interval = state.intervals[counts.intervals]
    interval.row, interval.begin, interval.end, interval.procs = row, run.since, now, run.procs
    interval.host, interval.is_kept = done.host[row], is_kept
    counts.intervals += 1
    run.is_cut = 1


@kernel
def go_on(row: int, procs: int, now: int, jobs: JobColumns, log: LogTable, state: StateTables) -> None:
    """Let a job run on from now with so many processors."""
    run = state.runs[row]
    run.since, run.procs = now, procs
    left = log.run[row] * jobs.procs[row] - run.done
    run.due = now + (-(-left // procs) if left > 0 else 0)
    note_end(run.due, row, state)


@kernel
def enter_running(row: int, state: StateTables) -> None:
    """Enter a row among the running ones."""
    running, counts = state.running, state.counts[0]
    place = counts.running
    while place > 0 and running[place - 1] > row:
        running[place] = running[place - 1]
        place -= 1
    running[place] = row
    counts.running += 1


@kernel
def leave_running(row: int, state: StateTables) -> None:
    """Take a row out of the running ones."""
    running, counts, place = state.running, state.counts[0], 0
    while running[place] != row:
        place += 1
    counts.running -= 1
    for behind in range(place, counts.running):
        running[behind] = running[behind + 1]


@kernel
def stop(row: int, memory: int, state: StateTables, done: ScheduleTable) -> None:
    """A job runs no more, and gives back its processors and so much memory."""
    run = state.runs[row]
    run.since, run.due = -1, -1
    leave_running(row, state)
    book(state.hosts, done.host[row], run.procs, memory)
    state.counts[0].free += run.procs


@kernel
def start(
    row: int, host: int, procs: int, held: int, until: int, now: int, jobs: JobColumns, log: LogTable, state: StateTables,
    done: ScheduleTable,
) -> None:  # fmt: skip
    """Let a job run from its beginning, on trial until an instant if ``until`` is one.

    A trial whose job uses more memory than it holds fails at once: it is over at the same instant.
    """
    run = state.runs[row]
    done.host[row] = host
    run.done, run.held, run.until = 0, held, until
    book(state.hosts, host, -procs, -held)
    state.counts[0].free -= procs
    enter_running(row, state)
    if procs != jobs.procs[row]:
        run.is_cut = 1
    used = jobs.asked[MEMORY, row] if log.used_memory[row] < 0 else log.used_memory[row]
    if until >= 0 and state.hosts[THERE, MEMORY, host] > 0 and used > held:
        run.since, run.procs, run.due, run.until = now, procs, FOREVER, now
    else:
        go_on(row, procs, now, jobs, log, state)
    if until >= 0:
        note_end(run.until, row, state)


@inlined_kernel
def end_all(now: int, state: StateTables, done: ScheduleTable) -> int:
    """End the jobs that end now, then put the trials that are over back into the queue, both in order of sequence; return the
    new head of the queue.

    Each trial moved the head on by one when it began, so there is a free place before the head for each that comes back.
    """
    counts, endings = state.counts[0], state.endings
    counts.ended, counts.returned = 0, 0
    while counts.ends > 0 and endings[0, heap.INSTANT] == now:
        row = endings[0, heap.ROW]
        heap.pop(endings, counts.ends)
        counts.ends -= 1
        run = state.runs[row]
        if run.since < 0:
            continue
        if run.due == now:
            if run.is_cut:
                note_interval(row, now, 1, state, done)
            stop(row, run.held, state, done)
            run.until = -1
            done.end[row] = now
            state.ended[counts.ended] = row
            counts.ended += 1
        elif run.until == now and (counts.returned == 0 or state.returned[counts.returned - 1] != row):
            state.returned[counts.returned] = row
            counts.returned += 1
    head, tail = counts.head, counts.tail
    for place in range(counts.returned):
        row = state.returned[place]
        run = state.runs[row]
        note_interval(row, now, 0, state, done)
        stop(row, run.held, state, done)
        run.done, run.until = -1, -1
        head -= 1
        wait_again(row, state.waiting, head, tail)
    return int(head)


@kernel
def wait_again(row: int, waiting: Int64Array, head: int, tail: int) -> None:
    """Put a row to its place in the queue ``waiting[head + 1:tail]``, which begins at ``head`` then."""
    place = head
    while place + 1 < tail and waiting[place + 1] < row:
        waiting[place] = waiting[place + 1]
        place += 1
    waiting[place] = row


@kernel
def suspend(row: int, held: int, now: int, state: StateTables, done: ScheduleTable) -> None:
    """A running job stands still; of its memory it keeps so much."""
    run = state.runs[row]
    run.done += (now - run.since) * run.procs
    note_interval(row, now, 1, state, done)
    stop(row, run.held - held, state, done)
    run.held = held


@kernel
def resume(
    row: int, procs: int, held: int, now: int, jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable
) -> None:  # fmt: skip
    """A suspended job goes on where it was, with so many processors and so much memory."""
    run = state.runs[row]
    book(state.hosts, done.host[row], -procs, run.held - held)
    state.counts[0].free -= procs
    run.held = held
    enter_running(row, state)
    go_on(row, procs, now, jobs, log, state)


@kernel
def resize(
    row: int, procs: int, now: int, jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable
) -> None:  # fmt: skip
    """A running job goes on with another number of processors."""
    run = state.runs[row]
    run.done += (now - run.since) * run.procs
    note_interval(row, now, 1, state, done)
    book(state.hosts, done.host[row], run.procs - procs, 0)
    state.counts[0].free += run.procs - procs
    go_on(row, procs, now, jobs, log, state)


@inlined_kernel
def carry_out(
    count: int, now: int, jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable
) -> int:  # fmt: skip
    """Carry out ``count`` actions, in order; write the rows that start for the first time into ``state.started`` and return how
    many they are."""
    counts, first, last = state.counts[0], 0, NOBODY
    for place in range(count):
        action = state.actions[place]
        row = action.row
        if action.kind == SUSPEND:
            suspend(row, action.held, now, state, done)
        elif action.kind == RESUME:
            resume(row, action.procs, action.held, now, jobs, log, state, done)
        elif action.kind == RESIZE:
            resize(row, action.procs, now, jobs, log, state, done)
        else:
            until = action.until if action.kind == TRY else -1
            start(row, action.host, action.procs, action.held, until, now, jobs, log, state, done)
            last = max(last, row)
            if done.start[row] < 0:
                done.start[row] = now
                state.started[first] = row
                first += 1
    if last != NOBODY:
        counts.head = close_gaps(state.waiting, counts.head, state.runs["since"], last)
    return first
