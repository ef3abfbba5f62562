"""Gamma variates and the weights of the day, from operations that have the same result on every machine.

NumPy does not promise the stream of ``Generator.gamma`` from one version to the next, so variates are made here from the
package's own draws, by rejection (R. C. H. Cheng, *The generation of gamma variables with non-integral shape parameter*, Applied
Statistics 26, 1977): two uniform draws and two logarithms per proposal, of which 0.68 to 0.89 are accepted.
"""

from __future__ import annotations

import numpy as np

from qbatch.workloads.draws import Draws
from qbatch.workloads.log import Column
from qbatch.workloads.lublin.parameters import BUCKETS, CYCLE_START
from qbatch.workloads.portable import exp, ln

WEIGHT_UNIT = 1 << 30
"""The mean weight of a half hour; weights, and points, are whole numbers in this unit."""

_LN_4 = 2.0 * float.fromhex("0x1.62e42fefa39efp-1")


class Streams:
    """The streams of draws of one kind of jobs: job k takes element k of each, so that a longer log begins with the same jobs.

    Args:
        seed: a whole number >= 0.
        kind: the number of the set of parameters.
    """

    def __init__(self, seed: int, kind: int) -> None:
        self._key = (seed, 5, kind)

    def fractions(self, quantity: int, attempt: int, count: int) -> Column:
        """Return the multiples of 2**-53 in [0, 1) of one quantity (a number >= 1) at one attempt."""
        return Draws((*self._key, quantity, attempt)).fractions(count)


def gamma_proposals(shape: Column, scale: Column, first: Column, second: Column) -> tuple[Column, Column]:
    """Return proposals for gamma variates, and which of them are accepted; the others must be proposed again.

    Args:
        shape, scale: of each variate, shapes > 1; the mean is their product.
        first, second: uniform draws in [0, 1), one each for every variate.
    """
    u, v = _opened(first), _opened(second)
    steepness = np.sqrt(2.0 * shape - 1.0)
    odds = ln(u / (1.0 - u)) / steepness
    x = shape * exp(odds)
    bound = shape - _LN_4 + (shape + steepness) * odds - x
    return x * scale, np.asarray(bound >= ln(u * u * v))


def bucket_weights(shape: float, scale: float) -> Column:
    """Return the weights of the 48 half hours from midnight, in units of ``WEIGHT_UNIT``; their mean is 1.

    The day begins at half hour 11: half hour i of 11..58 (modulo 48, counted from 1) has the probability of [i - 0.5, i + 0.5].
    """
    place = np.arange(CYCLE_START, CYCLE_START + BUCKETS)
    probability = lower_gamma(shape, (place + 0.5) / scale) - lower_gamma(shape, (place - 0.5) / scale)
    weights = np.empty(BUCKETS, np.float64)
    weights[(place - 1) % BUCKETS] = probability
    mean = sum(weights.tolist()) / BUCKETS
    return np.floor(weights / mean * WEIGHT_UNIT + 0.5).astype(np.int64)


def lower_gamma(shape: float, x: Column) -> Column:
    """Return the distribution function of the gamma distribution of scale 1 at x, times Gamma(shape + 1).

    The series x^a e^-x (1 + x/(a+1) + x^2/((a+1)(a+2)) + ...), with positive terms only; x is at most some tens.  The
    factor depends only on the shape and is left out, because weights are divided by their mean.
    """
    x = np.asarray(x, np.float64)
    term = np.ones_like(x)
    total = np.ones_like(x)
    place = 0
    while bool((term > total * 2.0**-60).any()):
        place += 1
        term = term * x / (shape + place)
        total = total + term
    return np.asarray(exp(shape * ln(x) - x) * total)


def _opened(fraction: Column) -> Column:
    """Return draws in [0, 1) as the midpoints of 2**52 intervals, neither 0 nor 1."""
    return np.asarray(np.floor(fraction * 2.0**52) * 2.0**-52 + 2.0**-53)
