"""NCSA-LSF*: the production scheduler of the Origin 2000, with class limits and special
reservations of whole hosts.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS
2001, section 2.1 and Tables 1 and 2; readings in docs/spec/papers.md 3.2 and 3.7, item 10.  The
tables are those of the machine: classes of two kinds (time and size), which of them each host
serves and how many jobs of each it may run (``--machine origin2000``).  Without classes all jobs
are of one class without limits.  The paper's simulations set no limit on users.  Here the limits of
the machine file by user, by size class on the whole machine and by time class on a host act like
system limits: a job at one neither starts nor blocks.

A job at the system limit of its class asks for no special.  Jobs that no class accepts, or that no
host of their class could hold, are rejected.  If jobs are chunks over hosts there are no classes,
and jobs start in order as they fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.actions import Action, Reject, Start
from qbatch.model.job_class import JobClass, JobClassPair
from qbatch.model.machine import Host, Machine, memory_text
from qbatch.model.reasons import COULD_START, Reason
from qbatch.model.record import Workload
from qbatch.planning.kernels import lsf as kernels
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.lsf import CPUS, FREE, FREE_MEMORY, MEMORY
from qbatch.planning.kernels.tables import Needs
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.policy import Compiled
from qbatch.planning.resources import PoolModel, resource_model_of
from qbatch.planning.view import View, jobs_of

_lsf_pass = entry_to(kernels.lsf_pass)
_count_all = entry_to(kernels.count_all)

UNLIMITED = 1 << 40

_ANY = JobClass("")

_SHOWN = 3
"""The number of hosts at their limit that an explanation names."""

_NO_CLASS = ("no-class", "no class takes it, or no host of its class could hold it")
"""Why jobs are rejected: a code and a text."""


class Tables(NamedTuple):
    """The tables of the machine, for the kernel: see :mod:`qbatch.planning.kernels.lsf`."""

    sweep: Int64Array
    order: Int64Array
    ranks: Int64Array
    rules: Int64Array
    most: Int64Array
    most_of_user: Int64Array


@dataclass
class LsfMemory:
    """The memory of the policy.

    In order: by row the time class, the size class, 1 if it may run and the user; the users'
    numbers from 0; the host of each running row.  Then: by host the special; idle
    processor-microseconds under a special so far, and until when they were counted.
    """

    jobs: Int64Array = field(default_factory=lambda: np.zeros((4, 64), np.int64))
    users: dict[int, int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    specials: list[int] = field(default_factory=list)
    idle: float = 0.0
    counted: int = -1


class Lsf:
    """The scheduler; it has no parameters of its own."""

    follows_classes = True
    knows_resources = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._tables: dict[int, tuple[Machine, Tables]] = {}

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that makes the same decisions on a machine."""
        if not _places(machine):
            return None
        return Compiled(
            kernels.decide_lsf,
            Needs(has_hosts=True, reads_ended=True),
            lambda work, _: self._classified(machine, work),
            takes=lambda classified: classified.jobs[kernels.MAY] != 0,
            refusal=lambda work, row, classified: _NO_CLASS,
        )

    def _classified(self, machine: Machine, work: Workload) -> kernels.ClassTables:
        """Return the jobs of a workload by the classes of a machine."""
        memory, tables, places = (
            self.new_memory(machine),
            self._tables_of(machine),
            _places(machine),
        )
        jobs = np.zeros((4, len(work)), np.int64)
        jobs[: kernels.USER] = _classes_of(machine, tables, work.procs, work.memory, work.estimate)
        if machine.limits_users:
            jobs[kernels.USER] = [
                memory.users.setdefault(user, len(memory.users)) for user in work.user.tolist()
            ]
        cpus, sizes, none = (
            [host.cpus for host in places],
            [host.memory for host in places],
            [0] * len(places),
        )
        hosts = np.array([cpus, sizes, cpus, sizes, memory.specials, none], np.int64)
        begun = np.empty((2, min(len(work), machine.procs) + 1), np.int64)
        return kernels.ClassTables(jobs, hosts, *tables[:4], _quota(tables, memory), begun)

    def new_memory(self, machine: Machine) -> LsfMemory:
        """Return the record for a machine before its first event."""
        return LsfMemory(specials=[-1] * len(_places(machine)))

    def decide(self, view: View) -> Iterable[Action]:
        """Make one pass."""
        memory: LsfMemory = view.memory
        if not memory.specials:
            return self._first_fit(view)
        self._count_idle(view, memory)
        rejected = list(self._classify(view, memory))
        ended = {
            memory.places.pop(row)
            for row in (*view.finished, *view.withdrawn)
            if row in memory.places
        }
        # A job that ended in a trial run may have come and left between two passes.
        resources = view.resources
        ended |= {resources.place_of(run) for run in view.ended}
        if view.is_machine_changed or len(memory.places) != len(view.running) + len(view.suspended):
            # Note the hosts of running jobs that no event named, and forget those that no longer
            # run.
            here = {**view.running, **view.suspended}
            for row in memory.places.keys() - here:
                del memory.places[row]
            for row in sorted(here.keys() - memory.places):
                memory.places[row] = resources.place_of(here[row])
        gone = {each.row for each in rejected}.union(view.withdrawn, view.finished)
        # A trial run under `soon` is a start: it clears a special.
        memory.specials = [
            -1 if row in gone or row in view.running else row for row in memory.specials
        ]
        # If preempted jobs have taken back what was free, a special is requested all the same.
        if len(view.queue) == 0 or (max(view.free) == 0 and not ended):
            return rejected
        starts = self._pass(view, memory, ended)
        memory.places.update(starts)
        return [
            *rejected,
            *resources.starts([row for row, _ in starts], [host for _, host in starts]),
        ]

    def _first_fit(self, view: View) -> list[Start]:
        return (
            view.resources.list_pass(view.queue, 0)[0] if len(view.queue) and max(view.free) else []
        )

    def _pass(self, view: View, memory: LsfMemory, ended: set[int]) -> list[tuple[int, int]]:
        tables = self._tables_of(view.machine)
        hosts = np.zeros((6, len(memory.specials)), np.int64)
        hosts[: kernels.SPECIAL] = _hosts(view)
        hosts[kernels.SPECIAL] = memory.specials
        hosts[kernels.HAS_ENDED, list(ended)] = 1
        begun = np.empty((2, min(len(view.queue), int(hosts[FREE].sum()))), np.int64)
        classified = kernels.ClassTables(
            memory.jobs, hosts, *tables[:4], _quota(tables, memory), begun
        )
        count = _lsf_pass(view.now, view.queue, jobs_of(view), classified)
        memory.specials = hosts[kernels.SPECIAL].tolist()
        memory.jobs[kernels.MAY, begun[0, :count]] = kernels.MAY_START
        return [(row, host) for row, host in begun[:, :count].T.tolist()]

    def _count_idle(self, view: View, memory: LsfMemory) -> None:
        """Count idle processors of a host that is kept for a special (the paper: below 4 % of
        all)."""
        if memory.counted >= 0 and any(row >= 0 for row in memory.specials):
            idle, passed = _hosts(view)[FREE].tolist(), float(view.now - memory.counted)
            for row in view.finished:  # a job that has just ended was busy until now
                host = memory.places.get(row)
                if host is not None:
                    idle[host] = max(idle[host] - view.jobs[row].procs, 0)
            memory.idle += sum(
                passed * procs for procs, row in zip(idle, memory.specials, strict=True) if row >= 0
            )
        memory.counted = view.now

    def _classify(self, view: View, memory: LsfMemory) -> Iterable[Reject]:
        """Find the classes of the arrivals, and of jobs that began under another policy; reject
        those that could never run."""
        fresh: Iterable[int] = view.arrived
        others: list[int] = []
        if view.is_machine_changed:
            # Each trial run is a change, under which the classes stay: only a job without a class
            # is new.
            known = memory.jobs[kernels.MAY]
            is_new = known[np.minimum(view.queue, len(known) - 1)] == 0
            fresh = sorted(
                {*view.arrived, *view.queue[is_new | (view.queue >= len(known))].tolist()}
            )
            others = [row for row in (*view.running, *view.suspended) if row not in memory.places]
        rows = [*fresh, *others]
        if not rows:
            return
        while max(rows) >= memory.jobs.shape[1]:
            memory.jobs = np.concatenate([memory.jobs, np.zeros_like(memory.jobs)], axis=1)
        memory.jobs[: kernels.USER, rows] = self._classes_of_rows(view, rows)
        if view.machine.limits_users:
            for row in rows:
                memory.jobs[kernels.USER, row] = memory.users.setdefault(
                    view.jobs[row].user, len(memory.users)
                )
        code, text = _NO_CLASS
        for row in fresh:
            if not memory.jobs[kernels.MAY, row]:
                yield Reject(row, Reason(code, self.name, text, {"procs": view.jobs[row].procs}))

    def _classes_of_rows(self, view: View, rows: list[int]) -> Int64Array:
        columns = view.columns
        asked = (column[rows] for column in (columns.procs, columns.memory, columns.estimate))
        return _classes_of(view.machine, self._tables_of(view.machine), *asked)

    def _tables_of(self, machine: Machine) -> Tables:
        known = self._tables.get(id(machine))  # hashing a machine visits all of its hosts
        if known is None or known[0] is not machine:
            known = self._tables[id(machine)] = machine, _tables(machine)
        return known[1]

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        memory: LsfMemory = view.memory
        if not memory.specials:
            could = any(start.row == row for start in self._first_fit(view))
            text = (
                "could start now"
                if could
                else f"its chunks do not fit what is free ({view.free_procs} processors)"
            )
            return Reason(COULD_START if could else "hosts", self.name, text, numbers)
        tables = self._tables_of(view.machine)
        quota = _quota(tables, memory)
        limit = _limit_reached(view.machine, memory.jobs[:, row], quota)
        if limit is not None:
            return Reason("class-limit", self.name, limit[0], {**numbers, "running": limit[1]})
        if row in memory.specials:
            host = view.machine.hosts[memory.specials.index(row)].name
            return Reason(
                "special", self.name, f"host {host} is kept for it and starts no other job", numbers
            )
        kept = sum(1 for special in memory.specials if special >= 0)
        if kept:
            hosts = "1 host is" if kept == 1 else f"{kept} hosts are"
            text = f"{hosts} kept for jobs that have waited long, and no other starts it"
            return Reason("special", self.name, text, {**numbers, "kept": kept})
        return self._hosts_wait(view, row, quota, numbers)

    def _hosts_wait(
        self, view: View, row: int, quota: Int64Array, numbers: dict[str, int]
    ) -> Reason:
        """Return what prevents a start on the hosts: their limits, their capacity, or a larger
        class that waits there."""
        jobs, ranks, job = view.memory.jobs, self._tables_of(view.machine).ranks, view.jobs[row]
        time, size = jobs[kernels.TIME, row], jobs[kernels.SIZE, row]
        hosts = _hosts(view)
        full = quota[kernels.RUNNING] >= quota[kernels.MOST]
        serving = np.flatnonzero((ranks[:, time, size] >= 0) & (hosts[CPUS] >= job.procs)).tolist()
        open_ones = [host for host in serving if not (full[host, time] or full[host, size])]
        if not open_ones:
            text = _hosts_at_limit(view.machine, serving, jobs[:, row], quota)
            return Reason("class-limit", self.name, text, numbers)
        for host in open_ones:
            has_memory = hosts[MEMORY, host] == 0 or hosts[FREE_MEMORY, host] >= job.memory
            is_free = has_memory and hosts[FREE, host] >= job.procs
            other = self._blocker(view, host, row, quota) if is_free else -1
            if other >= 0:
                waits = (
                    f"job {view.jobs[other].number} of class "
                    f"{_pair_name(view.machine, jobs[:, other])} waits there first"
                )
                text = f"host {view.machine.hosts[host].name} has enough free, but {waits}"
                return Reason("order", self.name, text, numbers, (other,))
        text = (
            f"needs {job.procs} processors, {view.free_procs} are free"
            if isinstance(view.resources, PoolModel)
            else ""
        )
        if not text:
            memory = f" and {memory_text(job.memory)} of memory" if job.memory else ""
            name = _pair_name(view.machine, jobs[:, row])
            where = f"no host that may run another job of class {name}" if name else "no host"
            text = f"{where} has {job.procs} processor{'s' if job.procs > 1 else ''}{memory} free"
        return Reason("hosts", self.name, text, numbers)

    def _blocker(self, view: View, host: int, row: int, quota: Int64Array) -> int:
        """Return the first job of a class before the job's own on a host that waits for capacity
        there; else -1."""
        jobs, ranks, queue = view.memory.jobs, self._tables_of(view.machine).ranks[host], view.queue
        time, size, may, user = jobs[:, queue]
        hosts, whole = _hosts(view)[:, host], len(view.memory.specials)
        rank, own = ranks[time, size], ranks[jobs[kernels.TIME, row], jobs[kernels.SIZE, row]]
        waits = (may == 1) & (rank >= 0) & (rank < own)
        full = quota[kernels.RUNNING] >= quota[kernels.MOST]
        waits &= ~(full[host, time] | full[host, size])
        for place in (np.full_like(queue, whole), whole + 1 + user):
            waits &= ~(full[place, time] | full[place, size] | full[place, -1])
        procs, memory = view.columns.procs[queue], view.columns.memory[queue]
        is_counted = hosts[MEMORY] > 0
        waits &= (hosts[CPUS] >= procs) & (not is_counted or hosts[MEMORY] >= memory)
        waits &= (hosts[FREE] < procs) | (is_counted and hosts[FREE_MEMORY] < memory)
        found = queue[waits]
        return int(found[0]) if len(found) else -1


def _quota(tables: Tables, memory: LsfMemory) -> Int64Array:
    """Return how many jobs may run, and how many do, by place and class: see
    :mod:`qbatch.planning.kernels.lsf`."""
    hosts, users = len(memory.specials), max(len(memory.users), 1)
    most = np.vstack(
        [tables.most, np.broadcast_to(tables.most_of_user, (users, len(tables.most_of_user)))]
    )
    quota = np.stack([most, np.zeros_like(most)])
    running = np.array([list(memory.places), list(memory.places.values())], np.int64)
    _count_all(running, memory.jobs, hosts, quota)
    return quota


def _limit_reached(machine: Machine, job: Int64Array, quota: Int64Array) -> tuple[str, int] | None:
    """Return the limit of the whole machine or of its user that a job is at, in words, and how many
    run; None if at none."""
    time, size, _, user = job.tolist()
    whole = len(_places(machine))
    for place, of_user, key in (
        (whole, "", "limit"),
        (whole + 1 + user, " of this user", "per_user"),
    ):
        for each in (time, size, -1):
            running = int(quota[kernels.RUNNING, place, each])
            if running >= quota[kernels.MOST, place, each]:
                what = "" if each < 0 else f" of {_class_words(machine, each)}"
                jobs, run = ("job", "runs") if running == 1 else ("jobs", "run")
                most = int(quota[kernels.MOST, place, each])
                return f"{running} {jobs}{what}{of_user} {run}, {key} = {most}", running
    return None


def _hosts_at_limit(machine: Machine, hosts: list[int], job: Int64Array, quota: Int64Array) -> str:
    """Return, for the hosts that serve a job's class and are all at a limit, how many jobs run
    there, in words."""
    time, size, _, _ = job.tolist()
    said = []
    for host in hosts[:_SHOWN]:
        each = (
            time if quota[kernels.RUNNING, host, time] >= quota[kernels.MOST, host, time] else size
        )
        running, most = quota[kernels.RUNNING, host, each], quota[kernels.MOST, host, each]
        name = _classes(machine)[each].name
        key = "limits" if name in dict(_places(machine)[host].limits) else "per_host"
        said.append(
            f"{_places(machine)[host].name} ({running} of {_class_words(machine, each)}, {key} = "
            f"{most})"
        )
    more = f" and {len(hosts) - _SHOWN} more" if len(hosts) > _SHOWN else ""
    return f"every host of its class runs as many jobs as it may: {', '.join(said)}{more}"


def _hosts(view: View) -> Int64Array:
    """Return the free and the total processors and memory of each host."""
    return view.resources.hosts().reshape(4, -1)


def _classes(machine: Machine) -> list[JobClass]:
    """Return the time classes, then the size classes, in the kernel's numbering."""
    return [each for kind in _kinds(machine) for each in kind]


def _class_words(machine: Machine, number: int) -> str:
    """Return a class in words, with its kind only if there are two kinds."""
    each = _classes(machine)[number]
    return f"class {each.name}" if each.kind == "plain" else f"{each.kind} class {each.name}"


def _pair_name(machine: Machine, job: Int64Array) -> str:
    """Return the name of a job's class."""
    classes = _classes(machine)
    return JobClassPair(classes[job[kernels.TIME]], classes[job[kernels.SIZE]]).name


def _classes_of(
    machine: Machine, tables: Tables, procs: Any, memory: Any, estimate: Any
) -> Int64Array:
    """Return ``[3, jobs]``: time class and size class of each job, in the kernel's numbering, and
    whether it may run on some host.  A job's class is the first, in the order of the file, that has
    it within its bounds (:meth:`qbatch.model.machine.Machine.class_of`).
    """
    times, sizes = _kinds(machine)
    found = np.zeros((3, len(procs)), np.int64)
    found[1] = len(times)
    if not machine.classes:
        found[2] = 1
        return found
    asked = {"procs": procs, "memory": memory, "time": estimate, "cpu_time": estimate}
    is_known = np.zeros(len(procs), np.bool_)
    for pair in reversed(machine.class_pairs):
        keeps = np.ones(len(procs), np.bool_)
        for each in {id(pair.time): pair.time, id(pair.size): pair.size}.values():
            for bound, values in asked.items():
                most = getattr(each, bound)
                if most is not None:
                    keeps &= values <= most
        found[0, keeps], found[1, keeps] = (
            times.index(pair.time),
            len(times) + sizes.index(pair.size),
        )
        is_known |= keeps
    for place, host in enumerate(_places(machine)):
        serves = tables.ranks[place, found[0], found[1]] >= 0
        found[2] |= (
            is_known
            & serves
            & (host.cpus >= procs)
            & ((host.memory == 0) | (host.memory >= memory))
        )
    return found


def _kinds(machine: Machine) -> tuple[list[JobClass], list[JobClass]]:
    """Return the time classes and the size classes, each in the order of the file; if there are
    none, one without bounds."""
    pairs = machine.class_pairs or (JobClassPair(_ANY, _ANY),)
    return list(dict.fromkeys(pair.time for pair in pairs)), list(
        dict.fromkeys(pair.size for pair in pairs)
    )


def _places(machine: Machine) -> tuple[Host, ...]:
    """Return the hosts for the kernel: hosts that a job may span are one; none if jobs are
    chunks."""
    return () if machine.chunked else resource_model_of(machine).places(machine)


def _tables(machine: Machine) -> Tables:
    """Return a machine's tables; without classes, those of a single class without limits."""
    times, sizes = _kinds(machine)
    names = [size.name for size in sizes]
    classes = len(times) + len(sizes)
    hosts = _places(machine)
    order = np.full((len(hosts), len(names)), -1, np.int64)
    ranks = np.full((len(hosts), len(times), classes), -1, np.int64)
    most = np.full((len(hosts) + 1, classes + 1), UNLIMITED, np.int64)
    most_of_user = np.empty(classes + 1, np.int64)
    for place, host in enumerate(hosts):
        said = dict(host.limits)
        # If the file gives no order, the largest class comes first, as on the Origin's general
        # hosts.
        for rank, name in enumerate([name for name in host.serves if name in names] or names[::-1]):
            size = names.index(name)
            order[place, rank] = len(times) + size
            for time, each in enumerate(times):
                # A limit of 0 keeps a class off the host.
                if all(
                    one.runs_on(host.name, host.pool) and said.get(one.name) != 0
                    for one in (each, sizes[size])
                ):
                    ranks[place, time, len(times) + size] = rank
        for number, each in enumerate((*times, *sizes)):
            if (limit := said.get(each.name, each.per_host)) is not None:
                most[place, number] = limit
    limits = [each.limit for each in (*times, *sizes)]
    of_user = [*(each.per_user for each in (*times, *sizes)), machine.per_user]
    most[-1, :-1] = [UNLIMITED if limit is None else limit for limit in limits]
    most_of_user[:] = [UNLIMITED if limit is None else limit for limit in of_user]
    rules = [
        (int(time.goes_first), -1 if time.reserve_wait is None else time.reserve_wait)
        for time in times
    ]
    sweep = np.argsort((order >= 0).sum(axis=1), kind="stable")
    return Tables(sweep, order, ranks, np.array(rules, np.int64).T.copy(), most, most_of_user)
