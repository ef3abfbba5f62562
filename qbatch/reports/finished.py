"""Job rows turned back into the record of a run, so that metrics and breakdowns can read them."""

from __future__ import annotations

import numpy as np

from qbatch.model.record import Int64Array, Schedule, Workload
from qbatch.reports.job_rows import JobRows
from qbatch.reports.result import Result


def in_order_of_submission(rows: JobRows) -> JobRows:
    """Return the rows by sequence, or by (submit, job number) where the rows tell none."""
    return rows.taken(np.lexsort((rows.sequence, rows.job_id, rows.submit)))


def schedule_of(result: Result, rows: JobRows) -> Schedule:
    """Return the record of the jobs that ran, in order of submission; what job rows do not tell is absent."""
    ordered = in_order_of_submission(rows)
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
    )
    return Schedule(
        workload=work,
        policy=ordered.policy,
        start=ordered.start,
        kind=ordered.kind,
        promise=ordered.promise,
        first_promise=ordered.first_promise,
        end=ordered.end,
        queue_max=longest_queue(ordered.submit, ordered.start),
    )


def longest_queue(submit: Int64Array, start: Int64Array) -> int:
    """Return how many jobs wait at most for a length of time; those that start at once do not."""
    waits = start > submit
    at = np.concatenate([start[waits], submit[waits]])
    change = np.repeat(np.array([-1, 1]), int(waits.sum()))
    return int(np.cumsum(change[np.argsort(at, kind="stable")]).max(initial=0))
