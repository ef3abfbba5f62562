"""The tables of a machine file's second schema beyond hosts: server-wide amounts, partitions and
reservations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from qbatch.model.machine import (
    CPUS_BILLED,
    EXCLUSIVE,
    MEMORY_BILLED,
    REPEATS,
    SERVER_NAME,
    SHARED,
    SHARES,
    USUAL_PRIORITY,
    USUAL_TIER,
    Host,
    Machine,
    Partition,
    Reservation,
    fold_names,
    memory_text,
    parse_memory,
)
from qbatch.model.site import Site
from qbatch.model.table_reader import TableReader

TABLES = ("resource", "partition", "reservation")
"""The names of the tables."""

_MOST_OF_A_RESOURCE = 2**60
_RESOURCE_KEYS = ("name", "kind", "types", "total")
_KINDS = ("host", "server")
_PARTITION_KEYS = ("name", "hosts", "default", "times", "sizes", "share", "rank", "billing", "qos")
_TIMES, _SIZES = ("default", "max"), ("min_hosts", "max_hosts", "max_memory_per_cpu")
_RESERVATION_KEYS = ("name", "hosts", "start", "duration", "repeat", "times", "users", "flags")
_FLAGS = ("maint", "flex")
_BY_USER = "user"
MOST_TIER, MOST_WEIGHT = 65_533, 1e9
_SECOND = 1_000_000


def read_server_amounts(
    reader: TableReader, tables: Sequence[dict[str, Any]], hosts: Sequence[Host]
) -> tuple[tuple[str, int], ...]:
    """Return the amounts of the whole server, of the tables of resources.

    A resource of hosts may be declared too, with its types: hosts must not have others.
    """
    found: dict[str, int] = {}
    named: dict[str, dict[str, Any]] = {}
    for table in tables:
        reader.known_keys(table, _RESOURCE_KEYS, " in [[resource]]")
        name, kind = table.get("name"), reader.text(table, "kind", "host")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name):
            text = 'needs a name of letters, digits, - and _, such as name = "matlab"'
            raise reader.error("resource", text, None, table)
        if name in named:
            raise reader.error("name", f"the resource {name!r} appears twice", name, table)
        named[name] = table
        reader.check_known(table, "kind", [kind], set(_KINDS), "kind of resource")
        types = table.get("types", [])
        if not isinstance(types, list) or not all(isinstance(each, str) for each in types):
            raise reader.error("types", 'must be a list, such as ["a100", "v100"]', None, table)
        here = {each for host in hosts for each, _ in host.resources}
        if kind == "host":
            if "total" in table:
                text = 'is for kind = "server"; hosts say what they have in their resources'
                raise reader.error("total", text, None, table)
            for each in sorted(here) if types else ():
                alone, colon, of_type = each.partition(":")
                if alone == name and colon and of_type not in types:
                    text = f"a host has {each}, which is none of {', '.join(types)}"
                    raise reader.error("types", text, None, table)
            continue
        if name in here:
            text = f"hosts have {name} too; name the amount of the server differently"
            raise reader.error("name", text, name, table)
        if types:
            raise reader.error("types", "amounts of the server have no types", None, table)
        total = table.get("total")
        if total is None:
            raise reader.error("resource", f"{name!r} needs a total, such as 20", None, table)
        reader.check_amounts(table, "total", {name: total}, _MOST_OF_A_RESOURCE)
        found[name] = total
    return tuple(found.items())


def read_partitions(
    reader: TableReader,
    tables: Sequence[dict[str, Any]],
    places: dict[str, int],
    resources: Sequence[str],
    site: Site | None,
) -> tuple[Partition, ...]:
    """Return the partitions; ``places``: the indices of the hosts by name; ``resources``: the names
    of what hosts and the server have in addition to processors and memory."""
    found: list[Partition] = []
    for table in tables:
        reader.known_keys(table, _PARTITION_KEYS, " in [[partition]]")
        name = table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[^\s,]+", name):
            text = 'needs a name without blanks and commas, such as name = "gpu"'
            raise reader.error("partition", text, None, table)
        if any(name == each.name for each in found):
            raise reader.error("name", f"the partition {name!r} appears twice", None, table)
        hosts = reader.host_list(table, places)
        is_default = reader.boolean(table, "default")
        if is_default and any(each.is_default for each in found):
            text = "there is another default partition before it; one can be the default"
            raise reader.error("default", text, None, table)
        times, sizes, rank = (_inner(reader, table, key, known) for key, known in _INNER)
        share = reader.text(table, "share", SHARED)
        if share == _BY_USER:
            text = (
                "hosts that only jobs of one user share are not counted yet; write "
                f'"{EXCLUSIVE}", which keeps all jobs apart, or leave share out'
            )
            raise reader.error("share", text, share, table)
        reader.check_known(table, "share", [share], set(SHARES), "way to share hosts")
        fewest, most = (reader.whole(sizes, key, 1) or 0 for key in _SIZES[:2])
        if most and fewest > most:
            raise reader.error("sizes", f"{fewest} hosts at least and {most} at most", None, table)
        tier = reader.whole(rank, "tier", 0)
        if tier is not None and tier > MOST_TIER:
            raise reader.error("rank", f"tier {tier} is above {MOST_TIER}", None, table)
        priority, qos = reader.whole(rank, "priority", 0), reader.text(table, "qos", "")
        if qos:
            known = set() if site is None else {each.name for each in site.qos}
            reader.check_known(table, "qos", [qos], known, "QOS")
        default, longest = reader.span(times, "default"), reader.span(times, "max")
        if longest and default > longest:
            raise reader.error("times", "the default is above the greatest", None, table)
        try:
            memory = parse_memory(sizes.get(_SIZES[2], 0))
        except ValueError as error:
            raise reader.error("sizes", f"{_SIZES[2]}: {error}", None, table) from error
        found.append(
            Partition(
                name,
                hosts,
                is_default,
                default,
                longest,
                fewest,
                most,
                memory,
                share,
                USUAL_TIER if tier is None else tier,
                _billing(reader, table, resources),
                USUAL_PRIORITY if priority is None else priority,
                qos,
            )
        )
    return tuple(found)


_INNER = (("times", _TIMES), ("sizes", _SIZES), ("rank", ("tier", "priority")))


def _billing(
    reader: TableReader, table: dict[str, Any], resources: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    """Return what an hour of a unit of each resource costs in a partition."""
    weights = _inner(reader, table, "billing", (CPUS_BILLED, MEMORY_BILLED, *resources))
    for name, weight in weights.items():
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not 0 <= weight <= MOST_WEIGHT:
            text = f"{name} = {weight!r} is not a number from 0 to {MOST_WEIGHT:g}"
            raise reader.error("billing", text, None, table)
    return tuple((name, float(weight)) for name, weight in weights.items())


def _inner(
    reader: TableReader, table: dict[str, Any], key: str, known: tuple[str, ...]
) -> dict[str, Any]:
    inner = table.get(key, {})
    if not isinstance(inner, dict):
        text = f"must be a table with some of {', '.join(known)}, such as {{ {known[0]} = 1 }}"
        raise reader.error(key, text, None, table)
    reader.known_keys(inner, known, f" in {key} of a [[partition]]")
    return inner


def read_reservations(
    reader: TableReader, tables: Sequence[dict[str, Any]], places: dict[str, int]
) -> tuple[Reservation, ...]:
    """Return the reservations; ``places``: the indices of the hosts by name."""
    found: list[Reservation] = []
    for table in tables:
        reader.known_keys(table, _RESERVATION_KEYS, " in [[reservation]]")
        name = table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[^\s,]+", name):
            text = 'needs a name without blanks and commas, such as name = "maintenance"'
            raise reader.error("reservation", text, None, table)
        if any(name == each.name for each in found):
            raise reader.error("name", f"the reservation {name!r} appears twice", None, table)
        hosts, duration = reader.host_list(table, places), reader.span(table, "duration")
        if not duration:
            text = f'{name!r} needs a duration, such as duration = "8:00:00"'
            raise reader.error("reservation", text, None, table)
        repeat = reader.text(table, "repeat", "")
        if repeat:
            reader.check_known(table, "repeat", [repeat], set(REPEATS), "repetition")
        flags, users = (
            reader.names(table, "flags", set(_FLAGS), "flag"),
            table.get("users", []),
        )
        if not isinstance(users, list) or not all(isinstance(user, str) for user in users):
            raise reader.error("users", 'must be a list of names, such as ["ann"]', None, table)
        found.append(
            Reservation(
                name,
                hosts,
                _start(reader, table),
                duration,
                repeat,
                tuple(users),
                "maint" in flags,
                "flex" in flags,
                reader.whole(table, "times", 1) or 0,
            )
        )
    return tuple(found)


def _start(reader: TableReader, table: dict[str, Any]) -> str:
    """Return the start of a reservation as text: a date and time, or seconds of the log."""
    value = table.get("start")
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**31:
        return f"{value:.15g}"
    text = f"{value!r} is not a date and time, such as 2026-12-01T08:00:00, or seconds of the log"
    raise reader.error("start", text, None, table)


def site_tables(machine: Machine) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables of a machine with the values that are not the defaults, by name."""
    tables: list[tuple[str, dict[str, Any]]] = []
    names = [host.name for host in machine.hosts]
    server = machine.hosts[machine.server].resources if machine.server >= 0 else ()
    for name, total in server:
        tables.append(("resource", {"name": name, "kind": "server", "total": total}))
    for each in machine.partitions:
        times = {"default": each.default_time // _SECOND, "max": each.max_time // _SECOND}
        sizes = {
            "min_hosts": each.min_hosts,
            "max_hosts": each.max_hosts,
            "max_memory_per_cpu": each.max_memory_per_cpu and memory_text(each.max_memory_per_cpu),
        }
        tables.append(
            (
                "partition",
                {
                    "name": each.name,
                    "hosts": fold_names([names[place] for place in each.hosts]),
                    "default": each.is_default,
                    "times": {key: value for key, value in times.items() if value},
                    "sizes": {key: value for key, value in sizes.items() if value},
                    "share": each.share if each.share != SHARED else None,
                    "rank": {
                        name: value
                        for name, value in (("tier", each.tier), ("priority", each.priority))
                        if value != USUAL_TIER
                    },
                    "billing": dict(each.billing),
                    "qos": each.qos or None,
                },
            )
        )
    for kept in machine.reservations:
        is_number = re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", kept.start)
        flags = [("maint", kept.is_maintenance), ("flex", kept.is_flexible)]
        tables.append(
            (
                "reservation",
                {
                    "name": kept.name,
                    "hosts": fold_names([names[place] for place in kept.hosts]),
                    "start": float(kept.start) if is_number else datetime.fromisoformat(kept.start),
                    "duration": kept.duration // _SECOND,
                    "repeat": kept.repeat or None,
                    "times": kept.times or None,
                    "users": list(kept.users) or None,
                    "flags": [name for name, is_set in flags if is_set] or None,
                },
            )
        )
    return tables


def real_host_places(hosts: Sequence[Host]) -> dict[str, int]:
    """Return the indices of the hosts by name, without the pseudo-host of the server."""
    return {host.name: place for place, host in enumerate(hosts) if host.name != SERVER_NAME}
