"""Placement if hosts matter: jobs that may run by the count of processors are placed on hosts, with their memory and chunks.

A job owns its processors and its memory on its hosts from its first start to its end, among the jobs of its class.  So all
suspended jobs of a class can resume together when its slice begins.
"""

from __future__ import annotations

import numpy as np

from qbatch.model.actions import Action, Resume, Start, parts_of, procs_of
from qbatch.planning.kernels import slices
from qbatch.planning.view import View
from qbatch.policies.slice_book import SliceBook


class Places:
    """What is free on the hosts during a pass, from what is free at its beginning and all that was suspended in it."""

    def __init__(self, view: View, book: SliceBook) -> None:
        self.view, self.book = view, book
        self.memory = list(view.free_memory)
        self.suspended_memory: list[list[int]] = [[0] * len(self.memory) for _ in range(3)]
        if view.machine.counts_memory:
            for slot in range(book.count):
                if book.jobs["state"][slot] in (slices.SUSPENDED, slices.STRAY):
                    self._own(slot, 1)

    def give_back(self, rows: list[int]) -> None:
        """Add the memory of running jobs that were suspended in this pass, before any job was placed."""
        for row in rows:
            for host, _, memory in parts_of(self.view.running[row].allocation):
                self.memory[host] += memory

    def put(self, slot: int) -> Action | None:
        """Start or resume a job if its hosts have the capacity; return the action."""
        return self._resume(slot) if self.book.jobs["state"][slot] == slices.SUSPENDED else self._start(slot)

    def _own(self, slot: int, sign: int) -> None:
        """Add the memory of a suspended job to what its class owns, or (-1) remove it."""
        book = self.book
        row = int(book.jobs["row"][slot])
        if row in book.holders:
            return
        owned = self.suspended_memory[int(book.jobs["kind"][slot])]
        for host, _, memory in parts_of(book.allocations[row]):
            owned[host] += sign * memory

    def _resume(self, slot: int) -> Action | None:
        book = self.book
        row, kind = int(book.jobs["row"][slot]), int(book.jobs["kind"][slot])
        mine = book.owners[kind] == row
        parts = list(parts_of(book.allocations[row]))
        has_memory = row in book.holders or all(
            memory <= self.memory[host] or not self._counts(host) for host, _, memory in parts
        )
        if not has_memory or not (book.busy[mine] == slices.NOBODY).all():
            return None
        if self.view.machine.counts_memory:
            self._own(slot, -1)
        self._run(slot, mine)
        return Resume(row)

    def _counts(self, host: int) -> bool:
        return self.view.machine.hosts[host].memory > 0

    def _start(self, slot: int) -> Action | None:
        book, view = self.book, self.view
        row, kind = int(book.jobs["row"][slot]), int(book.jobs["kind"][slot])
        is_idle = (book.busy == slices.NOBODY) & (book.owners[kind] == slices.NOBODY)
        free = np.bincount(book.hosts[is_idle], minlength=len(view.machine.hosts)).tolist()
        memory = [have - owned for have, owned in zip(self.memory, self.suspended_memory[kind], strict=True)]
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

    def _run(self, slot: int, mine: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        book = self.book
        row = int(book.jobs["row"][slot])
        book.busy[mine] = row
        book.jobs["state"][slot], book.jobs["since"][slot] = slices.RUNNING, self.view.now
        for host, _, memory in parts_of(book.allocations[row]) if row not in book.holders else ():
            self.memory[host] -= memory
        book.holders.discard(row)
