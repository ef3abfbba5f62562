"""A workload log in memory: its header, its 18 columns, and the notes from reading it.

Rows are in the order of docs/design.md, law 5: by (submit, job number, line in the file), so the
index of a row is the job's sequence.  Columns have the smallest exact type, and a column of only -1
occupies no memory.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from qbatch.distribution import install_command
from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.record import LogClock
from qbatch.workloads.header import Header, machine_procs, readable
from qbatch.workloads.side_file import SideText

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


Column = np.ndarray[Any, Any]
FIELDS = (
    "job",
    "submit",
    "wait",
    "run",
    "procs_allocated",
    "cpu_time",
    "memory_used",
    "procs_requested",
    "time_requested",
    "memory_requested",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding_job",
    "think_time",
)
_CANCELLED = 5  # the SWF's own status
SHOWN_LINES = 5


ORIGIN = "origin"
"""A column of logs made from logs, in addition to the fields: the number of the job before."""


@dataclass(frozen=True)
class Log:
    """A workload log; times in seconds of the log's own clock, memory in KB per processor, -1 is
    unknown.

    ``bad_rows``: the number of unreadable rows; ``bad_lines`` and ``bad_reasons``: the lines of the
    first of them, and why.  ``part_lines`` and ``part_jobs``: the lines and job numbers of rows
    that were left out, as parts of checkpointed jobs (:mod:`.checkpoints`).  ``side``: the side file
    of what the jobs ask for beyond the fields (:mod:`.resource_rows`), None if there is none.
    ``machine``: that of a generated log, on which the jobs of its side file run; None: the header
    has a number of processors.
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
    part_lines: Column = field(default_factory=lambda: np.zeros(0, np.int32))
    part_jobs: Column = field(default_factory=lambda: np.zeros(0, np.int32))
    side: SideText | None = None
    machine: Machine | None = None

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __repr__(self) -> str:
        procs = machine_procs(self.header)
        size = "" if procs is None else f" for {procs:,} processors"
        days = (
            f", {float(self['submit'][-1] - self['submit'][0]) / 86400:,.1f} days"
            if len(self)
            else ""
        )
        return f"<Log {readable(self.name)}: {len(self):,} jobs{size}{days}>"

    @property
    def procs(self) -> Column:
        """Return the processors of each job: requested if > 0, else allocated (docs/design.md)."""
        return np.where(
            self["procs_requested"] > 0, self["procs_requested"], self["procs_allocated"]
        )

    def to_arrow(self) -> pyarrow.Table:
        """Return the log as an Arrow table: a row for each job, the 18 fields of SWF as columns,
        null for unknown.

        Raises:
            UsageError: pyarrow is missing.
        """
        if find_spec("pyarrow") is None:
            raise UsageError(f"to_arrow needs pyarrow: {install_command('report')}")
        import pyarrow as pa

        return pa.table(
            {name: pa.array(self[name], mask=np.asarray(self[name] == -1)) for name in FIELDS}
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return the log as a pandas data frame: a row for each job, the 18 fields of SWF as
        columns, -1 for unknown.

        Raises:
            UsageError: pandas is missing.
        """
        if find_spec("pandas") is None:
            raise UsageError("to_pandas needs pandas: pip install pandas")
        import pandas

        return pandas.DataFrame({name: np.array(self[name]) for name in FIELDS})

    def to_polars(self) -> polars.DataFrame:
        """Return the log as a polars data frame: a row for each job, the 18 fields of SWF as
        columns, null for unknown.

        Raises:
            UsageError: polars or pyarrow is missing.
        """
        if find_spec("polars") is None:
            raise UsageError("to_polars needs polars: pip install polars")
        import polars

        return polars.DataFrame(self.to_arrow())


def absent(rows: int) -> Column:
    """Return a column of ``rows`` times -1 that occupies no memory."""
    return np.broadcast_to(np.int32(-1), (rows,))


def compact(values: Column) -> Column:
    """Return the values in the smallest exact type of int32, int64, float64; a column of only -1
    takes no memory."""
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
    """Return the log with its rows by (submit, job number, line); it gets a note if submits were
    not ascending."""
    submit, job = log["submit"], log["job"]
    gaps = submit[1:] < submit[:-1]
    if not gaps.any() and not ((submit[1:] == submit[:-1]) & (job[1:] < job[:-1])).any():
        return log
    late = int(np.count_nonzero(submit < np.maximum.accumulate(submit)))
    order = np.lexsort((job, submit)).astype(np.int32)  # stable: equal keys stay in order of line
    for name, column in log.columns.items():
        if column.strides != (0,):
            log.columns[name] = column[order]
    if late:
        log.notes.append(
            f"{counted(late, 'row was', 'rows were')} out of order of submission; sorted"
        )
    return replace(log, line=log.line[order])


def counted(count: int, one: str, many: str) -> str:
    """Return the count and the noun that goes with it: ``1 row`` or ``1,234 rows``."""
    return f"{count:,} {one if count == 1 else many}"


def shown_lines(lines: Sequence[int], count: int) -> str:
    """Return ``line 7`` or ``lines 7, 9, ...`` for the first few of ``count`` line numbers."""
    shown = ", ".join(str(line) for line in lines[:SHOWN_LINES])
    return f"line{'s' if count > 1 else ''} {shown}{', ...' if count > SHOWN_LINES else ''}"


def log_zone(header: Header) -> ZoneInfo:
    """Return the time zone that TimeZoneString names, UTC if it names none that is known."""
    try:
        return ZoneInfo(header.time_zone_string or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def wall_clock(header: Header, second: float) -> str | None:
    """Return a log second as ISO date and time in the log's own zone; None without a
    UnixStartTime."""
    if header.unix_start_time is None:
        return None
    try:
        instant = datetime.fromtimestamp(header.unix_start_time + second, UTC)
        return instant.astimezone(log_zone(header)).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return None


def log_second(text: str, clock: LogClock, name: str, option: str) -> float:
    """Return the log second of a number or an ISO time (read in the log's zone if it names none).

    ``name``: of the log; ``option``: what the text is, for messages.

    Raises:
        UsageError: it is neither, or an ISO time of a log without a date or a known zone.
    """
    try:
        second = float(text)
        if math.isfinite(second):
            return second
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r}: neither seconds of the log nor an ISO time such as "
            "1996-11-01T08:00"
        ) from None
    if clock.unix_start is None:
        raise UsageError(
            f"{option} {text!r}: {name} has no UnixStartTime in its header; give seconds of the log"
        )
    if when.tzinfo is None:
        try:
            when = when.replace(tzinfo=ZoneInfo(clock.zone) if clock.zone else UTC)
        except (OSError, ValueError, KeyError):
            raise UsageError(
                f"{option} {text!r}: the log's time zone {clock.zone!r} is not known; write an "
                "offset, such as +01:00"
            ) from None
    return when.timestamp() - clock.unix_start


def facts(log: Log) -> dict[str, Any]:
    """Return the figures of a log, by the definitions of table 1.4 in docs/spec/workloads.md, ready
    for JSON.

    Run times and sizes are taken over every row, also rows that never ran; offered load is the work
    (run x allocated processors, requested if unknown) over machine x submit span.
    """
    submit, run, procs, estimate = log["submit"], log["run"], log.procs, log["time_requested"]
    machine = machine_procs(log.header)
    work = np.maximum(run, 0).astype(np.float64) * np.maximum(used_procs(log), 0)
    values, counts = np.unique(estimate[estimate > 0], return_counts=True)
    span_s = float(submit[-1]) - float(submit[0])
    return {
        "log": {
            "name": readable(log.name),
            "sha256": log.sha256,
            "rows": len(log),
            "bad_rows": log.bad_rows,
        },
        "machine": {"procs": machine},
        "jobs": {
            "rows": len(log),
            "never_ran": int(np.count_nonzero((run < 0) | (procs <= 0))),
            "cancelled": int(np.count_nonzero(cancelled_rows(log))),
            "zero_run": int(np.count_nonzero(run == 0)),
            "longer_than_estimate": int(np.count_nonzero((estimate > 0) & (run > estimate))),
            "wider_than_machine": int(np.count_nonzero(procs > machine)) if machine else None,
            "without_estimate": int(np.count_nonzero(estimate <= 0)),
        },
        "span": {
            "submit_first_s": submit[0].item(),
            "submit_last_s": submit[-1].item(),
            "submit_span_s": span_s,
            "submit_first": wall_clock(log.header, float(submit[0])),
            "submit_last": wall_clock(log.header, float(submit[-1])),
            "time_zone": log_zone(log.header).key,
        },
        "load": {
            "offered": float(work.sum()) / (machine * span_s)
            if machine is not None and span_s > 0
            else None,
            "interarrival_mean_s": span_s / (len(log) - 1) if len(log) > 1 else None,
            "interarrival_median_s": float(np.median(np.diff(submit))) if len(log) > 1 else None,
            "run_mean_s": float(run.mean(dtype=np.float64)),
            "run_median_s": float(np.median(run)),
        },
        "sizes": _size_shares(log),
        "estimates": {
            "distinct": int(values.size),
            "top": [
                {"time_s": values[i].item(), "jobs": int(counts[i])}
                for i in np.lexsort((values, -counts))[:5]
            ],
        },
        "users": int(np.unique(log["user"][log["user"] >= 0]).size),
        "submit_ties": int(np.count_nonzero(submit[1:] == submit[:-1])),
        "notes": list(log.notes),
    }


def cancelled_rows(log: Log) -> Column:
    """Return a mask of the jobs cancelled before they ran: status 5, and no run time or no
    processors."""
    found: Column = (log["status"] == _CANCELLED) & ((log["run"] < 0) | (log.procs <= 0))
    return found


def used_procs(log: Log) -> Column:
    """Return the processors that each job had in the log: allocated if > 0, else requested."""
    return np.where(log["procs_allocated"] > 0, log["procs_allocated"], log["procs_requested"])


def _size_shares(log: Log) -> dict[str, Any]:
    procs = (
        log["procs_requested"] if log["procs_allocated"].strides == (0,) else log["procs_allocated"]
    )
    whole = np.clip(procs, -1, 2**53).astype(np.int64)
    is_power = (whole > 0) & (whole == procs) & ((whole & (whole - 1)) == 0)
    return {
        "serial_percent": 100.0 * float(np.mean(procs == 1)),
        "power_of_two_percent": 100.0 * float(np.mean(is_power)),
        "procs_mean": float(procs.mean(dtype=np.float64)),
        "procs_max": procs.max().item(),
    }


_OTHER_NAMES = {"job_id": "job", "procs": "procs_requested", "estimate": "time_requested"}
_NEEDED = ("submit", "run", "procs_requested")


def log_of_frame(frame: Any, procs: int | None = None, name: str = "frame") -> Log:
    """Return a log, its rows in the order given, of a table in memory: a data frame of pandas or
    polars, an Arrow table, or a dictionary of arrays.

    Columns have the names of SWF's fields (``FIELDS``), or those of the five-column log and of job
    rows (``procs``, ``estimate``, ``job_id``).  ``submit``, ``run`` and the processors are needed;
    a null or NaN is unknown.  A note names the columns that are not used.

    Args:
        procs: processors of the machine, as ``MaxProcs`` in a header.
        name: of the log.

    Raises:
        InputError: a needed column is missing, or one holds anything else than numbers.
    """
    listed = next(
        (getattr(frame, each) for each in ("column_names", "columns") if hasattr(frame, each)),
        frame,
    )
    names = list(map(str, listed))
    found = {_OTHER_NAMES.get(each, each): each for each in names}
    if "procs_allocated" in found:
        found.setdefault("procs_requested", found["procs_allocated"])
    for needed in _NEEDED:
        if needed not in found:
            raise InputError(
                f"{name}: column {needed} is missing{suggestion(needed, names)}; there are "
                f"{', '.join(names)}"
            )
    columns = {key: _numbers(frame[found[key]], found[key], name) for key in FIELDS if key in found}
    rows = len(columns["submit"])
    if not rows:
        raise InputError(f"{name}: has no row")
    columns.setdefault("job", np.arange(1, rows + 1, dtype=np.int32))
    columns.setdefault("procs_allocated", columns["procs_requested"])
    digest = hashlib.sha256()
    for key in FIELDS:
        columns.setdefault(key, absent(rows))
        digest.update(np.ascontiguousarray(columns[key]).tobytes())
    unused = [each for each in names if _OTHER_NAMES.get(each, each) not in FIELDS]
    notes = [f"columns that are not used: {', '.join(unused)}"] if unused else []
    line = np.arange(1, rows + 1, dtype=np.int32)
    return Log(name, digest.hexdigest(), Header(max_procs=procs), columns, line, notes)


def _numbers(values: Any, column: str, name: str) -> Column:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "iu":
            array = np.array(
                [np.nan if value is None else value for value in array.tolist()], np.float64
            )
            array = np.where(np.isnan(array), -1.0, array)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name}: column {column} holds something that is no number ({error})"
        ) from error
    return compact(array.astype(np.int64) if array.dtype.kind in "iu" else array)
