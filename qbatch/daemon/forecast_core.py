"""The forecast of a server in which jobs wait outside the engines too: at run limits, for their time, for other jobs.

The whole core is driven on, so its own run limits, dependencies and times decide.  Each job runs for its walltime, or the
run time that is expected of it, and ends well, nothing else is submitted, nobody releases a hold.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from msgspec import structs

from qbatch.daemon.core import passes
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.forecast import is_cut_short
from qbatch.daemon.forecast_run_times import run_time_of
from qbatch.planning.view import OVERDUE
from qbatch.wire.identifiers import JobKey


class AsExpected:
    """Jobs run for their walltimes, or for the run times that are expected of them, and end with 0."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known = {user: tuple(ended) for user, ended in core.run_times.items()}  # what ends from now on is none to go by

    def run_of(self, job: BatchJob) -> int:
        """Return the run time that is expected of a job, in microseconds."""
        return run_time_of(self._core, job, self._core.now, self._known)

    def status_of(self, job: BatchJob) -> int:
        """Return 0."""
        return 0


def waits_outside(core: Core) -> bool:
    """Whether any job waits that no engine knows and that may start without anybody's help."""
    return any(job.row < 0 for job in hopeful(core))


def hopeful(core: Core) -> Iterator[BatchJob]:
    """Yield the waiting jobs that start in time if nobody does anything: all but those that are held."""
    for job in core.live_jobs():
        for each in core.members(job):
            is_held = bool(each.hold) or not each.is_waiting
            if not is_held and not each.is_array and not each.is_pending:
                yield each


def forecast_core(core: Core, now: int, budget: float) -> tuple[dict[JobKey, tuple[int, int]], bool]:
    """Return start and end of each waiting job that starts, and whether the time ran out; the core is used up.

    Args:
        core: a copy of the live one.
        now: the instant from which to go on, in microseconds.
        budget: seconds of the wall that it may take.
    """
    deadline = time.monotonic() + budget
    _prepare(core, now)
    left = {job.key for job in hopeful(core)} | {key for pool in core.pools for key in pool.pending}
    found: dict[JobKey, tuple[int, int]] = {}
    at: int | None = now
    while at is not None and left:
        passes.advance(core, max(core.now, at))
        _note(core, found, left)
        if time.monotonic() > deadline:
            return found, True
        at = core.now if core.is_dirty else passes.next_due(core)
    return found, False


def _prepare(core: Core, now: int) -> None:
    """Let what runs end by its walltime or its expected run time, as an emulated job would."""
    core.settings = structs.replace(core.settings, executor="emulated", mail_command=())
    core.runs, core.faults = AsExpected(core), []
    core.now = max(core.now, now)
    for pool in core.pools:
        for job in pool.running.values():
            progress, work = job.under_way, run_time_of(core, job, core.now) * job.prepared.request.procs
            core.timers.pause(progress, core.now)
            progress.work = work
            if job.state is BatchState.SUSPENDED:
                continue
            if progress.done >= work:
                progress.work = progress.done + OVERDUE * progress.procs
            core.timers.resume(job, progress, core.now)
    core.take_effects()


def _note(core: Core, found: dict[JobKey, tuple[int, int]], left: set[JobKey]) -> None:
    for effect in core.take_effects():
        if not isinstance(effect, Happening) or effect.key is None:
            continue
        if effect.kind == "ended":
            left.discard(effect.key)
        if effect.kind != "started" or effect.key in found or effect.key not in left:
            continue
        job = core.find(effect.key)
        if job is None or not _is_on_trial(core.pool_of(job), job):
            end = effect.at if job is None or job.attempt is None or job.under_way.due < 0 else job.under_way.due
            found[effect.key] = (effect.at, end)
            left.discard(effect.key)


def _is_on_trial(pool: PoolState, job: BatchJob) -> bool:
    return job.holds_hosts and job.row >= 0 and is_cut_short(pool.engine, job.row)
