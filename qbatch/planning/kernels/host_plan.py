"""The kept plan of conservative backfilling on hosts: a start and a placement for every waiting job.

What is free over time is filled anew for each use, from the running jobs and from the plan.  Every
planned start stays until a sweep finds an earlier one (docs/design.md, "The meaning of one
instant").  The live engine calls :func:`sweep` and :func:`plan_arrivals`; :func:`decide` is the pass
of the compiled loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels.availability import (
    CHUNKS,
    Availability,
    add,
    clear,
    earliest,
    empty_for,
    fill,
    groups_of,
    is_anywhere,
    is_mixed,
    may_be_on,
    new_availability,
    place_now,
    watch,
    widen,
    with_space,
)
from qbatch.planning.kernels.host_pass import as_pool, take_now, write_begun
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import stable_order
from qbatch.planning.kernels.plan import COMPRESS_NONE, COMPRESS_SCRATCH, COMPRESS_START
from qbatch.planning.kernels.profile import FOREVER, SHORTEST_BOOKING, booked
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    END,
    HOST,
    NO_JOB,
    OF_ROW,
    SINCE,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
    record,
)
from qbatch.planning.kernels.types import BoolArray, Int64Array, RecordArray

MODE = record(
    "compression",  # of :mod:`.plan`.
    "is_pool",  # whether the plan is one of processors only, until hosts matter to a job.
    "gains",  # how often something was given back before its planned end.
)


class HostPlan(NamedTuple):
    """The plan.

    ``mode[1]`` of ``MODE``.  ``start[R]``: the planned start of each job (``FOREVER``: it has
    none).  ``first[R]``, ``size[R]``: its parts in ``parts[AMOUNTS + N, K]``, where there is space
    for as many as it may have.  ``gained[H]``: the number of the last gain on each host
    (:func:`note_gain`); ``looked[R]``: that of the last gain before the start of each job was last
    searched.
    """

    mode: RecordArray
    start: Int64Array
    first: Int64Array
    size: Int64Array
    parts: Int64Array
    gained: Int64Array
    looked: Int64Array


def new_plan(most: Int64Array, resources: int, hosts: int, compression: int) -> HostPlan:
    """Return an empty plan on some hosts; ``most[R]``: the most parts that each job can have."""
    mode = np.zeros(1, MODE)
    mode["compression"] = compression
    return HostPlan(
        mode,
        np.full(len(most), FOREVER, np.int64),
        np.cumsum(most) - most,
        np.zeros(len(most), np.int64),
        np.zeros((AMOUNTS + resources, int(most.sum())), np.int64),
        np.zeros(hosts, np.int64),
        np.zeros(len(most), np.int64),
    )


@kernel
def may_move(row: int, jobs: JobColumns, plan: HostPlan) -> bool:
    """Return whether something was given back on a host of a job since its start was last searched.

    If not, no start is earlier: time alone only removes starts.  A job with groups that share hosts
    may also fit when less is free.
    """
    looked = plan.looked[row]
    first, last = groups_of(row, jobs)
    if is_mixed(row, jobs):
        return True
    for group in range(first, last):
        for host in range(plan.gained.shape[0]):
            if plan.gained[host] > looked and may_be_on(group, host, jobs):
                return True
    return False


@kernel
def note_gain(row: int, plan: HostPlan) -> None:
    """Note that a job gives back its planned parts; without any, perhaps on all hosts."""
    mode = plan.mode[0]
    mode.gains += 1
    for part in range(plan.first[row], plan.first[row] + plan.size[row]):
        plan.gained[plan.parts[HOST, part]] = mode.gains
    if plan.size[row] == 0:
        for host in range(plan.gained.shape[0]):
            plan.gained[host] = mode.gains


@kernel
def write_planned(row: int, at: int, taken: Int64Array, plan: HostPlan) -> None:
    """Write the planned start of a job, and where it goes (``taken``)."""
    plan.start[row], part = at, plan.first[row]
    if at < FOREVER:
        for host in range(taken.shape[1]):
            if taken[CHUNKS, host] > 0:
                plan.parts[HOST, part] = host
                for field in range(AMOUNTS, taken.shape[0]):
                    plan.parts[field, part] = taken[field, host]
                part += 1
    plan.size[row] = part - plan.first[row]


@allocating_kernel
def book_planned(
    row: int, sign: int, jobs: JobColumns, free: Availability, plan: HostPlan
) -> Availability:
    """Book the planned parts of a job (``sign`` -1), or lift them out (1); hosts that are not filled
    are left out."""
    start = plan.start[row]
    if start < FOREVER:
        end = start + booked(jobs.estimate[row])
        for part in range(plan.first[row], plan.first[row] + plan.size[row]):
            host = plan.parts[HOST, part]
            if free.used[host] > 0:
                free = with_space(free, host)
                free.booked[host] = 1
                add(free, host, start, end, sign, plan.parts, part)
    return free


@allocating_kernel
def sweep(
    rows: Int64Array,
    is_anew: bool,
    now: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    plan: HostPlan,
) -> Availability:
    """Lift each of the planned rows out of the plan, in order, and put it back at its earliest
    start, if that is earlier.

    ``is_anew``: all are lifted out first, and promises may break.  ``free``: what the running jobs
    leave.
    """
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    if not is_anew:
        for row in rows:
            free = book_planned(row, -1, jobs, free, plan)
    for row in rows:
        if not (is_anew or may_move(row, jobs, plan)):
            continue
        if not is_anew:
            free = book_planned(row, 1, jobs, free, plan)
        before = FOREVER if is_anew else plan.start[row]
        length = booked(jobs.estimate[row])
        at = earliest(row, now, before, length, jobs, hosts, free, taken)
        if is_anew or at < before:
            note_gain(row, plan)
            write_planned(row, at, taken, plan)
        plan.looked[row] = plan.mode[0].gains
        free = book_planned(row, -1, jobs, free, plan)
    return free


@allocating_kernel
def plan_rows(
    rows: Int64Array,
    not_before: Int64Array,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    plan: HostPlan,
) -> Availability:
    """Give each of some rows, in order, its earliest start from an instant on."""
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    for place_of_row in range(rows.shape[0]):
        row = rows[place_of_row]
        length = booked(jobs.estimate[row])
        at = earliest(row, not_before[place_of_row], FOREVER, length, jobs, hosts, free, taken)
        write_planned(row, at, taken, plan)
        plan.looked[row] = plan.mode[0].gains
        free = book_planned(row, -1, jobs, free, plan)
    return free


@allocating_kernel
def fill_booked(
    wanted: BoolArray, now: int, hosts: Int64Array, parts: Int64Array, running: int
) -> Availability:
    """Return what the running jobs leave on some hosts; a job of less than a second is booked for a
    second.

    ``parts``: with the rows ``SINCE`` and ``OF_ROW``.
    """
    free = empty_for(hosts, parts, running, 16)
    fill(wanted, free, now, hosts, parts, running)
    for part in range(running):
        end = max(parts[END, part], now)
        least = parts[SINCE, part] + SHORTEST_BOOKING
        if least > end and wanted[parts[HOST, part]]:
            free = with_space(free, parts[HOST, part])
            free.booked[parts[HOST, part]] = 1
            add(free, parts[HOST, part], end, least, -1, parts, part)
    return free


@allocating_kernel
def decide(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: HostPlan
) -> int:
    """Make one pass of conservative backfilling: compress the plan if a job ended early, place
    arrivals, start what is due."""
    now, plan, mode, start = instant.now, memory, memory.mode[0], memory.start
    queue = state.waiting[instant.head : instant.tail]
    old = 0
    while old < queue.shape[0] and queue[old] < instant.first_arrived:
        old += 1
    planned, arrived = queue[:old], queue[old:]
    is_early = False
    for entry in range(instant.ended):
        row = state.ended[entry]
        is_early = is_early or now < done.start[row] + jobs.estimate[row]
        if now < done.start[row] + booked(jobs.estimate[row]):
            note_gain(row, plan)
    hosts, parts, asked = state.hosts, state.parts, jobs
    if jobs.requests.of.shape[0] > 0:
        is_loose = True
        for row in queue:
            is_loose = is_loose and not jobs.requests.heads[jobs.requests.of[row]].is_tight
        if mode.is_pool and not is_loose:
            mode.is_pool = 0
            take_over(planned, instant, jobs, hosts, parts, plan)
        elif is_loose and old == 0:
            mode.is_pool = 1
        if mode.is_pool:
            hosts, parts, asked = as_pool(instant.parts, jobs, state.hosts, state.parts)
    is_early = is_early and mode.compression != COMPRESS_NONE
    is_swept = is_early and mode.compression == COMPRESS_SCRATCH and old > 0
    wanted = np.zeros(hosts.shape[2], np.bool_)
    for row in arrived:
        watch(row, asked, wanted)
    for row in planned:
        if is_early and may_move(row, asked, plan):
            is_swept = True
            watch(row, asked, wanted)
    if arrived.shape[0] > 0 or is_swept:
        # A job that may be on any host concerns all hosts.
        for row in planned:
            if is_swept and (mode.compression == COMPRESS_SCRATCH or is_anywhere(row, asked)):
                wanted[:] = True
        widen(wanted, asked)
        free = fill_booked(wanted, now, hosts, parts, instant.parts)
        if is_swept:
            rows = planned
            if mode.compression == COMPRESS_START:
                rows = planned[stable_order(start[planned])]
            is_anew = mode.compression == COMPRESS_SCRATCH
            free = sweep(rows, is_anew, now, asked, hosts, free, plan)
        else:
            for row in planned:
                free = book_planned(row, -1, asked, free, plan)
        plan_rows(arrived, np.full(arrived.shape[0], now), asked, hosts, free, plan)
        for row in arrived:
            done.first_promise[row] = done.promise[row] = start[row]
    due, upcoming = 0, FOREVER
    for row in queue:
        done.promise[row] = min(done.promise[row], start[row])
        if start[row] > now:
            upcoming = min(upcoming, start[row])
        else:
            due += 1
    state.counts[0].timer = upcoming
    return start_due(now, queue, jobs, state, plan) if due > 0 else 0


@allocating_kernel
def start_due(
    now: int, queue: Int64Array, jobs: JobColumns, state: StateTables, plan: HostPlan
) -> int:
    """Start the waiting jobs of which the planned start has come; return their number."""
    count, begun, is_pool = 0, 0, plan.mode[0].is_pool
    left = state.hosts.copy()
    taken = np.zeros((AMOUNTS + left.shape[1], left.shape[2]), np.int64)
    nothing = new_availability(left.shape[2], left.shape[1], 0)
    for row in queue:
        if plan.start[row] > now:
            continue
        if is_pool:
            place_now(row, now, now, jobs, left, nothing, taken)
            plan.size[row] = 0  # its hosts are not those of the plan
        else:
            planned_as_taken(row, taken, plan)
        take_now(left, taken)
        end = now + jobs.estimate[row]
        state.started[count] = row
        state.places[count], begun = write_begun(row, end, jobs, taken, state.begun, begun)
        count += 1
    if jobs.requests.of.shape[0] > 0:
        state.begun[OF_ROW, begun] = NO_JOB
    return count


@kernel
def planned_as_taken(row: int, taken: Int64Array, plan: HostPlan) -> None:
    """Write the planned placement of a job in the form of ``taken``."""
    clear(taken)
    for part in range(plan.first[row], plan.first[row] + plan.size[row]):
        host = plan.parts[HOST, part]
        taken[CHUNKS, host] = 1
        for field in range(AMOUNTS, taken.shape[0]):
            taken[field, host] = plan.parts[field, part]


@allocating_kernel
def take_over(
    planned: Int64Array,
    instant: Instant,
    jobs: JobColumns,
    hosts: Int64Array,
    parts: Int64Array,
    plan: HostPlan,
) -> None:
    """Give the jobs of a plan of processors only their hosts.

    Placed in order of their starts, all jobs keep them: if jobs are chunks of one processor, a job
    that ends later than an instant only leaves more free after it.
    """
    rows = planned[stable_order(plan.start[planned])]
    every = np.ones(hosts.shape[2], np.bool_)
    free = fill_booked(every, instant.now, hosts, parts, instant.parts)
    plan_rows(rows, plan.start[rows], jobs, hosts, free, plan)
    for row in rows:
        plan.looked[row] = -1  # no earlier start was searched
