"""A month of the Origin 2000 as a workload log, preceded by the last days of the previous month."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.workloads.draws import Draws
from qbatch.workloads.header import Header, parse_header
from qbatch.workloads.log import FIELDS, Column, Log, absent, compact
from qbatch.workloads.origin2000 import tables
from qbatch.workloads.origin2000.arrivals import DAY_S, arrival_times, shuffled_jobs
from qbatch.workloads.origin2000.facts import class_demands, facts, is_like_the_paper, lt_within_st, serial_share
from qbatch.workloads.origin2000.jobs import DemandTarget, DrawnJobs, draw_class
from qbatch.workloads.origin2000.tables import CLASSES, MONTHS, SIZES, TIMES, Month

WARMUP_DAYS_MAX = 28
_COLUMNS = ("procs", "requested_s", "run_s", "memory_kb", "used_kb")
_ATTEMPTS = 100
_BOUND_ATTEMPTS = 5
_TILTS = 16
_SERIAL_AIM = (0.45, 0.6)


@dataclass(frozen=True)
class _Arrived:
    """Jobs with their classes, users and submissions (seconds since the first of the month), in order of submission."""

    submit_s: Column
    place: Column
    user: Column
    jobs: DrawnJobs

    def from_second(self, second: int) -> _Arrived:
        """Return the jobs submitted at or after an instant."""
        keep = self.submit_s >= second
        return _Arrived(self.submit_s[keep], self.place[keep], self.user[keep], _picked(self.jobs, keep))


def generate_month(name: str, *, seed: int = 1, warmup_days: int = 7) -> Log:
    """Return the log of a month of table 4; its first ``warmup_days`` days are the last ones of the previous month.

    Log second 0 is the midnight at which the warm-up begins.  The same arguments give the same log on every machine, and
    a month has the same jobs as itself and as the warm-up of the next one.

    Raises:
        UsageError: there is no such month, or a number is out of range.
    """
    month = _checked(name, seed)
    if not 0 <= warmup_days <= WARMUP_DAYS_MAX:
        raise UsageError(f"--warmup-days is {warmup_days}; use 0 to {WARMUP_DAYS_MAX}")
    first = date(month.year, month.month, 1)
    parts = [_shifted(_arrived(month, first, seed), warmup_days * DAY_S)]
    if warmup_days:
        before = _before(month)
        start = first - timedelta(days=before.days)
        parts.insert(0, _shifted(_arrived(before, start, seed), (warmup_days - before.days) * DAY_S).from_second(0))
    return _log(month, parts, seed, warmup_days)


def month_jobs(month: Month, seed: int) -> tuple[Column, DrawnJobs]:
    """Return the indices into ``CLASSES`` and the jobs of a month, class by class."""
    return _month_jobs(month, seed, month.year * 100 + month.month)


def month_record(name: str, seed: int) -> dict[str, Any]:
    """Return a month compared to the paper's, for JSON: demands in percent of the machine, and statistics with their ranges.

    Raises:
        UsageError: see ``generate_month``.
    """
    month = _checked(name, seed)
    place, jobs = month_jobs(month, seed)
    whole = month.days * DAY_S * tables.PROCS, month.days * DAY_S * (tables.MEMORY_GB << 20)
    area = jobs.procs * jobs.run_s
    procs = [100.0 * sum_ / whole[0] for sum_ in class_demands(place, area)]
    memory = [100.0 * sum_ / whole[1] for sum_ in class_demands(place, area * jobs.memory_kb)]
    columns = (CLASSES, month.counts, month.procs_percent, procs, month.memory_percent, memory)
    overall = ("overall", month.jobs, month.procs_overall, sum(procs), month.memory_overall, sum(memory))
    keys = ("name", "jobs", "procs_printed", "procs_percent", "memory_printed", "memory_percent")
    return {
        "month": name,
        "seed": seed,
        "overall": dict(zip(keys, overall, strict=True)),
        "classes": [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)],
        "facts": [
            {"name": fact.name, "value": fact.value, "low": fact.low, "high": fact.high, "in_range": fact.is_in_range}
            for fact in facts(place, jobs)
        ],
    }


def _checked(name: str, seed: int) -> Month:
    if name not in MONTHS:
        raise UsageError(f"--month {name!r}: use one of {', '.join(MONTHS)}{suggestion(name, MONTHS)}")
    if seed < 0:
        raise UsageError(f"--seed is {seed}; use 0 or more")
    return MONTHS[name]


def _before(month: Month) -> Month:
    """Return the previous month; before October 1999, of which nothing is printed, comes another October."""
    names = list(MONTHS)
    return MONTHS[names[max(names.index(month.name) - 1, 0)]]


def _arrived(month: Month, first: date, seed: int) -> _Arrived:
    """Return the jobs of a month that begins on ``first``, in order of submission."""
    stream = first.year * 100 + first.month
    place, jobs = _month_jobs(month, seed, stream)
    draws = Draws([seed, stream, len(CLASSES)])
    submit_s = arrival_times(draws, first, month.days, len(jobs))
    order = shuffled_jobs(draws, submit_s, first, jobs.procs)
    user = 1 + draws.weighted([1_000_000 // rank for rank in range(1, tables.USERS + 1)], len(jobs))
    return _Arrived(submit_s, place[order], user, _picked(jobs, order))


@lru_cache(maxsize=32)  # a month is used twice: as itself, and as the warm-up of the next
def _month_jobs(month: Month, seed: int, stream: int) -> tuple[Column, DrawnJobs]:
    """Return a month's jobs, drawn again until they meet all statements of the paper (nearly always at once)."""
    place = np.repeat(np.arange(len(CLASSES)), month.counts)
    targets = class_targets(month)
    for attempt in range(_ATTEMPTS):
        keys = [[seed, stream, where, attempt, 0] for where in range(len(targets))]
        parts = [_class_jobs(*each) for each in zip(targets, keys, strict=True)]
        for again in range(1, _ATTEMPTS):
            if lt_within_st(place, _joined(parts)):
                break
            for where, target in enumerate(targets):
                if target.time == "lt":
                    keys[where] = [seed, stream, where, attempt, again]
                    parts[where] = _class_jobs(target, keys[where])
        jobs = _joined(_with_lean_serials(targets, parts, keys))
        if is_like_the_paper(place, jobs):
            return place, jobs
    raise AssertionError(f"{month.name}: no draw of {_ATTEMPTS} gives a month like the paper's")


def _with_lean_serials(targets: list[DemandTarget], parts: list[DrawnJobs], keys: list[list[int]]) -> list[DrawnJobs]:
    """Return the same jobs, with the memory of sj ones bent until about half of the serial ones request over 512 MB."""
    low, high = _SERIAL_AIM
    share = serial_share(_joined(parts))
    step = 0.0 if low <= share <= high else tables.SERIAL_TILT_STEP * (1 if share < low else -1)
    for again in range(1, _TILTS if step else 0):
        for where, target in enumerate(targets):
            if target.size != "sj":
                continue
            bent = _class_jobs(target, keys[where], step * again)
            # Other run times mean that these jobs could not be bent that far and others were drawn instead.
            if np.array_equal(bent.run_s, parts[where].run_s):
                parts[where] = bent
        if low <= serial_share(_joined(parts)) <= high:
            break
    return parts


def _class_jobs(target: DemandTarget, key: list[int], serial_tilt: float = 0.0) -> DrawnJobs:
    for attempt in range(_ATTEMPTS):
        bound_percent = tables.BOUND_PERCENT if attempt < _BOUND_ATTEMPTS else 0
        jobs = draw_class(Draws([*key, attempt]), target, serial_tilt, bound_percent)
        if jobs is not None:
            return jobs
    raise AssertionError(f"{target}: no draw of {_ATTEMPTS} meets it")


def class_targets(month: Month) -> list[DemandTarget]:
    """Return the totals that each class of a month must reach, in the order of ``CLASSES``."""
    seconds = month.days * DAY_S
    procs = tables.percents(month.procs_percent, month.procs_overall)
    memory = tables.percents(month.memory_percent, month.memory_overall)
    names = [(time, size) for size in SIZES for time in TIMES]
    return [
        DemandTarget(
            time, size, month.counts[place],
            round(procs[place] / 100.0 * tables.PROCS * seconds),
            round(memory[place] / 100.0 * (tables.MEMORY_GB << 20) * seconds),
        )
        for place, (time, size) in enumerate(names)
    ]  # fmt: skip


def _joined(parts: list[DrawnJobs]) -> DrawnJobs:
    return DrawnJobs(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


def _picked(jobs: DrawnJobs, which: Column) -> DrawnJobs:
    return DrawnJobs(*(getattr(jobs, name)[which] for name in _COLUMNS))


def _shifted(arrived: _Arrived, seconds: int) -> _Arrived:
    return _Arrived(arrived.submit_s + seconds, arrived.place, arrived.user, arrived.jobs)


def _log(month: Month, parts: list[_Arrived], seed: int, warmup_days: int) -> Log:
    """Return the log: the class is the queue, memory is in KB per processor; jobs ended at their request have failed."""
    jobs = _joined([part.jobs for part in parts])
    submit_s = np.concatenate([part.submit_s for part in parts])
    rows = len(jobs)
    values = {
        "job": np.arange(1, rows + 1),
        "submit": submit_s,
        "run": jobs.run_s,
        "procs_allocated": jobs.procs,
        "memory_used": jobs.used_kb,
        "procs_requested": jobs.procs,
        "time_requested": jobs.requested_s,
        "memory_requested": jobs.memory_kb,
        "status": np.where(jobs.run_s == jobs.requested_s, 0, 1),
        "user": np.concatenate([part.user for part in parts]),
        "queue": 1 + np.concatenate([part.place for part in parts]),
    }
    command = f"qbatch generate origin2000 --month {month.name} --seed {seed} --warmup-days {warmup_days}"
    header = _header(month, warmup_days, command, rows, int((submit_s + jobs.run_s).max()))
    columns = {name: compact(values[name]) if name in values else absent(rows) for name in FIELDS}
    line = np.arange(len(header.lines) + 1, len(header.lines) + rows + 1, dtype=np.int32)
    digest = hashlib.sha256(command.encode()).hexdigest()
    return Log(name=f"origin2000-{month.name}", sha256=digest, header=header, columns=columns, line=line)


def _header(month: Month, warmup_days: int, command: str, rows: int, end_s: int) -> Header:
    start = datetime(month.year, month.month, 1, tzinfo=UTC) - timedelta(days=warmup_days)
    notes = [
        f"made by {command}",
        "a model of the workload in Chiang and Vernon 2001, table 4: no log of the real machine",
        "the queue is the class of the job; requested and used memory are in KB per processor",
        "the requested time is both the run time and the processor time of each processor",
    ]
    if warmup_days:
        notes.append(
            f"jobs submitted before second {warmup_days * DAY_S} are the warm-up; replay with --warmup {month.name}-01"
        )
    return parse_header(
        (
            "; Version: 2.2",
            "; Computer: SGI Origin 2000 (generated workload)",
            "; Installation: qbatch, after NCSA",
            f"; MaxJobs: {rows}",
            f"; MaxRecords: {rows}",
            "; Preemption: No",
            f"; UnixStartTime: {int(start.timestamp())}",
            "; TimeZoneString: UTC",
            f"; StartTime: {_date(start)}",
            f"; EndTime: {_date(start + timedelta(seconds=end_s))}",
            "; MaxNodes: 8",
            f"; MaxProcs: {tables.PROCS}",
            f"; MaxRuntime: {max(tables.REQUESTED_HOURS['lt']) * 3600}",
            f"; MaxQueues: {len(CLASSES)}",
            *(f"; Queue: {number} {name}" for number, name in enumerate(CLASSES, 1)),
            *(f"; Note: {note}" for note in notes),
        )
    )


def _date(moment: datetime) -> str:
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{days[moment.weekday()]} {months[moment.month - 1]} {moment:%d %H:%M:%S} UTC {moment.year}"
