"""The record of a replay: the columns of a schedule, by row, for any number of jobs."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.engine.round import Round
from qbatch.model.actions import Action, Allocation, Break, Promise, Reject
from qbatch.model.machine import Machine, fold_names
from qbatch.model.reasons import Reason
from qbatch.model.record import KINDS, NO_PROMISE, Rejection, Schedule, Workload
from qbatch.planning.kernels.types import Int64Array

_BACKFILLED, _IMMEDIATE, _IN_ORDER = (
    KINDS.index(kind) for kind in ("backfilled", "immediate", "in_order")
)


class Recorder:
    """Makes a schedule, fact by fact; ``size``: the number of jobs, as far as it is known (columns
    grow by doubling)."""

    def __init__(self, size: int) -> None:
        self.queue_max = 0
        self._space = max(size, 64)
        fresh = array("q", [-1]) * self._space
        self._submit, self._start, self._end, self._promise, self._first_promise = (
            fresh[:] for _ in range(5)
        )
        self._kind = array("b", [0]) * self._space
        self._rejected: list[Rejection] = []
        self._broken: dict[int, int] = {}
        self._hosts: dict[int, str] = {}
        self._names: dict[tuple[int, ...], str] = {}

    def place(self, row: int, allocation: Allocation, machine: Machine) -> None:
        """Record the hosts of a start."""
        places = tuple(
            host for chunk in allocation for host in chunk.hosts if host != machine.server
        )
        if places not in self._names:
            names = [machine.hosts[host].name for host in places]
            self._names[places] = ",".join(fold_names(names))
        self._hosts[row] = self._names[places]

    def add(self, row: int, submit: int) -> None:
        if row >= self._space:
            for column in (
                self._submit,
                self._start,
                self._end,
                self._promise,
                self._first_promise,
                self._kind,
            ):
                column.extend(
                    array(column.typecode, [0 if column is self._kind else -1]) * self._space
                )
            self._space *= 2
        self._submit[row] = submit

    def start(self, row: int, done: Round) -> bool:
        """Record a start in a round; return whether it is the job's first."""
        if self._start[row] >= 0:
            return False
        self._start[row] = done.at
        if done.first_waiting is not None and done.first_waiting < row:
            self._kind[row] = _BACKFILLED
        else:
            self._kind[row] = _IMMEDIATE if done.at == self._submit[row] else _IN_ORDER
        return True

    def note(self, action: Action, at: int) -> None:
        """Record what an action other than a start changes in a schedule."""
        if type(action) is Promise:
            self._promise[action.row] = action.at
            if self._first_promise[action.row] == NO_PROMISE:
                self._first_promise[action.row] = action.at
        elif type(action) is Break:
            self._promise[action.row] = NO_PROMISE
        elif type(action) is Reject:
            self.reject(action.row, at, action.reason)

    def break_promise(self, row: int) -> None:
        self._broken[row] = self._broken.get(row, 0) + 1

    def reject(self, row: int, at: int, reason: Reason) -> None:
        self._rejected.append(Rejection(row, at, reason.code, reason.text))

    def end(self, row: int, at: int) -> None:
        self._end[row] = at

    def queue(self, length: int) -> None:
        """Record the length of the queue before a pass."""
        if length > self.queue_max:
            self.queue_max = length

    def schedule(
        self, workload: Workload, policy: str, host: Int64Array | None, intervals: Int64Array | None
    ) -> Schedule:
        """Return the record of the jobs of a workload, with their hosts and execution intervals."""
        rows = len(workload)
        columns = (self._start, self._promise, self._first_promise, self._end)
        start, promise, first_promise, end = (
            np.array(column[:rows], np.int64) for column in columns
        )
        broken = np.zeros(rows, np.int64)
        broken[list(self._broken)] = list(self._broken.values())
        return Schedule(
            workload,
            policy,
            start,
            np.array(self._kind[:rows], np.int8),
            promise,
            first_promise,
            end,
            self.queue_max,
            intervals,
            None if host is None else np.where(start < 0, -1, host),
            tuple(sorted(self._rejected)),
            broken if self._broken else None,
            hosts=self._of_hosts(rows),
        )

    def _of_hosts(self, rows: int) -> NDArray[Any] | None:
        if not self._hosts:
            return None
        hosts = np.full(rows, "", object)
        hosts[list(self._hosts)] = list(self._hosts.values())
        return hosts
