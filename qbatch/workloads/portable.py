"""Logarithm and exponential that are the same to the bit on every machine.

Those of the C library differ in the last bit from one system to the next, and NumPy's from one processor to the next.  These
consist of additions, multiplications and divisions, which IEEE 754 rounds correctly, each as a separate operation.
They are accurate to a few units in the last place, which is enough for drawing a workload.
"""

from __future__ import annotations

import numpy as np

from qbatch.workloads.log import Column

_LN2 = float.fromhex("0x1.62e42fefa39efp-1")
_SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
# Arrays, not numbers: NumPy makes an array of a number each time, which takes as long as the hundred values of a class.
_ONE = np.array(1.0)
_LN_FACTORS = [np.array(1.0 / (2 * term + 1)) for term in range(12, -1, -1)]
_EXP_FACTORS = [np.array(float(term)) for term in range(15, 0, -1)]


def ln(x: Column) -> Column:
    """Return the natural logarithms of positive numbers: 2 artanh((m - 1) / (m + 1)) of the mantissa, as a series."""
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
    """Return e to the power of numbers between -700 and 700: a Taylor series within half a doubling."""
    x = np.asarray(x, np.float64)
    doublings = np.rint(x / _LN2)
    rest = x - doublings * _LN2
    series = np.ones_like(rest)
    for factor in _EXP_FACTORS:
        np.multiply(series, rest, series)
        np.divide(series, factor, series)
        np.add(series, _ONE, series)
    return np.asarray(np.ldexp(series, doublings.astype(np.int32)))
