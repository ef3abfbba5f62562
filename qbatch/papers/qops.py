"""Islam, Balaji, Sadayappan and Panda, "QoPS: A QoS based scheme for Parallel Job Scheduling", OSU
2003: its runs.

Source: papers/qops-deadline-scheduling.txt, sections 4 and 5, as docs/spec/papers.md 2.8 reads
them, with its rules by number. A *trace* is a source of jobs; a *subset* is a replica: 5,000 jobs
of a log that no other subset has, or a generated log with a seed of its own.  A *group* is one
subset at one load under every scheme; its log and its reference schedules are made once for all
settings.  The paper leaves price, order and backtracks of QoPS's rivals open: the settings called
presets were picked because with them its order appears.  Stronger settings of the same rivals are
run, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from qbatch.metrics.machine import utilisation_makespan
from qbatch.metrics.per_job import job_metrics, job_times
from qbatch.metrics.sums import exact_area
from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS, BoolArray, Int64Array, Schedule, Workload
from qbatch.papers.logs import machine_words, name_by_file
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.simulation.drivers import responses_of
from qbatch.simulation.prepare import choose_procs
from qbatch.workloads import Log, generate_log, read_log
from qbatch.workloads.transform import (
    duplicated,
    exact_estimates,
    expanded,
    packed_set,
    sized,
    taken,
    with_deadlines,
)
from qbatch.workloads.transform.load import can_run

QOPS, MSB, MRT, MSB_FRACTION, MRT_LLF = (
    "QoPS",
    "MSB delay",
    "MRT EDF 0",
    "MSB fraction",
    "MRT LLF 10",
)
EASY, CONSERVATIVE = "EASY", "conservative"

SCHEMES = {
    QOPS: "qops:violations=5,key=llf,placing=sorted,others=reject",
    MSB: "msb:order=ast,price=delay,others=reject",
    MRT: "mrt:key=edf,backtracks=0,others=reject",
    MSB_FRACTION: "msb:order=ast,price=fraction,others=reject",
    MRT_LLF: "mrt:key=llf,backtracks=10,others=reject",
}
"""The schemes: their names in the tables, and for ``qbatch replay -p``."""

PRESETS = (MSB, MRT)
"""The settings of QoPS's rivals that were picked because with them the paper's order appears."""

STRONGER = (MSB_FRACTION, MRT_LLF)
"""The other settings of the same rivals, as defensible, and always shown next to the presets."""

REFERENCES = {EASY: "easy", CONSERVATIVE: "conservative"}

DUPLICATION, EXPANSION = "duplication", "expansion"
LOADS = (1.0, 1.2, 1.4, 1.6)
SHARES, STRINGENCIES = (1.0, 0.8, 0.2), (0.2, 0.5)
FACTOR, FACTORS = 5.0, (2.0, 5.0, 10.0)
"""R of the figures that do not name it, and those of Figures 55 to 58."""

SUBSETS, SEED = 10, 1
WARMUP_JOBS, SUBSET_JOBS = 1_000, 5_000
"""Jobs of a log before its first subset, and jobs of a subset."""

OWN_PROCS, OWN_LOAD = 128, 0.62
"""The machine and the base load of the log that is generated if none is given."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A source of jobs: a short name for files, a name, the machine's processors, the log's digest
    and its path.

    Without a path, subsets are generated.
    """

    slug: str
    name: str
    procs: int
    sha256: str | None = None
    path: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class QopsCase:
    """One group: a subset of this many jobs, by its place and the seed of its draws, at one
    load."""

    trace: Trace
    method: str
    subset: int
    load: float
    jobs: int = SUBSET_JOBS
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """The deadlines: q, the share of jobs that have one; s, their stringency; R, the factor of
    artificial ones."""

    share: float
    stringency: float
    factor: float = FACTOR

    @property
    def words(self) -> str:
        """``80 % deadline jobs, s = 0.2``."""
        return f"{100 * self.share:g} % deadline jobs, s = {self.stringency:g}"


@dataclass(frozen=True, slots=True)
class SchemeFigures:
    """One run: refused jobs, use of the machine, and service of the jobs without deadlines (rule
    18).

    ``refused``: number of deadline jobs that were not admitted.  ``unadmitted``, ``lost_work``:
    their shares of the deadline jobs and of the processor-seconds of these; ``unadmitted_all``,
    ``lost_work_all``: of all jobs.  ``utilisation``: over the run's own span.  ``response_s``,
    ``slowdown``: means over admitted jobs without deadlines; None without such jobs.  ``late``:
    admitted deadline jobs that ended after their deadline (EASY and conservative do not know
    deadlines).
    """

    refused: int
    unadmitted: float
    unadmitted_all: float
    lost_work: float
    lost_work_all: float
    utilisation: float
    response_s: float | None
    slowdown: float | None
    late: int


@dataclass(frozen=True, slots=True)
class SettingFigures:
    """The runs of a group under one setting, by scheme."""

    setting: Setting
    schemes: dict[str, SchemeFigures]


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """All runs of a group; ``jobs``: those of the changed log; ``easy_late``: jobs that EASY ends
    after a deadline of s = 0."""

    case: QopsCase
    jobs: int
    easy_late: int
    settings: list[SettingFigures]

    @property
    def is_wrong_size(self) -> bool:
        """Whether its number of jobs is not that of its subset, times the load if jobs are
        duplicated."""
        times = self.case.load if self.case.method == DUPLICATION else 1.0
        return self.jobs != round(times * self.case.jobs)


def settings_of(method: str) -> Iterator[tuple[Setting, tuple[str, ...]]]:
    """Yield the settings of a method, each with the schemes of its runs."""
    for share, stringency in product(SHARES, STRINGENCIES):
        yield Setting(share, stringency), (*REFERENCES, *SCHEMES)
        if method == DUPLICATION and share < 1:
            yield from (
                (Setting(share, stringency, factor), (QOPS,))
                for factor in FACTORS
                if factor != FACTOR
            )


@lru_cache(maxsize=2)
def _log_of(path: str, procs: int) -> Log:
    return sized(read_log(path), procs)


def subset_of(case: QopsCase) -> Log:
    """Return the jobs of a subset, with exact estimates, at load 1."""
    trace = case.trace
    if trace.path is None:
        log = generate_log(
            jobs=case.jobs, procs=trace.procs, load=OWN_LOAD, seed=case.seed + case.subset
        )
        return exact_estimates(sized(log, trace.procs))
    log = _log_of(trace.path, trace.procs)
    return exact_estimates(taken(log, skip=WARMUP_JOBS + case.subset * case.jobs, first=case.jobs))


def log_of(case: QopsCase) -> Log:
    """Return the jobs of a group: the subset with its load changed (rule 15)."""
    subset = subset_of(case)
    if case.method == EXPANSION:
        return expanded(subset, case.load)
    return duplicated(subset, case.load, case.seed + case.subset)


def simulate(case: QopsCase) -> GroupFigures:
    """Run a group under every setting and scheme."""
    log, machine = log_of(case), one_host(case.trace.procs)
    work = prepare(log, machine)
    references = {
        name: run(work, machine, load_policy(asked)) for name, asked in REFERENCES.items()
    }
    responses = responses_of(log, references[EASY])
    seed = case.seed + case.subset

    def deadlines(share: float, stringency: float) -> Workload:
        asked = with_deadlines(
            log, responses, stringency=stringency, share=share, seed=seed
        ).deadline
        return prepare(log, machine, deadlines=np.where(asked >= 0, asked * MICROSECONDS, -1))

    found = []
    for setting, names in settings_of(case.method):
        timed, schemes = deadlines(setting.share, setting.stringency), {}
        for name in names:
            schedule = references.get(name)
            if schedule is None:
                schedule = run(
                    timed, machine, load_policy(f"{SCHEMES[name]},factor={setting.factor:g}")
                )
            schemes[name] = figures_of(schedule, timed)
        found.append(SettingFigures(setting, schemes))
    loosest = figures_of(references[EASY], deadlines(1.0, 0.0))
    return GroupFigures(case, len(work), loosest.late, found)


def figures_of(schedule: Schedule, work: Workload) -> SchemeFigures:
    """Return the figures of a schedule of these jobs; the policy of the schedule may not have known
    their deadlines."""
    ran, has = schedule.ran, np.asarray(work.deadline >= 0)
    is_refused = has & ~ran
    refused = int(np.count_nonzero(is_refused))
    others = job_metrics(job_times(schedule, np.flatnonzero(ran & ~has)))

    def area(rows: BoolArray) -> int:
        return exact_area(work.procs[rows], work.run[rows])

    return SchemeFigures(
        refused=refused,
        unadmitted=refused / max(int(np.count_nonzero(has)), 1),
        unadmitted_all=float(np.mean(~ran)),
        lost_work=area(is_refused) / max(area(has), 1),
        lost_work_all=area(~ran) / max(exact_area(work.procs, work.run), 1),
        utilisation=utilisation_makespan(schedule.only_ran()) or 0.0,
        response_s=others["response_mean_s"],
        slowdown=others["slowdown_mean"],
        late=int(np.count_nonzero(has & ran & (schedule.end > work.deadline))),
    )


# ------------------------------------------------------------------------------------------------
# the study

CTC, SDSC = "ctc", "sdsc"
CTC_PROCS = 430
"""The processors of CTC's log in the calibration; its header names the 338 of its batch
partition."""


@dataclass(frozen=True, slots=True)
class QopsSource:
    """A trace, the methods that change its load, and the number of its subsets that are run."""

    trace: Trace
    subsets: int
    methods: tuple[str, ...] = (DUPLICATION,)


@dataclass(frozen=True, slots=True)
class QopsStudy:
    """The runs: the sources, the jobs of a subset, the seed of the first.

    ``wanted``: the number of subsets that were asked for; a source may have fewer.
    """

    sources: tuple[QopsSource, ...]
    jobs: int = SUBSET_JOBS
    seed: int = SEED
    wanted: int = SUBSETS

    def cases(self) -> list[QopsCase]:
        """Return all groups, subset by subset, so that an early end leaves whole subsets."""
        subsets = range(max(source.subsets for source in self.sources))
        return [
            QopsCase(source.trace, method, subset, load, self.jobs, self.seed)
            for subset, source in product(subsets, self.sources)
            if subset < source.subsets
            for method, load in product(source.methods, LOADS)
        ]

    def facts(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return the logs and the options, for the record of the command."""
        logs = [
            {
                "name": one.trace.name,
                "sha256": one.trace.sha256,
                "procs": one.trace.procs,
                "subsets": one.subsets,
            }
            for one in self.sources
        ]
        return {
            "logs": logs,
            "options": {
                "subsets": self.wanted,
                "jobs": self.jobs,
                "seed": self.seed,
                "parts": parts,
            },
        }


def study_of(
    logs: Sequence[str] = (),
    *,
    procs: int | None = None,
    subsets: int = SUBSETS,
    jobs: int = SUBSET_JOBS,
    seed: int = SEED,
) -> QopsStudy:
    """Return the study of these logs, or of generated ones.

    Raises:
        InputError: a log has fewer jobs than one subset.
        UsageError: one log is named twice, or ``procs`` is given for several.
    """
    if procs is not None and len(logs) > 1:
        raise UsageError(
            f"--procs {procs}: there are {len(logs)} logs; their headers say how large their "
            "machines are"
        )
    chosen: Sequence[str | None] = logs or [None]
    sources = [source_of(path, procs=procs, subsets=subsets, jobs=jobs) for path in chosen]
    slugs = [source.trace.slug for source in sources]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise UsageError(f"two of the logs are {slug}; name each once")
    return QopsStudy(tuple(sources), jobs, seed, subsets)


def source_of(
    path: str | None, *, procs: int | None = None, subsets: int = SUBSETS, jobs: int = SUBSET_JOBS
) -> QopsSource:
    """Return a log as a source of subsets, with its trace and their number; ``path`` None:
    generated logs.

    Raises:
        InputError: the log has fewer jobs than one subset.
        UsageError: ``procs`` is given for a generated log.
    """
    both = (DUPLICATION, EXPANSION)
    if path is None:
        if procs is not None:
            raise UsageError(
                f"--procs {procs}: the generated logs are for {OWN_PROCS} processors; name a log, "
                "or leave it out"
            )
        return QopsSource(Trace("generated", "generated", OWN_PROCS), subsets, both)
    log = read_log(path)
    words = machine_words(log)
    if "Cornell" in words or "CTC" in words:
        slug, name = CTC, "CTC"
    else:
        slug, name = (SDSC, "SDSC") if "SDSC" in words and "SP2" in words else name_by_file(path)
    size = choose_procs(log, CTC_PROCS if procs is None and slug == CTC else procs)
    there = (int(np.count_nonzero(can_run(sized(log, size)))) - WARMUP_JOBS) // jobs
    if there < 1:
        raise InputError(
            f"{path}: it has not the {WARMUP_JOBS + jobs:,} jobs of one subset ({WARMUP_JOBS:,} "
            "are left out before the first); "
            "use a longer log, or --jobs N with fewer jobs to a subset"
        )
    methods = (DUPLICATION,) if slug == SDSC else both
    return QopsSource(Trace(slug, name, size, log.sha256, path), min(subsets, there), methods)


# ------------------------------------------------------------------------------------------------
# users' estimates The paper leaves open what users' estimates do to deadlines, and what predictions
# would do.
#
# QoPS books a job for a *bound* of its run time (all jobs with deadlines, s = 0.2, the load of the
# log).  There are four bounds, on the same jobs with the same deadlines and run times (a job is
# killed at its user's estimate):
#
# * ``exact``: the run time itself, as in the paper.
# * ``users``: the user's estimate.  If a job ends earlier, the plan is compressed.
# * ``users, all used``: as if each job ran for its whole estimate; the difference to ``users`` is
#   the gain from early ends.
# * ``predicted``: the mean of the last two run times of the same user (Tsafrir, Etsion and
#   Feitelson 2007), at most the estimate; the estimate if there are fewer than two.  They are the
#   last that had ended by the submission under EASY.  A job that
#   outlives its prediction continues.
#
# There are two kinds of deadlines, because no job is admitted with less time than its bound:
# submission + max(run, 0.8 x response), as in the paper, and submission + max(estimate, 0.8 x
# response).  The response is that under EASY with estimates.

EXACT, USERS, ALL_USED, PREDICTED = "exact", "users", "users, all used", "predicted"
BOUNDS = (EXACT, USERS, ALL_USED, PREDICTED)
BY_RUN, BY_ESTIMATE = RULES = "by run time", "by estimate"
BOUND_SUBSETS, BOUND_JOBS = 8, 400
"""Subsets of each log and jobs of each: jobs that outlive a bound need the engine, which steps
through them by seconds."""

_LEFT = 800
"""Thousandths of the response that a deadline leaves: s = 0.2."""


@dataclass(frozen=True, slots=True)
class EstimateCase:
    """Some jobs of a trace, without the first ``skip`` that can run; generated ones have this
    seed."""

    trace: Trace
    skip: int
    jobs: int
    seed: int


@dataclass(frozen=True, slots=True)
class BoundFigures:
    """One run: refused and admitted jobs, and those with a broken promise, with their delay.

    ``refused``, ``lost_work``: shares of all jobs and of their processor-seconds.  ``late``: the
    number of admitted jobs that ended after the deadline; ``late_s``: their mean delay,
    ``late_most_s``: the longest; None if there are none.
    """

    refused: float
    lost_work: float
    admitted: int
    late: int
    late_s: float | None
    late_most_s: float | None


@dataclass(frozen=True, slots=True)
class QopsEstimateFigures:
    """The runs of a subset by kind of deadline and bound; ``outlived``: the share of jobs that
    outlive the prediction."""

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
    bounds = {
        EXACT: (work.run, work.run),
        USERS: (work.estimate, work.run),
        ALL_USED: (work.estimate, work.estimate),
        PREDICTED: (predicted, work.run),
    }
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
    """Return for each job the mean of the run times of the last two of its user that had ended by
    its submission.

    In microseconds, floored, at least a second, at most the estimate; the estimate where there are
    not two.  ``end``: of each job, in a reference schedule.
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
    """Return the figures of a schedule, with the work of the jobs from ``work``."""
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


def estimate_cases(study: QopsStudy) -> list[EstimateCase]:
    """Return the cases of some subsets of each source, of their first jobs."""
    jobs = min(study.jobs, BOUND_JOBS)
    return [
        EstimateCase(source.trace, WARMUP_JOBS + subset * study.jobs, jobs, study.seed + subset)
        for source in study.sources
        for subset in range(min(source.subsets, BOUND_SUBSETS))
    ]


# ------------------------------------------------------------------------------------------------
# packed sets The evaluation that section 4.1 begins with: sets of jobs that fill a machine (rule
# 17).

SETS = 15
PROCS, SPAN_S = 32, 7_200
SLACKS = {"static": (0.0, 0.05, 0.1, 0.2), "dynamic": (0.0, 0.1, 0.5)}
"""The values of r by kind of set."""

PACKED_CASES = [(kind, slack) for kind, slacks in SLACKS.items() for slack in slacks]


@dataclass(frozen=True, slots=True)
class PackedFigures:
    """The number of sets, of ``SETS`` packed ones of one kind and slack, that each scheme admits
    whole."""

    kind: str
    slack: float
    whole: dict[str, int]


def simulate_packed(case: tuple[str, float]) -> PackedFigures:
    """Run the sets of one kind and slack under every scheme; they are drawn from seeds 1 on."""
    (kind, slack), machine = case, one_host(PROCS)
    whole = dict.fromkeys(SCHEMES, 0)
    for seed in range(1, SETS + 1):
        made = packed_set(kind, procs=PROCS, span_s=SPAN_S, slack=slack, seed=seed)
        work = prepare(made.log, machine, deadlines=np.asarray(made.deadline) * MICROSECONDS)
        for scheme, asked in SCHEMES.items():
            whole[scheme] += bool(run(work, machine, load_policy(asked)).ran.all())
    return PackedFigures(kind, slack, whole)
