from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.record import MICROSECONDS as S
from qbatch.model.record import Clock
from qbatch.reports.gantt import Panel, assign, painted
from qbatch.reports.job_rows import job_rows_of
from qbatch.reports.plot_style import View
from qbatch.reports.result import most_procs
from tests.reports.samples import by_hand, workload


def rows_of(jobs, unit=1):
    """Return job rows of (start, run, procs)."""
    start, run, procs = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    start, run = start * unit, run * unit
    return job_rows_of(by_hand(workload(start, procs, run, run), start))


JOBS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 9)), min_size=1, max_size=40)


@settings(max_examples=300, deadline=None)
@given(jobs=JOBS)
def test_no_processor_ever_has_two_jobs_and_every_job_has_its_number(jobs):
    rows = rows_of(jobs)
    total = most_procs(rows)
    pieces = assign(rows, total)
    grid = np.zeros((total, 50), int)
    for job, low, high in zip(pieces.job, pieces.low, pieces.high, strict=True):
        assert 0 <= low < high <= total
        grid[low:high, rows.start[job] : rows.end[job]] += 1
    assert grid.max() <= 1
    given_procs = np.bincount(pieces.job, weights=pieces.high - pieces.low, minlength=len(rows))
    assert np.array_equal(given_procs, np.where(rows.end > rows.start, rows.procs, 0))


def test_a_job_is_in_one_piece_where_that_is_possible_and_low():
    rows = rows_of([(0, 9, 2), (0, 5, 3), (0, 9, 2), (5, 3, 3), (6, 1, 3)])
    pieces = assign(rows, 10)
    found = {}
    for job, low, high in zip(pieces.job.tolist(), pieces.low.tolist(), pieces.high.tolist(), strict=True):
        found.setdefault(job, []).append((low, high))
    assert found == {0: [(0, 2)], 1: [(2, 5)], 2: [(5, 7)], 3: [(2, 5)], 4: [(7, 10)]}
    split = assign(rows_of([(0, 9, 1), (0, 5, 1), (0, 9, 1), (5, 3, 2)]), 4)
    assert (split.low[3:].tolist(), split.high[3:].tolist()) == ([1, 3], [2, 4])


@settings(max_examples=20, deadline=None)
@given(jobs=JOBS, begin=st.integers(0, 20))
def test_pixels_hold_as_much_ink_as_the_jobs_have_area(jobs, begin):
    rows = rows_of(jobs, unit=S)
    total = most_procs(rows)
    begin, end = begin * S, 45 * S
    view = View("sample", (rows,), total, Clock(), begin, end)
    inside = rows.taken((rows.start < end) & (rows.end > begin))
    pieces = assign(inside, total)
    image = painted(Panel(view, inside, pieces, np.zeros((len(inside), 4)), total))
    part = np.clip(inside.end, begin, end) - np.clip(inside.start, begin, end)
    expected = (part * inside.procs).sum() / ((end - begin) * total)
    assert abs((1 - image / 255).mean() - expected) < 0.003
