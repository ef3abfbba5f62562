"""The reservations that ``scontrol -o show reservation`` prints, for a machine of the same cluster
(scontrol(1) of Slurm 22.05)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from qbatch.model.errors import InputError
from qbatch.model.machine import Machine, Reservation
from qbatch.workloads.accounting.sacct import host_names
from qbatch.workloads.accounting.sacct_rows import NOTHING

_REPEATS = {name.upper(): name for name in ("hourly", "daily", "weekday", "weekend", "weekly")}
_WITHOUT_EFFECT = frozenset(("SPEC_NODES", "ALL_NODES", "IGNORE_JOBS", "OVERLAP", "PART_NODES"))


def read_reservations(path: str, machine: Machine) -> tuple[tuple[Reservation, ...], list[str]]:
    """Return the reservations of a file, and remarks on what of them does not count.

    Of several lines of one name the last holds.  A reservation of cores or licences is left out:
    a reservation of qbatch has whole hosts.

    Raises:
        InputError: names the file, the line and the reason.
    """
    places = {host.name: place for place, host in enumerate(machine.real_hosts)}
    found: dict[str, Reservation] = {}
    remarks: dict[str, str] = {}
    for place, fields in _lines(path):
        name = fields["ReservationName"]
        names = host_names(fields.get("Nodes", ""))
        for each in names:
            if each not in places and each not in NOTHING:
                raise InputError(f"{place}: there is no node {each!r} in the machine")
        hosts = tuple(sorted(places[each] for each in names if each in places))
        cores = sum(machine.hosts[host].cpus for host in hosts)
        if not hosts or fields.get("CoreCnt", str(cores)) != str(cores):
            remarks[name] = f"reservation {name} ({path}): left out, it has no whole nodes"
            continue
        flags = [
            each for each in fields.get("Flags", "").split(",") if each and each not in NOTHING
        ]
        extra = sorted(
            each
            for each in flags
            if each not in _REPEATS
            and each not in _WITHOUT_EFFECT
            and each not in ("MAINT", "FLEX")
        )
        if extra:
            remarks[name] = f"reservation {name}: {', '.join(extra)} does not count"
        start, end = (_instant(fields, key, place) for key in ("StartTime", "EndTime"))
        if end <= start:
            raise InputError(f"{place}: the reservation {name} ends before it begins")
        listed = fields.get("Users", "")
        users = () if listed in NOTHING else tuple(listed.split(","))
        if any(each.startswith("-") for each in users):
            remarks[name] = f"reservation {name}: users that are left out ({listed}) do not count"
            users = ()
        found[name] = Reservation(
            name,
            hosts,
            start.isoformat(),
            round((end - start).total_seconds()) * 1_000_000,
            next((_REPEATS[each] for each in flags if each in _REPEATS), ""),
            users,
            "MAINT" in flags,
            "FLEX" in flags,
        )
    return tuple(found.values()), [remarks[name] for name in remarks if remarks[name]]


def _instant(fields: dict[str, str], key: str, place: str) -> datetime:
    try:
        return datetime.fromisoformat(fields.get(key, ""))
    except ValueError:
        raise InputError(f"{place}: {key} {fields.get(key, '')[:40]!r} is not a time") from None


def _lines(path: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the fields of each line that describes a reservation."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    is_empty = True
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("ReservationName="):
            is_empty = False
            yield f"{path}: line {number}", dict(re.findall(r"(\w+)=(\S*)", line))
    if is_empty and "No reservations" not in text:
        raise InputError(
            f"{path}: no line begins with ReservationName=; write it with "
            "scontrol -o show reservation"
        )
