"""The event calendar around the engine: arrivals, completions, timers.

A source makes the jobs and knows how long each really runs; the policy does not.  The tables of running jobs
give the instants of their ends (:mod:`qbatch.replay.known_ends`), and the calendar passes each end to the engine at its instant.

A trial run begins a job's work from zero.  A job that uses more memory than its trial run has never reaches its end there: it
is returned at the instant of its start, in another round.  A job that ends in its trial run has one execution interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Break, Promise, Reject, Start, WakeAt
from qbatch.model.errors import DecisionError, InputError
from qbatch.model.events import Returned
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import Schedule, Workload
from qbatch.planning.policy import Policy, Predicting, name_of
from qbatch.planning.view import View
from qbatch.replay.known_ends import KnownEnds
from qbatch.replay.recorder import Recorder
from qbatch.replay.sources import LogSource, Source

Observer = Callable[[Engine, Round], None]
"""Called after every round."""

ProgressCallback = Callable[[int, int], None]
"""Called from time to time with the rows that have arrived and the instant reached."""

PROGRESS_EVERY = 2000
"""Rounds between two calls of a progress callback."""

_MOST_IDLE = 1_000_000


class Calendar:
    """Replays the jobs of one source through one engine.

    Args:
        jobs: a workload, in order of sequence, or a source.
        machine: the machine on which they run.
        policy: the policy that decides.
        is_audited: check the engine's invariants after every round.
    """

    def __init__(self, jobs: Workload | Source, machine: Machine, policy: Policy, *, is_audited: bool = False) -> None:
        self.source: Source = LogSource(jobs) if isinstance(jobs, Workload) else jobs
        self.engine = Engine(machine, policy, is_audited=is_audited)
        self._policy = policy
        self._ends = KnownEnds(self.engine.runs)
        self._record = Recorder(self.source.size)
        self._idle = 0
        self._arrived = 0

    def run(self, observe: Observer | None = None, progress: ProgressCallback | None = None) -> Schedule:
        """Run to the end and return the schedule.

        Raises:
            DecisionError: the policy asks for something that may not happen, or never starts a job.
            InputError: the source gives jobs in the wrong order, or not at their instants.
            AuditError: an invariant does not hold (audited runs).
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
        check_all_started(self._policy, self.engine.view())
        machine, work, runs = self.engine.machine, self.source.workload(), self.engine.runs
        host = runs.done.host[: len(work)] if machine.single_host and len(machine.hosts) > 1 else None
        schedule = self._record.schedule(work, name_of(self._policy), host, runs.intervals)
        if self.engine.policy is not self._policy:
            return schedule
        return with_predictions(schedule, self._policy, self.engine.view())

    def _make_round(self, instant: int) -> Round:
        """Pass the events of an instant to the engine, and record what it does."""
        finished, failed = self._ends.take(instant)
        if finished:
            self.source.ended(instant, finished)
        arrivals = self._arriving(instant)
        done = self.engine.handle(instant, [Returned(row) for row in failed], arrivals, finished)
        self._account(done)
        return done

    def _check_progress(self, done: Round) -> None:
        if done.stopped or done.requeued or done.refused:
            self._idle = 0
            return
        is_idle = all(isinstance(action, WakeAt) for action in done.actions)
        self._idle = self._idle + 1 if is_idle else 0
        check_idle(self._policy, self._idle, done.at)

    def _next_instant(self) -> int | None:
        instants = (self._ends.next(), self.source.next_instant(), self.engine.next_timer())
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
                    f"the source gave job {job.number} of {job.submit / 1e6:.15g} s as row {job.row} at "
                    f"{instant / 1e6:.15g} s; due were rows from {row} on, by number, submitted at that instant"
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
            elif type(action) is Promise:
                record.promise(action.row, action.at)
            elif type(action) is Break:
                record.forget_promise(action.row)
            elif type(action) is Reject:
                record.reject(action.row, at, action.reason)
        if done.arrived or done.returned or done.requeued:
            record.queue(self.engine.queue_length + started)  # it grows at no other instant


def check_idle(policy: Policy, times: int, at: int) -> None:
    """Refuse a policy that was woken too often in a row without doing anything.

    Raises:
        DecisionError: more than a million times.
    """
    if times > _MOST_IDLE:
        raise DecisionError(
            f"policy {name_of(policy)} was woken {_MOST_IDLE} times in a row by {at / 1e6:.15g} s and did "
            "nothing but ask to be woken again"
        )


def check_all_started(policy: Policy, view: View) -> None:
    """Refuse a policy that left jobs waiting or suspended when no more events can happen.

    Raises:
        DecisionError: it did.
    """
    left = [*view.queue.tolist(), *view.suspended]
    if left:
        raise DecisionError(left_waiting(name_of(policy), len(left), view.jobs[left[0]].number, view.free_procs))


def with_predictions(schedule: Schedule, policy: Policy, view: View) -> Schedule:
    """Return a schedule with the first predictions of its policy, if it predicts run times."""
    if not isinstance(policy, Predicting):
        return schedule
    predicted = policy.first_predictions(view)
    return replace(schedule, predicted=predicted if (predicted >= 0).any() else None)


def left_waiting(policy: str, count: int, first: int, free: int) -> str:
    """Return the error text for a policy that left jobs waiting; ``first``: the number of the first of them."""
    return (
        f"policy {policy} left {count} jobs waiting for ever, the first of them job {first}, with {free} processors free and "
        "no event left"
    )
