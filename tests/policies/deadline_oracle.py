"""The deadline schedulers the slow and obvious way, written from docs/spec/papers.md 2.8 and the
words of that page alone.

QoPS, MSB, MRT and the slack-based scheduler on one pool of processors; times are integer
microseconds.  A row is a job's place in the workload, and its sequence.  A plan is a dictionary
from row to planned start, in placement order. Numbers in comments are those of the rules of 2.8.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
FARTHEST = 2**61
"""A deadline beyond this is none."""

Plan = dict[int, int]


class Asked(NamedTuple):
    """One job of the workload; it runs no longer than its estimate."""

    submit: int
    procs: int
    estimate: int
    run: int
    deadline: int | None = None
    priority: int = 0


class Outcome(NamedTuple):
    """What became of the jobs, by row."""

    start: list[int | None]
    """None: refused."""
    deadline: list[int | None]
    """The deadline with which the row was accepted; None: with none, or refused."""
    relaxed: int
    """How often an allowance was doubled."""
    guarantee: list[int | None]
    """Slack-based only: first planned start and slack."""


@dataclass(frozen=True)
class Settings:
    """The parameters of a scheme; each scheme reads its own and leaves the others alone."""

    scheme: str
    violations: int = 5
    key: str = "llf"
    placing: str = "head"
    order: str = "ast"
    price: str = "fraction"
    backtracks: int = 10
    others: str = "relax"
    factor: int | Fraction = 5
    slack_factor: int | Fraction = 3
    administrative: int | Fraction = 1

    def __post_init__(self) -> None:
        known = {
            "scheme": ("qops", "msb", "mrt", "slack"),
            "key": ("llf", "edf"),
            "placing": ("head", "sorted", "both"),
            "order": ("ast", "edf", "llf"),
            "price": ("fraction", "delay", "makespan"),
            "others": ("relax", "reject"),
        }
        for name, values in known.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"{name} must be one of {', '.join(values)}, not {getattr(self, name)}"
                )


class Job(NamedTuple):
    """A job as the scheduler knows it: no run time, but the deadline that it was given, or that was
    made for it."""

    row: int
    submit: int
    procs: int
    estimate: int
    deadline: int | None

    @property
    def booking(self) -> int:
        """How long it is booked."""
        return max(self.estimate, SECOND)

    @property
    def latest(self) -> float:
        """The last start that meets its deadline: an integer, or infinity."""
        return math.inf if self.deadline is None else self.deadline - self.estimate

    def meets(self, start: int) -> bool:
        """Return whether a start at ``start`` meets the deadline."""
        return start <= self.latest


class Profile:
    """Free processors over time: ``free[i]`` from ``times[i]`` to the next time, the last ones for
    ever."""

    def __init__(self, procs: int, now: int) -> None:
        self.times, self.free = [now], [procs]

    def copy(self) -> Profile:
        """Return a copy."""
        duplicate = Profile(0, 0)
        duplicate.times, duplicate.free = self.times[:], self.free[:]
        return duplicate

    def book(self, job: Job, start: int) -> None:
        """Take the processors of a job from ``start`` on, for as long as it is booked."""
        self.take(job.procs, start, start + job.booking)

    def take(self, procs: int, start: int, end: int) -> None:
        """Take processors from ``start`` to ``end``."""
        for place in range(self._cut(start), self._cut(end)):
            self.free[place] -= procs

    def _cut(self, at: int) -> int:
        """Return the place of the segment that begins at ``at``, after making one begin there."""
        place = bisect_left(self.times, at)
        if place == len(self.times) or self.times[place] != at:
            self.times.insert(place, at)
            self.free.insert(place, self.free[place - 1])
        return place

    def earliest(self, job: Job) -> int:
        """Return the first time at which a job's processors are free over all of its booking."""
        start: int | None = None
        for place, free in enumerate(self.free):
            if free < job.procs:
                start = None
                continue
            if start is None:
                start = self.times[place]
            if place + 1 == len(self.times) or self.times[place + 1] >= start + job.booking:
                return start
        raise ValueError(f"row {job.row} asks for {job.procs} processors and never finds them")


@dataclass
class State:
    """The machine at one instant, and what the scheduler remembers."""

    procs: int
    settings: Settings
    now: int = 0
    known: dict[int, Job] = field(default_factory=dict)
    """Every accepted job."""
    planned: Plan = field(default_factory=dict)
    """The accepted jobs that wait."""
    started: dict[int, int] = field(default_factory=dict)
    """The jobs that run."""
    starts: dict[int, int] = field(default_factory=dict)
    """All that ever started."""
    relaxed: int = 0
    guarantees: dict[int, int] = field(default_factory=dict)
    priorities: dict[int, Fraction] = field(default_factory=dict)
    """Slack-based: of every job submitted so far."""
    waits: list[int] = field(default_factory=list)
    """Slack-based: of every job that has ended."""

    def profile(self, rows: Iterable[int] = ()) -> Profile:
        """Return what the running jobs and the planned starts of some rows leave free (rule 2)."""
        profile = Profile(self.procs, self.now)
        for row, start in self.started.items():
            job = self.known[row]
            end = start + job.booking
            profile.take(job.procs, self.now, end if end > self.now else self.now + SECOND)
        for row in rows:
            profile.book(self.known[row], self.planned[row])
        return profile

    def waiting(self) -> list[int]:
        """Return W: the waiting rows by planned start."""
        return sorted(self.planned, key=lambda row: (self.planned[row], row))

    def make_round(
        self, now: int, ended: Iterable[tuple[int, Asked]], arrived: Iterable[tuple[int, Asked]]
    ) -> None:
        """Make one round: what ended, what is due, what arrives, one after another (rule 1)."""
        self.now = now
        is_early = False
        for row, asked in ended:
            is_early |= asked.run < asked.estimate
            del self.started[row]
            self.waits.append(self.starts[row] - asked.submit)
        if is_early:
            self.compress()
        self.start_due()
        for row, asked in arrived:
            self.arrive(row, asked)
            self.start_due()

    def compress(self) -> None:
        """Lift every waiting job out and put it back at its earliest, in order of arrival."""
        for row in sorted(self.planned):
            others = [other for other in self.planned if other != row]
            self.planned[row] = self.profile(others).earliest(self.known[row])

    def start_due(self) -> None:
        """Start what was planned for this instant."""
        for row in [row for row, start in self.planned.items() if start <= self.now]:
            self.started[row] = self.starts[row] = self.now
            del self.planned[row]

    def arrive(self, row: int, asked: Asked) -> None:
        """Admit a job into a new plan, or leave everything as it is."""
        job = Job(row, asked.submit, asked.procs, asked.estimate, asked.deadline)
        if self.settings.scheme == "slack":
            self.arrive_slack(job._replace(deadline=None), asked.priority)
        elif job.deadline is None:
            self.arrive_without_deadline(job)
        elif (plan := admitted(self, job)) is not None:
            self.accept(job, plan)

    def accept(self, job: Job, plan: Plan) -> None:
        """Replace the old plan whole."""
        self.known[job.row] = job
        self.planned = dict(plan)

    def arrive_without_deadline(self, job: Job) -> None:
        """Give a job an artificial deadline, and a longer one as long as it is refused (rule 9)."""
        allowance = max(DAY, math.floor(self.settings.factor * job.estimate))
        job = job._replace(deadline=job.submit + allowance)
        plan = admitted(self, job)
        while plan is None and self.settings.others == "relax" and job.deadline is not None:
            allowance *= 2
            self.relaxed += 1
            deadline = job.submit + allowance
            job = job._replace(deadline=deadline if deadline <= FARTHEST else None)
            plan = admitted(self, job)
        if plan is None and self.settings.others == "relax":
            plan = self.planned | {job.row: self.profile(self.planned).earliest(job)}
        if plan is not None:
            self.accept(job, plan)

    def arrive_slack(self, job: Job, priority: int) -> None:
        """Place a job where it costs least; no job is refused (rules 12 and 13)."""
        mine = 1 + Fraction(priority, 1024) + Fraction(self.settings.administrative)
        self.priorities[job.row] = mine
        slack = self.slack(job, mine)
        plan = slack_plan(self, job, slack)
        self.accept(job, plan)
        self.guarantees[job.row] = plan[job.row] + slack

    def slack(self, job: Job, priority: Fraction) -> int:
        """Return how far a job may be pushed back (rule 12)."""
        mean_wait = Fraction(HOUR + sum(self.waits), 1 + len(self.waits))
        mean_priority = sum(self.priorities.values(), Fraction(0)) / len(self.priorities)
        weight = priority * (Fraction(1, 2) + Fraction(job.procs, self.procs))
        return math.floor(Fraction(self.settings.slack_factor) * mean_wait * mean_priority / weight)


def admitted(state: State, job: Job) -> Plan | None:
    """Return the plan with which a job is accepted, or None (rule 3); changes nothing."""
    if not job.meets(state.now):
        return None
    return {"qops": qops_plan, "msb": msb_plan, "mrt": mrt_plan}[state.settings.scheme](state, job)


def by_key(jobs: Iterable[Job], key: str) -> list[Job]:
    """Sort jobs by latest start (``llf``) or by deadline (``edf``); those without a deadline come
    last."""
    if key == "llf":
        return sorted(jobs, key=lambda job: (job.latest, job.row))
    return sorted(
        jobs, key=lambda job: (math.inf if job.deadline is None else job.deadline, job.row)
    )


def positions(count: int) -> list[int]:
    """Return the places at which QoPS tries to insert a job among ``count`` waiting ones (rule
    4)."""
    found, part = [], 1
    while True:
        found.append(count - -(-count // part))
        if part >= count:
            break
        part *= 2
    return sorted({*found, count})


def qops_plan(state: State, job: Job) -> Plan | None:
    """Try the positions in order, with J at the head of the others or sorted among them (rules 4
    and 5)."""
    settings = state.settings
    for placing in {"both": ("sorted", "head")}.get(settings.placing, (settings.placing,)):
        for position in positions(len(state.planned)):
            plan = qops_position(state, job, position, placing == "head")
            if plan is not None:
                return plan
    return None


def qops_position(state: State, job: Job, position: int, is_head: bool) -> Plan | None:
    """Keep the first ``position`` waiting jobs and place the others, pushing those that fail
    forward (rule 5)."""
    rows, key = state.waiting(), state.settings.key
    jobs = state.known | {job.row: job}
    plan = {row: state.planned[row] for row in rows[:position]}
    others = [jobs[row] for row in rows[position:]]
    left = [job, *by_key(others, key)] if is_head else by_key([job, *others], key)
    failures = 0
    profile = state.profile(plan)
    while left:
        first, *left = left
        start = profile.earliest(first)
        if first.meets(start):
            plan[first.row] = start
            profile.book(first, start)
            continue
        failures += 1
        middle = (position + len(plan)) // 2
        if failures > state.settings.violations or middle == len(plan):
            return None
        taken_back = list(plan)[middle:]
        plan = {row: plan[row] for row in list(plan)[:middle]}
        profile = state.profile()
        for row, start in plan.items():
            profile.book(jobs[row], start)
        left = [first, *by_key([*left, *(jobs[row] for row in taken_back)], key)]
    return plan


def msb_plan(state: State, job: Job) -> Plan | None:
    """Try every place for J in a fixed order of the others; the cheapest plan, the first of equals
    (rules 6 and 7)."""
    rows = state.waiting()
    if state.settings.order != "ast":
        rows = [
            each.row for each in by_key((state.known[row] for row in rows), state.settings.order)
        ]
    prices = {"delay": price_of_delay, "fraction": price_of_fraction, "makespan": price_of_makespan}
    price = prices[state.settings.price]
    kept = range(len(rows) + 1) if state.settings.order == "ast" else [0] * (len(rows) + 1)
    plans = [placed_at(state, job, rows, place, keep, Job.meets) for place, keep in enumerate(kept)]
    return cheapest(plans, lambda plan: price(state, job, plan))


def placed_at(
    state: State,
    job: Job,
    rows: list[int],
    place: int,
    keep: int,
    meets: Callable[[Job, int], bool],
) -> Plan | None:
    """Return the plan with J at a place among the rows, of which the first ``keep`` do not move;
    None: one misses."""
    plan = {row: state.planned[row] for row in rows[:keep]}
    profile = state.profile(plan)
    for each in [
        *(state.known[row] for row in rows[keep:place]),
        job,
        *(state.known[row] for row in rows[place:]),
    ]:
        start = profile.earliest(each)
        if not meets(each, start):
            return None
        plan[each.row] = start
        profile.book(each, start)
    return plan


def cheapest(plans: Iterable[Plan | None], price: Callable[[Plan], float]) -> Plan | None:
    """Return the first of the plans with the least price."""
    best: tuple[float, Plan] | None = None
    for plan in plans:
        if plan is not None and (best is None or price(plan) < best[0]):
            best = price(plan), plan
    return None if best is None else best[1]


def delays(state: State, job: Job, plan: Plan) -> Iterable[tuple[Job, int, int]]:
    """Yield, in placement order, each job, the instant from which its delay counts, and the delay
    (rule 7)."""
    for row, start in plan.items():
        before = job.submit if row == job.row else state.planned[row]
        yield (job if row == job.row else state.known[row]), before, max(0, start - before)


def price_of_delay(state: State, job: Job, plan: Plan) -> int:
    """Return the sum of the delays."""
    return sum(delay for _, _, delay in delays(state, job, plan))


def price_of_fraction(state: State, job: Job, plan: Plan) -> float:
    """Return the sum of the shares of what slack is left."""
    total = 0.0
    for each, before, delay in delays(state, job, plan):
        if each.deadline is not None:
            total += float(delay) / float(max(each.deadline - each.estimate - before, SECOND))
    return total


def price_of_makespan(state: State, job: Job, plan: Plan) -> int:
    """Return the last planned end."""
    return max(
        start + (job if row == job.row else state.known[row]).estimate
        for row, start in plan.items()
    )


def slack_plan(state: State, job: Job, slack: int) -> Plan:
    """Place J like MSB in order of planned start; no job waits past its guarantee (rule 13)."""
    rows = state.waiting()

    def meets(each: Job, start: int) -> bool:
        return each.row == job.row or start <= state.guarantees[each.row]

    def price(plan: Plan) -> float:
        total = 0.0
        for each, before, delay in delays(state, job, plan):
            room = slack if each.row == job.row else state.guarantees[each.row] - before
            total += float(state.priorities[each.row]) * float(delay) / float(max(room, SECOND))
        return total

    plans = [placed_at(state, job, rows, place, place, meets) for place in range(len(rows) + 1)]
    plan = cheapest(plans, price)
    assert plan is not None  # Behind all the others it moves no job.
    return plan


class BacktracksSpentError(Exception):
    """The search has gone back more often than it may."""


def mrt_plan(state: State, job: Job) -> Plan | None:
    """Search depth first for an order in which all meet their deadlines (rule 8)."""
    rest = by_key([job, *(state.known[row] for row in state.planned)], state.settings.key)
    left = state.settings.backtracks

    def go_back() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise BacktracksSpentError

    def search(profile: Profile, plan: Plan, rest: list[Job]) -> Plan | None:
        if not rest:
            return plan
        for candidate in rest:
            others = [each for each in rest if each.row != candidate.row]
            start = profile.earliest(candidate)
            after = profile.copy()
            after.book(candidate, start)
            if candidate.meets(start) and all(each.meets(after.earliest(each)) for each in others):
                found = search(after, plan | {candidate.row: start}, others)
                if found is not None:
                    return found
            go_back()
        return None

    try:
        return search(state.profile(), {}, rest)
    except BacktracksSpentError:
        return None


class Simulation:
    """A workload and the state of the machine, driven from instant to instant."""

    def __init__(self, jobs: list[Asked], procs: int, settings: Settings) -> None:
        assert all(0 < job.procs <= procs and 0 <= job.run <= job.estimate for job in jobs)
        assert all(before.submit <= job.submit for before, job in pairwise(jobs))
        self.jobs = jobs
        self.state = State(procs, settings)
        self.arrived = 0

    def end_of(self, row: int) -> int:
        """Return when a running job ends."""
        return self.state.started[row] + self.jobs[row].run

    def next_instant(self) -> int | None:
        """Return when something happens next: the same instant again after a job of no length."""
        instants = [job.submit for job in self.jobs[self.arrived : self.arrived + 1]]
        instants += [self.end_of(row) for row in self.state.started]
        return min([*instants, *self.state.planned.values()], default=None)

    def make_round(self, now: int, limit: int | None = None) -> None:
        """Make the round of an instant, with all of its arrivals or with the first few."""
        ended = [
            (row, self.jobs[row]) for row in sorted(self.state.started) if self.end_of(row) == now
        ]
        coming = [
            (row, job)
            for row, job in enumerate(self.jobs)
            if row >= self.arrived and job.submit == now
        ][:limit]
        self.arrived += len(coming)
        self.state.make_round(now, ended, coming)

    def run(self, until: float = math.inf) -> State:
        """Make all rounds up to an instant, that one included."""
        while (now := self.next_instant()) is not None and now <= until:
            self.make_round(now)
        return self.state

    def outcome(self) -> Outcome:
        """Return what has become of the jobs."""
        state, rows = self.state, range(len(self.jobs))
        deadline = [state.known[row].deadline if row in state.known else None for row in rows]
        guarantee = [state.guarantees.get(row) for row in rows]
        return Outcome([state.starts.get(row) for row in rows], deadline, state.relaxed, guarantee)


def simulate(jobs: list[Asked], procs: int, scheme: str, **settings: Any) -> Outcome:
    """Run a workload (sorted by submission) to its end; ``settings`` are the fields of
    :class:`Settings`."""
    simulation = Simulation(jobs, procs, Settings(scheme, **settings))
    simulation.run()
    return simulation.outcome()


def whole_second(instant: int) -> int:
    """Round up to a whole second."""
    return -(-instant // SECOND) * SECOND


def quoted(
    jobs: list[Asked], procs: int, scheme: str, at: int, job: Asked, **settings: Any
) -> int | None:
    """Return the earliest deadline that would be promised to a job asked for at ``at``, after all
    of it (rule 10)."""
    if scheme == "slack":
        raise ValueError("the slack-based scheduler knows no deadlines")
    state = Simulation(jobs, procs, Settings(scheme, **settings)).run(until=at)
    state.now = at
    asked = Job(len(jobs), at, job.procs, job.estimate, None)

    def is_accepted(deadline: int) -> bool:
        return admitted(state, asked._replace(deadline=deadline)) is not None

    refused = whole_second(at + asked.estimate) - SECOND
    for candidate in candidates(state, asked):
        if is_accepted(candidate):
            return bisected(refused, candidate, is_accepted)
        refused = candidate
    return None


def candidates(state: State, asked: Job) -> Iterable[int]:
    """Yield the ends behind the prefixes of rule 4 in ascending order, then the last one farther
    and farther away."""
    rows = state.waiting()
    starts = [state.profile(rows[:position]).earliest(asked) for position in positions(len(rows))]
    ends = sorted({whole_second(start + asked.estimate) for start in starts})
    yield from ends
    for doubling in range(1, 21):
        yield whole_second(state.now + (ends[-1] - state.now) * 2**doubling)


def bisected(refused: int, accepted: int, is_accepted: Callable[[int], bool]) -> int:
    """Return an accepted deadline with a refused one a second before it."""
    while accepted - refused > SECOND:
        middle = (refused + accepted) // 2 // SECOND * SECOND
        if is_accepted(middle):
            accepted = middle
        else:
            refused = middle
    return accepted


class Running(NamedTuple):
    """A running job, for :func:`repaired`."""

    procs: int
    start: int
    estimate: int


class Waiting(NamedTuple):
    """A waiting job, for :func:`repaired`; one that lost its processors has its old start as the
    planned one."""

    row: int
    procs: int
    estimate: int
    planned: int
    deadline: int | None = None


class Repair(NamedTuple):
    """The plan made anew: planned starts by row, the rows that miss their deadlines, and the
    deadlines of those now."""

    planned: dict[int, int | None]
    """None: wider than what is left of the machine."""
    breaches: list[int]
    deadline: dict[int, int | None]


def repaired(running: list[Running], waiting: list[Waiting], procs: int, now: int) -> Repair:
    """Make the plan anew when a running job is overdue or hosts closed; ``procs`` are those still
    open (rule 11)."""
    profile = Profile(procs, now)
    for each in running:
        end = each.start + max(each.estimate, SECOND)
        profile.take(each.procs, now, end if end > now else now + SECOND)
    jobs = {
        each.row: Job(each.row, 0, each.procs, each.estimate, each.deadline) for each in waiting
    }
    by_plan = [
        jobs[each.row] for each in sorted(waiting, key=lambda each: (each.planned, each.row))
    ]
    planned = placed_anew(profile, by_plan, procs)
    if missed(planned, jobs):
        other = placed_anew(profile, by_key(jobs.values(), "llf"), procs)
        if len(missed(other, jobs)) < len(missed(planned, jobs)):
            planned = other
    breaches = missed(planned, jobs)
    deadlines: dict[int, int | None] = {}
    for row in breaches:
        start = planned[row]
        deadlines[row] = None if start is None else start + jobs[row].estimate
    return Repair(planned, breaches, deadlines)


def placed_anew(profile: Profile, jobs: list[Job], procs: int) -> dict[int, int | None]:
    """Give each job its earliest place in turn; one that is wider than the machine gets none."""
    profile = profile.copy()
    planned: dict[int, int | None] = {}
    for job in jobs:
        planned[job.row] = profile.earliest(job) if job.procs <= procs else None
        start = planned[job.row]
        if start is not None:
            profile.book(job, start)
    return planned


def missed(planned: dict[int, int | None], jobs: dict[int, Job]) -> list[int]:
    """Return the rows that miss their deadlines."""
    starts = {row: math.inf if start is None else start for row, start in planned.items()}
    return sorted(row for row, start in starts.items() if start > jobs[row].latest)
