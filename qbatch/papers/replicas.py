"""What is read of the replicas of a study: a number of each, and what two schemes differ by, replica by replica.

A *point* is what all schemes are run on: a month, a network, a load under some deadlines.  A *replica* is the same point drawn
with another seed, or another part of a log.  Schemes share the draws of a replica, so that differences are by pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

Run = TypeVar("Run")

Values = Mapping[int, float]
"""A number by replica."""

Number = Callable[[Any], float | int | None]
"""What is read of one run; None where it does not have it."""


class Replicas(Generic[Run]):
    """The runs of one point, by scheme and replica."""

    def __init__(self, point: Any, runs: Iterable[tuple[str, int, Run]] = ()) -> None:
        """Hold runs, each with its scheme and the number of its replica."""
        self.point = point
        self._runs: dict[str, dict[int, Run]] = {}
        for scheme, replica, run in runs:
            self._runs.setdefault(scheme, {})[replica] = run

    @property
    def schemes(self) -> list[str]:
        """The schemes of which there is a run."""
        return list(self._runs)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the replicas of which there is a run."""
        return sorted({replica for found in self._runs.values() for replica in found})

    def runs(self, scheme: str) -> dict[int, Run]:
        """Return the runs of a scheme by replica."""
        return self._runs.get(scheme, {})

    def of(self, scheme: str, number: Number) -> dict[int, float]:
        """Return a number by replica, of those that have it."""
        found = {replica: number(run) for replica, run in self.runs(scheme).items()}
        return {replica: float(value) for replica, value in found.items() if value is not None}

    def more(self, scheme: str, base: str, number: Number) -> dict[int, float]:
        """Return how far a scheme's number lies above that of another one."""
        return difference(self.of(scheme, number), self.of(base, number))

    def ratio(self, scheme: str, base: str, number: Number) -> dict[int, float]:
        """Return a scheme's number divided by that of another one, where that is not 0."""
        return ratio(self.of(scheme, number), self.of(base, number))


def by_point(runs: Iterable[tuple[Hashable, str, int, Run]]) -> Callable[[Any], Replicas[Run]]:
    """Return what gives the replicas of a point, of runs each with its point, its scheme and its replica."""
    found: dict[Hashable, list[tuple[str, int, Run]]] = {}
    for point, *run in runs:
        found.setdefault(point, []).append(tuple(run))  # type: ignore[arg-type]
    replicas = {point: Replicas(point, runs) for point, runs in found.items()}
    return lambda point: replicas.get(point) or Replicas(point)


def combined(function: Callable[..., float], *columns: Values) -> dict[int, float]:
    """Return what a function makes of several numbers, of the replicas that have all."""
    first, *others = columns
    return {
        replica: function(value, *(one[replica] for one in others))
        for replica, value in first.items()
        if all(replica in one for one in others)
    }


def difference(first: Values, second: Values) -> dict[int, float]:
    """Return first - second."""
    return combined(lambda one, other: one - other, first, second)


def ratio(first: Values, second: Values) -> dict[int, float]:
    """Return first / second, where the second is not 0."""
    return combined(lambda one, other: one / other, first, {key: value for key, value in second.items() if value})


def scaled(values: Values, factor: float) -> dict[int, float]:
    """Return values times a factor."""
    return {replica: factor * value for replica, value in values.items()}


def mean_over(columns: Iterable[Values]) -> dict[int, float]:
    """Return the mean of several numbers, one of each point, by replica: the same replica at all points.

    A point of which no replica has the number is left out; then a replica that lacks it at one of the others.
    """
    known = [column for column in columns if column]
    return combined(lambda *values: math.fsum(values) / len(values), *known) if known else {}


def overall_ratio(pairs: Iterable[tuple[Values, Values]]) -> dict[int, float]:
    """Return the mean of the firsts divided by that of the seconds (:func:`mean_over`), of the replicas that have both."""
    paired = [(combined(_first, one, other), combined(_first, other, one)) for one, other in pairs]
    return ratio(mean_over(one for one, _ in paired), mean_over(other for _, other in paired))


def _first(value: float, _: float) -> float:
    return value


def mean(values: Values) -> float | None:
    """Return the mean; None without values."""
    return math.fsum(values.values()) / len(values) if values else None


def ratio_of_means(above: Values, below: Values) -> dict[int, float]:
    """Return values whose mean is mean(above) / mean(below), and whose Student interval is that of this ratio by pairs.

    They are r + (a - r b) / mean(b), which have to first order the error of the ratio r of the means (the delta method; Cochran
    1977, "Sampling Techniques", section 6.3).  None where there is no pair, or where the mean below is 0.
    """
    pairs = combined(_first, above, below), combined(lambda _, other: other, above, below)
    top, bottom = mean(pairs[0]), mean(pairs[1])
    if top is None or not bottom:
        return {}
    found = top / bottom
    return combined(lambda one, other: found + (one - found * other) / bottom, *pairs)


def listed(values: Values | Sequence[float]) -> list[float]:
    """Return values without their replicas."""
    return list(values.values()) if isinstance(values, Mapping) else list(values)
