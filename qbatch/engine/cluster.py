"""The mutable cluster: who waits, who runs where, what is free.  Private to the engine.

Nothing outside this room holds a cluster; policies see a view of it.  Every method keeps the books of one fact;
whether the fact may happen is checked before, in :mod:`qbatch.engine.checks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qbatch.engine.states import State
from qbatch.model.actions import Allocation
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels.running import enter, leave
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.placement import place
from qbatch.planning.view import Columns, Run

_COLUMNS = ("submit", "procs", "estimate", "memory", "started")


class _Jobs(Sequence[Job]):
    """The jobs by row, for looking only."""

    def __init__(self, jobs: list[Job]) -> None:
        self._get = jobs.__getitem__
        self._length = jobs.__len__

    def __getitem__(self, row: Any) -> Any:
        return self._get(row)

    def __len__(self) -> int:
        return self._length()


class Cluster:
    """Queue, running and suspended jobs, free processors and memory by host, promises."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.free = [host.cpus for host in machine.hosts]
        self.free_memory = [host.memory for host in machine.hosts]
        self.jobs: list[Job] = []
        self.jobs_view = _Jobs(self.jobs)
        self.states: list[State] = []
        self._queue = np.empty(64, np.int64)
        self._head = self._tail = 0
        self.running: dict[int, Run] = {}
        self.suspended: dict[int, Run] = {}
        self.until: dict[int, int] = {}
        self.promises: dict[int, int] = {}
        self._ends = np.empty(64, np.int64)
        self._amounts = np.empty(64, np.int64)
        self._columns = {name: np.empty(64, np.int64) for name in _COLUMNS}

    @property
    def columns(self) -> Columns:
        """The columns of all rows so far, read-only."""
        rows = len(self.jobs)
        views = [self._columns[name][:rows] for name in _COLUMNS]
        for view in views:
            view.flags.writeable = False
        return Columns(*views)

    @property
    def queue(self) -> Int64Array:
        """The waiting rows in order of sequence, read-only, until the next change."""
        rows = self._queue[self._head : self._tail]
        rows.flags.writeable = False
        return rows

    def running_arrays(self) -> tuple[Int64Array, Int64Array]:
        """Return expected ends (ascending) and processors of the running jobs, read-only, until the next change."""
        views = self._ends[: len(self.running)], self._amounts[: len(self.running)]
        for view in views:
            view.flags.writeable = False
        return views

    def add_job(self, job: Job) -> int:
        """Give a job the next row and queue it."""
        row = job.row
        if row == len(self._columns["submit"]):
            self._columns = {name: np.concatenate([old, np.empty_like(old)]) for name, old in self._columns.items()}
        values = (job.submit, job.procs, job.estimate, job.memory, -1)
        for name, value in zip(_COLUMNS, values, strict=True):
            self._columns[name][row] = value
        self.jobs.append(job)
        self.states.append(State.QUEUED)
        if self._tail == len(self._queue):
            waiting = self.queue
            self._queue = np.empty(max(2 * len(waiting), 64), np.int64)
            self._head, self._tail = 0, len(waiting)
            self._queue[: self._tail] = waiting
        self._queue[self._tail] = row
        self._tail += 1
        return row

    def leave_queue(self, row: int) -> None:
        """Take a row out of the queue."""
        head, tail = self._head, self._tail
        place = head + int(np.searchsorted(self._queue[head:tail], row))
        if place - head < tail - place:
            self._queue[head + 1 : place + 1] = self._queue[head:place].copy()
            self._head += 1
        else:
            self._queue[place : tail - 1] = self._queue[place + 1 : tail].copy()
            self._tail -= 1

    def place(self, job: Job) -> Allocation:
        """Return the default allocation of a job, empty if there is no room for it."""
        return place(self.machine, self.free, self.free_memory, job)

    def take(self, allocation: Allocation, *, procs: bool = True, memory: bool = True) -> None:
        """Take an allocation's processors and memory."""
        for chunk in allocation:
            self.free[chunk.host] -= chunk.procs if procs else 0
            self.free_memory[chunk.host] -= chunk.memory if memory else 0

    def give_back(self, allocation: Allocation, *, procs: bool = True, memory: bool = True) -> None:
        """Give an allocation's processors and memory back."""
        for chunk in allocation:
            self.free[chunk.host] += chunk.procs if procs else 0
            self.free_memory[chunk.host] += chunk.memory if memory else 0

    def run(self, row: int, allocation: Allocation, now: int, done: int, until: int | None) -> None:
        """Enter a job among the running ones: from ``now``, with ``done`` processor-microseconds behind it."""
        job = self.jobs[row]
        width = sum(chunk.procs for chunk in allocation)
        left = max(job.estimate * job.procs - done, 0)
        run = Run(row, allocation, now, now - (-left // width), done)
        count = len(self.running)
        if count == len(self._ends):
            self._ends = np.concatenate([self._ends, np.empty_like(self._ends)])
            self._amounts = np.concatenate([self._amounts, np.empty_like(self._amounts)])
        enter(self._ends, self._amounts, count, run.expected_end, width)
        self.running[row] = run
        if self._columns["started"][row] < 0:
            self._columns["started"][row] = now
        if until is not None:
            self.until[row] = until

    def stop(self, row: int, now: int) -> Run:
        """Take a job out of the running ones; return it with what it has done until ``now``."""
        run = self.running.pop(row)
        leave(self._ends, self._amounts, len(self.running) + 1, run.expected_end, run.procs)
        self.until.pop(row, None)
        return run._replace(since=now, done=run.done + (now - run.since) * run.procs)
