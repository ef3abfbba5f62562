"""The event calendar around the engine: arrivals, completions, timers; the executor of virtual time.

The calendar knows how long each job really runs, the engine does not.  It launches what the engine's actions say,
keeps account of work through suspensions and resizes (linear speedup: work is processors times time), and tells
the engine of each end on the instant at which it is due, rounded up to the microsecond.

A trial begins a job's work anew.  Of a job that uses more memory than its trial was given, the end is never reached: it
is returned at the instant of its start, in another round.  What a job uses is ``Workload.used_memory`` where that is
known (-1: it is not), else what it asks for.  A job that ends in its trial ran in one go.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Break, Promise, Reject, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, Finished, Returned, Submitted, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import KINDS, NO_PROMISE, Rejection, Schedule, Workload
from qbatch.planning.policy import Policy, name_of

Observer = Callable[[Engine, Round], None]
"""Called after every round."""

Progress = Callable[[int, int], None]
"""Called now and then with the rows that have arrived and the instant reached."""

_PROGRESS_EVERY = 2000
_MOST_IDLE = 1_000_000
_BACKFILLED, _IMMEDIATE, _IN_ORDER = (KINDS.index(kind) for kind in ("backfilled", "immediate", "in_order"))
_AT_ONCE = 1024
"""Jobs that are made from the columns together."""


class Calendar:
    """Replays one workload through one engine.

    Args:
        workload: jobs in order of sequence.
        machine: where they run.
        policy: decides.
        is_audited: check the engine's invariants after every round.
    """

    def __init__(self, workload: Workload, machine: Machine, policy: Policy, *, is_audited: bool = False) -> None:
        rows = len(workload)
        self.workload = workload
        self.engine = Engine(machine, policy, is_audited=is_audited)
        self.start = np.full(rows, -1, np.int64)
        self.end = np.full(rows, -1, np.int64)
        self.kind = np.zeros(rows, np.int8)
        self.promise = np.full(rows, NO_PROMISE, np.int64)
        self.first_promise = np.full(rows, NO_PROMISE, np.int64)
        self.queue_max = 0
        self._rejected: list[Rejection] = []
        self._broken = np.zeros(rows, np.int64)
        self._idle = 0
        self._policy = policy
        self._arrived = 0
        self._coming: list[Job] = []
        self._next_job: Job | None = None
        self._advance()
        self._ends: list[tuple[int, int, int]] = []
        self._launch = [0] * rows
        self._timer: int | None = None
        self._going: dict[int, tuple[int, int]] = {}
        self._work: dict[int, int] = {}
        self._outgrown: list[int] = []
        self._hosts: dict[int, int] = {}
        self._pieces: list[tuple[int, int, int, int, int, int]] = []
        self._in_pieces: set[int] = set()
        self._host = np.full(rows, -1, np.int64) if machine.single_host and len(machine.hosts) > 1 else None

    def run(self, observe: Observer | None = None, progress: Progress | None = None) -> Schedule:
        """Run to the end and return the schedule.

        Raises:
            DecisionError: if the policy asks for something that may not happen, or leaves a job for ever.
            AuditError: if an invariant does not hold (audited runs).
        """
        count = 0
        while (instant := self._next_instant()) is not None:
            done = self.engine.handle(instant, self._due(instant))
            self._account(done)
            self._check_progress(done)
            if observe is not None:
                observe(self.engine, done)
            count += 1
            if progress is not None and count % _PROGRESS_EVERY == 0:
                progress(self._arrived, instant)
        self._check_nobody_waits()
        return Schedule(
            self.workload,
            name_of(self._policy),
            self.start,
            self.kind,
            self.promise,
            self.first_promise,
            self.end,
            self.queue_max,
            np.array(self._pieces, np.int64).reshape(-1, 6) if self._in_pieces else None,
            self._host,
            tuple(sorted(self._rejected)),
            self._broken if self._broken.any() else None,
        )

    def _check_progress(self, done: Round) -> None:
        if done.finished or done.arrived or done.stopped or done.requeued or done.refused:
            self._idle = 0
            return
        is_idle = all(isinstance(action, WakeAt) for action in done.actions)
        self._idle = self._idle + 1 if is_idle else 0
        if self._idle > _MOST_IDLE:
            raise DecisionError(
                f"policy {name_of(self._policy)} was woken {_MOST_IDLE} times in a row by {done.at / 1e6:.15g} s and did "
                "nothing but ask to be woken again"
            )

    def _check_nobody_waits(self) -> None:
        view = self.engine.view()
        left = [*view.queue.tolist(), *view.suspended]
        if left:
            raise DecisionError(
                f"policy {name_of(self._policy)} left {len(left)} jobs waiting for ever, the first of them job "
                f"{self.workload.number[left[0]]}, with {view.free_procs} processors free and nothing left to happen"
            )

    def _next_instant(self) -> int | None:
        ends = self._ends
        while ends and self._launch[ends[0][1]] != ends[0][2]:
            heapq.heappop(ends)
        self._timer = timer = self.engine.next_timer()
        if self._outgrown:
            return self.engine.now
        found = ends[0][0] if ends else None
        if self._next_job is not None and (found is None or self._next_job.submit < found):
            found = self._next_job.submit
        return timer if timer is not None and (found is None or timer < found) else found

    def _due(self, instant: int) -> list[Event]:
        events: list[Event] = []
        if self._outgrown:
            events += [Returned(row) for row in self._outgrown]
            self._outgrown = []
        while self._ends and self._ends[0][0] == instant:
            _, row, launch = heapq.heappop(self._ends)
            if self._launch[row] == launch:
                events.append(Finished(row))
        if self._timer == instant:
            events.append(Woken())
        while self._next_job is not None and self._next_job.submit == instant:
            events.append(Submitted(self._next_job))
            self._arrived += 1
            self._advance()
        return events

    def _advance(self) -> None:
        """Note the job that comes next, if there is one."""
        if not self._coming:
            work, begin = self.workload, self._arrived
            columns = (work.number, work.submit, work.procs, work.estimate, work.memory, work.user, work.group, work.queue)
            jobs = zip(*(column[begin : begin + _AT_ONCE].tolist() for column in columns), strict=True)
            self._coming = [
                Job(row=row, number=number, submit=submit, procs=procs, estimate=estimate, memory=memory, user=user,
                    group=group, queue=queue)
                for row, (number, submit, procs, estimate, memory, user, group, queue) in enumerate(jobs, begin)
            ]  # fmt: skip
            self._coming.reverse()
        self._next_job = self._coming.pop() if self._coming else None

    def _account(self, done: Round) -> None:
        for row in done.finished:
            self.end[row] = done.at
            self._leave(row, done.at)
            self._work.pop(row, None)
            self._hosts.pop(row, None)
        for row in done.stopped:
            self._pause(row, done.at)
        for row in done.requeued:
            self._in_pieces.add(row)
            self._leave(row, done.at, is_kept=False)
            self._launch[row] += 1
            del self._work[row]
        if done.refused or done.broken:
            self._rejected += [Rejection(row, done.at, reason.code, reason.text) for row, reason in done.refused]
            self._broken[list(done.broken)] += 1
        started = 0
        for action in done.actions:
            match action:
                case Start(row=row):
                    if self.start[row] < 0:
                        self.start[row] = done.at
                        self.kind[row] = self._kind_of(row, done)
                        started += 1
                    self._begin(action, done.at)
                case Reject():
                    self._rejected.append(Rejection(action.row, done.at, action.reason.code, action.reason.text))
                case Break():
                    self.promise[action.row] = NO_PROMISE
                case Promise():
                    self.promise[action.row] = action.at
                    if self.first_promise[action.row] == NO_PROMISE:
                        self.first_promise[action.row] = action.at
                case Resume():
                    self._go(action.row, self.engine.procs_of(action.row), done.at)
                case Suspend():
                    self._pause(action.row, done.at)
                case Resize() if action.row in self._going:
                    self._pause(action.row, done.at)
                    self._go(action.row, action.procs, done.at)
                case _:
                    pass
        waiting = self.engine.queue_length + started
        if waiting > self.queue_max:
            self.queue_max = waiting

    def _kind_of(self, row: int, done: Round) -> int:
        if done.first_waiting is not None and done.first_waiting < row:
            return _BACKFILLED
        return _IMMEDIATE if done.at == self.workload.submit[row] else _IN_ORDER

    def _begin(self, action: Start, now: int) -> None:
        row, allocation = action.row, action.allocation
        chunk = allocation[0]
        self._hosts[row] = chunk.host
        if self._host is not None:
            self._host[row] = chunk.host
        procs = chunk.procs if len(allocation) == 1 else sum(each.procs for each in allocation)
        if procs != self.workload.procs[row]:
            self._in_pieces.add(row)
        if action.is_trial and self.engine.machine.hosts[chunk.host].memory and self._used_memory(row) > chunk.memory:
            self._outgrown.append(row)
        self._go(row, procs, now)

    def _used_memory(self, row: int) -> int:
        used = getattr(self.workload, "used_memory", None)
        known = -1 if used is None else int(used[row])
        return known if known >= 0 else int(self.workload.memory[row])

    def _go(self, row: int, procs: int, now: int) -> None:
        work = self._work.get(row)
        if work is None:
            work = self._work[row] = int(self.workload.run[row]) * int(self.workload.procs[row])
        self._launch[row] += 1
        self._going[row] = (now, procs)
        if row not in self._outgrown:
            heapq.heappush(self._ends, (now - (-work // procs), row, self._launch[row]))

    def _pause(self, row: int, now: int) -> None:
        self._in_pieces.add(row)
        done = self._leave(row, now)
        self._work[row] = max(self._work[row] - done, 0)
        self._launch[row] += 1

    def _leave(self, row: int, now: int, *, is_kept: bool = True) -> int:
        """Note a piece of a run that does not go through in one; return its work."""
        since, procs = self._going.pop(row)
        host = self._hosts[row]
        if row in self._in_pieces:
            self._pieces.append((row, since, now, procs, host, int(is_kept)))
        return (now - since) * procs
