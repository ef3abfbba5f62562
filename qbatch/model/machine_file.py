"""The machine file: a machine described in TOML, read with errors that name key and line, and
written.

docs/reference/machine-file.md has every key.  A daemon's configuration may contain the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

import msgspec

from qbatch.model.job_class import JobClass
from qbatch.model.machine import (
    SERVER_NAME,
    Host,
    Machine,
    expand_names,
    fold_names,
    server_host,
)
from qbatch.model.site_file import ARRAYS, SINGLE, read_site, site_as_tables
from qbatch.model.site_tables import (
    TABLES,
    read_partitions,
    read_reservations,
    read_server_amounts,
    real_host_places,
    site_tables,
)
from qbatch.model.table_reader import TableReader
from qbatch.model.toml_text import TomlText

SCHEMAS = (1, 2)
"""The versions of the machine file that this program reads.  In the second, jobs may be on several
hosts with memory and resources, and there are features, partitions, amounts of the whole server
and reservations."""

_SECOND = 1_000_000

_HOST_KEYS = ("name", "cpus", "memory", "pool", "serves", "limits", "resources")
_OWN_KEYS = {
    "cpus": "cpus",
    "procs": "cpus",
    "ncpus": "cpus",
    "processors": "cpus",
    "mem": "memory",
    "memory": "memory",
}
_MOST_OF_A_RESOURCE = 2**60
_CLASS_KEYS = (
    "name",
    "kind",
    "procs",
    "memory",
    "time",
    "cpu_time",
    "per_host",
    "limit",
    "per_user",
    "reserve_wait",
    "hosts",
    "goes_first",
)
_KINDS = ("time", "size")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOP_KEYS = ("schema", "name", "single_host", "per_user", "host", "class")


def parse_machine(text: str, source: str) -> Machine:
    """Return the machine of a TOML text; ``source`` names the text in errors.

    Raises:
        InputError: names the key, its line, the reason and the way out.
    """
    whole = TomlText(text, source)
    return machine_of_tables(whole, whole.document)


def machine_of_tables(text: TomlText, document: dict[str, Any]) -> Machine:
    """Return the machine of tables inside a larger text, such as a daemon's configuration; errors
    as in :func:`parse_machine`."""
    reader = _MachineReader(text)
    schema = document.get("schema")
    if type(schema) is not int or schema not in SCHEMAS:
        raise reader.error(
            "schema", 'must be 1 or 2; write "schema = 1" at the top', None, document
        )
    more = (*TABLES, *ARRAYS, *SINGLE) if schema > 1 else ()
    reader.known_keys(document, (*_TOP_KEYS, *more), "")
    single_host = reader.boolean(document, "single_host")
    class_tables = text.tables("class", document)
    kinds = {
        each["name"]: each.get("kind") for each in class_tables if isinstance(each.get("name"), str)
    }
    listed: list[Host] = []
    seen: set[str] = set()
    for entry in text.tables("host", document):
        for host in reader.hosts(entry, kinds, schema):
            if host.name in seen:
                raise reader.error("name", f"the host {host.name!r} appears twice", None, entry)
            seen.add(host.name)
            listed.append(host)
    hosts = sorted(listed, key=lambda host: host.weight)
    if not hosts:
        raise reader.error("host", "there is no host; add a [[host]] table with name and cpus")
    for key, reason in (
        (
            "memory",
            (
                "counts only if a job stays inside one host; write single_host = true, or "
                "schema = 2, or leave memory out"
            ),
        ),
        (
            "resources",
            ("count only if a job stays inside one host; write single_host = true, or schema = 2"),
        ),
    ):
        is_apart = schema == 1 and not single_host and len(hosts) > 1
        if is_apart and any(getattr(host, key) for host in hosts):
            raise reader.error(
                key,
                reason,
                None,
                next(each for each in text.tables("host", document) if each.get(key)),
            )
    places = seen | {host.pool for host in hosts}
    classes = tuple(reader.job_class(entry, places) for entry in class_tables)
    reader.check_classes(classes, class_tables)
    per_user = reader.whole(document, "per_user", 1)
    resources, partitions, reservations = (
        text.tables(name, document) if schema > 1 else [] for name in TABLES
    )
    server, known = read_server_amounts(reader, resources, hosts), real_host_places(hosts)
    for tables, key in ((server, "resource"), (reservations, "reservation")):
        if tables and single_host:
            text_of = "needs jobs that may be on several hosts; leave single_host = true out"
            raise reader.error(key, text_of, None, document)
    amounts = [*(each for host in hosts for each in host.resources), *server]
    counted = list(dict.fromkeys(name for name, _ in amounts))
    site = read_site(text, document, counted) if schema > 1 else None
    return Machine(
        (*hosts, server_host(server)) if server else tuple(hosts),
        single_host,
        classes,
        reader.text(document, "name", ""),
        chunked=schema > 1 and not single_host,
        per_user=per_user,
        partitions=read_partitions(reader, partitions, known, counted, site),
        reservations=read_reservations(reader, reservations, known),
        site=site,
    )


def machine_as_toml(machine: Machine, table: str = "") -> list[str]:
    """Return the lines of a machine in TOML; ``table``: the name of the table around them, if there
    is one."""
    inside = f"{table}." if table else ""
    lines = [f"[{table}]"] if table else []
    is_placed = any(host.rack or host.weight for host in machine.hosts)
    is_second = machine.chunked or machine.asks_for_hosts or is_placed or machine.site
    lines += _lines(
        schema=2 if is_second else 1,
        name=machine.name or None,
        single_host=machine.single_host,
        per_user=machine.per_user,
    )
    for name, host in _folded(machine.real_hosts):
        lines += ["", f"[[{inside}host]]"]
        lines += _lines(
            name=name,
            cpus=host.cpus,
            memory=host.memory,
            pool=host.pool,
            serves=host.serves or None,
            features=host.features or None,
            rack=host.rack or None,
            weight=host.weight or None,
        )
        typed = {name.partition(":")[0] for name, _ in host.resources if ":" in name}
        resources = tuple(pair for pair in host.resources if pair[0] not in typed)
        for key, pairs in (("limits", host.limits), ("resources", resources)):
            if pairs:
                lines.append(
                    f"{key} = {{ {', '.join(f'{_quoted(name)} = {many}' for name, many in pairs)} "
                    f"}}"
                )
    for name, values in site_tables(machine):
        lines += ["", f"[[{inside}{name}]]", *_lines(**values)]
    for header, values in [] if machine.site is None else site_as_tables(machine.site):
        brackets = header.count("[")
        name = f"{'[' * brackets}{inside}{header.strip('[]')}{']' * brackets}"
        lines += ["", name, *_lines(**values)]
    for each in machine.classes:
        lines += ["", f"[[{inside}class]]"]
        times = {
            name: value // _SECOND
            for name in ("time", "cpu_time", "reserve_wait")
            if (value := getattr(each, name)) is not None
        }
        plain = {
            name: getattr(each, name)
            for name in ("procs", "memory", "per_host", "limit", "per_user")
        }
        kind = None if each.kind == "plain" else each.kind
        lines += _lines(
            name=each.name,
            kind=kind,
            **plain,
            **times,
            hosts=each.hosts or None,
            goes_first=each.goes_first,
        )
    return lines


def _folded(hosts: Sequence[Host]) -> Iterator[tuple[str, Host]]:
    """Yield hosts, and instead of equal ones that follow each other the first with all their
    names."""
    for _, alike in groupby(hosts, key=lambda host: msgspec.structs.replace(host, name="")):
        equal = list(alike)
        for pattern in fold_names([host.name for host in equal]):
            yield pattern, equal[0]


def _lines(**values: Any) -> list[str]:
    return [
        f"{name} = {_quoted(value)}"
        for name, value in values.items()
        if value is not None and value != {}
    ]


def _quoted(value: Any) -> str:
    """Return a value as TOML, which writes texts, numbers, lists and truth values like JSON."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        pairs = (
            (name if _BARE.fullmatch(name) else _quoted(name), each) for name, each in value.items()
        )
        return f"{{ {', '.join(f'{name} = {_quoted(each)}' for name, each in pairs)} }}"
    return msgspec.json.encode(value).decode()


class _MachineReader(TableReader):
    """Reads the tables of hosts and classes."""

    def hosts(self, table: dict[str, Any], classes: dict[str, Any], schema: int) -> list[Host]:
        """Return the hosts of one [[host]] table; ``classes``: the kind of each class by its
        name."""
        known = (*_HOST_KEYS, "features", "weight", "rack") if schema > 1 else _HOST_KEYS
        self.known_keys(table, known, " in [[host]]")
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise self.error("host", 'needs a name, such as name = "n[01-64]"', None, table)
        cpus = self.whole(table, "cpus", 1)
        if cpus is None:
            raise self.error("host", f"the host {name!r} needs cpus, a whole number", None, table)
        try:
            names = expand_names(name)
        except ValueError as error:
            raise self.error("name", str(error), None, table) from error
        if SERVER_NAME in names:
            raise self.error(
                "name", f"{SERVER_NAME!r} names the server; choose another", None, table
            )
        memory, pool = self.memory(table) or 0, self.text(table, "pool", "batch")
        serves, limits = (
            self.names(table, "serves", set(classes), "class"),
            self.limits(table, set(classes)),
        )
        for each in serves:
            if classes[each] == "time":
                sizes = ", ".join(other for other, kind in classes.items() if kind == "size")
                text = (
                    f"{each!r} is a time class; a host serves size "
                    f"classes{f' (there are {sizes})' if sizes else ''}"
                )
                raise self.error("serves", text, each, table)
        return [
            Host(
                each,
                cpus,
                memory,
                pool,
                serves,
                limits,
                self.resources(table, has_types=schema > 1),
                self.features(table),
                self.rack(table),
                self.whole(table, "weight", 0) or 0,
            )
            for each in names
        ]

    def features(self, table: dict[str, Any]) -> tuple[str, ...]:
        """Return the features of hosts: names without blanks."""
        listed = table.get("features", [])
        if not isinstance(listed, list):
            raise self.error("features", 'must be a list, such as ["ib", "avx512"]', None, table)
        for name in listed:
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.:=-]+", name):
                text = f"{name!r} is not a feature; write a name without blanks, in quotes"
                raise self.error("features", text, str(name), table)
        return tuple(listed)

    def rack(self, table: dict[str, Any]) -> str:
        """Return the name of the rack of hosts, empty if the key is absent."""
        rack = self.text(table, "rack", "")
        if "rack" in table and not rack.strip():
            text = 'is empty; write a name, such as rack = "r1", or leave it out'
            raise self.error("rack", text, None, table)
        return rack

    def limits(self, table: dict[str, Any], classes: set[str]) -> tuple[tuple[str, int], ...]:
        limits = table.get("limits", {})
        if not isinstance(limits, dict):
            text = "must be a table of a number for each class, such as { large = 3, medium = 4 }"
            raise self.error("limits", text, None, table)
        self.check_known(table, "limits", list(limits), classes, "class")
        self.check_amounts(table, "limits", limits, 2**31 - 1)
        return tuple(limits.items())

    def resources(self, table: dict[str, Any], *, has_types: bool) -> tuple[tuple[str, int], ...]:
        """Return the named resources of hosts.

        ``has_types``: a name may have a type (``gpu:a100``), one for each name; the host then has as
        many of the name alone.
        """
        resources = table.get("resources", {})
        if not isinstance(resources, dict):
            raise self.error(
                "resources",
                "must be a table of a number for each name, such as { gpu = 2 }",
                None,
                table,
            )
        for name in resources:
            if name.lower() in _OWN_KEYS:
                own = _OWN_KEYS[name.lower()]
                raise self.error(
                    "resources",
                    f"{name!r} has a key of its own; write {own} = ... in [[host]]",
                    name,
                    table,
                )
            pattern = r"[A-Za-z][A-Za-z0-9_.-]*" + (r"(:[A-Za-z0-9_.-]+)?" if has_types else "")
            if not re.fullmatch(pattern, name):
                types = "" if has_types else " (a type, such as gpu:a100, needs schema = 2)"
                text = f"{name!r} is not a name; write letters, digits, - and _, such as gpu{types}"
                raise self.error("resources", text, name, table)
        self.check_amounts(table, "resources", resources, _MOST_OF_A_RESOURCE)
        found: dict[str, int] = {}
        for name, amount in resources.items():
            kind, colon, _ = name.partition(":")
            if colon and (kind in resources or kind in found):
                text = f"a host has {kind} of one type, and not also without a type; name it once"
                raise self.error("resources", text, name, table)
            if colon:
                found[kind] = amount
            found[name] = amount
        return tuple(found.items())

    def job_class(self, table: dict[str, Any], hosts: set[str]) -> JobClass:
        """Return the class of one [[class]] table."""
        self.known_keys(table, _CLASS_KEYS, " in [[class]]")
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise self.error("class", 'needs a name, such as name = "short"', None, table)
        kind = table.get("kind", "plain")
        if kind not in ("plain", *_KINDS):
            text = (
                f"{kind!r} is not a kind of class; use one of {', '.join(_KINDS)}, or leave it out"
            )
            raise self.error("kind", text, None, table)
        goes_first = self.boolean(table, "goes_first")
        bounds = {"time": ("procs", "memory"), "size": ("time", "cpu_time", "reserve_wait")}
        for key in bounds.get(kind, ()):
            if key in table:
                raise self.error(
                    key,
                    f"bounds no class of the kind {kind!r}; leave it out of {name!r}",
                    None,
                    table,
                )
        procs, memory, time = (
            self.whole(table, "procs", 1),
            self.memory(table),
            self.seconds(table, "time", 1),
        )
        limits = {key: self.whole(table, key, 1) for key in ("per_host", "limit", "per_user")}
        reserve_wait, places = (
            self.seconds(table, "reserve_wait", 0),
            self.names(table, "hosts", hosts, "host or pool"),
        )
        cpu_time = self.seconds(table, "cpu_time", 1)
        return JobClass(
            name,
            procs,
            memory,
            time,
            **limits,
            reserve_wait=reserve_wait,
            hosts=places,
            cpu_time=cpu_time,
            kind=kind,
            goes_first=goes_first,
        )

    def check_classes(self, classes: tuple[JobClass, ...], tables: list[dict[str, Any]]) -> None:
        """Refuse classes that share a name, and those that form no pairs: a kind is missing or
        mixed with plain classes, or the order is wrong.  Refuse a class that no job can be in: one
        before it of its kind takes every job that keeps its bounds."""
        for place, each in enumerate(classes):
            if any(each.name == before.name for before in classes[:place]):
                raise self.error(
                    "name", f"the class {each.name!r} appears twice", None, tables[place]
                )
        paired = [each for each in classes if each.kind != "plain"]
        odd = next((place for place, each in enumerate(classes) if each.kind == "plain"), 0)
        for kind in _KINDS if paired else ():
            same = [each for each in classes if each.kind == kind]
            if not same or len(paired) < len(classes):
                text = (
                    "classes are all plain, or each is of the kind time or size, with both "
                    "kinds there"
                )
                raise self.error("kind", text, None, tables[odd])
            for one, next_one in pairwise(same):
                if any(
                    after is not None and (before is None or before > after)
                    for before, after in zip(_bounds(one), _bounds(next_one), strict=True)
                ):
                    text = f"the class {next_one.name!r} is below {one.name!r}: smallest first"
                    raise self.error("name", text, None, tables[classes.index(next_one)])
        for place, each in enumerate(classes):
            for before in (before for before in classes[:place] if before.kind == each.kind):
                pairs = zip(_bounds(before), _bounds(each), strict=True)
                if all(
                    wide is None or (bound is not None and bound <= wide) for wide, bound in pairs
                ):
                    text = (
                        f"no job can be in the class {each.name!r}: {before.name!r} comes "
                        "before it and takes all of its"
                    )
                    raise self.error(
                        "name", f"{text} jobs; put the smaller one first", None, tables[place]
                    )


def _bounds(each: JobClass) -> tuple[int | None, ...]:
    return each.procs, each.memory, each.time, each.cpu_time
