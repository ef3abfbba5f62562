"""Numbers of the replicas of a study, and differences between two schemes, replica by replica.

A *point* is the common input of all schemes: a month, a network, a load under some deadlines.  A
*replica* is the same point drawn with another seed, or another part of a log.  Schemes share the
draws of a replica, so that differences are by pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

Run = TypeVar("Run")

Values = Mapping[int, float]
"""A number by replica."""

Number = Callable[[Any], float | int | None]
"""A reader of one number of a run; None if the run lacks it."""


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
        """The schemes that have a run."""
        return list(self._runs)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the replicas that have a run."""
        return sorted({replica for found in self._runs.values() for replica in found})

    def runs(self, scheme: str) -> dict[int, Run]:
        """Return the runs of a scheme by replica."""
        return self._runs.get(scheme, {})

    def of(self, scheme: str, number: Number) -> dict[int, float]:
        """Return a number by replica, without replicas that lack it."""
        found = {replica: number(run) for replica, run in self.runs(scheme).items()}
        return {replica: float(value) for replica, value in found.items() if value is not None}

    def more(self, scheme: str, base: str, number: Number) -> dict[int, float]:
        """Return the difference of a scheme's number from that of ``base``."""
        return difference(self.of(scheme, number), self.of(base, number))

    def ratio(self, scheme: str, base: str, number: Number) -> dict[int, float]:
        """Return a scheme's number divided by that of ``base``, without replicas where that is
        0."""
        return ratio(self.of(scheme, number), self.of(base, number))


def by_point(runs: Iterable[tuple[Hashable, str, int, Run]]) -> Callable[[Any], Replicas[Run]]:
    """Return a function from a point to its replicas, for runs with their points, schemes and
    replicas."""
    found: dict[Hashable, list[tuple[str, int, Run]]] = {}
    for point, *run in runs:
        found.setdefault(point, []).append(tuple(run))  # type: ignore[arg-type]
    replicas = {point: Replicas(point, runs) for point, runs in found.items()}
    return lambda point: replicas.get(point) or Replicas(point)


def combined(function: Callable[..., float], *columns: Values) -> dict[int, float]:
    """Return a function of several numbers, for the replicas that have all of them."""
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
    """Return first / second, without replicas where the second is 0."""
    return combined(
        lambda one, other: one / other,
        first,
        {key: value for key, value in second.items() if value},
    )


def scaled(values: Values, factor: float) -> dict[int, float]:
    """Return values times a factor."""
    return {replica: factor * value for replica, value in values.items()}


def mean_over(columns: Iterable[Values]) -> dict[int, float]:
    """Return the mean of several numbers, one of each point, by replica: the same replica at all
    points.

    A point without any number is left out, then each replica that lacks the number at one of the
    other points.
    """
    known = [column for column in columns if column]
    return combined(lambda *values: math.fsum(values) / len(values), *known) if known else {}


def overall_ratio(pairs: Iterable[tuple[Values, Values]]) -> dict[int, float]:
    """Return the mean of the firsts divided by that of the seconds (:func:`mean_over`), for the
    replicas that have both."""
    paired = [_paired(*pair) for pair in pairs]
    return ratio(mean_over(one for one, _ in paired), mean_over(other for _, other in paired))


def _paired(first: Values, second: Values) -> tuple[dict[int, float], dict[int, float]]:
    """Return both numbers of the replicas that have both."""
    return combined(lambda one, _: one, first, second), combined(
        lambda _, other: other, first, second
    )


def mean(values: Values) -> float | None:
    """Return the mean; None without values."""
    return math.fsum(values.values()) / len(values) if values else None


def ratio_of_means(above: Values, below: Values) -> dict[int, float]:
    """Return values with the mean mean(above) / mean(below); their Student interval is that of this
    ratio by pairs.

    They are r + (a - r b) / mean(b), which have to first order the error of the ratio r of the
    means (the delta method; Cochran 1977, "Sampling Techniques", section 6.3).  They are empty if
    there is no pair, or if the mean below is 0.
    """
    pairs = _paired(above, below)
    top, bottom = mean(pairs[0]), mean(pairs[1])
    if top is None or not bottom:
        return {}
    found = top / bottom
    return combined(lambda one, other: found + (one - found * other) / bottom, *pairs)


def listed(values: Values | Sequence[float]) -> list[float]:
    """Return values without their replicas."""
    return list(values.values()) if isinstance(values, Mapping) else list(values)
