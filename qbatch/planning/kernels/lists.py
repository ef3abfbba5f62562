"""The ``decide`` of list schedulers: order the queue, make one pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from qbatch.planning.kernels.availability import has_windows, requests_of_none
from qbatch.planning.kernels.host_pass import (
    AT,
    ROW,
    WHERE,
    all_free,
    fits_any,
    host_pass,
    most_free,
)
from qbatch.planning.kernels.jit import allocating_kernel, inlined_kernel, kernel, with_constants
from qbatch.planning.kernels.order import BYPASS, in_order, priorities, sorted_by
from qbatch.planning.kernels.orders import FCFS, PRIORITY, SJF_BEHIND
from qbatch.planning.kernels.passes import PoolList, fcfs_pass
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    END,
    FREE,
    MEMORY,
    NAMED,
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


class HostList(NamedTuple):
    """A list scheduler of hosts (a pool is one).

    Its first fields are the order of the queue, the number of reservations, ``weights[6]`` of the
    priority, whether the pass ends at the first job that does not fit, and whether reservations
    stay.

    ``bypasses[R]``: how often other jobs bypassed a job; empty if that has no weight.  ``held[3,
    n]``: row, host and start of each reservation of the last pass, ``holders[KEPT]`` in number, of
    which the first ``holders[HELD]`` stay.
    """

    order: int
    depth: int
    weights: Float64Array
    is_stopping: bool
    is_sticky: bool
    bypasses: Float64Array
    held: Int64Array
    holders: Int64Array


HELD, KEPT = 0, 1
"""Indices into ``holders``."""


@kernel
def decide_on_hosts(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: HostList
) -> int:
    """Make one pass of a list scheduler of hosts (docs/spec/papers.md 3.3 and 3.7)."""
    # A reservation that stays is made even if nothing can start.
    queue = state.waiting[instant.head : instant.tail]
    if queue.shape[0] == 0 or not (memory.is_sticky or may_start(queue, jobs, state.hosts)):
        return 0
    return list_pass(
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


@kernel
def may_start(rows: Int64Array, jobs: JobColumns, hosts: Int64Array) -> bool:
    """Return whether one of some rows asks for no more processors than are free for one job."""
    free = all_free(hosts) if jobs.requests.of.shape[0] > 0 else most_free(hosts)
    for row in rows:  # noqa: SIM110, the compiler takes no generators
        if jobs.procs[row] <= free:
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
    count, kept = host_pass(
        instant,
        jobs,
        hosts,
        parts,
        looked,
        memory.depth,
        memory.is_stopping,
        known,
        memory.holders[HELD],
        is_told,
        memory.held,
        started,
        places,
        begun,
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
    is_plain = memory.order == FCFS and not (memory.is_sticky or memory.is_stopping)
    is_plain = is_plain and memory.weights[BYPASS] == 0.0
    is_late = instant.parts > 0 and parts[END, 0] <= instant.now
    if jobs.requests.of.shape[0] == 0 or not is_plain or is_late or has_windows(jobs):
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
    rules = HostList(order, depth, weights, is_stopping, is_sticky, bypasses, held, holders)
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
    rules = HostList(order, depth, weights, is_stopping, is_sticky, bypasses, held, holders)
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
        instant,
        jobs,
        state.hosts,
        state.parts,
        rows,
        depth,
        False,
        0,
        0,
        False,
        reserved,
        state.started,
        state.places,
        state.begun,
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
