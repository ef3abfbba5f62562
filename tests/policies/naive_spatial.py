"""EQspatial the slow and obvious way, from docs/spec/papers.md 3.5 and 3.7 item 11, on hosts that
do not count memory.

Processors are dealt out one by one; every instant is looked at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Sharing:
    """A job: when it comes, what it asks for, the work that it is, and what has become of it."""

    submit: int
    procs: int
    work: int
    host: int = -1
    now: int = 0
    first: int = -1
    end: int = -1


def dealt(room: int, asked: list[int]) -> list[int]:
    """Deal processors round by round to all that still want one; a last round that is not enough
    for all goes in order."""
    shares = [0] * len(asked)
    while room:
        hungry = [place for place, want in enumerate(asked) if shares[place] < want]
        if not hungry:
            break
        for place in hungry[:room]:
            shares[place] += 1
        room -= min(room, len(hungry))
    return shares


def simulate(hosts: list[int], jobs: list[Sharing], interval: int) -> list[Sharing]:
    """Run jobs (in order of sequence) to their ends."""
    now, coming = 0, list(jobs)
    divided: list[int | None] = [None] * len(hosts)
    changed = [False] * len(hosts)
    while any(job.end < 0 for job in jobs):
        here = [job for job in jobs if job.host >= 0 and job.end < 0]
        instants = [now - (-job.work // job.now) for job in here if job.now] + [
            job.submit for job in coming[:1]
        ]
        instants += [
            last + interval
            for last, is_due in zip(divided, changed, strict=True)
            if is_due and last is not None
        ]
        after = min(instants)
        for job in here:
            job.work = max(job.work - job.now * (after - now), 0) if job.now else job.work
            # A job of no work is over when it has processors.
            if job.work == 0 and job.now:
                job.end, job.now, changed[job.host] = after, 0, True
        now = after
        while coming and coming[0].submit == now:
            job = coming.pop(0)
            there = [
                [other for other in jobs if other.host == host and other.end < 0]
                for host in range(len(hosts))
            ]
            free = [
                size - sum(other.now for other in there[host]) for host, size in enumerate(hosts)
            ]
            fit = [host for host, size in enumerate(hosts) if size >= job.procs]
            best = [host for host in fit if free[host] >= job.procs]
            if best:
                job.host = min(best, key=lambda host: (free[host], host))
            else:
                asked = [job.procs + sum(other.procs for other in each) for each in there]
                job.host = fit[0]
                for host in fit[1:]:
                    if hosts[host] * asked[job.host] > hosts[job.host] * asked[host]:
                        job.host = host
            job.now = min(job.procs, free[job.host])
            changed[job.host] = True
        for host, size in enumerate(hosts):
            last = divided[host]
            if changed[host] and (last is None or now - last >= interval):
                there = [other for other in jobs if other.host == host and other.end < 0]
                for other, share in zip(
                    there, dealt(size, [other.procs for other in there]), strict=True
                ):
                    other.now = share
                divided[host], changed[host] = now, False
        for job in jobs:
            if job.now and job.first < 0:
                job.first = now
    return jobs
