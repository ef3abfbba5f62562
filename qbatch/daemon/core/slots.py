"""Which chunk of a running job is on which host, and the numbers that ``exec_host`` gives it there.

What lives here: the division of an allocation among the chunks, made once when the job starts, and the books of the numbers
that are in use on each host.  OpenPBS numbers the chunks on a host (``n0/1*2``: the second chunk there, two processors), Torque
the processors (``n0/2+n0/3``); a number is the lowest that is free, and is given back at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qbatch.daemon.core.job import BatchJob, Slot
from qbatch.model.job import SCATTER
from qbatch.model.machine import Host
from qbatch.wire.resources import ChunkOf

if TYPE_CHECKING:
    from qbatch.daemon.core.state import PoolState

MOST_CHUNKS = 100_000
"""Chunks of one job that are told apart."""


def enter(pool: PoolState, job: BatchJob) -> None:
    """Divide what a job got among its chunks, and number them."""
    job.slots = ()
    found = []
    for host, procs, memory, lines in divide(job, pool.machine.hosts):
        chunks, taken = pool.numbers.get(host, (0, 0))
        number = _lowest(chunks)
        ranges = tuple(_free_ranges(taken, procs))
        found.append(Slot(host, procs, memory, lines, number, ranges))
        pool.numbers[host] = (chunks | 1 << number, taken | _bits(ranges))
    job.slots = tuple(found)


def leave(pool: PoolState, job: BatchJob) -> None:
    """Give the numbers of a job back."""
    for slot in job.slots:
        chunks, taken = pool.numbers.get(slot.host, (0, 0))
        pool.numbers[slot.host] = (chunks & ~(1 << slot.number), taken & ~_bits(slot.ranges))


def restore(pool: PoolState, job: BatchJob) -> None:
    """Note the numbers of a job that runs, as a snapshot tells them."""
    for slot in job.slots:
        chunks, taken = pool.numbers.get(slot.host, (0, 0))
        pool.numbers[slot.host] = (chunks | 1 << slot.number, taken | _bits(slot.ranges))


def _lowest(taken: int) -> int:
    return (~taken & (taken + 1)).bit_length() - 1


def _bits(ranges: tuple[tuple[int, int], ...]) -> int:
    return sum(((1 << (last - first + 1)) - 1) << first for first, last in ranges)


def _free_ranges(taken: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the lowest ``count`` numbers that are free, as ranges."""
    place = 0
    while count > 0:
        place += _lowest(taken >> place)
        above = taken >> place
        # The lowest bit that is set above: all below it are free.
        room = (above & -above).bit_length() - 1 if above else count
        room = min(room, count)
        yield place, place + room - 1
        count -= room
        place += room


def divide(job: BatchJob, hosts: tuple[Host, ...]) -> list[tuple[int, int, int, int]]:
    """Return (host, processors, memory, lines of the node file) of each chunk of a running job, in the order of the chunks."""
    left = {chunk.host: [chunk.procs, chunk.memory] for chunk in job.allocation}
    wanted: list[ChunkOf] = []
    for chunk in job.prepared.demand.chunks:
        wanted += [chunk] * min(chunk.count, MOST_CHUNKS - len(wanted))
    used: set[int] = set()
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    # Chunks that ask for a host come first, as in the placement.
    for place in sorted(range(len(wanted)), key=lambda place: not wanted[place].host):
        chunk = wanted[place]
        is_apart = job.prepared.request.placing == SCATTER
        able = [
            host
            for host, (procs, _) in left.items()
            if procs >= chunk.procs
            and not (is_apart and host in used)
            and chunk.host in ("", hosts[host].name)
        ]  # fmt: skip
        # On trial a job has less memory than it asked for.
        host = next((host for host in able if not hosts[host].memory or left[host][1] >= chunk.memory), None)
        host = able[0] if host is None and able else host
        if host is not None:
            left[host][0] -= chunk.procs
            memory = min(chunk.memory, left[host][1] or chunk.memory)
            left[host][1] -= memory if left[host][1] else 0
            used.add(host)
            found[place] = [(host, chunk.procs, memory, chunk.slots)]
            continue
        found[place] = list(_spread(left, chunk))
    return [part for place in range(len(wanted)) for part in found[place]]


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
