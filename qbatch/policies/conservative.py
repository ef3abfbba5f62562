"""Conservative backfilling: a reservation for every job on arrival, kept, and compressed when a job
ends early.

Source: Feitelson and Weil 1998, sections 2.1 and 2.2 (Figures 2 to 4).  ``compress`` is the
reaction to a job that ends before its estimate:

* ``arrival`` (default): one sweep in order of arrival; each job is put back at its earliest
  feasible instant;
* ``start``: the same in order of planned start;
* ``none``: the plan stays; only later arrivals use the holes;
* ``scratch``: all reservations are dropped and made again in order of arrival, which breaks
  promises (Fig. 4).

Every job is promised its planned start; the promise only moves earlier.  When hosts close or open,
the plan is rebuilt in order of the queue.  That may put a start after its promise; the promise
stays, and the engine records it as broken.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from qbatch.model.actions import Action, Promise, WakeAt
from qbatch.model.machine import Machine
from qbatch.model.reasons import COULD_START, Reason
from qbatch.model.record import Workload
from qbatch.planning.kernels import host_plan, plan
from qbatch.planning.kernels.tables import PARTS, Needs
from qbatch.planning.policy import Compiled, PlanRules
from qbatch.planning.resources import resource_model_of
from qbatch.planning.resources.hosts import kept_out
from qbatch.planning.view import Plan, View


class Conservative:
    """Conservative backfilling with one way of compressing the plan."""

    def __init__(self, name: str, compress: str) -> None:
        self.name = name
        self.compress = compress
        self.rules = PlanRules(compress)

    def compiled_on(self, machine: Machine) -> Compiled:
        """Return the kernel that makes the same decisions."""
        compression = ("none", "arrival", "start", "scratch").index(self.compress)
        if resource_model_of(machine).replayed_as(machine).is_one_pool:

            def new_plan(work: Workload, machine: Machine) -> plan.PlanTables:
                begin = int(work.submit[0]) if len(work) else 0
                return plan.new_plan(len(work), machine.procs, begin)

            needs = Needs(has_queue=False, has_timers=True, reads_ended=True)
            return Compiled(plan.conservative(compression), needs, new_plan, is_planned=True)

        def new_host_plan(work: Workload, machine: Machine) -> host_plan.HostPlan:
            of_server = int(machine.server >= 0)
            most = np.minimum(work.procs + of_server, len(machine.hosts)) if machine.chunked else 1
            parts = np.broadcast_to(most, len(work)).astype(np.int64)
            there = machine.there
            return host_plan.new_plan(parts, len(there), len(there[0]), compression)

        needs = Needs(reads=PARTS, has_hosts=True, has_timers=True, reads_ended=True)
        return Compiled(host_plan.decide, needs, new_host_plan, is_planned=True)

    def new_memory(self, machine: Machine) -> Plan:
        """Return an empty plan."""
        return resource_model_of(machine).new_plan(machine)

    def decide(self, view: View) -> Iterable[Action]:
        """Give back what ended, compress the plan, place arrivals, start what is due."""
        memory: Plan = view.memory
        memory.follow(view)
        is_late = view.is_late
        if view.is_machine_changed:
            memory.rebuild(view)
            memory.was_late = is_late
        elif is_late or memory.was_late:
            memory.start_over(view)
            memory.was_late = is_late
        else:
            ends, started = memory.ends, view.window.long_columns.started
            if view.withdrawn or any(
                ends.get(job.row, started.item(job.row) + job.estimate) > view.now
                for job in view.window.jobs_of(view.finished)
            ):
                memory.compress(self.compress, view)
        memory.arrive(view)
        news, due, upcoming = memory.hand_out(view)
        actions: list[Action] = [Promise(row, start) for row, start in news]
        actions += due
        if upcoming is not None:
            actions.append(WakeAt(upcoming))
        return actions

    def explain(self, view: View, row: int) -> Reason:
        """Return the planned start of a waiting job, and that nothing can start it earlier."""
        job = view.jobs[row]
        start = view.memory.planned_start(row)
        ahead = tuple(view.queue[view.queue < row][:10].tolist())
        if start <= view.now:
            return Reason(COULD_START, self.name, "could start now")
        if job.procs > view.free_procs:
            text = (
                f"needs {job.procs} processors, {view.free_procs} are free; planned for "
                f"{start / 1e6:.15g} s"
            )
            return Reason(
                "processors",
                self.name,
                text,
                {"procs": job.procs, "free": view.free_procs, "planned": start},
            )
        reason = kept_out(view, self.name, job)
        if reason is not None:
            text = f"planned for {start / 1e6:.15g} s: {reason.text}"
            return Reason(reason.code, self.name, text, {**reason.numbers, "planned": start})
        text = (
            f"planned for {start / 1e6:.15g} s: starting now would delay a job that was "
            "promised a start"
        )
        return Reason("reservation", self.name, text, {"planned": start, "procs": job.procs}, ahead)
