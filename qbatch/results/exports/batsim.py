"""Batsim's ``jobs.csv``, which evalys reads.

Source: the documentation of Batsim 4, "Jobs" output (one sentence a column), and evalys 4.0
``JobSet``.  Processors are assigned as in our Gantt chart (lowest first), because job rows do not
name them.  A line has one start, one end and one set of processors: a job with several execution
intervals is one bar, on as many processors as it requested.
"""

from __future__ import annotations

from dataclasses import replace
from typing import BinaryIO

import numpy as np

from qbatch.model.record import MICROSECONDS
from qbatch.results.boxes import Boxes, assign
from qbatch.results.exports.exportable import Exportable
from qbatch.results.result import most_procs

COLUMNS = (
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
)
"""The columns of Batsim 4, in its order."""


def write_batsim(out: BinaryIO, source: Exportable) -> None:
    """Write the jobs of the only policy, by end, as Batsim does; times in seconds, always with a
    decimal point.

    The execution time is from start to end, with all suspensions.  Every job counts as completed:
    job rows do not distinguish a job that was ended at its estimate from one that needed exactly
    that long.

    Raises:
        UsageError: there are several policies.
    """
    schedule = replace(source.one_policy("Batsim's jobs.csv"), pieces=None)
    work = schedule.workload
    boxes = assign(schedule, max(work.procs_total, most_procs(schedule)), source.result.host_cpus)
    places = _intervals(work.procs.tolist(), boxes)
    out.write(",".join(COLUMNS).encode() + b"\n")
    columns = (work.number, work.submit, schedule.start, schedule.end, work.procs, work.estimate)
    cells = list(zip(*(column.tolist() for column in columns), strict=True))
    for row in np.lexsort((schedule.start, schedule.end)).tolist():
        job, submit, start, end, procs, estimate = cells[row]
        stretch = f"{(end - submit) / (end - start):.6f}" if end > start else ""
        times = (start, end - start, end, start - submit, end - submit)
        line = (
            f"{job},w0,{job},{_seconds(submit)},{procs},{_seconds(estimate)},1,COMPLETED_SUCCESSFULLY,"
            f"{','.join(map(_seconds, times))},{stretch},{places[row]},-1,\n"
        )
        out.write(line.encode())


def _intervals(procs: list[int], boxes: Boxes) -> list[str]:
    """Return the processors of each job in Batsim's form, ``0-3 5``; a job of no length has the
    lowest."""
    found: list[list[tuple[int, int]]] = [[] for _ in procs]
    for job, low, high in zip(
        boxes.job.tolist(), boxes.low.tolist(), boxes.high.tolist(), strict=True
    ):
        found[job].append((low, high - 1))
    return [
        " ".join(
            f"{low}-{high}" if high > low else str(low)
            for low, high in sorted(each or [(0, procs[row] - 1)])
        )
        for row, each in enumerate(found)
    ]


def _seconds(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return f"{seconds}.{rest:06d}".rstrip("0") if rest else f"{seconds}.0"
