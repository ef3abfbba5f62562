"""When reservations keep hosts for some jobs: the windows of a machine's reservations on the clock of
a log (docs/spec/production.md, section 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import combinations, islice
from typing import NamedTuple

from qbatch.model.errors import InputError
from qbatch.model.machine import Reservation
from qbatch.model.record import MICROSECONDS, LogClock, zone_of

_SECONDS = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?", re.ASCII)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_DAYS = {"weekday": range(5), "weekend": range(5, 7)}
"""The days of a week, from Monday, on which a reservation begins again."""


class Window(NamedTuple):
    """One half-open interval of a reservation, ``[begin, end)`` in microseconds of the log: its
    hosts, by their indices, and the place of the reservation in the machine."""

    begin: int
    end: int
    reservation: int
    hosts: tuple[int, ...]


def windows_of(
    reservations: Sequence[Reservation],
    clock: LogClock,
    until: int,
    *,
    since: int = 0,
    most: int | None = None,
    may_overlap: bool = False,
) -> tuple[Window, ...]:
    """Return the windows that begin before ``until`` and end after ``since``, in order of begin and
    reservation; of each reservation the first ``most``, or all.

    A date and time without an offset is one of the log's zone; without a zone it is UTC.  Where
    clocks go forward, the offset before holds for a time that does not exist; where they go back,
    the first of two instants is taken.  A repetition keeps the time of the day (``hourly``: it
    comes each 3600 s), and begins at or after the end of the one before.

    ``may_overlap``: two reservations that overlap on a host keep each other's jobs from it.

    Raises:
        InputError: the log has no ``UnixStartTime``, and a start is a date or a repetition is by
            days of the week.  Or two reservations overlap on a host, and none of them is for
            maintenance.
    """
    found = [
        list(
            islice(
                (
                    Window(begin, begin + kept.duration, number, kept.hosts)
                    for begin in islice(_begins(kept, clock, until), kept.times or None)
                    if begin + kept.duration > since
                ),
                most,
            )
        )
        for number, kept in enumerate(reservations)
    ]
    for first, second in () if may_overlap else combinations(range(len(found)), 2):
        one, other = reservations[first], reservations[second]
        if one.is_maintenance or other.is_maintenance or set(one.hosts).isdisjoint(other.hosts):
            continue
        at = _first_overlap(found[first], found[second])
        if at is not None:
            raise InputError(
                f"the reservations {one.name!r} and {other.name!r} overlap on a host at second "
                f"{at / MICROSECONDS:.15g} of the log, and none of them is for maintenance; "
                'change one, or give it flags = ["maint"]'
            )
    return tuple(sorted(window for windows in found for window in windows))


def _begins(kept: Reservation, clock: LogClock, until: int) -> Iterator[int]:
    """Yield the instants at which a reservation begins, those before second 0 too."""
    zone: tzinfo = zone_of(clock) or UTC
    if _SECONDS.fullmatch(kept.start):
        first = round(float(kept.start) * MICROSECONDS)
        if kept.repeat in _DAYS and clock.unix_start is None:
            raise InputError(
                f"the reservation {kept.name!r} repeats by {kept.repeat}, but the log has no "
                'UnixStartTime and so no days of the week; use repeat = "daily" or "weekly"'
            )
        zero = datetime.fromtimestamp(clock.unix_start or 0, UTC)
        local = (zero + timedelta(microseconds=first)).astimezone(zone)
    else:
        if clock.unix_start is None:
            raise InputError(
                f"the reservation {kept.name!r} starts at {kept.start}, but the log has no "
                "UnixStartTime; give its start in seconds of the log"
            )
        local = datetime.fromisoformat(kept.start)
        zone = local.tzinfo or zone
        local = local.replace(tzinfo=zone)
        first = _instant(local, clock)
    if first < until:
        yield first
    if not kept.repeat:
        return
    free = first + kept.duration
    if kept.repeat == "hourly":
        hour = _HOUR // timedelta(microseconds=1)
        steps = -(-kept.duration // hour)
        yield from range(first + steps * hour, until, steps * hour)
        return
    for begin in _days(local, zone, kept.repeat, clock):
        if begin >= until:
            return
        if begin >= free:
            yield begin
            free = begin + kept.duration


def _days(local: datetime, zone: tzinfo, repeat: str, clock: LogClock) -> Iterator[int]:
    """Yield the instants of the same time on the later days of a repetition."""
    plain = local.replace(tzinfo=None)
    try:
        while True:
            plain += _DAY * (7 if repeat == "weekly" else 1)
            if plain.weekday() in _DAYS.get(repeat, range(7)):
                yield _instant(plain.replace(tzinfo=zone), clock)
    except OverflowError:  # after the year 9999
        return


def _instant(local: datetime, clock: LogClock) -> int:
    since = local.astimezone(UTC) - datetime.fromtimestamp(clock.unix_start or 0, UTC)
    return since // timedelta(microseconds=1)


def _first_overlap(one: Sequence[Window], other: Sequence[Window]) -> int | None:
    """Return the first instant at which a window of one list overlaps one of the other; each list is
    in order, and its own windows do not overlap."""
    place = 0
    for window in one:
        while place < len(other) and other[place].end <= window.begin:
            place += 1
        if place < len(other) and other[place].begin < window.end:
            return max(window.begin, other[place].begin)
    return None
