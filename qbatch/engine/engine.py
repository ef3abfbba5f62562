"""The engine: events of one instant in, checked actions out.

``Engine.handle(at, events)`` is one round of docs/design.md, "The meaning of one instant".  The order: completions and stops, by
sequence; timers; trial runs that go back to the queue; withdrawals; hosts that close and open; starts that an
operator forced; arrivals, by (submit, number); one pass.  If the actions of the pass cause an event at the same instant,
the driver calls ``handle`` again with the same ``at``.  If the policy ``may_refuse``, that pass is the answer to the
arrivals.

The engine never knows how long a job will run: the driver (an executor, or a replay's calendar) launches each
``Start`` and ``Resume`` and reports the end with ``Finished``.  It asks ``next_timer`` when to call without an
event.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set

import msgspec
import numpy as np

from qbatch.engine import audit, checks
from qbatch.engine.admission import Admission
from qbatch.engine.asking import AsksPolicy
from qbatch.engine.cluster import Cluster, ClusterWindow
from qbatch.engine.instant import NOTHING, Happened, sorted_out
from qbatch.engine.round import Round
from qbatch.engine.runs import RunTables
from qbatch.engine.states import CODES, NEXT, STATES, State
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
    parts_of,
    procs_of,
)
from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.events import Event, HostClosed, HostOpened
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.policy import Phased, Policy, Remembering, check_resources, name_of
from qbatch.planning.view import Run, View

_NOTHING: tuple[int, ...] = ()
_QUEUED = CODES[State.QUEUED]

_MANY = 64
"""With more rows than this, changes are made to arrays instead of row by row."""


class Engine(AsksPolicy):
    """One scheduling engine for all drivers.

    Args:
        machine: hosts and how jobs may use them.
        policy: makes the decisions; the engine keeps its record.
        is_audited: check the invariants after every round (and raise ``AuditError``).

    ``may_refuse``: whether the policy may refuse a job that the machine could run (:class:`qbatch.planning.policy.Policy`).
    """

    def __init__(self, machine: Machine, policy: Policy, *, is_audited: bool = False) -> None:
        self.machine = machine
        self.policy = policy
        self.now: int | None = None
        self._cluster = Cluster(machine)
        self._window = ClusterWindow(self._cluster)
        self._cluster.is_malleable = getattr(policy, "is_malleable", False)
        self.may_refuse = bool(getattr(policy, "may_refuse", False))
        self._admission = self._open_hosts = Admission(machine)
        check_resources(policy, machine)
        self._memory = self._ask(lambda: policy.new_memory(machine)) if isinstance(policy, Remembering) else None
        self._wake_at: list[int] = []  # ascending
        self._over: list[int] = []
        self._broken: list[int] = []
        self._late: list[int] = []
        self._watch = audit.Watch() if is_audited else None
        self._is_new_policy = False

    def handle(
        self, at: int, events: Sequence[Event], arrivals: Sequence[Job] = (), finished: Sequence[int] = ()
    ) -> Round:  # fmt: skip
        """Apply the events that fall on the instant ``at`` and make one pass.

        ``arrivals``: jobs that arrive at it, in order of (submit, number), in addition to events; ``finished``: rows that end,
        ascending, in addition to events.

        Raises:
            DecisionError: time runs backwards, an event does not fit a job's state, or the policy asks for
                something that may not happen.
        """
        if self.now is not None and at < self.now:
            raise DecisionError(f"time runs backwards: {at} after {self.now}")
        self.now = at
        if self._over:
            self._forget()
        happened = sorted_out(events) if events else NOTHING
        finished, jobs = tuple(finished) or happened.finished, arrivals or happened.jobs
        cluster = self._cluster
        ended = [self._finish(row) for row in finished] if finished else ()
        requeued, stopped, held_back = _NOTHING, _NOTHING, _NOTHING
        if cluster.until or cluster.trials or happened.returned:
            requeued, stopped, held_back = self._end_quanta(at, happened.returned)
        while self._wake_at and self._wake_at[0] <= at:
            del self._wake_at[0]
        withdrawn, parked, returned, is_changed = _NOTHING, _NOTHING, _NOTHING, False
        begun: tuple[Action, ...] = ()
        if happened is not NOTHING or self._is_new_policy or cluster.left_behind:
            withdrawn, begun, is_changed = self._apply_seldom_events(happened)
            parked, returned = self._park() if is_changed else (_NOTHING, _NOTHING)
        arrived, refused, late = self._arrive(jobs) if jobs else (_NOTHING, (), _NOTHING)
        only_arrivals = not (ended or stopped or requeued or happened.withdrawn or is_changed)
        view = View(
            self._window, at, self.machine, cluster.waiting.rows, self._memory, finished, (*withdrawn, *parked), arrived,
            only_arrivals, is_changed, requeued, ended, happened.ran,
        )  # fmt: skip
        decisions = self._decisions(view)
        actions = tuple(map(self._carry_out, decisions)) if decisions else ()
        broken = _NOTHING
        if self._broken or self._late:
            broken, self._broken, self._late = tuple(dict.fromkeys((*self._broken, *self._late))), [], []
        if late or held_back:
            arrived = tuple(sorted((*arrived, *late)))
            parked = (*parked, *late, *(row for row in held_back if row in cluster.parked))
        first = cluster.waiting.first()
        if begun:
            actions = (*begun, *actions)
        result = Round(
            at, finished, stopped, arrived, refused, actions, broken, first, parked, returned, requeued,
        )  # fmt: skip
        if self._watch is not None:
            self._watch.check(cluster, result)
        return result

    def _apply_seldom_events(self, happened: Happened) -> tuple[tuple[int, ...], tuple[Action, ...], bool]:
        """Withdraw jobs, close and open hosts, start forced jobs, and resume those that another policy left suspended.

        Returns:
            The rows that left the queue, the actions that were carried out, and whether the policy has to plan again.
        """
        cluster, forced = self._cluster, happened.forced
        withdrawn = self._withdraw_all(happened.withdrawn) if happened.withdrawn else ()
        is_changed = bool(happened.hosts) and self._close_and_open(happened.hosts)
        is_changed = is_changed or self._is_new_policy or bool(cluster.left_behind) or bool(forced)
        self._is_new_policy = False
        begun = [self._carry_out(Start(each.row, each.allocation)) for each in forced]
        begun += self._take_up() if cluster.left_behind else ()
        return (*withdrawn, *(each.row for each in forced)), tuple(begun), is_changed

    @property
    def closed(self) -> frozenset[int]:
        """The closed hosts, by their index in ``machine.hosts``."""
        return self._cluster.closed

    @property
    def parked(self) -> tuple[int, ...]:
        """The waiting rows that only closed hosts could hold, in order of sequence."""
        return tuple(self._cluster.parked.rows.tolist())

    @property
    def queue_length(self) -> int:
        """The number of jobs in the queue; parked ones are not in it."""
        return len(self._cluster.waiting)

    @property
    def runs(self) -> RunTables:
        """The running and suspended jobs, for a driver that knows how long jobs run."""
        return self._cluster.runs

    def check_exchange(self, policy: Policy) -> None:
        """Check that a policy can take over the suspended jobs.

        Raises:
            UsageError: it shares hosts among all jobs there, and the memory of suspended jobs may be more than the hosts have; or
                it does not know the resources of the machine.
        """
        check_resources(policy, self.machine)
        on_disk = sum(not run.holds_memory for run in self._cluster.suspended.values())
        if on_disk and self.machine.counts_memory and getattr(policy, "is_malleable", False):
            raise UsageError(
                f"policy {name_of(policy)} cannot take over while {on_disk} job{'' if on_disk == 1 else 's'} suspended to disk "
                "gave their memory back, of which the hosts may not have enough for all; set another policy first, and this one "
                "when they run again"
            )

    def exchange_policy(self, policy: Policy) -> None:
        """Let another policy decide from here on, over the jobs that wait and run.

        It begins with an empty record, and in its first pass the machine counts as changed: it plans again from what
        runs and from the queue.  Promises and wake-up instants of the previous policy are forgotten.  Trial runs are
        over and their jobs wait again at the next pass.  A suspended job resumes as soon as its own processors are free; until
        then nothing else on its hosts is free to the new policy, and in each pass the machine counts as changed.
        A policy that is malleable or divides the time resumes the suspended jobs itself.

        Raises:
            QbatchError: the policy refuses the machine, or shares hosts among jobs of which some are suspended without their
                memory; nothing has changed.
        """
        self.check_exchange(policy)
        memory = self._ask(lambda: policy.new_memory(self.machine)) if isinstance(policy, Remembering) else None
        self.policy, self._memory = policy, memory
        self._wake_at.clear()
        self._cluster.is_malleable = getattr(policy, "is_malleable", False)
        self.may_refuse = bool(getattr(policy, "may_refuse", False))
        self._cluster.until.clear()
        self._cluster.promises.clear()
        self._is_new_policy = True
        # A policy that resizes jobs, or suspends and resumes them in turn, resumes these jobs in its own way.
        takes_up = self._cluster.is_malleable or isinstance(policy, Phased)
        self._cluster.left_behind = set() if takes_up else set(self._cluster.suspended)
        if self._watch is not None:
            self._watch.promised.clear()

    def next_timer(self) -> int | None:
        """Return the next instant at which ``handle`` must be called even without an event, or None."""
        if self._cluster.until:
            return min((*self._wake_at[:1], *self._cluster.until.values()))
        return self._wake_at[0] if self._wake_at else None

    def procs_of(self, row: int) -> int:
        """Return the processors that a running job has now."""
        return self._cluster.running[row].procs

    def state_of(self, row: int) -> State:
        """Return the state of a job."""
        return STATES[self._cluster.codes[row]]

    def is_trial(self, row: int) -> bool:
        """Return whether a row is on a trial run now."""
        return row in self._cluster.trials

    def promise_to(self, row: int) -> int | None:
        """Return the start that a job was last promised, or None."""
        return self._cluster.promises.get(row)

    def _take_up(self) -> Iterator[Action]:
        """Resume the jobs that an earlier policy left suspended, in order of sequence, if their processors are free.

        The processors of jobs that the current policy has suspended are not free: the policy counts on them.
        """
        cluster = self._cluster
        left_behind = cluster.left_behind
        left_behind &= set(cluster.suspended)
        free, free_memory = list(cluster.free), cluster.free_memory
        for row in cluster.suspended.keys() - left_behind:
            for host, width, _ in parts_of(cluster.suspended[row].allocation):
                free[host] -= width
        for row, run in [(row, cluster.suspended[row]) for row in sorted(left_behind)]:
            parts = list(parts_of(run.allocation))
            has_memory = run.holds_memory or (
                all(size <= free_memory[host] for host, _, size in parts) and cluster.lacks(run.allocation) is None
            )
            if has_memory and all(width <= free[host] for host, width, _ in parts):
                left_behind.remove(row)
                for host, width, _ in parts:
                    free[host] -= width
                yield self._carry_out(Resume(row))

    def _change(self, row: int, cause: str) -> None:
        codes = self._cluster.codes
        is_known = 0 <= row < len(codes)
        if not is_known or (after := NEXT[cause][codes[row]]) < 0:
            found = STATES[codes[row]].value if is_known else "unknown"
            raise DecisionError(f"row {row} cannot be {cause} at {self.now}: it is {found}")
        codes[row] = after

    def _finish(self, row: int) -> Run:
        self._change(row, "finished")
        self._over.append(row)
        return self._cluster.runs.end(row, self.now or 0)

    def _end_quanta(self, at: int, returned: Set[int]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """End what was to run until now; return the trial runs that wait again, the rows that were suspended, and those of
        the former that only closed hosts could hold."""
        cluster = self._cluster
        due = {row for row, until in cluster.until.items() if until <= at}
        over = cluster.trials if self._is_new_policy else due & cluster.trials
        requeued = tuple(sorted(over | returned))
        stopped = tuple(sorted(due.difference(requeued)))
        for row in stopped:
            self._suspend(Suspend(row))
        return requeued, stopped, self._requeue(requeued)

    def _requeue(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """Discard the work of trial runs and put them back into the queue; return those that only closed hosts could hold."""
        cluster = self._cluster
        if not rows:
            return _NOTHING
        for row in rows:
            if row not in cluster.trials:
                raise DecisionError(f"row {row} cannot be returned at {self.now}: it is not a trial")
            self._change(row, "returned")
            cluster.runs.give_up(row, self.now or 0)
        places = np.array(rows, np.int64)
        could = self._could_run(places) if cluster.closed else np.ones(len(places), np.bool_)
        cluster.waiting.insert(places[could])
        cluster.parked.insert(places[~could])
        return tuple(places[~could].tolist())

    def _forget(self) -> None:
        """Drop the jobs that ended by the last round, when policies could still read them."""
        jobs, promises = self._cluster.jobs, self._cluster.promises
        for row in self._over:
            jobs[row] = None
            promises.pop(row, None)
        self._over.clear()

    def _withdraw_all(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """Withdraw rows (ascending); return those that a policy knows."""
        cluster = self._cluster
        if len(rows) > _MANY and not cluster.closed and rows[0] >= 0 and rows[-1] < len(cluster.codes):
            codes, places = np.frombuffer(cluster.codes, np.uint8), np.array(rows, np.int64)
            if (codes[places] == CODES[State.QUEUED]).all() and (np.diff(places) > 0).all():
                codes[places] = NEXT["withdrawn"][CODES[State.QUEUED]]
                cluster.waiting.remove_all(rows)
                self._over += rows
                return rows
        return tuple(row for row in rows if self._withdraw(row))

    def _withdraw(self, row: int) -> bool:
        """Withdraw a row; return whether a policy knows it (a parked row is unknown)."""
        cluster = self._cluster
        was = STATES[cluster.codes[row]] if 0 <= row < len(cluster.jobs) else None
        self._change(row, "withdrawn")
        self._over.append(row)
        if was is State.QUEUED:
            is_parked = bool(cluster.closed) and row in cluster.parked  # without closed hosts none is
            cluster.leave_queue(row)
            return not is_parked
        cluster.runs.drop(row, self.now or 0)
        return True

    def _close_and_open(self, changes: Sequence[HostClosed | HostOpened]) -> bool:
        """Close and open hosts; return whether the set of closed hosts changed."""
        closed = set(self._cluster.closed)
        for event in changes:
            if not 0 <= event.host < len(self.machine.hosts):
                raise DecisionError(f"there is no host {event.host} ({len(self.machine.hosts)} hosts)")
            if isinstance(event, HostClosed):
                closed.add(event.host)
            else:
                closed.discard(event.host)
        if closed == self._cluster.closed:
            return False
        self._cluster.set_closed(closed)
        self._open_hosts = Admission(self.machine, self._cluster.closed)
        return True

    def _park(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Park jobs that need closed hosts, bring back those that no longer do; return both."""
        cluster = self._cluster
        queue, parked = cluster.waiting.rows, cluster.parked.rows
        leave, back = queue[~self._could_run(queue)], parked[self._could_run(parked)]
        if len(leave) or len(back):
            cluster.waiting.replace(np.union1d(np.setdiff1d(queue, leave, assume_unique=True), back))
            cluster.parked.replace(np.union1d(np.setdiff1d(parked, back, assume_unique=True), leave))
        return tuple(leave.tolist()), tuple(back.tolist())

    def _could_run(self, rows: Int64Array) -> BoolArray:
        return self._held_by(self._open_hosts, rows)

    def _held_by(self, hosts: Admission, rows: Int64Array) -> BoolArray:
        cluster = self._cluster
        if cluster.shapes is not None:
            return hosts.holds_chunks(cluster.shapes.arrays, rows)
        return hosts.holds(cluster.columns.asked[:, rows])

    def _arrive(self, jobs: Sequence[Job]) -> tuple[tuple[int, ...], tuple[tuple[int, Reason], ...], tuple[int, ...]]:
        """Give rows to arrivals; return those that joined the queue, that were refused, that were parked."""
        cluster = self._cluster
        first, replace = len(cluster.jobs), msgspec.structs.replace
        jobs = [job if job.row == row else replace(job, row=row) for row, job in enumerate(jobs, first)]
        cluster.add(jobs)
        doubtful = jobs
        if len(jobs) > 1:  # the columns alone show that most fit
            columns, places = cluster.columns, np.arange(first, first + len(jobs))
            fits = (columns.procs[first:] >= 1) & (columns.estimate[first:] >= 0) & self._held_by(self._admission, places)
            doubtful = [job for job, does_fit in zip(jobs, fits.tolist(), strict=True) if job.resources or not does_fit]
        refused = [(job.row, reason) for job in doubtful if (reason := self._admission.refusal(job)) is not None]
        for row, _ in refused:
            self._change(row, "reject")
            self._over.append(row)
        arrived = [job.row for job in jobs if not refused or cluster.codes[job.row] == _QUEUED]
        parked: list[int] = []
        if cluster.closed:
            could = self._could_run(np.array(arrived, np.int64)).tolist()
            parked = [row for row, is_held in zip(arrived, could, strict=True) if not is_held]
            arrived = [row for row, is_held in zip(arrived, could, strict=True) if is_held]
            cluster.parked.append(parked)
        cluster.waiting.append(arrived)
        self._forget_shapes()
        return tuple(arrived), tuple(refused), tuple(parked)

    def _forget_shapes(self) -> None:
        """If there are many, forget the shapes of jobs that do not wait and cannot wait again."""
        shapes = self._cluster.shapes
        if shapes is not None and shapes.is_full():
            shapes.renew(map(self._cluster.job, self._cluster.shaped_rows().tolist()))

    def _carry_out(self, action: Action) -> Action:
        found = checks.CHECKS[type(action)](self._cluster, action, self.now or 0)
        if type(action) is Start:
            return self._start(action, found)
        if type(action) is Promise:
            self._cluster.promises[action.row] = action.at
        elif type(action) is WakeAt:
            self._wake(action.at)
        else:
            self._carry_out_seldom(action)
        return action

    def _wake(self, at: int) -> None:
        wake_at = self._wake_at
        place = bisect_left(wake_at, at)
        if place == len(wake_at) or wake_at[place] != at:
            wake_at.insert(place, at)

    def _carry_out_seldom(self, action: Action) -> None:
        """Carry out one of the rare actions."""
        match action:
            case Break():
                del self._cluster.promises[action.row]
                self._broken.append(action.row)
            case Suspend():
                self._suspend(action)
            case Resume():
                self._resume(action)
            case Resize():
                self._resize(action)
            case Reject():
                self._change(action.row, "reject")
                self._cluster.leave_queue(action.row)
                self._over.append(action.row)

    def _start(self, action: Start, allocation: Allocation) -> Start:
        cluster = self._cluster
        self._change(action.row, "start")
        self._leave_queue(action.row)
        now, procs = self.now or 0, procs_of(allocation)
        if self.machine.chunked:
            procs = cluster.width(action.row, procs)
        cluster.runs.start(action.row, allocation, procs, now, action.until, is_trial=action.is_trial)
        if now > cluster.promises.get(action.row, now) and not action.is_trial:
            self._late.append(action.row)
        return (
            action if action.allocation is allocation else Start(action.row, allocation, action.until, action.is_trial)
        )

    def _leave_queue(self, row: int) -> None:
        """Remove a starting job from the queue."""
        self._cluster.leave_queue(row)

    def _suspend(self, action: Suspend) -> None:
        self._change(action.row, "suspend")
        self._cluster.runs.suspend(action.row, self.now or 0, keeps_memory=action.keep_memory)

    def _resume(self, action: Resume) -> None:
        cluster, row = self._cluster, action.row
        self._change(row, "resume")
        cluster.runs.resume(row, cluster.width(row, cluster.suspended[row].procs), self.now or 0, action.until)

    def _resize(self, action: Resize) -> None:
        self._change(action.row, "resize")
        self._cluster.runs.resize(action.row, action.procs, self.now or 0)
