"""A policy in Python inside the compiled loop: the loop stops where the policy decides, and goes on with what it decided.

The loop carries out ends, arrivals, timers and starts (:mod:`qbatch.replay.kernels.loop`); the engine makes the views, checks
each action and carries out all others.  This serves machines where a job lives inside one host, and policies that let each job
run to its end once it has started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from qbatch.engine.cluster import ASKED, ESTIMATED, STARTED, SUBMITTED, ClusterWindow
from qbatch.engine.engine import Engine
from qbatch.engine.states import CODES, State
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import Action, Allocation, Break, Chunk, Promise, Reject, Resize, Start, Suspend, WakeAt
from qbatch.model.errors import DecisionError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import NO_PROMISE, Rejection, Schedule, Workload
from qbatch.planning.kernels import jit
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import AMOUNTS, COUNTS, CPUS, PARTS, JobColumns, Needs, ScheduleTable
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.policy import Compiled, Policy, Predicting, name_of
from qbatch.planning.view import Run, View
from qbatch.replay.calendar import PROGRESS_EVERY, ProgressCallback, check_idle, left_waiting
from qbatch.replay.compiled import jobs_and_log, state_of
from qbatch.replay.kernels import loop
from qbatch.replay.sources import AT_ONCE, arrivals_of

_QUEUED, _RUNNING, _FINISHED = CODES[State.QUEUED], CODES[State.RUNNING], CODES[State.FINISHED]
_NEEDS = Needs(reads=PARTS, has_hosts=True, has_timers=True, reads_ended=True)
_COMPILED = Compiled(loop.decide, _NEEDS, lambda _work, _machine: None, is_planned=True)
_ROUNDS = loop.rounds_of(_NEEDS)
_rounds = live(_ROUNDS)

_ARRIVED, _ACTIVE, _HEAD, _TAIL, _TIMER, _DECIDED, _ENDED, _REFUSED = (
    cast("tuple[str, ...]", COUNTS.names).index(name)
    for name in ("arrived", "running", "head", "tail", "timer", "decided", "ended", "refused")
)  # fmt: skip


def is_warm() -> bool:
    """Tell whether the loop is likely to be on disk already (else its first call compiles)."""
    return not isinstance(_ROUNDS, jit.Kernel) or jit.is_warm(_ROUNDS.qualified_name)


class OtherActionError(Exception):
    """The policy asked for what only the engine does."""


class LoopEngine(Engine):
    """An engine for one workload; a compiled loop carries out its ends, arrivals and starts.

    The loop and the cluster have the same arrays: what the loop writes there is what views show.

    Args:
        work: the jobs, in order of sequence.
        machine: hosts inside which the jobs live, or one pool.
        policy: decides.
    """

    def __init__(self, work: Workload, machine: Machine, policy: Policy) -> None:
        super().__init__(machine, policy)
        self._work, cluster, rows = work, self._cluster, len(work)
        asked, self._log = jobs_and_log(work, machine, _COMPILED, None)
        table = np.empty((ASKED + len(asked.asked), rows), np.int64)
        table[SUBMITTED], table[ESTIMATED], table[STARTED], table[ASKED:] = work.submit, work.estimate, -1, asked.asked
        self._jobs = JobColumns(table[SUBMITTED], table[ASKED + CPUS], table[ESTIMATED], table[ASKED:])
        columns, kind = np.full((3, rows), -1, np.int64), np.zeros(rows, np.int8)
        self._done = ScheduleTable(table[STARTED], kind, np.empty(0, np.int64), *columns)
        self._promise, self._first_promise = _cells(self._done.promise), _cells(self._done.first_promise)
        state = state_of(work, machine, _COMPILED)
        parts = np.empty((AMOUNTS + len(asked.asked) + 2, state.parts.shape[1]), np.int64)
        self._state = state._replace(hosts=cluster.hosts, parts=parts)
        self._counts, self._starts, self._places = map(_cells, (state.counts.view(np.int64), state.started, state.places))
        cluster.hold_columns(table)
        cluster.hold_parts(parts, 0)
        cluster.waiting = Waiting(state.waiting)
        self._running: dict[int, None] = {}  # the running rows, in order of start
        cluster.running = cast(Any, _Running(self._run_of, self._running))
        self._window = ClusterWindow(cluster)
        self._decided = 0
        self._rejected: list[Rejection] = []
        self._breaks: dict[int, int] = {}

    def run(self, progress: ProgressCallback | None = None) -> Schedule:
        """Run to the end and return the schedule.

        Raises:
            OtherActionError: the policy asked for more than to start jobs, to promise, to refuse and to be woken.
            DecisionError: the policy asks for something that may not happen, or leaves a job for ever.
        """
        cluster, counts, running, wake_at, codes = self._cluster, self._counts, self._running, self._wake_at, self._cluster.codes
        ended, idle = _cells(self._state.ended), 0
        coming = _jobs_of(self._work)
        for count, now in enumerate(_rounds(self._jobs, self._log, self._state, self._done, 0), 1):
            self.now = now
            if self._over:
                self._forget()
            finished = tuple(ended[: counts[_ENDED]])
            for row in finished:
                del running[row]
                codes[row] = _FINISHED
            self._over += finished
            came, before = range(len(codes), counts[_ARRIVED]), len(self._rejected)
            arrived = self._let_arrive(came, coming) if came else ()
            while wake_at and wake_at[0] <= now:
                del wake_at[0]
            cluster.show(counts[_ACTIVE], (counts[_HEAD], counts[_TAIL]))
            view = View(
                self._window, now, self.machine, cluster.waiting.rows, self._memory, finished, (), arrived,
                not finished, False, (), _Ended(self._run_of, finished, now) if finished else (),
            )  # fmt: skip
            decisions, self._decided = self._decisions(view), 0
            for action in decisions:
                self._carry_out(action)
                if type(action) is not Start:
                    self._note(action)
            counts[_DECIDED], counts[_TIMER] = self._decided, wake_at[0] if wake_at else FOREVER
            if self._broken or self._late:
                for row in {*self._broken, *self._late}:
                    self._breaks[row] = self._breaks.get(row, 0) + 1
                self._broken, self._late = [], []
            if not (finished or arrived):
                is_idle = len(self._rejected) == before and all(type(action) is WakeAt for action in decisions)
                idle = idle + 1 if is_idle else 0
                check_idle(self.policy, idle, now)
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(len(codes), now)
        return self._schedule()

    def _let_arrive(self, rows: range, coming: Iterator[Job]) -> tuple[int, ...]:
        """Make the jobs that arrive; return the rows of those that admission takes."""
        cluster, may_run = self._cluster, self._log.may_run
        cluster.codes += bytes((_QUEUED,)) * len(rows)
        for _ in rows:
            cluster.jobs.append(next(coming))
        if not self._counts[_REFUSED]:
            return tuple(rows)
        for row in rows:
            if not may_run[row]:
                reason = self._admission.refusal(cluster.job(row))
                assert reason is not None
                self._done.start[row] = -1
                self._change(row, "reject")
                self._over.append(row)
                self._rejected.append(Rejection(row, self.now or 0, reason.code, reason.text))
        return tuple(row for row in rows if may_run[row])

    def _start(self, action: Start, allocation: Allocation) -> Start:
        """Write a start where the loop finds it."""
        row = action.row
        if action.until is not None or (action.allocation and allocation != (self._part(row, allocation[0].host),)):
            raise OtherActionError
        self._cluster.codes[row] = _RUNNING
        self._cluster.take(allocation)
        self._starts[self._decided], self._places[self._decided] = row, allocation[0].host
        self._decided += 1
        self._running[row] = None
        now, promises = self.now or 0, self._cluster.promises
        if promises and now > promises.get(row, now):
            self._late.append(row)
        return action

    def _suspend(self, action: Suspend) -> None:
        raise OtherActionError

    def _resize(self, action: Resize) -> None:
        raise OtherActionError

    def _note(self, action: Action) -> None:
        """Write down what was done beside starts."""
        if type(action) is Promise:
            self._promise[action.row] = action.at
            if self._first_promise[action.row] == NO_PROMISE:
                self._first_promise[action.row] = action.at
        elif type(action) is Break:
            self._promise[action.row] = NO_PROMISE
        elif type(action) is Reject:
            self._counts[_HEAD], self._counts[_TAIL] = self._cluster.waiting.bounds()
            self._rejected.append(Rejection(action.row, self.now or 0, action.reason.code, action.reason.text))

    def _part(self, row: int, host: int) -> Chunk:
        """Return what a job has on a host."""
        job, machine = self._cluster.job(row), self.machine
        memory = job.memory if machine.hosts[host].memory else 0
        return Chunk(host, job.procs, memory, resources=machine.amounts(job.resources))

    def _run_of(self, row: int) -> Run:
        begin, host = int(self._done.start[row]), int(self._done.host[row])
        return Run(row, (self._part(row, host),), begin, begin + self._cluster.job(row).estimate, 0)

    def _schedule(self) -> Schedule:
        work, done, name, view = self._work, self._done, name_of(self.policy), self.view()
        if len(view.queue):
            first = view.jobs[int(view.queue[0])].number
            raise DecisionError(left_waiting(name, len(view.queue), first, view.free_procs))
        start, broken = done.start.copy(), np.zeros(len(work), np.int64)
        broken[list(self._breaks)] = list(self._breaks.values())
        schedule = Schedule(
            work, name, start, done.kind, done.promise, done.first_promise, np.where(start < 0, -1, start + work.run),
            int(self._state.counts[0]["longest"]), None, done.host if len(self.machine.hosts) > 1 else None,
            tuple(sorted(self._rejected)), broken if self._breaks else None,
        )  # fmt: skip
        if isinstance(self.policy, Predicting):
            predicted = self.policy.first_predictions(view)
            return replace(schedule, predicted=predicted if (predicted >= 0).any() else None)
        return schedule


class _Running(Mapping[int, Run]):
    """The running jobs by row, in order of start, for looking only."""

    def __init__(self, run_of: Callable[[int], Run], rows: dict[int, None]) -> None:
        self._run_of, self._rows = run_of, rows

    def __getitem__(self, row: int) -> Run:
        if row not in self._rows:
            raise KeyError(row)
        return self._run_of(row)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class _Ended(Sequence[Run]):
    """The runs that ended in a round."""

    def __init__(self, run_of: Callable[[int], Run], rows: tuple[int, ...], now: int) -> None:
        self._run_of, self._rows, self._now = run_of, rows, now

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        run = self._run_of(self._rows[place])
        return Run(run.row, run.allocation, self._now, run.expected_end, (self._now - run.since) * run.procs)

    def __len__(self) -> int:
        return len(self._rows)


def _jobs_of(work: Workload) -> Iterator[Job]:
    """Return the jobs of a workload in order, made from its columns some at a time."""
    for begin in range(0, len(work), AT_ONCE):
        places = np.arange(begin, min(begin + AT_ONCE, len(work)))
        yield from (arrival.job for arrival in arrivals_of(work, places, None, begin))


def _cells(array: Int64Array) -> memoryview[int]:
    """Return the entries of an array: one by one, NumPy takes three times as long."""
    return cast("memoryview[int]", memoryview(cast(Any, array)))
