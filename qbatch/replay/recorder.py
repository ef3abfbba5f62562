"""The record of a replay: the columns of a schedule, by row, for any number of jobs."""

from __future__ import annotations

from array import array

import numpy as np

from qbatch.engine.round import Round
from qbatch.model.reasons import Reason
from qbatch.model.record import KINDS, NO_PROMISE, Rejection, Schedule, Workload
from qbatch.planning.kernels.types import Int64Array

_BACKFILLED, _IMMEDIATE, _IN_ORDER = (KINDS.index(kind) for kind in ("backfilled", "immediate", "in_order"))


class Recorder:
    """Makes a schedule, fact by fact.

    Args:
        size: the number of jobs, as far as it is known; the columns grow by doubling.
    """

    def __init__(self, size: int) -> None:
        self.queue_max = 0
        self._space = max(size, 64)
        fresh = array("q", [-1]) * self._space
        self._submit, self._start, self._end, self._promise, self._first_promise = (fresh[:] for _ in range(5))
        self._kind = array("b", [0]) * self._space
        self._rejected: list[Rejection] = []
        self._broken: dict[int, int] = {}

    def add(self, row: int, submit: int) -> None:
        """Add a job."""
        if row >= self._space:
            for column in (self._submit, self._start, self._end, self._promise, self._first_promise, self._kind):
                column.extend(array(column.typecode, [0 if column is self._kind else -1]) * self._space)
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

    def promise(self, row: int, at: int) -> None:
        """Record the promise of a latest start."""
        self._promise[row] = at
        if self._first_promise[row] == NO_PROMISE:
            self._first_promise[row] = at

    def forget_promise(self, row: int) -> None:
        """Remove a promise that was taken back."""
        self._promise[row] = NO_PROMISE

    def break_promise(self, row: int) -> None:
        """Count a promise that was taken back or not kept."""
        self._broken[row] = self._broken.get(row, 0) + 1

    def reject(self, row: int, at: int, reason: Reason) -> None:
        """Record a refusal."""
        self._rejected.append(Rejection(row, at, reason.code, reason.text))

    def end(self, row: int, at: int) -> None:
        """Record an end."""
        self._end[row] = at

    def queue(self, length: int) -> None:
        """Record the length of the queue before a pass."""
        if length > self.queue_max:
            self.queue_max = length

    def schedule(
        self, workload: Workload, policy: str, host: Int64Array | None, intervals: Int64Array | None
    ) -> Schedule:  # fmt: skip
        """Return the record of the jobs of a workload, with their hosts and execution intervals."""
        rows = len(workload)

        def column(values: array[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array(values[:rows], np.int64)

        return Schedule(
            workload,
            policy,
            column(self._start),
            np.array(self._kind[:rows], np.int8),
            column(self._promise),
            column(self._first_promise),
            column(self._end),
            self.queue_max,
            intervals,
            None if host is None else np.where(column(self._start) < 0, -1, host),
            tuple(sorted(self._rejected)),
            self._broken_counts(rows),
        )

    def _broken_counts(self, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        if not self._broken:
            return None
        counts = np.zeros(rows, np.int64)
        counts[list(self._broken)] = list(self._broken.values())
        return counts
