"""Oracle for jobs on hosts with amounts of resources: what fits, where, when, and which jobs a list
scheduler starts.

It is written from the specification alone (docs/spec/production.md 0, 1.1 to 1.4), except for
:func:`pool_pass`.  Nothing here imports qbatch.  Everything is plain lists and dictionaries, for
clarity and not for speed.  Instants are whole microseconds.  A vector of amounts has processors
first, then memory, then the named resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SECOND = 1_000_000
CPUS, MEMORY = 0, 1

Vector = list[int]


@dataclass
class Host:
    """``total``: the amounts of an idle host; memory 0: memory is not counted there.  The server is
    the host that has the amounts of the whole machine, such as licences."""

    total: Vector
    is_closed: bool = False
    is_server: bool = False


@dataclass
class Group:
    """Equal chunks, and the places of the hosts on which each may be (None: any)."""

    count: int
    amounts: Vector
    allowed: set[int] | None = None

    def may_be_on(self, host: int) -> bool:
        return self.allowed is None or host in self.allowed


@dataclass
class Job:
    """``is_one_chunk``: a job without a request, which takes the fitting host with the fewest free
    processors.  A job without groups never fits."""

    row: int
    estimate: int
    groups: list[Group]
    is_scattered: bool = False
    is_exclusive: bool = False
    is_one_chunk: bool = False
    reservation: int = -1
    is_inside: bool = False

    @property
    def is_loose(self) -> bool:
        """Whether hosts do not matter: the job fits wherever enough processors are free in all."""
        is_alone = self.is_one_chunk or self.is_scattered or self.is_exclusive or not self.groups
        return not is_alone and all(
            group.allowed is None and group.amounts[CPUS] == 1 and not any(group.amounts[MEMORY:])
            for group in self.groups
        )

    @property
    def is_mixed(self) -> bool:
        """Whether two groups may be on one host."""
        return any(
            one.allowed is None or other.allowed is None or one.allowed & other.allowed
            for place, one in enumerate(self.groups)
            for other in self.groups[:place]
        )


@dataclass
class Part:
    """What a running job has on a host until an expected end."""

    end: int
    host: int
    amounts: Vector


@dataclass
class Booking:
    """What is booked on a host over ``[start, end)``."""

    host: int
    start: int
    end: int
    amounts: Vector


@dataclass
class Window:
    """A host is open over ``[start, end)`` to the jobs of one reservation only."""

    host: int
    start: int
    end: int
    reservation: int


@dataclass
class Placed:
    """What a job takes on one host."""

    chunks: int
    amounts: Vector


Placement = dict[int, Placed]
"""By host."""


@dataclass
class Machine:
    """The hosts at an instant, the parts of the running jobs, and what is booked."""

    now: int
    hosts: list[Host]
    parts: list[Part] = field(default_factory=list)
    bookings: list[Booking] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)

    def is_open(self, host: int, job: Job, start: int, end: int) -> bool:
        """Return whether no reservation keeps a job from a host (docs/spec/production.md 5)."""
        here = [each for each in self.windows if each.host == host]
        others = [each for each in here if each.reservation != job.reservation]
        own = [each for each in here if each.reservation == job.reservation]
        if any(each.start < max(end, start + 1) and each.end > start for each in others):
            return False
        return not (job.is_inside and own) or any(each.start <= start < each.end for each in own)

    def end_of(self, part: Part) -> int:
        """Return when a part counts as ended: a job that should have ended ends now."""
        return max(part.end, self.now)

    def free_now(self, host: int) -> Vector:
        """Return what no running job has; bookings do not count."""
        if self.hosts[host].is_closed:
            return [0] * len(self.hosts[host].total)
        return _without(
            self.hosts[host].total, [part.amounts for part in self.parts if part.host == host]
        )

    def free_at(self, host: int, instant: int) -> Vector:
        """Return what is free at an instant, by the expected ends and the bookings."""
        if self.hosts[host].is_closed:
            return [0] * len(self.hosts[host].total)
        return _without(
            self.hosts[host].total,
            [
                part.amounts
                for part in self.parts
                if part.host == host and self.end_of(part) > instant
            ]
            + [
                booking.amounts
                for booking in self.bookings
                if booking.host == host and booking.start <= instant < booking.end
            ],
        )

    def changes(self, host: int) -> Iterator[int]:
        """Yield the instants at which what is free on a host changes."""
        yield from (self.end_of(part) for part in self.parts if part.host == host)
        for booking in self.bookings:
            if booking.host == host:
                yield booking.start
                yield booking.end
        for window in self.windows:
            if window.host == host:
                yield window.start
                yield window.end

    def free_over(self, host: int, start: int, end: int) -> list[Vector]:
        """Return what is free in each segment of ``[start, end)``."""
        if start >= end:
            return []
        begins = {start} | {instant for instant in self.changes(host) if start < instant < end}
        return [self.free_at(host, instant) for instant in sorted(begins)]

    def holds_a_job(self, host: int, start: int, end: int, is_now: bool) -> bool:
        """Return whether a host has a job in ``[start, end)``, or (``is_now``) has one now."""
        on_host = [part for part in self.parts if part.host == host]
        if is_now and on_host:
            return True
        return any(self.end_of(part) > start for part in on_host if start < end) or any(
            booking.host == host and max(start, booking.start) < min(end, booking.end)
            for booking in self.bookings
        )


def _without(total: Vector, taken: Sequence[Vector]) -> Vector:
    return [amount - sum(each[kind] for each in taken) for kind, amount in enumerate(total)]


def asked_on(host: Host, amounts: Vector) -> Vector:
    """Return what a chunk takes on a host: no memory where memory is not counted."""
    return [
        0 if kind == MEMORY and host.total[MEMORY] == 0 else amount
        for kind, amount in enumerate(amounts)
    ]


def takes_whole(job: Job, host: Host) -> bool:
    """Return whether a job takes a host whole: the server is a pool, of which a job only takes what
    it asks for."""
    return job.is_exclusive and not host.is_server


def fitting(
    machine: Machine,
    job: Job,
    group: Group,
    place: int,
    start: int,
    end: int,
    is_now: bool,
    taken: Vector,
) -> int:
    """Return how many chunks of a group fit a host over ``[start, end)``; ``taken``: what earlier
    groups of the job take there."""
    host = machine.hosts[place]
    if host.is_closed or not group.may_be_on(place):
        return 0
    if not machine.is_open(place, job, start, end):
        return 0
    if takes_whole(job, host) and machine.holds_a_job(place, start, end, is_now):
        return 0
    segments = machine.free_over(place, start, end)
    if is_now:
        segments.append(machine.free_now(place))
    asked = asked_on(host, group.amounts)
    return min(
        (free[kind] - taken[kind]) // asked[kind]
        for free in segments
        for kind in range(len(asked))
        if asked[kind] > 0
    )


def place(machine: Machine, job: Job, start: int, end: int, is_now: bool) -> Placement | None:
    """Return where a job goes over ``[start, end)``, None if it does not fit.

    ``is_now``: the job starts now, so it has to fit what is free now, too.
    """
    order = list(range(len(machine.hosts)))
    if job.is_one_chunk:
        order.sort(key=lambda host: machine.free_now(host)[CPUS])
    kinds = len(machine.hosts[0].total)
    chunks = [0] * len(machine.hosts)
    taken = [[0] * kinds for _ in machine.hosts]
    for group in job.groups:
        wanted = group.count
        for host in order:
            found = fitting(machine, job, group, host, start, end, is_now, taken[host])
            found = max(0, min(found, wanted))
            if job.is_scattered:
                found = min(found, 0 if chunks[host] else 1)
            asked = asked_on(machine.hosts[host], group.amounts)
            taken[host] = [was + found * more for was, more in zip(taken[host], asked, strict=True)]
            chunks[host] += found
            wanted -= found
        if wanted:
            return None
    if not job.groups:
        return None
    return {
        host: Placed(
            chunks[host],
            list(machine.hosts[host].total)
            if takes_whole(job, machine.hosts[host])
            else taken[host],
        )
        for host in range(len(machine.hosts))
        if chunks[host]
    }


def earliest(
    machine: Machine, job: Job, not_before: int, duration: int
) -> tuple[int, Placement] | None:
    """Return the first candidate start at which a job fits, and where; None: never."""
    later = {
        instant
        for host in range(len(machine.hosts))
        for instant in machine.changes(host)
        if instant > not_before
    }
    for candidate in [not_before, *sorted(later)]:
        found = place(machine, job, candidate, candidate + duration, False)
        if found is not None:
            return candidate, found
    return None


@dataclass
class Outcome:
    """What a pass does: the rows that start with their places, and the reservations with their
    starts and places, each in order."""

    starts: list[tuple[int, Placement]] = field(default_factory=list)
    reserved: list[tuple[int, int, Placement]] = field(default_factory=list)


def list_pass(
    machine: Machine, jobs: Sequence[Job], depth: int, *, is_stopping: bool = False
) -> Outcome:
    """Make the pass of a list scheduler over jobs in the order of the scan.

    The machine has no bookings, and is not changed.  ``is_stopping``: the pass ends at the first
    job that does not fit.
    """
    machine = Machine(machine.now, machine.hosts, list(machine.parts), windows=machine.windows)
    outcome = Outcome()
    waiting = list(jobs)
    while True:
        started, passed_over = _scan(machine, waiting, depth, is_stopping, outcome)
        waiting = [job for job in waiting if job not in started]
        # Such a job may fit although it did not fit when more was free.
        if is_stopping or not started or not any(job.is_mixed for job in passed_over):
            return outcome


def _scan(
    machine: Machine, jobs: Sequence[Job], depth: int, is_stopping: bool, outcome: Outcome
) -> tuple[list[Job], list[Job]]:
    """Make one scan with new reservations; return the jobs that it started and those that it passed
    over."""
    started: list[Job] = []
    passed_over: list[Job] = []
    machine.bookings, outcome.reserved = [], []
    for job in jobs:
        found = place(machine, job, machine.now, machine.now + job.estimate, True)
        if found is not None:
            end = machine.now + job.estimate
            machine.parts += [Part(end, host, placed.amounts) for host, placed in found.items()]
            outcome.starts.append((job.row, found))
            started.append(job)
            continue
        if is_stopping:
            break
        passed_over.append(job)
        if len(passed_over) <= depth:
            _reserve(machine, job, outcome)
    return started, passed_over


def pool_pass(
    machine: Machine, jobs: Sequence[Job], depth: int, *, is_stopping: bool = False
) -> Outcome:
    """Make the pass over loose jobs only: hosts count as one pool of processors, and each job that
    starts takes what is free now, in file order.

    Reservations have no hosts, unlike those of 1.4: this is how qbatch treats such jobs.
    """
    pool = Machine(
        machine.now,
        [Host([sum(host.total[CPUS] for host in machine.hosts), 0])],
        [Part(part.end, 0, [part.amounts[CPUS], 0]) for part in machine.parts],
    )
    together = [
        Job(
            job.row,
            job.estimate,
            [Group(1, [sum(group.count * group.amounts[CPUS] for group in job.groups), 0])],
        )
        for job in jobs
    ]
    found = list_pass(pool, together, depth, is_stopping=is_stopping)
    machine = Machine(machine.now, machine.hosts, list(machine.parts))
    outcome = Outcome()
    for row, _ in found.starts:
        job = next(job for job in jobs if job.row == row)
        where = place(machine, job, machine.now, machine.now, True)
        assert where is not None
        end = machine.now + job.estimate
        machine.parts += [Part(end, host, placed.amounts) for host, placed in where.items()]
        outcome.starts.append((row, where))
    outcome.reserved = [(row, start, {}) for row, start, _ in found.reserved]
    return outcome


def _reserve(machine: Machine, job: Job, outcome: Outcome) -> None:
    """Book the earliest start of a job, if there is one."""
    duration = max(job.estimate, SECOND)
    planned = earliest(machine, job, machine.now, duration)
    if planned is None:
        return
    start, found = planned
    outcome.reserved.append((job.row, start, found))
    machine.bookings += [
        Booking(host, start, start + duration, placed.amounts) for host, placed in found.items()
    ]
