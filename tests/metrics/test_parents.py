"""Metrics of parents, against sums over their tasks one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.metrics import METRICS, measure
from qbatch.metrics.measure import parent_times
from qbatch.model.record import Schedule
from tests.harness import run_named, workload_of
from tests.oracle.workloads import random_jobs


def schedule_of(seed: int) -> Schedule:
    rng = random.Random(seed)
    jobs = random_jobs(rng, 30, 8)
    work = workload_of(jobs, 8).changed(parent=np.array([rng.choice([-1, 4, 7, 9]) for _ in jobs]))
    return run_named(work, "easy")


@pytest.mark.parametrize("seed", range(8))
def test_they_are_those_of_the_tasks_one_by_one(seed: int) -> None:
    schedule = schedule_of(seed)
    work = schedule.workload
    tasks: dict[int, list[int]] = {}
    for row, parent in enumerate(work.parent.tolist()):
        if parent >= 0:
            tasks.setdefault(parent, []).append(row)
    times = parent_times(schedule, np.arange(len(schedule)))
    assert times.parent.tolist() == sorted(tasks)
    for place, parent in enumerate(sorted(tasks)):
        rows = tasks[parent]
        ends = [int(schedule.end[row]) for row in rows]
        assert times.response[place] == max(ends) - min(int(work.submit[row]) for row in rows)
        assert times.spread[place] == max(ends) - min(ends)
        assert times.longest[place] == max(int(work.run[row]) for row in rows)
        assert times.tasks[place] == len(rows)
    figures = measure(schedule)
    assert figures["parents"] == len(tasks)
    assert figures["parent_response_max_s"] == times.response.max() / 1e6
    assert set(figures) <= {metric.name for metric in METRICS}


def test_without_parents_they_are_not_there() -> None:
    schedule = run_named(workload_of(random_jobs(random.Random(1), 10, 8), 8), "easy")
    assert not [name for name in measure(schedule) if "parent" in name]
