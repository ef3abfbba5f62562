"""Admission: a job that could never run is refused when it is submitted, with the reason.

The same rule, applied to the open hosts only, determines which jobs are parked while hosts are
closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from qbatch.model.job import PACK, PLACINGS, SCATTER, SERVER, ChunkRequest, Job
from qbatch.model.machine import Host, Machine, memory_text
from qbatch.model.reasons import Reason
from qbatch.planning.kernels import availability
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.tables import CPUS, MEMORY, NAMED, JobColumns, Requests
from qbatch.planning.kernels.types import BoolArray, Int64Array, read_only
from qbatch.planning.partitions import limits_refusal
from qbatch.planning.placement import place_chunks
from qbatch.planning.requests import (
    chunks_on_hosts,
    hosts_for,
    is_plain,
    is_sized,
    packed,
    requested,
    total_of,
)
from qbatch.planning.windows import NO_WINDOWS

_UNCOUNTED = 1 << 62
_each_fits = entry_to(availability.each_fits)


def refusal(machine: Machine, job: Job) -> Reason | None:
    """Return why a job can never run on the machine, or None if it can."""
    if job.procs < 1:
        return Reason(
            "no-processors", "admission", f"asks for {job.procs} processors; ask for at least 1"
        )
    if job.estimate < 0:
        return Reason(
            "negative-estimate",
            "admission",
            f"its estimate of {job.estimate / 1e6:.15g} s is negative",
        )
    if machine.chunked:
        return _chunks_refusal(machine, job)
    found = _whole_refusal(machine, job)
    return _resources_refusal(machine, job) if found is None and job.resources else found


def _resources_refusal(machine: Machine, job: Job) -> Reason | None:
    """Refuse a job that asks for more of a named resource than any host has, or for more in total
    than one host has."""
    for name, amount in job.resources:
        most = max((dict(host.resources).get(name, 0) for host in machine.hosts), default=0)
        if not 0 <= amount <= most:
            has = f"no host has more than {most}" if most else "no host has any"
            text = (
                f"needs {amount} {name} on one host; {has}"
                if amount > most
                else f"asks for {amount} {name}"
            )
            return Reason("too-many-resources", "admission", text, {name: amount, "most": most})
    if any(host.could_hold(job.procs, job.memory, job.resources) for host in machine.hosts):
        return None
    parts = [
        f"{job.procs} processors",
        *([f"{memory_text(job.memory)} of memory"] if job.memory else []),
    ]
    parts += [f"{amount} {name}" for name, amount in job.resources]
    text = f"needs {', '.join(parts)} on one host; no host has all of it"
    return Reason(
        "too-many-resources",
        "admission",
        text,
        {"procs": job.procs, "memory": job.memory, **dict(job.resources)},
    )


def _whole_refusal(machine: Machine, job: Job) -> Reason | None:
    widest = machine.widest_job
    if job.procs > widest:
        most = (
            f"one host; the largest host has {widest}"
            if machine.single_host
            else f"the machine; {widest} are there"
        )
        return Reason(
            "too-wide",
            "admission",
            f"needs {job.procs} processors on {most}",
            {"procs": job.procs, "widest": widest},
        )
    if machine.counts_memory and not any(
        host.could_hold(job.procs, job.memory) for host in machine.hosts
    ):
        text = (
            f"needs {job.procs} processors and {memory_text(job.memory)} of memory on one "
            "host; "
            "no host has both"
        )
        return Reason(
            "too-much-memory", "admission", text, {"procs": job.procs, "memory": job.memory}
        )
    return None


def _chunks_refusal(machine: Machine, job: Job) -> Reason | None:
    """Return which chunk can never be placed, or that the chunks cannot be placed together."""
    if is_plain(machine, job) and job.procs <= machine.procs:
        return None
    for noun, names, known in (
        ("partition", job.partitions, [each.name for each in machine.partitions]),
        (
            "reservation",
            (job.reservation,) * bool(job.reservation),
            [each.name for each in machine.reservations],
        ),
    ):
        for name in names:
            if name not in known:
                others = f"there are {', '.join(known)}" if known else "the machine has none"
                text = f"asks for the {noun} {name!r}; {others}"
                return Reason(f"no-{noun}", "admission", text)
    if job.placing not in PLACINGS:
        return Reason(
            "bad-chunks", "admission", f"placing {job.placing!r} is none of {', '.join(PLACINGS)}"
        )
    request = requested(job)
    if any(chunk.count < 1 or not is_sized(chunk) or chunk.memory < 0 for chunk in request):
        return Reason(
            "bad-chunks",
            "admission",
            "asks for a chunk without processors, or for less than no chunks or memory",
        )
    total = sum(chunk.count * chunk.procs for chunk in request)
    size = sum(chunk.count * chunk.memory for chunk in request)
    if job.chunks and (total, size) != (job.procs, job.memory):
        sizes = memory_text(size), memory_text(job.memory)
        text = (
            f"its chunks are {total} processors and {sizes[0]} in total, the job asks for "
            f"{job.procs} and {sizes[1]}"
        )
        return Reason("bad-chunks", "admission", text, {"procs": total, "memory": size})
    if job.chunks and dict(total_of(request)) != dict(job.resources):
        text = (
            f"its chunks ask for {dict(total_of(request))} in total, the job for "
            f"{dict(job.resources)}"
        )
        return Reason("bad-chunks", "admission", text)
    if text := limits_refusal(machine, job, request):
        return Reason("partition-limit", "admission", text)
    if job.placing == PACK:
        request = packed(request)
        if not request:
            return Reason(
                "bad-chunks",
                "admission",
                "asks for different hosts and for all its chunks on one (place=pack)",
            )
    for chunk in request:
        allowed = hosts_for(machine, job, chunk)
        reason = _chunk_refusal(machine, chunk, allowed)
        if reason is not None:
            return reason
    if total > machine.procs:
        text = f"needs {total} processors on the machine; {machine.procs} are there"
        return Reason("too-wide", "admission", text, {"procs": total, "widest": machine.procs})
    count = chunks_on_hosts(requested(job))
    there = sum(host.cpus > 0 for host in machine.hosts)
    if job.placing == SCATTER and count > there:
        text = f"needs {count} hosts for scattered chunks; there are {there}"
        return Reason("too-many-hosts", "admission", text, {"hosts": count, "there": there})
    return _together_refusal(machine, job)


def _chunk_refusal(
    machine: Machine, chunk: ChunkRequest, allowed: tuple[int, ...] | None
) -> Reason | None:
    """Return why a chunk can never be on the host that it names, or on any of those allowed (None:
    all)."""
    procs, memory, wanted = chunk.procs, chunk.memory, chunk.host
    if wanted >= len(machine.hosts):
        return Reason(
            "bad-chunks", "admission", f"asks for host number {wanted} of {len(machine.hosts)}"
        )
    if wanted == SERVER:
        return _server_refusal(machine, chunk)
    if allowed == ():
        with_features = f" with {', '.join(chunk.features)}" if chunk.features else ""
        text = f"no host of its partitions{with_features} may hold one of its chunks"
        return Reason("no-host", "admission", text)
    if wanted >= 0:
        host = machine.hosts[wanted]
        if procs > host.cpus:
            text = f"needs {procs} processors on host {host.name}, which has {host.cpus}"
            return Reason("too-wide", "admission", text, {"procs": procs, "widest": host.cpus})
        if host.memory and memory > host.memory:
            text = (
                f"needs {memory_text(memory)} of memory on host {host.name}, which has "
                f"{memory_text(host.memory)}"
            )
            return Reason(
                "too-much-memory", "admission", text, {"memory": memory, "most_memory": host.memory}
            )
        return _named_refusal(chunk, (host,), f"on host {host.name}, which has")
    hosts = machine.hosts if allowed is None else tuple(machine.hosts[place] for place in allowed)
    widest = max((host.cpus for host in hosts), default=0)
    if procs > widest:
        text = f"needs {procs} processors on one host; the largest host has {widest}"
        return Reason("too-wide", "admission", text, {"procs": procs, "widest": widest})
    fitting = [host for host in hosts if host.cpus >= procs]
    if not any(host.memory == 0 or host.memory >= memory for host in fitting):
        most = max(host.memory for host in fitting)
        text = (
            f"needs {procs} processors and {memory_text(memory)} of memory on one host; no host "
            "has both"
        )
        numbers = {"procs": procs, "memory": memory, "most_memory": most}
        return Reason("too-much-memory", "admission", text, numbers)
    return _named_refusal(chunk, hosts, "on one host; the most is")


def _server_refusal(machine: Machine, chunk: ChunkRequest) -> Reason | None:
    """Return why the server never has the amounts of a chunk."""
    there = dict(machine.hosts[machine.server].resources) if machine.server >= 0 else {}
    for name, amount in chunk.resources:
        if not 0 <= amount <= there.get(name, 0):
            text = f"needs {amount} {name} of the server, which has {there.get(name, 0)}"
            numbers = {name: amount, "most": there.get(name, 0)}
            return Reason("too-many-resources", "admission", text, numbers)
    return None


def _named_refusal(chunk: ChunkRequest, hosts: tuple[Host, ...], where: str) -> Reason | None:
    """Return why no host has the named resources of a chunk, or not with all the rest."""
    for name, amount in chunk.resources:
        most = max((dict(host.resources).get(name, 0) for host in hosts), default=0)
        if not 0 <= amount <= most:
            text = f"needs {amount} {name} {where} {most}"
            return Reason("too-many-resources", "admission", text, {name: amount, "most": most})
    if any(host.could_hold(chunk.procs, chunk.memory, chunk.resources) for host in hosts):
        return None
    text = f"needs {chunk_text(chunk)} on one host; no host has all of it"
    return Reason(
        "too-many-resources",
        "admission",
        text,
        {"procs": chunk.procs, "memory": chunk.memory, **dict(chunk.resources)},
    )


def chunk_text(chunk: ChunkRequest) -> str:
    """Return what a chunk asks for in words."""
    memory = [f"{memory_text(chunk.memory)} of memory"] if chunk.memory else []
    named = [f"{amount} {name}" for name, amount in chunk.resources]
    *parts, last = (f"{chunk.procs} processors", *memory, *named)
    return f"{', '.join(parts)} and {last}" if parts else last


def _together_refusal(machine: Machine, job: Job) -> Reason | None:
    """Return what is too much, although each chunk alone would fit a host of the empty machine."""
    if place_chunks(machine, machine.there, job):
        return None
    request = requested(job)
    numbers = {
        "procs": job.procs,
        "memory": job.memory,
        "hosts": chunks_on_hosts(request),
    }
    parts = " + ".join(
        f"{chunk.count} of {chunk_text(chunk).replace(' of memory', '')}"
        + (f" on host {machine.hosts[chunk.host].name}" if chunk.host >= 0 else "")
        for chunk in request
        if chunk.host != SERVER
    )
    if job.placing == SCATTER:
        there = sum(host.cpus > 0 for host in machine.hosts)
        text = (
            f"needs a host for each scattered chunk ({parts}); too few of the {there} hosts "
            "are "
            "large enough"
        )
        return Reason("too-many-hosts", "admission", text, numbers | {"there": there})
    text = (
        f"its chunks ({parts}) each fit a host, but not all of them at once, placed in this "
        "order on the empty hosts"
    )
    return Reason(_lacking(machine, job, request), "admission", text, numbers)


def _lacking(machine: Machine, job: Job, request: Sequence[ChunkRequest]) -> str:
    """Return the code of what is too much: without it, the chunks would fit together."""
    less: tuple[tuple[str, dict[str, Any]], ...] = (
        ("too-many-resources", {"resources": ()}),
        ("too-much-memory", {"resources": (), "memory": 0}),
    )
    for code, fields in less if job.resources else less[1:]:
        bare = tuple(msgspec.structs.replace(chunk, **fields) for chunk in request)
        alone = msgspec.structs.replace(job, chunks=bare, **fields)
        if place_chunks(machine, machine.there, alone):
            return code
    return "too-wide"


def _nothing(machine: Machine, place: int) -> tuple[tuple[str, int], ...]:
    """Return none of each named resource of a host."""
    return tuple((name, 0) for name, _ in machine.hosts[place].resources)


class Admission:
    """The jobs that the open hosts of a machine could ever hold."""

    def __init__(self, machine: Machine, closed: frozenset[int] = frozenset()) -> None:
        hosts = tuple(host for place, host in enumerate(machine.hosts) if place not in closed)
        self.machine = msgspec.structs.replace(machine, hosts=hosts)
        if machine.chunked and closed:
            # Chunks may name hosts by their numbers: a closed host keeps its number and has
            # nothing.
            empty = {
                place: msgspec.structs.replace(
                    machine.hosts[place], cpus=0, memory=0, resources=_nothing(machine, place)
                )
                for place in closed
            }
            emptied = tuple(empty.get(place, host) for place, host in enumerate(machine.hosts))
            self.machine = msgspec.structs.replace(machine, hosts=emptied)
        self.widest = self.machine.widest_job
        ordered = sorted(hosts, key=lambda host: -host.cpus)
        self._widths = np.array([-host.cpus for host in ordered], np.int64)
        memory = np.array([-1, *(host.memory or _UNCOUNTED for host in ordered)], np.int64)
        # The most memory among the hosts that are at least as wide as each, in order of width.
        self._memory = np.maximum.accumulate(memory)
        self._counts_memory = self.machine.counts_memory
        self._counts_only = not (self._counts_memory or machine.chunked or machine.resources)
        self._kinds = (
            {
                (host.cpus, host.memory or _UNCOUNTED, *machine.amounts(host.resources)): None
                for host in hosts
            }
            if machine.resources
            else {}
        )

    def holds(self, asked: Int64Array) -> BoolArray:
        """Return for each request, ``[N, jobs]`` by resource, whether the hosts could hold it, as
        :func:`refusal` would."""
        fits: BoolArray = asked[CPUS] <= self.widest
        if self._counts_memory:
            fits &= (
                asked[MEMORY]
                <= self._memory[np.searchsorted(self._widths, -asked[CPUS], side="right")]
            )
        if len(asked) > NAMED:
            has_host = [
                (asked <= np.array(kind)[:, np.newaxis]).all(axis=0) for kind in self._kinds
            ]
            fits &= np.any(has_host, axis=0) & (asked[NAMED:] >= 0).all(axis=0)
        return fits

    def holds_chunks(self, requests: Requests, rows: Int64Array) -> BoolArray:
        """Return for each row whether the hosts of a chunked machine could hold its chunks: jobs of
        one request are alike."""
        asked, inverse = np.unique(requests.of[rows], return_inverse=True)
        there, none = self.machine.there, read_only(np.empty(0, np.int64))
        hosts = np.array([there, there], np.int64)
        # Whether hosts are reserved at some time does not matter.
        bare = requests._replace(of=asked, firsts=NO_WINDOWS.firsts)
        jobs = JobColumns(none, none, none, read_only(np.empty((0, 0), np.int64)), bare)
        held: BoolArray = _each_fits(jobs, hosts)[inverse] == 1
        return held

    def refusal(self, job: Job) -> Reason | None:
        """Return why these hosts can never hold a job, or None if they can."""
        if (
            self._counts_only
            and 1 <= job.procs <= self.widest
            and job.estimate >= 0
            and not job.resources
        ):
            return None
        return refusal(self.machine, job)
