"""What is counted of one policy, real or in shadow: waits, slowdowns, busy processors, pool by pool.

Only jobs that were submitted since the beginning count for waits and slowdowns (they are the same jobs under every policy);
all that runs counts for the utilisation.  A job's wait is, as in the metrics, all the time in which it did not
advance: before its first start, while it is suspended, and with an attempt that was thrown away until the next one.  A job
that is resized uses the processors that it has, and its run time is as if it had had those that it asked for.
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
    """What one pool adds up to.  ``area``: busy processors x microseconds, by ``at``; ``ends``: (response, run) of jobs
    whose slowdowns are not added yet."""

    busy: int = 0
    area: int = 0
    at: int = 0
    started: int = 0
    wait: int = 0
    longest: int = -1
    ended: int = 0
    slowdown: float = 0.0
    ends: list[tuple[int, int]] = field(default_factory=list)

    def move_on(self, at: int) -> None:
        """Let time pass."""
        if at > self.at:
            self.area += self.busy * (at - self.at)
            self.at = at

    def fold(self) -> None:
        """Add the slowdowns of the jobs that have ended since, one after the other: the order alone makes the sum."""
        if self.ends:
            both = np.array(self.ends, np.int64)
            for each in bounded_slowdowns(both[:, 0], both[:, 1]).tolist():
                self.slowdown += each
            self.ends.clear()


class ShadowTally:
    """Counts what happens in a core.

    Args:
        core: of which it counts.
        first: the number from which on jobs count.
    """

    def __init__(self, core: Core, first: int) -> None:
        self.since = core.now
        self._core = core
        self._first = first
        self._sums = [_Sums(at=core.now) for _ in core.pools]
        self._busy: dict[JobKey, tuple[int, int]] = {}
        self._stopped: dict[JobKey, list[int]] = {}
        self._waits: dict[JobKey, tuple[int, int, int]] = {}  # of jobs begun: the pool, since when, how long by now
        for number, pool in enumerate(core.pools):
            for key, job in pool.running.items():
                self._occupy(key, number, _procs_of(job))
                if job.state is BatchState.SUSPENDED:
                    self._stop(key, core.now)

    def take(self, outbox: list[Effect]) -> None:
        """Count what has happened at the core's instant."""
        endings = {effect.key: effect.record for effect in outbox if isinstance(effect, Ending)}
        for effect in outbox:
            if isinstance(effect, Ending):
                if effect.key.member != ARRAY:
                    self._ended(effect.key, effect.record)
            elif isinstance(effect, Happening) and effect.key is not None and effect.key.member != ARRAY:
                self._happened(effect.kind, effect.key, effect.at, endings.get(effect.key))

    def _happened(self, kind: str, key: JobKey, at: int, record: JobRecord | None) -> None:
        if kind == "started":
            self._started(key, at, record)
        elif kind == "requeued":
            self._free(key, at)
            self._stopped.pop(key, None)
        elif kind == "suspended":
            self._stop(key, at)
        elif kind == "resized":
            self._resized(key, at)
        elif kind == "resumed" and key in self._stopped:
            stopped = self._stopped[key]
            stopped[1] += at - stopped[0]
            self._waited_more(key, at - stopped[0])
            stopped[0] = -1
            self._occupy(key, *self._busy[key], at=at)

    def _started(self, key: JobKey, at: int, record: JobRecord | None) -> None:
        """A job starts; ``record``: what has become of it, if it ended at the same instant."""
        job = self._core.find(key)
        if job is not None:
            number = self._core.queues[job.queue].pool
            eligible = at if job.eligible is None else job.eligible
            if job.holds_hosts:
                self._occupy(key, number, _procs_of(job), at=at)
        elif record is not None:
            number = self._core.queues[record.queue].pool
            eligible = at if record.eligible is None else record.eligible
        else:
            return
        if key.sequence < self._first:
            return
        if key not in self._waits:
            self._sums[number].started += 1
            self._waits[key] = number, min(eligible, at), 0
        _, since, before = self._waits[key]
        self._waited_more(key, at - since - before)

    def _waited_more(self, key: JobKey, more: int) -> None:
        """A job that counts has not advanced for so much longer."""
        if key in self._waits:
            number, since, wait = self._waits[key]
            self._waits[key] = number, since, wait + more
            sums = self._sums[number]
            sums.wait += more
            sums.longest = max(sums.longest, wait + more)

    def _ended(self, key: JobKey, record: JobRecord) -> None:
        ended = record.ended or 0
        self._free(key, ended)
        stopped = self._stopped.pop(key, None)
        if record.started is None or key.sequence < self._first:
            self._waits.pop(key, None)
            return
        pause = 0 if stopped is None else stopped[1] + (ended - stopped[0] if stopped[0] >= 0 else 0)
        eligible = record.started if record.eligible is None else record.eligible
        sums = self._sums[self._core.queues[record.queue].pool]
        sums.ended += 1
        run = run_of(record, ended) if record.sizes else ended - record.started - pause
        if key in self._waits:
            _, eligible, before = self._waits[key]
            self._waited_more(key, max(ended - eligible - run, 0) - before)
            del self._waits[key]
        sums.ends.append((ended - eligible, run))

    def _occupy(self, key: JobKey, number: int, procs: int, at: int = 0) -> None:
        sums = self._sums[number]
        sums.move_on(at)
        sums.busy += procs
        self._busy[key] = (number, procs)

    def _free(self, key: JobKey, at: int) -> None:
        found = self._busy.pop(key, None)
        if found is not None and not self._is_stopped(key):
            sums = self._sums[found[0]]
            sums.move_on(at)
            sums.busy -= found[1]

    def _stop(self, key: JobKey, at: int) -> None:
        """A job stands still: it keeps its hosts, but does not use them."""
        if key not in self._busy or self._is_stopped(key):
            return
        sums = self._sums[self._busy[key][0]]
        sums.move_on(at)
        sums.busy -= self._busy[key][1]
        self._stopped.setdefault(key, [-1, 0])[0] = at

    def _resized(self, key: JobKey, at: int) -> None:
        """A job has other processors from now on; one that stands still uses them when it goes on."""
        job = self._core.find(key)
        if job is None or key not in self._busy:
            return
        number, procs = self._busy[key]
        self._busy[key] = (number, job.size)
        if not self._is_stopped(key):
            sums = self._sums[number]
            sums.move_on(at)
            sums.busy += job.size - procs

    def _is_stopped(self, key: JobKey) -> bool:
        return key in self._stopped and self._stopped[key][0] >= 0

    def records(self, at: int, provisional: list[int], *, is_real: bool) -> list[ShadowRecord]:
        """Return what has been counted by an instant, pool by pool; ``provisional``: jobs of each pool that rest on an
        assumption."""
        waiting = [0] * len(self._sums)
        for job in self._core.live_jobs(self._first - 1):
            number = self._core.queues[job.queue].pool
            waiting[number] += sum(
                each.state is BatchState.QUEUED for each in self._core.members(job) if not each.is_array
            )
        found = []
        for number, (pool, sums) in enumerate(zip(self._core.pools, self._sums, strict=True)):
            sums.move_on(at)
            sums.fold()
            room = pool.machine.procs * (at - self.since)
            found.append(
                ShadowRecord(
                    policy=pool.name_of_policy,
                    pool=pool.settings.name,
                    is_real=is_real,
                    started=sums.started,
                    ended=sums.ended,
                    waiting=waiting[number],
                    wait_mean_s=sums.wait / sums.started / 1e6 if sums.started else None,
                    wait_max_s=sums.longest / 1e6 if sums.started else None,
                    bounded_slowdown_mean=sums.slowdown / sums.ended if sums.ended else None,
                    utilisation=sums.area / room if room else None,
                    provisional=provisional[number],
                )
            )
        return found


def _procs_of(job: BatchJob) -> int:
    """Return the processors that a job uses: what it takes of its hosts, unless the policy has resized it."""
    return job.size if job.attempt is not None and job.attempt.sizes else job.prepared.demand.procs
