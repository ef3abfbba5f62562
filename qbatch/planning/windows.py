"""The windows of reservations: the times in which hosts are open to some jobs only
(docs/spec/production.md, section 5), as tables of the kernels and as questions about one job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.reservations import Window
from qbatch.planning.kernels.tables import BEGIN, OVER, RESERVED
from qbatch.planning.kernels.types import Int64Array


class Windows(NamedTuple):
    """``firsts[H + 1]`` and ``table[3, W]``, the windows in order of host and begin
    (:class:`qbatch.planning.kernels.tables.Requests`); both are empty without reservations."""

    firsts: Int64Array
    table: Int64Array

    def turns(self) -> list[int]:
        """Return the begins and ends, ascending: at each a job may start that could not before."""
        return sorted({*self.table[BEGIN].tolist(), *self.table[OVER].tolist()})

    def last_end(self, number: int) -> int:
        """Return the end of the last window of a reservation, -1 if it has none."""
        own = self.table[OVER, self.table[RESERVED] == number]
        return int(own.max(initial=-1))

    def next_begin(self, number: int, now: int) -> int | None:
        """Return when a reservation begins next; None if a window of it holds this instant, or none
        is left."""
        begin, over, other = self.table
        own = other == number
        if ((begin <= now) & (now < over) & own).any() or not (own & (begin > now)).any():
            return None
        return int(begin[own & (begin > now)].min())

    def keeping_out(self, number: int, host: int, start: int, end: int) -> int:
        """Return the reservation that keeps a job of reservation ``number`` (-1: none) from a host
        over ``[start, end)``; -1: no other does."""
        for begin, over, other in self.table[:, self.firsts[host] : self.firsts[host + 1]].T:
            if other != number and begin < max(end, start + 1) and over > start:
                return int(other)
        return -1

    def is_inside(self, number: int, host: int, start: int) -> bool:
        """Return whether a window of a reservation holds an instant on a host."""
        begin, over, other = self.table[:, self.firsts[host] : self.firsts[host + 1]]
        return bool(((other == number) & (begin <= start) & (over > start)).any())


NO_WINDOWS = Windows(np.empty(0, np.int64), np.empty((3, 0), np.int64))
"""No reservations."""


def windows_on(machine: Machine, windows: Iterable[Window]) -> Windows:
    """Return the windows of a machine as tables."""
    rows = sorted(
        (host, window.begin, window.end, window.reservation)
        for window in windows
        for host in window.hosts
    )
    if not rows:
        return NO_WINDOWS
    table = np.array(rows, np.int64).T
    firsts = np.searchsorted(table[0], np.arange(len(machine.hosts) + 1))
    return Windows(firsts.astype(np.int64), np.ascontiguousarray(table[1:]))


def number_of(machine: Machine, job: Job) -> int:
    """Return the number of the reservation that a job names, -1 for none."""
    names = [each.name for each in machine.reservations]
    return names.index(job.reservation) if job.reservation in names else -1


def blocked_hosts(windows: Windows, machine: Machine, job: Job, start: int) -> set[int]:
    """Return the hosts on which reservations keep a job from starting at an instant."""
    if windows is NO_WINDOWS:
        return set()
    number = number_of(machine, job)
    must_be_inside = number >= 0 and not machine.reservations[number].is_flexible
    return {
        host
        for host in range(len(machine.real_hosts))
        if windows.keeping_out(number, host, start, start + job.estimate) >= 0
        or (must_be_inside and not windows.is_inside(number, host, start))
    }
