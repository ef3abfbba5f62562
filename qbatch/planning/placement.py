"""Where a job goes when nobody says where: hosts in their order, and the first that fits where it may not span.

On a chunked machine its chunks go where :mod:`qbatch.planning.chunks` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.model.actions import Allocation, Chunk
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.chunks import place_chunks


def place(machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job) -> Allocation:
    """Return the default allocation of a job, empty if there is no room for it now."""
    if machine.chunked:
        return place_chunks(machine, free, free_memory, job)
    if machine.single_host or len(free) == 1:
        for host, spec in enumerate(machine.hosts):
            if free[host] >= job.procs and (not spec.memory or free_memory[host] >= job.memory):
                return (Chunk(host, job.procs, job.memory if spec.memory else 0),)
        return ()
    chunks, wanted = [], job.procs
    for host, procs in enumerate(free):
        if procs > 0 and wanted > 0:
            chunks.append(Chunk(host, min(procs, wanted)))
            wanted -= chunks[-1].procs
    return tuple(chunks) if wanted == 0 else ()


def widest_fit(machine: Machine, free: Sequence[int]) -> int:
    """Return the most processors that a job may ask for to have room now, by the processors alone."""
    return max(free, default=0) if machine.single_host else sum(free)


class Room:
    """What is free during one pass: a policy takes from it what it starts."""

    def __init__(self, machine: Machine, free: Sequence[int], free_memory: Sequence[int]) -> None:
        self.machine = machine
        self.free = list(free)
        self.free_memory = list(free_memory)
        self._widest = widest_fit(machine, free)

    def take(self, job: Job) -> bool:
        """Take the default allocation of a job, if there is room for it; tell whether there was."""
        if job.procs > self._widest:
            return False
        allocation = place(self.machine, self.free, self.free_memory, job)
        for chunk in allocation:
            self.free[chunk.host] -= chunk.procs
            self.free_memory[chunk.host] -= chunk.memory
        self._widest = widest_fit(self.machine, self.free)
        return bool(allocation)
