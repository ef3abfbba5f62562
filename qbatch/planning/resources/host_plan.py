"""The kept plan of conservative backfilling on hosts: an allocation with each planned start.

It is kept in dictionaries, and the tables of its kernels (:mod:`..kernels.host_plan`) are made for
each use: for hundreds of waiting jobs.  Every planned start stays until a sweep finds an earlier
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from qbatch.model.actions import Allocation, Start, amounts_of, outside
from qbatch.planning.kernels import host_plan
from qbatch.planning.kernels.entries import entry_to, uncompiled
from qbatch.planning.kernels.host_plan import MODE, HostPlan
from qbatch.planning.kernels.profile import FOREVER, SHORTEST_BOOKING, booked
from qbatch.planning.kernels.tables import AMOUNTS, HOST
from qbatch.planning.placement import parts_as_ranges
from qbatch.planning.requests import requested
from qbatch.planning.resources.host_profile import HostProfile
from qbatch.planning.view import Run, View

_booked = uncompiled(booked)
_sweep, _plan_rows = entry_to(host_plan.sweep), entry_to(host_plan.plan_rows)


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
        by row (:func:`qbatch.planning.kernels.host_plan.take_over`)."""
        self.plan = {row: (start, ()) for row, start in planned.items()}
        self.promises.update(promises)
        rows = sorted(self.plan, key=lambda row: (self.plan[row][0], row))
        starts = np.array([self.plan[row][0] for row in rows], np.int64)
        tables = self._tables(view, rows)
        _plan_rows(np.array(rows, np.int64), starts, *self._profile(view).tables, tables)
        self._read(tables, rows, is_anew=True)

    def compress(self, how: str, view: View) -> None:
        if how == "none" or not self.plan:
            return
        rows = (
            list(self.plan)
            if how != "start"
            else sorted(self.plan, key=lambda row: (self.plan[row][0], row))
        )
        tables, profile = self._tables(view, rows), self._profile(view)
        is_anew = how == "scratch"
        _sweep(np.array(rows, np.int64), is_anew, view.now, *profile.tables, tables)
        self._read(tables, rows, is_anew=is_anew)

    def arrive(self, view: View) -> None:
        if not view.arrived:
            return
        profile = self._profile(view)
        for row, (start, allocation) in self.plan.items():
            length = int(_booked(view.jobs[row].estimate))
            profile.reserve(allocation, start, start + length)
        self.plan |= dict.fromkeys(view.arrived, (FOREVER, ()))
        tables, rows = self._tables(view, view.arrived), np.array(view.arrived, np.int64)
        _plan_rows(rows, np.full(len(rows), view.now), *profile.tables, tables)
        self._read(tables, view.arrived, is_anew=True)

    def _profile(self, view: View) -> HostProfile:
        profile = HostProfile(view.resources, is_of_plan=True)
        for run in view.running.values():
            # A booking is at least a second, also with a zero estimate.
            end, least = view.expected_end(run), booked_end(view, run)
            if end < least:
                profile.reserve(outside(run.allocation, view.closed), end, least)
        return profile

    def _tables(self, view: View, rows: Sequence[int]) -> HostPlan:
        """Return the plan of some rows as tables of the kernels."""
        count, hosts = max(rows, default=0) + 1, len(view.machine.hosts)
        most = [
            min(hosts, sum(chunk.count for chunk in requested(view.jobs[row])))
            if view.machine.chunked
            else 1
            for row in rows
        ]
        # Only the entries of these rows are ever read or written.
        tables = HostPlan(
            mode=np.zeros(1, MODE),
            start=np.empty(count, np.int64),
            first=np.empty(count, np.int64),
            size=np.empty(count, np.int64),
            parts=np.zeros((AMOUNTS + len(view.machine.there), sum(most)), np.int64),
            gained=np.ones(hosts, np.int64),
            looked=np.zeros(count, np.int64),
        )
        tables.first[list(rows)] = np.cumsum([0, *most[:-1]]) if most else []
        for row in rows:
            tables.start[row], allocation = self.plan[row]
            parts = list(amounts_of(allocation))
            tables.size[row] = len(parts)
            for place, part in enumerate(parts, int(tables.first[row])):
                tables.parts[HOST : HOST + len(part), place] = part
        return tables

    def _read(self, tables: HostPlan, rows: Sequence[int], *, is_anew: bool) -> None:
        """Take over the planned starts and places; if they are not all made anew, of the rows that
        have moved."""
        for row in rows:
            start = int(tables.start[row])
            if is_anew or start != self.plan[row][0]:
                first = int(tables.first[row])
                parts = tables.parts[:, first : first + int(tables.size[row])]
                self.plan[row] = start, parts_as_ranges(parts[HOST].tolist(), parts[AMOUNTS:])

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
