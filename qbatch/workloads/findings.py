"""The anomalies of a log: each with a stable code, its severity, how often it occurs and where
first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbatch.workloads.checkpoints import parts_of
from qbatch.workloads.header import machine_procs
from qbatch.workloads.log import FIELDS, SHOWN_LINES, Column, Log, cancelled_rows, counted, log_zone
from qbatch.workloads.unfinished import unfinished_of


@dataclass(frozen=True)
class Finding:
    """One anomaly of a log: a stable code, its severity, its count, its first places, and its
    description."""

    code: str
    severity: str  # "error": unusable as asked; "warning": usable, but look; "note": good to know
    count: int
    lines: tuple[int, ...]
    text: str


_EXPECTED_KEYWORDS = ("version", "maxjobs", "unixstarttime", "timezonestring")


def findings(log: Log, *, lenient: bool = False) -> list[Finding]:
    """Return all anomalies of a log read leniently, worst first; if there is no error, the log is
    usable.

    Unreadable rows are an error unless ``lenient``; a log without one runnable row always is.
    """
    found = [*_row_findings(log, lenient), *_value_findings(log), *_header_findings(log)]
    rank = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: rank[finding.severity])


def _at(log: Log, code: str, severity: str, mask: Column, text: str) -> list[Finding]:
    """Return the finding for ``mask`` (over the rows), if any row is in it."""
    lines = np.sort(log.line[mask])
    first = tuple(lines[:SHOWN_LINES].tolist())
    return [Finding(code, severity, len(lines), first, text)] if len(lines) else []


def _row_findings(log: Log, lenient: bool) -> list[Finding]:
    found = []
    if log.bad_rows:
        severity = "warning" if lenient else "error"
        text = f"unreadable rows (the first: {log.bad_reasons[0]}); --lenient skips them"
        found.append(Finding("bad_row", severity, log.bad_rows, log.bad_lines[:SHOWN_LINES], text))
    by_line = np.argsort(log.line)
    submit = log["submit"][by_line]
    late = np.zeros(len(log), dtype=np.bool_)
    late[by_line] = submit < np.maximum.accumulate(submit)
    found += _at(
        log,
        "out_of_order",
        "warning",
        late,
        "submitted earlier than a row before it; sorted when read",
    )
    _, first, counts = np.unique(log["job"], return_index=True, return_counts=True)
    if (counts > 1).any():
        again = np.ones(len(log), dtype=np.bool_)
        again[first] = False
        found += _at(
            log,
            "duplicate_job",
            "warning",
            again,
            "job number used before (a checkpointed or a merged log?)",
        )
    return found


def _value_findings(log: Log) -> list[Finding]:
    run, procs, estimate, status = log["run"], log.procs, log["time_requested"], log["status"]
    unfinished = unfinished_of(log)
    none = np.zeros(len(log), np.bool_)
    waits, runs = (none, none) if unfinished is None else (unfinished.waits, unfinished.runs)
    never, cancelled = ((run < 0) & ~(waits & (estimate > 0))) | (procs <= 0), cancelled_rows(log)
    machine = machine_procs(log.header)
    found = _at(
        log,
        "cancelled",
        "note",
        cancelled,
        "cancelled before they ran (status 5): such jobs are skipped",
    )
    lacking = never & ~cancelled
    found += _at(
        log, "never_ran", "warning", lacking, "no processors or no run time: such jobs are skipped"
    )
    found += _at(log, "running", "note", runs, "ran when the log was written: a run time so far")
    found += _at(log, "waiting", "note", waits, "waited when the log was written: no run time")
    if never.all():
        found.append(
            Finding(
                "no_job",
                "error",
                len(log),
                (),
                "no row could run: each lacks processors or a run time",
            )
        )
    if machine is not None:
        text = f"wider than the machine ({machine} processors by the header): such jobs are skipped"
        found += _at(log, "wider_than_machine", "warning", procs > machine, text)
    over = (estimate > 0) & (run > estimate)
    found += _at(
        log,
        "longer_than_estimate",
        "warning",
        over,
        "ran longer than requested: killed at the estimate",
    )
    off = (status < -1) | (status > 5) | (status != np.floor(status))
    found += _at(log, "unknown_status", "warning", off, "status outside -1..5")
    if len(log.part_lines):
        lines = np.sort(log.part_lines)
        text = "part of a checkpointed job, which has a row of its own: left out"
        found.append(
            Finding(
                "checkpoint_part", "warning", len(lines), tuple(lines[:SHOWN_LINES].tolist()), text
            )
        )
    text = "part of a checkpointed job that has no row of its own: each part counts as a job"
    found += _at(log, "part_status", "warning", parts_of(log), text)
    found += _at(
        log, "procs_not_whole", "warning", procs != np.floor(procs), "processors not a whole number"
    )
    for name in FIELDS:
        column = log[name]
        if column.strides != (0,):
            text = f"{name} is negative and not -1"
            found += _at(log, f"negative_{name}", "warning", (column < 0) & (column != -1), text)
    text = "without a requested time: the run time is taken for it"
    return found + _at(log, "without_estimate", "note", estimate <= 0, text)


def _header_findings(log: Log) -> list[Finding]:
    header, found = log.header, []
    jobs = len(log) + log.bad_rows
    for keyword, stated, rows in (
        ("MaxJobs", header.max_jobs, jobs),
        ("MaxRecords", header.max_records, jobs + len(log.part_lines)),
    ):
        if stated is not None and stated != rows:
            text = (
                f"{keyword} is {stated:,}, but the log has {counted(rows, 'row', 'rows')} "
                "(usual in cleaned logs)"
            )
            found.append(Finding(f"{keyword.lower()}_differs", "note", 1, (), text))
    if machine_procs(header) is None:
        text = "no MaxProcs or MaxNodes in the header: the machine must be given"
        found.append(Finding("no_machine", "warning", 1, (), text))
    present = {keyword for keyword, _ in header.entries}
    missing = [keyword for keyword in _EXPECTED_KEYWORDS if keyword not in present]
    if missing:
        text = f"header without {', '.join(missing)}"
        found.append(Finding("missing_keyword", "note", len(missing), (), text))
    zone = header.time_zone_string
    if zone is not None and log_zone(header).key != zone:
        text = f"TimeZoneString {zone!r} is no known zone: UTC is taken"
        found.append(Finding("unknown_zone", "warning", 1, (), text))
    return found
