"""Availability on machines where a job lives inside one host: a profile of each resource of each host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from qbatch.model.actions import Allocation, amounts_of, outside
from qbatch.planning.kernels import host_pass
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import FOREVER

if TYPE_CHECKING:
    from qbatch.planning.spaces.hosts import HostSpace

_fill, _add, _earliest = live(host_pass.fill_profiles), live(host_pass.add_part), live(host_pass.earliest_start)
_SEGMENTS = 64


class HostProfiles:
    """Profiles of every host, ``[H, N, 2, space]``: what the running jobs leave, less what is reserved."""

    def __init__(self, space: HostSpace) -> None:
        self._space, view = space, space.view
        self._hosts, self._asked = space.hosts(), view.window.long_columns.asked
        _, resources, hosts = self._hosts.shape
        self._free = np.empty((hosts, resources, 2, _SEGMENTS), np.int64)
        _fill(view.now, self._hosts, np.empty((2 + resources, 0), np.int64), 0, self._free)
        for run in view.running.values():
            # What ends on a closed host gives nothing back.
            self.release(outside(run.allocation, view.closed), view.expected_end(run), FOREVER)

    def reserve(self, allocation: Allocation, start: int, end: int) -> None:
        """Take what an allocation gives over ``[start, end)``."""
        self._change(allocation, start, end, -1)

    def release(self, allocation: Allocation, start: int, end: int) -> None:
        """Give it back over ``[start, end)``."""
        self._change(allocation, start, end, 1)

    def _change(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        for host, *amounts in amounts_of(allocation):
            given = np.zeros(self._hosts.shape[1], np.int64)
            given[: len(amounts)] = amounts
            while not _add(host, start, end, sign, given, self._hosts, self._free):
                longer = np.empty((*self._free.shape[:3], 2 * self._free.shape[3]), np.int64)
                longer[..., : self._free.shape[3]] = self._free
                self._free = longer

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits on a host for ``duration``, and where (``FOREVER``: never).

        Ties: the fewest processors free now, then host order.
        """
        start, host = _earliest(row, not_before, duration, self._asked, self._hosts, self._free)
        return int(start), (self._space.part(row, int(host)),) if start < FOREVER else ()
