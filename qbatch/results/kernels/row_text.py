"""Columns of numbers and words as the text of comma-separated rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.types import Int64Array

LONGEST_NUMBER = 28
"""The most bytes of one number, with its sign, its point, its six decimals and the comma after
it."""

COMMA, NEWLINE, MINUS, POINT, ZERO = (np.uint8(ord(sign)) for sign in ",\n-.0")

Uint8Array = NDArray[np.uint8]


@kernel
def _put_digits(value: int, digits: int, out: Uint8Array, at: int) -> int:
    """Write the last ``digits`` digits of a number; return the place after them."""
    for place in range(at + digits - 1, at - 1, -1):
        out[place] = ZERO + np.uint8(value % 10)
        value //= 10
    return at + digits


@kernel
def _put_number(whole: int, millionths: int, out: Uint8Array, at: int) -> int:
    """Write a number with its millionths, without zeros at its end; return the place after it."""
    if whole < 0:
        if millionths > 0:  # both were rounded down
            whole, millionths = whole + 1, 1_000_000 - millionths
        out[at] = MINUS
        at, whole = at + 1, -whole
    digits, rest = 1, whole // 10
    while rest > 0:
        digits, rest = digits + 1, rest // 10
    at = _put_digits(whole, digits, out, at)
    if millionths == 0:
        return at
    out[at] = POINT
    at = _put_digits(millionths, 6, out, at + 1)
    while out[at - 1] == ZERO:
        at -= 1
    return at


@kernel
def put_rows(
    whole: Int64Array,
    millionths: Int64Array,
    is_absent: Uint8Array,
    first_word: Int64Array,
    words: Uint8Array,
    word_ends: Int64Array,
    out: Uint8Array,
) -> int:
    """Write rows as text into ``out``; return the number of bytes.

    ``whole`` and ``millionths``, ``[columns, rows]``: parts of each number, rounded down.
    ``is_absent``, ``[columns, rows]``: 1 for an empty cell.  ``first_word``, ``[columns]``: -1 for
    numbers; else ``whole`` holds indices of the words of the column, which begin there.  ``words``:
    the bytes of all words; ``word_ends``: the end of each, the first entry 0.
    """
    at = 0
    for row in range(whole.shape[1]):
        for column in range(whole.shape[0]):
            if column > 0:
                out[at] = COMMA
                at += 1
            if is_absent[column, row]:
                continue
            if first_word[column] < 0:
                at = _put_number(whole[column, row], millionths[column, row], out, at)
                continue
            word = first_word[column] + whole[column, row]
            for place in range(word_ends[word], word_ends[word + 1]):
                out[at] = words[place]
                at += 1
        out[at] = NEWLINE
        at += 1
    return at
