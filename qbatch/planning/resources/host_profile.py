"""What is free on hosts over time, for policies and plans
(:mod:`qbatch.planning.kernels.availability`)."""

from __future__ import annotations

import numpy as np

from qbatch.model.actions import Allocation, amounts_of
from qbatch.planning.kernels import availability
from qbatch.planning.kernels.availability import Availability
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    FREE,
    HOST,
    MEMORY,
    THERE,
    JobColumns,
)
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.placement import allocation_of
from qbatch.planning.view import Profile, ResourceModel, jobs_of

_filled = entry_to(availability.filled)
_change, _earliest = entry_to(availability.change), entry_to(availability.earliest)

_BOOKINGS = 8
"""For how many bookings a host has space at first."""


class HostProfile(Profile):
    """What the running jobs leave free on each host over time, less what is reserved.

    Ties between hosts are broken by the processors that are free now, and what is reserved from now
    on is taken to start now.  ``is_of_plan``: it is not.
    """

    def __init__(self, model: ResourceModel, *, is_of_plan: bool) -> None:
        self._is_of_plan, self._view = is_of_plan, model.view
        self._hosts, self._jobs = model.hosts(), jobs_of(model.view, model.requests())
        _, resources, hosts = self._hosts.shape
        parts = model.parts()
        self._free = _filled(model.view.now, self._hosts, parts, parts.shape[1], _BOOKINGS)
        self._taken = np.zeros((AMOUNTS + resources, hosts), np.int64)

    @property
    def tables(self) -> tuple[JobColumns, Int64Array, Availability]:
        """The jobs, the hosts and what is free, as the kernels take them."""
        return self._jobs, self._hosts, self._free

    def change(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        if start >= FOREVER:
            return
        parts = list(amounts_of(allocation))
        if not parts:
            return
        table = np.zeros((len(self._taken), len(parts)), np.int64)
        for place, part in enumerate(parts):
            table[HOST : HOST + len(part), place] = part
        table[AMOUNTS + MEMORY] *= self._hosts[THERE, MEMORY, table[HOST]] > 0
        if start <= self._view.now < end and not self._is_of_plan:
            self._hosts[FREE, CPUS, table[HOST]] += sign * table[AMOUNTS + CPUS]
        self._free = _change(table, start, end, sign, self._free)

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits for ``duration``, and where (``FOREVER``:
        never)."""
        start = int(
            _earliest(
                row,
                not_before,
                FOREVER,
                duration,
                self._jobs,
                self._hosts,
                self._free,
                self._taken,
            )
        )
        return start, allocation_of(self._taken) if start < FOREVER else ()
