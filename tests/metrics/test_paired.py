from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.metrics.dependence import Estimate, mean_estimate
from qbatch.metrics.paired import Verdict, effect_of, finding_of, holm, mean_ranks, paired

small = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25)


def naive_effect(a: list[int], b: list[int]) -> tuple[float, float, float, float, float]:
    """Every pair counted one by one, every rank found by counting."""
    n = len(a)
    delta = sum((y < x) - (y > x) for x in a for y in b) / n**2
    change = [y - x for x, y in zip(a, b, strict=True) if x != y]
    rank = [
        sum(abs(other) < abs(one) for other in change)
        + (sum(abs(other) == abs(one) for other in change) + 1) / 2
        for one in change
    ]
    gained = sum(one for one, d in zip(rank, change, strict=True) if d < 0)
    lost = sum(one for one, d in zip(rank, change, strict=True) if d > 0)
    biserial = (gained - lost) / (gained + lost) if change else 0.0
    better, worse = sum(d < 0 for d in change) / n, sum(d > 0 for d in change) / n
    return better, worse, (n - len(change)) / n, delta, biserial


@settings(max_examples=200, deadline=None)
@given(small)
def test_effects_are_those_counted_one_by_one(pairs) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = effect_of(np.array(a, float), np.array(b, float))
    got = (found.better, found.worse, found.equal, found.cliff_delta, found.rank_biserial)
    assert got == pytest.approx(naive_effect(a, b))


def test_effects_have_the_sign_of_a_gain() -> None:
    a = np.array([5.0, 6, 7, 8])
    assert effect_of(a, a - 10).cliff_delta == 1
    assert effect_of(a, a - 10).rank_biserial == 1
    assert effect_of(a, a + 10).rank_biserial == -1
    assert effect_of(a, a).equal == 1


def test_ranks_of_equal_values_are_shared() -> None:
    assert mean_ranks(np.array([3.0, 1, 3, 9])).tolist() == [2.5, 1, 2.5, 4]


def test_a_difference_is_that_of_the_means_and_of_the_median_of_differences() -> None:
    a, b = np.arange(20.0), np.arange(20.0) * 2 + 1
    found = paired(a, b)
    assert (found.a, found.b, found.mean.value) == (9.5, 20, 10.5)
    assert found.median is not None
    assert found.median.value == 10  # the tenth of 1 to 20
    assert found.relative == pytest.approx(10.5 / 9.5)
    assert paired(np.zeros(9), np.ones(9)).relative is None
    assert paired(np.empty(0), np.empty(0)).mean.value is None


def test_holm_is_the_step_down_of_bonferroni() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([None, 0.5, 0.9]) == [None, 1.0, 1.0]
    assert holm([]) == []


def test_findings() -> None:
    def about(value, low, high, **more):
        return finding_of(Estimate(value, low, high, 0.01, 50, 1.0), 100.0, **more)

    assert about(-5, -8, -2) is Verdict.better
    assert about(5, 2, 8) is Verdict.worse
    assert about(5, 2, 8, is_less_better=False) is Verdict.better
    assert about(5, -1, 11) is Verdict.noise
    assert about(0.5, 0.4, 0.6) is Verdict.negligible
    assert about(0, 0, 0) is Verdict.equal
    assert about(5, 2, 8, p=0.2) is Verdict.noise
    assert finding_of(Estimate(5, None, None, None, 3, 0), 1.0) is Verdict.unknown
    assert finding_of(mean_estimate(np.empty(0)), None) is Verdict.unknown


def busy_waits(draw: np.random.Generator, jobs: int) -> np.ndarray:
    """Waits of a queue of one server: Lindley's recursion, so busy periods bind them together."""
    waits = np.zeros(jobs)
    gain = draw.exponential(0.8, jobs) - draw.exponential(1.0, jobs)
    for job in range(1, jobs):
        waits[job] = max(0.0, waits[job - 1] + gain[job])
    return waits


def test_labels_exchanged_at_random_are_noise_at_about_the_nominal_rate() -> None:
    """Two policies without a difference: two queues with the same arrivals' law, exchanged in each
    busy stretch."""
    false = 0
    logs = 300
    for seed in range(logs):
        draw = np.random.default_rng(seed)
        one, other = busy_waits(draw, 800), busy_waits(draw, 800)
        swap = np.repeat(draw.random(40) < 0.5, 20)
        a, b = np.where(swap, other, one), np.where(swap, one, other)
        found = paired(a, b, has_effect=False)
        false += finding_of(found.mean, found.a, practical=0.0) is not Verdict.noise
    # 5 % of 300 is 15; dependence that the blocks do not catch may double it, no more.
    assert 3 <= false <= 36


def test_a_planted_difference_is_found_in_nearly_every_log() -> None:
    found = 0
    for seed in range(60):
        draw = np.random.default_rng(1000 + seed)
        one = busy_waits(draw, 1500)
        # 10 % less on average, job by job up or down.
        other = one * draw.uniform(0.6, 1.2, len(one))
        found += (
            finding_of((pair := paired(one, other, has_effect=False)).mean, pair.a)
            is Verdict.better
        )
    assert found >= 55
