"""Nearest ranks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbatch.metrics import measure
from qbatch.metrics.per_job import nearest_rank
from tests.oracle.metrics import nearest_rank as oracle

from .samples import seconds


@pytest.mark.parametrize(
    ("n", "median", "p95"),
    [(1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 2, 4), (19, 10, 19), (20, 10, 19), (100, 50, 95)],
)
def test_the_rank_is_the_ceiling(n: int, median: int, p95: int) -> None:
    ordered = np.arange(1, n + 1)
    assert (nearest_rank(ordered, 50), nearest_rank(ordered, 95)) == (median, p95)
    measured = measure(seconds(*((0, 0, 1, run) for run in range(n, 0, -1)), procs_total=n))
    assert (
        measured["response_median_s"],
        measured["response_p95_s"],
        measured["response_max_s"],
    ) == (median, p95, n)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60), st.sampled_from((50, 95)))
def test_a_percentile_is_one_of_the_values(values: list[float], percent: int) -> None:
    found = nearest_rank(np.sort(np.array(values)), percent)
    assert found == oracle(values, percent)
    assert sum(value <= found for value in values) >= math.ceil(percent * len(values) / 100)
