"""Coarse-grain time sharing: short, medium and long jobs have the machine in turns (SCOJO-PECT).

Source: SCOJO-PECT, as section 4 of the thesis on group optimisation describes it; exact readings in
docs/spec/papers.md 4.10, rules 1 to 7.  At the end of a slice every running job is suspended to
disk, then no job runs during a switch, and the next class with a job has its slice.  A job resumes
where it was: its nodes are its own from its first start to its end.

A node is a processor, numbered host by host, so that hosts of one processor and hosts that jobs may
span give the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qbatch.model.actions import Action, Resume, Start, Suspend, WakeAt, parts_of, procs_of
from qbatch.model.machine import Machine
from qbatch.model.phase import Phase
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels import slices
from qbatch.planning.kernels.entries import entries_to
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.view import View
from qbatch.policies.slice_book import NO_CLASS, SliceBook
from qbatch.policies.slice_rules import LONG, MEDIUM, NAMES, SHORT, SliceRules

_kernels = entries_to(slices)
_profiles = entries_to(profiles)


class Places:
    """What is free on the hosts during a pass, if hosts matter: jobs that may run by the count of
    processors are placed here.

    A job owns its processors and its memory on its hosts from its first start to its end, among the
    jobs of its class. So all suspended jobs of a class can resume together when its slice begins.
    """

    def __init__(self, view: View, book: SliceBook) -> None:
        self.view, self.book = view, book
        self.memory = list(view.free_memory)
        self.suspended_memory: list[list[int]] = [[0] * len(self.memory) for _ in range(3)]
        if view.machine.counts_memory:
            for slot in range(book.count):
                if book.jobs["state"][slot] in (slices.SUSPENDED, slices.STRAY):
                    self._own(slot, 1)

    def give_back(self, rows: list[int]) -> None:
        """Add the memory of running jobs that were suspended in this pass, before any job was
        placed."""
        for row in rows:
            for host, _, memory in parts_of(self.view.running[row].allocation):
                self.memory[host] += memory

    def put(self, slot: int) -> Action | None:
        """Start or resume a job if its hosts have the capacity; return the action."""
        return (
            self._resume(slot)
            if self.book.jobs["state"][slot] == slices.SUSPENDED
            else self._start(slot)
        )

    def _own(self, slot: int, sign: int) -> None:
        """Add the memory of a suspended job to what its class owns, or (-1) remove it."""
        book = self.book
        row, owned = (
            int(book.jobs["row"][slot]),
            self.suspended_memory[int(book.jobs["kind"][slot])],
        )
        for host, _, memory in parts_of(book.allocations[row]) if row not in book.holders else ():
            owned[host] += sign * memory

    def _resume(self, slot: int) -> Action | None:
        book = self.book
        row, kind = int(book.jobs["row"][slot]), int(book.jobs["kind"][slot])
        mine = book.owners[kind] == row
        parts = list(parts_of(book.allocations[row]))
        has_memory = row in book.holders or all(
            memory <= self.memory[host] or not self.view.machine.hosts[host].memory
            for host, _, memory in parts
        )
        if not has_memory or not (book.busy[mine] == slices.NO_JOB).all():
            return None
        if self.view.machine.counts_memory:
            self._own(slot, -1)
        self._run(slot, mine)
        return Resume(row)

    def _start(self, slot: int) -> Action | None:
        book, view = self.book, self.view
        row, kind = int(book.jobs["row"][slot]), int(book.jobs["kind"][slot])
        is_idle = (book.busy == slices.NO_JOB) & (book.owners[kind] == slices.NO_JOB)
        free = np.bincount(book.hosts[is_idle], minlength=len(view.machine.hosts)).tolist()
        memory = [
            have - owned
            for have, owned in zip(self.memory, self.suspended_memory[kind], strict=True)
        ]
        job = view.jobs[row]
        allocation = view.window.kind.allocation(view.machine, free, memory, job)
        if not allocation:
            return None
        mine = np.zeros(len(book.busy), np.bool_)
        for host, procs, _ in parts_of(allocation):
            mine[np.flatnonzero(is_idle & (book.hosts == host))[:procs]] = True
        book.owners[kind, mine] = row
        book.allocations[row] = allocation
        book.jobs["procs"][slot] = book.jobs["open_procs"][slot] = procs_of(allocation)
        self._run(slot, mine)
        return Start(row, allocation)

    def _run(self, slot: int, mine: BoolArray) -> None:
        book = self.book
        row = int(book.jobs["row"][slot])
        book.busy[mine] = row
        book.jobs["state"][slot], book.jobs["since"][slot] = slices.RUNNING, self.view.now
        for host, _, memory in parts_of(book.allocations[row]) if row not in book.holders else ():
            self.memory[host] -= memory
        book.holders.discard(row)


class SlicePass:
    """One pass in a slice: the arrays that its steps work on.

    If free processors are all that a job needs, a step of the kernels assigns nodes itself.  If
    hosts matter, it stops at each job that may run by the profile, which counts processors only;
    this class places that job, or not, and the step continues.
    """

    def __init__(self, view: View, book: SliceBook) -> None:
        self.view, self.book = view, book
        self.now, self.kind, self.until = view.now, book.kind, book.until
        self.profile: Int64Array = np.empty((2, 4 * book.count + 32), np.int64)
        self.decisions: Int64Array = np.zeros((2, book.count + 1), np.int64)
        self.placed: list[Action] = []
        self.places = None if book.is_one_pool else Places(view, book)
        self._state = (book.jobs, book.owners, book.busy, self.decisions)

    def draw(self) -> None:
        """Write the profile of the running jobs."""
        book = self.book
        _kernels.draw_profile(
            self.profile, self.now, self.until, self.kind, book.open_procs, book.jobs, book.count
        )

    def resume(self) -> None:
        """Resume the suspended jobs of the class."""
        jobs, *state = self._state
        self._step(
            _kernels.resume_class,
            self.now,
            self.kind,
            jobs,
            self.book.count,
            *state,
            is_booked=True,
        )

    def waiting(self) -> Int64Array:
        """Return the slots of the waiting jobs of the class, in sequence."""
        return self.book.places(slices.WAITING, self.kind)

    def book_in_order(self, order: Int64Array) -> Int64Array:
        """Book jobs (by slot) one after another, start those booked for now; return the planned
        starts."""
        planned = np.empty(len(order), np.int64)
        self._step(
            _kernels.book_in_order,
            self.now,
            order,
            self.profile,
            *self._state,
            planned,
            is_booked=True,
        )
        return planned

    def backfill(self, order: Int64Array, *, is_in_order: bool) -> None:
        """Start each job that fits over its whole estimate; ``is_in_order``: after a reservation
        for the first that does not."""
        self._step(
            _kernels.backfill_easily, self.now, order, is_in_order, self.profile, *self._state
        )

    def start_arrivals(self, *, takes_others: bool) -> None:
        """Start the jobs that arrived in this round and fit."""
        book = self.book
        slots = [slot for row in self.view.arrived if (slot := book.slot_of(row)) >= 0]
        waiting = [slot for slot in slots if book.jobs["state"][slot] == slices.WAITING]
        mine = [slot for slot in waiting if takes_others or book.jobs["kind"][slot] == self.kind]
        self._fill_in(np.array(mine, np.int64))

    def backfill_smartly(self, plan: Int64Array) -> None:
        """Start or resume jobs of other classes on what is left, until the slice ends."""
        book = self.book
        found = np.empty(book.count, np.int64)
        count = _kernels.of_other_classes(self.kind, plan, book.jobs, book.count, found)
        if count:
            self._fill_in(found[:count])

    def _fill_in(self, order: Int64Array) -> None:
        self._step(
            _kernels.fill_in, self.now, self.until, self.kind, order, self.profile, *self._state
        )

    def _step(self, step: Any, *arguments: Any, is_booked: bool = False) -> None:
        """Run a step to its end; ``is_booked``: it has booked the jobs at which it stops, or need
        not."""
        progress = np.zeros(2, np.int64)
        if self.places is None:
            step(*arguments, True, progress)
            return
        while (slot := int(step(*arguments, False, progress))) >= 0:
            action = self.places.put(slot)
            if action is None:
                continue
            self.placed.append(action)
            if not is_booked:
                jobs = self.book.jobs
                end = self.now + _kernels.left_of(jobs, slot, self.now)
                is_own = jobs["kind"][slot] == self.kind
                procs = int(jobs["open_procs"][slot])
                _profiles.add(
                    self.profile, self.now, end if is_own else min(end, self.until), -procs
                )

    def begun(self) -> set[int]:
        """Return the rows that start or resume."""
        if self.places is not None:
            return {action.row for action in self.placed if isinstance(action, Start | Resume)}
        return set(self.decisions[0, 1 : int(self.decisions[0, 0]) + 1].tolist())

    def actions(self) -> list[Action]:
        """Return the decisions, in order."""
        if self.places is not None:
            return self.placed
        count = int(self.decisions[0, 0])
        book = self.book
        found: list[Action] = []
        for row, what in self.decisions[:, 1 : count + 1].T.tolist():
            if what == slices.RESUME:
                found.append(Resume(row))
            elif book.is_one_host:
                found.append(Start(row))
            else:
                found.append(Start(row, book.allocation(row, book.fact(row, "kind"))))
        return found


class SliceScheduler:
    """Slices of three classes in turn, with EASY or conservative backfilling in them, and smart
    backfilling by other classes."""

    knows_resources = False

    def __init__(self, name: str, rules: SliceRules) -> None:
        self.name = name
        self.rules = rules

    def new_memory(self, machine: Machine) -> SliceBook:
        """Return the record of a machine without jobs."""
        return SliceBook(machine)

    def decide(self, view: View) -> Iterable[Action]:
        """Remove ended jobs, add arrivals, update the clock, and make the pass of the slice."""
        book: SliceBook = view.memory
        book.follow(view)
        if view.is_machine_changed:
            self._take_up(view, book)
        for row in view.arrived:
            self._enter(view, book, row)
        if not (
            view.finished
            or view.arrived
            or view.withdrawn
            or view.is_machine_changed
            or view.now >= book.until
        ):
            return ()  # woken for the end of a slice that had ended already
        suspended = self._settle(view.now, book)
        actions: list[Action] = [Suspend(row, keep_memory=False) for row in suspended]
        if book.strays:
            book.claim_nodes()
        if book.kind != NO_CLASS:
            work = SlicePass(view, book)
            if work.places is not None:
                work.places.give_back(suspended)
            # No job starts while a job that was suspended before this policy waits for nodes of its
            # hosts, all open.
            if any(
                view.closed.isdisjoint(host for host, _ in parts) for parts in book.strays.values()
            ):
                work.resume()
                actions += work.actions()
            else:
                actions += self._pass(work)
        if book.kind != NO_CLASS or book.is_switching:
            actions.append(WakeAt(book.until))
        return actions

    def _pass(self, work: SlicePass) -> list[Action]:
        """Make the pass of a slice (rules 4 to 7)."""
        work.resume()
        work.draw()
        self.choose(work)
        if self.rules.is_smart:
            work.backfill_smartly(np.zeros(0, np.int64))
        return work.actions()

    def choose(self, work: SlicePass) -> None:
        """Start waiting jobs of the class (rule 5)."""
        if self.rules.is_easy:
            work.backfill(work.waiting(), is_in_order=True)
        else:
            work.book_in_order(work.waiting())

    def _settle(self, now: int, book: SliceBook) -> list[int]:
        """Update the clock (rule 3); return the rows that are suspended."""
        suspended: list[int] = []
        while True:
            if book.is_switching:
                if now < book.until:
                    return suspended
                book.is_switching = False
                turns = [(book.last + step) % 3 for step in (1, 2, 3)]
            elif book.kind == NO_CLASS:
                turns = [SHORT, MEDIUM, LONG]
            elif now < book.until and book.lives(book.kind):
                return suspended
            elif any(book.lives(kind) for kind in (SHORT, MEDIUM, LONG) if kind != book.kind):
                suspended += book.suspend_all(now)
                book.last, book.kind = book.kind, NO_CLASS
                book.is_switching, book.until = True, now + self.rules.switch
                continue
            else:
                turns = [book.kind]
            book.kind = next((kind for kind in turns if book.lives(kind)), NO_CLASS)
            if book.kind == NO_CLASS:
                return suspended
            book.until = now + self.rules.length(book.kind, now)
            return suspended

    def _enter(self, view: View, book: SliceBook, row: int) -> None:
        job = view.jobs[row]
        book.enter(
            row, job.procs, self.rules.class_of(job.estimate, job.queue), job.estimate, job.submit
        )

    def _take_up(self, view: View, book: SliceBook) -> None:
        """Follow a change of the hosts; add jobs that are unknown (parked before, or begun under
        another policy)."""
        arrived = set(view.arrived)
        for runs, adopt in ((view.running, book.adopt), (view.suspended, book.adopt_suspended)):
            for row, run in sorted(runs.items()):
                if book.slot_of(row) < 0:
                    job = view.jobs[row]
                    adopt(run, job, self.rules.class_of(job.estimate, job.queue))
                    book.sort()
        for row in view.queue.tolist():
            if row not in arrived and book.slot_of(row) < 0:
                self._enter(view, book, row)
                book.sort()
        book.settle_hosts(view)

    def explain(self, view: View, row: int) -> Reason:
        """Return the current slice, and when the class of a waiting job has the machine again."""
        book: SliceBook = view.memory
        kind, procs = book.fact(row, "kind"), book.fact(row, "procs")
        free = view.free_procs
        if book.fact(row, "state") in (slices.SUSPENDED, slices.STRAY):
            begin = self.next_slice(book, view.now, kind)
            text = (
                f"is suspended to disk; {NAMES[kind]} jobs have the machine again at "
                f"{_at(begin)} at the earliest"
            )
            if kind == book.kind:
                text = "is suspended to disk: its own processors are closed"
            return Reason(
                "on-disk", self.name, text, {"next_slice": begin, "slice_end": book.until}
            )
        numbers = {"procs": procs, "free": free, "slice_end": book.until}
        if kind == book.kind:
            if procs > free:
                current = f"the slice of {NAMES[kind]} jobs, which ends at {_at(book.until)}"
                text = f"needs {procs} processors, {free} are free in {current}"
                return Reason("processors", self.name, text, numbers)
            group = book.groups[kind]
            if group is not None and row in group.rows:
                place, of = group.rows.index(row) + 1, len(group.rows)
                text = (
                    f"is number {place} of {of} jobs in the plan of a group, and is to start "
                    "later by it"
                )
                return Reason(
                    "planned", self.name, text, numbers, tuple(group.rows[: place - 1][:10])
                )
            text = (
                f"starting now would delay another {NAMES[kind]} job, or its nodes belong to a "
                "suspended one"
            )
            return Reason("reservation", self.name, text, numbers)
        begin = self.next_slice(book, view.now, kind)
        current = "a switch" if book.is_switching else f"the slice of {NAMES[book.kind]} jobs"
        if begin <= view.now:
            return Reason(COULD_START, self.name, "could start now")
        text = (
            f"{NAMES[kind]} jobs have the machine again at {_at(begin)}; now it is {current}, "
            f"until {_at(book.until)}"
        )
        return Reason("slice", self.name, text, {**numbers, "next_slice": begin})

    def phase(self, view: View) -> Phase:
        """Return the current slice, its end, the suspended jobs, and when the other classes have
        the machine."""
        book: SliceBook = view.memory
        on_disk = book.rows(slices.SUSPENDED)
        procs = sum(book.fact(row, "procs") for row in on_disk)
        if book.kind == NO_CLASS and not book.is_switching:
            return Phase("idle", None, (), len(on_disk), procs)
        name = "switch" if book.is_switching else f"slice of {NAMES[book.kind]} jobs"
        others = [kind for kind in (SHORT, MEDIUM, LONG) if kind != book.kind and book.lives(kind)]
        turns = sorted((self.next_slice(book, view.now, kind), NAMES[kind]) for kind in others)
        return Phase(name, book.until, tuple((name, at) for at, name in turns), len(on_disk), procs)

    def next_slice(self, book: SliceBook, now: int, kind: int) -> int:
        """Return when a class has the machine next, if the classes with jobs keep having some;
        ``now`` if it has it."""
        if book.kind == kind or (book.kind == NO_CLASS and not book.is_switching):
            return now
        at = book.until if book.is_switching else book.until + self.rules.switch
        last = book.last if book.is_switching else book.kind
        for turn in ((last + step) % 3 for step in (1, 2, 3)):
            if turn == kind:
                break
            if book.lives(turn):
                at += self.rules.length(turn, at) + self.rules.switch
        return at


def _at(instant: int) -> str:
    return f"{instant / 1e6:.15g} s"
