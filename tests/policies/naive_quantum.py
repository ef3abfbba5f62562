"""Immediate service and "soon" the slow and obvious way, written from docs/spec/papers.md 3.3, 3.4
and 3.7 and its words alone.

Jobs that may live on one of several hosts with memory; the inner policy is a list scheduler with
``depth`` reservations, in order of submission or by LXF&W.  Availability is looked up by adding up,
at every instant that matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

SECOND = 1_000_000


@dataclass
class Asked:
    """One job: when it comes, what it asks for, how long it runs and what it uses (bytes)."""

    submit: int
    procs: int
    memory: int
    estimate: int
    run: int
    used: int


@dataclass
class Living:
    """A job that has a place: on a host, with memory; ``since`` it went on (None: suspended),
    ``done`` before that."""

    host: int
    memory: int
    since: int | None
    done: int = 0
    trial_until: int | None = None
    preempted: list[int] = field(default_factory=list)
    idle: int = 0
    """Of a trial run: the processors that it took from the idle ones."""


@dataclass
class Life:
    """What became of a job."""

    first: int = -1
    end: int = -1
    begins: list[int] = field(default_factory=list)


class Machine:
    """The hosts (processors, memory with 0 for uncounted), and everything that happens on them."""

    def __init__(
        self,
        hosts: list[tuple[int, int]],
        jobs: list[Asked],
        key: Callable[[Asked, int], float],
        depth: int,
        quantum: int,
        memory: int,
        protect: int | None,
    ) -> None:
        self.hosts, self.jobs, self.key, self.depth = hosts, jobs, key, depth
        self.quantum, self.initial, self.protect = quantum, memory, protect
        self.waiting: list[int] = []
        self.living: dict[int, Living] = {}
        self.lives = [Life() for _ in jobs]
        self.had: set[int] = set()
        self.thrown_away: dict[int, int] = {}
        self.at_once: set[int] = set()
        self.now = 0

    def simulate(self) -> list[Life]:
        """Run to the end."""
        coming = list(range(len(self.jobs)))
        while coming or self.living or self.waiting:
            instants = [self.jobs[j].submit for j in coming[:1]] + [
                self.end_of(j) for j in self.living if self.goes(j)
            ]
            instants += [
                life.trial_until for life in self.living.values() if life.trial_until is not None
            ]
            if self.at_once:
                instants.append(self.now)
            self.now = min(instants)
            over = [
                j
                for j in self.living
                if self.goes(j) and self.end_of(j) == self.now and j not in self.at_once
            ]
            back = [
                j
                for j in self.living
                if j in self.at_once or (self.living[j].trial_until == self.now and j not in over)
            ]
            self.at_once = set()
            for j in over:
                self.lives[j].end = self.now
            for j in back:
                self.thrown_away[j] = self.now - (self.living[j].since or 0)
            for j in [*over, *back]:
                for other_job in self.living[j].preempted:
                    self.living[other_job].since = self.now
                    self.lives[other_job].begins.append(self.now)
                del self.living[j]
            self.waiting = sorted({*self.waiting, *back})
            new = [j for j in coming if self.jobs[j].submit == self.now]
            coming = coming[len(new) :]
            self.waiting += new
            self.inner_pass()
            for j in [
                j
                for j in (new if self.protect is not None else list(self.waiting))
                if j in self.waiting
            ]:
                if j not in self.had:
                    self.serve(j)
        return self.lives

    def goes(self, j: int) -> bool:
        return self.living[j].since is not None

    def end_of(self, j: int) -> int:
        life = self.living[j]
        assert life.since is not None
        return life.since + self.jobs[j].run - life.done

    def expected(self, j: int) -> int:
        """When a job gives its processors back for good, by its estimate; of a trial run, at the
        latest when its quantum ends."""
        life, job = self.living[j], self.jobs[j]
        if life.since is None:
            trial = next(g for g, other in self.living.items() if j in other.preempted)
            return self.expected(trial) + job.estimate - life.done
        end = life.since + job.estimate - life.done
        return end if life.trial_until is None else min(end, life.trial_until)

    def holds(self, j: int) -> tuple[int, int]:
        """Processors and memory that a job keeps from others: a preempted job all its own, a trial
        run those that were idle."""
        life = self.living[j]
        return (self.jobs[j].procs if life.trial_until is None else life.idle), life.memory

    def left(
        self, host: int, at: int, booked: list[tuple[int, int, int, int, int]]
    ) -> tuple[int, int]:
        """Processors and memory that will be free on a host at an instant, as far as is known."""
        procs, memory = self.hosts[host]
        for j, life in self.living.items():
            if life.host == host and (at <= self.now or at < self.expected(j)):
                procs, memory = procs - self.holds(j)[0], memory - self.holds(j)[1]
        for where, begin, end, width, size in booked:
            if where == host and begin <= at < end:
                procs, memory = procs - width, memory - size
        return procs, memory

    def fits(self, host: int, procs: int, memory: int, begin: int, end: int, booked) -> bool:
        instants = (
            {begin} | {t for j in self.living for t in [self.expected(j)]} | {b[1] for b in booked}
        )
        for at in sorted(t for t in instants if t == begin or begin < t < end):
            free = self.left(host, at, booked)
            if free[0] < procs or (self.hosts[host][1] and free[1] < memory):
                return False
        return True

    def inner_pass(self) -> None:
        order = sorted(self.waiting, key=lambda j: (-self.key(self.jobs[j], self.now), j))
        booked: list[tuple[int, int, int, int, int]] = []
        for j in order:
            job = self.jobs[j]
            places = [
                (self.left(h, self.now, [])[0], h)
                for h in range(len(self.hosts))
                if self.fits(h, job.procs, job.memory, self.now, self.now, [])
                and self.fits(h, job.procs, job.memory, self.now, self.now + job.estimate, booked)
            ]
            if places:
                host = min(places)[1]
                self.begin(j, host, job.memory if self.hosts[host][1] else 0)
            elif len(booked) < self.depth:
                length = max(job.estimate, SECOND)
                instants = (
                    {self.now}
                    | {max(self.expected(k), self.now) for k in self.living}
                    | {b[2] for b in booked}
                )
                found = [
                    (at, self.left(h, self.now, [])[0], h)
                    for h in range(len(self.hosts))
                    for at in instants
                    if self.fits(h, job.procs, job.memory, at, at + length, booked)
                    and self.can_ever(h, job)
                ]
                at, _, host = min(found)
                booked.append((host, at, at + length, job.procs, job.memory))

    def can_ever(self, host: int, job: Asked) -> bool:
        procs, memory = self.hosts[host]
        return job.procs <= procs and (not memory or job.memory <= memory)

    def begin(self, j: int, host: int, memory: int) -> None:
        self.waiting.remove(j)
        self.living[j] = Living(host, memory, self.now)
        self.lives[j].begins.append(self.now)
        if self.lives[j].first < 0:
            self.lives[j].first = self.now

    def serve(self, j: int) -> None:
        job = self.jobs[j]
        best: tuple[int, int, int] | None = None
        chosen: list[int] = []
        for host, (procs, all_memory) in enumerate(self.hosts):
            free, memory = self.left(host, self.now, [])
            if procs < job.procs or (all_memory and memory < min(job.memory, self.initial)):
                continue
            preempted: list[int] = []
            if self.protect is not None:
                for other_job in sorted(self.stoppable(host), key=lambda v: (self.slowdown(v), v)):
                    if free >= job.procs:
                        break
                    preempted.append(other_job)
                    free += self.jobs[other_job].procs
            if free >= job.procs and (
                best is None or (free - job.procs, len(preempted), host) < best
            ):
                best, chosen = (free - job.procs, len(preempted), host), preempted
        if best is None:
            return
        host = best[2]
        idle = min(self.left(host, self.now, [])[0], job.procs)
        memory = min(job.memory, self.initial) if self.hosts[host][1] else 0
        for other_job in chosen:
            life = self.living[other_job]
            assert life.since is not None
            life.done, life.since = life.done + self.now - life.since, None
        self.begin(j, host, memory)
        life = self.living[j]
        life.trial_until, life.preempted, life.idle = self.now + self.quantum, chosen, idle
        self.had.add(j)
        if self.hosts[host][1] and job.used > memory:
            self.at_once.add(j)

    def stoppable(self, host: int) -> list[int]:
        found = []
        for j, life in self.living.items():
            if life.host != host or life.since is None or life.trial_until is not None:
                continue
            if self.now - life.since >= (self.protect or 0) and life.since < self.now:
                found.append(j)
        return found

    def slowdown(self, j: int) -> Fraction:
        life = self.living[j]
        assert life.since is not None
        return Fraction(
            self.now - self.jobs[j].submit,
            life.done + self.now - life.since + self.thrown_away.get(j, 0),
        )


def first_come(job: Asked, now: int) -> float:
    """The key of FCFS: everyone alike, ties by sequence."""
    return 0.0


def expansion_and_wait(job: Asked, now: int) -> float:
    """The key of LXF&W (Table 3)."""
    wait, asked = now - job.submit, max(job.estimate, 60 * SECOND)
    return 0.0167 * (wait / (3600.0 * SECOND)) + (wait + asked) / asked
