"""A small workload generator with a seed, for demonstrations and tests.

It draws what makes scheduling interesting and nothing more: arrivals with a daily and a weekly
cycle, many short and few long jobs, sizes that favour powers of two.  Estimates are rounded up to popular
values, as by people; there are a few busy users, and campaigns (one user submits many equal jobs at once).  Unlike the
Lublin-Feitelson model (``lublin/``) it is not fitted to a machine.

Deterministic on every machine (law 5): raw 64-bit draws of PCG64, a stream that NumPy promises not
to change, integer arithmetic and correctly rounded operations; no transcendental function.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from math import isqrt

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.workloads.draws import Draws
from qbatch.workloads.header import PROCS_MAX, parse_header
from qbatch.workloads.log import FIELDS, Column, Log, absent, compact

JOBS_MAX = 50_000_000
UNIX_START_TIME = 1_735_516_800  # Monday, 30 December 2024, 00:00 UTC
POPULAR_S = tuple(60 * minutes for minutes in (5, 10, 15, 30, 60, 120, 240, 480, 720, 1080))
RUN_MAX_S = POPULAR_S[-1]

_HOUR_S = 3_600
# Arrivals per hour of the day and per day of the week (Monday first), relative: quiet nights, busy afternoons.
_HOURLY = (30, 24, 20, 16, 14, 14, 18, 28, 50, 78, 96, 104, 98, 100, 110, 112, 108, 98, 80, 66, 58, 52, 44, 36)
_DAILY = (100, 108, 110, 106, 96, 48, 40)
# Run times: an octave [2**k, 2**(k+1)) seconds is drawn by these weights, then a second within it.
_OCTAVE_FIRST = 3
_OCTAVE_WEIGHTS = (5, 7, 9, 9, 9, 9, 9, 9, 8, 8, 8, 7, 3)
_SERIAL_PERCENT = 24
_POWER_OF_TWO_PERCENT = 60
_EXACT_PERCENT = 12  # jobs that run up to their estimate
_FAILED_PERCENT = 6
_CAMPAIGN_MAX = 120
_CAMPAIGN_GAP_S = 40


def generate_log(
    *, jobs: int, procs: int, load: float, seed: int, accuracy: float = 0.4, campaigns: float = 0.0
) -> Log:
    """Return a generated log of ``jobs`` jobs for ``procs`` processors.

    ``load``: the work offered per processor and second over the span of submissions, reached by stretching the span.
    ``accuracy``: about the mean of run over estimate.  ``campaigns``: the share of jobs that are submitted in bursts.
    Times are whole seconds.  Raises UsageError for values out of range.
    """
    _check(jobs=jobs, procs=procs, load=load, seed=seed, accuracy=accuracy, campaigns=campaigns)
    draws = Draws(seed)
    leader = _campaign_leaders(draws, jobs, campaigns)
    size = _sizes(draws, jobs, procs)[leader]
    base_s = (1 << _OCTAVE_FIRST + draws.weighted(_OCTAVE_WEIGHTS, jobs))[leader]
    run = np.minimum(base_s + draws.below(base_s, jobs), RUN_MAX_S)
    estimate = _estimates(draws, run, accuracy)
    estimate = np.maximum(estimate, np.maximum.reduceat(estimate, _starts(leader))[_group(leader)])
    is_exact = draws.below(100, jobs) < _EXACT_PERCENT
    run = np.where(is_exact & (leader == np.arange(jobs)), estimate, run)
    user = _users(draws, jobs)[leader]
    span_s = max(1, round(float((run * size).sum()) / (procs * load)))
    submit = _submits(draws, leader, span_s)
    status = np.where(draws.below(100, jobs) < _FAILED_PERCENT, 0, 1)
    order = np.argsort(submit, kind="stable")
    values = {
        "job": np.arange(1, jobs + 1),
        "submit": submit[order],
        "run": run[order],
        "procs_allocated": size[order],
        "procs_requested": size[order],
        "time_requested": estimate[order],
        "status": status[order],
        "user": user[order],
        "group": (user[order] - 1) % 8 + 1,
        "queue": np.where(estimate[order] <= _HOUR_S, 1, 2),
    }
    command = f"qbatch trace generate --jobs {jobs} --procs {procs} --load {load:g} --seed {seed}"
    command += f" --accuracy {accuracy:g} --campaigns {campaigns:g}"
    return log_of(values, jobs, procs, command)


def _check(*, jobs: int, procs: int, load: float, seed: int, accuracy: float, campaigns: float) -> None:
    wrong = None
    if not 1 <= jobs <= JOBS_MAX:
        wrong = f"--jobs is {jobs}; use 1 to {JOBS_MAX:,}"
    elif not 1 <= procs <= PROCS_MAX:
        wrong = f"--procs is {procs}; use 1 to {PROCS_MAX:,}"
    elif not 0.001 <= load <= 1000:
        wrong = f"--load is {load:g}; use 0.001 to 1000, for example 0.85"
    elif seed < 0:
        wrong = f"--seed is {seed}; use 0 or more"
    elif not 0.01 <= accuracy <= 1:
        wrong = f"--accuracy is {accuracy:g}; use 0.01 to 1"
    elif not 0 <= campaigns <= 1:
        wrong = f"--campaigns is {campaigns:g}; use a share of jobs from 0 to 1"
    if wrong is not None:
        raise UsageError(f"trace generate: {wrong}")


def _campaign_leaders(draws: Draws, jobs: int, campaigns: float) -> Column:
    """Return for each job the first job of its campaign; a job outside any campaign is its own leader."""
    length = 1 + draws.below(_CAMPAIGN_MAX, jobs)
    # A campaign has on average 1 + (max + 1) / 2 more jobs than a single start: weight starts accordingly.
    mean = (_CAMPAIGN_MAX + 1) / 2
    per_mille = round(1000 * campaigns / (campaigns + (1 - campaigns) * mean)) if campaigns else 0
    length = np.where(draws.below(1000, jobs) < per_mille, length, 1)
    ends = np.cumsum(length)
    leaders = np.concatenate(([0], ends[ends < jobs]))
    return np.repeat(leaders, np.diff(np.append(leaders, jobs)))


def _starts(leader: Column) -> Column:
    return np.flatnonzero(np.diff(leader, prepend=-1))


def _group(leader: Column) -> Column:
    return np.cumsum(np.diff(leader, prepend=-1) != 0) - 1


def _users(draws: Draws, jobs: int) -> Column:
    """Draw users by Zipf's law; their number is about the square root of half the jobs, 4 to 400."""
    users = min(max(4, isqrt((jobs - 1) // 2) + 1), 400)
    return 1 + draws.weighted([1_000_000 // rank for rank in range(1, users + 1)], jobs)


def _sizes(draws: Draws, jobs: int, procs: int) -> Column:
    """Draw serial jobs, powers of two (each exponent equally likely, the largest less) and other sizes."""
    exponents = procs.bit_length() - 1
    kind = draws.below(100, jobs)
    weights = [1] if exponents < 1 else [4] * max(exponents - 1, 0) + [1]
    power = 1 << np.minimum(1 + draws.weighted(weights, jobs), exponents)
    other = 1 + draws.below(power, jobs)
    size = np.where(kind < _SERIAL_PERCENT + _POWER_OF_TWO_PERCENT, power, other)
    return np.where(kind < _SERIAL_PERCENT, 1, size)


def _estimates(draws: Draws, run: Column, accuracy: float) -> Column:
    """Stretch each run time by a random factor with the mean 1 / accuracy, and round up to a popular value."""
    per_mille = 1000 + draws.below(max(1, round(2000 / accuracy) - 2000), len(run))
    wished = -(-run * per_mille // 1000)
    popular = np.asarray(POPULAR_S, dtype=np.int64)
    estimate: Column = popular[np.minimum(np.searchsorted(popular, wished), len(popular) - 1)]
    return estimate


def _submits(draws: Draws, leader: Column, span_s: int) -> Column:
    """Return the submit times: leaders by the cycles of day and week, the others shortly after their leader."""
    hours = span_s // _HOUR_S + 1
    hour = np.arange(hours, dtype=np.int64)
    weight = np.asarray(_HOURLY, dtype=np.int64)[hour % 24] * np.asarray(_DAILY, dtype=np.int64)[hour // 24 % 7]
    starts = _starts(leader)
    second = draws.weighted(weight, len(starts)) * _HOUR_S + draws.below(_HOUR_S, len(starts))
    second = (np.minimum(second, span_s))[_group(leader)]
    gap = np.where(leader == np.arange(len(leader)), 0, draws.below(2 * _CAMPAIGN_GAP_S, len(leader)))
    total = np.cumsum(gap)
    submit: Column = np.minimum(second + total - total[leader], span_s)
    # The span is exact: the first job comes at 0, the last at its end.
    submit[np.argmin(submit)] = 0
    submit[np.argmax(submit)] = span_s if len(submit) > 1 else 0
    return submit


def log_of(values: dict[str, Column], jobs: int, procs: int, command: str) -> Log:
    """Return generated columns, the others absent, as a log with a header that names the command."""
    end_s = int((values["submit"] + values["run"]).max())
    header = parse_header(
        (
            "; Version: 2.2",
            "; Computer: none (generated workload)",
            "; Installation: qbatch",
            f"; MaxJobs: {jobs}",
            f"; MaxRecords: {jobs}",
            "; Preemption: No",
            f"; UnixStartTime: {UNIX_START_TIME}",
            "; TimeZoneString: UTC",
            f"; StartTime: {header_date(0)}",
            f"; EndTime: {header_date(end_s)}",
            f"; MaxNodes: {procs}",
            f"; MaxProcs: {procs}",
            f"; MaxRuntime: {RUN_MAX_S}",
            "; MaxQueues: 2",
            "; Queue: 1 short",
            "; Queue: 2 long",
            f"; Note: made by {command}",
        )
    )
    columns = {name: compact(values[name]) if name in values else absent(jobs) for name in FIELDS}
    digest = hashlib.sha256(command.encode()).hexdigest()
    line = np.arange(len(header.lines) + 1, len(header.lines) + jobs + 1, dtype=np.int32)
    return Log(name="generated", sha256=digest, header=header, columns=columns, line=line)


def header_date(second: int) -> str:
    """Return a second of a generated log in the date format of headers."""
    moment = datetime.fromtimestamp(UNIX_START_TIME + min(second, 10**11), UTC)
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{days[moment.weekday()]} {months[moment.month - 1]} {moment:%d %H:%M:%S} UTC {moment.year}"
