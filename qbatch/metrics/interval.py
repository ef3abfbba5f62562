"""Confidence intervals over replicas: Student's t, computed from its exact distribution, no
statistics library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from qbatch.model.errors import UsageError

_EXACT_UP_TO = 200
"""Up to this many degrees of freedom the finite sum is used; above, an expansion that is exact to
ten digits there."""

SAME = "the same in every replica: the seeds do not change it, so there is no interval"
"""Why values of replicas that cannot differ have no interval: a width of 0 would claim that the
mean is known exactly."""


def are_same(values: Sequence[float]) -> bool:
    """Return whether there are several values, and all are equal: replicas that cannot differ."""
    return len(values) > 1 and all(value == values[0] for value in values)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the bounds of its confidence interval; the bounds are None for fewer than two
    values."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return mean -+ t(n - 1) * s / sqrt(n), with s the sample standard deviation (Student
    1908)."""
    check_confidence(confidence)
    n = len(values)
    mean = math.fsum(values) / n if n else None
    if mean is None or n == 1:
        return Interval(mean, None, None, n)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = t_quantile(0.5 + confidence / 2, n - 1) * math.sqrt(variance / n)
    return Interval(mean, mean - half, mean + half, n)


def paired_difference(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the interval of the mean of a[i] - b[i], the same replica (the same seed) under
    both."""
    return interval([one - other for one, other in zip(a, b, strict=True)], confidence)


def t_quantile(probability: float, freedom: int) -> float:
    """Return t with P(T <= t) = ``probability`` for Student's t with ``freedom`` degrees of
    freedom."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    if freedom > _EXACT_UP_TO:
        return _expanded(NormalDist().inv_cdf(probability), freedom)
    within = 2 * probability - 1
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _central(middle, freedom) < within:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def t_two_sided(t: float, freedom: int) -> float:
    """Return P(|T| >= |t|) for Student's t; above 200 degrees of freedom t is taken for normal
    (error below 0.002)."""
    if freedom > _EXACT_UP_TO:
        return math.erfc(abs(t) / math.sqrt(2))
    return max(1.0 - _central(math.atan(abs(t) / math.sqrt(freedom)), freedom), 0.0)


def _central(angle: float, freedom: int) -> float:
    """Return P(|T| <= sqrt(freedom) * tan(angle)), a finite sum (Abramowitz & Stegun 26.7.3 and
    26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term = cosine if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + is_odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total


def _expanded(x: float, freedom: int) -> float:
    """Return the quantile of t from that of the normal distribution (Abramowitz & Stegun
    26.7.5)."""
    first = (x**3 + x) / 4
    second = (5 * x**5 + 16 * x**3 + 3 * x) / 96
    third = (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384
    fourth = (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160
    return x + first / freedom + second / freedom**2 + third / freedom**3 + fourth / freedom**4


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence}: is not between 0 and 1; 0.95 is usual")
