"""One run behind the figures of the thesis on group optimisation: a workload, what is known of run times, and a scheme.

Source: papers/scojo-pect-group-optimisation.txt, chapters 8 and 9; every reading is that of docs/spec/papers.md 4.10, its
rules by number.  A *source* is where workloads come from, a *workload* is a replica: 10,000 jobs of the model of Lublin
and Feitelson, or 10,000 of a log that no other workload has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

import numpy as np

from qbatch.metrics.machine import utilisation_makespan
from qbatch.metrics.per_job import bounded_slowdowns, clipped, responses, waits
from qbatch.metrics.sums import exact_area
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import MICROSECONDS, BoolArray, Int64Array, Schedule, Workload
from qbatch.papers.scojo_printed import BEST_LONG, BEST_MEDIUM, INTERARRIVAL_S, LABELS, SIZES
from qbatch.planning.policy import Policy, compiled_of
from qbatch.policies import load_policy
from qbatch.policies.slice_book import Tally
from qbatch.policies.slice_rules import LONG, LONG_FROM, MEDIUM, MEDIUM_FROM, NAMES
from qbatch.replay import Options, prepare, run
from qbatch.replay.calendar import Calendar
from qbatch.workloads import read_log
from qbatch.workloads.lublin import generate_lublin

SCOJO, GROUPS = "scojo", "groups"
SCOJO_EASY = "scojo, easy"
SCOJO_ALONE, GROUPS_ALONE = "scojo, smart off", "groups, smart off"
NO_DYNAMIC, NO_LEVEL2 = "groups, dynamic off", "groups, level 2 off"
NO_LEVEL1, NO_SELECT, NO_SHIFT, NO_HALVES = (f"groups, {part} off" for part in ("level 1", "select", "shift", "halves"))
LEX, DDS = "groups, lex", "groups, dds"
BOTTOM, BOTTOM_ALONE = "bottom line", "bottom line, smart off"
EASY, CONSERVATIVE = "easy", "conservative"
ONE, ONE_GROUPS = "one class", "one class, groups"
ONE_BOTTOM, ONE_UNSEARCHED = "one class, bottom line", "one class, bottom line unsearched"

SCHEMES = {
    SCOJO: "scojo",
    SCOJO_EASY: "scojo:backfill=easy",
    SCOJO_ALONE: "scojo:smart=no",
    GROUPS: "scojo-groups",
    GROUPS_ALONE: "scojo-groups:smart=no",
    NO_DYNAMIC: "scojo-groups:dynamic=no",
    NO_LEVEL2: "scojo-groups:level2=no",
    NO_LEVEL1: "scojo-groups:level1=no",
    NO_SELECT: "scojo-groups:select=no",
    NO_SHIFT: "scojo-groups:shift=no",
    NO_HALVES: "scojo-groups:halves=no",
    LEX: "scojo-groups:search=lex",
    DDS: "scojo-groups:search=dds",
    BOTTOM: "bottom-line",
    BOTTOM_ALONE: "bottom-line:smart=no",
    EASY: "easy",
    CONSERVATIVE: "conservative",
    ONE: "scojo:class_by=none",
    ONE_GROUPS: "scojo-groups:class_by=none",
    ONE_BOTTOM: "bottom-line:class_by=none",
    ONE_UNSEARCHED: "bottom-line:class_by=none,nodes=1",
}
"""The schemes by the names of the tables, and what ``qbatch replay -p`` calls them; *one class* is a plain machine."""


def sized(medium: int, long: int) -> str:
    """Return the scheme of groups of at most so many medium and long jobs."""
    return GROUPS if (medium, long) == (BEST_MEDIUM, BEST_LONG) else f"groups M{medium} L{long}"


SCHEMES |= {
    sized(medium, long): f"scojo-groups:most_medium={medium},most_long={long}"
    for medium, long in product(SIZES, SIZES)
    if sized(medium, long) != GROUPS
}

SEED = 101
"""Of the first workload of the model that has no label of the paper, where nothing else is said."""

EXACT, USERS = "exact", "users"
"""What is known of a run time: the run time itself, or a user's estimate."""

WORKLOAD_JOBS = 10_000
MOST_WORKLOADS = 1000
"""Of one source."""

MODEL_PROCS = 128
MEAN_INTERARRIVAL_S = sum(INTERARRIVAL_S.values()) / len(INTERARRIVAL_S)
"""Of the workloads of which Table 5 says nothing."""

BOUND_US = 600 * MICROSECONDS
"""The shortest run time that a slowdown is divided by."""

LONG_NARROW_US = 8 * 3600 * MICROSECONDS
"""The run time above which Table 6 counts narrow jobs."""

WIDTHS = ("narrow", "medium", "wide")
ALL = "all"


@dataclass(frozen=True, slots=True)
class ScojoSource:
    """Where workloads come from: a short name for files, a name, the processors, the log's digest and its path.

    Without a path they are of the model.  ``has_estimates``: whether users' estimates can be had.
    """

    slug: str
    name: str
    procs: int
    sha256: str | None = None
    path: str | None = field(default=None, compare=False)
    has_estimates: bool = True


MODEL = ScojoSource("model", "Lublin-Feitelson", MODEL_PROCS)


@dataclass(frozen=True, slots=True)
class ScojoCase:
    """One run: a workload of a source by its number, of so many jobs, what is known of run times, and the scheme.

    ``seed``: of the workloads of the model (:func:`seed_of`).
    """

    source: ScojoSource
    workload: int
    estimates: str
    scheme: str
    jobs: int = WORKLOAD_JOBS
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class Facts:
    """A workload: shares of the jobs and of the work, mean size, by class; mean seconds between arrivals; the offered load.

    ``long_narrow``: jobs above 8 hours on at most a tenth of the machine / long jobs (Table 6); ``narrow_of_long``: long jobs on
    at most a tenth / long jobs.
    """

    jobs: list[float]
    work: list[float]
    sizes: list[float]
    interarrival_s: float
    load: float
    long_narrow: float
    narrow_of_long: float


@dataclass(frozen=True, slots=True)
class ScojoCell:
    """How the jobs of a class and a width fared.

    ``slowdown``: mean of ceil(max(1, response / max(run, 600 s))), as the paper has it; ``plain_slowdown`` without rounding up;
    ``worst``: the largest, not rounded.  ``response_s``, ``wait_s`` (to the first start): means in seconds (rule 20).
    """

    jobs: int
    slowdown: float
    plain_slowdown: float
    worst: float
    response_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class ScojoFigures:
    """What a run is worth: cells by class and width (``cell_name``), utilisation over the makespan, what was searched."""

    case: ScojoCase
    facts: Facts
    cells: dict[str, ScojoCell]
    utilisation: float
    groups: list[int]
    grouped: list[int]
    nodes: int
    pruned: int


def cell_name(kind: str = ALL, width: str = ALL) -> str:
    """Return how the jobs of a class (by run time) and a width are called: ``long``, ``long wide``, ``all``, ``all wide``."""
    return kind if width == ALL else f"{kind} {width}"


def label_of(workload: int) -> int | None:
    """Return the label that the paper has for a workload of the model; None for one of our own."""
    return LABELS[workload] if workload < len(LABELS) else None


def seed_of(workload: int, seed: int) -> int:
    """Return the seed of a workload of the model.

    One with a label of the paper is drawn by its label, where nothing else is said; with another seed it is drawn anew, and only
    its mean gap is still that of its label.  The others count on from ``seed``.
    """
    label = label_of(workload)
    if label is None:
        return seed + workload - len(LABELS)
    return label if seed == SEED else seed + MOST_WORKLOADS + workload


def workload_of(case: ScojoCase) -> Workload:
    """Return the jobs of a case."""
    return _workload_of(case.source, case.source.path, case.workload, case.estimates, case.jobs, case.seed)


@lru_cache(maxsize=2)
def _workload_of(source: ScojoSource, path: str | None, workload: int, estimates: str, jobs: int, seed: int) -> Workload:
    if path is not None:
        first = workload * jobs
        return log_workload(path, source.procs, estimates).only(np.arange(first, first + jobs))
    label = label_of(workload)
    log = generate_lublin(
        jobs=jobs,
        procs=source.procs,
        seed=seed_of(workload, seed),
        interarrival=MEAN_INTERARRIVAL_S if label is None else INTERARRIVAL_S.get(label, MEAN_INTERARRIVAL_S),
        estimates="tsafrir" if estimates == USERS else "exact",
    )
    return prepare(log, one_host(source.procs))


@lru_cache(maxsize=4)
def log_workload(path: str, procs: int, estimates: str) -> Workload:
    """Return every job of a log that can run; no job is ended at its user's estimate, so that both kinds have the same jobs."""
    options = Options(estimates="perfect") if estimates == EXACT else Options(kill=False)
    return prepare(read_log(path), one_host(procs), options)


def simulate(case: ScojoCase) -> ScojoFigures:
    """Make a run."""
    work, machine = workload_of(case), one_host(case.source.procs)
    schedule, tally = _run(work, machine, load_policy(SCHEMES[case.scheme]))
    return ScojoFigures(
        case=case,
        facts=facts_of(work),
        cells=cells_of(schedule),
        utilisation=utilisation_makespan(schedule) or 0.0,
        groups=tally.groups,
        grouped=tally.grouped,
        nodes=tally.nodes,
        pruned=tally.pruned,
    )


def _run(work: Workload, machine: Machine, policy: Policy) -> tuple[Schedule, Tally]:
    """Return the schedule, and what the policy's memory says of its searches at the end."""
    if compiled_of(policy, machine) is not None:
        return run(work, machine, policy), Tally()
    calendar = Calendar(work, machine, policy)
    schedule = calendar.run()
    return schedule, calendar.engine.view().memory.tally


def kinds_of(work: Workload) -> Int64Array:
    """Return the class of each job by its run time: 0 short, 1 medium, 2 long (rule 1)."""
    return np.digitize(work.run, [MEDIUM_FROM, LONG_FROM])


def widths_of(work: Workload) -> Int64Array:
    """Return the width of each job: 0 below a tenth of the machine, 2 above half of it, 1 between."""
    return np.where(10 * work.procs < work.procs_total, 0, np.where(2 * work.procs > work.procs_total, 2, 1))


def cells_of(schedule: Schedule) -> dict[str, ScojoCell]:
    """Return how each class, each width and both together fared, of those that have a job."""
    work = schedule.workload
    response = responses(work.submit, schedule.end)
    wait = waits(work.submit, schedule.start, schedule.end, work.run, np.zeros(len(work), np.bool_))
    plain = clipped(bounded_slowdowns(response, work.run, BOUND_US))
    kind, width = kinds_of(work), widths_of(work)
    cells = {}
    for first, second in product(range(-1, len(NAMES)), range(-1, len(WIDTHS))):
        rows = np.flatnonzero(((kind == first) | (first < 0)) & ((width == second) | (second < 0)))
        if len(rows):
            name = cell_name(ALL if first < 0 else NAMES[first], ALL if second < 0 else WIDTHS[second])
            cells[name] = ScojoCell(
                jobs=len(rows),
                slowdown=float(np.mean(np.ceil(plain[rows]))),
                plain_slowdown=float(np.mean(plain[rows])),
                worst=float(plain[rows].max()),
                response_s=float(np.mean(response[rows])) / MICROSECONDS,
                wait_s=float(np.mean(wait[rows])) / MICROSECONDS,
            )
    return cells


def facts_of(work: Workload) -> Facts:
    """Return what Tables 5 and 6 say of a workload."""
    kind = kinds_of(work)
    all_work = max(_area(work, np.ones(len(work), np.bool_)), 1)
    span = int(work.submit[-1] - work.submit[0])
    is_long, is_narrow = kind == LONG, 10 * work.procs <= work.procs_total
    long = max(int(np.count_nonzero(is_long)), 1)
    return Facts(
        jobs=[float(np.mean(kind == each)) for each in range(len(NAMES))],
        work=[_area(work, kind == each) / all_work for each in range(len(NAMES))],
        sizes=[float(np.mean(work.procs[kind == each])) if (kind == each).any() else 0.0 for each in range(len(NAMES))],
        interarrival_s=span / MICROSECONDS / max(len(work) - 1, 1),
        load=all_work / max(work.procs_total * span, 1),
        long_narrow=int(np.count_nonzero((work.run > LONG_NARROW_US) & is_narrow)) / long,
        narrow_of_long=int(np.count_nonzero(is_long & is_narrow)) / long,
    )


def _area(work: Workload, rows: BoolArray) -> int:
    return exact_area(work.procs[rows], work.run[rows])


def grouped_share(one: ScojoFigures) -> float:
    """Return what share of the medium and long jobs was in a group."""
    there = sum(one.cells[NAMES[kind]].jobs for kind in (MEDIUM, LONG) if NAMES[kind] in one.cells)
    return sum(one.grouped) / max(there, 1)
