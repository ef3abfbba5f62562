"""Slurm's words in its files: names of resources, amounts, times and switches."""

from __future__ import annotations

import re

from qbatch.model.errors import InputError
from qbatch.model.site import Amounts
from qbatch.workloads.accounting.times import slurm_span

UNLIMITED = frozenset(("UNLIMITED", "INFINITE", "-1", "NONE", "N/A"))

_KNOWN = {"cpu": "cpus", "mem": "memory", "node": "hosts", "billing": "billing"}
_UNITS = {"": 2**20, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def resource_name(name: str) -> str:
    """Return our name of a resource (``gres/gpu:a100``, ``license/matlab``, ``cpu``), empty if it is
    never counted (energy, and what file systems and memory pages are used)."""
    name = name.strip().lower()
    if name in _KNOWN:
        return _KNOWN[name]
    kind, slash, rest = name.partition("/")
    if slash and kind in ("gres", "license"):
        return rest
    return ""


def tres(text: str, place: str) -> Amounts:
    """Return the amounts of ``cpu=20,mem=500G,gres/gpu:a100=4``; memory in bytes, MB without a
    unit."""
    found: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = part.rpartition("=")
        ours = resource_name(name)
        number = re.fullmatch(r"(\d+)(?:\.(\d+))?([kmgtp]?)[bcn]?", value.lower())
        if number is None:
            raise InputError(f"{place}: {part[:40]!r} is not resource=amount")
        if not ours:
            continue
        amount = float(f"{number[1]}.{number[2] or 0}")
        found[ours] = int(amount * _UNITS[number[3]] if ours == "memory" else amount)
    return tuple(found.items())


def seconds(text: str, place: str, name: str) -> int:
    """Return the seconds of a time, a number of minutes or ``[days-]hours:minutes:seconds``; -1:
    unlimited."""
    if text.upper() in UNLIMITED:
        return -1
    if re.fullmatch(r"\d{1,9}", text):
        return int(text) * 60
    days = re.fullmatch(r"(\d{1,6})-(\d{1,2})(?::(\d{1,2}))?", text)
    if days is not None:  # days-hours and days-hours:minutes
        return int(days[1]) * 86_400 + int(days[2]) * 3600 + int(days[3] or 0) * 60
    value = slurm_span(text)
    if value < 0:
        raise InputError(f"{place}: {name} {text[:40]!r} is neither minutes nor a time")
    return round(value)


def whole(text: str, place: str, name: str) -> int:
    """Return a whole number; -1: unlimited."""
    if text.upper() in UNLIMITED:
        return -1
    if not re.fullmatch(r"\d{1,12}", text):
        raise InputError(f"{place}: {name} {text[:40]!r} is not a whole number")
    return int(text)


def is_yes(text: str) -> bool:
    """Return whether a switch is on."""
    return text.strip().lower() in ("yes", "y", "1", "true", "on")
