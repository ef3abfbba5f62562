"""A policy that decides by one kernel: the replay runs it compiled, and the engine calls the same
kernel on a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from qbatch.model.actions import Action, Chunk, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.machine import Machine
from qbatch.planning.kernels import tables
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import Instant, JobColumns, Needs, ScheduleTable, StateTables
from qbatch.planning.kernels.types import RecordArray
from qbatch.planning.policy import Compiled
from qbatch.planning.view import View, jobs_of

_NONE = np.empty(0, np.int64)


class CompiledPolicy:
    """The base class of a policy that decides by a kernel, for whole jobs on hosts or on a pool.

    A derived class defines ``name``; ``kernel``, a ``decide`` function
    (docs/how-to/write-a-compiled-policy.md); and ``new_tables``.  It defines ``needs``, what the
    kernel returns and reads, unless the default suits it: starts by host, and the running jobs in
    order of expected end.  It may add ``explain``.  A class that redefines ``decide`` is not run
    compiled.
    """

    name: str
    kernel: Callable[..., int]
    needs = Needs(reads=tables.PARTS, has_hosts=True)

    def new_tables(self, machine: Machine, rows: int) -> Any:
        """Return the kernel's ``memory``: a NamedTuple of numbers and arrays.

        An array by job has ``rows`` entries with their initial values.  When more jobs come, the
        engine asks for longer arrays and copies the contents of the old ones.
        """
        raise NotImplementedError

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel; None if jobs are chunks over the hosts of the machine.

        Raises:
            UsageError: ``needs`` asks for something that is not open to a user's own policy.
        """
        needs = self.needs
        if (
            needs.gives != tables.STARTS
            or needs.reads == tables.ENDS
            or not (needs.has_queue and needs.has_hosts)
        ):
            raise UsageError(
                f"policy {self.name}: a user's own kernel starts jobs by host and reads PARTS or "
                "NO_PARTS: "
                "give has_timers, reads_ended and reads only"
            )
        if machine.chunked:
            return None
        return Compiled(
            type(self).kernel, needs, lambda work, machine: self.new_tables(machine, len(work))
        )

    def new_memory(self, machine: Machine) -> LiveTables:
        """Return the record for a machine before its first event.

        Raises:
            UsageError: on this machine jobs are chunks over several hosts.
        """
        if self.compiled_on(machine) is None:
            raise UsageError(
                f"policy {self.name} places whole jobs, and on this machine jobs are chunks over "
                "several hosts"
            )
        return LiveTables(64, self.new_tables(machine, 64))

    def decide(self, view: View) -> Iterable[Action]:
        """Make one pass with the kernel."""
        memory: LiveTables = view.memory
        own = memory.for_rows(len(view.columns.submit), partial(self.new_tables, view.machine))
        instant, jobs, state, done = tables_of(view, self.needs)
        count = int(entry_to(type(self).kernel)(instant, jobs, state, done, own))
        if not 0 <= count < len(state.started):
            raise DecisionError(
                f"policy {self.name} at {view.now / 1e6:.15g} s: its kernel returned {count} starts"
            )
        actions: list[Action] = list(
            view.resources.starts(state.started[:count].tolist(), state.places[:count].tolist())
        )
        timer = int(state.counts[0]["timer"])
        if self.needs.has_timers and timer < FOREVER:
            actions.append(WakeAt(timer))
        return actions


class LiveTables:
    """What the engine keeps for a compiled policy: its tables, and the number of jobs for which
    they have space."""

    def __init__(self, rows: int, tables: Any) -> None:
        self.rows = rows
        self.tables = tables

    def for_rows(self, rows: int, new_tables: Callable[[int], Any]) -> Any:
        """Return the tables, with space for ``rows`` jobs."""
        if rows > self.rows:
            self.rows = 2 * rows
            self.tables = with_old(new_tables(self.rows), self.tables)
        return self.tables


def with_old(new: Any, old: Any) -> Any:
    """Return new tables that begin with the contents of the old ones."""
    if isinstance(new, np.ndarray):
        new[tuple(map(slice, old.shape))] = old
        return new
    if isinstance(new, tuple):
        parts = [with_old(*pair) for pair in zip(new, old, strict=True)]
        return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)
    return old


def tables_of(view: View, needs: Needs) -> tuple[Instant, JobColumns, StateTables, ScheduleTable]:
    """Return a view as the tables that a kernel receives in a replay."""
    columns, queue, resources = view.window.long_columns, view.queue, view.resources
    rows, counts, host = len(view.columns.submit), np.zeros(1, tables.COUNTS), _NONE
    parts = (
        resources.parts()
        if needs.reads == tables.PARTS
        else np.empty((2 + len(columns.asked), 0), np.int64)
    )
    counts["timer"] = FOREVER
    if needs.reads_ended:
        host = np.full(rows, -1, np.int64)
        for run in (*view.running.values(), *view.ended):
            host[run.row] = resources.place_of(run)
    first = min(view.arrived, default=rows)
    begin = len(queue) - len(view.arrived) if view.only_arrivals and not view.is_late else 0
    instant = Instant(
        view.now,
        view.free_procs,
        0,
        len(queue),
        max(begin, 0),
        parts.shape[1],
        first,
        rows,
        len(view.finished),
        len(view.requeued),
    )
    state = StateTables(
        counts=counts,
        endings=np.empty((0, 2), np.int64),
        waiting=queue,
        parts=parts,
        hosts=resources.hosts(),
        started=np.empty(len(queue) + 1, np.int64),
        places=np.empty(len(queue) + 1, np.int64),
        begun=np.empty((0, 0), np.int64),
        ended=np.array(view.finished, np.int64),
        stopped=_NONE,
        returned=np.array(view.requeued, np.int64),
        runs=np.empty(0, tables.RUN),
        running=_NONE,
        intervals=np.empty(0, tables.INTERVAL),
        actions=np.empty(0, tables.ACTION),
    )
    return (
        instant,
        jobs_of(view),
        state,
        ScheduleTable(columns.started, np.empty(0, np.int8), _NONE, host, _NONE, _NONE),
    )


def actions_of(written: RecordArray, view: View) -> list[Action]:
    """Return rows of ``ACTION`` as actions; a job that resumes with another number of processors is
    resized first."""
    actions: list[Action] = []
    for kind, row, host, procs, held, until, _ in written.tolist():
        if kind == tables.SUSPEND:
            actions.append(Suspend(row))
        elif kind in (tables.START, tables.TRY):
            is_trial = kind == tables.TRY
            actions.append(
                Start(
                    row, (Chunk(host, procs, held),), until if is_trial else None, is_trial=is_trial
                )
            )
        else:
            if kind == tables.RESIZE or procs != view.suspended[row].procs:
                actions.append(Resize(row, procs))
            if kind == tables.RESUME:
                actions.append(Resume(row))
    return actions
