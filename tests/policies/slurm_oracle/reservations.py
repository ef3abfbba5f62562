"""Advance reservations: which nodes and cores they leave to a job, and when.

Source: docs/spec/production.md, section 5 [`job_test_resv`, `find_resv_end`], fitted against the recording
`reservation`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.policies.slurm_oracle.world import Job, World


@dataclass
class Reservation:
    """One reservation. `cores` are the cores it holds on each node if it does not hold its nodes whole."""

    name: str
    start: int
    end: int
    nodes: frozenset[int]
    users: frozenset[str]
    flags: frozenset[str]
    cores: dict[int, frozenset[int]]

    @property
    def whole(self) -> bool:
        """True if it holds its nodes whole."""
        return not self.cores


@dataclass
class Verdict:
    """Which nodes reservations leave to a job, and from when.

    `refused`: the job cannot use any now. `maintenance`: because all is reserved. `overlap`: a reservation took some.
    """

    nodes: set[int]
    start: int
    excluded: dict[int, frozenset[int]]
    refused: bool = False
    overlap: bool = False
    maintenance: bool = False


def may_use(reservation: Reservation, user: str) -> bool:
    """True if a user is on the list of a reservation."""
    return user in reservation.users


def begun(world: World, job: Job) -> bool:
    """False for a job of a reservation that has not begun or is over: it is not in the queue."""
    own = world.reservations.get(job.reservation or "")
    if own is None or "FLEX" in own.flags:
        return True
    return own.start <= world.second <= own.end


def usable_nodes(world: World, job: Job, start: int, move: bool, minutes: int) -> Verdict:
    """Applies all reservations to a job that would run from `start` for so many minutes.

    A job that names a reservation gets only its nodes, from its start; other reservations of whole nodes still take
    nodes away unless its own is MAINT. FLEX lets the job use all nodes at any time.

    Any other job loses the nodes, or the reserved cores, of each reservation that overlaps its time. The start moves
    to the end of such a reservation in three cases (only where `move` says so), at most ten times. It holds all nodes;
    it is MAINT and holds all nodes of the partition; or the job names one of its nodes.
    """
    everything = {node.index for node in world.site.nodes}
    if job.reservation:
        return _inside(world, job, start, minutes, everything)
    begin = start
    for attempt in range(12):
        finish = begin + minutes * 60
        left = set(everything)
        excluded: dict[int, frozenset[int]] = {}
        overlap = False
        blocked: Reservation | None = None
        maintenance = False
        for item in world.reservations.values():
            if not item.nodes or item.start >= finish or item.end <= begin:
                continue
            named = {
                node.index for node in world.site.nodes if node.name in job.request.required_nodes
            }
            if named & item.nodes and (item.whole or job.whole):
                blocked = item
                break
            part = world.site.partitions[job.partition].nodes
            if "ALL_NODES" in item.flags or ("MAINT" in item.flags and part <= item.nodes):
                blocked, maintenance = item, True
                break
            overlap = True
            if item.whole or job.whole:
                left -= item.nodes
            else:
                for index, cores in item.cores.items():
                    excluded[index] = excluded.get(index, frozenset()) | cores
        if blocked is None:
            return Verdict(left, begin, excluded, overlap=overlap)
        if not move or attempt >= 10:
            return Verdict(set(), begin, {}, refused=True, maintenance=maintenance)
        begin = blocked.end
    return Verdict(set(), begin, {}, refused=True)


def _inside(world: World, job: Job, start: int, minutes: int, everything: set[int]) -> Verdict:
    own = world.reservations.get(job.reservation or "")
    if own is None or not may_use(own, job.request.user):
        return Verdict(set(), start, {}, refused=True)
    begin = start
    if "FLEX" in own.flags:
        left = set(everything)
    else:
        if world.second < own.start:
            return Verdict(set(), own.start, {}, refused=True)
        if world.second > own.end:
            return Verdict(set(), own.end, {}, refused=True)
        left = set(own.nodes)
    overlap = maintenance = False
    finish = begin + minutes * 60
    for other in world.reservations.values():
        if other is own or "MAINT" in own.flags or not other.whole:
            continue
        if other.start >= finish or other.end <= begin:
            continue
        if left & other.nodes:
            overlap = True
            left -= other.nodes
            maintenance = maintenance or "MAINT" in other.flags
    return Verdict(
        left, begin, {}, refused=not left, overlap=overlap, maintenance=maintenance and not left
    )


def next_end(world: World, start: int, resolution: int) -> int:
    """The first end of a reservation not before `start`, rounded up to the resolution; 0 if there is none."""
    ends = [item.end for item in world.reservations.values() if start <= item.end]
    return -(-min(ends) // resolution) * resolution if ends else 0


def nodes_of(world: World, name: str) -> set[int]:
    """The nodes of a reservation."""
    item = world.reservations.get(name)
    return set(item.nodes) if item else set()
