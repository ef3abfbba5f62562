"""Cells of every form as numbers, instants, hosts and words."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.workloads.accounting.times import WallClock
from qbatch.workloads.tables.cells import (
    MISSING,
    NumberedWords,
    hosts_of,
    instants_of,
    job_order,
    memory_of,
    numbers_of,
    spans_of,
)

UTC_CLOCK = WallClock(ZoneInfo("UTC"))
ANYTHING = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.floats(),
    st.integers(-(10**400), 10**400),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(sorted(MISSING)),
)


def same(found: Any, wanted: list[float]) -> bool:
    return bool(np.array_equal(found, np.array(wanted), equal_nan=True))


def test_numbers_and_what_is_none() -> None:
    cells = ["1", " 2.5 ", "", None, "NaN", "x", "-3", "1e300", True]
    found = numbers_of(cells, scale=2)
    assert same(found.values, [2, 5, *[math.nan] * 7])
    assert found.bad == {
        5: "is not a number",
        6: "is negative",
        7: "is too large",
        8: "is not a number",
    }


@given(st.lists(ANYTHING, max_size=30))
def test_no_cell_breaks_a_conversion(cells: list[Any]) -> None:
    readers = (
        numbers_of,
        lambda cells: spans_of(cells, 60.0),
        lambda cells: memory_of(cells, 1024.0),
        lambda cells: instants_of(cells, 1.0, UTC_CLOCK),
        lambda cells: instants_of(cells, None, UTC_CLOCK),
        hosts_of,
    )
    for read in readers:
        values, bad = read(list(cells))
        assert len(values) == len(cells)
        assert all(math.isnan(values[row]) for row in bad)
        assert not (values < 0).any()
        assert not np.isinf(values).any()
    assert len(NumberedWords(3).numbers(list(cells))) == len(cells)
    first, second = job_order(list(cells))
    assert len(first) == len(second) == len(cells)


@given(st.lists(st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1)), min_size=1, max_size=9))
def test_the_quick_way_and_the_slow_way_read_the_same_instants(times: list[datetime]) -> None:
    wanted = [math.floor(time.replace(tzinfo=UTC).timestamp()) for time in times]
    stamps = [time.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0") for time in times]
    assert same(instants_of(stamps, 1.0, UTC_CLOCK).values, wanted)
    assert same(instants_of([*stamps, "x"], 1.0, UTC_CLOCK).values, [*wanted, math.nan])
    assert same(instants_of([f"{stamp}Z" for stamp in stamps], None, UTC_CLOCK).values, wanted)
    array = np.array(times, "datetime64[us]")
    assert same(instants_of(array, None, UTC_CLOCK).values, wanted)
    assert same(instants_of([second * 1000 for second in wanted], 1e-3, UTC_CLOCK).values, wanted)


def test_local_times_and_words_of_time_that_are_none() -> None:
    berlin = WallClock(ZoneInfo("Europe/Berlin"))
    summer = datetime(2024, 7, 1, 10, tzinfo=UTC).timestamp()
    cells = ["2024-07-01 12:00:00", "2024-07-01T10:00:00+00:00", "now", "today", "2024-07-01", "1"]
    found = instants_of(cells, None, berlin)
    assert same(found.values, [summer, summer, math.nan, math.nan, summer - 43_200, math.nan])
    assert set(found.bad) == {2, 3, 5}
    local = np.array(["2024-07-01T12:00:00", "NaT"], "datetime64[ms]")
    assert same(instants_of(local, None, berlin).values, [summer, math.nan])


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [("1-00:00:00", 86_400), ("01:30", 90), ("90", 5400), ("UNLIMITED", math.nan), (1.5, 90)],
)
def test_spans(cell: Any, seconds: float) -> None:
    found = spans_of([cell, "2"], 60.0)
    assert same(found.values, [seconds, 120])
    assert not found.bad


def test_memory_hosts_jobs_and_words() -> None:
    assert same(memory_of(["4", "1GB", "1 apple"], 1024.0).values, [4096, 2**30, math.nan])
    listed = hosts_of(["n1,n2", "n[1-4] m7", ["a", "b"], "", "n[4-1]"])
    assert same(listed.values, [2, 5, 2, math.nan, math.nan])
    assert listed.bad == {4: "is not a list of hosts"}
    first, second = job_order(["12.sdb", "application_15_7", "x", 3])
    assert (first.tolist(), second.tolist()) == ([12, 15, -1, 3], [-1, 7, -1, -1])
    words = NumberedWords(2)
    assert words.numbers(["ann", " ann", "", None, 5.0, "5", "new"]).tolist() == [
        1,
        1,
        -1,
        -1,
        2,
        2,
        -1,
    ]
    assert words.is_full
