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
from qbatch.model.actions import Promise, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.errors import DecisionError
from qbatch.model.events import Event, Finished, Returned, Submitted, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import KINDS, NO_PROMISE, Schedule, Workload
from qbatch.planning.policy import Policy, name_of

Observer = Callable[[Engine, Round], None]
"""Called after every round."""

Progress = Callable[[int, int], None]
"""Called now and then with the rows that have arrived and the instant reached."""

_PROGRESS_EVERY = 2000
_MOST_IDLE = 1_000_000


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
        self._idle = 0
        self._policy = policy
        self._arrived = 0
        self._ends: list[tuple[int, int, int]] = []
        self._launch = np.zeros(rows, np.int64)
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
        )

    def _check_progress(self, done: Round) -> None:
        is_idle = not (done.finished or done.stopped or done.requeued or done.arrived or done.refused)
        is_idle = is_idle and all(isinstance(action, WakeAt) for action in done.actions)
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
        while self._ends and self._launch[self._ends[0][1]] != self._ends[0][2]:
            heapq.heappop(self._ends)
        timer = self.engine.next_timer()
        waits = self.engine.queue_length > 0 if timer is None else True
        candidates = [] if timer is None or not (waits or self._going) else [timer]
        if self._ends:
            candidates.append(self._ends[0][0])
        if self._outgrown:
            candidates.append(self.engine.now or 0)
        if self._arrived < len(self.workload):
            candidates.append(int(self.workload.submit[self._arrived]))
        return min(candidates) if candidates else None

    def _due(self, instant: int) -> list[Event]:
        events: list[Event] = [Returned(row) for row in self._outgrown]
        self._outgrown = []
        while self._ends and self._ends[0][0] == instant:
            _, row, launch = heapq.heappop(self._ends)
            if self._launch[row] == launch:
                events.append(Finished(row))
        if self.engine.next_timer() == instant:
            events.append(Woken())
        work = self.workload
        while self._arrived < len(work) and work.submit[self._arrived] == instant:
            events.append(Submitted(self._job(self._arrived)))
            self._arrived += 1
        return events

    def _job(self, row: int) -> Job:
        work = self.workload
        return Job(
            number=int(work.number[row]),
            submit=int(work.submit[row]),
            procs=int(work.procs[row]),
            estimate=int(work.estimate[row]),
            memory=int(work.memory[row]),
            user=int(work.user[row]),
            group=int(work.group[row]),
            queue=int(work.queue[row]),
        )

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
        started = []
        for action in done.actions:
            match action:
                case Start():
                    if self.start[action.row] < 0:
                        self.start[action.row] = done.at
                        started.append(action.row)
                    self._begin(action, done.at)
                case Resume():
                    self._go(action.row, self.engine.procs_of(action.row), done.at)
                case Suspend():
                    self._pause(action.row, done.at)
                case Resize() if action.row in self._going:
                    self._pause(action.row, done.at)
                    self._go(action.row, action.procs, done.at)
                case Promise():
                    self.promise[action.row] = action.at
                    if self.first_promise[action.row] == NO_PROMISE:
                        self.first_promise[action.row] = action.at
                case _:
                    pass
        for row in started:
            is_backfilled = done.first_waiting is not None and done.first_waiting < row
            kind = (
                "backfilled" if is_backfilled else "immediate" if done.at == self.workload.submit[row] else "in_order"
            )
            self.kind[row] = KINDS.index(kind)
        waiting = self.engine.queue_length + len(started)
        self.queue_max = max(self.queue_max, waiting)

    def _begin(self, action: Start, now: int) -> None:
        chunk = action.allocation[0]
        self._hosts[action.row] = chunk.host
        if self._host is not None:
            self._host[action.row] = chunk.host
        if sum(each.procs for each in action.allocation) != self.workload.procs[action.row]:
            self._in_pieces.add(action.row)
        has_memory = bool(self.engine.machine.hosts[chunk.host].memory)
        if action.is_trial and has_memory and self._used_memory(action.row) > chunk.memory:
            self._outgrown.append(action.row)
        self._go(action.row, sum(chunk.procs for chunk in action.allocation), now)

    def _used_memory(self, row: int) -> int:
        used = getattr(self.workload, "used_memory", None)
        known = -1 if used is None else int(used[row])
        return known if known >= 0 else int(self.workload.memory[row])

    def _go(self, row: int, procs: int, now: int) -> None:
        work = self._work.setdefault(row, int(self.workload.run[row]) * int(self.workload.procs[row]))
        self._launch[row] += 1
        self._going[row] = (now, procs)
        if row in self._outgrown:
            return
        heapq.heappush(self._ends, (now - (-work // procs), row, int(self._launch[row])))

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
