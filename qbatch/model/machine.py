"""Hosts, pools and machines (:mod:`qbatch.model.machine_file` reads the file that describes them).

A machine is a list of hosts in pools.  An SP2 log is one host with 100 processors.  The Origin 2000
is eight hosts, and each job is inside one of them.  A PBS cluster is many hosts, and a job may span
several.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from qbatch.model.job_class import JobClass, JobClassPair
from qbatch.model.site import Site

SERVER_NAME = "@server"
"""The name of the pseudo-host that holds the amounts of the whole server (licences)."""

SHARED, EXCLUSIVE = SHARES = ("shared", "exclusive")
"""Whether jobs of a partition share hosts with others, or have them alone."""

USUAL_TIER = USUAL_PRIORITY = 1
"""The tier and the priority of a partition that names none, as in Slurm."""

CPUS_BILLED, MEMORY_BILLED = "cpus", "memory_gb"
"""The names in ``billing`` of processors, and of memory in units of 2**30 bytes."""

REPEATS = ("hourly", "daily", "weekday", "weekend", "weekly")
"""How often a reservation begins again."""

_MOST_HOSTS = 100_000
_MOST_MEMORY = 2**60
_UNITS = {
    "": 1,
    "b": 1,
    "kb": 2**10,
    "mb": 2**20,
    "gb": 2**30,
    "tb": 2**40,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


class Host(msgspec.Struct, frozen=True):
    """One host: its processors, its memory in bytes (0: memory is not counted), its pool.

    ``serves``: names of the classes that it runs, the most urgent first; empty: every class, with
    equal rank. ``limits``: pairs of the name of a class and how many of its jobs may run here at
    once. ``resources``: named amounts in addition to processors and memory, such as ``("gpu", 2)``;
    it has none of the others.  ``features``: what a job may ask its hosts to have. ``rack``: where
    the host stands, for pictures only; empty: not known. ``weight``: hosts of a smaller one come
    first, and a machine has its hosts in that order.
    """

    name: str
    cpus: int
    memory: int = 0
    pool: str = "batch"
    serves: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    resources: tuple[tuple[str, int], ...] = ()
    features: tuple[str, ...] = ()
    rack: str = ""
    weight: int = 0

    def could_hold(
        self, procs: int, memory: int, resources: tuple[tuple[str, int], ...] = ()
    ) -> bool:
        """Return whether a job would fit the empty host."""
        there = dict(self.resources)
        has_memory = self.memory == 0 or self.memory >= memory
        return (
            self.cpus >= procs
            and has_memory
            and all(there.get(name, 0) >= amount for name, amount in resources)
        )


class Partition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A set of hosts, by their indices; a host may be in several.

    ``is_default``: jobs that name no partition run here.  ``default_time``: the estimate of a job
    that has none, in microseconds (0: none).  ``max_time``, ``max_hosts``, ``max_memory_per_cpu``:
    the most that a job may ask for, in microseconds, hosts and bytes (0: no limit). ``min_hosts``:
    the fewest hosts. ``share``: one of ``SHARES``.  ``tier``: list schedulers look at jobs of a
    higher one first.  ``billing``: what an hour of a unit of each resource costs (``CPUS_BILLED``,
    ``MEMORY_BILLED`` and named resources); empty: a processor costs 1.  ``priority``: its part of
    the priority of its jobs.  ``qos``: the QOS with limits that hold for it; empty: none.
    """

    name: str
    hosts: tuple[int, ...]
    is_default: bool = False
    default_time: int = 0
    max_time: int = 0
    min_hosts: int = 0
    max_hosts: int = 0
    max_memory_per_cpu: int = 0
    share: str = SHARED
    tier: int = USUAL_TIER
    billing: tuple[tuple[str, float], ...] = ()
    priority: int = USUAL_PRIORITY
    qos: str = ""


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hosts, by their indices, that only the jobs which name it may use, for some time.

    ``start``: an ISO time, or seconds of the log, as ``--from`` takes them. ``duration``: in
    microseconds. ``repeat``: one of ``REPEATS``, or empty: once.  ``times``: how often it comes, if
    it repeats (0: for ever).  ``users``: those who may name it;
    empty: all. ``is_maintenance``: no job runs there, and it may overlap others. ``is_flexible``:
    its jobs may also use other hosts, and run before and after it.
    """

    name: str
    hosts: tuple[int, ...]
    start: str
    duration: int
    repeat: str = ""
    users: tuple[str, ...] = ()
    is_maintenance: bool = False
    is_flexible: bool = False
    times: int = 0


class Machine(msgspec.Struct, frozen=True, dict=True):
    """Hosts in a fixed order, which breaks every tie between them.

    ``single_host``: a job must be inside one host.  On a machine of one host it makes no
    difference. ``chunked``: a job is made of chunks, each inside one host, and memory counts on
    each host that has any. ``per_user``: how many jobs of one user may run at once; None: any
    number. ``reservations``: times in which hosts are kept for some jobs.  ``site``: what the site
    decides beyond its hosts, None if the file does not say it.

    A machine with server-wide amounts has one more host, the last, without processors
    (:func:`server_host`).
    """

    hosts: tuple[Host, ...]
    single_host: bool = False
    classes: tuple[JobClass, ...] = ()
    name: str = ""
    chunked: bool = False
    per_user: int | None = None
    partitions: tuple[Partition, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    site: Site | None = None

    @cached_property
    def server(self) -> int:
        """The index of the pseudo-host of server-wide amounts; -1: there are none."""
        last = len(self.hosts) - 1
        return last if self.hosts[last].name == SERVER_NAME else -1

    @cached_property
    def real_hosts(self) -> tuple[Host, ...]:
        """The hosts with processors: all but the pseudo-host of the server."""
        return self.hosts[: self.server] if self.server >= 0 else self.hosts

    @cached_property
    def procs(self) -> int:
        """Processors of all hosts."""
        return sum(host.cpus for host in self.hosts)

    @cached_property
    def widest_job(self) -> int:
        """The most processors that one job can have."""
        return (
            max((host.cpus for host in self.hosts), default=0) if self.single_host else self.procs
        )

    @cached_property
    def counts_memory(self) -> bool:
        """Whether memory limits what can run."""
        return any(host.memory > 0 for host in self.hosts)

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The names of resources other than processors and memory, in the order in which hosts
        first mention them."""
        return tuple(dict.fromkeys(name for host in self.hosts for name, _ in host.resources))

    @cached_property
    def there(self) -> list[list[int]]:
        """The total amounts, by resource (processors, memory, then ``resources``) and by host."""
        named = zip(*(self.amounts(host.resources) for host in self.hosts), strict=True)
        return [
            [host.cpus for host in self.hosts],
            [host.memory for host in self.hosts],
            *map(list, named),
        ]

    def amounts(self, named: tuple[tuple[str, int], ...]) -> tuple[int, ...]:
        """Return named amounts, of a host or of a job, in the order of ``resources``; 0 for names
        that are absent."""
        if not self.resources:
            return ()
        there = dict(named)
        return tuple(there.get(name, 0) for name in self.resources)

    @cached_property
    def asks_for_hosts(self) -> bool:
        """Whether a job of a log may ask for some of the hosts only: there are partitions, features
        or reservations."""
        return bool(self.partitions or self.reservations) or any(
            host.features for host in self.hosts
        )

    @cached_property
    def limits_users(self) -> bool:
        """Whether the number of running jobs of one user is limited, in total or for a class."""
        return self.per_user is not None or any(each.per_user is not None for each in self.classes)

    @cached_property
    def is_one_pool(self) -> bool:
        """Whether the number of free processors alone decides what fits: one host, or jobs that
        span hosts."""
        return not (self.chunked or self.counts_memory or self.resources) and (
            len(self.hosts) == 1 or not self.single_host
        )

    @cached_property
    def spans(self) -> bool:
        """Whether one job may have the free processors of all hosts."""
        return self.chunked or self.is_one_pool

    @cached_property
    def spans_hosts(self) -> bool:
        """Whether a job may be on several hosts without asking for chunks."""
        return not (self.chunked or self.single_host or len(self.hosts) == 1)

    @cached_property
    def digest(self) -> str:
        """A short hash of everything that can affect a decision: all but the names of the machine
        and its hosts, and the racks."""
        facts = self.facts()
        for host in facts["hosts"]:
            host["name"] = ""
            host.pop("rack", None)
            host.pop("weight", None)  # it is the order of the hosts
            if not host["resources"]:  # keeps the digest of results from before hosts had any
                del host["resources"]
        return hashlib.sha256(msgspec.json.encode(facts | {"name": ""})).hexdigest()[:16]

    def facts(self) -> dict[str, Any]:
        """Return everything about the machine as plain values, without features, racks and
        partitions if there are none: results and snapshots of before they existed have the same
        facts."""
        facts: dict[str, Any] = msgspec.to_builtins(self)
        for host in facts["hosts"]:
            for name in ("features", "rack", "weight"):
                if not host[name]:
                    del host[name]
        for name in ("partitions", "reservations", "site"):
            if not facts[name]:
                del facts[name]
        return facts

    @cached_property
    def class_pairs(self) -> tuple[JobClassPair, ...]:
        """Every class that a job can be in, in the order of the file: number 1 is the first.

        Plain classes come first, then pairs, the time classes of the first size first.
        """
        plain, times, sizes = (
            [each for each in self.classes if each.kind == kind]
            for kind in ("plain", "time", "size")
        )
        return (
            *(JobClassPair(each, each) for each in plain),
            *(JobClassPair(time, size) for size in sizes for time in times),
        )

    def class_of(
        self, procs: int, memory: int, estimate: int, cpu_time: int | None = None
    ) -> JobClassPair | None:
        """Return the first class with bounds that a job keeps (bytes, microseconds), or None if no
        class accepts it.

        ``cpu_time``: requested processor time of each processor; the estimate if a job gives only
        one time.
        """
        asked = (procs, memory, estimate, estimate if cpu_time is None else cpu_time)
        return next(
            (
                pair
                for pair in self.class_pairs
                if pair.time.holds(*asked) and pair.size.holds(*asked)
            ),
            None,
        )


def server_host(amounts: tuple[tuple[str, int], ...]) -> Host:
    """Return the pseudo-host of a machine with some server-wide amounts."""
    return Host(SERVER_NAME, 0, resources=amounts)


def one_host(procs: int) -> Machine:
    """Return the machine of a log: one host with ``procs`` processors, memory not counted."""
    return Machine((Host("machine", procs),))


def parse_memory(value: Any) -> int:
    """Return bytes for ``64``, ``"64GB"``, ``"512 MiB"`` (binary units); a ValueError for anything
    else."""
    if isinstance(value, bool):
        raise ValueError('a memory size is a number of bytes or a text such as "64GB"')
    if isinstance(value, int) and 0 <= value <= _MOST_MEMORY:
        return value
    text = value.lower() if isinstance(value, str) else ""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", text)
    unit = (
        "" if found is None else found[2] + ("b" if found[2] and not found[2].endswith("b") else "")
    )
    if found is None or unit not in _UNITS:
        raise ValueError(f'{value!r} is not a memory size; write bytes or a text such as "64GB"')
    size = float(found[1]) * _UNITS[unit]
    if size > _MOST_MEMORY:
        raise ValueError(f"{value!r} is more memory than can be counted")
    return int(size)


def memory_text(size: int) -> str:
    """Return an amount of memory as a whole number of the largest possible unit, such as ``64GB``;
    see :func:`parse_memory`."""
    for unit, many in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size and size % many == 0:
            return f"{size // many}{unit}"
    return f"{size}B" if size else "0"


def expand_names(pattern: str) -> list[str]:
    """Return the names of ``n[01-64]``, ``r[1-2]n[1,3-5]``: ranges keep leading zeros.

    Raises:
        ValueError: the brackets are not closed, a range runs backwards, or there are more than
            100,000 names.
    """
    found = re.search(r"\[([^\[\]]*)\]", pattern)
    if found is None:
        if "[" in pattern or "]" in pattern:
            raise ValueError(f"{pattern!r}: a bracket is not closed")
        return [pattern]
    heads: list[str] = []
    for part in found[1].split(","):
        bounds = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if bounds is None:
            raise ValueError(f"{pattern!r}: {part!r} is neither a number nor a range such as 01-64")
        low, high = bounds[1], bounds[2] or bounds[1]
        if int(high) < int(low) or int(high) - int(low) >= _MOST_HOSTS:
            raise ValueError(f"{pattern!r}: the range {part.strip()} runs backwards or is too long")
        heads += [
            pattern[: found.start()] + str(n).zfill(len(low))
            for n in range(int(low), int(high) + 1)
        ]
    tails = expand_names(pattern[found.end() :])
    if len(heads) * len(tails) > _MOST_HOSTS:
        raise ValueError(f"{pattern!r}: more than {_MOST_HOSTS} hosts")
    return [head + tail for head in heads for tail in tails]


def fold_names(names: Sequence[str]) -> list[str]:
    """Return the fewest patterns of one range each that :func:`expand_names` makes names of, in
    their order: ``n[1-4]``, ``login``."""
    found: list[tuple[str, str, int, int]] = []
    for name in names:
        ending = re.search(r"\d{1,9}$", name)
        digits = ending[0] if ending and "[" not in name else ""
        head = name[: len(name) - len(digits)]
        if digits and found:
            before, low, first, last = found[-1]
            is_next = before == head and str(last + 1).zfill(len(low)) == digits
            if low and is_next and last + 1 - first < _MOST_HOSTS:
                found[-1] = head, low, first, last + 1
                continue
        number = int(digits or 0)
        found.append((head, digits, number, number))
    return [
        f"{head}[{low}-{str(last).zfill(len(low))}]" if last > first else f"{head}{low}"
        for head, low, first, last in found
    ]
