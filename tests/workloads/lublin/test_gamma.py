"""Gamma variates and the weights of the half hours, against closed forms and the published
values."""

from __future__ import annotations

from math import factorial, sqrt

import numpy as np
import pytest

from qbatch.workloads import lublin
from qbatch.workloads.lublin import BATCH, INTERACTIVE, TYPELESS, WEIGHT_UNIT, Parameters, Streams

from .expected import density, erlang_distribution, truncated_mean_s

PUBLISHED = {
    "batch": """
        0.5462 0.5011 0.4589 0.4194 0.3826 0.3483 0.3166 0.2873 0.2602 0.2354 0.3472 0.4484
        0.5590 0.6760 0.7964 0.9172 1.0353 1.1480 1.2531 1.3484 1.4326 1.5044 1.5631 1.6085
        1.6405 1.6594 1.6659 1.6607 1.6448 1.6190 1.5846 1.5427 1.4944 1.4408 1.3830 1.3219
        1.2586 1.1938 1.1283 1.0628 0.9980 0.9342 0.8720 0.8116 0.7534 0.6977 0.6445 0.5939""",
    "interactive": """
        0.5135 0.4588 0.4087 0.3629 0.3213 0.2836 0.2497 0.2193 0.1921 0.1679 0.1187 0.1797
        0.2576 0.3524 0.4630 0.5874 0.7225 0.8647 1.0100 1.1542 1.2931 1.4229 1.5403 1.6427
        1.7280 1.7949 1.8426 1.8711 1.8810 1.8732 1.8491 1.8103 1.7587 1.6962 1.6248 1.5463
        1.4626 1.3755 1.2865 1.1970 1.1082 1.0212 0.9368 0.8557 0.7784 0.7054 0.6368 0.5728""",
    "typeless": """
        0.5078 0.4561 0.4085 0.3649 0.3250 0.2888 0.2560 0.2263 0.1997 0.1758 0.1649 0.2389
        0.3293 0.4351 0.5543 0.6840 0.8208 0.9609 1.1002 1.2349 1.3615 1.4769 1.5785 1.6644
        1.7332 1.7843 1.8174 1.8331 1.8321 1.8155 1.7848 1.7415 1.6874 1.6243 1.5538 1.4777
        1.3976 1.3149 1.2310 1.1470 1.0640 0.9828 0.9040 0.8284 0.7563 0.6880 0.6238 0.5637""",
}
"""Normalised weights of the 48 half hours from midnight, docs/spec/workloads.md 2.1."""

SETS = (BATCH, INTERACTIVE, TYPELESS)
# Means of the truncated gap by Monte Carlo, docs/spec/workloads.md 2.1.
MEAN_GAP_S = {"batch": 3479, "interactive": 613, "typeless": 902}


def drawn(shape: float, scale: float, count: int, seed: int = 1) -> np.ndarray:
    streams = Streams(seed, 0)
    value, is_accepted = lublin.gamma_proposals(
        np.array([shape]),
        np.array([scale]),
        streams.fractions(1, 0, count),
        streams.fractions(2, 0, count),
    )
    return value[is_accepted]


@pytest.mark.parametrize("parameters", SETS, ids=lambda each: each.name)
def test_the_weights_of_the_half_hours_are_the_published_ones(parameters: Parameters) -> None:
    published = [float(each) for each in PUBLISHED[parameters.name].split()]
    weights = lublin.bucket_weights(parameters.anum, parameters.bnum) / WEIGHT_UNIT
    assert [round(each, 4) for each in weights.tolist()] == published
    assert weights.mean() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("shape", [1, 3, 8, 20])
def test_the_distribution_function_is_right_where_there_is_a_closed_form(shape: int) -> None:
    x = np.array([0.01, 0.5, 2.0, 8.0, 16.0, 40.0])
    exact = [erlang_distribution(shape, each) for each in x.tolist()]
    assert (lublin.lower_gamma(float(shape), x) / factorial(shape)).tolist() == pytest.approx(
        exact, rel=1e-9, abs=1e-13
    )


@pytest.mark.parametrize(
    ("shape", "scale"),
    [
        (4.2, 0.94),
        (312.0, 0.03),
        (6.57, 0.823),
        (639.1, 0.0156),
        (3.8351, 0.6605),
        (7.073, 0.6856),
        (10.46, 0.4871),
    ],
)
def test_variates_follow_the_gamma_distribution(shape: float, scale: float) -> None:
    values = np.sort(drawn(shape, scale, 200_000))
    count = len(values)
    assert 0.68 * 200_000 < count < 0.9 * 200_000
    assert values.mean() == pytest.approx(shape * scale, abs=4 * sqrt(shape / count) * scale)
    assert values.var() == pytest.approx(shape * scale**2, rel=0.03)
    # Kolmogorov-Smirnov: 1.95 / sqrt(n) is exceeded once in a thousand times.
    edge = np.linspace(1e-9, shape * scale + 12 * sqrt(shape) * scale, 400_001)
    upto = np.concatenate(
        ([0.0], np.cumsum(density(shape, scale, (edge[1:] + edge[:-1]) / 2)) * (edge[1] - edge[0]))
    )
    distance = np.abs(np.interp(values, edge, upto) - (np.arange(count) + 0.5) / count).max()
    assert distance < 1.95 / sqrt(count)


@pytest.mark.parametrize("parameters", SETS, ids=lambda each: each.name)
def test_the_gaps_have_the_mean_of_the_truncated_distribution(parameters: Parameters) -> None:
    exact = truncated_mean_s(parameters.aarr * parameters.arar, parameters.barr, 13)
    assert exact == pytest.approx(MEAN_GAP_S[parameters.name], rel=0.012)
    gap_s = lublin.gap_points(parameters, Streams(1, 0), 400_000) / WEIGHT_UNIT * 1800
    assert gap_s.max() <= np.exp(13)
    assert gap_s.mean() == pytest.approx(exact, abs=3.5 * gap_s.std() / sqrt(400_000))


def test_draws_at_both_ends_make_no_infinity() -> None:
    ends = np.array([0.0, 1 - 2.0**-53, 0.5])
    value, _ = lublin.gamma_proposals(np.array([4.2]), np.array([0.94]), ends, ends[::-1])
    assert np.isfinite(value).all()
