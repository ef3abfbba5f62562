"""Intervals on the scale of ratios: within the possible, and as often right as they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.metrics.dependence import mean_estimate
from qbatch.metrics.paired import Verdict, finding_of
from qbatch.metrics.ratio import (
    PARTS,
    difference_estimate,
    errors_of,
    level_bounds,
    replicated_difference,
)
from qbatch.model.errors import UsageError
from tests.bench.coverage import exchanged, of_chains, of_logs

waits = st.lists(st.one_of(st.just(0.0), st.floats(0, 1e9)), min_size=8, max_size=80)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_bounds_never_leave_the_possible(data: st.DataObject) -> None:
    a = np.array(data.draw(waits))
    b = np.array(data.draw(st.lists(st.floats(0, 1e9), min_size=len(a), max_size=len(a))))
    for estimate in (difference_estimate, replicated_difference):
        found = estimate(a, b)
        if estimate is replicated_difference and len(set((b - a).tolist())) == 1:
            # Replicas that cannot differ.
            assert (found.low, found.high, found.p) == (None, None, None)
            continue
        assert found.low is not None
        assert found.high is not None
        assert -a.mean() * (1 + 1e-12) <= found.low <= found.value <= found.high
        assert np.isfinite(found.high)
        assert 0 <= found.p <= 1
    low, high = level_bounds(a) or (np.nan, np.nan)
    assert 0 <= low <= a.mean() * (1 + 1e-12)
    assert high >= a.mean() * (1 - 1e-12)


def loaded(seed: int, n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Waits of a queue that grows for most of the log, as under FCFS on a full machine, and short
    ones of a better policy."""
    draw = np.random.default_rng(seed)
    a = np.maximum(np.cumsum(draw.normal(40, 900, n)), 0.0) + 1.0
    return a, a * 0.03 * draw.exponential(1.0, n)


def test_a_heavily_loaded_log_has_bounds_above_minus_all_of_it() -> None:
    a, b = loaded(1)
    plain = mean_estimate(b - a)
    assert plain.low < -a.mean()  # what a mean difference by itself would say
    found = difference_estimate(a, b)
    assert -a.mean() < found.low < found.value < found.high < 0
    assert finding_of(found, float(a.mean())) is Verdict.better


def test_bounds_and_chance_say_the_same() -> None:
    for seed in range(60):
        draw = np.random.default_rng(seed)
        a, b = draw.exponential(1.0, 200), draw.exponential(1.1, 200)
        found = difference_estimate(a, b, 0.9)
        assert (found.p < 0.1) == (not found.low <= 0 <= found.high)


def test_exchanged_the_ratio_turns_over() -> None:
    a, b = loaded(2)
    there, back = difference_estimate(a, b), difference_estimate(b, a)
    assert 1 + there.low / a.mean() == pytest.approx(1 / (1 + back.high / b.mean()))
    assert there.p == pytest.approx(back.p)


def test_without_dependence_the_error_is_that_of_the_delta_method() -> None:
    draw = np.random.default_rng(3)
    z = draw.normal(size=4000)
    plain = float(z.std()) / 4000**0.5
    sizes = [error.size for error in errors_of(z - z.mean(), 1.0)]
    assert sizes[0] == pytest.approx(plain, rel=0.01)
    assert len(sizes) == 1 + len(PARTS)
    assert all(0.3 * plain < size < 2.5 * plain for size in sizes)
    assert [error.freedom for error in errors_of(z[:10], 1.0)] == [9, 4]


def test_where_there_is_no_ratio_the_bounds_are_cut() -> None:
    a = np.r_[np.full(40, 5.0), np.zeros(10)]
    none = np.zeros(50)
    found = difference_estimate(a, none)
    assert (found.value, found.low) == (-4.0, -4.0)
    assert found.high <= 0
    found = difference_estimate(none, a)
    assert (found.value, found.low >= 0) == (4.0, True)
    equal = difference_estimate(a, a)
    assert (equal.value, equal.low, equal.high, equal.p) == (0.0, 0.0, 0.0, 1.0)
    assert finding_of(equal, 4.0) is Verdict.equal
    nothing = difference_estimate(none, none)
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 0.0)


def test_values_that_may_be_negative_are_not_cut() -> None:
    draw = np.random.default_rng(4)
    a, b = draw.normal(0.1, 1, 100), draw.normal(-3, 1, 100)
    assert difference_estimate(a, b) == mean_estimate(b - a)
    with pytest.raises(ValueError, match="negative"):
        level_bounds(a)


def test_few_values_have_no_bounds() -> None:
    few = np.ones(5)
    assert difference_estimate(few, few).low is None
    assert level_bounds(few) is None
    assert level_bounds(np.zeros(9)) == (0.0, 0.0)
    assert replicated_difference(np.ones(1), np.ones(1)).low is None
    assert replicated_difference(np.empty(0), np.empty(0)).value is None
    with pytest.raises(UsageError):
        difference_estimate(np.ones(9), np.ones(9), 1.5)


def test_replicas_are_cut_at_what_is_possible() -> None:
    found = replicated_difference(np.array([10.0, 50.0]), np.array([1.0, 2.0]))
    assert (found.value, found.low) == (-28.5, -30.0)


def test_the_truth_of_chains_is_held_as_often_as_is_said() -> None:
    for memory in (0.0, 0.95):
        found = of_chains(memory, 60, 800)
        assert found.held >= 0.9
        assert found.impossible == 0


def test_the_truth_of_generated_logs_is_held_as_often_as_is_said() -> None:
    """A short run of ``python -m tests.bench --coverage``, of which docs/explanation/statistics.md
    keeps the whole."""
    for found in of_logs(0.4, 60, 1500):
        assert found.held >= 0.85, found
        assert found.impossible == 0
        if found.name.startswith("fcfs"):
            assert found.differs == 1
            assert found.plain_impossible > 0.5  # so the plain interval would not do


def test_exchanged_labels_are_seldom_called_a_difference() -> None:
    found = exchanged(0.4, 60, 1500, lambda at: (at - at[0]) // 86_400)
    assert found.differs <= 0.1
