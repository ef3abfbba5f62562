"""When jobs arrive: three periods of the day, weekends, and the widest jobs when it is quiet."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from qbatch.workloads.origin2000 import MONTHS

from .months import SEEDS, month_log


def arrivals() -> list[tuple[datetime, int]]:
    """Return the instants and processors of the jobs of all months and seeds."""
    found = []
    for name in MONTHS:
        for seed in SEEDS:
            log = month_log(name, seed)
            start = log.header.unix_start_time
            pairs = zip(log["submit"].tolist(), log["procs_requested"].tolist(), strict=True)
            found += [
                (datetime.fromtimestamp(start + second, UTC), int(procs)) for second, procs in pairs
            ]
    return found


@pytest.fixture(scope="module")
def all_arrivals() -> list[tuple[datetime, int]]:
    return arrivals()


def period(moment: datetime) -> str:
    if moment.hour < 7:
        return "low"
    return "peak" if 9 <= moment.hour < 18 else "intermediate"


HOURS = {"low": 7, "intermediate": 8, "peak": 9}
WEIGHT = {"low": 0.6, "intermediate": 1.2, "peak": 1.8}


def test_the_periods_of_the_day_stand_three_to_two_to_one(
    all_arrivals: list[tuple[datetime, int]],
) -> None:
    for is_weekend in (False, True):
        some = [moment for moment, _ in all_arrivals if (moment.weekday() >= 5) == is_weekend]
        rates = {
            name: sum(period(moment) == name for moment in some) / hours / WEIGHT[name]
            for name, hours in HOURS.items()
        }
        mean = sum(rates.values()) / 3
        assert all(rate == pytest.approx(mean, rel=0.05) for rate in rates.values())


def test_a_day_of_a_weekend_has_055_of_the_arrivals_of_a_weekday() -> None:
    from datetime import date, timedelta

    for name, month in MONTHS.items():
        days = [date(month.year, month.month, 1) + timedelta(days=day) for day in range(month.days)]
        free = sum(day.weekday() >= 5 for day in days)
        weekdays = weekends = 0
        for seed in SEEDS:
            log = month_log(name, seed)
            start = log.header.unix_start_time
            late = [
                datetime.fromtimestamp(start + second, UTC).weekday() >= 5
                for second in log["submit"].tolist()
            ]
            weekends += sum(late)
            weekdays += len(late) - sum(late)
        assert weekends / free / (weekdays / (month.days - free)) == pytest.approx(0.55, rel=0.06)


def test_the_widest_jobs_come_more_often_at_night_and_on_weekends(
    all_arrivals: list[tuple[datetime, int]],
) -> None:
    quiet = [procs for moment, procs in all_arrivals if moment.weekday() >= 5 or moment.hour < 7]
    busy = [procs for moment, procs in all_arrivals if moment.weekday() < 5 and moment.hour >= 7]
    share, other = quiet.count(64) / len(quiet), busy.count(64) / len(busy)
    assert 1.15 < share / other < 1.45


def test_users_follow_zipf() -> None:
    log = month_log("1999-10")
    users = sorted((log["user"].tolist().count(user) for user in range(1, 401)), reverse=True)
    harmonic = sum(1 / rank for rank in range(1, 401))
    assert users[0] / len(log) == pytest.approx(1 / harmonic, rel=0.15)
    assert log["user"].min() >= 1
    assert log["user"].max() <= 400
