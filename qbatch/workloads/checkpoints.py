"""Checkpointed jobs of a log: a row of the whole job, and a row of each of its parts.

The Standard Workload Format has both for a job that was swapped out: first its summary (status 0, 1
or 5), then its partial executions (2: to be continued, 3 and 4: the last one).  "Use one kind
only."  A workload has whole jobs, so the parts go where their summary stands.  A Note of the header
counts them, so that every table of the log, and of a log made from it, does.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from qbatch.workloads.left_out import PARTS, LeftOut
from qbatch.workloads.log import Column, Log, counted
from qbatch.workloads.unfinished import unfinished_of


def without_parts(log: Log) -> Log:
    """Return the log without the parts of jobs that have a row of their own; their lines and jobs
    are ``part_lines`` and ``part_jobs``."""
    is_part = parts_of(log)
    if not is_part.any():
        return log
    job, user = np.asarray(log["job"]), np.asarray(log["user"])
    known: dict[int, set[int]] = {}
    for number, owner in zip(job[is_part].tolist(), user[is_part].tolist(), strict=True):
        known.setdefault(number, set()).add(owner)
    summaries: dict[int, set[int]] = {}
    for row in np.flatnonzero(~is_part & np.isin(job, [*known])).tolist():
        summaries.setdefault(job[row].item(), set()).add(user[row].item())
    dropped = np.zeros(len(log), np.bool_)
    for row in np.flatnonzero(is_part).tolist():
        # In logs that were put together, another job may have the number.
        owners, owner = summaries.get(job[row].item(), set()), user[row].item()
        dropped[row] = owner in owners or (bool(owners) and (owner == -1 or owners == {-1}))
    if not dropped.any():
        return log
    keep = ~dropped
    jobs, rows = len(np.unique(job[dropped])), int(dropped.sum())
    note = LeftOut(PARTS, jobs, int(keep.sum()), counted(rows, "row", "rows")).note
    header = msgspec.structs.replace(
        log.header,
        lines=(*log.header.lines, f"; Note: {note}"),
        entries=(*log.header.entries, ("note", note)),
        notes=(*log.header.notes, note),
    )
    columns = {
        name: column[: len(job[keep])] if column.strides == (0,) else column[keep]
        for name, column in log.columns.items()
    }
    return replace(
        log,
        header=header,
        columns=columns,
        line=log.line[keep],
        part_lines=log.line[dropped],
        part_jobs=job[dropped],
    )


def parts_of(log: Log) -> Column:
    """Return a mask of the rows that are partial executions by their status.

    A job that still ran when the log was written is none, although it has the same status.
    """
    status = np.asarray(log["status"])
    found: Column = (status >= 2) & (status <= 4)
    unfinished = unfinished_of(log) if found.any() else None
    return found if unfinished is None else found & ~unfinished.runs
