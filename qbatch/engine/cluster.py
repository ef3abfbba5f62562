"""The state of a cluster as tables: jobs by row, the queue, hosts, the parts of running jobs.  Private to the engine.

Policies see a :class:`ClusterWindow` of it.  Each method changes one fact; whether it may happen is checked before, in
:mod:`qbatch.engine.checks`.

A closed host shows nothing free: what is free there is *withheld*, and what its jobs give back is withheld too,
until the host opens.  Waiting rows that the open hosts could never hold are *parked*, outside the queue.

A daemon runs for years and its rows only grow: of a job that is over, one byte of state and five numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from qbatch.engine.states import CODES, State
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import Allocation, amounts_of, parts_of, procs_of
from qbatch.model.errors import DecisionError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.progress import time_left
from qbatch.planning.kernels import running, verbs
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.tables import AMOUNTS, CPUS, END, FREE, MEMORY, NAMED, PROCS, THERE, WITHHELD
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.shapes import ShapeBook, Shapes
from qbatch.planning.spaces import space_of
from qbatch.planning.view import Columns, Run

_enter, _leave, _ends_of = live(verbs.enter_part), live(verbs.leave_part), live(running.ends_of)

_QUEUED = CODES[State.QUEUED]

SUBMITTED, ESTIMATED, STARTED, ASKED = range(4)
"""Rows of ``Cluster.table``: submission, estimate, first start, and from ``ASKED`` on what is asked of each resource."""


class Cluster:
    """Jobs by row, queue, parked, running and suspended jobs, hosts, promises.

    ``jobs[row]``: the job while it lives, None once it is forgotten; ``codes[row]``: its state, of ``CODES``; ``columns``:
    what it asks for and when it first started, for ever.  ``hosts[3, N, H]``: what is free, what there is (processors 0: closed),
    and what is withheld; ``free`` and ``free_memory`` are rows of it.  ``parts[4 + N, n]``: the parts of running jobs in order of
    expected end; the names of all rows stand in :mod:`qbatch.planning.kernels.tables`.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.kind = space_of(machine)
        self.jobs: list[Job | None] = []
        self.codes = bytearray()
        self.waiting = Waiting()
        self.parked = Waiting()
        self.running: dict[int, Run] = {}
        self.suspended: dict[int, Run] = {}
        self.until: dict[int, int] = {}
        self.trials: set[int] = set()
        self.promises: dict[int, int] = {}
        self.left_behind: set[int] = set()
        self.closed: frozenset[int] = frozenset()
        self.is_malleable = False
        self.shapes = ShapeBook(machine) if self.kind.uses_shapes else None
        there = np.array(machine.there, np.int64)
        self.hold_hosts(np.stack([there, there, np.zeros_like(there)]))
        self.hold_columns(np.empty((ASKED + len(there), 64), np.int64))
        self.hold_parts(np.empty((AMOUNTS + len(there) + 2, 64), np.int64), 0)

    def hold_columns(self, table: Int64Array) -> None:
        """Keep the columns by row in this table, a row of it each, which has space for more jobs."""
        shown = read_only(table)
        asked = shown[ASKED:]
        self._table, self.long_columns = table, Columns(
            shown[SUBMITTED], asked[CPUS], shown[ESTIMATED], asked[MEMORY], shown[STARTED], asked
        )
        self._columns: Columns | None = None
        # Entry by entry, NumPy takes three times as long as this.
        self._cells: list[memoryview[int]] = [memoryview(cast(Any, column)) for column in table]
        self._started = self._cells[STARTED]

    def hold_hosts(self, hosts: Int64Array) -> None:
        """Keep the hosts in this table."""
        self.hosts = hosts
        self.free, self.free_memory, self._withheld, self._withheld_memory = (
            cast("memoryview[int]", memoryview(cast(Any, hosts[what, resource])))
            for what in (FREE, WITHHELD) for resource in (CPUS, MEMORY)
        )  # fmt: skip

    def hold_parts(self, parts: Int64Array, count: int) -> None:
        """Keep the parts of running jobs in this table, of which ``count`` are in use."""
        self._parts, self._counted, self._space = parts, count, parts.shape[1]
        self._part_cells: list[memoryview[int]] = [memoryview(cast(Any, row)) for row in parts]
        self._shown_parts = read_only(parts)
        self._shown_ends, self._shown_amounts = self._shown_parts[END], self._shown_parts[PROCS]
        self._by_end: tuple[Int64Array, Int64Array, int] | None = None

    def show(self, counted: int, waiting: tuple[int, int]) -> None:
        """Show so many parts, and the rows between these places of the array that ``waiting`` holds: a loop has changed them."""
        self._counted, self._by_end = counted, None
        self.waiting.show(*waiting)

    @property
    def table(self) -> Int64Array:
        """The columns of all rows so far, a row each, which may be written."""
        return self._table[:, : len(self.jobs)]

    @property
    def columns(self) -> Columns:
        """The columns of all rows so far, read-only."""
        seen, rows = self._columns, len(self.jobs)
        if seen is None or len(seen.submit) != rows:  # a view is asked for several times a round
            submit, procs, estimate, memory, started, asked = self.long_columns
            seen = self._columns = Columns(
                submit[:rows], procs[:rows], estimate[:rows], memory[:rows], started[:rows], asked[:, :rows]
            )
        return seen

    @property
    def parts(self) -> Int64Array:
        """The parts of running jobs in order of expected end, read-only, until the next change."""
        return self._shown_parts[:, : self._counted]

    def by_end(self) -> tuple[Int64Array, Int64Array, int]:
        """Return the expected ends, ascending, and the processors that open hosts have then, read-only, and how many they are,
        maybe in longer arrays.

        On a machine where jobs may span hosts, what ends at one instant is one entry.
        """
        found = self._by_end
        if found is None:
            if self.closed or (self.kind.spans and len(self.machine.hosts) > 1):
                ends, amounts, count = _ends_of(self._parts, self._counted, self.hosts)
                found = read_only(ends), read_only(amounts), int(count)
            else:
                found = self._shown_ends, self._shown_amounts, self._counted
            self._by_end = found
        return found

    def job(self, row: int) -> Job:
        """Return the job of a row that lives.

        Raises:
            LookupError: it was over before this round.
        """
        job = self.jobs[row]
        if job is None:
            raise LookupError(f"the job of row {row} was over before this round, and is forgotten")
        return job

    def add(self, jobs: Sequence[Job]) -> None:
        """Give jobs (which carry their rows) their places; they are queued.

        Raises:
            DecisionError: for a job with a number beyond 64 bits; nothing is changed then.
        """
        first, space = len(self.jobs), len(self._started)
        if first + len(jobs) > space:
            longer = np.empty((len(self._cells), max(2 * space, first + len(jobs))), np.int64)
            longer[:, :first] = self.table
            self.hold_columns(longer)
        submit, estimate, started, (procs, memory, *named) = *self._cells[:ASKED], self._cells[ASKED:]
        try:
            for row, job in enumerate(jobs, first):
                submit[row], procs[row], estimate[row], memory[row] = job.submit, job.procs, job.estimate, job.memory
                started[row] = -1
                if named:
                    for column, amount in zip(named, self.machine.amounts(job.resources), strict=True):
                        column[row] = amount
        except (OverflowError, TypeError, ValueError) as error:
            raise DecisionError(f"a job asks for what is no 64-bit whole number: {error}") from error
        self.jobs += jobs
        self.codes += bytes((_QUEUED,)) * len(jobs)
        if self.shapes is not None:
            self.shapes.add(jobs)

    def leave_queue(self, row: int) -> None:
        """Take a row out of the queue, or from among the parked ones."""
        (self.parked if self.closed and row in self.parked else self.waiting).remove(row)

    def take(self, allocation: Allocation, *, procs: bool = True, memory: bool = True) -> None:
        """Take an allocation's processors, and its memory and named resources, from what is free, or from what is withheld on
        closed hosts."""
        self._book(allocation, -1, procs, memory)

    def give_back(self, allocation: Allocation, *, procs: bool = True, memory: bool = True) -> None:
        """Give an allocation's processors back, and its memory and named resources."""
        self._book(allocation, 1, procs, memory)

    def _book(self, allocation: Allocation, sign: int, procs: bool, memory: bool) -> None:
        if memory and self.machine.resources:
            for chunk in allocation:
                what = WITHHELD if chunk.host in self.closed else FREE
                self.hosts[what, NAMED:, chunk.host] += sign * np.array(chunk.resources, np.int64)
        if not self.closed and procs and memory:
            free, free_memory = self.free, self.free_memory
            for chunk in allocation:
                if chunk.count == 1:
                    free[chunk.host] += sign * chunk.procs
                    free_memory[chunk.host] += sign * chunk.memory
                else:
                    self.hosts[FREE, CPUS, chunk.host : chunk.host + chunk.count] += sign * chunk.procs
                    self.hosts[FREE, MEMORY, chunk.host : chunk.host + chunk.count] += sign * chunk.memory
            return
        for host, width, size in parts_of(allocation):
            is_closed = host in self.closed
            if procs:
                (self._withheld if is_closed else self.free)[host] += sign * width
            if memory:
                (self._withheld_memory if is_closed else self.free_memory)[host] += sign * size

    @property
    def free_resources(self) -> list[list[int]]:
        """What is free of each of ``Machine.resources``, by host."""
        return cast("list[list[int]]", self.hosts[FREE, NAMED:].tolist()) if self.machine.resources else []

    def lacks(self, allocation: Allocation) -> tuple[int, str, int] | None:
        """Return the host, the name and the free amount of the first named resource that does not suffice for an allocation; None
        where all suffice."""
        names = self.machine.resources
        for chunk in allocation if names else ():
            free = self.hosts[FREE, NAMED:, chunk.host].tolist()
            for name, amount, left in zip(names, chunk.resources, free, strict=True):
                if amount > left:
                    return chunk.host, name, left
        return None

    def run(
        self, row: int, allocation: Allocation, now: int, done: int, until: int | None, *, is_trial: bool = False
    ) -> None:
        """Enter a job among the running ones: from ``now``, with ``done`` processor-microseconds behind it."""
        job = self.job(row)
        end = now + time_left(job.estimate * job.procs - done, self._width(job, procs_of(allocation)))
        if is_trial and until is not None:
            self.trials.add(row)
            end = min(end, until)
        self.running[row] = run = Run(row, allocation, now, end, done)
        self._enter(run)
        if self._started[row] < 0:  # only the first start of each is kept
            self._started[row] = now
        if until is not None:
            self.until[row] = until

    def stop(self, row: int, now: int) -> Run:
        """Take a job out of the running ones; return it with what it has done until ``now``."""
        run = self.running.pop(row)
        for part in _parts_of(run):
            self._write_part(part)
            _leave(self._parts, self._counted)
            self._counted -= 1
        self._by_end = None
        if self.until or self.trials:
            self.until.pop(row, None)
            self.trials.discard(row)
        done = run.done + (now - run.since) * self._width(self.job(row), procs_of(run.allocation))
        return Run(row, run.allocation, now, run.expected_end, done, run.holds_memory)

    def _width(self, job: Job, procs: int) -> int:
        """Return on how many of its processors a job works: one that takes whole hosts does not use all that it takes."""
        return job.procs if job.is_exclusive and self.machine.chunked else procs

    def _enter(self, run: Run) -> None:
        for part in _parts_of(run):
            if self._counted + 1 == self._space:  # behind those in use there is always space for one
                self.hold_parts(np.concatenate([self._parts, np.empty_like(self._parts)], axis=1), self._counted)
            self._write_part(part)
            _enter(self._parts, self._counted)
            self._counted += 1
        self._by_end = None

    def _write_part(self, part: tuple[int, ...]) -> None:
        """Write a part behind those in use, as the kernels take it."""
        place = self._counted
        for cells, value in zip(self._part_cells, part, strict=True):
            cells[place] = value

    def renew_parts(self) -> None:
        """Make the table of parts anew from the running jobs."""
        self.hold_parts(self._parts, 0)
        for run in self.running.values():
            self._enter(run)

    def set_closed(self, closed: Iterable[int]) -> None:
        """Close these hosts and open all others."""
        closed, hosts = frozenset(closed), self.hosts
        for host in self.closed - closed:
            hosts[FREE, :, host], hosts[WITHHELD, :, host] = hosts[WITHHELD, :, host], 0
            hosts[THERE, CPUS, host] = self.machine.hosts[host].cpus
        for host in closed - self.closed:
            hosts[WITHHELD, :, host], hosts[FREE, :, host] = hosts[FREE, :, host], 0
            hosts[THERE, CPUS, host] = 0
        self.closed, self._by_end = closed, None

    def shaped_rows(self) -> Int64Array:
        """Return the rows that wait or can wait again, ascending: those whose shapes are known on a chunked machine."""
        return np.sort(np.concatenate([self.waiting.rows, self.parked.rows, np.fromiter(self.trials, np.int64)]))


def _parts_of(run: Run) -> Iterable[tuple[int, ...]]:
    """Return a run's parts as columns of ``Cluster.parts``."""
    end, since, row = run.expected_end, run.since, run.row
    if len(run.allocation) == 1 and run.allocation[0].count == 1:  # most are
        (chunk,) = run.allocation
        return ((end, chunk.host, chunk.procs, chunk.memory, *chunk.resources, since, row),)
    return [(end, *part, since, row) for part in amounts_of(run.allocation)]


class _Jobs(Sequence[Job]):
    """The jobs by row, for looking only; a job that was over before this round is no longer there."""

    def __init__(self, cluster: Cluster) -> None:
        self._job, self._length = cluster.job, cluster.jobs.__len__

    def __getitem__(self, row: Any) -> Any:
        return self._job(row)

    def __len__(self) -> int:
        return self._length()


class ClusterWindow:
    """What of a cluster a policy may look at (:class:`qbatch.planning.view.Window`), made when a view asks for it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.kind = cluster.kind
        self.jobs: Sequence[Job] = _Jobs(cluster)
        self.running: Mapping[int, Run] = MappingProxyType(cluster.running)
        self.suspended: Mapping[int, Run] = MappingProxyType(cluster.suspended)
        self.promises: Mapping[int, int] = MappingProxyType(cluster.promises)
        self.by_end = cluster.by_end

    @property
    def columns(self) -> Columns:
        """What was asked for, by row."""
        return self._cluster.columns

    @property
    def long_columns(self) -> Columns:
        """The same in longer arrays, which are made anew only when they have to grow."""
        return self._cluster.long_columns

    def jobs_of(self, rows: Sequence[int]) -> Iterator[Job]:
        """Return the jobs of rows that wait or run, or were over in this round."""
        return map(self._cluster.jobs.__getitem__, rows)  # type: ignore[arg-type]  # those live

    @property
    def free(self) -> tuple[int, ...]:
        """The free processors by host: none where a job left behind waits for its own."""
        cluster = self._cluster
        if not cluster.left_behind:
            return tuple(cluster.free)
        kept = {place for row in cluster.left_behind for place, _, _ in parts_of(cluster.suspended[row].allocation)}
        return tuple(0 if host in kept else free for host, free in enumerate(cluster.free))

    @property
    def free_memory(self) -> tuple[int, ...]:
        """The free memory by host."""
        return tuple(self._cluster.free_memory)

    @property
    def free_resources(self) -> tuple[tuple[int, ...], ...]:
        """What is free of each of ``Machine.resources``, by host."""
        return tuple(map(tuple, self._cluster.free_resources))

    @property
    def ends(self) -> Int64Array:
        """The expected ends of the running jobs, ascending."""
        ends, _, count = self._cluster.by_end()
        return ends[:count]

    @property
    def amounts(self) -> Int64Array:
        """The processors that are free again then."""
        _, amounts, count = self._cluster.by_end()
        return amounts[:count]

    @property
    def closed(self) -> frozenset[int]:
        """The hosts that are closed."""
        return self._cluster.closed

    @property
    def parked(self) -> Int64Array:
        """The waiting rows that only closed hosts could hold."""
        return self._cluster.parked.rows

    @property
    def shapes(self) -> Shapes | None:
        """What the waiting jobs of a chunked machine ask for."""
        return None if self._cluster.shapes is None else self._cluster.shapes.arrays

    @property
    def pieces(self) -> Int64Array:
        """The parts of running jobs, in order of expected end."""
        return self._cluster.parts[:-1]
