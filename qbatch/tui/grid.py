"""Which job has which processors of which host, for the host grid: dealt out as jobs start, given back as they end.

A suspended job keeps its place in the picture for as long as nobody runs there: who starts takes what is free, and then what
belongs to suspended jobs.
"""

from __future__ import annotations

from collections.abc import Iterable

from qbatch.model.free_runs import FreeRuns
from qbatch.wire.records import HostRecord, JobRecord
from qbatch.wire.resources import parse_size

Runs = list[tuple[int, int]]
"""Processors, as runs ``[low, high)``."""


class ShownHost:
    """One host: its record, what is free of it, who runs where and who is suspended where (job -> runs of processors), and
    memory by job.  ``lendable``: the processors of suspended jobs on which nobody runs."""

    def __init__(self, record: HostRecord) -> None:
        self.record = record
        self.free = FreeRuns(record.cpus)
        self.lendable = FreeRuns(0)
        self.runs: dict[str, Runs] = {}
        self.stopped: dict[str, Runs] = {}
        self.memory: dict[str, int] = {}

    @property
    def busy(self) -> int:
        """Processors on which somebody runs."""
        return _count(run for runs in self.runs.values() for run in runs)

    @property
    def lent(self) -> Runs:
        """Processors of suspended jobs on which others run."""
        theirs = self.runs.values()
        return [
            (max(low, first), min(high, last))
            for owned in self.stopped.values() for low, high in owned
            for runs in theirs for first, last in runs if first < high and last > low
        ]  # fmt: skip

    def take(self, job: str, procs: int) -> Runs:
        """Give a job processors to run on: free ones, then those of suspended jobs; fewer if there are not so many."""
        taken = self.free.take(procs)
        taken += self.lendable.take(procs - _count(taken))
        self.runs.setdefault(job, []).extend(taken)
        return taken

    def give_back(self, job: str) -> int:
        """A job runs here no more; return on how many processors it did."""
        runs = self.runs.pop(job, [])
        for low, high in runs:
            self._give(low, high)
        return _count(runs)

    def stop(self, job: str) -> int:
        """A job is suspended: others may run in its place; return on how many processors it ran."""
        if job not in self.runs:
            return 0
        self.stopped[job] = list(self.runs[job])
        return self.give_back(job)

    def resume(self, job: str) -> int:
        """A suspended job goes on, where it was as far as nobody runs there; return on how many processors."""
        owned = self.stopped.pop(job, [])
        taken = [part for low, high in owned for part in self.lendable.remove(low, high)]
        self.runs.setdefault(job, []).extend(taken)
        return _count(taken) + _count(self.take(job, _count(owned) - _count(taken)))

    def forget(self, job: str) -> int:
        """A job has gone; return on how many processors it ran."""
        self.memory.pop(job, None)
        for low, high in self.stopped.pop(job, []):
            for part in self.lendable.remove(low, high):
                self._give(*part)
        return self.give_back(job)

    def _give(self, low: int, high: int) -> None:
        """Processors on which nobody runs any more belong to who is suspended there, or are free."""
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
        """Return a place that goes on by itself."""
        twin = ShownHost(self.record)
        twin.free, twin.lendable = self.free.copy(), self.lendable.copy()
        twin.runs = {job: list(runs) for job, runs in self.runs.items()}
        twin.stopped = {job: list(runs) for job, runs in self.stopped.items()}
        twin.memory = dict(self.memory)
        return twin

    @property
    def memory_used(self) -> int:
        """Bytes in use by jobs that asked for memory."""
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
        """Processors of all hosts."""
        return sum(place.record.cpus for place in self.places.values())

    def load(self, hosts: Iterable[HostRecord], running: Iterable[JobRecord]) -> None:
        """Begin anew with these hosts and what runs on them."""
        self.places = {host.name: ShownHost(host) for host in hosts}
        self._touched = None
        self._homes = {}
        self.busy = 0
        # Who is suspended comes first, and who runs in his place takes it from him.
        for job in sorted(running, key=lambda job: job.state != "S"):
            self.start(job)

    def update(self, host: HostRecord) -> None:
        """Take what is new of a host; its processors stay as they are unless their number changes."""
        self._touch(host.name)
        place = self.places.get(host.name)
        if place is None or place.record.cpus != host.cpus:
            self.places[host.name] = ShownHost(host)
            return
        place.record = host

    def start(self, job: JobRecord) -> None:
        """A job has processors from now on; one that is suspended has a place."""
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
        """A job is suspended."""
        for place in self._homes.get(job, ()):
            self._touch(place.record.name)
            self.busy -= place.stop(job)

    def resume(self, job: str) -> None:
        """A suspended job goes on."""
        for place in self._homes.get(job, ()):
            self._touch(place.record.name)
            self.busy += place.resume(job)

    def end(self, job: str) -> None:
        """A job has none any more."""
        for place in self._homes.pop(job, ()):
            self._touch(place.record.name)
            self.busy -= place.forget(job)

    def _touch(self, name: str) -> None:
        if self._touched is not None:
            self._touched.add(name)

    def follow(self, other: ShownHosts) -> None:
        """Show what another grid shows now, to be looked at only; what has not changed since the last time is not copied."""
        touched, other._touched = other._touched, set()
        if touched is None or self._followed is not other:
            self.places = {name: place.copy() for name, place in other.places.items()}
        else:
            self.places.update((name, other.places[name].copy()) for name in touched)
        self.busy, self._followed = other.busy, other

    def copy(self) -> ShownHosts:
        """Return a grid that goes on by itself."""
        twin = ShownHosts()
        twin.busy = self.busy
        for name, place in self.places.items():
            twin.places[name] = place.copy()
        twin._homes = {job: [twin.places[each.record.name] for each in homes] for job, homes in self._homes.items()}
        return twin


def _count(runs: Iterable[tuple[int, int]]) -> int:
    return sum(high - low for low, high in runs)


def chunks_of(job: JobRecord) -> list[tuple[str, int, int]]:
    """Return (host, processors, bytes) of each chunk of a running job, as ``exec_vnode`` or ``exec_host`` says."""
    found = []
    if job.exec_vnode:
        for part in job.exec_vnode.split("+"):
            name, *values = part.strip("()").split(":")
            known = dict(value.split("=", 1) for value in values if "=" in value)
            found.append((name, int(known.get("ncpus", "0")), parse_size(known["mem"]) if "mem" in known else 0))
        return found
    for part in job.exec_host.split("+") if job.exec_host else ():
        name, _, slot = part.partition("/")
        _, star, count = slot.partition("*")
        found.append((name, int(count) if star else 1, 0))
    return found
