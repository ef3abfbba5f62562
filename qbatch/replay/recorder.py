"""What a replay writes down while it goes: the columns of a schedule, by row, of as many jobs as come."""

from __future__ import annotations

from array import array

import numpy as np

from qbatch.engine.round import Round
from qbatch.model.job import Job
from qbatch.model.progress import Progress
from qbatch.model.reasons import Reason
from qbatch.model.record import KINDS, NO_PROMISE, Rejection, Schedule, Workload

_BACKFILLED, _IMMEDIATE, _IN_ORDER = (KINDS.index(kind) for kind in ("backfilled", "immediate", "in_order"))


class Recorder:
    """Makes a schedule, fact by fact.

    Args:
        size: how many jobs will come as far as that is known; the columns grow by doubling.
        has_hosts: whether each job's host is written down.
    """

    def __init__(self, size: int, *, has_hosts: bool) -> None:
        self.queue_max = 0
        self._space = max(size, 64)
        fresh = array("q", [-1]) * self._space
        self._start, self._end, self._promise, self._first_promise = (fresh[:] for _ in range(4))
        self._kind = array("b", [0]) * self._space
        self._host = fresh[:] if has_hosts else None
        self._pieces: list[tuple[int, int, int, int, int, int]] = []
        self._in_pieces: set[int] = set()
        self._rejected: list[Rejection] = []
        self._broken: dict[int, int] = {}

    def add(self, row: int) -> None:
        """A job has come."""
        if row < self._space:
            return
        columns = [self._start, self._end, self._promise, self._first_promise, self._kind]
        for column in columns if self._host is None else [*columns, self._host]:
            column.extend(array(column.typecode, [0 if column is self._kind else -1]) * self._space)
        self._space *= 2

    def start(self, job: Job, row: int, done: Round) -> bool:
        """A job starts in a round; tell whether for the first time."""
        if self._start[row] >= 0:
            return False
        self._start[row] = done.at
        if done.first_waiting is not None and done.first_waiting < row:
            self._kind[row] = _BACKFILLED
        else:
            self._kind[row] = _IMMEDIATE if done.at == job.submit else _IN_ORDER
        return True

    def place(self, row: int, host: int, *, is_in_pieces: bool) -> None:
        """A job is on a host; ``is_in_pieces``: it does not run through in one, on what it asked for."""
        if self._host is not None:
            self._host[row] = host
        if is_in_pieces:
            self._in_pieces.add(row)

    def promise(self, row: int, at: int) -> None:
        """A job is told when it starts at the latest."""
        self._promise[row] = at
        if self._first_promise[row] == NO_PROMISE:
            self._first_promise[row] = at

    def forget_promise(self, row: int) -> None:
        """A promise is taken back."""
        self._promise[row] = NO_PROMISE

    def break_promise(self, row: int) -> None:
        """A promise was taken back, or not kept."""
        self._broken[row] = self._broken.get(row, 0) + 1

    def reject(self, row: int, at: int, reason: Reason) -> None:
        """A job is refused."""
        self._rejected.append(Rejection(row, at, reason.code, reason.text))

    def cut(self, row: int, progress: Progress, host: int, at: int, *, is_kept: bool = True) -> None:
        """A piece of a run is over before the job's end; ``is_kept``: its work counts."""
        self._in_pieces.add(row)
        self._pieces.append((row, progress.since, at, progress.procs, host, int(is_kept)))

    def end(self, row: int, progress: Progress, host: int, at: int) -> None:
        """A job ends."""
        self._end[row] = at
        if row in self._in_pieces:
            self.cut(row, progress, host, at)

    def queue(self, length: int) -> None:
        """So many jobs waited before a pass."""
        if length > self.queue_max:
            self.queue_max = length

    def schedule(self, workload: Workload, policy: str) -> Schedule:
        """Return what was written down of the jobs of a workload."""
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
            np.array(self._pieces, np.int64).reshape(-1, 6) if self._in_pieces else None,
            None if self._host is None else column(self._host),
            tuple(sorted(self._rejected)),
            self._broken_counts(rows),
        )

    def _broken_counts(self, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        if not self._broken:
            return None
        counts = np.zeros(rows, np.int64)
        counts[list(self._broken)] = list(self._broken.values())
        return counts
