"""Random draws that are the same on every machine (law 5).

They are raw 64-bit words of PCG64, a stream that NumPy promises not to change, made whole numbers by exact operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qbatch.workloads.log import Column


class Draws:
    """One stream of draws.

    Args:
        seed: a whole number >= 0, or several that identify the stream together.
    """

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
