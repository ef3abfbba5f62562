"""Columns as the text of CSV rows: whole numbers, times in seconds, ratios with six decimals, and
words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbatch.model.record import MICROSECONDS, BoolArray, Int64Array

_DECIMALS = 6
_NEAR_HALF = 1e-6
"""Distance from half a millionth within which a ratio is rounded by its digits; far above the error
of the product."""


class Cells(NamedTuple):
    """A column of cells: numbers with millionths, rounded down; with ``words``, ``whole`` holds
    indices into them."""

    whole: Int64Array
    millionths: Int64Array | None = None
    is_absent: BoolArray | None = None
    words: Sequence[str] | None = None


def times(microseconds: Int64Array, is_absent: BoolArray | None = None) -> Cells:
    """Return times as cells, in seconds."""
    seconds, rest = np.divmod(microseconds, MICROSECONDS)
    return Cells(seconds, rest, is_absent)


def ratios(values: NDArray[np.float64]) -> Cells:
    """Return ratios as cells, rounded to six decimals as Python's formatting rounds them; NaN is an
    empty cell."""
    is_absent = np.isnan(values)
    values = np.where(is_absent, 0.0, values)
    floor = np.floor(values)
    scaled = (values - floor) * 10**_DECIMALS  # the difference is exact
    rounded = np.rint(scaled)
    close = np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < _NEAR_HALF)
    whole, millionths = floor.astype(np.int64), rounded.astype(np.int64)
    for row in close.tolist():
        digits = f"{values[row]:.{_DECIMALS}f}"
        whole[row], millionths[row] = int(digits[: -_DECIMALS - 1]), int(digits[-_DECIMALS:])
    is_full = millionths == MICROSECONDS
    return Cells(
        whole + is_full, np.where(is_full, 0, millionths), is_absent if is_absent.any() else None
    )


def row_text(columns: Sequence[Cells]) -> memoryview:
    """Return the rows of columns of equal length as CSV, each with its line end."""
    # Pages and plots import this package too, and need no compiler.
    from qbatch.planning.kernels.entries import little
    from qbatch.results.kernels import row_text as kernels

    rows = len(columns[0].whole)
    shape = len(columns), rows
    whole, millionths = np.empty(shape, np.int64), np.zeros(shape, np.int64)
    is_absent, first_word = np.zeros(shape, np.uint8), np.full(len(columns), -1, np.int64)
    words: list[bytes] = []
    for place, cells in enumerate(columns):
        whole[place] = cells.whole
        if cells.millionths is not None:
            millionths[place] = cells.millionths
        if cells.is_absent is not None:
            is_absent[place] = cells.is_absent
        if cells.words is not None:
            first_word[place] = len(words)
            words += [quoted(word).encode() for word in cells.words]
    ends = np.cumsum([0, *map(len, words)]).astype(np.int64)
    longest = max(kernels.LONGEST_NUMBER, 1 + max(map(len, words), default=0))
    out = np.empty(rows * (len(columns) * longest + 1), np.uint8)
    letters: Any = np.frombuffer(b"".join(words) or b"\0", np.uint8)
    put_rows = little(kernels.put_rows, whole.size)
    return out[: put_rows(whole, millionths, is_absent, first_word, letters, ends, out)].data


def quoted(word: str) -> str:
    """Return a word as a CSV cell, in quotes if it would be read as several cells, or as none."""
    if any(mark in word for mark in ',"\r\n'):
        return '"' + word.replace('"', '""') + '"'
    return word
