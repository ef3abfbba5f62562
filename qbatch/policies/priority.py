"""The priority-backfill family: one scan by priority, D reservations, the host with the fewest free processors.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, sections 2.2 and 2.3;
exact readings in docs/spec/papers.md 3.3 and 3.7.  Priorities are doubles, one expression over integers, computed once when
the pass begins; ties by sequence.  A priority that rises between two events causes no event.
"""

from __future__ import annotations

import msgspec

from qbatch.model.machine import memory_text
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.kernels import lists
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.types import Float64Array, Int64Array
from qbatch.planning.policy import ListRules
from qbatch.planning.spaces import PoolSpace
from qbatch.planning.spaces.space import jobs_of
from qbatch.planning.view import View
from qbatch.policies.backfill import Backfill

_row_priorities = live(lists.row_priorities)


class Weights(msgspec.Struct, frozen=True):
    """The weights of the six terms: wait (hours), expansion factor, processors, memory, the larger of both, bypasses."""

    wait: float = 0.0
    xfactor: float = 0.0
    procs: float = 0.0
    memory: float = 0.0
    both: float = 0.0
    bypass: float = 0.0


class PriorityBackfill(Backfill):
    """A list scheduler on hosts.

    Args:
        order: ``priority`` (by the weights), ``fcfs`` or ``sjf`` (shortest estimate first).
        depth: the number of jobs that get a reservation in a pass if they cannot start.
        is_sticky: a reservation stays with its job until it runs, even in a trial run; its host and time change only to start
            earlier.
    """

    def __init__(self, name: str, order: str, depth: int, weights: Weights, *, is_sticky: bool = False) -> None:
        self._follow(name, ListRules(order, depth, is_sticky=is_sticky, weights=msgspec.structs.astuple(weights)))

    def priorities(self, view: View, rows: Int64Array, *, is_afterwards: bool = False) -> Float64Array:
        """Return the priority of each row at this instant, or (``is_afterwards``) at the pass just over."""
        tables = self.copied_tables(view, is_afterwards=is_afterwards)
        found: Float64Array = _row_priorities(view.now, jobs_of(view), rows, tables)
        return found

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        starts, reserved = self._as_afterwards(view)
        if any(start.row == row for start in starts):
            return Reason(COULD_START, self.name, "could start now", numbers)
        if not view.space.fits(job):
            text = f"needs {job.procs} processors{_with_memory(job.memory)}, no host has that free"
            if isinstance(view.space, PoolSpace):
                text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason("processors", self.name, text, numbers)
        own = next((each for each in reserved if each[0] == row), None)
        if own is not None and own[2]:
            text = f"has a reservation at {own[2] / 1e6:.15g} s"
            return Reason("reservation", self.name, text, {**numbers, "at": own[2]})
        heads = [each[0] for each in reserved if each[0] != row][:1]
        text = "would delay a job of higher priority that has a reservation"
        if heads:
            text = f"would delay job {view.jobs[heads[0]].number}, which has a reservation"
        return Reason("reservation", self.name, text, numbers, tuple(heads))


def _with_memory(memory: int) -> str:
    return f" and {memory_text(memory)} of memory" if memory else ""
