"""The event calendar around the engine: arrivals, completions, timers.

A source makes the jobs and knows how long each really runs; the engine does not.  The emulated executor runs what the
engine's actions launch, and the calendar tells the engine of each end on the instant at which it is due.

A trial begins a job's work anew.  Of a job that uses more memory than its trial was given, the end is never reached: it
is returned at the instant of its start, in another round.  A job that ends in its trial ran in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush

import msgspec

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Action, Break, Promise, Reject, Resize, Resume, Start, Suspend, WakeAt, procs_of
from qbatch.model.errors import DecisionError, InputError
from qbatch.model.events import Returned
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.progress import NEVER, Progress
from qbatch.model.record import Schedule, Workload
from qbatch.planning.policy import Policy, Predicting, name_of
from qbatch.replay.executor import EmulatedExecutor
from qbatch.replay.recorder import Recorder
from qbatch.replay.sources import LogSource, Source

Observer = Callable[[Engine, Round], None]
"""Called after every round."""

ProgressCallback = Callable[[int, int], None]
"""Called now and then with the rows that have arrived and the instant reached."""

PROGRESS_EVERY = 2000
"""Rounds between two calls of a progress callback."""

_MOST_IDLE = 1_000_000
_WAITING = Progress(0)


class _Living(msgspec.Struct, gc=False):
    """A job that has arrived and not ended, with what only the executor knows (:class:`Arrival`).

    ``progress``: of its run, without an end while it waits.  ``host``: the first on which it runs.
    """

    job: Job
    run: int
    used_memory: int
    progress: Progress
    host: int = -1


class Calendar:
    """Replays the jobs of one source through one engine.

    Args:
        jobs: a workload, in order of sequence, or another source.
        machine: where they run.
        policy: decides.
        is_audited: check the engine's invariants after every round.
    """

    def __init__(self, jobs: Workload | Source, machine: Machine, policy: Policy, *, is_audited: bool = False) -> None:
        self.source: Source = LogSource(jobs) if isinstance(jobs, Workload) else jobs
        self.engine = Engine(machine, policy, is_audited=is_audited)
        self._policy = policy
        self._has_hosts = machine.single_host and len(machine.hosts) > 1
        self._record = Recorder(self.source.size, has_hosts=self._has_hosts)
        self._executor: EmulatedExecutor[int] = EmulatedExecutor(self._note_end)
        self._idle = 0
        self._arrived = 0
        self._living: dict[int, _Living] = {}
        self._ends: list[tuple[int, int]] = []
        self._has_void = False  # whether a run has ever been cut, so that ends among these may not come
        self._outgrown: list[int] = []
        self._arrival: int | None = None

    def run(self, observe: Observer | None = None, progress: ProgressCallback | None = None) -> Schedule:
        """Run to the end and return the schedule.

        Raises:
            DecisionError: if the policy asks for something that may not happen, or leaves a job for ever.
            InputError: if the source gives jobs out of their order, or not at their instants.
            AuditError: if an invariant does not hold (audited runs).
        """
        count = 0
        while (instant := self._next_instant()) is not None:
            done = self._make_round(instant)
            self.source.told(done)
            if not (done.finished or done.arrived):
                self._check_progress(done)
            if observe is not None:
                observe(self.engine, done)
            count += 1
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(self._arrived, instant)
        self._check_nobody_waits()
        schedule = self._record.schedule(self.source.workload(), name_of(self._policy))
        if isinstance(self._policy, Predicting) and self.engine.policy is self._policy:
            predicted = self._policy.first_predictions(self.engine.view())
            return replace(schedule, predicted=predicted if (predicted >= 0).any() else None)
        return schedule

    def _make_round(self, instant: int) -> Round:
        """Tell the engine what falls on an instant, and write down what it does."""
        returned, self._outgrown = self._outgrown, []
        finished, arrivals = self._ended(instant), self._arriving(instant)
        done = self.engine.handle(instant, [Returned(row) for row in returned], arrivals, finished)
        self._account(done)
        return done

    def _check_progress(self, done: Round) -> None:
        if done.stopped or done.requeued or done.refused:
            self._idle = 0
            return
        is_idle = all(isinstance(action, WakeAt) for action in done.actions)
        self._idle = self._idle + 1 if is_idle else 0
        check_idle(self._policy, self._idle, done.at)

    def _check_nobody_waits(self) -> None:
        view = self.engine.view()
        left = [*view.queue.tolist(), *view.suspended]
        if left:
            first = self._living[left[0]].job.number
            raise DecisionError(left_waiting(name_of(self._policy), len(left), first, view.free_procs))

    def _next_instant(self) -> int | None:
        if self._outgrown:
            return self.engine.now
        ends = self._ends
        while self._has_void and ends and not self._is_due(*ends[0]):
            heappop(ends)
        arrival, timer = self.source.next_instant(), self.engine.next_timer()
        found = ends[0][0] if ends else None
        if arrival is not None and (found is None or arrival < found):
            found = arrival
        return timer if timer is not None and (found is None or timer < found) else found

    def _is_due(self, at: int, row: int) -> bool:
        """Tell whether a job ends at an instant: of a run that was cut, an earlier end may stand among the ends."""
        living = self._living.get(row)
        return living is not None and living.progress.due == at

    def _ended(self, instant: int) -> list[int]:
        """Return the rows that end at an instant, ascending."""
        ends, over = self._ends, []
        while ends and ends[0][0] == instant:
            _, row = heappop(ends)
            if self._has_void and not self._is_due(instant, row):
                continue
            self._living[row].progress.due = NEVER
            over.append(row)
        if over:
            self.source.ended(instant, over)
        return over

    def _arriving(self, instant: int) -> Sequence[Job]:
        """Return the jobs that arrive at an instant."""
        if self.source.next_instant() != instant:
            return ()
        jobs, last = [], -1
        for job, run, used_memory in self.source.take(instant):
            row = self._arrived
            if job.row != row or job.submit != instant or job.number < last:
                raise InputError(
                    f"the source gave job {job.number} of {job.submit / 1e6:.15g} s as row {job.row} at "
                    f"{instant / 1e6:.15g} s; due were rows from {row} on, by number, submitted at that instant"
                )
            jobs.append(job)
            self._living[row] = _Living(job, run, used_memory, _WAITING)
            self._record.add(row)
            self._arrived, last = row + 1, job.number
        return jobs

    def _account(self, done: Round) -> None:
        at, record = done.at, self._record
        for row in done.finished:
            over = self._living.pop(row)
            record.end(row, over.progress, over.host, at)
        for row, reason in done.refused:
            record.reject(row, at, reason)
            del self._living[row]
        for row in done.broken:
            record.break_promise(row)
        for row in done.stopped:
            self._pause(row, at)
        for row in done.requeued:
            self._has_void = True
            over = self._living[row]
            record.cut(row, over.progress, over.host, at, is_kept=False)
            over.progress = _WAITING
        started = 0
        for action in done.actions:
            if type(action) is Start:
                started += self._start(action, done)
            elif type(action) is Promise:
                record.promise(action.row, action.at)
            elif type(action) is not WakeAt:
                self._account_seldom(action, at)
        if done.arrived or done.returned or done.requeued:
            record.queue(self.engine.queue_length + started)  # at other instants it has not become longer

    def _account_seldom(self, action: Action, at: int) -> None:
        """Do what an action says that is not of the three of every day."""
        record = self._record
        match action:
            case Break():
                record.forget_promise(action.row)
            case Suspend():
                self._pause(action.row, at)
            case Resume():
                self._executor.resume(action.row, self._living[action.row].progress, at)
            case Resize():
                self._resize(action, at)
            case Reject():
                record.reject(action.row, at, action.reason)
                del self._living[action.row]

    def _start(self, action: Start, done: Round) -> bool:
        """Launch a job; tell whether for the first time."""
        row, allocation = action.row, action.allocation
        living = self._living[row]
        job, procs = living.job, procs_of(allocation)
        living.host = allocation[0].host
        if self._has_hosts or procs != job.procs:
            self._record.place(row, living.host, is_in_pieces=procs != job.procs)
        living.progress = self._executor.launch(row, procs, living.run * job.procs, done.at)
        if action.is_trial:
            used_memory = living.used_memory if living.used_memory >= 0 else job.memory
            if self._executor.fails_trial(self.engine.machine, allocation, used_memory):
                self._executor.give_up(living.progress)
                self._has_void = True
                self._outgrown.append(row)
        return self._record.start(job, row, done)

    def _note_end(self, due: int, row: int) -> None:
        heappush(self._ends, (due, row))

    def _cut(self, row: int, at: int) -> Progress:
        """Write down a run that does not go on as it did; return its progress."""
        self._has_void = True
        progress = self._living[row].progress
        if progress.since >= 0:
            self._record.cut(row, progress, self._living[row].host, at)
        return progress

    def _pause(self, row: int, at: int) -> None:
        self._executor.pause(self._cut(row, at), at)

    def _resize(self, action: Resize, at: int) -> None:
        self._executor.resize(action.row, self._cut(action.row, at), action.procs, at)


def check_idle(policy: Policy, times: int, at: int) -> None:
    """Refuse a policy that was woken so often in a row and did nothing.

    Raises:
        DecisionError: it was more than a million times.
    """
    if times > _MOST_IDLE:
        raise DecisionError(
            f"policy {name_of(policy)} was woken {_MOST_IDLE} times in a row by {at / 1e6:.15g} s and did "
            "nothing but ask to be woken again"
        )


def left_waiting(policy: str, count: int, first: int, free: int) -> str:
    """Return what to say of a policy that left jobs waiting; ``first``: the number of the first of them."""
    return (
        f"policy {policy} left {count} jobs waiting for ever, the first of them job {first}, with {free} processors free and "
        "nothing left to happen"
    )
