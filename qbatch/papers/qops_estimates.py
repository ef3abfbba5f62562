"""The question that Islam and others 2003 leave open: what users' estimates do to deadlines, and what predictions would.

A job is booked for a *bound* of its run time, under QoPS (all jobs with deadlines, s = 0.2, the load of the log).  Four bounds,
on the same jobs with the same deadlines and run times (a job is killed at its user's estimate):

* ``exact``: the run time itself, as in the paper.
* ``users``: the user's estimate.  When a job ends before it, the plan is compressed.
* ``users, all used``: as if each job ran as long as its user said: what early ends give back is what lies between.
* ``predicted``: the mean of the last two run times of the same user (Tsafrir, Etsion and Feitelson 2007), never above the
  estimate; the estimate where there are not two.  They are the last that had ended by the submission under EASY.  A job that
  outlives its prediction runs on.

Two kinds of deadlines, since no job is admitted with less time than its bound: submission + max(run, 0.8 x response), as in the
paper, and submission + max(estimate, 0.8 x response); the response is that under EASY with users' estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbatch.metrics import interval
from qbatch.metrics.sums import exact_area
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.papers.evidence import EvidenceItem, above, claim_of
from qbatch.papers.qops_runs import OWN_LOAD, QOPS, SCHEMES, WARMUP_JOBS, Trace
from qbatch.papers.qops_study import QopsStudy
from qbatch.papers.qops_why import WHY
from qbatch.papers.record import Cell, Claim, Column, Row, Table, claim
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import Tell, made_or_kept, silent
from qbatch.workloads import generate_log, read_log
from qbatch.workloads.transform import sized, taken

EXACT, USERS, ALL_USED, PREDICTED = "exact", "users", "users, all used", "predicted"
BY_RUN, BY_ESTIMATE = "by run time", "by estimate"
SUBSETS, JOBS = 8, 400
"""Subsets of each log and jobs of each: the runs that outlive a bound need the engine, which looks at them second by second."""

_LEFT = 800
# Thousandths of the response that a deadline leaves: s = 0.2.


NOTE = "what is said of users' estimates is no claim of the paper: its authors left it to later work"


@dataclass(frozen=True, slots=True)
class EstimateCase:
    """Some jobs of a trace, after so many that can run; generated ones are of this seed."""

    trace: Trace
    skip: int
    jobs: int
    seed: int


@dataclass(frozen=True, slots=True)
class BoundFigures:
    """One run: jobs refused and kept, and those whose promise broke, with by how much they were late.

    ``refused``, ``lost_work``: shares of all jobs and of their processor-seconds.  ``late``: admitted jobs that ended after
    the deadline, their number; ``late_s``: the mean by which they did, ``late_most_s`` the most; None where there are none.
    """

    refused: float
    lost_work: float
    admitted: int
    late: int
    late_s: float | None
    late_most_s: float | None


@dataclass(frozen=True, slots=True)
class QopsEstimateFigures:
    """The runs of a subset by kind of deadline and bound; ``outlived``: the share of jobs that outlive the prediction."""

    case: EstimateCase
    outlived: float
    runs: dict[str, dict[str, BoundFigures]]


def simulate_bounds(case: EstimateCase) -> QopsEstimateFigures:
    """Run a subset under every bound."""
    trace, machine = case.trace, one_host(case.trace.procs)
    if trace.path is None:
        log = generate_log(jobs=case.jobs, procs=trace.procs, load=OWN_LOAD, seed=case.seed)
    else:
        log = taken(sized(read_log(trace.path), trace.procs), skip=case.skip, first=case.jobs)
    work = prepare(log, machine)
    easy = run(work, machine, load_policy("easy"))
    predicted = predictions(work, easy.end)
    bounds = {EXACT: (work.run, work.run), USERS: (work.estimate, work.run), ALL_USED: (work.estimate, work.estimate),
              PREDICTED: (predicted, work.run)}  # fmt: skip
    left = (easy.end - work.submit) * _LEFT // 1000 // MICROSECONDS * MICROSECONDS
    policy = load_policy(SCHEMES[QOPS])
    found: dict[str, dict[str, BoundFigures]] = {}
    for rule, least in ((BY_RUN, work.run), (BY_ESTIMATE, work.estimate)):
        deadline = work.submit + np.maximum(least, left)
        found[rule] = {}
        for name, (estimate, runs) in bounds.items():
            timed = work.changed(estimate=estimate, run=runs, deadline=deadline)
            # A job that outlives its bound is beyond what the compiled loop knows.
            driver = "engine" if (runs > estimate).any() else "auto"
            found[rule][name] = bound_figures(run(timed, machine, policy, driver=driver), work)
    return QopsEstimateFigures(case, float(np.mean(predicted < work.run)), found)


def predictions(work: Workload, end: Int64Array) -> Int64Array:
    """Return for each job the mean of the run times of the last two of its user that had ended by its submission.

    In microseconds, floored, at least a second, at most the estimate; the estimate where there are not two.  ``end``: of
    each job, in a reference schedule.
    """
    found = work.estimate.copy()
    earlier: dict[int, list[int]] = {}
    for row in range(len(work)):
        mine = earlier.setdefault(int(work.user[row]), [])
        last = sorted((int(end[each]), each) for each in mine if end[each] <= work.submit[row])[-2:]
        if len(last) == 2:
            mean = sum(int(work.run[each]) for _, each in last) // 2
            found[row] = min(int(work.estimate[row]), max(mean, MICROSECONDS))
        mine.append(row)
    return found


def bound_figures(schedule: Schedule, work: Workload) -> BoundFigures:
    """Return the figures of a schedule; the work of a job is that of ``work``."""
    ran, deadline = schedule.ran, schedule.workload.deadline
    late = (schedule.end - deadline)[ran & (schedule.end > deadline)]
    whole = exact_area(work.procs, work.run)
    return BoundFigures(
        refused=float(np.mean(~ran)),
        lost_work=exact_area(work.procs[~ran], work.run[~ran]) / max(whole, 1),
        admitted=int(np.count_nonzero(ran)),
        late=len(late),
        late_s=float(np.sum(np.sort(late)) / len(late) / MICROSECONDS) if len(late) else None,
        late_most_s=int(late.max()) / MICROSECONDS if len(late) else None,
    )


def run_estimates(study: QopsStudy, tell: Tell = silent, *, workers: int = WORKERS) -> list[QopsEstimateFigures]:
    """Return the figures of at most ``SUBSETS`` subsets of each source, at most their first ``JOBS`` jobs, in that order."""
    jobs = min(study.jobs, JOBS)
    cases = [
        EstimateCase(source.trace, WARMUP_JOBS + subset * study.jobs, jobs, study.seed + subset)
        for source in study.sources
        for subset in range(min(source.subsets, SUBSETS))
    ]
    return made_or_kept(simulate_bounds, cases, "estimates", tell, workers=workers)


# ------------------------------------------------------------------------------------------------ tables and claims


def estimates_table(found: Sequence[QopsEstimateFigures]) -> Table:
    """Return what was refused and what was kept, a line for each trace, kind of deadline and bound."""
    rows: list[Row] = []
    for trace in dict.fromkeys(one.case.trace for one in found):
        mine = [one for one in found if one.case.trace == trace]
        for rule in (BY_RUN, BY_ESTIMATE):
            for bound in (EXACT, USERS, ALL_USED, PREDICTED):
                rows.append({"log": trace.name, "deadlines": rule, "bound": bound, **_row(mine, rule, bound)})
    columns = [
        Column("log", "log"), Column("deadlines", "deadlines"), Column("bound", "bound"), Column("subsets", "subsets"),
        Column("refused", "refused %", 1), Column("refused_half", "+-", 1), Column("work", "work %", 1),
        Column("admitted", "admitted"), Column("late", "late"), Column("late_share", "late %", 1),
        Column("late_h", "late by h", 2), Column("late_most_h", "at most h", 1),
    ]  # fmt: skip
    outlived = ", ".join(
        f"{trace.name} {100 * _mean([one.outlived for one in found if one.case.trace == trace]):.0f} %"
        for trace in dict.fromkeys(one.case.trace for one in found)
    )
    title = f"Users' estimates: QoPS, all jobs with deadlines, s = 0.2, subsets of {found[0].case.jobs:,} jobs"
    return Table("estimates", title, columns, rows, [f"jobs that outlive the prediction: {outlived}"])


def _row(mine: Sequence[QopsEstimateFigures], rule: str, bound: str) -> dict[str, Cell]:
    runs = [one.runs[rule][bound] for one in mine]
    refused = interval([100 * one.refused for one in runs])
    admitted, late = sum(one.admitted for one in runs), sum(one.late for one in runs)
    seconds = sum(one.late * (one.late_s or 0.0) for one in runs)
    half = None if refused.high is None or refused.mean is None else refused.high - refused.mean
    return {
        "subsets": len(runs), "refused": refused.mean, "refused_half": half,
        "work": 100 * _mean([one.lost_work for one in runs]), "admitted": admitted, "late": late,
        "late_share": 100 * late / max(admitted, 1), "late_h": seconds / late / 3600 if late else None,
        "late_most_h": max(one.late_most_s or 0.0 for one in runs) / 3600 if late else None,
    }  # fmt: skip


def estimates_claims(found: Sequence[QopsEstimateFigures]) -> list[Claim]:
    """Return what is asked of users' estimates, for each trace; none of it is a claim of the paper."""
    claims = []
    for trace in dict.fromkeys(one.case.trace for one in found):
        mine = [one for one in found if one.case.trace == trace]
        late = sum(
            one.runs[rule][bound].late for one in mine for rule in one.runs for bound in (EXACT, USERS, ALL_USED)
        )
        count = sum(
            one.runs[rule][bound].admitted for one in mine for rule in one.runs for bound in (EXACT, USERS, ALL_USED)
        )
        claims += [
            claim(f"{trace.slug}.estimates.upper-bounds-keep", "No promise breaks where the bound is one", not late,
                  f"{late} of {count:,} late"),
            _compared(mine, trace, "users-refuse-more", "More jobs are refused with users' estimates than with exact ones",
                      (USERS, EXACT)),
            _compared(mine, trace, "early-ends-give-back", "Early ends let more jobs in: fewer are refused than if all were used",
                      (ALL_USED, USERS)),
            _compared(mine, trace, "predictions-admit-more", "Fewer jobs are refused with predictions than with estimates",
                      (USERS, PREDICTED)),
            _breaks(mine, trace),
        ]  # fmt: skip
    return claims


def _compared(mine: Sequence[QopsEstimateFigures], trace: Trace, what: str, text: str, bounds: tuple[str, str]) -> Claim:
    upper, lower = bounds
    gaps: list[EvidenceItem] = [
        above(f"{upper} - {lower}, deadlines {rule}",
              [one.runs[rule][upper].refused - one.runs[rule][lower].refused for one in mine], 0.0, " points", 100.0)
        for rule in (BY_RUN, BY_ESTIMATE)
    ]  # fmt: skip
    return claim_of(f"{trace.slug}.estimates.{what}", text, gaps, why=WHY.get(what, ""))


def _breaks(mine: Sequence[QopsEstimateFigures], trace: Trace) -> Claim:
    shares = [
        above(f"deadlines {rule}", [one.runs[rule][PREDICTED].late / max(one.runs[rule][PREDICTED].admitted, 1) for one in mine],
              0.01, " %", 100.0)
        for rule in (BY_RUN, BY_ESTIMATE)
    ]  # fmt: skip
    text = "Predictions break more than one promise in a hundred"
    return claim_of(f"{trace.slug}.estimates.predictions-break", text, shares)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
