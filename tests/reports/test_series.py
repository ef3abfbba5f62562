from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.model.record import LogClock
from qbatch.reports.distributions import class_name, size_class, used_percent, wait_edges
from qbatch.reports.plot_style import DAY, HOUR, PlotRange, duration_text, midnight_before
from qbatch.reports.series import bin_edges, steps, used_procs, waiting
from tests.reports.samples import KTH_CLOCK
from tests.reports.test_gantt import rows_of

SPANS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=20
)


@given(spans=SPANS)
def test_steps_are_the_sum_over_the_spans_that_hold_an_instant(spans):
    begin, length, weight = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    line = steps(begin, begin + length, weight)
    times = np.arange(-2, 65)
    holds = (begin[:, None] <= times) & (times < (begin + length)[:, None])
    expected = (holds * weight[:, None]).sum(axis=0)
    assert np.array_equal(line.value(times), expected)
    assert np.allclose(
        line.means(np.array([0, 7, 20, 60])),
        [expected[2:9].mean(), expected[9:22].mean(), expected[22:62].mean()],
    )
    part = line.within(5, 50)
    assert np.array_equal(part.value(times[7:52]), expected[7:52])


def test_what_is_used_and_what_waits():
    rows = rows_of([(5, 10, 3), (7, 2, 4)])
    assert used_procs(rows).value(np.array([4, 5, 7, 9, 15])).tolist() == [0, 3, 7, 3, 0]
    assert waiting(rows).value(np.array([0, 5, 7])).tolist() == [0, 0, 0]
    assert waiting(rows, in_procs=True).values.max() == 0


def view(begin, end, clock=None):
    return PlotRange("v", (), 16, clock or LogClock(), begin, end)


@pytest.mark.parametrize(
    ("span", "name"),
    [
        (4 * DAY, None),
        (5 * DAY, "hour"),
        (30 * DAY, "day"),
        (600 * DAY, "week"),
        (9999 * DAY, "4 weeks"),
    ],
)
def test_bins_grow_with_the_window(span, name):
    found = bin_edges(view(5, 5 + span))
    assert (found[1] if found else None) == name
    if found:
        edges = found[0]
        assert (edges[0], edges[-1]) == (5, 5 + span)
        assert (np.diff(edges) > 0).all()
        assert (edges[1:-1] % HOUR == 0).all()


def test_days_begin_at_the_log_s_own_midnight():
    midnight = midnight_before(view(0, DAY, KTH_CLOCK))
    assert midnight == -(17 * 3600 + 42 * 60 + 14) * 1_000_000
    assert midnight_before(view(DAY + 5, 2 * DAY)) == DAY


def test_size_classes_are_powers_of_two():
    sizes = np.array([1, 2, 3, 4, 5, 8, 9, 16, 17, 1024, 1025])
    assert size_class(sizes).tolist() == [0, 1, 2, 2, 3, 3, 4, 4, 5, 10, 11]
    assert [class_name(one).replace("\N{EN DASH}", "-") for one in (0, 1, 2, 3, 10)] == [
        "1",
        "2",
        "3-4",
        "5-8",
        "513-1024",
    ]


@given(waits=st.lists(st.floats(1e-6, 1e9), max_size=20))
def test_every_wait_has_a_bin(waits):
    edges = wait_edges([np.array(waits), np.array([0.0])])
    assert np.histogram(waits, edges)[0].sum() == len(waits)
    assert (np.diff(edges) > 0).all()


def test_only_the_whole_request_is_a_hundred_percent():
    jobs = rows_of([(0, 10**9, 1)] * 3).workload.changed(run=np.array([10**9, 10**9 - 1, 0]))
    assert used_percent(jobs).tolist() == [100, 99, 0]


def test_durations_are_said_in_the_unit_that_people_choose():
    assert [duration_text(s) for s in (0, 1, 90, 7200, 864000)] == [
        "0 s",
        "1 s",
        "1.5 min",
        "2 h",
        "10 d",
    ]
