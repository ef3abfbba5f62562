"""The priority-backfill family: one scan by priority, D reservations, the host with the fewest free processors.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, sections 2.2 and 2.3;
exact readings in spec/papers.md 3.3 and 3.7.  Priorities are doubles by one expression over integers, computed once when
the pass begins; ties by sequence.  A priority that rises between two events makes no event.

Where jobs are chunks over hosts, a sticky reservation is found anew in each pass, and only its holder's place in front is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec
import numpy as np

from qbatch.model.actions import Action, Start
from qbatch.model.machine import Machine, memory_text
from qbatch.model.reasons import COULD_START, Reason
from qbatch.planning.kernels import order as sorting
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.types import Float64Array, Int64Array
from qbatch.planning.list_scheduler import compiled_list
from qbatch.planning.policy import Compiled, ListRules
from qbatch.planning.spaces.space import Reserved
from qbatch.planning.view import View

_stable_order = live(sorting.stable_order)
_priorities = live(sorting.priorities)


class Weights(msgspec.Struct, frozen=True):
    """The weights of the six terms: wait (hours), expansion factor, processors, memory, the larger of both, bypasses."""

    wait: float = 0.0
    xfactor: float = 0.0
    procs: float = 0.0
    memory: float = 0.0
    both: float = 0.0
    bypass: float = 0.0


@dataclass
class PriorityMemory:
    """What is remembered: how often waiting rows were passed by, how often of these in the last pass (it acted without
    them), and the reservations that stick (row, host, start), the oldest first."""

    bypasses: dict[int, int] = field(default_factory=dict)
    latest: dict[int, int] = field(default_factory=dict)
    held: list[Reserved] = field(default_factory=list)


class PriorityBackfill:
    """A list scheduler on hosts.

    Args:
        order: ``priority`` (by the weights), ``fcfs`` or ``sjf`` (shortest estimate first).
        depth: how many jobs that cannot start get a reservation in a pass.
        is_sticky: a reservation stays with its job until it runs, be it in a quantum; its host and time change only to start
            earlier.
    """

    def __init__(self, name: str, order: str, depth: int, weights: Weights, *, is_sticky: bool = False) -> None:
        self.name = name
        self.order = order
        self.depth = depth
        self.weights = weights
        self.is_sticky = is_sticky
        self.rules = ListRules(order, depth, is_sticky=is_sticky, weights=msgspec.structs.astuple(weights))
        self._weights = np.array(self.rules.weights, np.float64)

    def compiled_on(self, machine: Machine) -> Compiled:
        """Return the kernel that decides the same on a machine."""
        return compiled_list(self.rules, machine)

    def new_memory(self, machine: Machine) -> PriorityMemory:
        """Return the record for a machine on which nothing has happened yet."""
        return PriorityMemory()

    def decide(self, view: View) -> Iterable[Action]:
        """Make one pass."""
        memory: PriorityMemory = view.memory
        for row in (*view.withdrawn, *view.finished):
            memory.bypasses.pop(row, None)
        if memory.held:
            self._forget_holders(view, memory)
        # A reservation that sticks is made even where nothing can start.
        memory.latest = {}
        space = view.space
        if len(view.queue) == 0 or not (self.is_sticky or space.fits_any(view.queue)):
            return []
        order = self.in_order(view)
        looked = self._holders_first(view, order)
        held = memory.held if self.is_sticky else None
        starts, reserved = space.list_pass(looked, self.depth, held=held)
        if self.is_sticky:
            memory.held = reserved
        if self.weights.bypass:
            self._count_bypasses(memory, order, {start.row for start in starts})
        return starts

    def in_order(self, view: View, *, is_afterwards: bool = False) -> Int64Array:
        """Return the waiting rows as they are looked through, or (``is_afterwards``) as the pass just over did."""
        if self.order == "fcfs":
            return view.queue
        if self.order == "sjf":
            return self._sorted(view, view.window.long_columns.estimate[view.queue])
        return self._sorted(view, -self.priorities(view, view.queue, is_afterwards=is_afterwards))

    def _sorted(self, view: View, keys: Int64Array | Float64Array) -> Int64Array:
        places: Int64Array = _stable_order(keys)
        return view.queue[places]

    def priorities(self, view: View, rows: Int64Array, *, is_afterwards: bool = False) -> Float64Array:
        """Return the priority of each row at this instant (spec/papers.md 3.7, item 4)."""
        columns, passed_by = view.window.long_columns, np.zeros(len(rows) if self.weights.bypass else 0)
        if self.weights.bypass:
            known, late = view.memory.bypasses, view.memory.latest if is_afterwards else {}
            passed_by[:] = [known.get(row, 0) - late.get(row, 0) for row in rows.tolist()]
        found: Float64Array = _priorities(
            view.now, rows, columns.submit, columns.procs, columns.memory, columns.estimate, passed_by, self._weights
        )
        return found

    def _forget_holders(self, view: View, memory: PriorityMemory) -> None:
        """Forget the reservations of jobs that do not wait any more, or have run in a quantum since the last pass."""
        waiting = set(view.queue.tolist()).difference(view.requeued)
        memory.held = [each for each in memory.held if each[0] in waiting]

    def _holders_first(self, view: View, order: Int64Array) -> Int64Array:
        """Put the holders of reservations before all others, the oldest first."""
        memory: PriorityMemory = view.memory
        if not memory.held:
            return order
        holders = np.array([row for row, _, _ in memory.held], np.int64)
        return np.concatenate([holders, order[~np.isin(order, holders)]])

    def reserved_after(self, view: View) -> list[Reserved]:
        """Return the reservations of the pass just over."""
        return self._as_afterwards(view)[1]

    def _as_afterwards(self, view: View) -> tuple[list[Start], list[Reserved]]:
        """Make the pass just over once more, on what it has left."""
        order = self._holders_first(view, self.in_order(view, is_afterwards=True))
        return view.space.list_pass(order, self.depth, held=view.memory.held)

    def _count_bypasses(self, memory: PriorityMemory, order: Int64Array, begun: set[int]) -> None:
        """Each start gains one for every job that stands before it in the pass's order and still waits."""
        passed = 0
        for row in reversed(order.tolist()):
            if row in begun:
                passed += 1
                memory.bypasses.pop(row, None)
            elif passed:
                memory.latest[row] = passed
                memory.bypasses[row] = memory.bypasses.get(row, 0) + passed

    def explain(self, view: View, row: int) -> Reason:
        """Say why a waiting job did not start in the pass just over."""
        job = view.jobs[row]
        numbers = {"procs": job.procs, "memory": job.memory, "free": view.free_procs}
        starts, reserved = self._as_afterwards(view)
        if any(start.row == row for start in starts):
            return Reason(COULD_START, self.name, "could start now", numbers)
        if not view.space.fits(job):
            text = f"needs {job.procs} processors{_with_memory(job.memory)}, no host has that free"
            text = view.space.shortage(job) or text
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
