"""What reality has shown of the run times of jobs that really run: nobody knows one before its job has ended.

* A job that ended by itself, or was killed at its walltime, ran as long as it ran: that is known from its end on.
* A job that runs has run for so long already: that much is known, and no more.
* A job that was deleted, or ended by a host, a loss or a signal of the server's before it was done, or that never ran at
  all: how long it would have run will never be known.  Its walltime is assumed, at least what it lived, for ever.
* A job that is run again begins anew: what counts is its last attempt.
"""

from __future__ import annotations

from typing import NamedTuple

from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, Effect, Ending, Happening
from qbatch.daemon.executors.attempt import LOST
from qbatch.wire.identifiers import ARRAY, JobKey


class Outcome(NamedTuple):
    """How long a job ran (microseconds) and its exit status; ``is_assumed``: it would have run on, nobody knows how long."""

    run: int
    status: int
    is_assumed: bool


class _Run:
    """A job that really runs: since when, how long it was stopped meanwhile, and how much time it lost by having fewer
    processors than it asked for."""

    def __init__(self, job: BatchJob, at: int) -> None:
        self.job = job
        self.started = at
        self.stopped = 0
        self.stopped_at = at if job.letter == "S" else -1
        self.size, self.since = job.size, at

    def lived(self, at: int) -> int:
        """Return how long it would have run by an instant on the processors that it asked for."""
        now = at if self.stopped_at < 0 else self.stopped_at
        return now - self.started - self.stopped - self._lost(now)

    def fit(self, at: int) -> None:
        """It has another number of processors from now on."""
        self.stopped += self._lost(at)
        self.size, self.since = self.job.size, at

    def stand_still(self, at: int) -> None:
        """It is stopped."""
        self.stopped += self._lost(at)
        self.stopped_at = self.since = at

    def go_on(self, at: int) -> None:
        """It runs on."""
        self.stopped += at - self.stopped_at
        self.stopped_at, self.since = -1, at

    def _lost(self, at: int) -> int:
        asked = self.job.prepared.request.procs
        return 0 if self.stopped_at >= 0 else (at - self.since) * (asked - self.size) // asked


class Truth:
    """The run times known by now.

    Args:
        core: the mirror of the real server; it holds the jobs that run at the beginning.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._running: dict[JobKey, _Run] = {}
        self.known: dict[JobKey, Outcome] = {}
        for pool in core.pools:
            for key, job in pool.running.items():
                self._running[key] = run = _Run(job, job.started)
                if run.stopped_at >= 0:  # since when is not known: what it has run is not counted
                    run.stopped_at = core.now

    def lived(self, key: JobKey, at: int) -> int:
        """Return how long a job has really run by an instant, 0 if it has not started."""
        run = self._running.get(key)
        return 0 if run is None else max(run.lived(at), 0)

    def take(self, effects: list[Effect]) -> list[JobKey]:
        """Note what has happened in reality; return whose run time is known since."""
        news = []
        for effect in effects:
            if isinstance(effect, Ending):
                if effect.key.member != ARRAY:
                    self.known[effect.key] = self._outcome(effect)
                    news.append(effect.key)
            elif isinstance(effect, Happening) and effect.key is not None and effect.key.member != ARRAY:
                self._note(effect.kind, effect.key, effect.at)
        return news

    def _outcome(self, effect: Ending) -> Outcome:
        run = self._running.pop(effect.key, None)
        if run is None:
            return Outcome(0, 0, True)
        lived = max(run.lived(effect.record.ended or 0), 0)
        status = effect.record.exit_status or 0
        is_cut = run.job.ending in ("deleted", "host", "rerun") or status == LOST
        return Outcome(lived, 0 if is_cut else status, is_cut)

    def _note(self, kind: str, key: JobKey, at: int) -> None:
        if kind == "started":
            job = self._core.find(key)
            if job is not None:
                self._running[key] = _Run(job, at)
            return
        run = self._running.get(key)
        if run is None:
            return
        if kind == "requeued":
            del self._running[key]
        elif kind == "resized":
            run.fit(at)
        elif kind == "suspended":
            run.stand_still(at)
        elif kind == "resumed" and run.stopped_at >= 0:
            run.go_on(at)
