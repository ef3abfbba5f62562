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


class KnownRun(NamedTuple):
    """How long a job ran (microseconds) and its exit status; ``is_assumed``: it would have run on, nobody knows how long."""

    run: int
    status: int
    is_assumed: bool


class Truth:
    """The run times known by now.

    Args:
        core: the mirror of the real server; it holds the jobs that run at the beginning.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._running: dict[JobKey, BatchJob] = {key: job for pool in core.pools for key, job in pool.running.items()}
        self.known: dict[JobKey, KnownRun] = {}

    def lived(self, key: JobKey, at: int) -> int:
        """Return how long a job has really run by an instant, 0 if it has not started."""
        job = self._running.get(key)
        return 0 if job is None else job.walltime_used(at)

    def take(self, outbox: list[Effect]) -> list[JobKey]:
        """Note what has happened in reality; return whose run time is known since."""
        news = []
        for effect in outbox:
            if isinstance(effect, Ending):
                if effect.key.member != ARRAY:
                    self.known[effect.key] = self._outcome(effect)
                    news.append(effect.key)
            elif isinstance(effect, Happening) and effect.key is not None and effect.key.member != ARRAY:
                self._note(effect.kind, effect.key)
        return news

    def _outcome(self, effect: Ending) -> KnownRun:
        job = self._running.pop(effect.key, None)
        if job is None:
            return KnownRun(0, 0, True)
        status = effect.record.exit_status or 0
        is_cut = job.ending in ("deleted", "host", "rerun") or status == LOST
        return KnownRun(job.walltime_used(self._core.now), 0 if is_cut else status, is_cut)

    def _note(self, kind: str, key: JobKey) -> None:
        if kind == "started":
            job = self._core.find(key)
            if job is not None:
                self._running[key] = job
        elif kind == "requeued":
            self._running.pop(key, None)
