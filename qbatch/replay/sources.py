"""The sources of the jobs of a replay.

The driver asks a source for its next instant and for the jobs that are due then, and passes it every round, so that arrivals may
depend on what has happened.  The usual source is a workload log; the daemon's trace source reads the same log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from qbatch.engine.round import Round
from qbatch.model.job import Job
from qbatch.model.record import Workload

AT_ONCE = 1024
"""The number of jobs that are made from the columns together."""


class Arrival(NamedTuple):
    """A job with what only the executor may know: its run time in microseconds on the requested processors, and the
    bytes of memory that it uses (-1: unknown, as many as it asks for)."""

    job: Job
    run: int
    used_memory: int = -1


class Source(Protocol):
    """Makes the jobs of a replay.

    ``size``: the number of jobs as far as it is known beforehand, else 0.
    """

    @property
    def size(self) -> int:
        """The total number of jobs, 0 if unknown."""
        ...

    def next_instant(self) -> int | None:
        """Return the instant of the next arrival in microseconds, None if none comes before another event."""
        ...

    def ended(self, at: int, rows: Sequence[int]) -> None:
        """Receive the jobs that end at an instant, before the arrivals of that instant are taken."""
        ...

    def take(self, at: int) -> Sequence[Arrival]:
        """Return the jobs that arrive by ``at``, in order of (submit, number).

        Each has its row: the number of jobs taken before it.  Its ``submit`` is the instant of its arrival.  Its run time
        may be longer than its estimate.
        """
        ...

    def told(self, done: Round) -> None:
        """Receive a finished round; arrivals may follow from it, at its instant at the earliest."""
        ...

    def workload(self) -> Workload:
        """Return all jobs taken so far, by row."""
        ...


class LogSource:
    """The jobs of a workload, at their instants, whatever happens.

    Args:
        workload: jobs in order of sequence.
        offset: microseconds to add to the log's clock.
    """

    def __init__(self, workload: Workload, offset: int = 0) -> None:
        self.offset = offset
        self.size = len(workload)
        self._workload = workload
        self._coming: list[Arrival] = []
        self._made = 0
        self._next: int | None = None
        self.go_to(0)

    def go_to(self, row: int) -> None:
        """Continue with the job of a row."""
        self._coming, self._made = [], row
        self._fetch()

    @property
    def row(self) -> int:
        """The row of the next job."""
        return self._made - len(self._coming)

    def next_instant(self) -> int | None:
        """Return the submission of the next job."""
        return self._next

    def take(self, at: int) -> list[Arrival]:
        """Return the jobs submitted by ``at``."""
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

    def told(self, done: Round) -> None:
        """Do nothing: a log does not react."""

    def workload(self) -> Workload:
        """Return the workload."""
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
    work: Workload, places: np.ndarray[tuple[int], np.dtype[np.int64]], at: int | None, row: int, offset: int = 0
) -> Iterator[Arrival]:
    """Return jobs of a workload as they arrive.

    Args:
        places: the indices of the jobs.
        at: the instant of their submission in microseconds; None: each at its own.
        row: the engine's row of the first of them.
        offset: microseconds to add to the workload's clock.
    """
    columns = (work.number, work.submit, work.procs, work.estimate, work.memory, work.user, work.group, work.queue,
               work.run, work.used_memory, work.deadline, work.parent)  # fmt: skip
    rows = zip(*(column[places].tolist() for column in columns), strict=True)
    for place, each in enumerate(rows, row):
        number, submit, procs, estimate, memory, user, group, queue, run, used, deadline, parent = each
        due = submit + offset if at is None else at
        job = Job(row=place, number=number, submit=due, procs=procs, estimate=estimate, memory=memory, user=user, group=group,
                  queue=queue, deadline=deadline + due - submit if deadline >= 0 else None, parent=parent,
                  resources=work.resources_of(int(places[place - row])) if work.resources else ())  # fmt: skip
        yield Arrival(job, run, used)


def workload_of(name: str, procs_total: int, arrivals: Sequence[Arrival]) -> Workload:
    """Return the workload of the jobs that a source has made, by row."""

    def column(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, np.int64)

    jobs = [arrival.job for arrival in arrivals]
    names = dict.fromkeys(name for job in jobs for name, _ in job.resources)
    run = column(*(arrival.run for arrival in arrivals))
    return Workload(
        name=name,
        procs_total=procs_total,
        number=column(*(job.number for job in jobs)),
        submit=column(*(job.submit for job in jobs)),
        procs=column(*(job.procs for job in jobs)),
        estimate=column(*(job.estimate for job in jobs)),
        run=run,
        logged_run=run,
        memory=column(*(job.memory for job in jobs)),
        user=column(*(job.user for job in jobs)),
        group=column(*(job.group for job in jobs)),
        queue=column(*(job.queue for job in jobs)),
        counted=np.ones(len(jobs), np.bool_),
        log_row=np.arange(len(jobs)),
        used_memory=column(*(arrival.used_memory for arrival in arrivals)),
        deadline=column(*(-1 if job.deadline is None else job.deadline for job in jobs)),
        parent=column(*(job.parent for job in jobs)),
        resources={name: column(*(dict(job.resources).get(name, 0) for job in jobs)) for name in names},
    )
