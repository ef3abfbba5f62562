"""How long forecasts let each job run: for its walltime, or as long as the last jobs of its user ran.

The core keeps the run times of the last jobs of every user that have ended, whatever the policy; they are in its snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, PoolState
from qbatch.planning.run_times import LAST, mean_run_time, outlasting
from qbatch.planning.view import Run


def run_time_of(core: Core, job: BatchJob, now: int, known: Mapping[str, Sequence[int]] | None = None) -> int:
    """Return how long a job is expected to run in all, in microseconds; one that runs goes on after ``now``, or reaches its
    walltime.

    ``known``: the run times to go by, by user, in place of those that the core keeps.
    """
    walltime = job.prepared.walltime
    if core.settings.forecast_run_times == "estimates":
        return walltime
    found = mean_run_time((core.run_times if known is None else known).get(job.user, ()), LAST, walltime)
    if found is None:
        return walltime
    return found if job.attempt is None else outlasting(found, job.walltime_used(now), walltime)


def run_times_in(core: Core, pool: PoolState, now: int) -> dict[int, int]:
    """Return the expected run times of the jobs with an engine by row, in microseconds; those that are not there run for their
    estimates.

    They are as the engine counts: while a user has a job suspended, it runs on for the engine, and takes as much longer.
    """
    view = pool.engine.view()
    by_estimates = core.settings.forecast_run_times == "estimates"
    found: dict[int, int] = {}
    for row in (*view.running, *view.suspended, *(() if by_estimates else view.queue.tolist())):
        job = pool.by_row[row]
        if job is None:
            continue
        run = view.running.get(row)
        stood = _stood_still(view.jobs[row].procs, run, job, now) if run is not None else 0
        if by_estimates and not stood:
            continue
        found[row] = (view.jobs[row].estimate if by_estimates else run_time_of(core, job, now)) + stood
    return found


def _stood_still(procs: int, run: Run, job: BatchJob, now: int) -> int:
    """Return for how long a job stood still that ran on for the engine, in microseconds on the ``procs`` that it asked for."""
    counted = (run.done + max(now - run.since, 0) * run.procs) // procs
    return max(counted - job.walltime_used(now), 0)
