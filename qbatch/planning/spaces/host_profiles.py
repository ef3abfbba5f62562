"""Availability on machines where a job lives inside one host: a profile of processors, and of memory, a host."""

from __future__ import annotations

from qbatch.model.actions import Allocation, Chunk, outside, parts_of
from qbatch.model.job import Job
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.live import live_module
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import View

_kernels = live_module(profiles)


class HostProfiles:
    """Profiles of every host: what the running jobs leave, less what is reserved.

    Memory is asked for only on hosts that count it.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        now = view.now
        hosts = view.machine.hosts
        self.procs: list[Int64Array] = [_kernels.new_profile(free, now, 64) for free in view.free]
        self.memory: list[Int64Array | None] = [
            _kernels.new_profile(free, now, 64) if host.memory else None
            for host, free in zip(hosts, view.free_memory, strict=True)
        ]
        for run in view.running.values():
            # What ends on a closed host gives nothing back.
            self.release(outside(run.allocation, view.closed), view.expected_end(run), FOREVER)

    def _add(self, host: int, start: int, end: int, procs: int, memory: int) -> None:
        if not _kernels.has_room(self.procs[host], 1):
            self.procs[host] = _kernels.grown(self.procs[host])
        _kernels.add(self.procs[host], start, end, procs)
        profile = self.memory[host]
        if profile is not None:
            if not _kernels.has_room(profile, 1):
                self.memory[host] = profile = _kernels.grown(profile)
            _kernels.add(profile, start, end, memory)

    def reserve(self, allocation: Allocation, start: int, end: int) -> None:
        """Take processors and memory over ``[start, end)``."""
        for host, procs, memory in parts_of(allocation):
            self._add(host, start, end, -procs, -memory)

    def release(self, allocation: Allocation, start: int, end: int) -> None:
        """Give processors and memory back over ``[start, end)``."""
        for host, procs, memory in parts_of(allocation):
            self._add(host, start, end, procs, memory)

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits on a host for ``duration``, and where (``FOREVER``: never).

        Ties: the fewest processors free now, then host order.
        """
        job, free = self._view.jobs[row], self._view.free
        best = (FOREVER, FOREVER, -1)
        for host, spec in enumerate(self._view.machine.hosts):
            if job.procs <= spec.cpus and (not spec.memory or job.memory <= spec.memory):
                start = self._earliest_on(host, job, duration, not_before)
                best = min(best, (start, free[host], host))
        start, _, host = best
        memory = job.memory if self.memory[host] is not None else 0
        return start, (Chunk(host, job.procs, memory),) if start < FOREVER else ()

    def _earliest_on(self, host: int, job: Job, duration: int, not_before: int) -> int:
        profile = self.memory[host]
        if profile is None:
            return int(_kernels.earliest(self.procs[host], job.procs, duration, not_before))
        return int(_kernels.earliest_pair(self.procs[host], job.procs, profile, job.memory, duration, not_before))
