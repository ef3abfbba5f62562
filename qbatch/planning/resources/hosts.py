"""Hosts with named amounts: jobs are inside one of them, or are chunks over several.

A job inside one host takes the host with the fewest free processors, then in host order
(docs/spec/papers.md 3.7).  Chunks go to hosts in their order (docs/spec/production.md 1.3).

**Where hosts do not matter.**  A chunk of one processor that needs nothing else and names no host
goes to any free processor.  Suppose every waiting job is made of such chunks, and asks neither to
share hosts nor to have them alone (:func:`qbatch.planning.requests.is_loose`).  Then a job fits
exactly if enough processors are free, at any instant, however the jobs before it were placed.  The
passes and the plan are those of one pool, and hosts are chosen only at the start.  The choice is
made again in every pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import chain

import numpy as np

from qbatch.model.actions import Allocation, Chunk, Start
from qbatch.model.job import PACK, SCATTER, ChunkRequest, Job
from qbatch.model.machine import Host, Machine, fold_names, memory_text, one_host
from qbatch.model.reasons import Reason
from qbatch.planning.kernels import host_pass
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    FREE,
    HOST,
    MEMORY,
    THERE,
    Requests,
)
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.placement import fill, give_on, parts_as_ranges, place_chunks
from qbatch.planning.requests import (
    can_share_one_host,
    hosts_for,
    is_scattered,
    packed,
    requested,
)
from qbatch.planning.reserved_times import first_start, never_text
from qbatch.planning.resources.host_plan import PlacedPlan
from qbatch.planning.resources.host_profile import HostProfile
from qbatch.planning.resources.pool import PoolModel
from qbatch.planning.resources.pool_plan import PoolPlan
from qbatch.planning.view import Named, Plan, Profile, Reserved, ResourceModel, View, jobs_of
from qbatch.planning.windows import blocked_hosts, number_of

_PLACED = {SCATTER: ", each on another host", PACK: ", all on one host"}

_fits_any, _start_host = entry_to(host_pass.fits_any), entry_to(host_pass.start_host)


class HostModel(ResourceModel):
    """Hosts with processors, memory and named resources; a job is inside one, or chunks over
    several."""

    __slots__ = ("_hosts",)

    @staticmethod
    def allocation(
        machine: Machine,
        free: Sequence[int],
        free_memory: Sequence[int],
        job: Job,
        free_resources: Named = (),
    ) -> Allocation:
        if machine.chunked:
            return place_chunks(machine, (free, free_memory, *free_resources), job)
        asked = np.array([(job.procs, job.memory, *machine.amounts(job.resources))], np.int64).T
        hosts = np.array([(free, free_memory, *free_resources), machine.there], np.int64)
        host = int(_start_host(np.ascontiguousarray(asked), hosts))
        return (_part(machine, job, host),) if host >= 0 else ()

    @staticmethod
    def widest(machine: Machine, free: Sequence[int]) -> int:
        return sum(free) if machine.chunked else max(free, default=0)

    @staticmethod
    def places(machine: Machine) -> tuple[Host, ...]:
        return machine.hosts

    @staticmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan; of chunks, for one pool until a job asks for hosts."""
        return ChunkPlan(machine.procs) if machine.chunked else PlacedPlan()

    @staticmethod
    def replayed_as(machine: Machine) -> Machine:
        """Return the machine, or one pool if hosts do not matter to the jobs of a log."""
        if machine.chunked and not (
            machine.counts_memory or machine.resources or machine.asks_for_hosts
        ):
            return one_host(machine.procs)
        return machine

    def whole(self) -> ResourceModel:
        """Return one pool while hosts matter to none of the waiting jobs."""
        return PoolModel(self.view) if are_loose(self.view) else self

    def requests(self) -> Requests:
        view = self.view
        return super().requests() if view.requests is None else view.requests.arrays

    def fits_any(self, rows: Int64Array) -> bool:
        if self.view.machine.chunked:
            return super().fits_any(rows)
        return bool(_fits_any(rows, jobs_of(self.view), self.hosts()))

    def profile(self, *, is_of_plan: bool = False) -> Profile:
        whole = self if is_of_plan else self.whole()
        return HostProfile(self, is_of_plan=is_of_plan) if whole is self else whole.profile()

    def start(self, row: int, allocation: Allocation) -> Start:
        """Return the start of a row; the engine fills the hosts in their order while hosts do not
        matter."""
        return Start(row) if are_loose(self.view) else Start(row, allocation)

    def starts(
        self, rows: list[int], places: list[int], begun: Int64Array | None = None
    ) -> list[Start]:
        view = self.view
        if not view.machine.chunked:
            return [
                Start(row, (_part(view.machine, view.jobs[row], place),))
                for row, place in zip(rows, places, strict=True)
            ]
        if begun is None:
            return place_in_order(view, rows)
        starts, first = [], 0
        of_row = begun[-1].tolist()
        for row in rows:
            last = first
            while of_row[last] == row:
                last += 1
            amounts = begun[AMOUNTS:-2, first:last]
            starts.append(Start(row, parts_as_ranges(begun[HOST, first:last].tolist(), amounts)))
            first = last
        return starts

    def holders(self, job: Job) -> BoolArray:
        hosts = self.view.machine.hosts
        if not self.view.machine.chunked:
            return super().holders(job)
        whole = () if is_scattered(job) else packed(requested(job))
        return np.array(
            [
                host.could_hold(chunk.procs, chunk.memory, chunk.resources)
                and (allowed is None or place in allowed)
                for chunk in whole
                for allowed in (hosts_for(self.view.machine, job, chunk),)
                for place, host in enumerate(hosts)
            ]
            or [False] * len(hosts)
        )

    def is_apart(self, job: Job) -> bool:
        return self.view.machine.chunked and not can_share_one_host(job)

    def hold_up(
        self,
        by: str,
        job: Job,
        order: Int64Array,
        ahead: list[int],
        depth: int,
        reserved: list[Reserved],
    ) -> Reason:
        """Return that the hosts do not hold the job, or which job a start would delay."""
        if not self.view.machine.chunked:
            return self._no_host(by, job)
        view = self.view
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        if not ahead or not self.fits(job):
            if (reason := kept_out(view, by, job)) is not None:
                return reason
            parts = " + ".join(_text(view, chunk) for chunk in requested(job))
            whole = ", on whole hosts" if job.is_exclusive else ""
            how = _PLACED.get(job.placing, "")
            text = f"it asks for {parts}{how}{whole}, which the open hosts do not have free"
            return Reason("hosts", by, text, {**numbers, "most_free": max(view.free)})
        if len(reserved) != 1:
            text = (
                f"would delay one of the first {depth} jobs in the queue, which have reservations"
            )
            return Reason("reservation", by, text, numbers, (ahead[0],))
        (head, _, at) = reserved[0]
        text = (
            f"would delay job {view.jobs[head].number}, which is to start by {at / 1e6:.15g} s: it "
            "would run until "
            f"{(view.now + job.estimate) / 1e6:.15g} s on hosts that this job needs then"
        )
        numbers |= {"shadow": at, "expected_end": view.now + job.estimate}
        return Reason("reservation", by, text, numbers, (head,))

    def _no_host(self, by: str, job: Job) -> Reason:
        """Return that no host can hold a job for as long as it asks."""
        memory = [f"{memory_text(job.memory)} of memory"] if job.memory else []
        *parts, last = (
            f"{job.procs} processors",
            *memory,
            *(f"{many} {name}" for name, many in job.resources if many),
        )
        asked = f"{', '.join(parts)} and {last}" if parts else last
        text = f"no host has {asked} free for its {job.estimate / 1e6:.15g} s"
        numbers = {
            "procs": job.procs,
            "memory": job.memory,
            "estimate": job.estimate,
            **dict(job.resources),
        }
        return Reason("host", by, text, numbers)

    def hosts(self) -> Int64Array:
        view = self.view
        if not hasattr(self, "_hosts"):
            machine = view.machine
            flat = [
                *view.free,
                *view.free_memory,
                *chain.from_iterable(view.free_resources),
                *chain.from_iterable(machine.there),
            ]
            self._hosts = np.array(flat, np.int64).reshape(2, -1, len(machine.hosts))
            # If memory is not counted, none is free, whatever a policy wrote.
            if 0 in machine.there[MEMORY]:
                self._hosts[FREE, MEMORY] *= self._hosts[THERE, MEMORY] > 0
            if view.closed:
                self._hosts[THERE, CPUS, list(view.closed)] = 0
        return self._hosts.copy()


def kept_out(view: View, by: str, job: Job) -> Reason | None:
    """Return that reservations keep a job from hosts on which it would fit now, or None."""
    blocked = blocked_hosts(view.windows, view.machine, job, view.now)
    numbers = {"procs": job.procs, "hosts": len(blocked)}
    number = number_of(view.machine, job)
    if blocked and number >= 0 and not view.machine.reservations[number].is_flexible:
        first = first_start(view.windows, view.machine, job, view.now)
        if first is None:
            return Reason("never-in-reservation", by, never_text(job), numbers)
        begin = view.windows.next_begin(number, view.now)
        wait = (first if begin is None else begin) - view.now
        text = f"its reservation {job.reservation} begins in {timedelta(microseconds=wait)}"
        if begin is not None and first > begin:
            later = timedelta(microseconds=first - view.now)
            text += f", and it fits there in {later} at the earliest"
        if begin is not None:
            return Reason("reserved", by, text, numbers | {"begins_in": wait})
    free = view.free, view.free_memory, *view.free_resources
    if not blocked or not place_chunks(view.machine, free, job):
        return None
    names = ", ".join(fold_names([view.machine.hosts[host].name for host in sorted(blocked)]))
    text = f"it would fit now, but reservations keep it from {names} during its estimate"
    return Reason("reserved", by, text, numbers)


def are_loose(view: View) -> bool:
    """Return whether hosts matter to none of the waiting jobs."""
    return view.requests is not None and view.requests.are_loose(view.queue)


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


def _part(machine: Machine, job: Job, host: int) -> Chunk:
    """Return what a job takes on its one host: what it asks for, and memory only if it is
    counted."""
    memory = job.memory if machine.hosts[host].memory else 0
    return Chunk(host, job.procs, memory, resources=machine.amounts(job.resources))


def _text(view: View, chunk: ChunkRequest) -> str:
    where = f" on {view.machine.hosts[chunk.host].name}" if chunk.host >= 0 else ""
    typed = {name.partition(":")[0] for name, _ in chunk.resources if ":" in name}
    amounts = [f"{chunk.procs} processor{'s' * (chunk.procs != 1)}"] if chunk.procs else []
    amounts += [memory_text(chunk.memory)] if chunk.memory else []
    amounts += [f"{amount} {name}" for name, amount in chunk.resources if name not in typed]
    *first, last = amounts
    many = f"{chunk.count} chunks of " if chunk.count > 1 else ""
    return f"{many}{', '.join(first)}{' and ' * bool(first)}{last}{where}"


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
