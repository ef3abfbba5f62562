"""The statistics of a month, compared to what the paper reports of the real ones.

Source of the ranges: Chiang and Vernon 2001, sections 2.4 and 3, if they print one; if they write "a large fraction" or
name only a sign, a range of our own around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qbatch.workloads.log import Column
from qbatch.workloads.origin2000 import tables
from qbatch.workloads.origin2000.jobs import DrawnJobs
from qbatch.workloads.origin2000.tables import CLASSES
from qbatch.workloads.portable import ln

_HOUR_S = 3600
_HALF_GB_KB = 512 << 10
SERIAL_RANGE = (0.4, 0.65)
"""Range of the share of serial jobs that request over 512 MB; the paper has 50 %, at weekday peaks."""


@dataclass(frozen=True)
class Fact:
    """One statistic of a month: its description, its value, and the range in which it must lie (both ends included)."""

    name: str
    value: float
    low: float
    high: float

    @property
    def is_in_range(self) -> bool:
        """Whether the month is like the paper's in this statistic."""
        return self.low <= self.value <= self.high


def facts(place: Column, jobs: DrawnJobs) -> list[Fact]:
    """Return the statistics of a month that do not depend on when its jobs arrive; ``place``: the class of each job."""
    minute = jobs.run_s < tables.EARLY_S
    low = jobs.used_kb * 10 < jobs.memory_kb
    serial = jobs.procs == 1
    is_power = (jobs.procs & (jobs.procs - 1)) == 0
    early, sparing = _by_class(place, minute), _by_class(place, low)
    total_kb = jobs.used_kb * jobs.procs
    long = jobs.requested_s > _HOUR_S
    very_long = jobs.requested_s > 10 * _HOUR_S
    return [
        Fact("requested over 1 h, ended within 1 min", _share(minute, long), 0.12, 0.33),
        Fact("requested over 10 h, ended within 1 min", _share(minute, very_long), 0.11, 0.42),
        Fact("ended within 1 min, least of the classes", min(early), 0.15, 0.20),
        Fact("ended within 1 min, most of the classes", max(early), 0.15, 0.20),
        Fact("lt that could have asked for st", _lt_share(place, jobs), 0.5, 1.0),
        Fact("used below 10 % of memory, least of the classes", min(sparing), 0.25, 0.35),
        Fact("used below 10 % of memory, most of the classes", max(sparing), 0.25, 0.35),
        Fact("ended within 1 min, used below 1 GB", _share(total_kb < tables.SMALL_EARLY_KB, minute), 0.95, 1.0),
        Fact("serial jobs", _share(serial), 0.3, 0.5),
        Fact("powers of two", _share(is_power), 0.6, 1.0),
        Fact("serial jobs that request over 512 MB", serial_share(jobs), *SERIAL_RANGE),
        Fact("correlation of ln(run time) and processors", _correlation(ln(jobs.run_s), jobs.procs), 0.0, 1.0),
        Fact("correlation of memory per processor and processors", _correlation(jobs.memory_kb, jobs.procs), -1.0, 0.0),
        Fact("correlation of used memory per processor and run time",
             _correlation(jobs.used_kb, ln(jobs.run_s)), 0.0, 1.0),
    ]  # fmt: skip


def is_like_the_paper(place: Column, jobs: DrawnJobs) -> bool:
    """Return whether every statistic is in its range, and more than half of the lt jobs run no longer than st jobs may."""
    return lt_within_st(place, jobs) and all(fact.is_in_range for fact in facts(place, jobs))


def serial_share(jobs: DrawnJobs) -> float:
    """Return the share of serial jobs that request over 512 MB: more than any host has per processor."""
    return _share(jobs.memory_kb > _HALF_GB_KB, jobs.procs == 1)


def lt_within_st(place: Column, jobs: DrawnJobs) -> bool:
    """Return whether over half of the lt jobs run no longer than an st job may."""
    return _lt_share(place, jobs) > 0.5


def class_demands(place: Column, weights: Column) -> list[int]:
    """Return the sums of weights (processor-seconds, KB-seconds) of each class."""
    return [int(weights[place == each].sum()) for each in range(len(CLASSES))]


def _lt_share(place: Column, jobs: DrawnJobs) -> float:
    most_s = max(tables.REQUESTED_HOURS["st"]) * _HOUR_S
    return _share(jobs.run_s <= most_s, place % len(tables.TIMES) == tables.TIMES.index("lt"))


def _by_class(place: Column, which: Column) -> list[float]:
    return [_share(which, place == each) for each in range(len(CLASSES)) if (place == each).any()]


def _share(which: Column, among: Column | None = None) -> float:
    inside = which if among is None else which[among]
    return int(np.count_nonzero(inside)) / len(inside)


def _correlation(one: Column, other: Column) -> float:
    """Return Pearson's coefficient; its sums are rounded once, so that it is the same on every machine."""
    total: Callable[[Column], float] = lambda column: math.fsum(column.tolist())  # noqa: E731
    first = one.astype(np.float64) - total(one) / len(one)
    second = other.astype(np.float64) - total(other) / len(other)
    return total(first * second) / math.sqrt(total(first * first) * total(second * second))
