"""The story of one job: who was ahead, what it waited for at each pass, what it was promised, what let it start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.engine.states import State
from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import KINDS, Workload
from qbatch.planning.policy import Policy, name_of
from qbatch.replay.calendar import Calendar

_AHEAD = 8


def row_of(workload: Workload, job: str) -> int:
    """Return the row of a job number.

    Raises:
        UsageError: if no job of the workload has it.
    """
    is_number = job.lstrip("-").isdecimal() and job.isascii() and len(job) < 18
    rows = np.flatnonzero(workload.number == int(job)) if is_number else np.empty(0, np.int64)
    if not len(rows):
        low, high = int(workload.number.min()), int(workload.number.max())
        raise UsageError(f"--explain {job!r}: no job of this number runs in {workload.name} (numbers {low} to {high})")
    return int(rows[0])


class _Listener:
    """Writes down what each pass meant for one row."""

    def __init__(self, workload: Workload, row: int) -> None:
        self.workload = workload
        self.row = row
        self.lines: list[str] = []
        self.last: tuple[str, tuple[int, ...], int | None] | None = None
        self.repeated = 0

    def __call__(self, engine: Engine, done: Round) -> None:
        """Look at one round."""
        if self.row in done.arrived:
            self._arrival(engine, done)
        elif self.row in done.requeued:
            self.lines.append(f"{_time(done.at)}  its quantum is over without its end; it waits again")
            self.last = ("", (), None)
        elif self.last is None:
            return
        state = engine.state_of(self.row)
        if state is State.QUEUED:
            self._wait(engine, done)
        elif self.last is not None:
            if state in (State.RUNNING, State.FINISHED):
                self._start(done)
            else:
                self._flush()
                self.lines.append(f"{_time(done.at)}  {state.value}")
            self.last = None

    def _arrival(self, engine: Engine, done: Round) -> None:
        view = engine.view()
        ahead = [int(self.workload.number[row]) for row in view.queue.tolist() if row < self.row]
        shown = ", ".join(map(str, ahead[:_AHEAD])) + (
            f" and {len(ahead) - _AHEAD} more" if len(ahead) > _AHEAD else ""
        )
        self.lines.append(f"{_time(done.at)}  arrived; {len(ahead)} ahead in the queue{': ' + shown if ahead else ''}")
        self.last = ("", (), None)

    def _wait(self, engine: Engine, done: Round) -> None:
        reason = engine.explain(self.row)
        promise = engine.promise_to(self.row)
        told = "" if promise is None else f"; promised {_time(promise)}"
        now = (reason.code, reason.blocked_by[:1], promise)
        if now == self.last:
            self.repeated += 1
            return
        self._flush()
        self.last = now
        self.lines.append(f"{_time(done.at)}  waits [{reason.code}] {reason.text}{told}")

    def _flush(self) -> None:
        if self.repeated:
            self.lines.append(f"{'':>12}  ... and so at the next {self.repeated} passes")
            self.repeated = 0

    def _start(self, done: Round) -> None:
        self._flush()
        numbers = [str(self.workload.number[row]) for row in done.finished]
        freed = f"after the end of job {', '.join(numbers)}" if numbers else "when nothing had just ended"
        waited = (done.at - int(self.workload.submit[self.row])) / 1e6
        self.lines.append(f"{_time(done.at)}  started {freed}; it had waited {waited:g} s")


def _time(instant: int) -> str:
    return f"{instant / 1e6:>10.15g} s"


def tell_story(workload: Workload, machine: Machine, policy: Policy, job: str) -> Iterator[str]:
    """Return the story of one job under a policy, line by line, from a replay through the engine.

    Raises:
        UsageError: if no job has this number.
    """
    row = row_of(workload, job)
    listener = _Listener(workload, row)
    schedule = Calendar(workload, machine, policy).run(listener)
    asked = f"{workload.procs[row]} processors for {workload.estimate[row] / 1e6:.15g} s"
    submitted = _time(int(workload.submit[row])).strip()
    yield f"job {workload.number[row]} under {name_of(policy)}: asks for {asked}, submitted {submitted}"
    yield from listener.lines
    if schedule.start[row] < 0:
        return
    kind = KINDS[schedule.kind[row]].replace("_", " ")
    yield f"{_time(int(schedule.end[row]))}  ended after {workload.run[row] / 1e6:.15g} s; it was started {kind}"
    first = int(schedule.first_promise[row])
    if first >= 0:
        early = (first - int(schedule.start[row])) / 1e6
        yield f"{'':>12}  its first promise was {_time(first).strip()}; it started {early:g} s before that"
