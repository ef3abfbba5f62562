"""The tables of a report: each metric of each policy with its interval, the parts of the run, and
the promises that were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbatch.metrics import METRICS, Metric, breakdown, interval, measure
from qbatch.metrics.dependence import a_day_of, median_estimate
from qbatch.metrics.interval import are_same
from qbatch.metrics.per_job import bounded_slowdowns, job_times, slowdowns
from qbatch.metrics.ratio import level_bounds
from qbatch.metrics.table import words_of
from qbatch.model.record import MICROSECONDS, Schedule
from qbatch.reports.comparison_words import amount
from qbatch.reports.report.study import Replica, ReportStudy

SHOWN = (
    "wait_mean_s",
    "wait_median_s",
    "wait_p95_s",
    "wait_max_s",
    "slowdown_mean",
    "slowdown_median",
    "slowdown_max",
    "bounded_slowdown_mean",
    "bounded_slowdown_median",
    "bounded_slowdown_p95",
    "bounded_slowdown_max",
    "utilisation_submit",
    "utilisation_makespan",
    "loss_of_capacity",
    "makespan_s",
    "throughput_per_hour",
    "backfilled_share",
    "immediate_share",
    "queue_max",
    "rejected_share",
)
"""The metrics of the summary; a second table holds all."""

PART_KEYS = ("class", "size", "runtime", "month")
PART_METRICS = ("wait_mean_s", "bounded_slowdown_mean")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as text, the bounds of its interval as text if there is one, and the value itself."""

    text: str
    bounds: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of every policy."""

    metric: Metric
    words: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the jobs with its label: their number, and for each policy each of
    ``PART_METRICS``, None for none."""

    label: str
    jobs: int
    values: dict[str, tuple[float | None, ...]]


def all_metrics(study: ReportStudy) -> list[dict[str, list[float | int | None]]]:
    """Return for each policy each metric's value in each replica: from the result, else measured
    again."""
    found = []
    for policy in study.policies:
        values: dict[str, list[float | int | None]] = {metric.name: [] for metric in METRICS}
        for replica in study.replicas:
            schedule = replica.schedule(policy)
            if schedule is None:
                continue
            metrics = replica.metrics(policy) or measure(schedule, costly=False)
            for metric in METRICS:
                value = metrics.get(metric.name)
                values[metric.name].append(value if isinstance(value, int | float) else None)
        found.append(values)
    return found


def every_metric(study: ReportStudy) -> list[Row]:
    """Return a row for every metric that a policy has, without intervals."""
    return _rows(study, None, tuple(metric.name for metric in METRICS))


def summary(study: ReportStudy, confidence: float) -> list[Row]:
    """Return the rows of the summary, in order, with intervals; a metric that no policy has is left
    out."""
    return _rows(study, confidence, SHOWN)


def _rows(study: ReportStudy, confidence: float | None, names: tuple[str, ...]) -> list[Row]:
    values = all_metrics(study)
    by_name = {metric.name: metric for metric in METRICS}
    bounds = [_bounds(study, policy, confidence) for policy in study.policies]
    rows = []
    for name in names:
        metric = by_name[name]
        cells = tuple(
            _cell(metric, of_policy[name], known.get(name), confidence)
            for of_policy, known in zip(values, bounds, strict=True)
        )
        if any(cell.value is not None for cell in cells):
            rows.append(Row(metric, words_of(name), cells))
    return rows


def _cell(
    metric: Metric, values: list[float | int | None], known: Any, confidence: float | None
) -> Cell:
    numbers = [float(value) for value in values if value is not None]
    if not numbers:
        return Cell("\N{EN DASH}", "", None)
    found = interval(numbers, confidence or 0.95)
    low, high = (found.low, found.high) if len(numbers) > 1 else known or (None, None)
    text = _amount(found.mean, metric.unit)
    if confidence is not None and are_same(numbers):
        return Cell(text, "\N{EN DASH}", found.mean)
    if low is None or high is None or confidence is None:
        return Cell(text, "", found.mean)
    # No metric is negative.
    low, high = max(low, 0.0), min(high, 1.0) if metric.unit == "share" else high
    bounds = _amount(low, metric.unit), _amount(high, metric.unit)
    return Cell(text, "" if bounds == (text, text) else f"{bounds[0]} to {bounds[1]}", found.mean)


def _amount(value: float | None, unit: str) -> str:
    if unit in ("jobs", "jobs/h") and value is not None:
        text = f"{value:,.0f}" if unit == "jobs" else f"{value:,.4g}"
        return text if unit == "jobs" else f"{text} /h"
    return amount(value, unit)


def _bounds(
    study: ReportStudy, policy: str, confidence: float | None
) -> dict[str, tuple[float | None, float | None]]:
    """Return the intervals within one run, of the means and medians of quantities of jobs."""
    schedule = study.first.schedule(policy)
    if study.has_replicas or schedule is None or confidence is None:
        return {}
    found: dict[str, tuple[float | None, float | None]] = {}
    least = a_day_of(schedule.workload.submit[schedule.ran & schedule.workload.counted])
    for name, values in quantities(schedule).items():
        suffix = "_s" if name == "wait" else ""
        median = median_estimate(values, confidence, least_block=least)
        found[f"{name}_mean{suffix}"] = level_bounds(values, confidence, least_block=least) or (
            None,
            None,
        )
        found[f"{name}_median{suffix}"] = (median.low, median.high)
    return found


def quantities(schedule: Schedule) -> dict[str, Any]:
    """Return the quantities of every counted job that ran, as floats, by submission: seconds and
    ratios; the slowdown only of jobs with a run time."""
    jobs = job_times(schedule, np.flatnonzero(schedule.ran & schedule.workload.counted))
    return {
        "wait": jobs.wait / MICROSECONDS,
        "slowdown": slowdowns(jobs.response, jobs.run)[jobs.run > 0],
        "bounded_slowdown": bounded_slowdowns(jobs.response, jobs.run),
    }


def parts(study: ReportStudy, key: str) -> list[Part]:
    """Return the parts of the first replica's jobs by one breakdown, in its order, with the means
    of each policy."""
    groups = []
    for policy in study.policies:
        schedule = study.first.schedule(policy)
        groups.append(
            {one.label: one for one in breakdown(schedule, key)} if schedule is not None else {}
        )
    labels = list(dict.fromkeys(label for of_policy in groups for label in of_policy))
    if key == "month":
        labels.sort(key=lambda label: (len(label), label))
    found = []
    for label in labels:
        of_label = [of_policy.get(label) for of_policy in groups]
        metrics = [{} if one is None else one.metrics for one in of_label]
        values = {
            name: tuple(
                None if (value := each.get(name)) is None else float(value) for each in metrics
            )
            for name in PART_METRICS
        }
        found.append(Part(label, max(one.jobs for one in of_label if one is not None), values))
    return found


@dataclass(frozen=True, slots=True)
class Promises:
    """The promises of one policy, counted in jobs; each promised job is in one of ``kept``,
    ``earlier``, ``broken``.

    ``broken``: the job started after its last promised start, or a promise to it was withdrawn (its
    row records this, or the last promise is later than the first, or is missing).  ``earlier``: the
    promised start moved earlier at least once and was kept.  ``kept``: the first promise was kept.
    ``gain_mean_s``: from the start to the first promise, mean over the promises that were not
    broken, in seconds; None without any.
    """

    policy: str
    jobs: int
    kept: int
    earlier: int
    broken: int
    gain_mean_s: float | None

    @property
    def promised(self) -> int:
        """Number of jobs with a promised start."""
        return self.kept + self.earlier + self.broken


def promises(schedule: Schedule) -> Promises:
    """Count the promises to the jobs that ran; without a recorded first promise, the last one
    counts as the first."""
    jobs = int(schedule.ran.sum())
    promised = schedule.only(
        schedule.ran & ((schedule.promise >= 0) | (schedule.first_promise >= 0))
    )
    first = np.where(promised.first_promise >= 0, promised.first_promise, promised.promise)
    is_broken = (promised.start > promised.promise) | (promised.promise > first)
    if promised.broken is not None:
        is_broken |= promised.broken > 0
    is_earlier = ~is_broken & (promised.promise < first)
    gains = (first - promised.start)[~is_broken] / MICROSECONDS
    kept, earlier, broken = (
        int(which.sum()) for which in (~is_broken & ~is_earlier, is_earlier, is_broken)
    )
    return Promises(
        schedule.policy, jobs, kept, earlier, broken, float(gains.mean()) if len(gains) else None
    )


_KEPT = ("options", "resources", "skipped", "estimates_missing", "killed_at_estimate")


def measured(replica: Replica, by: Sequence[str] = ()) -> dict[str, Any]:
    """Return the metrics of each policy, with breakdowns by some keys, in the shape of ``qbatch
    replay --json``.

    The facts about the run (options, jobs left out) are those of the first replay among the
    results.
    """
    result = replica.result
    document = next(
        (each for each in replica.documents if not each.get("recorded")), replica.documents[0]
    )
    log = document.get("log")
    results = []
    for schedule in result.schedules:
        one: dict[str, Any] = {"policy": schedule.policy, "metrics": measure(schedule)}
        for key in by:
            groups = [
                {"label": g.label, "jobs": g.jobs, "metrics": g.metrics}
                for g in breakdown(schedule, key)
            ]
            one.setdefault("by", {})[key] = groups
        results.append(one)
    machine = document.get("machine")
    return {
        "log": {
            "name": result.name,
            **(log if isinstance(log, Mapping) else {}),
            "jobs": max(int(schedule.ran.sum()) for schedule in result.schedules),
        },
        "machine": {
            **(machine if isinstance(machine, Mapping) else {}),
            "procs": result.procs_total,
        },
        **{key: document[key] for key in _KEPT if key in document},
        "results": results,
    }
