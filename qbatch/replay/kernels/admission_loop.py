"""The compiled event loop of the schedulers that admit jobs by deadlines (papers.md 2.8; :mod:`qbatch.policies.deadlines`).

As in :mod:`.loops`: rows are jobs in order of sequence, times are integer microseconds, and a call runs ``budget`` rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.deadline_plan import (
    MRT,
    MSB,
    QOPS,
    REFUSED,
    SCHEME,
    SLACK_BASED,
    admit_by_mrt,
    admit_by_msb,
    admit_by_qops,
    admit_by_slack,
    compress,
    leave,
)
from qbatch.planning.kernels.deadlines import BOOKED, COLUMNS, ESTIMATE, LATEST, PROCS, ROW, SLACK, START, SUBMIT
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.layout import ACTIVE, ARRIVED, LONGEST, NOW, AdmissionState, JobColumns, StartColumns
from qbatch.planning.kernels.plan import booked
from qbatch.planning.kernels.tables import NOBODY
from qbatch.planning.kernels.profile import FOREVER, add, forget_before, grown, has_room
from qbatch.planning.kernels.types import Float64Array, Int64Array
from qbatch.replay.kernels.loops import note_kinds

FACTOR, SLACK_FACTOR, MACHINE = 6, 7, 8
"""Places in ``rules`` after those of the plan: the factor of artificial deadlines and the slack factor, both in thousandths, and
the processors of the machine."""

WAITING, RELAXED, WAITED, ENDED = range(4)
"""Places in ``totals``: jobs in the plan, doublings of artificial deadlines, first-start waits of the jobs that have ended, and
how many they are."""

HOUR, DAY = 3_600_000_000, 86_400_000_000


@kernel
def slack_of(rules: Int64Array, totals: Int64Array, procs: int) -> int:
    """Return the slack of a job where all have the same priority (rule 12): in integers, without overflow."""
    total = HOUR + totals[WAITED]
    times = rules[SLACK_FACTOR] * 2 * rules[MACHINE]
    parts = 1000 * (1 + totals[ENDED]) * (rules[MACHINE] + 2 * procs)
    return int(total // parts * times + total % parts * times // parts)


@kernel
def latest_of(rules: Int64Array, submit: int, estimate: int, deadline: int) -> int:
    """Return the latest start of an arrival, by its deadline or by an artificial one (rule 9)."""
    if rules[SCHEME] == SLACK_BASED:
        return FOREVER
    if deadline >= 0:
        return deadline - estimate
    return int(submit + max(DAY, rules[FACTOR] * estimate // 1000) - estimate)


@kernel
def enter(
    jobs: Int64Array, slot: int, row: int, procs: int, estimate: int, submit: int, latest: int, slack: int
) -> None:
    """Write what a job asks for into a slot."""
    jobs[ROW, slot], jobs[PROCS, slot], jobs[SUBMIT, slot] = row, procs, submit
    jobs[BOOKED, slot], jobs[ESTIMATE, slot] = booked(estimate), estimate
    jobs[LATEST, slot], jobs[SLACK, slot] = latest, slack


@kernel
def latest_start(jobs: Int64Array, count: int, row: int) -> int:
    """Return the latest start of a row of the plan, -1 where there is none: what it is promised."""
    for slot in range(count):
        if jobs[ROW, slot] == row and jobs[LATEST, slot] < FOREVER:
            return int(jobs[LATEST, slot])
    return -1


@kernel
def first_waiting(jobs: Int64Array, count: int) -> int:
    """Return the first row of the plan, ``NOBODY`` for none."""
    first = NOBODY
    for slot in range(count):
        if first == NOBODY or jobs[ROW, slot] < first:
            first = jobs[ROW, slot]
    return int(first)


@allocating_kernel
def wider(jobs: Int64Array) -> Int64Array:
    """Return the same plan with twice the slots."""
    bigger = np.zeros((COLUMNS, 2 * jobs.shape[1]), np.int64)
    bigger[:, : jobs.shape[1]] = jobs
    return bigger


@allocating_kernel
def start_due(
    now: int, run: Int64Array, base: Int64Array, jobs: Int64Array, weights: Float64Array, waiting: int, endings: Int64Array,
    active: int, start: Int64Array, started: Int64Array, count: int,
) -> tuple[int, Int64Array]:  # fmt: skip
    """Start what is planned for now; return how many have started in this round, and the profile."""
    while waiting > 0 and jobs[START, 0] == now:
        row = jobs[ROW, 0]
        if not has_room(base, 2):
            base = grown(base)
        add(base, now, now + jobs[BOOKED, 0], -jobs[PROCS, 0])
        leave(jobs, weights, waiting, 0)
        waiting -= 1
        start[row] = now
        heap.push(endings, active, now + run[row], row)
        active += 1
        started[count] = row
        count += 1
    return count, base


@cache
def admission_loop(scheme: int) -> Callable[..., tuple[bool, Int64Array, Int64Array, Float64Array]]:
    """Return the loop of one scheme: a constant to the compiler, which leaves out the others."""

    @allocating_kernel
    def run_admission(
        rules: Int64Array, columns: JobColumns, deadline: Int64Array, state: AdmissionState, base: Int64Array,
        jobs: Int64Array, weights: Float64Array, begun: StartColumns, promise: Int64Array, budget: int,
    ) -> tuple[bool, Int64Array, Int64Array, Float64Array]:  # fmt: skip
        """Run up to ``budget`` rounds; tell whether all is done, and return the profile of the running jobs and the plan.

        Args:
            base: the profile of the running jobs.
            jobs: the plan (:mod:`qbatch.planning.kernels.deadlines`), with the ``weights`` of its slots.
        """
        submit, procs, estimate, run = columns
        counts, totals, endings = state
        start = begun.start
        rows = submit.shape[0]
        arrived, active, now, waiting = counts[ARRIVED], counts[ACTIVE], counts[NOW], totals[WAITING]
        started = np.empty(endings.shape[0] + 1, np.int64)
        while budget > 0 and (arrived < rows or active > 0 or waiting > 0):
            budget -= 1
            now = min(endings[0, heap.INSTANT] if active > 0 else FOREVER, jobs[START, 0] if waiting > 0 else FOREVER)
            if arrived < rows and submit[arrived] < now:
                now = submit[arrived]
            forget_before(base, now)
            is_early = False
            while active > 0 and endings[0, heap.INSTANT] == now:
                row = endings[0, heap.ROW]
                heap.pop(endings, active)
                active -= 1
                if not has_room(base, 2):
                    base = grown(base)
                add(base, now, start[row] + booked(estimate[row]), procs[row])
                is_early = is_early or run[row] < estimate[row]
                totals[WAITED] += start[row] - submit[row]
                totals[ENDED] += 1
            if is_early and waiting > 0:
                compress(now, base, jobs, weights, waiting)
            count = 0
            while True:
                before = count
                count, base = start_due(
                    now, run, base, jobs, weights, waiting, endings, active, start, started, count
                )
                waiting, active = waiting - (count - before), active + (count - before)
                if arrived == rows or submit[arrived] > now:
                    break
                if waiting == jobs.shape[1]:
                    jobs, weights = wider(jobs), np.full(2 * waiting, weights[0])
                latest = latest_of(rules, now, estimate[arrived], deadline[arrived])
                slack = slack_of(rules, totals, procs[arrived])
                enter(jobs, waiting, arrived, procs[arrived], estimate[arrived], now, latest, slack)
                plan = (now, base, jobs, weights, waiting, rules, deadline[arrived] >= 0)
                if scheme == QOPS:
                    doublings = admit_by_qops(*plan)
                elif scheme == MSB:
                    doublings = admit_by_msb(*plan)
                elif scheme == MRT:
                    doublings = admit_by_mrt(*plan)
                else:
                    doublings = admit_by_slack(*plan)
                if doublings != REFUSED:
                    waiting += 1
                    totals[RELAXED] += doublings
                    promise[arrived] = latest_start(jobs, waiting, arrived)
                arrived += 1
            counts[LONGEST] = max(counts[LONGEST], waiting + count)
            if count > 0:
                note_kinds(started[:count], first_waiting(jobs, waiting), submit, now, begun.kind)
        counts[ARRIVED], counts[ACTIVE], counts[NOW], totals[WAITING] = arrived, active, now, waiting
        return bool(arrived >= rows and active == 0 and waiting == 0), base, jobs, weights

    return cast(Callable[..., tuple[bool, Int64Array, Int64Array, Float64Array]], run_admission)
