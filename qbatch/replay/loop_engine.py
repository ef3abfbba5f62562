"""A policy in Python inside the compiled loop: the loop stops where the policy decides, and goes on with what it decided.

The loop carries out ends, arrivals, timers, and what the policy does with jobs (:mod:`qbatch.replay.kernels.loop`); the engine
makes the views and checks each action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from struct import Struct
from typing import Any, cast

import msgspec
import numpy as np

from qbatch.engine.cluster import ASKED, ESTIMATED, STARTED, SUBMITTED, ClusterWindow
from qbatch.engine.engine import Engine
from qbatch.engine.states import CODES, State
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import (
    Action,
    Allocation,
    Break,
    Promise,
    Reject,
    Resize,
    Resume,
    Start,
    Suspend,
    WakeAt,
    amounts_of,
    procs_of,
)
from qbatch.model.errors import DecisionError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.record import NO_PROMISE, Rejection, Schedule, Workload
from qbatch.planning.kernels import jit
from qbatch.planning.kernels.live import live
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    ACTION,
    COUNTS,
    CPUS,
    HOST,
    INTERRUPTIONS,
    PARTS,
    RESIZE,
    RESUME,
    RUN,
    START,
    SUSPEND,
    TRY,
    JobColumns,
    Needs,
    ScheduleTable,
)
from qbatch.planning.policy import Compiled, Policy, Predicting, name_of
from qbatch.planning.view import Run, View
from qbatch.replay.calendar import PROGRESS_EVERY, ProgressCallback, check_idle, left_waiting
from qbatch.replay.compiled import jobs_and_log, state_of
from qbatch.replay.kernels import loop
from qbatch.replay.sources import AT_ONCE, arrivals_of

_QUEUED, _RUNNING, _FINISHED, _SUSPENDED = (
    CODES[each] for each in (State.QUEUED, State.RUNNING, State.FINISHED, State.SUSPENDED)
)
_NEEDS = Needs(gives=INTERRUPTIONS, reads=PARTS, has_hosts=True, has_timers=True)
_COMPILED = Compiled(loop.decide, _NEEDS, lambda _work, _machine: None, is_planned=True)
_ROUNDS = loop.rounds_of(_NEEDS)
_rounds = live(_ROUNDS)

_ARRIVED, _PARTS, _HEAD, _TAIL, _TIMER, _DECIDED, _ENDED, _STOPPED, _RETURNED, _REFUSED, _INTERVALS = (
    cast("tuple[str, ...]", COUNTS.names).index(name)
    for name in (
        "arrived", "parts", "head", "tail", "timer", "decided", "ended", "stopped", "returned", "refused", "intervals",
    )
)  # fmt: skip
_WRITE_ACTION = Struct(f"={len(cast('tuple[str, ...]', ACTION.names))}q").pack_into
_SINCE, _DONE, _END = (cast("tuple[str, ...]", RUN.names).index(name) for name in ("since", "done", "end"))


def is_warm() -> bool:
    """Tell whether the loop is likely to be on disk already (else its first call compiles)."""
    return not isinstance(_ROUNDS, jit.Kernel) or jit.is_warm(_ROUNDS.qualified_name)


class LoopEngine(Engine):
    """An engine for one workload; a compiled loop carries out its ends, its arrivals and what its policy decides.

    The loop and the cluster have the same arrays: what the loop writes there is what views show.

    Args:
        work: the jobs, in order of sequence.
        machine: where they run.
        policy: decides.
    """

    def __init__(self, work: Workload, machine: Machine, policy: Policy) -> None:
        super().__init__(machine, policy)
        self._work, cluster, rows = work, self._cluster, len(work)
        asked, self._log = jobs_and_log(work, machine, _COMPILED, None)
        table = np.empty((ASKED + len(asked.asked), rows), np.int64)
        table[SUBMITTED], table[ESTIMATED], table[STARTED], table[ASKED:] = work.submit, work.estimate, -1, asked.asked
        self._jobs = JobColumns(table[SUBMITTED], table[ASKED + CPUS], table[ESTIMATED], table[ASKED:])
        columns, kind = np.full((4, rows), -1, np.int64), np.zeros(rows, np.int8)
        self._done = ScheduleTable(table[STARTED], kind, *columns)
        self._promise, self._first_promise = _cells(self._done.promise), _cells(self._done.first_promise)
        self._state = state = state_of(work, machine, _COMPILED)._replace(hosts=cluster.hosts)
        self._counts, self._action = _cells(state.counts.view(np.int64)), _cells(state.actions.view(np.int64))
        self._runs = _cells(state.runs.view(np.int64).reshape(rows, -1))
        self._parts, self._ended = [_cells(row) for row in state.parts], _cells(state.ended)
        self._rounds = _rounds(self._jobs, self._log, state, self._done, 0)
        cluster.hold_columns(table)
        cluster.hold_parts(state.parts, 0)
        cluster.waiting = Waiting(state.waiting)
        self._held: dict[int, Allocation] = {}  # what the running jobs have, in order of start
        cluster.running = cast(Any, _Running(self._run_of, self._held))
        self._window = ClusterWindow(cluster)
        self._coming = _jobs_of(work)
        self._rejected: list[Rejection] = []
        self._breaks: dict[int, int] = {}
        self._idle = 0

    def run(self, progress: ProgressCallback | None = None) -> Schedule:
        """Run to the end and return the schedule.

        Raises:
            DecisionError: the policy asks for something that may not happen, or leaves a job for ever.
        """
        counts, count = self._counts, 0
        while (now := next(self._rounds, None)) is not None:
            if counts[_DECIDED] < 0:
                self._make_space()
                continue
            self._make_round(now)
            count += 1
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(len(self._cluster.codes), now)
        return self._schedule()

    def _make_space(self) -> None:
        """Make space for more execution intervals; the loop goes on where it was."""
        intervals = self._state.intervals
        self._state = self._state._replace(intervals=np.concatenate([intervals, np.empty_like(intervals)]))
        self._rounds = _rounds(self._jobs, self._log, self._state, self._done, 0)

    def _make_round(self, now: int) -> None:
        """Follow what the loop did at an instant, and let the policy decide."""
        cluster, counts, state, wake_at, codes = self._cluster, self._counts, self._state, self._wake_at, self._cluster.codes
        self.now = now
        if self._over:
            self._forget()
        finished: tuple[int, ...] = ()
        stopped, returned, had = finished, finished, []
        if counts[_ENDED]:
            finished = tuple(self._ended[: counts[_ENDED]])
            had = [self._held.pop(row) for row in finished]
            for row in finished:
                codes[row] = _FINISHED
            self._over += finished
            if cluster.trials:
                cluster.trials.difference_update(finished)
        if counts[_STOPPED] or counts[_RETURNED]:
            stopped = tuple(state.stopped[: counts[_STOPPED]].tolist())
            returned = tuple(state.returned[: counts[_RETURNED]].tolist())
            for row in stopped:
                self._stand_still(row, keeps_memory=True)
            for row in returned:
                del self._held[row]
                codes[row] = _QUEUED
            cluster.trials.difference_update(returned)
        came, before = range(len(codes), counts[_ARRIVED]), len(self._rejected)
        arrived = self._let_arrive(came) if came else ()
        while wake_at and wake_at[0] <= now:
            del wake_at[0]
        cluster.show(counts[_PARTS], (counts[_HEAD], counts[_TAIL]))
        view = View(
            self._window, now, self.machine, cluster.waiting.rows, self._memory, finished, (), arrived,
            not (finished or stopped or returned), False, returned, _Ended(self._run_over, finished, had) if finished else (),
        )  # fmt: skip
        decisions = self._decisions(view)
        for action in decisions:
            self._carry_out(action)
            self._note(action)
        counts[_DECIDED], counts[_TIMER] = 0, wake_at[0] if wake_at else FOREVER
        if self._broken or self._late:
            for row in {*self._broken, *self._late}:
                self._breaks[row] = self._breaks.get(row, 0) + 1
            self._broken, self._late = [], []
        if not (finished or arrived):
            is_idle = not (stopped or returned) and len(self._rejected) == before
            is_idle = is_idle and all(type(action) is WakeAt for action in decisions)
            self._idle = self._idle + 1 if is_idle else 0
            check_idle(self.policy, self._idle, now)

    def _let_arrive(self, rows: range) -> tuple[int, ...]:
        """Make the jobs that arrive; return the rows of those that admission takes."""
        cluster, may_run = self._cluster, self._log.may_run
        cluster.codes += bytes((_QUEUED,)) * len(rows)
        jobs = [next(self._coming) for _ in rows]
        cluster.jobs += jobs
        if cluster.shapes is not None:
            cluster.shapes.add(jobs)
            self._forget_shapes()
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

    def _act(
        self, kind: int, row: int, allocation: Allocation = (), *, procs: int = 0, held: int = 0, until: int | None = None
    ) -> None:  # fmt: skip
        """Let the loop carry out one action."""
        counts = self._counts
        if counts[_INTERVALS] == len(self._state.intervals):
            self._make_space()
        host, parts = -1, 0
        if len(allocation) == 1 and allocation[0].count == 1 and not allocation[0].resources:  # most are
            host, held = allocation[0].host, allocation[0].memory
        else:
            for parts, part in enumerate(amounts_of(allocation), 1):
                for column, value in zip(self._parts[HOST:], part, strict=False):
                    column[counts[_PARTS] + parts - 1] = value
        _WRITE_ACTION(self._action, 0, kind, row, host, procs, held, -1 if until is None else until, parts)
        counts[_DECIDED] = 1
        next(self._rounds)

    def _start(self, action: Start, allocation: Allocation) -> Start:
        row, cluster = action.row, self._cluster
        cluster.codes[row] = _RUNNING
        self._held[row] = allocation
        if action.is_trial:
            cluster.trials.add(row)
        self._act(TRY if action.is_trial else START, row, allocation, procs=procs_of(allocation), until=action.until)
        now, promises = self.now or 0, cluster.promises
        if promises and now > promises.get(row, now) and not action.is_trial:
            self._late.append(row)
        return action

    def _suspend(self, action: Suspend) -> None:
        self._act(SUSPEND, action.row, held=int(action.keep_memory))
        self._stand_still(action.row, keeps_memory=action.keep_memory)

    def _stand_still(self, row: int, *, keeps_memory: bool) -> None:
        """Keep what a job has that was suspended now."""
        self._cluster.codes[row] = _SUSPENDED
        end, done = self._runs[row, _END], self._runs[row, _DONE]
        self._cluster.suspended[row] = Run(row, self._held.pop(row), self.now or 0, end, done, keeps_memory)

    def _resume(self, action: Resume) -> None:
        row = action.row
        self._cluster.codes[row] = _RUNNING
        self._held[row] = allocation = self._cluster.suspended.pop(row).allocation
        self._act(RESUME, row, allocation, procs=procs_of(allocation), until=action.until)

    def _resize(self, action: Resize) -> None:
        row, suspended = action.row, self._cluster.suspended
        run = suspended.get(row) or self._run_of(row)
        allocation = (msgspec.structs.replace(run.allocation[0], procs=action.procs),)
        if row in suspended:
            suspended[row] = msgspec.structs.replace(run, allocation=allocation)
            return
        del self._held[row]
        self._held[row] = allocation
        self._act(RESIZE, row, procs=action.procs)

    def _note(self, action: Action) -> None:
        """Write down what a schedule keeps beside starts and ends."""
        if type(action) is Promise:
            self._promise[action.row] = action.at
            if self._first_promise[action.row] == NO_PROMISE:
                self._first_promise[action.row] = action.at
        elif type(action) is Break:
            self._promise[action.row] = NO_PROMISE
        elif type(action) is Reject:
            self._counts[_HEAD], self._counts[_TAIL] = self._cluster.waiting.bounds()
            self._rejected.append(Rejection(action.row, self.now or 0, action.reason.code, action.reason.text))

    def _run_of(self, row: int) -> Run:
        runs = self._runs
        return Run(row, self._held[row], runs[row, _SINCE], runs[row, _END], runs[row, _DONE])

    def _run_over(self, row: int, had: Allocation) -> Run:
        """Return the run of a job that ended now."""
        return Run(row, had, self.now or 0, self._runs[row, _END], self._runs[row, _DONE])

    def _schedule(self) -> Schedule:
        work, done, name, view = self._work, self._done, name_of(self.policy), self.view()
        left = [*view.queue.tolist(), *view.suspended]
        if left:
            raise DecisionError(left_waiting(name, len(left), view.jobs[left[0]].number, view.free_procs))
        broken = np.zeros(len(work), np.int64)
        broken[list(self._breaks)] = list(self._breaks.values())
        count, has_hosts = self._counts[_INTERVALS], self.machine.single_host and len(self.machine.hosts) > 1
        intervals = self._state.intervals[:count].view(np.int64).reshape(-1, 6).copy() if count else None
        schedule = Schedule(
            work, name, done.start.copy(), done.kind, done.promise, done.first_promise, done.end,
            int(self._state.counts[0]["longest"]), intervals, done.host if has_hosts else None,
            tuple(sorted(self._rejected)), broken if self._breaks else None,
        )  # fmt: skip
        if isinstance(self.policy, Predicting):
            predicted = self.policy.first_predictions(view)
            return replace(schedule, predicted=predicted if (predicted >= 0).any() else None)
        return schedule


class _Running(Mapping[int, Run]):
    """The running jobs by row, in order of start, for looking only."""

    def __init__(self, run_of: Callable[[int], Run], rows: dict[int, Allocation]) -> None:
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

    def __init__(self, run_over: Callable[[int, Allocation], Run], rows: tuple[int, ...], had: list[Allocation]) -> None:
        self._run_over, self._rows, self._had = run_over, rows, had

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return list(map(self._run_over, self._rows[place], self._had[place]))
        return self._run_over(self._rows[place], self._had[place])

    def __len__(self) -> int:
        return len(self._rows)


def _jobs_of(work: Workload) -> Iterator[Job]:
    """Return the jobs of a workload in order, made from its columns some at a time."""
    for begin in range(0, len(work), AT_ONCE):
        places = np.arange(begin, min(begin + AT_ONCE, len(work)))
        yield from (arrival.job for arrival in arrivals_of(work, places, None, begin))


def _cells(array: Any) -> Any:
    """Return the entries of an array: one by one, NumPy takes three times as long."""
    return cast("memoryview[int]", memoryview(cast(Any, array)))
