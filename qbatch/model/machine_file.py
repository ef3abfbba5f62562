"""The machine file: a machine described in TOML, read with errors that name key and line, and written.

Format: ``schema = 1``, ``[[host]]`` tables (names expand: ``n[01-64]``), ``[[class]]`` tables, ``single_host``, ``per_user``
(design.md, "What the outside sees"; docs/machine.md has every key).  The same tables may stand inside a daemon's configuration.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from qbatch.model.errors import suggestion
from qbatch.model.job_class import JobClass
from qbatch.model.machine import Host, Machine, expand_names, parse_memory
from qbatch.model.toml_text import TomlText

SCHEMA = 1
"""The version of the machine file that this program reads."""

_SECOND = 1_000_000

_HOST_KEYS = ("name", "cpus", "memory", "pool", "serves", "limits")
_CLASS_KEYS = (
    "name", "kind", "procs", "memory", "time", "cpu_time", "per_host", "limit", "per_user", "reserve_wait", "hosts",
    "goes_first",
)  # fmt: skip
_KINDS = ("time", "size")
_TOP_KEYS = ("schema", "name", "single_host", "per_user", "host", "class")


def parse_machine(text: str, source: str) -> Machine:
    """Return the machine that a TOML text describes; ``source`` names it in errors.

    Raises:
        InputError: with the key, the line where it stands, the reason and the way out.
    """
    whole = TomlText(text, source)
    return machine_of_tables(whole, whole.document)


def machine_of_tables(text: TomlText, document: dict[str, Any]) -> Machine:
    """Return the machine that tables describe which stand in a larger text, such as a daemon's configuration.

    Raises:
        InputError: as :func:`parse_machine`.
    """
    reader = _Reader(text)
    reader.known_keys(document, _TOP_KEYS, "")
    if type(document.get("schema")) is not int or document["schema"] != SCHEMA:
        raise reader.error("schema", f'must be {SCHEMA}; write "schema = {SCHEMA}" at the top')
    single_host = document.get("single_host", False)
    if not isinstance(single_host, bool):
        raise reader.error("single_host", "must be true or false")
    class_tables = text.tables("class", document)
    kinds = {each["name"]: each.get("kind") for each in class_tables if isinstance(each.get("name"), str)}
    hosts = tuple(host for entry in text.tables("host", document) for host in reader.hosts(entry, kinds))
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
    places = seen | {host.pool for host in hosts}
    classes = tuple(reader.job_class(entry, places) for entry in class_tables)
    reader.check_kinds(classes)
    per_user = reader.whole(document, "per_user", 0)
    return Machine(hosts, single_host, classes, str(document.get("name", "")), per_user=per_user)


def machine_as_toml(machine: Machine, table: str = "") -> list[str]:
    """Return the lines that give a machine again; ``table``: the name of the table that they stand in, if they are in one."""
    inside = f"{table}." if table else ""
    lines = [f"[{table}]"] if table else []
    lines += _lines(
        schema=SCHEMA, name=machine.name or None, single_host=machine.single_host, per_user=machine.per_user
    )
    for host in machine.hosts:
        limits = (
            "{ " + ", ".join(f"{_quoted(name)} = {most}" for name, most in host.limits) + " }" if host.limits else None
        )
        lines += ["", f"[[{inside}host]]"]
        lines += _lines(name=host.name, cpus=host.cpus, memory=host.memory, pool=host.pool, serves=host.serves or None)
        lines += [f"limits = {limits}"] if limits else []
    for each in machine.classes:
        lines += ["", f"[[{inside}class]]"]
        times = {name: value // _SECOND for name in ("time", "cpu_time", "reserve_wait")
                 if (value := getattr(each, name)) is not None}  # fmt: skip
        plain = {name: getattr(each, name) for name in ("procs", "memory", "per_host", "limit", "per_user")}
        kind = None if each.kind == "plain" else each.kind
        lines += _lines(
            name=each.name, kind=kind, **plain, **times, hosts=each.hosts or None, goes_first=each.goes_first
        )
    return lines


def _lines(**values: Any) -> list[str]:
    return [f"{name} = {_quoted(value)}" for name, value in values.items() if value is not None]


def _quoted(value: Any) -> str:
    """Return a value as TOML, whose texts, numbers, lists and truth values are written as in JSON."""
    return msgspec.json.encode(value).decode()


class _Reader:
    """Takes the tables of a machine apart; ``text`` says where in it something is wrong."""

    def __init__(self, text: TomlText) -> None:
        self.error = text.error

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

    def hosts(self, table: dict[str, Any], classes: dict[str, Any]) -> list[Host]:
        """Return the hosts of one [[host]] table; ``classes``: the kind of each class by its name."""
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
        serves, limits = self.names(table, "serves", set(classes), "class"), self.limits(table, set(classes))
        for each in serves:
            if classes[each] == "time":
                raise self.error("serves", f"{each!r} is a time class; a host serves size classes", each)
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
            self.names(table, "hosts", hosts, "host or pool"),
            self.seconds(table, "cpu_time", 1),
            kind,
            goes_first,
        )

    def seconds(self, table: dict[str, Any], key: str, least: int) -> int | None:
        """Return whole seconds as microseconds, or None where the key is absent."""
        value = self.whole(table, key, least)
        return None if value is None else value * _SECOND

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
