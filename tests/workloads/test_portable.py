"""The logarithm and the exponential of our own against those of the C library, and their bits."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbatch.workloads.draws import exp, ln


@given(st.floats(1e-300, 1e300))
def test_the_logarithm_is_right(x: float) -> None:
    assert math.isclose(float(ln(np.array([x]))[0]), math.log(x), rel_tol=1e-14, abs_tol=1e-15)


@given(st.floats(-700, 700))
def test_the_exponential_is_right(x: float) -> None:
    assert math.isclose(float(exp(np.array([x]))[0]), math.exp(x), rel_tol=1e-12)


def test_their_bits_are_these_on_every_machine() -> None:
    x = np.array([0.001, 0.5, 1.0, 1.5, 10.0, 24000.0])
    assert [value.hex() for value in ln(x).tolist()] == LN_BITS
    assert [value.hex() for value in exp(x[:5]).tolist()] == EXP_BITS


LN_BITS = [
    "-0x1.ba18a998fffa0p+2",
    "-0x1.62e42fefa39efp-1",
    "0x0.0p+0",
    "0x1.9f323ecbf984cp-2",
    "0x1.26bb1bbb55515p+1",
    "0x1.42bef2bec8b0ep+3",
]
EXP_BITS = [
    "0x1.0041919b7ee34p+0",
    "0x1.a61298e1e069cp+0",
    "0x1.5bf0a8b14576ap+1",
    "0x1.1ed3fe64fc542p+2",
    "0x1.5829dcf950563p+14",
]
