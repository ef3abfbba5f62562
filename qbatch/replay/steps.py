"""The schedule drawn pass by pass as text, for teaching: processors down, time across."""

from __future__ import annotations

from collections.abc import Iterator

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Break, Promise, Reject, Resize, Resume, Start, Suspend, procs_of
from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.planning.policy import Policy, name_of
from qbatch.replay.calendar import Calendar

MOST_JOBS = 200
MOST_PROCS = 64
WIDTH = 72

_SYMBOLS = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0"


def draw_steps(workload: Workload, machine: Machine, policy: Policy) -> Iterator[str]:
    """Return, line by line, what happened at each pass and the chart as it stood after it.

    A job is drawn by the last symbol of its number's turn, what it may still take by its estimate as dots.


    Raises:
        UsageError: if the log or the machine is too large to be drawn.
    """
    if len(workload) > MOST_JOBS or machine.procs > MOST_PROCS:
        raise UsageError(
            f"--step draws up to {MOST_JOBS} jobs on {MOST_PROCS} processors; this is {len(workload)} jobs on "
            f"{machine.procs}: use --first N for fewer jobs, --procs N or another log for fewer processors"
        )
    board = _Board(workload, machine)
    schedule = Calendar(workload, machine, policy).run(board)
    board.last = max(board.last, int(schedule.end.max()))
    yield f"{name_of(policy)}: {len(workload)} jobs on {machine.procs} processors"
    yield from board.frames()


class _Board:
    """Remembers every round: what happened, who runs where, who waits."""

    def __init__(self, workload: Workload, machine: Machine) -> None:
        self.workload = workload
        self.procs = machine.procs
        self.free = set(range(machine.procs))
        self.spans: dict[int, list[tuple[int, int | None, list[int]]]] = {}
        self.rounds: list[tuple[Round, dict[int, int], list[tuple[int, int | None]]]] = []
        self.first = int(workload.submit[0])
        self.last = self.first

    def __call__(self, engine: Engine, done: Round) -> None:
        """Note one round."""
        view = engine.view()
        for row in (*done.finished, *done.stopped, *done.requeued):
            self._stop(row, done.at)
        for action in done.actions:
            match action:
                case Start():
                    self._go(action.row, procs_of(action.allocation), done.at)
                case Suspend():
                    self._stop(action.row, done.at)
                case Resume():
                    self._go(action.row, view.running[action.row].procs, done.at)
                case Resize() if action.row in view.running:
                    self._stop(action.row, done.at)
                    self._go(action.row, action.procs, done.at)
                case _:
                    pass
        running = {row: view.expected_end(run) for row, run in view.running.items()}
        waiting = [(row, engine.promise_to(row)) for row in view.queue.tolist()]
        self.rounds.append((done, running, waiting))

    def _go(self, row: int, procs: int, at: int) -> None:
        lanes = sorted(self.free)[:procs]
        self.spans.setdefault(row, []).append((at, None, lanes))
        self.free -= set(lanes)

    def _stop(self, row: int, at: int) -> None:
        begin, _, lanes = self.spans[row].pop()
        self.spans[row].append((begin, at, lanes))
        self.free |= set(lanes)

    def frames(self) -> Iterator[str]:
        """Return the lines of all rounds."""
        for done, running, waiting in self.rounds:
            yield ""
            yield f"t = {done.at / 1e6:.15g} s: {'; '.join(self._happened(done)) or 'nothing started'}"
            if waiting:
                yield "  waiting: " + ", ".join(self._waits(row, promise) for row, promise in waiting)
            yield from self._chart(done.at, running)

    def _name(self, row: int) -> str:
        return f"{self.workload.number[row]}({_symbol(row)})"

    def _happened(self, done: Round) -> Iterator[str]:
        if done.finished:
            yield "ended " + ", ".join(self._name(row) for row in done.finished)
        if done.arrived:
            yield "arrived " + ", ".join(self._name(row) for row in done.arrived)
        if done.stopped:
            yield "suspended, for its time is over, " + ", ".join(self._name(row) for row in done.stopped)
        if done.requeued:
            yield "waits again after its quantum " + ", ".join(self._name(row) for row in done.requeued)
        started = {action.row: action for action in done.actions if isinstance(action, Start)}
        for row, start in started.items():
            ahead = done.first_waiting is not None and done.first_waiting < row
            how = " for a quantum" if start.is_trial else " (backfilled)" if ahead else ""
            procs, asked = procs_of(start.allocation), int(self.workload.procs[row])
            yield f"started {self._name(row)}{f' on {procs} of {asked}' if procs < asked else ''}{how}"
        for action in done.actions:
            match action:
                case Suspend(row=row):
                    yield f"suspended {self._name(row)}"
                case Resume(row=row):
                    yield f"resumed {self._name(row)}"
                case Resize(row=row, procs=procs):
                    yield f"resized {self._name(row)} to {procs} of {self.workload.procs[row]}"
                case Reject(row=row):
                    yield f"rejected {self._name(row)}"
                case Break(row=row, reason=reason):
                    yield f"the promise to {self._name(row)} is broken: {reason.text}"
                case Promise(row=row, at=at) if row not in started:
                    yield f"promised {self._name(row)} a start at {at / 1e6:.15g} s"
                case _:
                    pass

    def _waits(self, row: int, promise: int | None) -> str:
        told = "" if promise is None else f" by {promise / 1e6:.15g}"
        estimate = self.workload.estimate[row] / 1e6
        return f"{self._name(row)} {self.workload.procs[row]}x{estimate:g}{told}"

    def _pieces(self, now: int) -> Iterator[tuple[int, int, int | None, list[int]]]:
        """Return row, begin, end (None: after now) and lanes of what had begun by now.

        A piece without length is drawn only if it is the job's last.
        """
        for row, spans in self.spans.items():
            for begin, over, lanes in spans:
                is_empty = over == begin and (begin, over, lanes) != spans[-1]
                if begin <= now and not is_empty:
                    yield row, begin, over if over is not None and over <= now else None, lanes

    def _chart(self, now: int, running: dict[int, int]) -> Iterator[str]:
        span = max(self.last - self.first, 1)
        cells = [[" "] * WIDTH for _ in range(self.procs)]

        def column(instant: int) -> int:
            return min(max((instant - self.first) * WIDTH // span, 0), WIDTH)

        for row, start, over, lanes in self._pieces(now):
            is_running = row in running and over is None
            end = now if over is None else over
            for lane in lanes:
                for place in range(column(start), max(column(end), column(start) + (end > start or is_running))):
                    if place < WIDTH:
                        cells[lane][place] = _symbol(row)
                for place in range(column(end), column(running[row]) if is_running else 0):
                    if cells[lane][place] == " ":
                        cells[lane][place] = "."
        for lane in reversed(range(self.procs)):
            yield f"{lane:>4} |{''.join(cells[lane])}|"
        mark = [" "] * (WIDTH + 1)
        mark[column(now)] = "^"
        yield f"     {''.join(mark)} now; {self.first / 1e6:.15g} to {self.last / 1e6:.15g} s"


def _symbol(row: int) -> str:
    return _SYMBOLS[row % len(_SYMBOLS)]
