"""One compiled run: the arrays that a loop (:mod:`qbatch.replay.kernels.loops`) starts with, and the schedule that it leaves.

This file imports the kernels: they load in a tenth of a second and compile in seconds, and only who needs them pays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qbatch.engine.admission import Admission
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import NO_PROMISE, Int64Array, Rejection, Schedule, Workload
from qbatch.planning.kernels import layout, lsf, plan
from qbatch.planning.kernels.jit import is_kept, is_loaded
from qbatch.planning.kernels.layout import (
    AdmissionState,
    Classes,
    JobColumns,
    LoopState,
    OnHosts,
    PlanArrays,
    PromiseColumns,
    QuantaState,
    SharesRun,
    StartColumns,
)
from qbatch.planning.kernels.live import uncompiled
from qbatch.planning.kernels.orders import FCFS, LOOP_ORDERS, PRIORITY
from qbatch.planning.kernels.profile import FOREVER, new_profile
from qbatch.planning.policy import ClassLoop, DeadlineLoop, ListLoop, Loop, PlanLoop, QuantumLoop, SharesLoop
from qbatch.planning.spaces import PoolSpace, space_of
from qbatch.replay.calendar import ProgressCallback
from qbatch.replay.kernels import loops

Run = TypeVar("Run", bound=Callable[..., Any])

BUDGET = 20_000
"""Rounds between two looks at progress and interruption."""

LITTLE = 4000
"""Jobs from which it is certain that plain Python takes longer."""

FEW = 100
"""Rounds between two looks at how long plain Python has taken."""

_plain_seconds = 0.2
"""How long loops may still run in plain Python in this process before the compiler is loaded, which takes longer."""

KEPT_SOONER = 5
"""How many times sooner than the compiler a kept object is loaded."""

_NONE, _NO_ROWS, _NO_PLACES = (np.empty(shape, np.int64) for shape in (0, (0, 0), (0, 0, 0)))
_NO_CLASSES = Classes(_NO_ROWS, _NONE, _NO_ROWS, _NO_PLACES, _NO_ROWS, _NO_PLACES)


def run_compiled(
    work: Workload, machine: Machine, loop: Loop, name: str, progress: ProgressCallback | None = None
) -> Schedule:
    """Return the schedule of a workload by a compiled loop that :func:`qbatch.planning.policy.loop_of` gave for the machine."""
    machine = space_of(machine).replayed_as(machine, is_planned=isinstance(loop, PlanLoop | DeadlineLoop)) or machine
    if isinstance(loop, PlanLoop):
        return _run_plan(work, machine, loop, name, progress)
    if isinstance(loop, DeadlineLoop):
        return _run_admission(work, machine, loop, name, progress)
    if isinstance(loop, QuantumLoop):
        return _run_quanta(work, machine, loop, name, progress)
    if isinstance(loop, SharesLoop):
        return _run_shares(work, machine, loop, name, progress)
    classes = loop.classify(work) if isinstance(loop, ClassLoop) else None
    rows = _that_fit(work, machine, classes)
    taken = work if rows is None else work.only(rows)
    if classes is not None and rows is not None:
        classes = classes._replace(jobs=np.ascontiguousarray(classes.jobs[:, rows]))
    schedule = _run_list(taken, machine, loop, classes, name, progress)
    if rows is None:
        return schedule
    return _with_rejected(schedule, work, rows, machine, loop.refusal if isinstance(loop, ClassLoop) else ("", ""))


def _that_fit(work: Workload, machine: Machine, classes: Classes | None) -> Int64Array | None:
    """Return the rows that some host could hold and some class takes: all others are rejected; None if there are no others."""
    fits = np.ones(len(work), np.bool_)
    if space_of(machine) is not PoolSpace:
        fits &= Admission(machine).holds(work.procs, np.asarray(work.memory))
    if classes is not None:
        fits &= classes.jobs[lsf.MAY] != 0
    return None if fits.all() else np.flatnonzero(fits)


def _with_rejected(
    schedule: Schedule, work: Workload, rows: Int64Array, machine: Machine, refusal: tuple[str, str]
) -> Schedule:
    """Return a schedule of some rows as one of all, the others rejected: by admission, or else with the policy's ``refusal``."""
    rejected = _rejected(work, np.setdiff1d(np.arange(len(work)), rows, assume_unique=True), machine, refusal)

    def spread(values: NDArray[Any], absent: int) -> NDArray[Any]:
        found = np.full(len(work), absent, values.dtype)
        found[rows] = values
        return found

    none = np.broadcast_to(np.int64(NO_PROMISE), len(work))
    start, kind, end = spread(schedule.start, -1), spread(schedule.kind, 0), spread(schedule.end, -1)
    host = None if schedule.host is None else spread(schedule.host, -1)
    return Schedule(work, schedule.policy, start, kind, none, none, end, schedule.queue_max, None, host, rejected)


def _rejected(work: Workload, rows: Int64Array, machine: Machine, refusal: tuple[str, str]) -> tuple[Rejection, ...]:
    """Return the rejections of rows when they arrive: by admission, or else with the policy's ``refusal``."""
    admission, found = Admission(machine), []
    for row in rows.tolist():
        procs, memory, submit = int(work.procs[row]), int(work.memory[row]), int(work.submit[row])
        asked = Job(number=0, submit=submit, procs=procs, estimate=int(work.estimate[row]), memory=memory)
        never = admission.refusal(asked)
        found.append(Rejection(row, submit, *(refusal if never is None else (never.code, never.text))))
    return tuple(found)


def _run_list(
    work: Workload, machine: Machine, loop: ListLoop | ClassLoop, classes: Classes | None, name: str,
    progress: ProgressCallback | None,
) -> Schedule:  # fmt: skip
    """Run a list scheduler."""
    rows, space = len(work), min(len(work), machine.procs) + 1
    begun, counts = _new_starts(rows), _new_counts(machine)
    ends, amounts, started = (np.empty(space, np.int64) for _ in range(3))
    state = LoopState(counts, np.empty((space, 2), np.int64), ends, amounts, np.empty(rows, np.int64), started)
    which = _which(machine, loop)
    on_hosts = _on_hosts(
        work, machine, loop, classes or _NO_CLASSES, is_kept=which in (loops.ROUND_HOSTS, loops.ROUND_LSF)
    )
    depth, order = (0, FCFS) if isinstance(loop, ClassLoop) else (loop.depth, LOOP_ORDERS.get(loop.order, PRIORITY))
    is_ordered = which in (loops.PASS_FCFS, loops.PASS_EASY, loops.PASS_HYBRID) and order != FCFS
    run_passes = loops.pass_loop(which, is_ordered)
    jobs = JobColumns(work.submit, work.procs, work.estimate, work.run)
    for run_some, budget in _stages(run_passes, rows):
        is_done = run_some(depth, order, jobs, state, begun, on_hosts, budget)
        _tell(progress, counts)
        if is_done:
            break
    none = np.broadcast_to(np.int64(NO_PROMISE), rows)
    host = on_hosts.where if machine.single_host and len(machine.hosts) > 1 else None
    start, longest = begun.start, int(counts[layout.LONGEST])
    return Schedule(work, name, start, begun.kind, none, none, start + work.run, longest, None, host)


def _run_quanta(
    work: Workload, machine: Machine, loop: QuantumLoop, name: str, progress: ProgressCallback | None
) -> Schedule:
    """Run a list scheduler with quanta, whose kernels nobody else has to load."""
    from qbatch.planning.kernels import quantum_round
    from qbatch.replay.kernels import quantum_loop

    rows, space = len(work), min(len(work), machine.procs) + 1
    begun, inner = _new_starts(rows), loop.inner
    on_hosts = _on_hosts(work, machine, inner, _NO_CLASSES, is_kept=True)
    may = Admission(machine).holds(work.procs, np.asarray(work.memory))
    counts, runs = np.zeros(quantum_round.COUNTS, np.int64), np.full((rows, quantum_round.RUN_COLUMNS), -1, np.int64)
    counts[quantum_round.QUANTUM :] = loop.quantum, loop.protect, loop.memory
    for place, column in enumerate((work.submit, work.procs, work.estimate, work.run, work.memory, work.used_memory, may)):
        runs[:, place] = column
    runs[:, quantum_round.IS_CUT] = 0
    lists, quanta = np.empty((2, space), np.int64), np.empty((space, quantum_round.QUANTUM_COLUMNS), np.int64)
    pieces = np.empty((rows + 2 * quantum_loop.PIECES_OF_A_ROUND * space, 6), np.int64)
    state = QuantaState(counts, runs, lists, quanta, pieces, on_hosts.hosts)
    arrays = np.empty(rows, np.int64), np.empty(space, np.int64)
    jobs, order = JobColumns(work.submit, work.procs, work.estimate, work.run), LOOP_ORDERS.get(inner.order, PRIORITY)
    for run_some, budget in _stages(quantum_loop.run_quanta, rows):
        is_done = run_some(inner.depth, order, jobs, *arrays, begun, on_hosts, state, budget)
        _tell(progress, counts)
        if is_done:
            break
        if len(state.pieces) < 2 * counts[quantum_round.PIECES] + 2 * quantum_loop.PIECES_OF_A_ROUND * space:
            state = state._replace(pieces=np.concatenate([state.pieces, np.empty_like(state.pieces)]))
    none, count = np.broadcast_to(np.int64(NO_PROMISE), rows), int(counts[quantum_round.PIECES])
    rejected, longest = _rejected(work, np.flatnonzero(~may), machine, ("", "")), int(counts[layout.LONGEST])
    end = runs[:, quantum_round.OVER].copy()
    host = runs[:, quantum_round.WHERE].copy() if machine.single_host and len(machine.hosts) > 1 else None
    kept = state.pieces[:count].copy() if count else None
    return Schedule(work, name, begun.start, begun.kind, none, none, end, longest, kept, host, rejected)


def _run_shares(
    work: Workload, machine: Machine, loop: SharesLoop, name: str, progress: ProgressCallback | None
) -> Schedule:
    """Run equal shares, whose kernels nobody else has to load."""
    from qbatch.planning.kernels import equal_shares
    from qbatch.replay.kernels import equal_shares_loop as shares_loop

    rows, begun = len(work), _new_starts(len(work))
    may = Admission(machine).holds(work.procs, np.asarray(work.memory))
    counts, runs = np.zeros(shares_loop.COUNTS, np.int64), np.full((rows, shares_loop.RUN_COLUMNS), -1, np.int64)
    for place, column in enumerate((work.procs, work.memory, work.used_memory, may, work.run * work.procs)):
        runs[:, place] = column
    runs[:, shares_loop.IS_CUT] = 0
    burst = int(np.unique(work.submit, return_counts=True)[1].max(initial=0))
    counts[shares_loop.QUANTUM :] = loop.quantum, FOREVER, burst
    state = equal_shares.new_state(machine, (loop.interval, loop.long, loop.memory), max(64, 2 * burst))
    run = SharesRun(counts, runs, np.empty((0, 6), np.int64), np.empty(0, np.int64))
    jobs = JobColumns(work.submit, work.procs, work.estimate, work.run)
    for run_some, budget in _stages(shares_loop.run_shares, rows):
        if state.counts[equal_shares.USED] + burst > len(state.jobs):
            state = equal_shares.grown(state)
        more = rows + counts[shares_loop.PIECES] + 2 * len(state.jobs)
        if len(run.pieces) < counts[shares_loop.PIECES] + len(state.jobs):
            run = run._replace(pieces=np.concatenate([run.pieces, np.empty((more, 6), np.int64)]))
        run = run._replace(listed=np.empty(len(state.jobs), np.int64))
        is_done = run_some(jobs, begun, state, run, budget)
        _tell(progress, counts)
        if is_done:
            break
    none, count = np.broadcast_to(np.int64(NO_PROMISE), rows), int(counts[shares_loop.PIECES])
    rejected, longest = _rejected(work, np.flatnonzero(~may), machine, ("", "")), int(counts[layout.LONGEST])
    end, where = runs[:, shares_loop.OVER].copy(), runs[:, shares_loop.WHERE].copy()
    host = where if machine.single_host and len(machine.hosts) > 1 else None
    kept = run.pieces[:count].copy() if count else None
    return Schedule(work, name, begun.start, begun.kind, none, none, end, longest, kept, host, rejected)


def _which(machine: Machine, loop: ListLoop | ClassLoop) -> int:
    """Return which pass, or which round over hosts, does in this space what a policy's loop says."""
    if isinstance(loop, ClassLoop):
        return loops.ROUND_LSF
    if space_of(machine) is not PoolSpace or loop.is_sticky or loop.order == "priority":
        return loops.ROUND_HOSTS
    if loop.is_stopping:
        return loops.PASS_FCFS
    return loops.PASS_EASY if loop.depth == 1 else loops.PASS_HYBRID


def _on_hosts(
    work: Workload, machine: Machine, loop: ListLoop | ClassLoop, classes: Classes, *, is_kept: bool
) -> OnHosts:
    """Return what a loop over hosts starts with; a pool is one host.  ``is_kept``: whether the loop is one over hosts."""
    places = space_of(machine).places(machine)
    cpus, sizes = [host.cpus for host in places], [host.memory for host in places]
    rows = len(work) if is_kept else 0
    rules = loop if isinstance(loop, ListLoop) else ListLoop("fcfs", 0)
    special, ended = [-1] * len(cpus), [0] * len(cpus)
    return OnHosts(
        memory=np.ascontiguousarray(work.memory[:rows], np.int64),
        hosts=np.array(
            [cpus, sizes, cpus, sizes, *([special, ended] if isinstance(loop, ClassLoop) else ())], np.int64
        ),
        where=np.full(rows, -1, np.int64),
        bypasses=np.zeros(rows),
        held=np.empty((3, rows if rules.is_sticky else 0), np.int64),
        holders=np.zeros(1, np.int64),
        weights=np.array(rules.weights, np.float64),
        is_stopping=rules.is_stopping,
        is_sticky=rules.is_sticky,
        classes=classes,
    )


def _run_plan(
    work: Workload, machine: Machine, loop: PlanLoop, name: str, progress: ProgressCallback | None
) -> Schedule:
    """Run conservative backfilling."""
    rows, space = len(work), min(len(work), machine.procs) + 1
    begun, counts = _new_starts(rows), _new_counts(machine)
    promises = PromiseColumns(np.full(rows, NO_PROMISE, np.int64), np.full(rows, NO_PROMISE, np.int64))
    arrays = PlanArrays(
        np.empty((rows, plan.QUEUE_COLUMNS), np.int64),
        np.full(rows, plan.NOBODY, np.int64),
        np.empty((rows, plan.SHAPE_COLUMNS), np.int64),
        np.full(uncompiled(plan.table_size)(rows), -1, np.int64),
        np.empty((2 * rows + 64, 2), np.int64),
        np.empty((plan.RELEASES, 2), np.int64),
        np.zeros(plan.STATE, np.int64),
    )
    endings, profile = np.empty((space, 2), np.int64), uncompiled(new_profile)(machine.procs, int(work.submit[0]), 256)
    jobs = JobColumns(work.submit, work.procs, work.estimate, work.run)
    run_plan = loops.plan_loop(("none", "arrival", "start", "scratch").index(loop.compression))
    for run_some, budget in _stages(run_plan, rows):
        is_done, profile = run_some(jobs, counts, endings, arrays, profile, begun, promises, budget)
        _tell(progress, counts)
        if is_done:
            break
    end, longest = begun.start + work.run, int(counts[layout.LONGEST])
    return Schedule(work, name, begun.start, begun.kind, promises.last, promises.first, end, longest)


def _stages(loop: Run, rows: int) -> Iterator[tuple[Run, int]]:
    """Give a loop and how many rounds it is to run, without end: plain Python while that takes less than loading the compiler."""
    global _plain_seconds
    if not is_loaded() and rows <= LITTLE:
        plain, sooner = uncompiled(loop), KEPT_SOONER if is_kept(loop) else 1
        while not is_loaded() and _plain_seconds > 0:
            begin = time.monotonic()
            yield plain, FEW
            _plain_seconds -= sooner * (time.monotonic() - begin)
    while True:
        yield loop, BUDGET


def _new_starts(rows: int) -> StartColumns:
    return StartColumns(np.full(rows, -1, np.int64), np.zeros(rows, np.int8))


def _new_counts(machine: Machine) -> Int64Array:
    counts = np.zeros(layout.COUNTS, np.int64)
    counts[layout.FREE_NOW] = machine.procs
    return counts


def _run_admission(
    work: Workload, machine: Machine, loop: DeadlineLoop, name: str, progress: ProgressCallback | None
) -> Schedule:
    """Run a scheduler that admits jobs by deadlines, whose kernels nobody else has to load."""
    from qbatch.planning.kernels import deadline_plan, deadlines
    from qbatch.policies.deadlines import refusal_of
    from qbatch.replay.kernels import admission_loop

    rows, space = len(work), min(len(work), machine.procs) + 1
    begun, promise = _new_starts(rows), np.full(rows, NO_PROMISE, np.int64)
    state = AdmissionState(_new_counts(machine), np.zeros(4, np.int64), np.empty((space, 2), np.int64))
    base = uncompiled(new_profile)(machine.procs, int(work.submit[0]), 256)
    plan_of, weights = np.zeros((deadlines.COLUMNS, 64), np.int64), np.full(64, loop.weight)
    rules = np.array([*loop.rules, loop.factor, loop.slack_factor, machine.procs], np.int64)
    deadline = np.ascontiguousarray(work.deadline, np.int64)
    jobs = JobColumns(work.submit, work.procs, work.estimate, work.run)
    run_admission = admission_loop.admission_loop(loop.rules[deadline_plan.SCHEME])
    for run_some, budget in _stages(run_admission, rows):
        is_done, base, plan_of, weights = run_some(
            rules, jobs, deadline, state, base, plan_of, weights, begun, promise, budget
        )
        _tell(progress, state.counts)
        if is_done:
            break
    ran, rejected = begun.start >= 0, []
    for row in np.flatnonzero(~ran).tolist():
        submit, estimate, until = int(work.submit[row]), int(work.estimate[row]), int(deadline[row])
        latest = int(uncompiled(admission_loop.latest_of)(rules, submit, estimate, until))
        asked = Job(number=0, submit=submit, procs=int(work.procs[row]), estimate=estimate, deadline=None if until < 0 else until)
        why = refusal_of(name, submit, asked, latest)
        rejected.append(Rejection(row, submit, why.code, why.text))
    end, longest = np.where(ran, begun.start + work.run, -1), int(state.counts[layout.LONGEST])
    return Schedule(work, name, begun.start, begun.kind, promise, promise, end, longest, rejected=tuple(rejected))


def _tell(progress: ProgressCallback | None, counts: Int64Array) -> None:
    if progress is not None:
        progress(int(counts[layout.ARRIVED]), int(counts[layout.NOW]))
