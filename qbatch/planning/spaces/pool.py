"""One pool of processors: the number of free ones alone decides what fits, and every pass is one compiled kernel.

Reservations that a policy keeps or looks at are made by the pass over hosts, for which a pool is one host.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbatch.model.actions import Allocation, Chunk, Start, procs_of
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.planning.chunks import fill
from qbatch.planning.kernels import host_pass as host_passes
from qbatch.planning.kernels import passes
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.live import live, live_module
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import END, PROCS
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.spaces.pool_plan import PoolPlan
from qbatch.planning.spaces.space import Plan, Profile, Reserved, Space, WaitReason
from qbatch.planning.view import Run, View

_fcfs_pass = live(passes.fcfs_pass)
_easy_pass = live(passes.easy_pass_beside)
_hybrid_pass = live(passes.hybrid_pass)
_host_pass = live(host_passes.host_pass)
_profiles = live_module(profiles)

_NONE_HELD = np.empty((3, 0), np.int64)


class PoolSpace(Space):
    """The processors of one host, or of hosts that jobs may span, without memory."""

    __slots__ = ()

    uses_pieces = False

    @staticmethod
    def allocation(machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job) -> Allocation:
        """Return the first free processors, hosts in their order."""
        if len(free) == 1:
            return (Chunk(0, job.procs),) if free[0] >= job.procs else ()
        return fill(free, job.procs)

    @staticmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        """Return how many processors are free."""
        return free[0] if len(free) == 1 else sum(free)

    @staticmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        """Return one host: the pool."""
        return machine.hosts if len(machine.hosts) == 1 else (Host("", machine.procs),)

    @staticmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan, in arrays."""
        return PoolPlan(machine.procs)

    @staticmethod
    def replayed_as(machine: Machine, *, is_planned: bool) -> Machine | None:
        """Return the machine."""
        return machine

    def start(self, row: int, allocation: Allocation) -> Start:
        """Return the start of a row: the engine fills the hosts in their order."""
        return Start(row)

    def profile(self) -> Profile:
        """Return the free processors over time."""
        return _PoolProfile(self.view)

    def list_pass(
        self, order: Int64Array, depth: int, *, is_stopping: bool = False, is_by_shadow: bool = False,
        held: list[Reserved] | None = None,
    ) -> tuple[list[Start], list[Reserved]]:  # fmt: skip
        """Make one pass (see :meth:`Space.list_pass`)."""
        if held is None:
            rows = pool_pass(self.view, order, depth, is_stopping=is_stopping)
            return [Start(row) for row in rows] if rows else [], []
        started, reserved = pass_over_hosts(
            self.view, self.hosts(), pool_pieces(self.view), order, depth, is_stopping=is_stopping, held=held
        )
        return [Start(row) for row, _ in started], reserved

    def hold_up(self, job: Job, order: Int64Array, ahead: list[int], depth: int, *, is_by_shadow: bool) -> WaitReason:
        """Say whom a start would delay, and until when there is room."""
        view, head = self.view, self.view.jobs[ahead[0]]
        ends, amounts, count = view.expected_ends()
        available, shadow, place = view.free_procs, view.now, 0
        while available < head.procs and place < count:
            shadow = int(ends[place])
            while place < count and ends[place] == shadow:
                available += int(amounts[place])
                place += 1
        extra = available - head.procs
        numbers = {"shadow": shadow, "extra": extra, "procs": job.procs, "expected_end": view.now + job.estimate}
        text = f"would delay one of the first {depth} jobs in the queue, which have reservations"
        if depth == 1:
            text = (
                f"would delay job {head.number}, which is to start by {shadow / 1e6:.15g} s: it would run until "
                f"{(view.now + job.estimate) / 1e6:.15g} s on {job.procs} processors and {extra} are extra then"
            )
        return WaitReason("reservation", text, numbers, (ahead[0],))

    def shortage(self, job: Job) -> str | None:
        """Say how many processors are free."""
        return f"needs {job.procs} processors, {self.view.free_procs} are free"

    def hosts(self) -> Int64Array:
        """Return what the pool has free, and what its open hosts have."""
        return np.array([[self.view.free_procs], [0], [self.view.open_procs], [0]], np.int64)

    def place_of(self, run: Run) -> int:
        """Return the pool."""
        return 0


def pool_pass(view: View, order: Int64Array, depth: int, *, is_stopping: bool) -> list[int]:
    """Make one pass by the number of free processors; return the rows that start, in order (see :meth:`Space.list_pass`)."""
    window = view.window
    end, free, jobs_of = len(order), PoolSpace.widest(view.machine, window.free), window.jobs_of
    if end == 1:
        rows = order.tolist()
        return rows if next(jobs_of(rows)).procs <= free else []
    # What was passed over before cannot start now, if nothing but arrivals happened since.
    is_as_before = view.only_arrivals and order is view.queue and (is_stopping or depth == 1) and not view.is_late
    if is_as_before and len(view.arrived) < end:
        for job in jobs_of(view.arrived):
            if job.procs <= free and not is_stopping:
                break
        else:
            return []
    columns, started = window.long_columns, np.empty(min(end, free), np.int64)
    if is_stopping:
        count = _fcfs_pass(order, 0, end, columns.procs, free, started)
    elif depth == 1:
        new = end - len(view.arrived) if is_as_before else 0
        count = _easy_pass(view.now, order, new, columns.procs, columns.estimate, free, *view.expected_ends(), started)
    else:
        found, amounts_found, running = view.expected_ends()
        ends, amounts = np.empty(running + len(started), np.int64), np.empty(running + len(started), np.int64)
        ends[:running], amounts[:running] = found[:running], amounts_found[:running]
        scratch = _profiles.new_profile(0, view.now, 4 * (running + len(started) + min(depth, end)) + 16)
        state = (scratch, free, ends, amounts, running, started)
        count = _hybrid_pass(view.now, order, 0, end, depth, columns.procs, columns.estimate, *state)
    return started[:count].tolist() if count else []


def pass_over_hosts(
    view: View, hosts: Int64Array, pieces: tuple[Int64Array, int], order: Int64Array, depth: int, *,
    is_stopping: bool = False, held: list[Reserved] | None = None,
) -> tuple[list[list[int]], list[Reserved]]:  # fmt: skip
    """Make one pass (:func:`qbatch.planning.kernels.host_pass.host_pass`); return (row, host) of each start, and the
    reservations.

    Args:
        hosts: as :meth:`Space.hosts` gives them.
        pieces: the running jobs in order of expected end, as the kernel takes them, and how many they are.
    """
    columns = view.window.long_columns
    kept = np.ascontiguousarray(np.array(held, np.int64).reshape(-1, 3).T) if held else _NONE_HELD
    started = np.empty((2, min(len(order), int(hosts[0].sum()))), np.int64)
    reserved = np.empty((3, min(depth, len(order)) + kept.shape[1]), np.int64)
    count, reservations = _host_pass(
        view.now, order, depth, is_stopping, columns.procs, columns.memory, columns.estimate, hosts, *pieces, kept,
        started, reserved,
    )  # fmt: skip
    starts: list[list[int]] = started[:, :count].T.tolist()
    return starts, [(row, host, at) for row, host, at in reserved[:, :reservations].T.tolist()]


def pool_pieces(view: View) -> tuple[Int64Array, int]:
    """Return the running jobs as those of one host, in order of expected end, and how many they are."""
    ends, amounts, count = view.expected_ends()
    pieces = np.zeros((4, count), np.int64)
    pieces[END], pieces[PROCS] = ends[:count], amounts[:count]
    return pieces, count


class _PoolProfile:
    """The free processors over time; an allocation here is one chunk, of the pool."""

    def __init__(self, view: View) -> None:
        self._view = view
        ends, amounts, count = view.expected_ends()
        self._free: Int64Array = _profiles.new_profile(view.free_procs, view.now, 4 * count + 64)
        for end, procs in zip(ends[:count].tolist(), amounts[:count].tolist(), strict=True):
            _profiles.add(self._free, end, FOREVER, procs)

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        """Return the first instant from which a row fits for ``duration``, and how much of the pool it takes."""
        procs = int(self._view.columns.procs[row])
        start = int(_profiles.earliest(self._free, procs, duration, not_before))
        return start, (Chunk(0, procs),) if start < FOREVER else ()

    def reserve(self, allocation: Allocation, start: int, end: int) -> None:
        """Take processors over ``[start, end)``."""
        self._add(start, end, -procs_of(allocation))

    def release(self, allocation: Allocation, start: int, end: int) -> None:
        """Give processors back over ``[start, end)``."""
        self._add(start, end, procs_of(allocation))

    def _add(self, start: int, end: int, procs: int) -> None:
        if not _profiles.has_room(self._free, 1):
            self._free = _profiles.grown(self._free)
        _profiles.add(self._free, start, end, procs)
