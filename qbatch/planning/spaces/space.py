"""What every space can be asked: the verbs of this room, and the two things that it hands out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from qbatch.model.actions import Allocation, Start
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.planning.kernels import host_pass, running
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.tables import Instant, JobColumns
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.spaces.room import Named, Room
from qbatch.planning.view import OVERDUE, Run, View

_host_pass, _parts_by_end = live(host_pass.host_pass), live(running.parts_by_end)

Reserved = tuple[int, int, int]
"""A reservation of a pass: row, place in :meth:`Space.hosts`, start (0: it is found anew in each pass)."""


class WaitReason(NamedTuple):
    """Why the space holds a job back: code, text, the numbers behind it, the rows in the way."""

    code: str
    text: str
    numbers: dict[str, int]
    blocked_by: tuple[int, ...] = ()


class Profile(Protocol):
    """What is free over time: what the running jobs leave, less what is reserved.  Instants in microseconds."""

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits for ``duration``, and where (``FOREVER``: never, and nowhere)."""
        ...

    def reserve(self, allocation: Allocation, start: int, end: int) -> None:
        """Take an allocation over ``[start, end)``."""
        ...

    def release(self, allocation: Allocation, start: int, end: int) -> None:
        """Give an allocation back over ``[start, end)``."""
        ...


class Plan(Protocol):
    """The kept plan of conservative backfilling: a start for every waiting row.

    ``was_late``: whether a running job had outlived its estimate at the last pass.  ``ends``: until when rows are booked
    that have not run through since their first start.
    """

    was_late: bool

    @property
    def ends(self) -> Mapping[int, int]:
        """Until when odd rows are booked (:func:`qbatch.planning.spaces.placed_plan.odd_ends`)."""
        ...

    def follow(self, view: View) -> None:
        """Bring the plan up to date with what ended and what was taken back."""
        ...

    def start_over(self, view: View) -> None:
        """Make the plan anew from what really runs: promises may break."""
        ...

    def rebuild(self, view: View) -> None:
        """Make the plan anew for another machine, from what runs on its open hosts and from the queue."""
        ...

    def compress(self, how: str, view: View) -> None:
        """Move reservations earlier: ``arrival``, ``start``, ``none``, or ``scratch`` (which may break promises)."""
        ...

    def arrive(self, view: View) -> None:
        """Give each arrival the earliest reservation."""
        ...

    def hand_out(self, view: View) -> tuple[list[tuple[int, int]], list[Start], int | None]:
        """Return the rows whose planned start is earlier than they were told, with it (they are told now); the starts of the
        rows whose time has come, which leave the plan; and the earliest start planned after that, or None."""
        ...

    def planned_start(self, row: int) -> int:
        """Return the planned start of a waiting row."""
        ...


class Space(ABC):
    """The space of a machine, as a view shows it.

    ``spans``: a job may have processors of several hosts.  ``uses_shapes``: what waiting jobs ask for is kept as arrays
    (``View.shapes``).
    """

    __slots__ = ("view",)

    spans = True
    uses_shapes = False

    def __init__(self, view: View) -> None:
        self.view = view

    @staticmethod
    @abstractmethod
    def allocation(
        machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job, free_resources: Named = ()
    ) -> Allocation:
        """Return where a job goes when nobody says where, by what is free on each host; empty if there is no room."""

    @staticmethod
    @abstractmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        """Return the most processors that a job may ask for to have room, by the free processors alone."""

    @staticmethod
    @abstractmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        """Return the places that a job lives inside, whole: hosts, or one that stands for the pool; none if jobs are chunks."""

    @staticmethod
    @abstractmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan for conservative backfilling."""

    @staticmethod
    @abstractmethod
    def replayed_as(machine: Machine, *, is_planned: bool) -> Machine | None:
        """Return the machine (one pool, or hosts) on which a compiled loop replays a log as this space would; None: no loop does.

        Jobs of a log are not chunks.  ``is_planned``: the loop is that of a kept plan.
        """

    @classmethod
    def room(cls, view: View) -> Room:
        """Return what is free now, for a pass to take from."""
        return Room(cls, view.machine, view.free, view.free_memory, view.free_resources)

    def place(self, job: Job) -> Allocation:
        """Return where a job goes now when nobody says where, empty if there is no room."""
        view = self.view
        return self.allocation(view.machine, view.free, view.free_memory, job, view.free_resources)

    def fits(self, job: Job) -> bool:
        """Tell whether there is room for a job now."""
        return self.room(self.view).take(job)

    def fits_any(self, rows: Int64Array) -> bool:
        """Tell whether one of these rows may have room now: where it may not, no pass starts any of them."""
        window = self.view.window
        return bool((window.long_columns.procs[rows] <= self.widest(self.view.machine, window.free)).any())

    def start(self, row: int, allocation: Allocation) -> Start:
        """Return the start of a row now, where a profile found room for it."""
        return Start(row, allocation)

    @abstractmethod
    def profile(self) -> Profile:
        """Return what the running jobs leave from now on."""

    def list_pass(
        self, order: Int64Array, depth: int, *, is_stopping: bool = False, is_by_shadow: bool = False
    ) -> tuple[list[Start], list[Reserved]]:
        """Make one pass of a list scheduler; return the starts, in order, and the reservations.

        Args:
            order: the waiting rows as they are looked through.
            depth: how many that cannot start get a reservation.
            is_stopping: the pass ends at the first that does not fit.
            is_by_shadow: the one reservation is an instant only (EASY): where the job goes then is left open.
        """
        view, parts = self.view, self.parts()
        instant = Instant(view.now, view.free_procs, 0, len(order), 0, parts.shape[1], 0, 0, 0, 0)
        started, places = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        reserved = np.empty((3, min(depth, len(order))), np.int64)
        count, kept = _host_pass(
            instant, jobs_of(view), self.hosts(), parts, order, depth, is_stopping, 0, reserved, started, places
        )
        return self.starts(started[:count].tolist(), places[:count].tolist()), reserved_in(reserved, int(kept))

    @abstractmethod
    def hold_up(self, job: Job, order: Int64Array, ahead: list[int], depth: int, *, is_by_shadow: bool) -> WaitReason:
        """Say why a pass over ``order`` did not start a job; ``ahead``: the rows before it."""

    def is_apart(self, job: Job) -> bool:
        """Tell whether a job may not be, as a whole, on one host beside others."""
        return False

    def holders(self, job: Job) -> BoolArray:
        """Tell of each host whether it could hold the whole job alone, were it empty."""
        hosts = self.view.machine.hosts
        return np.array([host.could_hold(job.procs, job.memory, job.resources) for host in hosts])

    def whole(self) -> Space | None:
        """Return the space in which a job lives inside one of ``places``; None while jobs are chunks over hosts."""
        return self

    def parts(self) -> Int64Array:
        """Return the parts of running jobs on open ``places``, in order of expected end.

        Rows of the result: expected end (overdue ones end ``OVERDUE`` from now), place, and what the part has of each resource.
        """
        view = self.view
        closed = np.array(list(view.closed), np.int64)
        found: Int64Array = _parts_by_end(view.pieces.copy(), view.now, view.now + OVERDUE, closed)[0]
        return found

    def hosts(self) -> Int64Array:
        """Return of each of ``places`` what is free and what there is (:mod:`qbatch.planning.kernels.tables`)."""
        return np.empty((2, 2, 0), np.int64)

    def place_of(self, run: Run) -> int:
        """Return in which of ``places`` a job runs."""
        return run.allocation[0].host

    def starts(self, rows: list[int], places: list[int]) -> list[Start]:
        """Return the starts of rows in places of :meth:`whole`: the engine finds their hosts there."""
        return [Start(row) for row in rows]


def reserved_in(table: Int64Array, count: int) -> list[Reserved]:
    """Return the first reservations of a table of row, place and start."""
    return [(row, place, at) for row, place, at in table[:, :count].T.tolist()]


def jobs_of(view: View) -> JobColumns:
    """Return what the jobs ask for."""
    columns = view.window.long_columns
    return JobColumns(columns.submit, columns.procs, columns.estimate, columns.asked)
