"""What a policy sees: the state of the cluster at one instant, and what happened in this round.

A view is read-only: its arrays cannot be written, its values are frozen.  The one thing in it that belongs to
the policy is ``memory``, the record that the policy made with ``new_memory`` and that the engine keeps for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.actions import Allocation
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.placement import Room
from qbatch.planning.shapes import Shapes

OVERDUE = 1_000_000
"""A job that outlives its estimate is taken to end this many microseconds from now, again and again."""


class Run(NamedTuple):
    """One running or suspended job.

    ``since``: when it last started or resumed (or was suspended).  ``expected_end``: by its estimate.
    ``done``: processor-microseconds done before ``since``.  ``holds_memory``: whether its memory is taken.
    """

    row: int
    allocation: Allocation
    since: int
    expected_end: int
    done: int
    holds_memory: bool = True

    @property
    def procs(self) -> int:
        """Processors of the whole allocation."""
        whole = self.allocation
        return whole[0].procs if len(whole) == 1 else sum(chunk.procs for chunk in whole)


_NOBODY = np.empty(0, np.int64)
_NOBODY.flags.writeable = False


class Columns(NamedTuple):
    """What was asked for, as arrays with one entry a row (read-only): ``submit``, ``procs``, ``estimate`` and
    ``memory``; ``started`` is the first start, -1 before it."""

    submit: Int64Array
    procs: Int64Array
    estimate: Int64Array
    memory: Int64Array
    started: Int64Array


class View(NamedTuple):
    """The state at one instant, for one pass.

    ``now``: microseconds.  ``queue``: waiting rows in order of sequence.  ``free`` and ``free_memory``: by host.
    ``running`` and ``suspended``: by row.  ``ends`` and ``amounts``: expected ends of the running jobs, ascending,
    and their processors.  ``finished``, ``withdrawn`` and ``arrived``: rows, in this round; ``only_arrivals``:
    nothing but arrivals happened since the last pass.  ``ended_on``: the hosts of those that finished.  ``requeued``: rows
    whose trial ended without their end; they are in the queue again (or parked).

    A host of ``closed`` shows nothing free, and ``ends`` and ``amounts`` leave it out: what ends there gives nothing
    back until it opens.  Rows that the open hosts could never hold are ``parked``: not in the queue, and named in
    ``withdrawn`` in the round in which they left it.  ``is_machine_changed``: hosts were closed or opened in this
    round; parked rows may have come back to their places in the queue, so that a plan is best made anew from it.

    Where hosts matter (not on a machine of one pool): ``pieces[5, n]`` are the parts of running jobs (expected end, host,
    processors, memory, when the run began; 0 of both: no part), in no order.  Only on a chunked machine: ``shapes``
    are what the waiting jobs ask for, as arrays.
    """

    now: int
    machine: Machine
    columns: Columns
    jobs: Sequence[Job]
    queue: Int64Array
    free: tuple[int, ...]
    free_memory: tuple[int, ...]
    running: Mapping[int, Run]
    suspended: Mapping[int, Run]
    ends: Int64Array
    amounts: Int64Array
    finished: tuple[int, ...]
    withdrawn: tuple[int, ...]
    arrived: tuple[int, ...]
    only_arrivals: bool
    memory: Any
    is_machine_changed: bool = False
    closed: frozenset[int] = frozenset()
    parked: Int64Array = _NOBODY
    shapes: Shapes | None = None
    pieces: Int64Array | None = None
    requeued: tuple[int, ...] = ()
    ended_on: frozenset[int] = frozenset()

    @property
    def waiting(self) -> Iterator[Job]:
        """The waiting jobs in order of sequence."""
        return (self.jobs[row] for row in self.queue.tolist())

    @property
    def free_procs(self) -> int:
        """Free processors of all hosts."""
        return sum(self.free)

    @property
    def open_procs(self) -> int:
        """Processors of all open hosts, free or not."""
        return sum(host.cpus for place, host in enumerate(self.machine.hosts) if place not in self.closed)

    def room(self) -> Room:
        """Return what is free now, for a pass to take from: ``if room.take(job): yield Start(job.row)``."""
        return Room(self.machine, self.free, self.free_memory)

    @property
    def is_late(self) -> bool:
        """Whether a running job has reached its estimate and is still there after the completions of this instant.

        One that started at this very instant, with nothing to do by its estimate, is not late yet.
        """
        return bool(len(self.ends) and self.ends[0] <= self.now) and any(
            run.expected_end <= self.now and run.since < self.now and self.open_procs_of(run)
            for run in self.running.values()
        )

    def open_procs_of(self, run: Run) -> int:
        """Return how many processors of a run are on open hosts."""
        return sum(chunk.procs for chunk in run.allocation if chunk.host not in self.closed)

    def expected_ends(self, space: int) -> tuple[Int64Array, Int64Array, int]:
        """Return copies of ``ends`` and ``amounts`` with ``space`` entries to spare, and how many are in use.

        A job that has outlived its estimate ends ``OVERDUE`` from now.
        """
        count = len(self.ends)
        ends = np.empty(count + space, np.int64)
        amounts = np.empty(count + space, np.int64)
        ends[:count] = self.ends
        amounts[:count] = self.amounts
        late = int(np.searchsorted(self.ends, self.now, side="right"))
        if late:
            runs = [run for run in self.running.values() if run.expected_end <= self.now and self.open_procs_of(run)]
            ends[:late] = [self.expected_end(run) for run in runs]
            amounts[:late] = [self.open_procs_of(run) for run in runs]
            order = np.argsort(ends[:count], kind="stable")
            ends[:count] = ends[:count][order]
            amounts[:count] = amounts[:count][order]
        return ends, amounts, count

    def expected_end(self, run: Run) -> int:
        """Return when a running job ends by its estimate; an overdue one ends ``OVERDUE`` from now."""
        is_overdue = run.expected_end <= self.now and run.since < self.now
        return self.now + OVERDUE if is_overdue else run.expected_end
