"""Steps that choose jobs and change how much work they bring, or the users' requested times.

Rows that no replay would run (no processors, no run time) are not changed, and are never
duplicated.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from qbatch.model.errors import InputError, UsageError
from qbatch.workloads.draws import Draws
from qbatch.workloads.header import parse_header
from qbatch.workloads.log import ORIGIN, Column, Log, compact, in_order
from qbatch.workloads.tsafrir import tsafrir_estimates

THOUSAND = 1000
"""Factors are whole thousandths: 1.4 is 1,400."""


def thousandths(value: float, name: str, least: float, most: float) -> int:
    """Return a factor in whole thousandths.

    Raises:
        UsageError: it is out of range, or not a whole number of thousandths.
    """
    found = round(value * THOUSAND) if abs(value) < 1e12 else 0
    if not least <= value <= most or abs(found - value * THOUSAND) > 1e-6:
        raise UsageError(
            f"{name}={value:g} is not a number of at most three decimals from {least:g} to {most:g}"
        )
    return found


def sized(log: Log, procs: int) -> Log:
    """Return a log with ``procs`` as the machine's processors in its header."""
    if log.header.max_procs == procs:
        return log
    lines = [line for line in log.header.lines if not line.startswith("; MaxProcs")]
    return replace(log, header=parse_header([*lines, f"; MaxProcs: {procs}"]))


def can_run(log: Log) -> Column:
    """Return a mask of the rows that a replay would run on the log's own machine."""
    procs = log.procs
    fits = procs <= (log.header.max_procs or np.iinfo(np.int64).max)
    return np.asarray((procs > 0) & fits & (log["run"] >= 0))


def changed(log: Log, columns: dict[str, Column], note: str) -> Log:
    """Return a log with other columns, in order of sequence, with a Note that describes the
    change."""
    rows = len(columns["job"])
    lines = [
        line
        for line in log.header.lines
        if not line.startswith(("; MaxJobs", "; MaxRecords", "; EndTime"))
    ]
    header = parse_header(
        [*lines, f"; MaxJobs: {rows}", f"; MaxRecords: {rows}", f"; Note: {note}"]
    )
    digest = hashlib.sha256(f"{log.sha256} {note}".encode()).hexdigest()
    line = np.arange(len(header.lines) + 1, len(header.lines) + rows + 1, dtype=np.int64)
    compacted = {name: compact(np.ascontiguousarray(each)) for name, each in columns.items()}
    return in_order(replace(log, sha256=digest, header=header, columns=compacted, line=line))


def with_origin(log: Log) -> Log:
    """Return a log in which each row keeps its job number in the column ``ORIGIN``, through all
    steps."""
    return replace(log, columns=log.columns | {ORIGIN: log["job"]})


def rows_of(log: Log, rows: Column) -> dict[str, Column]:
    """Return the columns of some rows."""
    return {name: np.asarray(column)[rows] for name, column in log.columns.items()}


def taken(log: Log, *, skip: int = 0, first: int = 0) -> Log:
    """Return ``first`` jobs that can run (0: all) after skipping ``skip`` of them.

    Raises:
        UsageError: there are too few.
    """
    rows = np.flatnonzero(can_run(log))
    if skip + max(first, 1) > len(rows):
        raise UsageError(
            f"take: the log has {len(rows):,} jobs that can run, not {skip + max(first, 1):,}; "
            "take fewer"
        )
    rows = rows[skip : skip + first if first else None]
    return changed(log, rows_of(log, rows), f"take: skip={skip}, first={first}")


def expanded(log: Log, load: float) -> Log:
    """Return the log with run times and estimates ``load`` times as long, at least a second,
    rounded half up (rule 15)."""
    times = thousandths(load, "load", 0.001, 1000)
    columns = dict(log.columns)
    for name in ("run", "time_requested"):
        values = np.asarray(log[name], np.int64)
        longer = np.maximum((values * times + THOUSAND // 2) // THOUSAND, 1)
        columns[name] = np.where(values >= 0, longer, values)
    return changed(log, columns, f"expand: load={load:g}")


def duplicated(log: Log, load: float, seed: int) -> Log:
    """Return the log with jobs submitted twice until the load is ``load`` times as high (rule 15).

    The duplicates come at their own instants, uniform over the span of submissions.  They are
    nested: the duplicates of a load are part of those of every higher load, at the same instants.

    Raises:
        InputError: no job of it can run.
    """
    times = thousandths(load, "load", 1.0, 2.0)
    rows = np.flatnonzero(can_run(log))
    if not len(rows):
        raise InputError(
            f"{log.name}: no job in it can run, so none can be duplicated; leave duplicate out, or "
            "take other jobs"
        )
    count = ((times - THOUSAND) * len(rows) + THOUSAND // 2) // THOUSAND
    draws = Draws((seed, 1))
    order, fractions = draws.shuffled(len(rows)), draws.fractions(len(rows))
    submit = np.asarray(log["submit"])
    first, last = int(submit[rows].min()), int(submit[rows].max())
    copies = rows_of(log, rows[order[:count]])
    copies["submit"] = first + np.floor(fractions[:count] * (last - first)).astype(np.int64)
    copies["job"] = int(np.asarray(log["job"]).max()) + 1 + np.arange(count)
    columns = {
        name: np.concatenate([np.asarray(log[name]), column]) for name, column in copies.items()
    }
    return changed(log, columns, f"duplicate: load={load:g}, seed={seed}")


def exact_estimates(log: Log) -> Log:
    """Return the log with every estimate equal to the run time."""
    columns = dict(log.columns) | {"time_requested": np.maximum(log["run"], 0)}
    return changed(log, columns, "estimates: exact")


def users_estimates(log: Log, *, seed: int, largest_s: int | None = None) -> Log:
    """Return the log with estimates of the model of Tsafrir, Etsion and Feitelson instead of its
    own.

    Rows that no replay would run keep theirs.

    Args:
        seed: a whole number >= 0.
        largest_s: the largest estimate in seconds; None: the least whole hour that no run exceeds.

    Raises:
        UsageError: see ``tsafrir_estimates``: a job runs longer than ``largest_s``, or too many run
            long.
    """
    rows = np.flatnonzero(can_run(log))
    estimate = np.array(log["time_requested"], np.float64)
    estimate[rows] = tsafrir_estimates(np.asarray(log["run"])[rows], seed=seed, largest_s=largest_s)
    said = "" if largest_s is None else f", max={largest_s}"
    return changed(
        log,
        dict(log.columns) | {"time_requested": estimate},
        f"estimates: model=tsafrir{said}, seed={seed}",
    )
