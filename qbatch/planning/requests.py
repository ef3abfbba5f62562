"""What jobs ask for in chunks, and the requests of waiting jobs as flat arrays: one entry per
request, one request per row.

Jobs of a campaign make the same request many times: a pass looks at each request once, however long
the queue is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from qbatch.model.job import FREE, PACK, PLACINGS, SCATTER, SERVER, ChunkRequest, Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels.tables import GROUP, REQUEST, Requests
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.partitions import partitions_of
from qbatch.planning.windows import NO_WINDOWS, Windows, number_of

_REQUEST_OF = attrgetter(
    "chunks",
    "procs",
    "memory",
    "placing",
    "is_exclusive",
    "resources",
    "partitions",
    "reservation",
)
_ROW_OF = attrgetter("row")
_FEWEST = 4096

_MOST_COMPARED = 50
# A request with more groups is taken to have some that share hosts.


def requested(job: Job) -> tuple[ChunkRequest, ...]:
    """Return the chunks of a job.

    A job without chunks is one per processor, with an even share of the memory, rounded up.  With
    named resources it is one chunk.
    """
    if job.chunks:
        return job.chunks
    if job.resources:
        return (ChunkRequest(1, job.procs, job.memory, resources=job.resources),)
    return (ChunkRequest(job.procs, 1, -(-job.memory // max(job.procs, 1))),)


def is_plain(machine: Machine, job: Job) -> bool:
    """Return whether a job asks for nothing but processors: it fits wherever enough are free in
    total."""
    is_bare = not (job.chunks or job.memory or job.is_exclusive or job.resources)
    has_choice = bool(machine.partitions or machine.reservations)
    return is_bare and job.placing == FREE and not has_choice


def hosts_for(machine: Machine, job: Job, chunk: ChunkRequest) -> tuple[int, ...] | None:
    """Return the hosts on which a chunk may be, by the partitions and the reservation of its job,
    its features and the host that it names; None: all."""
    if chunk.host == SERVER:
        return (machine.server,) if machine.server >= 0 else ()
    chosen: set[int] | None = None
    if machine.partitions:
        named = partitions_of(machine, job.partitions)
        if named or job.partitions:
            chosen = {host for each in named for host in each.hosts}
    if (number := number_of(machine, job)) >= 0 and not machine.reservations[number].is_flexible:
        reserved = set(machine.reservations[number].hosts)
        chosen = reserved if chosen is None else chosen & reserved
    if chunk.host >= 0:
        chosen = {chunk.host} if chosen is None else chosen & {chunk.host}
    if chunk.features:
        wanted, every = set(chunk.features), range(len(machine.real_hosts))
        chosen = {
            place
            for place in (every if chosen is None else chosen)
            if wanted <= set(machine.hosts[place].features)
        }
    if chosen is None or len(chosen) == len(machine.real_hosts):
        return None
    return tuple(sorted(chosen))


def packed(request: Sequence[ChunkRequest]) -> tuple[ChunkRequest, ...]:
    """Return the single chunk of a packed job; nothing if its chunks name different hosts.  It has
    the features of all.  Amounts of the server stay apart."""
    of_server = tuple(chunk for chunk in request if chunk.host == SERVER)
    request = [chunk for chunk in request if chunk.host != SERVER]
    named = {chunk.host for chunk in request if chunk.host >= 0}
    if len(named) > 1:
        return ()
    procs = sum(chunk.count * chunk.procs for chunk in request)
    memory = sum(chunk.count * chunk.memory for chunk in request)
    host = named.pop() if named else -1
    features = tuple(dict.fromkeys(name for chunk in request for name in chunk.features))
    return (ChunkRequest(1, procs, memory, host, total_of(request), features), *of_server)


def total_of(request: Sequence[ChunkRequest]) -> tuple[tuple[str, int], ...]:
    """Return the named resources of all chunks together."""
    total: dict[str, int] = {}
    for chunk in request:
        for name, amount in chunk.resources:
            total[name] = total.get(name, 0) + chunk.count * amount
    return tuple(total.items())


def is_scattered(job: Job) -> bool:
    """Return whether a job has several chunks that go to different hosts."""
    return job.placing == SCATTER and chunks_on_hosts(requested(job)) > 1


def chunks_on_hosts(request: Sequence[ChunkRequest]) -> int:
    """Return the number of chunks that are on hosts, without amounts of the server."""
    return sum(chunk.count for chunk in request if chunk.host != SERVER)


def can_share_one_host(job: Job) -> bool:
    """Return whether all chunks of a job may be on one host with other jobs."""
    has_server = any(chunk.host == SERVER for chunk in job.chunks)
    return not (job.is_exclusive or has_server or is_scattered(job))


def is_loose(machine: Machine, job: Job, request: Sequence[ChunkRequest]) -> bool:
    """Return whether hosts do not matter to a job: it fits wherever enough processors are free in
    total.

    Its chunks are of one processor, need no counted memory and no other resource, and may be on any
    host.  They may share hosts with others and with each other; or every host has one processor, so
    that they cannot.
    """
    if machine.reservations:
        return False
    if job.placing != FREE or job.is_exclusive:
        are_single = not machine.counts_memory and all(
            host.cpus == 1 for host in machine.real_hosts
        )
        if job.placing == PACK or not are_single:
            return False
    return all(
        chunk.procs == 1
        and hosts_for(machine, job, chunk) is None
        and not (chunk.memory and machine.counts_memory)
        and not chunk.resources
        for chunk in request
    )


def is_sound(job: Job, request: Sequence[ChunkRequest]) -> bool:
    """Return whether a request does not contradict itself or its job."""
    procs = sum(chunk.count * chunk.procs for chunk in request)
    memory = sum(chunk.count * chunk.memory for chunk in request)
    is_whole = not job.chunks or (procs, memory, dict(total_of(request))) == (
        job.procs,
        job.memory,
        dict(job.resources),
    )
    return (
        bool(request)
        and job.placing in PLACINGS
        and is_whole
        and max(procs, memory) < 2**62
        and all(chunk.count > 0 and chunk.memory >= 0 and is_sized(chunk) for chunk in request)
    )


def is_sized(chunk: ChunkRequest) -> bool:
    """Return whether a chunk has processors, or none if it is of the server."""
    return chunk.procs == 0 if chunk.host == SERVER else chunk.procs > 0


class BookedRequests(NamedTuple):
    """The requests of jobs, read-only, and whether hosts matter to at least one of them.

    ``of[row]`` is an index into ``heads`` for this pass only: they are renumbered sometimes.
    """

    arrays: Requests
    has_tight: bool

    def are_loose(self, rows: Int64Array) -> bool:
        """Return whether hosts matter to none of some rows."""
        of, heads, *_ = self.arrays
        return not (self.has_tight and heads["is_tight"][of[rows]].any())


class RequestBook:
    """Adds requests as jobs arrive, and removes those of jobs that no longer wait."""

    def __init__(self, machine: Machine, windows: Windows = NO_WINDOWS) -> None:
        self._machine, self._windows = machine, windows
        self._of = np.full(64, -1, np.int64)
        self._rows = 0
        self._clear()

    def _clear(self) -> None:
        hosts, resources = len(self._machine.hosts), 2 + len(self._machine.resources)
        self._shown: BookedRequests | None = None
        self._numbers: dict[tuple[object, ...], int] = {}
        self._tables: tuple[Any, ...] = (
            np.empty(0, REQUEST),
            np.empty(0, GROUP),
            np.empty((0, resources), np.int64),
            np.empty((0, hosts), np.int8),
        )
        # What is not yet in the tables: rows of each.
        self._new: tuple[list[Any], ...] = ([], [], [], [])
        self._group_count = 0
        self._sets: dict[tuple[int, ...], int] = {}
        self._limit = _FEWEST
        self._has_tight = False

    @property
    def arrays(self) -> BookedRequests:
        """The arrays in their current state."""
        if self._shown is None:
            if self._new[0]:
                self._tables = tuple(
                    np.concatenate(
                        [table, np.array(new, table.dtype).reshape(-1, *table.shape[1:])]
                    )
                    for table, new in zip(self._tables, self._new, strict=True)
                )
                self._new = ([], [], [], [])
            tables = (*self._tables, *self._windows)
            requests = Requests(self._of[: self._rows], *(table[:] for table in tables))
            self._shown = BookedRequests(requests, self._has_tight)
        return self._shown

    def number_of(self, job: Job) -> int:
        """Return the index in ``heads`` of the request of a job, a new one if necessary."""
        key = _REQUEST_OF(job)
        number = self._numbers.get(key)
        if number is None:
            self._numbers[key] = number = len(self._numbers)
            self._append(job)
        return number

    def add(self, jobs: Sequence[Job]) -> None:
        """Add the requests of jobs that arrived (each has its row)."""
        if not jobs:
            return
        self._shown = None
        self._rows = max(self._rows, jobs[-1].row + 1)
        if self._rows > len(self._of):
            more = max(2 * len(self._of), self._rows) - len(self._of)
            self._of = np.concatenate([self._of, np.full(more, -1, np.int64)])
        found = [self.number_of(job) for job in jobs]
        self._of[np.fromiter(map(_ROW_OF, jobs), np.int64, len(jobs))] = found

    def is_full(self) -> bool:
        """Return whether it is time to remove requests with :meth:`renew`."""
        return len(self._numbers) > self._limit

    def renew(self, jobs: Iterable[Job]) -> None:
        """Keep only the requests of these jobs (all that wait)."""
        self._clear()
        self.add(list(jobs))
        self._limit = max(_FEWEST, 2 * len(self._numbers))

    def alike(self, rows: Int64Array) -> Int64Array:
        """Return for each of some rows (ascending) the first of them with the same request."""
        _, first, places = np.unique(self._of[rows], return_index=True, return_inverse=True)
        return rows[first[places]]

    def restore(self, rows: Int64Array, alike: Int64Array, job_of: Callable[[int], Job]) -> None:
        """Keep only the requests of these rows, for which :meth:`alike` of another book returned
        ``alike``."""
        firsts = alike[alike == rows]
        self.renew(map(job_of, firsts.tolist()))
        self._rows = int(rows[-1]) + 1 if len(rows) else 0
        self._of = np.full(max(2 * self._rows, 64), -1, np.int64)
        self._of[firsts] = np.arange(len(firsts))
        self._of[rows] = self._of[alike]

    def _append(self, job: Job) -> None:
        """Append a request to the arrays.

        It has no groups if it contradicts itself or its job, or if chunks that must share one host
        name two.
        """
        self._shown = None
        heads, groups, amounts, sets = self._new
        asked = requested(job)
        is_tight = not (is_sound(job, asked) and is_loose(self._machine, job, asked))
        self._has_tight |= is_tight
        procs = sum(chunk.count * chunk.procs for chunk in asked)
        request = packed(asked) if job.placing == PACK else asked
        if not is_sound(job, asked):
            request = ()
        allowed = [hosts_for(self._machine, job, chunk) for chunk in request]
        is_mixed = len(request) > _MOST_COMPARED or any(
            one is None or other is None or not set(one).isdisjoint(other)
            for one, other in combinations(allowed, 2)
        )
        heads.append(
            (
                self._group_count,
                len(request),
                procs if request else 0,
                int(job.placing == SCATTER),
                int(job.is_exclusive),
                int(is_mixed),
                int(is_tight),
                number := number_of(self._machine, job),
                int(number >= 0 and not self._machine.reservations[number].is_flexible),
            )
        )
        self._group_count += len(request)
        for chunk, hosts in zip(request, allowed, strict=True):
            if hosts is not None and hosts not in self._sets:
                self._sets[hosts] = len(self._sets)
                sets.append(np.isin(np.arange(len(self._machine.hosts)), hosts))
            number = -1 if hosts is None else self._sets[hosts]
            chosen = range(len(self._machine.hosts)) if hosts is None else hosts
            groups.append(
                (chunk.count, number, min(chosen, default=0), max(chosen, default=-1) + 1)
            )
            amounts.append((chunk.procs, chunk.memory, *self._machine.amounts(chunk.resources)))


def requests_of(machine: Machine, jobs: Sequence[Job], of: Int64Array) -> Requests:
    """Return the requests of a workload: ``jobs`` are different, and ``of[R]`` is the index of each
    row's job."""
    book = RequestBook(machine)
    book.add([msgspec.structs.replace(job, row=row) for row, job in enumerate(jobs)])
    found = book.arrays.arrays
    return Requests(
        np.ascontiguousarray(found.of[of]),
        found.heads.copy(),
        found.groups.copy(),
        found.amounts.copy(),
        found.sets.copy(),
        *NO_WINDOWS,
    )
