"""The schedule drawn pass by pass as text, for teaching: processors down, time across."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Break, Promise, Reject, Resize, Resume, Start, Suspend, procs_of
from qbatch.model.errors import UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.planning.policy import Policy, Reserving, name_of
from qbatch.simulation.calendar import Calendar

MOST_JOBS = 200
MOST_PROCS = 64
WIDTH = 72

_SYMBOLS = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0"


class DrawnSteps(NamedTuple):
    """A schedule pass by pass: the heading with the meaning of the signs, and the lines of each
    pass."""

    heading: list[str]
    passes: list[list[str]]


def draw_steps(workload: Workload, machine: Machine, policy: Policy) -> DrawnSteps:
    """Return what happened at each pass and the chart after it.

    A job is drawn by the symbol of its number, and the rest of its estimate as dots.  A reservation
    of a waiting job is its symbol and slashes, for as long as its estimate.

    Raises:
        UsageError: the log or the machine is too large to draw.
    """
    if len(workload) > MOST_JOBS or machine.procs > MOST_PROCS:
        raise UsageError(
            f"--step draws up to {MOST_JOBS} jobs on {MOST_PROCS} processors; this is "
            f"{len(workload)} jobs on "
            f"{machine.procs}: use --first N for fewer jobs, --procs N or another log for fewer "
            "processors"
        )
    board = _Board(workload, machine)
    Calendar(workload, machine, policy).run(board)
    heading = [
        (
            f"{name_of(policy)}: {len(workload)} jobs on {machine.procs} processors; 12(C) is job "
            "12, "
            "drawn as C"
        ),
        "CCC has run   ... may still run, by its estimate   C// reserved   ^ now",
        "waiting: 12(C) 8x40 by 90   asks for 8 processors for 40 s; promised by 90 s",
    ]
    return DrawnSteps(heading, list(board.passes()))


class _DrawnPass(NamedTuple):
    """A round and the state after it: the expected ends of running rows, the waiting rows with
    their promised starts, and the begins of the reservations of waiting rows."""

    done: Round
    running: dict[int, int]
    waiting: list[tuple[int, int | None]]
    plan: dict[int, int]


class _Board:
    """The record of every round: what happened, which jobs run where, which wait."""

    def __init__(self, workload: Workload, machine: Machine) -> None:
        self.workload = workload
        self.procs = machine.procs
        self.free = set(range(machine.procs))
        self.spans: dict[int, list[tuple[int, int | None, list[int]]]] = {}
        self.rounds: list[_DrawnPass] = []
        self.first = int(workload.submit[0])
        self.edge = self.first  # the right edge of the chart, which shows every plan whole

    def __call__(self, engine: Engine, done: Round) -> None:
        view = engine.view()
        for row in (*done.finished, *done.stopped, *done.requeued):
            self._stop(row, done.at)
        for action in done.actions:
            if isinstance(action, Suspend) or (
                isinstance(action, Resize) and action.row in view.running
            ):
                self._stop(action.row, done.at)
            if isinstance(action, Start):
                self._go(action.row, procs_of(action.allocation), done.at)
            elif isinstance(action, Resume):
                self._go(action.row, view.running[action.row].procs, done.at)
            elif isinstance(action, Resize) and action.row in view.running:
                self._go(action.row, action.procs, done.at)
        queue = view.queue.tolist()
        running = {row: view.expected_end(run) for row, run in view.running.items()}
        waiting = [(row, engine.promise_to(row)) for row in queue]
        if isinstance(engine.policy, Reserving):
            plan = {row: begin for row, _, begin in engine.policy.reserved_after(view) if begin}
        else:  # the planned or promised starts
            begins = {
                row: engine.explain(row).numbers.get("planned", engine.promise_to(row))
                for row in queue
            }
            plan = {row: begin for row, begin in begins.items() if begin is not None}
        self.rounds.append(_DrawnPass(done, running, waiting, plan))
        ends = (begin + int(self.workload.estimate[row]) for row, begin in plan.items())
        self.edge = max(self.edge, *running.values(), *ends, self.first)

    def _go(self, row: int, procs: int, at: int) -> None:
        lanes = sorted(self.free)[:procs]
        self.spans.setdefault(row, []).append((at, None, lanes))
        self.free -= set(lanes)

    def _stop(self, row: int, at: int) -> None:
        begin, _, lanes = self.spans[row].pop()
        self.spans[row].append((begin, at, lanes))
        self.free |= set(lanes)

    def passes(self) -> Iterator[list[str]]:
        """Return the lines of each pass; the last one is the last pass with an event."""
        # In the first round at least one job arrived.
        while not any(self._happened(self.rounds[-1].done)):
            self.rounds.pop()  # a timer of a policy that had nothing left to decide
        self.edge = max(self.edge, self.rounds[-1].done.at)
        for each in self.rounds:
            waiting = ", ".join(self._waits(row, promise) for row, promise in each.waiting)
            yield [
                (
                    f"t = {each.done.at / 1e6:.15g} s: "
                    f"{'; '.join(self._happened(each.done)) or 'nothing started'}"
                ),
                *([f"  waiting: {waiting}"] if waiting else []),
                *self._chart(each),
            ]

    def _name(self, row: int) -> str:
        return f"{self.workload.number[row]}({_symbol(row)})"

    def _happened(self, done: Round) -> Iterator[str]:
        for rows, what in (
            (done.finished, "ended"),
            (done.arrived, "arrived"),
            (done.stopped, "suspended at the end of its time"),
            (done.requeued, "waits again after its trial run"),
        ):
            if rows:
                yield f"{what} {', '.join(map(self._name, rows))}"
        started = {action.row: action for action in done.actions if isinstance(action, Start)}
        for row, start in started.items():
            ahead = done.first_waiting is not None and done.first_waiting < row
            how = " for a trial run" if start.is_trial else " (backfilled)" if ahead else ""
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

    def _waits(self, row: int, promise: int | None) -> str:
        by = "" if promise is None else f" by {promise / 1e6:.15g}"
        return f"{self._name(row)} {self.workload.procs[row]}x{self.workload.estimate[row] / 1e6:g}{by}"

    def _intervals(self, now: int) -> Iterator[tuple[int, int, int | None, list[int]]]:
        """Return row, begin, end (None: after now) and lanes of the execution intervals that began
        by now.

        An interval without length is drawn only if it is the job's last.
        """
        for row, spans in self.spans.items():
            for begin, over, lanes in spans:
                is_empty = over == begin and (begin, over, lanes) != spans[-1]
                if begin <= now and not is_empty:
                    yield row, begin, over if over is not None and over <= now else None, lanes

    def _reserved(self, drawn: _DrawnPass) -> Iterator[tuple[int, int, int, list[int]]]:
        """Return row, begin, end and lanes of the reservations.

        In order of begin each takes lanes that are free by then, by the estimates of the running
        jobs; they suffice for jobs that fit the machine.
        """
        now = drawn.done.at
        free_from = [now] * self.procs
        for row, _, over, lanes in self._intervals(now):
            if over is None and row in drawn.running:
                for lane in lanes:
                    free_from[lane] = max(drawn.running[row], now)
        for begin, row in sorted((max(begin, now), row) for row, begin in drawn.plan.items()):
            end = begin + int(self.workload.estimate[row])
            lanes = [lane for lane in range(self.procs) if free_from[lane] <= begin][
                : int(self.workload.procs[row])
            ]
            for lane in lanes:
                free_from[lane] = end
            yield row, begin, end, lanes

    def _chart(self, drawn: _DrawnPass) -> Iterator[str]:
        now, running = drawn.done.at, drawn.running
        cells = [[" "] * WIDTH for _ in range(self.procs)]
        for row, start, over, lanes in self._intervals(now):
            is_running = row in running and over is None
            begin, end = self._column(start), self._column(now if over is None else over)
            if end == begin and (is_running or (now if over is None else over) > start):
                end += 1  # every run is visible
            for lane in lanes:
                for place in range(begin, min(end, WIDTH)):
                    cells[lane][place] = _symbol(row)
                if is_running:
                    _fill(cells[lane], end, self._column(running[row]), ".")
        for row, start, over, lanes in self._reserved(drawn):
            begin = self._column(start)
            for lane in lanes:
                _fill(cells[lane], begin, begin + 1, _symbol(row))
                _fill(cells[lane], begin + 1, self._column(over), "/")
        for lane in reversed(range(self.procs)):
            yield f"{lane:>4} |{''.join(cells[lane])}|"
        yield f"{'^':>{self._column(now) + 7}}"
        yield f"      {f'{self.first / 1e6:.15g} s':<{WIDTH // 2}}{f'{self.edge / 1e6:.15g} s':>{WIDTH - WIDTH // 2}}"

    def _column(self, instant: int) -> int:
        return min(max((instant - self.first) * WIDTH // max(self.edge - self.first, 1), 0), WIDTH)


def _fill(cells: list[str], begin: int, end: int, sign: str) -> None:
    """Write a sign into the empty cells."""
    for place in range(begin, min(end, WIDTH)):
        if cells[place] == " ":
            cells[place] = sign


def _symbol(row: int) -> str:
    return _SYMBOLS[row % len(_SYMBOLS)]
