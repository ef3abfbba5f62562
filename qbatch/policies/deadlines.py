"""Scheduling with deadlines: a job is accepted if a plan keeps its deadline and all accepted ones;
else it is refused.

Source: Islam, Balaji, Sadayappan and Panda 2003 (QoPS, and the modified slack-based and real-time
schedulers with which it is compared); Talby and Feitelson 1999 for slack-based backfilling.  Exact
readings, by rule: docs/spec/papers.md 2.8.

The promise to a job is its deadline, as the latest start that keeps it; planned starts move both
ways and are a forecast.  A promise that cannot be kept is taken back, once, and the job is promised
nothing more until it starts (rule 11). Slack-based backfilling knows no deadlines: it promises each
job its first planned start plus a slack, and refuses none.  A job without a deadline gets an
artificial one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec
import numpy as np

from qbatch.model.actions import Action, Break, Promise, Reject, Start, WakeAt
from qbatch.model.errors import UsageError
from qbatch.model.job import Job
from qbatch.model.machine import Machine
from qbatch.model.quote import Quote
from qbatch.model.reasons import COULD_START, Reason
from qbatch.model.record import Workload
from qbatch.planning.kernels import deadline_plan as plan_kernels
from qbatch.planning.kernels import deadlines as searches
from qbatch.planning.kernels import profile as profiles
from qbatch.planning.kernels.deadline_plan import DAY, HOUR
from qbatch.planning.kernels.entries import entries_to, entry_to, uncompiled
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import Needs
from qbatch.planning.kernels.types import Float64Array, Int64Array, RecordArray
from qbatch.planning.policy import Compiled
from qbatch.planning.resources.host_plan import booked_end
from qbatch.planning.view import View

_plan = entries_to(plan_kernels)
_profiles = entries_to(profiles)
# Unbounded whole numbers.
_latest_of, _slack_of = uncompiled(plan_kernels.latest_of), uncompiled(plan_kernels.slack_of)
_next_position = entry_to(searches.next_position)

SECOND = 1_000_000

_TRIES = 20
# The number of times that the last candidate of a quote is moved later if a search refuses all
# (rule 10).


class DeadlinePlan:
    """The memory of a policy: the accepted waiting jobs with their planned starts, and the sums
    from which slack is computed.

    ``jobs``, ``weights``, ``count``: the plan, as the kernels take it.  ``waited``, ``ended``: the
    sum of the first-start waits of the jobs that have ended, in microseconds, and their number.
    ``priorities``, ``submitted``: the sum of the priorities of all jobs so far (in parts), and
    their number. ``parked``: the latest starts of jobs that only closed hosts could hold.
    ``prices``: of the accepted jobs that have not ended, by row, as fixed at acceptance.
    ``was_late``: a running job had outlived its estimate at the last pass. ``procs``: of the
    machine.
    """

    def __init__(self, procs: int) -> None:
        self.procs = procs
        self.jobs = np.zeros(16, searches.PLANNED_JOB)
        self.weights: Float64Array = np.zeros(16)
        self.count = 0
        self.waited = 0
        self.ended = 0
        self.priorities = 0
        self.submitted = 0
        self.parked: dict[int, int] = {}
        self.prices: dict[int, int] = {}
        self.was_late = False

    @property
    def rows(self) -> list[int]:
        """The rows in the plan, in order of planned start."""
        rows: list[int] = self.jobs["row"][: self.count].tolist()
        return rows

    def slot_of(self, row: int) -> int | None:
        """Return the slot of a row, or None."""
        found = np.flatnonzero(self.jobs["row"][: self.count] == row)
        return int(found[0]) if len(found) else None

    def of(self, row: int, name: str) -> int:
        """Return a field of ``PLANNED_JOB`` of a waiting row."""
        slot = self.slot_of(row)
        assert slot is not None, f"row {row} is not in the plan"
        return int(self.jobs[name][slot])

    def drop(self, row: int) -> None:
        """Remove a row."""
        slot = self.slot_of(row)
        if slot is not None:
            _plan.leave(self.jobs, self.weights, self.count, slot)
            self.count -= 1

    def grow(self) -> None:
        """Make space for one more slot."""
        if self.count == len(self.jobs):
            self.jobs = np.concatenate([self.jobs, np.zeros_like(self.jobs)])
            self.weights = np.concatenate([self.weights, np.zeros_like(self.weights)])

    def copy(self) -> DeadlinePlan:
        """Return a separate plan with the same jobs."""
        other = DeadlinePlan(self.procs)
        other.__dict__.update(self.__dict__)
        other.jobs, other.weights, other.prices = (
            self.jobs.copy(),
            self.weights.copy(),
            dict(self.prices),
        )
        return other


class DeadlineScheduler:
    """QoPS, MSB, MRT or slack-based backfilling (``scheme``), by the parameters of
    :mod:`qbatch.policies.registry`."""

    knows_resources = False

    def __init__(
        self,
        name: str,
        scheme: str,
        *,
        violations: int = 0,
        backtracks: int = 0,
        key: str = "llf",
        placing: str = "sorted",
        order: str = "",
        price: str = "fraction",
        others: str = "relax",
        factor: float = 5.0,
        administrative: float = 1.0,
        urgency: float = 1.0,
        crowding: float = 1.0,
    ) -> None:
        self.name = name
        self.scheme = ("qops", "msb", "mrt", "slack").index(scheme)
        # Which ignores them.
        self.takes_deadlines = self.may_refuse = self.scheme != plan_kernels.SLACK_BASED
        keys = {"llf": searches.LLF, "edf": searches.EDF, "ast": searches.BY_START}
        placings = {"head": searches.HEAD, "sorted": searches.SORTED, "both": searches.BOTH}
        prices = {
            "fraction": searches.FRACTION,
            "delay": searches.DELAY,
            "makespan": searches.MAKESPAN,
        }
        thousandths = round(factor * 1000)
        self._rules = {
            "scheme": self.scheme,
            "key": keys[order or key] if self.takes_deadlines else searches.BY_START,
            "placing": placings[placing],
            "limit": violations or backtracks,
            "price": prices[price] if self.takes_deadlines else searches.WEIGHTED,
            "relaxes": int(others == "relax"),
            "factor": thousandths if self.takes_deadlines else 5000,
            "slack_factor": 3000 if self.takes_deadlines else thousandths,
        }
        # In thousandths: the priority of slack-based backfilling, the weights of the price.
        self._administrative = round(administrative * 1000)
        self._urgency, self._crowding = (
            Fraction(round(urgency * 1000), 1000),
            Fraction(round(crowding * 1000), 1000),
        )
        self._admit = entry_to(plan_kernels.admission_by(self.scheme))
        self.is_planned = entry_to(plan_kernels.search_by(self.scheme))

    def rules_on(self, procs: int) -> RecordArray:
        """Return the rules as a record of the kernels, for a machine of ``procs`` processors."""
        values = {**self._rules, "machine": procs}
        return np.array(
            [tuple(values[name] for name in plan_kernels.RULES.names or ())], plan_kernels.RULES
        )

    def priority_of(self, job: Job) -> int:
        """Return the priority of a job, its own and the administrative one, in parts (rule 12)."""
        return 1000 * (1024 + job.priority) + 1024 * self._administrative

    def compiled_on(self, machine: Machine) -> Compiled | None:
        """Return the kernel that makes the same decisions on a pool."""
        decide = plan_kernels.deadline_admission(self.scheme)
        needs = Needs(has_queue=False, has_timers=True, reads_ended=True)
        return Compiled(decide, needs, self._tables, refusal=self._refusal_of_row, is_planned=True)

    def _tables(self, work: Workload, machine: Machine) -> plan_kernels.DeadlineTables:
        """Return an empty plan for the jobs of a workload, which all have the same priority."""
        rows = len(work)
        space = 4 * min(rows, machine.procs) + 64
        return plan_kernels.DeadlineTables(
            rules=self.rules_on(machine.procs),
            totals=np.zeros(1, plan_kernels.TOTALS),
            deadline=np.ascontiguousarray(work.deadline, np.int64),
            base=uncompiled(profiles.new_profile)(
                machine.procs, int(work.submit[0]) if rows else 0, space
            ),
            jobs=np.zeros(rows + 1, searches.PLANNED_JOB),
            weights=np.full(rows + 1, (1000 * 1024 + 1024 * self._administrative) / PARTS),
        )

    def _refusal_of_row(
        self, work: Workload, row: int, memory: plan_kernels.DeadlineTables
    ) -> tuple[str, str]:
        """Return why a job of a workload was refused."""
        submit, estimate, until = (
            int(work.submit[row]),
            int(work.estimate[row]),
            int(work.deadline[row]),
        )
        latest = int(_latest_of(memory.rules, submit, estimate, until))
        procs, deadline = int(work.procs[row]), None if until < 0 else until
        job = Job(number=0, submit=submit, procs=procs, estimate=estimate, deadline=deadline)
        reason = refusal_of(self.name, submit, job, latest)
        return reason.code, reason.text

    def new_memory(self, machine: Machine) -> DeadlinePlan:
        """Return an empty plan."""
        if not machine.is_one_pool:
            raise UsageError(
                f"policy {self.name} plans with the number of free processors alone, and on this "
                "machine hosts matter; write "
                "spans = true for the pool, without memory, or choose another policy"
            )
        return DeadlinePlan(machine.procs)

    def decide(self, view: View) -> Iterable[Action]:
        """Make one pass (rule 1): forget ended jobs, compress or repair the plan, start what is
        due, judge the arrivals."""
        memory: DeadlinePlan = view.memory
        work = _Pass(self, view, memory)
        work.forget()
        work.bring_up_to_date()
        work.start_due()
        if view.is_machine_changed:
            # Hosts have opened, or another policy ran before: add the waiting jobs that are in no
            # plan, one by one.
            known = {*memory.rows, *view.arrived, *work.started}
            for row in view.queue.tolist():
                if row not in known:
                    work.judge_again(view.jobs[row])
                    work.start_due()
        for row in view.arrived:
            work.judge(view.jobs[row])
            work.start_due()
        if memory.count:
            # Wake at the next planned start, and when a running job reaches its estimate while
            # others wait.
            wakes = {int(memory.jobs["start"][0]), *view.ends[view.ends > view.now][:1].tolist()}
            work.actions += [WakeAt(at) for at in sorted(wakes)]
        return work.actions

    def explain(self, view: View, row: int) -> Reason:
        """Return when a waiting job is planned to start, and its latest start."""
        memory: DeadlinePlan = view.memory
        start, latest = memory.of(row, "start"), memory.of(row, "latest")
        if start <= view.now:
            return Reason(COULD_START, self.name, "could start now")
        numbers = {"planned": start, "procs": view.jobs[row].procs, "free": view.free_procs}
        text = f"planned for {start / 1e6:.15g} s"
        if latest < FOREVER and row not in view.promises:
            text += "; what it was promised was taken back, and this start may still move"
        elif latest < FOREVER:
            numbers |= {"latest_start": latest, "slack": latest - start}
            text += f", {(latest - start) / 1e6:.15g} s before the latest start that keeps what it was promised"
        return Reason(
            "planned", self.name, text, numbers, tuple(memory.rows[: memory.rows.index(row)][:10])
        )

    def quote(self, view: View, job: Job) -> Quote:
        """Return the outcome of a job that arrived now, and the earliest deadline that would be
        accepted (rule 10)."""
        memory: DeadlinePlan = view.memory.copy()
        job = msgspec.structs.replace(job, row=len(view.jobs))
        base = running_profile(view)
        earliest = (
            _earliest_deadline(self, view.now, base, memory, job) if self.takes_deadlines else None
        )
        memory.submitted += 1
        memory.priorities += self.priority_of(job)
        reason = self.admit(view.now, base, memory, job)
        if reason is not None:
            return Quote(reason, earliest_deadline=earliest)
        start = memory.of(job.row, "start")
        return Quote(None, start, start + job.estimate, earliest, memory.prices.get(job.row))

    def price(self, view: View, row: int) -> int | None:
        """Return the price of an accepted job, as fixed at acceptance."""
        price: int | None = view.memory.prices.get(row)
        return price

    def enter(self, memory: DeadlinePlan, job: Job, latest: int) -> None:
        """Write a job into the slot after the plan; it is not in the plan yet."""
        memory.grow()
        slack = 0
        if not self.takes_deadlines:  # rules 12 and 13; the job counts as submitted
            counted = (
                memory.waited,
                memory.ended,
                job.procs,
                self.priority_of(job),
                memory.priorities,
            )
            slack = _slack_of(
                self._rules["slack_factor"], memory.procs, *counted, max(memory.submitted, 1)
            )
        _plan.enter(
            memory.jobs, memory.count, job.row, job.procs, job.estimate, job.submit, latest, slack
        )
        memory.weights[memory.count] = self.priority_of(job) / PARTS

    def admit(self, now: int, base: Int64Array, memory: DeadlinePlan, job: Job) -> Reason | None:
        """Add a job to the plan, or return why it is refused."""
        deadline = job.deadline if self.takes_deadlines else None
        rules = self.rules_on(memory.procs)
        latest = int(
            _latest_of(rules, job.submit, job.estimate, -1 if deadline is None else deadline)
        )
        self.enter(memory, job, latest)
        price = self._price(now, base, memory, job) if self.takes_deadlines and latest >= now else 0
        plan = memory.jobs, memory.weights, memory.count
        if not self._admit(now, base, *plan, rules, deadline is not None):
            return refusal_of(self.name, now, job, latest)
        memory.count += 1
        if self.takes_deadlines:
            memory.prices[job.row] = price
        return None

    def _price(self, now: int, base: Int64Array, memory: DeadlinePlan, job: Job) -> int:
        """Return the price of the job in the slot after the plan: millionths of a processor-hour,
        rounded half to even.

        price = processors x estimate in hours x (1 + urgency s) x (1 + crowding u)
        (docs/spec/papers.md 2.8, rule 14). s = max(0, 1 - (deadline - submit) / (E - submit)),
        where E is the earliest end of the job in the plan without it; s is 0 without a deadline.  u
        is the share of the machine that is booked in the 24 hours from now.  The paper's authors
        left charging open; this model is our own.
        """
        booked = _plan.profile_of_plan(base, memory.jobs, memory.count)
        start = int(_plan.earliest_of(booked, memory.jobs, memory.count, now))
        needed, urgent = start + job.estimate - job.submit, Fraction(0)
        if job.deadline is not None and needed > 0:
            urgent = max(urgent, 1 - Fraction(job.deadline - job.submit, needed))
        until, whole = now + DAY, memory.procs * DAY
        times = [*booked[profiles.TIME, 1 : int(booked[0, 0]) + 1].tolist(), until]
        free = booked[profiles.FREE, 1 : int(booked[0, 0]) + 1].tolist()
        spans = zip(times, times[1:], free, strict=False)
        area = sum(
            amount * max(min(end, until) - max(begin, now), 0) for begin, end, amount in spans
        )
        price = Fraction(job.procs * job.estimate, HOUR) * (1 + self._urgency * urgent)
        return round(price * (1 + self._crowding * Fraction(whole - area, whole)) * 1_000_000)

    def place(self, now: int, base: Int64Array, memory: DeadlinePlan, job: Job, latest: int) -> int:
        """Put an admitted job into the plan at its earliest start, whatever its latest start;
        return that start."""
        self.enter(memory, job, FOREVER)
        start = int(_plan.starts_after_each(now, base, memory.jobs, memory.count)[-1])
        memory.jobs["start"][memory.count] = start
        memory.jobs["latest"][memory.count] = max(start, latest)
        memory.count += 1
        _plan.put_in_order(memory.jobs, memory.weights, memory.count)
        return start


def refusal_of(name: str, now: int, job: Job, latest: int) -> Reason:
    """Return why a job with the latest start ``latest`` is refused."""
    numbers = {"deadline": latest + job.estimate, "estimate": job.estimate, "procs": job.procs}
    if latest < now:
        text = f"it would end {(now - latest) / 1e6:.15g} s after its deadline if it started now"
        return Reason("deadline-too-soon", name, text, numbers)
    what = (
        "its deadline"
        if job.deadline is not None
        else "a deadline as late as a job without one gets"
    )
    text = f"no plan was found that keeps {what} and those that were accepted before"
    return Reason("deadline-not-kept", name, text, numbers)


PARTS = 1_024_000
"""Priorities are whole numbers in this fraction of 1: a user's come in 1,024ths, administrative
ones in thousandths."""


def _earliest_deadline(
    policy: DeadlineScheduler, now: int, base: Int64Array, memory: DeadlinePlan, job: Job
) -> int | None:
    """Return the earliest deadline that would be accepted, a whole second, or None (rule 10).  The
    plan does not change."""
    policy.enter(memory, job, FOREVER)
    rules, count = policy.rules_on(memory.procs), memory.count
    planned = np.empty(count + 1, np.int64)

    def is_accepted(deadline: int) -> bool:
        memory.jobs["latest"][count] = deadline - job.estimate
        return bool(
            policy.is_planned(now, base, memory.jobs, memory.weights, count, rules, planned)
        )

    starts = _plan.starts_after_each(now, base, memory.jobs, count)
    kept = [0]
    while kept[-1] < count:
        kept.append(int(_next_position(kept[-1], count)))
    candidates = sorted(
        {-(-(int(starts[each]) + job.estimate) // SECOND) * SECOND for each in kept}
    )
    distance = candidates[-1] - now
    further = (
        -(-(now + (distance << doubling)) // SECOND) * SECOND for doubling in range(1, _TRIES + 1)
    )
    refused = (now + job.estimate - 1) // SECOND * SECOND
    for candidate in (*candidates, *further):
        if candidate < FOREVER and is_accepted(candidate):
            accepted = candidate
            break
        refused = candidate
    else:
        return None
    while accepted - refused > SECOND:
        middle = (refused + accepted) // 2 // SECOND * SECOND
        if is_accepted(middle):
            accepted = middle
        else:
            refused = middle
    return accepted


def running_profile(view: View) -> Int64Array:
    """Return what the running jobs leave from now on: each holds its processors for at least a
    second (rule 2)."""
    runs = list(view.running.values())
    base: Int64Array = _profiles.new_profile(view.free_procs, view.now, 2 * len(runs) + 16)
    for run in runs:
        _profiles.add(base, booked_end(view, run), FOREVER, view.open_procs_of(run))
    return base


class _Pass:
    """One pass: the profile of the running jobs, and the actions so far.

    ``promised``: by row, whether a promise holds now, for rows that this pass promised or broke.
    """

    def __init__(self, policy: DeadlineScheduler, view: View, memory: DeadlinePlan) -> None:
        self.policy, self.view, self.memory = policy, view, memory
        self.base = running_profile(view)
        self.actions: list[Action] = []
        self.started: set[int] = set()
        self.promised: dict[int, bool] = {}

    def forget(self) -> None:
        """Remove ended and withdrawn jobs from the plan and the sums."""
        view, memory = self.view, self.memory
        parked = set(view.parked.tolist()) if view.withdrawn else set()
        for row in view.withdrawn:
            if row in parked and memory.slot_of(row) is not None:
                memory.parked[row] = memory.of(row, "latest")
            elif row not in parked:
                memory.parked.pop(row, None)
            memory.drop(row)
        for row in (*view.withdrawn, *view.finished):
            if row not in parked:
                memory.prices.pop(row, None)
        started = view.columns.started
        for row in view.finished:
            memory.waited += int(started[row]) - view.jobs[row].submit
            memory.ended += 1

    def bring_up_to_date(self) -> None:
        """Compress the plan after an early end, or rebuild it if what runs is not what it was made
        with."""
        view, memory = self.view, self.memory
        is_late, was_late = view.is_late, memory.was_late
        memory.was_late = is_late
        # Rebuild it, and take back each promise that it does not keep (rule 11)
        if view.is_machine_changed or is_late:
            breached = np.empty(memory.count, np.int64)
            promised = dict(
                zip(memory.rows, memory.jobs["latest"][: memory.count].tolist(), strict=True)
            )
            count = _plan.repair(
                view.now, self.base, memory.jobs, memory.weights, memory.count, breached
            )
            for row in sorted(breached[:count].tolist()):
                self._break(row, promised[row], memory.of(row, "latest"))
        elif (
            was_late
            or view.withdrawn
            or any(
                int(view.columns.started[row]) + view.jobs[row].estimate > view.now
                for row in view.finished
            )
        ):
            _plan.compress(view.now, self.base, memory.jobs, memory.weights, memory.count)

    def _is_promised(self, row: int) -> bool:
        return self.promised.get(row, row in self.view.promises)

    def _break(self, row: int, promised: int, planned: int) -> None:
        """Take a promise back, unless that was done before."""
        text = (
            f"it can start only {(planned - promised) / 1e6:.15g} s after the latest start "
            "that "
            "it was promised"
        )
        reason = Reason(
            "promise-broken", self.policy.name, text, {"promised": promised, "planned": planned}
        )
        if self._is_promised(row):
            self.actions.append(Break(row, reason))
        self.promised[row] = False

    def start_due(self) -> None:
        """Start the jobs planned for now."""
        memory, now = self.memory, self.view.now
        while memory.count and memory.jobs["start"][0] <= now:
            latest = int(memory.jobs["latest"][0])
            if not _profiles.has_room(self.base, 1):
                self.base = _profiles.grown(self.base)
            row = _plan.take_due(now, self.base, memory.jobs, memory.weights, memory.count)
            memory.count -= 1
            if latest < FOREVER and not self._is_promised(row):
                # Its promise was taken back; the start is a new one.
                self.actions.append(Promise(row, now))
            self.actions.append(Start(row))
            self.started.add(row)

    def judge(self, job: Job) -> None:
        """Accept an arrival into the plan, or refuse it."""
        memory = self.memory
        memory.submitted += 1
        memory.priorities += self.policy.priority_of(job)
        if job.is_admitted:
            self.judge_again(job)
            return
        reason = self.policy.admit(self.view.now, self.base, memory, job)
        if reason is not None:
            self.actions.append(Reject(job.row, reason))
            return
        self._promise(job.row, memory.of(job.row, "latest"))

    def judge_again(self, job: Job) -> None:
        """Add an earlier accepted job that is not in the plan: it is never refused, but its promise
        may break."""
        memory, now = self.memory, self.view.now
        parked = memory.parked.pop(job.row, None)
        if parked is None and self.policy.admit(now, self.base, memory, job) is None:
            self._promise(job.row, memory.of(job.row, "latest"))
            return
        if parked is None and job.deadline is None:
            self.policy.place(now, self.base, memory, job, FOREVER)
            return
        promised = parked if parked is not None else (job.deadline or now) - job.estimate
        start = self.policy.place(now, self.base, memory, job, promised)
        if parked is None:
            self._promise(job.row, max(promised, now))
        if start > promised:
            self._break(job.row, promised, start)

    def _promise(self, row: int, latest: int) -> None:
        if latest < FOREVER:
            self.actions.append(Promise(row, latest))
            self.promised[row] = True
