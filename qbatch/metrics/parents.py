"""Metrics of parents: jobs that are done when the last of their tasks is (fork and join)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.metrics.per_job import Metrics, slowdowns, statistics_of_ratios, statistics_of_times
from qbatch.model.record import Int64Array, Schedule


class ParentTimes(NamedTuple):
    """Response, spread and longest run time of some parents, in microseconds, and the number of tasks of each."""

    parent: Int64Array
    response: Int64Array
    spread: Int64Array
    longest: Int64Array
    tasks: Int64Array


def parent_times(schedule: Schedule, rows: Int64Array) -> ParentTimes:
    """Return the times of the parents of some rows, all of which ran and are tasks; in order of the parents' numbers.

    Response = last end - first submission (docs/spec/papers.md 5.5, rule 10); spread = last end - first end.
    """
    work = schedule.workload
    rows = rows[work.parent[rows] >= 0]
    rows = rows[np.argsort(work.parent[rows], kind="stable")]
    parents, begins, tasks = np.unique(work.parent[rows], return_index=True, return_counts=True)
    end = schedule.end[rows]
    last, first = np.maximum.reduceat(end, begins), np.minimum.reduceat(end, begins)
    submit = np.minimum.reduceat(work.submit[rows], begins)
    return ParentTimes(parents, last - submit, last - first, np.maximum.reduceat(work.run[rows], begins), tasks)


def parent_metrics(schedule: Schedule, rows: Int64Array) -> Metrics:
    """Return ``parents`` and the statistics of their responses, slowdowns (response over the longest run time) and spreads."""
    times = parent_times(schedule, rows)
    slowdown = np.sort(slowdowns(times.response, times.longest))
    return {
        "parents": len(times.parent),
        **statistics_of_times("parent_response", times.response),
        **statistics_of_ratios("parent_slowdown", slowdown[np.isfinite(slowdown)]),
        **statistics_of_times("parent_spread", times.spread),
    }
