"""The event calendar around the engine: arrivals, completions, timers.

A source makes the jobs and knows how long each really runs.  The tables of running jobs contain the
instants of their ends, which no policy sees.  A trial run begins a job's work from zero.  If it has
less memory than the job uses, it is returned at the instant of its start, in another round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.engine.runs import RunTables, longer, places_of
from qbatch.model.actions import Start, WakeAt
from qbatch.model.errors import DecisionError, InputError, UsageError
from qbatch.model.events import Event, HostClosed, HostOpened, Returned
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import Schedule, Workload
from qbatch.model.reservations import Window, windows_of
from qbatch.planning.kernels import heap
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import COUNTS, INTERVAL, RUN, LogTable
from qbatch.planning.policy import Policy, Predicting, name_of
from qbatch.planning.view import View
from qbatch.simulation.recorder import Recorder
from qbatch.simulation.sources import LogSource, Source
from qbatch.workloads.outages import Outage

Observer = Callable[[Engine, Round], None]
"""Called after every round."""

ProgressCallback = Callable[[int, int], None]
"""Called from time to time with the rows that have arrived and the instant reached."""

PROGRESS_EVERY = 2000
"""Rounds between two calls of a progress callback."""

_MOST_IDLE = 1_000_000
_REPEATING = 400 * 86_400 * 1_000_000

_pop = entry_to(heap.pop)
(_ENDS,) = places_of(COUNTS, "ends")
_DUE, _UNTIL = places_of(RUN, "due", "until")


class _KnownEnds:
    """The ends of running jobs, in the tables of an engine before its first arrival: they also keep
    execution intervals then."""

    def __init__(self, runs: RunTables) -> None:
        self._runs = runs
        runs.hold_log(
            LogTable(np.zeros(64, np.int64), np.zeros(64, np.int64), np.empty(0, np.int8))
        )
        runs.hold_state(endings=np.empty((256, 2), np.int64), intervals=np.empty(256, INTERVAL))

    def tell(self, row: int, run: int, used_memory: int) -> None:
        """Set how long a job that is about to arrive runs on its requested processors, in
        microseconds, and how many bytes of memory it uses (-1: what it asks for)."""
        log = self._runs.log
        if row >= len(log.run):
            log = LogTable(longer(log.run, 2 * row), longer(log.used_memory, 2 * row), log.may_run)
            self._runs.hold_log(log)
        log.run[row], log.used_memory[row] = run, used_memory

    def next(self) -> int | None:
        """Return when the next job ends, or the next trial run fails; None if no end is known."""
        counts, endings, cells = self._runs.counts, self._runs.endings, self._runs.cells
        while counts[_ENDS]:
            at, row = endings[0, heap.INSTANT], endings[0, heap.ROW]
            if cells[row, _DUE] == at or (cells[row, _DUE] == FOREVER and cells[row, _UNTIL] == at):
                return int(at)
            self._leave_heap()
        return None

    def take(self, at: int) -> tuple[list[int], list[int]]:
        """Return the rows that end at an instant, and those with a trial run that fails then, both
        ascending."""
        ended: list[int] = []
        failed: list[int] = []
        while self.next() == at:
            row = self._runs.endings[0, heap.ROW]
            found = ended if self._runs.cells[row, _DUE] == at else failed
            if row not in found[-1:]:
                found.append(row)
            self._leave_heap()
        return ended, failed

    def _leave_heap(self) -> None:
        _pop(self._runs.state.endings, self._runs.counts[_ENDS])
        self._runs.counts[_ENDS] -= 1


class Calendar:
    """Replays a workload, or the jobs of another source, through one engine; ``outages``: when hosts
    are closed."""

    def __init__(
        self,
        jobs: Workload | Source,
        machine: Machine,
        policy: Policy,
        *,
        is_audited: bool = False,
        outages: Sequence[Outage] = (),
    ) -> None:
        self.source: Source = LogSource(jobs) if isinstance(jobs, Workload) else jobs
        windows = _windows(machine, jobs) if machine.reservations else ()
        self.engine = Engine(machine, policy, is_audited=is_audited, windows=windows)
        self._policy = policy
        self._ends = _KnownEnds(self.engine.runs)
        self._changes = _changes(outages)
        self._record = Recorder(self.source.size)
        self._idle = 0
        self._arrived = 0

    def run(
        self, observe: Observer | None = None, progress: ProgressCallback | None = None
    ) -> Schedule:
        """Run to the end and return the schedule.

        Raises:
            DecisionError: the policy asks for something that may not happen, or never starts a job.
            InputError: the source gives jobs in the wrong order, or not at their instants.
            AuditError: an invariant does not hold (audited runs).
        """
        count = 0
        while (instant := self._next_instant()) is not None:
            finished, failed = self._ends.take(instant)
            if finished:
                self.source.ended(instant, finished)
            arrivals = self._arriving(instant)
            events: list[Event] = [Returned(row) for row in failed]
            while self._changes and self._changes[0][0] == instant:
                events.append(self._changes.popleft()[1])
            done = self.engine.handle(instant, events, arrivals, finished)
            self._account(done)
            self.source.after_round(done)
            if not (done.finished or done.arrived):
                is_idle = not (done.stopped or done.requeued or done.refused)
                self._idle = (
                    self._idle + 1
                    if is_idle and all(isinstance(each, WakeAt) for each in done.actions)
                    else 0
                )
                check_idle(self._policy, self._idle, done.at)
            if observe is not None:
                observe(self.engine, done)
            count += 1
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(self._arrived, instant)
        check_all_started(self._policy, self.engine.view())
        machine, work, runs = self.engine.machine, self.source.workload(), self.engine.runs
        host = (
            runs.done.host[: len(work)] if machine.single_host and len(machine.hosts) > 1 else None
        )
        schedule = self._record.schedule(work, name_of(self._policy), host, runs.intervals)
        if self.engine.policy is not self._policy:
            return schedule
        return with_predictions(schedule, self._policy, self.engine.view())

    def _next_instant(self) -> int | None:
        instants = [self._ends.next(), self.source.next_instant(), self.engine.next_timer()]
        if self._changes:
            instants.append(self._changes[0][0])
        return min((instant for instant in instants if instant is not None), default=None)

    def _arriving(self, instant: int) -> Sequence[Job]:
        """Return the jobs that arrive at an instant."""
        if self.source.next_instant() != instant:
            return ()
        jobs, last = [], -1
        for job, run, used_memory in self.source.take(instant):
            row = self._arrived
            if job.row != row or job.submit != instant or job.number < last:
                raise InputError(
                    f"the source gave job {job.number} of {job.submit / 1e6:.15g} s as row "
                    f"{job.row} at "
                    f"{instant / 1e6:.15g} s; due were rows from {row} on, by number, submitted at "
                    "that instant"
                )
            jobs.append(job)
            self._ends.tell(row, run, used_memory)
            self._record.add(row, job.submit)
            self._arrived, last = row + 1, job.number
        return jobs

    def _account(self, done: Round) -> None:
        at, record = done.at, self._record
        for row in done.finished:
            record.end(row, at)
        for row, reason in done.refused:
            record.reject(row, at, reason)
        for row in done.broken:
            record.break_promise(row)
        started = 0
        for action in done.actions:
            if type(action) is Start:
                started += record.start(action.row, done)
                if self.engine.machine.chunked:
                    record.place(action.row, action.allocation, self.engine.machine)
            else:
                record.note(action, at)
        if done.arrived or done.returned or done.requeued:
            record.queue(self.engine.queue_length + started)  # it grows at no other instant


def _changes(outages: Sequence[Outage]) -> deque[tuple[int, HostClosed | HostOpened]]:
    """Return when hosts close and open, in order; the outages of one host do not touch."""
    changes: list[tuple[int, HostClosed | HostOpened]] = []
    for begin, end, host in outages:
        changes += [(begin, HostClosed(host)), (end, HostOpened(host))]
    return deque(sorted(changes, key=itemgetter(0)))


def _windows(machine: Machine, jobs: Workload | Source) -> tuple[Window, ...]:
    """Return when the hosts of a machine are reserved, by the clock of the jobs' log.

    Those that repeat do so for 400 days after the last submission.
    """
    if not isinstance(jobs, Workload):
        raise UsageError("reservations need the jobs of a log: their times are by its clock")
    until = int(jobs.submit[-1]) + _REPEATING
    return windows_of(machine.reservations, jobs.clock, until)


def check_idle(policy: Policy, times: int, at: int) -> None:
    """Refuse a policy (DecisionError) that was woken more than a million times in a row without
    doing anything."""
    if times > _MOST_IDLE:
        raise DecisionError(
            f"policy {name_of(policy)} was woken {_MOST_IDLE} times in a row by {at / 1e6:.15g} s "
            "and did "
            "nothing but ask to be woken again"
        )


def check_all_started(policy: Policy, view: View) -> None:
    """Refuse a policy (DecisionError) that left jobs waiting or suspended when no more events can
    happen."""
    left = [*view.queue.tolist(), *view.suspended]
    if left:
        raise DecisionError(
            left_waiting(name_of(policy), len(left), view.jobs[left[0]].number, view.free_procs)
        )


def with_predictions(schedule: Schedule, policy: Policy, view: View) -> Schedule:
    """Return a schedule with the first predictions of its policy, if it predicts run times."""
    if not isinstance(policy, Predicting):
        return schedule
    predicted = policy.first_predictions(view)
    return replace(schedule, predicted=predicted if (predicted >= 0).any() else None)


def left_waiting(policy: str, count: int, first: int, free: int) -> str:
    """Return the error text for a policy that left jobs waiting; ``first``: the number of the first
    of them."""
    return (
        f"policy {policy} left {count} jobs waiting for ever, the first of them job {first}, with "
        f"{free} processors free and "
        "no event left"
    )
