"""Match the jobs of two schedules, by job number, and for equal numbers by order of submission."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.record import Int64Array, Schedule


def job_keys(numbers: Int64Array) -> NDArray[Any]:
    """Return a key for each row: the job number and its rank among the rows with that number."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(ordered)), 0)) if len(ordered) else ordered
    again = np.empty(len(numbers), np.int64)
    again[order] = np.arange(len(numbers)) - first
    keys = np.empty(len(numbers), [("number", np.int64), ("again", np.int64)])
    keys["number"], keys["again"] = numbers, again
    return keys


def jobs_of(schedule: Schedule, other: Schedule) -> Schedule:
    """Return the schedule of the jobs that ran in both schedules, with the other's choice of counted jobs."""
    work = schedule.workload
    _, here, there = np.intersect1d(
        job_keys(work.number), job_keys(other.workload.number), return_indices=True
    )
    counted = np.zeros(len(work), np.bool_)
    counted[here] = other.workload.counted[there]
    return replace(schedule, workload=work.changed(counted=counted)).only(np.sort(here))
