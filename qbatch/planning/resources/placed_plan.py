"""The kept plan of conservative backfilling on hosts: an allocation with each planned start.

It is kept in dictionaries, and the profile is rebuilt for each use: exact rather than fast, for
hundreds of waiting jobs.  Every planned start stays until a sweep finds an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from qbatch.model.actions import Allocation, Start, outside
from qbatch.planning.kernels.entries import uncompiled
from qbatch.planning.kernels.profile import FOREVER, SHORTEST_BOOKING, booked
from qbatch.planning.view import Profile, Run, View

_booked = uncompiled(booked)


def booked_end(view: View, run: Run) -> int:
    """Return the end of a running job's booking: its expected end, and at least a second."""
    return max(view.expected_end(run), run.since + SHORTEST_BOOKING)


def odd_ends(view: View) -> dict[int, int]:
    """Return the booked ends of running jobs that did not run in one interval since their first
    start: another policy suspended or resized them, or they had a trial run."""
    ends = {row: booked_end(view, run) for row, run in view.running.items()}
    started, jobs = view.columns.started, view.jobs
    return {
        row: end
        for row, end in ends.items()
        if end != int(started[row]) + _booked(jobs[row].estimate)
    }


class PlacedPlan:
    """Planned (start, allocation) of each waiting row, in order of arrival."""

    ends: Mapping[int, int] = MappingProxyType({})
    """See :func:`odd_ends`."""

    def __init__(self) -> None:
        self.was_late = False
        self.promises: dict[int, int] = {}
        self.plan: dict[int, tuple[int, Allocation]] = {}

    def follow(self, view: View) -> None:
        """Remove withdrawn jobs; the profiles are rebuilt for each use."""
        parked = set(view.parked.tolist()) if view.withdrawn else set()
        for row in view.withdrawn:
            self.plan.pop(row, None)
            if row not in parked:
                self.promises.pop(row, None)

    def start_over(self, view: View) -> None:
        self.compress("scratch", view)

    def rebuild(self, view: View) -> None:
        arrived = set(view.arrived)
        self.plan = {row: (FOREVER, ()) for row in view.queue.tolist() if row not in arrived}
        self.ends = odd_ends(view)
        self.compress("scratch", view)

    def take_over(
        self, view: View, planned: Mapping[int, int], promises: Mapping[int, int]
    ) -> None:
        """Take over a plan without hosts: planned starts in order of arrival, and promised starts,
        by row.

        Placed in order of their starts, all jobs keep them: if jobs are chunks of one processor, a
        job that ends later than an instant only leaves more free after it.
        """
        profile = self._profile(view)
        self.plan = {row: (start, ()) for row, start in planned.items()}
        self.promises.update(promises)
        for row in sorted(self.plan, key=lambda row: (self.plan[row][0], row)):
            self.plan[row] = profile.earliest(row, self._length(view, row), self.plan[row][0])
            self._reserve(profile, view, row)

    def _profile(self, view: View) -> Profile:
        profile = view.resources.profile(is_of_plan=True)
        for run in view.running.values():
            # A booking is at least a second, also with a zero estimate.
            allocation = outside(run.allocation, view.closed)
            profile.reserve(allocation, view.expected_end(run), booked_end(view, run))
        return profile

    def _length(self, view: View, row: int) -> int:
        return int(_booked(view.jobs[row].estimate))

    def _reserve(self, profile: Profile, view: View, row: int) -> None:
        start, allocation = self.plan[row]
        profile.reserve(allocation, start, start + self._length(view, row))

    def compress(self, how: str, view: View) -> None:
        if how == "none":
            return
        profile = self._profile(view)
        order = (
            list(self.plan)
            if how != "start"
            else sorted(self.plan, key=lambda row: (self.plan[row][0], row))
        )
        if how != "scratch":
            for row in order:
                self._reserve(profile, view, row)
        for row in order:
            start, allocation = self.plan[row]
            length = self._length(view, row)
            if how != "scratch":
                profile.release(allocation, start, start + length)
            found = profile.earliest(row, length, view.now)
            if how == "scratch" or found[0] < start:
                self.plan[row] = found
            self._reserve(profile, view, row)

    def arrive(self, view: View) -> None:
        if not view.arrived:
            return
        profile = self._profile(view)
        for row in self.plan:
            self._reserve(profile, view, row)
        for row in view.arrived:
            self.plan[row] = profile.earliest(row, self._length(view, row), view.now)
            self._reserve(profile, view, row)

    def hand_out(self, view: View) -> tuple[list[tuple[int, int]], list[Start], int | None]:
        news = [
            (row, start)
            for row, (start, _) in self.plan.items()
            if start < self.promises.get(row, FOREVER)
        ]
        self.promises.update(news)
        due = []
        for row in [row for row, (start, _) in self.plan.items() if start <= view.now]:
            self.promises.pop(row, None)
            if view.columns.started[row] >= 0:
                self.ends = {**self.ends, row: view.now + _booked(view.jobs[row].estimate)}
            due.append(Start(row, self.plan.pop(row)[1]))
        return (
            news,
            due,
            min((start for start, _ in self.plan.values() if start < FOREVER), default=None),
        )

    def planned_start(self, row: int) -> int:
        return self.plan[row][0]
