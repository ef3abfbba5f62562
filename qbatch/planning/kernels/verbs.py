"""The verbs of the core, which alone may change the tables (:mod:`tables`), one kernel each.

The first part serves every policy.  The second serves policies that interrupt jobs.  There ``runs``
holds the progress of each job, and the heap of ends may contain outdated entries.  A run that stops
before its job's end, or has fewer processors than the job asked for, leaves an execution interval.
"""

from __future__ import annotations

from collections.abc import Iterator

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.availability import ONE_CHUNK, asks
from qbatch.planning.kernels.jit import inlined_kernel, kernel
from qbatch.planning.kernels.order import first_from
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    DROP,
    END,
    END_NOW,
    FREE,
    HELD,
    HOST,
    MEMORY,
    NO_JOB,
    OF_ROW,
    PROCS,
    REFUSED_START,
    RESIZE,
    RETURN,
    SINCE,
    SPREAD,
    SUSPEND,
    THERE,
    TRY,
    WITHHELD,
    JobColumns,
    LogTable,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array, Record, RecordArray

IN_ORDER, IMMEDIATE, BACKFILLED = 0, 1, 2
"""How a job started (docs/design.md, "The meaning of one instant")."""

NOT_WAITING, NO_ROOM, NO_NUMBER, NOT_LATER = 1, 2, 3, 4
"""Why a decision of a policy is refused: the row does not wait; it does not fit; there is no such
number of starts; the next pass is not later."""


@kernel
def kind_of(row: int, first_left: int, submit: int, now: int) -> int:
    """Return how a job started in a pass that left ``first_left`` as the first row that waits."""
    if first_left != NO_JOB and first_left < row:
        return BACKFILLED
    return IMMEDIATE if submit == now else IN_ORDER


@kernel
def close_gaps(waiting: Int64Array, head: int, begun: Int64Array, last: int) -> int:
    """Close the gaps that started rows left in ``waiting`` from ``head`` on; return the new head.

    ``begun``: by row, below 0 if it waits.  ``last`` is the last row that started.  Those before it
    move up to it, so that entries behind it are not touched.
    """
    read = head
    while waiting[read] != last:
        read += 1
    kept = read + 1
    while read >= head:
        row = waiting[read]
        if begun[row] < 0:
            kept -= 1
            waiting[kept] = row
        read -= 1
    return kept


@kernel
def refuse(row: int, state: StateTables, done: ScheduleTable) -> None:
    """Refuse a job that has just arrived, for good."""
    done.start[row] = REFUSED_START
    state.counts[0].refused += 1


@kernel
def book(hosts: Int64Array, host: int, procs: int, memory: int) -> None:
    """Give processors and memory back to a host, or take them (both negative)."""
    hosts[FREE, CPUS, host] += procs
    if hosts[THERE, MEMORY, host] > 0:
        hosts[FREE, MEMORY, host] += memory


@kernel
def move_up(parts: Int64Array, first: int, after: int) -> None:
    """Move the parts from ``first`` to before ``after`` one place up, over the next one, which goes
    to ``first``."""
    # In a slice no index is negative: for long rows that is five times as fast.
    for field in range(parts.shape[0]):
        row = parts[field, first : after + 1]
        last = row[after - first]
        for place in range(after - first, 0, -1):
            row[place] = row[place - 1]
        row[0] = last


@kernel
def move_down(parts: Int64Array, first: int, after: int, by: int) -> None:
    """Move parts down to the places from ``first`` to before ``after``, by some places."""
    for field in range(parts.shape[0]):
        to, row = parts[field, first:after], parts[field, first + by : after + by]
        for place in range(after - first):
            to[place] = row[place]


@kernel
def enter_part(parts: Int64Array, count: int) -> None:
    """Move the part after ``count`` others, which are sorted by expected end, to its position; the
    caller updates the count."""
    move_up(parts, first_from(parts[END], count, parts[END, count] + 1), count)


@kernel
def leave_part(parts: Int64Array, count: int) -> None:
    """Remove the part that equals the one after ``count``; the caller updates the count.  Two equal
    parts are the same to every pass."""
    low = first_from(parts[END], count, parts[END, count])
    is_found = False
    while not is_found:
        is_found = True
        for field in range(parts.shape[0]):
            is_found = is_found and parts[field, low] == parts[field, count]
        low += 1
    move_down(parts, low - 1, count - 1, 1)


@kernel
def book_job(row: int, host: int, sign: int, jobs: JobColumns, hosts: Int64Array) -> None:
    """Give what a job has back to its one host (``sign`` 1), or take it (-1)."""
    for resource in range(hosts.shape[1]):
        hosts[FREE, resource, host] += sign * asks(ONE_CHUNK, row, resource, host, jobs, hosts)


@kernel
def write_part(
    row: int,
    host: int,
    since: int,
    place: int,
    jobs: JobColumns,
    hosts: Int64Array,
    parts: Int64Array,
) -> None:
    """Write the part of a job on its one host, where it runs since an instant."""
    parts[END, place], parts[HOST, place] = since + jobs.estimate[row], host
    if parts.shape[0] > AMOUNTS + hosts.shape[1]:
        parts[SINCE, place], parts[OF_ROW, place] = since, row
    for resource in range(hosts.shape[1]):
        parts[AMOUNTS + resource, place] = asks(ONE_CHUNK, row, resource, host, jobs, hosts)


@inlined_kernel
def give_back(
    row: int,
    has_parts: bool,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
) -> None:
    """Give back to its hosts what an ending job had."""
    host, counts = done.host[row], state.counts[0]
    if jobs.requests.of.shape[0] > 0:
        end = done.start[row] + jobs.estimate[row]
        gone = take_out(row, end, counts, state.parts)
        book_parts(gone, 1, CPUS, True, counts, state.parts, state.hosts)
        return
    book_job(row, host, 1, jobs, state.hosts)
    if has_parts:
        write_part(row, host, done.start[row], counts.parts, jobs, state.hosts, state.parts)
        leave_part(state.parts, counts.parts)
        counts.parts -= 1


@inlined_kernel
def take(
    turn: int,
    first: int,
    now: int,
    has_parts: bool,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
) -> int:
    """Take from its hosts what the job of a start needs, the ``turn``-th of a pass.

    ``first``: how many of ``begun`` are of earlier starts.  Return the same with this start.
    """
    row, host, counts = state.started[turn], state.places[turn], state.counts[0]
    parts, begun, hosts = state.parts, state.begun, state.hosts
    done.host[row] = host
    if host == SPREAD:
        done.host[row] = begun[HOST, first]
        while first < begun.shape[1] and begun[OF_ROW, first] == row:
            for field in range(parts.shape[0]):
                parts[field, counts.parts] = begun[field, first]
            parts[SINCE, counts.parts] = now
            for resource in range(hosts.shape[1]):
                hosts[FREE, resource, begun[HOST, first]] -= begun[AMOUNTS + resource, first]
            enter_part(parts, counts.parts)
            counts.parts += 1
            first += 1
        return first
    book_job(row, host, -1, jobs, hosts)
    if has_parts:
        write_part(row, host, now, counts.parts, jobs, hosts, parts)
        enter_part(parts, counts.parts)
        counts.parts += 1
    return first


@kernel
def has_room(count: int, jobs: JobColumns, state: StateTables) -> bool:
    """Return whether the host of the last of ``count + 1`` starts has enough for it and the earlier
    starts there.  The passes of qbatch alone start jobs that have requests."""
    host, hosts = state.places[count], state.hosts
    if jobs.requests.of.shape[0] > 0:
        return bool(host == SPREAD)
    if host < 0 or host >= hosts.shape[2]:
        return False
    for resource in range(hosts.shape[1]):
        free = hosts[FREE, resource, host]
        for place in range(count + 1):
            if state.places[place] == host:
                free -= asks(ONE_CHUNK, state.started[place], resource, host, jobs, hosts)
        if free < 0:
            return False
    return True


@kernel
def count_allowed(
    count: int,
    arrived: int,
    free: int,
    has_hosts: bool,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
) -> int:
    """Return how many of ``count`` starts are valid; the first invalid one is recorded in
    ``counts``."""
    counts, allowed = state.counts[0], 0
    if count < 0 or count > state.started.shape[0]:
        counts.fault = NO_NUMBER
    while allowed < count and counts.fault == 0:
        row = state.started[allowed]
        is_waiting = 0 <= row < arrived and done.start[row] == NO_JOB
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
def is_due(row: int, instant: int, runs: RecordArray) -> bool:
    """Return whether a job, or its time, is over at an instant."""
    run = runs[row]
    return bool(run.since >= 0 and (run.due == instant or run.until == instant))


@kernel
def note_end(
    instant: int,
    row: int,
    counts: Record,
    runs: RecordArray,
    running: Int64Array,
    endings: Int64Array,
) -> None:
    """Enter an instant at which a job, or its time, is over; if there is no space, keep only the
    entries of running jobs."""
    if counts.ends == endings.shape[0]:
        counts.ends = 0
        for place in range(counts.running):
            run = runs[running[place]]
            for due in (run.due, run.until):
                if due >= 0:
                    heap.push(endings, counts.ends, due, running[place])
                    counts.ends += 1
    heap.push(endings, counts.ends, instant, row)
    counts.ends += 1


@inlined_kernel
def next_end(state: StateTables) -> int:
    """Return the next instant at which a job, or its time, is over, ``FOREVER`` for none."""
    counts, endings = state.counts[0], state.endings
    while counts.ends > 0 and not is_due(
        endings[0, heap.ROW], endings[0, heap.INSTANT], state.runs
    ):
        heap.pop(endings, counts.ends)
        counts.ends -= 1
    return int(endings[0, heap.INSTANT]) if counts.ends > 0 else FOREVER


@kernel
def note_interval(
    row: int, now: int, is_kept: int, host: int, counts: Record, run: Record, intervals: RecordArray
) -> None:
    """Record the execution interval of a run that stops now, if intervals are kept."""
    if intervals.shape[0] == 0:
        return
    interval = intervals[counts.intervals]
    interval.row, interval.begin, interval.end, interval.procs = row, run.since, now, run.procs
    interval.host, interval.is_kept = host, is_kept
    counts.intervals += 1
    run.is_cut = 1


@kernel
def time_left(run: Record, procs: int, length: int) -> int:
    """Return how much longer a job runs that takes ``length`` on ``procs``, from when it last began
    to run or stood still."""
    if run.procs == procs:  # no product here: it could overflow
        return int(max(length - run.done // procs, 0))
    return int(max(-(-(length * procs - run.done) // run.procs), 0))


@kernel
def take_out(row: int, end: int, counts: Record, parts: Int64Array) -> int:
    """Move the parts of a running job, which end at ``end``, behind those in use; return their
    number.  They are next to each other, because they are entered together."""
    count = counts.parts
    first = first_from(parts[END], count, end)
    while first < count and parts[OF_ROW, first] != row:
        first += 1
    after = first
    while after < count and parts[OF_ROW, after] == row:
        after += 1
    gone = after - first
    for field in range(parts.shape[0]):
        for place in range(first, after):
            parts[field, count + place - first] = parts[field, place]
    move_down(parts, first, count, gone)
    counts.parts = count - gone
    return gone


@kernel
def book_parts(
    count: int,
    sign: int,
    first: int,
    with_memory: bool,
    counts: Record,
    parts: Int64Array,
    hosts: Int64Array,
) -> None:
    """Give back what the ``count`` parts behind those in use have (``sign`` 1), or take it (-1), of
    the resources from ``first`` on: up to processors, or of all.  What a closed host gets back is
    withheld; a part without processors is of the server, which is always open."""
    for place in range(counts.parts, counts.parts + count):
        host = parts[HOST, place]
        is_open = hosts[THERE, CPUS, host] > 0 or parts[PROCS, place] == 0
        what = FREE if is_open else WITHHELD
        if first == CPUS:
            counts.free += sign * parts[PROCS, place]
        for resource in range(first, hosts.shape[1] if with_memory else MEMORY):
            hosts[what, resource, host] += sign * parts[AMOUNTS + resource, place]


@kernel
def run_on(
    row: int,
    count: int,
    with_memory: bool,
    until: int,
    now: int,
    procs: int,
    estimate: int,
    length: int,
    counts: Record,
    runs: RecordArray,
    running: Int64Array,
    endings: Int64Array,
    parts: Int64Array,
    hosts: Int64Array,
) -> None:
    """Run a job from now on with ``run.procs`` processors, on the ``count`` parts behind those in
    use; until an instant, if ``until`` is one.  It asks for ``procs`` processors, on which it runs
    for ``length`` in total; -1: unknown, and an event gives the end."""
    run = runs[row]
    run.since, run.until, run.end = now, until, now + time_left(run, procs, estimate)
    if run.is_trial and until >= 0:
        run.end = min(run.end, until)
    book_parts(count, -1, CPUS, with_memory, counts, parts, hosts)
    for part in range(counts.parts, counts.parts + count):
        parts[END, part], parts[SINCE, part], parts[OF_ROW, part] = run.end, run.since, row
        enter_part(parts, part)
    counts.parts += count
    place = counts.running
    while place > 0 and running[place - 1] > row:
        running[place] = running[place - 1]
        place -= 1
    running[place] = row
    counts.running += 1
    run.due = -1
    if length >= 0:
        run.due = now + time_left(run, procs, length)
        note_end(run.due, row, counts, runs, running, endings)
    if until >= 0 and length >= 0:
        note_end(until, row, counts, runs, running, endings)


@kernel
def stop(
    row: int,
    now: int,
    with_memory: bool,
    counts: Record,
    run: Record,
    running: Int64Array,
    parts: Int64Array,
    hosts: Int64Array,
) -> int:
    """Stop a job; it gives back its processors, and its memory or not.  Return the number of its
    parts, which are behind those in use."""
    count = take_out(row, run.end, counts, parts)
    run.done += (now - run.since) * run.procs
    run.since, run.due, run.until = -1, -1, -1
    place = 0
    while running[place] != row:
        place += 1
    counts.running -= 1
    for behind in range(place, counts.running):
        running[behind] = running[behind + 1]
    book_parts(count, 1, CPUS, with_memory, counts, parts, hosts)
    return int(count)


@inlined_kernel
def end_all(now: int, state: StateTables, done: ScheduleTable) -> int:
    """End the jobs that end now; suspend those that were to run until now; put the trial runs that
    are over back into the queue.

    Each step is in order of sequence.  Returns the new head of the queue.  Each trial run moved the
    head on by one when it began, so there is a free index before the head for each that returns.
    """
    counts, endings, runs = state.counts[0], state.endings, state.runs
    ended, over = 0, 0
    while counts.ends > 0 and endings[0, heap.INSTANT] == now:
        row = endings[0, heap.ROW]
        heap.pop(endings, counts.ends)
        counts.ends -= 1
        run = runs[row]
        if run.since >= 0 and run.due == now:
            if run.is_cut:
                note_interval(row, now, 1, done.host[row], counts, run, state.intervals)
            stop(row, now, True, counts, run, state.running, state.parts, state.hosts)
            done.end[row] = now
            state.ended[ended] = row
            ended += 1
        elif run.since >= 0 and run.until == now and (over == 0 or state.started[over - 1] != row):
            state.started[over] = row
            over += 1
    head, tail, waiting, stopped, returned = counts.head, counts.tail, state.waiting, 0, 0
    for place in range(over):
        row = state.started[place]
        run = runs[row]
        note_interval(row, now, 1 - run.is_trial, done.host[row], counts, run, state.intervals)
        stop(row, now, run.is_trial > 0, counts, run, state.running, state.parts, state.hosts)
        if run.is_trial:
            run.done, run.is_trial = -1, 0
            head -= 1
            free = head
            while free + 1 < tail and waiting[free + 1] < row:
                waiting[free] = waiting[free + 1]
                free += 1
            waiting[free] = row
            state.returned[returned] = row
            returned += 1
        else:
            run.keeps = 1
            state.stopped[stopped] = row
            stopped += 1
    counts.ended, counts.stopped, counts.returned = ended, stopped, returned
    return int(head)


@inlined_kernel
def carry_out(
    count: int, now: int, jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable
) -> None:
    """Carry out ``count`` actions, in order; write the rows that start for the first time into
    ``state.started``.

    ``START``, ``TRY`` and ``RESUME`` run a job (:func:`run_on`); ``SUSPEND``, ``END_NOW`` and
    ``RETURN`` stop it (:func:`stop`); ``RESIZE`` does one after the other; ``DROP`` gives back the
    memory of a suspended job.  They are one kernel because the compiler takes longer over several
    kernels that each take all tables.

    A trial run of a job that uses more memory than it holds fails at once: it is over at the same
    instant.
    """
    counts, parts, hosts, running = state.counts[0], state.parts, state.hosts, state.running
    for place in range(count):
        action = state.actions[place]
        row, pieces, until, is_start = action.row, action.parts, action.until, action.kind <= TRY
        run, first = state.runs[row], counts.parts
        with_memory = is_start or action.kind == RESIZE or run.keeps == 0
        is_stop = (
            action.kind == SUSPEND
            or action.kind == RESIZE
            or action.kind == END_NOW
            or action.kind == RETURN
        )
        if is_stop:
            until = run.until
            if action.kind != END_NOW or run.is_cut:
                note_interval(
                    row,
                    now,
                    0 if action.kind == RETURN else 1,
                    done.host[row],
                    counts,
                    run,
                    state.intervals,
                )
            run.keeps = action.kind == SUSPEND and action.held > 0
            pieces = stop(row, now, run.keeps == 0, counts, run, running, parts, hosts)
            first = counts.parts
            if action.kind == RESIZE:
                parts[PROCS, first] = action.procs
        elif pieces == 0:
            pieces = 1
            for field in range(AMOUNTS, parts.shape[0]):
                parts[field, first] = 0
            parts[HOST, first], parts[PROCS, first], parts[HELD, first] = (
                action.host,
                action.procs,
                action.held,
            )
        host, held = parts[HOST, first], parts[HELD, first]
        if is_start:
            done.host[row], run.done, run.held, run.is_trial = host, 0, held, action.kind == TRY
            if action.procs != jobs.procs[row]:
                run.is_cut = 1
            counts.last = max(counts.last, row)
            if done.start[row] < 0:
                done.start[row] = now
                state.started[counts.starts] = row
                counts.starts += 1
        if action.kind == DROP:
            book_parts(pieces, 1, MEMORY, True, counts, parts, hosts)
        elif not is_stop or action.kind == RESIZE:
            run.procs = action.procs
            length = log.run[row] if log.run.shape[0] > 0 else -1
            run_on(
                row,
                pieces,
                with_memory,
                until,
                now,
                jobs.procs[row],
                jobs.estimate[row],
                length,
                counts,
                state.runs,
                running,
                state.endings,
                parts,
                hosts,
            )
        elif action.kind == RETURN:
            run.done, run.is_trial = -1, 0
        if action.kind == TRY and log.run.shape[0] > 0:
            used = jobs.asked[MEMORY, row] if log.used_memory[row] < 0 else log.used_memory[row]
            if hosts[THERE, MEMORY, host] > 0 and used > held:
                run.due, run.until = FOREVER, now
                note_end(now, row, counts, state.runs, running, state.endings)


@kernel
def carried_out(
    jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable
) -> Iterator[int]:
    """Carry out ``counts.decided`` actions at each step.

    It is a generator, because that holds the tables: a step costs a fifth of a microsecond, a call
    with all tables several. As for every kernel, the caller has to keep the arrays.
    """
    while True:
        # A name for the record would be a copy of it here: a generator keeps the values of its
        # names.
        state.counts[0].starts = 0
        carry_out(state.counts[0].decided, state.counts[0].now, jobs, log, state, done)
        yield 0


@kernel
def close_queue(counts: Record, waiting: Int64Array, runs: RecordArray) -> int:
    """Close the gaps in the queue of the jobs that started in this pass; return how many started
    for the first time."""
    if counts.last != NO_JOB:
        counts.head = close_gaps(waiting, counts.head, runs["done"], counts.last)
    started = counts.starts
    counts.starts, counts.last = 0, NO_JOB
    return int(started)
