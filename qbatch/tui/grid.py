"""The processors of each job on each host, for the host grid: assigned when jobs start, released
when they end.

A suspended job keeps its place in the picture until another job runs there: a starting job gets
free processors first, and then those of suspended jobs.
"""

from __future__ import annotations

from collections.abc import Iterable

from qbatch.model.free_runs import FreeRuns
from qbatch.wire.records import HostRecord, JobRecord
from qbatch.wire.resources import parse_size

Runs = list[tuple[int, int]]
"""Processors, as runs ``[low, high)``."""


class ShownHost:
    """One host: its record, its free processors, the running and the suspended jobs (job -> runs of
    processors), and memory by job.  ``lendable``: the processors of suspended jobs on which no job
    runs."""

    def __init__(self, record: HostRecord) -> None:
        self.record = record
        self.free = FreeRuns(record.cpus)
        self.lendable = FreeRuns(0)
        self.runs: dict[str, Runs] = {}
        self.stopped: dict[str, Runs] = {}
        self.memory: dict[str, int] = {}

    @property
    def busy(self) -> int:
        """Number of processors on which a job runs."""
        return _count(run for runs in self.runs.values() for run in runs)

    @property
    def lent(self) -> Runs:
        """Processors of suspended jobs on which other jobs run."""
        theirs = self.runs.values()
        return [
            (max(low, first), min(high, last))
            for owned in self.stopped.values()
            for low, high in owned
            for runs in theirs
            for first, last in runs
            if first < high and last > low
        ]

    def take(self, job: str, procs: int) -> Runs:
        """Assign processors to a job: free ones, then those of suspended jobs; fewer if there are
        not enough."""
        taken = self.free.take(procs)
        taken += self.lendable.take(procs - _count(taken))
        self.runs.setdefault(job, []).extend(taken)
        return taken

    def give_back(self, job: str) -> int:
        """Release the processors of a job; return their number."""
        runs = self.runs.pop(job, [])
        for low, high in runs:
            self._give(low, high)
        return _count(runs)

    def stop(self, job: str) -> int:
        """Suspend a job, so that others may run in its place; return the number of its
        processors."""
        if job not in self.runs:
            return 0
        self.stopped[job] = list(self.runs[job])
        return self.give_back(job)

    def resume(self, job: str) -> int:
        """Resume a suspended job, in its old place if no job runs there; return the number of its
        processors."""
        owned = self.stopped.pop(job, [])
        taken = [part for low, high in owned for part in self.lendable.remove(low, high)]
        self.runs.setdefault(job, []).extend(taken)
        return _count(taken) + _count(self.take(job, _count(owned) - _count(taken)))

    def forget(self, job: str) -> int:
        """Remove a job; return the number of processors on which it ran."""
        self.memory.pop(job, None)
        for low, high in self.stopped.pop(job, []):
            for part in self.lendable.remove(low, high):
                self._give(*part)
        return self.give_back(job)

    def _give(self, low: int, high: int) -> None:
        """Return released processors to the job that is suspended there, or to the free ones."""
        for first, last in sorted(run for runs in self.stopped.values() for run in runs):
            first, last = max(first, low), min(last, high)
            if first >= last:
                continue
            if low < first:
                self.free.give(low, first)
            self.lendable.give(first, last)
            low = last
        if low < high:
            self.free.give(low, high)

    def copy(self) -> ShownHost:
        duplicate = ShownHost(self.record)
        duplicate.free, duplicate.lendable = self.free.copy(), self.lendable.copy()
        duplicate.runs = {job: list(runs) for job, runs in self.runs.items()}
        duplicate.stopped = {job: list(runs) for job, runs in self.stopped.items()}
        duplicate.memory = dict(self.memory)
        return duplicate

    @property
    def memory_used(self) -> int:
        return sum(self.memory.values())


class ShownHosts:
    """All hosts, in the order of the configuration."""

    def __init__(self) -> None:
        self.places: dict[str, ShownHost] = {}
        self.busy = 0
        self._homes: dict[str, list[ShownHost]] = {}
        self._touched: set[str] | None = None
        self._followed: ShownHosts | None = None

    @property
    def cpus(self) -> int:
        return sum(place.record.cpus for place in self.places.values())

    def load(self, hosts: Iterable[HostRecord], running: Iterable[JobRecord]) -> None:
        """Start again with these hosts and their running jobs."""
        self.places = {host.name: ShownHost(host) for host in hosts}
        self._touched = None
        self._homes = {}
        self.busy = 0
        # Suspended jobs come first; jobs that run in their place then take the processors.
        for job in sorted(running, key=lambda job: job.state != "S"):
            self.start(job)

    def update(self, host: HostRecord) -> None:
        """Update a host; its processors stay assigned unless their number changes."""
        self._touch(host.name)
        place = self.places.get(host.name)
        if place is None or place.record.cpus != host.cpus:
            self.places[host.name] = ShownHost(host)
            return
        place.record = host

    def start(self, job: JobRecord) -> None:
        """Assign processors to a started job; a suspended one keeps a place."""
        for name, procs, memory in chunks_of(job):
            place = self.places.get(name)
            if place is None:
                continue
            homes = self._homes.setdefault(job.id, [])
            if place not in homes:
                homes.append(place)
            self._touch(name)
            self.busy += _count(place.take(job.id, procs))
            if memory:
                place.memory[job.id] = place.memory.get(job.id, 0) + memory
        if job.state == "S":
            self.stop(job.id)

    def stop(self, job: str) -> None:
        """Suspend a job."""
        for place in self._homes.get(job, ()):
            self._touch(place.record.name)
            self.busy -= place.stop(job)

    def resume(self, job: str) -> None:
        """Resume a suspended job."""
        for place in self._homes.get(job, ()):
            self._touch(place.record.name)
            self.busy += place.resume(job)

    def end(self, job: str) -> None:
        for place in self._homes.pop(job, ()):
            self._touch(place.record.name)
            self.busy -= place.forget(job)

    def _touch(self, name: str) -> None:
        if self._touched is not None:
            self._touched.add(name)

    def follow(self, other: ShownHosts) -> None:
        """Copy another grid for display; hosts that have not changed since the last time are not
        copied."""
        touched, other._touched = other._touched, set()
        if touched is None or self._followed is not other:
            self.places = {name: place.copy() for name, place in other.places.items()}
        else:
            self.places.update((name, other.places[name].copy()) for name in touched)
        self.busy, self._followed = other.busy, other

    def copy(self) -> ShownHosts:
        duplicate = ShownHosts()
        duplicate.busy = self.busy
        for name, place in self.places.items():
            duplicate.places[name] = place.copy()
        duplicate._homes = {
            job: [duplicate.places[each.record.name] for each in homes]
            for job, homes in self._homes.items()
        }
        return duplicate


def _count(runs: Iterable[tuple[int, int]]) -> int:
    return sum(high - low for low, high in runs)


def chunks_of(job: JobRecord) -> list[tuple[str, int, int]]:
    """Return (host, processors, bytes) of each chunk of a running job, from ``exec_vnode`` or
    ``exec_host``."""
    found = []
    if job.exec_vnode:
        for part in job.exec_vnode.split("+"):
            name, *values = part.strip("()").split(":")
            known = dict(value.split("=", 1) for value in values if "=" in value)
            found.append(
                (
                    name,
                    int(known.get("ncpus", "0")),
                    parse_size(known["mem"]) if "mem" in known else 0,
                )
            )
        return found
    for part in job.exec_host.split("+") if job.exec_host else ():
        name, _, slot = part.partition("/")
        _, star, count = slot.partition("*")
        found.append((name, int(count) if star else 1, 0))
    return found
