"""The chunks of running jobs on their hosts, and the numbers that ``exec_host`` gives them there.

This module divides an allocation among the chunks, once when the job starts, and keeps the numbers
that are in use on each host. OpenPBS numbers the chunks on a host (``n0/1*2``: the second chunk
there, two processors), Torque the processors (``n0/2+n0/3``). A chunk gets the lowest free number,
and gives it back at the end.  GPUs of a host are numbered in the same way, so that each is given once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qbatch.daemon.core.counted import GPU, gpus_of
from qbatch.daemon.core.job import BatchJob, Slot
from qbatch.daemon.core.state import PoolState
from qbatch.model.actions import amounts_of, parts_of
from qbatch.model.job import SCATTER
from qbatch.model.machine import Machine
from qbatch.wire.resources import ChunkOf

MOST_CHUNKS = 100_000
"""The most chunks of one job that are numbered."""

Ranges = tuple[tuple[int, int], ...]
"""Numbers as ranges, each from its first to its last."""


class Part(NamedTuple):
    """``many`` equal chunks on a host: of each, the processors, bytes of memory, lines of the node
    file and GPUs."""

    host: int
    procs: int
    memory: int
    lines: int
    many: int
    gpus: int = 0


def enter(pool: PoolState, job: BatchJob) -> None:
    """Divide the allocation of a job among its chunks, and number them."""
    found: list[Slot] = []
    for host, procs, memory, lines, count, gpus in divide(job, pool.machine):
        chunks, taken = pool.numbers.get(host, (0, 0))
        numbers = _free_ranges(chunks, count)
        # While every chunk on the host has one processor, chunks and processors have the same
        # numbers.
        ranges = numbers if procs == 1 and chunks == taken else _free_ranges(taken, count * procs)
        bits = _bits(numbers)
        pool.numbers[host] = (chunks | bits, taken | (bits if ranges is numbers else _bits(ranges)))
        own_gpus: Ranges = ()
        if gpus:
            own_gpus = _free_ranges(pool.gpus.get(host, 0), count * gpus)
            pool.gpus[host] = pool.gpus.get(host, 0) | _bits(own_gpus)
        for first, last in numbers:
            many = last - first + 1
            own = ranges
            if many < count:
                own, ranges = _split(ranges, many * procs)
            of_slot, own_gpus = _split(own_gpus, many * gpus)
            found.append(Slot(host, procs, memory, lines, first, own, many, gpus, of_slot))
    job.present.slots = tuple(found)


def mark(pool: PoolState, job: BatchJob, *, in_use: bool) -> None:
    """Mark the numbers of a job as in use (those of a snapshot) or as free."""
    for slot in job.present.slots:
        chunks, taken = pool.numbers.get(slot.host, (0, 0))
        numbers, ranges = (1 << slot.count) - 1 << slot.number, _bits(slot.ranges)
        both = (chunks | numbers, taken | ranges)
        pool.numbers[slot.host] = both if in_use else (both[0] ^ numbers, both[1] ^ ranges)
        if slot.gpu_ranges:
            bits = _bits(slot.gpu_ranges)
            used = pool.gpus.get(slot.host, 0) | bits
            pool.gpus[slot.host] = used if in_use else used ^ bits


def _bits(ranges: Ranges) -> int:
    bits = 0
    for first, last in ranges:
        bits |= (2 << last) - (1 << first)
    return bits


def _free_ranges(taken: int, count: int) -> Ranges:
    """Return the lowest ``count`` numbers that are free, as ranges."""
    found = []
    place = 0
    while count > 0:
        above = taken >> place
        place += (~above & (above + 1)).bit_length() - 1
        above = taken >> place
        # All numbers below the lowest bit that is set above are free.
        length = min((above & -above).bit_length() - 1, count) if above else count
        found.append((place, place + length - 1))
        count -= length
        place += length
    return tuple(found)


def _split(ranges: Ranges, size: int) -> tuple[Ranges, Ranges]:
    """Return the first ``size`` numbers of ranges, and the others."""
    own: list[tuple[int, int]] = []
    for place, (first, last) in enumerate(ranges):
        if last - first + 1 > size:
            rest = ((first + size, last), *ranges[place + 1 :])
            return ((*own, (first, first + size - 1)) if size else tuple(own)), rest
        own.append((first, last))
        size -= last - first + 1
    return tuple(own), ()


def ranges_of_chunks(slot: Slot) -> Iterator[Ranges]:
    """Yield the numbers of the processors of each chunk that a slot stands for."""
    rest = slot.ranges
    for _ in range(slot.count - 1):
        own, rest = _split(rest, slot.procs)
        yield own
    yield rest


def divide(job: BatchJob, machine: Machine) -> list[Part]:
    """Return the chunks of a running job on its hosts, in their order.

    Equal chunks on one host are one entry.
    """
    hosts = machine.hosts
    allocation, chunks = job.present.allocation, job.prepared.demand.chunks
    # Most jobs: all in one place.
    if len(allocation) == len(chunks) == 1 and job.prepared.request.placing != SCATTER:
        whole, chunk = allocation[0], chunks[0]
        is_all = (
            whole.count == 1
            and whole.procs == chunk.count * chunk.procs
            and chunk.count <= MOST_CHUNKS
        )
        if is_all and not (whole.memory or chunk.memory or chunk.other):
            return [Part(whole.host, chunk.procs, 0, chunk.slots, chunk.count)]
    left: dict[int, list[int]] = {
        host: [procs, memory, 0] for host, procs, memory in parts_of(allocation)
    }
    if GPU in machine.resources:
        place_of_gpus = 2 + machine.resources.index(GPU)
        for place, *amounts in amounts_of(allocation):
            left[place][2] = sum(amounts[place_of_gpus : place_of_gpus + 1])
    # Chunks that ask for a host come first, as in the placement.
    kinds = sorted(enumerate(chunks), key=lambda kind: not kind[1].host)
    used: set[int] | None = set() if job.prepared.request.placing == SCATTER else None
    found: dict[int, list[Part]] = {}
    most = MOST_CHUNKS
    for place, chunk in kinds:
        parts = found[place] = []
        missing = min(chunk.count, most)
        most -= missing
        gpus = gpus_of(machine, chunk)
        while missing:
            host = _host_for(chunk, gpus, left, machine, used)
            if host is None:
                parts += _spread(left, chunk)
                missing -= 1
                continue
            own = left[host]
            # On trial a job has less memory than it asked for.
            memory = min(chunk.memory, own[1] or chunk.memory)
            count = 1
            if used is not None:
                used.add(host)
            elif not own[1] or (memory == chunk.memory and hosts[host].memory):
                # The next chunks get as much there, while there is enough.
                count = min(
                    missing,
                    own[0] // chunk.procs,
                    own[1] // memory if own[1] and memory else missing,
                    own[2] // gpus if gpus else missing,
                )
                count = max(count, 1)
            own[0] -= count * chunk.procs
            own[1] -= count * memory if own[1] else 0
            own[2] -= count * gpus
            missing -= count
            parts.append(Part(host, chunk.procs, memory, chunk.slots, count, gpus))
    return [part for place in sorted(found) for part in found[place]]


def _host_for(
    chunk: ChunkOf,
    gpus: int,
    left: dict[int, list[int]],
    machine: Machine,
    used: set[int] | None,
) -> int | None:
    """Return the first host that has all that a chunk asks for, else the first that has the
    processors, or None."""
    second, hosts = None, machine.hosts
    name = chunk.host
    for host, (procs, memory, free_gpus) in left.items():
        if (
            procs < chunk.procs
            or (used is not None and host in used)
            or (name and hosts[host].name != name)
        ):
            continue
        if free_gpus >= gpus and (memory >= chunk.memory or not hosts[host].memory):
            return host
        second = host if second is None else second
    return second


def _spread(left: dict[int, list[int]], chunk: ChunkOf) -> Iterator[Part]:
    """Place a chunk on any hosts that have something left.

    In a pool that spans hosts it may lie on several of them; a resized job has fewer processors
    than its chunk, and all of its memory.
    """
    missing, lines = chunk.procs, chunk.slots
    for host, (procs, memory, gpus) in list(left.items()):
        taken = min(procs, missing)
        if taken:
            left[host] = [procs - taken, 0, gpus]
            yield Part(host, taken, memory, lines, 1)
            missing, lines = missing - taken, 0
