"""Months and days by the clock on the wall of the log's zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.metrics.dates import by_day, by_month
from qbatch.model.record import LogClock, zone_of

from .samples import SECOND

ZONES = (
    "UTC",
    "Europe/Stockholm",
    "America/Chicago",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Pacific/Apia",
)


def labels(clock: LogClock, *submit_s: float, by: str = "month") -> list[str]:
    submit = np.array([round(second * SECOND) for second in submit_s], np.int64)
    codes, names = (by_month if by == "month" else by_day)(clock, submit)
    return [names[code] for code in codes]


def instant(*when: int, zone: str = "UTC") -> int:
    return int(datetime(*when, tzinfo=ZoneInfo(zone)).timestamp())  # type: ignore[misc,arg-type]


def test_a_month_begins_at_local_midnight() -> None:
    for zone in ("Europe/Stockholm", "America/Chicago", "Asia/Beirut"):
        for year, month in ((1996, 4), (1996, 10), (1996, 11), (1997, 1)):
            midnight = instant(year, month, 1, zone=zone)
            clock = LogClock(midnight - 5000, zone)
            before = f"{year - (month == 1)}-{(month - 2) % 12 + 1:02}"
            found = labels(clock, 4999.999999, 5000, 5000.000001)
            assert found == [before, f"{year}-{month:02}", f"{year}-{month:02}"]


def test_a_day_has_23_or_25_hours_when_the_clocks_change() -> None:
    for day, hours in ((date(1996, 3, 31), 23), (date(1996, 10, 27), 25), (date(1996, 5, 5), 24)):
        start = instant(day.year, day.month, day.day, zone="Europe/Stockholm")
        found = labels(
            LogClock(start, "Europe/Stockholm"), -1, 0, hours * 3600 - 1, hours * 3600, by="day"
        )
        assert found == [(day + timedelta(days=shift)).isoformat() for shift in (-1, 0, 0, 1)]


def test_a_midnight_that_the_clocks_leap_over_begins_the_day_at_the_leap() -> None:
    """In Beirut on 1996-03-31 the clocks went from 00:00 to 01:00 at once (22:00 UTC the day
    before)."""
    leap = instant(1996, 3, 30, 22)
    assert labels(LogClock(leap, "Asia/Beirut"), -1, 0, by="day") == ["1996-03-30", "1996-03-31"]


def test_a_day_that_a_zone_left_out_has_no_jobs() -> None:
    """Samoa went from 29 to 31 December 2011 over the date line."""
    leap = instant(2011, 12, 30, 10)
    assert labels(LogClock(leap, "Pacific/Apia"), -1, 0, by="day") == ["2011-12-29", "2011-12-31"]


@given(
    st.sampled_from(ZONES),
    st.lists(st.integers(0, 2 * 10**9), min_size=1, max_size=20),
    st.integers(0, 10**6),
)
def test_every_job_has_the_date_that_its_zone_shows(
    zone: str, walls: list[int], start: int
) -> None:
    expected = [
        datetime.fromtimestamp(wall, UTC).astimezone(ZoneInfo(zone)).date().isoformat()
        for wall in walls
    ]
    clock = LogClock(start, zone)
    assert labels(clock, *(wall - start for wall in walls), by="day") == expected
    assert labels(clock, *(wall - start for wall in walls)) == [day[:7] for day in expected]


UNKNOWN = [
    LogClock(),
    LogClock(0),
    LogClock(None, "UTC"),
    LogClock(0, "Mars/Olympus"),
    LogClock(0, "../x"),
]


@pytest.mark.parametrize("clock", UNKNOWN)
def test_without_a_calendar_days_and_months_are_numbered(clock: LogClock) -> None:
    month = 30 * 86_400
    assert labels(clock, -1, 0, month - 1, month, 12.5 * month) == [
        f"30-day month {number}" for number in (0, 1, 1, 2, 13)
    ]
    assert labels(clock, -1, 0, 86_400, by="day") == ["day 0", "day 1", "day 2"]


def test_instants_that_no_calendar_has_are_numbered() -> None:
    assert labels(LogClock(0, "UTC"), 1e12)[0].startswith("30-day month")
    assert labels(LogClock(-(10**12), "UTC"), 0) == ["30-day month 1"]


def test_no_jobs_have_no_dates() -> None:
    for clock in (LogClock(), LogClock(0, "UTC")):
        assert labels(clock) == labels(clock, by="day") == []


def test_utc_needs_no_zone_file() -> None:
    assert zone_of(LogClock(0, "UTC")) is UTC
