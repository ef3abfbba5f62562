"""Hosts that each hold whole jobs, with resources: the pass over hosts, and profiles of each host.

A job starts on the host with the fewest free processors, then in host order (docs/spec/papers.md
3.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from qbatch.model.actions import Allocation, Chunk, Start, amounts_of, outside
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, memory_text
from qbatch.model.reasons import Reason
from qbatch.planning.kernels import host_pass
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import CPUS, FREE, MEMORY, THERE
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.resources.placed_plan import PlacedPlan
from qbatch.planning.view import Named, Plan, Profile, ResourceModel

_fits_any, _fill = entry_to(host_pass.fits_any), entry_to(host_pass.fill_profiles)
_add, _earliest = entry_to(host_pass.add_part), entry_to(host_pass.earliest_start)
_start_host = entry_to(host_pass.start_host)

_NOT_RESERVED, _NO_PROFILES = np.zeros(0, np.bool_), np.zeros((0, 0, 2, 0), np.int64)
"""What a placement that minds no reservation passes on."""

_SEGMENTS = 64
"""Initial space of a profile."""


class HostModel(ResourceModel):
    """Hosts with or without memory and named resources; every job is inside one of them."""

    __slots__ = ("_hosts",)

    spans = False

    @staticmethod
    def allocation(
        machine: Machine,
        free: Sequence[int],
        free_memory: Sequence[int],
        job: Job,
        free_resources: Named = (),
    ) -> Allocation:
        named = machine.amounts(job.resources)
        asked = np.array([(job.procs,), (job.memory,), *((amount,) for amount in named)], np.int64)
        hosts = np.array([(free, free_memory, *free_resources), machine.there], np.int64)
        host = int(_start_host(0, 0, 0, asked, hosts, _NOT_RESERVED, _NO_PROFILES))
        return (_part(machine, job, host),) if host >= 0 else ()

    @staticmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        return max(free, default=0)

    @staticmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        return machine.hosts

    @staticmethod
    def new_plan(machine: Machine) -> Plan:
        return PlacedPlan()

    @staticmethod
    def replayed_as(machine: Machine, *, is_planned: bool) -> Machine | None:
        """Return the machine; None for plans: there is no loop over hosts."""
        return None if is_planned else machine

    def fits_any(self, rows: Int64Array) -> bool:
        return bool(_fits_any(rows, self.view.window.long_columns.asked, self.hosts()))

    def profile(self, *, is_of_plan: bool = False) -> Profile:
        return HostProfiles(self, is_of_plan=is_of_plan)

    def hold_up(
        self, by: str, job: Job, order: Int64Array, ahead: list[int], depth: int, is_by_shadow: bool
    ) -> Reason:
        """Return that no host can hold the job for as long as it asks."""
        memory = [f"{memory_text(job.memory)} of memory"] if job.memory else []
        *parts, last = (
            f"{job.procs} processors",
            *memory,
            *(f"{many} {name}" for name, many in job.resources if many),
        )
        asked = f"{', '.join(parts)} and {last}" if parts else last
        text = f"no host has {asked} free for its {job.estimate / 1e6:.15g} s"
        numbers = {
            "procs": job.procs,
            "memory": job.memory,
            "estimate": job.estimate,
            **dict(job.resources),
        }
        return Reason("host", by, text, numbers)

    def hosts(self) -> Int64Array:
        view = self.view
        if not hasattr(self, "_hosts"):
            machine = view.machine
            flat = [
                *view.free,
                *view.free_memory,
                *chain.from_iterable(view.free_resources),
                *chain.from_iterable(machine.there),
            ]
            self._hosts = np.array(flat, np.int64).reshape(2, -1, len(machine.hosts))
            # If memory is not counted, none is free, whatever a policy wrote.
            if 0 in machine.there[MEMORY]:
                self._hosts[FREE, MEMORY] *= self._hosts[THERE, MEMORY] > 0
            if view.closed:
                self._hosts[THERE, CPUS, list(view.closed)] = 0
        return self._hosts.copy()

    def starts(self, rows: list[int], places: list[int]) -> list[Start]:
        return [
            Start(row, (self.part(row, place),)) for row, place in zip(rows, places, strict=True)
        ]

    def part(self, row: int, host: int) -> Chunk:
        """Return the chunk of a row on a host: what it asks for, and memory only if it is
        counted."""
        return _part(self.view.machine, self.view.jobs[row], host)


def _part(machine: Machine, job: Job, host: int) -> Chunk:
    memory = job.memory if machine.hosts[host].memory else 0
    return Chunk(host, job.procs, memory, resources=machine.amounts(job.resources))


class HostProfiles(Profile):
    """Profiles of every host, ``[H, N, 2, space]``: what the running jobs leave, less what is
    reserved.

    Ties between hosts are broken by the processors that are free now, and what is reserved from now
    on is taken to start now.  ``is_of_plan``: it is not.
    """

    def __init__(self, model: HostModel, *, is_of_plan: bool) -> None:
        self._model, self._is_of_plan, view = model, is_of_plan, model.view
        self._hosts, self._asked = model.hosts(), view.window.long_columns.asked
        _, resources, hosts = self._hosts.shape
        self._free = np.empty((hosts, resources, 2, _SEGMENTS), np.int64)
        _fill(view.now, self._hosts, np.empty((2 + resources, 0), np.int64), 0, self._free)
        for run in view.running.values():
            # A job that ends on a closed host gives nothing back.
            self._add(outside(run.allocation, view.closed), view.expected_end(run), FOREVER, 1)

    def change(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        if start <= self._model.view.now < end and not self._is_of_plan:
            for host, procs, *_ in amounts_of(allocation):
                self._hosts[FREE, CPUS, host] += sign * procs
        self._add(allocation, start, end, sign)

    def _add(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        for host, *amounts in amounts_of(allocation):
            given = np.zeros(self._hosts.shape[1], np.int64)
            given[: len(amounts)] = amounts
            while not _add(host, start, end, sign, given, self._hosts, self._free):
                longer = np.empty((*self._free.shape[:3], 2 * self._free.shape[3]), np.int64)
                longer[..., : self._free.shape[3]] = self._free
                self._free = longer

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits on a host for ``duration``, and where
        (``FOREVER``: never).

        Ties: the fewest processors free now, then host order.
        """
        start, host = _earliest(row, not_before, duration, self._asked, self._hosts, self._free)
        return int(start), (self._model.part(row, int(host)),) if start < FOREVER else ()
