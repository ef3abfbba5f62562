"""Sums of integers that would not fit in 64 bits: exact, whatever the order of the rows.

Microseconds of a year are 45 bits; times a million, or times the processors of a machine, they
exceed 63.  So each time is cut into a high and a low part, each part is summed in blocks that
cannot overflow, and the blocks are added as Python integers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qbatch.model.record import Int64Array

LOW_BITS = 27
"""Width of the low part: below it, times of up to 285 years and 16 million processors cannot
overflow a block."""

_LOW = (1 << LOW_BITS) - 1
_BLOCK = 1 << 12


def exact_sum(times: Int64Array) -> int:
    """Return the sum of the times, none of them negative, as a Python integer."""
    high = low = 0
    for block in _blocks(times):
        high += int(np.sum(block >> LOW_BITS))
        low += int(np.sum(block & _LOW))
    return (high << LOW_BITS) + low


def exact_area(procs: Int64Array, times: Int64Array) -> int:
    """Return the sum of processors x time, none of them negative, as a Python integer."""
    high = low = 0
    for wide, block in zip(_blocks(procs), _blocks(times), strict=True):
        high += int(np.dot(wide, block >> LOW_BITS))
        low += int(np.dot(wide, block & _LOW))
    return (high << LOW_BITS) + low


def _blocks(values: Int64Array) -> Iterator[Int64Array]:
    return (values[begin : begin + _BLOCK] for begin in range(0, len(values), _BLOCK))
