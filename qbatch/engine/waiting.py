"""Waiting rows in order of sequence: one array with a head and a tail, made for millions of them.

Removals are recorded and carried out at the next read: a pass that starts a thousand jobs moves the
array once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from qbatch.planning.kernels.types import Int64Array, read_only

_FEW = 8
"""Up to this many removals happen one by one: each moves the shorter side of the array."""


class Waiting:
    """An ascending sequence of rows."""

    def __init__(self, rows: Int64Array | None = None) -> None:
        self._leaving: list[int] = []
        self._hold(
            np.empty(64, np.int64) if rows is None else rows, 0 if rows is None else len(rows)
        )

    def _hold(self, array: Int64Array, tail: int) -> None:
        """Hold the first ``tail`` rows of an array."""
        self._array, self._head, self._tail, self._shown = array, 0, tail, read_only(array)
        # NumPy takes three times as long entry by entry and for short moves.
        self._cells = memoryview(cast(Any, array))

    def show(self, head: int, tail: int) -> None:
        """Hold the rows between two indices of the array."""
        self._head, self._tail = head, tail

    def bounds(self) -> tuple[int, int]:
        """Return the index in the array of the first row, and the one after the last."""
        self._let_go()
        return self._head, self._tail

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
        return self._shown[self._head : self._tail]

    def first(self) -> int | None:
        if self._leaving:
            self._let_go()
        return self._cells[self._head] if self._tail > self._head else None

    def append(self, rows: Sequence[int] | Int64Array) -> None:
        more = len(rows)
        if self._tail + more > len(self._array):
            old = self.rows
            bigger = np.empty(max(2 * (len(old) + more), 64), np.int64)
            bigger[: len(old)] = old
            self._hold(bigger, len(old))
        if more == 1:
            self._cells[self._tail] = rows[0]
        else:
            self._array[self._tail : self._tail + more] = rows
        self._tail += more

    def insert(self, rows: Int64Array) -> None:
        """Put rows (ascending) back into the order of sequence."""
        old = self.rows
        merged = np.insert(old, np.searchsorted(old, rows), rows)
        self._hold(merged, len(merged))

    def remove(self, row: int) -> None:
        """Remove a row that is there."""
        self._leaving.append(row)

    def remove_all(self, rows: Sequence[int]) -> None:
        self._leaving += rows

    def replace(self, rows: Int64Array) -> None:
        self._leaving = []
        self._hold(rows.copy(), len(rows))

    def _let_go(self) -> None:
        """Carry out the removals so far."""
        leaving, self._leaving = self._leaving, []
        if len(leaving) <= _FEW:
            for row in leaving:  # the shorter side moves
                head, tail, cells = self._head, self._tail, self._cells
                place = bisect_left(cells, row, head, tail)
                if place - head < tail - place:
                    if place > head:
                        cells[head + 1 : place + 1] = cells[head:place]
                    self._head += 1
                else:
                    cells[place : tail - 1] = cells[place + 1 : tail]
                    self._tail -= 1
            return
        head, tail = self._head, self._tail
        places = head + np.searchsorted(self._array[head:tail], np.array(sorted(leaving), np.int64))
        # Removals at the very front cost nothing.
        front = int(np.count_nonzero(places == head + np.arange(len(places))))
        head += front
        places = places[front:]
        if len(places):
            begin = int(places[0])
            kept = np.delete(self._array[begin:tail], places - begin)
            self._array[begin : begin + len(kept)] = kept
            tail = begin + len(kept)
        self._head, self._tail = head, tail
