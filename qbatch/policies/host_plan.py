"""Conservative plans where hosts matter: kept in dictionaries, on profiles that are made anew for each use.

Exact rather than fast: for hundreds of waiting jobs.  Every planned start stays where it was found until a sweep
finds an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from qbatch.model.actions import Allocation, Chunk, Start
from qbatch.model.job import Job
from qbatch.planning.grid import HostGrid
from qbatch.planning.hosts import HostProfiles
from qbatch.planning.kernels import plan
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.view import Run, View

_booked = live(plan.booked)


def booked_end(view: View, run: Run) -> int:
    """Return until when a plan books a running job: its expected end, and a second at least."""
    return max(view.expected_end(run), run.since + _booked(0))


def odd_ends(view: View) -> dict[int, int]:
    """Return until when running jobs are booked, of those that have not run through since their first start: they were
    suspended or resized under another policy, or ran on trial before."""
    ends = {row: booked_end(view, run) for row, run in view.running.items()}
    started, jobs = view.columns.started, view.jobs
    return {row: end for row, end in ends.items() if end != int(started[row]) + _booked(jobs[row].estimate)}


class HostPlan:
    """The plan for hosts that a job cannot span: planned (start, host) of each waiting row, in order of arrival."""

    _nowhere: Any = 0
    ends: Mapping[int, int] = MappingProxyType({})
    """See :func:`odd_ends`."""

    def __init__(self) -> None:
        self.was_late = False
        self.told: dict[int, int] = {}
        self.plan: dict[int, tuple[int, Any]] = {}

    def follow(self, view: View) -> None:
        """Forget what was taken back; the profiles are made anew for each use."""
        parked = set(view.parked.tolist()) if view.withdrawn else set()
        for row in view.withdrawn:
            self.plan.pop(row, None)
            if row not in parked:
                self.told.pop(row, None)

    def start_over(self, view: View) -> None:
        """Make the plan anew from what really runs: a job has outlived its estimate, and promises may break."""
        self.compress("scratch", view)

    def rebuild(self, view: View) -> None:
        """Make the plan anew for another machine, in order of the queue."""
        arrived = set(view.arrived)
        self.plan = {row: (FOREVER, self._nowhere) for row in view.queue.tolist() if row not in arrived}
        self.ends = odd_ends(view)
        self.compress("scratch", view)

    def _profiles(self, view: View) -> Any:
        profiles = HostProfiles(view)
        for run in view.running.values():
            # A booking is at least a second, and a zero estimate is still there.
            start, end = view.expected_end(run), booked_end(view, run)
            for chunk in run.allocation:
                if chunk.host not in view.closed:
                    profiles.reserve(chunk.host, start, end, chunk.procs, chunk.memory)
        return profiles

    def _book(self, profiles: Any, view: View, row: int, sign: int) -> None:
        job, (start, host) = view.jobs[row], self.plan[row]
        if start < FOREVER:
            profiles.reserve(host, start, start + _booked(job.estimate), sign * job.procs, sign * job.memory)

    def _find(self, profiles: Any, view: View, row: int) -> tuple[int, Any]:
        return earliest_host(view, profiles, view.jobs[row], list(view.free))

    def _allocation(self, view: View, row: int, host: Any) -> Allocation:
        job = view.jobs[row]
        return (Chunk(host, job.procs, job.memory if view.machine.hosts[host].memory else 0),)

    def compress(self, how: str, view: View) -> None:
        """Move reservations earlier, in the given way."""
        if how == "none":
            return
        profiles = self._profiles(view)
        order = list(self.plan) if how != "start" else sorted(self.plan, key=lambda row: (self.plan[row][0], row))
        if how != "scratch":
            for row in order:
                self._book(profiles, view, row, 1)
        for row in order:
            if how != "scratch":
                self._book(profiles, view, row, -1)
            found = self._find(profiles, view, row)
            if how == "scratch" or found[0] < self.plan[row][0]:
                self.plan[row] = found
            self._book(profiles, view, row, 1)

    def arrive(self, view: View) -> None:
        """Give each arrival the earliest reservation."""
        if not view.arrived:
            return
        profiles = self._profiles(view)
        for row in self.plan:
            self._book(profiles, view, row, 1)
        for row in view.arrived:
            self.plan[row] = self._find(profiles, view, row)
            self._book(profiles, view, row, 1)

    def news(self) -> list[tuple[int, int]]:
        """Return the rows whose planned start is earlier than they were told, and note that they were told."""
        news = [(row, start) for row, (start, _) in self.plan.items() if start < self.told.get(row, FOREVER)]
        self.told.update(news)
        return news

    def take_due(self, view: View) -> list[Start]:
        """Take the rows whose time has come out of the plan."""
        due = []
        for row in [row for row, (start, _) in self.plan.items() if start <= view.now]:
            self.told.pop(row, None)
            if view.columns.started[row] >= 0:
                self.ends = {**self.ends, row: view.now + _booked(view.jobs[row].estimate)}
            due.append(Start(row, self._allocation(view, row, self.plan.pop(row)[1])))
        return due

    def next_start(self) -> int | None:
        """Return the earliest planned start, or None."""
        return min((start for start, _ in self.plan.values() if start < FOREVER), default=None)

    def planned_start(self, row: int) -> int:
        """Return the planned start of a waiting row."""
        return self.plan[row][0]


class ChunkPlan(HostPlan):
    """The plan for a chunked machine: planned (start, allocation) of each waiting row."""

    _nowhere: Any = ()

    def _profiles(self, view: View) -> Any:
        grid = HostGrid(view)
        for run in view.running.values():
            grid.book(run.allocation, view.expected_end(run), booked_end(view, run), -1, view.closed)
        return grid

    def _book(self, profiles: Any, view: View, row: int, sign: int) -> None:
        start, allocation = self.plan[row]
        profiles.book(allocation, start, start + _booked(view.jobs[row].estimate), -sign)

    def _find(self, profiles: Any, view: View, row: int) -> tuple[int, Any]:
        found: tuple[int, Any] = profiles.earliest(row, _booked(view.jobs[row].estimate))
        return found

    def _allocation(self, view: View, row: int, host: Any) -> Allocation:
        allocation: Allocation = host
        return allocation


def earliest_host(view: View, profiles: HostProfiles, job: Job, free: list[int]) -> tuple[int, int]:
    """Return the earliest start over the hosts and its host; ties: fewest free processors now, then host order."""
    duration = _booked(job.estimate)
    best = (FOREVER, FOREVER, 0)
    for host, spec in enumerate(view.machine.hosts):
        if job.procs <= spec.cpus and (not spec.memory or job.memory <= spec.memory):
            start = profiles.earliest(host, job.procs, job.memory, duration, view.now)
            best = min(best, (start, free[host], host))
    return best[0], best[2]
