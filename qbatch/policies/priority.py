"""The priority-backfill family: one scan by priority, D reservations, the host with the fewest free
processors.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS
2001, sections 2.2 and 2.3; exact readings in docs/spec/papers.md 3.3 and 3.7.  Priorities are
doubles, one expression over integers, computed once when the pass begins; ties by sequence.  A
priority that rises between two events causes no event.
"""

from __future__ import annotations

from qbatch.model.machine import memory_text
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.policy import ListRules
from qbatch.planning.resources import PoolModel
from qbatch.planning.view import View
from qbatch.policies.backfill import Backfill

WEIGHTS = ("wait", "xfactor", "procs", "memory", "both", "bypass")
"""The weights, in the order of :mod:`qbatch.planning.kernels.order`: of the wait in hours, the
expansion factor, the processors, the memory, the larger of both, and the bypasses."""


class PriorityBackfill(Backfill):
    """A list scheduler on hosts.

    Args:
        depth: the number of jobs that get a reservation in a pass if they cannot start.
        order: ``priority`` (by ``weights`` of ``WEIGHTS``), ``fcfs`` or ``sjf`` (shortest estimate
            first).
        is_sticky: a reservation stays with its job until it runs, even in a trial run; its host and
            time change only to start earlier.
    """

    def __init__(
        self,
        name: str,
        depth: int,
        *,
        order: str = "priority",
        is_sticky: bool = False,
        **weights: float,
    ) -> None:
        if unknown := weights.keys() - set(WEIGHTS):
            raise TypeError(f"no weights: {', '.join(sorted(unknown))}")
        by_index = tuple(weights.get(each, 0.0) for each in WEIGHTS)
        super().__init__(name, ListRules(order, depth, is_sticky=is_sticky, weights=by_index))

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        starts, reserved = self._as_afterwards(view)
        if any(start.row == row for start in starts):
            return Reason(COULD_START, self.name, "could start now", numbers)
        if not view.resources.fits(job):
            memory = f" and {memory_text(job.memory)} of memory" if job.memory else ""
            text = f"needs {job.procs} processors{memory}, no host has that free"
            if isinstance(view.resources, PoolModel):
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
