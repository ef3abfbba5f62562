"""The local clock at the site of a log: log seconds and local seconds, with daylight saving time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from qbatch.workloads.header import Header
from qbatch.workloads.log import Column, log_zone

_DAY_S = 86_400
_SPAN_MAX_S = 400 * 366 * _DAY_S


@dataclass(frozen=True)
class LocalClock:
    """The clock of a log.  Its local seconds count from the midnight (of local time) of a day before the log's second 0.

    Attributes:
        changes: log seconds at which the clock is set forward or back, ascending.
        offsets: the additions to log seconds before the first change, between changes, and after the last one.
    """

    changes: tuple[int, ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, header: Header, first: float, last: float) -> LocalClock:
        """Return the clock by UnixStartTime and TimeZoneString, for log seconds from ``first`` to ``last`` and a month more.

        Without UnixStartTime the log's second 0 is midnight.  An unknown zone counts as UTC.
        """
        start = header.unix_start_time
        if start is None:
            return cls((), (0,))
        zone = log_zone(header)
        base = start // _DAY_S * _DAY_S  # midnight, UTC, of the day of second 0

        def offset(second: int) -> int:
            delta = datetime.fromtimestamp(start + second, UTC).astimezone(zone).utcoffset()
            return start - base + round((delta or timedelta()).total_seconds())

        begin, end = int(first) - 2 * _DAY_S, int(last) + 31 * _DAY_S
        try:
            if end - begin > _SPAN_MAX_S:
                return cls((), (offset(int(first)),))
            days = [offset(second) for second in range(begin, end, _DAY_S)]
            changes, offsets = [], [days[0]]
            for place, (before, after) in enumerate(pairwise(days)):
                if before != after:
                    changes.append(_change(offset, begin + place * _DAY_S, before))
                    offsets.append(after)
        except (OverflowError, ValueError, OSError):
            return cls((), (start - base,))
        return cls(tuple(changes), tuple(offsets))

    def local(self, seconds: Column) -> Column:
        """Return the local seconds of log seconds."""
        place = np.searchsorted(np.array(self.changes, np.int64), seconds, side="right")
        return np.asarray(seconds + np.array(self.offsets, np.int64)[place])

    def instants(self, local: Column) -> Column:
        """Return the log seconds of local seconds.

        In an hour that occurs twice the first is meant; an hour that is skipped counts as the one after it.
        """
        from_local = [
            change + max(offsets) for change, offsets in zip(self.changes, pairwise(self.offsets), strict=True)
        ]
        place = np.searchsorted(np.array(from_local, np.int64), local, side="right")
        return np.asarray(local - np.array(self.offsets, np.int64)[place])


def _change(offset: Callable[[int], int], low: int, before: int) -> int:
    """Return the first second of a day, after ``low``, at which the offset is no longer ``before``."""
    high = low + _DAY_S
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle) == before else (low, middle)
    return high
