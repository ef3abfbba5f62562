"""Which job has which processors of which host, for the host grid: dealt out as jobs start, given back as they end."""

from __future__ import annotations

from collections.abc import Iterable

from qbatch.model.free_runs import FreeRuns
from qbatch.wire.records import HostRecord, JobRecord
from qbatch.wire.resources import parse_size


class Place:
    """One host: its record, what is free of it, who has what (job -> runs of processors), and memory by job."""

    def __init__(self, record: HostRecord) -> None:
        self.record = record
        self.free = FreeRuns(record.cpus)
        self.runs: dict[str, list[tuple[int, int]]] = {}
        self.memory: dict[str, int] = {}

    @property
    def busy(self) -> int:
        """Processors in use."""
        return sum(high - low for runs in self.runs.values() for low, high in runs)

    @property
    def memory_used(self) -> int:
        """Bytes in use by jobs that asked for memory."""
        return sum(self.memory.values())


class Grid:
    """All hosts, in the order of the configuration."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.busy = 0
        self._homes: dict[str, list[Place]] = {}

    @property
    def cpus(self) -> int:
        """Processors of all hosts."""
        return sum(place.record.cpus for place in self.places.values())

    def load(self, hosts: Iterable[HostRecord], running: Iterable[JobRecord]) -> None:
        """Begin anew with these hosts and what runs on them."""
        self.places = {host.name: Place(host) for host in hosts}
        self._homes = {}
        self.busy = 0
        for job in running:
            self.start(job)

    def update(self, host: HostRecord) -> None:
        """Take what is new of a host; its processors stay as they are unless their number changes."""
        place = self.places.get(host.name)
        if place is None or place.record.cpus != host.cpus:
            self.places[host.name] = Place(host)
            return
        place.record = host

    def start(self, job: JobRecord) -> None:
        """A job has processors from now on."""
        for name, procs, memory in chunks_of(job):
            place = self.places.get(name)
            if place is None:
                continue
            if job.id not in place.runs:
                self._homes.setdefault(job.id, []).append(place)
            taken = place.free.take(procs)
            self.busy += sum(high - low for low, high in taken)
            place.runs.setdefault(job.id, []).extend(taken)
            if memory:
                place.memory[job.id] = place.memory.get(job.id, 0) + memory

    def end(self, job: str) -> None:
        """A job has none any more."""
        for place in self._homes.pop(job, ()):
            for low, high in place.runs.pop(job, ()):
                place.free.give(low, high)
                self.busy -= high - low
            place.memory.pop(job, None)

    def copy(self) -> Grid:
        """Return a grid that goes on by itself."""
        twin = Grid()
        twin.busy = self.busy
        for name, place in self.places.items():
            new = twin.places[name] = Place(place.record)
            new.free.lows, new.free.highs = list(place.free.lows), list(place.free.highs)
            new.runs = {job: list(runs) for job, runs in place.runs.items()}
            new.memory = dict(place.memory)
        twin._homes = {job: [twin.places[each.record.name] for each in homes] for job, homes in self._homes.items()}
        return twin


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
