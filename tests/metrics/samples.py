"""Finished runs for the tests of this package: from the oracle's schedulers, or from a few plain
numbers."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qbatch.model.record import KINDS, NO_PROMISE, Schedule, Workload
from tests.oracle import naive
from tests.oracle.naive import Job, Outcome

SECOND = 1_000_000

Row = tuple[int, int, int, int, int, str]
"""One job that ran, as the oracle takes it: submit, start, end, procs, run, kind."""

POLICIES: tuple[Callable[[list[Job], int], list[Outcome]], ...] = (
    naive.fcfs,
    naive.easy,
    lambda jobs, procs: naive.hybrid(jobs, procs, 2),
    lambda jobs, procs: naive.conservative(jobs, procs, "arrival"),
)


def schedule_of(rows: Sequence[Row], procs_total: int, **columns: Any) -> Schedule:
    """A schedule of these rows; a row with a start of -1 was rejected; ``columns`` are the
    workload's."""
    submit, start, end, procs, run = (
        np.array([row[place] for row in rows], np.int64) for place in range(5)
    )
    zeros = np.zeros(len(rows), np.int64)
    workload = Workload(
        name="sample",
        procs_total=procs_total,
        number=np.arange(1, len(rows) + 1),
        submit=submit,
        procs=procs,
        estimate=run,
        run=run,
        logged_run=run,
        memory=zeros,
        user=zeros,
        group=zeros,
        queue=zeros,
        counted=np.ones(len(rows), bool),
        log_row=np.arange(len(rows)),
    )
    kind = np.array([KINDS.index(row[5]) for row in rows], np.int8)
    promise = zeros + NO_PROMISE
    return Schedule(
        workload.changed(**columns), "sample", start, kind, promise, promise, end, queue_max=7
    )


def seconds(
    *rows: tuple[float, float, int, float], procs_total: int = 8, **columns: Any
) -> Schedule:
    """A schedule of (submit, wait, procs, run) in seconds; a wait below 0 is a rejection."""
    made: list[Row] = []
    for submit_s, wait_s, procs, run_s in rows:
        submit, wait, run = (round(value * SECOND) for value in (submit_s, wait_s, run_s))
        start = -1 if wait < 0 else submit + wait
        end = -1 if wait < 0 else start + run
        made.append((submit, start, end, procs, run, "in_order" if wait else "immediate"))
    return schedule_of(made, procs_total, **columns)


def rows_of(jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> list[Row]:
    """The rows of a run of the oracle."""
    return [
        (job.submit, outcome.start, outcome.end, job.procs, job.run, outcome.kind)
        for job, outcome in zip(jobs, outcomes, strict=True)
    ]


def loose_rows(rng: random.Random, n: int, procs_total: int) -> list[Row]:
    """Rows that never hold more than the machine, by no sensible policy: each starts late, at any
    time it fits."""
    rows: list[Row] = []
    for _ in range(n):
        submit, procs = rng.randint(0, 20), rng.randint(1, procs_total)
        run = rng.choice((0, 1, 2, 5, 9))
        start = submit + rng.choice((0, 0, 1, 3, 8))
        while not _fits(rows, start, start + run, procs, procs_total):
            start += 1
        rows.append((submit, start, start + run, procs, run, rng.choice(KINDS)))
    return [
        (*(SECOND * time for time in row[:3]), row[3], SECOND * row[4], row[5])
        for row in sorted(rows)
    ]  # type: ignore[misc]


def _fits(rows: list[Row], start: int, end: int, procs: int, procs_total: int) -> bool:
    """At no second do the jobs hold too much; an empty one is held against its neighbours all the
    same."""
    return all(
        procs + sum(row[3] for row in rows if row[1] <= second <= row[2]) <= procs_total
        for second in range(start, end + 1)
    )
