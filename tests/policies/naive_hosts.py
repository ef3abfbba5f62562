"""The priority-backfill family on hosts with memory, by brute force (spec/papers.md 3.3 and 3.7, items 1 to 7).

Nothing is kept but plain lists.  Whether something fits is found by counting, at every instant at which anything
changes, what runs and what is reserved; the earliest start by trying all these instants on all hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

SECOND = 1_000_000


@dataclass(frozen=True)
class Host:
    cpus: int
    memory: int


@dataclass
class Job:
    sequence: int
    submit: int
    procs: int
    memory: int
    estimate: int
    run: int
    bypasses: int = 0
    start: int | None = None
    host: int = -1


@dataclass
class World:
    hosts: list[Host]
    depth: int
    key: Callable[[Job, int], float]
    is_sticky: bool = False
    held: list[tuple[Job, int, int]] = field(default_factory=list)


Booking = tuple[int, int, int, int]
"""Start, end, processors, memory."""


def simulate(jobs: list[Job], world: World) -> dict[int, tuple[int, int]]:
    """Return (start, host) of each job by sequence."""
    arriving = sorted(jobs, key=lambda job: (job.submit, job.sequence))
    waiting: list[Job] = []
    running: list[Job] = []
    done: dict[int, tuple[int, int]] = {}
    while arriving or running:
        now = min(
            [job.submit for job in arriving[:1]] + [job.start + job.run for job in running if job.start is not None]
        )
        running = [job for job in running if job.start is not None and job.start + job.run > now]
        while arriving and arriving[0].submit <= now:
            waiting.append(arriving.pop(0))
        for job in _pass(now, waiting, running, world):
            waiting.remove(job)
            running.append(job)
            assert job.start is not None
            done[job.sequence] = (job.start, job.host)
    assert not waiting
    return done


def _pass(now: int, waiting: list[Job], running: list[Job], world: World) -> list[Job]:
    order = sorted(waiting, key=lambda job: (world.key(job, now), job.sequence))
    world.held = [each for each in world.held if each[0] in waiting]
    scan = [each[0] for each in world.held] + [job for job in order if all(job is not each[0] for each in world.held)]
    begun: list[Job] = []
    booked: list[list[Booking]] = [[] for _ in world.hosts]
    holding = {id(each[0]): each for each in world.held}
    kept: list[tuple[Job, int, int]] = []
    for job in scan:
        host = _host_to_start(now, job, running + begun, booked, world)
        if host is not None:
            job.start, job.host = now, host
            begun.append(job)
        elif id(job) in holding or len(kept) < world.depth:
            at, host = _earliest(now, job, running + begun, booked, world)
            if id(job) in holding:
                _, was_on, was_at = holding[id(job)]
                length = max(job.estimate, SECOND)
                if (
                    was_at <= at
                    and was_at >= now
                    and _fits(job, was_on, was_at, was_at + length, running + begun, booked, world)
                ):
                    at, host = was_at, was_on
            booked[host].append((at, at + max(job.estimate, SECOND), job.procs, job.memory))
            kept.append((job, host, at))
    if world.is_sticky:
        world.held = kept
    for job in begun:
        for other in order[: order.index(job)]:
            if other not in begun:
                other.bypasses += 1
    return begun


def _used(at: int, host: int, running: list[Job], booked: list[list[Booking]]) -> tuple[int, int]:
    procs = memory = 0
    for job in running:
        if job.host == host and job.start is not None and job.start <= at < job.start + job.estimate:
            procs, memory = procs + job.procs, memory + job.memory
    for start, end, width, need in booked[host]:
        if start <= at < end:
            procs, memory = procs + width, memory + need
    return procs, memory


def _fits(
    job: Job, host: int, start: int, end: int, running: list[Job], booked: list[list[Booking]], world: World
) -> bool:
    instants = {start} | {each[0] for each in booked[host] if start < each[0] < end}
    for at in instants if end > start else set():
        procs, memory = _used(at, host, running, booked)
        if procs + job.procs > world.hosts[host].cpus or memory + job.memory > world.hosts[host].memory:
            return False
    return True


def _free_now(host: int, running: list[Job], world: World) -> tuple[int, int]:
    there = [job for job in running if job.host == host]
    spec = world.hosts[host]
    return spec.cpus - sum(job.procs for job in there), spec.memory - sum(job.memory for job in there)


def _host_to_start(now: int, job: Job, running: list[Job], booked: list[list[Booking]], world: World) -> int | None:
    found = []
    for host in range(len(world.hosts)):
        procs, memory = _free_now(host, running, world)
        if (
            procs >= job.procs
            and memory >= job.memory
            and _fits(job, host, now, now + job.estimate, running, booked, world)
        ):
            found.append((procs, host))
    return min(found)[1] if found else None


def _earliest(now: int, job: Job, running: list[Job], booked: list[list[Booking]], world: World) -> tuple[int, int]:
    found = []
    for host, spec in enumerate(world.hosts):
        if job.procs > spec.cpus or job.memory > spec.memory:
            continue
        ends = {each.start + each.estimate for each in running if each.host == host and each.start is not None}
        instants = sorted(
            {now} | {end for end in ends if end > now} | {each[1] for each in booked[host] if each[1] > now}
        )
        length = max(job.estimate, SECOND)
        at = next(at for at in instants if _fits(job, host, at, at + length, running, booked, world))
        found.append((at, _free_now(host, running, world)[0], host))
    at, _, host = min(found)
    return at, host
