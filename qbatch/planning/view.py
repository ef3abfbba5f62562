"""What a policy sees: the state of the cluster at one instant, and what happened in this round.

A view is read-only: its arrays cannot be written, its values are frozen.  Only ``memory`` belongs
to the policy: the record that the policy made with ``new_memory`` and that the engine keeps for it.

A view is a window: each part of the state is made when a policy first looks at it, and holds until
the pass is over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from qbatch.model.actions import Allocation, outside, procs_of
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.shapes import Shapes

if TYPE_CHECKING:
    from qbatch.planning.resources.model import FreeResources, ResourceModel

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
    machine, and when the run began. ``shapes``: what the waiting jobs ask for, as arrays; only on a
    chunked machine.
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
    shapes = _Shown[Shapes | None]()
    pieces = _Shown[Int64Array]()

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
        return self.window.kind.free_now(self)

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
