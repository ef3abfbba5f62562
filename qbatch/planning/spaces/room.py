"""What is free during one pass; a policy takes the resources of the jobs that it starts from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qbatch.model.actions import Allocation
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.chunks import give_on

Named = Sequence[Sequence[int]]
"""The free amount of each resource that the machine names (``Machine.resources``), by host."""


class _Kind(Protocol):
    """The part of a resource model (:class:`qbatch.planning.spaces.space.Space`) that :class:`Room` uses."""

    def allocation(
        self, machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job, free_resources: Named = ()
    ) -> Allocation: ...

    def widest(self, machine: Machine, free: Sequence[int]) -> int: ...


class Room:
    """Free processors (``free``) and bytes of memory (``free_memory``) of each host; ``free_resources``: by resource of
    ``Machine.resources``, then by host."""

    def __init__(
        self, kind: _Kind, machine: Machine, free: Sequence[int], free_memory: Sequence[int], free_resources: Named = ()
    ) -> None:
        self.machine = machine
        self.free = list(free)
        self.free_memory = list(free_memory)
        self.free_resources = list(map(list, free_resources))
        self._kind = kind
        self._widest = kind.widest(machine, free)

    def take(self, job: Job) -> bool:
        """Take the default allocation of a job if it fits; return whether it did."""
        return job.procs <= self._widest and bool(self.place(job))

    def place(self, job: Job) -> Allocation:
        """Take the default allocation of a job and return it, empty if the job does not fit."""
        if job.procs > self._widest:
            return ()
        found = self._kind.allocation(self.machine, self.free, self.free_memory, job, self.free_resources)
        self.give(found)
        return found

    def place_on(self, job: Job, host: int) -> Allocation:
        """Take an allocation of a whole job inside one host and return it, empty if the job does not fit there."""
        if job.procs > self.free[host]:
            return ()
        free, free_memory = [0] * len(self.free), [0] * len(self.free)
        free[host], free_memory[host] = self.free[host], self.free_memory[host]
        found = self._kind.allocation(self.machine, free, free_memory, job, self.free_resources)
        self.give(found)
        return found

    def give(self, allocation: Allocation) -> None:
        """Remove an allocation from what is free: a job has it now."""
        for chunk in allocation:
            give_on(self.free, chunk, -chunk.procs)
            give_on(self.free_memory, chunk, -chunk.memory)
            for free, amount in zip(self.free_resources, chunk.resources, strict=False):
                free[chunk.host] -= amount
        self._widest = self._kind.widest(self.machine, self.free)
