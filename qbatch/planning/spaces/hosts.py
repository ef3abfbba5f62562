"""Hosts that a job lives inside, with memory: the pass over hosts, and a profile a host.

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
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.spaces.host_profiles import HostProfiles
from qbatch.planning.spaces.placed_plan import PlacedPlan
from qbatch.planning.spaces.space import Plan, Profile, Space, WaitReason

_fits_any = live(host_pass.fits_any)


class HostSpace(Space):
    """Hosts with or without memory; every job is inside one of them."""

    __slots__ = ("_hosts",)

    spans = False

    @staticmethod
    def allocation(machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job) -> Allocation:
        """Return the first host that has room for a job."""
        for host, spec in enumerate(machine.hosts):
            if free[host] >= job.procs and (not spec.memory or free_memory[host] >= job.memory):
                return (Chunk(host, job.procs, job.memory if spec.memory else 0),)
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
        """Tell whether a host has processors and memory for one of these rows now."""
        columns = self.view.window.long_columns
        return bool(_fits_any(rows, columns.procs, columns.memory, self.hosts()))

    def profile(self) -> Profile:
        """Return the profiles of the hosts."""
        return HostProfiles(self.view)

    def hold_up(self, job: Job, order: Int64Array, ahead: list[int], depth: int, *, is_by_shadow: bool) -> WaitReason:
        """Say that no host has room for as long as the job asks."""
        memory = f" and {memory_text(job.memory)} of memory" if job.memory else ""
        text = f"no host has {job.procs} processors{memory} free for its {job.estimate / 1e6:.15g} s"
        return WaitReason("host", text, {"procs": job.procs, "memory": job.memory, "estimate": job.estimate})

    def hosts(self) -> Int64Array:
        """Return what the hosts have free, and what the open ones have."""
        view = self.view
        if not hasattr(self, "_hosts"):
            hosts, closed = view.machine.hosts, view.closed
            cpus = [0 if place in closed else host.cpus for place, host in enumerate(hosts)]
            memory = [host.memory for host in hosts]
            self._hosts = np.array([*view.free, *view.free_memory, *cpus, *memory], np.int64).reshape(4, -1)
        return self._hosts.copy()

    def starts(self, rows: list[int], places: list[int]) -> list[Start]:
        """Return the starts of rows on hosts, with the memory that they ask for where memory counts."""
        jobs, hosts = self.view.jobs, self.view.machine.hosts
        return [
            Start(row, (Chunk(place, jobs[row].procs, jobs[row].memory if hosts[place].memory else 0),))
            for row, place in zip(rows, places, strict=True)
        ]
