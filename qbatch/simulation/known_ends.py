"""The ends of running jobs, for a driver that knows run times: the tables of the engine contain them, and no policy sees them."""

from __future__ import annotations

import numpy as np

from qbatch.engine.runs import RunTables, longer, places_of
from qbatch.planning.kernels import heap
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import COUNTS, INTERVAL, RUN, LogTable

_pop = entry_to(heap.pop)
(_ENDS,) = places_of(COUNTS, "ends")
_DUE, _UNTIL = places_of(RUN, "due", "until")


class KnownEnds:
    """The ends of running jobs in an engine's tables.  From now on the tables also keep execution intervals.

    Args:
        runs: the run tables of an engine before its first arrival.
    """

    def __init__(self, runs: RunTables) -> None:
        self._runs = runs
        runs.hold_log(LogTable(np.zeros(64, np.int64), np.zeros(64, np.int64), np.empty(0, np.int8)))
        runs.hold_state(endings=np.empty((256, 2), np.int64), intervals=np.empty(256, INTERVAL))

    def tell(self, row: int, run: int, used_memory: int) -> None:
        """Set how long a job that is about to arrive runs on its requested processors, in microseconds, and how many bytes of
        memory it uses (-1: what it asks for)."""
        log = self._runs.log
        if row >= len(log.run):
            log = LogTable(longer(log.run, 2 * row), longer(log.used_memory, 2 * row), log.may_run)
            self._runs.hold_log(log)
        log.run[row], log.used_memory[row] = run, used_memory

    def next(self) -> int | None:
        """Return when the next job ends, or the next trial run fails; None if no end is known."""
        counts, endings, cells = self._runs.counts, self._runs.endings, self._runs.cells
        while counts[_ENDS]:
            at, row = endings[0, heap.INSTANT], endings[0, heap.ROW]
            if cells[row, _DUE] == at or (cells[row, _DUE] == FOREVER and cells[row, _UNTIL] == at):
                return int(at)
            self._leave_heap()
        return None

    def take(self, at: int) -> tuple[list[int], list[int]]:
        """Return the rows that end at an instant, and those with a trial run that fails then, both ascending."""
        ended: list[int] = []
        failed: list[int] = []
        while self.next() == at:
            row = self._runs.endings[0, heap.ROW]
            found = ended if self._runs.cells[row, _DUE] == at else failed
            if row not in found[-1:]:
                found.append(row)
            self._leave_heap()
        return ended, failed

    def _leave_heap(self) -> None:
        _pop(self._runs.state.endings, self._runs.counts[_ENDS])
        self._runs.counts[_ENDS] -= 1
