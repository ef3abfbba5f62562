"""The forecasts of a live server: a forked child makes them; they are kept for a moment and
compared with the real starts.

A copy of the core runs on in virtual time, instant by instant, as the daemon does
(:mod:`qbatch.daemon.core.passes`): the policy, run limits, dependencies and start times decide as
they will.  Each job runs for its walltime, or for its expected run time, and ends with status 0; no
job is submitted and no hold is released.  The copy stops when the asked-for starts are known, so
the question bounds the cost, not the queue.
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
from qbatch.daemon.core.execution import go_on
from qbatch.daemon.core.explain import reason_for
from qbatch.daemon.core.job import BatchJob, BatchState, hold_text
from qbatch.daemon.core.state import Core, Happening, PoolState
from qbatch.daemon.warm import are_cached
from qbatch.model.progress import time_left
from qbatch.model.reasons import INSTANTS, SPANS, Reason
from qbatch.planning.kernels.entries import serve_compiled
from qbatch.planning.policy import Phased, name_of
from qbatch.planning.run_times import LAST, mean_run_time, outlasting
from qbatch.planning.view import OVERDUE
from qbatch.results.shown import moment, span
from qbatch.wire.identifiers import ARRAY, JobKey, parse_id
from qbatch.wire.records import JobRecord

log = logging.getLogger("qbatch")

ALL = 1 << 62
"""A number of starts that is never reached; it asks for all."""

BUDGET = 30.0
"""Seconds for one forecast; a job without a start by then has no forecast."""

KEPT = 2.0
"""Seconds for which a forecast of a long queue is used, whatever happens meanwhile."""

MOST_MADE_ANEW = 2000
"""Waiting jobs up to which every question gets a forecast of its own."""

MOST_TRACKED = 10_000
"""Jobs at most of which the first forecast is kept, to be compared with the real start."""

PART = 1000
"""Jobs that are read from a forecast before other requests have their turn."""

MOST_EXPLAINED = 300
"""The longest queue in which the comment of every job is explained in full."""


class Expected(NamedTuple):
    """The expected start and end of a job, in microseconds."""

    start: int
    end: int


class ExpectedStarts(NamedTuple):
    """Expected starts.

    ``found``: by job.  ``is_whole``: has every job that starts without help.  ``was_cut``: the time
    for the forecast ran out.
    """

    found: dict[JobKey, Expected]
    is_whole: bool
    was_cut: bool


class AsExpected:
    """Run times of jobs in a forecast: their walltimes, or their expected run times; each ends with
    0."""

    def __init__(self, core: Core) -> None:
        self._core = core
        # None of the forecast itself.
        self._by_user = {user: tuple(ended) for user, ended in core.run_times.items()}

    def run_of(self, job: BatchJob) -> int:
        """Return the expected run time of a job in all, in microseconds.

        It is the walltime, or the mean run time of the user's last jobs; a job that has run longer
        than that is expected to run on, at most to its walltime.
        """
        walltime = job.prepared.walltime
        is_estimate = self._core.settings.forecast_run_times == "estimates"
        found = (
            None if is_estimate else mean_run_time(self._by_user.get(job.user, ()), LAST, walltime)
        )
        if found is None:
            return walltime
        return (
            found
            if job.attempt is None
            else outlasting(found, job.walltime_used(self._core.now), walltime)
        )

    def status_of(self, job: BatchJob) -> int:
        """Return 0."""
        return 0


def forecast(
    core: Core, now: int, *, first: int = ALL, keys: Iterable[JobKey] = (), budget: float = ALL
) -> ExpectedStarts:
    """Return when waiting jobs start and end: the jobs that are asked for, and others that became
    known meanwhile.

    The end of a job is known at its start, unless the policy may still suspend or resize it; then
    the forecast goes on to the end.  It looks for a job that never starts until nothing is due any
    more.

    Args:
        core: a copy of the live core; the forecast changes it.
        now: the instant from which to continue, in microseconds.
        first: how many jobs are asked for, the first to start.
        keys: jobs that are asked for as well; of an array the first of its jobs to start.
        budget: seconds that the forecast may take.
    """
    deadline = time.monotonic() + budget
    _prepare(core, now)
    starts = _Starts(core)
    wanted = set(keys)
    # Waiting jobs that a user holds and nothing deletes: they wait during the whole forecast.
    held = 0
    if any(queue.counts.get(BatchState.HELD) for queue in core.queues.values()):
        waiting = (
            each for job in core.live_jobs() for each in core.members(job) if each.is_waiting
        )
        held = sum(bool(each.hold) and not each.unmet and not each.spec.depend for each in waiting)

    def any_waits() -> bool:
        return sum([queue.waiting for queue in core.queues.values()]) > held

    # Whether these have started: of what starts later only ``keys`` are asked for.
    has_first = first <= 0
    at: int | None = now
    while at is not None:
        passes.advance(core, max(core.now, at))
        wanted.difference_update(starts.take(core.take_effects()))
        if not has_first and (
            len(starts.found) + len(starts.unsettled) >= first or not any_waits()
        ):
            has_first = True
            wanted.update(starts.unsettled)
        if has_first and not wanted:
            break
        if time.monotonic() > deadline:
            return ExpectedStarts(starts.known(), is_whole=False, was_cut=True)
        at = core.now if core.is_dirty else passes.next_due(core)
    return ExpectedStarts(starts.known(), is_whole=at is None or not any_waits(), was_cut=False)


def _prepare(core: Core, now: int) -> None:
    """Let running jobs end as expected, as emulated jobs do."""
    core.settings = structs.replace(core.settings, executor="emulated", mail_command=())
    core.runs, core.faults, core.keeps_records = AsExpected(core), [], False
    core.now = max(core.now, now)
    for pool in core.pools:
        for job in pool.running.values():
            progress, work = job.under_way, core.runs.run_of(job) * job.prepared.request.procs
            progress.stand_still(core.now)
            progress.work = (
                work if progress.done < work else progress.done + OVERDUE * progress.procs
            )
            if job.state is not BatchState.SUSPENDED:
                go_on(core, job)
    core.take_effects()


class _Starts:
    """The jobs that have started in a forecast.

    ``found``: jobs with a known end.  ``unsettled``: starts of jobs without one: the policy has
    suspended them, may suspend or resize them, or they are on a trial run that ends first.
    """

    def __init__(self, core: Core) -> None:
        self.found: dict[JobKey, Expected] = {}
        self.unsettled: dict[JobKey, int] = {}
        self._core = core
        # They started before the forecast.
        self._on_hosts = {key for pool in core.pools for key in pool.running}
        self._changes = {  # pools with a policy that may suspend or resize every running job
            pool.settings.name
            for pool in core.pools
            if isinstance(pool.policy, Phased) or getattr(pool.policy, "is_malleable", False)
        }

    def take(self, effects: Iterable[object]) -> list[JobKey]:
        """Take the effects of an instant; return the jobs of which start and end are known since
        then."""
        touched: dict[JobKey, None] = {}
        settled: list[JobKey] = []
        for effect in effects:
            if (
                not isinstance(effect, Happening)
                or (key := effect.key) is None
                or key.member == ARRAY
                or key in self._on_hosts
            ):
                continue
            if effect.kind == "started":
                self.unsettled[key] = effect.at
                touched[key] = None
            elif effect.kind == "requeued":  # a trial or a lost attempt: it will start again
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
            if key not in self.unsettled or job is None or job.under_way.due < 0:
                continue
            pool = self._core.pool_of(job)
            # It runs on until its end.
            if pool.settings.name not in self._changes and not _is_on_trial(pool, job):
                self.found[key] = Expected(self.unsettled.pop(key), job.under_way.due)
                settled.append(key)
        return settled + [JobKey(key.sequence, ARRAY) for key in settled if key.member >= 0]

    def known(self) -> dict[JobKey, Expected]:
        """Return all starts; a job with an unsettled end has the end of an uninterrupted run from
        now on."""
        known = dict(self.found)
        for key, start in self.unsettled.items():
            job = self._core.find(key)
            if job is not None and not _is_on_trial(self._core.pool_of(job), job):
                progress = job.under_way
                left = time_left(progress.work - progress.worked(self._core.now), progress.procs)
                known[key] = Expected(start, self._core.now + left)
        return known


def _is_on_trial(pool: PoolState, job: BatchJob) -> bool:
    """Return whether a job is on a trial run that its quantum ends before its estimate: it will
    start again."""
    if job.row < 0 or not pool.engine.is_trial(job.row):
        return False
    view = pool.engine.view()
    run = view.running[job.row]
    return run.expected_end < run.since + view.jobs[job.row].estimate


def is_hopeful(core: Core, job: BatchJob) -> bool:
    """Return whether a job, or any of an array, waits and may start without help: its queue is
    started, no user holds it."""
    return core.queue(job.queue).started and any(
        each.is_waiting and not each.hold for each in core.members(job)
    )


class Made(NamedTuple):
    """A forecast.

    ``found``: the expected start and end of waiting jobs, by start.  ``reaches``: how many jobs it
    has, the first to start; ``ALL``: all that start without help.  ``missing``: why jobs that could
    start are missing, code and words; else empty.
    """

    found: dict[JobKey, Expected]
    reaches: int = ALL
    missing: tuple[str, str] = ("", "")

    def has(self, core: Core, key: JobKey) -> bool:
        """Return whether the forecast has a job, or any of an array."""
        job = core.jobs.get(key.sequence) if key.member == ARRAY else None
        return (
            key in self.found
            if job is None
            else any(each.key in self.found for each in core.members(job))
        )


_Answer = tuple[list[tuple[int, int, int, int]], bool, bool]
"""The answer of the child: sequence number, index, start and end of each job, by start;
``is_whole`` and ``was_cut`` as in :class:`ExpectedStarts`."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Answer).decode


class Forecaster:
    """Makes forecasts and tracks their error.

    ``core`` returns the present state, which another may replace; ``passes`` counts the passes:
    after each, other jobs may wait.
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
        """Return a forecast of the ``first`` jobs to start (``ALL``: all), and of those of ``jobs``
        that start without help.

        Of an array it has the first of its jobs to start.  It may have others as well.
        """
        core = self._core()
        keys = {job.key for job in jobs if is_hopeful(core, job)}
        if not first and not keys:
            return Made({})
        age = asyncio.get_running_loop().time() - self._made_at
        waiting = sum(queue.waiting for queue in core.queues.values())
        last = self._last
        if (self._state() == self._made_of and age < 60) or (
            age < KEPT and waiting > MOST_MADE_ANEW
        ):
            if last.reaches == ALL or (
                last.reaches >= first and all(last.has(core, key) for key in keys)
            ):
                return last
            # Clients read a long queue page by page: each forecast of one state goes twice as far
            # as the one before it.
            first = max(first, 2 * last.reaches)
        self._asked_first = max(self._asked_first, first)
        self._asked_keys |= keys
        if self._running is not None:
            # It is made of an older state: the asker may have submitted a job since.
            await asyncio.shield(self._running)
        if self._running is None:
            self._running = asyncio.create_task(self._make())
            self._running.add_done_callback(self._over)
        return await asyncio.shield(self._running)

    def _state(self) -> tuple[int, int]:
        """Return what distinguishes the present state from another one."""
        core = self._core()
        return core.events_made, core.now if self._clock.mode != "real" else 0

    def _over(self, task: asyncio.Task[Made]) -> None:
        self._running = None

    async def _make(self) -> Made:
        core, state = self._core(), self._state()
        first, keys, self._asked_first, self._asked_keys = (
            self._asked_first,
            self._asked_keys,
            0,
            set(),
        )
        now = max(core.now, self._clock.now())

        def in_child() -> bytes:
            # To compile them takes longer than a forecast may.
            if are_cached(name_of(pool.engine.policy) for pool in core.pools):
                serve_compiled()
            with undisturbed():
                found, is_whole, was_cut = forecast(
                    core, now, first=first, keys=keys, budget=BUDGET
                )
            by_start = sorted(
                ((*key, *times) for key, times in found.items()), key=itemgetter(2, 0, 1)
            )
            return _encode((by_start, is_whole, was_cut))

        jobs: list[tuple[int, int, int, int]] = []
        is_whole, was_cut, missing = True, False, ("", "")
        if any(queue.waiting for queue in core.queues.values()):
            try:
                jobs, is_whole, was_cut = _decode(await Child(in_child).answer(2 * BUDGET))
            except ChildFailed as error:
                log.warning("no forecast: %s", error)
                missing = ("no-forecast", "the forecast could not be made")
        reaches = ALL if is_whole or was_cut else len(jobs)
        if was_cut:
            missing = ("not-reached", f"the forecast was not done within {BUDGET:.0f} s")
        elif not is_whole:
            missing = (
                "not-reached",
                "the forecast was made for other jobs and did not go so far; ask again",
            )
        found: dict[JobKey, Expected] = {}
        for count, (sequence, member, start, end) in enumerate(jobs):
            if count % PART == PART - 1:
                await asyncio.sleep(0)
            job = core.find(JobKey(sequence, member))
            if job is not None and job.is_waiting:
                found[job.key] = Expected(start, end)
        self._last, self._made_of = Made(found, reaches, missing), state
        self._made_at = asyncio.get_running_loop().time()
        for key, expected in found.items():
            if len(self._first) >= MOST_TRACKED:
                break
            self._first.setdefault(key, expected.start)
        return self._last

    def started(self, event: Happening) -> None:
        """Compare the start of a job with its first forecast."""
        if event.key is None:
            return
        expected = self._first.pop(event.key, None)
        if expected is not None:
            error = (event.at - expected) / 1e6
            self._errors += 1
            self._error_sum += error
            self._absolute_sum += abs(error)

    def error(self) -> dict[str, float]:
        """Return the error of first forecasts, in seconds; positive if jobs started later than
        forecast."""
        if not self._errors:
            return {}
        count = self._errors
        return {
            "count": count,
            "mean_s": self._error_sum / count,
            "mean_absolute_s": self._absolute_sum / count,
        }

    def forget(self, key: JobKey) -> None:
        """Drop the forecast of a job that ended without a start."""
        self._first.pop(key, None)

    def with_estimate(self, record: JobRecord, made: Made) -> JobRecord:
        """Return a record with the forecast of its start, or why it has none; an array has that of
        its first job."""
        core = self._core()
        job = core.find(parse_id(record.id))
        if job is None or not (job.is_waiting or job.state is BatchState.BEGUN):
            return record
        waiting = [each for each in core.members(job) if each.is_waiting]
        starts = [made.found[each.key].start for each in waiting if each.key in made.found]
        if starts:
            return structs.replace(record, estimated_start=min(starts))
        return (
            structs.replace(record, no_estimate=self.why_none(waiting[0], made)[1])
            if waiting
            else record
        )

    def why_none(self, job: BatchJob, made: Made) -> tuple[str, str]:
        """Return why a waiting job is not in a forecast: code and words."""
        core = self._core()
        is_first = not job.is_subjob or not core.jobs[job.sequence].unmet
        depends = job if is_first else core.jobs[job.sequence]
        if made.missing[0] and not job.hold:
            return made.missing
        if job.state is BatchState.HELD and job.hold:
            return "held", f"is held ({hold_text(job.hold)}) until somebody releases it"
        if depends.unmet:
            what = depends.spec.depend or "a job that was to come before it"
            return (
                "dependency",
                f"it is not known when, or whether, its dependency will be fulfilled ({what})",
            )
        queue = core.queues[job.queue]
        if not queue.started:
            return "queue-stopped", f"queue {job.queue} is stopped until somebody starts it"
        pool = core.pool_of(job)
        text = (
            f"{pool.name_of_policy} would not start it by itself, even when all that runs has ended"
        )
        # To explain each of them would take minutes.
        if job.row >= 0 and self._facts(pool)[0] > MOST_EXPLAINED:
            return "no-start", text
        reason = self.reason(job)
        return (
            (reason.code, reason.text)
            if reason.code == "arriving"
            else ("no-start", f"{text} ({reason.text})")
        )

    def reason(self, job: BatchJob) -> Reason:
        """Return why a job waits, in words for users: instants as dates, durations in hours, users
        by name.

        Policies write both in seconds of the clock, which in a live server are seconds since 1970.
        """
        reason = reason_for(self._core(), job)
        text = reason.text
        for names, words in ((INSTANTS, moment), (SPANS, span)):
            for name in names:
                if name in reason.numbers:
                    number = reason.numbers[name]
                    text = text.replace(f"{number / 1e6:.15g} s", words(number))
        if "predicted" in reason.numbers:
            text = text.replace("of its user", f"of {job.user}")
        return structs.replace(reason, text=text)

    def short_reason(self, job: BatchJob) -> str:
        """Return the comment of a waiting job for ``qstat -s``; it is complete if the queue is
        short."""
        core = self._core()
        pool = core.pool_of(job)
        waiting, free = self._facts(pool)
        is_queued = job.state is BatchState.QUEUED or not job.is_waiting
        if not is_queued or job.run_limit or job.row < 0 or waiting <= MOST_EXPLAINED:
            return f"Not Running: {self.reason(job).text}"
        procs = job.prepared.demand.procs
        if procs > free:
            return f"Not Running: needs {procs} processors, {free} are free"
        return (
            f"Not Running: waits for its turn ({pool.name_of_policy}); see: qbatch explain "
            f"{core.id_of(job.key)}"
        )

    def _facts(self, pool: PoolState) -> tuple[int, int]:
        """Return how many jobs wait in a pool and how many processors are free there; looked up
        once for each state."""
        state = (self._core().events_made, self._passes.count)
        if state != self._facts_of:
            self._facts_of, self._known = state, {}
        if pool.settings.name not in self._known:
            view = pool.engine.view()
            self._known[pool.settings.name] = (len(view.queue), view.free_procs)
        return self._known[pool.settings.name]
