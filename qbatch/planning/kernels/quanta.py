"""Trial runs of new jobs (:mod:`qbatch.policies.immediate`), around the pass of an inner policy.

Before the pass: which preempted jobs resume, and what the inner policy sees.  After it: which jobs
get a trial run, on which host and with which preempted jobs.  :func:`decide_quanta` does both,
around the pass of a list scheduler on hosts.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS
2001, sections 2.4 and 3; exact readings in docs/spec/papers.md 3.4.  Jobs are preempted by the
smallest slowdown, compared in whole numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels import tables
from qbatch.planning.kernels.availability import ONE_CHUNK, asks
from qbatch.planning.kernels.host_pass import all_free, most_free
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.lists import HostList, forget_holders, list_pass
from qbatch.planning.kernels.order import is_less, stable_order
from qbatch.planning.kernels.tables import (
    CPUS,
    FREE,
    MEMORY,
    RESUME,
    START,
    SUSPEND,
    THERE,
    TRY,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
    record,
)
from qbatch.planning.kernels.types import Int64Array, RecordArray
from qbatch.planning.kernels.verbs import book, time_left

HOST, PROCS, TOTAL, EXECUTED, ROW = range(5)
"""Rows of ``preemptible``: the jobs that may be preempted, by sequence.  Host (-1: it is
preempted), processors, time in the system, time executed (at least 1, in the same unit), and
row."""

QUANTUM = record("trial", "idle", "begin", "end", "is_over")
"""One trial run: its job, its processors beyond those of the preempted jobs, when it began, its end
by the estimate and the quantum.  Then whether it is over and its preempted jobs wait for their
closed host."""

SUSPENDED = record("row", "trial")
"""A preempted job, and the trial run for which it is suspended."""

SHOWN = record("row", "end", "procs")
"""A job as an inner policy sees it: running, until when, on how many processors."""

SUSPENSIONS, QUANTA = 0, 1
"""Indices into ``counts``: the number of suspended jobs, and of quanta."""

OVERDUE = 1_000_000
"""A job that outlives its estimate is expected to end this many microseconds from now."""


class QuantaTables(NamedTuple):
    """The rules and the state of trial runs.

    ``quantum``, ``protect`` (-1: no job is suspended): microseconds; ``memory``: the most of a
    trial run, bytes. ``had[R]``: how long a job ran on trial (-1: it had no trial run).
    ``quanta[.]`` of ``QUANTUM``, the oldest first, and ``suspended[.]`` of ``SUSPENDED``; of each,
    ``counts[2]`` are in use.

    Scratch: ``hosts[2, 2, H]``, first as the inner policy sees them, then as its pass left them;
    ``shown[.]`` of ``SHOWN``; ``preemptible[5, P]`` and ``chosen[P]``.
    """

    quantum: int
    protect: int
    memory: int
    had: Int64Array
    quanta: RecordArray
    suspended: RecordArray
    counts: Int64Array
    hosts: Int64Array
    shown: RecordArray
    preemptible: Int64Array
    chosen: Int64Array


class QuantaAroundList(NamedTuple):
    """The memory of :func:`decide_quanta`: the list scheduler, the trial runs, the running jobs as
    the former sees them."""

    inner: HostList
    quanta: QuantaTables
    parts: Int64Array


@allocating_kernel
def by_slowdown(preemptible: Int64Array) -> Int64Array:
    """Return the indices of ``preemptible`` by the smallest slowdown, ties by sequence.

    Doubles sort all but near equals; whole numbers decide.
    """
    order = stable_order(preemptible[TOTAL] / preemptible[EXECUTED])
    for place in range(1, order.shape[0]):
        moved, to = order[place], place
        total, executed = preemptible[TOTAL, moved], preemptible[EXECUTED, moved]
        while to > 0:
            before = order[to - 1]
            other, divisor = preemptible[TOTAL, before], preemptible[EXECUTED, before]
            is_later = is_less(total, executed, other, divisor)
            if not is_later and (moved > before or is_less(other, divisor, total, executed)):
                break
            order[to] = before
            to -= 1
        order[to] = moved
    return order


@kernel
def choose_preempted(
    host: int, procs: int, free: int, preemptible: Int64Array, order: Int64Array, chosen: Int64Array
) -> tuple[int, int]:
    """Choose jobs to preempt on a host, in order, until enough is free; return how much is free,
    and how many are chosen."""
    count = 0
    for place in order:
        if free >= procs:
            break
        if preemptible[HOST, place] == host:
            chosen[count] = place
            count += 1
            free += preemptible[PROCS, place]
    return free, count


@kernel
def trial_host(
    procs: int,
    memory: int,
    hosts: Int64Array,
    preemptible: Int64Array,
    order: Int64Array,
    chosen: Int64Array,
) -> tuple[int, int]:
    """Return the host of a trial run, -1 for none, and the number of jobs to preempt there.

    It is the host with the fewest processors left over, then with the fewest preempted jobs, then
    the first.

    ``memory``: of the trial run if memory counts, bytes.  ``hosts``: ``[2, 2, H]``, the free and
    the total amounts (:mod:`tables`).  ``order``: indices into ``preemptible``, in the order in
    which jobs are preempted.  ``chosen``: receives the indices of the preempted jobs.
    """
    best, least, fewest = -1, 0, 0
    for host in range(hosts.shape[2]):
        if hosts[THERE, CPUS, host] < procs or (
            hosts[THERE, MEMORY, host] > 0 and hosts[FREE, MEMORY, host] < memory
        ):
            continue
        free, count = choose_preempted(
            host, procs, hosts[FREE, CPUS, host], preemptible, order, chosen
        )
        if free >= procs and (best < 0 or free < least or (free == least and count < fewest)):
            best, least, fewest = host, free, count
    if best >= 0:
        choose_preempted(best, procs, hosts[FREE, CPUS, best], preemptible, order, chosen)
    return best, fewest


@allocating_kernel
def decide_quanta(
    instant: Instant,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
    memory: QuantaAroundList,
) -> int:
    """Resume the jobs preempted for trial runs that are over, make the inner pass, start new trial
    runs.

    The jobs of a log may start twice.
    """
    now, inner, quanta, hosts = instant.now, memory.inner, memory.quanta, memory.quanta.hosts
    forget_holders(
        state.waiting[instant.head : instant.tail], state.returned[: instant.returned], inner
    )
    if instant.head == instant.tail and quanta.counts[QUANTA] == 0:
        return 0
    count, shown = begin_pass(now, jobs, state, done, quanta)
    free = all_free(hosts)
    if instant.head < instant.tail and (free > 0 or inner.is_sticky):
        shown = show_running(now, shown, jobs, state, done, memory)
        seen = Instant(now, free, instant.head, instant.tail, 0, shown, 0, 0, 0, 0)
        started = list_pass(
            seen,
            jobs,
            state.waiting,
            hosts,
            memory.parts,
            state.started,
            state.places,
            state.begun,
            inner.is_sticky,
            inner,
        )
        for place in range(started):
            row, host = state.started[place], state.places[place]
            held = asks(ONE_CHUNK, row, MEMORY, host, jobs, hosts)
            book(hosts, host, -jobs.procs[row], -held)
            write(START, row, host, jobs.procs[row], held, -1, count, state)
            quanta.had[row] = max(quanta.had[row], 0)  # no longer on trial
            count += 1
    first = instant.head
    if quanta.protect >= 0:  # only those that arrived in this round, which are last
        first = instant.tail
        while first > instant.head and state.waiting[first - 1] >= instant.first_arrived:
            first -= 1
    return serve_all(now, state.waiting, first, instant.tail, count, jobs, state, done, quanta)


@kernel
def begin_pass(
    now: int, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables
) -> tuple[int, int]:
    """Find the trial runs that are over, write the inner policy's view to ``hosts`` and ``shown``,
    and resume preempted jobs.

    Return the number of actions, and of jobs shown.
    """
    for place in range(memory.counts[QUANTA]):
        quantum = memory.quanta[place]
        if not quantum.is_over and state.runs[quantum.trial].since < 0:
            quantum.is_over = 1
            memory.had[quantum.trial] = now - quantum.begin
    shown = show_quanta(now, jobs, state, done, memory)
    return resume_preempted(state, done, memory), shown


@kernel
def show_quanta(
    now: int, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables
) -> int:
    """Write the hosts, trial runs and preempted jobs as the inner policy sees them; return the
    number of jobs shown.

    A trial run is shown on the idle processors that it took, a preempted job as running on its own,
    later by the time that the trial run can take.
    """
    hosts, shown = memory.hosts, 0
    for what in (FREE, THERE):
        for resource in (CPUS, MEMORY):
            for host in range(hosts.shape[2]):
                hosts[what, resource, host] = state.hosts[what, resource, host]
    for place in range(memory.counts[QUANTA]):
        quantum = memory.quanta[place]
        trial, kept = quantum.trial, 0
        for other in range(memory.counts[SUSPENSIONS]):
            row = memory.suspended[other].row
            if memory.suspended[other].trial == trial:
                procs = state.runs[row].procs
                resumes = (
                    now if goes_on(quantum.is_over, row, state, done) else max(quantum.end, now)
                )
                resumes += time_left(state.runs[row], jobs.procs[row], jobs.estimate[row])
                shown = show(row, resumes, procs, shown, memory)
                hosts[FREE, CPUS, done.host[row]] -= procs
                kept += procs
        if not quantum.is_over:
            # A job that is removed while preempted leaves its used processors to the trial run.
            quantum.idle = max(quantum.idle, jobs.procs[trial] - kept)
            shown = show(trial, quantum.end, quantum.idle, shown, memory)
            hosts[FREE, CPUS, done.host[trial]] += jobs.procs[trial] - quantum.idle
    for host in range(hosts.shape[2]):
        # Processors count as busy if a job waits there that an earlier policy has suspended.
        hosts[FREE, CPUS, host] = max(hosts[FREE, CPUS, host], 0)
    return shown


@kernel
def goes_on(is_over: int, row: int, state: StateTables, done: ScheduleTable) -> bool:
    """Return whether a preempted job resumes now: the trial run is over, and the host is open."""
    return is_over != 0 and state.hosts[THERE, CPUS, done.host[row]] > 0


@kernel
def show(row: int, end: int, procs: int, count: int, memory: QuantaTables) -> int:
    """Show a job as running; return the number of jobs shown."""
    shown = memory.shown[count]
    shown.row, shown.end, shown.procs = row, end, procs
    return count + 1


@kernel
def resume_preempted(state: StateTables, done: ScheduleTable, memory: QuantaTables) -> int:
    """Resume the jobs preempted for trial runs that are over, on their own processors, and forget
    the quanta that are done; return the number of actions."""
    counts, count, left = memory.counts, 0, 0
    for place in range(counts[QUANTA]):
        quantum, kept = memory.quanta[place], 0
        is_left = not quantum.is_over
        for other in range(counts[SUSPENSIONS]):
            preempted = memory.suspended[other]
            is_its_own = preempted.trial == quantum.trial
            if is_its_own and goes_on(quantum.is_over, preempted.row, state, done):
                run = state.runs[preempted.row]
                write(
                    RESUME,
                    preempted.row,
                    done.host[preempted.row],
                    run.procs,
                    run.held,
                    -1,
                    count,
                    state,
                )
                count += 1
            else:
                is_left = is_left or is_its_own
                memory.suspended[kept] = preempted
                kept += 1
        counts[SUSPENSIONS] = kept
        if is_left:
            memory.quanta[left] = quantum
            left += 1
    counts[QUANTA] = left
    return count


@allocating_kernel
def show_running(
    now: int,
    shown: int,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
    memory: QuantaAroundList,
) -> int:
    """Write the running jobs, and those shown already, into ``parts`` in order of expected end;
    return their number."""
    for place in range(state.counts[0].running):
        row = state.running[place]
        run = state.runs[row]
        if run.until < 0:
            end = run.since + time_left(run, jobs.procs[row], jobs.estimate[row])
            shown = show(row, end, run.procs, shown, memory.quanta)
    for place in range(shown):
        seen = memory.quanta.shown[place]
        if seen.end <= now and state.runs[seen.row].since < now:
            seen.end = now + OVERDUE
    order = stable_order(memory.quanta.shown["end"][:shown].copy())
    for place in range(shown):
        seen = memory.quanta.shown[order[place]]
        memory.parts[tables.END, place], memory.parts[tables.HOST, place] = (
            seen.end,
            done.host[seen.row],
        )
        memory.parts[tables.PROCS, place], memory.parts[tables.HELD, place] = (
            seen.procs,
            state.runs[seen.row].held,
        )
    return shown


@allocating_kernel
def serve_all(
    now: int,
    rows: Int64Array,
    first: int,
    last: int,
    count: int,
    jobs: JobColumns,
    state: StateTables,
    done: ScheduleTable,
    memory: QuantaTables,
) -> int:
    """Give a trial run to each of the waiting ``rows[first:last]`` that had none, in order, if a
    host has the capacity; return the number of actions, including the ``count`` that were written
    before."""
    known, most = -1, most_free(memory.hosts)
    order = np.empty(0, np.int64)
    for place in range(first, last):
        row = rows[place]
        if memory.had[row] >= 0 or (memory.protect < 0 and jobs.procs[row] > most):
            continue
        if known < 0 and memory.protect >= 0:
            known = find_preemptible(now, jobs, state, done, memory)
            order = by_slowdown(memory.preemptible[:, :known].copy())
        count = serve(now, row, order, count, jobs, state, memory)
    return count


@kernel
def find_preemptible(
    now: int, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables
) -> int:
    """Write the jobs that may be preempted to ``preemptible``; return their number."""
    count, preemptible = 0, memory.preemptible
    for place in range(state.counts[0].running):
        row = state.running[place]
        run = state.runs[row]
        if run.since <= now - max(memory.protect, 1) and run.until < 0:
            total, executed, rest = (
                now - jobs.submit[row],
                run.done // run.procs,
                run.done % run.procs,
            )
            executed += now - run.since + max(memory.had[row], 0)
            if rest > 0:  # if another policy has resized the job, both count on each processor
                total, executed = total * run.procs, executed * run.procs + rest
            preemptible[HOST, count], preemptible[ROW, count] = done.host[row], row
            preemptible[PROCS, count] = run.procs
            preemptible[TOTAL, count], preemptible[EXECUTED, count] = total, executed
            count += 1
    return count


@kernel
def serve(
    now: int,
    row: int,
    order: Int64Array,
    count: int,
    jobs: JobColumns,
    state: StateTables,
    memory: QuantaTables,
) -> int:
    """Start a trial run of a waiting job if there is a host for it; return the number of actions.

    ``order``: indices into ``preemptible``, in the order in which jobs are preempted.
    """
    hosts, counts = memory.hosts, memory.counts
    need = min(jobs.asked[MEMORY, row], memory.memory)
    host, taken = trial_host(jobs.procs[row], need, hosts, memory.preemptible, order, memory.chosen)
    if host < 0:
        return count
    for place in memory.chosen[:taken]:
        preempted = memory.preemptible[ROW, place]
        memory.preemptible[HOST, place] = -1
        suspended = memory.suspended[counts[SUSPENSIONS]]
        suspended.row, suspended.trial = preempted, row
        counts[SUSPENSIONS] += 1
        write(SUSPEND, preempted, host, 0, 1, -1, count, state)
        count += 1
    quantum, held = memory.quanta[counts[QUANTA]], need if hosts[THERE, MEMORY, host] > 0 else 0
    quantum.trial, quantum.idle = row, min(hosts[FREE, CPUS, host], jobs.procs[row])
    quantum.begin, quantum.end, quantum.is_over = (
        now,
        now + min(memory.quantum, jobs.estimate[row]),
        0,
    )
    counts[QUANTA] += 1
    memory.had[row] = 0
    book(hosts, host, -quantum.idle, -held)
    write(TRY, row, host, jobs.procs[row], held, now + memory.quantum, count, state)
    return count + 1


@kernel
def write(
    kind: int,
    row: int,
    host: int,
    procs: int,
    held: int,
    until: int,
    count: int,
    state: StateTables,
) -> None:
    """Write an action after ``count`` others."""
    action = state.actions[count]
    action.kind, action.row, action.host, action.procs, action.held, action.until = (
        kind,
        row,
        host,
        procs,
        held,
        until,
    )
    action.parts = 0
