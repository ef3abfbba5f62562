"""Intervals on the scale of ratios, for means of values that cannot be negative: waits, slowdowns,
utilisations, makespans.

The estimate is the ratio of two means, B / A.  Its logarithm has, to first order, the error of the
mean of ``b / B - a / A`` (the delta method; Cochran 1977, "Sampling Techniques", section 6.3).  So
the bounds are ``B / A exp(-+ t error)``: never at or below 0, so that a relative difference is
never below -100 %.  In units, the bounds are these relative ones of *this* A: never below -A.  They
show by how much B would change the result of A here; they do not contain how the mean of A would
vary from log to log.

The error is the widest of several estimates of how far the values depend on each other.  One is the
stationary bootstrap with blocks from the data (:mod:`qbatch.metrics.dependence`), which sees the
memory that the autocorrelations show.  The others are the means of 5, 10 and 20 equal parts of the
log in order (batch means; Law and Kelton 2000, "Simulation Modeling and Analysis", section 9.5.3),
which see slower changes.  Each has its own Student's t. docs/explanation/statistics.md has the cost
and how often such intervals contain the true value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.dependence import (
    FEWEST,
    Estimate,
    block_length,
    mean_estimate,
    stationary_variance,
)
from qbatch.metrics.interval import are_same, check_confidence, interval, t_quantile, t_two_sided

Floats = NDArray[np.float64]

PARTS = (5, 10, 20)
"""The numbers of equal parts into which the values are cut."""

_FEWEST_IN_A_PART = 2

_WIDEST = 700.0
"""The largest argument of exp."""


@dataclass(frozen=True, slots=True)
class Error:
    """The error of a mean by one model of dependence, and the degrees of freedom of its Student's
    t."""

    size: float
    freedom: int


def difference_estimate(
    a: Floats, b: Floats, confidence: float = 0.95, *, least_block: float = 1.0
) -> Estimate:
    """Return the estimate of mean(b) - mean(a), of equally many values in order, with bounds on the
    scale of ratios.

    ``least_block``: blocks are no shorter.  If a mean is 0 there is no ratio: then the bounds are
    those of the mean difference, cut at what is possible.  With a negative value among them nothing
    is cut.
    """
    check_confidence(confidence)
    n = len(a)
    if n < FEWEST:
        return mean_estimate(b - a, confidence)
    mean_a, mean_b = float(np.mean(a)), float(np.mean(b))
    is_possible = float(min(a.min(), b.min())) >= 0
    if not is_possible or mean_a == 0 or mean_b == 0:
        found = mean_estimate(b - a, confidence, least_block=least_block)
        return found if not is_possible or found.low is None else _cut(found, mean_a, mean_b)
    influence = b / mean_b - a / mean_a
    block = max(block_length(influence), least_block)
    ratio = math.log(mean_b) - math.log(mean_a)
    half, p = _widest(errors_of(influence, block), confidence, ratio if mean_a != mean_b else 0.0)
    low, high = (mean_a * math.expm1(min(ratio + side, _WIDEST)) for side in (-half, half))
    value = mean_b - mean_a
    return Estimate(value, min(low, value), max(high, value), p, n, block)


def replicated_difference(a: Floats, b: Floats, confidence: float = 0.95) -> Estimate:
    """Return the estimate of mean(b) - mean(a) over independent pairs, one for each replica.

    There is no dependence and no ratio: Student's t of the differences contains what varies from
    replica to replica, also in a. The bounds are cut at what is possible if no value is negative.
    If all replicas differ by the same, there are no bounds.
    """
    change = (b - a).tolist()
    found = interval(change, confidence)
    n = len(a)
    if found.mean is None or found.low is None or found.high is None or are_same(change):
        return Estimate(found.mean, None, None, None, n, 1.0 if n else 0.0)
    error = float((b - a).std(ddof=1)) / math.sqrt(n)
    p = t_two_sided(found.mean / error, n - 1) if error > 0 else float(found.mean == 0)
    estimate = Estimate(found.mean, found.low, found.high, p, n, 1.0)
    return (
        _cut(estimate, float(np.mean(a)), float(np.mean(b)))
        if float(min(a.min(), b.min())) >= 0
        else estimate
    )


def level_bounds(
    values: Floats, confidence: float = 0.95, *, least_block: float = 1.0
) -> tuple[float, float] | None:
    """Return the bounds of the mean of values, never below 0; None if there are too few.  A
    ValueError if one is negative."""
    n = len(values)
    if n < FEWEST:
        return None
    mean = float(np.mean(values))
    if float(values.min()) < 0:
        raise ValueError("a value is negative")
    if mean == 0:
        return 0.0, 0.0
    influence = values / mean - 1.0
    block = max(block_length(influence), least_block)
    half, _ = _widest(errors_of(influence, block), confidence, 0.0)
    return mean * math.exp(-half), mean * math.exp(min(half, _WIDEST))


def errors_of(influence: Floats, block: float) -> list[Error]:
    """Return the error of the mean of values in order by each model of their dependence."""
    n = len(influence)
    blocks = max(int(n / block), 2)
    errors = [
        Error(math.sqrt(stationary_variance(influence, block) * blocks / (blocks - 1)), blocks - 1)
    ]
    for parts in PARTS:
        if n >= _FEWEST_IN_A_PART * parts:
            begins = np.linspace(0, n, parts, endpoint=False).astype(np.int64)
            means = np.add.reduceat(influence, begins) * (parts / n)
            errors.append(Error(float(means.std(ddof=1)) / math.sqrt(parts), parts - 1))
    return errors


def _widest(errors: list[Error], confidence: float, value: float) -> tuple[float, float]:
    """Return the widest half of an interval by any error, and the largest probability of a value as
    far from 0."""
    half = max(t_quantile(0.5 + confidence / 2, error.freedom) * error.size for error in errors)
    chances = [t_two_sided(value / error.size, error.freedom) for error in errors if error.size > 0]
    return half, max(chances, default=float(value == 0))


def _cut(found: Estimate, a: float, b: float) -> Estimate:
    """Return an estimate of b - a with possible bounds: they are cut if neither mean is
    negative."""
    assert found.value is not None  # the caller has checked
    assert found.low is not None
    assert found.high is not None
    # The mean of differences and -a are rounded separately.
    low = min(max(found.low, -a), found.value)
    high = found.high if b > 0 else max(min(found.high, 0.0), found.value)
    return Estimate(found.value, low, high, found.p, found.n, found.block)
