"""Availability on machines where a job lives inside one host: a profile of processors, and of memory, a host."""

from __future__ import annotations

from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.live import live_module
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import View

_kernels = live_module(profiles)


class HostProfiles:
    """Profiles of every host: what the running jobs leave, less what is reserved.

    Memory is asked for only on hosts that count it.  Ties between hosts are broken as the callers say.
    """

    def __init__(self, view: View) -> None:
        now = view.now
        hosts = view.machine.hosts
        self.procs: list[Int64Array] = [_kernels.new_profile(free, now, 64) for free in view.free]
        self.memory: list[Int64Array | None] = [
            _kernels.new_profile(free, now, 64) if host.memory else None
            for host, free in zip(hosts, view.free_memory, strict=True)
        ]
        for run in view.running.values():
            end = view.expected_end(run)
            for chunk in run.allocation:
                # What ends on a closed host gives nothing back.
                if chunk.host in view.closed:
                    continue
                self._add(chunk.host, end, FOREVER, chunk.procs, chunk.memory)

    def _add(self, host: int, start: int, end: int, procs: int, memory: int) -> None:
        if not _kernels.has_room(self.procs[host], 1):
            self.procs[host] = _kernels.grown(self.procs[host])
        _kernels.add(self.procs[host], start, end, procs)
        profile = self.memory[host]
        if profile is not None:
            if not _kernels.has_room(profile, 1):
                self.memory[host] = profile = _kernels.grown(profile)
            _kernels.add(profile, start, end, memory)

    def reserve(self, host: int, start: int, end: int, procs: int, memory: int) -> None:
        """Take processors and memory of a host over ``[start, end)``."""
        self._add(host, start, end, -procs, -memory)

    def fits(self, host: int, start: int, end: int, procs: int, memory: int) -> bool:
        """Tell whether processors and memory are free on a host over the whole of ``[start, end)``."""
        profile = self.memory[host]
        return bool(
            _kernels.fits(self.procs[host], procs, start, end)
            and (profile is None or _kernels.fits(profile, memory, start, end))
        )

    def earliest(self, host: int, procs: int, memory: int, duration: int, not_before: int) -> int:
        """Return the first instant from which both stay free on a host, ``FOREVER`` if there is none."""
        profile = self.memory[host]
        if profile is None:
            return int(_kernels.earliest(self.procs[host], procs, duration, not_before))
        return int(_kernels.earliest_pair(self.procs[host], procs, profile, memory, duration, not_before))
