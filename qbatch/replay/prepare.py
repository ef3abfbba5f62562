"""From a log to a workload: which rows run, on how many processors, with which estimates and run times.

The rules are design.md's ("The meaning of one instant"): processors are those requested if > 0, else allocated;
the estimate is the requested time if > 0, else the run time; a job that reaches its estimate is killed there;
jobs with no processors, a negative run time or more processors than the machine are skipped, counted and named.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import Machine
from qbatch.model.record import MICROSECONDS, Clock, Int64Array, Workload
from qbatch.workloads import Log, machine_procs

_LATEST = 1 << 52
"""Seconds that a time in a log may be, so that sums of microseconds stay in 64 bits."""

_BIGGEST = (1 << 62) // MICROSECONDS // 1024

ESTIMATES = ("log", "perfect", "f:N")
"""Where estimates come from: the log, the run time itself, or a draw from [run, N x run] (Feitelson and Weil 1998, 3.3)."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a log becomes a workload.  Times in seconds of the log's own clock, or ISO texts.

    ``estimates``: see ``ESTIMATES``.  ``kill``: a job that reaches its estimate ends there; else its estimate is
    lifted to its run time.  ``since``, ``before``: half-open span of submission.  ``first``: at most so many jobs.
    ``warmup``: seconds after the first submission in which jobs run but are not counted.  ``load``: divides the
    gaps between arrivals.
    """

    estimates: str = "log"
    seed: int = 0
    kill: bool = True
    since: str | None = None
    before: str | None = None
    first: int | None = None
    warmup: float = 0.0
    load: float = 1.0


def prepare(log: Log, machine: Machine, options: Options | None = None) -> Workload:
    """Return the jobs of a log that can run on a machine, in order of sequence.

    Raises:
        InputError: no job can run, or a number is too large.
        UsageError: an option cannot be understood.
    """
    options = options or Options()
    clock = Clock(log.header.unix_start_time, log.header.time_zone_string)
    submit_s, run_s = np.asarray(log["submit"]), np.asarray(log["run"])
    procs = np.asarray(log.procs)
    keep, skipped = _runnable(log, machine, submit_s, run_s, procs)
    keep &= _in_span(submit_s, options, clock, log.name)
    rows = np.flatnonzero(keep)
    if options.first is not None:
        rows = rows[: options.first]
    if not len(rows):
        raise InputError(
            f"{log.name}: no job in it can run ({_in_words(skipped) or 'none was submitted in the span asked for'})"
        )
    submit = _microseconds(submit_s[rows], log.name, "submit")
    counted = submit >= submit[0] + round(options.warmup * MICROSECONDS)
    submit = _scaled(submit, options.load)
    if options.load != 1.0:
        # Arrivals that now fall on one instant are ordered by job number, as everywhere.
        order = np.lexsort((log["job"][rows], submit))
        rows, submit, counted = rows[order], submit[order], counted[order]
    run = _microseconds(run_s[rows], log.name, "run")
    requested = np.asarray(log["time_requested"])[rows]
    estimate = np.where(requested > 0, _microseconds(np.maximum(requested, 0), log.name, "requested time"), run)
    estimate = _estimates(options, estimate, run)
    effective = run
    if options.kill:
        effective = np.minimum(run, estimate)
    else:
        estimate = np.maximum(estimate, run)
    return Workload(
        name=log.name,
        procs_total=machine.procs,
        number=np.ascontiguousarray(log["job"][rows]).astype(np.int64),
        submit=submit,
        procs=procs[rows].astype(np.int64),
        estimate=estimate,
        run=effective,
        logged_run=run,
        memory=_memory(log, rows, procs) if machine.counts_memory else np.broadcast_to(np.int64(0), len(rows)),
        user=_column(log, "user", rows),
        group=_column(log, "group", rows),
        queue=_column(log, "queue", rows),
        counted=counted,
        log_row=rows,
        clock=clock,
        skipped=skipped,
        sha256=log.sha256,
    )


def choose_procs(log: Log, procs: int | None) -> int:
    """Return the processors of the machine of a log: those given, else the header's MaxProcs, else MaxNodes.

    Raises:
        InputError: if neither says so.
    """
    found = procs if procs is not None else machine_procs(log.header)
    if found is None:
        raise InputError(f"{log.name}: its header has neither MaxProcs nor MaxNodes; say how many with --procs N")
    return found


def _runnable(
    log: Log, machine: Machine, submit: np.ndarray[Any, Any], run: np.ndarray[Any, Any], procs: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], dict[str, int]]:
    """Return which rows can run, and how many cannot for each reason (a row counts once, by the first that holds)."""
    keep = np.ones(len(log), np.bool_)
    skipped: dict[str, int] = {}
    memory = np.where(procs > 0, procs, 1) * np.maximum(log["memory_requested"], 0) * 1024
    most_memory = max((host.memory for host in machine.hosts), default=0)
    for name, bad in (
        ("negative_submit", submit < 0),
        ("no_processors", procs <= 0),
        ("negative_run", run < 0),
        ("too_wide", procs > machine.widest_job),
        ("too_much_memory", (memory > most_memory) if machine.counts_memory else np.zeros(len(log), np.bool_)),
    ):
        bad = bad & keep
        if bad.any():
            skipped[name] = int(bad.sum())
        keep &= ~bad
    return keep, skipped


def _in_words(skipped: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in skipped.items())


def _in_span(
    submit: np.ndarray[Any, Any], options: Options, clock: Clock, name: str
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    inside = np.ones(len(submit), np.bool_)
    if options.since is not None:
        inside &= submit >= _log_second(options.since, clock, name, "--from")
    if options.before is not None:
        inside &= submit < _log_second(options.before, clock, name, "--to")
    return inside


def _log_second(text: str, clock: Clock, name: str, option: str) -> float:
    """Return the log second of a number or an ISO time (read in the log's zone if it names none)."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r}: neither seconds of the log nor an ISO time such as 1996-11-01T08:00"
        ) from None
    if clock.unix_start is None:
        raise UsageError(f"{option} {text!r}: {name} has no UnixStartTime in its header; give seconds of the log")
    if when.tzinfo is None:
        try:
            when = when.replace(tzinfo=ZoneInfo(clock.zone) if clock.zone else UTC)
        except (OSError, ValueError, KeyError):
            when = when.replace(tzinfo=UTC)
    return when.timestamp() - clock.unix_start


def _microseconds(seconds: np.ndarray[Any, Any], name: str, field: str) -> Int64Array:
    if len(seconds) and float(seconds.max()) > _BIGGEST:
        raise InputError(
            f"{name}: {field} of {seconds.max():g} s is too large; times up to {_BIGGEST} s can be replayed"
        )
    if seconds.dtype.kind == "i":
        whole: Int64Array = seconds.astype(np.int64) * MICROSECONDS
        return whole
    rounded: Int64Array = np.rint(seconds * MICROSECONDS).astype(np.int64)
    return rounded


def _scaled(submit: Int64Array, load: float) -> Int64Array:
    """Divide the gaps between arrivals by ``load``, keeping the first arrival and the order."""
    if load == 1.0:
        return submit
    if float(submit[-1] - submit[0]) / load > _BIGGEST * MICROSECONDS:
        raise UsageError(f"--load {load:g}: stretches the log beyond {_BIGGEST} s")
    scaled: Int64Array = submit[0] + np.rint((submit - submit[0]) / load).astype(np.int64)
    return scaled


def _estimates(options: Options, estimate: Int64Array, run: Int64Array) -> Int64Array:
    if options.estimates == "log":
        return estimate
    if options.estimates == "perfect":
        return run.copy()
    kind, _, text = options.estimates.partition(":")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if kind != "f" or not 1.0 <= factor <= 1e6:
        raise UsageError(
            f"--estimates {options.estimates!r}: use log, perfect, or f:N with N from 1 to 1000000 (such as f:4)"
        )
    if factor == 1.0:
        return run.copy()
    draws = np.random.Generator(np.random.PCG64([options.seed, round(factor * 1000)])).random(len(run))
    return np.maximum(_to_microseconds(run, 1.0 + draws * (factor - 1.0)), run)


def _to_microseconds(run: Int64Array, stretch: np.ndarray[Any, np.dtype[np.float64]]) -> Int64Array:
    stretched: Int64Array = np.rint(run * stretch).astype(np.int64)
    return stretched


def _column(log: Log, name: str, rows: Int64Array) -> np.ndarray[Any, Any]:
    """Return a column for some rows; one that says the same throughout stays free of charge."""
    column = log[name]
    if column.strides == (0,):
        return np.broadcast_to(column[:1].reshape(()), len(rows))
    return np.ascontiguousarray(column[rows])


def _memory(log: Log, rows: Int64Array, procs: np.ndarray[Any, Any]) -> Int64Array:
    """Return bytes for the whole job: SWF counts KB a processor."""
    per_processor = np.maximum(log["memory_requested"][rows], 0).astype(np.int64)
    total: Int64Array = per_processor * procs[rows] * 1024
    return total
