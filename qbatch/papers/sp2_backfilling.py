"""Feitelson and Weil, "Utilization and Predictability in Scheduling the IBM SP2 with Backfilling",
1998: its numbers and runs.

The experiments of Tables 1 to 3 and Figures 9 to 11 on any log, and the printed numbers.  The
hand-drawn examples (Figures 3, 4, 7 and 8) are tests: ``tests/papers/test_examples.py``.

A *reading* is a way in which the paper may have cut its log into months; the paper does not say
which.

``whole``: the whole log is simulated once, and a job belongs to the month of its submission.

``files``: each month is simulated by itself, from an empty machine.  A job belongs to the month of
its end in the log, as in the accounting file of that month.

Bounded slowdown is not clipped at 1, as the paper prints it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np

from qbatch.metrics import Interval, breakdown, interval, measure
from qbatch.metrics.dates import by_month
from qbatch.model.errors import InputError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.papers.harness import ALONE, Runner
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.simulation.prepare import choose_procs
from qbatch.workloads import Log, generate_log, read_log
from qbatch.workloads.transform import resampled

# ------------------------------------------------------------------------------------------------
# what the paper prints Tables 1 to 3 and the numbers of Figure 11 in the text, typed in as printed,
# with the paper's own inconsistencies.  The months of Table 2 hold 28,290 jobs, while the text says
# 28,240, and begin in September, while the text says October.

POLICIES = ("easy", "conservative")
"""The two schemes, in the order of the paper's columns."""

IUCC_SIZES = (33, 49, 58)


@dataclass(frozen=True, slots=True)
class PrintedMonth:
    """One row of Table 2: month of the log, jobs, and the mean bounded slowdown under both
    schemes."""

    label: str
    jobs: int
    easy: int
    conservative: int


TABLE_1: dict[str, tuple[int, tuple[tuple[int, int], ...]]] = {
    "Jan": (635, ((8176, 8306), (1769, 1586), (492, 413))),
    "Feb": (562, ((1886, 2580), (328, 318), (201, 201))),
    "Mar": (1406, ((10077, 10366), (1088, 1137), (540, 519))),
    "Apr": (493, ((510, 496), (112, 119), (39, 38))),
    "May": (529, ((2954, 2850), (410, 397), (145, 145))),
    "Jun": (566, ((2551, 2508), (438, 421), (213, 213))),
    "Jul": (550, ((4075, 3341), (623, 607), (315, 312))),
    "Aug": (462, ((3238, 3540), (807, 860), (251, 251))),
}
"""IUCC, 1997: jobs, and (EASY, conservative) at each of ``IUCC_SIZES``.  That log was never
published."""

TABLE_2 = tuple(
    PrintedMonth(*row)
    for row in (
        ("1996-09", 86, 2, 2),
        ("1996-10", 2377, 93, 76),
        ("1996-11", 1988, 128, 135),
        ("1996-12", 2294, 86, 124),
        ("1997-01", 2899, 97, 81),
        ("1997-02", 2908, 122, 134),
        ("1997-03", 2078, 104, 118),
        ("1997-04", 2820, 83, 92),
        ("1997-05", 4061, 67, 60),
        ("1997-06", 2694, 37, 31),
        ("1997-07", 2160, 32, 34),
        ("1997-08", 1925, 50, 57),
    )
)
"""KTH, users' estimates, by month."""

USERS = "users"
"""The row of Table 3 with the estimates of the log."""

TABLE_3: dict[int | str, tuple[int, int]] = {
    1: (62, 61),
    4: (57, 53),
    11: (51, 44),
    31: (57, 45),
    101: (62, 57),
    301: (59, 52),
    USERS: (81, 84),
}
"""KTH, whole log: (EASY, conservative) by the factor f of estimates drawn from [run, f x run]."""

FIGURE_11_JOBS = 20054
FIGURE_11_FULL = 3215
"""Jobs that used exactly 100 % of their request."""
FIGURE_11_KILLED = 3204
"""Those of them that the system killed."""
FIGURE_11_FOUR_HOURS = 793
"""Jobs with a request of four hours that the system killed."""
FIGURE_11_HIGHEST_H = 60

# ------------------------------------------------------------------------------------------------
# runs

Made = TypeVar("Made")

ResampledMeans = dict[int | str, dict[str, float]]
"""Of one log: the mean bounded slowdown by factor of the estimates and by policy."""

READINGS = ("whole", "files")

SIZE_SHARES = (0.66, 0.83, 1.0)
"""The machine of Table 1 in three sizes, for a log of another machine: 66, 83 and 100 of KTH's 100
processors."""

VARIANTS = ("fitting", "same", "files")
"""Table 1 has all jobs that fit on a machine, those that fit on the smallest, and these by
month."""

LOADS = tuple(step / 100 for step in range(40, 101, 5))
"""The loads of Figures 9 and 10."""

MODEL_POLICIES = ("fcfs", "easy", "conservative")
MODEL_JOBS, MODEL_PROCS, MODEL_LOAD = 5_000, 128, 0.7
MODEL_LOGS = 5
"""Number of generated logs behind the means of Figures 9 and 10."""

_MEAN = "bounded_slowdown_mean"

_FEW_JOBS = 5_000
"""Up to this many jobs everything runs in this process: the start of another one would take longer
than its work."""

OWN_JOBS, OWN_PROCS, OWN_LOAD, OWN_SEED = 6_000, 100, 0.75, 1998
"""The log that is generated if none is given."""


@dataclass(frozen=True, slots=True)
class Sp2Study:
    """The input of the experiments: a log, the size of its machine, the seeds of drawn
    estimates."""

    log: Log
    procs: int
    seeds: tuple[int, ...] = tuple(range(10))

    def facts(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return the log, the machine and the options, for the record of the command."""
        log = {
            "name": self.log.name,
            "sha256": self.log.sha256,
            "rows": len(self.log),
            "notes": self.log.notes,
        }
        options = {"seeds": len(self.seeds), "seed": self.seeds[0], "parts": parts}
        return {"log": log, "machine": {"procs": self.procs}, "options": options}

    def made(
        self, runner: Runner, what: str, make: Callable[[Sp2Study, Any], Made], cases: Sequence[Any]
    ) -> list[Made]:
        """Return what is made of each case, in their order, on all cores."""
        workers = 1 if len(self.log) <= _FEW_JOBS else None
        return runner.made(what, partial(make, self), cases, workers)

    def prepared(self, options: Options, procs: int | None = None) -> Workload:
        """Return the jobs of the log on a machine of its size, or of this one."""
        return prepare(self.log, one_host(procs or self.procs), options)


def study_of(
    logs: Sequence[str] = (), *, seeds: int = 10, seed: int = 0, procs: int | None = None
) -> Sp2Study:
    """Return the study of a log, or of a generated one, with ``seeds`` draws of estimates from
    ``seed`` on."""
    log = (
        read_log(logs[0])
        if logs
        else generate_log(jobs=OWN_JOBS, procs=OWN_PROCS, load=OWN_LOAD, seed=OWN_SEED)
    )
    return Sp2Study(log, choose_procs(log, procs), tuple(range(seed, seed + seeds)))


@dataclass(frozen=True, slots=True)
class MonthFigures:
    """One month: its label, its jobs, the mean bounded slowdown by policy."""

    label: str
    jobs: int
    slowdown: dict[str, float]


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """The months on a machine of one size, and the number of jobs of the log that were left out as
    too wide."""

    procs: int
    too_wide: int
    months: list[MonthFigures]


@dataclass(frozen=True, slots=True)
class FactorFigures:
    """One row of Table 3: the factor, and by policy the mean over the seeds with its 95 %
    interval."""

    factor: int | str
    slowdown: dict[str, Interval]


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """One load of Figures 9 and 10: by policy the mean bounded slowdown and the share of jobs
    backfilled.

    ``slowdowns``, ``shares``: the same of each generated log.
    """

    load: float
    slowdown: dict[str, float]
    backfilled: dict[str, float]
    slowdowns: dict[str, list[float]] = field(default_factory=dict)
    shares: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EstimateFigures:
    """Figure 11: the used share of the requested time, for jobs of a minute or more.

    ``full``: jobs with a percentage that rounds to 100 or more; ``killed``: those of them with
    status 0.  ``over``: jobs that reached their estimate to the second; ``four_hours``: jobs with
    status 0 that asked for four hours.  ``histogram``: jobs by percent, 0 to 100.
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
    """Return the schedule of a policy on the machine for which these jobs were prepared."""
    return run(work, one_host(work.procs_total), load_policy(policy))


# ------------------------------------------------------------------------------------------------
# months


def months_of(
    work: Workload, reading: str, files: Sequence[tuple[str, Int64Array]] = ()
) -> list[MonthFigures]:
    """Return the slowdown of each month under both schemes, by one reading of a month."""
    if reading == "whole":
        groups = [breakdown(simulate(work, policy), "month") for policy in POLICIES]
        found = [
            (one[0].label, one[0].jobs, [float(part.metrics[_MEAN] or 0) for part in one])
            for one in zip(*groups, strict=True)
        ]
    else:
        found = [
            (label, len(rows), [_slowdown(work.only(rows), policy) for policy in POLICIES])
            for label, rows in files
        ]
    return [
        MonthFigures(label, jobs, dict(zip(POLICIES, means, strict=True)))
        for label, jobs, means in found
    ]


def mean_of(months: Sequence[MonthFigures], policy: str) -> float:
    """Return the mean over all jobs of the months."""
    total = math.fsum(month.jobs * month.slowdown[policy] for month in months)
    return total / sum(month.jobs for month in months)


def month_files(log: Log, work: Workload) -> list[tuple[str, Int64Array]] | None:
    """Return the rows that ended in each month in the log; None if the log does not contain how
    long jobs waited."""
    wait_s = np.asarray(log["wait"])[work.log_row].astype(np.float64)
    if (wait_s < 0).any():
        return None
    ended = work.submit + np.rint(wait_s * MICROSECONDS).astype(np.int64) + work.logged_run
    codes, labels = by_month(work.clock, ended)
    parts = [(label, np.flatnonzero(codes == place)) for place, label in enumerate(labels)]
    return [(label, rows) for label, rows in parts if len(rows)]


def _slowdown(work: Workload, policy: str) -> float:
    return float(measure(simulate(work, policy), costly=False)[_MEAN] or 0)


# ------------------------------------------------------------------------------------------------
# tables


def run_table_1(study: Sp2Study, runner: Runner = ALONE) -> dict[str, list[SizeFigures]]:
    """Run the log on machines of three sizes, with perfect estimates, in each of the ``VARIANTS``
    that it allows."""
    sizes = sorted({max(1, round(share * study.procs)) for share in SIZE_SHARES})
    found: dict[str, list[SizeFigures]] = {}
    for variants in study.made(runner, "Table 1", _table_1, [(size, sizes[0]) for size in sizes]):
        for variant, figures in variants.items():
            found.setdefault(variant, []).append(figures)
    return found


def _table_1(study: Sp2Study, sizes: tuple[int, int]) -> dict[str, SizeFigures]:
    """Return the figures of one size by variant; the second size is the smallest."""
    size, smallest = sizes
    work = study.prepared(Options(estimates="perfect"), size)
    same = work.only(np.flatnonzero(work.procs <= smallest))
    files = month_files(study.log, same)
    months = {"fitting": months_of(work, "whole"), "same": months_of(same, "whole")}
    if files is not None:
        months["files"] = months_of(same, "files", files)
    total = len(study.prepared(Options()))
    return {
        variant: SizeFigures(size, total - sum(one.jobs for one in found), found)
        for variant, found in months.items()
    }


def run_table_2(study: Sp2Study, runner: Runner = ALONE) -> dict[str, list[MonthFigures]]:
    """Run the log with the users' estimates, by each reading that the log allows."""
    has_files = month_files(study.log, study.prepared(Options())) is not None
    readings = READINGS if has_files else READINGS[:1]
    return dict(zip(readings, study.made(runner, "Table 2", _table_2, readings), strict=True))


def _table_2(study: Sp2Study, reading: str) -> list[MonthFigures]:
    work = study.prepared(Options())
    return months_of(work, reading, month_files(study.log, work) or ())


def run_table_3(study: Sp2Study, runner: Runner = ALONE) -> dict[str, list[FactorFigures]]:
    """Run the log with estimates drawn from [run, f x run] for each f and seed, and with those of
    the users."""
    values: dict[str, dict[int | str, dict[str, list[float]]]] = {}
    # Without a draw, one seed is enough.
    cases = [
        (factor, seed)
        for factor in TABLE_3
        for seed in (study.seeds[:1] if factor in (1, USERS) else study.seeds)
    ]
    for (factor, _), found in zip(
        cases, study.made(runner, "Table 3", _table_3, cases), strict=True
    ):
        for reading, means in found.items():
            row = values.setdefault(reading, {}).setdefault(factor, {})
            for policy, mean in means.items():
                row.setdefault(policy, []).append(mean)
    return {
        reading: [
            FactorFigures(factor, {policy: interval(each) for policy, each in row.items()})
            for factor, row in rows.items()
        ]
        for reading, rows in values.items()
    }


def _table_3(study: Sp2Study, asked: tuple[int | str, int]) -> dict[str, dict[str, float]]:
    """Return the mean slowdown of one factor and seed by reading and policy."""
    factor, seed = asked
    work = study.prepared(_estimates(factor, seed))
    files = month_files(study.log, work)
    found: dict[str, dict[str, float]] = {}
    for policy in POLICIES:
        found.setdefault("whole", {})[policy] = _slowdown(work, policy)
        if files is not None:
            parts = [(len(rows), _slowdown(work.only(rows), policy)) for _, rows in files]
            found.setdefault("files", {})[policy] = math.fsum(
                jobs * mean for jobs, mean in parts
            ) / len(work)
    return found


def run_resampled(
    study: Sp2Study, factors: Sequence[int | str], runner: Runner = ALONE
) -> list[ResampledMeans]:
    """Run logs made of weeks of the log, one for each seed, with the estimates of each factor drawn
    by the same seed.

    A log that is too short for resampling has none; one made of weeks without a job that can run is
    left out.
    """
    found = study.made(
        runner, "Weeks resampled", _resampled, [(seed, tuple(factors)) for seed in study.seeds]
    )
    return [means for means in found if means is not None]


def _resampled(study: Sp2Study, asked: tuple[int, tuple[int | str, ...]]) -> ResampledMeans | None:
    """Return the mean slowdown of one resampled log by factor and policy; None if there is no such
    log."""
    seed, factors = asked
    try:
        other = replace(study, log=resampled(study.log, "weeks", seed))
        works = {factor: other.prepared(_estimates(factor, seed)) for factor in factors}
    except InputError:
        return None
    return {
        factor: {policy: _slowdown(work, policy) for policy in POLICIES}
        for factor, work in works.items()
    }


def _estimates(factor: int | str, seed: int) -> Options:
    return Options() if factor == USERS else Options(estimates=f"f:{factor}", seed=seed)


# ------------------------------------------------------------------------------------------------
# figures


def run_figure_9(study: Sp2Study, runner: Runner = ALONE) -> list[LoadFigures]:
    """Run generated logs at each load under three schemes, with perfect estimates, for Figures 9
    and 10."""
    return study.made(runner, "Figures 9 and 10", _figure_9, LOADS)


def _figure_9(study: Sp2Study, load: float) -> LoadFigures:
    logs = (_generated(1 + place) for place in range(min(MODEL_LOGS, len(study.seeds))))
    works = [
        prepare(log, one_host(MODEL_PROCS), Options(estimates="perfect", load=load / MODEL_LOAD))
        for log in logs
    ]
    slowdowns, shares = {}, {}
    for policy in MODEL_POLICIES:
        metrics = [measure(simulate(work, policy), costly=False) for work in works]
        slowdowns[policy] = [float(one[_MEAN] or 0) for one in metrics]
        shares[policy] = [float(one["backfilled_share"] or 0) for one in metrics]
    slowdown, backfilled = (
        {policy: math.fsum(values) / len(values) for policy, values in each.items()}
        for each in (slowdowns, shares)
    )
    return LoadFigures(load, slowdown, backfilled, slowdowns, shares)


@lru_cache(maxsize=MODEL_LOGS)
def _generated(seed: int) -> Log:
    return generate_log(jobs=MODEL_JOBS, procs=MODEL_PROCS, load=MODEL_LOAD, seed=seed)


def run_figure_11(study: Sp2Study) -> EstimateFigures | None:
    """Count how much of their requested time jobs used; None for a log without estimates.

    Only jobs that ran a minute or more count: with these the counts are near those of the paper,
    with all they are not.
    """
    asks = estimated(study.log)
    run_s, asked_s, status = (
        np.asarray(study.log[name])[asks] for name in ("run", "time_requested", "status")
    )
    is_long = run_s >= 60
    if not is_long.any():
        return None
    run_s, asked_s, status = run_s[is_long], asked_s[is_long], status[is_long]
    percent = np.floor(100 * run_s / asked_s + 0.5)
    is_full, has_failed = percent >= 100, status == 0
    counted = (
        ~is_long,
        is_full,
        is_full & has_failed,
        run_s >= asked_s,
        has_failed & (asked_s == 4 * 3600),
    )
    shorter, full, killed, over, four_hours = (int(np.count_nonzero(mask)) for mask in counted)
    return EstimateFigures(
        jobs=len(run_s),
        shorter=shorter,
        full=full,
        killed=killed,
        over=over,
        four_hours=four_hours,
        highest_h=float(asked_s.max()) / 3600,
        two_hours_share=float(np.mean(asked_s <= 2 * 3600)),
        five_minutes_share=float(np.mean(asked_s % 300 == 0)),
        histogram=tuple(
            np.bincount(np.minimum(percent, 100).astype(np.int64), minlength=101).tolist()
        ),
    )


def estimated(log: Log) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which jobs of a log ran and had requested some time."""
    return np.asarray((np.asarray(log["time_requested"]) > 0) & (np.asarray(log["run"]) >= 0))


def has_estimates(log: Log) -> bool:
    """Whether the log has estimates of users other than the run times."""
    asks = estimated(log)
    return bool((np.asarray(log["time_requested"])[asks] != np.asarray(log["run"])[asks]).any())
