from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.model.record import MICROSECONDS as S
from qbatch.model.record import LogClock
from qbatch.reports.gantt import Panel, painted
from qbatch.reports.plot_style import PlotRange
from qbatch.results.boxes import assign
from qbatch.results.result import most_procs
from tests.reports.samples import by_hand, in_pieces, workload


def rows_of(jobs, unit=1):
    """Return a schedule of (start, run, procs)."""
    start, run, procs = (
        np.array(column, np.int64)
        for column in zip(*sorted(jobs, key=lambda job: job[0]), strict=True)
    )
    start, run = start * unit, run * unit
    return by_hand(workload(start, procs, run, run), start)


JOBS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.integers(1, 9)), min_size=1, max_size=40
)


@settings(max_examples=20, deadline=None)
@given(jobs=JOBS, begin=st.integers(0, 20))
def test_pixels_hold_as_much_ink_as_the_jobs_have_area(jobs, begin):
    rows = rows_of(jobs, unit=S)
    total = most_procs(rows)
    begin, end = begin * S, 45 * S
    view = PlotRange("sample", (rows,), total, LogClock(), begin, end)
    inside = rows.only((rows.start < end) & (rows.end > begin))
    boxes = assign(inside, total)
    image = painted(Panel(view, inside, boxes, np.zeros((len(inside), 4)), total))
    part = np.clip(inside.end, begin, end) - np.clip(inside.start, begin, end)
    expected = (part * inside.workload.procs).sum() / ((end - begin) * total)
    assert abs((1 - image / 255).mean() - expected) < 0.003


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), begin=st.integers(0, 20))
def test_jobs_in_pieces_are_painted_when_they_ran_and_as_wide_as_they_were(seed, begin):
    rows = in_pieces(seed)
    begin, end = begin * S, 70 * S
    total = most_procs(rows)
    view = PlotRange("sample", (rows,), total, LogClock(), begin, end)
    image = painted(Panel(view, rows, assign(rows, total), np.zeros((len(rows), 4)), total))
    spans = rows.spans()
    part = np.clip(spans.end, begin, end) - np.clip(spans.begin, begin, end)
    assert (
        abs((1 - image / 255).mean() - (part * spans.procs).sum() / ((end - begin) * total)) < 0.003
    )
