"""How long forecasts let each job run: for its walltime, or as long as the last jobs of its user ran.

The core keeps the run times of the last jobs of every user that have ended, whatever the policy; they are in its snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, PoolState
from qbatch.planning.run_times import LAST, mean_run_time, outlasting


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
    """Return the expected run times of the jobs with an engine by row; those that are not there run for their estimates."""
    if core.settings.forecast_run_times == "estimates":
        return {}
    view = pool.engine.view()
    jobs = [pool.by_row[row] for row in (*view.running, *view.suspended, *view.queue.tolist())]
    return {job.row: run_time_of(core, job, now) for job in jobs if job is not None}
