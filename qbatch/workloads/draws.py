"""Random draws, logarithm and exponential that are the same to the bit on every machine (law 5).

Draws are raw 64-bit words of PCG64, a stream that NumPy promises not to change, made whole numbers
by exact operations.

The logarithms and exponentials of the C library differ in the last bit from one system to the next,
and NumPy's from one processor to the next.  Those here consist of additions, multiplications and
divisions, which IEEE 754 rounds correctly, each as a separate operation.  They are accurate to a
few units in the last place, which is enough for drawing a workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qbatch.workloads.log import Column


class Draws:
    """One stream of draws; ``seed``: a whole number >= 0, or several that identify the stream
    together."""

    def __init__(self, seed: int | Sequence[int]) -> None:
        self._bits = np.random.PCG64(seed if isinstance(seed, int) else list(seed))

    def fractions(self, count: int) -> Column:
        """Return ``count`` multiples of 2**-53 in [0, 1)."""
        return (self._bits.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, bound: int | Column, count: int) -> Column:
        """Return ``count`` integers in [0, bound); the bound (or bounds) are below 2**52."""
        drawn = np.floor(self.fractions(count) * bound).astype(np.int64)
        return np.minimum(drawn, np.asarray(bound, dtype=np.int64) - 1)

    def weighted(self, weights: Any, count: int) -> Column:
        """Return ``count`` indices into ``weights``, by weight."""
        upto = np.cumsum(np.asarray(weights, dtype=np.int64))
        return np.searchsorted(upto, self.below(int(upto[-1]), count), side="right")

    def shuffled(self, count: int) -> Column:
        """Return the integers below ``count`` in a random order."""
        return np.argsort(self._bits.random_raw(count), kind="stable")


_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
# Arrays, not numbers: NumPy makes an array of a number each time, which takes as long as the
# hundred values of a class.
_ONE = np.array(1.0)
_LN_FACTORS = [np.array(1.0 / (2 * term + 1)) for term in range(12, -1, -1)]
_EXP_FACTORS = [np.array(float(term)) for term in range(15, 0, -1)]


def ln(x: Column) -> Column:
    """Return the natural logarithms of positive numbers: 2 artanh((m - 1) / (m + 1)) of the
    mantissa, as a series."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    is_low = mantissa < _SQRT_HALF
    mantissa = np.where(is_low, mantissa * 2.0, mantissa)
    exponent = exponent - is_low
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = np.zeros_like(s)
    for factor in _LN_FACTORS:
        np.multiply(series, square, series)
        np.add(series, factor, series)
    series *= s
    return np.asarray(exponent * _LN2 + 2.0 * series)


def exp(x: Column) -> Column:
    """Return e to the power of numbers between -700 and 700: a Taylor series within half a
    doubling."""
    x = np.asarray(x, np.float64)
    doublings = np.rint(x / _LN2)
    rest = x - doublings * _LN2
    series = np.ones_like(rest)
    for factor in _EXP_FACTORS:
        np.multiply(series, rest, series)
        np.divide(series, factor, series)
        np.add(series, _ONE, series)
    return np.asarray(np.ldexp(series, doublings.astype(np.int32)))
