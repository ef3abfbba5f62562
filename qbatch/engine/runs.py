"""The running and the suspended jobs; :mod:`qbatch.planning.kernels.verbs` makes each change, as in
the compiled loops.

The tables hold everything that a kernel reads; allocations, for policies and drivers, are kept in
addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from struct import Struct
from typing import Any, cast

import msgspec
import numpy as np

from qbatch.model.actions import Allocation, amounts_of, procs_of
from qbatch.planning.kernels import tables, verbs
from qbatch.planning.kernels.entries import GeneratorEntry
from qbatch.planning.kernels.tables import JobColumns, LogTable, ScheduleTable, StateTables
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.view import Run

SUBMITTED, ESTIMATED, STARTED, ASKED = range(4)
"""Rows of ``Cluster.table``: submission, estimate, first start, and from ``ASKED`` on the request
of each resource."""

_NONE = np.empty(0, np.int64)
_UNKNOWN = LogTable(_NONE, _NONE, np.empty(0, np.int8))
_WRITE_ACTION = Struct(f"={len(cast('tuple[str, ...]', tables.ACTION.names))}q").pack_into

Verbs = Callable[[JobColumns, LogTable, StateTables, ScheduleTable], Iterator[int]]
"""Returns a generator over the tables that carries out ``counts.decided`` of ``state.actions`` at
each step."""


def places_of(record: np.dtype[Any], *names: str) -> tuple[int, ...]:
    """Return the indices of some fields in a record."""
    fields = cast("tuple[str, ...]", record.names)
    return tuple(map(fields.index, names))


_RUNNING, _PARTS, _NOW, _DECIDED, _INTERVALS = places_of(
    tables.COUNTS, "running", "parts", "now", "decided", "intervals"
)
_SINCE, _DONE, _END, _UNTIL = places_of(tables.RUN, "since", "done", "end", "until")
_IS_TRIAL, _PROCS, _KEEPS = places_of(tables.RUN, "is_trial", "procs", "keeps")


class RunTables:
    """The running jobs (``running``, in order of their last start) and the suspended ones, by row.

    ``until``: when the engine suspends a running job, or ends its trial run; ``trials``: the rows
    of trial runs. ``jobs``, ``log``, ``state``, ``done``: the tables, as the kernels take them.
    For access to single entries: ``counts``; ``cells``, the runs by row and field; ``ended``, the
    rows that ended in a round of a loop; ``endings``. ``shown``, ``ends``, ``amounts``: the parts
    of running jobs, and two rows of them, read-only and longer than what is in use.
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
            counts=np.zeros(1, tables.COUNTS),
            endings=np.empty((0, 2), np.int64),
            waiting=_NONE,
            parts=np.empty((tables.AMOUNTS + hosts.shape[1] + 2, most + hosts.shape[2]), np.int64),
            hosts=hosts,
            started=np.empty(1, np.int64),
            places=_NONE,
            begun=np.empty((0, 0), np.int64),
            ended=_NONE,
            stopped=_NONE,
            returned=_NONE,
            runs=np.zeros(rows, tables.RUN),
            running=np.empty(most, np.int64),
            intervals=np.empty(0, tables.INTERVAL),
            actions=np.empty(1, tables.ACTION),
        )
        done = _schedule(table, np.zeros(rows, np.int64))
        self.hold(
            _columns(table), _UNKNOWN, state, done, partial(GeneratorEntry, verbs.carried_out)
        )

    def hold(
        self, jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable, make: Verbs
    ) -> None:
        """Hold these tables; ``make`` returns a generator that carries out verbs on them."""
        self.jobs, self.log, self.state, self.done, self._make = jobs, log, state, done, make
        self._steps: Iterator[int] | None = None
        self.counts, self._action = _cells_of(state.counts), _cells_of(state.actions)
        self.cells = _cells_of(state.runs.view(np.int64).reshape(len(state.runs), -1))
        self._parts, self.shown = [_cells_of(row) for row in state.parts], read_only(state.parts)
        self.ends, self.amounts = self.shown[tables.END], self.shown[tables.PROCS]
        self.ended, self.endings = _cells_of(state.ended), _cells_of(state.endings)
        self._most_intervals = len(state.intervals) or -1
        self.by_end = None

    def hold_jobs(self, table: Int64Array) -> None:
        """Hold longer columns of jobs.  The tables of runs have no valid values for a job that has
        not begun."""
        runs, host = longer(self.state.runs, table.shape[1]), longer(self.done.host, table.shape[1])
        self.hold(
            _columns(table),
            self.log,
            self.state._replace(runs=runs),
            _schedule(table, host),
            self._make,
        )

    def hold_log(self, log: LogTable) -> None:
        self.hold(self.jobs, log, self.state, self.done, self._make)

    def hold_state(self, **changed: Any) -> None:
        """Replace some tables of the state."""
        self.hold(self.jobs, self.log, self.state._replace(**changed), self.done, self._make)

    @property
    def intervals(self) -> Int64Array | None:
        """The execution intervals, each with the fields of ``INTERVAL``; None if there are none."""
        count = self.counts[_INTERVALS]
        return (
            self.state.intervals[:count].view(np.int64).reshape(count, -1).copy() if count else None
        )

    @property
    def count(self) -> int:
        """The number of parts of running jobs."""
        return int(self.counts[_PARTS])

    @property
    def steps(self) -> Iterator[int]:
        """The generator that carries out verbs on the tables."""
        if self._steps is None:
            self._steps = self._make(self.jobs, self.log, self.state, self.done)
        return self._steps

    def more_intervals(self) -> None:
        intervals = self.state.intervals
        self.hold_state(intervals=np.concatenate([intervals, np.empty_like(intervals)]))

    def start(
        self,
        row: int,
        allocation: Allocation,
        procs: int,
        now: int,
        until: int | None,
        *,
        is_trial: bool,
    ) -> None:
        """Start a job on an allocation, of which it uses ``procs`` processors."""
        self.held[row] = allocation
        if is_trial:
            self.trials.add(row)
        self._run(tables.TRY if is_trial else tables.START, row, allocation, procs, now, until)

    def end(self, row: int, now: int) -> Run:
        self._act(tables.END_NOW, row, now)
        return self.over(row, now)

    def give_up(self, row: int, now: int) -> None:
        """End the trial run of a job; its work is discarded."""
        self._act(tables.RETURN, row, now)
        self.over(row, now)

    def suspend(self, row: int, now: int, *, keeps_memory: bool) -> None:
        self._act(tables.SUSPEND, row, now, held=int(keeps_memory))
        self.stood_still(row, now, keeps_memory=keeps_memory)

    def stood_still(self, row: int, now: int, *, keeps_memory: bool) -> None:
        """Record that a job was suspended."""
        self.suspended[row] = msgspec.structs.replace(
            self.over(row, now), holds_memory=keeps_memory
        )

    def resume(self, row: int, procs: int, now: int, until: int | None) -> None:
        self.held[row] = allocation = self.suspended.pop(row).allocation
        self._run(tables.RESUME, row, allocation, procs, now, until)

    def resize(self, row: int, procs: int, now: int) -> None:
        """Give a job another number of processors on its one host; a suspended job gets it when it
        resumes."""
        run = self.suspended.get(row) or self.run_of(row)
        allocation = (msgspec.structs.replace(run.allocation[0], procs=procs),)
        if row in self.suspended:
            self.suspended[row] = msgspec.structs.replace(run, allocation=allocation)
            return
        del self.held[row]
        self.held[row] = allocation
        self._act(tables.RESIZE, row, now, procs=procs)

    def drop(self, row: int, now: int) -> None:
        """Remove a suspended job, which gives its memory back."""
        run = self.suspended.pop(row)
        if run.holds_memory:
            self._act(tables.DROP, row, now, run.allocation, procs_of(run.allocation))

    def run_of(self, row: int) -> Run:
        cells = self.cells
        return Run(row, self.held[row], cells[row, _SINCE], cells[row, _END], cells[row, _DONE])

    def over(self, row: int, now: int) -> Run:
        """Return the run of a job that a verb has just stopped; it no longer runs."""
        self.until.pop(row, None)
        self.trials.discard(row)
        return Run(row, self.held.pop(row), now, self.cells[row, _END], self.cells[row, _DONE])

    def _run(
        self, kind: int, row: int, allocation: Allocation, procs: int, now: int, until: int | None
    ) -> None:
        if until is not None:
            self.until[row] = until
        counts, state = self.counts, self.state
        if counts[_RUNNING] == len(state.running):
            self.hold_state(running=np.concatenate([state.running, np.empty_like(state.running)]))
        # After the parts in use there is always space for those of one job.
        if counts[_PARTS] + 2 * state.hosts.shape[2] > state.parts.shape[1]:
            self.hold_state(parts=np.concatenate([state.parts, np.empty_like(state.parts)], axis=1))
        if len(state.endings) and 4 * counts[_RUNNING] + 64 > len(state.endings):
            self.hold_state(endings=np.concatenate([state.endings, np.empty_like(state.endings)]))
        self._act(kind, row, now, allocation, procs, until=until)

    def _act(
        self,
        kind: int,
        row: int,
        now: int,
        allocation: Allocation = (),
        procs: int = 0,
        held: int = 0,
        until: int | None = None,
    ) -> None:
        if self.counts[_INTERVALS] == self._most_intervals:
            self.more_intervals()
        counts, host, parts = self.counts, -1, 0
        first = allocation[0] if len(allocation) == 1 else None
        # The usual case.
        if first is not None and first.count == 1 and first.procs == procs and not first.resources:
            host, held = first.host, first.memory
        else:
            for parts, part in enumerate(amounts_of(allocation), 1):
                # A job without named resources names none of them.
                columns = self._parts[tables.HOST : -2]
                amounts = (*part, *(0 for _ in range(len(columns) - len(part))))
                for column, value in zip(columns, amounts, strict=True):
                    column[counts[_PARTS] + parts - 1] = value
        _WRITE_ACTION(
            self._action, 0, kind, row, host, procs, held, -1 if until is None else until, parts
        )
        counts[_NOW], counts[_DECIDED] = now, 1
        next(self.steps)
        self.by_end = None

    def restore(
        self,
        running: list[Run],
        suspended: list[Run],
        parts: Int64Array,
        width: Callable[[int, int], int],
    ) -> None:
        """Hold these jobs, and the parts of the running ones; ``width``: the processors that a job
        uses of its allocated ones."""
        rows = np.sort(np.array([run.row for run in running], np.int64))
        space = np.empty((len(parts), parts.shape[1] + 2 * self.state.hosts.shape[2]), np.int64)
        space[:, : parts.shape[1]] = parts
        self.hold_state(parts=space, running=np.concatenate([rows, np.empty(64, np.int64)]))
        self.counts[_RUNNING], self.counts[_PARTS] = len(running), parts.shape[1]
        cells = self.cells
        for run in (*running, *suspended):
            row = run.row
            cells[row, _DONE], cells[row, _END], cells[row, _PROCS] = (
                run.done,
                run.expected_end,
                width(row, run.procs),
            )
            cells[row, _IS_TRIAL], cells[row, _UNTIL] = row in self.trials, self.until.get(row, -1)
            cells[row, _KEEPS] = run.holds_memory
        for run in running:
            self.held[run.row], cells[run.row, _SINCE] = run.allocation, run.since
        self.suspended.update({run.row: run for run in suspended})

    def set_back(self, by: int) -> None:
        """Set every instant back by ``by`` microseconds."""
        for row, run in self.suspended.items():
            self.suspended[row] = msgspec.structs.replace(
                run, since=run.since - by, expected_end=run.expected_end - by
            )
        for row in (*self.held, *self.suspended):
            self.cells[row, _END] -= by
        for row in self.held:
            self.cells[row, _SINCE] -= by
        self.state.parts[[tables.END, tables.SINCE], : self.counts[_PARTS]] -= by
        self.by_end = None


class Running(Mapping[int, Run]):
    """The running jobs by row, in order of their last start, read-only."""

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


def _columns(table: Int64Array) -> JobColumns:
    asked, none = table[ASKED:], tables.no_requests()
    return JobColumns(table[SUBMITTED], asked[tables.CPUS], table[ESTIMATED], asked, none)


def longer(array: Any, rows: int) -> Any:
    """Return an array of ``rows`` rows that begins with another one; pages that are never written
    take no memory."""
    longer = np.zeros(rows, array.dtype)
    longer[: len(array)] = array[:rows]
    return longer


def _schedule(table: Int64Array, host: Int64Array) -> ScheduleTable:
    return ScheduleTable(table[STARTED], np.empty(0, np.int8), _NONE, host, _NONE, _NONE)


def _cells_of(array: Any) -> Any:
    """Return the entries of an array, of records as whole numbers: NumPy takes three times as long
    entry by entry."""
    return memoryview(array.view(np.int64) if array.dtype.names else array)
