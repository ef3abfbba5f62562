"""FCFS, EASY and the depth-K hybrid: an order and a number of reservations, forgotten after each pass.

Source: Feitelson and Weil 1998, "Utilization and Predictability in Scheduling the IBM SP2 with Backfilling",
sections 1 and 2.2; Lifka 1995 for EASY.  Backfilling is one number, the reservation depth: 0 is first fit, 1 is
EASY, more is a hybrid, all is conservative backfilling from scratch.

On a machine where the number of free processors alone decides what fits, a pass is one compiled kernel.  On a machine
of several hosts that a job cannot span, or that counts memory, the same scan runs over the hosts
(:mod:`qbatch.planning.kernels.host_pass`); it starts a job on the host with the fewest free processors, then in host
order (spec/papers.md 3.7).  On a chunked machine reservations are made on hosts (:mod:`qbatch.policies.chunked`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from qbatch.model.actions import Action, Start
from qbatch.model.job import Job
from qbatch.model.machine import Machine, memory_text
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.chunks import requested
from qbatch.planning.kernels import order as sorting
from qbatch.planning.kernels import passes, profile
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.orders import FCFS as BY_SUBMISSION
from qbatch.planning.kernels.orders import ORDERS
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.policy import HostLoop, Loop, PassLoop
from qbatch.planning.view import View
from qbatch.policies.chunked import grid_pass, kernel_pass
from qbatch.policies.on_hosts import pass_over_hosts

_ordered = live(sorting.ordered)
_fcfs_pass = live(passes.fcfs_pass)
_easy_pass = live(passes.easy_pass)
_hybrid_pass = live(passes.hybrid_pass)
_new_profile = live(profile.new_profile)

ALL = 1_000_000
"""A depth deeper than any queue."""


class Backfill:
    """A list scheduler: looks through the queue in an order, and keeps ``depth`` reservations ahead of whom it starts.

    ``which``: ``fcfs`` (stop at the first that does not fit), ``easy`` (depth 1 by shadow time and extra
    processors) or ``hybrid`` (``depth`` reservations on a profile).
    """

    def __init__(self, name: str, which: str, depth: int, order: str) -> None:
        self.name = name
        self.which = which
        self.depth = depth
        self.order = order
        self.loop = PassLoop(which, depth, order)

    def loop_on(self, machine: Machine) -> Loop | None:
        """Return the compiled loop that does the same on a machine."""
        if machine.is_one_pool:
            return self.loop
        return None if machine.chunked else HostLoop(self.order, self.depth, is_stopping=self.which == "fcfs")

    def decide(self, view: View) -> Iterable[Action]:
        """Make one pass."""
        if len(view.queue) == 0 or max(view.free) == 0:
            return []
        if view.machine.is_one_pool:
            if len(view.queue) == 1:
                row = int(view.queue[0])
                return [Start(row)] if view.columns.procs[row] <= view.free_procs else []
            if self._nothing_new_fits(view):
                return []
            return [Start(row) for row in self._kernel_pass(view, self._in_order(view))]
        waiting = self._in_order(view)
        if view.machine.chunked:
            if self.which == "hybrid":
                return list(grid_pass(view, waiting, self.depth))
            return kernel_pass(view, waiting, is_easy=self.which == "easy")[0]
        return pass_over_hosts(view, waiting, self.depth, is_stopping=self.which == "fcfs")[0]

    def _nothing_new_fits(self, view: View) -> bool:
        """Tell at a glance that nobody starts: those that could not before cannot now, nor can those that have just come."""
        if not view.only_arrivals or self.which == "hybrid" or self.order != "fcfs":
            return False
        if len(view.queue) == len(view.arrived) or view.is_late:
            return False
        procs, free = view.columns.procs, view.free_procs
        return self.which == "fcfs" or all(procs[row] > free for row in view.arrived)

    def _in_order(self, view: View) -> Int64Array:
        order = ORDERS[self.order]
        if order == BY_SUBMISSION:
            return view.queue
        columns = view.columns
        found: Int64Array = _ordered(order, view.now, view.queue, 0, len(view.queue), columns.submit, columns.estimate)
        return found

    def _kernel_pass(self, view: View, waiting: Int64Array) -> list[int]:
        columns, end, free = view.columns, len(waiting), view.free_procs
        space = min(end, free)
        ends, amounts, running = view.expected_ends(space)
        started = np.empty(space, np.int64)
        common = (columns.procs, columns.estimate)
        if self.which == "fcfs":
            count = _fcfs_pass(waiting, 0, end, columns.procs, free, started)
        elif self.which == "easy":
            is_static = ORDERS[self.order] == BY_SUBMISSION
            new = end - len(view.arrived) if view.only_arrivals and is_static and not view.is_late else 0
            count = _easy_pass(
                view.now, waiting, 0, end, new, *common, free, ends, amounts, running, started
            )
        else:
            scratch = _new_profile(0, view.now, 4 * (running + space + min(self.depth, end)) + 16)
            count = _hybrid_pass(
                view.now,
                waiting,
                0,
                end,
                self.depth,
                *common,
                scratch,
                free,
                ends,
                amounts,
                running,
                started,
            )
        rows: list[int] = started[:count].tolist()
        return rows

    def explain(self, view: View, row: int) -> Reason:
        """Say why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        waiting = self._in_order(view).tolist()
        ahead = waiting[: waiting.index(row)]
        if job.procs > view.free_procs and (view.machine.is_one_pool or view.machine.chunked):
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return self._no("processors", text, {"procs": job.procs, "free": view.free_procs})
        would_start = {action.row for action in self.decide(view) if isinstance(action, Start)}
        if row in would_start:
            return self._no(COULD_START, "could start now", {})
        if self.which == "fcfs" and ahead:
            head = view.jobs[ahead[0]]
            text = f"job {head.number} is ahead and needs {head.procs} processors, {view.free_procs} are free"
            return self._no("order", text, {"procs": head.procs, "free": view.free_procs}, (ahead[0],))
        if view.machine.is_one_pool and ahead:
            return self._held_back(view, job, ahead[0])
        if view.machine.chunked:
            return self._chunks_wait(view, job, ahead)
        memory = f" and {memory_text(job.memory)} of memory" if job.memory else ""
        text = f"no host has {job.procs} processors{memory} free for its {job.estimate / 1e6:.15g} s"
        return self._no("host", text, {"procs": job.procs, "memory": job.memory, "estimate": job.estimate})

    def _held_back(self, view: View, job: Job, head_row: int) -> Reason:
        head = view.jobs[head_row]
        ends, amounts, count = view.expected_ends(0)
        available, shadow, place = view.free_procs, view.now, 0
        while available < head.procs and place < count:
            shadow = int(ends[place])
            while place < count and ends[place] == shadow:
                available += int(amounts[place])
                place += 1
        extra = available - head.procs
        numbers = {"shadow": shadow, "extra": extra, "procs": job.procs, "expected_end": view.now + job.estimate}
        if self.depth == 1:
            text = (
                f"would delay job {head.number}, which is to start by {shadow / 1e6:.15g} s: it would run until "
                f"{(view.now + job.estimate) / 1e6:.15g} s on {job.procs} processors and {extra} are extra then"
            )
        else:
            text = f"would delay one of the first {self.depth} jobs in the queue, which have reservations"
        return self._no("reservation", text, numbers, (head_row,))

    def _chunks_wait(self, view: View, job: Job, ahead: list[int]) -> Reason:
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        if not ahead or not view.room().take(job):
            parts = " + ".join(_part(view, *part) for part in requested(job))
            whole = " on whole hosts" if job.is_exclusive else ""
            text = f"its chunks ({parts}, {job.placing}{whole}) do not fit what the open hosts have free"
            return self._no("hosts", text, {**numbers, "most_free": max(view.free)})
        head = view.jobs[ahead[0]]
        if self.which != "easy":
            text = f"would delay one of the first {self.depth} jobs in the queue, which have reservations"
            return self._no("reservation", text, numbers, (ahead[0],))
        shadow = kernel_pass(view, self._in_order(view), is_easy=True)[1]
        text = (
            f"would delay job {head.number}, which is to start by {shadow / 1e6:.15g} s: it would run until "
            f"{(view.now + job.estimate) / 1e6:.15g} s on hosts that this job needs then"
        )
        numbers |= {"shadow": shadow, "expected_end": view.now + job.estimate}
        return self._no("reservation", text, numbers, (ahead[0],))

    def _no(self, code: str, text: str, numbers: dict[str, int], blocked_by: tuple[int, ...] = ()) -> Reason:
        return Reason(code, self.name, text, numbers, blocked_by)


def _part(view: View, count: int, procs: int, memory: int, host: int) -> str:
    where = f" on {view.machine.hosts[host].name}" if host >= 0 else ""
    return f"{count}x{procs} processors" + (f" and {memory_text(memory)}" if memory else "") + where
