"""The invariants: checked after every round of an audited engine, and over a finished schedule.

``Watch`` looks at the live cluster; ``breaches`` looks at the columns of a finished run, so that
the compiled loops, which bypass the engine's checks, can be audited as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from qbatch.engine.states import CODES, State
from qbatch.model.actions import (
    Allocation,
    Break,
    Promise,
    Resize,
    Resume,
    Start,
    Suspend,
    outside,
    parts_of,
    procs_of,
)
from qbatch.model.errors import AuditError
from qbatch.model.machine import Host
from qbatch.model.record import NO_PROMISE, Schedule
from qbatch.model.spans import most_at_once
from qbatch.planning.kernels.tables import FREE, NAMED, WITHHELD
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.placement import divides

if TYPE_CHECKING:
    from qbatch.engine.cluster import Cluster
    from qbatch.engine.round import Round


@dataclass(slots=True)
class _Entry:
    """Work done before ``since``; current width, 0 while suspended; the hosts."""

    done: int
    since: int
    width: int
    places: Allocation


class _WorkBook:
    """The work (processors x time) of each living job, from the rounds alone: suspension and
    resizing must conserve it.

    The cluster keeps it by entering and leaving runs.  This book finds where the two differ, and
    jobs that resumed on other processors than those on which they were suspended.
    """

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}

    def resume(self, cluster: Cluster) -> None:
        """Begin with a cluster in the middle of its work."""
        for row, run in (*cluster.running.items(), *cluster.suspended.items()):
            width = 0 if row in cluster.suspended else cluster.width(row, run.procs)
            self._entries[row] = _Entry(run.done, run.since, width, run.allocation)

    def problems(self, cluster: Cluster, done: Round) -> Iterator[str]:
        """Follow one round and return the differences from the cluster's own account."""
        for row in (*done.finished, *done.requeued):
            self._entries.pop(row, None)
        for row in done.stopped:
            self._settle(row, done.at, 0)
        for action in done.actions:
            match action:
                case Start():
                    width = cluster.width(action.row, procs_of(action.allocation))
                    self._entries[action.row] = _Entry(0, done.at, width, action.allocation)
                case Suspend():
                    self._settle(action.row, done.at, 0)
                case Resume():
                    own = procs_of(self._entries[action.row].places)
                    self._settle(action.row, done.at, cluster.width(action.row, own))
                case Resize():
                    self._settle(
                        action.row, done.at, action.procs if self._entries[action.row].width else 0
                    )
                    (had,) = self._entries[action.row].places
                    self._entries[action.row].places = (
                        msgspec.structs.replace(had, procs=action.procs),
                    )
        for row in [
            row
            for row in self._entries
            if row not in cluster.running and row not in cluster.suspended
        ]:
            del self._entries[row]  # withdrawn while it was suspended
        for runs, is_running in ((cluster.running, True), (cluster.suspended, False)):
            for row, run in runs.items():
                entry = self._entries[row]
                if (entry.done, entry.since, entry.width > 0) != (run.done, run.since, is_running):
                    number = cluster.job(row).number
                    yield f"job {number}: {run.done} processor-microseconds of work recorded, {entry.done} were done"
                if entry.places != run.allocation:
                    yield f"job {cluster.job(row).number} is not on the processors of the host that it had"

    def _settle(self, row: int, at: int, width: int) -> None:
        entry = self._entries[row]
        entry.done += (at - entry.since) * entry.width
        entry.since, entry.width = at, width


class Watch:
    """Checks a cluster after every round, against its own records."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.starts: dict[int, int] = {}
        self.promised: dict[int, int] = {}
        self.work = _WorkBook()
        self.hosts: dict[int, set[int]] = {}

    def resume(self, cluster: Cluster, now: int | None) -> None:
        """Begin with a cluster in the middle of its work."""
        self.last, self.promised = now, dict(cluster.promises)
        self.starts = {
            row: int(cluster.columns.started[row]) for row in (*cluster.running, *cluster.suspended)
        }
        self.work.resume(cluster)

    def check(self, cluster: Cluster, done: Round) -> None:
        """Check everything that must hold after a round; an AuditError names the instant and the
        finding."""
        for problem in self._problems(cluster, done):
            raise AuditError(f"audit at {done.at / 1e6:.15g} s: {problem}")
        self.last = done.at

    def _problems(self, cluster: Cluster, done: Round) -> Iterator[str]:
        if self.last is not None and done.at < self.last:
            yield f"time ran backwards from {self.last}"
        yield from self._capacity(cluster)
        yield from self._resources(cluster)
        yield from self._places(cluster)
        yield from self._exclusive(cluster)
        for row in done.requeued:
            self.starts.pop(row, None)
        yield from self.work.problems(cluster, done)
        broken: set[int] = set()
        yield from self._moved(cluster, done)
        for action in done.actions:
            if isinstance(action, Promise):
                self.promised[action.row] = min(action.at, self.promised.get(action.row, action.at))
            elif isinstance(action, Break):
                broken.add(action.row)
                if self.promised.pop(action.row, None) is None:
                    yield f"a promise to job {cluster.job(action.row).number} was broken that was never made"
            elif isinstance(action, Start):
                number = cluster.job(action.row).number
                if action.row in self.starts:
                    yield f"job {number} was started twice"
                self.starts[action.row] = done.at
                if outside(action.allocation, cluster.closed) != action.allocation:
                    yield f"job {number} was started on a closed host"
                is_whole = cluster.machine.chunked and not action.is_trial
                if is_whole and not divides(
                    cluster.machine, action.allocation, cluster.job(action.row)
                ):
                    yield f"job {number} was not given the chunks that it asked for"
                yield from _reserved(cluster, action, done.at)
                if done.at < cluster.job(action.row).submit:
                    yield f"job {number} was started before its submission"
                if not action.is_trial and done.at > self.promised.get(action.row, done.at):
                    broken.add(action.row)
        for row in sorted(broken.symmetric_difference(done.broken)):
            number = cluster.job(row).number
            yield f"the promise to job {number} was broken and not recorded, or the other way round"

    def _moved(self, cluster: Cluster, done: Round) -> Iterator[str]:
        """Check that a job resumes on the hosts on which it was suspended."""
        for action in done.actions:
            if isinstance(action, Resume) and action.row in cluster.running:
                hosts = {host for host, _, _ in parts_of(cluster.running[action.row].allocation)}
                if hosts != self.hosts.pop(action.row, hosts):
                    yield f"job {cluster.job(action.row).number} resumes on other hosts than its own"
        for row, run in cluster.suspended.items():
            self.hosts.setdefault(row, {host for host, _, _ in parts_of(run.allocation)})
        if len(self.hosts) > len(cluster.suspended):
            self.hosts = {
                row: hosts for row, hosts in self.hosts.items() if row in cluster.suspended
            }

    def _capacity(self, cluster: Cluster) -> Iterator[str]:
        procs, memory = [0] * len(cluster.machine.hosts), [0] * len(cluster.machine.hosts)
        for run in cluster.running.values():
            for place, width, size in parts_of(run.allocation):
                procs[place] += width
                memory[place] += size
        for run in cluster.suspended.values():
            for place, _, size in parts_of(run.allocation):
                memory[place] += size if run.holds_memory else 0
        for place, host in enumerate(cluster.machine.hosts):
            if place in cluster.closed:
                withheld = (host.cpus - procs[place], host.memory - memory[place])
                if cluster.free[place] or cluster.free_memory[place] or procs[place] > host.cpus:
                    yield f"host {host.name} is closed and shows something free"
                found = tuple(cluster.hosts[WITHHELD, :NAMED, place].tolist())
                if found[0] != withheld[0] or (host.memory and found != withheld):
                    yield f"host {host.name} is closed and withholds {found}, not {withheld}"
                continue
            if procs[place] > host.cpus or procs[place] + cluster.free[place] != host.cpus:
                yield f"host {host.name}: {procs[place]} of {host.cpus} processors used, {cluster.free[place]} free"
            if host.memory and memory[place] + cluster.free_memory[place] != host.memory:
                yield f"host {host.name}: {memory[place]} bytes used, {cluster.free_memory[place]} free"
            if host.memory and cluster.free_memory[place] < 0:
                yield f"host {host.name}: memory is overcommitted"

    def _resources(self, cluster: Cluster) -> Iterator[str]:
        """Check named resources: each host gives at most what it has; the rest is free, or withheld
        while the host is closed."""
        machine = cluster.machine
        if not machine.resources:
            return
        given = {host: [0] * len(machine.resources) for host in range(len(machine.hosts))}
        holders = [
            *cluster.running.values(),
            *(run for run in cluster.suspended.values() if run.holds_memory),
        ]
        for run in holders:
            for chunk in run.allocation:
                asked = machine.amounts(cluster.job(run.row).resources)
                if not machine.chunked and chunk.resources != asked:
                    yield f"job {cluster.job(run.row).number} was not given the resources that it asked for"
                    return
                for place in chunk.hosts if chunk.resources else ():
                    given[place] = [
                        sum(pair) for pair in zip(given[place], chunk.resources, strict=True)
                    ]
        for place, host in enumerate(machine.hosts):
            left, none = (WITHHELD, FREE) if place in cluster.closed else (FREE, WITHHELD)
            table = cluster.hosts[:, NAMED:, place].tolist()
            there = machine.amounts(host.resources)
            for name, many, used, free, other in zip(
                machine.resources, there, given[place], table[left], table[none], strict=True
            ):
                if used > many or used + free != many or other:
                    yield f"host {host.name}: {used} of {many} {name} used, {free} free"

    def _exclusive(self, cluster: Cluster) -> Iterator[str]:
        if not cluster.machine.chunked:
            return
        users = Counter(
            place for run in cluster.running.values() for place, _, _ in parts_of(run.allocation)
        )
        for row, run in cluster.running.items():
            if cluster.job(row).is_exclusive and any(
                users[place] > 1
                for place, _, _ in parts_of(run.allocation)
                if place != cluster.machine.server
            ):
                yield f"job {cluster.job(row).number} is not alone on its hosts"

    def _places(self, cluster: Cluster) -> Iterator[str]:
        queue, parked = cluster.waiting.rows.tolist(), cluster.parked.rows.tolist()
        if queue != sorted(set(queue)) or parked != sorted(set(parked)):
            yield "the queue is out of order or holds a job twice"
        if set(queue) & set(parked):
            yield "a job is parked and in the queue"
        expected = (
            (State.QUEUED, {*queue, *parked}),
            (State.RUNNING, {*cluster.running}),
            (State.SUSPENDED, {*cluster.suspended}),
        )
        for state, rows in expected:
            misplaced = rows ^ {
                row for row, code in enumerate(cluster.codes) if code == CODES[state]
            }
            if misplaced:
                yield f"jobs lost or doubled: {sorted(misplaced)[:5]} are not where '{state.value}' says"


def _reserved(cluster: Cluster, action: Start, at: int) -> Iterator[str]:
    """Check that a job starts on no host that is reserved for others during its estimate, and that
    a job of a reservation starts inside it."""
    job, machine = cluster.job(action.row), cluster.machine
    number = next(
        (n for n, each in enumerate(machine.reservations) if each.name == job.reservation), -1
    )
    begin, over, of = cluster.windows.table if len(cluster.windows.firsts) else np.empty((3, 0))
    end = max(at + job.estimate, at + 1)
    for host, _, _ in parts_of(action.allocation) if len(begin) else ():
        if host == machine.server:
            continue
        here = slice(*cluster.windows.firsts[host : host + 2])
        is_in = (begin[here] < end) & (over[here] > at)
        if (is_in & (of[here] != number)).any():
            yield f"job {job.number} was started on {machine.hosts[host].name}, which is reserved"
        is_own = (of[here] == number) & (begin[here] <= at) & (over[here] > at)
        if number >= 0 and not (machine.reservations[number].is_flexible or is_own.any()):
            yield f"job {job.number} was started outside its reservation"


def breaches(
    schedule: Schedule,
    *,
    is_one_pool: bool = True,
    hosts: Sequence[Host] = (),
    has_trials: bool = False,
    keeps_deadlines: bool = False,
) -> list[str]:
    """Return the breaches in a finished schedule, at most one line per invariant.

    The invariants: capacity at every instant, on one pool of processors, or on each of ``hosts`` if
    each holds whole jobs; there also memory, unless the policy ``has_trials``, which hold less than
    they ask for.  No job started before its submission; no end before the run time is over;
    promises kept.  Of jobs with several execution intervals, no two overlap, and together they
    contain all the work.  If the policy ``keeps_deadlines``: an accepted job ended by its deadline,
    unless a promise to it was broken before.
    """
    work, ran, found = schedule.workload, schedule.ran, []

    def first(rows: np.ndarray[tuple[int], np.dtype[np.bool_]], text: str) -> None:
        if rows.any():
            row = int(np.flatnonzero(rows)[0])
            found.append(
                f"job {work.number[row]}: {text} (start {schedule.start[row] / 1e6:.15g} s)"
            )

    first(ran & (schedule.start < work.submit), "started before its submission")
    first(ran & (schedule.end < schedule.start + work.run), "ended before its run time was over")
    first(
        ran & (schedule.promise != NO_PROMISE) & (schedule.start > schedule.promise),
        "started after its promise",
    )
    first(~ran & (schedule.end >= 0), "ended without a start")
    if keeps_deadlines:
        kept = ran if schedule.broken is None else ran & (schedule.broken == 0)
        first(
            kept & (work.deadline >= 0) & (schedule.end > work.deadline),
            "was taken in and ended after its deadline",
        )
    whole, pieces = (
        ran.copy(),
        np.empty((0, 6), np.int64) if schedule.pieces is None else schedule.pieces,
    )
    whole[pieces[:, 0]] = False
    found += _broken_work(schedule, pieces)
    begins = np.concatenate([schedule.start[whole], pieces[:, 1]])
    ends = np.concatenate([schedule.end[whole], pieces[:, 2]])
    amounts = np.concatenate([work.procs[whole], pieces[:, 3]])
    if is_one_pool:
        most, at = most_at_once(begins, ends, amounts)
        if most > work.procs_total:
            found.append(f"{most} of {work.procs_total} processors used at {at / 1e6:.15g} s")
    elif schedule.host is not None:
        where = np.concatenate([schedule.host[whole], pieces[:, 4]])
        found += _overfull_hosts(
            schedule, hosts, (begins, ends, amounts), where, has_trials=has_trials
        )
    return found


def _overfull_hosts(
    schedule: Schedule,
    hosts: Sequence[Host],
    spans: tuple[Int64Array, Int64Array, Int64Array],
    where: Int64Array,
    *,
    has_trials: bool,
) -> list[str]:
    """Return the hosts that had more processors or more memory in use than they have."""
    work, ran, found = schedule.workload, schedule.ran, []
    for place, host in enumerate(hosts):
        is_here = where == place
        most, at = most_at_once(*(span[is_here] for span in spans))
        if most > host.cpus:
            found.append(
                f"host {host.name}: {most} of {host.cpus} processors used at {at / 1e6:.15g} s"
            )
        if schedule.pieces is not None:
            continue
        asked = [("bytes", host.memory, work.memory)] if host.memory and not has_trials else []
        asked += [
            (name, dict(host.resources).get(name, 0), column)
            for name, column in work.resources.items()
        ]
        is_here = ran & (schedule.host == place)
        for name, there, column in asked:
            most, at = most_at_once(
                schedule.start[is_here], schedule.end[is_here], column[is_here].astype(np.int64)
            )
            if most > there:
                found.append(
                    f"host {host.name}: {most} of {there} {name} used at {at / 1e6:.15g} s"
                )
    return found[:1]


def _broken_work(schedule: Schedule, pieces: Int64Array) -> list[str]:
    """Return the jobs with execution intervals that overlap, or do not add up to processors x run
    time (rounded up to 1 us)."""
    work = schedule.workload
    done: dict[int, int] = {}
    last: dict[int, tuple[int, int]] = {}
    found = []
    for row, begin, end, procs, _, is_kept in pieces.tolist():
        if begin < last.get(row, (begin, 0))[0] or end < begin:
            found.append(f"job {work.number[row]}: runs twice at {begin / 1e6:.15g} s")
        last[row] = end, procs
        done[row] = done.get(row, 0) + (end - begin) * procs * is_kept
    for row, area in done.items():
        wanted = int(work.run[row]) * int(work.procs[row])
        if not wanted <= area < wanted + last[row][1] or last[row][0] != schedule.end[row]:
            text = (
                f"{area} processor-microseconds of work done by {last[row][0] / 1e6:.15g} s, "
                f"{wanted} were to be done"
            )
            found.append(f"job {work.number[row]}: {text}")
    return found[:1]
