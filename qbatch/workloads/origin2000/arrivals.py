"""When the jobs of a month arrive, and in which order: three periods of the day, quieter weekends."""

from __future__ import annotations

from datetime import date

import numpy as np

from qbatch.workloads.draws import Draws
from qbatch.workloads.log import Column
from qbatch.workloads.origin2000 import tables

HOUR_S = 3600
DAY_S = 24 * HOUR_S
_SATURDAY = 5
_LOW_UNTIL_HOUR = 7


def arrival_times(draws: Draws, first: date, days: int, jobs: int) -> Column:
    """Return the seconds since the midnight of ``first`` at which jobs arrive, ascending."""
    hour = np.arange(24 * days)
    percent = np.where(is_weekend(hour // 24, first), tables.WEEKEND_PERCENT, 100)
    weights = np.array(tables.HOUR_WEIGHTS, np.int64)[hour % 24] * percent
    return np.sort(draws.weighted(weights, jobs) * HOUR_S + draws.below(HOUR_S, jobs))


def is_weekend(day: Column, first: date) -> Column:
    """Return a mask of the days, counted from ``first``, that are Saturdays or Sundays."""
    return np.asarray((first.weekday() + day) % 7 >= _SATURDAY)


def is_quiet(second: Column, first: date) -> Column:
    """Return a mask of the instants at night or on a weekend."""
    return is_weekend(second // DAY_S, first) | (second // HOUR_S % 24 < _LOW_UNTIL_HOUR)


def shuffled_jobs(draws: Draws, second: Column, first: date, procs: Column) -> Column:
    """Return which job arrives at each of the instants: in random order, but the widest jobs more often in quiet times."""
    jobs = len(second)
    is_widest = procs == max(tables.WIDE_PROCS["lj"])
    places = draws.shuffled(jobs)
    # A busy instant is rejected as often as necessary to make the quiet ones that much more frequent.
    is_passed = ~is_quiet(second[places], first) & (draws.below(tables.QUIET_PERCENT, jobs) >= 100)
    places = np.concatenate((places[~is_passed], places[is_passed]))
    rows = draws.shuffled(jobs)
    order = np.empty(jobs, np.int64)
    order[places] = np.concatenate((rows[is_widest[rows]], rows[~is_widest[rows]]))
    return order
