"""A month of the Origin 2000 as a workload log, preceded by the last days of the previous month;
its statistics next to the paper's.

Source of the statistics' ranges: Chiang and Vernon 2001, sections 2.4 and 3, if they print one; if
they write "a large fraction" or name only a sign, a range of our own around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.draws import Draws, ln
from qbatch.workloads.generate import generated_log
from qbatch.workloads.log import Column, Log
from qbatch.workloads.origin2000 import tables
from qbatch.workloads.origin2000.jobs import DemandTarget, DrawnJobs, draw_class
from qbatch.workloads.origin2000.tables import CLASSES, MONTHS, SIZES, TIMES, Month

HOUR_S = 3600
DAY_S = 24 * HOUR_S
SERIAL_RANGE = (0.4, 0.65)
"""Range of the share of serial jobs that request over 512 MB; the paper has 50 %, at weekday
peaks."""

WARMUP_DAYS_MAX = 28
_COLUMNS = ("procs", "requested_s", "run_s", "memory_kb", "used_kb")
_ATTEMPTS = 100
_BOUND_ATTEMPTS = 5
_TILTS = 16
_SERIAL_AIM = (0.45, 0.6)


@dataclass(frozen=True)
class _Arrived:
    """Jobs with their classes, users and submissions (log seconds), in order of submission."""

    submit_s: Column
    place: Column
    user: Column
    jobs: DrawnJobs


def generate_month(month: str, *, seed: int = 1, warmup_days: int = 7) -> Log:
    """Return the log of a month of table 4 (``1999-12``); its first ``warmup_days`` days are the
    last ones of the previous month.

    Log second 0 is the midnight at which the warm-up begins.  The same arguments give the same log
    on every machine, and a month has the same jobs as itself and as the warm-up of the next one.

    Raises:
        UsageError: there is no such month, or a number is out of range.
    """
    found = _checked(month, seed)
    if not 0 <= warmup_days <= WARMUP_DAYS_MAX:
        raise UsageError(f"--warmup-days is {warmup_days}; use 0 to {WARMUP_DAYS_MAX}")
    first = date(found.year, found.month, 1)
    parts = [_arrived(found, first, seed, warmup_days)]
    if warmup_days:
        # Before October 1999, of which nothing is printed, comes another October.
        names = list(MONTHS)
        before = MONTHS[names[max(names.index(month) - 1, 0)]]
        whole = _arrived(
            before, first - timedelta(days=before.days), seed, warmup_days - before.days
        )
        late = whole.submit_s >= 0
        parts.insert(
            0,
            _Arrived(
                whole.submit_s[late], whole.place[late], whole.user[late], _picked(whole.jobs, late)
            ),
        )
    return _log(found, parts, seed, warmup_days)


def month_jobs(month: Month, seed: int) -> tuple[Column, DrawnJobs]:
    """Return the indices into ``CLASSES`` and the jobs of a month, class by class."""
    return _month_jobs(month, seed, month.year * 100 + month.month)


def month_record(name: str, seed: int) -> dict[str, Any]:
    """Return a month compared to the paper's, for JSON: demands in percent of the machine, and
    statistics with their ranges.

    Raises:
        UsageError: see ``generate_month``.
    """
    month = _checked(name, seed)
    place, jobs = month_jobs(month, seed)
    whole = month.days * DAY_S * tables.PROCS, month.days * DAY_S * (tables.MEMORY_GB << 20)
    area = jobs.procs * jobs.run_s
    procs = [100.0 * sum_ / whole[0] for sum_ in class_demands(place, area)]
    memory = [100.0 * sum_ / whole[1] for sum_ in class_demands(place, area * jobs.memory_kb)]
    columns = (CLASSES, month.counts, month.procs_percent, procs, month.memory_percent, memory)
    overall = (
        "overall",
        month.jobs,
        month.procs_overall,
        sum(procs),
        month.memory_overall,
        sum(memory),
    )
    keys = ("name", "jobs", "procs_printed", "procs_percent", "memory_printed", "memory_percent")
    return {
        "month": name,
        "seed": seed,
        "overall": dict(zip(keys, overall, strict=True)),
        "classes": [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)],
        "facts": [
            fact._asdict() | {"in_range": fact.low <= fact.value <= fact.high}
            for fact in facts(place, jobs)
        ],
    }


def _checked(name: str, seed: int) -> Month:
    if name not in MONTHS:
        raise UsageError(
            f"--month {name!r}: use one of {', '.join(MONTHS)}{suggestion(name, MONTHS)}"
        )
    if seed < 0:
        raise UsageError(f"--seed is {seed}; use 0 or more")
    return MONTHS[name]


def _arrived(month: Month, first: date, seed: int, day: int) -> _Arrived:
    """Return the jobs of a month that begins on ``first``, on a day of the log, in order of
    submission."""
    stream = first.year * 100 + first.month
    place, jobs = _month_jobs(month, seed, stream)
    draws = Draws([seed, stream, len(CLASSES)])
    submit_s = arrival_times(draws, first, month.days, len(jobs))
    order = shuffled_jobs(draws, submit_s, first, jobs.procs)
    user = 1 + draws.weighted([1_000_000 // rank for rank in range(1, tables.USERS + 1)], len(jobs))
    return _Arrived(submit_s + day * DAY_S, place[order], user, _picked(jobs, order))


@lru_cache(maxsize=32)  # a month is used twice: as itself, and as the warm-up of the next
def _month_jobs(month: Month, seed: int, stream: int) -> tuple[Column, DrawnJobs]:
    """Return a month's jobs, drawn again until they meet all statements of the paper (nearly always
    at once)."""
    place = np.repeat(np.arange(len(CLASSES)), month.counts)
    targets = class_targets(month)
    for attempt in range(_ATTEMPTS):
        keys = [[seed, stream, where, attempt, 0] for where in range(len(targets))]
        parts = [_class_jobs(*each) for each in zip(targets, keys, strict=True)]
        for again in range(1, _ATTEMPTS):
            if lt_share(place, _joined(parts)) > 0.5:
                break
            for where, target in enumerate(targets):
                if target.time == "lt":
                    keys[where] = [seed, stream, where, attempt, again]
                    parts[where] = _class_jobs(target, keys[where])
        jobs = _joined(_with_lean_serials(targets, parts, keys))
        if lt_share(place, jobs) > 0.5 and all(
            fact.low <= fact.value <= fact.high for fact in facts(place, jobs)
        ):
            return place, jobs
    raise AssertionError(f"{month.name}: no draw of {_ATTEMPTS} gives a month like the paper's")


def _with_lean_serials(
    targets: list[DemandTarget], parts: list[DrawnJobs], keys: list[list[int]]
) -> list[DrawnJobs]:
    """Return the same jobs, with the memory of sj ones bent until about half of the serial ones
    request over 512 MB."""
    low, high = _SERIAL_AIM
    share = serial_share(_joined(parts))
    step = 0.0 if low <= share <= high else tables.SERIAL_TILT_STEP * (1 if share < low else -1)
    for again in range(1, _TILTS if step else 0):
        for where, target in enumerate(targets):
            if target.size != "sj":
                continue
            bent = _class_jobs(target, keys[where], step * again)
            # Other run times mean that these jobs could not be bent that far and others were drawn
            # instead.
            if np.array_equal(bent.run_s, parts[where].run_s):
                parts[where] = bent
        if low <= serial_share(_joined(parts)) <= high:
            break
    return parts


def _class_jobs(target: DemandTarget, key: list[int], serial_tilt: float = 0.0) -> DrawnJobs:
    for attempt in range(_ATTEMPTS):
        bound_percent = tables.BOUND_PERCENT if attempt < _BOUND_ATTEMPTS else 0
        jobs = draw_class(Draws([*key, attempt]), target, serial_tilt, bound_percent)
        if jobs is not None:
            return jobs
    raise AssertionError(f"{target}: no draw of {_ATTEMPTS} meets it")


def class_targets(month: Month) -> list[DemandTarget]:
    """Return the totals that each class of a month must reach, in the order of ``CLASSES``."""
    seconds = month.days * DAY_S
    procs = tables.percents(month.procs_percent, month.procs_overall)
    memory = tables.percents(month.memory_percent, month.memory_overall)
    procs_seconds = [round(each / 100.0 * tables.PROCS * seconds) for each in procs]
    memory_seconds = [round(each / 100.0 * (tables.MEMORY_GB << 20) * seconds) for each in memory]
    names = [(time, size) for size in SIZES for time in TIMES]
    rows = zip(names, month.counts, procs_seconds, memory_seconds, strict=True)
    return [DemandTarget(time, size, *totals) for (time, size), *totals in rows]


def _joined(parts: list[DrawnJobs]) -> DrawnJobs:
    return DrawnJobs(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    )


def _picked(jobs: DrawnJobs, which: Column) -> DrawnJobs:
    return DrawnJobs(*(getattr(jobs, name)[which] for name in _COLUMNS))


def _log(month: Month, parts: list[_Arrived], seed: int, warmup_days: int) -> Log:
    """Return the log: the class is the queue, memory is in KB per processor; jobs ended at their
    request have failed."""
    jobs = _joined([part.jobs for part in parts])
    submit_s, user, place = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("submit_s", "user", "place")
    )
    values = {
        "job": np.arange(1, len(jobs) + 1),
        "submit": submit_s,
        "run": jobs.run_s,
        "procs_allocated": jobs.procs,
        "memory_used": jobs.used_kb,
        "procs_requested": jobs.procs,
        "time_requested": jobs.requested_s,
        "memory_requested": jobs.memory_kb,
        "status": np.where(jobs.run_s == jobs.requested_s, 0, 1),
        "user": user,
        "queue": 1 + place,
    }
    start = datetime(month.year, month.month, 1, tzinfo=UTC) - timedelta(days=warmup_days)
    notes = [
        "a model of the workload in Chiang and Vernon 2001, table 4: no log of the real machine",
        "the queue is the class of the job; requested and used memory are in KB per processor",
        "the requested time is both the run time and the processor time of each processor",
    ]
    if warmup_days:
        warm = f"jobs submitted before second {warmup_days * DAY_S} are the warm-up"
        notes.append(f"{warm}; replay with --warmup {month.name}-01")
    return generated_log(
        f"origin2000-{month.name}",
        (
            f"qbatch generate origin2000 --month {month.name} --seed {seed} --warmup-days "
            f"{warmup_days}"
        ),
        values,
        computer="SGI Origin 2000 (generated workload)",
        installation="qbatch, after NCSA",
        start=int(start.timestamp()),
        procs=tables.PROCS,
        nodes=8,
        longest_s=max(tables.REQUESTED_HOURS["lt"]) * HOUR_S,
        queues=dict(enumerate(CLASSES, 1)),
        notes=notes,
    )


# -------------------------------------------------------------------------------- arrivals


def arrival_times(draws: Draws, first: date, days: int, jobs: int) -> Column:
    """Return the seconds since the midnight of ``first`` at which jobs arrive, ascending."""
    hour = np.arange(24 * days)
    percent = np.where(is_weekend(hour // 24, first), tables.WEEKEND_PERCENT, 100)
    weights = np.array(tables.HOUR_WEIGHTS, np.int64)[hour % 24] * percent
    return np.sort(draws.weighted(weights, jobs) * HOUR_S + draws.below(HOUR_S, jobs))


def is_weekend(day: Column, first: date) -> Column:
    """Return a mask of the days, counted from ``first``, that are Saturdays or Sundays."""
    return np.asarray((first.weekday() + day) % 7 >= 5)  # Saturday


def is_quiet(second: Column, first: date) -> Column:
    """Return a mask of the instants at night or on a weekend."""
    return is_weekend(second // DAY_S, first) | (second // HOUR_S % 24 < 7)


def shuffled_jobs(draws: Draws, second: Column, first: date, procs: Column) -> Column:
    """Return which job arrives at each of the instants: in random order, but the widest jobs more
    often in quiet times."""
    jobs = len(second)
    is_widest = procs == max(tables.WIDE_PROCS["lj"])
    places = draws.shuffled(jobs)
    # A busy instant is rejected as often as necessary to make the quiet ones that much more
    # frequent.
    is_passed = ~is_quiet(second[places], first) & (draws.below(tables.QUIET_PERCENT, jobs) >= 100)
    places = np.concatenate((places[~is_passed], places[is_passed]))
    rows = draws.shuffled(jobs)
    order = np.empty(jobs, np.int64)
    order[places] = np.concatenate((rows[is_widest[rows]], rows[~is_widest[rows]]))
    return order


# -------------------------------------------------------------------------------- statistics


class Fact(NamedTuple):
    """One statistic of a month: its description, its value, and the range in which it must lie
    (both ends included)."""

    name: str
    value: float
    low: float
    high: float


def facts(place: Column, jobs: DrawnJobs) -> list[Fact]:
    """Return the statistics of a month that do not depend on when its jobs arrive; ``place``: the
    class of each job."""
    minute, sparing = jobs.run_s < tables.EARLY_S, jobs.used_kb * 10 < jobs.memory_kb
    among = [place == each for each in range(len(CLASSES)) if (place == each).any()]
    early_of, sparing_of = ([_share(which, each) for each in among] for which in (minute, sparing))
    return [
        Fact(
            "requested over 1 h, ended within 1 min",
            _share(minute, jobs.requested_s > HOUR_S),
            0.12,
            0.33,
        ),
        Fact(
            "requested over 10 h, ended within 1 min",
            _share(minute, jobs.requested_s > 10 * HOUR_S),
            0.11,
            0.42,
        ),
        Fact("ended within 1 min, least of the classes", min(early_of), 0.15, 0.20),
        Fact("ended within 1 min, most of the classes", max(early_of), 0.15, 0.20),
        Fact("lt that could have asked for st", lt_share(place, jobs), 0.5, 1.0),
        Fact("used below 10 % of memory, least of the classes", min(sparing_of), 0.25, 0.35),
        Fact("used below 10 % of memory, most of the classes", max(sparing_of), 0.25, 0.35),
        Fact(
            "ended within 1 min, used below 1 GB",
            _share(jobs.used_kb * jobs.procs < tables.SMALL_EARLY_KB, minute),
            0.95,
            1.0,
        ),
        Fact("serial jobs", _share(jobs.procs == 1), 0.3, 0.5),
        Fact("powers of two", _share((jobs.procs & (jobs.procs - 1)) == 0), 0.6, 1.0),
        Fact("serial jobs that request over 512 MB", serial_share(jobs), *SERIAL_RANGE),
        Fact(
            "correlation of ln(run time) and processors",
            _correlation(ln(jobs.run_s), jobs.procs),
            0.0,
            1.0,
        ),
        Fact(
            "correlation of memory per processor and processors",
            _correlation(jobs.memory_kb, jobs.procs),
            -1.0,
            0.0,
        ),
        Fact(
            "correlation of used memory per processor and run time",
            _correlation(jobs.used_kb, ln(jobs.run_s)),
            0.0,
            1.0,
        ),
    ]


def serial_share(jobs: DrawnJobs) -> float:
    """Return the share of serial jobs that request over 512 MB: more than any host has per
    processor."""
    return _share(jobs.memory_kb > (512 << 10), jobs.procs == 1)


def lt_share(place: Column, jobs: DrawnJobs) -> float:
    """Return the share of lt jobs that run no longer than an st job may."""
    most_s = max(tables.REQUESTED_HOURS["st"]) * HOUR_S
    return _share(jobs.run_s <= most_s, place % len(TIMES) == TIMES.index("lt"))


def class_demands(place: Column, weights: Column) -> list[int]:
    """Return the sums of weights (processor-seconds, KB-seconds) of each class."""
    return [int(weights[place == each].sum()) for each in range(len(CLASSES))]


def _share(which: Column, among: Column | None = None) -> float:
    inside = which if among is None else which[among]
    return int(np.count_nonzero(inside)) / len(inside)


def _correlation(one: Column, other: Column) -> float:
    """Return Pearson's coefficient; its sums are rounded once, so that it is the same on every
    machine."""
    first, second = (
        column.astype(np.float64) - math.fsum(column.tolist()) / len(column)
        for column in (one, other)
    )
    square, product, other_square = (
        math.fsum(column.tolist()) for column in (first * first, first * second, second * second)
    )
    return product / math.sqrt(square * other_square)
