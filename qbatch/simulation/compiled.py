"""One compiled run: the initial tables of the loop (:mod:`qbatch.simulation.kernels.loop`), and the
schedule that it leaves.

This file imports the kernels, which load in a tenth of a second and compile in seconds; only a run
that needs them imports it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from qbatch.engine.admission import Admission
from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import NO_PROMISE, Rejection, Schedule, Workload
from qbatch.planning.kernels import jit, tables
from qbatch.planning.kernels.entries import entry_to, uncompiled
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    INTERRUPTIONS,
    JobColumns,
    LogTable,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.kernels.verbs import NO_NUMBER, NO_ROOM, NOT_LATER, NOT_WAITING
from qbatch.planning.partitions import has_limits
from qbatch.planning.policy import Compiled
from qbatch.planning.requests import requests_of
from qbatch.planning.resources import resource_model_of
from qbatch.simulation.calendar import ProgressCallback, left_waiting
from qbatch.simulation.kernels.loop import loop_around, stops_of
from qbatch.simulation.sources import arrivals_of

BUDGET = 50_000
"""Rounds between two checks of progress and interruption, at first."""

SHORT_S, LONG_S = 0.1, 0.5
"""If two checks are further apart than the second, in seconds, the next comes after half as many
rounds; if they are closer than the first, after twice as many again."""

LITTLE = 4000
"""With this many jobs or more, plain Python certainly takes longer."""

FEW = 100
"""Rounds between two measurements of the time that plain Python has taken."""

_plain_seconds = 0.2
"""How long loops may still run in plain Python in this process before the compiler is loaded, which
takes longer."""

KEPT_SOONER = 5
"""A kept object loads this many times faster than the compiler."""

_FAULTS = {
    NOT_WAITING: "job {number} may not start: it does not wait",
    NO_ROOM: "job {number} may not start: it does not fit",
    NO_NUMBER: "its kernel returned an impossible number of starts",
    NOT_LATER: "it asks for a pass that is not later",
}

_INTEGERS, _BYTES = np.empty(0, np.int64), np.empty(0, np.int8)


class CompiledReplay:
    """The tables of a replay under a policy's kernel (:func:`qbatch.planning.policy.compiled_of`).

    Args:
        name: of the policy, for the schedule and for errors.
    """

    def __init__(self, work: Workload, machine: Machine, compiled: Compiled, name: str) -> None:
        if machine.reservations:
            raise UsageError(
                "a machine with reservations has no compiled loop; replay it with the engine, or "
                "leave the reservations out of the machine file"
            )
        machine = resource_model_of(machine).replayed_as(machine)
        self._work, self._machine, self._compiled, self._name = work, machine, compiled, name
        self._memory = compiled.new_memory(work, machine)
        self._jobs, self._log = jobs_and_log(work, machine, compiled, self._memory)
        self.state = state_of(work, machine, compiled)
        rows, has_hosts, is_planned = len(work), compiled.needs.has_hosts, compiled.is_planned
        written = (True, compiled.needs.gives == INTERRUPTIONS, has_hosts, is_planned, is_planned)
        start, *others = (
            np.full(rows if is_written else 0, -1, np.int64) for is_written in written
        )
        self._done = ScheduleTable(start, np.zeros(rows, np.int8), *others)

    def run(self, progress: ProgressCallback | None = None) -> Schedule:
        """Run to the end and return the schedule; a DecisionError if the policy asked for something
        that may not happen."""
        counts = self.state.counts[0]
        loop = loop_of(self._compiled, has_admission=len(self._log.may_run) > 0)
        for run_some, budget in _stages(loop, len(self._work)):
            is_over = run_some(self._jobs, self._log, self.state, self._done, self._memory, budget)
            if progress is not None:
                progress(int(counts["arrived"]), int(counts["now"]))
            if is_over:
                break
            intervals = self.state.intervals
            if len(intervals) and 2 * counts["intervals"] > len(intervals):
                self.state = self.state._replace(
                    intervals=np.concatenate([intervals, np.empty_like(intervals)])
                )
        if counts["fault"]:
            number = int(self._work.number[int(counts["fault_row"])])
            why = _FAULTS[int(counts["fault"])].format(number=number)
            raise DecisionError(f"policy {self._name} at {int(counts['now']) / 1e6:.15g} s: {why}")
        return self.schedule()

    def stops(self) -> Iterator[int]:
        """Return the instants at which the kernel stops the loop
        (:func:`qbatch.simulation.kernels.loop.rounds_to_stops`)."""
        of_tables = entry_to(stops_of(self._compiled.decide, self._compiled.needs))
        return of_tables(self._jobs, self._log, self.state, self._done, self._memory)

    def schedule(self) -> Schedule:
        """Return the schedule, when the loop is at its end; an error if a job was left waiting."""
        left = np.flatnonzero(self._done.start == -1)
        if len(left):
            number, free = int(self._work.number[left[0]]), int(self.state.counts[0]["free"])
            raise DecisionError(left_waiting(self._name, len(left), number, free))
        work, machine, done, counts, start = (
            self._work,
            self._machine,
            self._done,
            self.state.counts[0],
            self._done.start,
        )
        refused = np.flatnonzero(start == tables.REFUSED_START) if counts["refused"] else ()
        rejected = [
            Rejection(row, int(work.submit[row]), *self._refusal(row)) for row in map(int, refused)
        ]
        if rejected:
            start[start == tables.REFUSED_START] = -1
        end = (
            done.end
            if len(done.end)
            else np.where(start < 0, -1, start + work.run)
            if rejected
            else start + work.run
        )
        none = np.broadcast_to(np.int64(NO_PROMISE), len(work))
        promises = (done.promise, done.first_promise) if self._compiled.is_planned else (none, none)
        count = int(counts["intervals"])
        pieces = (
            self.state.intervals[:count].view(np.int64).reshape(-1, 6).copy() if count else None
        )
        host = (
            done.host if machine.single_host and len(machine.hosts) > 1 and len(done.host) else None
        )
        longest = int(counts["longest"])
        return Schedule(
            work,
            self._name,
            start,
            done.kind,
            *promises,
            end,
            longest,
            pieces,
            host,
            tuple(rejected),
        )

    def _refusal(self, row: int) -> tuple[str, str]:
        """Return why a job was refused when it arrived, a code and a text: by admission, else by
        the policy."""
        (arrival,) = arrivals_of(self._work, np.array([row]), None, row)
        reason = Admission(self._machine).refusal(arrival.job)
        if reason is not None:
            return reason.code, reason.text
        refusal = self._compiled.refusal
        return ("", "") if refusal is None else refusal(self._work, row, self._memory)


def loop_of(compiled: Compiled, *, has_admission: bool) -> Callable[..., bool]:
    """Return the loop that runs a policy's kernel; ``has_admission``: a job may be refused by
    admission."""
    decide = compiled.decide
    is_checked = (
        decide.is_outside
        if isinstance(decide, jit.Kernel)
        else not decide.__module__.startswith("qbatch.")
    )
    return loop_around(decide, compiled.needs, has_admission=has_admission, is_checked=is_checked)


def is_warm(compiled: Compiled) -> bool:
    """Return whether the loop is probably on disk already (if not, its first call compiles)."""
    loop = loop_of(compiled, has_admission=compiled.needs.has_hosts)
    return not isinstance(loop, jit.Kernel) or jit.is_warm(loop.qualified_name)


def jobs_and_log(
    work: Workload, machine: Machine, compiled: Compiled, memory: Any
) -> tuple[JobColumns, LogTable]:
    """Return the requests of the jobs, and the log's knowledge of them."""
    if (
        not (compiled.needs.has_hosts or work.resources)
        and work.procs.max(initial=0) <= machine.procs
    ):
        none, requests = _INTEGERS.reshape(0, 0), tables.no_requests()
        jobs = JobColumns(work.submit, work.procs, work.estimate, none, requests)
        return jobs, LogTable(work.run, _INTEGERS, _BYTES)
    asked = np.empty((tables.NAMED + len(machine.resources), len(work)), np.int64)
    asked[tables.CPUS], asked[tables.MEMORY] = work.procs, work.memory
    for place, name in enumerate(machine.resources, tables.NAMED):
        asked[place] = work.resources.get(name, 0)
    admission, requests = Admission(machine), tables.no_requests()
    if machine.chunked:
        different, of = different_jobs(work, machine)
        requests = requests_of(machine, different, of)
        may_run = np.array([admission.refusal(job) is None for job in different], np.bool_)[of]
    else:
        may_run = admission.holds(asked)
    for name in work.resources.keys() - set(machine.resources):
        may_run &= work.resources[name] == 0
    if compiled.takes is not None:
        may_run &= compiled.takes(memory)
    jobs = JobColumns(work.submit, asked[tables.CPUS], work.estimate, asked, requests)
    return jobs, LogTable(
        work.run, np.ascontiguousarray(work.used_memory, np.int64), may_run.view(np.int8)
    )


def different_jobs(work: Workload, machine: Machine) -> tuple[list[Job], Int64Array]:
    """Return jobs with the different requests of a workload, and by row the index of its.  The
    limits of partitions make jobs with other estimates different too."""
    columns = [work.procs, work.memory, work.request, *work.resources.values()]
    asked = np.stack([*columns, work.estimate] if has_limits(machine) else columns)
    _, first, of = np.unique(asked, axis=1, return_index=True, return_inverse=True)
    return [arrival.job for arrival in arrivals_of(work, first, None, 0)], of.ravel()


def state_of(work: Workload, machine: Machine, compiled: Compiled) -> StateTables:
    """Return the tables of a machine before its first event."""
    needs, rows, most = compiled.needs, len(work), min(len(work), machine.procs) + 1
    is_interrupting = needs.gives == INTERRUPTIONS
    interrupted = most if is_interrupting else 0
    ended = most if needs.reads_ended or is_interrupting else 0
    counts = np.zeros(1, tables.COUNTS)
    counts["free"], counts["timer"], counts["until"] = machine.procs, FOREVER, FOREVER
    counts["decided"] = counts["last"] = -1
    there = Machine(resource_model_of(machine).places(machine)).there
    # Each part of a job has a processor, or is the one of the server; after those in use there is
    # space for all parts of one job.
    of_server = most if machine.server >= 0 else 0
    has_rows = is_interrupting or machine.chunked or (compiled.is_planned and needs.has_hosts)
    fields = tables.AMOUNTS + len(there) + 2 * has_rows
    places = (
        machine.procs + of_server + len(machine.hosts)
        if has_rows
        else 0
        if needs.reads == tables.NO_PARTS
        else most
    )
    runs = np.full(rows if is_interrupting else 0, -1, tables.RUN)
    runs["is_trial"] = runs["is_cut"] = 0
    return StateTables(
        counts=counts,
        endings=np.empty((4 * most + 64 if is_interrupting else most, 2), np.int64),
        waiting=np.empty(rows if needs.has_queue else 0, np.int64),
        parts=np.empty((fields, places), np.int64),
        hosts=np.array([there, there, np.zeros_like(there)], np.int64),
        started=np.empty(rows + 1, np.int64),
        places=np.empty(rows + 1 if needs.has_hosts else 0, np.int64),
        begun=np.empty((fields, machine.procs + of_server + 1 if machine.chunked else 0), np.int64),
        ended=np.empty(ended, np.int64),
        stopped=np.empty(interrupted, np.int64),
        returned=np.empty(interrupted, np.int64),
        runs=runs,
        running=np.empty(interrupted, np.int64),
        intervals=np.empty(rows + 16 * interrupted if is_interrupting else 0, tables.INTERVAL),
        actions=np.empty(4 * interrupted, tables.ACTION),
    )


def _stages(loop: Callable[..., bool], rows: int) -> Iterator[tuple[Callable[..., bool], int]]:
    """Yield a loop and its number of rounds, without end: plain Python while that takes less than
    loading the compiler."""
    global _plain_seconds
    if not jit.is_loaded() and rows <= LITTLE:
        plain, sooner = uncompiled(loop), KEPT_SOONER if jit.is_kept(loop) else 1
        while not jit.is_loaded() and _plain_seconds > 0:
            begin = time.monotonic()
            yield plain, FEW
            _plain_seconds -= sooner * (time.monotonic() - begin)
    budget = BUDGET
    while True:
        begin = time.monotonic()
        yield loop, budget
        taken = time.monotonic() - begin
        if taken > LONG_S:
            budget = max(budget // 2, FEW)
        elif taken < SHORT_S:
            budget = min(2 * budget, BUDGET)
