"""FCFS, EASY, K reservations and conservative backfilling, by brute force.

Integer microseconds throughout. Nothing is kept that can be computed again. The free processors
are counted from the running jobs. The future is rebuilt from a plain list of bookings whenever
it is needed. The earliest start is found by trying every instant at which something changes.

One turn of the loop in `_simulate` is one round of one instant: completions by sequence, timers,
arrivals by sequence, one pass. The next turn takes the earliest instant at which anything is due.
When the pass started a job of zero length, that is the same instant again. So further rounds need
no code of their own, and such a job holds its processors until the next round takes them back.

Readings, where the rules leave a choice:

* A running job books `[start, start + estimate)` for EASY and the K reservations (a zero estimate
  books nothing, though its processors are taken until it ends), and `max(estimate, 1 s)` for the
  conservative plan. With the literal estimate, one reservation is EASY, zero estimates included.
* The shadow time may be this very instant: when a job of zero estimate holds what the head needs.
* "Earlier submitted" is by sequence, so it separates jobs that were submitted together.
* A job that starts in the round of its arrival was promised that instant.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SECOND = 1_000_000

COMPRESSIONS = ("arrival", "start", "none", "scratch")


@dataclass(frozen=True)
class Job:
    """One job; times in microseconds, `run` is what happens and never exceeds `estimate`."""

    sequence: int
    submit: int
    procs: int
    estimate: int
    run: int


@dataclass
class Outcome:
    """What became of one job; both promises are None under a policy that makes none."""

    start: int
    end: int
    kind: str
    first_promise: int | None = None
    promise: int | None = None


def fcfs(jobs: Sequence[Job], procs: int) -> list[Outcome]:
    """First come, first served: no job overtakes another."""
    return _simulate(jobs, procs, _Fcfs())


def easy(jobs: Sequence[Job], procs: int) -> list[Outcome]:
    """EASY backfilling: no job delays the head of the queue (Feitelson and Weil 1998, Fig. 5)."""
    return _simulate(jobs, procs, _Easy())


def hybrid(jobs: Sequence[Job], procs: int, depth: int) -> list[Outcome]:
    """At most `depth` reservations, made anew in every pass; 0 is first fit that skips."""
    return _simulate(jobs, procs, _Hybrid(depth))


def conservative(jobs: Sequence[Job], procs: int, compress: str) -> list[Outcome]:
    """A reservation for every job, on arrival; `compress` says what an early end does to them."""
    return _simulate(jobs, procs, _Conservative(compress))


# --- the future, as a list of bookings --------------------------------------------------------


class Booking(NamedTuple):
    """Processors taken in the half-open `[start, end)`."""

    start: int
    end: int
    procs: int


class Level(NamedTuple):
    """How many processors are booked from `at` until the next level."""

    at: int
    used: int


def levels(bookings: Iterable[Booking], now: int) -> list[Level]:
    """The profile from `now` on: the first level begins at `now`, the last one is for ever."""
    change = {now: 0}
    for start, end, procs in bookings:
        if start < end and end > now:
            begin = max(start, now)
            change[begin] = change.get(begin, 0) + procs
            change[end] = change.get(end, 0) - procs
    profile = []
    used = 0
    for at in sorted(change):
        used += change[at]
        profile.append(Level(at, used))
    return profile


def stays_free(profile: list[Level], index: int, duration: int, most_used: int) -> bool:
    """Whether from level `index` on, for `duration`, never more than `most_used` are booked.

    Half-open, like every booking: a duration of zero asks for nothing.
    """
    until = profile[index].at + duration
    for position in range(index, len(profile)):
        at, used = profile[position]
        if at >= until:
            return True
        if used > most_used:
            return False
    return True


def earliest(
    bookings: Iterable[Booking], capacity: int, procs: int, duration: int, now: int
) -> int:
    """The first instant, not before `now`, from which `procs` stay free for `duration`.

    Only `now` and the ends of bookings can be the first; trying the beginnings too costs little.
    """
    profile = levels(bookings, now)
    for index, level in enumerate(profile):
        if stays_free(profile, index, duration, capacity - procs):
            return level.at
    raise AssertionError("the last level is an empty machine for ever, and every job fits there")


# --- the machine and its loop -----------------------------------------------------------------


class _Running(NamedTuple):
    job: Job
    start: int

    @property
    def end(self) -> int:
        return self.start + self.job.run

    @property
    def expected_end(self) -> int:
        return self.start + self.job.estimate


class _World:
    """The machine, the queue (by sequence) and the clock; a policy changes it by `start` only."""

    def __init__(self, procs: int) -> None:
        self.procs = procs
        self.now = 0
        self.queue: list[Job] = []
        self.running: list[_Running] = []
        self.started: list[Job] = []  # in this round

    @property
    def free(self) -> int:
        return self.procs - sum(running.job.procs for running in self.running)

    def start(self, job: Job) -> None:
        assert job.procs <= self.free, f"{job} cannot start at {self.now}: {self.free} free"
        self.queue.remove(job)
        self.running.append(_Running(job, self.now))
        self.started.append(job)


class _Policy:
    """What a policy may do in a round; only `run_pass` starts jobs."""

    def __init__(self) -> None:
        # Planned starts of queued jobs, and what was promised of them; only a plan fills these.
        self.planned: dict[int, int] = {}
        self.first_promise: dict[int, int] = {}
        self.promise: dict[int, int] = {}

    def completed(self, world: _World, ended: list[_Running]) -> None:
        """After the completions of a round (`ended` has left the machine), before its arrivals."""

    def arrived(self, world: _World, job: Job) -> None:
        """When `job` has just joined the queue."""

    def run_pass(self, world: _World) -> None:
        raise NotImplementedError


def _simulate(jobs: Sequence[Job], procs: int, policy: _Policy) -> list[Outcome]:
    order = sorted(jobs, key=lambda job: job.sequence)
    _check_input(order, procs)
    world = _World(procs)
    outcomes: dict[int, Outcome] = {}
    arrivals = 0  # how many have arrived
    while arrivals < len(order) or world.queue or world.running:
        due = [running.end for running in world.running]
        due += policy.planned.values()
        if arrivals < len(order):
            due.append(order[arrivals].submit)
        assert due, f"the queue waits for nothing: {world.queue}"
        world.now = min(due)

        ended = [running for running in world.running if running.end == world.now]
        ended.sort(key=lambda running: running.job.sequence)
        world.running = [running for running in world.running if running.end != world.now]
        policy.completed(world, ended)
        # A timer (a planned start) changes nothing by itself: it is why this round takes place.
        while arrivals < len(order) and order[arrivals].submit == world.now:
            world.queue.append(order[arrivals])
            policy.arrived(world, order[arrivals])
            arrivals += 1

        world.started = []
        policy.run_pass(world)
        for job in world.started:
            outcomes[job.sequence] = _outcome(job, world, policy)
    return [outcomes[job.sequence] for job in jobs]


def _check_input(order: list[Job], procs: int) -> None:
    for before, after in itertools.pairwise(order):
        assert before.sequence < after.sequence, f"two jobs of one sequence: {before}, {after}"
        assert before.submit <= after.submit, f"sequence against submit: {before}, {after}"
    for job in order:
        assert 1 <= job.procs <= procs, f"{job} does not fit on {procs}"
        assert 0 <= job.run <= job.estimate, f"{job} outlives its estimate"


def _outcome(job: Job, world: _World, policy: _Policy) -> Outcome:
    """What became of a job that the pass just over has started."""
    if any(other.sequence < job.sequence for other in world.queue):
        kind = "backfilled"
    elif job.submit == world.now:
        kind = "immediate"
    else:
        kind = "in_order"
    return Outcome(
        start=world.now,
        end=world.now + job.run,
        kind=kind,
        first_promise=policy.first_promise.get(job.sequence),
        promise=policy.promise.get(job.sequence),
    )


# --- the policies -----------------------------------------------------------------------------


class _Fcfs(_Policy):
    def run_pass(self, world: _World) -> None:
        while world.queue and world.queue[0].procs <= world.free:
            world.start(world.queue[0])


class _Easy(_Policy):
    def run_pass(self, world: _World) -> None:
        while world.queue and world.queue[0].procs <= world.free:
            world.start(world.queue[0])
        if not world.queue or world.free == 0:
            return
        shadow, extra = self._shadow(world, world.queue[0])
        for job in world.queue[1:]:
            ends_in_time = world.now + job.estimate <= shadow
            if job.procs <= world.free and (ends_in_time or job.procs <= extra):
                world.start(job)
                if not ends_in_time:
                    extra -= job.procs

    @staticmethod
    def _shadow(world: _World, head: Job) -> tuple[int, int]:
        """When the head fits by the estimates of the running jobs, and what it leaves over then.

        Every job that ends exactly then counts, not only as many as the head needs.
        """
        for instant in sorted({running.expected_end for running in world.running}):
            available = world.free + sum(
                running.job.procs for running in world.running if running.expected_end <= instant
            )
            if available >= head.procs:
                return instant, available - head.procs
        raise AssertionError("when all running jobs have ended, the head fits")


class _Hybrid(_Policy):
    def __init__(self, depth: int) -> None:
        super().__init__()
        assert depth >= 0
        self.depth = depth

    def run_pass(self, world: _World) -> None:
        if world.free == 0:
            return
        now = world.now
        booked = [
            Booking(running.start, running.expected_end, running.job.procs)
            for running in world.running
        ]
        reservations = 0
        for job in list(world.queue):
            most_used = world.procs - job.procs
            # Processors that are really free come first: a running job of zero estimate is gone
            # from the profile, but not yet from the machine.
            if job.procs <= world.free and stays_free(
                levels(booked, now), 0, job.estimate, most_used
            ):
                world.start(job)
                booked.append(Booking(now, now + job.estimate, job.procs))
            elif reservations < self.depth:
                reservations += 1
                length = _booked_length(job)
                at = earliest(booked, world.procs, job.procs, length, now)
                booked.append(Booking(at, at + length, job.procs))


class _Conservative(_Policy):
    """The whole plan persists: one planned start for each queued job, and the running jobs."""

    def __init__(self, compress: str) -> None:
        super().__init__()
        assert compress in COMPRESSIONS, compress
        self.compress = compress

    def completed(self, world: _World, ended: list[_Running]) -> None:
        # A job that has left the machine has no booking any more: its unused tail is given back.
        if not any(running.job.run < running.job.estimate for running in ended):
            return
        if self.compress == "arrival":
            self._compress_in_place(world)
        elif self.compress == "start":
            self._compress_by_start(world)
        elif self.compress == "scratch":
            self.planned = self._place_anew(world, world.queue)
        for job in world.queue:
            self._tell(job)

    def arrived(self, world: _World, job: Job) -> None:
        self.planned[job.sequence] = self._place(world, job, self._bookings(world))
        self._tell(job)

    def run_pass(self, world: _World) -> None:
        for job in list(world.queue):
            assert self.planned[job.sequence] >= world.now, f"{job} missed its start"
            if self.planned[job.sequence] == world.now:
                world.start(job)
                del self.planned[job.sequence]

    def _tell(self, job: Job) -> None:
        """A promise is the planned start last announced, and only ever moves earlier."""
        at = self.planned[job.sequence]
        self.first_promise.setdefault(job.sequence, at)
        self.promise[job.sequence] = min(at, self.promise.get(job.sequence, at))

    def _compress_in_place(self, world: _World) -> None:
        """In arrival order, lift each job out and put it back at its earliest."""
        for job in world.queue:
            before = self.planned.pop(job.sequence)
            self.planned[job.sequence] = self._place(world, job, self._bookings(world))
            assert self.planned[job.sequence] <= before, f"{job}: its old place was free"

    def _compress_by_start(self, world: _World) -> None:
        """A new profile, the jobs in the order of the plan; not at the price of a promise."""
        order = sorted(world.queue, key=lambda job: (self.planned[job.sequence], job.sequence))
        plan = self._place_anew(world, order)
        if any(plan[job.sequence] > self.promise[job.sequence] for job in world.queue):
            self._compress_in_place(world)
        else:
            self.planned = plan

    def _place_anew(self, world: _World, order: list[Job]) -> dict[int, int]:
        """A plan from nothing but the running jobs: each job in `order` at its earliest."""
        bookings = self._running_bookings(world)
        plan = {}
        for job in order:
            at = self._place(world, job, bookings)
            bookings.append(Booking(at, at + _booked_length(job), job.procs))
            plan[job.sequence] = at
        return plan

    @staticmethod
    def _place(world: _World, job: Job, bookings: list[Booking]) -> int:
        return earliest(bookings, world.procs, job.procs, _booked_length(job), world.now)

    @staticmethod
    def _running_bookings(world: _World) -> list[Booking]:
        return [
            Booking(start, start + _booked_length(job), job.procs) for job, start in world.running
        ]

    def _bookings(self, world: _World) -> list[Booking]:
        """Everything booked: the running jobs, and the queued jobs that have a planned start."""
        bookings = self._running_bookings(world)
        for job in world.queue:
            if job.sequence in self.planned:
                at = self.planned[job.sequence]
                bookings.append(Booking(at, at + _booked_length(job), job.procs))
        return bookings


def _booked_length(job: Job) -> int:
    """A reservation is never empty: even a job of zero estimate books one second."""
    return max(job.estimate, SECOND)
