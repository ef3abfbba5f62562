"""Statistics of one policy, real or what-if: waits, slowdowns and busy processors of each pool.

Only jobs that were submitted since the beginning count for waits and slowdowns, because they are
the same under every policy; every job that runs counts for the utilisation.  As in the metrics, a
job's wait is all the time in which it did not advance. It includes suspensions, and attempts that
were thrown away, until the next one starts.  A resized job uses the processors that it has, and its
run time is as if it had had those that it asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qbatch.daemon.core.job import BatchJob, BatchState
from qbatch.daemon.core.state import Core, Effect, Ending, Happening
from qbatch.metrics.per_job import bounded_slowdowns
from qbatch.wire.identifiers import ARRAY, JobKey
from qbatch.wire.pieces import run_of
from qbatch.wire.records import JobRecord, ShadowRecord


@dataclass
class _Sums:
    """The sums of one pool.  ``area``: busy processors x microseconds, up to ``at``; ``ends``:
    (response, run) of jobs of which the slowdowns are not added yet."""

    at: int
    busy: int = 0
    area: int = 0
    started: int = 0
    wait: int = 0
    longest: int = -1
    ended: int = 0
    slowdown: float = 0.0
    ends: list[tuple[int, int]] = field(default_factory=list)

    def use(self, procs: int, at: int) -> None:
        """Use so many more processors (fewer, if negative) from an instant on."""
        if at > self.at:
            self.area += self.busy * (at - self.at)
            self.at = at
        self.busy += procs


@dataclass
class _OnHosts:
    """A job on hosts: when it was suspended (None: it runs), and how long its earlier suspensions
    took."""

    sums: _Sums
    procs: int
    suspended: int | None = None
    pause: int = 0


@dataclass
class _Wait:
    """The wait of a job that counts and has begun, from ``since`` on, as far as it is known."""

    sums: _Sums
    since: int
    time: int = 0

    def add(self, more: int) -> None:
        """Add the time in which the job has not advanced."""
        self.time += more
        self.sums.wait += more
        self.sums.longest = max(self.sums.longest, self.time)


class PolicyStatistics:
    """The sums of each pool of a core.  ``first``: the sequence number from which on jobs count."""

    def __init__(self, core: Core, first: int) -> None:
        self.since = core.now
        self._core = core
        self._first = first
        self._sums = [_Sums(core.now) for _ in core.pools]
        self._on_hosts: dict[JobKey, _OnHosts] = {}
        self._waits: dict[JobKey, _Wait] = {}
        for pool, sums in zip(core.pools, self._sums, strict=True):
            for key, job in pool.running.items():
                self._occupy(key, job, sums, core.now)
                if job.state is BatchState.SUSPENDED:
                    self._suspend(key, core.now)

    def take(self, outbox: list[Effect]) -> None:
        """Count what has happened at the core's instant."""
        endings = {effect.key: effect.record for effect in outbox if isinstance(effect, Ending)}
        for effect in outbox:
            if (
                not isinstance(effect, Ending | Happening)
                or effect.key is None
                or effect.key.member == ARRAY
            ):
                continue
            if isinstance(effect, Ending):
                self._end(effect.key, effect.record)
            elif effect.kind == "started":
                self._start(effect.key, effect.at, endings.get(effect.key))
            elif effect.kind == "requeued":
                self._free(effect.key, effect.at)
            elif effect.kind == "suspended":
                self._suspend(effect.key, effect.at)
            elif effect.kind in ("resumed", "resized"):
                self._change(effect.kind, effect.key, effect.at)

    def _start(self, key: JobKey, at: int, record: JobRecord | None) -> None:
        """Count the start of a job; ``record``: its record if it ended at the same instant."""
        job = self._core.find(key)
        found = record if job is None else job
        if found is None:
            return
        sums = self._sums[self._core.queues[found.queue].pool]
        if job is not None and job.holds_hosts:
            self._occupy(key, job, sums, at)
        if key.sequence >= self._first:
            if key not in self._waits:
                sums.started += 1
                self._waits[key] = _Wait(
                    sums, at if found.eligible is None else min(found.eligible, at)
                )
            wait = self._waits[key]
            wait.add(at - wait.since - wait.time)

    def _end(self, key: JobKey, record: JobRecord) -> None:
        ended = record.ended or 0
        job, wait = self._free(key, ended), self._waits.pop(key, None)
        if record.started is None or key.sequence < self._first:
            return
        run = ended - record.started
        if record.sizes:
            run = run_of(record, ended)
        elif job is not None:
            run -= job.pause + (0 if job.suspended is None else ended - job.suspended)
        begin = record.started if record.eligible is None else record.eligible
        if wait is not None:
            begin = wait.since
            wait.add(max(ended - begin - run, 0) - wait.time)
        sums = self._sums[self._core.queues[record.queue].pool]
        sums.ended += 1
        sums.ends.append((ended - begin, run))

    def _occupy(self, key: JobKey, job: BatchJob, sums: _Sums, at: int) -> None:
        """Count the processors that a job takes of its hosts, or those that the policy gave it if
        it was resized."""
        is_resized = job.attempt is not None and job.attempt.sizes
        found = self._on_hosts[key] = _OnHosts(
            sums, job.size if is_resized else job.prepared.demand.procs
        )
        sums.use(found.procs, at)

    def _free(self, key: JobKey, at: int) -> _OnHosts | None:
        found = self._on_hosts.pop(key, None)
        if found is not None and found.suspended is None:
            found.sums.use(-found.procs, at)
        return found

    def _suspend(self, key: JobKey, at: int) -> None:
        """A suspended job keeps its hosts, but does not use them."""
        found = self._on_hosts.get(key)
        if found is not None and found.suspended is None:
            found.sums.use(-found.procs, at)
            found.suspended = at

    def _change(self, kind: str, key: JobKey, at: int) -> None:
        """Count a resumed or resized job; one that is resized while it is suspended uses its
        processors when it goes on."""
        found, job = self._on_hosts.get(key), self._core.find(key)
        if found is None:
            return
        if kind == "resized" and job is not None:
            if found.suspended is None:
                found.sums.use(job.size - found.procs, at)
            found.procs = job.size
        elif kind == "resumed" and found.suspended is not None:
            pause = at - found.suspended
            found.pause += pause
            found.suspended = None
            found.sums.use(found.procs, at)
            if key in self._waits:
                self._waits[key].add(pause)

    def records(self, at: int, provisional: list[int], *, is_real: bool) -> list[ShadowRecord]:
        """Return the results up to an instant for each pool; ``provisional``: its jobs that rest on
        an assumption."""
        core = self._core
        waiting = [0] * len(self._sums)
        for job in core.live_jobs(self._first - 1):
            members = [each for each in core.members(job) if not each.is_array]
            waiting[core.queues[job.queue].pool] += sum(
                each.state is BatchState.QUEUED for each in members
            )
        found = []
        for number, (pool, sums) in enumerate(zip(core.pools, self._sums, strict=True)):
            sums.use(0, at)
            if sums.ends:
                both = np.array(sums.ends, np.int64)
                for each in bounded_slowdowns(both[:, 0], both[:, 1]).tolist():
                    # One after the other: the sum depends on their order alone.
                    sums.slowdown += each
                sums.ends.clear()
            available = pool.machine.procs * (at - self.since)
            record = ShadowRecord(
                policy=pool.name_of_policy,
                pool=pool.settings.name,
                is_real=is_real,
                started=sums.started,
                ended=sums.ended,
                waiting=waiting[number],
                provisional=provisional[number],
                wait_mean_s=sums.wait / sums.started / 1e6 if sums.started else None,
                wait_max_s=sums.longest / 1e6 if sums.started else None,
                bounded_slowdown_mean=sums.slowdown / sums.ended if sums.ended else None,
                utilisation=sums.area / available if available else None,
            )
            found.append(record)
        return found
