"""The forecasts of a live server: made by a forked child, kept for a moment, and held against what then happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from operator import itemgetter

import msgspec

from qbatch.daemon.child import Child, ChildFailed
from qbatch.daemon.clock import Clock
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BY_USER, BatchJob, hold_text
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.forecast import BUDGET, Expected, forecast, is_quick
from qbatch.daemon.forecast_core import forecast_core, waits_outside
from qbatch.daemon.forecast_run_times import run_times_in
from qbatch.daemon.pass_times import PassTimes
from qbatch.model.reasons import INSTANTS, SPANS, Reason
from qbatch.planning.kernels.live import serve_compiled
from qbatch.results.shown import moment, span
from qbatch.wire.identifiers import JobKey, parse_id
from qbatch.wire.records import JobRecord

log = logging.getLogger("qbatch")

KEPT = 2.0
"""Seconds of the wall for which a forecast of a long queue serves, whatever happens meanwhile."""

MOST_MADE_ANEW = 2000
"""Waiting jobs up to which every question gets a forecast of its own."""

MOST_TRACKED = 10_000

PART = 1000
"""Jobs that are taken over from a forecast before other requests have their turn."""

MOST_EXPLAINED = 300
"""The longest queue in which the comment of every job is explained in full."""

LONG = 5000
"""Jobs with an engine from which on the compiled replay makes a first forecast, should the other take too long."""


class Said(msgspec.Struct, array_like=True):
    """What the child says: sequence number, index, start and end of each job, by start; whether its time ran out."""

    jobs: list[tuple[int, int, int, int]]
    was_cut: bool = False


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Said).decode


class Forecaster:
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
        self._missing = ("", "")  # why a job that could start has none: code and words
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
        """Return the expected start and end of every waiting job that has them; `why_none` tells of the others."""
        core = self._core()
        state = (core.events_made, core.now if self._clock.mode != "real" else 0)
        age = asyncio.get_running_loop().time() - self._made_at
        waiting = sum(queue.waiting for queue in core.queues.values())
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
        said = Said([])
        self._missing = ("", "")
        if any(queue.waiting for queue in core.queues.values()):
            now = max(core.now, self._clock.now())
            try:
                said = _decode(await Child(lambda: _encode(_foretold(core, now))).said(2 * BUDGET))
            except ChildFailed as error:
                log.warning("no forecast: %s", error)
                self._missing = ("no-forecast", "the forecast could not be made")
        if said.was_cut:
            self._missing = ("not-reached", f"the forecast of all jobs was not done within {BUDGET:.0f} s")
        found: dict[JobKey, Expected] = {}
        for count, (sequence, member, start, end) in enumerate(said.jobs):
            if count % PART == PART - 1:
                await asyncio.sleep(0)
            job = core.find(JobKey(sequence, member))
            if job is not None and job.is_waiting:
                found[job.key] = Expected(start, end)
        self.last, self._made_of, self._made_at = found, state, loop.time()
        for key, expected in found.items():
            if len(self._first) >= MOST_TRACKED:
                break
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
        """A job has ended; if it never started, its forecast is held against nothing."""
        self._first.pop(key, None)

    def with_estimate(self, record: JobRecord) -> JobRecord:
        """Return a record with the forecast of its start, or why it has none; an array's is that of its first job."""
        core = self._core()
        job = core.find(parse_id(record.id))
        if job is None or not (job.is_waiting or job.state is BatchState.BEGUN):
            return record
        waiting = [each for each in core.members(job) if each.is_waiting]
        starts = [self.last[each.key].start for each in waiting if each.key in self.last]
        if starts:
            return msgspec.structs.replace(record, estimated_start=min(starts))
        return msgspec.structs.replace(record, no_estimate=self.why_none(waiting[0])[1]) if waiting else record

    def why_none(self, job: BatchJob) -> tuple[str, str]:
        """Return the code and the words of why a waiting job has no forecast."""
        core = self._core()
        is_first = not job.is_subjob or not core.jobs[job.sequence].unmet
        depends = job if is_first else core.jobs[job.sequence]
        if self._missing[0] and not job.hold:
            return self._missing
        if job.state is BatchState.HELD and job.hold:
            return "held", f"is held ({hold_text(job.hold)}) until somebody releases it"
        if depends.unmet:
            what = depends.spec.depend or "a job that was to come before it"
            return "dependency", f"nobody knows when, or whether, what it depends on comes to pass ({what})"
        queue = core.queues[job.queue]
        if not queue.started:
            return "queue-stopped", f"queue {job.queue} is stopped until somebody starts it"
        pool = core.pool_of(job)
        if job.row >= 0 and self._facts(pool)[0] > MOST_EXPLAINED:  # to say more of each of them would take minutes
            return "no-start", f"{pool.name_of_policy} would not start it by itself, even when all that runs has ended"
        reason = self.reason(job)
        if reason.code == "arriving":
            return reason.code, reason.text
        text = f"{pool.name_of_policy} would not start it by itself, even when all that runs has ended ({reason.text})"
        return "no-start", text

    def reason(self, job: BatchJob) -> Reason:
        """Return why a job waits, in words for people: instants by the calendar, durations in hours, users by name."""
        reason = reason_for(self._core(), job)
        text = in_calendar(reason)
        if "predicted" in reason.numbers:
            text = text.replace("of its user", f"of {job.user}")
        return msgspec.structs.replace(reason, text=text)

    def short_reason(self, job: BatchJob) -> str:
        """Return the comment of a waiting job, as ``qstat -s`` shows it: in full where the queue is short."""
        core = self._core()
        pool = core.pool_of(job)
        if job.is_waiting and job.state is not BatchState.QUEUED:
            return f"Not Running: {self.reason(job).text}"
        waiting, free = self._facts(pool)
        if job.run_limit or job.row < 0 or waiting <= MOST_EXPLAINED:
            return f"Not Running: {self.reason(job).text}"
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


def _foretold(core: Core, now: int) -> Said:
    """Return the forecast of every pool, in the child.

    Where all that wait are with the engines, these say it pool by pool.  Else the whole core is driven on; what it does not
    reach in a long queue has the forecast that the engines alone would have.
    """
    serve_compiled()
    rows: list[tuple[int, int, int, int]] = []
    is_driven = waits_outside(core)
    for pool in core.pools:
        is_long = len(pool.engine.view().queue) > LONG
        if not is_driven or (is_long and is_quick(pool.engine, pool.policy, _stopped(pool))):
            expected = run_times_in(core, pool, now)
            for row, start, end in forecast(pool.engine, pool.policy, now, _stopped(pool), expected):
                job = pool.by_row[row]
                if job is not None:
                    rows.append((*job.key, start, end))
    if not is_driven:
        return Said(sorted(rows, key=_by_start))
    found, was_cut = forecast_core(core, now, BUDGET)
    merged = {JobKey(sequence, member): (start, end) for sequence, member, start, end in rows if was_cut}
    merged.update(found)
    return Said(sorted(((*key, *times) for key, times in merged.items()), key=_by_start), was_cut)


_by_start = itemgetter(2, 0, 1)


def in_calendar(reason: Reason) -> str:
    """Return the text of a reason with its instants by the calendar, and its durations in hours, minutes and seconds.

    Policies say both in seconds of the clock, which in a live server are seconds since 1970.
    """
    text = reason.text
    for names, words in ((INSTANTS, moment), (SPANS, span)):
        for name in names:
            if name in reason.numbers:
                number = reason.numbers[name]
                text = text.replace(f"{number / 1e6:.15g} s", words(number))
    return text


def _stopped(pool: PoolState) -> frozenset[int]:
    """Return the rows of jobs that a user has suspended: nobody knows when they will end."""
    return frozenset(
        job.row for job in pool.running.values() if job.state is BatchState.SUSPENDED and job.present.stopped_by & BY_USER
    )
