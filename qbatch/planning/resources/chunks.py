"""Chunks over hosts: a job is chunks, each inside one host, and reservations are made on hosts.

First fit is not monotone: after a job has started, another that was passed over may fit elsewhere.
So a backfill scan that started a job is repeated, as if the started jobs had been running, until
one starts none.  (With one host the second scan never starts a job.)

**Where hosts do not matter.**  A chunk of one processor that needs no memory and names no host goes
to any free processor. Suppose every waiting job is made of such chunks, and asks neither to share
hosts nor to have them alone (:func:`qbatch.planning.shapes.is_loose`).  Then a job fits exactly if
enough processors are free, at any instant, however the jobs before it were placed.  The passes and
the plan are those of one pool, and hosts are chosen only at the start. Reservations on hosts (no
job moves) could at best equal this schedule.  The choice is made again in every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from qbatch.model.actions import Allocation, Start, outside, parts_of, ranges_of
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, memory_text, one_host
from qbatch.model.reasons import Reason
from qbatch.planning.chunks import (
    can_share_one_host,
    fill,
    give_on,
    is_scattered,
    packed,
    place_chunks,
    requested,
)
from qbatch.planning.kernels import chunks, grid
from qbatch.planning.kernels.entries import entry_to, uncompiled
from qbatch.planning.kernels.profile import FOREVER, booked
from qbatch.planning.kernels.tables import END, FREE
from qbatch.planning.kernels.types import BoolArray, Int64Array, RecordArray
from qbatch.planning.resources.placed_plan import PlacedPlan
from qbatch.planning.resources.pool import PoolModel
from qbatch.planning.resources.pool_plan import PoolPlan
from qbatch.planning.view import Named, Plan, Profile, Reserved, ResourceModel, View

_start_in_order = entry_to(chunks.start_in_order)
_backfill = entry_to(chunks.backfill)
_add_part = entry_to(grid.add_part)
_chunks_fit, _earliest_chunks = entry_to(grid.chunks_fit), entry_to(grid.earliest_chunks)
_booked = uncompiled(booked)


class ChunkModel(ResourceModel):
    """Hosts; a job takes chunks of them."""

    __slots__ = ()

    uses_shapes = True

    @staticmethod
    def allocation(
        machine: Machine,
        free: Sequence[int],
        free_memory: Sequence[int],
        job: Job,
        free_resources: Named = (),
    ) -> Allocation:
        return place_chunks(machine, free, free_memory, job)

    @staticmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        return sum(free)

    @staticmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        return ()

    @staticmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan, for one pool until a job asks for hosts."""
        return ChunkPlan(machine.procs)

    @staticmethod
    def replayed_as(machine: Machine, *, is_planned: bool) -> Machine | None:
        """Return one pool of the processors if no memory counts: then hosts do not matter to the
        jobs of a log."""
        return None if machine.counts_memory else one_host(machine.procs)

    def profile(self, *, is_of_plan: bool = False) -> Profile:
        whole = None if is_of_plan else self.whole()
        return HostGrid(self.view) if whole is None else whole.profile()

    def start(self, row: int, allocation: Allocation) -> Start:
        """Return the start of a row; the engine fills the hosts in their order while hosts do not
        matter."""
        return Start(row) if are_loose(self.view) else Start(row, allocation)

    def list_pass(
        self,
        order: Int64Array,
        depth: int,
        *,
        is_stopping: bool = False,
        is_by_shadow: bool = False,
    ) -> tuple[list[Start], list[Reserved]]:
        """Make one pass (see :meth:`ResourceModel.list_pass`); if hosts matter, reservations hold
        only until the next pass."""
        view, whole = self.view, self.whole()
        if whole is not None:
            pool_starts, reserved = whole.list_pass(order, depth, is_stopping=is_stopping)
            return place_in_order(view, [start.row for start in pool_starts]), reserved
        if is_stopping or is_by_shadow:
            return scan_by_shadow(view, order, is_easy=is_by_shadow)[0], []
        starts: list[Start] = []
        rest = order
        while max(view.free) > 0 and (fresh := list(_grid_scan(view, rest, depth, starts))):
            starts += fresh
            rest = rest[~np.isin(rest, [start.row for start in fresh])]
        begun = {start.row for start in starts}
        waiting = islice((row for row in order.tolist() if row not in begun), depth)
        return starts, [(row, 0, 0) for row in waiting]

    def whole(self) -> ResourceModel | None:
        """Return one pool while hosts matter to none of the waiting jobs."""
        return PoolModel(self.view) if are_loose(self.view) else None

    def starts(self, rows: list[int], places: list[int]) -> list[Start]:
        return place_in_order(self.view, rows)

    def holders(self, job: Job) -> BoolArray:
        whole = () if is_scattered(job) else packed(requested(job))
        if not whole:
            return np.zeros(len(self.view.machine.hosts), np.bool_)
        ((_, procs, memory, wanted),) = whole
        return np.array(
            [
                procs <= host.cpus
                and (not host.memory or memory <= host.memory)
                and wanted in (-1, place)
                for place, host in enumerate(self.view.machine.hosts)
            ]
        )

    def is_apart(self, job: Job) -> bool:
        return not can_share_one_host(job)

    def hold_up(
        self, by: str, job: Job, order: Int64Array, ahead: list[int], depth: int, is_by_shadow: bool
    ) -> Reason:
        """Return that the chunks do not fit, or which job a start would delay."""
        view = self.view
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        if not ahead or not self.fits(job):
            parts = " + ".join(_part(view, *part) for part in requested(job))
            whole = " on whole hosts" if job.is_exclusive else ""
            text = (
                f"its chunks ({parts}, {job.placing}{whole}) do not fit what the open hosts "
                "have free"
            )
            return Reason("hosts", by, text, {**numbers, "most_free": max(view.free)})
        head = view.jobs[ahead[0]]
        if not is_by_shadow:
            text = (
                f"would delay one of the first {depth} jobs in the queue, which have reservations"
            )
            return Reason("reservation", by, text, numbers, (ahead[0],))
        shadow = scan_by_shadow(view, order, is_easy=True)[1]
        text = (
            f"would delay job {head.number}, which is to start by {shadow / 1e6:.15g} s: it would "
            "run until "
            f"{(view.now + job.estimate) / 1e6:.15g} s on hosts that this job needs then"
        )
        numbers |= {"shadow": shadow, "expected_end": view.now + job.estimate}
        return Reason("reservation", by, text, numbers, (ahead[0],))


def are_loose(view: View) -> bool:
    """Return whether hosts matter to none of the waiting jobs."""
    shapes = view.shapes
    assert shapes is not None
    return not (shapes.has_tight and shapes.heads["is_tight"][shapes.of[view.queue]].any())


def place_in_order(view: View, rows: Sequence[int]) -> list[Start]:
    """Return the starts of loose jobs, each on the first free processors, hosts in their order."""
    if not rows:
        return []
    free, procs = list(view.free), view.columns.procs
    starts = []
    for row in rows:
        found = fill(free, int(procs[row]))
        for chunk in found:
            give_on(free, chunk, -chunk.procs)
        starts.append(Start(row, found))
    return starts


def scan_by_shadow(view: View, waiting: Int64Array, *, is_easy: bool) -> tuple[list[Start], int]:
    """Make one pass of FCFS or EASY; return the starts, and the shadow time (``FOREVER`` if no job
    is held up)."""
    shapes = view.shapes
    assert shapes is not None
    hosts, space = hosts_now(view), view.free_procs
    going = view.resources.parts()
    running = going.shape[1]
    begun = np.empty((4, space), np.int64)
    taken, facts = np.empty((2, hosts.shape[2]), np.int64), np.array([0, FOREVER], np.int64)
    estimate = view.columns.estimate
    starts: dict[int, list[tuple[int, int, int, int]]] = {}
    while True:
        # The arrays always have the same types, so that each kernel compiles once.
        pieces = np.ascontiguousarray(np.concatenate([going, begun], axis=1))
        waiting = waiting.view()
        waiting.flags.writeable = False
        common = (view.now, waiting, estimate, shapes.of, shapes.heads, shapes.types, hosts)
        if not is_easy:
            count = _start_in_order(*common, taken, pieces, running, begun, facts)
        else:
            learned = np.full((2, len(shapes.heads)), -1, np.int64)
            scratch = (hosts.copy(), taken, taken.copy())
            count = _backfill(*common, *scratch, pieces, running, begun, learned, facts)
        for row, host, procs, memory in begun[:, :count].T.tolist():
            starts.setdefault(row, []).append((host, procs, memory, 1))
        if count == 0 or not is_easy:
            return [Start(row, ranges_of(parts)) for row, parts in starts.items()], int(facts[1])
        # Scan again, as if the started jobs had been running: a start can push a later placement to
        # hosts where it delays no job.
        fresh = begun[:, :count].copy()
        waiting = waiting[~np.isin(waiting, fresh[chunks.ROW])]
        fresh[END] = view.now + estimate[fresh[chunks.ROW]]
        going = np.concatenate([going, fresh], axis=1)
        going = going[:, np.argsort(going[END], kind="stable")]
        running += count


def _grid_scan(view: View, rows: Int64Array, depth: int, begun: list[Start]) -> Iterator[Start]:
    """Scan once; give each of the first ``depth`` jobs that cannot start a reservation; ``begun``:
    starts of earlier scans."""
    assert view.shapes is not None
    grid, heads = HostGrid(view), view.shapes.heads
    estimate = view.columns.estimate
    for start in begun:
        grid.begin(start.allocation, view.now + int(estimate[start.row]))
    reserved = place = 0
    while place < len(rows):
        row = int(rows[place])
        place += 1
        allocation = grid.start_now(row, view.now + int(estimate[row]))
        if allocation:
            yield Start(row, allocation)
        elif reserved < depth:
            duration = _booked(int(estimate[row]))
            at, allocation = grid.earliest(row, duration, view.now)
            grid.reserve(allocation, at, at + duration)
            reserved += 1
        else:
            continue
        if reserved >= depth:
            # A job that asks for more than is free in total needs no look.
            rest = rows[place:]
            asked = heads[view.shapes.of[rest]]
            free = grid.now_free[0]
            rows = rest[(asked["procs"] <= free.sum()) & (asked["largest"] <= free.max())]
            place = 0


def _part(view: View, count: int, procs: int, memory: int, host: int) -> str:
    where = f" on {view.machine.hosts[host].name}" if host >= 0 else ""
    return f"{count}x{procs} processors" + (f" and {memory_text(memory)}" if memory else "") + where


class HostGrid(Profile):
    """What the running jobs leave on each host over time, less what is reserved; rebuilt for each
    pass."""

    def __init__(self, view: View) -> None:
        assert view.shapes is not None
        self.shapes = view.shapes
        self.now = view.now
        self.hosts = hosts_now(view)
        self.now_free = self.hosts[FREE].copy()
        count = self.hosts.shape[2]
        self._taken = np.zeros((2, count), np.int64)
        self._times = np.zeros(64, np.int64)
        self._free = np.zeros((64, 2, count), np.int64)
        self._state = np.ones(1, np.int64)
        self._times[0] = view.now
        self._free[0] = self.now_free
        for run in view.running.values():
            # A job that ends on a closed host gives nothing back.
            self.release(outside(run.allocation, view.closed), view.expected_end(run), FOREVER)

    def change(self, allocation: Allocation, start: int, end: int, sign: int) -> None:
        if start >= FOREVER:
            return
        for host, procs, memory in parts_of(allocation):
            if self._state[0] + 2 > len(self._times):
                self._times = np.concatenate([self._times, np.zeros_like(self._times)])
                self._free = np.concatenate([self._free, np.zeros_like(self._free)])
            _add_part(
                self._times, self._free, self._state, start, end, host, sign * procs, sign * memory
            )

    def earliest(self, row: int, duration: int, not_before: int) -> tuple[int, Allocation]:
        start = int(
            _earliest_chunks(*self._known(row), duration, not_before, self.hosts, self._taken)
        )
        return start, self._placed() if start < FOREVER else ()

    def start_now(self, row: int, end: int) -> Allocation:
        """Return where a row fits from now to ``end``, empty if nowhere, and take it from what is
        free now."""
        if not _chunks_fit(
            *self._known(row), self.now, end, self.now_free, self.hosts, self._taken
        ):
            return ()
        placed = self._placed()
        self.begin(placed, end)
        return placed

    def begin(self, allocation: Allocation, end: int) -> None:
        """Take an allocation from what is free now, until ``end``."""
        for chunk in allocation:
            self.now_free[:, chunk.host : chunk.host + chunk.count] -= (
                (chunk.procs,),
                (chunk.memory,),
            )
        self.reserve(allocation, self.now, end)

    def _known(
        self, row: int
    ) -> tuple[Int64Array, Int64Array, Int64Array, RecordArray, RecordArray, int]:
        """Return the arrays of the grid, and the shape of a row."""
        shapes = self.shapes
        return self._times, self._free, self._state, shapes.heads, shapes.types, int(shapes.of[row])

    def _placed(self) -> Allocation:
        procs, memory = self._taken.tolist()
        return ranges_of((host, own, memory[host], 1) for host, own in enumerate(procs) if own)


def hosts_now(view: View) -> Int64Array:
    """Return the hosts as a table of the kernels: the free and the total processors and memory of
    each."""
    hosts = view.machine.hosts
    there = [host.cpus for host in hosts], [host.memory for host in hosts]
    return np.array([(view.free, view.free_memory), there], np.int64)


class ChunkPlan:
    """A plan of one pool while hosts matter to no job, else one with hosts, until no job waits."""

    def __init__(self, procs: int) -> None:
        self.procs = procs
        self.inner: PoolPlan | PlacedPlan = PoolPlan(procs)
        self.was_late = False

    @property
    def ends(self) -> Mapping[int, int]:
        return self.inner.ends

    def follow(self, view: View) -> None:
        """Bring the plan up to date, and choose which of the two plans to use."""
        self.inner.follow(view)
        is_loose = are_loose(view)
        if isinstance(self.inner, PoolPlan) and not is_loose:
            placed = PlacedPlan()
            placed.ends = dict(self.inner.ends)
            placed.take_over(view, self.inner.planned(), self.inner.promises_to(view))
            self.inner = placed
        elif isinstance(self.inner, PlacedPlan) and is_loose and not self.inner.plan:
            pool = PoolPlan(self.procs)
            pool.begin(view, self.inner.promises)
            self.inner = pool

    def start_over(self, view: View) -> None:
        self.inner.start_over(view)

    def rebuild(self, view: View) -> None:
        self.inner.rebuild(view)

    def compress(self, how: str, view: View) -> None:
        self.inner.compress(how, view)

    def arrive(self, view: View) -> None:
        self.inner.arrive(view)

    def hand_out(self, view: View) -> tuple[list[tuple[int, int]], list[Start], int | None]:
        news, due, upcoming = self.inner.hand_out(view)
        if due and isinstance(self.inner, PoolPlan):
            due = place_in_order(view, [start.row for start in due])
        return news, due, upcoming

    def planned_start(self, row: int) -> int:
        return self.inner.planned_start(row)
