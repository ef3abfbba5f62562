"""The forecasts of a live server: made in a child process, kept for a moment, and held against what then happens."""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
from typing import TYPE_CHECKING

from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.state import Happening
from qbatch.daemon.forecast import Expected, run_forward
from qbatch.wire.identifiers import JobKey

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.service import Service

KEPT = 2.0
"""Seconds of the wall for which a forecast serves when the state changes all the time."""

MOST_TRACKED = 10_000

MOST_EXPLAINED = 300
"""The longest queue in which the comment of every job is explained in full."""


class Forecasts:
    """Asks for forecasts and tracks their error."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.last: dict[JobKey, Expected] = {}
        self._made_of: tuple[int, int] = (-1, -1)
        self._made_at = -1e9
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None
        self._running: asyncio.Task[dict[JobKey, Expected]] | None = None
        self._first: dict[JobKey, int] = {}
        self._errors = 0
        self._error_sum = 0.0
        self._absolute_sum = 0.0

    async def all(self) -> dict[JobKey, Expected]:
        """Return the expected start and end of every job that waits at the engine."""
        service = self.service
        state = (service.core.events_made, service.core.now if service.clock.mode != "real" else 0)
        loop = asyncio.get_running_loop()
        if (state == self._made_of and loop.time() - self._made_at < 60) or loop.time() - self._made_at < KEPT:
            return self.last
        if self._running is None:
            self._running = asyncio.create_task(self._make())
            self._running.add_done_callback(self._over)
        found = await asyncio.shield(self._running)
        self._made_of, self._made_at = state, loop.time()
        return found

    def _over(self, task: asyncio.Task[dict[JobKey, Expected]]) -> None:
        self._running = None

    async def _make(self) -> dict[JobKey, Expected]:
        core, now = self.service.core, max(self.service.core.now, self.service.clock.now())
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        loop = asyncio.get_running_loop()
        found: dict[JobKey, Expected] = {}
        for pool in core.pools:
            if not len(pool.engine.view().queue):
                continue
            keys = {job.row: job.key for job in pool.by_row if job is not None and job.letter == "Q"}
            rows = await loop.run_in_executor(
                self._pool, run_forward, pool.machine, pool.settings.policy, pool.engine.dump(), now
            )
            found |= {keys[row]: Expected(start, end) for row, start, end in rows if row in keys}
        self.last = found
        for key, expected in found.items():
            if len(self._first) < MOST_TRACKED:
                self._first.setdefault(key, expected.start)
        return found

    def started(self, event: Happening) -> None:
        """A job has started: hold its first forecast against it."""
        if event.key is None:
            return
        expected = self._first.pop(event.key, None)
        if expected is not None:
            error = (event.at - expected) / 1e6
            self._errors += 1
            self._error_sum += error
            self._absolute_sum += abs(error)

    def error(self) -> dict[str, float]:
        """Return how far first forecasts were off: seconds, positive where jobs started later than forecast."""
        if not self._errors:
            return {}
        count = self._errors
        return {"count": count, "mean_s": self._error_sum / count, "mean_absolute_s": self._absolute_sum / count}

    def forget(self, key: JobKey) -> None:
        """A job has gone without starting."""
        self._first.pop(key, None)

    def short_reason(self, job: BatchJob) -> str:
        """Return the comment of a waiting job, as ``qstat -s`` shows it: in full where the queue is short."""
        core = self.service.core
        pool = core.pool_of(job)
        if job.gate or job.row < 0 or len(pool.engine.view().queue) <= MOST_EXPLAINED:
            return f"Not Running: {reason_for(core, job).text}"
        procs, free = job.prepared.demand.procs, pool.engine.view().free_procs
        if procs > free:
            return f"Not Running: needs {procs} processors, {free} are free"
        return f"Not Running: waits for its turn ({pool.name_of_policy}); see: qbatch explain {core.id_of(job.key)}"

    def close(self) -> None:
        """End the child process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
