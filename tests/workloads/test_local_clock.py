"""The clock on the wall of a log, against the standard library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.workloads.header import parse_header
from qbatch.workloads.transform.resampling import LocalClock

YEAR = 366 * 86_400
ZONES = [
    "Europe/Stockholm",
    "US/Pacific",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "UTC",
]


def clock_of(zone: str, start: int, first: float, last: float) -> LocalClock:
    return LocalClock.of(
        parse_header([f"; UnixStartTime: {start}", f"; TimeZoneString: {zone}"]), first, last
    )


def naive(zone: str, start: int, second: int) -> datetime:
    return (
        datetime.fromtimestamp(start + second, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    )


@given(
    st.sampled_from(ZONES),
    st.integers(8 * 10**8, 13 * 10**8),
    st.lists(st.integers(0, 2 * YEAR), min_size=1),
)
def test_local_seconds_are_those_of_the_zone_and_lead_back(
    zone: str, start: int, seconds: list[int]
) -> None:
    seconds.sort()
    clock = clock_of(zone, start, seconds[0], seconds[-1])
    local = clock.local(np.array(seconds))
    midnight = datetime.fromtimestamp(start // 86_400 * 86_400, UTC).replace(tzinfo=None)
    wall = [midnight + timedelta(seconds=int(each)) for each in local]
    assert wall == [naive(zone, start, each) for each in seconds]
    for second, back, time in zip(seconds, clock.instants(local).tolist(), wall, strict=True):
        aware = time.replace(tzinfo=ZoneInfo(zone))  # fold 0: the first of an hour that comes twice
        assert back == aware.timestamp() - start
        assert back == second or naive(zone, start, back) == time


@pytest.mark.parametrize("zone", ["Europe/Stockholm", "Australia/Lord_Howe", "America/Sao_Paulo"])
def test_every_wall_clock_time_around_a_change_is_understood_as_the_standard_library_does(
    zone: str,
) -> None:
    start = 843_480_031
    clock = clock_of(zone, start, 0, YEAR)
    midnight = datetime.fromtimestamp(start // 86_400 * 86_400, UTC).replace(tzinfo=None)
    assert len(clock.changes) >= 2
    for change in clock.changes:
        local = int(clock.local(np.array([change]))[0]) + np.arange(-3 * 3600, 3 * 3600, 300)
        wanted = [
            (midnight + timedelta(seconds=int(each))).replace(tzinfo=ZoneInfo(zone)).timestamp()
            - start
            for each in local
        ]
        assert clock.instants(local).tolist() == wanted


def test_without_a_start_the_logs_second_0_is_midnight_and_an_unknown_zone_is_utc() -> None:
    seconds = np.array([0, 5, 86_400])
    assert LocalClock.of(parse_header([]), 0, 9).local(seconds).tolist() == seconds.tolist()
    unknown = clock_of("Middle/Earth", 86_400 + 7, 0, 9)
    assert unknown.local(seconds).tolist() == [7, 12, 86_407]


@pytest.mark.parametrize("last", [10**11, 10**14, 10**17])
def test_a_span_of_ages_costs_nothing_and_fails_nowhere(last: int) -> None:
    clock = clock_of("US/Pacific", 10**9, 0, last)
    assert clock.changes == ()
    assert clock.instants(clock.local(np.array([last]))).tolist() == [last]
