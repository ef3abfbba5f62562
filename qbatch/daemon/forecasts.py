"""The forecasts of a live server: made by a forked child, kept for a moment, and held against what then happens."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

import msgspec

from qbatch.daemon.clock import Clock
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.daemon.forecast import BUDGET, Expected, forecast
from qbatch.daemon.pass_times import PassTimes
from qbatch.planning.kernels.live import serve_compiled
from qbatch.wire.identifiers import JobKey, parse_id
from qbatch.wire.records import JobRecord

log = logging.getLogger("qbatch")

KEPT = 2.0
"""Seconds of the wall for which a forecast of a long queue serves, whatever happens meanwhile."""

MOST_MADE_ANEW = 2000
"""Waiting jobs up to which every question gets a forecast of its own."""

MOST_TRACKED = 10_000

MOST_EXPLAINED = 300
"""The longest queue in which the comment of every job is explained in full."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, int, int, int]]).decode


class Forecasts:
    """Asks for forecasts and tracks their error.

    Args:
        core: returns the present state; another may take its place.
        clock: tells the instant from which a forecast goes on.
        passes: how many were made: after each, other jobs may wait.
    """

    def __init__(self, core: Callable[[], Core], clock: Clock, passes: PassTimes) -> None:
        self._core = core
        self._clock = clock
        self._passes = passes
        self.last: dict[JobKey, Expected] = {}
        self._made_of: tuple[int, int] = (-1, -1)
        self._made_at = -1e9
        self._running: asyncio.Task[dict[JobKey, Expected]] | None = None
        self._first: dict[JobKey, int] = {}
        self._facts_of = (-1, -1)
        self._known: dict[str, tuple[int, int]] = {}
        self._errors = 0
        self._error_sum = 0.0
        self._absolute_sum = 0.0

    async def all(self) -> dict[JobKey, Expected]:
        """Return the expected start and end of every job that waits at the engine."""
        core = self._core()
        state = (core.events_made, core.now if self._clock.mode != "real" else 0)
        age = asyncio.get_running_loop().time() - self._made_at
        waiting = sum(len(pool.engine.view().queue) for pool in core.pools)
        if (state == self._made_of and age < 60) or (age < KEPT and waiting > MOST_MADE_ANEW):
            return self.last
        if self._running is not None:
            # It was made of an older state: who asks now may have submitted since.
            await asyncio.shield(self._running)
        if self._running is None:
            self._running = asyncio.create_task(self._make(state))
            self._running.add_done_callback(self._over)
        return await asyncio.shield(self._running)

    def _over(self, task: asyncio.Task[dict[JobKey, Expected]]) -> None:
        self._running = None

    async def _make(self, state: tuple[int, int]) -> dict[JobKey, Expected]:
        core = self._core()
        loop = asyncio.get_running_loop()
        if not any(len(pool.engine.view().queue) for pool in core.pools):
            rows: list[tuple[int, int, int, int]] = []
        else:
            reader, child = self._fork()
            try:
                said = await loop.run_in_executor(None, _read_all, reader, child)
                rows = _decode(said)
            except msgspec.MsgspecError:
                log.warning("no forecast: the child gave none")
                rows = []
        found: dict[JobKey, Expected] = {}
        for number, row, start, end in rows:
            by_row = core.pools[number].by_row if number < len(core.pools) else []
            job = by_row[row] if row < len(by_row) else None
            if job is not None and job.letter == "Q":
                found[job.key] = Expected(start, end)
        self.last, self._made_of, self._made_at = found, state, loop.time()
        for key, expected in found.items():
            if len(self._first) >= MOST_TRACKED:
                break
            self._first.setdefault(key, expected.start)
        return found

    def _fork(self) -> tuple[int, int]:
        """Let a child go on from the state of this instant, on its own copy of it; return where it will answer."""
        core = self._core()
        now = max(core.now, self._clock.now())
        reader, writer = os.pipe()
        child = os.fork()
        if child:
            os.close(writer)
            return reader, child
        try:
            os.dup2(writer, 3)
            os.closerange(4, os.sysconf("SC_OPEN_MAX"))
            serve_compiled()
            rows = [
                (number, *each)
                for number, pool in enumerate(core.pools)
                for each in forecast(pool.engine, pool.policy, now, _stopped(pool))
            ]
            with os.fdopen(3, "wb") as file:
                file.write(_encode(rows))
        finally:
            os._exit(0)

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
        """A job has ended; if it never started, its forecast is held against nothing."""
        self._first.pop(key, None)

    def with_estimate(self, record: JobRecord) -> JobRecord:
        """Return a record with the forecast of its start, if the last forecast has one."""
        expected = self.last.get(parse_id(record.id))
        return record if expected is None else msgspec.structs.replace(record, estimated_start=expected.start)

    def short_reason(self, job: BatchJob) -> str:
        """Return the comment of a waiting job, as ``qstat -s`` shows it: in full where the queue is short."""
        core = self._core()
        pool = core.pool_of(job)
        if job.letter in "HW":
            return f"Not Running: {reason_for(core, job).text}"
        waiting, free = self._facts(pool)
        if job.gate or job.row < 0 or waiting <= MOST_EXPLAINED:
            return f"Not Running: {reason_for(core, job).text}"
        procs = job.prepared.demand.procs
        if procs > free:
            return f"Not Running: needs {procs} processors, {free} are free"
        return f"Not Running: waits for its turn ({pool.name_of_policy}); see: qbatch explain {core.id_of(job.key)}"

    def _facts(self, pool: PoolState) -> tuple[int, int]:
        """Return how many wait in a pool and how many processors are free there; looked up once a state."""
        state = (self._core().events_made, self._passes.count)
        if state != self._facts_of:
            self._facts_of, self._known = state, {}
        if pool.settings.name not in self._known:
            view = pool.engine.view()
            self._known[pool.settings.name] = (len(view.queue), view.free_procs)
        return self._known[pool.settings.name]


def _stopped(pool: PoolState) -> frozenset[int]:
    """Return the rows of jobs that somebody has suspended: nobody knows when they will end."""
    return frozenset(job.row for job in pool.running.values() if job.letter == "S")


def _read_all(reader: int, child: int) -> bytes:
    """Return what a child writes, and collect it; one that takes too long is ended."""
    import select
    import signal
    import time

    deadline = time.monotonic() + 2 * BUDGET
    pieces = []
    try:
        while True:
            ready, _, _ = select.select([reader], [], [], max(deadline - time.monotonic(), 0))
            piece = os.read(reader, 1 << 20) if ready else b""
            if not piece:
                break
            pieces.append(piece)
    finally:
        os.close(reader)
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return b"".join(pieces)
