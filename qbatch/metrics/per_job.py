"""Metrics of each job - wait, response, slowdown - and their mean, median, p95 and maximum.

Each formula is only here, over columns, so that a schedule, job rows and a running count share it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.sums import exact_sum
from qbatch.model.record import KINDS, MICROSECONDS, BoolArray, Int8Array, Int64Array, Schedule

Metrics = dict[str, float | int | None]
Float64Array = NDArray[np.float64]

STATISTICS = ("mean", "median", "p95", "max")
"""The statistics of each quantity, in this order."""

BOUND_US = 10 * MICROSECONDS
"""Run times below this count as this in the bounded slowdown (Feitelson & Weil 1998: ten
seconds)."""


class JobTimes(NamedTuple):
    """Wait, response and run time of some jobs that ran, in microseconds."""

    wait: Int64Array
    response: Int64Array
    run: Int64Array


def waits(
    submit: Int64Array, start: Int64Array, end: Int64Array, run: Int64Array, is_in_pieces: BoolArray
) -> Int64Array:
    """Wait = start - submit (docs/spec/papers.md 0.3: ``wait_first``).

    With several execution intervals it is all the time in which the job did not advance, end -
    submit - run (``wait_total``).
    """
    wait = start - submit
    return np.where(is_in_pieces, end - submit - run, wait) if is_in_pieces.any() else wait


def responses(submit: Int64Array, end: Int64Array) -> Int64Array:
    """Response = end - submit (docs/spec/papers.md 0.3)."""
    return end - submit


def slowdowns(response: Int64Array, run: Int64Array) -> Float64Array:
    """Slowdown = response / run (docs/spec/papers.md 0.3), with the real run time; NaN if the run
    is 0."""
    return np.asarray(np.divide(response, run, out=np.full(len(run), np.nan), where=run > 0))


def bounded_slowdowns(
    response: Int64Array, run: Int64Array, bound_us: int = BOUND_US
) -> Float64Array:
    """Bounded slowdown = response / max(run, bound), not clipped, as Feitelson & Weil 1998 print it
    with 10 s.

    A job of 2 s that did not wait has 0.2.
    """
    return np.asarray(response / np.maximum(run, bound_us))


def job_times(schedule: Schedule, rows: Int64Array | slice = slice(None)) -> JobTimes:
    """Return the times of all rows of a schedule, or of some; all of them ran."""
    work = schedule.workload
    submit, end, run = work.submit[rows], schedule.end[rows], work.run[rows]
    wait = waits(submit, schedule.start[rows], end, run, schedule.is_in_pieces[rows])
    return JobTimes(wait, responses(submit, end), run)


def clipped(bounded: Float64Array) -> Float64Array:
    """Clipped bounded slowdown = max(1, response / max(run, 10 s)), as in the literature since
    (docs/spec/papers.md 0.3).

    It changes the array in place; a sorted array stays sorted.
    """
    return np.maximum(bounded, 1.0, out=bounded)


def nearest_rank(ordered: NDArray[Any], percent: int) -> Any:
    """Return the ceil(percent / 100 * n)-th smallest of ordered values, the rank in integers
    (docs/spec/papers.md 0.3)."""
    return ordered[-(-percent * len(ordered) // 100) - 1].item()


def job_metrics(jobs: JobTimes) -> Metrics:
    """Return the families wait, response, slowdown, bounded_slowdown and bounded_slowdown_clipped
    of some jobs."""
    slowdown = np.sort(slowdowns(jobs.response, jobs.run))
    # Jobs of run time 0 have no slowdown: they are last, and are left out.
    skipped = len(jobs.run) - int(np.count_nonzero(jobs.run))
    of_ratios = statistics_of_ratios("slowdown", slowdown[: len(slowdown) - skipped])
    of_ratios["slowdown_skipped"] = skipped if len(jobs.run) else None
    bounded = np.sort(bounded_slowdowns(jobs.response, jobs.run))
    of_ratios |= statistics_of_ratios("bounded_slowdown", bounded)
    of_ratios |= statistics_of_ratios("bounded_slowdown_clipped", clipped(bounded))
    return (
        statistics_of_times("wait", jobs.wait)
        | statistics_of_times("response", jobs.response)
        | of_ratios
    )


def mean_clipped_slowdown(jobs: JobTimes, bound_us: int) -> float | None:
    """Return the mean of max(1, response / max(run, bound)); None without jobs (docs/spec/papers.md
    3.6: bound 60 s)."""
    if not len(jobs.run):
        return None
    bounded = clipped(bounded_slowdowns(jobs.response, jobs.run, bound_us))
    return float(np.sum(np.sort(bounded))) / len(bounded)


def backfilled_share(kind: Int8Array) -> float | None:
    """Jobs that left an earlier-submitted job waiting / jobs (Feitelson & Weil 1998, Fig. 10;
    docs/spec/papers.md 1.4)."""
    return _share_of_kind(kind, "backfilled")


def immediate_share(kind: Int8Array) -> float | None:
    """Jobs that started at their arrival, not backfilled / jobs (docs/design.md, "The meaning of
    one instant")."""
    return _share_of_kind(kind, "immediate")


def _share_of_kind(kinds: Int8Array, kind: str) -> float | None:
    count = int(np.count_nonzero(kinds == KINDS.index(kind)))
    return count / len(kinds) if len(kinds) else None


def statistics_of_times(name: str, times: Int64Array) -> Metrics:
    """Return the statistics of some times, in seconds."""
    keys = [f"{name}_{statistic}_s" for statistic in STATISTICS]
    if not len(times):
        return dict.fromkeys(keys)
    times = np.sort(times)
    mean = exact_sum(times) / (len(times) * MICROSECONDS)
    ranks = (nearest_rank(times, 50), nearest_rank(times, 95), times[-1].item())
    return dict(zip(keys, (mean, *(rank / MICROSECONDS for rank in ranks)), strict=True))


def statistics_of_ratios(name: str, ordered: Float64Array) -> Metrics:
    """Return the statistics of ratios in ascending order: summed in that order, the digits are
    always the same."""
    keys = [f"{name}_{statistic}" for statistic in STATISTICS]
    if not len(ordered):
        return dict.fromkeys(keys)
    mean = float(np.sum(ordered)) / len(ordered)
    ranks = (nearest_rank(ordered, 50), nearest_rank(ordered, 95), ordered[-1].item())
    return dict(zip(keys, (mean, *ranks), strict=True))
