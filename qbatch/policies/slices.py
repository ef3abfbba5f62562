"""Coarse-grain time sharing: short, medium and long jobs have the machine in turns (SCOJO-PECT).

Source: SCOJO-PECT, as section 4 of the thesis on group optimisation describes it; exact readings in docs/spec/papers.md 4.10,
rules 1 to 7.  At the end of a slice every running job is suspended to disk, then no job runs during a switch, and the next class
with a job has its slice.  A job resumes where it was: its nodes are its own from its first start to its end.

A node is a processor, numbered host by host, so that hosts of one processor and hosts that jobs may span give the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qbatch.model.actions import Action, Resume, Start, Suspend, WakeAt
from qbatch.model.machine import Machine
from qbatch.model.phase import Phase
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels import slices
from qbatch.planning.kernels.live import live_module
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.view import View
from qbatch.policies.slice_book import NO_CLASS, SliceBook
from qbatch.policies.slice_places import Places
from qbatch.policies.slice_rules import LONG, MEDIUM, NAMES, SHORT, SliceRules

_kernels = live_module(slices)
_profiles = live_module(profiles)

_NO_PLAN: Int64Array = np.zeros(0, np.int64)


class SlicePass:
    """One pass in a slice: the arrays that its steps work on.

    If free processors are all that a job needs, a step of the kernels assigns nodes itself.  If hosts matter, it stops at each
    job that may run by the profile, which counts processors only; this class places that job, or not, and the step continues.
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
        _kernels.draw_profile(self.profile, self.now, self.until, self.kind, book.open_procs, book.jobs, book.count)

    def resume(self) -> None:
        """Resume the suspended jobs of the class."""
        jobs, *state = self._state
        self._step(_kernels.resume_class, self.now, self.kind, jobs, self.book.count, *state, is_booked=True)

    def only_resume(self) -> list[Action]:
        """Resume the suspended jobs of the class, and start no job."""
        self.resume()
        return self.actions()

    def waiting(self) -> Int64Array:
        """Return the slots of the waiting jobs of the class, in sequence."""
        return self.book.places(slices.WAITING, self.kind)

    def book_in_order(self, order: Int64Array) -> Int64Array:
        """Book jobs (by slot) one after another, start those booked for now; return the planned starts."""
        planned = np.empty(len(order), np.int64)
        self._step(_kernels.book_in_order, self.now, order, self.profile, *self._state, planned, is_booked=True)
        return planned

    def backfill(self, order: Int64Array, *, is_in_order: bool) -> None:
        """Start each job that fits over its whole estimate; ``is_in_order``: after a reservation for the first that does not."""
        self._step(_kernels.backfill_easily, self.now, order, is_in_order, self.profile, *self._state)

    def start_arrivals(self, *, takes_others: bool) -> None:
        """Start the jobs that arrived in this round and fit."""
        book = self.book
        slots = [book.slot_of(row) for row in self.view.arrived]
        rows = [
            slot for slot in slots
            if slot >= 0 and book.jobs["state"][slot] == slices.WAITING
            and (takes_others or book.jobs["kind"][slot] == self.kind)
        ]  # fmt: skip
        self._let_in(np.array(rows, np.int64))

    def backfill_smartly(self, plan: Int64Array) -> None:
        """Start or resume jobs of other classes on what is left, until the slice ends."""
        book = self.book
        found = np.empty(book.count, np.int64)
        count = _kernels.guests(self.kind, plan, book.jobs, book.count, found)
        if count:
            self._let_in(found[:count])

    def _let_in(self, order: Int64Array) -> None:
        self._step(_kernels.let_in, self.now, self.until, self.kind, order, self.profile, *self._state)

    def _step(self, step: Any, *arguments: Any, is_booked: bool = False) -> None:
        """Run a step to its end; ``is_booked``: it has booked the jobs at which it stops, or need not."""
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
                _profiles.add(self.profile, self.now, end if is_own else min(end, self.until), -procs)

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
    """Slices of three classes in turn, with EASY or conservative backfilling in them, and smart backfilling by other classes."""

    knows_resources = False

    def __init__(self, name: str, rules: SliceRules) -> None:
        self.name = name
        self.rules = rules

    def new_memory(self, machine: Machine) -> SliceBook:
        """Return the record of a machine without jobs."""
        return SliceBook(machine)

    # -------------------------------------------------------------------------------------------- a pass

    def decide(self, view: View) -> Iterable[Action]:
        """Remove ended jobs, add arrivals, update the clock, and make the pass of the slice."""
        book: SliceBook = view.memory
        book.follow(view)
        if view.is_machine_changed:
            self._take_up(view, book)
        for row in view.arrived:
            self._enter(view, book, row)
        if not (view.finished or view.arrived or view.withdrawn or view.is_machine_changed or view.now >= book.until):
            return ()  # woken for the end of a slice that had ended already
        suspended = self._settle(view.now, book)
        actions: list[Action] = [Suspend(row, keep_memory=False) for row in suspended]
        if book.strays:
            book.claim_nodes()
        if book.kind != NO_CLASS:
            work = SlicePass(view, book)
            if work.places is not None:
                work.places.give_back(suspended)
            actions += work.only_resume() if book.holds_back(view.closed) else self._pass(work)
        if book.kind != NO_CLASS or book.is_switching:
            actions.append(WakeAt(book.until))
        return actions

    def _pass(self, work: SlicePass) -> list[Action]:
        """Make the pass of a slice (rules 4 to 7)."""
        work.resume()
        work.draw()
        self.choose(work)
        if self.rules.is_smart:
            work.backfill_smartly(_NO_PLAN)
        return work.actions()

    def choose(self, work: SlicePass) -> None:
        """Start waiting jobs of the class (rule 5)."""
        if self.rules.is_easy:
            work.backfill(work.waiting(), is_in_order=True)
        else:
            work.book_in_order(work.waiting())

    # -------------------------------------------------------------------------------------------- the clock

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

    # -------------------------------------------------------------------------------------------- classes

    def _enter(self, view: View, book: SliceBook, row: int) -> None:
        job = view.jobs[row]
        book.enter(row, job.procs, self.rules.class_of(job.estimate, job.queue), job.estimate, job.submit)

    def _take_up(self, view: View, book: SliceBook) -> None:
        """Follow a change of the hosts; add jobs that are unknown (parked before, or begun under another policy)."""
        arrived = set(view.arrived)
        for row, run in sorted(view.running.items()):
            if book.slot_of(row) < 0:
                job = view.jobs[row]
                book.adopt(run, job, self.rules.class_of(job.estimate, job.queue))
                book.sort()
        for row, run in sorted(view.suspended.items()):
            if book.slot_of(row) < 0:
                job = view.jobs[row]
                book.adopt_suspended(run, job, self.rules.class_of(job.estimate, job.queue))
                book.sort()
        for row in view.queue.tolist():
            if row not in arrived and book.slot_of(row) < 0:
                self._enter(view, book, row)
                book.sort()
        book.settle_hosts(view)

    # -------------------------------------------------------------------------------------------- explanations

    def explain(self, view: View, row: int) -> Reason:
        """Return the current slice, and when the class of a waiting job has the machine again."""
        book: SliceBook = view.memory
        kind, procs = book.fact(row, "kind"), book.fact(row, "procs")
        free = view.free_procs
        if book.fact(row, "state") in (slices.SUSPENDED, slices.STRAY):
            begin = self.next_slice(book, view.now, kind)
            text = f"is suspended to disk; {NAMES[kind]} jobs have the machine again at {_at(begin)} at the earliest"
            if kind == book.kind:
                text = "is suspended to disk: its own processors are closed"
            return Reason("on-disk", self.name, text, {"next_slice": begin, "slice_end": book.until})
        numbers = {"procs": procs, "free": free, "slice_end": book.until}
        if kind == book.kind:
            if procs > free:
                current = f"the slice of {NAMES[kind]} jobs, which ends at {_at(book.until)}"
                text = f"needs {procs} processors, {free} are free in {current}"
                return Reason("processors", self.name, text, numbers)
            group = book.groups[kind]
            if group is not None and row in group.rows:
                place, of = group.rows.index(row) + 1, len(group.rows)
                text = f"is number {place} of {of} jobs in the plan of a group, and is to start later by it"
                return Reason("planned", self.name, text, numbers, tuple(group.rows[: place - 1][:10]))
            text = f"starting now would delay another {NAMES[kind]} job, or its nodes belong to a suspended one"
            return Reason("reservation", self.name, text, numbers)
        begin = self.next_slice(book, view.now, kind)
        current = "a switch" if book.is_switching else f"the slice of {NAMES[book.kind]} jobs"
        if begin <= view.now:
            return Reason(COULD_START, self.name, "could start now")
        text = f"{NAMES[kind]} jobs have the machine again at {_at(begin)}; now it is {current}, until {_at(book.until)}"
        return Reason("slice", self.name, text, {**numbers, "next_slice": begin})

    def phase(self, view: View) -> Phase:
        """Return the current slice, its end, the suspended jobs, and when the other classes have the machine."""
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
        """Return when a class has the machine next, if the classes with jobs keep having some; ``now`` if it has it."""
        if book.kind == kind:
            return now
        if book.kind == NO_CLASS and not book.is_switching:
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
