"""The board: the monitor's knowledge, as plain data without a screen.

A source writes on one board.  Panels read another, a copy of the first at an instant
(:meth:`Board.frame`), which stays the same until the next frame.  It holds all running jobs, the
first ``WINDOW`` waiting jobs, and the number of waiting jobs. ``changed`` names the parts that are
new for the panels: jobs, hosts, queues, events, clock, server, shadows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from qbatch.tui.grid import ShownHosts
from qbatch.tui.series import Series
from qbatch.wire.records import (
    ClockRecord,
    EventRecord,
    Forecasts,
    HostRecord,
    JobRecord,
    QueueRecord,
    ReservationRecord,
    Reservations,
    ServerRecord,
)
from qbatch.wire.resources import parse_duration

WINDOW = 500
"""Most waiting jobs on the board."""

MOST_EVENTS = 2000
"""Most events that the board keeps."""

WAITING = "QHWM"
ON_HOSTS = "RSE"


class Board:
    """The state of one batch server according to its events; ``wall`` returns the seconds of a
    clock that never jumps."""

    def __init__(self, wall: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self.window = WINDOW
        self.server = ServerRecord(name="", version="")
        self.clock = ClockRecord(mode="real", now=0)
        self.queues: dict[str, QueueRecord] = {}
        self.running: dict[str, JobRecord] = {}
        self.waiting: dict[str, JobRecord] = {}
        self.grid = ShownHosts()
        self.events: deque[EventRecord] = deque(maxlen=MOST_EVENTS)
        self.series = Series()
        self.forecasts: Forecasts | None = None
        self.reservations: tuple[ReservationRecord, ...] = ()
        self.number = 0
        self.ended = 0
        self.is_stale = False
        self.is_driven = False
        self.changed: set[str] = set()
        self._mark = self._wall()

    @property
    def waiting_total(self) -> int:
        """Number of waiting jobs in all queues (queued, held, or waiting for a time)."""
        return sum(
            queue.counts.get(letter, 0) for queue in self.queues.values() for letter in WAITING
        )

    @property
    def is_window(self) -> bool:
        """Whether more jobs wait than are on the board."""
        return self.waiting_total > len(self.waiting)

    def now(self) -> int:
        """Return the instant on the server's clock, extrapolated from its last report (or set by a
        playback)."""
        clock = self.clock
        if (
            self.is_driven
            or clock.is_paused
            or self.is_stale
            or (clock.mode == "virtual" and not clock.speed)
        ):
            return clock.now
        return clock.now + int(
            (self._wall() - self._mark) * 1e6 * (1.0 if clock.mode == "real" else clock.speed)
        )

    def take_changed(self) -> set[str]:
        """Return the parts that are new since the last call."""
        changed, self.changed = self.changed, set()
        return changed

    # What a source writes

    def load(
        self,
        server: ServerRecord,
        hosts: Iterable[HostRecord],
        queues: Iterable[QueueRecord],
        running: Iterable[JobRecord],
        waiting: Iterable[JobRecord],
    ) -> None:
        """Load a whole picture; earlier events stay in the log of events."""
        self.server = server
        self.queues = {queue.name: queue for queue in queues}
        self.running = {job.id: job for job in running if not job.is_array}
        self.waiting = {job.id: job for job in waiting if not job.is_array}
        self.grid.load(hosts, self.running.values())
        self.is_stale = False
        if server.clock is not None:
            self.set_clock(server.clock)
        self.series.note(self.clock.now, self.grid.busy, self.waiting_total)
        self.changed |= {"jobs", "hosts", "queues", "events", "clock", "server"}

    def set_clock(self, clock: ClockRecord) -> None:
        self.clock, self._mark = clock, self._wall()
        self.changed.add("clock")

    def set_hosts(self, hosts: Iterable[HostRecord]) -> None:
        for host in hosts:
            self.grid.update(host)
        self.changed.add("hosts")

    @property
    def has_host_queues(self) -> bool:
        """Whether a policy keeps a queue for each host."""
        return any(place.record.queue is not None for place in self.grid.places.values())

    def set_host_queues(self, hosts: Iterable[HostRecord]) -> None:
        """Update the queues of hosts, which no event reports."""
        for host in hosts:
            place = self.grid.places.get(host.name)
            if place is not None and place.record.queue != host.queue:
                self.grid.update(msgspec.structs.replace(place.record, queue=host.queue))
                self.changed.add("hosts")

    def set_queues(self, queues: Iterable[QueueRecord]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self.changed |= {"queues", "jobs"}

    def take_forecasts(self, forecasts: Forecasts) -> None:
        """Set the expected and promised starts of waiting jobs."""
        self.forecasts = forecasts
        for each in forecasts.jobs:
            job = self.waiting.get(each.job)
            if job is not None and (job.estimated_start, job.promised) != (
                each.start,
                each.promised,
            ):
                job = msgspec.structs.replace(
                    job, estimated_start=each.start, promised=each.promised
                )
                self.waiting[each.job] = job
        self.changed.add("forecasts")

    def take_reservations(self, reservations: Reservations) -> None:
        """Set the reservations with their present or next times."""
        self.reservations = reservations.reservations
        self.changed.add("forecasts")

    def more_waiting(self, jobs: Iterable[JobRecord]) -> None:
        """Add another page of waiting jobs."""
        for job in jobs:
            if job.state in WAITING and not job.is_array:
                self.waiting.setdefault(job.id, job)
        self.changed.add("jobs")

    def set_members(self, prefix: str, jobs: Iterable[JobRecord]) -> None:
        """Update the waiting members of an array; ``prefix`` begins their identifiers."""
        members = {job.id: job for job in jobs if job.state in WAITING and not job.is_array}
        for name in [
            each for each in self.waiting if each.startswith(prefix) and each not in members
        ]:
            del self.waiting[name]
        for name, job in members.items():
            if name in self.waiting or len(self.waiting) < self.window:
                self.waiting[name] = job
        self.changed.add("jobs")

    def say(self, text: str, kind: str = "monitor") -> None:
        """Write a message of the monitor itself into the log of events."""
        self.events.append(EventRecord(number=self.number, at=self.now(), kind=kind, text=text))
        self.changed.add("events")

    def apply(self, event: EventRecord) -> None:
        self.number = max(self.number, event.number)
        if event.clock is not None:
            self.set_clock(event.clock)
        elif event.at > self.clock.now and (self.clock.mode == "virtual" or event.at > self.now()):
            self.clock, self._mark = msgspec.structs.replace(self.clock, now=event.at), self._wall()
            self.changed.add("clock")
        if event.kind in ("clock", "shadow"):
            self.changed |= {"shadows"} if event.kind == "shadow" else set()
            return
        record = event.record
        queue = self.queues.get(record.queue if record is not None else event.queue)
        if queue is not None and event.counts:
            counts = {letter: count for letter, count in event.counts.items() if count}
            self.queues[queue.name] = msgspec.structs.replace(
                queue, counts=counts, total=sum(counts.values())
            )
            self.changed.add("queues")
        if record is not None and not record.is_array:
            self._job(event, record)
        elif event.kind == "ended" and record is None:
            self._gone(event.job)
        self.events.append(event)
        self.changed.add("events")
        is_end = event.kind == "ended" and (record is None or not record.is_array)
        self.ended += is_end
        self.series.note(event.at, self.grid.busy, self.waiting_total, int(is_end))

    def _job(self, event: EventRecord, record: JobRecord) -> None:
        self.changed.add("jobs")
        if event.kind == "ended" or record.state in "FX":
            self._gone(record.id)
        elif record.state in ON_HOSTS:
            self.waiting.pop(record.id, None)
            if record.id not in self.running:
                self.grid.start(record)
                self.changed.add("hosts")
            elif event.kind == "started" or record.exec_host != self.running[record.id].exec_host:
                self.grid.end(record.id)
                self.grid.start(record)
                self.changed.add("hosts")
            elif (record.state == "S") != (self.running[record.id].state == "S"):
                (self.grid.stop if record.state == "S" else self.grid.resume)(record.id)
                self.changed.add("hosts")
            self.running[record.id] = record
        else:
            self._release(record.id)
            # A new waiting job belongs on the board, but not before waiting jobs that are not
            # loaded yet.
            is_next = self.window > WINDOW or self.waiting_total <= len(self.waiting) + 1
            if record.id in self.waiting or (is_next and len(self.waiting) < self.window):
                self.waiting[record.id] = record

    def _gone(self, job: str) -> None:
        self.waiting.pop(job, None)
        self._release(job)
        self.changed.add("jobs")

    def _release(self, job: str) -> None:
        if self.running.pop(job, None) is not None:
            self.grid.end(job)
            self.changed.add("hosts")

    def find(self, job: str) -> JobRecord | None:
        """Return a job that runs or is among the waiting jobs on the board."""
        return self.running.get(job) or self.waiting.get(job)

    # Frames, for panels

    def frame(self, other: Board, parts: set[str]) -> None:
        """Become a copy of another board at this instant.  ``parts``: the parts that have changed
        there since the last frame.

        Panels are drawn line by line, at different times, while events arrive: they need data that
        does not change.
        """
        for name in (
            "window",
            "server",
            "number",
            "ended",
            "is_stale",
            "forecasts",
            "reservations",
        ):
            setattr(self, name, getattr(other, name))
        self.queues, self.running, self.waiting = (
            dict(other.queues),
            dict(other.running),
            dict(other.waiting),
        )
        self.series = other.series.copy()
        if "events" in parts:
            self.events = other.events.copy()
        if "hosts" in parts:
            self.grid.follow(other.grid)
        now = other.now()
        if other.clock.mode == "scaled" and not other.is_driven:
            # A frame does not go beyond a due end with an event that has not arrived yet.
            due = min((end for job in other.running.values() if (end := _due(job))), default=now)
            now = min(now, max(due, other.clock.now))
        self.clock, self.is_driven = msgspec.structs.replace(other.clock, now=now), True

    # Keyframes, for recordings

    def keyframe(self) -> Board:
        """Return an independent copy."""
        duplicate = Board(self._wall)
        for name in ("window", "server", "clock", "number", "ended", "is_stale", "_mark"):
            setattr(duplicate, name, getattr(self, name))
        duplicate.queues, duplicate.running, duplicate.waiting = (
            dict(self.queues),
            dict(self.running),
            dict(self.waiting),
        )
        duplicate.grid, duplicate.series = self.grid.copy(), self.series.copy()
        duplicate.events = self.events.copy()
        return duplicate

    def become(self, other: Board) -> None:
        """Take over the contents of another board, which must not be used afterwards."""
        for name in (
            "server",
            "clock",
            "number",
            "ended",
            "is_stale",
            "_mark",
            "queues",
            "running",
            "waiting",
            "grid",
            "series",
            "events",
        ):
            setattr(self, name, getattr(other, name))
        self.changed |= {"jobs", "hosts", "queues", "events", "clock", "server"}


def _due(job: JobRecord) -> int:
    """Return when a running job ends at the latest; 0 if that is not simply its start plus its
    walltime."""
    if job.state != "R" or job.started is None or job.pauses or job.sizes:
        return 0
    walltime = walltime_in(job.resources.get("walltime", ""))
    return job.started + walltime if walltime else 0


@lru_cache(maxsize=4096)
def walltime_in(text: str) -> int:
    """Return a walltime in microseconds, 0 for none."""
    try:
        return parse_duration(text) if text else 0
    except ValueError:
        return 0
