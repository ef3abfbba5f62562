"""What a policy sees, and what it may ask: the state of the cluster at one instant, what happened in
this round, and the resource model of the machine.

A view is read-only: its arrays cannot be written, its values are frozen.  Only ``memory`` belongs
to the policy: the record that the policy made with ``new_memory`` and that the engine keeps for it.

A view is a window: each part of the state is made when a policy first looks at it, and holds until
the pass is over.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec
import numpy as np

from qbatch.model.actions import Allocation, Start, outside, procs_of
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.model.reasons import Reason
from qbatch.planning.kernels import host_pass, running
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.tables import AMOUNTS, Instant, JobColumns, Requests, no_requests
from qbatch.planning.kernels.types import BoolArray, Int64Array, read_only
from qbatch.planning.placement import give_on
from qbatch.planning.requests import BookedRequests
from qbatch.planning.windows import Windows, blocked_hosts

_host_pass, _parts_by_end = entry_to(host_pass.host_pass), entry_to(running.parts_by_end)

_no_failures = entry_to(host_pass.no_failures)

_NO_REQUESTS = Requests(*map(read_only, cast(Any, no_requests())))  # type: ignore[arg-type]

Part = TypeVar("Part")

OVERDUE = 1_000_000
"""A job that outlives its estimate is expected to end this many microseconds from now, in each pass
again."""


class Run(msgspec.Struct, frozen=True, gc=False):
    """One running or suspended job.

    ``since``: when it last started or resumed (or was suspended).  ``expected_end``: by its
    estimate. ``done``: processor-microseconds done before ``since``.  ``holds_memory``: its memory
    is taken.
    """

    row: int
    allocation: Allocation
    since: int
    expected_end: int
    done: int
    holds_memory: bool = True

    @property
    def procs(self) -> int:
        """Processors of the whole allocation."""
        return procs_of(self.allocation)


class Columns(NamedTuple):
    """What was asked for, as arrays with one entry per row (read-only): ``submit``, ``procs``,
    ``estimate`` and ``memory``; ``started`` is the first start, -1 before it.  ``asked[N, rows]``:
    all resources, first processors and memory, then those of ``Machine.resources``."""

    submit: Int64Array
    procs: Int64Array
    estimate: Int64Array
    memory: Int64Array
    started: Int64Array
    asked: Int64Array


class Window(Protocol):
    """The state behind views, kept by the engine, with the attributes of :class:`View` under the
    same names.

    ``kind``: the resource model of the machine
    (:func:`qbatch.planning.resources.resource_model_of`).
    """

    kind: type[ResourceModel]

    @property
    def columns(self) -> Columns: ...

    @property
    def long_columns(self) -> Columns:
        """Return ``columns``, possibly in longer arrays: for kernels, which read only the rows that
        they receive."""

    @property
    def free(self) -> tuple[int, ...]: ...

    def by_end(self) -> tuple[Int64Array, Int64Array, int]:
        """Return ``ends`` and ``amounts``, possibly in longer arrays, and how many entries are in
        use."""

    def jobs_of(self, rows: Sequence[int]) -> Iterator[Job]:
        """Return the jobs of rows that wait or run, or ended in this round."""


class _Shown(Generic[Part]):
    """A part of the state, taken from the window when it is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._look = name, attrgetter(f"window.{name}")

    def __get__(self, view: View | None, owner: type) -> Part:
        if view is None:
            return self  # type: ignore[return-value]  # asked of the class
        value: Part = self._look(view)
        view.__dict__[self._name] = value
        return value


class SeenWindow:
    """The window behind a view, with some facts replaced."""

    def __init__(self, seen: View, **facts: Any) -> None:
        self._seen = seen
        self.kind = seen.window.kind
        self.__dict__.update(facts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._seen, name)

    @property
    def long_columns(self) -> Columns:
        columns: Columns = self.columns
        # Kernels need contiguous arrays; no wrapper replaces ``asked``.
        return columns._replace(asked=self._seen.window.long_columns.asked)

    def by_end(self) -> tuple[Int64Array, Int64Array, int]:
        ends: Int64Array = self.ends
        return ends, self.amounts, len(ends)

    def jobs_of(self, rows: Sequence[int]) -> Iterator[Job]:
        """Return the jobs of rows that wait or run, or ended in this round."""
        return self._seen.window.jobs_of(rows)


class View(msgspec.Struct, frozen=True, dict=True):
    """The state at one instant, for one pass.

    ``now``: microseconds.  ``queue``: waiting rows in order of sequence.  ``free`` and
    ``free_memory``: by host, ``free_resources``: by resource of ``Machine.resources``, then by
    host. ``running`` and ``suspended``: by row.  ``ends`` and ``amounts``: expected ends of the
    running jobs, ascending, and the processors that become free then (one entry per instant if jobs
    may span hosts, else one per job). ``finished``, ``withdrawn`` and ``arrived``: rows, in this
    round; ``only_arrivals``: nothing but arrivals happened since the last pass.  ``ended_on``: the
    hosts of the finished jobs.  ``requeued``: rows that had a trial run in which the job did not
    end; they are in the queue again (or parked).  ``ran``: run times of the finished jobs, by row,
    if the driver gave them (:class:`qbatch.model.events.Finished`).

    A host of ``closed`` has nothing free, and ``ends`` and ``amounts`` leave it out: a job that
    ends there gives nothing back until the host opens.  Rows that the open hosts could never hold
    are ``parked``: not in the queue, and named in ``withdrawn`` in the round in which they left it.
    ``is_machine_changed``: hosts closed or opened in this round, and parked rows may be back in
    the queue, so that a plan is best rebuilt from it.  It is also true when an operator started a
    job: its row is in ``withdrawn``, and it runs.

    ``promises``: by row the latest start that a job was promised, unless the promise was taken
    back, in microseconds.

    ``pieces[3 + N, n]``: the parts of running jobs, one for each job on each host; inside a wrapper
    they may be in any order. Rows: expected end, host, processors, memory, the resources of the
    machine, and when the run began. ``requests``: what the waiting jobs ask for, as arrays; only on a
    chunked machine.  ``windows``: when hosts are reserved.
    """

    window: Window
    now: int
    machine: Machine
    queue: Int64Array
    memory: Any
    finished: tuple[int, ...] = ()
    withdrawn: tuple[int, ...] = ()
    arrived: tuple[int, ...] = ()
    only_arrivals: bool = False
    is_machine_changed: bool = False
    requeued: tuple[int, ...] = ()
    ended: Sequence[Run] = ()
    ran: Mapping[int, int] = MappingProxyType({})

    columns = _Shown[Columns]()
    jobs = _Shown[Sequence[Job]]()
    free = _Shown[tuple[int, ...]]()
    free_memory = _Shown[tuple[int, ...]]()
    free_resources = _Shown[tuple[tuple[int, ...], ...]]()
    running = _Shown[Mapping[int, Run]]()
    suspended = _Shown[Mapping[int, Run]]()
    ends = _Shown[Int64Array]()
    amounts = _Shown[Int64Array]()
    closed = _Shown[frozenset[int]]()
    parked = _Shown[Int64Array]()
    promises = _Shown[Mapping[int, int]]()
    requests = _Shown[BookedRequests | None]()
    pieces = _Shown[Int64Array]()
    windows = _Shown[Windows]()

    def changed(self, **facts: Any) -> View:
        """Return this view with some facts replaced, for an inner policy."""
        own = {name: facts.pop(name) for name in View.__struct_fields__ if name in facts}
        return msgspec.structs.replace(self, window=SeenWindow(self, **facts), **own)

    def seen_through(self, window: Window, **facts: Any) -> View:
        """Return a view of this round through another window; ``facts``: fields to replace."""
        return msgspec.structs.replace(self, window=window, **facts)

    @property
    def ended_on(self) -> frozenset[int]:
        """The hosts of the jobs that finished in this round."""
        return frozenset(
            host for run in self.ended for chunk in run.allocation for host in chunk.hosts
        )

    @property
    def waiting(self) -> Iterator[Job]:
        """The waiting jobs in order of sequence."""
        return self.window.jobs_of(self.queue.tolist())

    def that_fit(self, *columns: str) -> Iterator[Job]:
        """Return the waiting jobs that ask for no more processors than are free, in order of
        columns, ties by sequence.

        ``columns``: names of :class:`Columns`, the most important first; none: the order of the
        queue.  Memory and chunks are not checked: ``free_now().take(job)`` returns whether the job
        fits.
        """
        values = self.window.long_columns
        rows = self.queue[
            values.procs[self.queue] <= self.window.kind.widest(self.machine, self.free)
        ]
        if columns and len(rows) > 1:
            keys = [getattr(values, name)[rows] for name in reversed(columns)]
            rows = rows[np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys)]
        return self.window.jobs_of(rows.tolist())

    @property
    def free_procs(self) -> int:
        """Free processors of all hosts."""
        free = self.window.free
        return free[0] if len(free) == 1 else sum(free)

    @property
    def open_procs(self) -> int:
        """Processors of all open hosts, free or not."""
        closed, machine = self.closed, self.machine
        return (
            machine.procs - sum(machine.hosts[place].cpus for place in closed)
            if closed
            else machine.procs
        )

    def free_now(self) -> FreeResources:
        """Return what is free now, for a pass to take from: ``if free.take(job): yield
        Start(job.row)``."""
        return FreeResources(self.window.kind, self)

    room = free_now
    """The former name of :meth:`free_now`."""

    @property
    def resources(self) -> ResourceModel:
        """The resource model of the machine, for questions and plans
        (:mod:`qbatch.planning.resources`)."""
        return self.window.kind(self)

    space = resources
    """The former name of :attr:`resources`."""

    @property
    def is_late(self) -> bool:
        """Whether a running job has reached its estimate and is still there after the completions
        of this instant.

        A job of zero estimate that started at this very instant is not late yet.
        """
        ends, _, count = self.window.by_end()
        return bool(count and ends.item(0) <= self.now) and any(
            run.expected_end <= self.now and run.since < self.now and self.open_procs_of(run)
            for run in self.running.values()
        )

    def open_procs_of(self, run: Run) -> int:
        """Return how many processors of a run are on open hosts."""
        return procs_of(outside(run.allocation, self.closed))

    def expected_ends(self) -> tuple[Int64Array, Int64Array, int]:
        """Return ``ends`` and ``amounts`` (read-only, possibly in longer arrays) and how many
        entries are in use; a job that has outlived its estimate ends ``OVERDUE`` from now."""
        ends, amounts, count = self.window.by_end()
        if not count or ends.item(0) > self.now:
            return ends, amounts, count
        late = int(ends[:count].searchsorted(self.now, side="right"))
        runs = [
            run
            for run in self.running.values()
            if run.expected_end <= self.now and self.open_procs_of(run)
        ]
        ends = np.concatenate(
            [np.array([self.expected_end(run) for run in runs], np.int64), ends[late:count]]
        )
        amounts = np.concatenate(
            [np.array([self.open_procs_of(run) for run in runs], np.int64), amounts[late:count]]
        )
        order = np.argsort(ends, kind="stable")
        return read_only(ends[order]), read_only(amounts[order]), len(ends)

    def expected_end(self, run: Run) -> int:
        """Return when a running job ends by its estimate; an overdue one ends ``OVERDUE`` from
        now."""
        is_overdue = run.expected_end <= self.now and run.since < self.now
        return self.now + OVERDUE if is_overdue else run.expected_end


Reserved = tuple[int, int, int]
"""A reservation of a pass: row, index in :meth:`ResourceModel.hosts` (``SPREAD``: several hosts),
start."""

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
        """The booked ends of odd rows (:func:`qbatch.planning.resources.host_plan.odd_ends`)."""

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
    """The resource model of a machine, for a view."""

    __slots__ = ("view",)

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
        """Return the places of jobs or of their chunks: hosts, or one for the pool."""

    @staticmethod
    @abstractmethod
    def new_plan(machine: Machine) -> Plan:
        """Return an empty plan for conservative backfilling."""

    @staticmethod
    @abstractmethod
    def replayed_as(machine: Machine) -> Machine:
        """Return the machine (one pool, or hosts) on which a compiled loop replays a log with the
        same result."""

    def place(self, job: Job) -> Allocation:
        """Return the default allocation of a job now, empty if it does not fit."""
        view = self.view
        return self.allocation(view.machine, view.free, view.free_memory, job, view.free_resources)

    def fits(self, job: Job) -> bool:
        """Return whether a job fits now."""
        return self.view.free_now().take(job)

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
    def profile(self, *, is_of_plan: bool = False) -> Profile:
        """Return what the running jobs leave free from now on: for a pass that starts jobs, or for
        a kept plan of the places of jobs."""

    def list_pass(
        self,
        order: Int64Array,
        depth: int,
        *,
        is_stopping: bool = False,
    ) -> tuple[list[Start], list[Reserved]]:
        """Make one pass of a list scheduler; return the starts, in order, and the reservations.

        Args:
            order: the waiting rows, in the order of the scan.
            depth: the number of jobs that get a reservation when they cannot start.
            is_stopping: the pass ends at the first job that does not fit.
        """
        view, parts = self.view, self.parts()
        instant = Instant(view.now, view.free_procs, 0, len(order), 0, parts.shape[1], 0, 0, 0, 0)
        started, places, begun = for_starts(self, len(order))
        reserved = np.empty((3, min(depth, len(order))), np.int64)
        jobs = jobs_of(view, self.requests())
        count, kept = _host_pass(
            host_pass.PassTables(instant, jobs, self.hosts(), parts, started, places, begun),
            order,
            depth,
            is_stopping,
            0,
            0,
            True,
            reserved,
            _no_failures(jobs),
        )
        starts = self.starts(started[:count].tolist(), places[:count].tolist(), begun)
        return starts, reserved_in(reserved, int(kept))

    @abstractmethod
    def hold_up(
        self,
        by: str,
        job: Job,
        order: Int64Array,
        ahead: list[int],
        depth: int,
        reserved: list[Reserved],
    ) -> Reason:
        """Return why a pass of policy ``by`` over ``order`` did not start a job.

        ``ahead``: the rows before it.  ``reserved``: the reservations of the pass.
        """

    def is_apart(self, job: Job) -> bool:
        """Return whether a job may not share one host, as a whole, with other jobs."""
        return False

    def holders(self, job: Job) -> BoolArray:
        """Return for each host whether it could hold the whole job alone when empty."""
        hosts = self.view.machine.hosts
        return np.array([host.could_hold(job.procs, job.memory, job.resources) for host in hosts])

    def whole(self) -> ResourceModel:
        """Return the resource model of the passes: one pool where hosts matter to no waiting
        job."""
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

    def requests(self) -> Requests:
        """Return what the waiting jobs ask for in chunks; nothing where each job is one chunk."""
        return _NO_REQUESTS

    def place_of(self, run: Run) -> int:
        """Return the index of a job's place in ``places``."""
        return run.allocation[0].host

    def starts(
        self, rows: list[int], places: list[int], begun: Int64Array | None = None
    ) -> list[Start]:
        """Return the starts of a pass of :meth:`whole` (``begun``: the parts of jobs that have
        requests); in a pool the engine chooses their hosts."""
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
        self._kind, self._windows, self._now = kind, view.windows, view.now
        self._widest = kind.widest(view.machine, view.free)

    def take(self, job: Job) -> bool:
        """Take the default allocation of a job if it fits; return whether it did."""
        return job.procs <= self._widest and bool(self.place(job))

    def place(self, job: Job) -> Allocation:
        """Take the default allocation of a job and return it, empty if the job does not fit."""
        if job.procs > self._widest:
            return ()
        free, blocked = self.free, blocked_hosts(self._windows, self.machine, job, self._now)
        if blocked:
            free = [0 if host in blocked else left for host, left in enumerate(free)]
        found = self._kind.allocation(
            self.machine, free, self.free_memory, job, self.free_resources
        )
        self.give(found)
        return found

    def place_on(self, job: Job, host: int) -> Allocation:
        """Take an allocation of a whole job inside one host and return it, empty if the job does
        not fit there."""
        is_blocked = host in blocked_hosts(self._windows, self.machine, job, self._now)
        if job.procs > self.free[host] or is_blocked:
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


def for_starts(model: ResourceModel, rows: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return ``started``, ``places`` and ``begun`` for a pass that starts at most ``rows`` jobs."""
    # Each part of a job has a processor, or is its one of the server; and there is an end mark.
    free = model.view.free_procs
    of_server = min(rows, free) if model.view.machine.server >= 0 else 0
    parts = free + of_server + 1 if len(model.requests().heads) else 0
    fields = AMOUNTS + 2 + len(model.view.machine.resources) + 2
    return np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty((fields, parts), np.int64)


def jobs_of(view: View, requests: Requests = _NO_REQUESTS) -> JobColumns:
    """Return what the jobs ask for."""
    columns = view.window.long_columns
    return JobColumns(columns.submit, columns.procs, columns.estimate, columns.asked, requests)
