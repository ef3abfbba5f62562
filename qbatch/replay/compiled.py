"""One compiled run: the arrays that a loop (:mod:`qbatch.replay.kernels.loops`) starts with, and the schedule that it leaves.

This file imports the kernels: they load in a tenth of a second and compile in seconds, and only who needs them pays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.engine.admission import Admission
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import NO_PROMISE, Int64Array, Rejection, Schedule, Workload
from qbatch.planning.kernels import lsf, plan
from qbatch.planning.kernels.host_round import OnHosts
from qbatch.planning.kernels.orders import FCFS, ORDERS, PRIORITY
from qbatch.planning.kernels.profile import new_profile
from qbatch.planning.kernels.types import Classes
from qbatch.planning.policy import ClassLoop, HostLoop, Loop, PassLoop, PlanLoop
from qbatch.replay.calendar import ProgressCallback
from qbatch.replay.kernels import loops

BUDGET = 20_000
"""Rounds between two looks at progress and interruption."""

_PASSES = {"fcfs": loops.PASS_FCFS, "easy": loops.PASS_EASY, "hybrid": loops.PASS_HYBRID}
_NONE, _NO_ROWS, _NO_PLACES = (np.empty(shape, np.int64) for shape in (0, (0, 0), (0, 0, 0)))
_NO_CLASSES = Classes(_NO_ROWS, _NONE, _NO_ROWS, _NO_PLACES, _NO_ROWS, _NO_PLACES)


def run_compiled(
    work: Workload, machine: Machine, loop: Loop, name: str, progress: ProgressCallback | None = None
) -> Schedule:
    """Return the schedule of a workload by a compiled loop."""
    if isinstance(loop, PlanLoop):
        return _run_plan(work, machine, loop, name, progress)
    classes = loop.classify(work) if isinstance(loop, ClassLoop) else None
    rows = _that_fit(work, machine, classes)
    taken = work if rows is None else _taken(work, rows)
    if classes is not None and rows is not None:
        classes = classes._replace(jobs=np.ascontiguousarray(classes.jobs[:, rows]))
    schedule = _run_list(taken, machine, loop, classes, name, progress)
    if rows is None:
        return schedule
    return _with_rejected(schedule, work, rows, machine, loop.refusal if isinstance(loop, ClassLoop) else ("", ""))


def _that_fit(work: Workload, machine: Machine, classes: Classes | None) -> Int64Array | None:
    """Return the rows that some host could hold and some class takes: all others are rejected; None if there are no others."""
    fits = np.ones(len(work), np.bool_)
    if not machine.is_one_pool:
        fits &= Admission(machine).holds(work.procs, np.asarray(work.memory))
    if classes is not None:
        fits &= classes.jobs[lsf.MAY] != 0
    return None if fits.all() else np.flatnonzero(fits)


def _taken(work: Workload, rows: Int64Array) -> Workload:
    columns = ("submit", "procs", "estimate", "run", "memory")
    return work.changed(**{name: np.asarray(getattr(work, name))[rows] for name in columns})


def _with_rejected(
    schedule: Schedule, work: Workload, rows: Int64Array, machine: Machine, refusal: tuple[str, str]
) -> Schedule:
    """Return a schedule of some rows as one of all, the others rejected: by admission, or else with the policy's ``refusal``."""
    admission, rejected = Admission(machine), []
    for row in np.setdiff1d(np.arange(len(work)), rows, assume_unique=True).tolist():
        procs, memory, submit = int(work.procs[row]), int(work.memory[row]), int(work.submit[row])
        asked = Job(number=0, submit=submit, procs=procs, estimate=int(work.estimate[row]), memory=memory)
        never = admission.refusal(asked)
        rejected.append(Rejection(row, submit, *(refusal if never is None else (never.code, never.text))))

    def spread(values: NDArray[Any], absent: int) -> NDArray[Any]:
        found = np.full(len(work), absent, values.dtype)
        found[rows] = values
        return found

    none = np.broadcast_to(np.int64(NO_PROMISE), len(work))
    start, kind, end = spread(schedule.start, -1), spread(schedule.kind, 0), spread(schedule.end, -1)
    host = None if schedule.host is None else spread(schedule.host, -1)
    return Schedule(work, schedule.policy, start, kind, none, none, end, schedule.queue_max, None, host, tuple(rejected))


def _run_list(
    work: Workload, machine: Machine, loop: PassLoop | HostLoop | ClassLoop, classes: Classes | None, name: str,
    progress: ProgressCallback | None,
) -> Schedule:  # fmt: skip
    """Run a list scheduler."""
    rows, space = len(work), min(len(work), machine.procs) + 1
    start, kind = np.full(rows, -1, np.int64), np.zeros(rows, np.int8)
    counts = np.zeros(8, np.int64)
    counts[loops.FREE_NOW] = machine.procs
    ends, amounts, started = (np.empty(space, np.int64) for _ in range(3))
    state = (counts, np.empty((space, 2), np.int64), ends, amounts, np.empty(rows, np.int64), started)
    on_hosts = _on_hosts(work, machine, loop, classes or _NO_CLASSES)
    depth, order = (0, FCFS) if isinstance(loop, ClassLoop) else (loop.depth, ORDERS.get(loop.order, PRIORITY))
    if isinstance(loop, PassLoop):
        run_passes = loops.pass_loop(_PASSES[loop.which], order != FCFS)
    else:
        run_passes = loops.pass_loop(loops.ROUND_LSF if isinstance(loop, ClassLoop) else loops.ROUND_HOSTS, False)
    columns = (work.submit, work.procs, work.estimate, work.run)
    while not run_passes(depth, order, *columns, *state, start, kind, on_hosts, BUDGET):
        _tell(progress, counts)
    _tell(progress, counts)
    none = np.broadcast_to(np.int64(NO_PROMISE), rows)
    host = on_hosts.where if machine.single_host and len(machine.hosts) > 1 else None
    return Schedule(work, name, start, kind, none, none, start + work.run, int(counts[loops.LONGEST]), None, host)


def _on_hosts(work: Workload, machine: Machine, loop: PassLoop | HostLoop | ClassLoop, classes: Classes) -> OnHosts:
    """Return what a loop over hosts starts with; a machine of one pool is one host (:mod:`qbatch.policies.on_hosts`)."""
    cpus, sizes = [machine.procs], [0]
    if not machine.is_one_pool:
        cpus, sizes = [host.cpus for host in machine.hosts], [host.memory for host in machine.hosts]
    rows = 0 if isinstance(loop, PassLoop) else len(work)
    rules = loop if isinstance(loop, HostLoop) else HostLoop("fcfs", 0)
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
    start, kind = np.full(rows, -1, np.int64), np.zeros(rows, np.int8)
    promise, first_promise = np.full(rows, NO_PROMISE, np.int64), np.full(rows, NO_PROMISE, np.int64)
    counts = np.zeros(8, np.int64)
    counts[loops.FREE_NOW] = machine.procs
    arrays = (
        np.empty((rows, plan.QUEUE_COLUMNS), np.int64),
        np.full(rows, plan.NOBODY, np.int64),
        np.empty((rows, plan.SHAPE_COLUMNS), np.int64),
        np.full(plan.table_size(rows), -1, np.int64),
        np.empty((2 * rows + 64, 2), np.int64),
        np.empty((plan.RELEASES, 2), np.int64),
        np.zeros(plan.STATE, np.int64),
    )
    endings, profile = np.empty((space, 2), np.int64), new_profile(machine.procs, int(work.submit[0]), 256)
    columns = (work.submit, work.procs, work.estimate, work.run)
    run_plan = loops.plan_loop(("none", "arrival", "start", "scratch").index(loop.compression))
    is_done = False
    while not is_done:
        is_done, profile = run_plan(
            *columns, counts, endings, *arrays, profile, start, kind, promise, first_promise, BUDGET
        )
        _tell(progress, counts)
    return Schedule(work, name, start, kind, promise, first_promise, start + work.run, int(counts[loops.LONGEST]))


def _tell(progress: ProgressCallback | None, counts: Int64Array) -> None:
    if progress is not None:
        progress(int(counts[loops.ARRIVED]), int(counts[loops.NOW]))
