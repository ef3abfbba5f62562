"""Run one workload, or another source of jobs, under one policy, compiled if the policy allows
it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbatch.engine.audit import breaches
from qbatch.model.errors import AuditError, UsageError
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import MICROSECONDS, Schedule, Workload
from qbatch.planning.kernels.jit import load
from qbatch.planning.kernels.tables import INTERRUPTIONS
from qbatch.planning.policy import PlanRules, Policy, compiled_of, name_of
from qbatch.policies import load_policy
from qbatch.simulation.calendar import Calendar, Observer, ProgressCallback
from qbatch.simulation.prepare import choose_procs, prepare
from qbatch.simulation.sources import Source
from qbatch.workloads import Log
from qbatch.workloads.log import Column
from qbatch.workloads.outages import Outage

DRIVERS = ("auto", "compiled", "engine")
"""The drivers of a replay: the compiled loop if there is one; the compiled loop or an error; always
the engine."""

MANY, MANY_MORE = 20_000, 100_000
"""With this many jobs a policy in Python is run by a compiled loop, if it is in the cache; and even
if it must be compiled."""

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
    outages: Sequence[Outage] = (),
) -> Schedule:
    """Return the schedule of a policy for a workload, or for another source, on the machine;
    ``outages``: when its hosts are closed.

    Raises:
        UsageError: ``driver="compiled"`` for a policy, a machine or a source that has no compiled
            loop.
        DecisionError: the policy asked for something that may not happen.
        AuditError: an invariant does not hold (audited runs).
    """
    workload = jobs if isinstance(jobs, Workload) else None
    compiled = compiled_of(policy, machine) if workload is not None else None
    is_interrupting = compiled is None or compiled.needs.gives == INTERRUPTIONS
    why = "on this machine"
    if (
        compiled is not None
        and workload is not None
        and is_interrupting
        and not _counts_work(workload)
    ):
        compiled, why = None, "for jobs with more work than it can count"
    if outages:
        compiled, why = None, "with outages"
    if driver == "compiled" and compiled is None:
        raise UsageError(
            f"policy {name_of(policy)} has no compiled loop {why}; leave out --driver compiled"
        )
    is_plain = driver == "auto" and observe is None and not is_audited
    is_plain = is_plain and not (machine.reservations or outages)
    if workload is not None and compiled is None and is_plain and is_worth_a_loop(workload):
        schedule = run_around_python(workload, machine, policy, progress)
    elif driver == "engine" or compiled is None or workload is None or observe is not None:
        live = Calendar(jobs, machine, policy, is_audited=is_audited, outages=outages)
        schedule = live.run(observe, progress)
    else:
        # The kernels load in a tenth of a second and compile in seconds: import them only if
        # needed.
        from qbatch.simulation.compiled import CompiledReplay

        if driver == "compiled":
            load()
        schedule = CompiledReplay(workload, machine, compiled, name_of(policy)).run(progress)
    if is_audited:
        keeps = bool(getattr(policy, "takes_deadlines", False))
        facts = {
            "is_one_pool": machine.is_one_pool,
            "has_trials": is_interrupting,
            "keeps_deadlines": keeps,
        }
        found = breaches(schedule, hosts=machine.hosts, **facts)
        work, rules = schedule.workload, getattr(policy, "rules", None)
        is_from_scratch = isinstance(rules, PlanRules) and rules.compression == "scratch"
        breaks = is_from_scratch or getattr(policy, "breaks_promises", False)
        breaks = breaks or bool(outages) or schedule.pieces is not None
        if breaks or (work.run > work.estimate).any():
            # A plan from scratch keeps no promises: it shows how promises break (Fig. 4).  Trial
            # runs, closed hosts, and jobs that outlive estimates or predictions, delay promises, and
            # the engine records it.
            found = [text for text in found if "after its promise" not in text]
        if found:
            raise AuditError(f"audit of {schedule.policy}: {found[0]}")
    return schedule


def is_worth_a_loop(work: Workload) -> bool:
    """Return whether the compiled loop around a policy in Python is worth loading, or compiling,
    for a workload."""
    if len(work) < MANY or not _counts_work(work):
        return False
    from qbatch.simulation.loop_engine import is_warm

    return len(work) >= MANY_MORE or is_warm()


def is_compiling(work: Workload, machine: Machine, policy: Policy) -> bool:
    """Return whether a replay of a workload will probably compile its loop first."""
    from qbatch.simulation import compiled, loop_engine

    found = compiled_of(policy, machine)
    if found is not None:
        return not compiled.is_warm(found)
    return is_worth_a_loop(work) and not loop_engine.is_warm()


def run_around_python(
    work: Workload, machine: Machine, policy: Policy, progress: ProgressCallback | None = None
) -> Schedule:
    """Return the schedule of a policy in Python, by the compiled loop."""
    from qbatch.simulation.loop_engine import LoopEngine

    return LoopEngine(work, machine, policy).run(progress)


def easy_responses(log: Log, progress: ProgressCallback | None = None) -> Column:
    """Return the response of each row under EASY on the log's own machine, as :func:`responses_of`.

    It is the reference schedule of deadlines (docs/spec/papers.md 2.8, rule 16).
    """
    machine = one_host(choose_procs(log, None))
    return responses_of(
        log, run(prepare(log, machine), machine, load_policy("easy"), progress=progress)
    )


def responses_of(log: Log, schedule: Schedule) -> Column:
    """Return the response of each row of a log in a schedule of it, in whole seconds (floored); -1:
    it did not run."""
    work = schedule.workload
    responses = np.full(len(log), -1, np.int64)
    responses[work.log_row] = np.where(
        schedule.ran, (schedule.end - work.submit) // MICROSECONDS, -1
    )
    return responses


def _counts_work(work: Workload) -> bool:
    """Return whether the work of every job fits the integers of compiled code, in
    processor-microseconds."""
    return bool(
        (np.maximum(work.run, work.estimate).astype(np.float64) * work.procs < _MOST_WORK).all()
    )
