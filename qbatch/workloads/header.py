"""The comment lines of a log: kept verbatim, and parsed.

Source: the Standard Workload Format, version 2.2 (Parallel Workloads Archive).  Real headers are
looser than the standard: numbers carry remarks, keywords repeat or are unknown, values run on over
several lines, and comments stand between rows or behind the last one.  All of this is accepted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

PROCS_MAX = 2**31 - 1

LONGEST_NAME = 32
"""Letters of a queue's name in a table."""

_KEYWORD = re.compile(r"\s*[;#]+(\s*)([A-Za-z][A-Za-z _-]*?)\s*:(?!//)\s*(.*)", re.DOTALL)
_CONTINUATION = re.compile(r"\s*[;#]+\s{2,}(\S.*)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+(?!\d)|\d+)")
_NUMBERED = re.compile(r"(\d+)[\s:]*(.*)", re.DOTALL)
_BLANKS = re.compile(r"[\s_-]+")

_KNOWN = frozenset(
    {
        "version",
        "computer",
        "installation",
        "acknowledge",
        "information",
        "conversion",
        "maxjobs",
        "maxrecords",
        "preemption",
        "unixstarttime",
        "timezone",
        "timezonestring",
        "starttime",
        "endtime",
        "maxnodes",
        "maxprocs",
        "maxruntime",
        "maxmemory",
        "allowoveruse",
        "maxqueues",
        "queues",
        "queue",
        "maxpartitions",
        "partitions",
        "partition",
        "note",
    }
)


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the comment lines; absent is None; ``lines`` are the lines as in the file."""

    lines: tuple[str, ...] = ()
    entries: tuple[tuple[str, str], ...] = ()
    version: str | None = None
    computer: str | None = None
    installation: str | None = None
    conversion: str | None = None
    max_jobs: int | None = None
    max_records: int | None = None
    max_nodes: int | None = None
    max_procs: int | None = None
    max_runtime: int | None = None
    max_memory: int | None = None
    max_queues: int | None = None
    max_partitions: int | None = None
    unix_start_time: int | None = None
    time_zone: int | None = None
    time_zone_string: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    preemption: str | None = None
    allow_overuse: str | None = None
    queues: dict[int, str] = {}
    partitions: dict[int, str] = {}
    acknowledgements: tuple[str, ...] = ()
    information: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def queue_names(self) -> dict[int, str]:
        """Return a short, unique name of each queue that has one.

        A name is the first line of the header's text about the queue, at most ``LONGEST_NAME``
        letters.  The number follows a name that is not unique, or that is itself a number, as in
        ``other (3)``.
        """
        lines = {
            number: _printable(text.partition("\n")[0].strip())
            for number, text in self.queues.items()
        }
        names = {number: line[:LONGEST_NAME].rstrip() for number, line in lines.items() if line}
        counts = Counter(names.values())
        return {
            number: f"{name} ({number})" if counts[name] > 1 or name.lstrip("-").isdigit() else name
            for number, name in names.items()
        }


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def parse_header(lines: Iterable[str]) -> Header:
    """Return the header of these comment lines; never fails: what is not understood stays in
    ``lines``."""
    kept = tuple(lines)
    entries = _entries(kept)
    by_keyword: dict[str, list[str]] = {}
    for keyword, value in entries:
        by_keyword.setdefault(keyword, []).append(value)

    def text(keyword: str) -> str | None:
        return next((value for value in by_keyword.get(keyword, ()) if value), None)

    def integer(keyword: str) -> int | None:
        found = (leading_integer(value) for value in by_keyword.get(keyword, ()))
        return next((number for number in found if number is not None), None)

    texts = (
        "version",
        "computer",
        "installation",
        "conversion",
        "start_time",
        "end_time",
        "preemption",
        "allow_overuse",
    )
    numbers = (
        "max_jobs",
        "max_records",
        "max_nodes",
        "max_procs",
        "max_runtime",
        "max_memory",
        "max_queues",
        "max_partitions",
        "unix_start_time",
        "time_zone",
    )
    found: dict[str, Any] = {field: text(field.replace("_", "")) for field in texts}
    found |= {field: integer(field.replace("_", "")) for field in numbers}
    zone = text("timezonestring")
    return Header(
        lines=kept,
        entries=entries,
        **found,
        time_zone_string=zone.split()[0] if zone else None,
        queues=_numbered(by_keyword.get("queue", ())),
        partitions=_numbered(by_keyword.get("partition", ())),
        acknowledgements=tuple(by_keyword.get("acknowledge", ())),
        information=tuple(by_keyword.get("information", ())),
        notes=tuple(by_keyword.get("note", ())),
    )


def machine_procs(header: Header) -> int | None:
    """Return the processors of the machine: MaxProcs, else MaxNodes, else None (also for absurd
    values)."""
    for procs in (header.max_procs, header.max_nodes):
        if procs is not None and 0 < procs <= PROCS_MAX:
            return procs
    return None


def leading_integer(value: str) -> int | None:
    """Return the integer that the text begins with: 1664 for ``1664 (72, 1368, 224)``; None without
    one."""
    found = _INTEGER.match(value.strip())
    if found is None or len(found.group()) > 30:
        return None
    return int(found.group().replace(",", ""))


def keyword_of(line: str) -> str | None:
    """Return the keyword of a comment line, in lower case and without blanks, or None."""
    found = _KEYWORD.match(line)
    if found is None:
        return None
    keyword = _BLANKS.sub("", found.group(2)).lower()
    is_unindented = len(found.group(1).expandtabs()) <= 1 and " " not in found.group(2)
    return keyword if keyword in _KNOWN or is_unindented else None


def readable(text: str) -> str:
    """Return the text with bytes that are not UTF-8 shown as Latin-1 (``lines`` keep them as
    surrogates)."""
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _entries(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    entries: list[tuple[str, str]] = []
    is_open = False
    for line in lines:
        keyword = keyword_of(line)
        found = _KEYWORD.match(line)
        if keyword is not None and found is not None:
            entries.append((keyword, readable(found.group(3).strip())))
            is_open = True
            continue
        more = _CONTINUATION.match(line)
        if is_open and more is not None:
            keyword, value = entries[-1]
            entries[-1] = (keyword, f"{value}\n{readable(more.group(1).rstrip())}".lstrip("\n"))
        else:
            is_open = False
    return tuple(entries)


def _numbered(values: Iterable[str]) -> dict[int, str]:
    found = (_NUMBERED.match(value) for value in values)
    return {
        int(match.group(1)): match.group(2).strip()
        for match in found
        if match and len(match.group(1)) < 19
    }
