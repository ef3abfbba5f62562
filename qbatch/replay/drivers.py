"""Run one workload under one policy, compiled where the policy allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qbatch.engine.admission import Admission
from qbatch.engine.audit import breaches
from qbatch.model.errors import AuditError, UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import NO_PROMISE, Schedule, Workload
from qbatch.planning.policy import HostLoop, Loop, PassLoop, PlanLoop, Policy, loop_of, name_of
from qbatch.replay.calendar import Calendar, Observer, Progress

if TYPE_CHECKING:
    from qbatch.replay.kernels.loops import OnHosts

DRIVERS = ("auto", "compiled", "engine")
"""Which driver replays: the compiled loop where there is one, that or nothing, or always the engine."""

_BUDGET = 20_000
"""Rounds between two looks at progress and interruption."""


def run(
    workload: Workload,
    machine: Machine,
    policy: Policy,
    *,
    driver: str = "auto",
    is_audited: bool = False,
    observe: Observer | None = None,
    progress: Progress | None = None,
) -> Schedule:
    """Return the schedule that the policy makes of the workload on the machine.

    Raises:
        UsageError: ``driver="compiled"`` for a policy or a machine that has no compiled loop.
        DecisionError: the policy asked for something that may not happen.
        AuditError: an invariant does not hold (audited runs).
    """
    loop = loop_of(policy, machine)
    if isinstance(loop, HostLoop) and not _all_fit(workload, machine):
        loop = None
    if driver == "compiled" and loop is None:
        raise UsageError(f"policy {name_of(policy)} has no compiled loop on this machine; leave out --driver compiled")
    if driver == "engine" or loop is None or observe is not None:
        schedule = Calendar(workload, machine, policy, is_audited=is_audited).run(observe, progress)
    else:
        schedule = _run_compiled(workload, machine, loop, name_of(policy), progress)
    if is_audited:
        found = breaches(schedule, is_one_pool=machine.is_one_pool, hosts=machine.hosts)
        if _breaks_promises(policy) or schedule.pieces is not None:
            # A plan made from scratch owes no promise: it is there to show how promises break (Fig. 4).  Quanta put off
            # what was promised, and the engine records it.
            found = [text for text in found if "after its promise" not in text]
        if found:
            raise AuditError(f"audit of {schedule.policy}: {found[0]}")
    return schedule


def _all_fit(workload: Workload, machine: Machine) -> bool:
    """Tell whether every job could run on some host: the engine refuses the others, a compiled loop would wait for ever."""
    if machine.is_one_pool:
        return True
    return bool(Admission(machine).holds(workload.procs, np.asarray(workload.memory)).all())


def _breaks_promises(policy: Policy) -> bool:
    loop = getattr(policy, "loop", None)
    return isinstance(loop, PlanLoop) and loop.compression == "scratch"


def _run_compiled(
    workload: Workload, machine: Machine, loop: Loop, name: str, progress: Progress | None
) -> Schedule:
    # The kernels load in a tenth of a second and compile in seconds: only who needs them pays.
    from qbatch.planning.kernels import plan
    from qbatch.planning.kernels.orders import ORDERS, PRIORITY
    from qbatch.planning.kernels.profile import new_profile
    from qbatch.replay.kernels import loops

    rows, procs = len(workload), machine.procs
    space = min(rows, procs) + 1
    start = np.full(rows, -1, np.int64)
    kind = np.zeros(rows, np.int8)
    counts = np.zeros(8, np.int64)
    counts[loops.FREE_NOW] = procs
    endings = np.empty((space, 2), np.int64)
    columns = (workload.submit, workload.procs, workload.estimate, workload.run)
    promise = first_promise = np.broadcast_to(np.int64(NO_PROMISE), rows)

    def tell() -> None:
        if progress is not None:
            progress(int(counts[loops.ARRIVED]), int(counts[loops.NOW]))

    host = None
    if not isinstance(loop, PlanLoop):
        ends, amounts, started = (np.empty(space, np.int64) for _ in range(3))
        waiting = np.empty(rows, np.int64)
        which = loops.PASS_HOSTS
        if isinstance(loop, PassLoop):
            which = {"fcfs": loops.PASS_FCFS, "easy": loops.PASS_EASY, "hybrid": loops.PASS_HYBRID}[loop.which]
        on_hosts = _on_hosts(workload, machine, loop)
        state = (counts, endings, ends, amounts, waiting, started)
        order = ORDERS.get(loop.order, PRIORITY)
        loop_of_policy = loops.pass_loop(which, loop.order != "fcfs" and which != loops.PASS_HOSTS)
        while not loop_of_policy(loop.depth, order, *columns, *state, start, kind, on_hosts, _BUDGET):
            tell()
        if machine.single_host and len(machine.hosts) > 1:
            host = on_hosts.where
    else:
        how = ("none", "arrival", "start", "scratch").index(loop.compression)
        promise, first_promise = np.full(rows, NO_PROMISE, np.int64), np.full(rows, NO_PROMISE, np.int64)
        arrays = (
            np.empty((rows, plan.QUEUE_COLUMNS), np.int64),
            np.full(rows, plan.NOBODY, np.int64),
            np.empty((rows, plan.SHAPE_COLUMNS), np.int64),
            np.full(plan.table_size(rows), -1, np.int64),
            np.empty((2 * rows + 64, 2), np.int64),
            np.empty((plan.RELEASES, 2), np.int64),
            np.zeros(plan.STATE, np.int64),
        )
        profile = new_profile(procs, int(workload.submit[0]), 256)
        is_done = False
        run_plan = loops.plan_loop(how)
        while not is_done:
            is_done, profile = run_plan(
                *columns, counts, endings, *arrays, profile, start, kind, promise, first_promise, _BUDGET
            )
            tell()
    return Schedule(
        workload, name, start, kind, promise, first_promise, start + workload.run, int(counts[loops.LONGEST]), None, host
    )


def _on_hosts(workload: Workload, machine: Machine, loop: PassLoop | HostLoop) -> OnHosts:
    """Return what a loop over hosts starts with; a machine of one pool is one host (:mod:`qbatch.policies.on_hosts`)."""
    from qbatch.replay.kernels.loops import OnHosts

    if isinstance(loop, PassLoop):
        nothing, no_floats, none = np.empty(0, np.int64), np.empty(0), np.empty((4, 0), np.int64)
        return OnHosts(nothing, none, nothing, no_floats, none, no_floats, False, False)
    cpus, sizes = [machine.procs], [0]
    if not machine.is_one_pool:
        cpus, sizes = [host.cpus for host in machine.hosts], [host.memory for host in machine.hosts]
    rows = len(workload)
    return OnHosts(
        memory=np.ascontiguousarray(workload.memory, np.int64),
        hosts=np.array([cpus, sizes, cpus, sizes], np.int64),
        where=np.full(rows, -1, np.int64),
        bypasses=np.zeros(rows),
        held=np.empty((3, rows if loop.is_sticky else 0), np.int64),
        weights=np.array(loop.weights, np.float64),
        is_stopping=loop.is_stopping,
        is_sticky=loop.is_sticky,
    )
