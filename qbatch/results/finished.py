"""Job rows turned back into the record of a run, so that metrics and breakdowns can read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbatch.model.record import Int64Array, Rejection, Schedule, Workload
from qbatch.results.job_rows import ROW_FIELDS, JobRows
from qbatch.results.pieces import waits_of
from qbatch.results.result import Result


def in_order_of_submission(rows: JobRows) -> JobRows:
    """Return the rows by sequence, or by (submit, job number) where the rows tell none."""
    return rows.taken(np.lexsort((rows.sequence, rows.job_id, rows.submit)))


def job_keys(numbers: Int64Array) -> NDArray[Any]:
    """Return a key for each row: the job number and which of the rows with that number it is."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, bool)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(ordered)), 0)) if len(ordered) else ordered
    again = np.empty(len(numbers), np.int64)
    again[order] = np.arange(len(numbers)) - first
    keys = np.empty(len(numbers), [("number", np.int64), ("again", np.int64)])
    keys["number"], keys["again"] = numbers, again
    return keys


def jobs_of(rows: JobRows, other: JobRows) -> JobRows:
    """Return those of the rows whose jobs the other rows hold too, and of these what is counted there."""
    rows, other = in_order_of_submission(rows), in_order_of_submission(other)
    _, here, there = np.intersect1d(job_keys(rows.job_id), job_keys(other.job_id), return_indices=True)
    counted = np.zeros(len(rows), np.bool_)
    counted[here] = other.counted[there]
    order = np.sort(here)
    return replace(rows, counted=counted).taken(order)


def schedule_of(result: Result, rows: JobRows) -> Schedule:
    """Return the record of the jobs that ran, in order of submission; what job rows do not tell is absent.

    A job that ran in pieces that are not known (bare job rows) is given one from its first start to its end: its wait is
    then right, and what the machine did is not (:func:`unknown_pieces` says so).  Jobs that were refused stand behind those
    that ran.
    """
    ordered = in_order_of_submission(rows)
    refused = ordered.rejected
    told = () if refused is None else zip(refused.submit.tolist(), refused.reasons, strict=True)
    rejections = tuple(
        Rejection(row, at, *reason.partition(": ")[::2]) for row, (at, reason) in enumerate(told, len(ordered))
    )
    longest, ordered = longest_queue(ordered), with_rejected(ordered)
    count = len(ordered)
    log = result.document.get("log")
    sha256 = log.get("sha256") if isinstance(log, dict) else None
    work = Workload(
        name=result.name,
        procs_total=result.procs_total,
        number=ordered.job_id,
        submit=ordered.submit,
        procs=ordered.procs,
        estimate=ordered.estimate,
        run=ordered.run,
        logged_run=ordered.run,
        memory=np.broadcast_to(np.int64(0), count),
        user=ordered.user,
        group=ordered.group,
        queue=ordered.queue,
        counted=ordered.counted,
        log_row=np.arange(count),
        clock=result.clock,
        sha256=sha256 if isinstance(sha256, str) else None,
        queue_names=result.queue_names,
    )
    return Schedule(
        workload=work,
        policy=ordered.policy,
        start=ordered.start,
        kind=ordered.kind,
        promise=ordered.promise,
        first_promise=ordered.first_promise,
        end=ordered.end,
        queue_max=longest,
        pieces=ordered.pieces if ordered.pieces is not None else _one_each(ordered),
        host=ordered.host if (ordered.host >= 0).any() else None,
        rejected=rejections,
    )


def with_rejected(rows: JobRows) -> JobRows:
    """Return the rows with those of the jobs that were refused behind them, their times ``ABSENT``."""
    refused = rows.rejected
    if refused is None:
        return rows
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(rows, name), getattr(refused, name)]) for name in ROW_FIELDS
    }
    return replace(rows, rejected=None, **columns)


def _one_each(rows: JobRows) -> Int64Array | None:
    job = np.flatnonzero(rows.lacks_pieces)
    if not len(job):
        return None
    columns = (job, rows.start[job], rows.end[job], rows.procs[job], np.full(len(job), -1), np.ones(len(job)))
    return np.stack(columns, axis=1).astype(np.int64)


def unknown_pieces(rows: JobRows) -> str | None:
    """Return a sentence about jobs in pieces that are not known; None where there are none."""
    count = int(rows.lacks_pieces.sum())
    if not count:
        return None
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    return (
        f"{jobs} under {rows.policy} ran in pieces that bare job rows do not hold: each is taken for one bar from first start "
        "to end, which makes the machine look fuller than it was; give the result's directory (--out)"
    )


def longest_queue(rows: JobRows) -> int:
    """Return how many jobs wait at most before a pass; one that starts in the pass of its arrival waits before it."""
    waits = waits_of(rows)
    at = np.concatenate([waits.begin, waits.end])
    change = np.repeat(np.array([1, -1]), len(waits.begin))
    return int(
        np.cumsum(change[np.lexsort((-change, at))]).max(initial=0)
    )  # at one instant, who comes is counted first
