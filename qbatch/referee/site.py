"""What a schedule is checked against on a machine of hosts: the machine, what each job asked for, and
on which hosts it ran with which amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from qbatch.model.job import SERVER, JobRequest
from qbatch.model.machine import Machine
from qbatch.model.record import BoolArray, Int64Array, LogClock, Schedule
from qbatch.workloads.accounting.sacct import host_names
from qbatch.workloads.outages import Outage
from qbatch.workloads.resource_rows import ResourceRows

NOT_COUNTED = 1 << 60
"""The capacity of a host for what is not counted there."""

CPUS, MEMORY = "processors", "memory"


@dataclass(frozen=True, slots=True)
class Site:
    """A machine, and what the side file says of the jobs: ``rows``, by ``Workload.log_row`` of the
    schedule.

    ``has_hosts``: the hosts in the side file are those of this schedule, or its job rows name all
    the hosts of each job.  If neither holds, job rows name one host of each.  ``outages``:
    when hosts were closed.
    """

    machine: Machine
    rows: ResourceRows
    clock: LogClock
    has_hosts: bool = True
    outages: tuple[Outage, ...] = ()


class Parts(NamedTuple):
    """The hosts of jobs: a line for each job on each of its hosts, in order of job.

    ``job``: the row of the schedule. ``host``: the index of the host.  ``width``: by row of the
    schedule the number of its hosts, those that the machine does not have too; 0: unknown.
    ``strange``: rows and names of hosts that the machine does not have.
    """

    job: Int64Array
    host: Int64Array
    width: Int64Array
    strange: Sequence[tuple[int, str]]


class Amounts(NamedTuple):
    """What each part of a job has of one resource; ``is_least``: it may be more."""

    amount: Int64Array
    is_least: BoolArray


def parts_of(done: Schedule, site: Site) -> Parts:
    """Return the hosts of the jobs of a schedule."""
    if not site.has_hosts and done.hosts is None:
        host = np.full(len(done), -1) if done.host is None else done.host
        job = np.flatnonzero(host >= 0)
        return Parts(job, host[job], (host >= 0).astype(np.int64), ())
    texts = [site.rows.hosts.get(row, "") for row in done.workload.log_row.tolist()]
    return parts_on(site.machine, texts if done.hosts is None else done.hosts.tolist())


def parts_on(machine: Machine, texts: Sequence[str]) -> Parts:
    """Return the hosts of jobs from texts such as ``n[01-02]``, by row."""
    places = {host.name: place for place, host in enumerate(machine.real_hosts)}
    known: dict[str, tuple[list[int], list[str]]] = {}
    lists: list[list[int]] = []
    count, strange = np.zeros(len(texts), np.int64), []
    for row, text in enumerate(texts):
        if text not in known:
            names = dict.fromkeys(host_names(text))
            found = sorted(places[name] for name in names if name in places)
            known[text] = found, [name for name in names if name not in places]
        here, missing = known[text]
        lists.append(here)
        count[row] = len(here) + len(missing)
        strange += [(row, name) for name in missing]
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    host = np.fromiter(chain.from_iterable(lists), np.int64, int(lengths.sum()))
    return Parts(np.repeat(np.arange(len(texts)), lengths), host, count, strange)


class HostRequests(NamedTuple):
    """What each job asks for, by row of the schedule: how many ``nodes``, and by name the amount of
    each resource on a node.  Jobs without a line in the side file have 0."""

    nodes: Int64Array
    each: dict[str, Int64Array]


def asked_on_hosts(of: Int64Array, requests: Sequence[JobRequest]) -> HostRequests:
    """Return what jobs ask for on hosts; ``of``: the index of each job's request, -1: it has
    none."""
    nodes, each = np.zeros(len(requests) + 1, np.int64), dict[str, Int64Array]()
    for number, request in enumerate(requests):
        chunks = [chunk for chunk in request.chunks if chunk.host != SERVER]
        nodes[number] = sum(chunk.count for chunk in chunks)
        for chunk in chunks:  # a line of a side file has nodes of one kind
            for name, amount in (
                (CPUS, chunk.procs),
                (MEMORY, chunk.memory),
                *chunk.resources,
            ):
                if amount:
                    each.setdefault(name, np.zeros(len(requests) + 1, np.int64))[number] = amount
    return HostRequests(nodes[of], {name: values[of] for name, values in each.items()})


def capacities(machine: Machine, name: str) -> Int64Array | None:
    """Return what each host has of a resource, ``NOT_COUNTED`` where it does not count; None: the
    machine does not name it, so that it counts nowhere."""
    hosts = machine.real_hosts
    if name == CPUS:
        return np.array([host.cpus for host in hosts], np.int64)
    if name == MEMORY:
        found = np.array([host.memory or NOT_COUNTED for host in hosts], np.int64)
        return found if (found < NOT_COUNTED).any() else None
    if not any(name == each for host in hosts for each, _ in host.resources):
        return None
    return np.array([dict(host.resources).get(name, 0) for host in hosts], np.int64)


def amounts_on_hosts(
    parts: Parts,
    asked: HostRequests,
    name: str,
    there: Int64Array,
    is_spread_unknown: BoolArray,
    used: Int64Array,
) -> Amounts:
    """Return what each part has of a resource.

    A job that had as many hosts as it asked for has on each what it asked for; of processors it has
    those that it ``used``, by row, if they are more (whole nodes).  Of a job with an unknown spread
    only the sum is known.  Each host then has at least what the other hosts cannot have, and one
    processor.
    """
    each = asked.each[name]
    # A line of the side file is rounded up: of an uneven sum it is known that it is above this.
    is_even = ~is_spread_unknown & (parts.width == asked.nodes)
    total = np.where(is_even, asked.nodes * each, asked.nodes * (each - 1) + 1)
    total = np.where(each > 0, total, 0)
    if name == CPUS:
        total = np.where(each > 0, np.maximum(total, used), 0)
        is_even &= (total % np.maximum(asked.nodes, 1)) == 0
        each = total // np.maximum(asked.nodes, 1)
    least = (each > 0).astype(np.int64) if name == CPUS else np.zeros_like(each)
    has_more = parts.width != np.bincount(parts.job, minlength=len(each))
    capacity = np.bincount(parts.job, weights=there[parts.host], minlength=len(each))
    # Float sums are exact below 2**53; above, some host does not count this resource.
    others = np.where(capacity < 1 << 53, capacity, NOT_COUNTED).astype(np.int64)[parts.job]
    others = np.where(others == NOT_COUNTED, NOT_COUNTED, others - there[parts.host])
    rest = np.where(has_more[parts.job], 0, total[parts.job] - others)
    amount = np.where(is_even[parts.job], each[parts.job], np.maximum(least[parts.job], rest))
    # The sum of a job on one host is what it has there.
    is_shared = parts.width[parts.job] > 1
    return Amounts(amount, ~is_even[parts.job] & is_shared & (total[parts.job] > 0))
