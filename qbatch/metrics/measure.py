"""All metrics of one run, also those of parents (done when the last of their tasks is) and of
predicted run times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.metrics import machine, per_job
from qbatch.metrics.per_job import (
    Float64Array,
    Metrics,
    slowdowns,
    statistics_of_ratios,
    statistics_of_times,
)
from qbatch.model.record import Int64Array, Schedule


def measure(schedule: Schedule, *, costly: bool = True) -> Metrics:
    """Return every metric of ``METRICS`` by name; None if it is undefined (no jobs, no time), but
    ``jobs`` is then 0.

    Waits, responses, slowdowns, the shares and ``jobs`` are over the jobs that ran and are counted.
    Makespan, throughput, utilisation, loss of capacity and ``queue_max`` are over the whole run,
    including the warm-up.  With ``costly=False`` there is no ``loss_of_capacity``, the one metric
    that needs a compiled kernel.

    For jobs with execution intervals (``Schedule.pieces``) the wait is all the time in which they
    did not advance: end - submit - run (docs/spec/papers.md 0.3, ``wait_total``).  The utilisation
    up to the last submission counts what really ran, discarded or not; loss of capacity is then
    undefined (None).

    If jobs are tasks of parents, ``parents`` and the statistics of their responses, slowdowns and
    spreads are included.

    If run times were predicted, their accuracy is included.

    Refused jobs are in none of them; if there are any, ``rejected_count`` and ``rejected_share``
    count them.
    """
    rows = np.flatnonzero(schedule.ran & schedule.workload.counted)
    figures: Metrics = {"jobs": len(rows), **per_job.job_metrics(per_job.job_times(schedule, rows))}
    figures["backfilled_share"] = per_job.backfilled_share(schedule.kind[rows])
    figures["immediate_share"] = per_job.immediate_share(schedule.kind[rows])
    ran = schedule.only_ran()
    figures["makespan_s"] = machine.makespan_s(ran.workload.submit, ran.end)
    figures["throughput_per_hour"] = machine.throughput_per_hour(ran)
    figures["utilisation_makespan"] = machine.utilisation_makespan(ran)
    figures["utilisation_submit"] = machine.utilisation_submit(ran)
    if costly:
        figures["loss_of_capacity"] = (
            None if ran.is_in_pieces.any() else machine.loss_of_capacity(ran)
        )
    longest = machine.longest_queue(ran) if schedule.queue_max is None else schedule.queue_max
    figures["queue_max"] = longest if len(ran) else None
    if (schedule.workload.parent[rows] >= 0).any():
        figures |= _parent_metrics(schedule, rows)
    figures |= _prediction_metrics(schedule, rows)
    if schedule.rejected:
        count = sum(bool(schedule.workload.counted[each.row]) for each in schedule.rejected)
        came = count + int(figures["jobs"] or 0)
        figures |= {"rejected_count": count, "rejected_share": count / came if came else None}
    return figures


class ParentTimes(NamedTuple):
    """Response, spread and longest run time of some parents, in microseconds, and the number of
    tasks of each."""

    parent: Int64Array
    response: Int64Array
    spread: Int64Array
    longest: Int64Array
    tasks: Int64Array


def parent_times(schedule: Schedule, rows: Int64Array) -> ParentTimes:
    """Return the times of the parents of some rows, all of which ran and are tasks; in order of the
    parents' numbers.

    Response = last end - first submission (docs/spec/papers.md 5.5, rule 10); spread = last end -
    first end.
    """
    work = schedule.workload
    rows = rows[work.parent[rows] >= 0]
    rows = rows[np.argsort(work.parent[rows], kind="stable")]
    parents, begins, tasks = np.unique(work.parent[rows], return_index=True, return_counts=True)
    end = schedule.end[rows]
    last, first = np.maximum.reduceat(end, begins), np.minimum.reduceat(end, begins)
    submit = np.minimum.reduceat(work.submit[rows], begins)
    return ParentTimes(
        parents, last - submit, last - first, np.maximum.reduceat(work.run[rows], begins), tasks
    )


def _parent_metrics(schedule: Schedule, rows: Int64Array) -> Metrics:
    """Return ``parents`` and the statistics of their responses, slowdowns (response over the
    longest run time) and spreads."""
    times = parent_times(schedule, rows)
    slowdown = np.sort(slowdowns(times.response, times.longest))
    return {
        "parents": len(times.parent),
        **statistics_of_times("parent_response", times.response),
        **statistics_of_ratios("parent_slowdown", slowdown[np.isfinite(slowdown)]),
        **statistics_of_times("parent_spread", times.spread),
    }


def accuracies(expected: Int64Array, run: Int64Array) -> Float64Array:
    """Return min(expected, run) / max(expected, run): 1 for a correct prediction, also if both are
    0.

    Source: Tsafrir, Etsion and Feitelson, IEEE TPDS 2007: run / expected if the prediction was too
    long, expected / run if it was too short.
    """
    high = np.maximum(expected, run)
    return np.asarray(
        np.divide(np.minimum(expected, run), high, out=np.ones(len(run)), where=high > 0)
    )


def _prediction_metrics(schedule: Schedule, rows: Int64Array) -> Metrics:
    """Return the metrics of the predictions of some rows, all of which ran; empty if no run time
    was predicted."""
    if schedule.predicted is None:
        return {}
    predicted, estimate, run = (
        schedule.predicted[rows],
        schedule.workload.estimate[rows],
        schedule.workload.run[rows],
    )
    # Without a prediction the scheduler expected the estimate.
    expected, count = np.where(predicted >= 0, predicted, estimate), len(rows)
    return {
        "predicted_share": int((predicted >= 0).sum()) / count if count else None,
        **statistics_of_times("prediction_error", np.abs(expected - run)),
        "prediction_accuracy_mean": _mean(accuracies(expected, run)),
        "estimate_accuracy_mean": _mean(accuracies(estimate, run)),
        "underprediction_share": int((expected < run).sum()) / count if count else None,
    }


def _mean(values: Float64Array) -> float | None:
    return float(np.sum(np.sort(values))) / len(values) if len(values) else None
