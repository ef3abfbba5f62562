"""The forecasts of a live server: made by a forked child, kept for a moment, and held against what then happens.

A copy of the core goes on in virtual time, instant by instant, as the daemon's own does (:mod:`qbatch.daemon.core.passes`), so
the policy, run limits, dependencies and start times decide as they will.  Each job runs for its walltime, or for the run time
that is expected of it, and ends well; nothing else is submitted, nobody releases a hold.  It goes on until what was asked for
is known: what a forecast costs is bounded by the question, not by the queue.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import NamedTuple

import msgspec
from msgspec import structs

from qbatch.daemon.child import Child, ChildFailed
from qbatch.daemon.clock import Clock, PassTimes
from qbatch.daemon.collector import undisturbed
from qbatch.daemon.core import passes
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BatchJob, BatchState, hold_text
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.model.progress import time_left
from qbatch.model.reasons import INSTANTS, SPANS, Reason
from qbatch.planning.kernels.entries import serve_compiled
from qbatch.planning.policy import Phased
from qbatch.planning.run_times import LAST, mean_run_time, outlasting
from qbatch.planning.view import OVERDUE
from qbatch.results.shown import moment, span
from qbatch.wire.identifiers import ARRAY, JobKey, parse_id
from qbatch.wire.records import JobRecord

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
    """Return the forecast, in the child (:func:`forecast`)."""
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
