"""A workload ready to run and the record of a finished run, as columns.

They stand in the lowest package, so that metrics, reports and the referee need no replay.  A *row* is a job's
number in order of sequence: its rank by (submit, job number, line).  Times are integer microseconds on the
log's own clock, not re-zeroed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbatch.model.spans import Spans, moved_pieces, queued_again, rows_in_pieces, with_pieces

Int64Array = NDArray[np.int64]
Int8Array = NDArray[np.int8]
BoolArray = NDArray[np.bool_]

MICROSECONDS = 1_000_000
"""Microseconds in a second."""

KINDS = ("in_order", "immediate", "backfilled")
"""How a job started (design.md, "The meaning of one instant"); ``Schedule.kind`` holds places in this tuple."""

NO_PROMISE = -1
"""``Schedule.promise`` of a job that was promised nothing."""


@dataclass(frozen=True, slots=True)
class LogClock:
    """Where a log's second 0 lies on the wall: seconds since 1970 (None: unknown), and the zone's name."""

    unix_start: int | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """The jobs of one run, in order of sequence; every array has one entry a job.

    ``procs_total``: processors of the machine, 0 where it is not known (job rows do not say).  ``number``: the log's job number.
    ``submit``, ``estimate``, ``run``: microseconds, with ``0 <= run <= estimate`` in what is prepared from a log; ``run`` is
    what will happen (a job that reaches its estimate is killed there; -1 of a job that was refused, read from job rows),
    ``logged_run`` what the log says.  Another source may let jobs outlive their estimates.  ``procs``: processors.
    ``memory``: bytes of the whole job, 0 for none asked; ``used_memory``: what it will really use, -1 where that is not known
    (everywhere, if it is not given).  ``deadline``: the instant by which each is to end, -1 for none (everywhere, if it is not
    given).  ``estimates_missing``: for how many of the jobs the log has no estimate, whatever stands for it here.
    ``user``, ``group``, ``queue``: the log's numbers, -1 for absent; ``queue_names``: what the log calls its queues.
    ``counted``: whether metrics count the
    job (a warm-up is run but not counted).  ``log_row``: the row of the log that it came from.  ``sequence``: what job rows that
    were read say of the sequence, -1 where they say nothing; None: each row's own number.  ``parent``: the number of the job of
    which each is a task, -1 for none (everywhere, if it is not given).  ``resources``: what each asks for of named resources
    (:class:`qbatch.model.machine.Host`), a column for each that any job asks for.
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

    def __post_init__(self) -> None:
        for name in ("used_memory", "deadline", "parent"):
            if len(getattr(self, name)) == 0 and len(self.submit):
                object.__setattr__(self, name, np.broadcast_to(np.int64(-1), len(self.submit)))

    def __len__(self) -> int:
        return len(self.submit)

    def changed(self, **columns: Any) -> Workload:
        """Return a copy with some columns or facts replaced."""
        return replace(self, **columns)

    def only(self, rows: Int64Array) -> Workload:
        """Return some of the jobs, by their rows in ascending order, as a workload of their own."""
        return self.changed(**self.columns_at(rows), sequence=None if self.sequence is None else self.sequence[rows])

    def columns_at(self, rows: Int64Array) -> dict[str, Any]:
        """Return the columns of some of the jobs."""
        resources = {name: column[rows] for name, column in self.resources.items()}
        return {name: getattr(self, name)[rows] for name in WORKLOAD_COLUMNS} | {"resources": resources}

    def resources_of(self, row: int) -> tuple[tuple[str, int], ...]:
        """Return the named amounts that a job asks for."""
        return tuple((name, int(column[row])) for name, column in self.resources.items() if column[row])


WORKLOAD_COLUMNS = (
    "number", "submit", "procs", "estimate", "run", "logged_run", "memory", "user", "group", "queue", "counted", "log_row",
    "used_memory", "deadline", "parent",
)  # fmt: skip
"""The columns of a workload, beside those of named resources."""


class Rejection(NamedTuple):
    """A job that was refused: its row, the instant in microseconds, the code of the reason and its text."""

    row: int
    at: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """What one policy made of a workload; every array has one entry a row of the workload.

    ``start``, ``promise`` (the planned start last told), ``first_promise``: microseconds, the promises
    ``NO_PROMISE`` where none was given.  ``kind``: places in ``KINDS``, -1 where it is not known.  ``start`` and ``end`` are -1
    for jobs that the policy rejected.  ``queue_max``: the longest queue, before the passes; None where it was not counted.

    ``start`` is the first start, and ``kind`` how it came about: a quantum that was thrown away counts (papers.md 3.7,
    item 8).  ``pieces``: None where every job ran in one go, or where nobody knows when those ran that did not; else what the
    jobs ran that did not, one line each of row, begin, end, processors, (first) host, and whether the work was kept (1) or
    thrown away (0), in order of end.  ``host``: on which host each ran (at last), -1 for none, where the machine has
    several and a job lives inside one; else None.  ``rejected``: which were refused, by row; of those that were read from job
    rows the instant is that of their submission.  ``broken``: how often a promise to each row was taken back or not kept; None
    where that never happened, or is not known.  ``told_pieces``: what job rows without their pieces say of ``piece_count``;
    None where ``pieces`` holds them all.  ``predicted``: the run time that was predicted of each at its submission,
    microseconds, -1 where its estimate stood; None where nothing was predicted.
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
    told_pieces: Int64Array | None = None
    predicted: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.workload)

    @property
    def ran(self) -> BoolArray:
        """Which rows ran."""
        return np.asarray(self.start >= 0)

    @property
    def piece_count(self) -> Int64Array:
        """In how many pieces each row ran: 0 for one go on the processors that it asked for, -1 where it is not known."""
        if self.told_pieces is not None:
            return self.told_pieces
        rows = np.empty(0, np.int64) if self.pieces is None else self.pieces[:, 0]
        return np.bincount(rows, minlength=len(self)).astype(np.int64)

    @property
    def is_in_pieces(self) -> BoolArray:
        """Which rows did not run in one go on the processors that they asked for."""
        return rows_in_pieces(self.pieces, len(self)) if self.told_pieces is None else np.asarray(self.told_pieces > 0)

    @property
    def lacks_pieces(self) -> BoolArray:
        """Which rows ran in pieces that are not known: of them only the first start and the end are."""
        return self.is_in_pieces & ~rows_in_pieces(self.pieces, len(self))

    def spans(self) -> Spans:
        """Return what held processors when; of a job in pieces each of them, or one from start to end if they are not known."""
        rows = np.flatnonzero(self.ran & ~rows_in_pieces(self.pieces, len(self)))
        host = np.full(len(rows), -1) if self.host is None else self.host[rows]
        return with_pieces(Spans(rows, self.start[rows], self.end[rows], self.workload.procs[rows], host), self.pieces)

    def queue_spans(self) -> Spans:
        """Return which job stood in the queue when: until its first start, and again from a run that was thrown away to the next.

        They are of the jobs that ran, the first stays of all of them before the others.  A suspended job, whose work is kept,
        stands in no queue.
        """
        rows, procs = np.flatnonzero(self.ran), self.workload.procs
        first = Spans(rows, self.workload.submit[rows], self.start[rows], procs[rows], np.full(len(rows), -1))
        return first if self.pieces is None else queued_again(first, self.pieces, procs)

    def only(self, which: BoolArray | Int64Array) -> Schedule:
        """Return the schedule of some of the jobs, by a mask or by their rows in ascending order; itself where these are all."""
        places = np.full(len(self), -1, np.int64)
        rows = np.arange(len(self))[which]
        if len(rows) == len(self):
            return self
        places[rows] = np.arange(len(rows))
        columns: dict[str, Any] = {name: getattr(self, name) for name in _SCHEDULE_COLUMNS}
        kept: dict[str, Any] = {name: None if column is None else column[rows] for name, column in columns.items()}
        return replace(
            self,
            workload=self.workload.only(rows),
            **kept,
            queue_max=None,
            pieces=moved_pieces(self.pieces, places),
            rejected=tuple(each._replace(row=int(places[each.row])) for each in self.rejected if places[each.row] >= 0),
        )

    def only_ran(self) -> Schedule:
        """Return the schedule of the jobs that ran, without those that were rejected; itself where there are none."""
        return self.only(self.ran)

    def in_order_of_start(self) -> Int64Array:
        """Return the rows that ran, by (start, sequence): the order of the job rows."""
        rows = np.flatnonzero(self.ran)
        return rows[np.argsort(self.start[rows], kind="stable")]


_SCHEDULE_COLUMNS = ("start", "kind", "promise", "first_promise", "end", "host", "broken", "told_pieces", "predicted")


def finished_run(policy: str, **told: Any) -> Schedule:
    """Return the schedule of which only some columns and facts are told; the others are absent.

    ``told``: columns and facts of ``Workload`` and ``Schedule`` by name, the columns in order of sequence; needed are number,
    submit, start, end, procs, estimate and run.
    """
    count = len(told["submit"])
    absent = np.broadcast_to(np.int64(-1), count)
    known: dict[str, Any] = {
        "name": "", "procs_total": 0, "logged_run": told["run"], "memory": np.broadcast_to(np.int64(0), count),
        "user": absent, "group": absent, "queue": absent, "counted": np.ones(count, np.bool_), "log_row": np.arange(count),
        "kind": np.broadcast_to(np.int8(-1), count), "promise": absent, "first_promise": absent, **told,
    }  # fmt: skip
    of_run = {each.name: known.pop(each.name) for each in fields(Schedule) if each.name in known}
    return Schedule(Workload(**known), policy, **of_run)
