"""A machine made from accounting records: each host that a job ran on, with the most processors in
use there at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.errors import InputError
from qbatch.model.machine import Host, Machine
from qbatch.workloads.accounting.record import AccountingRecord
from qbatch.workloads.header import readable
from qbatch.workloads.log import counted

_DIGITS = re.compile(r"(\d+)")


class HostsSeen(NamedTuple):
    """A machine of the hosts in the records, and remarks for its file: other findings, one per
    line."""

    machine: Machine
    remarks: tuple[str, ...]


def machine_seen(
    jobs: Sequence[AccountingRecord], *, is_anonymous: bool = False, hides_queues: bool = False
) -> HostsSeen:
    """Return the hosts that jobs ran on, by name, each as large as the most in use there; others
    are not there.

    A suspended job counts for the second after its start, as in the peak of the log: the time of
    its suspension is unknown. The pool of a host is the partition (the queue) from which most of
    its jobs came. ``is_anonymous``: hosts are numbered instead of named; ``hides_queues``: so are
    partitions.  Hosts and partitions of several clusters have the name of theirs before their own.

    Raises:
        InputError: no record names a host.
    """
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    ran: dict[str, Counter[int]] = {}
    clusters = dict.fromkeys(job.cluster for job in jobs)
    of_cluster = {
        cluster: f"cluster{number}/" if is_anonymous else f"{cluster}/"
        for number, cluster in enumerate(clusters, 1)
        if len(clusters) > 1
    }
    for job in jobs:
        before = of_cluster.get(job.cluster, "")
        queue = f"{before}{job.queue or 'main'}" if before else job.queue
        end = job.end if job.suspended <= 0 else min(job.end, job.start + 1)
        cores_of_all = sum(cores for _, cores in job.hosts)
        for name, cores in job.hosts:
            if cores > 0:
                host = names.setdefault(f"{before}{name}", len(names))
                rows.append(
                    (host, job.start, end, cores, max(job.memory_asked, 0) * cores // cores_of_all)
                )
                ran.setdefault(queue, Counter())[host] += 1
    if not rows:
        raise InputError(
            "no record names the hosts of a job: no machine file can be made; leave --machine-file "
            "out"
        )
    table = np.array(rows, np.int64)
    cpus, memory = (_most_at_once(table[:, [0, 1, 2, column]], len(names)) for column in (3, 4))
    called = {
        queue: f"partition{number}" if hides_queues else _printable(queue)
        for number, queue in enumerate(ran, 1)
    }
    called |= {"": "main"}  # of jobs without a partition
    # By name, n2 before n10.
    ordered = sorted(
        names,
        key=lambda name: [
            (int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(name)
        ],
    )
    shown = (
        [f"host{number:0{len(str(len(names)))}d}" for number in range(1, len(names) + 1)]
        if is_anonymous
        else ordered
    )
    hosts = []
    for name, own in zip(shown, ordered, strict=True):
        mostly = max(ran, key=lambda queue: ran[queue][names[own]])
        hosts.append(Host(name, int(cpus[names[own]]), pool=called[mostly]))
    machine = Machine(tuple(hosts), name="hosts seen in accounting records")
    return HostsSeen(machine, tuple(_remarks(ran, called, cpus, memory)))


def _printable(name: str) -> str:
    return "".join(letter if letter.isprintable() else "_" for letter in readable(name))


def _remarks(
    ran: Mapping[str, Counter[int]], called: Mapping[str, str], cpus: Any, memory: Any
) -> Iterator[str]:
    """Yield the findings about each partition that the format of a machine file cannot contain."""
    yield (
        "Made of accounting records: of each host, the most that was in use at once. "
        "Hosts on which nothing ran are not here."
    )
    for queue, hosts in ran.items():
        own = sorted(hosts)
        others = [
            called[other]
            for other in ran
            if other != queue and not hosts.keys().isdisjoint(ran[other])
        ]
        asked = int(memory[own].max()) >> 10
        shared = f"; some of its nodes are also in {', '.join(others)}" if others else ""
        yield (
            f"Partition {called[queue]}: {counted(len(own), 'node', 'nodes')}, "
            f"{int(cpus[own].sum()):,} processors, at most "
            f"{int(cpus[own].max())} on a node; memory asked for at once: "
            f"{f'up to {asked:,} MB on a node' if asked else 'not in the records'}{shared}."
        )
    yield "A machine file has no partitions: a replay sends every job to any host, whatever its pool."
    yield (
        "Memory is not counted below: what jobs asked for is less than a node has, and it counts "
        "only with single_host = true. "
        'Where the size is known, write memory = "64GB" or so in place of the 0.'
    )


def _most_at_once(rows: Any, hosts: int) -> Any:
    """Return the most processors in use at once on each host, of rows of host, start, end,
    processors."""
    host, start, end, cores = rows.T
    most = np.zeros(hosts, np.int64)
    np.maximum.at(most, host, cores)  # also for a job of no length
    of, at = np.concatenate([host, host]), np.concatenate([end, start])
    change = np.concatenate([-cores, cores])
    order = np.lexsort((np.repeat([0, 1], len(host)), at, of))  # at one instant, ends come first
    # Every host ends with none in use: one sum serves them all.
    np.maximum.at(most, of[order], np.cumsum(change[order]))
    return most
