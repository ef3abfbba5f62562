"""FCFS and EASY with chunks, by brute force from the words of the definition: no kernel, no shared
code.

A job asks for a list of chunks, one by one; a chunk goes to the first host on which it fits.
``scatter``: to the first such host that the job does not use yet.  ``pack``: all go to the first
host on which all fit. A chunk that names a host goes there only.  Exclusive: only empty hosts
count, and they are taken whole.  A pass that started a job is made again.
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
    free = left_over(hosts, going)
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
            if job.is_exclusive and any(host in each.allocation for each in going):
                continue
            if free[host][0] - own[0] < procs or (size and free[host][1] - own[1] < memory):
                continue
            assert cpus
            used[host] = (own[0] + procs, own[1] + (memory if size else 0))
            break
        else:
            return None
    return {host: hosts[host] for host in used} if job.is_exclusive else used


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
        before = -1
        while before != len(found):
            before = len(found)
            while waiting:
                allocation = place(hosts, going, waiting[0])
                if allocation is None:
                    break
                start(waiting.pop(0), allocation, now)
            if is_easy and waiting:
                _backfill(hosts, waiting, going, now, start)
    assert not waiting
    return found


def _backfill(hosts: Hosts, waiting: list[Asked], going: list[Going], now: int, start) -> None:
    def then(instant: int) -> list[Going]:
        return [each for each in going if each.start + each.job.estimate > instant]

    head = waiting[0]
    ends = sorted({each.start + each.job.estimate for each in going})
    shadow = next(end for end in ends if place(hosts, then(end), head) is not None)
    for job in waiting[1:]:
        allocation = place(hosts, going, job)
        if allocation is None:
            continue
        if now + job.estimate > shadow:
            beside = [*then(shadow), Going(job, now, allocation)]
            if place(hosts, beside, head) is None:
                continue
        waiting.remove(job)
        start(job, allocation, now)
