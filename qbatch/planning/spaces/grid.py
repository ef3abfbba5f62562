"""Availability of chunks over hosts: what the running jobs leave on each host over time, less what is reserved."""

from __future__ import annotations

import numpy as np

from qbatch.model.actions import Allocation, outside, parts_of, ranges_of
from qbatch.planning.kernels import grid
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import FREE
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import View

_add_part = live(grid.add_part)
_chunks_fit = live(grid.chunks_fit)
_earliest_chunks = live(grid.earliest_chunks)


class HostGrid:
    """Matrices of hosts and instants, rebuilt for each pass from what runs on open hosts."""

    def __init__(self, view: View) -> None:
        assert view.shapes is not None
        self.shapes = view.shapes
        self.now = view.now
        self.hosts = hosts_now(view)
        self.now_free = self.hosts[FREE].copy()
        count = self.hosts.shape[2]
        self._taken = np.zeros((2, count), np.int64)
        self._times = np.zeros(64, np.int64)
        self._free = np.zeros((64, 2, count), np.int64)
        self._state = np.ones(1, np.int64)
        self._times[0] = view.now
        self._free[0] = self.now_free
        for run in view.running.values():
            # A job that ends on a closed host gives nothing back.
            self.release(outside(run.allocation, view.closed), view.expected_end(run), FOREVER)

    def reserve(self, allocation: Allocation, start: int, end: int) -> None:
        """Take an allocation over ``[start, end)``."""
        self._add(allocation, start, end, -1)

    def release(self, allocation: Allocation, start: int, end: int) -> None:
        """Give an allocation back over ``[start, end)``."""
        self._add(allocation, start, end, 1)

    def _add(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        if start >= FOREVER:
            return
        for host, procs, memory in parts_of(allocation):
            if self._state[0] + 2 > len(self._times):
                self._times = np.concatenate([self._times, np.zeros_like(self._times)])
                self._free = np.concatenate([self._free, np.zeros_like(self._free)])
            _add_part(self._times, self._free, self._state, start, end, host, sign * procs, sign * memory)

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which the chunks of a row fit for ``duration``, and where (``FOREVER``: never)."""
        wanted = self.shapes.heads, self.shapes.types, int(self.shapes.of[row])
        known = self._times, self._free, self._state
        start = int(_earliest_chunks(*known, *wanted, duration, not_before, self.hosts, self._taken))
        return start, self._placed() if start < FOREVER else ()

    def start_now(self, row: int, end: int) -> Allocation:
        """Return where a row fits from now to ``end``, empty if nowhere, and take it from what is free now."""
        wanted = self.shapes.heads, self.shapes.types, int(self.shapes.of[row])
        known = self._times, self._free, self._state
        fits = _chunks_fit(*known, *wanted, self.now, end, self.now_free, self.hosts, self._taken)
        if not fits:
            return ()
        placed = self._placed()
        self.begin(placed, end)
        return placed

    def begin(self, allocation: Allocation, end: int) -> None:
        """Take an allocation from what is free now, until ``end``."""
        for chunk in allocation:
            self.now_free[:, chunk.host : chunk.host + chunk.count] -= ((chunk.procs,), (chunk.memory,))
        self.reserve(allocation, self.now, end)

    def _placed(self) -> Allocation:
        procs, memory = self._taken.tolist()
        return ranges_of((host, own, memory[host], 1) for host, own in enumerate(procs) if own)


def hosts_now(view: View) -> Int64Array:
    """Return the hosts as a table of the kernels: the free and the total processors and memory of each."""
    hosts = view.machine.hosts
    there = [host.cpus for host in hosts], [host.memory for host in hosts]
    return np.array([(view.free, view.free_memory), there], np.int64)
