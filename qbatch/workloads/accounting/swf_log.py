"""From jobs to a log in the Standard Workload Format 2.2: the header, the 18 columns, the size of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from qbatch.model.spans import Peak, most_at_once
from qbatch.workloads.accounting.names import numbers_of
from qbatch.workloads.accounting.record import AccountingRecord
from qbatch.workloads.left_out import LeftOut
from qbatch.workloads.log import FIELDS, Column, compact


@dataclass(frozen=True, slots=True)
class LogShape:
    """The form of a log: ``unit`` (``cores`` or ``nodes``) is what a processor is; ``key`` numbers names by a keyed hash;
    ``left_out``: what the log does not contain, for its header."""

    zone: ZoneInfo
    unit: str = "cores"
    is_anonymous: bool = False
    has_anonymous_queues: bool = False
    key: bytes | None = None
    machine_procs: int | None = None
    computer: str = ""
    installation: str = "not stated"
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedLog:
    """A finished log: header lines, columns by name, processors of the machine and whether they were given, what is left out."""

    lines: list[str]
    columns: dict[str, Column]
    procs: int
    is_procs_told: bool
    names: dict[str, int]
    peak: Peak
    left_out: tuple[LeftOut, ...] = ()


def make_log(jobs: Sequence[AccountingRecord], shape: LogShape, hosts: int) -> ImportedLog:
    """Return the log of at least one job, which stand in order of submission; ``hosts``: different hosts seen."""
    by_nodes = shape.unit == "nodes"
    used = _array(job.nodes if by_nodes else job.cores for job in jobs)
    asked = _array(job.nodes_asked if by_nodes else job.cores_asked for job in jobs)
    ran = _array(job.start for job in jobs) >= 0
    used = np.where(ran, used, -1)
    submit = _array(job.submit for job in jobs)
    base = int(submit.min())
    each = np.where(used > 0, used, asked)
    columns: dict[str, Column] = {
        "job": np.arange(1, len(jobs) + 1),
        "submit": submit - base,
        "wait": np.where(ran, _array(job.start for job in jobs), _array(job.end for job in jobs)) - submit,
        "run": _array(job.run for job in jobs),
        "procs_allocated": used,
        "cpu_time": _per_processor(np.fromiter((job.cpu for job in jobs), np.float64, len(jobs)), each),
        "memory_used": np.floor(_per_processor(_array(job.memory_used for job in jobs), each)),
        "procs_requested": asked,
        "time_requested": _array(job.limit for job in jobs),
        "memory_requested": np.floor(_per_processor(_array(job.memory_asked for job in jobs), each)),
        "status": _array(job.status for job in jobs),
    }
    names = _numbered(jobs, shape, columns)
    _chain(jobs, columns)
    peak = _peak(jobs, used)
    procs = shape.machine_procs or peak.procs
    lines = _header(jobs, shape, procs, hosts, names["queue"], columns)
    if not shape.is_anonymous:
        lines += _legend(names)
    return ImportedLog(
        lines, {name: compact(columns[name]) for name in FIELDS}, procs, shape.machine_procs is not None,
        {kind: len(numbers) for kind, numbers in names.items()}, peak, shape.left_out,
    )  # fmt: skip


def _array(values: object) -> Column:
    return np.fromiter(values, np.int64)  # type: ignore[call-overload, no-any-return]


def _per_processor(values: Column, procs: Column) -> Column:
    """Return the share of one processor, to the microsecond; -1 if there is none."""
    known = (values >= 0) & (procs > 0)
    return np.where(known, np.round(values / np.maximum(procs, 1), 6), -1.0)


def _numbered(jobs: Sequence[AccountingRecord], shape: LogShape, columns: dict[str, Column]) -> dict[str, dict[str, int]]:
    """Fill in the columns of names; return the numbers by kind of name."""
    key = shape.key if shape.is_anonymous else None
    queue_key = key if shape.has_anonymous_queues else None
    found: dict[str, dict[str, int]] = {}
    for column, attribute, its_key in (
        ("user", "user", key), ("group", "group", key), ("executable", "name", key), ("queue", "queue", queue_key),
    ):  # fmt: skip
        names = [getattr(job, attribute) for job in jobs]
        numbers = numbers_of(names, column, its_key)
        columns[column] = _array(numbers.get(name, -1) for name in names)
        found[column] = numbers
    columns["partition"] = columns["queue"]
    return found


def _chain(jobs: Sequence[AccountingRecord], columns: dict[str, Column]) -> None:
    """Fill in the preceding job and the think time of attempts after a requeue."""
    preceding, think = np.full(len(jobs), -1), np.full(len(jobs), -1)
    places = {id(job): place for place, job in enumerate(jobs)}
    for place, job in enumerate(jobs):
        before = places.get(id(job.after)) if job.after is not None else None
        if before is not None and before < place:
            preceding[place] = before + 1
            think[place] = max(job.submit - jobs[before].end, 0)
    columns["preceding_job"], columns["think_time"] = preceding, think


def _peak(jobs: Sequence[AccountingRecord], used: Column) -> Peak:
    """Return the most processors allocated at once, ends before starts, and at least those of the widest job.

    The time of a suspension is unknown, only its length: a suspended job counts for the second after its start.
    """
    start, end = _array(job.start for job in jobs), _array(job.end for job in jobs)
    is_whole = _array(job.suspended for job in jobs) <= 0
    ran = used > 0
    peak = most_at_once(start[ran], np.where(is_whole, end, np.minimum(end, start + 1))[ran], used[ran])
    return peak if peak.procs else Peak(1, int(start.max()))


def _header(
    jobs: Sequence[AccountingRecord],
    shape: LogShape,
    procs: int,
    hosts: int,
    queues: dict[str, int],
    columns: dict[str, Column],
) -> list[str]:
    submits, ends = [jobs[0].submit, jobs[-1].submit], max(job.end for job in jobs)
    unit = "hosts" if shape.unit == "nodes" else "cores"
    how = (
        f"given; a processor is one of the {unit}" if shape.machine_procs else f"inferred: most {unit} allocated at once"
    )
    preemption = "TS" if any(job.suspended > 0 for job in jobs) else "No"
    lines = [
        "Version: 2.2", f"Computer: {shape.computer}", f"Installation: {shape.installation}",
        "Conversion: qbatch import", f"MaxJobs: {len(jobs)}", f"MaxRecords: {len(jobs)}", f"Preemption: {preemption}",
        f"UnixStartTime: {min(submits)}", f"TimeZoneString: {shape.zone.key}", f"StartTime: {_date(min(submits), shape.zone)}",
        f"EndTime: {_date(ends, shape.zone)}",
    ]  # fmt: skip
    nodes = procs if shape.unit == "nodes" else hosts
    if nodes:
        lines.append(f"MaxNodes: {nodes}" if shape.unit == "nodes" else f"MaxNodes: {nodes} (inferred: hosts seen)")
    lines += [f"MaxProcs: {procs} ({how})", f"MaxRuntime: {int(columns['run'].max())}", f"MaxQueues: {len(queues)}"]
    for number, name in sorted((number, name) for name, number in queues.items()):
        shown = f"queue-{number}" if shape.has_anonymous_queues else name
        lines += [f"Queue: {number} {shown}", f"Partition: {number} {shown}"]
    lines += [f"Note: {note}" for note in (*shape.notes, *(each.note for each in shape.left_out))]
    return [f"; {_one_line(line)}" for line in lines]


def _legend(names: dict[str, dict[str, int]]) -> list[str]:
    """Return the lines with the numbers of users and groups."""
    return [
        f"; Note: {kind} {number} is {_one_line(name)}"
        for kind in ("user", "group")
        for name, number in names[kind].items()
    ]


def _one_line(text: str) -> str:
    """Return the text without characters that would break a header line; bytes that are not UTF-8 are kept."""
    return "".join(letter if letter.isprintable() or "\udc80" <= letter <= "\udcff" else "_" for letter in text)


def _date(at: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(zone).strftime("%a %b %d %H:%M:%S %Z %Y")
