"""The metrics of the parts of one run: by user, month, size, run time and the like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.metrics.dates import Grouped, by_day, by_month
from qbatch.metrics.per_job import JobTimes, Metrics, job_metrics, job_times
from qbatch.model.errors import UsageError, suggestion
from qbatch.model.record import KINDS, MICROSECONDS, Int64Array, Schedule

_RUNTIME_EDGES_S = (60, 600, 3600, 36_000, 180_000, 360_000)
_RUNTIME_LABELS = ("<1m", "1-10m", "10m-1h", "1-10h", "10-50h", "50-100h", ">100h")

_NARROW_PROCS = 8
_SHORT_S = 3600


@dataclass(frozen=True, slots=True)
class BreakdownGroup:
    """Some jobs of a run under one label: their number, and their waits, responses and
    slowdowns."""

    label: str
    jobs: int
    metrics: Metrics


def breakdown(
    schedule: Schedule, key: str, figures: Callable[[JobTimes], Metrics] = job_metrics
) -> list[BreakdownGroup]:
    """Return the groups by ``key`` (one of ``BREAKDOWNS``) of the jobs that ran and are counted;
    none is empty.

    Each group has the metrics that ``measure`` computes job by job, also of jobs with several
    execution intervals; or other ``figures`` of its jobs.  Months and days are those of submission.

    Raises:
        UsageError: there is no such key.
    """
    if key not in BREAKDOWNS:
        near = suggestion(key, BREAKDOWNS)
        raise UsageError(
            f"breakdown by {key!r}: there is none{near}; known are {', '.join(BREAKDOWNS)}"
        )
    rows = np.flatnonzero(schedule.ran & schedule.workload.counted)
    codes, labels = BREAKDOWNS[key](schedule, rows)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(labels) + 1)).tolist()
    jobs = job_times(schedule, rows[order])
    return [
        BreakdownGroup(label, end - begin, figures(JobTimes(*(times[begin:end] for times in jobs))))
        for label, begin, end in zip(labels, bounds, bounds[1:], strict=False)
        if begin < end
    ]


def _by_number(
    column: NDArray[Any], rows: Int64Array, names: Mapping[int, str] = MappingProxyType({})
) -> Grouped:
    """Group by number; a label is the number's name, if it has one."""
    numbers, codes = np.unique(column[rows], return_inverse=True)
    return codes, [
        "unknown" if number == -1 else names.get(number, str(number)) for number in numbers.tolist()
    ]


def _by_size(schedule: Schedule, rows: Int64Array) -> Grouped:
    """Group by size: class 0 is one processor, class k is 2**(k-1) + 1 to 2**k, the binary length
    of procs - 1."""
    codes = np.frexp(schedule.workload.procs[rows] - 1.0)[1].astype(np.int64)
    highest = int(codes.max(initial=0))
    spans = (f"{2 ** (k - 1) + 1}-{2**k}" for k in range(2, highest + 1))
    return codes, ["1", "2", *spans]


def _by_runtime(schedule: Schedule, rows: Int64Array) -> Grouped:
    """Group by run time; a run time on the edge of two classes belongs to the longer one."""
    edges = np.array(_RUNTIME_EDGES_S, np.int64) * MICROSECONDS
    return np.searchsorted(edges, schedule.workload.run[rows], side="right"), list(_RUNTIME_LABELS)


def _by_class(schedule: Schedule, rows: Int64Array) -> Grouped:
    """Group by width and length: wide above 8 processors, long above 1 h (Srinivasan et al. 2002,
    JSSPP, section 3)."""
    is_wide = schedule.workload.procs[rows] > _NARROW_PROCS
    is_long = schedule.workload.run[rows] > _SHORT_S * MICROSECONDS
    return is_wide + 2 * is_long.astype(np.int64), [
        "short narrow",
        "short wide",
        "long narrow",
        "long wide",
    ]


def _by_partition(schedule: Schedule, rows: Int64Array) -> Grouped:
    """Group by the partitions that a job names; one that names none is in the default one.  Job rows
    contain none: then they are unknown."""
    work = schedule.workload
    if not work.requests:
        return np.zeros(len(rows), np.int64), ["unknown"]
    of = np.asarray(work.request)[rows]
    names = [",".join(each.partitions) or "default" for each in work.requests]
    labels = sorted({*names, "default"})
    codes = np.array([*map(labels.index, names), labels.index("default")], np.int64)
    return codes[of], labels


BREAKDOWNS: dict[str, Callable[[Schedule, Int64Array], Grouped]] = {
    "user": lambda schedule, rows: _by_number(schedule.workload.user, rows),
    "group": lambda schedule, rows: _by_number(schedule.workload.group, rows),
    "queue": lambda schedule, rows: _by_number(
        schedule.workload.queue, rows, schedule.workload.queue_names
    ),
    "partition": _by_partition,
    "month": lambda schedule, rows: by_month(
        schedule.workload.clock, schedule.workload.submit[rows]
    ),
    "day": lambda schedule, rows: by_day(schedule.workload.clock, schedule.workload.submit[rows]),
    "size": _by_size,
    "runtime": _by_runtime,
    "class": _by_class,
    "kind": lambda schedule, rows: (schedule.kind[rows].astype(np.int64), list(KINDS)),
}
"""The keys of breakdowns, each with the function that sorts its rows."""
