"""A schedule as a log in the Standard Workload Format: the waits are those of the schedule."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np
from msgspec import convert

from qbatch.distribution import __version__
from qbatch.model.record import MICROSECONDS, Int64Array
from qbatch.results.exports.exportable import Exportable
from qbatch.results.run_words import acknowledged
from qbatch.workloads.header import Header
from qbatch.workloads.left_out import LeftOut
from qbatch.workloads.log import Column
from qbatch.workloads.swf_writer import write_log


def write_swf(out: BinaryIO, source: Exportable) -> None:
    """Write the log of the only policy, by submission; times are those of the log that was
    replayed.

    The status is 1 (completed), or -1 if it is unknown: a job that ran exactly for its estimate may
    have been ended there.  The run time is from the first start to the end, with all suspensions:
    the header then has ``Preemption: TS``, which is the format's term for totals without execution
    intervals.

    Raises:
        UsageError: there are several policies.
    """
    schedule = source.one_policy("SWF")
    if source.write_swf is not None:
        source.write_swf(out)
        return
    work = schedule.workload
    columns: dict[str, Column] = {
        "job": work.number,
        "submit": _seconds(work.submit),
        "wait": _seconds(schedule.start - work.submit),
        "run": _seconds(schedule.end - schedule.start),
        "procs_allocated": work.procs,
        "procs_requested": work.procs,
        "time_requested": _seconds(work.estimate),
        "status": np.where(work.run < work.estimate, 1, -1),
        "user": work.user,
        "group": work.group,
        "queue": work.queue,
    }
    clock = work.clock
    preemption = "TS" if schedule.is_in_pieces.any() else "No"
    lines = [
        "; Version: 2.2",
        f"; Computer: simulated by qbatch {__version__}",
        f"; MaxJobs: {len(work)}",
        f"; MaxRecords: {len(work)}",
        f"; Preemption: {preemption}",
        f"; MaxProcs: {work.procs_total}",
    ]
    if clock.unix_start is not None:
        lines.append(f"; UnixStartTime: {clock.unix_start}")
    if clock.zone is not None:
        lines.append(f"; TimeZoneString: {clock.zone}")
    lines += [
        f"; Queue: {number} {' '.join(name.split())}" for number, name in work.queue_names.items()
    ]
    thanks = acknowledged(source.result.document)
    lines += [f"; Acknowledge: {thanks}"] if thanks else []
    lines.append(f"; Note: {' '.join(f'{work.name} under the policy {schedule.policy}'.split())}")
    left_out = (source.result.document.get("log") or {}).get("left_out") or []
    lines += [f"; Note: {each.note}" for each in convert(left_out, list[LeftOut])]
    write_log(out, Header(lines=tuple(lines)), columns)


def _seconds(times: Int64Array) -> Column:
    return times // MICROSECONDS if not (times % MICROSECONDS).any() else times / MICROSECONDS
