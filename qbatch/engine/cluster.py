"""The state of a cluster as tables, private to the engine: jobs by row, the queue, hosts, the parts
of running jobs.

Each method changes one fact; :mod:`qbatch.engine.checks` checks before whether it may happen.  A
closed host shows nothing free: what is free there is *withheld*, also what its jobs give back,
until the host opens.  Waiting rows that the open hosts could never hold are *parked*, outside the
queue.  A daemon runs for years: of an ended job, only one byte of state and five numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from qbatch.engine.runs import ASKED, ESTIMATED, STARTED, SUBMITTED, RunTables
from qbatch.engine.states import CODES, State
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import Allocation, parts_of
from qbatch.model.errors import DecisionError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels import running
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.tables import CPUS, FREE, MEMORY, NAMED, THERE, WITHHELD
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.requests import BookedRequests, RequestBook
from qbatch.planning.resources import resource_model_of
from qbatch.planning.view import Columns, Run
from qbatch.planning.windows import NO_WINDOWS, Windows, blocked_hosts

_ends_of = entry_to(running.ends_of)

_QUEUED = CODES[State.QUEUED]


class Cluster:
    """Jobs by row, queue, parked, running and suspended jobs, hosts, promises.

    ``jobs[row]``: the job until it is forgotten, then None; ``codes[row]``: its state, of
    ``CODES``; ``columns``: what it asks for and when it first started, for ever.  ``hosts[3, N,
    H]``: the free amount, the total (processors 0: closed), and the withheld amount; ``free`` and
    ``free_memory`` are rows of it.  ``runs``: the running and the suspended jobs. ``parts[4 + N,
    n]``: the parts of running jobs in order of expected end; the names of all rows are in
    :mod:`qbatch.planning.kernels.tables`.
    """

    def __init__(self, machine: Machine, windows: Windows = NO_WINDOWS) -> None:
        self.machine, self.windows = machine, windows
        self.kind = resource_model_of(machine)
        self.jobs: list[Job | None] = []
        self.codes = bytearray()
        self.waiting = Waiting()
        self.parked = Waiting()
        self.promises: dict[int, int] = {}
        self.left_behind: set[int] = set()
        self.closed: frozenset[int] = frozenset()
        self.is_malleable = False
        self.requests = RequestBook(machine, windows) if machine.chunked else None
        there = np.array(machine.there, np.int64)
        hosts, table = (
            np.stack([there, there, np.zeros_like(there)]),
            np.empty((ASKED + len(there), 64), np.int64),
        )
        self.runs = runs = RunTables(table, hosts)
        self.running, self.suspended, self.until, self.trials = (
            runs.running,
            runs.suspended,
            runs.until,
            runs.trials,
        )
        self.hold_hosts(hosts)
        self.hold_columns(table)

    def hold_columns(self, table: Int64Array) -> None:
        """Keep the columns by row in this table, one per row of the table, with space for more
        jobs."""
        shown = read_only(table)
        submit, estimate, started, asked = (
            shown[SUBMITTED],
            shown[ESTIMATED],
            shown[STARTED],
            shown[ASKED:],
        )
        self.long_columns = Columns(submit, asked[CPUS], estimate, asked[MEMORY], started, asked)
        self._table, self._columns = table, self.long_columns
        # NumPy takes three times as long entry by entry.
        self._cells: list[memoryview[int]] = [memoryview(cast(Any, column)) for column in table]
        self.runs.hold_jobs(table)

    def hold_hosts(self, hosts: Int64Array) -> None:
        """Keep the hosts in this table."""
        self.hosts = hosts
        self.free: memoryview[int] = memoryview(cast(Any, hosts[FREE, CPUS]))
        self.free_memory: memoryview[int] = memoryview(cast(Any, hosts[FREE, MEMORY]))
        self.runs.hold_state(hosts=hosts)

    @property
    def table(self) -> Int64Array:
        """The writable columns of all rows so far, one per row of the table."""
        return self._table[:, : len(self.jobs)]

    @property
    def columns(self) -> Columns:
        """The columns of all rows so far, read-only."""
        n = len(self.jobs)
        if len(self._columns.submit) != n:  # views are made several times per round
            submit, procs, estimate, memory, started, asked = self.long_columns
            self._columns = Columns(
                submit[:n], procs[:n], estimate[:n], memory[:n], started[:n], asked[:, :n]
            )
        return self._columns

    @property
    def parts(self) -> Int64Array:
        """The parts of running jobs in order of expected end, read-only, until the next change."""
        return self.runs.shown[:, : self.runs.count]

    def by_end(self) -> tuple[Int64Array, Int64Array, int]:
        """Return the expected ends, ascending, the processors that open hosts get back then, and
        the number of entries.

        Both arrays are read-only and possibly longer.  Where jobs may span hosts, the ends of one
        instant are one entry.
        """
        runs = self.runs
        if runs.by_end is None:
            if self.closed or (self.machine.spans and len(self.machine.hosts) > 1):
                ends, amounts, count = _ends_of(runs.state.parts, runs.count, self.hosts)
                runs.by_end = read_only(ends), read_only(amounts), int(count)
            else:
                runs.by_end = runs.ends, runs.amounts, runs.count
        return runs.by_end

    def job(self, row: int) -> Job:
        """Return the job of a row; a LookupError if it ended before this round."""
        job = self.jobs[row]
        if job is None:
            raise LookupError(f"the job of row {row} ended before this round and is forgotten")
        return job

    def free_for(self, job: Job, now: int) -> Sequence[int]:
        """Return the free processors by host, none where a reservation keeps a job out now."""
        blocked = blocked_hosts(self.windows, self.machine, job, now)
        if not blocked:
            return self.free
        return [0 if host in blocked else free for host, free in enumerate(self.free)]

    def add(self, jobs: Sequence[Job]) -> None:
        """Add jobs (which have their rows) to the queue; a DecisionError, and no change, for a
        number beyond 64 bits."""
        first, space = len(self.jobs), self._table.shape[1]
        if first + len(jobs) > space:
            longer = np.empty((len(self._cells), max(2 * space, first + len(jobs))), np.int64)
            longer[:, :first] = self.table
            self.hold_columns(longer)
        (submit, estimate, started), (procs, memory, *named) = (
            self._cells[:ASKED],
            self._cells[ASKED:],
        )
        try:
            for row, job in enumerate(jobs, first):
                submit[row], procs[row], estimate[row], memory[row] = (
                    job.submit,
                    job.procs,
                    job.estimate,
                    job.memory,
                )
                started[row] = -1
                if named:
                    for column, amount in zip(
                        named, self.machine.amounts(job.resources), strict=True
                    ):
                        column[row] = amount
        except (OverflowError, TypeError, ValueError) as error:
            raise DecisionError(
                f"a job asks for an amount that is not a 64-bit whole number: {error}"
            ) from error
        self.jobs += jobs
        self.codes += bytes((_QUEUED,)) * len(jobs)
        if self.requests is not None:
            self.requests.add(jobs)

    def leave_queue(self, row: int) -> None:
        (self.parked if self.closed and row in self.parked else self.waiting).remove(row)

    @property
    def free_resources(self) -> list[list[int]]:
        return (
            cast("list[list[int]]", self.hosts[FREE, NAMED:].tolist())
            if self.machine.resources
            else []
        )

    def lacks(self, allocation: Allocation) -> tuple[int, str, int] | None:
        """Return host, name and free amount of the first named resource that does not suffice for
        an allocation; None: all do."""
        names = self.machine.resources
        for chunk in allocation if names else ():
            for host in chunk.hosts if chunk.resources else ():
                free = self.hosts[FREE, NAMED:, host].tolist()
                for name, amount, left in zip(names, chunk.resources, free, strict=True):
                    if amount > left:
                        return host, name, left
        return None

    def width(self, row: int, procs: int) -> int:
        """Return the number of its processors that a job uses: one that takes whole hosts does not
        use all of them."""
        job = self.job(row)
        return job.procs if job.is_exclusive and self.machine.chunked else procs

    def set_closed(self, closed: Iterable[int]) -> None:
        closed, hosts = frozenset(closed), self.hosts
        for host in self.closed - closed:
            hosts[FREE, :, host], hosts[WITHHELD, :, host] = hosts[WITHHELD, :, host], 0
            hosts[THERE, CPUS, host] = self.machine.hosts[host].cpus
        for host in closed - self.closed:
            hosts[WITHHELD, :, host], hosts[FREE, :, host] = hosts[FREE, :, host], 0
            hosts[THERE, CPUS, host] = 0
        self.closed, self.runs.by_end = closed, None

    def set_reservations(self, machine: Machine, windows: Windows) -> None:
        """Keep the machine with other reservations, at other times."""
        rows, before = self.requesting_rows(), self.requests
        self.machine, self.windows = machine, windows
        self.requests = RequestBook(machine, windows)
        if before is not None:
            self.requests.restore(rows, before.alike(rows), self.job)

    def requesting_rows(self) -> Int64Array:
        """Return the rows that wait or can wait again, ascending: on a chunked machine their
        requests are kept."""
        return np.sort(
            np.concatenate(
                [self.waiting.rows, self.parked.rows, np.fromiter(self.trials, np.int64)]
            )
        )


class _Jobs(Sequence[Job]):
    """The jobs by row, read-only; a job that ended before this round is no longer there."""

    def __init__(self, cluster: Cluster) -> None:
        self._job, self._length = cluster.job, cluster.jobs.__len__

    def __getitem__(self, row: Any) -> Any:
        return self._job(row)

    def __len__(self) -> int:
        return self._length()


class ClusterWindow:
    """The part of a cluster that a policy may read, made when a view asks for it
    (:class:`qbatch.planning.view.View`)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.kind = cluster.kind
        self.jobs: Sequence[Job] = _Jobs(cluster)
        self.running: Mapping[int, Run] = cluster.running
        self.suspended: Mapping[int, Run] = MappingProxyType(cluster.suspended)
        self.promises: Mapping[int, int] = MappingProxyType(cluster.promises)
        self.by_end = cluster.by_end

    @property
    def columns(self) -> Columns:
        return self._cluster.columns

    @property
    def long_columns(self) -> Columns:
        return self._cluster.long_columns

    def jobs_of(self, rows: Sequence[int]) -> Iterator[Job]:
        return map(self._cluster.jobs.__getitem__, rows)  # type: ignore[arg-type]  # those live

    @property
    def free(self) -> tuple[int, ...]:
        """The free processors by host: none where a suspended job of an earlier policy waits for
        its own."""
        cluster = self._cluster
        if not cluster.left_behind:
            return tuple(cluster.free)
        kept = {
            place
            for row in cluster.left_behind
            for place, _, _ in parts_of(cluster.suspended[row].allocation)
        }
        return tuple(0 if host in kept else free for host, free in enumerate(cluster.free))

    @property
    def free_memory(self) -> tuple[int, ...]:
        return tuple(self._cluster.free_memory)

    @property
    def free_resources(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(tuple, self._cluster.free_resources))

    @property
    def ends(self) -> Int64Array:
        ends, _, count = self._cluster.by_end()
        return ends[:count]

    @property
    def amounts(self) -> Int64Array:
        _, amounts, count = self._cluster.by_end()
        return amounts[:count]

    @property
    def closed(self) -> frozenset[int]:
        return self._cluster.closed

    @property
    def parked(self) -> Int64Array:
        return self._cluster.parked.rows

    @property
    def windows(self) -> Windows:
        return self._cluster.windows

    @property
    def requests(self) -> BookedRequests | None:
        return None if self._cluster.requests is None else self._cluster.requests.arrays

    @property
    def pieces(self) -> Int64Array:
        return self._cluster.parts[:-1]
