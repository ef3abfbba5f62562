"""Run one workload, or another source of jobs, under one policy, compiled if the policy allows it."""

from __future__ import annotations

import numpy as np

from qbatch.engine.audit import breaches
from qbatch.model.errors import AuditError, UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import Schedule, Workload
from qbatch.planning.kernels.jit import load
from qbatch.planning.kernels.tables import INTERRUPTIONS
from qbatch.planning.policy import PlanRules, Policy, compiled_of, name_of
from qbatch.replay.calendar import Calendar, Observer, ProgressCallback
from qbatch.replay.sources import Source

DRIVERS = ("auto", "compiled", "engine")
"""The drivers of a replay: the compiled loop if there is one; the compiled loop or an error; always the engine."""

MANY, MANY_MORE = 20_000, 100_000
"""With this many jobs a policy in Python is run by a compiled loop, if it is in the cache; and even if it must be compiled."""

_MOST_WORK = 2.0**61


def run(
    jobs: Workload | Source,
    machine: Machine,
    policy: Policy,
    *,
    driver: str = "auto",
    is_audited: bool = False,
    observe: Observer | None = None,
    progress: ProgressCallback | None = None,
) -> Schedule:
    """Return the schedule of a policy for a workload, or for another source, on the machine.

    Raises:
        UsageError: ``driver="compiled"`` for a policy, a machine or a source that has no compiled loop.
        DecisionError: the policy asked for something that may not happen.
        AuditError: an invariant does not hold (audited runs).
    """
    workload = jobs if isinstance(jobs, Workload) else None
    compiled = compiled_of(policy, machine) if workload is not None else None
    is_interrupting = compiled is None or compiled.needs.gives == INTERRUPTIONS
    why = "on this machine"
    if compiled is not None and workload is not None and is_interrupting and not _counts_work(workload):
        compiled, why = None, "for jobs of so much work"
    if driver == "compiled" and compiled is None:
        raise UsageError(f"policy {name_of(policy)} has no compiled loop {why}; leave out --driver compiled")
    is_plain = driver == "auto" and observe is None and not is_audited
    if workload is not None and compiled is None and is_plain and is_worth_a_loop(workload):
        schedule = run_around_python(workload, machine, policy, progress)
    elif driver == "engine" or compiled is None or workload is None or observe is not None:
        schedule = Calendar(jobs, machine, policy, is_audited=is_audited).run(observe, progress)
    else:
        # The kernels load in a tenth of a second and compile in seconds: import them only if needed.
        from qbatch.replay.compiled import run_compiled

        if driver == "compiled":
            load()
        schedule = run_compiled(workload, machine, compiled, name_of(policy), progress)
    if is_audited:
        keeps = bool(getattr(policy, "takes_deadlines", False))
        facts = {"is_one_pool": machine.is_one_pool, "has_trials": is_interrupting, "keeps_deadlines": keeps}
        found = breaches(schedule, hosts=machine.hosts, **facts)
        work = schedule.workload
        if _breaks_promises(policy) or schedule.pieces is not None or (work.run > work.estimate).any():
            # A plan from scratch keeps no promises: it shows how promises break (Fig. 4).  Trial runs, and jobs
            # that outlive their estimates or predictions, delay promised starts, and the engine records it.
            found = [text for text in found if "after its promise" not in text]
        if found:
            raise AuditError(f"audit of {schedule.policy}: {found[0]}")
    return schedule


def is_worth_a_loop(work: Workload) -> bool:
    """Return whether the compiled loop around a policy in Python is worth loading, or compiling, for a workload."""
    if len(work) < MANY or not _counts_work(work):
        return False
    from qbatch.replay.loop_engine import is_warm

    return len(work) >= MANY_MORE or is_warm()


def is_compiling(work: Workload, machine: Machine, policy: Policy) -> bool:
    """Return whether a replay of a workload will probably compile its loop first."""
    from qbatch.replay import compiled, loop_engine

    found = compiled_of(policy, machine)
    if found is not None:
        return not compiled.is_warm(found)
    return is_worth_a_loop(work) and not loop_engine.is_warm()


def run_around_python(
    work: Workload, machine: Machine, policy: Policy, progress: ProgressCallback | None = None
) -> Schedule:  # fmt: skip
    """Return the schedule of a policy in Python, by the compiled loop.

    Raises:
        DecisionError: the policy asked for something that may not happen.
    """
    from qbatch.replay.loop_engine import LoopEngine

    return LoopEngine(work, machine, policy).run(progress)


def _counts_work(work: Workload) -> bool:
    """Return whether the work of every job fits the integers of compiled code, in processor-microseconds."""
    return bool((np.maximum(work.run, work.estimate).astype(np.float64) * work.procs < _MOST_WORK).all())


def _breaks_promises(policy: Policy) -> bool:
    rules = getattr(policy, "rules", None)
    is_from_scratch = isinstance(rules, PlanRules) and rules.compression == "scratch"
    return is_from_scratch or bool(getattr(policy, "breaks_promises", False))
