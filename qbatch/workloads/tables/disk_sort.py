"""Rows in order, more than memory holds: sorted runs in a temporary file, merged in blocks.

Rows are structured NumPy arrays.  The file has no name, so nothing of it is left when the program
ends.  It is in the directory of temporary files (``TMPDIR``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from qbatch.model.errors import OutputError
from qbatch.workloads.log import Column

RUN_ROWS = 1 << 18
"""Rows that are sorted in memory at once."""

_LEAST_BLOCK = 64


class DiskSort:
    """Collects rows and gives them back ordered by ``keys``, fields of whole numbers, the first
    counting most."""

    def __init__(self, dtype: np.dtype[Any], keys: tuple[str, ...], run_rows: int = RUN_ROWS):
        self._dtype, self._keys, self._run_rows = dtype, keys, run_rows
        self._waiting: list[Column] = []
        self._count = 0
        self._file: IO[bytes] | None = None
        self._runs: list[tuple[int, int]] = []  # the first row of each in the file, and its end

    def add(self, rows: Column) -> None:
        """Add rows, in any order.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        self._waiting.append(rows)
        self._count += len(rows)
        if self._count >= self._run_rows:
            self._write_run()

    def blocks(self) -> Iterator[Column]:
        """Yield all rows in order, in blocks, once.

        Raises:
            OutputError: the temporary file cannot be written or read.
        """
        if not self._runs:
            if self._count:
                yield self._sorted()
            return
        if self._count:
            self._write_run()
        block = max(_LEAST_BLOCK, self._run_rows // len(self._runs))
        places = [first for first, _ in self._runs]
        heads = [np.zeros(0, self._dtype) for _ in self._runs]
        while True:
            for run, (_, end) in enumerate(self._runs):
                if not len(heads[run]) and places[run] < end:
                    heads[run] = self._read(places[run], min(block, end - places[run]))
                    places[run] += len(heads[run])
            unread = [run for run, (_, end) in enumerate(self._runs) if places[run] < end]
            if not unread:
                rest = np.concatenate(heads)
                if len(rest):
                    yield rest[self._order(rest)]
                break
            # Rows up to the least last row of the heads are known to come next: every row that is
            # still in the file comes after one of these last rows.
            last = np.array([heads[run][-1] for run in unread], self._dtype)
            least = unread[int(self._order(last)[0])]
            bound = heads[least][-1][self._keys[0]]
            reach = [int(np.searchsorted(head[self._keys[0]], bound, "right")) for head in heads]
            near = np.concatenate([head[:to] for head, to in zip(heads, reach, strict=True)])
            owner = np.repeat(np.arange(len(heads)), reach)
            order = self._order(near)
            position = int(np.flatnonzero(order == sum(reach[:least]) + len(heads[least]) - 1)[0])
            taken = order[: position + 1]
            yield near[taken]
            for run, count in enumerate(np.bincount(owner[taken], minlength=len(heads)).tolist()):
                heads[run] = heads[run][count:]
        if self._file is not None:
            self._file.close()

    def _order(self, rows: Column) -> Column:
        return np.lexsort([rows[key] for key in reversed(self._keys)])

    def _sorted(self) -> Column:
        rows = np.concatenate(self._waiting)
        self._waiting, self._count = [], 0
        return rows[self._order(rows)]

    def _write_run(self) -> None:
        rows = self._sorted()
        first = self._runs[-1][1] if self._runs else 0
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="qbatch-")  # noqa: SIM115 - blocks() closes it
            self._file.seek(first * self._dtype.itemsize)
            self._file.write(rows.tobytes())
            self._file.flush()
        except OSError as error:
            raise _unusable(error) from error
        self._runs.append((first, first + len(rows)))

    def _read(self, first: int, count: int) -> Column:
        assert self._file is not None
        try:
            self._file.seek(first * self._dtype.itemsize)
            found = self._file.read(count * self._dtype.itemsize)
        except OSError as error:
            raise _unusable(error) from error
        return np.frombuffer(found, self._dtype)


def _unusable(error: OSError) -> OutputError:
    return OutputError(
        f"{tempfile.gettempdir()}: a temporary file cannot be kept there "
        f"({error.strerror or error}); set TMPDIR to a directory with more space"
    )
