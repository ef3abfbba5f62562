"""FCFS and EASY with chunks, by brute force from the words of the definition: no kernel, no shared
code.

A job asks for a list of chunks, one by one; a chunk goes to the first host on which it fits.
``scatter``: to the first such host that the job does not use yet.  ``pack``: all go to the first
host on which all fit. A chunk that names a host goes there only.  Exclusive: only empty hosts
count, and they are taken whole.  A pass that started a job is made again.

The first job that does not fit has a reservation on the hosts where it fits first.  If hosts matter
to no waiting job (chunks of one processor without memory), it is only a number of processors.
"""

from __future__ import annotations

from typing import NamedTuple

SECOND = 1_000_000
Allocation = dict[int, tuple[int, int]]


class Asked(NamedTuple):
    number: int
    submit: int
    chunks: tuple[tuple[int, int, int], ...]
    placing: str
    is_exclusive: bool
    estimate: int
    run: int


class Going(NamedTuple):
    job: Asked
    start: int
    allocation: Allocation


Hosts = list[tuple[int, int]]


def left_over(hosts: Hosts, going: list[Going]) -> Hosts:
    free = [list(host) for host in hosts]
    for each in going:
        for host, (procs, memory) in each.allocation.items():
            free[host][0] -= procs
            free[host][1] -= memory
    return [(procs, memory) for procs, memory in free]


def place(hosts: Hosts, going: list[Going], job: Asked) -> Allocation | None:
    return place_over(hosts, [going], job)


def place_over(hosts: Hosts, times: list[list[Going]], job: Asked) -> Allocation | None:
    """Place a job so that it fits with each of some sets of running jobs."""
    free = [left_over(hosts, going) for going in times]
    used: Allocation = {}
    parts = job.chunks
    if job.placing == "pack":
        named = [wanted for *_, wanted in parts if wanted >= 0]
        parts = (
            (
                sum(procs for procs, *_ in parts),
                sum(memory for _, memory, _ in parts),
                max(named, default=-1),
            ),
        )
    for procs, memory, wanted in parts:
        for host, (cpus, size) in enumerate(hosts):
            if wanted not in (-1, host):
                continue
            own = used.get(host, (0, 0))
            if job.placing == "scatter" and host in used:
                continue
            if job.is_exclusive and any(
                host in each.allocation for going in times for each in going
            ):
                continue
            if any(
                there[host][0] - own[0] < procs or (size and there[host][1] - own[1] < memory)
                for there in free
            ):
                continue
            assert cpus
            used[host] = (own[0] + procs, own[1] + (memory if size else 0))
            break
        else:
            return None
    return {host: hosts[host] for host in used} if job.is_exclusive else used


def is_loose(hosts: Hosts, job: Asked) -> bool:
    are_single = all(cpus == 1 and not size for cpus, size in hosts)
    if job.placing == "pack" or (not are_single and (job.placing != "free" or job.is_exclusive)):
        return False
    counts = any(size for _, size in hosts)
    return all(procs == 1 and not (memory and counts) and w < 0 for procs, memory, w in job.chunks)


def simulate(
    hosts: Hosts, jobs: list[Asked], *, is_easy: bool
) -> dict[int, tuple[int, Allocation]]:
    """Return start and allocation of every job, by number."""
    coming = sorted(jobs, key=lambda job: (job.submit, job.number))
    waiting: list[Asked] = []
    going: list[Going] = []
    found: dict[int, tuple[int, Allocation]] = {}

    def start(job: Asked, allocation: Allocation, now: int) -> None:
        going.append(Going(job, now, allocation))
        found[job.number] = (now, allocation)

    while coming or going:
        now = min(
            [job.submit for job in coming[:1]] + [each.start + each.job.run for each in going]
        )
        going[:] = [each for each in going if each.start + each.job.run > now]
        while coming and coming[0].submit == now:
            waiting.append(coming.pop(0))
        before, is_pool = -1, all(is_loose(hosts, job) for job in waiting)
        while before != len(found):
            before = len(found)
            while waiting:
                allocation = place(hosts, going, waiting[0])
                if allocation is None:
                    break
                start(waiting.pop(0), allocation, now)
            if is_easy and waiting:
                _backfill(hosts, waiting, going, now, start, is_pool)
    assert not waiting
    return found


def _backfill(
    hosts: Hosts, waiting: list[Asked], going: list[Going], now: int, start, is_pool: bool
) -> None:
    def then(instant: int) -> list[Going]:
        return [each for each in going if each.start + each.job.estimate > instant]

    head = waiting[0]
    ends = sorted({each.start + each.job.estimate for each in going})
    shadow = next(end for end in ends if place(hosts, then(end), head) is not None)
    held = place(hosts, then(shadow), head)
    assert held is not None
    for job in waiting[1:]:
        if is_pool or now + job.estimate <= shadow:
            allocation = place(hosts, going, job)
            beside = [] if allocation is None else [*then(shadow), Going(job, now, allocation)]
            if now + job.estimate > shadow and place(hosts, beside, head) is None:
                continue
        else:
            reserved = [*then(shadow), Going(head, shadow, held)]
            allocation = place_over(hosts, [going, reserved], job)
        if allocation is not None:
            waiting.remove(job)
            start(job, allocation, now)
