"""Wall clocks and spans: local times with daylight saving to seconds since 1970, and ``D-HH:MM:SS``
to seconds.

A local time may name no instant (a gap, when clocks go forward) or two (a fold, when they go back).
In a gap the offset before it holds, as in POSIX ``mktime`` and PEP 495.  Of a fold both instants
are returned, the earlier first, and the caller decides by the rest of the record.  Both are
counted.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.accounting.record import ABSENT, TIME_MAX

SPAN_MAX = 100 * 366 * 86_400
"""The longest span that is accepted, in seconds."""

_REMEMBERED = 4096
_STAMP = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)\Z", re.ASCII)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?\Z", re.ASCII
)
_SPAN = re.compile(
    r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,12})(\.\d{1,9})?\Z", re.ASCII
)
_PBS_SPAN = re.compile(
    r"(?:(\d{1,6}):)?(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,12})(\.\d{1,9})?\Z", re.ASCII
)
_PLACES_OF_ZONE = ("/etc/localtime", "/etc/timezone")


class WallClock:
    """Turns local times of one zone into seconds since 1970, and counts ``gaps`` and ``folds``."""

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self.gaps = 0
        self.folds = 0
        self._hours: dict[str, int | None] = {}

    def of_stamp(self, text: str) -> tuple[int, ...]:
        """Return the instants of ``MM/DD/YYYY HH:MM:SS``; none if it is not a time."""
        found = _STAMP.match(text)
        if found is None:
            return ()
        month, day, year, hour, minute, second = found.groups()
        return self._instants(f"{year}-{month}-{day}", hour, minute, second)

    def of_iso(self, text: str) -> tuple[int, ...]:
        """Return the instants of seconds since 1970 or of an ISO time, with or without its own
        zone."""
        if text.isdigit() and text.isascii() and len(text) <= 11:
            value = int(text)
            return (value,) if 0 < value <= TIME_MAX else ()
        found = _ISO.match(text)
        if found is None:
            return ()
        day, hour, minute, second, offset = found.groups()
        if offset is None:
            return self._instants(day, hour, minute, second)
        try:
            value = int(
                datetime.fromisoformat(f"{day}T{hour}:{minute}:{second}{offset}").timestamp()
            )
        except (ValueError, OverflowError):
            return ()
        return (value,) if 0 < value <= TIME_MAX else ()

    def _instants(self, day: str, hour: str, minute: str, second: str) -> tuple[int, ...]:
        if minute > "59" or second > "60":
            return ()
        key = f"{day}T{hour}"
        base = self.begin_of_hour(key)
        rest = int(minute) * 60 + int(second)
        if base is not None:
            return (base + rest,) if 0 < base + rest <= TIME_MAX else ()
        return self._exactly(key, rest)

    def begin_of_hour(self, key: str) -> int | None:
        """Return the instant at which the local hour ``2024-05-01T08`` begins if its seconds simply
        follow; None if they may not, or there is no such hour."""
        if key not in self._hours:
            self._hours[key] = self._plain_hour(key)
        return self._hours[key]

    def _plain_hour(self, key: str) -> int | None:
        try:
            begin = datetime.fromisoformat(f"{key}:00:00")
        except ValueError:
            return None
        ends = (begin, begin + timedelta(seconds=3599))
        offsets = {
            end.replace(tzinfo=self.zone, fold=fold).utcoffset() for end in ends for fold in (0, 1)
        }
        return int(begin.replace(tzinfo=self.zone).timestamp()) if len(offsets) == 1 else None

    def _exactly(self, key: str, rest: int) -> tuple[int, ...]:
        try:
            local = datetime.fromisoformat(f"{key}:00:00") + timedelta(seconds=rest)
        except ValueError:
            return ()
        first, second = (
            int(local.replace(tzinfo=self.zone, fold=fold).timestamp()) for fold in (0, 1)
        )
        if first == second:
            return (first,)
        if first > second:  # the offsets are swapped if the local time does not exist
            self.gaps += 1
            return (first,)
        self.folds += 1
        return (first, second)


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone by its name.

    Raises:
        UsageError: there is none of this name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        near = suggestion(name, available_timezones())
        raise UsageError(
            f"--timezone {name!r}: is not a known time zone{near} (such as Europe/Berlin)"
        ) from error


def machine_zone() -> tuple[ZoneInfo, str]:
    """Return the zone of this machine and its source: TZ, ``/etc/localtime``, ``/etc/timezone``;
    else UTC."""
    said = os.environ.get("TZ", "").removeprefix(":")
    found = [(said, "TZ")] if said else []
    link, text = map(Path, _PLACES_OF_ZONE)
    if link.is_symlink():
        found.append((os.path.realpath(link).partition("zoneinfo/")[2], str(link)))
    if text.is_file():
        found.append((text.read_text(errors="replace").strip(), str(text)))
    for name, where in found:
        try:
            if name:
                return ZoneInfo(name.partition("zoneinfo/")[2] or name), where
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return ZoneInfo("UTC"), "no setting found"


@lru_cache(maxsize=_REMEMBERED)
def slurm_span(text: str) -> float:
    """Return seconds for ``[D-]HH:MM:SS[.part]``, ``MM:SS``; ``ABSENT`` for anything else
    (``UNLIMITED``, say)."""
    found = _SPAN.match(text)
    return _seconds(found, 86_400, is_days_first=True) if found else ABSENT


@lru_cache(maxsize=_REMEMBERED)
def pbs_span(text: str) -> float:
    """Return seconds for ``SS``, ``MM:SS``, ``HH:MM:SS``, ``D:HH:MM:SS``; ``ABSENT`` for anything
    else."""
    found = _PBS_SPAN.match(text)
    return _seconds(found, 86_400, is_days_first=False) if found else ABSENT


def _seconds(found: re.Match[str], day: int, *, is_days_first: bool) -> float:
    groups = found.groups()
    parts = [int(part) for part in groups[is_days_first:4] if part is not None]
    value: float = int(groups[0]) * day if is_days_first and groups[0] else 0
    value += sum(
        part * unit for part, unit in zip(reversed(parts), (1, 60, 3600, day), strict=False)
    )
    value += float(groups[4] or 0)
    return value if value <= SPAN_MAX else ABSENT
