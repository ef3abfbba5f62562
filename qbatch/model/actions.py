"""What a policy may ask for: imperatives.  The engine checks each one and refuses a wrong one loudly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import msgspec

from qbatch.model.reasons import Reason


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A part of an allocation: processors and bytes of memory on each of ``count`` hosts in a row, from ``host`` on (its place
    in ``Machine.hosts``).

    ``resources``: the amounts of ``Machine.resources`` that a job has there, which lives inside that one host.  A policy may
    leave them out: the engine gives the job what it asks for.
    """

    host: int
    procs: int
    memory: int = 0
    count: int = 1
    resources: tuple[int, ...] = ()

    @property
    def hosts(self) -> range:
        """The places of its hosts."""
        return range(self.host, self.host + self.count)


Allocation = tuple[Chunk, ...]
"""Ranges of different hosts, in the order in which the hosts are filled."""


def ranges_of(parts: Iterable[tuple[int, int, int, int]]) -> Allocation:
    """Return parts (first host, processors, memory, hosts) as an allocation: neighbours that give the same are one range."""
    found: list[Chunk] = []
    first = count = procs = memory = 0
    for host, width, size, hosts in parts:
        if count and host == first + count and width == procs and size == memory:
            count += hosts
            continue
        if count:
            found.append(Chunk(first, procs, memory, count))
        first, procs, memory, count = host, width, size, hosts
    if count:
        found.append(Chunk(first, procs, memory, count))
    return tuple(found)


def parts_of(allocation: Allocation) -> Iterator[tuple[int, int, int]]:
    """Return host, processors and memory of each host of an allocation, one by one."""
    for chunk in allocation:
        for host in chunk.hosts:
            yield host, chunk.procs, chunk.memory


def amounts_of(allocation: Allocation) -> Iterator[tuple[int, ...]]:
    """Return each host of an allocation, one by one, with all that is given there: processors, memory, named resources."""
    for chunk in allocation:
        for host in chunk.hosts:
            yield host, chunk.procs, chunk.memory, *chunk.resources


def procs_of(allocation: Allocation) -> int:
    """Return the processors of a whole allocation."""
    if len(allocation) == 1:
        return allocation[0].procs * allocation[0].count
    return sum(chunk.procs * chunk.count for chunk in allocation)


def outside(allocation: Allocation, closed: Set[int]) -> Allocation:
    """Return what of an allocation is on other hosts than these."""
    if not closed:
        return allocation
    if is_on_one_host(allocation):
        return () if allocation[0].host in closed else allocation
    return ranges_of((host, procs, memory, 1) for host, procs, memory in parts_of(allocation) if host not in closed)


def is_on_one_host(allocation: Allocation) -> bool:
    """Tell whether an allocation is inside one host."""
    return len(allocation) == 1 and allocation[0].count == 1


class Start(msgspec.Struct, frozen=True, tag=True):
    """Start a waiting job.  An empty allocation lets the engine fill hosts in their order.

    ``until``: an instant at which the engine itself suspends the job again (time slices and quanta).

    ``is_trial``: the job gets only a quantum, ``until`` when it must say.  A trial lives inside one host and may have less
    memory there than the job asks for.  At ``until``, or when the driver says ``Returned``, what it did is thrown away,
    its processors and memory are given back, and the job stands in the queue again at its own place.
    """

    row: int
    allocation: Allocation = ()
    until: int | None = None
    is_trial: bool = False


class Suspend(msgspec.Struct, frozen=True, tag=True):
    """Stop a running job; its processors are free, its memory only if ``keep_memory`` is false."""

    row: int
    keep_memory: bool = True


class Resume(msgspec.Struct, frozen=True, tag=True):
    """Let a suspended job go on, on the hosts that it had."""

    row: int
    until: int | None = None


class Resize(msgspec.Struct, frozen=True, tag=True):
    """Give a malleable job another number of processors on its one host; one that is suspended goes on with that number."""

    row: int
    procs: int


class Reject(msgspec.Struct, frozen=True, tag=True):
    """Refuse a waiting job for good, with the reason."""

    row: int
    reason: Reason


class Promise(msgspec.Struct, frozen=True, tag=True):
    """Tell a waiting job when it will start at the latest; later promises may only be earlier, but after a ``Break``."""

    row: int
    at: int


class Break(msgspec.Struct, frozen=True, tag=True):
    """Take back the promise to a waiting job, which cannot be kept any more, with the reason.

    The engine reports the row as broken in this round, when the loss is seen, and not again at the start.  Another promise
    to it may be for any instant.
    """

    row: int
    reason: Reason


class WakeAt(msgspec.Struct, frozen=True, tag=True):
    """Ask for a pass at a later instant, even if nothing else happens then."""

    at: int


Action = Start | Suspend | Resume | Resize | Reject | Promise | Break | WakeAt
