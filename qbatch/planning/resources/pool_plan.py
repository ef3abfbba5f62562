"""The kept plan of conservative backfilling on one pool: the arrays of
:mod:`qbatch.planning.kernels.plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from qbatch.model.actions import Start
from qbatch.planning.kernels import plan as plan_kernels
from qbatch.planning.kernels import profile
from qbatch.planning.kernels.entries import entries_to, entry_to, uncompiled
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.resources.host_plan import booked_end, odd_ends
from qbatch.planning.view import View

plan = entries_to(plan_kernels)
booked = uncompiled(profile.booked)
add, forget_before, grown = (
    entry_to(profile.add),
    entry_to(profile.forget_before),
    entry_to(profile.grown),
)
has_room, new_profile = entry_to(profile.has_room), entry_to(profile.new_profile)


class PoolPlan:
    """A start for every waiting row, and the profile that these jobs and the running ones leave.

    ``partly``: the processors that running jobs give back, if they are not all that they asked for:
    closed hosts keep theirs, and another policy may have resized the jobs.
    """

    ends: Mapping[int, int] = MappingProxyType({})
    """See :func:`qbatch.planning.resources.host_plan.odd_ends`."""

    def __init__(self, procs: int) -> None:
        self.procs = procs
        self.was_late = False
        self.promises = np.full(64, FOREVER, np.int64)
        (
            self.queue,
            self.place,
            self.shapes,
            self.table,
            self.starts,
            self.released,
            self.counts,
            self.profile,
        ) = plan_kernels.new_plan(64, procs, 0)
        self.is_begun = False
        self.partly: dict[int, int] = {}

    def _ensure_space(self, additions: int) -> None:
        """Ensure space for this many additions to the profile, and for a sweep: two additions per
        waiting row."""
        while not has_room(self.profile, additions + 2 * self.counts["queued"].item(0)):
            self.profile = grown(self.profile)

    def follow(self, view: View) -> None:
        """Bring the profile up to date with finished and withdrawn jobs."""
        if not self.is_begun:
            self.profile = new_profile(view.free_procs, view.now, 64)
            self.is_begun = True
        forget_before(self.profile, view.now)
        # Enough for the whole pass.
        self._ensure_space(len(view.finished) + len(view.withdrawn) + len(view.arrived))
        if view.finished:
            started = view.window.long_columns.started
            for job in view.window.jobs_of(view.finished):
                row = job.row
                end = self.ends.get(row, started.item(row) + booked(job.estimate))
                amount = self.partly.pop(row, job.procs) if self.partly else job.procs
                plan.release(self.released, self.counts, self.profile, view.now, end, amount)
        for row in view.withdrawn:
            if 0 <= row < len(self.place) and self.place[row] >= 0:
                where = self.place[row]
                start, duration = int(self.queue[where].start), int(self.queue[where].booked)
                plan.leave_queue(self.queue, self.place, self.counts, row)
                plan.release(
                    self.released,
                    self.counts,
                    self.profile,
                    start,
                    start + duration,
                    view.jobs[row].procs,
                )

    def start_over(self, view: View) -> None:
        self._empty_profile(view)
        self._ensure_space(len(view.arrived))
        plan.place_anew(self.queue, self.place, self.starts, self.counts, self.profile, view.now)

    def rebuild(self, view: View) -> None:
        self._empty_profile(view)
        self.counts[:] = 0
        self.place[:] = plan.NO_JOB
        self.table[:] = -1
        self._ensure_space(len(view.queue) + len(view.arrived))
        arrived = set(view.arrived)
        self._enqueue(view, [row for row in view.queue.tolist() if row not in arrived])

    def _empty_profile(self, view: View) -> None:
        """Set the profile to that of the running jobs, which stay as long as they booked or
        longer."""
        self.profile = new_profile(view.free_procs, view.now, 64)
        self.partly.clear()
        self.ends = odd_ends(view)
        for row, run in view.running.items():
            amount = view.open_procs_of(run)
            if amount != view.jobs[row].procs:
                self.partly[row] = amount
            if not has_room(self.profile, 1):
                self.profile = grown(self.profile)
            add(self.profile, booked_end(view, run), FOREVER, amount)
        self.counts["released"] = 0

    def compress(self, how: str, view: View) -> None:
        if how in ("arrival", "start"):
            plan.compress(
                self.queue,
                self.place,
                self.shapes,
                self.starts,
                self.released,
                self.counts,
                self.profile,
                how == "start",
                view.now,
            )
        elif how == "scratch":
            plan.replan(self.queue, self.place, self.starts, self.counts, self.profile, view.now)

    def arrive(self, view: View) -> None:
        if view.arrived:
            self._enqueue(view, view.arrived)

    def _enqueue(self, view: View, rows: Sequence[int]) -> None:
        for job in view.window.jobs_of(rows):
            self._grow(job.row)
            plan.enqueue(
                self.queue,
                self.place,
                self.shapes,
                self.table,
                self.starts,
                self.counts,
                self.profile,
                job.row,
                job.procs,
                job.estimate,
                view.now,
            )

    def _grow(self, row: int) -> None:
        if row >= len(self.place):
            more = max(2 * len(self.place), row + 1) - len(self.place)
            self.place = np.concatenate([self.place, np.full(more, plan.NO_JOB, np.int64)])
            self.promises = np.concatenate([self.promises, np.full(more, FOREVER, np.int64)])
        if self.counts["queued"].item(0) == len(self.queue):
            self.queue = np.concatenate([self.queue, np.zeros_like(self.queue)])
            self.starts = np.concatenate([self.starts, np.zeros_like(self.starts)])
        if self.counts["shapes"].item(0) == len(self.shapes):
            self.shapes = np.concatenate([self.shapes, np.zeros_like(self.shapes)])
            self.table = plan.rehashed(self.shapes, self.counts["shapes"].item(0))

    def hand_out(self, view: View) -> tuple[list[tuple[int, int]], list[Start], int | None]:
        news = np.empty((len(self.queue), 2), np.int64)
        rows = np.empty(len(self.queue), np.int64)
        promised, due, upcoming = plan.hand_out(
            self.queue, self.place, self.starts, self.counts, self.promises, view.now, news, rows
        )
        leaving: list[int] = rows[:due].tolist() if due else []
        started = view.window.long_columns.started
        for row in leaving:
            if started.item(row) >= 0:
                self.ends = {**self.ends, row: view.now + booked(view.jobs[row].estimate)}
        return (
            news[:promised].tolist() if promised else [],
            [Start(row) for row in leaving],
            None if upcoming == FOREVER else upcoming,
        )

    def planned_start(self, row: int) -> int:
        return int(self.queue[self.place[row]].start)

    def planned(self) -> dict[int, int]:
        """Return the planned start of each waiting row, in order of arrival."""
        queue = self.queue[: self.counts["queued"].item(0)]
        return dict(queue[queue["row"] >= 0][["row", "start"]].tolist())

    def promises_to(self, view: View) -> dict[int, int]:
        """Return the promised start of each waiting or parked row that has one."""
        rows = [
            row for row in (*view.queue.tolist(), *view.parked.tolist()) if row < len(self.promises)
        ]
        return {row: int(self.promises[row]) for row in rows if self.promises[row] < FOREVER}

    def begin(self, view: View, promises: Mapping[int, int]) -> None:
        """Begin with an empty queue, while jobs run already; ``promises``: starts that were
        promised to parked rows."""
        self._empty_profile(view)
        self.is_begun = True
        for row, at in promises.items():
            self._grow(row)
            self.promises[row] = at
