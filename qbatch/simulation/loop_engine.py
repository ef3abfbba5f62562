"""A policy in Python inside the compiled loop: the loop stops for the policy, and continues with
its decisions.

The loop carries out ends, arrivals, timers, and the policy's actions
(:mod:`qbatch.simulation.kernels.loop`); the engine makes the views and checks each action.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.runs import ASKED, ESTIMATED, STARTED, SUBMITTED, places_of
from qbatch.engine.states import CODES, State
from qbatch.engine.waiting import Waiting
from qbatch.model.actions import Reject, WakeAt
from qbatch.model.machine import Machine
from qbatch.model.record import Schedule, Workload
from qbatch.planning.kernels import jit
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import COUNTS, INTERRUPTIONS, PARTS, Needs, ScheduleTable
from qbatch.planning.policy import Compiled, Policy, name_of
from qbatch.planning.view import View
from qbatch.simulation.calendar import (
    PROGRESS_EVERY,
    ProgressCallback,
    check_all_started,
    check_idle,
    with_predictions,
)
from qbatch.simulation.compiled import jobs_and_log, state_of
from qbatch.simulation.kernels import loop
from qbatch.simulation.recorder import Recorder
from qbatch.simulation.sources import AT_ONCE, arrivals_of

_QUEUED, _FINISHED, _SUSPENDED = CODES[State.QUEUED], CODES[State.FINISHED], CODES[State.SUSPENDED]
_NEEDS = Needs(gives=INTERRUPTIONS, reads=PARTS, has_hosts=True, has_timers=True)
_COMPILED = Compiled(loop.decide, _NEEDS, lambda _work, _machine: None, is_planned=True)
_ROUNDS = loop.rounds_of(_NEEDS)
_rounds = entry_to(_ROUNDS)

_ARRIVED, _HEAD, _TAIL, _TIMER, _DECIDED, _ENDED, _STOPPED, _RETURNED, _REFUSED = places_of(
    COUNTS, "arrived", "head", "tail", "timer", "decided", "ended", "stopped", "returned", "refused"
)


def is_warm() -> bool:
    """Return whether the loop is probably on disk already (if not, its first call compiles)."""
    return not isinstance(_ROUNDS, jit.Kernel) or jit.is_warm(_ROUNDS.qualified_name)


class LoopEngine(Engine):
    """An engine for one workload; a compiled loop carries out its ends, its arrivals and the
    decisions of its policy.

    The loop and the cluster share their arrays: views show what the loop writes.
    """

    def __init__(self, work: Workload, machine: Machine, policy: Policy) -> None:
        super().__init__(machine, policy)
        self._work, cluster, rows = work, self._cluster, len(work)
        asked, self._log = jobs_and_log(work, machine, _COMPILED, None)
        table = np.empty((ASKED + len(asked.asked), rows), np.int64)
        table[SUBMITTED], table[ESTIMATED], table[STARTED], table[ASKED:] = (
            work.submit,
            work.estimate,
            -1,
            asked.asked,
        )
        cluster.hold_columns(table)
        done = ScheduleTable(
            table[STARTED], np.zeros(rows, np.int8), *np.full((4, rows), -1, np.int64)
        )
        state = state_of(work, machine, _COMPILED)._replace(hosts=cluster.hosts)
        self.runs.hold(self.runs.jobs, self._log, state, done, lambda *tables: _rounds(*tables, 0))
        cluster.waiting = Waiting(state.waiting)
        batches = (
            np.arange(begin, min(begin + AT_ONCE, rows)) for begin in range(0, rows, AT_ONCE)
        )
        self._coming = (
            each.job
            for places in batches
            for each in arrivals_of(work, places, None, int(places[0]))
        )
        self._record = Recorder(rows)
        self._idle = 0

    def run(self, progress: ProgressCallback | None = None) -> Schedule:
        """Run to the end and return the schedule; a DecisionError for an action that may not happen
        or a job left waiting."""
        runs, count = self.runs, 0
        while (now := next(runs.steps, None)) is not None:
            if runs.counts[_DECIDED] < 0:
                runs.more_intervals()
                continue
            self._make_round(now)
            count += 1
            if progress is not None and count % PROGRESS_EVERY == 0:
                progress(len(self._cluster.codes), now)
        return self._schedule()

    def _make_round(self, now: int) -> None:
        """Follow what the loop did at an instant, and let the policy decide."""
        cluster, runs, wake_at, codes = self._cluster, self.runs, self._wake_at, self._cluster.codes
        counts, state = runs.counts, runs.state
        self.now = now
        if self._over:
            self._forget()
        finished: tuple[int, ...] = tuple(runs.ended[: counts[_ENDED]]) if counts[_ENDED] else ()
        stopped: tuple[int, ...] = ()
        returned: tuple[int, ...] = ()
        ended = tuple(runs.over(row, now) for row in finished)
        for row in finished:
            codes[row] = _FINISHED
        self._over += finished
        if counts[_STOPPED] or counts[_RETURNED]:
            stopped = tuple(state.stopped[: counts[_STOPPED]].tolist())
            returned = tuple(state.returned[: counts[_RETURNED]].tolist())
            for row in stopped:
                runs.stood_still(row, now, keeps_memory=True)
                codes[row] = _SUSPENDED
            for row in returned:
                runs.over(row, now)
                codes[row] = _QUEUED
        came = range(len(codes), counts[_ARRIVED])
        arrived = self._let_arrive(came) if came else ()
        while wake_at and wake_at[0] <= now:
            del wake_at[0]
        cluster.waiting.show(counts[_HEAD], counts[_TAIL])
        runs.by_end = None
        view = View(
            self._window,
            now,
            self.machine,
            cluster.waiting.rows,
            self._memory,
            finished,
            (),
            arrived,
            not (finished or stopped or returned),
            False,
            returned,
            ended,
        )
        decisions = self._decisions(view)
        for action in decisions:
            self._carry_out(action)
            if type(action) is Reject:
                counts[_HEAD], counts[_TAIL] = cluster.waiting.bounds()
            self._record.note(action, now)
        counts[_DECIDED], counts[_TIMER] = 0, wake_at[0] if wake_at else FOREVER
        if self._broken or self._late:
            for row in {*self._broken, *self._late}:
                self._record.break_promise(row)
            self._broken, self._late = [], []
        if not (finished or arrived):
            is_idle = not (stopped or returned or came) and all(
                type(action) is WakeAt for action in decisions
            )
            self._idle = self._idle + 1 if is_idle else 0
            check_idle(self.policy, self._idle, now)

    def _let_arrive(self, rows: range) -> tuple[int, ...]:
        """Make the jobs that arrive; return the rows of those that admission accepts."""
        cluster, may_run = self._cluster, self._log.may_run
        cluster.codes += bytes((_QUEUED,)) * len(rows)
        jobs = list(islice(self._coming, len(rows)))
        cluster.jobs += jobs
        if cluster.requests is not None:
            cluster.requests.add(jobs)
            self._forget_requests()
        if not self.runs.counts[_REFUSED]:
            return tuple(rows)
        for row in rows:
            if not may_run[row]:
                reason = self._admission.refusal(cluster.job(row))
                assert reason is not None
                self.runs.done.start[row] = -1
                self._change(row, "reject")
                self._over.append(row)
                self._record.reject(row, self.now or 0, reason)
        return tuple(row for row in rows if may_run[row])

    def _leave_queue(self, row: int) -> None:
        """Do nothing: the loop closes the gaps in the queue when the pass is over."""

    def _schedule(self) -> Schedule:
        runs, machine = self.runs, self.machine
        # The loop has carried out the actions of the last pass since.
        self._cluster.waiting.show(runs.counts[_HEAD], runs.counts[_TAIL])
        view = self.view()
        check_all_started(self.policy, view)
        written = self._record.schedule(self._work, name_of(self.policy), None, runs.intervals)
        host = runs.done.host if machine.single_host and len(machine.hosts) > 1 else None
        schedule = replace(
            written,
            start=runs.done.start.copy(),
            kind=runs.done.kind,
            end=runs.done.end,
            host=host,
            queue_max=int(runs.state.counts[0]["longest"]),
        )
        return with_predictions(schedule, self.policy, view)
