"""EASY and conservative backfilling on hosts with named resources, written from the words of
docs/spec/production.md 1.3 and 1.4 and of docs/design.md: lists, no profile, no host order but "the
fewest free processors, then host order".

A *need* is a tuple of amounts: processors, memory, then the named resources of the machine.
"""

from __future__ import annotations

from typing import NamedTuple

SECOND = 1_000_000
Need = tuple[int, ...]


class Task(NamedTuple):
    """A job, in microseconds."""

    submit: int
    need: Need
    estimate: int
    run: int

    @property
    def booked(self) -> int:
        return max(self.estimate, SECOND)


class Booking(NamedTuple):
    host: int
    need: Need
    begin: int
    end: int


class Site:
    """Hosts with what each has; ``bookings``: what is taken, by any job."""

    def __init__(self, hosts: list[Need], bookings: list[Booking]) -> None:
        self.hosts = hosts
        self.bookings = list(bookings)

    def free(self, host: int, at: int) -> list[int]:
        taken = [
            each.need for each in self.bookings if each.host == host and each.begin <= at < each.end
        ]
        return [
            there - sum(amounts) for there, *amounts in zip(self.hosts[host], *taken, strict=True)
        ]

    def fits(self, need: Need, host: int, begin: int, end: int) -> bool:
        instants = {begin, *(each.begin for each in self.bookings if begin < each.begin < end)}
        return all(
            left >= amount
            for at in instants
            for left, amount in zip(self.free(host, at), need, strict=True)
            if amount > 0
        )

    def earliest(self, need: Need, length: int, now: int, free_now: list[int]) -> tuple[int, int]:
        for at in sorted({now, *(each.end for each in self.bookings if each.end > now)}):
            found = [
                host for host in range(len(self.hosts)) if self.fits(need, host, at, at + length)
            ]
            if found:
                return at, min(found, key=lambda host: (free_now[host], host))
        raise AssertionError("no host could ever hold it")


class Replay:
    """A run: when each task starts, and on which host; ``reservations``: by instant of a pass,
    those of EASY."""

    def __init__(self, hosts: list[Need], tasks: list[Task]) -> None:
        self.hosts, self.tasks = hosts, tasks
        self.start: dict[int, int] = {}
        self.host: dict[int, int] = {}
        self.running: set[int] = set()
        self.queue: list[int] = []
        self.reservations: dict[int, list[tuple[int, int, int]]] = {}

    def rounds(self, timers: list[int]):
        """Give each round: its instant, the tasks that ended and those that arrived; ``timers``:
        instants that are added."""
        coming, now = 0, -1
        while True:
            ends = [self.start[row] + self.tasks[row].run for row in self.running]
            arrivals = [self.tasks[coming].submit] if coming < len(self.tasks) else []
            events = [*ends, *arrivals, *(each for each in timers if each > now)]
            timers.clear()
            if not events:
                return
            now = min(events)
            over = sorted(
                row for row in self.running if self.start[row] + self.tasks[row].run == now
            )
            self.running -= set(over)
            arrived = []
            while coming < len(self.tasks) and self.tasks[coming].submit == now:
                arrived.append(coming)
                coming += 1
            yield now, over, arrived

    def site(self, now: int, length) -> Site:
        return Site(
            self.hosts,
            [
                Booking(
                    self.host[row],
                    self.tasks[row].need,
                    self.start[row],
                    self.start[row] + length(self.tasks[row]),
                )
                for row in sorted(self.running)
            ],
        )

    def free_procs(self) -> list[int]:
        used = [
            sum(self.tasks[row].need[0] for row in self.running if self.host[row] == host)
            for host in range(len(self.hosts))
        ]
        return [there[0] - taken for there, taken in zip(self.hosts, used, strict=True)]

    def begin(self, row: int, host: int, now: int) -> None:
        self.queue.remove(row)
        self.running.add(row)
        self.start[row], self.host[row] = now, host


def easy(hosts: list[Need], tasks: list[Task]) -> Replay:
    """The head's reservation is a placement; a later job starts if it fits with the running jobs
    and that reservation."""
    found = Replay(hosts, tasks)
    for now, _, arrived in found.rounds([]):
        found.queue += arrived
        site, reserved = found.site(now, lambda task: task.estimate), []
        for row in list(found.queue):
            task, free = tasks[row], found.free_procs()
            could = [
                host
                for host in range(len(hosts))
                if site.fits(task.need, host, now, now + task.estimate)
            ]
            if could:
                host = min(could, key=lambda each: (free[each], each))
                found.begin(row, host, now)
                site.bookings.append(Booking(host, task.need, now, now + task.estimate))
            elif not reserved:
                at, host = site.earliest(task.need, task.booked, now, free)
                site.bookings.append(Booking(host, task.need, at, at + task.booked))
                reserved.append((row, host, at))
        found.reservations[now] = reserved
    return found


def conservative(hosts: list[Need], tasks: list[Task]) -> Replay:
    """Each job gets the earliest reservation on arrival; an early end moves each, in order of
    arrival, if it can be earlier."""
    found, plan = Replay(hosts, tasks), {}
    timers: list[int] = []

    def booked(row: int) -> Booking:
        at, host = plan[row]
        return Booking(host, tasks[row].need, at, at + tasks[row].booked)

    for now, over, arrived in found.rounds(timers):
        free = found.free_procs()
        site = found.site(now, lambda task: task.booked)
        site.bookings += [booked(row) for row in plan]
        if any(found.start[row] + tasks[row].estimate > now for row in over):
            for row in plan:
                site.bookings.remove(booked(row))
                better = site.earliest(tasks[row].need, tasks[row].booked, now, free)
                if better[0] < plan[row][0]:
                    plan[row] = better
                site.bookings.append(booked(row))
        for row in arrived:
            found.queue.append(row)
            plan[row] = site.earliest(tasks[row].need, tasks[row].booked, now, free)
            site.bookings.append(booked(row))
        for row in [row for row, (at, _) in plan.items() if at <= now]:
            found.begin(row, plan.pop(row)[1], now)
        timers += [at for at, _ in plan.values()]
    return found
