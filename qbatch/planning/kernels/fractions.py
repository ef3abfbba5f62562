"""Fractions drawn by purpose, not from a stream: any draw can be repeated in any order, on any
machine.

A key names the purpose of the draw; it is made by folding whole numbers (seed, replication, job,
visit) one after another. The fraction of a key is the output of SplitMix64 (Steele, Lea and Flood
2014) at that place of its sequence: 53 bits, exact. Kernels take and return ``uint64``; uncompiled
they also work on arrays of ``uint64``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qbatch.planning.kernels.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_STEP = 2.0**-53


@kernel
def mixed(word: Any) -> Any:
    """Return a word with its bits mixed (SplitMix64's output function)."""
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@kernel
def folded(key: Any, number: Any) -> Any:
    """Return the key of a whole number within a key: the number-th output of its sequence."""
    return mixed(key + (np.uint64(number) + np.uint64(1)) * _GOLDEN)


@kernel
def bits(key: Any, number: Any) -> Any:
    """Return the number-th draw of a key as a whole number below 2**53."""
    return np.int64(folded(key, number) >> _11)


@kernel
def fraction(key: Any, number: Any) -> Any:
    """Return the number-th draw of a key as a fraction in [0, 1), a multiple of 2**-53."""
    return np.float64(bits(key, number)) * _STEP


@kernel
def below(drawn: int, bound: int) -> int:
    """Return floor(bound x drawn / 2**53) of a draw of 53 bits: one of ``bound`` equally likely
    numbers (bound < 2**31)."""
    high, low = drawn >> 22, drawn & 0x3FFFFF
    return (high * bound + ((low * bound) >> 22)) >> 31
