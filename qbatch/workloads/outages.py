"""The file of outages: over which spans of a log hosts were closed.

It is CSV with a header, ``host,start,end``.  ``host`` is a name or folded names (``n[01-16]``);
``start`` and ``end`` are seconds of the log or ISO times, and the span is half-open.  A closed host
takes no further jobs, and those that run there continue.
"""

from __future__ import annotations

from typing import NamedTuple

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.machine import Machine, expand_names
from qbatch.model.record import MICROSECONDS, LogClock
from qbatch.workloads.log import log_second
from qbatch.workloads.side_file import read_side_file

COLUMNS = ("host", "start", "end")
"""The columns; all are required."""

_LATEST = (1 << 61) // MICROSECONDS


class Outage(NamedTuple):
    """A host, by its index, is closed in ``[begin, end)``, microseconds of the log."""

    begin: int
    end: int
    host: int


class Outages(NamedTuple):
    """The outages of a file in order of begin; those of one host neither overlap nor touch.

    ``path``: as it was named; ``sha256``: of its bytes.
    """

    spans: tuple[Outage, ...]
    path: str
    sha256: str


def read_outages(path: str, machine: Machine, clock: LogClock, log: str) -> Outages:
    """Return the outages of the hosts of a machine; ``log``: its name, for messages.

    Raises:
        InputError: names the file, the line and the reason.
    """
    header, rows, sha256 = read_side_file(path)
    if sorted(header) != sorted(COLUMNS):
        raise InputError(
            f"{path}: line 1: the columns are {','.join(header)[:80] or 'missing'}; a file of outages "
            f"begins {','.join(COLUMNS)}"
        )
    places = {host.name: place for place, host in enumerate(machine.real_hosts)}
    closed: dict[int, list[tuple[int, int]]] = {}
    for line, values in rows:
        begin, end = (_instant(values[name], clock, log, f"{line}: {name}") for name in COLUMNS[1:])
        if end <= begin:
            raise InputError(f"{line}: the end is not after the start; exchange or correct them")
        try:
            names = expand_names(values["host"])
        except ValueError as error:
            raise InputError(f"{line}: host {error}") from None
        for name in names:
            if name not in places:
                raise InputError(
                    f"{line}: the machine has no host {name[:60]!r}{suggestion(name, places)}"
                )
            closed.setdefault(places[name], []).append((max(begin, 0), end))
    spans = [Outage(*span, host) for host, own in closed.items() for span in _joined(own)]
    return Outages(tuple(sorted(spans)), path, sha256)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order, after joining those that overlap or touch; none ends before 0."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif end > begin:
            joined.append((begin, end))
    return joined


def _instant(text: str, clock: LogClock, log: str, what: str) -> int:
    try:
        second = log_second(text, clock, log, what)
    except UsageError as error:
        raise InputError(str(error)) from None
    if abs(second) > _LATEST:
        raise InputError(f"{what} {text[:40]!r}: is beyond the times that can be counted")
    return round(second * MICROSECONDS)
