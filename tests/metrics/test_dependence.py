from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.metrics.dependence import (
    FEWEST,
    a_day_of,
    block_length,
    mean_estimate,
    median_estimate,
    stationary_variance,
    times_drawn,
)
from qbatch.metrics.interval import t_quantile, t_two_sided
from qbatch.model.errors import UsageError


def chain(n: int, memory: float, seed: int) -> np.ndarray:
    """Values that each remember a share of the last, with variance 1."""
    draw = np.random.default_rng(seed)
    noise = draw.normal(size=n) * math.sqrt(1 - memory**2)
    values = np.empty(n)
    values[0] = draw.normal()
    for place in range(1, n):
        values[place] = memory * values[place - 1] + noise[place]
    return values


def resampled_mean(values: np.ndarray, block: float, draw: np.random.Generator) -> float:
    """One mean of the stationary bootstrap, as Politis and Romano (1994) define it, value by
    value."""
    n, at, total = len(values), int(draw.integers(len(values))), 0.0
    for _ in range(n):
        total += values[at]
        at = int(draw.integers(n)) if draw.random() < 1 / block else (at + 1) % n
    return total / n


@pytest.mark.parametrize(("n", "block"), [(30, 1.0), (30, 4.0), (41, 9.5)])
def test_the_closed_variance_is_that_of_means_resampled_value_by_value(n, block) -> None:
    values = np.cumsum(np.random.default_rng(3).normal(size=n))
    draw = np.random.default_rng(4)
    means = [resampled_mean(values, block, draw) for _ in range(6000)]
    assert stationary_variance(values, block) == pytest.approx(float(np.var(means)), rel=0.08)


def test_without_dependence_the_variance_is_the_usual_one() -> None:
    values = np.random.default_rng(1).normal(size=500)
    assert stationary_variance(values, 1.0) == pytest.approx(float(values.var()) / 500)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.floats(1, 30), st.integers(0, 2**31))
def test_a_resample_draws_as_many_values_as_there_are(n, block, seed) -> None:
    drawn = times_drawn(n, block, np.random.default_rng(seed))
    assert len(drawn) == n
    assert drawn.sum() == n
    assert drawn.min() >= 0


def test_blocks_of_a_resample_are_as_long_as_was_asked() -> None:
    draw = np.random.default_rng(2)
    breaks = [np.count_nonzero(np.diff(times_drawn(10_000, 50.0, draw))) for _ in range(20)]
    # Each block begins and ends somewhere: two changes a block of 50.
    assert np.mean(breaks) == pytest.approx(2 * 10_000 / 50, rel=0.15)


def test_blocks_grow_with_memory_and_stay_short_without() -> None:
    alone = [block_length(chain(2000, 0.0, seed)) for seed in range(10)]
    bound = [block_length(chain(2000, 0.9, seed)) for seed in range(10)]
    assert np.median(alone) < 5
    assert 15 < np.median(bound) < 120
    assert block_length(np.zeros(50)) == 1.0
    assert block_length(np.arange(3.0)) == 1.0
    assert block_length(np.arange(1000.0)) <= math.ceil(3 * math.sqrt(1000))


@pytest.mark.parametrize("memory", [0.0, 0.7, 0.9])
def test_intervals_hold_the_true_mean_about_as_often_as_they_say(memory) -> None:
    hits = 0
    for seed in range(300):
        found = mean_estimate(chain(1500, memory, seed))
        hits += found.low <= 0 <= found.high
    assert 0.90 <= hits / 300 <= 0.985


def test_a_naive_interval_would_not_hold_it() -> None:
    hits = 0
    for seed in range(100):
        values = chain(1500, 0.9, seed)
        hits += abs(values.mean()) <= 1.96 * values.std() / math.sqrt(1500)
    assert hits / 100 < 0.6


def test_the_interval_of_a_median_holds_it_and_is_the_same_each_time() -> None:
    hits = 0
    for seed in range(60):
        found = median_estimate(chain(400, 0.6, seed), seed=1)
        hits += found.low <= 0 <= found.high
    assert hits / 60 >= 0.88
    values = chain(400, 0.6, 1)
    assert median_estimate(values, seed=5) == median_estimate(values, seed=5)
    assert median_estimate(values).value == sorted(values)[199]


def test_a_block_holds_a_day_of_submissions_but_no_more_than_a_quarter_of_all() -> None:
    hour = 3_600_000_000
    assert a_day_of(np.arange(240) * hour) == pytest.approx(240 / (239 / 24))
    assert a_day_of(np.arange(40) * hour) == 10
    assert a_day_of(np.arange(10)) == 2.5
    assert a_day_of(np.empty(0, np.int64)) == 1.0
    values = chain(400, 0.3, 1)
    wide, usual = mean_estimate(values, least_block=100.0), mean_estimate(values)
    assert (wide.block, usual.block < 100) == (100.0, True)
    assert median_estimate(values, least_block=100.0).block == 100.0


def test_few_values_have_no_interval_and_none_no_value() -> None:
    few = mean_estimate(np.arange(FEWEST - 1.0))
    assert (few.value, few.low, few.p) == (3.0, None, None)
    assert mean_estimate(np.empty(0)).value is None
    assert median_estimate(np.empty(0)).value is None
    assert median_estimate(np.ones(2)).low is None
    same = mean_estimate(np.zeros(20))
    assert (same.low, same.high, same.p) == (0.0, 0.0, 1.0)
    assert mean_estimate(np.ones(20)).p == 0.0
    with pytest.raises(UsageError):
        mean_estimate(np.ones(20), 1.5)


@pytest.mark.parametrize("freedom", [1, 2, 7, 60, 199])
@pytest.mark.parametrize("p", [0.001, 0.05, 0.5])
def test_the_chance_of_a_quantile_is_its_own(freedom, p) -> None:
    assert t_two_sided(t_quantile(1 - p / 2, freedom), freedom) == pytest.approx(p, rel=1e-6)
    assert t_two_sided(-1.96, 10_000) == pytest.approx(0.05, abs=1e-4)
