"""The parts of running jobs where hosts matter, as one array that starts and ends only touch where they are."""

from __future__ import annotations

import numpy as np

from qbatch.model.actions import parts_of
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import Run


class Pieces:
    """One column a part: expected end, host, processors, memory (both 0: nobody), when the run began."""

    def __init__(self) -> None:
        self._array = np.zeros((5, 64), np.int64)
        self._used = 0
        self._vacant: list[int] = []
        self._places: dict[int, list[int]] = {}

    @property
    def array(self) -> Int64Array:
        """The parts, read-only, in no order."""
        view = self._array[:, : self._used]
        view.flags.writeable = False
        return view

    def enter(self, run: Run) -> None:
        """Note the parts of a run."""
        self._places[run.row] = places = []
        for part in parts_of(run.allocation):
            if not self._vacant:
                if self._used == self._array.shape[1]:
                    self._array = np.concatenate([self._array, np.zeros_like(self._array)], axis=1)
                self._vacant.append(self._used)
                self._used += 1
            place = self._vacant.pop()
            places.append(place)
            self._array[:, place] = (run.expected_end, *part, run.since)

    def leave(self, row: int) -> None:
        """Forget the parts of a run."""
        for place in self._places.pop(row):
            self._array[2:4, place] = 0
            self._vacant.append(place)
