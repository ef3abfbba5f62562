"""Two schedules of the same jobs, job by job: the difference, its certainty, and the share of jobs
that gain.

The differences are in order of submission and depend on each other.  The interval of the difference
of means is that of :mod:`qbatch.metrics.ratio`, on the scale of ratios; that of the median
difference is from :mod:`qbatch.metrics.dependence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.dependence import Estimate, mean_estimate, median_estimate
from qbatch.metrics.ratio import difference_estimate

Floats = NDArray[np.float64]

PRACTICAL = 0.01
"""A difference of less than this share of the larger value has no practical weight, however certain
it is."""


class Verdict(StrEnum):
    """The result of a comparison of the second schedule with the first; ``described``: only the
    difference, without a test."""

    better = "better"
    worse = "worse"
    noise = "noise"
    negligible = "negligible"
    equal = "equal"
    unknown = "unknown"
    described = "described"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect sizes between the values of two schedules; every share is of the pairs, and less
    is better.

    ``cliff_delta``: P(b < a) - P(b > a) over all pairs of any two jobs (Cliff 1993, Psychological
    Bulletin 114). ``rank_biserial``: of the ranks of |b - a| over the jobs that differ, the share
    that lies with b less, minus the share with b more (Kerby 2014, Comprehensive Psychology 3).
    Both go from -1 (b is worse for all) to 1 (better for all).
    """

    better: float
    worse: float
    equal: float
    cliff_delta: float
    rank_biserial: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Values of one quantity under two schedules: both means, the estimate of b - a, the median of
    it, the effect."""

    a: float | None
    b: float | None
    mean: Estimate
    median: Estimate | None
    effect: Effect | None

    @property
    def relative(self) -> float | None:
        """The mean difference as a share of a's mean; None if that is 0."""
        if self.a is None or self.mean.value is None or self.a == 0:
            return None
        return self.mean.value / self.a

    @property
    def larger(self) -> float | None:
        """The larger of the two means, with which a difference is compared, whichever of the two is
        named first."""
        return None if self.a is None or self.b is None else max(self.a, self.b)


def paired(
    a: Floats,
    b: Floats,
    confidence: float = 0.95,
    *,
    seed: int = 0,
    has_effect: bool = True,
    least_block: float = 1.0,
) -> Difference:
    """Compare one quantity of the same jobs under two schedules, in order of submission.

    Without ``has_effect`` only the means and their difference are computed, which is enough for the
    parts of a run.
    """
    if not len(a):
        return Difference(None, None, mean_estimate(a), None, None)
    change = b - a
    median = (
        median_estimate(change, confidence, seed=seed, least_block=least_block)
        if has_effect
        else None
    )
    effect = effect_of(a, b) if has_effect else None
    mean = difference_estimate(a, b, confidence, least_block=least_block)
    return Difference(float(np.mean(a)), float(np.mean(b)), mean, median, effect)


def effect_of(a: Floats, b: Floats) -> Effect:
    """Return the effect sizes of two equally long, not empty columns."""
    n = len(a)
    change = b - a
    below, above = int(np.count_nonzero(change < 0)), int(np.count_nonzero(change > 0))
    ordered = np.sort(b)
    less = int(np.searchsorted(ordered, a, side="left").sum())
    more = n * n - int(np.searchsorted(ordered, a, side="right").sum())
    differing = change[change != 0]
    ranks = mean_ranks(np.abs(differing))
    total, gained = float(ranks.sum()), float(ranks[differing < 0].sum())
    rank_biserial = (2 * gained - total) / total if total else 0.0
    return Effect(
        below / n, above / n, (n - below - above) / n, (less - more) / (n * n), rank_biserial
    )


def mean_ranks(values: Floats) -> Floats:
    """Return the rank of each value from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2)[place], np.float64)


def finding_of(
    estimate: Estimate,
    base: float | None,
    *,
    is_less_better: bool = True,
    practical: float = PRACTICAL,
    p: float | None = None,
    level: float = 0.05,
) -> Verdict:
    """Return what an estimate of b - a means: noise if its interval contains 0, negligible if it is
    small compared to ``base``.

    With ``p`` (corrected for many comparisons), ``p`` decides instead of the interval.
    """
    value = estimate.value
    if value is None:
        return Verdict.unknown
    if value == 0 and not (estimate.low or estimate.high):
        return Verdict.equal
    if estimate.low is None or estimate.high is None:
        return Verdict.unknown
    if estimate.low <= 0 <= estimate.high if p is None else p > level:
        return Verdict.noise
    if base is not None and abs(value) < practical * abs(base):
        return Verdict.negligible
    return Verdict.better if (value < 0) == is_less_better else Verdict.worse


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p corrected for multiple comparisons (Holm 1979, Scandinavian Journal of Statistics
    6); None stays None."""
    known = sorted((value, place) for place, value in enumerate(p) if value is not None)
    corrected: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min(1.0, value * (len(known) - rank)))
        corrected[place] = largest
    return corrected
