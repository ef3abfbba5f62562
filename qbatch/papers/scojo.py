"""The thesis on group optimisation in SCOJO-PECT (time slices, groups, discrepancy search): its
numbers and runs.

Source: papers/scojo-pect-group-optimisation.txt, chapters 8 and 9, as docs/spec/papers.md 4.10
reads them, with its rules by number.  A *source* gives workloads; a *workload* is a replica: 10,000
jobs of the model of Lublin and Feitelson, or 10,000 of a log that no other workload has.  A run has
a workload, known run times or estimates, and a scheme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from qbatch.metrics.machine import utilisation_makespan
from qbatch.metrics.per_job import bounded_slowdowns, clipped, responses, waits
from qbatch.metrics.sums import exact_area
from qbatch.model.errors import InputError, UsageError
from qbatch.model.machine import one_host
from qbatch.model.record import MICROSECONDS, Int64Array, Schedule, Workload
from qbatch.papers.logs import machine_words, name_by_file
from qbatch.papers.replicas import Number, Replicas
from qbatch.planning import search as searching
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.profile import new_profile
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.policies.slice_book import SearchCounts
from qbatch.policies.slice_rules import LONG, LONG_FROM, MEDIUM, MEDIUM_FROM, NAMES
from qbatch.simulation import Options, prepare, run
from qbatch.simulation.calendar import Calendar
from qbatch.simulation.prepare import choose_procs
from qbatch.workloads import read_log
from qbatch.workloads.lublin import generate_lublin

# ------------------------------------------------------------------------------------------------
# what the thesis prints Typed in from the text, with its errors.  Of its figures only Figures 15,
# 23, 24, 28 and 29 print values.

LABELS = (71, 31, 73, 35, 7, 13)
"""The labels of its workloads; 13 occurs in Table 7 only."""

TREE: dict[int, tuple[float, float]] = {
    4: (24, 64),
    8: (40e3, 110e3),
    10: (3629e3, 9864e3),
    15: (1307674e6, 3554627e6),
}
"""Table 2: paths and nodes of the search tree by the number of jobs."""

FACTS: dict[
    int, tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]
] = {
    71: ((64, 19, 17), (0.5, 26.5, 73), (9, 17, 19)),
    31: ((63, 20, 17), (0.5, 25, 74.5), (9, 16, 20)),
    73: ((64, 20, 16), (0.4, 26.5, 73.5), (9, 17, 21)),
    35: ((65, 19, 16), (0.5, 27, 72.5), (9, 18, 20)),
    7: ((64, 20, 16), (0.5, 26, 73.5), (8, 17, 21)),
}
"""Table 5: short, medium and long: percent of the jobs, of the work, and the mean size."""

INTERARRIVAL_S: dict[int, float] = {71: 808, 31: 859, 73: 797, 35: 800, 7: 839}
"""Table 5: the mean seconds between arrivals."""

TRACE_FACTS: dict[
    str,
    tuple[
        tuple[float, float, float], tuple[float, float, float], tuple[float, float, float], float
    ],
] = {
    "sdsc-blue": ((73.7, 17.7, 8.6), (1, 15, 84), (34, 114, 112), 0.79),
    "lanl": ((61.5, 34, 4.5), (2, 41, 57), (74, 92, 244), 0.52),
}
"""Table 6: the same for the logs, and the share of long jobs that are long and narrow."""

SIZES = (10, 20, 30, 40)
BEST_MEDIUM, BEST_LONG = 20, 30
_BY_SIZE = (
    (
        4.97,
        4.81,
        4.87,
        4.97,
        4.85,
        5.09,
        4.83,
        4.79,
        4.85,
        4.96,
        4.83,
        4.79,
        4.85,
        4.96,
        4.83,
        4.79,
    ),
    (
        8.48,
        8.14,
        7.69,
        7.98,
        9.03,
        8.51,
        7.46,
        8.47,
        9.03,
        8.29,
        7.46,
        8.47,
        9.03,
        8.29,
        7.46,
        8.47,
    ),
)
BY_SIZE: dict[tuple[int, int], tuple[float, float]] = {
    (medium, long): (_BY_SIZE[0][4 * row + column], _BY_SIZE[1][4 * row + column])
    for row, medium in enumerate(SIZES)
    for column, long in enumerate(SIZES)
}
"""Figure 15: slowdown of medium and of long jobs by the longest group of each; the order of its
columns is deduced."""

PRINTED_GROUPS: dict[int | str, tuple[int, int, float]] = {
    71: (24, 31, 17),
    35: (23, 38, 19),
    31: (20, 39, 18),
    73: (30, 29, 18),
    7: (37, 32, 23),
    13: (29, 27, 16.5),
    "sdsc-blue": (9, 0, 3),
    "lanl": (50, 11, 19),
}
"""Table 7: groups of medium jobs, groups of long jobs, and the percentage of these jobs in
groups."""

PRINTED_GROUPS_ALONE: dict[int | str, tuple[int, int, float]] = {
    31: (35, 46, 30),
    35: (34, 39, 26),
    71: (39, 33, 25.5),
    73: (40, 32, 25.5),
    7: (41, 32, 26),
    "sdsc-blue": (18, 9, 8),
    "lanl": (81, 14, 36.5),
}
"""Table 9: the same without smart backfilling."""

NODES: dict[int, tuple[int, int]] = {
    71: (1709500, 69916),
    31: (2308200, 92806),
    35: (2530702, 211552),
    73: (2115736, 113981),
    7: (2340981, 112341),
}
"""Table 8: nodes of the search trees, and those that were pruned."""

MEANS_S: dict[int | str, tuple[int, int]] = {
    71: (22871, 7945),
    31: (25783, 9341),
    73: (23398, 8252),
    35: (26760, 9913),
    7: (26273, 9655),
    "sdsc-blue": (6687, 1026),
    "lanl": (12485, 4494),
}
"""Figures 23 and 24: mean response and mean wait with groups, in seconds.  The axis names no
workloads; they are deduced from the order of Table 5."""


# ------------------------------------------------------------------------------------------------
# runs

SCOJO, GROUPS = "scojo", "groups"
SCOJO_EASY = "scojo, easy"
SCOJO_ALONE, GROUPS_ALONE = "scojo, smart off", "groups, smart off"
NO_DYNAMIC, NO_LEVEL2 = "groups, dynamic off", "groups, level 2 off"
NO_LEVEL1, NO_SELECT, NO_SHIFT, NO_HALVES = (
    f"groups, {part} off" for part in ("level 1", "select", "shift", "halves")
)
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
"""The schemes: their names in the tables, and for ``qbatch replay -p``; *one class* is a plain
machine."""


def sized(medium: int, long: int) -> str:
    """Return the scheme of groups of at most this many medium and long jobs."""
    return GROUPS if (medium, long) == (BEST_MEDIUM, BEST_LONG) else f"groups M{medium} L{long}"


SCHEMES |= {
    sized(medium, long): f"scojo-groups:most_medium={medium},most_long={long}"
    for medium, long in product(SIZES, SIZES)
    if sized(medium, long) != GROUPS
}

SEED = 101
"""The default seed, of the first workload of the model without a label of the paper."""

EXACT, USERS = "exact", "users"
"""What is known about run times: the run time itself, or a user's estimate."""

WORKLOAD_JOBS = 10_000
MOST_WORKLOADS = 1000
"""The most workloads of one source."""

MODEL_PROCS = 128
MEAN_INTERARRIVAL_S = sum(INTERARRIVAL_S.values()) / len(INTERARRIVAL_S)
"""Mean seconds between arrivals in the workloads that Table 5 lacks."""

BOUND_US = 600 * MICROSECONDS
"""The least divisor of a slowdown."""

LONG_NARROW_US = 8 * 3600 * MICROSECONDS
"""The run time above which Table 6 counts narrow jobs."""

WIDTHS = ("narrow", "medium", "wide")
ALL = "all"


@dataclass(frozen=True, slots=True)
class ScojoSource:
    """A source of workloads: a short name for files, a name, the processors, the log's digest and
    its path.

    Without a path they are of the model.  ``has_estimates``: whether there are users' estimates.
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
    """One run: a workload of a source by its number, the kind of estimates, the scheme, and the
    number of jobs.

    ``seed``: that of the workloads of the model (:func:`seed_of`).
    """

    source: ScojoSource
    workload: int
    estimates: str
    scheme: str
    jobs: int = WORKLOAD_JOBS
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class Facts:
    """A workload: shares of the jobs and of the work, mean size, by class; mean seconds between
    arrivals; the offered load.

    ``long_narrow``: jobs above 8 hours on at most a tenth of the machine / long jobs (Table 6);
    ``narrow_of_long``: long jobs on at most a tenth / long jobs.
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
    """The service of the jobs of a class and a width.

    ``slowdown``: mean of ceil(max(1, response / max(run, 600 s))), as in the paper;
    ``plain_slowdown`` is not rounded up; ``worst``: the largest, not rounded.  ``response_s``,
    ``wait_s`` (to the first start): means in seconds (rule 20).
    """

    jobs: int
    slowdown: float
    plain_slowdown: float
    worst: float
    response_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class ScojoFigures:
    """The figures of a run: cells by class and width (``cell_name``), utilisation over the
    makespan, counts of the search."""

    case: ScojoCase
    facts: Facts
    cells: dict[str, ScojoCell]
    utilisation: float
    groups: list[int]
    grouped: list[int]
    nodes: int
    pruned: int


def cell_name(kind: str = ALL, width: str = ALL) -> str:
    """Return the name of the jobs of a class (by run time) and a width: ``long``, ``long wide``,
    ``all``, ``all wide``."""
    return kind if width == ALL else f"{kind} {width}"


def label_of(workload: int) -> int | None:
    """Return the label of a workload of the model in the paper; None for one of ours."""
    return LABELS[workload] if workload < len(LABELS) else None


def seed_of(workload: int, seed: int) -> int:
    """Return the seed of a workload of the model.

    By default the seed of a labelled workload is its label.  With another ``seed`` it is drawn
    anew, and only its mean gap is still that of its label.  The seeds of the others count on from
    ``seed``.
    """
    label = label_of(workload)
    if label is None:
        return seed + workload - len(LABELS)
    return label if seed == SEED else seed + MOST_WORKLOADS + workload


def workload_of(case: ScojoCase) -> Workload:
    """Return the jobs of a case."""
    return _workload_of(
        case.source, case.source.path, case.workload, case.estimates, case.jobs, case.seed
    )


@lru_cache(maxsize=2)
def _workload_of(
    source: ScojoSource, path: str | None, workload: int, estimates: str, jobs: int, seed: int
) -> Workload:
    if path is not None:
        first = workload * jobs
        return log_workload(path, source.procs, estimates).only(np.arange(first, first + jobs))
    label = label_of(workload)
    log = generate_lublin(
        jobs=jobs,
        procs=source.procs,
        seed=seed_of(workload, seed),
        interarrival=MEAN_INTERARRIVAL_S
        if label is None
        else INTERARRIVAL_S.get(label, MEAN_INTERARRIVAL_S),
        estimates="tsafrir" if estimates == USERS else "exact",
    )
    return prepare(log, one_host(source.procs))


@lru_cache(maxsize=4)
def log_workload(path: str, procs: int, estimates: str) -> Workload:
    """Return every job of a log that can run; none is ended at its user's estimate, so that both
    kinds have the same jobs."""
    options = Options(estimates="perfect") if estimates == EXACT else Options(kill=False)
    return prepare(read_log(path), one_host(procs), options)


def simulate(case: ScojoCase) -> ScojoFigures:
    """Make a run."""
    work, machine, policy = (
        workload_of(case),
        one_host(case.source.procs),
        load_policy(SCHEMES[case.scheme]),
    )
    if compiled_of(policy, machine) is not None:
        schedule, counts = run(work, machine, policy), SearchCounts()
    else:
        calendar = Calendar(work, machine, policy)
        schedule = calendar.run()
        counts = calendar.engine.view().memory.counts
    return ScojoFigures(
        case=case,
        facts=facts_of(work),
        cells=cells_of(schedule),
        utilisation=utilisation_makespan(schedule) or 0.0,
        groups=counts.groups,
        grouped=counts.grouped,
        nodes=counts.nodes,
        pruned=counts.pruned,
    )


def kinds_of(work: Workload) -> Int64Array:
    """Return the class of each job by its run time: 0 short, 1 medium, 2 long (rule 1)."""
    return np.digitize(work.run, [MEDIUM_FROM, LONG_FROM])


def widths_of(work: Workload) -> Int64Array:
    """Return the width of each job: 0 below a tenth of the machine, 2 above half of it, 1
    between."""
    return np.where(
        10 * work.procs < work.procs_total, 0, np.where(2 * work.procs > work.procs_total, 2, 1)
    )


def cells_of(schedule: Schedule) -> dict[str, ScojoCell]:
    """Return the service of each class, each width and both together, without combinations that
    have no job."""
    work = schedule.workload
    response = responses(work.submit, schedule.end)
    wait = waits(work.submit, schedule.start, schedule.end, work.run, np.zeros(len(work), np.bool_))
    plain = clipped(bounded_slowdowns(response, work.run, BOUND_US))
    kind, width = kinds_of(work), widths_of(work)
    cells = {}
    for first, second in product(range(-1, len(NAMES)), range(-1, len(WIDTHS))):
        rows = np.flatnonzero(((kind == first) | (first < 0)) & ((width == second) | (second < 0)))
        if len(rows):
            name = cell_name(
                ALL if first < 0 else NAMES[first], ALL if second < 0 else WIDTHS[second]
            )
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
    """Return the facts about a workload in Tables 5 and 6."""
    kind = kinds_of(work)
    of_kind = [kind == each for each in range(len(NAMES))]
    all_work = max(exact_area(work.procs, work.run), 1)
    span = int(work.submit[-1] - work.submit[0])
    is_long, is_narrow = kind == LONG, 10 * work.procs <= work.procs_total
    long = max(int(np.count_nonzero(is_long)), 1)
    return Facts(
        jobs=[float(np.mean(rows)) for rows in of_kind],
        work=[exact_area(work.procs[rows], work.run[rows]) / all_work for rows in of_kind],
        sizes=[float(np.mean(work.procs[rows])) if rows.any() else 0.0 for rows in of_kind],
        interarrival_s=span / MICROSECONDS / max(len(work) - 1, 1),
        load=all_work / max(work.procs_total * span, 1),
        long_narrow=int(np.count_nonzero((work.run > LONG_NARROW_US) & is_narrow)) / long,
        narrow_of_long=int(np.count_nonzero(is_long & is_narrow)) / long,
    )


def grouped_share(one: ScojoFigures) -> float:
    """Return the share of the medium and long jobs in groups."""
    there = sum(one.cells[NAMES[kind]].jobs for kind in (MEDIUM, LONG) if NAMES[kind] in one.cells)
    return sum(one.grouped) / max(there, 1)


Comparison = tuple[str, str]
"""A scheme, and the one that it is compared with."""

COMPARISONS: tuple[Comparison, ...] = (
    (GROUPS, SCOJO),
    (GROUPS, SCOJO_EASY),
    (GROUPS_ALONE, SCOJO_ALONE),
    (SCOJO, SCOJO_ALONE),
    (GROUPS, NO_DYNAMIC),
    (GROUPS, NO_LEVEL2),
    (GROUPS, NO_LEVEL1),
    (GROUPS, NO_SELECT),
    (GROUPS, NO_SHIFT),
    (GROUPS, NO_HALVES),
    (GROUPS, LEX),
    (GROUPS, DDS),
    (GROUPS, BOTTOM),
    (GROUPS_ALONE, BOTTOM_ALONE),
    (BOTTOM, SCOJO),
    (BOTTOM_ALONE, SCOJO_ALONE),
)
"""Comparisons of the paper, and each of the parts by itself."""

BEYOND: tuple[Comparison, ...] = (
    (GROUPS, SCOJO),
    (GROUPS, SCOJO_EASY),
    (BOTTOM, SCOJO),
    (GROUPS, BOTTOM),
    (SCOJO, CONSERVATIVE),
    (GROUPS, CONSERVATIVE),
    (GROUPS, EASY),
    (BOTTOM, EASY),
)
"""Comparisons under users' estimates."""

ON_PLAIN: tuple[Comparison, ...] = (
    (ONE, CONSERVATIVE),
    (ONE_GROUPS, ONE),
    (ONE_GROUPS, CONSERVATIVE),
    (ONE_GROUPS, EASY),
    (ONE_BOTTOM, CONSERVATIVE),
    (ONE_BOTTOM, EASY),
    (ONE_UNSEARCHED, CONSERVATIVE),
    (ONE_BOTTOM, ONE_UNSEARCHED),
    (ONE_GROUPS, ONE_BOTTOM),
)
"""Comparisons on a plain space-shared machine."""


# ------------------------------------------------------------------------------------------------
# numbers of a run


def of_cell(field: str, kind: str = ALL, width: str = ALL) -> Number:
    """Return a reader of a field of the jobs of a class and a width; it returns None if there is no
    such job."""
    read: Callable[[ScojoCell], float] = attrgetter(field)
    name = cell_name(kind, width)
    return lambda one: read(one.cells[name]) if name in one.cells else None


def slowdown(kind: str = ALL, width: str = ALL) -> Number:
    """Return a reader of the mean slowdown of the jobs of a class and a width."""
    return of_cell("slowdown", kind, width)


RESPONSE, WAIT = of_cell("response_s"), of_cell("wait_s")
UTILISATION: Number = attrgetter("utilisation")


def groups_of(one: ScojoFigures) -> float:
    """Return the groups of a run, of both classes."""
    return one.groups[MEDIUM] + one.groups[LONG]


def grouped_percent(one: ScojoFigures) -> float:
    """Return the percentage of the medium and long jobs in groups."""
    return 100 * grouped_share(one)


def pruned_percent(one: ScojoFigures) -> float | None:
    """Return the percentage of pruned nodes; None without a search."""
    return 100 * one.pruned / one.nodes if one.nodes else None


class Source(NamedTuple):
    """A source of workloads, by its short name, and the kind of estimates: the point of a
    comparison."""

    slug: str
    estimates: str = EXACT


Runs = Replicas[ScojoFigures]
"""The runs of one source, by scheme and workload."""


def pooled(slug: str, parts: Sequence[Runs]) -> Runs:
    """Return the workloads of several sources as those of one, each with a number of its own."""
    found = (
        (scheme, MOST_WORKLOADS * place + workload, run)
        for place, part in enumerate(parts)
        for scheme in part.schemes
        for workload, run in part.runs(scheme).items()
    )
    return Replicas(Source(slug, parts[0].point.estimates), found)


def only(runs: Runs, workload: int) -> Runs:
    """Return the runs of one workload."""
    found = (
        (scheme, workload, runs.runs(scheme)[workload])
        for scheme in runs.schemes
        if workload in runs.runs(scheme)
    )
    return Replicas(runs.point, found)


# ------------------------------------------------------------------------------------------------
# the tree of a group

_new_profile = entry_to(new_profile)

COUNTED = (4, 8)
"""Numbers of jobs for which the search itself counts the nodes of the whole tree."""


def paths_of(jobs: int) -> int:
    """Return the number of orders of this many jobs."""
    return math.factorial(jobs)


def nodes_of(jobs: int) -> int:
    """Return the number of nodes below the root in the tree of their orders: every beginning of an
    order is one."""
    return sum(
        math.factorial(jobs) // math.factorial(jobs - length) for length in range(1, jobs + 1)
    )


@cache
def counted_nodes(jobs: int) -> int:
    """Return the number of placements in a search of every order."""
    ones = np.ones(jobs, np.int64)
    asked = searching.jobs_to_search(ones, 1_000_000 * ones, 0 * ones, 1)
    rules = searching.SearchRules(walk="lex", budget=paths_of(jobs) + 1, cuts=False)
    return searching.search(0, _new_profile(jobs, 0, 4 * jobs), asked, rules).nodes


# ------------------------------------------------------------------------------------------------
# the study

FIGURES, SIZES_PART, ESTIMATES, PLAIN = "figures", "sizes", "estimates", "plain"

SCHEMES_OF = {
    FIGURES: (
        SCOJO,
        SCOJO_EASY,
        SCOJO_ALONE,
        GROUPS,
        GROUPS_ALONE,
        NO_DYNAMIC,
        NO_LEVEL2,
        NO_LEVEL1,
        NO_SELECT,
        NO_SHIFT,
        NO_HALVES,
        LEX,
        DDS,
        BOTTOM,
        BOTTOM_ALONE,
    ),
    SIZES_PART: (SCOJO, *(sized(medium, long) for medium, long in product(SIZES, SIZES))),
    ESTIMATES: (SCOJO, SCOJO_EASY, GROUPS, BOTTOM, EASY, CONSERVATIVE),
    PLAIN: (EASY, CONSERVATIVE, ONE, ONE_GROUPS, ONE_BOTTOM, ONE_UNSEARCHED),
}
"""The schemes of each part of the study."""


@dataclass(frozen=True, slots=True)
class ScojoStudy:
    """The runs: workloads of the model and of logs, the jobs of each, the seed of those of the
    model.

    ``logs``: each with the number of its workloads.  ``figures``: short names of logs with the runs
    of the paper, too, for their first workload.
    """

    workloads: int
    logs: tuple[tuple[ScojoSource, int], ...] = ()
    figures: tuple[str, ...] = ()
    jobs: int = WORKLOAD_JOBS
    seed: int = SEED

    def facts(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return the logs and the options, for the record of the command."""
        logs = [
            {"name": one.name, "sha256": one.sha256, "procs": one.procs, "subsets": count}
            for one, count in self.logs
        ]
        return {
            "logs": logs,
            "options": {
                "workloads": self.workloads,
                "jobs": self.jobs,
                "seed": self.seed,
                "parts": parts,
            },
        }

    def cases(self, parts: Collection[str]) -> list[ScojoCase]:
        """Return all runs of some parts, workload by workload, so that an early end leaves whole
        ones."""
        return list(dict.fromkeys(self._cases(parts)))

    def _cases(self, parts: Collection[str]) -> Iterator[ScojoCase]:
        for workload, part in product(
            range(self.workloads), (one for one in SCHEMES_OF if one in parts)
        ):
            if part != SIZES_PART or workload < len(LABELS):
                for known in (EXACT, USERS) if part in (ESTIMATES, PLAIN) else (EXACT,):
                    yield from self._of(MODEL, workload, known, part)
        beyond = [one for one in (ESTIMATES, PLAIN) if one in parts]
        for source, workloads in self.logs:
            if FIGURES in parts and source.slug in self.figures:
                yield from self._of(source, 0, EXACT, FIGURES)
            for workload, part, known in product(
                range(workloads if source.has_estimates else 0), beyond, (EXACT, USERS)
            ):
                yield from self._of(source, workload, known, part)

    def _of(self, source: ScojoSource, workload: int, known: str, part: str) -> Iterator[ScojoCase]:
        for scheme in SCHEMES_OF[part]:
            yield ScojoCase(source, workload, known, scheme, self.jobs, self.seed)


WORKLOADS, LOG_WORKLOADS = 20, 3
"""Workloads of the model, and at most of each log."""

BLUE, LANL = "sdsc-blue", "lanl"
_KNOWN = (
    (BLUE, "SDSC-BLUE", "Blue Horizon"),
    (LANL, "LANL-CM5", "Los Alamos"),
    ("kth", "KTH", "Swedish Royal Institute"),
    ("ctc", "CTC", "Cornell"),
    ("sdsc-sp2", "SDSC-SP2", "SDSC"),
)
"""Short name and name of known logs, and words of their headers."""


def study_of(
    logs: Sequence[str] = (),
    *,
    workloads: int = WORKLOADS,
    jobs: int = WORKLOAD_JOBS,
    seed: int = SEED,
) -> ScojoStudy:
    """Return the study of the model and of these logs.

    Raises:
        InputError: a log has fewer jobs than one workload.
        UsageError: one log is named twice.
    """
    sources = tuple(source_of(path, jobs, min(workloads, LOG_WORKLOADS)) for path in logs)
    slugs = [MODEL.slug, *(source.slug for source, _ in sources)]
    for slug in slugs:
        if slugs.count(slug) > 1:
            raise UsageError(f"two of the sources are {slug}; name each log once")
    shown = tuple(
        source.slug
        for source, _ in sources
        if source.slug in TRACE_FACTS or not source.has_estimates
    )
    return ScojoStudy(workloads, sources, shown, jobs, seed)


def source_of(
    path: str, jobs: int = WORKLOAD_JOBS, workloads: int = LOG_WORKLOADS
) -> tuple[ScojoSource, int]:
    """Return a log as a source of workloads, and their number, at most ``workloads``.

    LANL's log has no field that can serve as an estimate (its field 9 looks like processor time).

    Raises:
        InputError: the log has fewer jobs than one workload.
    """
    log = read_log(path)
    known = ((slug, name) for slug, name, mark in _KNOWN if mark in machine_words(log))
    slug, name = next(known, None) or name_by_file(path)
    procs = choose_procs(log, None)
    there = len(log_workload(path, procs, EXACT))
    if there < jobs:
        raise InputError(
            f"{path}: {there:,} of its jobs can run, not the {jobs:,} of one workload; use a "
            "longer log, or --jobs N"
        )
    has_estimates = slug != LANL and bool((log["time_requested"] > 0).mean() > 0.5)
    most = workloads if has_estimates else 1
    return ScojoSource(slug, name, procs, log.sha256, path, has_estimates), min(there // jobs, most)
