"""The ``decide`` of list schedulers: order the queue, make one pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from qbatch.planning.kernels.availability import (
    chunks_of,
    fit_now,
    groups_of,
    has_windows,
    is_mixed,
    most_on,
    requests_of_none,
)
from qbatch.planning.kernels.host_pass import (
    AT,
    NOT_NOW,
    ROW,
    WHERE,
    Failures,
    PassTables,
    all_free,
    fits_any,
    host_pass,
    most_free,
    no_failures,
)
from qbatch.planning.kernels.jit import allocating_kernel, inlined_kernel, kernel, with_constants
from qbatch.planning.kernels.order import BYPASS, in_order, priorities, sorted_by
from qbatch.planning.kernels.orders import FCFS, PRIORITY, SJF_BEHIND
from qbatch.planning.kernels.passes import PoolList, fcfs_pass
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    END,
    FREE,
    HOST,
    MEMORY,
    NAMED,
    NO_JOB,
    OF_ROW,
    PROCS,
    THERE,
    Instant,
    JobColumns,
    Requests,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Float64Array, Int8Array, Int64Array, RecordArray

one_pass = a_pass = fcfs_pass


@allocating_kernel
def pass_in_order(
    rules: PoolList,
    instant: Instant,
    jobs: JobColumns,
    waiting: Int64Array,
    parts: Int64Array,
    started: Int64Array,
) -> int:
    """Make a pass (``one_pass``) over the queue in the order of the rules."""
    behind = 0
    if rules.order == SJF_BEHIND:
        behind = fcfs_pass(rules, instant, jobs, waiting, parts, started) + 1
    queue = waiting[instant.head : instant.tail]
    rows = in_order(rules.order, instant.now, queue, behind, jobs.submit, jobs.estimate)
    whole = Instant(
        instant.now,
        instant.free,
        0,
        rows.shape[0],
        0,
        instant.parts,
        instant.first_arrived,
        instant.arrived,
        0,
        0,
    )
    return one_pass(rules, whole, jobs, rows, parts, started)


@cache
def pool_pass(one_pass: Callable[..., int], is_ordered: bool) -> Callable[..., int]:
    """Return the pass of a list scheduler of a pool; ``is_ordered``: the queue is sorted before
    it.

    A kernel that holds another one in a closure would be compiled in every process anew: Numba
    finds no kept code for it.
    """
    return with_constants(pass_in_order, one_pass=one_pass) if is_ordered else one_pass


@allocating_kernel
def apart(
    order: int,
    depth: int,
    space: int,
    now: int,
    free: int,
    scan_from: int,
    submit: Int64Array,
    procs: Int64Array,
    estimate: Int64Array,
    waiting: Int64Array,
    ends: Int64Array,
    amounts: Int64Array,
    running: int,
    started: Int64Array,
) -> int:
    """Make a pass (``a_pass``) of a pool over all waiting jobs; the arrays of the running jobs stay
    as they are."""
    parts = np.empty((4, running + started.shape[0]), np.int64)
    for place in range(running):
        parts[END, place], parts[PROCS, place] = ends[place], amounts[place]
    instant = Instant(now, free, 0, waiting.shape[0], scan_from, running, 0, 0, 0, 0)
    none = np.empty((0, 0), np.int64)
    jobs = JobColumns(submit, procs, estimate, none, requests_of_none())
    return a_pass(
        PoolList(order, depth, np.empty((2, space), np.int64)),
        instant,
        jobs,
        waiting,
        parts,
        started,
    )


@cache
def pool_pass_apart(a_pass: Callable[..., int]) -> Callable[..., int]:
    """Return :func:`apart` around a pass."""
    return with_constants(apart, a_pass=a_pass)


@cache
def pool_scheduler(a_pass: Callable[..., int]) -> Callable[..., int]:
    """Return the ``decide`` of a list scheduler of a pool with this pass."""

    @inlined_kernel
    def decide(
        instant: Instant,
        jobs: JobColumns,
        state: StateTables,
        done: ScheduleTable,
        memory: PoolList,
    ) -> int:
        if instant.free == 0 or instant.head == instant.tail:
            return 0
        return a_pass(memory, instant, jobs, state.waiting, state.parts, state.started)

    return cast(Callable[..., int], decide)


class LastPass(NamedTuple):
    """What the compiled loop keeps of the last pass, to know what still does not fit; all are empty
    elsewhere.

    ``failures``: by request.  ``seen[Q]``: the number of the last pass in which a request waited;
    if that was not the last pass, ``failures`` say nothing.  ``free[N, H]``: at most what was free
    after that pass.  Scratch: ``gained[H]``, the hosts where more is free now; ``nothing[., H]``,
    zeros.
    """

    failures: Failures
    seen: Int64Array
    free: Int64Array
    gained: Int64Array
    nothing: Int64Array


def last_pass(requests: int, resources: int, hosts: int) -> LastPass:
    """Return the tables before the first pass, with space for so many requests."""
    return LastPass(
        Failures(np.full(requests, FOREVER, np.int64), np.zeros(requests, np.int64)),
        np.zeros(requests, np.int64),
        np.zeros((resources, hosts), np.int64),
        np.zeros(hosts, np.int64),
        np.zeros((AMOUNTS + resources, hosts), np.int64),
    )


@allocating_kernel
def no_last_pass() -> LastPass:
    """Return the tables where nothing is kept."""
    none, nothing = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    return LastPass(Failures(none, none), none, nothing, none, nothing)


class HostList(NamedTuple):
    """A list scheduler of hosts (a pool is one).

    Its first fields are the order of the queue, the number of reservations, ``weights[6]`` of the
    priority, whether the pass ends at the first job that does not fit, and whether reservations
    stay.

    ``bypasses[R]``: how often other jobs bypassed a job; empty if that has no weight.  ``held[3,
    n]``: row, host and start of each reservation of the last pass, ``holders[KEPT]`` in number, of
    which the first ``holders[HELD]`` stay.  ``holders[PASSES]``: the number of passes in which
    something waited.
    """

    order: int
    depth: int
    weights: Float64Array
    is_stopping: bool
    is_sticky: bool
    bypasses: Float64Array
    held: Int64Array
    holders: Int64Array
    last: LastPass


HELD, KEPT, PASSES = 0, 1, 2
"""Indices into ``holders``."""


@kernel
def decide_on_hosts(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: HostList
) -> int:
    """Make one pass of a list scheduler of hosts (docs/spec/papers.md 3.3 and 3.7)."""
    queue = state.waiting[instant.head : instant.tail]
    remember(instant, queue, jobs, state.hosts, state.parts, memory)
    # A reservation that stays is made even if nothing can start.
    if queue.shape[0] == 0 or not (
        memory.is_sticky or may_start(instant.now, queue, jobs, state.hosts, memory.last.failures)
    ):
        return 0
    count = list_pass(
        instant,
        jobs,
        state.waiting,
        state.hosts,
        state.parts,
        state.started,
        state.places,
        state.begun,
        memory.is_sticky,
        memory,
    )
    note_begun(count, state.begun, memory)
    return count


@kernel
def remember(
    instant: Instant,
    queue: Int64Array,
    jobs: JobColumns,
    hosts: Int64Array,
    parts: Int64Array,
    memory: HostList,
) -> None:
    """Find out which requests of the queue still do not fit, of those that did not in the last pass.

    Since then something was given back on a few hosts only.  A request still does not fit if these
    do not have space for the chunks that were left, and if the reservations that were in its way
    have stayed.
    """
    last, holders = memory.last, memory.holders
    failures, seen = last.failures, last.seen
    holders[PASSES] += 1
    if seen.shape[0] == 0 or queue.shape[0] == 0:
        return
    gained = last.gained[: find_gained(hosts, last) if instant.ended > 0 else 0]
    is_same = is_in_sequence(memory) and not is_late(instant, parts)
    for row in queue[: memory.depth]:
        is_same = is_same and not is_mixed(row, jobs)
        for host in gained:
            is_same = is_same and most_now(row, host, jobs, hosts, last.nothing, False) == 0
    for row in queue:
        request = jobs.requests.of[row]
        if seen[request] == holders[PASSES]:
            continue
        is_known = seen[request] == holders[PASSES] - 1 and (
            is_same or failures.until[request] == NOT_NOW
        )
        seen[request] = holders[PASSES]
        if is_known and failures.until[request] < FOREVER:
            for host in gained:
                failures.left[request] -= most_now(row, host, jobs, hosts, last.nothing, True)
            is_known = failures.left[request] > 0
        if not is_known:
            failures.until[request] = FOREVER


@kernel
def is_in_sequence(memory: HostList) -> bool:
    """Return whether the rows are looked through in order of sequence, to the end of the queue, and
    reservations are made anew in each pass."""
    is_plain = memory.order == FCFS and not (memory.is_sticky or memory.is_stopping)
    return bool(is_plain and memory.weights[BYPASS] == 0.0)


@kernel
def is_late(instant: Instant, parts: Int64Array) -> bool:
    """Return whether a running job should have ended."""
    return bool(instant.parts > 0 and parts[END, 0] <= instant.now)


@kernel
def find_gained(hosts: Int64Array, last: LastPass) -> int:
    """Write the hosts where more is free than after the last pass; return their number."""
    gained = 0
    for resource in range(hosts.shape[1]):
        for host in range(hosts.shape[2]):
            if hosts[FREE, resource, host] > last.free[resource, host]:
                last.free[resource, host] = hosts[FREE, resource, host]
                is_known = False
                for other in last.gained[:gained]:
                    is_known = is_known or other == host
                if not is_known:
                    last.gained[gained] = host
                    gained += 1
    return gained


@kernel
def most_now(
    row: int,
    host: int,
    jobs: JobColumns,
    hosts: Int64Array,
    nothing: Int64Array,
    is_free: bool,
) -> int:
    """Return at least how many chunks of a job may be on a host; ``is_free``: and fit what is free
    there now.

    Groups are counted as if none took from the others.
    """
    (first, last), count = groups_of(row, jobs), 0
    for group in range(first, last):
        most = most_on(group, row, host, chunks_of(group, jobs), jobs, nothing)
        if most > 0 and is_free:
            most = fit_now(group, row, host, most, jobs, hosts, nothing)
        count += most
    return count


@kernel
def note_begun(count: int, begun: Int64Array, memory: HostList) -> None:
    """Note that the starts of a pass take their parts of what is free."""
    free, part = memory.last.free, 0
    if free.shape[0] == 0 or count == 0:
        return
    while begun[OF_ROW, part] != NO_JOB:
        for resource in range(free.shape[0]):
            free[resource, begun[HOST, part]] -= begun[AMOUNTS + resource, part]
        part += 1


@kernel
def may_start(
    now: int, rows: Int64Array, jobs: JobColumns, hosts: Int64Array, failures: Failures
) -> bool:
    """Return whether one of some rows asks for no more processors than are free for one job, and is
    not known not to fit."""
    has_requests = jobs.requests.of.shape[0] > 0
    is_known = has_requests and failures.until.shape[0] > 0
    free = all_free(hosts) if has_requests else most_free(hosts)
    for row in rows:
        until = failures.until[jobs.requests.of[row]] if is_known else FOREVER
        if jobs.procs[row] <= free and now + jobs.estimate[row] < until:
            return True
    return False


@allocating_kernel
def list_pass(
    instant: Instant,
    jobs: JobColumns,
    waiting: Int64Array,
    hosts: Int64Array,
    parts: Int64Array,
    started: Int64Array,
    places: Int64Array,
    begun: Int64Array,
    is_told: bool,
    memory: HostList,
) -> int:
    """Make one pass over the queue; write the rows that start into ``started`` and where into
    ``places`` and ``begun``, and return their number.  ``hosts``, ``parts``, ``is_told``: as for
    :func:`host_pass`."""
    queue = waiting[instant.head : instant.tail]
    known = known_to_wait(instant, jobs, queue, parts, memory)
    if known > memory.depth:
        # Of the jobs that wait on, a start has to know only those with reservations.
        queue = queue[known - memory.depth :].copy()
        queue[: memory.depth] = waiting[instant.head : instant.head + memory.depth]
        known = memory.depth
    looked = looked_through(instant.now, jobs, queue, 0, memory)
    failures = no_failures(jobs)
    if memory.holders[PASSES] > 0 and memory.last.seen.shape[0] > 0:
        failures = memory.last.failures
    count, kept = host_pass(
        PassTables(instant, jobs, hosts, parts, started, places, begun),
        looked,
        memory.depth,
        memory.is_stopping,
        known,
        memory.holders[HELD],
        is_told,
        memory.held,
        failures,
    )
    note_pass(looked, started, count, kept, memory)
    return count


@kernel
def known_to_wait(
    instant: Instant, jobs: JobColumns, queue: Int64Array, parts: Int64Array, memory: HostList
) -> int:
    """Return how many of the first waiting jobs, in order of sequence, cannot start now because the
    last pass passed over them and only arrivals happened since.

    Since then nothing was given back, so reservations have stayed, and a job that did not fit over
    its estimate from then on does not fit from now on.  This does not hold if a running job should
    have ended, if a job may fit when less is free, or if it is not known that the last pass was one
    on hosts.  A pass that stops at the first job that does not fit looks at few anyway.
    """
    old, is_tight = instant.scan_from - instant.head, False
    if jobs.requests.of.shape[0] == 0 or has_windows(jobs):
        return 0
    if is_late(instant, parts) or not is_in_sequence(memory):
        return 0
    for place in range(old):
        head = jobs.requests.heads[jobs.requests.of[queue[place]]]
        is_tight = is_tight or head.is_tight != 0
        if head.is_mixed:
            return 0
    return old if is_tight else 0


@allocating_kernel
def list_pass_apart(
    now: int,
    free: int,
    submit: Int64Array,
    procs: Int64Array,
    estimate: Int64Array,
    asked: Int64Array,
    of: Int64Array,
    heads: RecordArray,
    groups: RecordArray,
    chunks: Int64Array,
    sets: Int8Array,
    firsts: Int64Array,
    windows: Int64Array,
    waiting: Int64Array,
    hosts: Int64Array,
    parts: Int64Array,
    started: Int64Array,
    places: Int64Array,
    begun: Int64Array,
    order: int,
    depth: int,
    weights: Float64Array,
    is_stopping: bool,
    is_sticky: bool,
    bypasses: Float64Array,
    held: Int64Array,
    holders: Int64Array,
) -> int:
    """Make the pass of :func:`list_pass` over all waiting jobs, with the arrays of ``JobColumns``
    and ``HostList`` one by one.

    A call from Python with named tuples costs twice as much.
    """
    instant = Instant(now, free, 0, waiting.shape[0], 0, parts.shape[1], 0, 0, 0, 0)
    rules = HostList(
        order, depth, weights, is_stopping, is_sticky, bypasses, held, holders, no_last_pass()
    )
    requests = Requests(of, heads, groups, chunks, sets, firsts, windows)
    jobs = JobColumns(submit, procs, estimate, asked, requests)
    return list_pass(instant, jobs, waiting, hosts, parts, started, places, begun, True, rules)


@allocating_kernel
def list_pass_of_pool(
    now: int,
    free: int,
    there: int,
    submit: Int64Array,
    procs: Int64Array,
    estimate: Int64Array,
    asked: Int64Array,
    waiting: Int64Array,
    ends: Int64Array,
    amounts: Int64Array,
    running: int,
    started: Int64Array,
    reserves: bool,
    order: int,
    depth: int,
    weights: Float64Array,
    is_stopping: bool,
    is_sticky: bool,
    bypasses: Float64Array,
    held: Int64Array,
    holders: Int64Array,
) -> int:
    """Make the pass of :func:`list_pass` over all waiting jobs of a pool; ``ends`` and ``amounts``:
    of the ``running`` jobs.

    ``reserves``: reservations are made even if nothing can start.
    """
    hosts, places = np.zeros((2, NAMED, 1), np.int64), np.empty(waiting.shape[0], np.int64)
    begun, none = np.empty((0, 0), np.int64), requests_of_none()
    jobs = JobColumns(submit, procs, estimate, asked, none)
    hosts[FREE, CPUS, 0], hosts[THERE, CPUS, 0] = free, there
    if not (reserves or fits_any(waiting, jobs, hosts)):
        return 0
    parts = np.zeros((AMOUNTS + NAMED, running), np.int64)
    for place in range(running):
        parts[END, place], parts[PROCS, place] = ends[place], amounts[place]
    instant = Instant(now, free, 0, waiting.shape[0], 0, running, 0, 0, 0, 0)
    rules = HostList(
        order, depth, weights, is_stopping, is_sticky, bypasses, held, holders, no_last_pass()
    )
    return list_pass(instant, jobs, waiting, hosts, parts, started, places, begun, True, rules)


@allocating_kernel
def start_in_order(
    instant: Instant, jobs: JobColumns, state: StateTables, rows: Int64Array, depth: int
) -> int:
    """Make one pass over waiting rows in the given order: start what fits with the reservations of
    the first ``depth`` others.

    The starts are in ``state.started``, ``state.places`` and ``state.begun``; return their number.
    """
    reserved = np.empty((3, min(depth, rows.shape[0])), np.int64)
    return host_pass(
        PassTables(
            instant, jobs, state.hosts, state.parts, state.started, state.places, state.begun
        ),
        rows,
        depth,
        False,
        0,
        0,
        False,
        reserved,
        no_failures(jobs),
    )[0]


@allocating_kernel
def looked_through(
    now: int, jobs: JobColumns, rows: Int64Array, behind: int, memory: HostList
) -> Int64Array:
    """Return waiting rows, given in order of sequence, in the order of a scan: the holders of
    reservations come first, the oldest before the others.

    ``behind``: for the order ``SJF_BEHIND``, the number of rows that stay in order of sequence.
    """
    if memory.order == PRIORITY:
        found = sorted_by(-row_priorities(now, jobs, rows, memory), rows)
    else:
        found = in_order(memory.order, now, rows, behind, jobs.submit, jobs.estimate)
    holders, held = memory.holders[HELD], memory.held
    if holders == 0:
        return found
    ordered, count = np.empty(rows.shape[0], np.int64), holders
    ordered[:holders] = held[ROW, :holders]
    for row in found:
        is_holder = False
        for place in range(holders):
            is_holder = is_holder or held[ROW, place] == row
        if not is_holder:
            ordered[count] = row
            count += 1
    return ordered


@allocating_kernel
def row_priorities(now: int, jobs: JobColumns, rows: Int64Array, memory: HostList) -> Float64Array:
    """Return the priority of each row."""
    passed_by = np.zeros(rows.shape[0], np.float64)
    if memory.weights[BYPASS] != 0.0:
        for place in range(rows.shape[0]):
            passed_by[place] = memory.bypasses[rows[place]]
    return priorities(
        now,
        rows,
        jobs.submit,
        jobs.procs,
        jobs.asked[MEMORY],
        jobs.estimate,
        passed_by,
        memory.weights,
    )


@kernel
def forget_holders(waiting: Int64Array, returned: Int64Array, memory: HostList) -> None:
    """Forget the reservations of jobs that no longer wait, or had a trial run that ended in this
    round (``returned``)."""
    kept, held = 0, memory.held
    for place in range(memory.holders[HELD]):
        row, stays = held[ROW, place], False
        for other in waiting:
            stays = stays or other == row
        for other in returned:
            stays = stays and other != row
        if stays:
            for field in (ROW, WHERE, AT):
                held[field, kept] = held[field, place]
            kept += 1
    memory.holders[HELD] = kept


@kernel
def note_pass(
    rows: Int64Array, started: Int64Array, count: int, kept: int, memory: HostList
) -> None:
    """Record a pass over rows: how many of ``started`` start, and how many reservations are in
    ``held``.

    Each job that still waits was bypassed once more by each start that is after it in the order.
    """
    memory.holders[KEPT] = kept
    memory.holders[HELD] = kept if memory.is_sticky else 0
    bypasses = memory.bypasses
    if memory.weights[BYPASS] == 0.0:
        return
    for place in range(count):
        bypasses[started[place]] = -1.0
    passed = 0
    for place in range(rows.shape[0] - 1, -1, -1):
        row = rows[place]
        if bypasses[row] < 0.0:
            passed += 1
            bypasses[row] = 0.0
        else:
            bypasses[row] += passed
