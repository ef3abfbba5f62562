"""The requests of the waiting jobs of a chunked machine, as flat arrays: one entry per *shape*, one
shape per row.

Jobs of a campaign make the same request many times: a pass looks at each shape once, however long
the queue is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from qbatch.model.job import FREE, PACK, PLACINGS, Job
from qbatch.model.machine import Machine
from qbatch.planning.chunks import Request, packed, requested
from qbatch.planning.kernels.chunks import CHUNK_TYPE, SHAPE_HEAD
from qbatch.planning.kernels.types import Int64Array, RecordArray

_SHAPE_OF = attrgetter("chunks", "procs", "memory", "placing", "is_exclusive")
_ROW_OF = attrgetter("row")
_FEWEST = 4096
_INVALID = (0,) * (len(SHAPE_HEAD.names or ()) - 1) + (1,)


class Shapes(NamedTuple):
    """The arrays, read-only: ``of[row]`` is an index into ``heads`` (for this pass only: they are
    renumbered sometimes); ``heads`` and ``types`` are those of
    :mod:`qbatch.planning.kernels.chunks`.  ``has_tight``: hosts matter to at least one shape."""

    of: Int64Array
    heads: RecordArray
    types: RecordArray
    has_tight: bool


class ShapeBook:
    """Adds shapes as jobs arrive, and removes those of jobs that no longer wait."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._of = np.full(64, -1, np.int64)
        self._rows = 0
        self._clear()

    def _clear(self) -> None:
        self._shown: Shapes | None = None
        self._numbers: dict[tuple[object, ...], int] = {}
        self._heads = np.zeros(64, SHAPE_HEAD)
        self._types = np.zeros(64, CHUNK_TYPE)
        self._used = 0
        self._limit = _FEWEST
        self._has_tight = False

    @property
    def arrays(self) -> Shapes:
        """The arrays in their current state."""
        if self._shown is not None:
            return self._shown
        count = len(self._numbers)
        views = self._of[: self._rows], self._heads[:count], self._types[: self._used]
        for view in views:
            view.flags.writeable = False
        self._shown = Shapes(*views, self._has_tight)
        return self._shown

    def add(self, jobs: Sequence[Job]) -> None:
        """Add the shapes of jobs that arrived (each has its row)."""
        if not jobs:
            return
        self._shown = None
        self._rows = max(self._rows, jobs[-1].row + 1)
        if self._rows > len(self._of):
            more = max(2 * len(self._of), self._rows) - len(self._of)
            self._of = np.concatenate([self._of, np.full(more, -1, np.int64)])
        heads: list[tuple[int, ...]] = []
        types: list[tuple[int, int, int, int]] = []
        known = self._numbers
        found = []
        for job, key in zip(jobs, map(_SHAPE_OF, jobs), strict=True):
            number = known.get(key)
            if number is None:
                known[key] = number = len(known)
                asked = requested(job)
                request = packed(asked) if job.placing == PACK else asked
                is_tight = not is_loose(self._machine, job, asked)
                heads.append(_head(job, asked, len(request), self._used + len(types), is_tight))
                self._has_tight |= is_tight
                types.extend(request if heads[-1] is not _INVALID else ())
            found.append(number)
        self._of[np.fromiter(map(_ROW_OF, jobs), np.int64, len(jobs))] = found
        if heads:
            self._heads = _with(self._heads, len(known) - len(heads), np.array(heads, SHAPE_HEAD))
            self._types = _with(self._types, self._used, np.array(types, CHUNK_TYPE))
            self._used += len(types)

    def is_full(self) -> bool:
        """Return whether it is time to remove shapes with :meth:`renew`."""
        return len(self._numbers) > self._limit

    def renew(self, jobs: Iterable[Job]) -> None:
        """Keep only the shapes of these jobs (all that wait)."""
        self._clear()
        self.add(list(jobs))
        self._limit = max(_FEWEST, 2 * len(self._numbers))

    def alike(self, rows: Int64Array) -> Int64Array:
        """Return for each of some rows (ascending) the first of them with the same shape."""
        _, first, places = np.unique(self._of[rows], return_index=True, return_inverse=True)
        return rows[first[places]]

    def restore(self, rows: Int64Array, alike: Int64Array, job_of: Callable[[int], Job]) -> None:
        """Keep only the shapes of these rows, for which :meth:`alike` of another book returned
        ``alike``."""
        firsts = alike[alike == rows]
        self.renew(map(job_of, firsts.tolist()))
        self._rows = int(rows[-1]) + 1 if len(rows) else 0
        self._of = np.full(max(2 * self._rows, 64), -1, np.int64)
        self._of[firsts] = np.arange(len(firsts))
        self._of[rows] = self._of[alike]


def is_loose(machine: Machine, job: Job, request: Request) -> bool:
    """Return whether hosts do not matter to a job: it fits wherever enough processors are free in
    total.

    Its chunks are of one processor, need no counted memory and name no host; they may share hosts
    with others and with each other, or every host has one processor, so that they cannot.
    """
    if job.placing != FREE or job.is_exclusive:
        are_single = not machine.counts_memory and all(host.cpus == 1 for host in machine.hosts)
        if job.placing == PACK or not are_single:
            return False
    return all(
        procs == 1 and host < 0 and not (memory and machine.counts_memory)
        for _, procs, memory, host in request
    )


def _head(job: Job, request: Request, count: int, first: int, is_tight: bool) -> tuple[int, ...]:
    """Return a record of ``SHAPE_HEAD`` for ``count`` types from ``first`` on.

    It is ``_INVALID`` if the request contradicts itself or its job, or chunks that must share one
    host name two (``count`` 0).
    """
    total, memory = (
        sum(n * procs for n, procs, *_ in request),
        sum(n * size for n, _, size, _ in request),
    )
    is_whole = not job.chunks or (total, memory) == (job.procs, job.memory)
    is_sane = (
        all(n > 0 and procs > 0 <= size for n, procs, size, _ in request)
        and max(total, memory) < 2**62
    )
    if not (count and job.placing in PLACINGS and is_whole and is_sane):
        return _INVALID
    largest = total if job.placing == PACK else max(procs for _, procs, _, _ in request)
    return (
        first,
        count,
        total,
        largest,
        PLACINGS.index(job.placing),
        int(job.is_exclusive),
        memory,
        1,
        int(is_tight),
    )


def _with(array: RecordArray, used: int, more: RecordArray) -> RecordArray:
    """Return an array with records written after those in use, a longer array if necessary."""
    if used + len(more) > len(array):
        bigger = np.zeros(max(2 * len(array), used + len(more)), array.dtype)
        bigger[:used] = array[:used]
        array = bigger
    array[used : used + len(more)] = more
    return array
