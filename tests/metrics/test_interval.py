"""Confidence intervals: quantiles of Student's t against printed tables, and what the bounds
promise."""

import random
from statistics import NormalDist, fmean, stdev

import pytest

from qbatch.metrics import Interval, interval, paired_difference
from qbatch.metrics.interval import t_quantile
from qbatch.model.errors import UsageError

PRINTED = {
    (0.975, 1): 12.706,
    (0.975, 2): 4.303,
    (0.975, 3): 3.182,
    (0.975, 4): 2.776,
    (0.975, 5): 2.571,
    (0.975, 9): 2.262,
    (0.975, 10): 2.228,
    (0.975, 29): 2.045,
    (0.975, 30): 2.042,
    (0.975, 60): 2.000,
    (0.975, 120): 1.980,
    (0.95, 1): 6.314,
    (0.95, 7): 1.895,
    (0.95, 20): 1.725,
    (0.995, 1): 63.657,
    (0.995, 6): 3.707,
    (0.995, 40): 2.704,
    (0.9995, 2): 31.599,
    (0.9995, 10): 4.587,
    (0.9, 3): 1.638,
}


@pytest.mark.parametrize(("probability", "freedom"), list(PRINTED))
def test_quantiles_are_those_of_the_printed_table(probability: float, freedom: int) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(
        PRINTED[probability, freedom], abs=6e-4
    )


def test_quantiles_of_one_and_two_degrees_have_closed_forms() -> None:
    for probability in (0.6, 0.9, 0.975, 0.999):
        two = (2 * probability - 1) / (2 * probability * (1 - probability)) ** 0.5
        assert t_quantile(probability, 2) == pytest.approx(two, rel=1e-12)
    assert t_quantile(0.75, 1) == pytest.approx(1.0, rel=1e-14)


def test_quantiles_are_symmetric_and_end_in_the_normal_ones() -> None:
    assert t_quantile(0.5, 7) == pytest.approx(0, abs=1e-15)
    assert t_quantile(0.025, 7) == pytest.approx(-t_quantile(0.975, 7))
    assert t_quantile(0.975, 10**7) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-6)


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.995, 0.9995])
def test_the_sum_and_the_expansion_meet(
    probability: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    expanded = t_quantile(probability, 201)
    monkeypatch.setitem(t_quantile.__globals__, "_EXACT_UP_TO", 201)
    assert expanded == pytest.approx(t_quantile(probability, 201), rel=1e-9)


def test_an_interval_by_hand() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * (5 / 3) ** 0.5 / 2
    assert (found.mean, found.n) == (2.5, 4)
    assert found.low == pytest.approx(2.5 - half, rel=1e-6)
    assert found.high == pytest.approx(2.5 + half, rel=1e-6)


def test_fewer_than_two_values_have_no_bounds() -> None:
    assert interval([]) == Interval(None, None, None, 0)
    assert interval([3.0]) == Interval(3.0, None, None, 1)
    assert paired_difference([5.0], [3.0]) == Interval(2.0, None, None, 1)


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert interval([4.25] * 5) == Interval(4.25, 4.25, 4.25, 5)


def test_ninety_percent_of_the_intervals_hold_the_mean() -> None:
    rng = random.Random(1)
    held = 0
    for _ in range(2000):
        found = interval([rng.gauss(7, 2) for _ in range(5)], 0.9)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 7 <= found.high
    assert 0.88 < held / 2000 < 0.92


def test_pairs_cancel_what_replicas_share() -> None:
    rng = random.Random(2)
    shared = [rng.gauss(100, 50) for _ in range(10)]
    a = [value + rng.gauss(1, 0.1) for value in shared]
    found = paired_difference(a, shared)
    differences = [one - other for one, other in zip(a, shared, strict=True)]
    assert found.mean == pytest.approx(fmean(differences))
    assert found.low is not None
    assert found.low == pytest.approx(
        fmean(differences) - t_quantile(0.975, 9) * stdev(differences) / 10**0.5
    )
    assert found.low > 0


def test_pairs_must_be_pairs() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired_difference([1.0, 2.0], [1.0])


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, float("nan")])
def test_a_confidence_is_between_nought_and_one(confidence: float) -> None:
    with pytest.raises(UsageError, match="confidence"):
        interval([1.0, 2.0], confidence)
