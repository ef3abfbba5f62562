"""One run of a sweep, on a worker.

A worker keeps the last log and workload: the runs of several policies on one workload follow each
other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qbatch.metrics import measure
from qbatch.metrics.per_job import Metrics
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.simulation import Options, prepare, run
from qbatch.simulation.feedback import feedback_source
from qbatch.simulation.prepare import choose_procs
from qbatch.sweeps.code import policy_by_digest
from qbatch.sweeps.grid import ALL, NONE, Case, Context
from qbatch.workloads import Log
from qbatch.workloads.feedback import feedback_of
from qbatch.workloads.generate import read_model
from qbatch.workloads.resource_rows import resources_of
from qbatch.workloads.transform.load import with_origin
from qbatch.workloads.transform.resampling import resampled

_CACHED: dict[str, tuple[Any, Any]] = {}
"""The last log and workload, each with its key."""

TRIED_JOBS = 20
"""Number of jobs with which each policy is tried on each log and machine before the long work."""


def make_run(context: Context, case: Case) -> Metrics:
    """Replay a case and return its metrics.

    Raises:
        QbatchError: the case cannot be run.
    """
    return measure(_schedule_of(context, case, None))


def try_run(context: Context, case: Case) -> None:
    """Replay the first jobs of a case, to test whether the policy works on this log and machine at
    all.

    Raises:
        Exception: any error of the policy.
    """
    _schedule_of(context, case, TRIED_JOBS)


def _schedule_of(context: Context, case: Case, first: int | None) -> Schedule:
    """Return the schedule of a case, or of its first jobs."""
    log = log_of(context, case)
    machine = machine_of(context, case, log)
    work = workload_of(context, case, log, machine)
    if first is not None:
        work = work.only(np.arange(min(first, len(work))))
    jobs: Any = work
    if context.grid.closed:
        jobs = feedback_source(log, work, machine, feedback_of(log), case.load)
    policy = policy_by_digest(case.policy, context.policies[case.policy])
    return run(jobs, machine, policy, is_audited=context.grid.audit)


def log_of(context: Context, case: Case) -> Log:
    """Return the log of a case: read or generated, and resampled if that is asked for."""
    source = context.logs[case.log]
    if source is not None and case.resample == NONE:
        return source
    asked = (context.key, case.log, case.resample, case.seed)
    if _CACHED.get("log", ((), None))[0] != asked:
        seed = case.seed or 0
        log = read_model(context.grid.log[case.log])(seed) if source is None else source
        if case.resample != NONE:
            log = resampled(with_origin(log), case.resample, seed)
        _CACHED["log"] = asked, log
    found: Log = _CACHED["log"][1]
    return found


def machine_of(context: Context, case: Case, log: Log) -> Machine:
    """Return the machine of a case."""
    machine = context.machines[case.machine]
    return one_host(choose_procs(log, None)) if machine is None else machine


def workload_of(context: Context, case: Case, log: Log, machine: Machine) -> Workload:
    """Return the jobs of a case."""
    asked = (
        context.key,
        case.log,
        case.machine,
        case.window,
        case.resample,
        case.load,
        case.estimates,
        case.seed,
    )
    if _CACHED.get("workload", ((), None))[0] != asked:
        grid = context.grid
        since, _, before = (
            ("", "", "")
            if grid.window[case.window] == ALL
            else grid.window[case.window].partition("..")
        )
        options = Options(
            estimates=case.estimates,
            seed=case.seed or 0,
            kill=grid.kill,
            since=since or None,
            before=before or None,
            first=grid.first,
            warmup=grid.warmup,
            load=case.load,
        )
        rows, source = context.resources[case.log], context.logs[case.log]
        if rows is not None and source is not None and case.resample != NONE:
            rows = resources_of(rows, source, log)
        _CACHED["workload"] = asked, prepare(log, machine, options, resources=rows)
    found: Workload = _CACHED["workload"][1]
    return found
