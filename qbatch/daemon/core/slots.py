"""Which chunk of a running job is on which host, and the numbers that ``exec_host`` gives it there.

What lives here: the division of an allocation among the chunks, made once when the job starts, and the books of the numbers
that are in use on each host.  OpenPBS numbers the chunks on a host (``n0/1*2``: the second chunk there, two processors), Torque
the processors (``n0/2+n0/3``); a number is the lowest that is free, and is given back at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qbatch.daemon.core.job import BatchJob, Slot
from qbatch.model.actions import parts_of
from qbatch.model.job import SCATTER
from qbatch.model.machine import Host
from qbatch.wire.resources import ChunkOf

if TYPE_CHECKING:
    from qbatch.daemon.core.state import PoolState

MOST_CHUNKS = 100_000
"""Chunks of one job that are told apart."""


def enter(pool: PoolState, job: BatchJob) -> None:
    """Divide what a job got among its chunks, and number them."""
    found = []
    numbers = pool.numbers
    for host, procs, memory, lines in divide(job, pool.machine.hosts):
        chunks, taken = numbers.get(host, (0, 0))
        number = _lowest(chunks)
        ranges = _free_ranges(taken, procs)
        found.append(Slot(host, procs, memory, lines, number, ranges))
        numbers[host] = (chunks | 1 << number, taken | _bits(ranges))
    job.present.slots = tuple(found)


def leave(pool: PoolState, job: BatchJob) -> None:
    """Give the numbers of a job back."""
    for slot in job.present.slots:
        chunks, taken = pool.numbers.get(slot.host, (0, 0))
        pool.numbers[slot.host] = (chunks & ~(1 << slot.number), taken & ~_bits(slot.ranges))


def restore(pool: PoolState, job: BatchJob) -> None:
    """Note the numbers of a job that runs, as a snapshot tells them."""
    for slot in job.present.slots:
        chunks, taken = pool.numbers.get(slot.host, (0, 0))
        pool.numbers[slot.host] = (chunks | 1 << slot.number, taken | _bits(slot.ranges))


def _lowest(taken: int) -> int:
    return (~taken & (taken + 1)).bit_length() - 1


def _bits(ranges: tuple[tuple[int, int], ...]) -> int:
    bits = 0
    for first, last in ranges:
        bits |= ((1 << (last - first + 1)) - 1) << first
    return bits


def _free_ranges(taken: int, count: int) -> tuple[tuple[int, int], ...]:
    """Return the lowest ``count`` numbers that are free, as ranges."""
    if count == 1:
        place = _lowest(taken)
        return ((place, place),)
    found = []
    place = 0
    while count > 0:
        place += _lowest(taken >> place)
        above = taken >> place
        # The lowest bit that is set above: all below it are free.
        room = (above & -above).bit_length() - 1 if above else count
        room = min(room, count)
        found.append((place, place + room - 1))
        count -= room
        place += room
    return tuple(found)


def divide(job: BatchJob, hosts: tuple[Host, ...]) -> list[tuple[int, int, int, int]]:
    """Return (host, processors, memory, lines of the node file) of each chunk of a running job, in the order of the chunks."""
    left = {host: [procs, memory] for host, procs, memory in parts_of(job.present.allocation)}
    kinds = list(enumerate(job.prepared.demand.chunks))
    if len(kinds) > 1:
        # Chunks that ask for a host come first, as in the placement.
        kinds.sort(key=lambda kind: not kind[1].host)
    used: set[int] | None = set() if job.prepared.request.placing == SCATTER else None
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    count = 0
    for place, chunk in kinds:
        parts = found[place] = []
        name = chunk.host
        for _ in range(min(chunk.count, MOST_CHUNKS - count)):
            count += 1
            host = _host_for(chunk, name, left, hosts, used)
            if host is None:
                parts += _spread(left, chunk)
                continue
            own = left[host]
            own[0] -= chunk.procs
            # On trial a job has less memory than it asked for.
            memory = min(chunk.memory, own[1] or chunk.memory)
            own[1] -= memory if own[1] else 0
            if used is not None:
                used.add(host)
            parts.append((host, chunk.procs, memory, chunk.slots))
    return [part for place in sorted(found) for part in found[place]]


def _host_for(
    chunk: ChunkOf, name: str, left: dict[int, list[int]], hosts: tuple[Host, ...], used: set[int] | None
) -> int | None:
    """Return the first host that has what a chunk asks for, else the first that has the processors."""
    second = None
    for host, (procs, memory) in left.items():
        if procs < chunk.procs or (used is not None and host in used) or (name and hosts[host].name != name):
            continue
        if memory >= chunk.memory or not hosts[host].memory:
            return host
        second = host if second is None else second
    return second


def _spread(left: dict[int, list[int]], chunk: ChunkOf) -> Iterator[tuple[int, int, int, int]]:
    """Take a chunk from where there is something: in a pool that spans hosts it may lie on several of them; a resized job has
    less than its chunk, and all of its memory."""
    missing, lines = chunk.procs, chunk.slots
    for host, (procs, memory) in list(left.items()):
        taken = min(procs, missing)
        if taken:
            left[host] = [procs - taken, 0]
            yield host, taken, memory, lines
            missing, lines = missing - taken, 0
