"""What runs and what is suspended: each change is a verb of :mod:`qbatch.planning.kernels.verbs`, as in the compiled loops.

The tables hold everything that a kernel reads; an allocation, as policies and drivers see it, is kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from struct import Struct
from typing import Any, cast

import msgspec
import numpy as np

from qbatch.model.actions import Allocation, amounts_of, procs_of
from qbatch.planning.kernels import heap, verbs
from qbatch.planning.kernels.jit import Kernel, is_warm
from qbatch.planning.kernels.live import live, serves_compiled, uncompiled
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    ACTION,
    AMOUNTS,
    COUNTS,
    CPUS,
    DROP,
    END,
    END_NOW,
    HOST,
    INTERVAL,
    PROCS,
    RESIZE,
    RESUME,
    RETURN,
    RUN,
    SINCE,
    START,
    SUSPEND,
    TRY,
    JobColumns,
    LogTable,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.view import Run

SUBMITTED, ESTIMATED, STARTED, ASKED = range(4)
"""Rows of ``Cluster.table``: submission, estimate, first start, and from ``ASKED`` on what is asked of each resource."""

_carried_out, _plainly_carried_out = live(verbs.carried_out), uncompiled(verbs.carried_out)

_plain_actions_left = 10_000
"""How many actions a process still carries out in plain Python, where the verbs would have to be compiled: that takes longer."""

_pop = live(heap.pop)
_NONE = np.empty(0, np.int64)
_UNKNOWN = LogTable(_NONE, _NONE, np.empty(0, np.int8))
_WRITE_ACTION = Struct(f"={len(cast('tuple[str, ...]', ACTION.names))}q").pack_into
_RUNNING, _PARTS, _NOW, _DECIDED, _ENDS, _INTERVALS = (
    cast("tuple[str, ...]", COUNTS.names).index(name) for name in ("running", "parts", "now", "decided", "ends", "intervals")
)
_SINCE, _DONE, _DUE, _END, _UNTIL, _IS_TRIAL, _PROCS, _KEEPS = (
    cast("tuple[str, ...]", RUN.names).index(name)
    for name in ("since", "done", "due", "end", "until", "is_trial", "procs", "keeps")
)  # fmt: skip

Verbs = Callable[[JobColumns, LogTable, StateTables, ScheduleTable], Iterator[int]]
"""Makes a generator that carries out ``counts.decided`` of ``state.actions`` each time that it goes on."""


class RunTables:
    """The running jobs (``running``, in order of their last start) and the suspended ones, by row.

    ``until``: when the engine suspends a running job, or ends its trial; ``trials``: the rows that run one.
    ``tables``: jobs, log, state and schedule, as the kernels take them.  ``shown``, ``ends``, ``amounts``: the parts of running
    jobs, and two rows of them, read-only and longer than what is in use; ``ended``: rows that ended in a round of a loop;
    ``endings``: the heap of ends.
    """

    def __init__(self, table: Int64Array, hosts: Int64Array) -> None:
        self.held: dict[int, Allocation] = {}
        self.running: Mapping[int, Run] = Running(self)
        self.suspended: dict[int, Run] = {}
        self.until: dict[int, int] = {}
        self.trials: set[int] = set()
        self.by_end: tuple[Int64Array, Int64Array, int] | None = None
        rows, most = table.shape[1], 64
        state = StateTables(
            counts=np.zeros(1, COUNTS), endings=np.empty((0, 2), np.int64), waiting=_NONE,
            parts=np.empty((AMOUNTS + hosts.shape[1] + 2, most + hosts.shape[2]), np.int64), hosts=hosts,
            started=np.empty(1, np.int64), places=_NONE, ended=_NONE, stopped=_NONE, returned=_NONE,
            runs=np.zeros(rows, RUN), running=np.empty(most, np.int64), intervals=np.empty(0, INTERVAL),
            actions=np.empty(1, ACTION),
        )  # fmt: skip
        self.hold(_columns(table), _UNKNOWN, state, _schedule(table, np.zeros(rows, np.int64)), _verbs)

    def hold(self, jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable, make: Verbs) -> None:
        """Hold these tables; ``make``: what carries out verbs on them."""
        self.tables, self._make = (jobs, log, state, done), make
        self._go_on: Iterator[int] | None = None
        self._is_compiled = True
        self.counts, self._action = cells_of(state.counts), cells_of(state.actions)
        self.cells = cells_of(state.runs.view(np.int64).reshape(len(state.runs), -1))
        self._parts, self.shown = [cells_of(row) for row in state.parts], read_only(state.parts)
        self.ends, self.amounts = self.shown[END], self.shown[PROCS]
        self.ended, self.endings = cells_of(state.ended), cells_of(state.endings)
        self._most_intervals = len(state.intervals) or -1
        self.by_end = None

    def hold_jobs(self, table: Int64Array) -> None:
        """Hold longer columns of jobs.  Of a job that has not begun, nothing in the tables of runs is looked at."""
        _, log, state, done = self.tables
        runs, host = _longer(state.runs, table.shape[1]), _longer(done.host, table.shape[1])
        self.hold(_columns(table), log, state._replace(runs=runs), _schedule(table, host), self._make)

    def hold_state(self, **tables: Any) -> None:
        """Hold some tables of the state instead of those that were there."""
        jobs, log, state, done = self.tables
        self.hold(jobs, log, state._replace(**tables), done, self._make)

    @property
    def intervals(self) -> Int64Array | None:
        """The execution intervals, of which each has the fields of ``INTERVAL``; None where there are none."""
        count = self.counts[_INTERVALS]
        return self.tables[2].intervals[:count].view(np.int64).reshape(count, -1).copy() if count else None

    @property
    def count(self) -> int:
        """How many parts of running jobs there are."""
        return int(self.counts[_PARTS])

    @property
    def go_on(self) -> Iterator[int]:
        """What carries out verbs on the tables."""
        if self._go_on is None or self._is_compiled is not serves_compiled():
            self._go_on, self._is_compiled = self._make(*self.tables), serves_compiled()
        return self._go_on

    def more_intervals(self) -> None:
        """Make space for more execution intervals."""
        intervals = self.tables[2].intervals
        self.hold_state(intervals=np.concatenate([intervals, np.empty_like(intervals)]))

    def start(self, row: int, allocation: Allocation, procs: int, now: int, until: int | None, *, is_trial: bool) -> None:
        """A job starts on an allocation, of which it uses so many processors."""
        self.held[row] = allocation
        if is_trial:
            self.trials.add(row)
        self._run(TRY if is_trial else START, row, allocation, procs, now, until)

    def end(self, row: int, now: int) -> Run:
        """A running job ends; return what it has done."""
        self._act(END_NOW, row, now)
        return self.over(row, now)

    def give_up(self, row: int, now: int) -> None:
        """The trial of a job is over; what it did is thrown away."""
        self._act(RETURN, row, now)
        self.over(row, now)

    def suspend(self, row: int, now: int, *, keeps_memory: bool) -> None:
        """A running job stands still."""
        self._act(SUSPEND, row, now, held=int(keeps_memory))
        self.stood_still(row, now, keeps_memory=keeps_memory)

    def stood_still(self, row: int, now: int, *, keeps_memory: bool) -> None:
        """Note that a job was suspended."""
        self.suspended[row] = msgspec.structs.replace(self.over(row, now), holds_memory=keeps_memory)

    def resume(self, row: int, procs: int, now: int, until: int | None) -> None:
        """A suspended job goes on."""
        self.held[row] = allocation = self.suspended.pop(row).allocation
        self._run(RESUME, row, allocation, procs, now, until)

    def resize(self, row: int, procs: int, now: int) -> None:
        """A job has another number of processors of its one host; if it is suspended, from when it goes on."""
        run = self.suspended.get(row) or self.run_of(row)
        allocation = (msgspec.structs.replace(run.allocation[0], procs=procs),)
        if row in self.suspended:
            self.suspended[row] = msgspec.structs.replace(run, allocation=allocation)
            return
        del self.held[row]
        self.held[row] = allocation
        self._act(RESIZE, row, now, procs=procs)

    def drop(self, row: int, now: int) -> None:
        """A suspended job goes away, and gives its memory back."""
        run = self.suspended.pop(row)
        if run.holds_memory:
            self._act(DROP, row, now, run.allocation, procs_of(run.allocation))

    def run_of(self, row: int) -> Run:
        """Return the run of a running job."""
        cells = self.cells
        return Run(row, self.held[row], cells[row, _SINCE], cells[row, _END], cells[row, _DONE])

    def over(self, row: int, now: int) -> Run:
        """Return the run of a job that a verb has just stopped; it runs no more."""
        self.until.pop(row, None)
        self.trials.discard(row)
        return Run(row, self.held.pop(row), now, self.cells[row, _END], self.cells[row, _DONE])

    def _run(self, kind: int, row: int, allocation: Allocation, procs: int, now: int, until: int | None) -> None:
        if until is not None:
            self.until[row] = until
        counts, state = self.counts, self.tables[2]
        if counts[_RUNNING] == len(state.running):
            self.hold_state(running=np.concatenate([state.running, np.empty_like(state.running)]))
        # Behind the parts in use there is always space for those of one job.
        if counts[_PARTS] + 2 * state.hosts.shape[2] > state.parts.shape[1]:
            self.hold_state(parts=np.concatenate([state.parts, np.empty_like(state.parts)], axis=1))
        if len(state.endings) and 4 * counts[_RUNNING] + 64 > len(state.endings):
            self.hold_state(endings=np.concatenate([state.endings, np.empty_like(state.endings)]))
        self._act(kind, row, now, allocation, procs, until=until)

    def _act(
        self, kind: int, row: int, now: int, allocation: Allocation = (), procs: int = 0, held: int = 0, until: int | None = None
    ) -> None:  # fmt: skip
        """Carry out one action."""
        if self.counts[_INTERVALS] == self._most_intervals:
            self.more_intervals()
        counts, host, parts = self.counts, -1, 0
        first = allocation[0] if len(allocation) == 1 else None
        if first is not None and first.count == 1 and first.procs == procs and not first.resources:  # most are
            host, held = first.host, first.memory
        else:
            for parts, part in enumerate(amounts_of(allocation), 1):
                for column, value in zip(self._parts[HOST:], part, strict=False):
                    column[counts[_PARTS] + parts - 1] = value
        _WRITE_ACTION(self._action, 0, kind, row, host, procs, held, -1 if until is None else until, parts)
        counts[_NOW], counts[_DECIDED] = now, 1
        try:
            next(self.go_on)
        except StopIteration:  # there has been enough in plain Python
            self._go_on = None
            next(self.go_on)
        self.by_end = None

    def restore(self, running: list[Run], suspended: list[Run], parts: Int64Array, width: Callable[[int, int], int]) -> None:
        """Hold what ran and what was suspended; ``parts``: those of the running jobs; ``width``: on how many processors a job
        works, by row and allocated processors."""
        rows = np.sort(np.array([run.row for run in running], np.int64))
        space = np.empty((len(parts), parts.shape[1] + 2 * self.tables[2].hosts.shape[2]), np.int64)
        space[:, : parts.shape[1]] = parts
        self.hold_state(parts=space, running=np.concatenate([rows, np.empty(64, np.int64)]))
        self.counts[_RUNNING], self.counts[_PARTS] = len(running), parts.shape[1]
        for run in (*running, *suspended):
            row, cells = run.row, self.cells
            cells[row, _DONE], cells[row, _END], cells[row, _PROCS] = run.done, run.expected_end, width(row, run.procs)
            cells[row, _IS_TRIAL], cells[row, _UNTIL] = row in self.trials, self.until.get(row, -1)
            cells[row, _KEEPS] = run.holds_memory
        for run in running:
            self.held[run.row] = run.allocation
            self.cells[run.row, _SINCE] = run.since
        self.suspended.update({run.row: run for run in suspended})

    def set_back(self, by: int) -> None:
        """Set every instant back by so many microseconds."""
        for row, run in self.suspended.items():
            self.suspended[row] = msgspec.structs.replace(run, since=run.since - by, expected_end=run.expected_end - by)
        for row in (*self.held, *self.suspended):
            self.cells[row, _END] -= by
        for row in self.held:
            self.cells[row, _SINCE] -= by
        self.tables[2].parts[[END, SINCE], : self.counts[_PARTS]] -= by
        self.by_end = None


class KnownEnds:
    """When the running jobs end, for a driver that knows how long each runs.  Execution intervals are kept too.

    Args:
        runs: tables of an engine for which nothing has arrived yet.
    """

    def __init__(self, runs: RunTables) -> None:
        self._runs = runs
        jobs, _, state, done = runs.tables
        log = LogTable(np.zeros(64, np.int64), np.zeros(64, np.int64), np.empty(0, np.int8))
        state = state._replace(endings=np.empty((256, 2), np.int64), intervals=np.empty(256, INTERVAL))
        runs.hold(jobs, log, state, done, _verbs)

    def tell(self, row: int, run: int, used_memory: int) -> None:
        """Tell how long a job that is about to arrive runs on what it asks for, in microseconds, and how many bytes of memory it
        uses (-1: what it asks for)."""
        jobs, log, state, done = self._runs.tables
        if row >= len(log.run):
            log = LogTable(_longer(log.run, 2 * row), _longer(log.used_memory, 2 * row), log.may_run)
            self._runs.hold(jobs, log, state, done, _verbs)
        log.run[row], log.used_memory[row] = run, used_memory

    def next(self) -> int | None:
        """Return when the next job ends, or the next trial fails; None if none runs."""
        counts, endings, cells = self._runs.counts, self._runs.endings, self._runs.cells
        while counts[_ENDS]:
            at, row = endings[0, heap.INSTANT], endings[0, heap.ROW]
            if cells[row, _DUE] == at or (cells[row, _DUE] == FOREVER and cells[row, _UNTIL] == at):
                return int(at)
            self._leave_heap()
        return None

    def take(self, at: int) -> tuple[list[int], list[int]]:
        """Return the rows that end at an instant, and those whose trial fails, both ascending."""
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
        _pop(self._runs.tables[2].endings, self._runs.counts[_ENDS])
        self._runs.counts[_ENDS] -= 1


class Running(Mapping[int, Run]):
    """The running jobs by row, in order of their last start, for looking only."""

    def __init__(self, runs: RunTables) -> None:
        self._runs = runs

    def __getitem__(self, row: int) -> Run:
        return self._runs.run_of(row)

    def __iter__(self) -> Iterator[int]:
        return iter(self._runs.held)

    def __contains__(self, row: object) -> bool:
        return row in self._runs.held

    def __len__(self) -> int:
        return len(self._runs.held)


def compile_at_once() -> None:
    """Let this process compile the verbs for its first action."""
    global _plain_actions_left
    _plain_actions_left = 0


@cache
def _has_to_compile() -> bool:
    kernel = verbs.carried_out
    return isinstance(kernel, Kernel) and not is_warm(kernel.qualified_name)


def _verbs(*tables: Any) -> Iterator[int]:
    """Return what carries out verbs on these tables."""
    is_plain = serves_compiled() and _plain_actions_left > 0 and _has_to_compile()
    return _plain_for_a_while(tables) if is_plain else _carried_out(*tables)


def _plain_for_a_while(tables: tuple[Any, ...]) -> Iterator[int]:
    global _plain_actions_left
    for done in _plainly_carried_out(*tables):
        yield done
        _plain_actions_left -= 1
        if _plain_actions_left <= 0:
            return


def _columns(table: Int64Array) -> JobColumns:
    return JobColumns(table[SUBMITTED], table[ASKED + CPUS], table[ESTIMATED], table[ASKED:])


def _longer(array: Any, rows: int) -> Any:
    """Return an array of so many rows that begins with another one; what is never written to takes no memory."""
    longer = np.zeros(rows, array.dtype)
    longer[: len(array)] = array[:rows]
    return longer


def _schedule(table: Int64Array, host: Int64Array) -> ScheduleTable:
    return ScheduleTable(table[STARTED], np.empty(0, np.int8), _NONE, host, _NONE, _NONE)


def cells_of(array: Any) -> Any:
    """Return the entries of an array, of records as whole numbers: one by one, NumPy takes three times as long."""
    return memoryview(array.view(np.int64) if array.dtype.names else array)
