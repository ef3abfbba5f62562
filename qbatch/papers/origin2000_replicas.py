"""What is read of the replicas of a month: a number of each, and paired differences and ratios of two policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from qbatch.papers.origin2000_runs import Origin2000Figures, by_policy

HOUR_S = 3600.0
RANGES = {
    "<1m": 60.0, "1-10m": 600.0, "10m-1h": 3600.0, "1-10h": 36_000.0, "10-50h": 180_000.0, "50-100h": 360_000.0,
    ">100h": math.inf,
}  # fmt: skip
"""The ranges of run time of the figures, and where each ends, in seconds; one that lies on an end belongs to the next."""

Number = Callable[[Origin2000Figures], float | None]
"""What is read of one run."""

_Told = TypeVar("_Told")


def whole(key: str) -> Number:
    """Return the reader of a metric over all jobs of the month."""
    return lambda one: _as_float(one.whole.get(key))


def longer(key: str) -> Number:
    """Return the reader of a metric over the jobs that ran more than a minute."""
    return lambda one: _as_float(one.longer.get(key))


def in_range(label: str, key: str) -> Number:
    """Return the reader of a metric over the jobs of one range of run time."""
    return lambda one: _as_float(one.ranges.get(label, {}).get(key))


def top_of_range(one: Origin2000Figures, label: str) -> list[float]:
    """Return the waits in seconds of those of the 5 % that waited longest whose run time lies in a range."""
    labels = list(RANGES)
    place = labels.index(label)
    least = RANGES[labels[place - 1]] if place else 0.0
    return [wait_s for run_s, wait_s in one.top if least <= run_s < RANGES[label]]


def _as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def differences(runs: Sequence[Origin2000Figures], month: str, first: str, second: str, number: Number) -> list[float]:
    """Return first - second for each replica of a month that has both."""
    return [one - other for one, other in _pairs(runs, month, first, second, number).values()]


def ratios(runs: Sequence[Origin2000Figures], month: str, first: str, second: str, number: Number) -> list[float]:
    """Return first / second for each replica of a month; a replica where the second is 0 is left out."""
    return [one / other for one, other in _pairs(runs, month, first, second, number).values() if other]


def values_of(runs: Sequence[Origin2000Figures], month: str, policy: str, number: Number) -> list[float]:
    """Return a number of each replica of a month under a policy that has it."""
    return list(_values(runs, month, policy, number).values())


def overall_values(runs: Sequence[Origin2000Figures], months: Sequence[str], policy: str, number: Number) -> list[float]:
    """Return for each replica the mean of a number over the months (see ``_by_replica``)."""
    return [_mean(row) for row in _by_replica([_values(runs, month, policy, number) for month in months])]


def overall_ratios(
    runs: Sequence[Origin2000Figures], months: Sequence[str], first: str, second: str, number: Number
) -> list[float]:
    """Return for each replica the mean over the months under the first, divided by that under the second."""
    found = []
    for row in _by_replica([_pairs(runs, month, first, second, number) for month in months]):
        other = math.fsum(pair[1] for pair in row)
        if other:
            found.append(math.fsum(pair[0] for pair in row) / other)
    return found


def overall_differences(
    runs: Sequence[Origin2000Figures], months: Sequence[str], first: str, second: str, number: Number
) -> list[float]:
    """Return for each replica the mean over the months of first - second."""
    rows = _by_replica([_pairs(runs, month, first, second, number) for month in months])
    return [_mean([one - other for one, other in row]) for row in rows]


def pairs_by_replica(
    runs: Sequence[Origin2000Figures], months: Sequence[str], first: str, second: str, numbers: Sequence[Number]
) -> list[list[tuple[float, float]]]:
    """Return for each replica the pairs of all numbers in all months."""
    return _by_replica([_pairs(runs, month, first, second, number) for month in months for number in numbers])


def _by_replica(columns: Sequence[Mapping[int, _Told]]) -> list[list[_Told]]:
    """Return for each seed what the columns, one a month, tell of it: the same seed in all of them.

    A month of which no replica tells anything is left out; then a replica that lacks one of the others.
    """
    known = [column for column in columns if column]
    seeds = [seed for seed in known[0] if all(seed in column for column in known)] if known else []
    return [[column[seed] for column in known] for seed in seeds]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _values(runs: Sequence[Origin2000Figures], month: str, policy: str, number: Number) -> dict[int, float]:
    """Return a number by seed, of the replicas that have it."""
    found = {one.case.seed: number(one) for one in by_policy(runs, month, policy)}
    return {seed: value for seed, value in found.items() if value is not None}


def _pairs(
    runs: Sequence[Origin2000Figures], month: str, first: str, second: str, number: Number
) -> dict[int, tuple[float, float]]:
    """Return a number under two policies by seed, of the replicas that have both."""
    others = _values(runs, month, second, number)
    mine = _values(runs, month, first, number)
    return {seed: (value, others[seed]) for seed, value in mine.items() if seed in others}
