"""The experiments of Feitelson and Weil 1998 on any log: what is run, and the figures that come of it.

A *reading* is a way in which the paper may have cut its log into months; the paper does not say which.

``whole``: the whole log is simulated once, and a job belongs to the month of its submission.
``files``: each month is simulated by itself, from an empty machine, and a job belongs to the month in which it ended
in the log, as it would stand in the accounting file of that month.

Bounded slowdown is not clipped at 1, as the paper prints it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from qbatch.metrics import Interval, breakdown, interval, measure
from qbatch.metrics.dates import by_month
from qbatch.model.errors import InputError, QbatchError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.papers.sp2_backfilling_printed import POLICIES, TABLE_3, USERS
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.sweeps.executors import WORKERS, Place, each_outcome
from qbatch.sweeps.kept import Tell, silent
from qbatch.workloads import Log, generate_log
from qbatch.workloads.transform import resampled

Made = TypeVar("Made")

ResampledMeans = dict[int | str, dict[str, float]]
"""Of one log: the mean bounded slowdown by factor of the estimates and by policy."""

READINGS = ("whole", "files")

SIZE_SHARES = (0.66, 0.83, 1.0)
"""The machine of Table 1 in three sizes, for a log of another machine: 66, 83 and 100 of KTH's 100 processors."""

VARIANTS = ("fitting", "same", "files")
"""Table 1 is run with all jobs that fit on a machine, with those that fit on the smallest, and with these by month."""

LOADS = tuple(step / 100 for step in range(40, 101, 5))
"""The loads of Figures 9 and 10."""

MODEL_POLICIES = ("fcfs", "easy", "conservative")
MODEL_JOBS, MODEL_PROCS, MODEL_LOAD = 5_000, 128, 0.7
MODEL_LOGS = 5
"""How many generated logs Figures 9 and 10 are averaged over."""

_MEAN = "bounded_slowdown_mean"


_FEW_JOBS = 5_000
"""Up to so many jobs everything runs in this process: another one would begin for longer than it would work."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What the experiments run on: a log, the size of its machine, seeds of drawn estimates, who hears of progress."""

    log: Log
    procs: int
    seeds: tuple[int, ...]
    tell: Tell = field(default=silent)

    def made(self, what: str, make: Callable[[Bench, Any], Made], cases: Sequence[Any]) -> list[Made]:
        """Return what is made of each case, in their order; the cores share them.

        Raises:
            QbatchError: one fails.
        """
        self.tell(what, 0, len(cases))
        place = Place(1 if len(self.log) <= _FEW_JOBS else WORKERS)
        found: dict[int, Made] = {}
        for outcome in each_outcome(_numbered, [(make, *each) for each in enumerate(cases)], place, replace(self, tell=silent)):
            if outcome.error is not None:
                raise QbatchError(f"{what}: {outcome.error}")
            found[outcome.case[1]] = outcome.value
            self.tell(what, len(found), len(cases))
        return [found[number] for number in range(len(cases))]

    def prepared(self, options: Options, procs: int | None = None) -> Workload:
        """Return the jobs of the log on a machine of its size, or of this one."""
        return prepare(self.log, one_host(procs or self.procs), options)


def _numbered(bench: Bench, case: tuple[Callable[[Bench, Any], Made], int, Any]) -> Made:
    make, _, asked = case
    return make(bench, asked)


@dataclass(frozen=True, slots=True)
class MonthFigures:
    """One month: its label, its jobs, the mean bounded slowdown by policy."""

    label: str
    jobs: int
    slowdown: dict[str, float]


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """The months on a machine of one size, and how many jobs of the log were left out as too wide."""

    procs: int
    too_wide: int
    months: list[MonthFigures]


@dataclass(frozen=True, slots=True)
class FactorFigures:
    """One row of Table 3: the factor, and by policy the mean over the seeds with its 95 % interval."""

    factor: int | str
    slowdown: dict[str, Interval]


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """One load of Figures 9 and 10: by policy the mean bounded slowdown and the share of jobs backfilled.

    ``slowdowns``, ``shares``: the same of each generated log.
    """

    load: float
    slowdown: dict[str, float]
    backfilled: dict[str, float]
    slowdowns: dict[str, list[float]] = field(default_factory=dict)
    shares: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EstimateFigures:
    """Figure 11: how much of the time that they asked for jobs of a minute or more used.

    ``full``: jobs whose percentage rounds to 100 or more; ``killed``: those of them with status 0; ``over``: those
    that reached their estimate to the second; ``four_hours``: jobs with status 0 that asked for four hours.
    ``histogram``: jobs by percent, 0 to 100.
    """

    jobs: int
    shorter: int
    full: int
    killed: int
    over: int
    four_hours: int
    highest_h: float
    two_hours_share: float
    five_minutes_share: float
    histogram: tuple[int, ...]


def simulate(work: Workload, policy: str) -> Schedule:
    """Return what a policy makes of these jobs on the machine that they were prepared for."""
    return run(work, one_host(work.procs_total), load_policy(policy))


# ------------------------------------------------------------------------------------------------ months


def months_of(work: Workload, reading: str, files: Sequence[tuple[str, Int64Array]] = ()) -> list[MonthFigures]:
    """Return the slowdown of each month under both schemes, by one reading of what a month is."""
    if reading == "whole":
        groups = [breakdown(simulate(work, policy), "month") for policy in POLICIES]
        return [
            MonthFigures(one[0].label, one[0].jobs, _by_policy([float(part.metrics[_MEAN] or 0) for part in one]))
            for one in zip(*groups, strict=True)
        ]
    return [
        MonthFigures(label, len(rows), _by_policy([_slowdown(work.only(rows), policy) for policy in POLICIES]))
        for label, rows in files
    ]


def mean_of(months: Sequence[MonthFigures], policy: str) -> float:
    """Return the mean over all jobs of the months."""
    total = math.fsum(month.jobs * month.slowdown[policy] for month in months)
    return total / sum(month.jobs for month in months)


def month_files(log: Log, work: Workload) -> list[tuple[str, Int64Array]] | None:
    """Return the rows that ended in each month in the log; None when the log does not say how long jobs waited."""
    wait_s = np.asarray(log["wait"])[work.log_row].astype(np.float64)
    if (wait_s < 0).any():
        return None
    ended = work.submit + np.rint(wait_s * MICROSECONDS).astype(np.int64) + work.logged_run
    codes, labels = by_month(work.clock, ended)
    parts = [(label, np.flatnonzero(codes == place)) for place, label in enumerate(labels)]
    return [(label, rows) for label, rows in parts if len(rows)]


def _slowdown(work: Workload, policy: str) -> float:
    return float(measure(simulate(work, policy), costly=False)[_MEAN] or 0)


def _by_policy(values: Sequence[float]) -> dict[str, float]:
    return dict(zip(POLICIES, values, strict=True))


# ------------------------------------------------------------------------------------------------ tables


def run_table_1(bench: Bench) -> dict[str, list[SizeFigures]]:
    """Run the log on machines of three sizes, with perfect estimates, in each of the ``VARIANTS`` that it allows."""
    sizes = sorted({max(1, round(share * bench.procs)) for share in SIZE_SHARES})
    found: dict[str, list[SizeFigures]] = {}
    for variants in bench.made("Table 1", _table_1, [(size, sizes[0]) for size in sizes]):
        for variant, figures in variants.items():
            found.setdefault(variant, []).append(figures)
    return found


def _table_1(bench: Bench, sizes: tuple[int, int]) -> dict[str, SizeFigures]:
    """Return the figures of one size by variant; the second size is the smallest."""
    size, smallest = sizes
    work = bench.prepared(Options(estimates="perfect"), size)
    same = work.only(np.flatnonzero(work.procs <= smallest))
    files = month_files(bench.log, same)
    months = {"fitting": months_of(work, "whole"), "same": months_of(same, "whole")}
    if files is not None:
        months["files"] = months_of(same, "files", files)
    total = len(bench.prepared(Options()))
    return {
        variant: SizeFigures(size, total - sum(month.jobs for month in figures), figures) for variant, figures in months.items()
    }


def run_table_2(bench: Bench) -> dict[str, list[MonthFigures]]:
    """Run the log with the users' estimates, by each reading that the log allows."""
    has_files = month_files(bench.log, bench.prepared(Options())) is not None
    readings = READINGS if has_files else READINGS[:1]
    return dict(zip(readings, bench.made("Table 2", _table_2, readings), strict=True))


def _table_2(bench: Bench, reading: str) -> list[MonthFigures]:
    work = bench.prepared(Options())
    return months_of(work, reading, month_files(bench.log, work) or ())


def run_table_3(bench: Bench) -> dict[str, list[FactorFigures]]:
    """Run the log with estimates drawn from [run, f x run] for each f and seed, and with those of the users."""
    values: dict[str, dict[int | str, dict[str, list[float]]]] = {}
    cases = list(_factor_runs(bench.seeds))
    for (factor, _), found in zip(cases, bench.made("Table 3", _table_3, cases), strict=True):
        for reading, means in found.items():
            row = values.setdefault(reading, {}).setdefault(factor, {})
            for policy, mean in means.items():
                row.setdefault(policy, []).append(mean)
    return {
        reading: [
            FactorFigures(factor, {policy: interval(means) for policy, means in by_policy.items()})
            for factor, by_policy in rows.items()
        ]
        for reading, rows in values.items()
    }


def _table_3(bench: Bench, asked: tuple[int | str, int]) -> dict[str, dict[str, float]]:
    """Return the mean slowdown of one factor and seed by reading and policy."""
    factor, seed = asked
    work = bench.prepared(_estimates(factor, seed))
    files = month_files(bench.log, work)
    found: dict[str, dict[str, float]] = {}
    for policy in POLICIES:
        found.setdefault("whole", {})[policy] = _slowdown(work, policy)
        if files is not None:
            parts = [(len(rows), _slowdown(work.only(rows), policy)) for _, rows in files]
            found.setdefault("files", {})[policy] = math.fsum(jobs * mean for jobs, mean in parts) / len(work)
    return found


def run_resampled(bench: Bench, factors: Sequence[int | str]) -> list[ResampledMeans]:
    """Run logs made of weeks of the log, one for each seed, with the estimates of each factor drawn by the same seed.

    A log that is too short to be resampled has none, and one that is made of weeks without a job that can run is left out.
    """
    found = bench.made("Weeks resampled", _resampled, [(seed, tuple(factors)) for seed in bench.seeds])
    return [means for means in found if means is not None]


def _resampled(bench: Bench, asked: tuple[int, tuple[int | str, ...]]) -> ResampledMeans | None:
    """Return the mean slowdown of one resampled log by factor and policy; None if there is no such log."""
    seed, factors = asked
    try:
        other = replace(bench, log=resampled(bench.log, "weeks", seed))
        works = {factor: other.prepared(_estimates(factor, seed)) for factor in factors}
    except InputError:
        return None
    return {factor: {policy: _slowdown(work, policy) for policy in POLICIES} for factor, work in works.items()}


def _estimates(factor: int | str, seed: int) -> Options:
    return Options() if factor == USERS else Options(estimates=f"f:{factor}", seed=seed)


def _factor_runs(seeds: Sequence[int]) -> Iterator[tuple[int | str, int]]:
    """Give each factor with each seed; where nothing is drawn, once."""
    for factor in TABLE_3:
        for seed in seeds[:1] if factor in (1, USERS) else seeds:
            yield factor, seed


# ------------------------------------------------------------------------------------------------ figures


def run_figure_9(bench: Bench) -> list[LoadFigures]:
    """Run generated logs at each load under three schemes, with perfect estimates; also gives Figure 10."""
    return bench.made("Figures 9 and 10", _figure_9, LOADS)


def _figure_9(bench: Bench, load: float) -> LoadFigures:
    logs = (_generated(1 + place) for place in range(min(MODEL_LOGS, len(bench.seeds))))
    works = [prepare(log, one_host(MODEL_PROCS), Options(estimates="perfect", load=load / MODEL_LOAD)) for log in logs]
    slowdowns, shares = {}, {}
    for policy in MODEL_POLICIES:
        metrics = [measure(simulate(work, policy), costly=False) for work in works]
        slowdowns[policy] = [float(one[_MEAN] or 0) for one in metrics]
        shares[policy] = [float(one["backfilled_share"] or 0) for one in metrics]
    slowdown, backfilled = (
        {policy: math.fsum(values) / len(values) for policy, values in each.items()} for each in (slowdowns, shares)
    )
    return LoadFigures(load, slowdown, backfilled, slowdowns, shares)


@lru_cache(maxsize=MODEL_LOGS)
def _generated(seed: int) -> Log:
    return generate_log(jobs=MODEL_JOBS, procs=MODEL_PROCS, load=MODEL_LOAD, seed=seed)


def run_figure_11(bench: Bench) -> EstimateFigures | None:
    """Count how much of the time that they asked for jobs used; None for a log without estimates.

    Only jobs that ran a minute or more: the counts of the paper are met by these, not by all.
    """
    columns = (np.asarray(bench.log[name]) for name in ("run", "time_requested", "status"))
    asks = estimated(bench.log)
    run_s, asked_s, status = (column[asks] for column in columns)
    is_long = run_s >= 60
    if not is_long.any():
        return None
    run_s, asked_s, status = run_s[is_long], asked_s[is_long], status[is_long]
    percent = np.floor(100 * run_s / asked_s + 0.5)
    is_full, has_failed = percent >= 100, status == 0
    return EstimateFigures(
        jobs=len(run_s),
        shorter=int(np.count_nonzero(~is_long)),
        full=_count(is_full),
        killed=_count(is_full & has_failed),
        over=_count(run_s >= asked_s),
        four_hours=_count(has_failed & (asked_s == 4 * 3600)),
        highest_h=float(asked_s.max()) / 3600,
        two_hours_share=float(np.mean(asked_s <= 2 * 3600)),
        five_minutes_share=float(np.mean(asked_s % 300 == 0)),
        histogram=tuple(np.bincount(np.minimum(percent, 100).astype(np.int64), minlength=101).tolist()),
    )


def estimated(log: Log) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell which jobs of a log ran and had asked for some time."""
    return np.asarray((np.asarray(log["time_requested"]) > 0) & (np.asarray(log["run"]) >= 0))


def has_estimates(log: Log) -> bool:
    """Tell whether the log has estimates of users that are not simply the run times."""
    asks = estimated(log)
    return bool((np.asarray(log["time_requested"])[asks] != np.asarray(log["run"])[asks]).any())


def _count(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    return int(np.count_nonzero(mask))
