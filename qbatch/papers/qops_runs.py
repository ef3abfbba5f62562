"""One group of runs behind Figures 4 to 58 of Islam and others 2003: a subset of a log at one load, under every scheme.

Source: papers/qops-deadline-scheduling.txt, sections 4 and 5; every reading is that of docs/spec/papers.md 2.8, its rules
by number. A *trace* is where jobs come from; a *subset* is a replica: 5,000 jobs of a log that no other subset has, or a
generated log of a seed of its own.  A *group* is one subset at one load; its log and its reference schedules are made once
for all settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from qbatch.metrics.machine import utilisation_makespan
from qbatch.metrics.per_job import job_metrics, job_times
from qbatch.metrics.sums import exact_area
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import MICROSECONDS, BoolArray, Schedule, Workload
from qbatch.policies import load_policy
from qbatch.replay import prepare, run
from qbatch.replay.reference import responses_of
from qbatch.workloads import Log, generate_log, read_log
from qbatch.workloads.transform import duplicated, exact_estimates, expanded, sized, taken, with_deadlines

QOPS, MSB, MRT, MSB_FRACTION, MRT_LLF = "QoPS", "MSB delay", "MRT EDF 0", "MSB fraction", "MRT LLF 10"
EASY, CONSERVATIVE = "EASY", "conservative"

SCHEMES = {
    QOPS: "qops:violations=5,key=llf,placing=sorted,others=reject",
    MSB: "msb:order=ast,price=delay,others=reject",
    MRT: "mrt:key=edf,backtracks=0,others=reject",
    MSB_FRACTION: "msb:order=ast,price=fraction,others=reject",
    MRT_LLF: "mrt:key=llf,backtracks=10,others=reject",
}
"""The schemes by the names of the tables, and what ``qbatch replay -p`` calls them."""

PRESETS = (MSB, MRT)
"""The settings of QoPS's rivals that were picked because with them the paper's order appears."""

STRONGER = (MSB_FRACTION, MRT_LLF)
"""The other settings of the same rivals, as defensible, and always shown beside the presets."""

REFERENCES = {EASY: "easy", CONSERVATIVE: "conservative"}

DUPLICATION, EXPANSION = "duplication", "expansion"
LOADS = (1.0, 1.2, 1.4, 1.6)
SHARES, STRINGENCIES = (1.0, 0.8, 0.2), (0.2, 0.5)
FACTOR, FACTORS = 5.0, (2.0, 5.0, 10.0)
"""R of the figures that do not say which, and those of Figures 55 to 58."""

WARMUP_JOBS, SUBSET_JOBS = 1_000, 5_000
"""Jobs of a log before its first subset, and jobs of a subset."""

OWN_PROCS, OWN_LOAD = 128, 0.62
"""The machine and the base load of the log that is generated where none is given."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Where jobs come from: a short name for files, a name, the machine's processors, the log's digest and its path.

    Without a path, subsets are generated.
    """

    slug: str
    name: str
    procs: int
    sha256: str | None = None
    path: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class QopsCase:
    """One group: a subset of so many jobs, by its place and the seed of its draws, at one load."""

    trace: Trace
    method: str
    subset: int
    load: float
    jobs: int = SUBSET_JOBS
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Setting:
    """What deadlines there are: q, the share of jobs that have one; s, how stringent; R, the factor of artificial ones."""

    share: float
    stringency: float
    factor: float = FACTOR


@dataclass(frozen=True, slots=True)
class SchemeFigures:
    """One run: what was not admitted, how busy the machine was, and how the jobs without deadlines fared (rule 18).

    ``refused``: deadline jobs, their number.  ``unadmitted``, ``lost_work``: shares of the deadline jobs and of their
    processor-seconds; ``unadmitted_all``, ``lost_work_all``: of all jobs.  ``utilisation``: of the run's own span.
    ``response_s``, ``slowdown``: means over admitted jobs without deadlines; None without such jobs.
    ``late``: admitted deadline jobs that ended after their deadline (of EASY and conservative, which know none: as it comes).
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
    """All runs of a group; ``jobs``: of the changed log; ``easy_late``: jobs that EASY ends after a deadline of stringency 0."""

    case: QopsCase
    jobs: int
    easy_late: int
    settings: list[SettingFigures]


def settings_of(method: str) -> Iterator[tuple[Setting, tuple[str, ...]]]:
    """Give the settings of a method, and under which schemes each is run."""
    for share in SHARES:
        for stringency in STRINGENCIES:
            yield Setting(share, stringency), (*REFERENCES, *SCHEMES)
            if method == DUPLICATION and share < 1:
                for factor in FACTORS:
                    if factor != FACTOR:
                        yield Setting(share, stringency, factor), (QOPS,)


@lru_cache(maxsize=2)
def _log_of(path: str, procs: int) -> Log:
    return sized(read_log(path), procs)


def subset_of(case: QopsCase) -> Log:
    """Return the jobs of a subset, with exact estimates, at load 1."""
    trace = case.trace
    if trace.path is None:
        log = generate_log(jobs=case.jobs, procs=trace.procs, load=OWN_LOAD, seed=case.seed + case.subset)
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
    references = {name: run(work, machine, load_policy(asked)) for name, asked in REFERENCES.items()}
    responses = responses_of(log, references[EASY])
    seed = case.seed + case.subset

    def deadlines(share: float, stringency: float) -> Workload:
        asked = with_deadlines(log, responses, stringency=stringency, share=share, seed=seed).deadline
        return prepare(log, machine, deadlines=np.where(asked >= 0, asked * MICROSECONDS, -1))

    found = []
    for setting, names in settings_of(case.method):
        timed = deadlines(setting.share, setting.stringency)
        schemes = {
            name: figures_of(references[name], timed)
            if name in references
            else figures_of(_run(timed, machine, name, setting), timed)
            for name in names
        }
        found.append(SettingFigures(setting, schemes))
    loosest = figures_of(references[EASY], deadlines(1.0, 0.0))
    return GroupFigures(case, len(work), loosest.late, found)


def _run(work: Workload, machine: Machine, scheme: str, setting: Setting) -> Schedule:
    return run(work, machine, load_policy(f"{SCHEMES[scheme]},factor={setting.factor:g}"))


def figures_of(schedule: Schedule, work: Workload) -> SchemeFigures:
    """Return the figures of a schedule of these jobs, whose deadlines the schedule need not have known."""
    ran, has = schedule.ran, np.asarray(work.deadline >= 0)
    others = job_metrics(job_times(schedule, np.flatnonzero(ran & ~has)))
    return SchemeFigures(
        refused=int(np.count_nonzero(has & ~ran)),
        unadmitted=_share(has & ~ran, has),
        unadmitted_all=float(np.mean(~ran)),
        lost_work=_area(work, has & ~ran) / max(_area(work, has), 1),
        lost_work_all=_area(work, ~ran) / max(_area(work, np.ones(len(work), np.bool_)), 1),
        utilisation=utilisation_makespan(schedule.only_ran()) or 0.0,
        response_s=others["response_mean_s"],
        slowdown=others["slowdown_mean"],
        late=int(np.count_nonzero(has & ran & (schedule.end > work.deadline))),
    )


def _share(part: BoolArray, whole: BoolArray) -> float:
    return int(np.count_nonzero(part)) / max(int(np.count_nonzero(whole)), 1)


def _area(work: Workload, rows: BoolArray) -> int:
    return exact_area(work.procs[rows], work.run[rows])
