"""The sources of the jobs of a replay.

The driver asks a source for its next instant and for the jobs that are due then, and passes it
every round, so that arrivals may depend on what has happened.  The usual source is a workload log;
the daemon's trace source reads the same log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from qbatch.engine.round import Round
from qbatch.model.job import Job
from qbatch.model.record import Workload

AT_ONCE = 1024
"""The number of jobs that are made from the columns together."""


class Arrival(NamedTuple):
    """A job with what only the executor may know: its run time in microseconds on the requested
    processors, and the bytes of memory that it uses (-1: unknown, as many as it asks for)."""

    job: Job
    run: int
    used_memory: int = -1


class Source(Protocol):
    """Makes the jobs of a replay."""

    @property
    def size(self) -> int:
        """The number of jobs as far as it is known beforehand, else 0."""
        ...

    def next_instant(self) -> int | None:
        """Return the instant of the next arrival in microseconds, None if none comes before another
        event."""
        ...

    def ended(self, at: int, rows: Sequence[int]) -> None:
        """Receive the jobs that end at an instant, before the arrivals of that instant are
        taken."""
        ...

    def take(self, at: int) -> Sequence[Arrival]:
        """Return the jobs that arrive by ``at``, in order of (submit, number).

        Each has its row: the number of jobs taken before it.  Its ``submit`` is the instant of its
        arrival.  Its run time may be longer than its estimate.
        """
        ...

    def after_round(self, done: Round) -> None:
        """Receive a finished round; arrivals may follow from it, at its instant at the earliest."""
        ...

    def workload(self) -> Workload:
        """Return all jobs taken so far, by row."""
        ...


class LogSource:
    """The jobs of a workload, at their instants, whatever happens; ``offset``: microseconds to add
    to the log's clock."""

    def __init__(self, workload: Workload, offset: int = 0) -> None:
        self.offset = offset
        self.size = len(workload)
        self._workload = workload
        self._next: int | None = None
        self.go_to(0)

    def go_to(self, row: int) -> None:
        """Continue with the job of a row."""
        self._made = row
        self._fetch()

    @property
    def row(self) -> int:
        return self._made - len(self._coming)

    def next_instant(self) -> int | None:
        return self._next

    def take(self, at: int) -> list[Arrival]:
        found = []
        while self._next is not None and self._next <= at:
            found.append(self._coming.pop())
            if self._coming:
                self._next = self._coming[-1].job.submit
            else:
                self._fetch()
        return found

    def ended(self, at: int, rows: Sequence[int]) -> None:
        """Do nothing: a log does not react."""

    def after_round(self, done: Round) -> None:
        """Do nothing, likewise."""

    def workload(self) -> Workload:
        return self._workload

    def _fetch(self) -> None:
        """Make the next jobs, many at once."""
        begin = self._made
        places = np.arange(begin, min(begin + AT_ONCE, len(self._workload)))
        self._coming = list(arrivals_of(self._workload, places, None, begin, self.offset))
        self._coming.reverse()
        self._made += len(self._coming)
        self._next = self._coming[-1].job.submit if self._coming else None


def arrivals_of(
    work: Workload,
    places: np.ndarray[tuple[int], np.dtype[np.int64]],
    at: int | None,
    row: int,
    offset: int = 0,
) -> Iterator[Arrival]:
    """Return the jobs of a workload at these indices as they arrive: at an instant, or each at its
    own if that is None.

    ``row``: the engine's row of the first of them.  ``offset``: microseconds to add to the
    workload's clock.
    """
    columns = (
        work.number,
        work.submit,
        work.procs,
        work.estimate,
        work.memory,
        work.user,
        work.group,
        work.queue,
        work.run,
        work.used_memory,
        work.deadline,
        work.parent,
    )
    rows = zip(*(column[places].tolist() for column in columns), strict=True)
    for place, each in enumerate(rows, row):
        number, submit, procs, estimate, memory, user, group, queue, run, used, deadline, parent = (
            each
        )
        due = submit + offset if at is None else at
        job = Job(
            row=place,
            number=number,
            submit=due,
            procs=procs,
            estimate=estimate,
            memory=memory,
            user=user,
            group=group,
            queue=queue,
            deadline=deadline + due - submit if deadline >= 0 else None,
            parent=parent,
            resources=work.resources_of(int(places[place - row])) if work.resources else (),
        )
        if work.requests and (kind := int(work.request[places[place - row]])) >= 0:
            asked = work.requests[kind]
            job = msgspec.structs.replace(
                job,
                chunks=asked.chunks,
                placing=asked.placing,
                is_exclusive=asked.is_exclusive,
                partitions=asked.partitions,
                reservation=asked.reservation,
                least_hosts=asked.least_hosts,
                most_hosts=asked.most_hosts,
            )
        if work.charges and (charged := int(work.charge[places[place - row]])) >= 0:
            charge = work.charges[charged]
            job = msgspec.structs.replace(
                job,
                owner=charge.owner,
                account=charge.account,
                qos=charge.qos,
                nice=charge.nice,
            )
        yield Arrival(job, run, used)


def workload_of(name: str, procs_total: int, arrivals: Sequence[Arrival]) -> Workload:
    """Return the workload of the jobs that a source has made, by row."""

    def column(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(list(values), np.int64)

    jobs = [arrival.job for arrival in arrivals]
    asked = ("number", "submit", "procs", "estimate", "memory", "user", "group", "queue", "parent")
    columns: dict[str, Any] = {
        field: column(getattr(job, field) for job in jobs) for field in asked
    }
    resources = dict.fromkeys(resource for job in jobs for resource, _ in job.resources)
    run = column(arrival.run for arrival in arrivals)
    return Workload(
        name=name,
        procs_total=procs_total,
        **columns,
        run=run,
        logged_run=run,
        counted=np.ones(len(jobs), np.bool_),
        log_row=np.arange(len(jobs)),
        used_memory=column(arrival.used_memory for arrival in arrivals),
        deadline=column(-1 if job.deadline is None else job.deadline for job in jobs),
        resources={
            each: column(dict(job.resources).get(each, 0) for job in jobs) for each in resources
        },
    )
