"""The windows of reservations on the clock of a log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from qbatch.model.errors import InputError
from qbatch.model.machine import Reservation
from qbatch.model.record import LogClock
from qbatch.model.reservations import Window, windows_of

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
FOREVER = 1000 * DAY

BERLIN = LogClock(
    int(datetime(2026, 3, 26, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()), "Europe/Berlin"
)
"""Second 0 is the midnight of a Thursday; the clocks go forward on the Sunday after it."""


def kept(start: str, repeat: str = "", hours: float = 1, **more: bool) -> Reservation:
    return Reservation("r", (0, 2), start, round(hours * HOUR), repeat, **more)


def begins(reservation: Reservation, clock: LogClock = BERLIN, until: int = 8 * DAY) -> list[float]:
    """Return the begins in hours."""
    return [window.begin / HOUR for window in windows_of([reservation], clock, until)]


def test_a_window_has_hosts_begin_end_and_reservation() -> None:
    other = Reservation("s", (1,), "2.5", 7)
    assert windows_of([kept("9"), other], LogClock(), FOREVER) == (
        Window(2_500_000, 2_500_007, 1, (1,)),
        Window(9 * SECOND, 9 * SECOND + HOUR, 0, (0, 2)),
    )


def test_a_date_is_of_the_zone_of_the_log_or_of_its_own() -> None:
    assert begins(kept("2026-03-27T08:00:00")) == [32]
    assert begins(kept("2026-03-27T08:00:00+00:00")) == [33]
    assert begins(kept("2026-03-27")) == [24]
    assert begins(kept("1970-01-01T02:00:00"), LogClock(0, "Nowhere/Atall")) == [2]


def test_only_windows_after_second_0_and_before_the_horizon_are_found() -> None:
    assert begins(kept("-7200", hours=2)) == []
    assert begins(kept("-7200", hours=3)) == [-2]
    assert begins(kept("3600"), until=HOUR) == []
    assert begins(kept("3600"), until=HOUR + 1) == [1]
    assert begins(kept("2026-03-20T12:00:00", "daily"), until=2 * DAY) == [12, 36]


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [
        ("daily", [10, 34, 58, 81, 105, 129, 153, 177]),
        ("weekday", [10, 34, 105, 129, 153, 177]),
        ("weekend", [10, 58, 81]),
        ("weekly", [10, 177]),
    ],
)
def test_a_repetition_keeps_the_time_of_the_day(repeat: str, expected: list[float]) -> None:
    assert begins(kept("2026-03-26T10:00:00", repeat)) == expected
    assert begins(kept("36000", repeat)) == expected


def test_hours_are_of_the_same_length_when_the_clocks_change() -> None:
    found = begins(kept("2026-03-28T22:00:00", "hourly"), until=78 * HOUR)
    assert found == [70, 71, 72, 73, 74, 75, 76, 77]


def test_a_time_that_does_not_exist_has_the_offset_before_and_of_two_the_first_is_taken() -> None:
    assert begins(kept("2026-03-27T02:30:00", "daily"), until=5 * DAY) == [26.5, 50.5, 74.5, 97.5]
    autumn = int(datetime(2026, 10, 25, tzinfo=ZoneInfo("Europe/Berlin")).timestamp())
    assert begins(kept("2026-10-25T02:30:00"), LogClock(autumn, "Europe/Berlin")) == [2.5]


def test_a_reservation_begins_again_after_it_has_ended() -> None:
    assert begins(kept("0", "daily", hours=30), until=5 * DAY) == [0, 48, 95]
    assert begins(kept("0", "hourly", hours=1.5), until=6 * HOUR) == [0, 2, 4]
    assert begins(kept("0", "hourly", hours=2), until=6 * HOUR) == [0, 2, 4]


def test_without_a_calendar_days_are_24_hours_and_days_of_the_week_are_refused() -> None:
    assert begins(kept("3600", "daily"), LogClock(), 3 * DAY) == [1, 25, 49]
    with pytest.raises(InputError, match="repeats by weekend, but the log has no UnixStartTime"):
        begins(kept("3600", "weekend"), LogClock())
    with pytest.raises(InputError, match="'r' starts at 2026-03-27, but the log has no UnixStart"):
        begins(kept("2026-03-27"), LogClock())


def test_a_repetition_ends_with_the_calendar() -> None:
    assert len(begins(kept("9999-12-31T00:00:00", "daily"), until=1 << 62)) == 1


def test_reservations_that_overlap_on_a_host_are_refused_unless_one_is_for_maintenance() -> None:
    first = kept("2026-03-26T10:00:00", "daily")
    second = Reservation("s", (2, 3), "2026-03-28T10:30:00", HOUR)
    with pytest.raises(
        InputError, match=r"'r' and 's' overlap on a host at second 210600 of the log"
    ):
        windows_of([first, second], BERLIN, FOREVER)
    after = Reservation("s", (2, 3), "2026-03-28T11:00:00", HOUR)
    elsewhere = Reservation("s", (3,), "2026-03-28T10:30:00", HOUR)
    maintenance = Reservation("s", (2, 3), "2026-03-28T10:30:00", HOUR, is_maintenance=True)
    for other in (after, elsewhere, maintenance):
        assert len(windows_of([first, other], BERLIN, 4 * DAY)) == 5
    assert len(windows_of([first, second], BERLIN, 58 * HOUR)) == 2


def test_the_days_of_a_year_are_those_of_a_plain_count() -> None:
    """A second way to count: every instant of a year by the hour, read in the zone."""
    for repeat, days in (("weekday", range(5)), ("weekend", range(5, 7)), ("daily", range(7))):
        zone, first = ZoneInfo("America/New_York"), datetime(2025, 12, 31, 7, tzinfo=UTC)
        clock = LogClock(int(first.timestamp()), "America/New_York")
        expected = [
            hour
            for hour in range(366 * 24)
            if (local := (first + timedelta(hours=hour)).astimezone(zone)).hour == 2
            and (local.weekday() in days or hour == 0)
        ]
        found = begins(kept("0", repeat), clock, 366 * DAY)
        # On 8 March, a Sunday, 02:00 does not exist: it is 03:00 then.
        missing = [] if repeat == "weekday" else [67 * 24]
        assert found == sorted([*expected, *missing])
