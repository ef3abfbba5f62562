"""NCSA-LSF*: the production scheduler of the Origin 2000, with class limits and special reservations of whole hosts.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, section 2.1 and
Tables 1 and 2; readings in spec/papers.md 3.2 and 3.7, item 10.  The tables are the machine's: classes of two kinds (time and
size), what each host serves and how many of which it may run (``--machine origin2000``).  Without classes all jobs are of one
class, which nothing limits.

A job at the system limit of its class asks for no special.  Jobs that no class takes, or that no host of their class
could hold, are rejected.  On a chunked machine, where there are no classes, jobs start in order as they fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from qbatch.model.actions import Action, Reject
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.kernels import lsf as kernels
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import View
from qbatch.policies.chunked import grid_pass
from qbatch.policies.on_hosts import hosts_array, start_on

_lsf_pass = live(kernels.lsf_pass)

UNLIMITED = 1 << 40


class Tables(NamedTuple):
    """What the machine says, as the kernel takes it: see :mod:`qbatch.planning.kernels.lsf`."""

    sweep: Int64Array
    order: Int64Array
    ranks: Int64Array
    limits: Int64Array
    times: Int64Array


@dataclass
class Standing:
    """What is remembered: by row the time class, the size class and 1 if it may run; who runs where (row -> host); by
    host the special; idle processor-microseconds under a special so far, and until when they were counted."""

    jobs: Int64Array = field(default_factory=lambda: np.zeros((3, 64), np.int64))
    places: dict[int, int] = field(default_factory=dict)
    specials: list[int] = field(default_factory=list)
    idle: float = 0.0
    counted: int = -1


class Lsf:
    """The scheduler; it has no parameters of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tables: dict[Machine, Tables] = {}

    def new_memory(self, machine: Machine) -> Standing:
        """Return the record for a machine on which nothing has happened yet."""
        return Standing(specials=[-1] * (1 if machine.is_one_pool else len(machine.hosts)))

    def decide(self, view: View) -> Iterable[Action]:
        """Make one pass."""
        if view.machine.chunked:
            return list(grid_pass(view, view.queue, 0)) if len(view.queue) and max(view.free) else []
        memory: Standing = view.memory
        self._count_idle(view, memory)
        rejected = list(self._classify(view, memory))
        ended = {memory.places.pop(row) for row in (*view.finished, *view.withdrawn) if row in memory.places}
        if view.is_machine_changed or len(memory.places) != len(view.running) + len(view.suspended):
            runs = (*view.running.items(), *view.suspended.items())
            memory.places = {row: 0 if view.machine.is_one_pool else run.allocation[0].host for row, run in runs}
        gone = {each.row for each in rejected} | set(view.withdrawn)
        memory.specials = [-1 if row in gone else row for row in memory.specials]
        if len(view.queue) == 0 or max(view.free) == 0:
            return rejected
        starts = self._pass(view, memory, ended)
        for row, host in starts:
            memory.places[row] = host
        return [*rejected, *(start_on(view, row, host) for row, host in starts)]

    def _pass(self, view: View, memory: Standing, ended: set[int]) -> list[tuple[int, int]]:
        tables = self._tables_of(view.machine)
        hosts = np.zeros((6, len(memory.specials)), np.int64)
        hosts[:4] = hosts_array(view)
        hosts[4] = memory.specials
        hosts[5, list(ended)] = 1
        counts = np.zeros_like(tables.limits)
        times = tables.times.copy()
        for row, host in memory.places.items():
            counts[host, memory.jobs[1, row]] += 1
            times[kernels.RUNNING, memory.jobs[0, row]] += 1
        columns = view.columns
        begun = np.empty((2, min(len(view.queue), int(hosts[0].sum()))), np.int64)
        count = _lsf_pass(
            view.now, view.queue, columns.submit, columns.procs, columns.memory, memory.jobs, hosts, tables.sweep,
            tables.order, tables.ranks, tables.limits, counts, times, begun,
        )  # fmt: skip
        memory.specials = hosts[4].tolist()
        found = begun[:, :count].T.tolist()
        memory.jobs[kernels.MAY, begun[0, :count]] = 1
        return [(row, host) for row, host in found]

    def _count_idle(self, view: View, memory: Standing) -> None:
        """Processors that stand idle on a host that is kept for a special (the paper: below 4 % of all)."""
        if memory.counted >= 0 and any(row >= 0 for row in memory.specials):
            passed = view.now - memory.counted
            free = [view.free_procs] if view.machine.is_one_pool else view.free
            # What has just ended was busy until now.
            memory.idle += sum(float(passed) * procs for procs, row in zip(self._idle(view, free), memory.specials, strict=True)
                               if row >= 0)  # fmt: skip
        memory.counted = view.now

    def _idle(self, view: View, free: Iterable[int]) -> list[int]:
        idle = list(free)
        for row in view.finished:
            host = view.memory.places.get(row)
            if host is not None:
                idle[host] = max(idle[host] - view.jobs[row].procs, 0)
        return idle

    def _classify(self, view: View, memory: Standing) -> Iterable[Reject]:
        """Find the classes of the arrivals; reject those that could never run."""
        last = max(view.arrived, default=-1)
        while last >= memory.jobs.shape[1]:
            memory.jobs = np.concatenate([memory.jobs, np.zeros_like(memory.jobs)], axis=1)
        fresh = view.queue.tolist() if view.is_machine_changed else view.arrived
        for row in fresh:
            memory.jobs[:, row] = self._class_of(view.machine, view.jobs[row])
            if not memory.jobs[kernels.MAY, row]:
                text = "no class takes it, or no host of its class could hold it"
                yield Reject(row, Reason("no-class", self.name, text, {"procs": view.jobs[row].procs}))

    def _class_of(self, machine: Machine, job: Job) -> tuple[int, int, int]:
        """Return the places of a job's time class and size class, and whether it may run on some host."""
        if not machine.classes:
            return 0, 0, 1
        pair = machine.class_of(job.procs, job.memory, job.estimate)
        if pair is None:
            return 0, 0, 0
        times, sizes = _kinds(machine)
        time, size = times.index(pair.time), sizes.index(pair.size)
        ranks = self._tables_of(machine).ranks
        fits = any(
            ranks[place, size] >= 0 and host.cpus >= job.procs and (not host.memory or host.memory >= job.memory)
            for place, host in enumerate(machine.hosts)
        )
        return time, size, int(fits or machine.is_one_pool)

    def _tables_of(self, machine: Machine) -> Tables:
        if machine not in self._tables:
            self._tables[machine] = _tables(machine)
        return self._tables[machine]

    def explain(self, view: View, row: int) -> Reason:
        """Say why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        if view.machine.chunked:
            could = any(start.row == row for start in grid_pass(view, view.queue, 0))
            text = "could start now" if could else f"its chunks do not fit what is free ({view.free_procs} processors)"
            return Reason(COULD_START if could else "hosts", self.name, text, numbers)
        memory: Standing = view.memory
        tables = self._tables_of(view.machine)
        time, size = memory.jobs[0, row], memory.jobs[1, row]
        running = sum(1 for other in memory.places if memory.jobs[0, other] == time)
        if running >= tables.times[kernels.LIMIT, time]:
            text = f"{running} jobs of its time class run, as many as may"
            return Reason("class-limit", self.name, text, {**numbers, "running": running})
        if row in memory.specials:
            host = view.machine.hosts[memory.specials.index(row)].name
            return Reason("special", self.name, f"host {host} is kept for it and starts nobody else", numbers)
        kept = sum(1 for special in memory.specials if special >= 0)
        if kept:
            text = f"{kept} hosts are kept for jobs that have waited long, and no other starts it"
            return Reason("special", self.name, text, {**numbers, "kept": kept})
        counts = np.zeros_like(tables.limits)
        for other, host_place in memory.places.items():
            counts[host_place, memory.jobs[1, other]] += 1
        serving = tables.ranks[:, size] >= 0
        if (counts[serving, size] >= tables.limits[serving, size]).all():
            return Reason("class-limit", self.name, "every host of its class runs as many of it as may", numbers)
        return Reason("hosts", self.name, "no host of its class has room, or a larger class waits there first", numbers)


def _kinds(machine: Machine) -> tuple[list[object], list[object]]:
    """Return the time classes and the size classes, each in the order of the file."""
    pairs = machine.class_pairs
    return list(dict.fromkeys(pair.time for pair in pairs)), list(dict.fromkeys(pair.size for pair in pairs))


def _tables(machine: Machine) -> Tables:
    """Return a machine's tables; of one without classes those of a single class that nothing limits."""
    pairs = machine.class_pairs
    times = list(dict.fromkeys(pair.time for pair in pairs))
    sizes = list(dict.fromkeys(pair.size for pair in pairs))
    names = [size.name for size in sizes] or [""]
    hosts = () if machine.is_one_pool else machine.hosts
    places = max(len(hosts), 1)
    order = np.full((places, len(names)), -1, np.int64)
    ranks = np.full((places, len(names)), -1, np.int64)
    limits = np.full((places, len(names)), UNLIMITED, np.int64)
    for place in range(places):
        serves = [name for name in hosts[place].serves if name in names] if hosts else []
        # Without a word of the file the largest class comes first, as on the Origin's general hosts.
        for rank, name in enumerate(serves or reversed(names)):
            size = names.index(name)
            order[place, rank], ranks[place, size] = size, rank
        for size, each in enumerate(sizes):
            if each.per_host is not None:
                limits[place, size] = each.per_host
        for name, most in hosts[place].limits if hosts else ():
            if name in names:
                limits[place, names.index(name)] = most
    served = (ranks >= 0).sum(axis=1)
    rules = [
        (UNLIMITED if time.limit is None else time.limit, 0, int(time.goes_first),
         -1 if time.reserve_wait is None else time.reserve_wait)
        for time in times
    ]  # fmt: skip
    return Tables(
        np.lexsort((np.arange(places), served)), order, ranks, limits,
        np.array(rules or [(UNLIMITED, 0, 0, -1)], np.int64).T.copy(),
    )  # fmt: skip
