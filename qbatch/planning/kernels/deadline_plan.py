"""The kept plan of a policy that admits jobs by deadlines on one pool, and the steps of a pass
(docs/spec/papers.md 2.8, rule 1).

The plan is ``jobs`` as in :mod:`.deadlines`: ``count`` accepted waiting jobs in order of (planned
start, row).  ``rules[1]`` is a record of ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from qbatch.planning.kernels.deadlines import (
    BY_START,
    LLF,
    WITHOUT_DEADLINE,
    by_key,
    earliest_of,
    insertion,
    mrt,
    qops,
    reserve,
    unreserve,
)
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import stable_order
from qbatch.planning.kernels.profile import (
    FOREVER,
    add,
    book,
    booked,
    copied,
    forget_before,
    window_between,
)
from qbatch.planning.kernels.tables import Instant, JobColumns, ScheduleTable, StateTables, record
from qbatch.planning.kernels.types import Float64Array, Int64Array, RecordArray
from qbatch.planning.kernels.verbs import refuse

QOPS, MSB, MRT, SLACK_BASED = 0, 1, 2, 3
"""The schemes."""

RULES = record(
    "scheme",
    "key",  # the key, or the order, in which jobs are placed.
    "placing",  # where QoPS puts the job that asks.
    "limit",  # the largest number of violations, or of steps back.
    "price",  # of a plan.
    # Whether a job without a deadline gets a later artificial one rather than a refusal.
    "relaxes",
    "factor",  # an artificial deadline is so many thousandths of the estimate after submission.
    "slack_factor",  # in thousandths.
    "machine",  # processors of the machine.
)
"""The rules of a scheme."""

HOUR, DAY = 3_600_000_000, 86_400_000_000


@cache
def search_by(scheme: int) -> Callable[..., bool]:
    """Return the kernel that searches a plan by one scheme: a compile-time constant, so that the
    others are left out."""

    @allocating_kernel
    def is_planned(
        now: int,
        base: Int64Array,
        jobs: RecordArray,
        weights: Float64Array,
        count: int,
        rules: RecordArray,
        planned: Int64Array,
    ) -> bool:
        """Search a plan with the job of slot ``count``; write it to ``planned`` and return whether
        there is one."""
        if jobs[count].latest < now:
            return False
        if scheme == QOPS:
            return bool(
                qops(
                    now, base, jobs, count, rules[0].key, rules[0].placing, rules[0].limit, planned
                )
            )
        if scheme == MRT:
            return bool(mrt(now, base, jobs, count, rules[0].key, rules[0].limit, planned))
        return bool(
            insertion(now, base, jobs, weights, count, rules[0].key, rules[0].price, planned)
        )

    return cast(Callable[..., bool], is_planned)


@allocating_kernel
def profile_of_plan(base: Int64Array, jobs: RecordArray, count: int) -> Int64Array:
    """Return the profile that the running jobs and the plan leave, with space for one more
    booking."""
    profile = copied(base, count + 1)
    for slot in range(count):
        reserve(profile, jobs, slot, jobs[slot].start)
    return profile


@allocating_kernel
def put_in_order(jobs: RecordArray, weights: Float64Array, count: int) -> None:
    """Put the slots in order of (planned start, row)."""
    order = by_key(jobs, count, BY_START)
    old, old_weights = jobs[:count].copy(), weights[:count].copy()
    for place in range(count):
        weights[place] = old_weights[order[place]]
        jobs[place] = old[order[place]]


@cache
def admission_by(scheme: int) -> Callable[..., bool]:
    """Return the kernel that admits jobs by one scheme."""
    is_planned = search_by(scheme)

    @allocating_kernel
    def admit(
        now: int,
        base: Int64Array,
        jobs: RecordArray,
        weights: Float64Array,
        count: int,
        rules: RecordArray,
        has_deadline: bool,
    ) -> bool:
        """Accept the job of slot ``count`` or refuse it; return whether it is accepted.

        A job without a deadline comes with an artificial one (rule 9).  Slack-based backfilling
        accepts every job; its latest start is then its first planned start plus its slack (rule
        13).
        """
        planned = np.empty(count + 1, np.int64)
        while not is_planned(now, base, jobs, weights, count, rules, planned):
            if has_deadline or rules[0].relaxes == 0:
                return False
            # The plan stays; the job takes its earliest place in it.
            if jobs[count].latest >= FOREVER:
                for slot in range(count):
                    planned[slot] = jobs[slot].start
                planned[count] = earliest_of(profile_of_plan(base, jobs, count), jobs, count, now)
                break
            allowance = 2 * (jobs[count].latest + jobs[count].estimate - jobs[count].submit)
            jobs[count].latest = jobs[count].submit + allowance - jobs[count].estimate
            if allowance > WITHOUT_DEADLINE:
                jobs[count].latest = FOREVER
        for slot in range(count + 1):
            jobs[slot].start = planned[slot]
        if scheme == SLACK_BASED:
            jobs[count].latest = planned[count] + jobs[count].slack
        put_in_order(jobs, weights, count + 1)
        return True

    return cast(Callable[..., bool], admit)


@kernel
def leave(jobs: RecordArray, weights: Float64Array, count: int, slot: int) -> None:
    """Remove a slot from ``count`` slots; the caller updates the count."""
    for place in range(slot, count - 1):
        weights[place] = weights[place + 1]
        jobs[place] = jobs[place + 1]


@allocating_kernel
def compress(
    now: int, base: Int64Array, jobs: RecordArray, weights: Float64Array, count: int
) -> None:
    """Move planned starts earlier in one sweep in order of arrival: each job is lifted out and put
    back at its earliest start."""
    profile = copied(base, 2 * count)
    for slot in range(count):
        reserve(profile, jobs, slot, jobs[slot].start)
    has_moved = False
    for slot in stable_order(jobs["row"][:count].copy()):
        planned = jobs[slot].start
        start = window_between(profile, jobs[slot].procs, jobs[slot].booked, now, planned, planned)
        if start < planned:
            unreserve(profile, jobs, slot, planned)
            reserve(profile, jobs, slot, start)
            jobs[slot].start = start
            has_moved = True
    if has_moved:
        put_in_order(jobs, weights, count)


@allocating_kernel
def placed_in_order(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    count: int,
    order: Int64Array,
    planned: Int64Array,
) -> int:
    """Place all slots again in an order, each at its earliest; return how many start later than
    they may."""
    profile = copied(base, count)
    missed = 0
    for slot in order:
        planned[slot] = book(profile, jobs[slot].procs, jobs[slot].booked, now)
        missed += planned[slot] > jobs[slot].latest
    return missed


@allocating_kernel
def repair(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    weights: Float64Array,
    count: int,
    breached: Int64Array,
) -> int:
    """Rebuild the plan after a running job outlived its estimate or hosts closed (rule 11).

    A job that now starts later than it may gets that start as its latest.  Its row is written to
    ``breached``; the return value is the number of such jobs.
    """
    planned, other = np.empty(count, np.int64), np.empty(count, np.int64)
    in_order = placed_in_order(now, base, jobs, count, np.arange(count), planned)
    if (
        in_order > 0
        and placed_in_order(now, base, jobs, count, by_key(jobs, count, LLF), other) < in_order
    ):
        planned = other
    missed = 0
    for slot in range(count):
        jobs[slot].start = planned[slot]
        if planned[slot] > jobs[slot].latest:
            jobs[slot].latest = planned[slot]
            breached[missed] = jobs[slot].row
            missed += 1
    put_in_order(jobs, weights, count)
    return missed


@allocating_kernel
def starts_after_each(now: int, base: Int64Array, jobs: RecordArray, count: int) -> Int64Array:
    """Return the earliest start of the job of slot ``count`` after each prefix of the plan, first
    the empty one."""
    profile = copied(base, count)
    starts = np.empty(count + 1, np.int64)
    for kept in range(count + 1):
        if kept > 0:
            reserve(profile, jobs, kept - 1, jobs[kept - 1].start)
        starts[kept] = earliest_of(profile, jobs, count, now)
    return starts


@kernel
def latest_of(rules: RecordArray, submit: int, estimate: int, deadline: int) -> int:
    """Return the latest start of an arrival, by its own deadline or an artificial one (rule 9);
    ``deadline``: -1 for none."""
    if rules[0].scheme == SLACK_BASED:
        return FOREVER
    if deadline >= 0:
        return deadline - estimate
    return int(submit + max(DAY, rules[0].factor * estimate // 1000) - estimate)


@kernel
def slack_of(
    factor: int,
    machine: int,
    waited: int,
    ended: int,
    procs: int,
    priority: int,
    priorities: int,
    submitted: int,
) -> int:
    """Return the slack of a job in microseconds (rules 12 and 13); if all jobs have the same
    priority, the last three are 1.

    ``factor``: in thousandths.  ``waited``, ``ended``: the sum of the first-start waits of the jobs
    that have ended, and the number of these jobs.  ``priorities``, ``submitted``: the sum of the
    priorities of all jobs so far, including this one, and their number.
    """
    total = HOUR + waited
    times = factor * 2 * machine * priorities
    parts = 1000 * (1 + ended) * (machine + 2 * procs) * priority * submitted
    # The rest times ``times`` may exceed 64 bits, so it is divided bit by bit.
    rest, bit, part, left = total % parts, 1, 0, 0
    while bit <= times // 2:
        bit *= 2
    while bit > 0:
        left = 2 * left + (rest if times & bit else 0)
        part, left, bit = 2 * part + left // parts, left % parts, bit // 2
    return total // parts * times + part


@kernel
def enter(
    jobs: RecordArray,
    slot: int,
    row: int,
    procs: int,
    estimate: int,
    submit: int,
    latest: int,
    slack: int,
) -> None:
    """Write the request of a job into a slot."""
    jobs[slot].row, jobs[slot].procs, jobs[slot].submit = row, procs, submit
    jobs[slot].booked, jobs[slot].estimate = booked(estimate), estimate
    jobs[slot].latest, jobs[slot].slack = latest, slack


@kernel
def take_due(
    now: int, base: Int64Array, jobs: RecordArray, weights: Float64Array, count: int
) -> int:
    """Remove the first job from the plan and book it, if it is planned for now; return its row,
    else -1."""
    if count == 0 or jobs[0].start > now:
        return -1
    row = int(jobs[0].row)
    add(base, now, now + jobs[0].booked, -jobs[0].procs)
    leave(jobs, weights, count, 0)
    return row


TOTALS = record("waiting", "waited", "ended")
"""Totals so far: the jobs in the plan, the sum of the first-start waits of the ended jobs, and the
number of these."""


class DeadlineTables(NamedTuple):
    """The memory for the ``R`` jobs of a workload.

    ``rules[1]`` of ``RULES``; ``totals[1]`` of ``TOTALS``; ``deadline[R]`` (-1: none); ``base``:
    the profile of the running jobs; ``jobs`` and ``weights``: the plan with the priorities of its
    slots.
    """

    rules: RecordArray
    totals: RecordArray
    deadline: Int64Array
    base: Int64Array
    jobs: RecordArray
    weights: Float64Array


@cache
def deadline_admission(scheme: int) -> Callable[..., int]:
    """Return the ``decide`` of one scheme."""
    admit = admission_by(scheme)

    @kernel
    def decide(
        instant: Instant,
        jobs: JobColumns,
        state: StateTables,
        done: ScheduleTable,
        memory: DeadlineTables,
    ) -> int:
        rules, totals, deadlines, base, plan, weights = memory
        now, waiting, count, is_early = instant.now, totals[0].waiting, 0, False
        forget_before(base, now)
        for place in range(instant.ended):
            row = state.ended[place]
            add(base, now, done.start[row] + booked(jobs.estimate[row]), jobs.procs[row])
            is_early = is_early or now < done.start[row] + jobs.estimate[row]
            totals[0].waited += done.start[row] - jobs.submit[row]
            totals[0].ended += 1
        if is_early and waiting > 0:
            compress(now, base, plan, weights, waiting)
        arrival = instant.first_arrived
        while True:
            row = take_due(now, base, plan, weights, waiting)
            while row >= 0:
                waiting -= 1
                state.started[count] = row
                count += 1
                row = take_due(now, base, plan, weights, waiting)
            if arrival == instant.arrived:
                break
            procs, estimate, deadline = (
                jobs.procs[arrival],
                jobs.estimate[arrival],
                deadlines[arrival],
            )
            latest = latest_of(rules, now, estimate, deadline)
            slack = slack_of(
                rules[0].slack_factor,
                rules[0].machine,
                totals[0].waited,
                totals[0].ended,
                procs,
                1,
                1,
                1,
            )
            enter(plan, waiting, arrival, procs, estimate, now, latest, slack)
            if not admit(now, base, plan, weights, waiting, rules, deadline >= 0):
                refuse(arrival, state, done)
            else:
                waiting += 1
                done.promise[arrival] = -1  # its promise is its latest start
                for slot in range(waiting):
                    if plan[slot].row == arrival and plan[slot].latest < FOREVER:
                        done.promise[arrival] = plan[slot].latest
                done.first_promise[arrival] = done.promise[arrival]
            arrival += 1
        totals[0].waiting = waiting
        state.counts[0].timer = plan[0].start if waiting > 0 else FOREVER
        return count

    return cast(Callable[..., int], decide)
