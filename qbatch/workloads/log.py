"""A workload log in memory: its header, its 18 columns, and what was noticed while reading it.

Rows stand in the order of docs/design.md, law 5: by (submit, job number, line in the file), so the index
of a row is the job's sequence.  Columns are as small as is exact, and a column that says -1
throughout occupies no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from qbatch.workloads.header import Header, machine_procs, readable

Column = np.ndarray[Any, Any]
FIELDS = (
    "job", "submit", "wait", "run", "procs_allocated", "cpu_time", "memory_used", "procs_requested", "time_requested",
    "memory_requested", "status", "user", "group", "executable", "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
_CANCELLED = 5  # the SWF's own status
SHOWN_LINES = 5


@dataclass(frozen=True)
class Log:
    """A workload log; times in seconds of the log's own clock, memory in KB per processor, -1 is unknown.

    ``bad_rows``: how many rows could not be read; ``bad_lines`` and ``bad_reasons``: where the first of them stand, and why.
    """

    name: str
    sha256: str
    header: Header
    columns: dict[str, Column]
    line: Column
    notes: list[str] = field(default_factory=list)
    bad_rows: int = 0
    bad_lines: tuple[int, ...] = ()
    bad_reasons: tuple[str, ...] = ()
    user_names: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __repr__(self) -> str:
        procs = machine_procs(self.header)
        size = "" if procs is None else f" for {procs:,} processors"
        days = f", {float(self['submit'][-1] - self['submit'][0]) / 86400:,.1f} days" if len(self) else ""
        return f"<Log {readable(self.name)}: {len(self):,} jobs{size}{days}>"

    @property
    def procs(self) -> Column:
        """Return the processors of each job: requested if > 0, else allocated (docs/design.md)."""
        return np.where(self["procs_requested"] > 0, self["procs_requested"], self["procs_allocated"])


def absent(rows: int) -> Column:
    """Return a column of ``rows`` times -1 that occupies no memory."""
    return np.broadcast_to(np.int32(-1), (rows,))


def compact(values: Column) -> Column:
    """Return the values in the smallest exact type of int32, int64, float64; all -1 costs nothing."""
    if values.dtype == np.int32:
        narrow = values
    else:
        with np.errstate(invalid="ignore"):
            narrow = values.astype(np.int32)
        if not np.array_equal(narrow, values):
            if values.dtype == np.int64:
                return values
            with np.errstate(invalid="ignore"):
                wide = values.astype(np.int64)
            return wide if np.array_equal(wide, values) else values.astype(np.float64, copy=False)
    if len(narrow) and narrow[0] == -1 and bool((narrow == -1).all()):
        return absent(len(narrow))
    return narrow


def in_order(log: Log) -> Log:
    """Return the log with its rows by (submit, job number, line); a note says when submits were not ascending."""
    submit, job = log["submit"], log["job"]
    gaps = submit[1:] < submit[:-1]
    if not gaps.any() and not ((submit[1:] == submit[:-1]) & (job[1:] < job[:-1])).any():
        return log
    late = int(np.count_nonzero(submit < np.maximum.accumulate(submit)))
    order = np.lexsort((job, submit)).astype(np.int32)  # stable: equal keys stay by line
    for name, column in log.columns.items():
        if column.strides != (0,):
            log.columns[name] = column[order]
    if late:
        log.notes.append(f"{counted(late, 'row was', 'rows were')} out of order of submission; sorted")
    return replace(log, line=log.line[order])


def counted(count: int, one: str, many: str) -> str:
    """Return the count and the noun that goes with it: ``1 row`` or ``1,234 rows``."""
    return f"{count:,} {one if count == 1 else many}"


def shown_lines(lines: Sequence[int], count: int) -> str:
    """Return ``line 7`` or ``lines 7, 9, ...`` for the first few of ``count`` line numbers."""
    shown = ", ".join(str(line) for line in lines[:SHOWN_LINES])
    return f"line{'s' if count > 1 else ''} {shown}{', ...' if count > SHOWN_LINES else ''}"


def log_zone(header: Header) -> ZoneInfo:
    """Return the time zone that TimeZoneString names, UTC when it names none that is known."""
    try:
        return ZoneInfo(header.time_zone_string or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def wall_clock(header: Header, second: float) -> str | None:
    """Return a log second as ISO date and time in the log's own zone; None without a UnixStartTime."""
    if header.unix_start_time is None:
        return None
    try:
        instant = datetime.fromtimestamp(header.unix_start_time + second, UTC)
        return instant.astimezone(log_zone(header)).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None


def facts(log: Log) -> dict[str, Any]:
    """Return what a log says in numbers, by the definitions of table 1.4 in docs/spec/workloads.md, ready for JSON.

    Run times and sizes are taken over every row, also rows that never ran; offered load is the work
    (run x allocated processors, requested where unknown) over machine x submit span.
    """
    submit, estimate = log["submit"], log["time_requested"]
    span_s = float(submit[-1]) - float(submit[0])
    return {
        "log": {"name": readable(log.name), "sha256": log.sha256, "rows": len(log), "bad_rows": log.bad_rows},
        "machine": {"procs": machine_procs(log.header)},
        "jobs": _job_counts(log),
        "span": {
            "submit_first_s": submit[0].item(),
            "submit_last_s": submit[-1].item(),
            "submit_span_s": span_s,
            "submit_first": wall_clock(log.header, float(submit[0])),
            "submit_last": wall_clock(log.header, float(submit[-1])),
            "time_zone": log_zone(log.header).key,
        },
        "load": {
            "offered": _offered_load(log, span_s),
            "interarrival_mean_s": span_s / (len(log) - 1) if len(log) > 1 else None,
            "interarrival_median_s": float(np.median(np.diff(submit))) if len(log) > 1 else None,
            "run_mean_s": float(log["run"].mean(dtype=np.float64)),
            "run_median_s": float(np.median(log["run"])),
        },
        "sizes": _size_shares(log),
        "estimates": _estimate_facts(estimate),
        "users": int(np.unique(log["user"][log["user"] >= 0]).size),
        "submit_ties": int(np.count_nonzero(submit[1:] == submit[:-1])),
        "notes": list(log.notes),
    }


def cancelled_rows(log: Log) -> Column:
    """Return which jobs were cancelled before they ran: status 5, and no run time or no processors."""
    found: Column = (log["status"] == _CANCELLED) & ((log["run"] < 0) | (log.procs <= 0))
    return found


def used_procs(log: Log) -> Column:
    """Return the processors that each job had in the log: allocated if > 0, else requested."""
    return np.where(log["procs_allocated"] > 0, log["procs_allocated"], log["procs_requested"])


def _job_counts(log: Log) -> dict[str, Any]:
    run, estimate, procs = log["run"], log["time_requested"], log.procs
    machine = machine_procs(log.header)
    return {
        "rows": len(log),
        "never_ran": int(np.count_nonzero((run < 0) | (procs <= 0))),
        "cancelled": int(np.count_nonzero(cancelled_rows(log))),
        "zero_run": int(np.count_nonzero(run == 0)),
        "longer_than_estimate": int(np.count_nonzero((estimate > 0) & (run > estimate))),
        "wider_than_machine": int(np.count_nonzero(procs > machine)) if machine else None,
        "without_estimate": int(np.count_nonzero(estimate <= 0)),
    }


def _offered_load(log: Log, span_s: float) -> float | None:
    machine = machine_procs(log.header)
    if machine is None or span_s <= 0:
        return None
    work = np.maximum(log["run"], 0).astype(np.float64) * np.maximum(used_procs(log), 0)
    return float(work.sum()) / (machine * span_s)


def _size_shares(log: Log) -> dict[str, Any]:
    procs = log["procs_requested"] if log["procs_allocated"].strides == (0,) else log["procs_allocated"]
    whole = np.clip(procs, -1, 2**53).astype(np.int64)
    is_power = (whole > 0) & (whole == procs) & ((whole & (whole - 1)) == 0)
    return {
        "serial_percent": 100.0 * float(np.mean(procs == 1)),
        "power_of_two_percent": 100.0 * float(np.mean(is_power)),
        "procs_mean": float(procs.mean(dtype=np.float64)),
        "procs_max": procs.max().item(),
    }


def _estimate_facts(estimate: Column) -> dict[str, Any]:
    values, counts = np.unique(estimate, return_counts=True)
    known = values > 0
    values, counts = values[known], counts[known]
    top = np.lexsort((values, -counts))[:5]
    return {
        "distinct": int(values.size),
        "top": [{"time_s": values[i].item(), "jobs": int(counts[i])} for i in top],
    }
