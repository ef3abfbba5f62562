"""Placement of a job's chunks on the hosts of a chunked machine: types in order, hosts in host
order, first fit.

Plain Python, for one job at a time: admission, checks and default allocations.  The passes over
long queues use :mod:`qbatch.planning.kernels.chunks`; a test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from qbatch.model.actions import Allocation, Chunk, parts_of, procs_of, ranges_of
from qbatch.model.job import FREE, PACK, SCATTER, Job
from qbatch.model.machine import Host, Machine

Request = tuple[tuple[int, int, int, int], ...]
"""Types of chunks: (count, processors, bytes of memory, index of the host that the chunk names or
-1)."""

_MOST_CHUNKS = 200
# If a job has more chunks, only the division by first fit is searched.


def requested(job: Job) -> Request:
    """Return the chunks of a job: its own, or one per processor with an even share of the memory,
    rounded up."""
    if job.chunks:
        return tuple((chunk.count, chunk.procs, chunk.memory, chunk.host) for chunk in job.chunks)
    return ((job.procs, 1, -(-job.memory // max(job.procs, 1)), -1),)


def is_plain(job: Job) -> bool:
    """Return whether a job asks for nothing but processors: it fits wherever enough are free in
    total."""
    return not (job.chunks or job.memory or job.is_exclusive) and job.placing == FREE


def packed(request: Request) -> Request:
    """Return the single chunk of a packed job; nothing if its chunks name different hosts."""
    named = {host for *_, host in request if host >= 0}
    if len(named) > 1:
        return ()
    procs = sum(count * procs for count, procs, _, _ in request)
    memory = sum(count * memory for count, _, memory, _ in request)
    return ((1, procs, memory, named.pop() if named else -1),)


def is_scattered(job: Job) -> bool:
    """Return whether a job has several chunks that go to different hosts."""
    return job.placing == SCATTER and sum(count for count, *_ in requested(job)) > 1


def can_share_one_host(job: Job) -> bool:
    """Return whether all chunks of a job may be on one host with other jobs."""
    return not (job.is_exclusive or is_scattered(job))


def place_chunks(
    machine: Machine, free: Sequence[int], free_memory: Sequence[int], job: Job
) -> Allocation:
    """Return the default allocation of a job, empty if its chunks do not fit now."""
    if is_plain(job):
        return fill(free, job.procs)
    hosts = machine.hosts
    usable = [
        not job.is_exclusive or (free[place] == host.cpus and free_memory[place] == host.memory)
        for place, host in enumerate(hosts)
    ]
    request = requested(job)
    if job.placing == PACK:
        request = packed(request)
    procs, memory = [0] * len(hosts), [0] * len(hosts)
    for count, width, size, wanted in request:
        left = count
        for place, host in enumerate(hosts):
            if left == 0:
                break
            if (
                not usable[place]
                or (job.placing == SCATTER and procs[place])
                or (wanted >= 0 and place != wanted)
            ):
                continue
            fitting = min(left, (free[place] - procs[place]) // width)
            if size and host.memory:
                fitting = min(fitting, (free_memory[place] - memory[place]) // size)
            if job.placing == SCATTER:
                fitting = min(fitting, 1)
            if fitting > 0:
                procs[place] += fitting * width
                memory[place] += fitting * size if host.memory else 0
                left -= fitting
        if left:
            return ()
    if job.is_exclusive:
        return ranges_of(
            (place, hosts[place].cpus, hosts[place].memory, 1)
            for place, own in enumerate(procs)
            if own
        )
    return ranges_of((place, own, memory[place], 1) for place, own in enumerate(procs) if own)


def fill(free: Sequence[int], procs: int) -> Allocation:
    """Return the first ``procs`` free processors, hosts in their order; empty if fewer are free."""
    found, wanted = [], procs
    for host, there in enumerate(free):
        if wanted <= there:
            if wanted > 0:
                found.append((host, wanted, 0, 1))
            return ranges_of(found)
        if there > 0:
            found.append((host, there, 0, 1))
            wanted -= there
    return ()


def give_on(column: list[int], chunk: Chunk, amount: int) -> None:
    """Add an amount to a column at each host of a chunk."""
    first = chunk.host
    if chunk.count == 1:
        column[first] += amount
    elif amount:
        after = first + chunk.count
        column[first:after] = [there + amount for there in column[first:after]]


def divides(machine: Machine, allocation: Allocation, job: Job) -> bool:
    """Return whether an allocation (of different hosts) can be divided into the chunks that a job
    asks for."""
    if not job.is_exclusive and procs_of(allocation) != job.procs:
        return False
    if is_plain(job):
        return True
    parts = list(parts_of(allocation))
    hosts = [machine.hosts[place] for place, _, _ in parts]
    if job.is_exclusive and any(
        part[1:] != (host.cpus, host.memory) for part, host in zip(parts, hosts, strict=True)
    ):
        return False
    free, memory = [0] * len(machine.hosts), [0] * len(machine.hosts)
    for place, width, size in parts:
        free[place], memory[place] = width, size
    if sum(chunk.count for chunk in place_chunks(machine, free, memory, job)) == len(parts):
        return True
    request = requested(job)
    chunks = sum(count for count, *_ in request)
    if (job.placing == PACK and len(parts) != 1) or (
        job.placing == SCATTER and len(parts) != chunks
    ):
        return False
    if chunks > _MOST_CHUNKS:
        return False
    left = tuple((width, size) for _, width, size in parts)
    # Hosts are numbered within the allocation here.
    places = {host: place for place, (host, _, _) in enumerate(parts)}
    if any(host >= 0 and host not in places for *_, host in request):
        return False
    request = tuple(
        (count, procs, memory, places.get(host, -1)) for count, procs, memory, host in request
    )
    return _divides(
        hosts, left, request, 1 if job.placing == SCATTER else chunks, (True,) * len(hosts), set()
    )


def _divides(
    hosts: list[Host],
    free: tuple[tuple[int, int], ...],
    request: Request,
    most: int,
    is_unused: tuple[bool, ...],
    failed: set[tuple[int, int, tuple[tuple[int, int], ...]]],
) -> bool:
    """Put the first chunk of the request on one host after another, and the rest after it, until
    all are placed."""
    if not request:
        return True
    (count, width, size, wanted), *rest = request
    key = (len(request), count, free)
    if key in failed:
        return False
    for place, host in enumerate(hosts):
        procs, memory = free[place]
        if procs < width or (host.memory and memory < size) or (most == 1 and not is_unused[place]):
            continue
        if wanted >= 0 and place != wanted:
            continue
        after = (
            *free[:place],
            (procs - width, memory - size if host.memory else memory),
            *free[place + 1 :],
        )
        unused = (*is_unused[:place], False, *is_unused[place + 1 :])
        fewer = ((count - 1, width, size, wanted), *rest) if count > 1 else tuple(rest)
        if _divides(hosts, after, fewer, most, unused, failed):
            return True
    failed.add(key)
    return False
