"""Days and months of submission, in the log's own time zone.

The zone is asked once for each midnight near a job, not once per job: the jobs are then sorted
between midnights.  So a day has 23 or 25 hours when the clocks change, and a month begins at its
local midnight.  If the zone or the instant of the log's second 0 is unknown, days are 24 hours and
months 30 days, numbered from 1 at second 0.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np

from qbatch.model.record import MICROSECONDS, Int64Array, LogClock, zone_of

DAY_US = 86_400 * MICROSECONDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Grouped = tuple[Int64Array, list[str]]
"""For each job the index of its label, and the labels in order."""


def by_day(clock: LogClock, submit: Int64Array) -> Grouped:
    """Return the day of each submit: ``1996-10-03``, or ``day 1`` if the calendar is unknown."""
    return _calendar_days(clock, submit) or _numbered(submit, 1, "day")


def by_month(clock: LogClock, submit: Int64Array) -> Grouped:
    """Return the month of each submit: ``1996-10``, or ``30-day month 1`` if the calendar is
    unknown."""
    days = _calendar_days(clock, submit)
    if days is None:
        return _numbered(submit, 30, "30-day month")
    codes, labels = days
    months, month_of_day = np.unique([label[:7] for label in labels], return_inverse=True)
    return month_of_day.astype(np.int64)[codes], months.tolist()


def _calendar_days(clock: LogClock, submit: Int64Array) -> Grouped | None:
    zone = zone_of(clock)
    if zone is None or clock.unix_start is None:
        return None
    if not len(submit):
        return np.empty(0, np.int64), []
    try:
        instants = submit + clock.unix_start * MICROSECONDS
        # The local date is the UTC date, or the one before or after it; one more midnight closes
        # the last.
        near = np.unique(instants // DAY_US)
        numbers = np.unique(near[:, None] + np.arange(-1, 3))
        days = [date.fromordinal(_EPOCH.toordinal() + number) for number in numbers.tolist()]
        # If the clocks skip midnight, a day begins at the instant of the skip.
        begins = [datetime(day.year, day.month, day.day, tzinfo=zone) - _EPOCH for day in days]
        midnights = np.array([begin // timedelta(microseconds=1) for begin in begins], np.int64)
    except (ValueError, OverflowError):  # beyond the years 1 to 9999
        return None
    return np.searchsorted(midnights, instants, side="right") - 1, [day.isoformat() for day in days]


def _numbered(submit: Int64Array, days: int, name: str) -> Grouped:
    numbers, codes = np.unique(submit // (days * DAY_US), return_inverse=True)
    return codes, [f"{name} {number + 1}" for number in numbers.tolist()]
