"""The ``decide`` of list schedulers: order the queue, make one pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from qbatch.planning.kernels.host_pass import AT, ROW, WHERE, host_pass
from qbatch.planning.kernels.jit import allocating_kernel, inlined_kernel, kernel
from qbatch.planning.kernels.order import BYPASS, ordered, priorities, shortest_behind, stable_order
from qbatch.planning.kernels.orders import FCFS, PRIORITY, SJF_BEHIND
from qbatch.planning.kernels.passes import easy_pass, fcfs_pass, hybrid_pass
from qbatch.planning.kernels.tables import END, PROCS, Instant, JobColumns, ScheduleTable, StateTables
from qbatch.planning.kernels.types import Float64Array, Int64Array


class PoolList(NamedTuple):
    """A list scheduler of a pool: the order of the queue (:mod:`orders`), how many jobs get a reservation, and a profile to work
    with (:mod:`profile`)."""

    order: int
    depth: int
    profile: Int64Array


@inlined_kernel
def stopping_pass(rules: PoolList, instant: Instant, jobs: JobColumns, waiting: Int64Array, parts: Int64Array,
                  started: Int64Array) -> int:  # fmt: skip
    """Make one pass over ``waiting[head:tail]`` that stops at the first job that does not fit (FCFS)."""
    return fcfs_pass(waiting, instant.head, instant.tail, jobs.procs, instant.free, started)


@inlined_kernel
def shadow_pass(rules: PoolList, instant: Instant, jobs: JobColumns, waiting: Int64Array, parts: Int64Array,
                started: Int64Array) -> int:  # fmt: skip
    """Make one pass that looks ahead by the shadow time of one job (EASY)."""
    return easy_pass(
        instant.now, waiting, instant.head, instant.tail, instant.scan_from, jobs.procs, jobs.estimate, instant.free,
        parts[END], parts[PROCS], instant.parts, started,
    )  # fmt: skip


@inlined_kernel
def profile_pass(rules: PoolList, instant: Instant, jobs: JobColumns, waiting: Int64Array, parts: Int64Array,
                 started: Int64Array) -> int:  # fmt: skip
    """Make one pass that looks ahead by a profile with reservations."""
    return hybrid_pass(
        instant.now, waiting, instant.head, instant.tail, rules.depth, jobs.procs, jobs.estimate, rules.profile, instant.free,
        parts[END], parts[PROCS], instant.parts, started,
    )  # fmt: skip


@cache
def pool_scheduler(one_pass: Callable[..., int], is_ordered: bool) -> Callable[..., int]:
    """Return the ``decide`` of a list scheduler of a pool; ``is_ordered``: the queue is put in order before the pass."""

    @inlined_kernel
    def decide(instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: PoolList) -> int:
        if instant.free == 0 or instant.head == instant.tail:
            return 0
        return one_pass(memory, instant, jobs, state.waiting, state.parts, state.started)

    @allocating_kernel
    def decide_in_order(
        instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: PoolList
    ) -> int:
        if instant.free == 0 or instant.head == instant.tail:
            return 0
        head, tail, waiting = instant.head, instant.tail, state.waiting
        if memory.order == SJF_BEHIND:
            behind = head + fcfs_pass(waiting, head, tail, jobs.procs, instant.free, state.started) + 1
            rows = shortest_behind(waiting, head, tail, behind, jobs.submit, jobs.estimate)
        else:
            rows = ordered(memory.order, instant.now, waiting, head, tail, jobs.submit, jobs.estimate)
        whole = Instant(
            instant.now, instant.free, 0, tail - head, 0, instant.parts, instant.first_arrived, instant.arrived, 0, 0
        )
        return one_pass(memory, whole, jobs, rows, state.parts, state.started)

    return cast(Callable[..., int], decide_in_order if is_ordered else decide)


class HostList(NamedTuple):
    """A list scheduler of hosts (a pool is one): the order of the queue and how many jobs get a reservation; ``weights[6]`` of
    the priority; whether the pass ends at the first job that does not fit, and whether reservations stay.

    ``bypasses[R]``: how often a job was passed by.  ``held[3, n]``: row, host and start of each reservation that stays, of which
    ``holders[0]`` are in use.
    """

    order: int
    depth: int
    weights: Float64Array
    is_stopping: bool
    is_sticky: bool
    bypasses: Float64Array
    held: Int64Array
    holders: Int64Array


@kernel
def decide_on_hosts(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: HostList
) -> int:
    """Make one pass of a list scheduler of hosts (spec/papers.md 3.3 and 3.7)."""
    # A reservation that stays is made even where nothing can start.
    if instant.head == instant.tail or (instant.free == 0 and not memory.is_sticky):
        return 0
    return list_pass(instant, jobs, state.waiting, state.hosts, state.parts, memory, state.started, state.places)


@allocating_kernel
def list_pass(
    instant: Instant, jobs: JobColumns, waiting: Int64Array, hosts: Int64Array, parts: Int64Array, memory: HostList,
    started: Int64Array, places: Int64Array,
) -> int:  # fmt: skip
    """Make one pass over what is shown; write the rows that start into ``started`` and their hosts into ``places``, and return
    how many they are.

    Args:
        hosts: what the hosts have, free and in all.
        parts: the running jobs in order of expected end, as :func:`host_pass` takes them; ``instant.parts`` are in use.
    """
    rows = in_order(instant, jobs, waiting, memory)
    holders = memory.holders[0]
    looked = holders_first(rows, memory.held, holders) if holders > 0 else rows
    begun = np.empty((2, min(looked.shape[0], instant.free)), np.int64)
    reserved = np.empty((3, min(memory.depth, looked.shape[0]) + holders), np.int64)
    count, kept = host_pass(
        instant.now, looked, memory.depth, memory.is_stopping, jobs.procs, jobs.memory, jobs.estimate, hosts.copy(), parts,
        instant.parts, memory.held[:, :holders].copy(), begun, reserved,
    )  # fmt: skip
    for place in range(count):
        started[place], places[place] = begun[ROW, place], begun[WHERE, place]
    if memory.weights[BYPASS] != 0.0:
        count_bypasses(rows, started, count, memory.bypasses)
    if memory.is_sticky:
        memory.holders[0] = kept
        for place in range(kept):
            for field in (ROW, WHERE, AT):
                memory.held[field, place] = reserved[field, place]
    return count


@allocating_kernel
def start_in_order(instant: Instant, jobs: JobColumns, state: StateTables, rows: Int64Array, depth: int) -> int:
    """Make one pass over waiting rows in the order given: start what fits beside reservations for the first ``depth`` others.

    The starts stand in ``state.started`` and ``state.places``; returns how many they are.
    """
    begun = np.empty((2, min(rows.shape[0], instant.free)), np.int64)
    count, _ = host_pass(
        instant.now, rows, depth, False, jobs.procs, jobs.memory, jobs.estimate, state.hosts.copy(), state.parts, instant.parts,
        np.empty((3, 0), np.int64), begun, np.empty((3, min(depth, rows.shape[0])), np.int64),
    )  # fmt: skip
    for place in range(count):
        state.started[place], state.places[place] = begun[ROW, place], begun[WHERE, place]
    return count


@allocating_kernel
def in_order(instant: Instant, jobs: JobColumns, waiting: Int64Array, memory: HostList) -> Int64Array:
    """Return the waiting rows as they are looked through."""
    rows = waiting[instant.head : instant.tail].copy()
    if memory.order == FCFS:
        return rows
    if memory.order != PRIORITY:
        return ordered(memory.order, instant.now, waiting, instant.head, instant.tail, jobs.submit, jobs.estimate)
    passed_by = np.zeros(rows.shape[0], np.float64)
    if memory.weights[BYPASS] != 0.0:
        for place in range(rows.shape[0]):
            passed_by[place] = memory.bypasses[rows[place]]
    keys = priorities(instant.now, rows, jobs.submit, jobs.procs, jobs.memory, jobs.estimate, passed_by, memory.weights)
    found = stable_order(-keys)
    for place in range(found.shape[0]):
        found[place] = rows[found[place]]
    return found


@allocating_kernel
def holders_first(rows: Int64Array, held: Int64Array, holders: int) -> Int64Array:
    """Return the rows with the holders of reservations before all others, the oldest first."""
    found = np.empty(rows.shape[0], np.int64)
    for place in range(holders):
        found[place] = held[ROW, place]
    count = holders
    for row in rows:
        is_holder = False
        for place in range(holders):
            is_holder = is_holder or held[ROW, place] == row
        if not is_holder:
            found[count] = row
            count += 1
    return found


@kernel
def count_bypasses(rows: Int64Array, started: Int64Array, count: int, bypasses: Float64Array) -> None:
    """Add to each job that still waits how many of those behind it in the order have started."""
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
