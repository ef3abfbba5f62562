"""The view of an inner policy, changed by its wrapper, and the inner policy's actions as the
wrapper's own.

A wrapper (trial runs, time slices) takes processors that the inner policy must not count on, and
its jobs run, wait and pause in ways that the inner policy does not know.  A :class:`Projection`
collects these changes, and :meth:`Projection.view` applies them to every form in which a view shows
them (runs by row, sorted ends, parts on hosts, free processors).  The actions of the inner policy
come back through :class:`Inner`, with allocations by the free resources of that view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from qbatch.model.actions import (
    Action,
    Allocation,
    Break,
    Promise,
    Reject,
    Start,
    WakeAt,
    amounts_of,
    outside,
    procs_of,
)
from qbatch.model.errors import DecisionError
from qbatch.model.machine import Machine
from qbatch.planning.kernels.types import Int64Array, read_only
from qbatch.planning.view import Run, SeenWindow, View

if TYPE_CHECKING:
    from qbatch.planning.view import FreeResources

_SECOND = 1_000_000


class Projection:
    """A view under construction.

    ``free`` and ``free_memory``: by host, for the wrapper to change; a closed host shows nothing
    free in any case. ``suspended``: the suspended jobs still shown, by row.  ``in_one_go``: rows
    that are shown as if they had never paused.
    """

    def __init__(self, view: View, in_one_go: Set[int] = frozenset()) -> None:
        self._seen = view
        self._in_one_go = in_one_go
        self._hidden: dict[int, Run] = {}
        self._shown: dict[int, Run] = {}
        self._queue = view.queue
        self.suspended = dict(view.suspended)
        self.free = list(view.free)
        self.free_memory = list(view.free_memory)

    def take(self, allocation: Allocation) -> None:
        """Show the processors of an allocation as not free (never less than zero)."""
        for chunk in allocation:
            for host in chunk.hosts:
                self.free[host] = max(self.free[host] - chunk.procs, 0)

    def show_waiting(self, rows: Iterable[int]) -> None:
        """Show rows as if they waited."""
        self._queue = np.union1d(self._queue, np.array(list(rows), np.int64))

    def hide_running(self, row: int) -> Run:
        """Show a running job as not running; return its run."""
        if row in self._shown:
            return self._shown.pop(row)
        run = self._seen.running[row]
        self._hidden[row] = run
        return run

    def show_running(self, run: Run) -> None:
        """Show a run."""
        if run.row in self._seen.running:
            self.hide_running(run.row)
        self._shown[run.row] = run

    def show_until(self, row: int, end: int, procs: int) -> None:
        """Show a job of one host, running or suspended, as running on ``procs`` processors until
        ``end`` by its estimate, as if it had never paused, unless it began at this instant."""
        run = self.suspended.pop(row, None)
        is_new = run is None and self._seen.running[row].since == self._seen.now
        run = self._seen.running[row] if run is None else run
        run = msgspec.structs.replace(
            run, allocation=(msgspec.structs.replace(run.allocation[0], procs=procs),)
        )
        self.show_running(run if is_new else as_if_in_one_go(self._seen, run, end))

    def view(self, **facts: Any) -> View:
        """Return the view, with other facts replaced too (:meth:`View.changed`).

        In ``pieces`` a run begins when it last resumed: there it only matters whether that is now.
        """
        closed = self._seen.closed
        free = tuple(0 if host in closed else procs for host, procs in enumerate(self.free))
        free_memory = tuple(
            0 if host in closed else size for host, size in enumerate(self.free_memory)
        )
        suspended = MappingProxyType(self.suspended)
        runs = (dict(self._hidden), dict(self._shown), self._in_one_go)
        window = _ProjectedWindow(
            self._seen, runs, free=free, free_memory=free_memory, suspended=suspended
        )
        return self._seen.seen_through(window, queue=self._queue, **facts)


class _ProjectedWindow(SeenWindow):
    """The state as changed; parts of it are made when a policy first looks at them
    (:class:`qbatch.planning.view.Window`).

    ``runs``: the hidden ones, the shown ones (additions and replacements), and the rows that never
    paused.
    """

    def __init__(
        self, seen: View, runs: tuple[dict[int, Run], dict[int, Run], Set[int]], **shown: Any
    ) -> None:
        super().__init__(seen, **shown)
        self._hidden, self._shown, self._in_one_go = runs

    @cached_property
    def _runs(self) -> dict[int, Run]:
        runs = {row: run for row, run in self._seen.running.items() if row not in self._hidden}
        return runs | self._shown

    @property
    def running(self) -> Mapping[int, Run]:
        return in_one_go(self._seen, self._runs, self._in_one_go)

    @cached_property
    def _ends_and_amounts(self) -> tuple[Int64Array, Int64Array]:
        return ends_and_amounts(self._runs.values(), self.closed)

    @property
    def ends(self) -> Int64Array:
        return self._ends_and_amounts[0]

    @property
    def amounts(self) -> Int64Array:
        return self._ends_and_amounts[1]

    @property
    def pieces(self) -> Int64Array:
        """The parts of running jobs: the original ones without the hidden, and the shown ones."""
        found = np.concatenate(
            [self._seen.pieces, parts_of_runs(self._shown.values(), self._seen.machine)], axis=1
        )
        for part in (part for run in self._hidden.values() for part in _parts_of(run)):
            found = np.delete(
                found, (found == np.array(part, np.int64)[:, None]).all(axis=0).argmax(), axis=1
            )
        return found


def ends_and_amounts(runs: Iterable[Run], closed: Set[int]) -> tuple[Int64Array, Int64Array]:
    """Return the expected ends of runs, ascending, and their processors, without those on closed
    hosts."""
    found = sorted((run.expected_end, procs_of(outside(run.allocation, closed))) for run in runs)
    ends, amounts = np.array([each for each in found if each[1]], np.int64).reshape(-1, 2).T
    return read_only(np.ascontiguousarray(ends)), read_only(np.ascontiguousarray(amounts))


def parts_of_runs(runs: Iterable[Run], machine: Machine) -> Int64Array:
    """Return runs in the form of ``View.pieces``."""
    parts = np.array([part for run in runs for part in _parts_of(run)], np.int64)
    return np.ascontiguousarray(parts.reshape(-1, 5 + len(machine.resources)).T)


def _parts_of(run: Run) -> Iterator[tuple[int, ...]]:
    """Return the columns of ``View.pieces`` for a run."""
    for part in amounts_of(run.allocation):
        yield run.expected_end, *part, run.since


class Inner:
    """The actions of an inner policy in one pass, turned into those of the wrapper.

    ``free_now``: the free resources of its view, less what its starts have taken.  ``gone``: rows
    that no longer wait.
    """

    def __init__(self, view: View, name: str) -> None:
        self.gone: set[int] = set()
        self._view = view
        self._name = name

    @cached_property
    def free_now(self) -> FreeResources:
        """What is free; made at the first use."""
        return self._view.free_now()

    def action(self, action: Action) -> Action:
        """Note an action; return it with its allocation filled in.

        Raises:
            DecisionError: the inner policy suspends or resizes a job, which only the wrapper may
                do.
        """
        match action:
            case Start(is_trial=False):
                self.gone.add(action.row)
                if action.allocation:
                    self.free_now.give(action.allocation)
                    return action
                return msgspec.structs.replace(
                    action, allocation=self.free_now.place(self._view.jobs[action.row])
                )
            case Reject():
                self.gone.add(action.row)
            case Promise() | Break() | WakeAt():
                pass
            case _:
                raise DecisionError(
                    f"the inner policy {self._name} asks for {action}: only starts can be wrapped"
                )
        return action


def as_if_in_one_go(view: View, run: Run, end: int) -> Run:
    """Return a run that ends at ``end`` by its estimate as if it had never paused: plans take its
    whole length from it."""
    since = min(end - max(view.jobs[run.row].estimate, _SECOND), view.now - 1)
    return Run(run.row, run.allocation, since, end, run.done, run.holds_memory)


def in_one_go(view: View, runs: Mapping[int, Run], rows: Set[int]) -> Mapping[int, Run]:
    """Return running jobs, those of ``rows`` as if they had never paused."""
    return _InOneGo(view, runs, rows) if rows else runs


class _InOneGo(Mapping[int, Run]):
    """Running jobs, some as if they had never paused; made on request, as few inner policies need
    them."""

    def __init__(self, view: View, runs: Mapping[int, Run], rows: Set[int]) -> None:
        self._runs = runs
        self._view, self._rows = view, rows

    def __getitem__(self, row: int) -> Run:
        run = self._runs[row]
        has_paused = row in self._rows and run.since < self._view.now
        return as_if_in_one_go(self._view, run, run.expected_end) if has_paused else run

    def __iter__(self) -> Iterator[int]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)
