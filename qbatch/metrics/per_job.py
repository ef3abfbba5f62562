"""Metrics that every job has for itself - wait, response, slowdown - and their mean, median, p95 and maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.columns import MeasuredColumns
from qbatch.metrics.sums import exact_sum
from qbatch.model.record import KINDS, MICROSECONDS, Int64Array

Metrics = dict[str, float | int | None]
Float64Array = NDArray[np.float64]

STATISTICS = ("mean", "median", "p95", "max")
"""What is told of each quantity, in this order."""

BOUND_US = 10 * MICROSECONDS
"""Run times below this count as this in the bounded slowdown (Feitelson & Weil 1998: ten seconds)."""


def waits(jobs: MeasuredColumns, out: Int64Array) -> Int64Array:
    """Wait = start - submit (papers.md 0.3: ``wait_first``); ``measure`` sees to jobs that ran in pieces."""
    return np.subtract(jobs.start, jobs.submit, out=out)


def responses(jobs: MeasuredColumns, out: Int64Array) -> Int64Array:
    """Response = end - submit (papers.md 0.3)."""
    return np.subtract(jobs.end, jobs.submit, out=out)


def slowdowns(response: Int64Array, run: Int64Array, out: Float64Array) -> Float64Array:
    """Slowdown = response / run (papers.md 0.3), the run that happened; infinite or NaN where the run is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(response, run, out=out)


def bounded_slowdowns(
    response: Int64Array, run: Int64Array, out: Float64Array, *, bound_us: int = BOUND_US
) -> Float64Array:
    """Bounded slowdown = response / max(run, bound), not clipped, as Feitelson & Weil 1998 print it with 10 s.

    A job of 2 s that did not wait has 0.2.
    """
    np.maximum(run, bound_us, out=out)
    return np.divide(response, out, out=out)


def clipped(bounded: Float64Array) -> Float64Array:
    """Clipped bounded slowdown = max(1, response / max(run, 10 s)), as in the literature since (papers.md 0.3).

    In place, and what was sorted stays sorted.
    """
    return np.maximum(bounded, 1.0, out=bounded)


def nearest_rank(ordered: NDArray[Any], percent: int) -> Any:
    """Return the ceil(percent / 100 * n)-th smallest of ordered values, the rank in integers (papers.md 0.3)."""
    return ordered[-(-percent * len(ordered) // 100) - 1].item()


def job_metrics(jobs: MeasuredColumns) -> Metrics:
    """Return the families wait, response, slowdown, bounded_slowdown and bounded_slowdown_clipped of some jobs.

    Two buffers serve all five, and each quantity is sorted once, in place.
    """
    times = np.empty(len(jobs), np.int64)
    ratios = np.empty(len(jobs), np.float64)
    figures = _of_times("wait", waits(jobs, out=times))
    response = responses(jobs, out=times)
    slowdown = _sorted(slowdowns(response, jobs.run, out=ratios))
    skipped = len(jobs) - int(np.count_nonzero(jobs.run))
    # Jobs of run time 0 have an infinite slowdown or none: they stand last, and are left out.
    of_ratios = _of_ratios("slowdown", slowdown[: len(jobs) - skipped])
    of_ratios["slowdown_skipped"] = skipped
    bounded = _sorted(bounded_slowdowns(response, jobs.run, out=ratios))
    of_ratios |= _of_ratios("bounded_slowdown", bounded)
    of_ratios |= _of_ratios("bounded_slowdown_clipped", clipped(bounded))
    return figures | _of_times("response", response) | of_ratios


def mean_clipped_slowdown(jobs: MeasuredColumns, bound_us: int) -> float | None:
    """Return the mean of max(1, response / max(run, bound)); None of no jobs (papers.md 3.6 takes a bound of 60 s)."""
    if not len(jobs):
        return None
    response = responses(jobs, out=np.empty(len(jobs), np.int64))
    bounded = bounded_slowdowns(response, jobs.run, out=np.empty(len(jobs), np.float64), bound_us=bound_us)
    return float(np.sum(_sorted(clipped(bounded)))) / len(jobs)


def backfilled_share(jobs: MeasuredColumns) -> float | None:
    """Jobs whose pass left an earlier-submitted job waiting / jobs (Feitelson & Weil 1998, Fig. 10; papers.md 1.4)."""
    return _share_of_kind(jobs, "backfilled")


def immediate_share(jobs: MeasuredColumns) -> float | None:
    """Jobs that started at their arrival, not backfilled / jobs (design.md, "The meaning of one instant")."""
    return _share_of_kind(jobs, "immediate")


def _share_of_kind(jobs: MeasuredColumns, kind: str) -> float | None:
    count = int(np.count_nonzero(jobs.kind == KINDS.index(kind)))
    return count / len(jobs) if len(jobs) else None


def _sorted(values: Float64Array) -> Float64Array:
    values.sort()
    return values


def _of_times(name: str, times: Int64Array) -> Metrics:
    """Sort the times in place and return their statistics in seconds."""
    keys = [f"{name}_{statistic}_s" for statistic in STATISTICS]
    if not len(times):
        return dict.fromkeys(keys)
    times.sort()
    mean = exact_sum(times) / (len(times) * MICROSECONDS)
    ranks = (nearest_rank(times, 50), nearest_rank(times, 95), times[-1].item())
    return dict(zip(keys, (mean, *(rank / MICROSECONDS for rank in ranks)), strict=True))


def _of_ratios(name: str, ordered: Float64Array) -> Metrics:
    """Return the statistics of ratios in ascending order: summed in that order, the digits are always the same."""
    keys = [f"{name}_{statistic}" for statistic in STATISTICS]
    if not len(ordered):
        return dict.fromkeys(keys)
    mean = float(np.sum(ordered)) / len(ordered)
    ranks = (nearest_rank(ordered, 50), nearest_rank(ordered, 95), ordered[-1].item())
    return dict(zip(keys, (mean, *ranks), strict=True))
