"""Hosts that a job lives inside, with resources: the pass over hosts, and profiles of each host.

A job starts on the host with the fewest free processors, then in host order (spec/papers.md 3.7).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbatch.model.actions import Allocation, Chunk, Start
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, memory_text
from qbatch.planning.kernels import host_pass
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.tables import CPUS, FREE, MEMORY, THERE
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.spaces.host_profiles import HostProfiles
from qbatch.planning.spaces.placed_plan import PlacedPlan
from qbatch.planning.spaces.room import Named
from qbatch.planning.spaces.space import Plan, Profile, Space, WaitReason

_fits_any = live(host_pass.fits_any)


class HostSpace(Space):
    """Hosts with or without memory and named resources; every job is inside one of them."""

    __slots__ = ("_hosts",)

    spans = False

    @staticmethod
    def allocation(
        machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job, free_resources: Named = ()
    ) -> Allocation:
        """Return the first host that has room for a job."""
        amounts = machine.amounts(job.resources)
        for host, spec in enumerate(machine.hosts):
            if free[host] < job.procs or (spec.memory and free_memory[host] < job.memory):
                continue
            if all(there[host] >= amount for there, amount in zip(free_resources, amounts, strict=True)):
                return (Chunk(host, job.procs, job.memory if spec.memory else 0, resources=amounts),)
        return ()

    @staticmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        """Return the most processors that are free on one host."""
        return max(free, default=0)

    @staticmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        """Return the hosts."""
        return machine.hosts

    @staticmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan, with allocations."""
        return PlacedPlan()

    @staticmethod
    def replayed_as(machine: Machine, *, is_planned: bool) -> Machine | None:
        """Return the machine; for plans there is no loop over hosts."""
        return None if is_planned else machine

    def fits_any(self, rows: Int64Array) -> bool:
        """Tell whether a host has what one of these rows asks for now."""
        return bool(_fits_any(rows, self.view.window.long_columns.asked, self.hosts()))

    def profile(self) -> Profile:
        """Return the profiles of the hosts."""
        return HostProfiles(self)

    def hold_up(self, job: Job, order: Int64Array, ahead: list[int], depth: int, *, is_by_shadow: bool) -> WaitReason:
        """Say that no host has room for as long as the job asks."""
        memory = [f"{memory_text(job.memory)} of memory"] if job.memory else []
        *parts, last = (f"{job.procs} processors", *memory, *(f"{many} {name}" for name, many in job.resources if many))
        asked = f"{', '.join(parts)} and {last}" if parts else last
        text = f"no host has {asked} free for its {job.estimate / 1e6:.15g} s"
        numbers = {"procs": job.procs, "memory": job.memory, "estimate": job.estimate, **dict(job.resources)}
        return WaitReason("host", text, numbers)

    def hosts(self) -> Int64Array:
        """Return what the hosts have free, and what the open ones have."""
        view = self.view
        if not hasattr(self, "_hosts"):
            machine, closed = view.machine, view.closed
            self._hosts = np.array([[view.free, view.free_memory, *view.free_resources], machine.there], np.int64)
            self._hosts[FREE, MEMORY, self._hosts[THERE, MEMORY] == 0] = 0
            self._hosts[THERE, CPUS, list(closed)] = 0
        return self._hosts.copy()

    def starts(self, rows: list[int], places: list[int]) -> list[Start]:
        """Return the starts of rows on hosts."""
        return [Start(row, (self.part(row, place),)) for row, place in zip(rows, places, strict=True)]

    def part(self, row: int, host: int) -> Chunk:
        """Return what a row has on a host: what it asks for, and memory only where that is counted."""
        job, machine = self.view.jobs[row], self.view.machine
        memory = job.memory if machine.hosts[host].memory else 0
        return Chunk(host, job.procs, memory, resources=machine.amounts(job.resources))
