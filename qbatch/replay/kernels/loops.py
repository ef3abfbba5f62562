"""The two compiled event loops: list schedulers by their pass, and the persistent plan of conservative backfilling.

Rows are jobs in order of sequence; ``submit`` ascends.  All times are integer microseconds.  A loop fills
``start``, ``kind`` and, where a policy promises, ``promise`` and ``first_promise``, and returns when every row
below ``rows`` has ended or, so that the caller can show progress and be interrupted, after ``budget`` rounds.

The meaning of one instant is design.md's: completions, timers, arrivals, one pass; another round if the pass
made an event at the same instant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.host_round import host_ended, host_round, lsf_ended, lsf_round
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import (
    ACTIVE,
    ARRIVED,
    FREE_NOW,
    HEAD,
    LONGEST,
    NOW,
    TAIL,
    JobColumns,
    LoopState,
    OnHosts,
    PlanArrays,
    PromiseColumns,
    Scan,
    StartColumns,
)
from qbatch.planning.kernels.order import ordered, shortest_behind
from qbatch.planning.kernels.orders import SJF_BEHIND
from qbatch.planning.kernels.passes import easy_pass, fcfs_pass, hybrid_pass
from qbatch.planning.kernels.plan import (
    NOBODY,
    ROW,
    START,
    booked,
    compress,
    compress_by_start,
    enqueue,
    first_waiting,
    has_room_to_sweep,
    next_start,
    queued,
    release,
    replan,
    take_due,
    waiting_places,
)
from qbatch.planning.kernels.profile import FOREVER, forget_before, grown, has_room, new_profile
from qbatch.planning.kernels.running import leave
from qbatch.planning.kernels.types import Int8Array, Int64Array

IN_ORDER, IMMEDIATE, BACKFILLED = 0, 1, 2
"""How a job started (design.md, "The meaning of one instant")."""

PASS_FCFS, PASS_EASY, PASS_HYBRID, ROUND_HOSTS, ROUND_LSF = 0, 1, 2, 3, 4
"""Which pass a loop over one pool calls, or which round a loop over hosts."""

COMPRESS_NONE, COMPRESS_ARRIVAL, COMPRESS_START, COMPRESS_SCRATCH = 0, 1, 2, 3
"""What conservative backfilling does when a job ends before its estimate."""


@kernel
def kind_of(row: int, first_left: int, submit: int, now: int) -> int:
    """Return how a job started in a pass that left ``first_left`` as the first row that waits."""
    if first_left != NOBODY and first_left < row:
        return BACKFILLED
    return IMMEDIATE if submit == now else IN_ORDER


@kernel
def note_kinds(started: Int64Array, first_left: int, submit: Int64Array, now: int, kind: Int8Array) -> None:
    """Note how the jobs of one pass started; ``first_left`` is the first row that it left waiting."""
    for row in started:
        kind[row] = kind_of(row, first_left, submit[row], now)


@kernel
def _close_gaps(waiting: Int64Array, head: int, start: Int64Array, last: int) -> int:
    """Close the gaps that started rows left in ``waiting`` from ``head`` on; return the new head.

    ``last`` is the last row that started.  Those before it move up to it, so that what stands behind is not touched.
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


@cache
def pass_loop(which: int, is_ordered: bool) -> Callable[..., bool]:  # noqa: PLR0915, calls and slices cost its loop 3 %
    """Return the loop of one list scheduler, compiled for its pass or round and for whether the queue of a pool is put in order.

    Both are constants to the compiler, which leaves out what the policy never calls: that is what a first run waits for.
    Constants must be numbers: of a kernel that closes over another kernel, the cache on disk never finds the code again.
    """

    # Where it makes no array it counts no references.
    @(kernel if which in (PASS_FCFS, PASS_EASY) and not is_ordered else allocating_kernel)
    def run_passes(  # noqa: PLR0915
        depth: int, order: int, jobs: JobColumns, state: LoopState, begun: StartColumns, on_hosts: OnHosts, budget: int
    ) -> bool:
        """Run up to ``budget`` rounds of a list scheduler; tell whether all is done."""
        submit, procs, estimate, run = jobs
        start, kind = begun
        counts, endings, ends, amounts, waiting, started = state
        rows = submit.shape[0]
        arrived, active, free, head, tail, now, longest = counts[:7]
        if which == PASS_HYBRID:
            profile = new_profile(free, 0, 8 * ends.shape[0] + 4 * depth)
        while budget > 0 and (arrived < rows or active > 0):
            budget -= 1
            now = endings[0, heap.INSTANT] if active > 0 else FOREVER
            if arrived < rows and submit[arrived] < now:
                now = submit[arrived]
            finished = False
            while active > 0 and endings[0, heap.INSTANT] == now:
                row = endings[0, heap.ROW]
                heap.pop(endings, active)
                if which == ROUND_HOSTS:
                    host_ended(row, procs, on_hosts)
                elif which == ROUND_LSF:
                    lsf_ended(row, procs, on_hosts)
                elif which != PASS_FCFS:
                    leave(ends, amounts, active, start[row] + estimate[row], procs[row])
                active -= 1
                free += procs[row]
                finished = True
            scan_from = head if finished or is_ordered else tail
            while arrived < rows and submit[arrived] == now:
                waiting[tail] = arrived
                tail += 1
                arrived += 1
            longest = max(longest, tail - head)
            count = 0
            if which >= ROUND_HOSTS:
                scan = Scan(now, order, depth, finished, free, head, tail, active)
                if which == ROUND_HOSTS:
                    count = host_round(scan, jobs, state, start, on_hosts)
                else:
                    count = lsf_round(scan, jobs, state, start, on_hosts)
            elif free > 0 and head < tail:
                view, begin, end = waiting, head, tail
                if is_ordered:
                    if order == SJF_BEHIND:
                        behind = head + fcfs_pass(waiting, head, tail, procs, free, started) + 1
                        view = shortest_behind(waiting, head, tail, behind, submit, estimate)
                    else:
                        view = ordered(order, now, waiting, head, tail, submit, estimate)
                    begin, end, scan_from = 0, tail - head, 0
                if which == PASS_FCFS:
                    count = fcfs_pass(view, begin, end, procs, free, started)
                elif which == PASS_EASY:
                    count = easy_pass(
                        now, view, begin, end, scan_from, procs, estimate, free, ends, amounts, active, started
                    )
                else:
                    count = hybrid_pass(
                        now, view, begin, end, depth, procs, estimate, profile, free, ends, amounts, active, started
                    )
            last = NOBODY
            for place in range(count):
                row = started[place]
                last = max(last, row)
                start[row] = now
                free -= procs[row]
                heap.push(endings, active, now + run[row], row)
                active += 1
            if count > 0:
                head = _close_gaps(waiting, head, start, last)
                first_left = waiting[head] if head < tail else NOBODY
                for place in range(count):
                    row = started[place]
                    kind[row] = kind_of(row, first_left, submit[row], now)
        counts[ARRIVED], counts[ACTIVE], counts[FREE_NOW] = arrived, active, free
        counts[HEAD], counts[TAIL], counts[NOW], counts[LONGEST] = head, tail, now, longest
        return bool(arrived >= rows and active == 0)

    return cast(Callable[..., bool], run_passes)


@cache
def plan_loop(compression: int) -> Callable[..., tuple[bool, Int64Array]]:
    """Return the loop of conservative backfilling, compiled for one way of compressing the plan."""

    @allocating_kernel
    def run_plan(
        jobs: JobColumns, counts: Int64Array, endings: Int64Array, plan: PlanArrays, profile: Int64Array, begun: StartColumns,
        promises: PromiseColumns, budget: int,
    ) -> tuple[bool, Int64Array]:  # fmt: skip
        """Run up to ``budget`` rounds of conservative backfilling; tell whether all is done, and return the profile."""
        submit, procs, estimate, run = jobs
        queue, place, shapes, table, starts, released, state = plan
        start, kind = begun
        promise, first_promise = promises
        rows = submit.shape[0]
        arrived, active = counts[ARRIVED], counts[ACTIVE]
        now = counts[NOW]
        started = np.empty(endings.shape[0], np.int64)
        while budget > 0 and (arrived < rows or active > 0 or queued(state) > 0):
            budget -= 1
            now = min(endings[0, heap.INSTANT] if active > 0 else FOREVER, next_start(queue, place, starts, state))
            if arrived < rows and submit[arrived] < now:
                now = submit[arrived]
            forget_before(profile, now)
            early = False
            while active > 0 and endings[0, heap.INSTANT] == now:
                row = endings[0, heap.ROW]
                heap.pop(endings, active)
                active -= 1
                if not has_room(profile, 2):
                    profile = grown(profile)
                release(released, state, profile, now, start[row] + booked(estimate[row]), procs[row])
                early = early or run[row] < estimate[row]
            if early and queued(state) > 0:
                while not has_room_to_sweep(profile, state, 0):
                    profile = grown(profile)
                if compression == COMPRESS_ARRIVAL:
                    compress(queue, place, shapes, starts, released, state, profile, now)
                elif compression == COMPRESS_START:
                    compress_by_start(queue, place, shapes, starts, released, state, profile, now)
                elif compression == COMPRESS_SCRATCH:
                    replan(queue, place, starts, state, profile, now)
                    for where in waiting_places(queue, state):
                        row = queue[where, ROW]
                        promise[row] = min(promise[row], queue[where, START])
            while arrived < rows and submit[arrived] == now:
                if not has_room(profile, 4):
                    profile = grown(profile)
                first_promise[arrived] = enqueue(
                    queue, place, shapes, table, starts, state, profile, arrived, procs[arrived], estimate[arrived], now
                )
                promise[arrived] = first_promise[arrived]
                arrived += 1
            counts[LONGEST] = max(counts[LONGEST], queued(state))
            count = 0
            while True:
                row = take_due(queue, place, starts, state, now)
                if row == NOBODY:
                    break
                start[row] = now
                promise[row] = min(promise[row], now)
                heap.push(endings, active, now + run[row], row)
                active += 1
                started[count] = row
                count += 1
            if count > 0:
                note_kinds(started[:count], first_waiting(queue, state), submit, now, kind)
        counts[ARRIVED], counts[ACTIVE], counts[NOW] = arrived, active, now
        return bool(arrived >= rows and active == 0 and queued(state) == 0), profile

    return cast(Callable[..., tuple[bool, Int64Array]], run_plan)
