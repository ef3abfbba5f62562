"""When each waiting job is expected to start: the batch server's core, driven by itself from the present state.

A copy of the core goes on in virtual time, instant by instant, as the daemon's own does (:mod:`qbatch.daemon.core.passes`), so
the policy, run limits, dependencies and start times decide as they will.  Each job runs for its walltime, or for the run time
that is expected of it, and ends well; nothing else is submitted, nobody releases a hold.  It goes on until what was asked for
is known: what a forecast costs is bounded by the question, not by the queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import structs

from qbatch.daemon.core import passes
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.daemon.core.states import BatchState
from qbatch.model.progress import time_left
from qbatch.planning.policy import Phased
from qbatch.planning.run_times import LAST, mean_run_time, outlasting
from qbatch.planning.view import OVERDUE
from qbatch.wire.identifiers import ARRAY, JobKey

ALL = 1 << 62
"""A number of starts that is never reached: all that come."""


class Expected(NamedTuple):
    """When a job is expected to start and to end, in microseconds."""

    start: int
    end: int


class ExpectedStarts(NamedTuple):
    """``found``: by job.  ``is_whole``: it holds every start that comes by itself.  ``was_cut``: its time ran out."""

    found: dict[JobKey, Expected]
    is_whole: bool
    was_cut: bool


class AsExpected:
    """Jobs run for their walltimes, or for the run times that are expected of them, and end with 0."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._by_user = {user: tuple(ended) for user, ended in core.run_times.items()}  # what ends from now on is none to go by

    def run_of(self, job: BatchJob) -> int:
        """Return how long a job is expected to run in all, in microseconds.

        That is its walltime, or how long the last jobs of its user ran on average; if it has run for longer than that it goes
        on, at most to its walltime.
        """
        walltime = job.prepared.walltime
        if self._core.settings.forecast_run_times == "estimates":
            return walltime
        found = mean_run_time(self._by_user.get(job.user, ()), LAST, walltime)
        if found is None:
            return walltime
        return found if job.attempt is None else outlasting(found, job.walltime_used(self._core.now), walltime)

    def status_of(self, job: BatchJob) -> int:
        """Return 0."""
        return 0


def forecast(core: Core, now: int, *, first: int = ALL, keys: Iterable[JobKey] = (), budget: float = ALL) -> ExpectedStarts:
    """Return when waiting jobs start and end: those that were asked for, and whatever else became known meanwhile.

    A start is known when it comes, and so is the end then, unless the policy may still suspend or resize the job: then the end
    is waited for.  A job that is asked for and never starts is looked for until nothing is due any more.

    Args:
        core: a copy of the live one; it is used up.
        now: the instant from which to go on, in microseconds.
        first: how many jobs are asked for, the first to start.
        keys: jobs that are asked for as well; of an array whichever of its jobs starts first.
        budget: seconds of the wall that it may take.
    """
    deadline = time.monotonic() + budget
    _prepare(core, now)
    starts = _Starts(core)
    wanted = set(keys)
    held = _held_for_good(core)
    has_first = first <= 0  # whether these have started: of what starts later only ``keys`` are asked for
    at: int | None = now
    while at is not None:
        passes.advance(core, max(core.now, at))
        wanted.difference_update(starts.take(core.take_effects()))
        if not has_first and (len(starts.found) + len(starts.unsettled) >= first or not _any_waits(core, held)):
            has_first = True
            wanted.update(starts.unsettled)
        if has_first and not wanted:
            break
        if time.monotonic() > deadline:
            return ExpectedStarts(starts.known(), is_whole=False, was_cut=True)
        at = core.now if core.is_dirty else passes.next_due(core)
    return ExpectedStarts(starts.known(), is_whole=at is None or not _any_waits(core, held), was_cut=False)


def _prepare(core: Core, now: int) -> None:
    """Let what runs end as is expected of it, as an emulated job would."""
    core.settings = structs.replace(core.settings, executor="emulated", mail_command=())
    core.runs, core.faults, core.keeps_records = AsExpected(core), [], False
    core.now = max(core.now, now)
    for pool in core.pools:
        for job in pool.running.values():
            progress, work = job.under_way, core.runs.run_of(job) * job.prepared.request.procs
            core.timers.pause(progress, core.now)
            progress.work = work if progress.done < work else progress.done + OVERDUE * progress.procs
            if job.state is not BatchState.SUSPENDED:
                core.timers.resume(job, progress, core.now)
    core.take_effects()


class _Starts:
    """What is known of the jobs that have started in a forecast.

    ``found``: those whose end is known.  ``unsettled``: starts of those whose end is not: the policy has suspended them, or may
    suspend or resize them, or they run a trial that ends before they do.
    """

    def __init__(self, core: Core) -> None:
        self.found: dict[JobKey, Expected] = {}
        self.unsettled: dict[JobKey, int] = {}
        self._core = core
        self._on_hosts = {key for pool in core.pools for key in pool.running}  # they started before, and are not asked about
        self._changes = {  # pools whose policy may suspend or resize every job that runs
            pool.settings.name for pool in core.pools
            if isinstance(pool.policy, Phased) or getattr(pool.policy, "is_malleable", False)
        }  # fmt: skip

    def take(self, effects: Iterable[object]) -> list[JobKey]:
        """Take what happened at an instant; return the jobs of which all is known since."""
        touched: dict[JobKey, None] = {}
        settled: list[JobKey] = []
        for effect in effects:
            if not isinstance(effect, Happening) or (key := effect.key) is None or key.member == ARRAY or key in self._on_hosts:
                continue
            if effect.kind == "started":
                self.unsettled[key] = effect.at
                touched[key] = None
            elif effect.kind == "requeued":  # a trial, or an attempt that was lost: it is to start once more
                self.unsettled.pop(key, None)
                self.found.pop(key, None)
            elif effect.kind == "ended":
                if key in self.found:
                    self.unsettled[key] = self.found[key].start
                if key in self.unsettled:  # it did start
                    self.found[key] = Expected(self.unsettled.pop(key), effect.at)
                    settled.append(key)
            elif effect.kind in ("suspended", "resumed", "resized"):
                if key in self.found:
                    self.unsettled[key] = self.found.pop(key).start
                touched[key] = None
        for key in touched:
            job = self._core.find(key)
            if key in self.unsettled and job is not None and self._is_settled(job):
                self.found[key] = Expected(self.unsettled.pop(key), job.under_way.due)
                settled.append(key)
        return settled + [JobKey(key.sequence, ARRAY) for key in settled if key.member >= 0]

    def _is_settled(self, job: BatchJob) -> bool:
        """Tell whether a job that has started runs on until its end."""
        pool = self._core.pool_of(job)
        return job.under_way.due >= 0 and pool.settings.name not in self._changes and not _is_on_trial(pool, job)

    def known(self) -> dict[JobKey, Expected]:
        """Return all starts, those whose end is not settled with the end that they would have if they ran on from now on."""
        known = dict(self.found)
        for key, start in self.unsettled.items():
            job = self._core.find(key)
            if job is not None and not _is_on_trial(self._core.pool_of(job), job):
                progress = job.under_way
                left = time_left(progress.work - progress.worked(self._core.now), progress.procs)
                known[key] = Expected(start, self._core.now + left)
        return known


def _is_on_trial(pool: PoolState, job: BatchJob) -> bool:
    """Tell whether a job runs a trial that its quantum ends before its estimate: it will start once more."""
    if job.row < 0 or not pool.engine.is_trial(job.row):
        return False
    view = pool.engine.view()
    run = view.running[job.row]
    return run.expected_end < run.since + view.jobs[job.row].estimate


def _held_for_good(core: Core) -> int:
    """Return how many jobs wait that a user holds and that nothing deletes: they wait as long as the forecast goes on."""
    if not any(queue.counts.get(BatchState.HELD) for queue in core.queues.values()):
        return 0
    waiting = (each for job in core.live_jobs() for each in core.members(job) if each.is_waiting)
    return sum(1 for each in waiting if each.hold and not each.unmet and not each.spec.depend)


def _any_waits(core: Core, held: int) -> bool:
    """Tell whether more jobs wait than the ``held`` ones."""
    return sum([queue.waiting for queue in core.queues.values()]) > held


def is_hopeful(core: Core, job: BatchJob) -> bool:
    """Tell whether a job, or any of an array, waits and may start without help: its queue is started, no user holds it."""
    return core.queue(job.queue).started and any(each.is_waiting and not each.hold for each in core.members(job))
