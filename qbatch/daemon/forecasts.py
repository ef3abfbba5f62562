"""The forecasts of a live server: made by a forked child, kept for a moment, and held against what then happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import NamedTuple

import msgspec

from qbatch.daemon.child import Child, ChildFailed
from qbatch.daemon.clock import Clock, PassTimes
from qbatch.daemon.collector import undisturbed
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BatchJob, hold_text
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.forecast import ALL, Expected, forecast, is_hopeful
from qbatch.model.reasons import INSTANTS, SPANS, Reason
from qbatch.planning.kernels.live import serve_compiled
from qbatch.results.shown import moment, span
from qbatch.wire.identifiers import ARRAY, JobKey, parse_id
from qbatch.wire.records import JobRecord

log = logging.getLogger("qbatch")

BUDGET = 30.0
"""Seconds for one forecast; a job that has no start by then has none."""

KEPT = 2.0
"""Seconds of the wall for which a forecast of a long queue serves, whatever happens meanwhile."""

MOST_MADE_ANEW = 2000
"""Waiting jobs up to which every question gets a forecast of its own."""

MOST_TRACKED = 10_000

PART = 1000
"""Jobs that are taken over from a forecast before other requests have their turn."""

MOST_EXPLAINED = 300
"""The longest queue in which the comment of every job is explained in full."""


class Made(NamedTuple):
    """A forecast.

    ``found``: the expected start and end of waiting jobs, by start.  ``reaches``: it has the first so many to start; ``ALL``:
    all that start by themselves.  ``missing``: why jobs that could start are not there, code and words; else empty.
    """

    found: dict[JobKey, Expected]
    reaches: int = ALL
    missing: tuple[str, str] = ("", "")

    def has(self, core: Core, key: JobKey) -> bool:
        """Tell whether a job is there, or any of an array."""
        job = core.jobs.get(key.sequence) if key.member == ARRAY else None
        return key in self.found if job is None else any(each.key in self.found for each in core.members(job))


class Said(msgspec.Struct, array_like=True):
    """What the child says: sequence number, index, start and end of each job, by start; whether every start that comes by
    itself is there; whether its time ran out."""

    jobs: list[tuple[int, int, int, int]]
    is_whole: bool = True
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
        self._last = Made({})
        self._made_of: tuple[int, int] = (-1, -1)
        self._made_at = -1e9
        self._asked_first = 0  # what the next forecast is asked for
        self._asked_keys: set[JobKey] = set()
        self._running: asyncio.Task[Made] | None = None
        self._first: dict[JobKey, int] = {}
        self._facts_of = (-1, -1)
        self._known: dict[str, tuple[int, int]] = {}
        self._errors = 0
        self._error_sum = 0.0
        self._absolute_sum = 0.0

    async def until(self, *, first: int = 0, jobs: Iterable[BatchJob] = ()) -> Made:
        """Return a forecast that has the ``first`` jobs to start (``ALL``: all), and all of ``jobs`` that start by themselves.

        Of an array it has whichever of its jobs starts first.  It may have others as well.
        """
        core = self._core()
        keys = {job.key for job in jobs if is_hopeful(core, job)}
        if not first and not keys:
            return Made({})
        age = asyncio.get_running_loop().time() - self._made_at
        waiting = sum(queue.waiting for queue in core.queues.values())
        last = self._last
        if (self._state() == self._made_of and age < 60) or (age < KEPT and waiting > MOST_MADE_ANEW):
            if last.reaches == ALL or (last.reaches >= first and all(last.has(core, key) for key in keys)):
                return last
            # A long queue is asked about page by page: each forecast of one state goes twice as far as the one before it.
            first = max(first, 2 * last.reaches)
        self._asked_first = max(self._asked_first, first)
        self._asked_keys |= keys
        if self._running is not None:
            # It was made of an older state: who asks now may have submitted since.
            await asyncio.shield(self._running)
        if self._running is None:
            self._running = asyncio.create_task(self._make())
            self._running.add_done_callback(self._over)
        return await asyncio.shield(self._running)

    def _state(self) -> tuple[int, int]:
        """Return what tells the present state from another one."""
        core = self._core()
        return core.events_made, core.now if self._clock.mode != "real" else 0

    def _over(self, task: asyncio.Task[Made]) -> None:
        self._running = None

    async def _make(self) -> Made:
        core, state = self._core(), self._state()
        loop = asyncio.get_running_loop()
        first, keys, self._asked_first, self._asked_keys = self._asked_first, self._asked_keys, 0, set()
        said, missing = Said([]), ("", "")
        if any(queue.waiting for queue in core.queues.values()):
            now = max(core.now, self._clock.now())
            try:
                said = _decode(await Child(lambda: _encode(_foretold(core, now, first, keys))).said(2 * BUDGET))
            except ChildFailed as error:
                log.warning("no forecast: %s", error)
                missing = ("no-forecast", "the forecast could not be made")
        if said.was_cut:
            missing = ("not-reached", f"the forecast was not done within {BUDGET:.0f} s")
        reaches = ALL if said.is_whole or said.was_cut else len(said.jobs)
        if reaches != ALL:
            missing = ("not-reached", "the forecast was made for other jobs and did not go so far; ask again")
        found: dict[JobKey, Expected] = {}
        for count, (sequence, member, start, end) in enumerate(said.jobs):
            if count % PART == PART - 1:
                await asyncio.sleep(0)
            job = core.find(JobKey(sequence, member))
            if job is not None and job.is_waiting:
                found[job.key] = Expected(start, end)
        self._last, self._made_of, self._made_at = Made(found, reaches, missing), state, loop.time()
        for key, expected in found.items():
            if len(self._first) >= MOST_TRACKED:
                break
            self._first.setdefault(key, expected.start)
        return self._last

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

    def with_estimate(self, record: JobRecord, made: Made) -> JobRecord:
        """Return a record with the forecast of its start, or why it has none; an array's is that of its first job."""
        core = self._core()
        job = core.find(parse_id(record.id))
        if job is None or not (job.is_waiting or job.state is BatchState.BEGUN):
            return record
        waiting = [each for each in core.members(job) if each.is_waiting]
        starts = [made.found[each.key].start for each in waiting if each.key in made.found]
        if starts:
            return msgspec.structs.replace(record, estimated_start=min(starts))
        return msgspec.structs.replace(record, no_estimate=self.why_none(waiting[0], made)[1]) if waiting else record

    def why_none(self, job: BatchJob, made: Made) -> tuple[str, str]:
        """Return the code and the words of why a waiting job is not in a forecast."""
        core = self._core()
        is_first = not job.is_subjob or not core.jobs[job.sequence].unmet
        depends = job if is_first else core.jobs[job.sequence]
        if made.missing[0] and not job.hold:
            return made.missing
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


def _foretold(core: Core, now: int, first: int, keys: set[JobKey]) -> Said:
    """Return the forecast, in the child (:func:`qbatch.daemon.forecast.forecast`)."""
    serve_compiled()
    with undisturbed():
        found, is_whole, was_cut = forecast(core, now, first=first, keys=keys, budget=BUDGET)
    return Said(sorted(((*key, *times) for key, times in found.items()), key=_by_start), is_whole, was_cut)


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
