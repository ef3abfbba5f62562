"""A log that was written while jobs ran and waited: its Note about them, and their rows.

The Standard Workload Format has no status for a job that is not over.  Such a log has a Note about
when it was written and how many such jobs there are.  One that ran has status 2 (a partial
execution that will be continued) and its run time so far, which is censored: the true one is
longer.  One that waited has neither wait nor run time nor status (-1). Another Note records that
jobs were inside hosts, so that the processors were no single pool.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from qbatch.workloads.header import Header
from qbatch.workloads.log import Log

RUNS, WAITS = 2, -1
"""The status (field 11) of a job that runs or waits when the log is written."""

_NOTE = re.compile(r"written at second (\d+(?:\.\d+)?) while \d+ jobs? ran ")
_HOSTS = re.compile(r"the processors are on \d+ hosts")

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The rows of a log that had not ended at ``second`` (log seconds), when it was written."""

    second: float
    runs: Mask
    waits: Mask


def unfinished_note(second: str, running: int, waiting: int) -> str:
    """Return the Note of a log that is written at a log second, with the numbers of running and
    waiting jobs."""
    return (
        f"written at second {second} while {running} {'job' if running == 1 else 'jobs'} ran "
        f"(status {RUNS}; run time so far) "
        f"and {waiting} waited (wait, run time and status {WAITS})"
    )


def hosts_note(cpus: Sequence[int]) -> str:
    """Return the Note of a log with jobs on several hosts, each with this many processors."""
    sizes = sorted(set(cpus))
    each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return (
        f"the processors are on {len(cpus)} hosts of {each}; what a job asked for in one chunk "
        "lay inside one host"
    )


def is_on_hosts(header: Header) -> bool:
    """Return whether the Note about hosts is in the header: the log is then not one of a single
    pool."""
    return any(_HOSTS.match(note) for note in header.notes)


def as_simulated(header: Header) -> Header:
    """Return the header for a simulated schedule of the log, in which all jobs end and no host is
    known."""
    notes = [note for note in header.notes if _NOTE.match(note) or _HOSTS.match(note)]
    lines = [line for line in header.lines if not any(line.endswith(note) for note in notes)]
    return msgspec.structs.replace(
        header, lines=tuple(lines), notes=tuple(note for note in header.notes if note not in notes)
    )


def unfinished_of(log: Log) -> Unfinished | None:
    """Return which jobs of a log were not over when it was written; None if it has no such Note."""
    found = next((match for note in log.header.notes if (match := _NOTE.match(note))), None)
    if found is None:
        return None
    run, status = np.asarray(log["run"]), np.asarray(log["status"])
    waits = (status == WAITS) & (run == -1) & (np.asarray(log["wait"]) == -1)
    return Unfinished(float(found.group(1)), (status == RUNS) & (run >= 0), waits)
