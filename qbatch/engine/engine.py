"""The engine: events of one instant in, checked actions out.

``Engine.handle(at, events)`` is one round of docs/design.md, "The meaning of one instant".  If the
actions of its pass cause an event at the same instant, the driver calls it again with the same
``at``.  If the policy ``may_refuse``, that pass is the answer to the arrivals.  The engine never
knows how long a job will run: the driver (an executor, or a replay's calendar) launches each
``Start`` and ``Resume`` and reports the end with ``Finished``.  Outside a pass the engine answers
questions, which change nothing.
"""

from __future__ import annotations

import traceback
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np

from qbatch.engine import audit, checks, plain
from qbatch.engine.admission import Admission
from qbatch.engine.cluster import Cluster, ClusterWindow
from qbatch.engine.round import Round
from qbatch.engine.runs import STARTED, SUBMITTED, RunTables
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
from qbatch.model.errors import DecisionError, QbatchError, UsageError
from qbatch.model.events import (
    Event,
    Finished,
    Forced,
    HostClosed,
    HostOpened,
    Reserved,
    Returned,
    Submitted,
    Withdrawn,
)
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.phase import Phase
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.model.reservations import Window
from qbatch.planning.kernels.types import BoolArray, Int64Array
from qbatch.planning.partitions import has_limits
from qbatch.planning.policy import (
    Charging,
    Explaining,
    Phased,
    Policy,
    Queueing,
    Quoting,
    Remembering,
    check_resources,
    name_of,
)
from qbatch.planning.view import Run, View
from qbatch.planning.windows import number_of, windows_on

_NOTHING: tuple[int, ...] = ()
_QUEUED = CODES[State.QUEUED]

_MANY = 64
"""With more rows than this, changes are made to arrays instead of row by row."""


class _Happened(NamedTuple):
    """The events of one instant by kind.

    ``finished``: rows, ascending; ``ran``: the run times of them that the driver knows.
    ``withdrawn``: rows, ascending. ``returned``: rows of trial runs.  ``hosts``: closings and
    openings, in order.  ``jobs``: arrivals, in order of (submit, number).  ``forced``: starts by an
    operator.  ``reserved``: the reservations from now on.
    """

    finished: tuple[int, ...] = ()
    ran: Mapping[int, int] = MappingProxyType({})
    withdrawn: tuple[int, ...] = ()
    returned: Set[int] = frozenset()
    hosts: Sequence[HostClosed | HostOpened] = ()
    jobs: Sequence[Job] = ()
    forced: Sequence[Forced] = ()
    reserved: Reserved | None = None


_NO_EVENT = _Happened()


def _sorted_out(events: Iterable[Event]) -> _Happened:
    """Return the events of one instant by kind, each kind in order; a DecisionError for an event of
    an unknown type."""
    kinds: dict[type, list[Any]] = {kind: [] for kind in get_args(Event)}
    # If a host closes and opens at one instant, the last event counts.
    hosts: list[HostClosed | HostOpened] = []
    for event in events:
        if type(event) not in kinds:
            raise DecisionError(f"{event!r} is not an event")
        kinds[type(event)].append(event)
        if isinstance(event, HostClosed | HostOpened):
            hosts.append(event)
    return _Happened(
        finished=tuple(sorted(event.row for event in kinds[Finished])),
        ran={event.row: event.ran for event in kinds[Finished] if event.ran is not None},
        withdrawn=tuple(sorted(event.row for event in kinds[Withdrawn])),
        returned={event.row for event in kinds[Returned]},
        hosts=hosts,
        jobs=sorted((event.job for event in kinds[Submitted]), key=attrgetter("submit", "number")),
        forced=kinds[Forced],
        reserved=kinds[Reserved][-1] if kinds[Reserved] else None,
    )


class Engine:
    """One scheduling engine for all drivers; it keeps the record of its policy.

    ``is_audited``: check the invariants after every round (``AuditError``).  ``may_refuse``:
    whether the policy may refuse a job that the machine could run
    (:class:`qbatch.planning.policy.Policy`).  ``windows``: when hosts of the machine are reserved;
    they change with its reservations (:class:`qbatch.model.events.Reserved`).
    """

    def __init__(
        self,
        machine: Machine,
        policy: Policy,
        *,
        is_audited: bool = False,
        windows: Sequence[Window] = (),
    ) -> None:
        self.machine = machine
        self.policy = policy
        self.now: int | None = None
        self.windows = tuple(windows)
        reserved = windows_on(machine, self.windows)
        self._turns = deque(reserved.turns())
        self._cluster = Cluster(machine, reserved)
        self._window = ClusterWindow(self._cluster)
        self._admission = self._open_hosts = Admission(machine)
        check_resources(policy, machine)
        self._let_decide(policy)
        self._wake_at: list[int] = []  # ascending
        self._over: list[int] = []
        self._broken: list[int] = []
        self._late: list[int] = []
        self._watch = audit.Watch() if is_audited else None
        self._is_new_policy = False

    def _let_decide(self, policy: Policy) -> None:
        """Let a policy decide from here on, with an empty record."""
        self._memory = (
            self._ask(lambda: policy.new_memory(self.machine))
            if isinstance(policy, Remembering)
            else None
        )
        self.policy, self.may_refuse = policy, bool(getattr(policy, "may_refuse", False))
        self._cluster.is_malleable = getattr(policy, "is_malleable", False)

    def handle(
        self,
        at: int,
        events: Sequence[Event],
        arrivals: Sequence[Job] = (),
        finished: Sequence[int] = (),
    ) -> Round:
        """Apply the events that fall on the instant ``at`` and make one pass.

        ``arrivals``: jobs that arrive at it, in order of (submit, number), in addition to events;
        ``finished``: rows that end, ascending, in addition to events.

        Raises:
            DecisionError: time runs backwards, an event does not fit a job's state, or the policy
                asks for something that may not happen.
        """
        if self.now is not None and at < self.now:
            raise DecisionError(f"time runs backwards: {at} after {self.now}")
        self.now = at
        if self._over:
            self._forget()
        happened = _sorted_out(events) if events else _NO_EVENT
        finished, jobs = tuple(finished) or happened.finished, arrivals or happened.jobs
        cluster = self._cluster
        ended = [self._finish(row) for row in finished] if finished else ()
        requeued, stopped, held_back = _NOTHING, _NOTHING, _NOTHING
        if cluster.until or cluster.trials or happened.returned:
            requeued, stopped, held_back = self._end_quanta(at, happened.returned)
        while self._wake_at and self._wake_at[0] <= at:
            del self._wake_at[0]
        is_turn = happened.reserved is not None or (bool(self._turns) and self._turns[0] <= at)
        while self._turns and self._turns[0] <= at:
            self._turns.popleft()
        withdrawn, parked, returned, is_changed = _NOTHING, _NOTHING, _NOTHING, False
        begun: tuple[Action, ...] = ()
        if happened is not _NO_EVENT or self._is_new_policy or cluster.left_behind:
            withdrawn, begun, is_changed = self._apply_seldom_events(happened)
            parked, returned = self._park() if is_changed else (_NOTHING, _NOTHING)
        arrived, refused, late = self._arrive(jobs) if jobs else (_NOTHING, (), _NOTHING)
        if is_turn and (over := self._refuse_late(cluster.waiting.rows.tolist())):
            left = {row for row, _ in over}
            withdrawn = (*withdrawn, *(row for row in left if row not in arrived))
            arrived, refused = tuple(row for row in arrived if row not in left), (*refused, *over)
        only_arrivals = not (
            ended or stopped or requeued or happened.withdrawn or is_changed or is_turn
        )
        view = View(
            self._window,
            at,
            self.machine,
            cluster.waiting.rows,
            self._memory,
            finished,
            (*withdrawn, *parked),
            arrived,
            only_arrivals,
            is_changed,
            requeued,
            ended,
            happened.ran,
        )
        decisions = self._decisions(view)
        actions = tuple(map(self._carry_out, decisions)) if decisions else ()
        broken = _NOTHING
        if self._broken or self._late:
            broken, self._broken, self._late = (
                tuple(dict.fromkeys((*self._broken, *self._late))),
                [],
                [],
            )
        if late or held_back:
            arrived = tuple(sorted((*arrived, *late)))
            parked = (*parked, *late, *(row for row in held_back if row in cluster.parked))
        first = cluster.waiting.first()
        if begun:
            actions = (*begun, *actions)
        result = Round(
            at,
            finished,
            stopped,
            arrived,
            refused,
            actions,
            broken,
            first,
            parked,
            returned,
            requeued,
        )
        if self._watch is not None:
            self._watch.check(cluster, result)
        return result

    def _apply_seldom_events(
        self, happened: _Happened
    ) -> tuple[tuple[int, ...], tuple[Action, ...], bool]:
        """Withdraw jobs, close and open hosts, start forced jobs, and resume those that another
        policy left suspended.

        Return the rows that left the queue, the actions that were carried out, and whether the
        policy has to plan again.
        """
        cluster, forced = self._cluster, happened.forced
        withdrawn = self._withdraw_all(happened.withdrawn) if happened.withdrawn else ()
        is_changed = bool(happened.hosts) and self._close_and_open(happened.hosts)
        if happened.reserved is not None:
            is_changed = self._reserve(happened.reserved) or is_changed
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
            UsageError: it shares hosts among all jobs there, and the memory of suspended jobs may
                be more than the hosts have; or it does not know the resources of the machine.
        """
        check_resources(policy, self.machine)
        on_disk = sum(not run.holds_memory for run in self._cluster.suspended.values())
        if on_disk and self.machine.counts_memory and getattr(policy, "is_malleable", False):
            raise UsageError(
                f"policy {name_of(policy)} cannot take over: {on_disk} suspended "
                f"job{'' if on_disk == 1 else 's'} "
                "gave memory back, of which the hosts may not have enough for all; set another "
                "policy first, and this one "
                "when they run again"
            )

    def exchange_policy(self, policy: Policy) -> None:
        """Let another policy decide from here on, over the jobs that wait and run.

        It begins with an empty record, and in its first pass the machine counts as changed: it
        plans again from what runs and from the queue.  Promises and wake-up instants of the
        previous policy are forgotten.  Trial runs are over and their jobs wait again at the next
        pass.  A suspended job resumes as soon as its own processors are free; until then nothing
        else on its hosts is free to the new policy, and in each pass the machine counts as changed.
        A policy that is malleable or divides the time resumes the suspended jobs itself.

        Raises:
            QbatchError: the policy refuses the machine, or shares hosts among jobs of which some
                are suspended without their memory; nothing has changed.
        """
        self.check_exchange(policy)
        self._let_decide(policy)
        self._wake_at.clear()
        self._cluster.until.clear()
        self._cluster.promises.clear()
        self._is_new_policy = True
        # A policy that resizes jobs, or suspends and resumes them in turn, resumes these jobs in
        # its own way.
        takes_up = self._cluster.is_malleable or isinstance(policy, Phased)
        self._cluster.left_behind = set() if takes_up else set(self._cluster.suspended)
        if self._watch is not None:
            self._watch.promised.clear()

    def set_back(self, by: int) -> None:
        """Set every instant back by ``by`` microseconds, after instants were ahead of the real
        time; the next pass plans again.

        A policy's record may hold instants anywhere, so the policy begins with an empty one, and
        promises are made again.

        Raises:
            QbatchError: the policy cannot start again; nothing has changed.
        """
        self.exchange_policy(self.policy)
        cluster = self._cluster
        cluster.jobs[:] = [None if job is None else job_set_back(job, by) for job in cluster.jobs]
        submitted, started = cluster.table[SUBMITTED], cluster.table[STARTED]
        submitted -= by
        started[started >= 0] -= by
        cluster.runs.set_back(by)
        if self.now is not None:
            self.now -= by

    def next_timer(self) -> int | None:
        """Return the next instant at which ``handle`` must be called even without an event, or
        None."""
        instants = [*self._wake_at[:1], *self._cluster.until.values()]
        if self._turns and self.queue_length:
            instants.append(self._turns[0])
        return min(instants, default=None)

    def procs_of(self, row: int) -> int:
        return self._cluster.running[row].procs

    def state_of(self, row: int) -> State:
        return STATES[self._cluster.codes[row]]

    def is_trial(self, row: int) -> bool:
        """Return whether a row is on a trial run now."""
        return row in self._cluster.trials

    def promise_to(self, row: int) -> int | None:
        """Return the start that a job was last promised, or None."""
        return self._cluster.promises.get(row)

    def view(self) -> View:
        """Return the current state, as a policy would see it if nothing happened."""
        return View(
            self._window, self.now or 0, self.machine, self._cluster.waiting.rows, self._memory
        )

    def explain(self, row: int) -> Reason:
        """Return why a waiting job waits, by the state after the last pass; under time sharing also
        why a job is suspended."""
        state = STATES[self._cluster.codes[row]]
        is_own = state is State.SUSPENDED and row not in self._cluster.left_behind
        is_standing = is_own and isinstance(self.policy, Phased)
        if state is not State.QUEUED and not is_standing:
            return Reason("not-waiting", "engine", f"the job is {state.value}")
        if row in self._cluster.parked:
            closed = sorted(self._cluster.closed)
            names = ", ".join(self.machine.hosts[host].name for host in closed)
            why = self._open_hosts.refusal(self._cluster.job(row))
            text = (
                f"the open hosts could never hold it: {why.text if why else 'none is open'}; "
                f"closed: {names}"
            )
            return Reason(
                "hosts-closed",
                "engine",
                text,
                {**(why.numbers if why else {}), "closed": len(closed)},
            )
        view = self.view()
        if isinstance(self.policy, Explaining):
            said = self._ask(lambda: self.policy.explain(view, row))  # type: ignore[attr-defined]
            return checks.answer(said, Reason, name_of(self.policy))
        job, name = view.jobs[row], name_of(self.policy)
        if job.procs > view.free_procs:
            text = f"needs {job.procs} processors, {view.free_procs} are free"
            return Reason("processors", name, text, {"procs": job.procs, "free": view.free_procs})
        return Reason(
            "policy", name, f"{view.free_procs} processors are free, but {name} did not start it"
        )

    def quote(self, job: Job, at: int | None = None) -> Quote | None:
        """Return the outcome of a job that arrived at ``at`` (default: now), or None if the policy
        cannot predict it.

        The question leaves no trace.  For a job that only closed hosts could hold the answer is
        None.

        Raises:
            DecisionError: the policy failed, or changed its memory (seen by an audited engine).
        """
        reason = self._admission.refusal(job)
        if reason is not None:
            return Quote(reason)
        if not isinstance(self.policy, Quoting) or (
            self._cluster.closed and self._open_hosts.refusal(job) is not None
        ):
            return None
        policy, own = self.policy, type(self.policy).__module__
        view = View(
            self._window,
            max(self.now or 0, at or 0),
            self.machine,
            self._cluster.waiting.rows,
            self._memory,
        )
        before = plain.encode(self._memory, own) if self._watch is not None else b""
        quote = checks.answer(self._ask(lambda: policy.quote(view, job)), Quote, name_of(policy))
        if self._watch is not None and plain.encode(self._memory, own) != before:
            raise DecisionError(
                f"policy {name_of(policy)} changed its memory when it was asked for a quote"
            )
        return quote

    def phase(self) -> Phase | None:
        """Return the current phase, or None: the policy does not divide the time."""
        if not isinstance(self.policy, Phased):
            return None
        policy, view = self.policy, self.view()
        return checks.answer(self._ask(lambda: policy.phase(view)), Phase, name_of(policy))

    def host_queues(self) -> list[list[int]] | None:
        """Return by host the rows that wait for it, in order, or None: the policy keeps no host
        queues."""
        if not isinstance(self.policy, Queueing):
            return None
        policy, view = self.policy, self.view()
        return checks.answer(self._ask(lambda: policy.host_queues(view)), list, name_of(policy))

    def price_of(self, row: int) -> int | None:
        """Return the price of an accepted job in millionths of a processor-hour, or None: the
        policy has none."""
        if not isinstance(self.policy, Charging):
            return None
        policy, view = self.policy, self.view()
        price = self._ask(lambda: policy.price(view, row))
        return checks.answer(price, int | None, name_of(policy))  # type: ignore[arg-type]

    def allocation_for(self, row: int, hosts: Set[int] | None = None) -> Allocation:
        """Return the allocation with which a waiting job could start now (on these hosts, if
        given); empty if there is none.

        Resources that a suspended job had are not free: the policy counts on them.
        """
        cluster = self._cluster
        free = list(cluster.free_for(cluster.job(row), self.now or 0))
        free_memory = list(cluster.free_memory)
        for run in cluster.suspended.values():
            for host, width, _ in parts_of(run.allocation):
                free[host] = max(free[host] - width, 0)
        if hosts is not None:
            free = [amount if host in hosts else 0 for host, amount in enumerate(free)]
        if row in cluster.parked:
            return ()
        return cluster.kind.allocation(
            cluster.machine, free, free_memory, cluster.job(row), cluster.free_resources
        )

    def _ask(self, question: Callable[[], Any]) -> Any:
        """Ask the policy; an error inside it is reported as the policy's, with its place in the
        policy's code."""
        try:
            return question()
        except QbatchError:
            raise
        except (Exception, SystemExit) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            when = "before the first event" if self.now is None else f"at {self.now / 1e6:.15g} s"
            text = " ".join(f"{type(error).__name__}: {error}".split())
            where = f"{when}, {place.filename}:{place.lineno}"
            raise DecisionError(f"policy {name_of(self.policy)} failed {where}: {text}") from error

    def _decisions(self, view: View) -> list[Action]:
        """Return all decisions of the policy, before any of them changes the state that it was
        looking at."""
        decisions: list[Action] = self._ask(lambda: list(self.policy.decide(view)))
        for action in decisions:
            if type(action) not in checks.CHECKS:
                raise DecisionError(
                    f"policy {name_of(self.policy)} gave {action!r}, which is not an action of "
                    "qbatch.model.actions"
                )
        return decisions

    def _take_up(self) -> Iterator[Action]:
        """Resume the jobs that an earlier policy left suspended, in order of sequence, if their
        processors are free.

        Those of jobs that the current policy has suspended are not free: the policy counts on them.
        """
        cluster = self._cluster
        left_behind = cluster.left_behind
        left_behind &= set(cluster.suspended)
        free, free_memory = list(cluster.free), cluster.free_memory
        for row in cluster.suspended.keys() - left_behind:
            for host, width, _ in parts_of(cluster.suspended[row].allocation):
                free[host] -= width
        for row in sorted(left_behind):
            run = cluster.suspended[row]
            parts = list(parts_of(run.allocation))
            has_memory = run.holds_memory or (
                all(size <= free_memory[host] for host, _, size in parts)
                and cluster.lacks(run.allocation) is None
            )
            if has_memory and all(width <= free[host] for host, width, _ in parts):
                left_behind.remove(row)
                for host, width, _ in parts:
                    free[host] -= width
                yield self._carry_out(Resume(row))

    def _change(self, row: int, cause: str) -> None:
        """Change the state of a job; refuse what the table of transitions does not have."""
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

    def _end_quanta(
        self, at: int, returned: Set[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """End what was to run until now; return the trial runs that wait again, the rows that were
        suspended, and those of the former that only closed hosts could hold."""
        cluster = self._cluster
        due = {row for row, until in cluster.until.items() if until <= at}
        over = cluster.trials if self._is_new_policy else due & cluster.trials
        over = over | returned
        for row in sorted(due | over):
            if row in over:
                self._give_up(row)
            else:
                self._suspend(Suspend(row))
        requeued = tuple(sorted(over))
        return requeued, tuple(sorted(due - over)), self._requeue(requeued)

    def _give_up(self, row: int) -> None:
        """End a trial run; its work is discarded."""
        if row not in self._cluster.trials:
            raise DecisionError(f"row {row} cannot be returned at {self.now}: it is not a trial")
        self._change(row, "returned")
        self._cluster.runs.give_up(row, self.now or 0)

    def _requeue(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """Put the jobs of trial runs that are over back into the queue; return those that only
        closed hosts could hold."""
        cluster = self._cluster
        if not rows:
            return _NOTHING
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
        if (
            len(rows) > _MANY
            and not cluster.closed
            and rows[0] >= 0
            and rows[-1] < len(cluster.codes)
        ):
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
            # Without closed hosts none is.
            is_parked = bool(cluster.closed) and row in cluster.parked
            cluster.leave_queue(row)
            return not is_parked
        cluster.runs.drop(row, self.now or 0)
        return True

    def _close_and_open(self, changes: Sequence[HostClosed | HostOpened]) -> bool:
        """Close and open hosts; return whether the set of closed hosts changed."""
        closed = set(self._cluster.closed)
        for event in changes:
            if not 0 <= event.host < len(self.machine.hosts):
                raise DecisionError(
                    f"there is no host {event.host} ({len(self.machine.hosts)} hosts)"
                )
            if isinstance(event, HostClosed):
                closed.add(event.host)
            else:
                closed.discard(event.host)
        if closed == self._cluster.closed:
            return False
        self._cluster.set_closed(closed)
        self._open_hosts = Admission(self.machine, self._cluster.closed)
        return True

    def _reserve(self, event: Reserved) -> bool:
        """Take over other reservations; return whether the policy has to plan again.

        If the same reservations only go on further into the future, no plan changes that ends
        before the first new time.
        """
        cluster = self._cluster
        is_same = event.reservations == self.machine.reservations
        new = set(event.windows).difference(self.windows)
        self.machine = msgspec.structs.replace(self.machine, reservations=event.reservations)
        self.windows = event.windows
        windows = windows_on(self.machine, self.windows)
        self._turns = deque(turn for turn in windows.turns() if turn > (self.now or 0))
        cluster.set_reservations(self.machine, windows)
        self._admission = Admission(self.machine)
        self._open_hosts = Admission(self.machine, cluster.closed)
        first = min((window.begin for window in new), default=None)
        return not is_same or (
            first is not None
            and any(
                start + cluster.job(row).estimate > first for row, start in cluster.promises.items()
            )
        )

    def _park(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Park jobs that need closed hosts, bring back those that no longer do; return both."""
        cluster = self._cluster
        queue, parked = cluster.waiting.rows, cluster.parked.rows
        leave, back = queue[~self._could_run(queue)], parked[self._could_run(parked)]
        if len(leave) or len(back):
            cluster.waiting.replace(
                np.union1d(np.setdiff1d(queue, leave, assume_unique=True), back)
            )
            cluster.parked.replace(
                np.union1d(np.setdiff1d(parked, back, assume_unique=True), leave)
            )
        return tuple(leave.tolist()), tuple(back.tolist())

    def _could_run(self, rows: Int64Array, hosts: Admission | None = None) -> BoolArray:
        """Return for each row whether the open hosts, or others, could hold it."""
        cluster, hosts = self._cluster, hosts or self._open_hosts
        if cluster.requests is not None:
            return hosts.holds_chunks(cluster.requests.arrays.arrays, rows)
        return hosts.holds(cluster.columns.asked[:, rows])

    def _arrive(
        self, jobs: Sequence[Job]
    ) -> tuple[tuple[int, ...], tuple[tuple[int, Reason], ...], tuple[int, ...]]:
        """Give rows to arrivals; return those that joined the queue, that were refused, that were
        parked."""
        cluster = self._cluster
        first, replace = len(cluster.jobs), msgspec.structs.replace
        jobs = [
            job if job.row == row else replace(job, row=row) for row, job in enumerate(jobs, first)
        ]
        cluster.add(jobs)
        doubtful = jobs
        if len(jobs) > 1 and not has_limits(self.machine):
            # The columns alone show that most fit.
            columns, places = cluster.columns, np.arange(first, first + len(jobs))
            fits = (
                (columns.procs[first:] >= 1)
                & (columns.estimate[first:] >= 0)
                & self._could_run(places, self._admission)
            )
            doubtful = [
                job
                for job, does_fit in zip(jobs, fits.tolist(), strict=True)
                if job.resources or job.reservation or not does_fit
            ]
        refused = [
            (job.row, reason)
            for job in doubtful
            if (reason := self._admission.refusal(job) or self._is_too_late(job)) is not None
        ]
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
        self._forget_requests()
        return tuple(arrived), tuple(refused), tuple(parked)

    def _is_too_late(self, job: Job) -> Reason | None:
        """Return that no window of the reservation of a job is left, or None."""
        if not job.reservation:
            return None
        number = number_of(self.machine, job)
        if number >= 0 and self.machine.reservations[number].is_flexible:
            return None
        end = self._cluster.windows.last_end(number) if number >= 0 else -1
        if end > (self.now or 0):
            return None
        text = f"its reservation {job.reservation} has no window left"
        return Reason("reservation-over", "admission", text, {"last_end": end})

    def _refuse_late(self, rows: Sequence[int]) -> list[tuple[int, Reason]]:
        """Refuse waiting jobs of which the reservation is over, and return them."""
        over = [
            (row, reason)
            for row in rows
            if (reason := self._is_too_late(self._cluster.job(row))) is not None
        ]
        for row, _ in over:
            self._change(row, "reject")
            self._cluster.leave_queue(row)
            self._over.append(row)
        return over

    def _forget_requests(self) -> None:
        """If there are many, forget the requests of jobs that do not wait and cannot wait again."""
        requests = self._cluster.requests
        if requests is not None and requests.is_full():
            requests.renew(map(self._cluster.job, self._cluster.requesting_rows().tolist()))

    def _carry_out(self, action: Action) -> Action:
        found = checks.CHECKS[type(action)](self._cluster, action, self.now or 0)
        if type(action) is Start:
            return self._start(action, found)
        if type(action) is Promise:
            self._cluster.promises[action.row] = action.at
        elif type(action) is WakeAt:
            place = bisect_left(self._wake_at, action.at)
            if self._wake_at[place : place + 1] != [action.at]:
                self._wake_at.insert(place, action.at)
        else:
            self._carry_out_seldom(action)
        return action

    def _carry_out_seldom(self, action: Action) -> None:
        cluster, now = self._cluster, self.now or 0
        match action:
            case Break(row=row):
                del cluster.promises[row]
                self._broken.append(row)
            case Suspend():
                self._suspend(action)
            case Resume(row=row):
                self._change(row, "resume")
                cluster.runs.resume(
                    row, cluster.width(row, cluster.suspended[row].procs), now, action.until
                )
            case Resize(row=row):
                self._change(row, "resize")
                cluster.runs.resize(row, action.procs, now)
            case Reject(row=row):
                self._change(row, "reject")
                cluster.leave_queue(row)
                self._over.append(row)

    def _start(self, action: Start, allocation: Allocation) -> Start:
        cluster = self._cluster
        self._change(action.row, "start")
        self._leave_queue(action.row)
        now, procs = self.now or 0, procs_of(allocation)
        if self.machine.chunked:
            procs = cluster.width(action.row, procs)
        cluster.runs.start(
            action.row, allocation, procs, now, action.until, is_trial=action.is_trial
        )
        if now > cluster.promises.get(action.row, now) and not action.is_trial:
            self._late.append(action.row)
        return (
            action
            if action.allocation is allocation
            else msgspec.structs.replace(action, allocation=allocation)
        )

    def _leave_queue(self, row: int) -> None:
        self._cluster.leave_queue(row)

    def _suspend(self, action: Suspend) -> None:
        self._change(action.row, "suspend")
        self._cluster.runs.suspend(action.row, self.now or 0, keeps_memory=action.keep_memory)


def job_set_back(job: Job, by: int) -> Job:
    """Return a job with its submission and deadline set back by ``by`` microseconds."""
    deadline = None if job.deadline is None else job.deadline - by
    return msgspec.structs.replace(job, submit=job.submit - by, deadline=deadline)
