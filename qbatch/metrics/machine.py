"""Metrics of the machine over the whole run: makespan, throughput, utilisation, loss of capacity.

A job is taken to hold its processors from start to end.  A policy that suspends jobs keeps its makespan, throughput
and utilisation over the makespan (which count the run times), but not the other two, which need the slices.
"""

from __future__ import annotations

import numpy as np

from qbatch.metrics.columns import MeasuredColumns
from qbatch.metrics.sums import LOW_BITS, exact_area
from qbatch.model.record import MICROSECONDS, Int64Array

HOUR_US = 3600 * MICROSECONDS


def makespan_us(jobs: MeasuredColumns) -> int:
    """Makespan = last end - first submit (papers.md 0.3); 0 without jobs."""
    return int(jobs.end.max()) - int(jobs.submit.min()) if len(jobs) else 0


def makespan_s(jobs: MeasuredColumns) -> float | None:
    """Makespan in seconds = last end - first submit (papers.md 0.3)."""
    return makespan_us(jobs) / MICROSECONDS if len(jobs) else None


def throughput_per_hour(jobs: MeasuredColumns) -> float | None:
    """Throughput = jobs that ran / makespan (standard)."""
    return _share(len(jobs) * HOUR_US, makespan_us(jobs))


def utilisation_makespan(jobs: MeasuredColumns, procs_total: int) -> float | None:
    """Utilisation = sum(procs * run) / (P * makespan) (papers.md 0.3)."""
    return _share(exact_area(jobs.procs, jobs.run), procs_total * makespan_us(jobs))


def utilisation_submit(jobs: MeasuredColumns, procs_total: int) -> float | None:
    """Utilisation from the first to the last submit = processor time used in that window / (P * its length).

    Of each job only the part inside the window counts (papers.md 0.3: the window for open traces).
    """
    if not len(jobs):
        return None
    first, last = int(jobs.submit.min()), int(jobs.submit.max())
    inside = np.minimum(jobs.end, last)
    inside -= np.minimum(jobs.start, last)
    return _share(exact_area(jobs.procs, inside), procs_total * (last - first))


def loss_of_capacity(jobs: MeasuredColumns, procs_total: int) -> float | None:
    """Loss of capacity = processor time idle while a waiting job would fit on the idle processors / (P * makespan).

    At each instant all idle processors are lost if the smallest request that waits is no larger than their number,
    none if not.  So a policy that starts whatever fits loses nothing, and what is left of the idle time is
    fragmentation or want of jobs.  Definition: tests/oracle/metrics.py.
    """
    if not len(jobs):
        return None
    # Imported here: who wants the other metrics need not wait for the compiler.
    from qbatch.metrics.kernels.loss import lost_area

    by_start = np.argsort(jobs.start, kind="stable")  # nearly in order, which this kind of sort makes use of
    by_end = np.argsort(jobs.end)
    high, low = lost_area(
        jobs.submit, jobs.start, jobs.end, jobs.procs, _by_submit(jobs), by_start, by_end, procs_total
    )
    return _share((int(high) << LOW_BITS) + int(low), procs_total * makespan_us(jobs))


def _by_submit(jobs: MeasuredColumns) -> Int64Array:
    """Return the rows in order of submit; they are in it already when nobody has shuffled the workload."""
    if np.any(jobs.submit[1:] < jobs.submit[:-1]):
        return np.argsort(jobs.submit)
    return np.arange(len(jobs))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
