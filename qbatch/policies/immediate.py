"""Immediate service and "soon": a short trial run for new jobs, around any policy that starts jobs.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS
2001, sections 2.4, 3 and 4.3; exact readings in docs/spec/papers.md 3.4 and 3.7, items 8 and 9.

The inner policy sees the preempted jobs as running until they resume, and later, by the time that
the trial run can take.  It sees the trial run as running on the idle processors that it took, until
its quantum or its estimate is over.  When a trial run begins or ends, a policy that keeps a plan
rebuilds it (as when a host opens): promises that this breaks are recorded.

Where the paper is silent:

* A job that started or resumed at this very instant is not preempted, whatever ``protect`` is.
* A job that may not start twice (``qsub -r n``) gets no trial run.
* Executed time includes discarded trial runs.
* A job of several hosts, or one that takes whole hosts, neither gets a trial run nor is preempted.
* If a host closes during a trial run, the preempted jobs resume when it opens again.

The rules are kernels (:mod:`qbatch.planning.kernels.quanta`), which the compiled replay calls too.
This module makes their tables from the view, shows the inner policy what they write, and handles
what happens only in a live system.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qbatch.model.actions import Action, is_on_one_host
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason
from qbatch.model.record import Workload
from qbatch.planning.compiled_policy import actions_of
from qbatch.planning.kernels import lists, quanta
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.quanta import QuantaTables
from qbatch.planning.kernels.tables import (
    ACTION,
    COUNTS,
    CPUS,
    FREE,
    INTERRUPTIONS,
    MEMORY,
    RUN,
    JobColumns,
    Needs,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.policy import (
    Compiled,
    Explaining,
    Policy,
    Remembering,
    check_single_hosts,
    compiled_of,
    name_of,
)
from qbatch.planning.projection import Inner, Projection, in_one_go
from qbatch.planning.view import Run, View, jobs_of

_begin_pass, _serve_all = entry_to(quanta.begin_pass), entry_to(quanta.serve_all)
_NO_STATE = StateTables._make([np.empty(0, np.int64)] * len(StateTables._fields))
_NO_SCHEDULE = ScheduleTable._make([np.empty(0, np.int64)] * len(ScheduleTable._fields))


@dataclass
class QuantaMemory:
    """The memory of the policy.

    In order: the inner policy's record; the trial runs and the suspended jobs, as tuples of
    ``quanta.QUANTUM`` and ``quanta.SUSPENDED``; by row, how long a job ran on trial.  Then: how
    many trial runs began in the last pass; the live rows that were on trial or preempted; whether
    the inner policy must rebuild its plan.
    """

    inner: Any
    quanta: list[tuple[int, ...]] = field(default_factory=list)
    suspended: list[tuple[int, int]] = field(default_factory=list)
    had: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    fresh: int = 0
    touched: set[int] = field(default_factory=set)
    is_stale: bool = False

    def keep(self, tables: QuantaTables) -> None:
        """Keep the trial runs and the suspended jobs that are in use."""
        asleep, begun = tables.counts.tolist()
        self.quanta, self.suspended = (
            tables.quanta[:begun].tolist(),
            tables.suspended[:asleep].tolist(),
        )


class QuantumService:
    """A trial run for new jobs, around an inner policy.

    Args:
        inner: decides about everything else.
        quantum: the length of a trial run, seconds.
        memory: the most memory of a trial run, bytes.
        protect: how long a job runs at least before it may be suspended, seconds; None: no job is
            suspended, and a job that got no trial run tries again after every pass (``soon``).
    """

    knows_resources = False

    def __init__(
        self, name: str, inner: Policy, quantum: int, memory: int, protect: int | None = None
    ) -> None:
        self.name = name
        self.inner = inner
        self.protect = protect
        self._rules = quantum * 1_000_000, -1 if protect is None else protect * 1_000_000, memory
        self.follows_classes = bool(getattr(inner, "follows_classes", False))
        self.may_refuse = bool(getattr(inner, "may_refuse", False))

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that makes the same decisions on hosts, around a list scheduler; None
        for others."""
        from qbatch.planning.resources import HostModel, resource_model_of

        inner = compiled_of(self.inner, machine)
        if (
            resource_model_of(machine) is not HostModel
            or inner is None
            or inner.decide is not lists.decide_on_hosts
        ):
            return None
        new_inner = inner.new_memory

        def new_memory(work: Workload, machine: Machine) -> quanta.QuantaAroundList:
            most, memory = (
                min(len(work), machine.procs) + 1,
                QuantaMemory(None, had=np.full(len(work), -1, np.int64)),
            )
            tables = self._tables(memory, len(machine.hosts), most, most)
            return quanta.QuantaAroundList(
                new_inner(work, machine), tables, np.empty((4, 2 * most), np.int64)
            )

        return Compiled(
            quanta.decide_quanta, Needs(gives=INTERRUPTIONS, has_hosts=True), new_memory
        )

    def _tables(
        self, memory: QuantaMemory, hosts: int, trials: int, preempted: int
    ) -> QuantaTables:
        """Return the memory as tables of the kernels, with space for more trial runs and preempted
        jobs."""
        begun, asleep = len(memory.quanta), len(memory.suspended)
        tables = QuantaTables(
            *self._rules,
            had=memory.had,
            quanta=np.empty(begun + trials, quanta.QUANTUM),
            suspended=np.empty(asleep + preempted, quanta.SUSPENDED),
            counts=np.array([asleep, begun], np.int64),
            hosts=np.empty((2, 2, hosts), np.int64),
            shown=np.empty(begun + trials + asleep + preempted, quanta.SHOWN),
            preemptible=np.empty((5, preempted), np.int64),
            chosen=np.empty(preempted, np.int64),
        )
        tables.quanta[:begun], tables.suspended[:asleep] = memory.quanta, memory.suspended
        return tables

    def new_memory(self, machine: Machine) -> QuantaMemory:
        """Return the record for a machine before its first event.

        Raises:
            UsageError: a job may span the hosts of the machine but does not ask for chunks.
        """
        check_single_hosts(machine, self.name, "a trial run is inside one host")
        return QuantaMemory(
            self.inner.new_memory(machine) if isinstance(self.inner, Remembering) else None
        )

    def decide(self, view: View) -> Iterable[Action]:
        """Resume jobs preempted for trial runs that are over, make the inner policy's pass, then
        start trial runs."""
        memory: QuantaMemory = view.memory
        memory.fresh = 0
        self._follow(view, memory)
        seen, actions = self._begin(view, memory)
        memory.had[[*view.finished, *view.withdrawn]] = -1
        memory.is_stale = False
        inner = Inner(seen, name_of(self.inner))
        actions += [inner.action(action) for action in list(self.inner.decide(seen))]
        if view.arrived or self.protect is None:
            actions += self._serve(view, memory, inner)
        return actions

    def explain(self, view: View, row: int) -> Reason:
        """Return why a waiting job did not start in the inner policy's pass just over."""
        memory: QuantaMemory = view.memory
        begun = len(memory.quanta) - memory.fresh
        fresh = memory.quanta[begun:]
        without = [*memory.quanta[:begun], *((*quantum[:-1], 1) for quantum in fresh)]
        seen, _ = self._begin(view, replace(memory, quanta=without), [trial for trial, *_ in fresh])
        if isinstance(self.inner, Explaining):
            return self.inner.explain(seen, row)
        return Reason("policy", name_of(self.inner), f"{name_of(self.inner)} did not start it", {})

    def _follow(self, view: View, memory: QuantaMemory) -> None:
        """Follow what happened to trial runs and preempted jobs."""
        missing = len(view.columns.submit) - len(memory.had)
        if missing > 0:
            memory.had = np.concatenate(
                [memory.had, np.full(missing + len(memory.had), -1, np.int64)]
            )
        # If a job on trial outlives its estimate, its trial run goes on: the ends of the preempted
        # jobs move on with it.
        memory.is_stale |= any(
            end <= view.now or (trial not in view.running and not is_over)
            for trial, _, _, end, is_over in memory.quanta
        )
        left = [entry for entry in memory.suspended if entry[0] in view.suspended]
        memory.is_stale |= len(left) < len(memory.suspended)
        memory.suspended = left
        over = [*view.finished, *view.withdrawn]
        memory.is_stale |= not memory.touched.isdisjoint(over)
        memory.touched.difference_update(over)

    def _begin(
        self, view: View, memory: QuantaMemory, fresh: Sequence[int] = ()
    ) -> tuple[View, list[Action]]:
        """Return the inner policy's view, without the processors of the trial runs, and the
        resumptions of preempted jobs.

        Args:
            fresh: trial runs of the pass just over, shown as still waiting.
        """
        # The engine decides when a trial run or preemption ends; only the instant since which a job
        # seems to run differs.
        facts = {
            "memory": memory.inner,
            "is_machine_changed": view.is_machine_changed or memory.is_stale,
        }
        if not memory.quanta:
            return view.changed(running=in_one_go(view, view.running, memory.touched), **facts), []
        trials = [trial for trial, *_ in memory.quanta]
        there = [view.running[trial] for trial in trials if trial in view.running]
        there += [view.suspended[row] for row, _ in memory.suspended]
        jobs, state, done = _tables_of(view, view.free, view.free_memory, there, len(there))
        state.runs["since"][[trial for trial in trials if trial not in view.running]] = -1
        for row in fresh:
            state.hosts[FREE, CPUS, done.host[row]] += state.runs[row].procs
            state.hosts[FREE, MEMORY, done.host[row]] += state.runs[row].held
        tables = self._tables(memory, len(view.machine.hosts), 0, 0)
        count, shown = _begin_pass(view.now, jobs, state, done, tables)
        memory.keep(tables)
        seen = Projection(view, memory.touched)
        seen.free, seen.free_memory = tables.hosts[FREE].tolist()
        for row in fresh:
            seen.hide_running(row)
        for row, end, procs in tables.shown[:shown].tolist():
            seen.show_until(row, end, procs)
        seen.show_waiting(fresh)
        return seen.view(**facts), actions_of(state.actions[:count], view)

    def _serve(self, view: View, memory: QuantaMemory, inner: Inner) -> list[Action]:
        """Give trial runs to jobs that the inner policy has left waiting."""
        rows: Iterable[int] = view.arrived
        if self.protect is None:
            # Without preemption, a job that asks for more than any host has free need not be tried.
            queue = view.queue[view.columns.procs[view.queue] <= max(inner.free_now.free)]
            rows = queue[memory.had[queue] < 0].tolist()
        rows = [row for row in rows if row not in inner.gone]
        if not rows:
            return []
        resources, asking = view.resources, view.window.jobs_of(rows)
        waiting = np.array(
            [job.row for job in asking if job.is_rerunnable and not resources.is_apart(job)],
            np.int64,
        )
        if not len(waiting):
            return []
        running: list[Run] = []
        if self.protect is not None:
            # A trial run may preempt jobs that have processors of one host and are no trial runs.
            trials = {trial for trial, *_ in memory.quanta}
            there = sorted(view.running.keys() - trials)
            runs = zip(
                map(view.running.__getitem__, there), view.window.jobs_of(there), strict=True
            )
            running = [
                run for run, job in runs if is_on_one_host(run.allocation) and not job.is_exclusive
            ]
        free, free_memory = inner.free_now.free, inner.free_now.free_memory
        jobs, state, done = _tables_of(
            view, free, free_memory, running, len(running) + len(waiting)
        )
        tables = self._tables(memory, len(free), len(waiting), len(running))
        tables.hosts[:] = state.hosts
        count = _serve_all(view.now, waiting, 0, len(waiting), 0, jobs, state, done, tables)
        if count:
            memory.fresh = int(tables.counts[quanta.QUANTA]) - len(memory.quanta)
            memory.keep(tables)
            memory.touched.update(state.actions["row"][:count].tolist())
            memory.is_stale = True
        return actions_of(state.actions[:count], view)


def _tables_of(
    view: View, free: Sequence[int], free_memory: Sequence[int], runs: Sequence[Run], actions: int
) -> tuple[JobColumns, StateTables, ScheduleTable]:
    """Return the tables that the kernels read: with this much free on the hosts; of the running or
    suspended jobs only ``runs``, each on one host; and with space for this many actions."""
    hosts = view.machine.hosts
    cpus = [0 if place in view.closed else host.cpus for place, host in enumerate(hosts)]
    memory = [host.memory for host in hosts]
    rows, running = np.array([run.row for run in runs], np.int64), view.running
    parts = [run.allocation[0] for run in runs]
    facts = [
        (
            run.since if run.row in running else -1,
            run.done,
            -1,
            run.expected_end,
            -1,
            0,
            part.procs,
            part.memory,
            1,
            0,
        )
        for run, part in zip(runs, parts, strict=True)
    ]
    # The values of other rows are not read.
    table, host = (
        np.empty(len(view.columns.submit), RUN),
        np.empty(len(view.columns.submit), np.int64),
    )
    table[rows], host[rows] = np.array(facts, RUN), [part.host for part in parts]
    counts = np.zeros(1, COUNTS)
    counts["running"] = len(runs)
    state = _NO_STATE._replace(
        counts=counts,
        hosts=np.array([[free, free_memory], [cpus, memory]], np.int64),
        runs=table,
        running=rows,
        actions=np.empty(actions, ACTION),
    )
    return jobs_of(view), state, _NO_SCHEDULE._replace(host=host)
