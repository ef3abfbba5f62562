"""Rows that wait, in order of sequence: one array with a head and a tail, made for millions of them.

Leaving is noted and carried out when somebody looks: a pass that starts a thousand jobs moves the array once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbatch.engine.rows import read_only
from qbatch.planning.kernels.types import Int64Array


class Waiting:
    """An ascending sequence of rows."""

    def __init__(self, rows: Int64Array | None = None) -> None:
        self._array = np.empty(64, np.int64) if rows is None else rows
        self._head, self._tail = 0, 0 if rows is None else len(rows)
        self._leaving: list[int] = []
        self._shown = read_only(self._array)

    def __len__(self) -> int:
        return self._tail - self._head - len(self._leaving)

    def __contains__(self, row: int) -> bool:
        rows = self.rows
        place = int(np.searchsorted(rows, row))
        return place < len(rows) and int(rows[place]) == row

    @property
    def rows(self) -> Int64Array:
        """The rows, read-only, until the next change."""
        if self._leaving:
            self._let_go()
        if self._shown.base is not self._array:
            self._shown = read_only(self._array)
        return self._shown[self._head : self._tail]

    def first(self) -> int | None:
        """Return the first row, or None."""
        if self._leaving:
            self._let_go()
        return int(self._array[self._head]) if self._tail > self._head else None

    def append(self, rows: Sequence[int] | Int64Array) -> None:
        """Add rows behind all others."""
        more = len(rows)
        if self._tail + more > len(self._array):
            old = self.rows
            self._array = np.empty(max(2 * (len(old) + more), 64), np.int64)
            self._array[: len(old)] = old
            self._head, self._tail = 0, len(old)
        self._array[self._tail : self._tail + more] = rows
        self._tail += more

    def append_one(self, row: int) -> None:
        """Add a row behind all others."""
        if self._tail == len(self._array):
            self.append((row,))
            return
        self._array[self._tail] = row
        self._tail += 1

    def insert(self, rows: Int64Array) -> None:
        """Put rows (ascending) back to their places in order of sequence."""
        old = self.rows
        merged = np.insert(old, np.searchsorted(old, rows), rows)
        self._array, self._head, self._tail = merged, 0, len(merged)

    def remove(self, row: int) -> None:
        """Take out a row that is there."""
        self._leaving.append(row)

    def replace(self, rows: Int64Array) -> None:
        """Hold these rows (ascending) instead."""
        self._array, self._head, self._tail, self._leaving = rows.copy(), 0, len(rows), []

    def _let_go(self) -> None:
        head, tail = self._head, self._tail
        if len(self._leaving) == 1:
            row = self._leaving.pop()
            self._close_up(head if self._array[head] == row else head + int(self._array[head:tail].searchsorted(row)))
            return
        leaving = np.array(sorted(self._leaving), np.int64)
        self._leaving = []
        places = head + np.searchsorted(self._array[head:tail], leaving)
        # Those that leave from the very front cost nothing.
        front = int(np.count_nonzero(places == head + np.arange(len(places))))
        head += front
        places = places[front:]
        if len(places):
            begin = int(places[0])
            kept = np.delete(self._array[begin:tail], places - begin)
            self._array[begin : begin + len(kept)] = kept
            tail = begin + len(kept)
        self._head, self._tail = head, tail

    def _close_up(self, place: int) -> None:
        """Take out what stands at a place: the shorter side moves."""
        head, tail, array = self._head, self._tail, self._array
        if place - head < tail - place:
            if place > head:
                array[head + 1 : place + 1] = array[head:place].copy()
            self._head += 1
        else:
            array[place : tail - 1] = array[place + 1 : tail].copy()
            self._tail -= 1
