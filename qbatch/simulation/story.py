"""The story of one job: the jobs ahead of it, its waits at each pass, its promises, what made it
start, and what followed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.engine.states import State
from qbatch.model.actions import Break, Reject, Resize, Resume, Start, Suspend, procs_of
from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import KINDS, Workload
from qbatch.planning.policy import Policy, name_of
from qbatch.simulation.calendar import Calendar

_AHEAD = 8


def row_of(workload: Workload, job: str) -> int:
    """Return the row of a job number; a UsageError if no job of the workload has it."""
    is_number = job.lstrip("-").isdecimal() and job.isascii() and len(job) < 18
    rows = np.flatnonzero(workload.number == int(job)) if is_number else np.empty(0, np.int64)
    if not len(rows):
        low, high = int(workload.number.min()), int(workload.number.max())
        raise UsageError(
            f"--explain {job!r}: no job of this number runs in {workload.name} (numbers {low} to "
            f"{high})"
        )
    return int(rows[0])


class _Listener:
    """Writes the line of each pass for one row."""

    def __init__(self, workload: Workload, row: int) -> None:
        self.workload = workload
        self.row = row
        self.lines: list[str] = []
        self.last: tuple[str, tuple[int, ...], int | None] | None = None
        self.repeated = 0
        self.procs = 0
        self.since = -1
        self.is_stopped = False
        self.has_resumed = False
        self.trial = -1

    def __call__(self, engine: Engine, done: Round) -> None:
        if self.row in done.arrived:
            ahead = [
                str(self.workload.number[row])
                for row in engine.view().queue.tolist()
                if row < self.row
            ]
            more = f" and {len(ahead) - _AHEAD} more" if len(ahead) > _AHEAD else ""
            shown = f": {', '.join(ahead[:_AHEAD])}{more}" if ahead else ""
            self._add(done, f"arrived; {len(ahead)} ahead in the queue{shown}")
            self.last = ("", (), None)
        elif self.row in done.requeued:
            is_too_big = done.at == self.since
            why = (
                "it uses more memory than its trial run has"
                if is_too_big
                else "its trial run is over before its end"
            )
            self._add(done, f"{why}; it waits again, from the beginning")
            self.last = ("", (), None)
        if self.row in done.stopped:
            self._suspended(done, " at the end of its time")
        for each in done.actions:
            if isinstance(each, Break) and each.row == self.row:
                self._flush()
                self._add(done, f"its promise is broken [{each.reason.code}] {each.reason.text}")
        started = [
            action
            for action in done.actions
            if isinstance(action, Start) and action.row == self.row
        ]
        if started:
            self._start(done, started[0])
        elif self.last is None:
            self._changes(done)
        elif engine.state_of(self.row) is State.QUEUED:
            self._wait(engine, done)
        else:
            self._flush()
            reasons = [
                each.reason
                for each in done.actions
                if isinstance(each, Reject) and each.row == self.row
            ]
            why = "".join(f" [{reason.code}] {reason.text}" for reason in reasons)
            self._add(done, f"{engine.state_of(self.row).value}{why}")
            self.last = None

    def _wait(self, engine: Engine, done: Round) -> None:
        reason, promise = engine.explain(self.row), engine.promise_to(self.row)
        now = (reason.code, reason.blocked_by[:1], promise)
        if now == self.last:
            self.repeated += 1
            return
        self._flush()
        self.last = now
        promised = "" if promise is None else f"; promised {_time(promise)}"
        self._add(done, f"waits [{reason.code}] {reason.text}{promised}")

    def _flush(self) -> None:
        if self.repeated:
            passes = "pass" if self.repeated == 1 else f"{self.repeated} passes"
            self.lines.append(f"{'':>12}  ... the same at the next {passes}")
            self.repeated = 0

    def _add(self, done: Round, text: str) -> None:
        self.lines.append(f"{_time(done.at)}  {text}")

    def _changes(self, done: Round) -> None:
        """Add what the actions of a round did to the job after its start."""
        for place, action in enumerate(done.actions):
            match action:
                case Suspend(row=self.row):
                    # The start of a trial run follows the suspensions for it.
                    following = next(
                        (each for each in done.actions[place:] if not isinstance(each, Suspend)),
                        None,
                    )
                    self.trial = (
                        following.row if isinstance(following, Start) and following.is_trial else -1
                    )
                    trial = f" for job {self.workload.number[self.trial]}, which gets a trial run"
                    self._suspended(done, trial if self.trial >= 0 else "")
                case Resume(row=self.row):
                    is_over = self.trial >= 0 and self.trial in (*done.finished, *done.requeued)
                    why = (
                        f": the trial run of job {self.workload.number[self.trial]} is over"
                        if is_over
                        else ""
                    )
                    waited = (done.at - self.since) / 1e6
                    self._add(
                        done, f"resumed on {_processors(self.procs)} after {waited:.15g} s{why}"
                    )
                    self.since, self.is_stopped, self.trial, self.has_resumed = (
                        done.at,
                        False,
                        -1,
                        True,
                    )
                case Resize(row=self.row, procs=procs):
                    if not self.is_stopped:
                        self._add(
                            done,
                            (
                                f"has {_processors(procs)} from now on, {_processors(self.procs)} "
                                "before"
                            ),
                        )
                    self.procs = procs

    def _suspended(self, done: Round, why: str) -> None:
        ran = (
            f"{(done.at - self.since) / 1e6:.15g} "
            f"s{' since it resumed' if self.has_resumed else ''}"
        )
        self._add(done, f"suspended{why}; it had run for {ran}")
        self.since, self.is_stopped = done.at, True

    def _start(self, done: Round, action: Start) -> None:
        self._flush()
        self.last, self.since, self.is_stopped, self.has_resumed = None, done.at, False, False
        self.procs, asked = procs_of(action.allocation), int(self.workload.procs[self.row])
        numbers = [str(self.workload.number[row]) for row in done.finished]
        freed = (
            f"after the end of job {', '.join(numbers)}"
            if numbers
            else "when no job had just ended"
        )
        waited = (done.at - int(self.workload.submit[self.row])) / 1e6
        how = f" on {self.procs} of {asked} processors" if self.procs < asked else ""
        if action.until is not None:
            how += f" for {'a trial run of ' if action.is_trial else ''}{(action.until - done.at) / 1e6:.15g} s"
        self._add(done, f"started{how} {freed}; it had waited {waited:g} s")


def _processors(count: int) -> str:
    return f"{count} processor{'' if count == 1 else 's'}"


def _time(instant: int) -> str:
    return f"{instant / 1e6:>10.15g} s"


def tell_story(workload: Workload, machine: Machine, policy: Policy, job: str) -> Iterator[str]:
    """Return the story of one job under a policy, line by line, from a replay through the engine.

    Raises:
        UsageError: no job has this number.
    """
    row = row_of(workload, job)
    listener = _Listener(workload, row)
    schedule = Calendar(workload, machine, policy).run(listener)
    asked = f"{_processors(int(workload.procs[row]))} for {workload.estimate[row] / 1e6:.15g} s"
    submitted = _time(int(workload.submit[row])).strip()
    yield f"job {workload.number[row]} under {name_of(policy)}: asks for {asked}, submitted {submitted}"
    yield from listener.lines
    if schedule.start[row] < 0:
        return
    kind = KINDS[schedule.kind[row]].replace("_", " ")
    run, whole = int(workload.run[row]), int(schedule.end[row]) - int(schedule.start[row])
    ended = f"ended after {run / 1e6:.15g} s"
    if whole != run:
        ended = (
            f"ended {whole / 1e6:.15g} s after its first start, its run time is {run / 1e6:.15g} s"
        )
    yield f"{_time(int(schedule.end[row]))}  {ended}; it was started {kind}"
    first = int(schedule.first_promise[row])
    if first >= 0:
        early = (first - int(schedule.start[row])) / 1e6
        yield f"{'':>12}  its first promise was {_time(first).strip()}; it started {early:g} s before that"
