"""FCFS, EASY and the depth-K hybrid: an order and a number of reservations, forgotten after each pass.

Source: Feitelson and Weil 1998, "Utilization and Predictability in Scheduling the IBM SP2 with Backfilling",
sections 1 and 2.2; Lifka 1995 for EASY.  Backfilling is one number, the reservation depth: 0 is first fit, 1 is
EASY, more is a hybrid, all is conservative backfilling from scratch.

What a pass is on a machine, the space knows (:meth:`qbatch.planning.spaces.space.Space.list_pass`).
"""

from __future__ import annotations

from qbatch.model.actions import Start
from qbatch.model.machine import Machine
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.kernels import order as sorting
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.orders import FCFS as BY_SUBMISSION
from qbatch.planning.kernels.orders import LOOP_ORDERS, SJF_BEHIND
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.list_scheduler import compiled_list
from qbatch.planning.policy import Compiled, ListRules
from qbatch.planning.spaces.space import Reserved
from qbatch.planning.view import View

_ordered, _shortest_behind = live(sorting.ordered), live(sorting.shortest_behind)

ALL = 1_000_000
"""A depth deeper than any queue."""


class Backfill:
    """A list scheduler: looks through the queue in an order, and keeps ``depth`` reservations ahead of whom it starts.

    ``which``: ``fcfs`` (stop at the first that does not fit), ``easy`` (depth 1 by shadow time and extra
    processors) or ``hybrid`` (``depth`` reservations on a profile).  ``order``: of ``LOOP_ORDERS``.
    """

    def __init__(self, name: str, which: str, depth: int, order: str) -> None:
        self.name = name
        self.which = which
        self.depth = depth
        self.order = LOOP_ORDERS[order]
        self.rules = ListRules(order, depth, is_stopping=which == "fcfs", is_by_shadow=which == "easy")

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that decides the same on a machine."""
        # On hosts only the pass itself finds out which job is the first that cannot start.
        return compiled_list(self.rules, machine) if self.order != SJF_BEHIND or machine.is_one_pool else None

    def decide(self, view: View) -> list[Start]:
        """Make one pass."""
        if len(view.queue) == 0 or view.free_procs == 0:
            return []
        return self.pass_in(view, self.in_order(view))

    def pass_in(self, view: View, order: Int64Array) -> list[Start]:
        """Make one pass over the waiting rows in an order."""
        rules = self.rules
        return view.space.list_pass(
            order, rules.depth, is_stopping=rules.is_stopping, is_by_shadow=rules.is_by_shadow
        )[0]

    def in_order(self, view: View) -> Int64Array:
        """Return the waiting rows as they are looked through."""
        queue = view.queue
        if self.order == BY_SUBMISSION or len(queue) == 1:
            return queue
        columns = view.window.long_columns
        found: Int64Array
        if self.order == SJF_BEHIND:
            behind = len(view.space.list_pass(queue, 0, is_stopping=True)[0]) + 1
            found = _shortest_behind(queue, 0, len(queue), behind, columns.submit, columns.estimate)
        else:
            found = _ordered(self.order, view.now, queue, 0, len(queue), columns.submit, columns.estimate)
        return found

    def reserved_after(self, view: View) -> list[Reserved]:
        """Return the reservations of the pass just over; the next pass makes them anew."""
        return view.space.list_pass(self.in_order(view), self.depth, held=[])[1] if self.depth and len(view.queue) else []

    def explain(self, view: View, row: int) -> Reason:
        """Say why a waiting job did not start in the pass just over."""
        job, space, rules = view.jobs[row], view.space, self.rules
        order = self.in_order(view)
        waiting = order.tolist()
        ahead = waiting[: waiting.index(row)]
        if space.spans and job.procs > view.free_procs:
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason("processors", self.name, text, {"procs": job.procs, "free": view.free_procs})
        if any(action.row == row for action in self.decide(view)):
            return Reason(COULD_START, self.name, "could start now", {})
        if rules.is_stopping and ahead:
            head = view.jobs[ahead[0]]
            text = f"job {head.number} is ahead and needs {head.procs} processors, {view.free_procs} are free"
            return Reason("order", self.name, text, {"procs": head.procs, "free": view.free_procs}, (ahead[0],))
        wait = space.hold_up(job, order, ahead, self.depth, is_by_shadow=rules.is_by_shadow)
        return Reason(wait.code, self.name, wait.text, wait.numbers, wait.blocked_by)
