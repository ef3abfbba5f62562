"""The engine: events of one instant in, checked actions out.

``Engine.handle(at, events)`` is one round of design.md, "The meaning of one instant": completions and stops, by
sequence; timers; arrivals, by (submit, number); one pass.  If the actions of the pass cause an event at the same
instant, the driver calls ``handle`` again with the same ``at``.

The engine never learns how long a job will run: the driver (an executor, or a replay's calendar) launches what
``Start`` and ``Resume`` say and tells of the end with ``Finished``.  It asks ``next_timer`` when to call without an
event.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from qbatch.engine import audit, checks
from qbatch.engine.admission import refusal
from qbatch.engine.cluster import Cluster
from qbatch.engine.round import Round
from qbatch.engine.states import TRANSITIONS, State
from qbatch.model.actions import Action, Chunk, Promise, Reject, Resize, Resume, Start, Suspend, WakeAt
from qbatch.model.errors import DecisionError, QbatchError
from qbatch.model.events import Event, Finished, Submitted, Withdrawn
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.reasons import Reason
from qbatch.planning.policy import Explaining, Policy, Remembering, name_of
from qbatch.planning.view import View


class Engine:
    """One scheduling engine for all drivers.

    Args:
        machine: hosts and how jobs may use them.
        policy: decides; the engine keeps its record.
        is_audited: check the invariants after every round (and raise ``AuditError``).
    """

    def __init__(self, machine: Machine, policy: Policy, *, is_audited: bool = False) -> None:
        self.machine = machine
        self.policy = policy
        self.now: int | None = None
        self._cluster = Cluster(machine)
        self._memory = self._ask(lambda: policy.new_memory(machine)) if isinstance(policy, Remembering) else None
        self._wake_at: set[int] = set()
        self._watch = audit.Watch() if is_audited else None

    def handle(self, at: int, events: Iterable[Event]) -> Round:
        """Apply the events that fall on the instant ``at`` and make one pass.

        Raises:
            DecisionError: if time runs backwards, an event does not fit a job's state, or the policy asks for
                something that may not happen.
        """
        if self.now is not None and at < self.now:
            raise DecisionError(f"time runs backwards: {at} after {self.now}")
        self.now = at
        events = list(events)
        finished = tuple(sorted(event.row for event in events if isinstance(event, Finished)))
        for row in finished:
            self._finish(row)
        stopped = tuple(sorted(row for row, until in self._cluster.until.items() if until <= at))
        for row in stopped:
            self._suspend(Suspend(row))
        self._wake_at = {wake for wake in self._wake_at if wake > at}
        withdrawn = tuple(sorted(event.row for event in events if isinstance(event, Withdrawn)))
        for row in withdrawn:
            self._withdraw(row)
        jobs = [event.job for event in events if isinstance(event, Submitted)]
        arrived, refused = self._arrive(sorted(jobs, key=lambda job: (job.submit, job.number)))
        only_arrivals = not (finished or stopped or withdrawn)
        view = self._view(finished, withdrawn, arrived, only_arrivals)
        actions = tuple(self._carry_out(action) for action in self._decisions(view))
        promises = self._cluster.promises
        started = [action.row for action in actions if isinstance(action, Start)]
        broken = tuple(row for row in started if at > promises.get(row, at))
        queue = self._cluster.queue
        first_waiting = int(queue[0]) if len(queue) else None
        result = Round(at, finished, stopped, arrived, refused, actions, broken, first_waiting)
        if self._watch is not None:
            self._watch.check(self._cluster, result)
        return result

    def next_timer(self) -> int | None:
        """Return the next instant at which ``handle`` must be called even without an event, or None."""
        instants = self._wake_at.union(self._cluster.until.values())
        return min(instants) if instants else None

    def view(self) -> View:
        """Return the state as it is now, as a policy would see it if nothing happened."""
        return self._view((), (), (), False)

    def state_of(self, row: int) -> State:
        """Return the state of a job."""
        return self._cluster.states[row]

    def promise_to(self, row: int) -> int | None:
        """Return the start that a job was last promised, or None."""
        return self._cluster.promises.get(row)

    def explain(self, row: int) -> Reason:
        """Return why a waiting job waits, by the state after the last pass."""
        state = self._cluster.states[row]
        if state is not State.QUEUED:
            return Reason("not-waiting", "engine", f"the job is {state.value}")
        view = self.view()
        if isinstance(self.policy, Explaining):
            reason: Reason = self._ask(lambda: self.policy.explain(view, row))  # type: ignore[attr-defined]
            return reason
        job, who = view.jobs[row], name_of(self.policy)
        if job.procs > view.free_procs:
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason("processors", who, text, {"procs": job.procs, "free": view.free_procs})
        return Reason("policy", who, f"{view.free_procs} processors are free, but {who} gave no start to it")

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Ask the policy something; an error inside it is a defect of the policy, and is told with its place."""
        try:
            return question()
        except QbatchError:
            raise
        except (Exception, SystemExit) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            when = "before the first event" if self.now is None else f"at {self.now / 1e6:.15g} s"
            text = " ".join(f"{type(error).__name__}: {error}".split())
            raise DecisionError(
                f"policy {name_of(self.policy)} failed {when}, {place.filename}:{place.lineno}: {text}"
            ) from error

    def _decisions(self, view: View) -> list[Action]:
        """Return what the policy decides: all of it, before any of it changes what the policy was looking at."""
        decisions: list[Action] = self._ask(lambda: list(self.policy.decide(view)))
        for action in decisions:
            if not isinstance(action, Action):
                raise DecisionError(f"policy {name_of(self.policy)} gave {action!r}, which is no action")
        return decisions

    def _view(
        self, finished: Sequence[int], withdrawn: Sequence[int], arrived: Sequence[int], only_arrivals: bool
    ) -> View:
        cluster = self._cluster
        ends, amounts = cluster.running_arrays()
        return View(
            now=self.now or 0,
            machine=self.machine,
            columns=cluster.columns,
            jobs=cluster.jobs_view,
            queue=cluster.queue,
            free=tuple(cluster.free),
            free_memory=tuple(cluster.free_memory),
            running=MappingProxyType(cluster.running),
            suspended=MappingProxyType(cluster.suspended),
            ends=ends,
            amounts=amounts,
            finished=tuple(finished),
            withdrawn=tuple(withdrawn),
            arrived=tuple(arrived),
            only_arrivals=only_arrivals,
            memory=self._memory,
        )

    def _change(self, row: int, cause: str) -> None:
        state = self._cluster.states[row] if 0 <= row < len(self._cluster.jobs) else None
        if state is None or (state, cause) not in TRANSITIONS:
            raise DecisionError(
                f"row {row} cannot be {cause} at {self.now}: it is {state.value if state else 'unknown'}"
            )
        self._cluster.states[row] = TRANSITIONS[state, cause]

    def _finish(self, row: int) -> None:
        self._change(row, "finished")
        run = self._cluster.stop(row, self.now or 0)
        self._cluster.give_back(run.allocation)

    def _withdraw(self, row: int) -> None:
        cluster = self._cluster
        was = cluster.states[row] if 0 <= row < len(cluster.jobs) else None
        self._change(row, "withdrawn")
        if was is State.QUEUED:
            cluster.leave_queue(row)
        else:
            run = cluster.suspended.pop(row)
            cluster.give_back(run.allocation, procs=False, memory=run.holds_memory)

    def _arrive(self, jobs: list[Job]) -> tuple[tuple[int, ...], tuple[tuple[int, Reason], ...]]:
        cluster = self._cluster
        arrived, refused = [], []
        for job in jobs:
            row = cluster.add_job(msgspec.structs.replace(job, row=len(cluster.jobs)))
            reason = refusal(self.machine, job)
            if reason is None:
                arrived.append(row)
            else:
                self._change(row, "reject")
                cluster.leave_queue(row)
                refused.append((row, reason))
        return tuple(arrived), tuple(refused)

    def _carry_out(self, action: Action) -> Action:
        checks.check(self._cluster, action, self.now or 0)
        match action:
            case Start():
                return self._start(action)
            case Suspend():
                self._suspend(action)
            case Resume():
                self._resume(action)
            case Resize():
                self._resize(action)
            case Reject():
                self._change(action.row, "reject")
                self._cluster.leave_queue(action.row)
            case Promise():
                self._cluster.promises[action.row] = action.at
            case WakeAt():
                self._wake_at.add(action.at)
        return action

    def _start(self, action: Start) -> Start:
        cluster = self._cluster
        allocation = action.allocation or cluster.place(cluster.jobs[action.row])
        self._change(action.row, "start")
        cluster.leave_queue(action.row)
        cluster.take(allocation)
        cluster.run(action.row, allocation, self.now or 0, 0, action.until)
        return msgspec.structs.replace(action, allocation=allocation)

    def _suspend(self, action: Suspend) -> None:
        cluster = self._cluster
        self._change(action.row, "suspend")
        run = cluster.stop(action.row, self.now or 0)
        cluster.give_back(run.allocation, memory=not action.keep_memory)
        cluster.suspended[action.row] = run._replace(holds_memory=action.keep_memory)

    def _resume(self, action: Resume) -> None:
        cluster = self._cluster
        self._change(action.row, "resume")
        run = cluster.suspended.pop(action.row)
        cluster.take(run.allocation, memory=not run.holds_memory)
        cluster.run(action.row, run.allocation, self.now or 0, run.done, action.until)

    def _resize(self, action: Resize) -> None:
        cluster = self._cluster
        self._change(action.row, "resize")
        until = cluster.until.get(action.row)
        run = cluster.stop(action.row, self.now or 0)
        old = run.allocation[0]
        new = (Chunk(old.host, action.procs, old.memory),)
        cluster.give_back(run.allocation)
        cluster.take(new)
        cluster.run(action.row, new, self.now or 0, run.done, until)
