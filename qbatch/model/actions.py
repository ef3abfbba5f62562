"""What a policy may ask for: imperatives.  The engine checks each action and refuses an invalid one
with an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

import msgspec

from qbatch.model.reasons import Reason


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """A part of an allocation: processors and bytes of memory on each of ``count`` consecutive
    hosts, from ``host`` on (an index into ``Machine.hosts``).

    ``resources``: the amounts of ``Machine.resources`` on each of them.  For a job inside one host
    a policy may leave them out: the engine fills in what the job asks for.
    """

    host: int
    procs: int
    memory: int = 0
    count: int = 1
    resources: tuple[int, ...] = ()

    @property
    def hosts(self) -> range:
        """The indices of its hosts."""
        return range(self.host, self.host + self.count)


Allocation = tuple[Chunk, ...]
"""Ranges of different hosts, in the order in which the hosts are filled."""


def ranges_of(parts: Iterable[Sequence[int]]) -> Allocation:
    """Return parts (first host, processors, memory, hosts, then named resources) as an allocation:
    equal neighbours are joined into one range."""
    found: list[Chunk] = []
    first = count = 0
    amounts: Sequence[int] = ()
    for host, procs, memory, hosts, *named in parts:
        if count and host == first + count and [procs, memory, *named] == amounts:
            count += hosts
            continue
        if count:
            found.append(Chunk(first, amounts[0], amounts[1], count, tuple(amounts[2:])))
        first, amounts, count = host, [procs, memory, *named], hosts
    if count:
        found.append(Chunk(first, amounts[0], amounts[1], count, tuple(amounts[2:])))
    return tuple(found)


def parts_of(allocation: Allocation) -> Iterator[tuple[int, int, int]]:
    """Return host, processors and memory of each host of an allocation, one by one."""
    for chunk in allocation:
        for host in chunk.hosts:
            yield host, chunk.procs, chunk.memory


def amounts_of(allocation: Allocation) -> Iterator[tuple[int, ...]]:
    """Return each host of an allocation, one by one, with its amounts: processors, memory, named
    resources."""
    for chunk in allocation:
        for host in chunk.hosts:
            yield host, chunk.procs, chunk.memory, *chunk.resources


def procs_of(allocation: Allocation) -> int:
    """Return the processors of a whole allocation."""
    if len(allocation) == 1:
        return allocation[0].procs * allocation[0].count
    return sum(chunk.procs * chunk.count for chunk in allocation)


def outside(allocation: Allocation, closed: Set[int]) -> Allocation:
    """Return the part of an allocation that is not on these hosts."""
    if not closed:
        return allocation
    if is_on_one_host(allocation):
        return () if allocation[0].host in closed else allocation
    return ranges_of(
        (host, procs, memory, 1, *named)
        for host, procs, memory, *named in amounts_of(allocation)
        if host not in closed
    )


def is_on_one_host(allocation: Allocation) -> bool:
    """Return whether an allocation is inside one host."""
    return len(allocation) == 1 and allocation[0].count == 1


class Start(msgspec.Struct, frozen=True, tag=True):
    """Start a waiting job.  An empty allocation lets the engine fill hosts in their order.

    ``until``: an instant at which the engine itself suspends the job again (time slices and
    quanta).

    ``is_trial``: a trial run, which must have an ``until``.  It is inside one host and may have
    less memory there than the job asks for.  At ``until``, or at the driver's ``Returned``, its
    work is discarded, its processors and memory are given back, and the job is back at its place in
    the queue.
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
    """Resume a suspended job on the hosts that it had."""

    row: int
    until: int | None = None


class Resize(msgspec.Struct, frozen=True, tag=True):
    """Give a malleable job another number of processors on its one host; a suspended job resumes
    with that number."""

    row: int
    procs: int


class Reject(msgspec.Struct, frozen=True, tag=True):
    """Refuse a waiting job for good, with the reason."""

    row: int
    reason: Reason


class Promise(msgspec.Struct, frozen=True, tag=True):
    """Promise a waiting job its latest start; later promises may only be earlier, except after a
    ``Break``."""

    row: int
    at: int


class Break(msgspec.Struct, frozen=True, tag=True):
    """Take back the promise to a waiting job that cannot be kept any more, with the reason.

    The engine reports the row as broken in this round, and not again at the start.  The next
    promise to the job may be for any instant.
    """

    row: int
    reason: Reason


class WakeAt(msgspec.Struct, frozen=True, tag=True):
    """Ask for a pass at a later instant, even if nothing else happens then."""

    at: int


Action = Start | Suspend | Resume | Resize | Reject | Promise | Break | WakeAt
