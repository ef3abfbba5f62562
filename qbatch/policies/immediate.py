"""Immediate service and "soon": a short quantum for new jobs, around any policy that starts jobs.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, sections 2.4, 3 and
4.3; exact readings in spec/papers.md 3.4 and 3.7, items 8 and 9.

* ``immediate``: after the inner policy's pass, each job that arrived in this round and still waits tries once, in
  sequence.  It gets a quantum on the host that has its processors (idle ones, and those of jobs that may be suspended)
  and its memory, at most the quantum's; the host with the fewest processors left over, then the fewest victims, then
  the first.  Victims are taken by the smallest slowdown (now - submit) / executed, ties by sequence, until it is enough.
  They keep their memory and resume on their own processors when the guest has gone.
* ``soon``: after every pass, one scan in sequence over the waiting jobs that had no quantum yet; each that finds idle
  processors and memory gets one.  Nobody is suspended.

A guest that does not end in its quantum goes back to its place in the queue; what it did is thrown away.  Reservations are
no constraint for a guest.  What the victims freed beyond its need belongs to the quantum: nobody can start there.

The inner policy sees the victims as running until they resume, and later, by the time that the guest can take; and the
guest as running on the idle processors that it took, until its quantum or its estimate is over.  When a quantum begins
or ends, a policy that keeps a plan makes it anew (as when a host opens): promises that a quantum breaks are recorded.

Where the paper is silent: a job that started or resumed at this very instant is no victim, whatever ``protect`` says;
a job that may not be begun twice (``qsub -r n``) gets no quantum;
executed time counts a quantum that was thrown away too (all executed time); a job of several hosts, or one that takes
whole hosts, is neither guest nor victim; of a host that closes during a quantum the victims resume when it opens again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from qbatch.model.actions import Action, Chunk, Resume, Start, Suspend, is_on_one_host
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason
from qbatch.model.record import Workload
from qbatch.planning.kernels import lists, quanta
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.tables import FREE, FREE_MEMORY, INTERRUPTIONS, Needs
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.policy import Compiled, Explaining, Policy, Remembering, compiled_of, name_of
from qbatch.planning.projection import Inner, Projection, as_if_in_one_go, in_one_go
from qbatch.planning.view import View
from qbatch.policies.entry import check_single_hosts

_by_slowdown, _guest_host = live(quanta.by_slowdown), live(quanta.guest_host)


@dataclass
class Quantum:
    """One guest and its victims on a host.

    ``idle``: processors that the quantum holds beside those of its victims.  ``begin``, ``end``: of the guest, by its
    estimate and its quantum.  ``is_over``: the guest has gone, the victims wait for their closed host.
    """

    guest: int
    host: int
    procs: int
    memory: int
    idle: int
    victims: list[int]
    begin: int
    end: int
    is_over: bool = False


@dataclass
class ServiceMemory:
    """What is remembered: the inner policy's record; the quanta; the guests that began after the last pass; who had a
    quantum already, and how long it ran in it; who was guest or victim and lives; whether the inner policy must make its
    plan anew."""

    inner: Any
    quanta: list[Quantum] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    had: dict[int, int] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    is_stale: bool = False


class QuantumService:
    """A quantum for new jobs, around an inner policy.

    Args:
        inner: decides about everything else.
        quantum: how long a guest may run, microseconds.
        memory: the most memory that a guest gets, bytes.
        protect: how long a job runs at least before it may be suspended, microseconds; None: nobody is suspended, and
            a job that found no room tries again after every pass (``soon``).
    """

    def __init__(self, name: str, inner: Policy, quantum: int, memory: int, protect: int | None) -> None:
        self.name = name
        self.inner = inner
        self.quantum = quantum
        self.memory = memory
        self.protect = protect
        self.follows_classes = bool(getattr(inner, "follows_classes", False))
        self.may_refuse = bool(getattr(inner, "may_refuse", False))

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that decides the same on a machine of hosts, around a list scheduler; None for others."""
        from qbatch.planning.spaces import HostSpace, space_of

        inner = compiled_of(self.inner, machine)
        if space_of(machine) is not HostSpace or inner is None or inner.decide is not lists.decide_on_hosts:
            return None
        return Compiled(quanta.decide_quanta, Needs(gives=INTERRUPTIONS, has_hosts=True), partial(self._tables, inner))

    def _tables(self, inner: Compiled, work: Workload, machine: Machine) -> quanta.QuantaTables:
        """Return the memory for the jobs of a workload."""
        rows, most, hosts = len(work), min(len(work), machine.procs) + 1, len(machine.hosts)
        return quanta.QuantaTables(
            inner=inner.new_memory(work, machine),
            quantum=self.quantum,
            protect=-1 if self.protect is None else self.protect,
            memory=self.memory,
            had=np.full(rows, -1, np.int64),
            guest_of=np.full(rows, -1, np.int64),
            suspended=np.empty(most, np.int64),
            quanta=np.empty((most, quanta.QUANTUM_COLUMNS), np.int64),
            counts=np.zeros(2, np.int64),
            hosts=np.empty((4, hosts), np.int64),
            parts=np.empty((4, 2 * most), np.int64),
            victims=np.empty((quanta.VICTIM_ROWS, most), np.int64),
            rows=np.empty(most, np.int64),
            chosen=np.empty(most, np.int64),
        )

    def new_memory(self, machine: Machine) -> ServiceMemory:
        """Return the record for a machine on which nothing has happened yet.

        Raises:
            UsageError: if a job may span the hosts of the machine without saying how (no chunks).
        """
        check_single_hosts(machine, self.name, "a quantum lives inside one host")
        return ServiceMemory(self.inner.new_memory(machine) if isinstance(self.inner, Remembering) else None)

    def decide(self, view: View) -> Iterable[Action]:
        """Let victims of guests that have gone resume, make the inner policy's pass, then serve guests."""
        memory: ServiceMemory = view.memory
        memory.fresh = []
        actions: list[Action] = list(self._resumes(view, memory))
        seen = self._inner_view(view, memory, {action.row for action in actions if isinstance(action, Resume)})
        memory.is_stale = False
        inner = Inner(seen, name_of(self.inner))
        actions += [inner.action(action) for action in list(self.inner.decide(seen))]
        if view.arrived or self.protect is None:
            books = _QuantaBooks(view, inner)
            for row in self._candidates(view, memory, books):
                actions += self._serve(view, memory, books, row)
        return actions

    def explain(self, view: View, row: int) -> Reason:
        """Say why a waiting job did not start in the inner policy's pass just over."""
        memory: ServiceMemory = view.memory
        seen = self._inner_view(view, memory, set(), memory.fresh)
        if isinstance(self.inner, Explaining):
            return self.inner.explain(seen, row)
        return Reason("policy", name_of(self.inner), f"{name_of(self.inner)} gave no start to it", {})

    def _resumes(self, view: View, memory: ServiceMemory) -> Iterator[Resume]:
        """Follow what happened to guests and victims; let the victims of a guest that has gone go on."""
        left = []
        for quantum in memory.quanta:
            victims = [row for row in quantum.victims if row in view.suspended]
            if len(victims) < len(quantum.victims):
                kept = sum(view.suspended[row].procs for row in victims)
                quantum.victims, quantum.idle = victims, max(quantum.idle, quantum.procs - kept)
                memory.is_stale = True
            if quantum.guest not in view.running and not quantum.is_over:
                quantum.is_over = memory.is_stale = True
                memory.had[quantum.guest] = view.now - quantum.begin
                quantum.procs = quantum.memory = quantum.idle = 0
            elif quantum.end <= view.now:
                memory.is_stale = True  # it outlives its estimate: its victims' ends move on with it
            if quantum.is_over and (quantum.host not in view.closed or not victims):
                memory.is_stale = True
                yield from (Resume(row) for row in sorted(victims))
            else:
                left.append(quantum)
        memory.quanta = left
        gone = memory.touched.intersection((*view.finished, *view.withdrawn))
        memory.is_stale |= bool(gone)
        memory.touched -= gone
        for row in (*view.finished, *view.withdrawn):
            memory.had.pop(row, None)

    def _inner_view(self, view: View, memory: ServiceMemory, resumed: set[int], waiting: Iterable[int] = ()) -> View:
        """Return the view as the inner policy may see it: before this round's guests, who still wait to it (``waiting``), and
        without the room of quanta."""
        # Who was guest or victim ends when the engine says; only since when it seems to run is another instant.
        is_changed = view.is_machine_changed or memory.is_stale
        facts = {"memory": memory.inner, "is_machine_changed": is_changed}
        if not (memory.quanta or resumed):
            return view.changed(running=in_one_go(view, view.running, memory.touched), **facts)
        shown = Projection(view, memory.touched)
        for row in sorted(resumed):
            # None are shown as free where somebody waits whom an earlier policy has suspended.
            shown.take(shown.show_going_on(row, view.now).allocation)
        for quantum in memory.quanta:
            is_fresh = quantum.guest in memory.fresh
            held = sum(shown.suspended[row].procs for row in quantum.victims)
            if quantum.host not in view.closed:
                kept = held - quantum.procs + (0 if is_fresh else quantum.idle)
                # Nothing is shown as free where jobs that an earlier policy has suspended wait for it.
                shown.free[quantum.host] = max(shown.free[quantum.host] - kept, 0)
                if is_fresh:
                    shown.free_memory[quantum.host] += quantum.memory
            end = view.now if is_fresh else max(quantum.end, view.now)
            for row in quantum.victims:
                shown.show_going_on(row, end)
            if not quantum.is_over:
                guest = shown.hide_running(quantum.guest)
                guest = replace(guest, allocation=(Chunk(quantum.host, quantum.idle, quantum.memory),))
                if not is_fresh:
                    is_new = quantum.begin == view.now
                    shown.show_running(guest if is_new else as_if_in_one_go(view, guest, quantum.end))
        if waiting:
            shown.show_waiting(waiting)
        return shown.view(**facts)

    def _candidates(self, view: View, memory: ServiceMemory, books: _QuantaBooks) -> list[int]:
        rows: Iterable[int] = view.arrived
        if self.protect is None:
            # Nobody makes room: who asks for more than any host has free need not be asked.
            rows = view.queue[view.columns.procs[view.queue] <= books.most()].tolist()
        return [row for row in rows if row not in books.gone and row not in memory.had]

    def _serve(self, view: View, memory: ServiceMemory, books: _QuantaBooks, row: int) -> Iterator[Action]:
        """Give one waiting job a quantum, if there is a host for it."""
        job = view.jobs[row]
        need = min(job.memory, self.memory)
        host, chosen = books.guest_host(job.procs, need, self.protect)
        if host < 0 or not job.is_rerunnable or view.space.is_apart(job):
            return
        need = need if view.machine.hosts[host].memory else 0
        idle, until = books.take(row, host, job.procs, need, chosen), view.now + self.quantum
        end = min(until, view.now + job.estimate)
        memory.quanta.append(Quantum(row, host, job.procs, need, idle, chosen, view.now, end))
        memory.fresh.append(row)
        memory.had[row] = 0
        memory.touched.update((row, *chosen))
        memory.is_stale = True
        yield from (Suspend(victim) for victim in chosen)
        yield Start(row, (Chunk(host, job.procs, need),), until, is_trial=True)


class _QuantaBooks:
    """What is free while a pass goes on, who has left the queue in it, and who may be suspended."""

    def __init__(self, view: View, inner: Inner) -> None:
        self.gone = inner.gone
        self._view = view
        self._room = inner.room
        self._hosts: Int64Array | None = None
        self._rows: list[int] = []
        self._victims: Int64Array
        self._order: Int64Array
        self._chosen: Int64Array

    def most(self) -> int:
        """Return the most processors that are free on a host."""
        return max(self._room.free)

    def guest_host(self, procs: int, need: int, protect: int | None) -> tuple[int, list[int]]:
        """Return the host for a guest, -1 for none, and the rows that are suspended for it (``quanta.guest_host``)."""
        if self._hosts is None:
            self._hosts = self._look(protect)
        host, count = _guest_host(procs, need, self._hosts, self._victims, self._order, self._chosen)
        return int(host), [self._rows[place] for place in self._chosen[:count].tolist()]

    def take(self, row: int, host: int, procs: int, need: int, victims: list[int]) -> int:
        """Note a guest and its victims; return how many idle processors it takes."""
        assert self._hosts is not None
        idle = min(int(self._hosts[FREE, host]), procs)
        self._hosts[FREE, host] -= idle
        self._hosts[FREE_MEMORY, host] -= need
        self._victims[quanta.HOST, self._chosen[: len(victims)]] = -1
        self.gone.update((row, *victims))
        return idle

    def _look(self, protect: int | None) -> Int64Array:
        """Bring who may be suspended into the form that the kernels take, and return what is free in theirs."""
        view, free = self._view, self._room
        cpus = [0 if place in view.closed else host.cpus for place, host in enumerate(view.machine.hosts)]
        sizes = [host.memory for host in view.machine.hosts]
        found = [] if protect is None else sorted(self._suspendable(view.now - max(protect, 1)))
        self._rows = [row for row, *_ in found]
        self._victims = np.array([facts for _, *facts in found], np.int64).reshape(-1, quanta.VICTIM_ROWS).T.copy()
        self._order, self._chosen = _by_slowdown(self._victims), np.empty(len(found), np.int64)
        return np.array([*free.free, *free.free_memory, *cpus, *sizes], np.int64).reshape(4, -1)

    def _suspendable(self, latest: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Return row, host, processors, time in the system and time executed of those who run since ``latest`` or longer."""
        view = self._view
        now, had, running = view.now, view.memory.had, view.running
        trials = {quantum.guest for quantum in view.memory.quanta}
        jobs = view.window.jobs_of(list(running))
        for run, job in zip(running.values(), jobs, strict=True):
            row, allocation, since = run.row, run.allocation, run.since
            if since > latest or row in trials or job.is_exclusive or not is_on_one_host(allocation):
                continue
            procs = allocation[0].procs
            before, rest = divmod(run.done, procs)
            total, executed = now - job.submit, before + now - since + had.get(row, 0)
            if rest:  # of one that another policy has resized: then both count on each processor
                total, executed = total * procs, executed * procs + rest
            yield row, allocation[0].host, procs, total, executed
