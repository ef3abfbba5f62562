"""What is known of every job by its row: the job itself while it lives, its state and its columns for ever.

A daemon runs for years and its rows only grow: of a job that is over, one byte of state and five numbers stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, cast

import numpy as np

from qbatch.engine.states import CODES, STATES, State
from qbatch.model.errors import DecisionError
from qbatch.model.job import Job
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.view import Columns

_QUEUED = CODES[State.QUEUED]
_ASKED = ("submit", "procs", "estimate", "memory")
_ASKED_OF = attrgetter(*_ASKED)
_COLUMNS = (*_ASKED, "started")


class States:
    """The state of each row, one byte a row."""

    def __init__(self, codes: bytes = b"") -> None:
        self.codes = bytearray(codes)

    def __getitem__(self, row: int) -> State:
        return STATES[self.codes[row]]

    def __setitem__(self, row: int, state: State) -> None:
        self.codes[row] = CODES[state]

    def __iter__(self) -> Iterator[State]:
        return (STATES[code] for code in self.codes)

    def __len__(self) -> int:
        return len(self.codes)

    def are_known(self) -> bool:
        """Tell whether every byte is the code of a state."""
        return not self.codes or max(self.codes) < len(STATES)


class _Jobs(Sequence[Job]):
    """The jobs by row, for looking only; a job that was over before this round is no longer there."""

    def __init__(self, jobs: list[Job | None]) -> None:
        self._get = jobs.__getitem__
        self._length = jobs.__len__

    def __getitem__(self, row: Any) -> Any:
        job = self._get(row)
        if job is None:
            raise LookupError(f"the job of row {row} was over before this round, and is forgotten")
        return job

    def __len__(self) -> int:
        return self._length()


class Rows:
    """Jobs, states and columns, by row."""

    def __init__(self) -> None:
        self.jobs: list[Job | None] = []
        self.view = _Jobs(self.jobs)
        self.states = States()
        self.arrays: dict[str, Int64Array] = {}
        self._columns: Columns | None = None
        self.hold({name: np.empty(64, np.int64) for name in _COLUMNS})

    def hold(self, arrays: dict[str, Int64Array]) -> None:
        """Keep the columns in these arrays, which have space for more rows."""
        columns = [arrays[name] for name in _COLUMNS]
        self.arrays, self.long_columns, self._columns = arrays, Columns(*map(read_only, columns)), None
        # Entry by entry, NumPy takes three times as long as this.
        cells: list[memoryview[int]] = [memoryview(cast(Any, column)) for column in columns]
        self._submit, self._procs, self._estimate, self._memory, self._started = cells

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def columns(self) -> Columns:
        """The columns of all rows so far, read-only."""
        seen = self._columns
        if seen is None:  # a view is asked for several times a round
            rows = len(self.jobs)
            submit, procs, estimate, memory, started = self.long_columns
            seen = self._columns = Columns(submit[:rows], procs[:rows], estimate[:rows], memory[:rows], started[:rows])
        return seen

    def add(self, jobs: Sequence[Job]) -> None:
        """Give jobs (which carry their rows) their places; they are queued.

        Raises:
            DecisionError: for a job with a number beyond 64 bits; nothing is changed then.
        """
        first, end = len(self.jobs), len(self.jobs) + len(jobs)
        try:
            fresh = np.fromiter(map(_ASKED_OF, jobs), np.dtype([(name, np.int64) for name in _ASKED]), len(jobs))
        except (OverflowError, TypeError, ValueError) as error:
            raise DecisionError(f"a job asks for what is no 64-bit whole number: {error}") from error
        self._grow(end)
        for name in _ASKED:
            self.arrays[name][first:end] = fresh[name]
        self.arrays["started"][first:end] = -1
        self._columns = None
        self.jobs.extend(jobs)
        self.states.codes.extend(bytes([CODES[State.QUEUED]]) * len(jobs))

    def add_one(self, job: Job) -> None:
        """Give one job (which carries its row) its place; it is queued.

        Raises:
            DecisionError: for a job with a number beyond 64 bits; nothing is changed then.
        """
        row = len(self.jobs)
        if row == len(self._submit):
            self._grow(row + 1)
        try:
            self._submit[row] = job.submit
            self._procs[row] = job.procs
            self._estimate[row] = job.estimate
            self._memory[row] = job.memory
        except (OverflowError, TypeError, ValueError) as error:
            raise DecisionError(f"a job asks for what is no 64-bit whole number: {error}") from error
        self._started[row] = -1
        self._columns = None
        self.jobs.append(job)
        self.states.codes.append(_QUEUED)

    def _grow(self, rows: int) -> None:
        space = len(self.arrays["submit"])
        if rows <= space:
            return
        self.hold({name: np.resize(old, max(2 * space, rows)) for name, old in self.arrays.items()})

    def note_start(self, row: int, at: int) -> None:
        """A job starts; only the first start of each is kept."""
        if self._started[row] < 0:
            self._started[row] = at

    def job(self, row: int) -> Job:
        """Return the job of a row that lives."""
        job = self.jobs[row]
        found: Job = self.view[row] if job is None else job  # which says that it is forgotten
        return found

    def forget(self, row: int) -> None:
        """Drop the job of a row that is over."""
        self.jobs[row] = None
