"""Hosts, pools and machines, and the machine file that describes them.

A machine is a list of hosts in pools.  An SP2 log is one host with 100 processors; the Origin 2000 is eight
hosts, and a job lives inside one of them; a PBS cluster is many hosts, and a job may span several.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from qbatch.model.errors import suggestion
from qbatch.model.job_class import JobClass, JobClassPair, class_of, class_pairs
from qbatch.model.toml_text import TomlText

SCHEMA = 1
"""The version of the machine file that this program reads."""

_MOST_HOSTS = 100_000
_MOST_MEMORY = 2**60
_UNITS = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_HOST_KEYS = ("name", "cpus", "memory", "pool", "serves", "limits")
_CLASS_KEYS = (
    "name", "kind", "procs", "memory", "time", "cpu_time", "per_host", "limit", "per_user", "reserve_wait", "hosts",
    "goes_first",
)  # fmt: skip
_KINDS = ("time", "size")
_TOP_KEYS = ("schema", "name", "single_host", "per_user", "host", "class")


class Host(msgspec.Struct, frozen=True):
    """One host: its processors, its memory in bytes (0: memory is not counted), its pool.

    ``serves``: names of the classes whose jobs it runs, the most urgent first; empty: those of every class, alike.
    ``limits``: pairs of the name of a class and how many of its jobs may run here at once.
    """

    name: str
    cpus: int
    memory: int = 0
    pool: str = "batch"
    serves: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()


class Machine(msgspec.Struct, frozen=True):
    """Hosts in a fixed order, which breaks every tie between them.

    ``single_host``: a job must live inside one host.  On a machine of one host it makes no difference.
    ``chunked``: a job is made of chunks, each of which lives inside one host, and memory counts on each host that has any.
    ``per_user``: how many jobs of one user may run at once; None: any number.
    """

    hosts: tuple[Host, ...]
    single_host: bool = False
    classes: tuple[JobClass, ...] = ()
    name: str = ""
    chunked: bool = False
    per_user: int | None = None

    @property
    def procs(self) -> int:
        """Processors of all hosts."""
        return sum(host.cpus for host in self.hosts)

    @property
    def widest_job(self) -> int:
        """The most processors that one job can have."""
        return max((host.cpus for host in self.hosts), default=0) if self.single_host else self.procs

    @property
    def counts_memory(self) -> bool:
        """Whether memory limits what can run."""
        return any(host.memory > 0 for host in self.hosts)

    @property
    def is_one_pool(self) -> bool:
        """Whether the number of free processors alone decides what fits: one host, or jobs that span hosts."""
        return not (self.chunked or self.counts_memory) and (len(self.hosts) == 1 or not self.single_host)

    @property
    def class_pairs(self) -> tuple[JobClassPair, ...]:
        """Every class that a job can be in, in the order of the file: number 1 is the first."""
        return class_pairs(self.classes)

    def class_of(self, procs: int, memory: int, estimate: int, cpu_time: int | None = None) -> JobClassPair | None:
        """Return the class of a job (bytes, microseconds), or None where no class takes it."""
        return class_of(self.classes, procs, memory, estimate, cpu_time)


def one_host(procs: int) -> Machine:
    """Return the machine of a log: one host with ``procs`` processors, memory not counted."""
    return Machine((Host("machine", procs),))


def parse_memory(value: Any) -> int:
    """Return bytes for ``64``, ``"64GB"``, ``"512 MiB"`` (binary units).

    Raises:
        ValueError: for anything else.
    """
    if isinstance(value, bool):
        raise ValueError('a memory size is a number of bytes or a text such as "64GB"')
    if isinstance(value, int) and 0 <= value <= _MOST_MEMORY:
        return value
    found = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", str(value).lower()) if isinstance(value, str) else None
    )
    unit = "" if found is None else found[2] + ("b" if found[2] and not found[2].endswith("b") else "")
    if found is None or unit not in _UNITS:
        raise ValueError(f'{value!r} is no memory size; write bytes or a text such as "64GB"')
    size = float(found[1]) * _UNITS[unit]
    if size > _MOST_MEMORY:
        raise ValueError(f"{value!r} is more memory than can be counted")
    return int(size)


def expand_names(pattern: str) -> list[str]:
    """Return the names of ``n[01-64]``, ``r[1-2]n[1,3-5]``: ranges keep leading zeros.

    Raises:
        ValueError: if the brackets are not closed, a range runs backwards, or there are more than 100,000 names.
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
        heads += [pattern[: found.start()] + str(n).zfill(len(low)) for n in range(int(low), int(high) + 1)]
    tails = expand_names(pattern[found.end() :])
    if len(heads) * len(tails) > _MOST_HOSTS:
        raise ValueError(f"{pattern!r}: more than {_MOST_HOSTS} hosts")
    return [head + tail for head in heads for tail in tails]


def parse_machine(text: str, source: str) -> Machine:
    """Return the machine that a TOML text describes; ``source`` names it in errors.

    Raises:
        InputError: with the key, the line where it stands, the reason and the way out.
    """
    reader = _Reader(text, source)
    document = reader.document
    reader.known_keys(document, _TOP_KEYS, "")
    if type(document.get("schema")) is not int or document["schema"] != SCHEMA:
        raise reader.error("schema", f'must be {SCHEMA}; write "schema = {SCHEMA}" at the top')
    single_host = document.get("single_host", False)
    if not isinstance(single_host, bool):
        raise reader.error("single_host", "must be true or false")
    class_tables = reader.tables("class")
    class_names = {each["name"] for each in class_tables if isinstance(each.get("name"), str)}
    hosts = tuple(host for entry in reader.tables("host") for host in reader.hosts(entry, class_names))
    if not hosts:
        raise reader.error("host", "there is no host; add a [[host]] table with name and cpus")
    seen: set[str] = set()
    for host in hosts:
        if host.name in seen:
            raise reader.error("name", f"the host {host.name!r} is there twice")
        seen.add(host.name)
    if not single_host and len(hosts) > 1 and any(host.memory for host in hosts):
        raise reader.error(
            "memory", "counts only where a job stays inside one host; write single_host = true or leave memory out"
        )
    classes = tuple(reader.job_class(entry, seen) for entry in class_tables)
    reader.check_kinds(classes)
    per_user = reader.whole(document, "per_user", 0)
    return Machine(hosts, single_host, classes, str(document.get("name", "")), per_user=per_user)


class _Reader(TomlText):
    """Takes a machine file apart."""

    def known_keys(self, table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
        """Refuse a key that is not known, with the nearest one that is."""
        for key in table:
            if key not in known:
                raise self.error(key, f"is not known{where}{suggestion(key, known)} (known: {', '.join(known)})")

    def whole(self, table: dict[str, Any], key: str, least: int) -> int | None:
        """Return a whole number of at least ``least``, or None where the key is absent."""
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**31 - 1:
            raise self.error(key, f"{value!r} is not a whole number from {least} to {2**31 - 1}", value)
        return value

    def memory(self, table: dict[str, Any]) -> int | None:
        """Return a memory size in bytes, or None where the key is absent."""
        if "memory" not in table:
            return None
        try:
            return parse_memory(table["memory"])
        except ValueError as error:
            raise self.error("memory", str(error), table["memory"]) from error

    def hosts(self, table: dict[str, Any], classes: set[str]) -> list[Host]:
        """Return the hosts of one [[host]] table."""
        self.known_keys(table, _HOST_KEYS, " in [[host]]")
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise self.error("host", 'needs a name, such as name = "n[01-64]"')
        cpus = self.whole(table, "cpus", 1)
        if cpus is None:
            raise self.error("host", f"the host {name!r} needs cpus, a whole number", name)
        try:
            names = expand_names(name)
        except ValueError as error:
            raise self.error("name", str(error), name) from error
        memory, pool = self.memory(table) or 0, str(table.get("pool", "batch"))
        serves, limits = self.names(table, "serves", classes, "class"), self.limits(table, classes)
        return [Host(each, cpus, memory, pool, serves, limits) for each in names]

    def names(self, table: dict[str, Any], key: str, known: set[str], noun: str) -> tuple[str, ...]:
        """Return a list of names of which each is known."""
        listed = table.get(key, [])
        if not isinstance(listed, list):
            raise self.error(key, f"must be a list of names of a {noun}, such as {sorted(known)[:2]}")
        for name in map(str, listed):
            if name not in known:
                raise self.error(key, f"there is no {noun} {name!r}{suggestion(name, known)}", name)
        return tuple(map(str, listed))

    def limits(self, table: dict[str, Any], classes: set[str]) -> tuple[tuple[str, int], ...]:
        """Return how many jobs of which class may run on a host."""
        limits = table.get("limits", {})
        if not isinstance(limits, dict):
            raise self.error("limits", "must be a table of a number for each class, such as { large = 3, medium = 4 }")
        self.names({"limits": list(limits)}, "limits", classes, "class")
        for name, most in limits.items():
            if isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= 2**31 - 1:
                raise self.error("limits", f"{name} = {most!r} is not a whole number from 0 to {2**31 - 1}", name)
        return tuple(limits.items())

    def job_class(self, table: dict[str, Any], hosts: set[str]) -> JobClass:
        """Return the class of one [[class]] table."""
        self.known_keys(table, _CLASS_KEYS, " in [[class]]")
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise self.error("class", "needs a name")
        kind = table.get("kind", "plain")
        if kind not in ("plain", *_KINDS):
            raise self.error(
                "kind", f"{kind!r} is no kind of class; use one of {', '.join(_KINDS)}, or leave it out", kind
            )
        goes_first = table.get("goes_first", False)
        if not isinstance(goes_first, bool):
            raise self.error("goes_first", "must be true or false", goes_first)
        bounds = {"time": ("procs", "memory"), "size": ("time", "cpu_time", "reserve_wait")}
        for key in bounds.get(kind, ()):
            if key in table:
                raise self.error(key, f"bounds no class of the kind {kind!r}; leave it out of {name!r}", table[key])
        return JobClass(
            name,
            self.whole(table, "procs", 1),
            self.memory(table),
            self.seconds(table, "time", 1),
            self.whole(table, "per_host", 0),
            self.whole(table, "limit", 0),
            self.whole(table, "per_user", 0),
            self.seconds(table, "reserve_wait", 0),
            self.names(table, "hosts", hosts, "host"),
            self.seconds(table, "cpu_time", 1),
            kind,
            goes_first,
        )

    def seconds(self, table: dict[str, Any], key: str, least: int) -> int | None:
        """Return whole seconds as microseconds, or None where the key is absent."""
        value = self.whole(table, key, least)
        return None if value is None else value * 1_000_000

    def check_kinds(self, classes: tuple[JobClass, ...]) -> None:
        """Refuse classes that make no pairs: a kind that is missing or mixed with plain ones, a name twice, a wrong order."""
        paired = [each for each in classes if each.kind != "plain"]
        if not paired:
            return
        names = [each.name for each in classes]
        for name in names:
            if names.count(name) > 1:
                raise self.error("name", f"the class {name!r} is there twice", name)
        for kind in _KINDS:
            same = [each for each in classes if each.kind == kind]
            if not same or len(paired) < len(classes):
                raise self.error(
                    "kind", "classes are all plain, or each is of the kind time or size, with both kinds there"
                )
            for one, next_one in pairwise(same):
                pairs = ((one.procs, next_one.procs), (one.memory, next_one.memory), (one.time, next_one.time),
                         (one.cpu_time, next_one.cpu_time))  # fmt: skip
                if any(after is not None and (before is None or before > after) for before, after in pairs):
                    raise self.error(
                        "name", f"the class {next_one.name!r} is below {one.name!r}: smallest first", next_one.name
                    )
