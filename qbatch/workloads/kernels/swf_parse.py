"""The parser of workload rows: bytes in, one row of numbers per line out.

The kernel knows blanks, lines, comments and plain decimal numbers of up to 15 digits.  Anything
else (an exponent, more digits, a word, junk, a wrong number of fields) it only *marks*,
with its place; the reader in ``swf.py`` decides what a mark means.  So there is one place for
messages, and the loop stays small enough to compile in a second.

Exactness: a mantissa of 15 digits and a power of ten up to 10**15 are both exact in binary64, so
their quotient is the correctly rounded value of the text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel

COMMENT = -1
MISCOUNT = -2

_DIGITS_MAX = 15
_MARK_WIDTH = 5
_POWERS = np.array([10.0**exponent for exponent in range(_DIGITS_MAX + 1)])

_TAB, _NEWLINE, _RETURN, _BLANK = 9, 10, 13, 32
_HASH, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _SEMICOLON = 35, 43, 45, 46, 48, 57, 59


class RowBlock(NamedTuple):
    """Space for rows: values (fields x rows), line numbers, and marks (n x kind, row, start, end,
    line).

    The kind of a mark is the column of an unusual token, or COMMENT, or MISCOUNT.
    """

    values: Any  # float64
    lines: Any  # int32
    marks: Any  # int64


def new_row_block(fields: int, rows: int, marks: int) -> RowBlock:
    """Return space for this many rows and marks; there must be more marks than fields."""
    return RowBlock(
        np.zeros((fields, rows)),
        np.zeros(rows, dtype=np.int32),
        np.zeros((marks, _MARK_WIDTH), dtype=np.int64),
    )


@allocating_kernel
def is_blank(character: int) -> bool:
    """Return whether the character separates fields or ends the line."""
    return character == _BLANK or (_TAB <= character <= _RETURN)


@allocating_kernel
def line_end(data: Any, i: int) -> int:
    """Return the index of the newline at or after ``i``."""
    while data[i] != _NEWLINE:
        i += 1
    return i


@allocating_kernel
def read_token(data: Any, start: int) -> tuple[int, float, bool]:
    """Return the end of the token, its value, and whether it is a plain decimal number (if not, the
    value is void)."""
    i = start
    character = int(data[i])
    is_negative = character == _MINUS
    if is_negative or character == _PLUS:
        i += 1
        character = int(data[i])
    mantissa = 0
    digits = 0
    scale = 0
    while _ZERO <= character <= _NINE and digits <= _DIGITS_MAX:
        mantissa = mantissa * 10 + (character - _ZERO)
        digits += 1
        i += 1
        character = int(data[i])
    if character == _POINT:
        i += 1
        character = int(data[i])
        while _ZERO <= character <= _NINE and digits <= _DIGITS_MAX:
            mantissa = mantissa * 10 + (character - _ZERO)
            digits += 1
            scale += 1
            i += 1
            character = int(data[i])
    if digits == 0 or digits > _DIGITS_MAX or not is_blank(character):
        while not is_blank(character):
            i += 1
            character = int(data[i])
        return i, 0.0, False
    value = float(mantissa)
    if scale > 0:
        value = value / _POWERS[scale]
    return i, -value if is_negative else value, True


@allocating_kernel
def mark(marks: Any, marked: int, said: tuple[int, int, int, int, int]) -> int:
    """Add ``(kind, row, start, end, line)`` to the marks and return their number."""
    for place in range(_MARK_WIDTH):
        marks[marked, place] = said[place]
    return marked + 1


@allocating_kernel
def parse_rows(
    data: Any, position: int, line: int, word_column: int, into: RowBlock
) -> tuple[int, int, int, int]:
    """Parse whole lines of ``data`` (uint8, ends with a newline) from ``position`` on, into the
    block's start.

    Tokens of ``word_column`` are always marked (-1: none).  Stops when the data end, or a row or
    its marks might not fit; returns ``(position, lines seen so far, rows, marks)``.
    """
    values, lines, marks = into
    expected, space = values.shape
    rows = 0
    marked = 0
    while position < data.size and rows < space and marked + expected < marks.shape[0]:
        line += 1
        i = position
        row_marks = marked
        fields = 0
        while True:
            while data[i] != _NEWLINE and is_blank(data[i]):
                i += 1
            if data[i] == _NEWLINE:
                break
            if fields == 0 and (data[i] == _SEMICOLON or data[i] == _HASH):
                i = line_end(data, i)
                fields = COMMENT
                break
            start = i
            i, value, is_plain = read_token(data, start)
            if fields < expected:
                values[fields, rows] = value
                if not is_plain or fields == word_column:
                    marked = mark(marks, marked, (fields, rows, start, i, line))
            fields += 1
        if fields == expected:
            lines[rows] = line
            rows += 1
        elif fields != 0:
            kind = COMMENT if fields == COMMENT else MISCOUNT
            marked = mark(marks, row_marks, (kind, rows, position, i, line))
        position = i + 1
    return position, line, rows, marked
