"""Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001:
its runs.

Source: papers/origin2000-production-scheduling.txt, section 4; protocol in docs/spec/papers.md 3.6.
Its logs are not public: the months behind Figures 3 to 10 are generated
(docs/papers/origin2000.md), several replicas of each; a *replica* is the same month drawn with
another seed.  Each is simulated under every policy after seven days of warm-up until all its jobs
have ended; only jobs submitted in the month are counted.  No job comes after the month.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.metrics import breakdown, measure
from qbatch.metrics.per_job import JobTimes, Metrics, job_metrics, job_times, mean_clipped_slowdown
from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import Machine
from qbatch.model.record import MICROSECONDS, Schedule, Workload
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.workloads.machines import load_machine
from qbatch.workloads.origin2000 import CLASSES, MONTHS, generate_month
from qbatch.workloads.origin2000.month import is_weekend, month_record

POLICIES: Mapping[str, str] = {
    "LSF*": "lsf",
    "FCFS-bf": "fcfs-backfill",
    "Priority-bf": "priority-backfill",
    "SJF-bf": "sjf-backfill",
    "LXF&W-bf": "lxfw-backfill",
    "/immediate": "immediate:inner=lxfw-backfill",
    "/soon": "soon:inner=lxfw-backfill",
    "EQ-5m": "equispatial:interval=300",
    "EQ-0m": "equispatial:interval=0",
    "EQ-5m/>50hr": "equispatial:interval=300,over50=yes",
    "Priority-bf, D=2": "priority-backfill:depth=2",
    "Priority-bf, D=4": "priority-backfill:depth=4",
    "Priority-bf, D=8": "priority-backfill:depth=8",
    "Priority-bf, D=16": "priority-backfill:depth=16",
    "Priority-bf, D=all": "priority-backfill:depth=1000000",
}
"""The policies: their names in the figures, and for ``qbatch replay -p``."""

REPLICAS, SEED = 10, 1
"""The default replicas, and the seed of the first.  With five replicas, most intervals contain
their bounds."""

WARMUP_DAYS = 7
_HOUR_S, _DAY_S = 3600, 86_400
_QUANTUM_S = 60
_TOP_SHARE = 0.05
BOUNDED = "slowdown_60s_mean"
"""The mean of max(1, response / max(run, 60 s)): the slowdown that docs/spec/papers.md 3.6 asks
for, next to the raw one."""


@dataclass(frozen=True, slots=True)
class Origin2000Case:
    """One run: a month, a seed, a policy by its name in the figures."""

    month: str
    seed: int
    policy: str
    days: int | None = None
    warmup_days: int = WARMUP_DAYS


@dataclass(frozen=True, slots=True)
class Origin2000Figures:
    """The figures of one run: small, so that hundreds of them fit anywhere.

    ``whole``: the metrics of ``measure`` over the jobs of the month; ``longer``: the same over
    those that ran more than a minute.  ``classes``, ``ranges``: the metrics of ``breakdown`` by
    class name and by range of run time, with ``jobs``. All but ``longer`` have ``BOUNDED`` too.
    ``kept_idle``: share of the processors' time of the month that stood idle under a special (LSF
    only).  ``placed``: share of the jobs of the month that had a place on a host at their arrival
    (equal shares only).  ``top``: run time and wait in seconds of the 5 % of jobs that waited
    longest.
    """

    case: Origin2000Case
    jobs: int
    whole: Metrics
    longer: Metrics
    classes: dict[str, Metrics]
    ranges: dict[str, Metrics]
    kept_idle: float | None = None
    placed: float | None = None
    top: tuple[tuple[float, float], ...] = field(default=(), repr=False)


@lru_cache(maxsize=1)
def machine_of_paper() -> Machine:
    """Return the eight hosts."""
    return load_machine("origin2000")


@lru_cache(maxsize=1)
def workload_of(month: str, seed: int, days: int | None, warmup_days: int) -> Workload:
    """Return the jobs of a warm-up and of a month; only those of the month are counted."""
    log = generate_month(month, seed=seed, warmup_days=warmup_days)
    before = None if days is None else str((warmup_days + days) * _DAY_S)
    return prepare(
        log, machine_of_paper(), Options(counted_from=str(warmup_days * _DAY_S), before=before)
    )


class _Watch:
    """A reader of a policy's memory, round by round, for facts that a schedule does not contain."""

    def __init__(self, workload: Workload, begin: int, end: int) -> None:
        self.counted = workload.counted
        self.begin, self.end = begin, end
        self.idle = [0.0, 0.0]
        self.placed = 0

    def lsf(self, engine: Engine, done: Round) -> None:
        """Note the idle time under specials at the begin and at the end of the month."""
        idle: float = engine.view().memory.idle
        if done.at <= self.begin:
            self.idle[0] = idle
        if done.at <= self.end:
            self.idle[1] = idle

    def equal_shares(self, engine: Engine, done: Round) -> None:
        """Count the arrivals that got a place, not only a quantum."""
        if done.arrived:
            memory = engine.view().memory
            self.placed += sum(
                1 for row in done.arrived if self.counted[row] and memory.host_of(row) >= 0
            )


def simulate(case: Origin2000Case) -> Origin2000Figures:
    """Run one case and return its figures."""
    work = workload_of(case.month, case.seed, case.days, case.warmup_days)
    month_days = MONTHS[case.month].days if case.days is None else case.days
    begin = case.warmup_days * _DAY_S * MICROSECONDS
    end = begin + month_days * _DAY_S * MICROSECONDS
    watch = _Watch(work, begin, end)
    asked = POLICIES[case.policy]
    is_lsf, is_equal = asked == "lsf", asked.startswith("equispatial")
    observe = watch.lsf if is_lsf else watch.equal_shares if is_equal else None
    schedule = run(work, machine_of_paper(), load_policy(asked), observe=observe)
    capacity = float(end - begin) * work.procs_total
    return figures_of(
        case,
        schedule,
        kept_idle=(watch.idle[1] - watch.idle[0]) / capacity if is_lsf else None,
        placed=watch.placed / max(int(np.count_nonzero(work.counted)), 1) if is_equal else None,
    )


def figures_of(
    case: Origin2000Case,
    schedule: Schedule,
    *,
    kept_idle: float | None = None,
    placed: float | None = None,
) -> Origin2000Figures:
    """Return the figures of a schedule, all by the metrics of every replay."""
    work, quantum = schedule.workload, _QUANTUM_S * MICROSECONDS

    def metrics(jobs: JobTimes) -> Metrics:
        return {**job_metrics(jobs), BOUNDED: mean_clipped_slowdown(jobs, quantum)}

    whole = measure(schedule, costly=False)
    jobs = job_times(schedule, np.flatnonzero(schedule.ran & work.counted))
    whole[BOUNDED] = mean_clipped_slowdown(jobs, quantum)
    longer = Schedule(
        work.changed(counted=work.counted & (work.run > quantum)),
        schedule.policy,
        schedule.start,
        schedule.kind,
        schedule.promise,
        schedule.first_promise,
        schedule.end,
        schedule.queue_max,
        schedule.pieces,
    )
    top = np.argsort(-jobs.wait, kind="stable")[: int(_TOP_SHARE * len(jobs.wait))]
    run_s, wait_s = jobs.run[top] / MICROSECONDS, jobs.wait[top] / MICROSECONDS
    classes, ranges = (
        {
            group.label: {"jobs": group.jobs, **group.metrics}
            for group in breakdown(schedule, by, metrics)
        }
        for by in ("queue", "runtime")
    )
    return Origin2000Figures(
        case,
        int(whole["jobs"] or 0),
        whole,
        measure(longer, costly=False),
        classes,
        ranges,
        kept_idle,
        placed,
        tuple(zip(run_s.tolist(), wait_s.tolist(), strict=True)),
    )


@dataclass(frozen=True, slots=True)
class DrawnMonth:
    """One drawn month: demands of the classes in percent of the machine, statistics by name,
    arrivals by hour of a weekday.

    ``ranges``: the range of each statistic in the paper.
    """

    month: str
    seed: int
    procs: tuple[float, ...]
    memory: tuple[float, ...]
    statistics: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    hourly: tuple[float, ...]

    def share(self, classes: Sequence[str]) -> float:
        """Return the demand of some classes for processors, in percent."""
        return sum(self.procs[CLASSES.index(name)] for name in classes)


@lru_cache(maxsize=128)
def drawn_month(month: str, seed: int) -> DrawnMonth:
    """Draw a whole month and return its description."""
    record, first = month_record(month, seed), date(MONTHS[month].year, MONTHS[month].month, 1)
    submit = np.asarray(generate_month(month, seed=seed, warmup_days=0)["submit"])
    weekdays = int(np.count_nonzero(~is_weekend(np.arange(MONTHS[month].days), first)))
    on_weekdays = submit[~is_weekend(submit // _DAY_S, first)]
    hourly = np.bincount(on_weekdays // _HOUR_S % 24, minlength=24) / weekdays
    return DrawnMonth(
        month,
        seed,
        tuple(one["procs_percent"] for one in record["classes"]),
        tuple(one["memory_percent"] for one in record["classes"]),
        {fact["name"]: fact["value"] for fact in record["facts"]},
        {fact["name"]: (fact["low"], fact["high"]) for fact in record["facts"]},
        tuple(hourly.tolist()),
    )


@dataclass(frozen=True, slots=True)
class Origin2000Study:
    """The runs: months, seeds (a replica each), policies, and the submitted part of a month.

    ``days``: the number of days of each month with submissions (None: all).
    """

    months: tuple[str, ...] = tuple(MONTHS)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    policies: tuple[str, ...] = tuple(POLICIES)
    days: int | None = None
    warmup_days: int = WARMUP_DAYS

    def cases(self) -> list[Origin2000Case]:
        """Return all runs, replica by replica, so that an early end leaves whole replicas."""
        return [
            Origin2000Case(month, seed, policy, self.days, self.warmup_days)
            for seed in self.seeds
            for month in self.months
            for policy in self.policies
        ]

    def facts(self, _parts: Sequence[str]) -> dict[str, Any]:
        """Return the machine and the options, for the record of the command."""
        options = {"months": list(self.months), "seeds": list(self.seeds), "days": self.days}
        return {
            "machine": {"name": "origin2000"},
            "options": {**options, "warmup_days": self.warmup_days},
        }


def study_of(
    *,
    months: Sequence[str] = (),
    replicas: int = REPLICAS,
    seed: int = SEED,
    days: int | None = None,
) -> Origin2000Study:
    """Return the study of these months (none: all six), ``replicas`` seeds of each from ``seed``
    on.

    Raises:
        UsageError: there is no such month, or it has fewer days.
    """
    for month in months:
        if month not in MONTHS:
            raise UsageError(
                f"--month {month!r}: use one of {', '.join(MONTHS)}{suggestion(month, MONTHS)}"
            )
    chosen = tuple(month for month in MONTHS if not months or month in months)
    if days is not None and not 1 <= days <= 29:
        raise UsageError(f"--days is {days}; use 1 to 29, or leave it out for whole months")
    return Origin2000Study(chosen, tuple(range(seed, seed + replicas)), days=days)
