"""A workload ready to run and the record of a finished run, as columns.

A *row* is a job's number in order of sequence: its rank by (submit, job number, line).  Times are
integer microseconds on the log's own clock, not re-zeroed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from datetime import UTC, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from qbatch.model.job import Charge, JobRequest
from qbatch.model.spans import Spans, queued_again, rows_in_pieces, with_pieces

Int64Array = NDArray[np.int64]
Int8Array = NDArray[np.int8]
BoolArray = NDArray[np.bool_]

MICROSECONDS = 1_000_000
"""Microseconds in a second."""

KINDS = ("in_order", "immediate", "backfilled")
"""How a job started (docs/design.md, "The meaning of one instant"); ``Schedule.kind`` holds indices
into this tuple."""

NO_PROMISE = -1
"""``Schedule.promise`` of a job without a promise."""


@dataclass(frozen=True, slots=True)
class LogClock:
    """The wall time of a log's second 0: seconds since 1970 (None: unknown), and the zone's
    name."""

    unix_start: int | None = None
    zone: str | None = None


def zone_of(clock: LogClock) -> tzinfo | None:
    """Return the zone that the clock names; None if it names none, or one that this machine does
    not know."""
    if clock.zone is None:
        return None
    try:
        return UTC if clock.zone == "UTC" else ZoneInfo(clock.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class Workload:
    """The jobs of one run, in order of sequence; every array has one entry per job.

    ``procs_total``: processors of the machine, 0 if unknown (job rows do not contain it).
    ``number``: the log's job number. ``submit``, ``estimate``, ``run``: microseconds, with ``0 <=
    run <= estimate`` in a workload prepared from a log.  ``run`` is what will happen (a job that
    reaches its estimate is killed there; -1 of a refused job read from job rows), ``logged_run``
    the value of the log.  Another source may let jobs outlive their estimates.  ``procs``:
    processors. ``memory``: bytes of the whole job, 0 for none asked; ``used_memory``: what it will
    really use, -1 if unknown (the default).  ``deadline``: the instant by which each job is to end,
    -1 for none (the default). ``estimates_missing``: the number of jobs without an estimate in the
    log, whatever replaces it here. ``user``, ``group``, ``queue``: the log's numbers, -1 for
    absent; ``queue_names``: the log's names of its queues. ``counted``: whether metrics count the
    job (a warm-up job runs but does not count).  ``log_row``: the row of the log that it came from.
    ``sequence``: the sequence in job rows that were read, -1 if they have none; None: each row's
    own number. ``parent``: the number of the job of which each is a task, -1 for none (the
    default).  ``resources``: the requests of named resources (:class:`qbatch.model.machine.Host`),
    a column for each that any job asks for.  ``requests``: what jobs ask for in chunks, and
    ``request`` the index of each job's, -1 for none (the default); ``procs``, ``memory`` and
    ``resources`` are then their sums.  ``charges``: users, accounts and QOS by name, each different,
    and ``charge`` the index of each job's, -1 for none (the default).
    """

    name: str
    procs_total: int
    number: Int64Array
    submit: Int64Array
    procs: Int64Array
    estimate: Int64Array
    run: Int64Array
    logged_run: Int64Array
    memory: NDArray[Any]
    user: NDArray[Any]
    group: NDArray[Any]
    queue: NDArray[Any]
    counted: BoolArray
    log_row: Int64Array
    clock: LogClock = LogClock()
    skipped: dict[str, int] = field(default_factory=dict)
    sha256: str | None = None
    used_memory: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    queue_names: dict[int, str] = field(default_factory=dict)
    estimates_missing: int = 0
    deadline: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    sequence: Int64Array | None = None
    parent: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    resources: dict[str, Int64Array] = field(default_factory=dict)
    requests: tuple[JobRequest, ...] = ()
    request: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))
    charges: tuple[Charge, ...] = ()
    charge: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        for name in ("used_memory", "deadline", "parent", "request", "charge"):
            if len(getattr(self, name)) == 0 and len(self.submit):
                object.__setattr__(self, name, np.broadcast_to(np.int64(-1), len(self.submit)))

    def __len__(self) -> int:
        return len(self.submit)

    def changed(self, **columns: Any) -> Workload:
        """Return a copy with some columns or facts replaced."""
        return replace(self, **columns)

    def only(self, rows: Int64Array) -> Workload:
        """Return some of the jobs, by their rows in ascending order, as a new workload."""
        return self.changed(
            **self.columns_at(rows), sequence=None if self.sequence is None else self.sequence[rows]
        )

    def columns_at(self, rows: Int64Array) -> dict[str, Any]:
        """Return the columns of some of the jobs."""
        resources = {name: column[rows] for name, column in self.resources.items()}
        return {name: getattr(self, name)[rows] for name in WORKLOAD_COLUMNS} | {
            "resources": resources
        }

    def resources_of(self, row: int) -> tuple[tuple[str, int], ...]:
        """Return the named amounts that a job asks for."""
        return tuple(
            (name, int(column[row])) for name, column in self.resources.items() if column[row]
        )


WORKLOAD_COLUMNS = (
    "number",
    "submit",
    "procs",
    "estimate",
    "run",
    "logged_run",
    "memory",
    "user",
    "group",
    "queue",
    "counted",
    "log_row",
    "used_memory",
    "deadline",
    "parent",
    "request",
    "charge",
)
"""The columns of a workload, without those of named resources."""


class Rejection(NamedTuple):
    """A job that was refused: its row, the instant in microseconds, the code of the reason and its
    text."""

    row: int
    at: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """The result of one policy for a workload; every array has one entry per row of the workload.

    ``start``, ``promise`` (the last promised start), ``first_promise``: microseconds, promises
    ``NO_PROMISE`` if there was none.  ``kind``: indices into ``KINDS``, -1 if unknown.  ``start``
    and ``end`` are -1 for jobs that the policy rejected.  ``queue_max``: the longest queue, before
    the passes; None if it was not counted.

    ``start`` is the first start, and ``kind`` how it came about: a discarded trial run counts
    (docs/spec/papers.md 3.7, item 8). ``pieces``: the execution intervals of jobs that were
    suspended, resized or restarted; None if there are none or they are unknown.  One line each of
    row, begin, end, processors, (first) host, and whether the work was kept (1) or discarded (0),
    in order of end.  ``host``: the (last) host of each row, -1 for none, if the machine has several
    and each job is inside one; else None.  ``rejected``: the refused jobs, by row; for those read
    from job rows the instant is that of their submission.  ``broken``: how often a promise to each
    row was taken back or not kept; None if that never happened, or is unknown.
    ``read_piece_count``: ``piece_count`` as job rows without execution intervals have it; None if
    ``pieces`` holds them all.  ``predicted``: the run time predicted for each job at its
    submission, microseconds, -1 for jobs without a prediction; None if nothing was predicted.
    ``hosts``: on which hosts each job ran, as ``n[01-02],x1`` (an empty text: unknown); None if that
    was not recorded.
    """

    workload: Workload
    policy: str
    start: Int64Array
    kind: Int8Array
    promise: Int64Array
    first_promise: Int64Array
    end: Int64Array
    queue_max: int | None = None
    pieces: Int64Array | None = None
    host: Int64Array | None = None
    rejected: tuple[Rejection, ...] = ()
    broken: Int64Array | None = None
    read_piece_count: Int64Array | None = None
    predicted: Int64Array | None = None
    hosts: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def ran(self) -> BoolArray:
        """The rows that ran, as a mask."""
        return np.asarray(self.start >= 0)

    @property
    def piece_count(self) -> Int64Array:
        """The number of execution intervals of each row: 0 for one interval on the requested
        processors, -1 if unknown."""
        if self.read_piece_count is not None:
            return self.read_piece_count
        rows = np.empty(0, np.int64) if self.pieces is None else self.pieces[:, 0]
        return np.bincount(rows, minlength=len(self)).astype(np.int64)

    @property
    def is_in_pieces(self) -> BoolArray:
        """The rows with several execution intervals or other processors than requested, as a
        mask."""
        count = self.read_piece_count
        return rows_in_pieces(self.pieces, len(self)) if count is None else np.asarray(count > 0)

    @property
    def lacks_pieces(self) -> BoolArray:
        """The rows with execution intervals that are unknown, except the first start and the end,
        as a mask."""
        return self.is_in_pieces & ~rows_in_pieces(self.pieces, len(self))

    def spans(self) -> Spans:
        """Return the spans that held processors: each execution interval of a job, or from start to
        end if they are unknown."""
        rows = np.flatnonzero(self.ran & ~rows_in_pieces(self.pieces, len(self)))
        host = np.full(len(rows), -1) if self.host is None else self.host[rows]
        return with_pieces(
            Spans(rows, self.start[rows], self.end[rows], self.workload.procs[rows], host),
            self.pieces,
        )

    def queue_spans(self) -> Spans:
        """Return the stays of jobs in the queue: until the first start, and again from a discarded
        trial run to the next start.

        They are of the jobs that ran; the first stays of all jobs come before the others.  A
        suspended job, of which the work is kept, is in no queue.
        """
        rows, procs = np.flatnonzero(self.ran), self.workload.procs
        first = Spans(
            rows, self.workload.submit[rows], self.start[rows], procs[rows], np.full(len(rows), -1)
        )
        return first if self.pieces is None else queued_again(first, self.pieces, procs)

    def only(self, which: BoolArray | Int64Array) -> Schedule:
        """Return the schedule of some of the jobs, by a mask or by their rows in ascending order;
        itself if these are all."""
        places = np.full(len(self), -1, np.int64)
        rows = np.arange(len(self))[which]
        if len(rows) == len(self):
            return self
        places[rows] = np.arange(len(rows))
        columns: dict[str, Any] = {name: getattr(self, name) for name in _SCHEDULE_COLUMNS}
        kept: dict[str, Any] = {
            name: None if column is None else column[rows] for name, column in columns.items()
        }
        rejected = tuple(
            each._replace(row=int(places[each.row]))
            for each in self.rejected
            if places[each.row] >= 0
        )
        pieces = self.pieces
        if pieces is not None:  # their rows change, too
            pieces = np.column_stack([places[pieces[:, 0]], pieces[:, 1:]])
            pieces = pieces[pieces[:, 0] >= 0]
            pieces = pieces if len(pieces) else None
        return replace(
            self,
            workload=self.workload.only(rows),
            **kept,
            queue_max=None,
            pieces=pieces,
            rejected=rejected,
        )

    def only_ran(self) -> Schedule:
        """Return the schedule of the jobs that ran, without those that were rejected; itself if
        there are none."""
        return self.only(self.ran)

    def in_order_of_start(self) -> Int64Array:
        """Return the rows that ran, by (start, sequence): the order of the job rows."""
        rows = np.flatnonzero(self.ran)
        return rows[np.argsort(self.start[rows], kind="stable")]


_SCHEDULE_COLUMNS = (
    "start",
    "kind",
    "promise",
    "first_promise",
    "end",
    "host",
    "broken",
    "read_piece_count",
    "predicted",
    "hosts",
)


def finished_run(policy: str, **given: Any) -> Schedule:
    """Return a schedule with only some columns and facts; the others are absent.

    ``given``: columns and facts of ``Workload`` and ``Schedule`` by name, the columns in order of
    sequence; required are number, submit, start, end, procs, estimate and run.
    """
    count = len(given["submit"])
    absent = np.broadcast_to(np.int64(-1), count)
    known: dict[str, Any] = {
        "name": "",
        "procs_total": 0,
        "logged_run": given["run"],
        "memory": np.broadcast_to(np.int64(0), count),
        "user": absent,
        "group": absent,
        "queue": absent,
        "counted": np.ones(count, np.bool_),
        "log_row": np.arange(count),
        "kind": np.broadcast_to(np.int8(-1), count),
        "promise": absent,
        "first_promise": absent,
        **given,
    }
    of_run = {each.name: known.pop(each.name) for each in fields(Schedule) if each.name in known}
    return Schedule(Workload(**known), policy, **of_run)
