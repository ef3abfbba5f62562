"""The questions that every resource model answers, and what it makes: profiles, plans, the free
resources of a pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from qbatch.model.actions import Allocation, Start
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.model.reasons import Reason
from qbatch.planning.chunks import give_on
from qbatch.planning.kernels import host_pass, running
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.tables import Instant, JobColumns
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.view import OVERDUE, Run, View

_host_pass, _parts_by_end = entry_to(host_pass.host_pass), entry_to(running.parts_by_end)

Reserved = tuple[int, int, int]
"""A reservation of a pass: row, index in :meth:`ResourceModel.hosts`, start (0: each pass finds it
again)."""

Named = Sequence[Sequence[int]]
"""The free amount of each resource that the machine names (``Machine.resources``), by host."""


class Profile(ABC):
    """What is free over time: what the running jobs leave, less what is reserved.  Instants in
    microseconds."""

    @abstractmethod
    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits for ``duration``, and its allocation
        (``FOREVER`` and empty: never)."""

    @abstractmethod
    def change(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        """Give an allocation back over ``[start, end)`` (``sign`` 1), or take it (-1)."""

    def reserve(self, allocation: Allocation, start: int, end: int) -> None:
        """Take an allocation over ``[start, end)``."""
        self.change(allocation, start, end, -1)

    def release(self, allocation: Allocation, start: int, end: int) -> None:
        """Give an allocation back over ``[start, end)``."""
        self.change(allocation, start, end, 1)


class Plan(Protocol):
    """The kept plan of conservative backfilling: a start for every waiting row.

    ``was_late``: a running job had outlived its estimate at the last pass.  ``ends``: the booked
    ends of rows that did not run in one interval since their first start.
    """

    was_late: bool

    @property
    def ends(self) -> Mapping[int, int]:
        """The booked ends of odd rows (:func:`qbatch.planning.resources.placed_plan.odd_ends`)."""

    def follow(self, view: View) -> None:
        """Bring the plan up to date with finished and withdrawn jobs."""

    def start_over(self, view: View) -> None:
        """Rebuild the plan from what really runs: promises may break."""

    def rebuild(self, view: View) -> None:
        """Rebuild the plan for another machine, from what runs on its open hosts and from the
        queue."""

    def compress(self, how: str, view: View) -> None:
        """Move reservations earlier: ``arrival``, ``start``, ``none``, or ``scratch`` (which may
        break promises)."""

    def arrive(self, view: View) -> None:
        """Give each arrival the earliest reservation."""

    def hand_out(self, view: View) -> tuple[list[tuple[int, int]], list[Start], int | None]:
        """Return the rows with a planned start earlier than promised, and that start (the new
        promise); the starts of due rows, which leave the plan; and the earliest planned start after
        that, or None."""

    def planned_start(self, row: int) -> int:
        """Return the planned start of a waiting row."""


class ResourceModel(ABC):
    """The resource model of a machine, for a view.

    ``spans``: a job may have processors of several hosts.  ``uses_shapes``: the requests of waiting
    jobs are kept as arrays (``View.shapes``).
    """

    __slots__ = ("view",)

    spans = True
    uses_shapes = False

    def __init__(self, view: View) -> None:
        self.view = view

    @staticmethod
    @abstractmethod
    def allocation(
        machine: Machine,
        free: Sequence[int],
        free_memory: Sequence[int],
        job: Job,
        free_resources: Named = (),
    ) -> Allocation:
        """Return the default allocation of a job, by what is free on each host; empty if the job
        does not fit."""

    @staticmethod
    @abstractmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        """Return the most processors with which a job can fit, by the free processors alone."""

    @staticmethod
    @abstractmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        """Return the places that each hold whole jobs: hosts, or one for the pool; none if jobs are
        chunks."""

    @staticmethod
    @abstractmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan for conservative backfilling."""

    @staticmethod
    @abstractmethod
    def replayed_as(machine: Machine, *, is_planned: bool) -> Machine | None:
        """Return the machine (one pool, or hosts) on which a compiled loop replays a log with the
        same result, or None.

        Jobs of a log are not chunks.  ``is_planned``: the loop is that of a kept plan.
        """

    @classmethod
    def free_now(cls, view: View) -> FreeResources:
        """Return what is free now, for a pass to take from."""
        return FreeResources(cls, view)

    def place(self, job: Job) -> Allocation:
        """Return the default allocation of a job now, empty if it does not fit."""
        view = self.view
        return self.allocation(view.machine, view.free, view.free_memory, job, view.free_resources)

    def fits(self, job: Job) -> bool:
        """Return whether a job fits now."""
        return self.free_now(self.view).take(job)

    def fits_any(self, rows: Int64Array) -> bool:
        """Return whether one of these rows may fit now; if it returns False, no pass starts any of
        them."""
        window = self.view.window
        return bool(
            (window.long_columns.procs[rows] <= self.widest(self.view.machine, window.free)).any()
        )

    def start(self, row: int, allocation: Allocation) -> Start:
        """Return the start of a row now, on an allocation that a profile found."""
        return Start(row, allocation)

    @abstractmethod
    def profile(self) -> Profile:
        """Return what the running jobs leave free from now on, for a pass that starts jobs."""

    def profile_of_plan(self) -> Profile:
        """Return the same for a kept plan of the places of jobs."""
        return self.profile()

    def list_pass(
        self,
        order: Int64Array,
        depth: int,
        *,
        is_stopping: bool = False,
        is_by_shadow: bool = False,
    ) -> tuple[list[Start], list[Reserved]]:
        """Make one pass of a list scheduler; return the starts, in order, and the reservations.

        Args:
            order: the waiting rows, in the order of the scan.
            depth: the number of jobs that get a reservation when they cannot start.
            is_stopping: the pass ends at the first job that does not fit.
            is_by_shadow: the one reservation is an instant only (EASY) and names no place.
        """
        view, parts = self.view, self.parts()
        instant = Instant(view.now, view.free_procs, 0, len(order), 0, parts.shape[1], 0, 0, 0, 0)
        started, places = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        reserved = np.empty((3, min(depth, len(order))), np.int64)
        count, kept = _host_pass(
            instant,
            jobs_of(view),
            self.hosts(),
            parts,
            order,
            depth,
            is_stopping,
            0,
            reserved,
            started,
            places,
        )
        return self.starts(started[:count].tolist(), places[:count].tolist()), reserved_in(
            reserved, int(kept)
        )

    @abstractmethod
    def hold_up(
        self, by: str, job: Job, order: Int64Array, ahead: list[int], depth: int, is_by_shadow: bool
    ) -> Reason:
        """Return why a pass of policy ``by`` over ``order`` did not start a job; ``ahead``: the
        rows before it."""

    def is_apart(self, job: Job) -> bool:
        """Return whether a job may not share one host, as a whole, with other jobs."""
        return False

    def holders(self, job: Job) -> BoolArray:
        """Return for each host whether it could hold the whole job alone when empty."""
        hosts = self.view.machine.hosts
        return np.array([host.could_hold(job.procs, job.memory, job.resources) for host in hosts])

    def whole(self) -> ResourceModel | None:
        """Return the resource model in which each job is inside one of ``places``; None while jobs
        are chunks over hosts."""
        return self

    def parts(self) -> Int64Array:
        """Return the parts of running jobs on open ``places``, in order of expected end.

        Rows of the result: expected end (``OVERDUE`` from now if overdue), place, and the amount of
        each resource.
        """
        view = self.view
        closed = np.array(list(view.closed), np.int64)
        found: Int64Array = _parts_by_end(view.pieces.copy(), view.now, view.now + OVERDUE, closed)[
            0
        ]
        return found

    def hosts(self) -> Int64Array:
        """Return the free and the total amounts of each of ``places``
        (:mod:`qbatch.planning.kernels.tables`)."""
        return np.empty((2, 2, 0), np.int64)

    def place_of(self, run: Run) -> int:
        """Return the index of a job's place in ``places``."""
        return run.allocation[0].host

    def starts(self, rows: list[int], places: list[int]) -> list[Start]:
        """Return the starts of rows in places of :meth:`whole`: the engine chooses their hosts
        there."""
        return [Start(row) for row in rows]


class FreeResources:
    """What is free during one pass; a policy takes the resources of the jobs that it starts from
    it.

    ``free`` and ``free_memory``: processors and bytes of memory of each host; ``free_resources``:
    by resource of ``Machine.resources``, then by host.
    """

    def __init__(self, kind: type[ResourceModel], view: View) -> None:
        self.machine = view.machine
        self.free = list(view.free)
        self.free_memory = list(view.free_memory)
        self.free_resources = list(map(list, view.free_resources))
        self._kind = kind
        self._widest = kind.widest(view.machine, view.free)

    def take(self, job: Job) -> bool:
        """Take the default allocation of a job if it fits; return whether it did."""
        return job.procs <= self._widest and bool(self.place(job))

    def place(self, job: Job) -> Allocation:
        """Take the default allocation of a job and return it, empty if the job does not fit."""
        if job.procs > self._widest:
            return ()
        found = self._kind.allocation(
            self.machine, self.free, self.free_memory, job, self.free_resources
        )
        self.give(found)
        return found

    def place_on(self, job: Job, host: int) -> Allocation:
        """Take an allocation of a whole job inside one host and return it, empty if the job does
        not fit there."""
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


def reserved_in(table: Int64Array, count: int) -> list[Reserved]:
    """Return the first ``count`` reservations of a table of row, place and start."""
    return [(row, place, at) for row, place, at in table[:, :count].T.tolist()]


def jobs_of(view: View) -> JobColumns:
    """Return what the jobs ask for."""
    columns = view.window.long_columns
    return JobColumns(columns.submit, columns.procs, columns.estimate, columns.asked)
