"""The mutable cluster: who waits, who runs where, what is free.  Private to the engine.

Nothing outside this room holds a cluster; policies see a view of it.  Every method keeps the books of one fact;
whether the fact may happen is checked before, in :mod:`qbatch.engine.checks`.

A closed host shows nothing free: what is free there is *withheld*, and what its jobs give back is withheld too,
until the host opens.  Waiting rows that the open hosts could never hold are *parked*, outside the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from qbatch.engine.pieces import Pieces
from qbatch.engine.rows import Rows, States
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import Allocation, outside, parts_of, procs_of
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.progress import time_left
from qbatch.planning.chunks import give_on
from qbatch.planning.kernels import running
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.shapes import ShapeBook
from qbatch.planning.spaces import space_of
from qbatch.planning.view import Columns, Run

_enter = live(running.enter)
_leave = live(running.leave)


class Cluster:
    """Queue, parked, running and suspended jobs, free processors and memory by host, promises."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.kind = space_of(machine)
        self.free = [host.cpus for host in machine.hosts]
        self.free_memory = [host.memory for host in machine.hosts]
        self.withheld: dict[int, tuple[int, int]] = {}
        self.rows = Rows()
        self.waiting = Waiting()
        self.parked = Waiting()
        self.running: dict[int, Run] = {}
        self.suspended: dict[int, Run] = {}
        self.until: dict[int, int] = {}
        self.trials: set[int] = set()
        self.promises: dict[int, int] = {}
        self.left_behind: set[int] = set()
        self.is_malleable = False
        self._counted = 0
        self._count_in(np.empty(64, np.int64), np.empty(64, np.int64))
        self.shapes = ShapeBook(machine) if self.kind.uses_shapes else None
        self.pieces: Pieces | None = None

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs by row; of rows that were over before this round there is none."""
        return self.rows.view

    @property
    def states(self) -> States:
        """The states by row."""
        return self.rows.states

    @property
    def columns(self) -> Columns:
        """The columns of all rows so far, read-only."""
        return self.rows.columns

    @property
    def queue(self) -> Int64Array:
        """The waiting rows in order of sequence, read-only, until the next change."""
        return self.waiting.rows

    @property
    def closed(self) -> frozenset[int]:
        """The hosts that are closed."""
        return frozenset(self.withheld)

    @property
    def ends(self) -> Int64Array:
        """The expected ends of the running jobs, ascending, read-only, until the next change.

        Processors on closed hosts are left out, and so is a job that has no others.
        """
        return self._shown_ends[: self._counted]

    @property
    def amounts(self) -> Int64Array:
        """The processors of ``ends``."""
        return self._shown_amounts[: self._counted]

    def by_end(self) -> tuple[Int64Array, Int64Array, int]:
        """Return ``ends`` and ``amounts`` in longer arrays, and how many entries are in use."""
        return self._shown_ends, self._shown_amounts, self._counted

    def _count_in(self, ends: Int64Array, amounts: Int64Array) -> None:
        """Keep the running jobs in these arrays, of which as many entries are in use as are counted."""
        self._ends, self._amounts = ends, amounts
        self._shown_ends, self._shown_amounts = read_only(ends), read_only(amounts)

    def leave_queue(self, row: int) -> None:
        """Take a row out of the queue, or from among the parked ones."""
        if self.withheld and row in self.parked:
            self.parked.remove(row)
        else:
            self.waiting.remove(row)

    def enter_queue_again(self, rows: Int64Array) -> None:
        """Put rows (ascending) that ran a trial back to their places in the queue."""
        self.waiting.insert(rows)

    def place(self, job: Job) -> Allocation:
        """Return the default allocation of a job, empty if there is no room for it."""
        return self.kind.allocation(self.machine, self.free, self.free_memory, job)

    def parts(self) -> Int64Array | None:
        """Return the parts of running jobs, where hosts matter: kept from the first time on that somebody asks."""
        if self.pieces is None and self.kind.uses_pieces:
            self.pieces = Pieces()
            for run in self.running.values():
                self.pieces.enter(run)
        return None if self.pieces is None else self.pieces.array

    def take(self, allocation: Allocation, *, procs: bool = True, memory: bool = True) -> None:
        """Take an allocation's processors and memory."""
        if not self.withheld and procs and memory:
            for chunk in allocation:
                if chunk.count == 1:
                    self.free[chunk.host] -= chunk.procs
                    self.free_memory[chunk.host] -= chunk.memory
                else:
                    give_on(self.free, chunk, -chunk.procs)
                    give_on(self.free_memory, chunk, -chunk.memory)
            return
        for host, width, size in parts_of(allocation):
            self._book(host, -width if procs else 0, -size if memory else 0)

    def give_back(self, allocation: Allocation, *, procs: bool = True, memory: bool = True) -> None:
        """Give an allocation's processors and memory back."""
        if not self.withheld and procs and memory:
            for chunk in allocation:
                if chunk.count == 1:
                    self.free[chunk.host] += chunk.procs
                    self.free_memory[chunk.host] += chunk.memory
                else:
                    give_on(self.free, chunk, chunk.procs)
                    give_on(self.free_memory, chunk, chunk.memory)
            return
        for host, width, size in parts_of(allocation):
            self._book(host, width if procs else 0, size if memory else 0)

    def _book(self, host: int, procs: int, memory: int) -> None:
        if host in self.withheld:
            held = self.withheld[host]
            self.withheld[host] = (held[0] + procs, held[1] + memory)
        else:
            self.free[host] += procs
            self.free_memory[host] += memory

    def run(
        self, row: int, allocation: Allocation, now: int, done: int, until: int | None, *, is_trial: bool = False
    ) -> None:
        """Enter a job among the running ones: from ``now``, with ``done`` processor-microseconds behind it."""
        job, procs = self.rows.jobs[row], procs_of(allocation)
        assert job is not None
        end = now + time_left(job.estimate * job.procs - done, self._width(job, procs))
        if is_trial and until is not None:
            self.trials.add(row)
            end = min(end, until)
        run = Run(row, allocation, now, end, done)
        self._enter(end, self._open_procs(allocation) if self.withheld else procs)
        if self.pieces is not None:
            self.pieces.enter(run)
        self.running[row] = run
        self.rows.note_start(row, now)
        if until is not None:
            self.until[row] = until

    def stop(self, row: int, now: int) -> Run:
        """Take a job out of the running ones; return it with what it has done until ``now``."""
        run = self.running.pop(row)
        if self.pieces is not None:
            self.pieces.leave(row)
        procs = procs_of(run.allocation)
        amount = self._open_procs(run.allocation) if self.withheld else procs
        if amount:
            _leave(self._ends, self._amounts, self._counted, run.expected_end, amount)
            self._counted -= 1
        if self.until or self.trials:
            self.until.pop(row, None)
            self.trials.discard(row)
        job = self.rows.jobs[row]
        assert job is not None
        done = run.done + (now - run.since) * self._width(job, procs)
        return Run(row, run.allocation, now, run.expected_end, done, run.holds_memory)

    def _width(self, job: Job, procs: int) -> int:
        """Return on how many of its processors a job works: one that takes whole hosts does not use all that it takes."""
        return job.procs if job.is_exclusive and self.machine.chunked else procs

    def _open_procs(self, allocation: Allocation) -> int:
        return procs_of(outside(allocation, self.withheld.keys()))

    def _enter(self, end: int, amount: int) -> None:
        if not amount:
            return
        if self._counted == len(self._ends):
            self._count_in(np.resize(self._ends, 2 * self._counted), np.resize(self._amounts, 2 * self._counted))
        _enter(self._ends, self._amounts, self._counted, end, amount)
        self._counted += 1

    def set_closed(self, closed: Iterable[int]) -> None:
        """Close these hosts and open all others."""
        closed = frozenset(closed)
        for host in sorted(self.closed - closed):
            self.free[host], self.free_memory[host] = self.withheld.pop(host)
        for host in sorted(closed - self.closed):
            self.withheld[host] = (self.free[host], self.free_memory[host])
            self.free[host] = self.free_memory[host] = 0
        self._counted = 0
        for run in self.running.values():
            self._enter(run.expected_end, self._open_procs(run.allocation))

    def restore_running(self, ends: Int64Array, amounts: Int64Array) -> None:
        """Take over the sorted arrays of another cluster's running jobs."""
        self._counted = len(ends)
        space = np.empty(max(self._counted, 64) - self._counted, np.int64)
        self._count_in(np.concatenate([ends, space]), np.concatenate([amounts, space]))

    def renew_shapes(self) -> None:
        """Forget the shapes of jobs that do not wait any more, nor can wait again."""
        if self.shapes is not None:
            self.shapes.renew(map(self.rows.job, shaped_rows(self).tolist()))


def shaped_rows(cluster: Cluster) -> Int64Array:
    """Return the rows that wait or can wait again, ascending: those whose shapes are known on a chunked machine."""
    return np.sort(np.concatenate([cluster.waiting.rows, cluster.parked.rows, np.fromiter(cluster.trials, np.int64)]))
