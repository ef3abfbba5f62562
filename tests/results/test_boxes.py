"""Which processors each job had when: no two jobs at once on one, and a job that is resized keeps
what it can."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.results.boxes import assign
from qbatch.results.result import most_procs
from tests.reports.samples import in_pieces
from tests.reports.test_gantt import JOBS, rows_of


@settings(max_examples=300, deadline=None)
@given(jobs=JOBS)
def test_no_processor_ever_has_two_jobs_and_every_job_has_its_number(jobs):
    rows = rows_of(jobs)
    total = most_procs(rows)
    boxes = assign(rows, total)
    grid = np.zeros((total, 50), int)
    for job, low, high in zip(boxes.job, boxes.low, boxes.high, strict=True):
        assert 0 <= low < high <= total
        grid[low:high, rows.start[job] : rows.end[job]] += 1
    assert grid.max() <= 1
    given_procs = np.bincount(boxes.job, weights=boxes.high - boxes.low, minlength=len(rows))
    assert np.array_equal(given_procs, np.where(rows.end > rows.start, rows.workload.procs, 0))


def test_a_job_is_in_one_piece_where_that_is_possible_and_low():
    rows = rows_of([(0, 9, 2), (0, 5, 3), (0, 9, 2), (5, 3, 3), (6, 1, 3)])
    boxes = assign(rows, 10)
    found = {}
    for job, low, high in zip(
        boxes.job.tolist(), boxes.low.tolist(), boxes.high.tolist(), strict=True
    ):
        found.setdefault(job, []).append((low, high))
    assert found == {0: [(0, 2)], 1: [(2, 5)], 2: [(5, 7)], 3: [(2, 5)], 4: [(7, 10)]}
    split = assign(rows_of([(0, 9, 1), (0, 5, 1), (0, 9, 1), (5, 3, 2)]), 4)
    assert (split.low[3:].tolist(), split.high[3:].tolist()) == ([1, 3], [2, 4])


def held(schedule, job, at):
    """Return how many processors a job has at an instant, from the record itself."""
    mine = (
        []
        if schedule.pieces is None
        else [piece for piece in schedule.pieces.tolist() if piece[0] == job]
    )
    if not mine:
        return (
            int(schedule.workload.procs[job])
            if schedule.start[job] <= at < schedule.end[job]
            else 0
        )
    return sum(procs for _, begin, end, procs, _, _ in mine if begin <= at < end)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 100_000))
def test_jobs_in_pieces_have_what_each_piece_says_and_keep_what_they_can(seed):
    schedule = in_pieces(seed, unit=1)
    rows = schedule
    total = most_procs(rows)
    boxes = assign(rows, total)
    grid = np.full((total, 80), -1)
    for job, low, high, begin, end in zip(
        boxes.job, boxes.low, boxes.high, boxes.begin, boxes.end, strict=True
    ):
        assert 0 <= low < high <= total
        assert begin < end
        assert (grid[low:high, begin:end] == -1).all()
        grid[low:high, begin:end] = job
    for job in range(len(rows)):
        for at in range(79):
            had, has = held(schedule, job, at), held(schedule, job, at + 1)
            assert (grid[:, at] == job).sum() == had
            assert ((grid[:, at] == job) & (grid[:, at + 1] == job)).sum() >= min(had, has)
