"""Where the chunks of one job go: the default placement, and the check of a placement that a policy
chose.

The passes over long queues place chunks by the same kernel
(:mod:`qbatch.planning.kernels.availability`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbatch.model.actions import Allocation, Chunk, amounts_of, procs_of, ranges_of
from qbatch.model.job import PACK, SCATTER, Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels import availability
from qbatch.planning.kernels.availability import CHUNKS, Availability
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.tables import AMOUNTS, JobColumns
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.requests import (
    RequestBook,
    chunks_on_hosts,
    hosts_for,
    is_plain,
    requested,
)

_place = entry_to(availability.place)

_MOST_CHUNKS = 200
# If a job has more chunks, only the division by first fit is searched.


def place_chunks(machine: Machine, free: Sequence[Sequence[int]], job: Job) -> Allocation:
    """Return the default allocation of a job of chunks, empty if it does not fit now.

    ``free``: what is free, by resource (processors, memory, then those of the machine) and by host.
    """
    if is_plain(machine, job):
        return fill(free[0], job.procs)
    # Kept with the machine, as its cached facts are.
    book: RequestBook = vars(machine).setdefault("_requests", RequestBook(machine))
    if book.is_full():
        book.renew(())
    number = np.array([book.number_of(job)], np.int64)
    # Read-only as the columns of an engine are: kernels are compiled for both alike.
    none = read_only(np.empty(0, np.int64))
    requests = book.arrays.arrays._replace(of=number)
    jobs = JobColumns(none, none, none, read_only(np.empty((0, 0), np.int64)), requests)
    hosts = np.array([free, machine.there], np.int64)
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    if _place(0, 0, 0, True, jobs, hosts, nothing_booked(hosts), taken) != 0:
        return ()
    return allocation_of(taken)


def nothing_booked(hosts: Int64Array) -> Availability:
    """Return the availability of hosts at an instant for which later ones do not matter."""
    count, none = hosts.shape[2], np.zeros(hosts.shape[2], np.int64)
    return Availability(
        np.zeros((count, 0), np.int64), np.zeros((count, 0, hosts.shape[1]), np.int64), none, none
    )


def allocation_of(taken: Int64Array) -> Allocation:
    """Return what a job takes on each host (:func:`.availability.place`) as an allocation."""
    on = np.flatnonzero(taken[CHUNKS])
    return parts_as_ranges(on.tolist(), taken[AMOUNTS:, on])


def parts_as_ranges(hosts: Sequence[int], amounts: Int64Array) -> Allocation:
    """Return parts on some hosts, with their amounts by resource, as an allocation."""
    return ranges_of(
        (host, procs, memory, 1, *named)
        for host, (procs, memory, *named) in zip(hosts, amounts.T.tolist(), strict=True)
    )


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
    if is_plain(machine, job):
        return True
    there = machine.there
    parts = [(host, tuple(amounts)) for host, *amounts in amounts_of(allocation)]
    if job.is_exclusive and any(
        amounts != tuple(column[host] for column in there)
        for host, amounts in parts
        if host != machine.server
    ):
        return False
    free = [[0] * len(machine.hosts) for _ in there]
    for host, amounts in parts:
        for column, amount in zip(free, amounts, strict=False):
            column[host] = amount
    if sum(chunk.count for chunk in place_chunks(machine, free, job)) == len(parts):
        return True
    request = requested(job)
    chunks = sum(chunk.count for chunk in request)
    on_hosts = sum(host != machine.server for host, _ in parts)
    if (job.placing == PACK and on_hosts != 1) or (
        job.placing == SCATTER and on_hosts != chunks_on_hosts(request)
    ):
        return False
    if chunks > _MOST_CHUNKS:
        return False
    groups = tuple(
        (
            chunk.count,
            (chunk.procs, chunk.memory, *machine.amounts(chunk.resources)),
            frozenset(
                place for place, (host, _) in enumerate(parts) if allowed is None or host in allowed
            ),
        )
        for chunk, allowed in ((chunk, hosts_for(machine, job, chunk)) for chunk in request)
    )
    counts_memory = tuple(bool(machine.hosts[host].memory) for host, _ in parts)
    left = tuple(tuple(column[host] for column in free) for host, _ in parts)
    most = 1 if job.placing == SCATTER else chunks
    return _divides(counts_memory, left, groups, most, (True,) * len(parts), set())


_Groups = tuple[tuple[int, tuple[int, ...], frozenset[int]], ...]
"""Groups of equal chunks: their number, the amounts of each by resource, and the places of the parts
that may hold them."""


def _divides(
    counts_memory: tuple[bool, ...],
    free: tuple[tuple[int, ...], ...],
    groups: _Groups,
    most: int,
    is_unused: tuple[bool, ...],
    failed: set[tuple[int, int, tuple[tuple[int, ...], ...]]],
) -> bool:
    """Put the first chunk of the first group on one part after another, and the rest after it,
    until all are placed."""
    if not groups:
        return True
    (count, amounts, wanted), *rest = groups
    key = (len(groups), count, free)
    if key in failed:
        return False
    for place, there in enumerate(free):
        if (most == 1 and not is_unused[place]) or place not in wanted:
            continue
        procs, memory, *named = amounts
        taken = (procs, memory if counts_memory[place] else 0, *named)
        left = tuple(amount - own for amount, own in zip(there, taken, strict=True))
        if min(left) < 0:
            continue
        after = (*free[:place], left, *free[place + 1 :])
        unused = (*is_unused[:place], False, *is_unused[place + 1 :])
        fewer = ((count - 1, amounts, wanted), *rest) if count > 1 else tuple(rest)
        if _divides(counts_memory, after, fewer, most, unused, failed):
            return True
    failed.add(key)
    return False
