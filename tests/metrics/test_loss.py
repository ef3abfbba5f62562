"""The sweep that integrates lost capacity, and the exact sums under it."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.metrics import machine, measure, sums
from qbatch.metrics.kernels import loss
from tests.oracle.metrics import measure as oracle

from .samples import loose_rows, schedule_of, seconds


@given(st.integers(0, 2**32), st.integers(1, 14), st.integers(1, 40))
def test_the_sweep_is_as_the_oracle_has_it(seed: int, n: int, procs_total: int) -> None:
    rows = loose_rows(random.Random(seed), n, procs_total)
    lost = machine.loss_of_capacity(schedule_of(rows, procs_total).only_ran())
    assert lost == oracle(rows, procs_total)["loss_of_capacity"]


def test_it_runs_uncompiled_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules = [schedule_of(loose_rows(random.Random(seed), 12, 5), 5) for seed in range(20)]
    compiled = [measure(schedule)["loss_of_capacity"] for schedule in schedules]
    for name in ("add", "count_up_to", "lost_area"):
        function = getattr(loss, name)
        monkeypatch.setattr(loss, name, getattr(function, "py_func", function))
    assert [measure(schedule)["loss_of_capacity"] for schedule in schedules] == compiled


@pytest.mark.parametrize(
    ("wanted", "lost"),
    [(3, 5 * 10), (5, 5 * 10), (6, 0)],
    ids=["fits", "just fits", "does not fit"],
)
def test_idle_processors_are_lost_only_to_a_job_that_fits(wanted: int, lost: int) -> None:
    measured = measure(seconds((0, 0, 3, 10), (0, 10, wanted, 10)))
    assert measured["loss_of_capacity"] == lost / (8 * 20)


def test_a_job_waits_no_longer_than_until_its_start_and_from_its_submit() -> None:
    measured = measure(seconds((0, 0, 8, 10), (12, 3, 8, 1), (11, 1, 1, 1)))
    assert measured["loss_of_capacity"] == (8 * 1 + 7 * 0 + 8 * 2) / (8 * 16)


def test_parts_of_spans_are_cut_alike() -> None:
    assert loss.LOW_BITS == sums.LOW_BITS


@given(st.lists(st.tuples(st.integers(0, 1 << 24), st.integers(0, 1 << 53)), max_size=30))
def test_sums_are_exact(pairs: list[tuple[int, int]]) -> None:
    procs = np.array([wide for wide, _ in pairs], np.int64)
    times = np.array([long for _, long in pairs], np.int64)
    assert sums.exact_sum(times) == sum(long for _, long in pairs)
    assert sums.exact_area(procs, times) == sum(wide * long for wide, long in pairs)


def test_sums_are_exact_at_their_limits_in_whole_blocks() -> None:
    count, procs, time = 10_000, (1 << 24) - 1, (1 << 53) - 1
    assert sums.exact_sum(np.full(count, time)) == count * time
    assert sums.exact_area(np.full(count, procs), np.full(count, time)) == count * procs * time
