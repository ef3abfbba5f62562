"""A log with waits as a schedule: the one of the real machine.

The referee reads logs here, and so does, under the policy name ``log``, everything that takes a
result (``compare``, ``plot``, ``report``, ``metrics``, ``export``).  A job starts at its submission
plus its wait, ends its run time later, and holds the processors that were allocated to it, or the
requested ones if the log does not contain those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from qbatch.model.errors import InputError
from qbatch.model.record import (
    KINDS,
    MICROSECONDS,
    BoolArray,
    Int8Array,
    Int64Array,
    LogClock,
    Schedule,
    finished_run,
)
from qbatch.results.job_rows import LATEST
from qbatch.results.result import Result, most_procs
from qbatch.workloads import Log, machine_procs, read_log
from qbatch.workloads.left_out import left_out_of
from qbatch.workloads.log import used_procs
from qbatch.workloads.unfinished import unfinished_of

POLICY = "log"
"""The policy name of the schedule of a log."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The jobs of a log that have a wait, a run time and processors, in order of sequence; times in
    microseconds.

    ``row``: their rows in the log.  ``skipped``: the number of other jobs, by the first reason that
    holds.  ``known_until``: the instant at which the log was written, if jobs still ran then; those
    are taken to run for their requested time, as in a replay.  ``waits``: which jobs still waited,
    and have no start.
    """

    log: Log
    procs_total: int
    row: Int64Array
    submit: Int64Array
    wait: Int64Array
    run: Int64Array
    requested: Int64Array
    procs: Int64Array
    skipped: dict[str, int]
    waits: BoolArray
    known_until: int | None = None

    @property
    def estimate(self) -> Int64Array:
        """The requested times; the run times of jobs without one."""
        return np.where(self.requested > 0, self.requested, self.run)

    def schedule(
        self, start: Int64Array, chosen: slice | Int64Array = slice(None), **facts: Any
    ) -> Schedule:
        """Return the jobs, or those at chosen places in ascending order, as a schedule; ``start``
        holds the starts of all.

        ``facts``: other fields of its workload.
        """
        row, run, submit = self.row[chosen], self.run[chosen], self.submit[chosen]
        start = start[chosen]
        of_log = {name: self.log[name][row].astype(np.int64) for name in ("user", "group", "queue")}
        return finished_run(
            POLICY,
            number=self.log["job"][row].astype(np.int64),
            submit=submit,
            start=start,
            end=start + run,
            procs=self.procs[chosen],
            estimate=self.estimate[chosen],
            run=run,
            kind=kinds_of(submit, start),
            procs_total=self.procs_total,
            log_row=row,
            **of_log,
            **facts,
        )

    @property
    def is_preempted(self) -> bool:
        """Whether the header has ``Preemption: TS``: totals of jobs, any of which may have been
        suspended."""
        return (self.log.header.preemption or "").strip().upper() == "TS"


def read_recorded(path: str, procs: int | None = None, *, with_waiting: bool = False) -> Recorded:
    """Read the schedule in a log; ``procs`` overrides the size of the machine in its header.

    ``with_waiting``: include the jobs that waited when the log was written.

    Raises:
        InputError: it cannot be read, holds no schedule, or the size of the machine is unknown.
    """
    log = read_log(path)
    total = procs if procs is not None else machine_procs(log.header)
    if total is None:
        raise InputError(
            f"{path}: its header has neither MaxProcs nor MaxNodes; say how many with --procs N"
        )
    allocated, unfinished = used_procs(log), unfinished_of(log)
    waits = (
        unfinished.waits
        if with_waiting and unfinished is not None
        else np.zeros(len(log), np.bool_)
    )
    keep = np.ones(len(log), np.bool_)
    skipped: dict[str, int] = {}
    reasons: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("no_wait", lambda: (log["wait"] == -1) & ~waits),
        ("no_run_time", lambda: (log["run"] < 0) & ~waits),
        ("no_processors", lambda: allocated <= 0),
    )
    for name, wrong in reasons:
        bad: BoolArray = np.asarray(wrong()) & keep
        if bad.any():
            skipped[name] = int(bad.sum())
        keep &= ~bad
    if not keep.any():
        raise InputError(
            f"{path}: no job in it has a wait, a run time and processors; a schedule is SWF with "
            "field 3"
        )
    rows = np.flatnonzero(keep)
    submit, wait, run, requested = (
        _microseconds(log[name][rows], path, name)
        for name in ("submit", "wait", "run", "time_requested")
    )
    procs_had = allocated[rows].astype(np.int64)
    known_until = None
    if unfinished is not None:
        known_until = round(unfinished.second * MICROSECONDS)
        run = np.where(
            (unfinished.runs | waits)[rows], np.maximum(np.maximum(run, requested), 0), run
        )
    return Recorded(
        log, total, rows, submit, wait, run, requested, procs_had, skipped, waits[rows], known_until
    )


def is_log(path: str) -> bool:
    """Whether a file is a workload log by its name, not a result or job rows; ``-`` is standard
    input."""
    return path == "-" or path.lower().endswith((".swf", ".swf.gz", ".swf.xz", ".txt", ".txt.gz"))


def recorded_result(path: str, procs: int | None = None) -> Result:
    """Return the schedule in a log as a result of one policy, ``log``.

    Raises:
        InputError: as ``read_recorded``, or more than ``procs`` processors were in use at once.  A
            header with a smaller number only causes a note: real logs have such instants.
    """
    try:
        recorded = read_recorded(path, procs)
    except InputError as error:
        if "a schedule is SWF with field 3" not in str(error):
            raise
        raise InputError(
            f"{path}: is a log, not a result, and it does not contain when its jobs started (field "
            "3); "
            f"first qbatch replay {path} --out DIR, then give DIR"
        ) from error
    log, skipped = recorded.log, dict(recorded.skipped)
    is_early = recorded.wait < 0
    if is_early.any():
        skipped["negative_wait"] = int(is_early.sum())
    queues = log.header.queue_names()
    schedule = recorded.schedule(
        recorded.submit + recorded.wait,
        np.flatnonzero(~is_early),
        name=Path(path).name if path != "-" else path,
        clock=LogClock(log.header.unix_start_time, log.header.time_zone_string),
        sha256=log.sha256,
        queue_names=queues,
        skipped=skipped,
    )
    notes = list(log.notes)
    if recorded.is_preempted:
        notes.append(
            "its header has Preemption: TS, so run times include time in which jobs were suspended"
        )
    unfinished = unfinished_of(log)
    if unfinished is not None:
        ran, waited = int(unfinished.runs.sum()), int(unfinished.waits.sum())
        notes.append(
            f"when it was written, {ran:,} jobs ran, with the requested time as run time here, and "
            f"{waited:,} waited, "
            "which are left out"
        )
    peak = most_procs(schedule)
    if peak > recorded.procs_total:
        notes.append(
            f"{peak:,} processors are in use at once, more than the {recorded.procs_total:,} of "
            "the machine"
        )
    document: dict[str, Any] = {
        "recorded": True,
        "log": {
            "name": log.name,
            "sha256": log.sha256,
            "rows": len(log),
            "jobs": len(schedule),
            "notes": notes,
            "acknowledge": list(log.header.acknowledgements),
            "left_out": msgspec.to_builtins([*left_out_of(log.header)]),
        },
        "procs_total": recorded.procs_total,
        "machine": {"procs": recorded.procs_total},
        "skipped": skipped,
        "queues": {str(number): name for number, name in queues.items()},
    }
    result = Result((schedule,), document, path=path)
    return result if procs is None else result.sized(procs)


def kinds_of(submit: Int64Array, start: Int64Array) -> Int8Array:
    """Return how each job started, for jobs in order of sequence (docs/design.md, "The meaning of
    one instant").

    Backfilled: an earlier job starts later.  Else immediate: it starts at its submission.  Else in
    order.
    """
    latest = np.maximum.accumulate(start)
    kinds = np.where(start == submit, KINDS.index("immediate"), KINDS.index("in_order"))
    return np.where(latest > start, KINDS.index("backfilled"), kinds).astype(np.int8)


def _microseconds(values: Any, path: str, name: str) -> Int64Array:
    """Return seconds as integer microseconds, as the replay reads them."""
    if len(values) and float(np.abs(values).max()) > LATEST:
        raise InputError(f"{path}: a value of field {name} is too large for a time in seconds")
    whole = (
        values.astype(np.int64) * MICROSECONDS
        if values.dtype.kind in "iu"
        else np.rint(values * MICROSECONDS)
    )
    return np.asarray(whole, np.int64)
