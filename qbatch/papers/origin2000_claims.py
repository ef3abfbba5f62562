"""Chiang and Vernon 2001: its figures as tables and pictures, and a verdict on its conclusions.

Every claim is a set of comparisons over replicas (``evidence``).  Bounds that the paper leaves open
("similar", "comparable") are ours and stand in the text of the claim.  A claim about every month
also has the same comparisons over all months together, next to its verdict.  Figure 6 shows
measured months after a change of the machine's scheduler, without any simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

import numpy as np

from qbatch.metrics import interval
from qbatch.papers import evidence, record
from qbatch.papers import origin2000 as paper
from qbatch.papers.evidence import (
    NO,
    OPEN,
    YES,
    EvidenceItem,
    above,
    answers_of,
    below,
    claim_of,
    inside,
)
from qbatch.papers.harness import ALONE, Experiment, Runner, sources_hash
from qbatch.papers.origin2000 import DrawnMonth, Origin2000Figures, Origin2000Study
from qbatch.papers.pictures import bars, finished, new_picture
from qbatch.papers.record import (
    Claim,
    PaperOutcome,
    Table,
    cell,
    cells,
    half,
    means,
    table_of_lines,
)
from qbatch.papers.replicas import (
    Number,
    Values,
    by_point,
    combined,
    difference,
    mean_over,
    overall_ratio,
)
from qbatch.reports.plot_style import PALETTE
from qbatch.workloads.origin2000 import CLASSES, MONTHS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTES = (
    "the logs of the paper are not public: its months are generated from the printed numbers, and "
    "only conclusions can be "
    "compared, not numbers of figures",
    "no job comes after a month: the last jobs of it end on a machine that empties",
    "Figure 6 shows measured months after a change of the scheduler; there is nothing to simulate",
)


RUNS = Experiment(
    "simulations",
    Origin2000Figures,
    paper.simulate,
    lambda case: sources_hash(
        paper.simulate.__module__, paper.POLICIES[case.policy], text=repr(paper.machine_of_paper())
    ),
)


def run_paper(
    study: Origin2000Study, _parts: Sequence[str] = (), runner: Runner = ALONE
) -> PaperOutcome:
    """Run a study and return its tables and claims."""
    return outcome_of(study, runner.runs(RUNS, study.cases()))


def expected(claim: str, study: Origin2000Study) -> str:
    """Return the known verdict of a claim; for one that fails, only with six whole months and ten
    replicas."""
    known = EXPECTED.get(claim, record.HOLDS)
    is_whole = (
        len(study.months) == len(MONTHS)
        and len(study.seeds) >= paper.REPLICAS
        and study.days is None
    )
    return known if is_whole or known != record.FAILS else record.UNDECIDED


def outcome_of(study: Origin2000Study, found: Sequence[Origin2000Figures]) -> PaperOutcome:
    """Return the tables and claims of finished runs."""
    notes = list(NOTES)
    if len(study.seeds) < paper.REPLICAS:
        notes.append(
            f"only {len(study.seeds)} of the usual {paper.REPLICAS} replicas: intervals are wide, "
            "or there are none"
        )
    if study.days is not None:
        notes.append(
            f"only the first {study.days} days of each month were submitted: this is a quick look"
        )
    drawn = [paper.drawn_month(month, seed) for seed in study.seeds for month in study.months]
    months = Months(study.months, found)
    claims = [*workload_claims(drawn, found), *(claim for row in ROWS for claim in row(months))]
    return PaperOutcome(
        [*workload_tables(drawn), *all_tables(months)],
        evidence.explained(claims, WHY, lambda name: expected(name, study)),
        notes,
        all_pictures(months),
        list(METHOD),
    )


# ------------------------------------------------------------------------------------------------
# numbers of the runs

HOUR_S = 3600.0
RANGES = {
    "<1m": 60.0,
    "1-10m": 600.0,
    "10m-1h": 3600.0,
    "1-10h": 36_000.0,
    "10-50h": 180_000.0,
    "50-100h": 360_000.0,
    ">100h": math.inf,
}
"""The ranges of run time of the figures, with their ends in seconds; a time at an end belongs to
the next range."""


class Months:
    """The replicas of some months; a number of all of them is the mean over the months, replica by
    replica."""

    def __init__(self, names: Sequence[str], runs: Iterable[Origin2000Figures]) -> None:
        """Hold the runs of these months, by policy and seed."""
        self.names = tuple(names)
        self.at = by_point((one.case.month, one.case.policy, one.case.seed, one) for one in runs)

    def of(self, policy: str, number: Number) -> dict[int, float]:
        """Return a number under a policy."""
        return mean_over(self.at(month).of(policy, number) for month in self.names)

    def more(
        self, first: str, second: str, number: Number, names: Sequence[str] | None = None
    ) -> dict[int, float]:
        """Return first - second, of these months only."""
        names = self.names if names is None else names
        return mean_over(self.at(month).more(first, second, number) for month in names)

    def ratio(self, first: str, second: str, number: Number) -> dict[int, float]:
        """Return first / second."""
        each = [self.at(month) for month in self.names]
        return overall_ratio((one.of(first, number), one.of(second, number)) for one in each)

    def shown(self, wanted: str) -> str:
        """Return the month that a figure shows, or the first month of the study if it lacks that
        one."""
        return wanted if wanted in self.names else self.names[0]


def whole(key: str) -> Number:
    """Return a reader of a metric over all jobs of the month."""
    return lambda one: one.whole.get(key)


def longer(key: str) -> Number:
    """Return a reader of a metric over the jobs that ran more than a minute."""
    return lambda one: one.longer.get(key)


def in_range(label: str, key: str) -> Number:
    """Return a reader of a metric over the jobs of one range of run time."""
    return lambda one: one.ranges.get(label, {}).get(key)


def in_class(name: str, key: str) -> Number:
    """Return a reader of a metric over the jobs of one class."""
    return lambda one: one.classes.get(name, {}).get(key)


def top_of_range(one: Origin2000Figures, label: str) -> list[float]:
    """Return the waits in seconds of the jobs in a range of run time, among the 5 % that waited
    longest."""
    labels = list(RANGES)
    place = labels.index(label)
    least = RANGES[labels[place - 1]] if place else 0.0
    return [wait_s for run_s, wait_s in one.top if least <= run_s < RANGES[label]]


def per(metric: str) -> float:
    """Return the divisor with which a metric is shown: waits in seconds become hours."""
    return HOUR_S if metric.endswith("_s") else 1.0


def _shown(values: Values, metric: str) -> list[float]:
    return [value / per(metric) for value in values.values()]


# ------------------------------------------------------------------------------------------------
# tables

SUMMARIES = {
    "figure5-months": (
        "Figure 5 (c) to (f): LSF* and plain backfilling, by month",
        ("LSF*", "FCFS-bf", "Priority-bf"),
    ),
    "figure7": (
        "Figure 7: alternative priorities",
        ("FCFS-bf", "Priority-bf", "LXF&W-bf", "SJF-bf"),
    ),
    "figure8": ("Figure 8: a minute of service at once", ("LXF&W-bf", "/immediate", "/soon")),
    "figure10": ("Figure 10: equal shares", ("/immediate", "EQ-5m", "EQ-5m/>50hr", "EQ-0m")),
    "reservations": (
        "More reservations than one, D",
        ("Priority-bf", *(f"Priority-bf, D={depth}" for depth in ("2", "4", "8", "16", "all"))),
    ),
}
"""Tables with a line for each month and policy: name, title, policies."""

MEASURES = (
    ("mean", "mean wait h", "wait_mean_s", 2),
    ("p95", "95 % h", "wait_p95_s", 2),
    ("max", "max h", "wait_max_s", 1),
    ("slowdown", "slowdown", "slowdown_mean", 1),
    ("bounded", "slowdown 60 s", paper.BOUNDED, 2),
)
"""The measures of each month: key, heading, metric, decimals.  The second slowdown counts run times
as 60 s at least."""

_SHARES: tuple[tuple[str, str, Number, str], ...] = (
    ("idle", "LSF*", lambda one: one.kept_idle, "LSF* idle"),
    *(
        (f"placed_{policy}", policy, lambda one: one.placed, f"{policy} placed")
        for policy in ("EQ-5m", "EQ-0m")
    ),
    *(
        (f"busy_{policy}", policy, whole("utilisation_submit"), f"{policy} busy")
        for policy in ("LSF*", "Priority-bf")
    ),
)
"""Numbers of each month, shown in percent: key, policy, number, heading."""


def all_tables(months: Months) -> list[Table]:
    """Return every table in the order of the figures."""
    plain, equal = SUMMARIES["figure5-months"][1], SUMMARIES["figure10"][1][:3]
    shown = [months.shown("1999-11")]
    return [
        figure_3(months),
        figure_4(months),
        by_range(months, months.names, "figure5", "Figure 5 (a), (b): by range of run time", plain),
        *(summary(months, name) for name in ("figure5-months", "figure7", "figure8")),
        by_range(months, shown, "figure9", "Figure 9: equal shares, by range of run time", equal),
        *(summary(months, name) for name in ("figure10", "reservations")),
        shares(months),
    ]


def figure_3(months: Months) -> Table:
    """Return the mean wait of each class under LSF*, a column for each month."""
    lines = []
    for name in CLASSES:
        line = cell("class", "class", name)
        for month in months.names:
            waits = months.at(month).of("LSF*", in_class(name, "wait_mean_s"))
            line += means(month, month, 1, waits, per=HOUR_S)
        lines.append(line)
    return table_of_lines("figure3", "Figure 3: mean wait in hours of each class under LSF*", lines)


def figure_4(months: Months) -> Table:
    """Return the spread over the ranges of run time of the 5 % of jobs that wait longest under
    LSF*."""
    month, lines = months.shown("2000-01"), []
    for label in RANGES:
        waits = [top_of_range(one, label) for one in months.at(month).runs("LSF*").values()]
        line = [
            *cell("range", "run time", label),
            *means("jobs", "jobs", 1, [float(len(each)) for each in waits]),
        ]
        longest = [max(each) for each in waits if each]
        lines.append(line + means("longest", "longest wait h", 1, longest, per=HOUR_S))
    return table_of_lines(
        "figure4", f"Figure 4: the 5 % of jobs that wait longest under LSF*, {month}", lines
    )


def by_range(
    months: Months, names: Sequence[str], name: str, title: str, policies: Sequence[str]
) -> Table:
    """Return mean wait, 95th percentile and slowdown by range of run time, a line for each month
    and range."""
    measures = [measure for measure in MEASURES if measure[0] != "max"]
    lines = []
    for month, label in product(names, RANGES):
        line = [*cells(month=month), *cell("range", "run time", label)]
        for (key, heading, metric, decimals), policy in product(measures, policies):
            values = months.at(month).of(policy, in_range(label, metric))
            # Without its interval: there are many columns.
            line += means(
                f"{policy}_{key}", f"{policy} {heading}", decimals, values, per=per(metric)
            )[:1]
        lines.append(line)
    return table_of_lines(name, title, lines)


def summary(months: Months, name: str) -> Table:
    """Return the measures of some policies, a line for each month and policy."""
    title, policies = SUMMARIES[name]
    lines = []
    for month, policy in product(months.names, policies):
        at = months.at(month)
        line = cells(month=month, policy=policy, replicas=len(at.runs(policy)))
        for key, heading, metric, decimals in MEASURES:
            line += means(key, heading, decimals, at.of(policy, whole(metric)), per=per(metric))
        lines.append(line)
    return table_of_lines(name, title, lines)


def shares(months: Months) -> Table:
    """Return in percent: idle time under specials, jobs with a place at once, and the use of the
    machine."""
    lines = []
    for month in months.names:
        line = cells(month=month)
        for key, policy, number, heading in _SHARES:
            line += means(key, heading, 1, months.at(month).of(policy, number), 100)
        lines.append(line)
    notes = ["busy: up to the last submission, the warm-up included"]
    return table_of_lines(
        "shares", "Idle under specials, placed at once, busy, in percent", lines, notes
    )


# ------------------------------------------------------------------------------------------------
# pictures

_NOTE = (
    "Generated months, not the logs of the paper. Means over the replicas; bars: 95 % intervals."
)
_HEADINGS = {
    "wait_mean_s": "Mean wait (h)",
    "wait_p95_s": "95th percentile of wait (h)",
    "wait_max_s": "Longest wait (h)",
    "slowdown_mean": "Mean slowdown",
}


def all_pictures(months: Months) -> dict[str, Callable[[], Figure]]:
    """Return functions that draw each picture, by name of file."""
    january, november = months.shown("2000-01"), months.shown("1999-11")
    return {
        "figure3": partial(draw_classes, months),
        "figure4": partial(draw_longest, months, january),
        "figure5-ranges": partial(
            draw_ranges, months, january, SUMMARIES["figure5-months"][1], "Figure 5 (a), (b)"
        ),
        "figure9": partial(
            draw_ranges, months, november, SUMMARIES["figure10"][1][:3], "Figure 9: equal shares"
        ),
        **{name: partial(draw_months, months, name) for name in SUMMARIES},
    }


def draw_classes(months: Months) -> Figure:
    """Draw the mean wait of each class under LSF*, a bar for each month."""
    figure = new_picture(3.2, "Figure 3: mean wait of each class under LSF*", "origin2000")
    axes = figure.subplots()
    for place, month in enumerate(months.names):
        waits = [months.at(month).of("LSF*", in_class(name, "wait_mean_s")) for name in CLASSES]
        shown = [_shown(each, "wait_mean_s") for each in waits]
        bars(axes, range(len(CLASSES)), shown, place, len(months.names), month)
    axes.set_ylim(bottom=0)  # after the last bar: a bound that is set ends the scaling of the other
    axes.set_xticks(range(len(CLASSES)), CLASSES, rotation=45)
    axes.set_ylabel("Mean wait (h)")
    return finished(figure, _NOTE)


def draw_longest(months: Months, month: str) -> Figure:
    """Draw wait over run time of the 5 % of jobs that wait longest under LSF*, of the first
    replica."""
    figure = new_picture(
        3.0, f"Figure 4: the 5 % that wait longest under LSF*, {month}", "origin2000"
    )
    axes = figure.subplots()
    points = [
        point for one in list(months.at(month).runs("LSF*").values())[:1] for point in one.top
    ]
    hours = (
        [max(run_s, 1.0) / HOUR_S for run_s, _ in points],
        [wait_s / HOUR_S for _, wait_s in points],
    )
    axes.plot(*hours, ".", color=PALETTE[0], ms=3)
    axes.set_xscale("log")
    axes.set_xlabel("Run time (h)")
    axes.set_ylabel("Wait (h)")
    return finished(figure, "A generated month, its first replica; not the log of the paper.")


def draw_ranges(months: Months, month: str, policies: Sequence[str], title: str) -> Figure:
    """Draw mean wait and 95th percentile by range of run time."""
    figure = new_picture(3.6, f"{title}, {month}", "origin2000")
    for axes, (_, _, metric, _) in zip(figure.subplots(1, 2), MEASURES[:2], strict=True):
        for place, policy in enumerate(policies):
            each = [months.at(month).of(policy, in_range(label, metric)) for label in RANGES]
            found = [interval(_shown(values, metric)) for values in each]
            means = [np.nan if one.mean is None else one.mean for one in found]
            at = np.arange(len(RANGES)) + 0.08 * (place - (len(policies) - 1) / 2)
            look = {"ms": 3, "capsize": 2, "color": PALETTE[place], "label": policy}
            axes.errorbar(at, means, [half(one) or 0.0 for one in found], fmt="o-", **look)
        axes.set_xticks(range(len(RANGES)), RANGES, rotation=45)
        axes.set_title(_HEADINGS[metric])
        axes.set_ylim(bottom=0)
    return finished(figure, _NOTE)


def draw_months(months: Months, name: str) -> Figure:
    """Draw the first four measures of some policies by month, a panel for each measure."""
    title, policies = SUMMARIES[name]
    figure = new_picture(5.2, title, "origin2000")
    for axes, (_, _, metric, _) in zip(figure.subplots(2, 2).flat, MEASURES[:4], strict=True):
        for place, policy in enumerate(policies):
            values = [
                _shown(months.at(month).of(policy, whole(metric)), metric) for month in months.names
            ]
            bars(axes, range(len(months.names)), values, place, len(policies), policy)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(months.names)), [month[2:] for month in months.names])
        axes.set_title(_HEADINGS[metric])
    return finished(figure, _NOTE)


# ------------------------------------------------------------------------------------------------
# claims of the figures

HIGH_LOAD = ("1999-12", "2000-02")
"""The months that Table 4 marks as of high load."""

VERY_LONG = ("2000-02", "2000-03")
"""The months in which the paper saw extremely long waits under equal shares."""

MEAN, P95, LONGEST, SLOWDOWN = "wait_mean_s", "wait_p95_s", "wait_max_s", "slowdown_mean"
WAITS = {"mean wait": MEAN, "95th percentile": P95, "max wait": LONGEST}
SERVICE = {"mean wait": MEAN, "95th percentile": P95, "slowdown": SLOWDOWN}
"""The measures by which policies that favour short jobs are judged; the raw slowdown, as in the
paper."""

DEPTHS = ("2", "4", "8", "16", "all")
"""Numbers of reservations, in addition to one."""

_HOURS = 1 / HOUR_S
_ALL = "all months"
_SIMILAR, _COMPARABLE = 1.25, 2.0
_VERY_LONG_JOBS = ">100h"
_SHORT_RANGES = ("<1m", "1-10m", "10m-1h", "1-10h", "10-50h")


def row_1(months: Months) -> list[Claim]:
    """LSF* waits longest; the two plain backfill policies are alike."""
    pairs = [
        ("LSF*", other, name, key)
        for other in ("FCFS-bf", "Priority-bf")
        for name, key in WAITS.items()
    ]
    text = "LSF* waits longer than FCFS-bf and Priority-bf: mean, max and 95 %, every month"
    alike = _ratios_within(months, "Priority-bf", "FCFS-bf", WAITS, _SIMILAR)
    return [
        _monthly_claim("1.lsf-is-worse", text, months, pairs),
        claim_of(
            "1.backfills-are-alike",
            "FCFS-bf and Priority-bf lie within 25 % of each other, over the months",
            alike,
        ),
    ]


def row_2(months: Months) -> list[Claim]:
    """Little of the machine is idle under specials."""
    text = "LSF*: less than 4 % of all processor time is idle under a special, every month"
    return [
        _bounded_claim(
            "2.idle-under-specials",
            text,
            months,
            "LSF*",
            lambda one: one.kept_idle,
            below,
            0.04,
            " %",
            100.0,
        )
    ]


def row_3(months: Months) -> list[Claim]:
    """LSF* varies more from month to month."""
    lsf, priority = (variations(months, policy) for policy in ("LSF*", "Priority-bf"))
    gap = difference(lsf, priority) if len(months.names) > 1 else {}
    found = [above("LSF* less Priority-bf, mean over the classes", gap, 0.0)] if gap else []
    note = " and ".join(
        f"{name} {evidence.written(interval(list(values.values())))}"
        for name, values in (("LSF*", lsf), ("Priority-bf", priority))
    )
    text = (
        "Mean waits of classes vary more from month to month (standard deviation / mean) under "
        "LSF* than Priority-bf"
    )
    return [claim_of("3.lsf-varies-more", text, found, note)]


def variations(months: Months, policy: str) -> dict[int, float]:
    """Return by replica the variation of a class's mean wait over the months, averaged over the
    classes."""
    runs = [months.at(month).runs(policy) for month in months.names]
    found = {}
    for seed in sorted({seed for each in runs for seed in each}):
        mine = [each[seed] for each in runs if seed in each]
        each_class = []
        for name in sorted(set.intersection(*(set(one.classes) for one in mine))):
            waits = [float(one.classes[name]["wait_mean_s"] or 0) for one in mine]
            if any(waits):
                each_class.append(pstdev(waits) / fmean(waits))
        if each_class:
            found[seed] = fmean(each_class)
    return found


def row_4(months: Months) -> list[Claim]:
    """Short jobs first: better than Priority-bf in all but the longest wait."""
    pairs = [
        ("Priority-bf", policy, name, key)
        for policy in ("LXF&W-bf", "SJF-bf")
        for name, key in SERVICE.items()
    ]
    longest = [
        above(
            f"{policy} - Priority-bf, max wait",
            months.more(policy, "Priority-bf", whole(LONGEST)),
            0.0,
            " h",
            _HOURS,
        )
        for policy in ("LXF&W-bf", "SJF-bf")
    ]
    each = [
        months.at(month).more("SJF-bf", "LXF&W-bf", whole(key))
        for month in months.names
        for key in SERVICE.values()
    ]
    gaps = [one for one in each if one]
    won = (
        combined(
            lambda *gaps: fmean(1.0 if one < 0 else 0.0 if one else 0.5 for one in gaps), *gaps
        )
        if gaps
        else {}
    )
    starved = [
        _difference(months, month, "SJF-bf", "LXF&W-bf", "max wait", LONGEST)
        for month in months.names
    ]
    # One comparison is enough for the claim that follows: the best of them decides.
    decisive = next(
        (some for said in (YES, OPEN) if (some := [one for one in starved if one.says == said])),
        starved,
    )
    text = "SJF-bf has a longer max wait than LXF&W-bf in at least one month (the paper: February)"
    return [
        _monthly_claim(
            "4.short-first-is-better",
            "LXF&W-bf and SJF-bf beat Priority-bf in mean wait, 95 % and slowdown, every month",
            months,
            pairs,
        ),
        claim_of(
            "4.not-in-max-wait",
            "They do not beat it in max wait: over the months theirs is longer",
            longest,
        ),
        claim_of(
            "4.sjf-mostly-better",
            "SJF-bf is better than LXF&W-bf in most months and measures",
            [above("share of months and measures in which SJF-bf is better", won, 0.5)],
        ),
        replace(claim_of("4.sjf-starves", text, decisive), answers=answers_of(starved)),
    ]


def row_5(months: Months) -> list[Claim]:
    """More reservations do not help."""

    def deeper(depth: str, name: str, key: str) -> EvidenceItem:
        ratios = months.ratio(f"Priority-bf, D={depth}", "Priority-bf", whole(key))
        return above(f"D={depth} / D=1, {name}", ratios, 0.95, is_ratio=True)

    found = [deeper(depth, *one) for depth in DEPTHS for one in SERVICE.items()]
    longest = [deeper(depth, "max wait", LONGEST) for depth in DEPTHS]
    text = (
        "More than one reservation does not help: Priority-bf with 2, 4, 8, 16 or all is no more "
        "than 5 % better, over the "
        "months"
    )
    note = f"not judged: {'; '.join(one.text() for one in longest)}"
    return [claim_of("5.one-reservation-is-enough", text, found, note)]


def row_6(months: Months) -> list[Claim]:
    """Immediate service: short jobs gain much, the others lose little."""
    slowdown = whole(SLOWDOWN)
    falls = {
        month: months.at(month).ratio("LXF&W-bf", "/immediate", slowdown) for month in months.names
    }
    falls[_ALL] = months.ratio("LXF&W-bf", "/immediate", slowdown)
    fall = [above(*one, 2.0, is_ratio=True) for one in falls.items()]
    of_others = {
        f"/immediate / none, {name}": months.ratio("/immediate", "LXF&W-bf", longer(key))
        for name, key in WAITS.items()
    }
    unharmed = [below(*one, 1.1, is_ratio=True) for one in of_others.items()]
    unchanged = [inside(*one, 0.9, 1.1, is_ratio=True) for one in of_others.items()]
    return [
        claim_of(
            "6.slowdown-falls",
            "Immediate service makes the mean slowdown less than half, every month",
            fall[:-1],
            together=fall[-1:],
        ),
        claim_of(
            "6.others-unharmed",
            "Jobs above 1 min wait no more than 10 % longer: mean, 95 % and max, over the months",
            unharmed,
        ),
        claim_of(
            "6.others-unchanged",
            "Jobs above 1 min wait the same within 10 %: mean, 95 % and max, over the months",
            unchanged,
        ),
        _monthly_claim(
            "6.better-than-soon",
            "/immediate has a lower mean slowdown than /soon, every month",
            months,
            [("/soon", "/immediate", "slowdown", SLOWDOWN)],
        ),
    ]


def row_7(months: Months) -> list[Claim]:
    """Equal shares against immediate service."""
    names = {"mean wait": MEAN, "max wait": LONGEST, "slowdown": SLOWDOWN}
    comparable = _ratios_within(months, "EQ-5m", "/immediate", names, _COMPARABLE)
    longest = in_range(_VERY_LONG_JOBS, LONGEST)
    high = [
        _difference(
            months, month, "EQ-5m", "/immediate", f"max wait {_VERY_LONG_JOBS}", "", longest
        )
        for month in months.names
        if month in VERY_LONG
    ]
    gaps = months.more("EQ-5m", "EQ-5m/>50hr", longest)
    cut = [above(f"EQ-5m - EQ-5m/>50hr, max wait {_VERY_LONG_JOBS}", gaps, 0.0, " h", _HOURS)]
    alike = []
    for name, key in (*WAITS.items(), ("slowdown", SLOWDOWN)):
        compared = ("EQ-0m", "EQ-5m", whole(key))
        ratio = inside(f"EQ-0m / EQ-5m, {name}", months.ratio(*compared), 0.9, 1.1, is_ratio=True)
        gap = inside(f"EQ-0m - EQ-5m, {name}", months.more(*compared), -300.0, 300.0, " s")
        alike.append(gap if key != SLOWDOWN and ratio.says != YES else ratio)
    at_once = "EQ-5m gives more than 99 % of the jobs a place when they arrive, every month"
    return [
        _monthly_claim(
            "7.p95-is-lower",
            "EQ-5m has a lower 95th percentile of wait than /immediate, every month",
            months,
            [("/immediate", "EQ-5m", "95th percentile", P95)],
        ),
        claim_of(
            "7.rest-is-comparable",
            "Mean wait, max wait and slowdown differ by less than twice, over the months",
            comparable,
        ),
        claim_of(
            "7.longest-jobs-wait",
            "In February and March jobs above 100 h wait at most far longer under EQ-5m",
            high,
        ),
        claim_of(
            "7.over-50h-cuts-it",
            "EQ-5m/>50hr shortens the longest wait of jobs above 100 h, over the months",
            cut,
        ),
        claim_of(
            "7.interval-hardly-matters",
            "EQ-0m is as EQ-5m: waits within 10 % or 5 min, slowdown within 10 %",
            alike,
        ),
        _bounded_claim(
            "7.placed-at-once",
            at_once,
            months,
            "EQ-5m",
            lambda one: one.placed,
            above,
            0.99,
            " %",
            100.0,
        ),
    ]


def row_8(months: Months) -> list[Claim]:
    """High load makes policies differ more."""
    high = [month for month in months.names if month in HIGH_LOAD]
    low = [month for month in months.names if month not in HIGH_LOAD]
    found = []
    for first, second in (
        ("LSF*", "Priority-bf"),
        ("Priority-bf", "/immediate"),
        ("/immediate", "EQ-5m"),
    ):
        each = (months.more(first, second, whole(MEAN), some) for some in (high, low))
        gaps = combined(lambda at_high, at_low: abs(at_high) - abs(at_low), *each)
        if gaps:
            found.append(above(f"{first} against {second}, mean wait", gaps, 0.0, " h", _HOURS))
    text = (
        "Policies differ more in December and February than in the other months (mean wait, "
        "high less low)"
    )
    return [claim_of("8.high-load-differs-more", text, found)]


def row_9(months: Months) -> list[Claim]:
    """The length of waits under LSF*, and the run times of the jobs with the longest ones."""

    def hours_share(one: Origin2000Figures) -> float:
        waits = [float(each["wait_mean_s"] or 0) / HOUR_S for each in one.classes.values()]
        return sum(1 <= wait < 100 for wait in waits) / len(waits)

    def top_share(label: str, one: Origin2000Figures) -> float:
        return len(top_of_range(one, label)) / len(one.top) if one.top else 0.0

    scattered = [
        above(
            f"{label}, share of the 5 %",
            months.of("LSF*", partial(top_share, label)),
            0.0,
            " %",
            100.0,
        )
        for label in _SHORT_RANGES
    ]
    text = "LSF*: most classes wait hours or tens of hours (1 to 100) on average, every month"
    most = "LSF*: the longest wait is above 100 h, every month"
    return [
        _bounded_claim(
            "9.hours-or-tens", text, months, "LSF*", hours_share, above, 0.5, " %", 100.0
        ),
        _bounded_claim(
            "9.max-hundreds",
            most,
            months,
            "LSF*",
            whole(LONGEST),
            above,
            100 * HOUR_S,
            " h",
            _HOURS,
        ),
        claim_of(
            "9.at-all-run-times",
            "LSF*: the 5 % that wait longest are of every range of run time, below 1 min too",
            scattered,
        ),
    ]


ROWS: tuple[Callable[[Months], list[Claim]], ...] = (
    row_1,
    row_2,
    row_3,
    row_4,
    row_5,
    row_6,
    row_7,
    row_8,
    row_9,
)
"""The claims of section 4: the rows (1) to (9) of R004 in docs/spec/papers.md."""


def _ratios_within(
    months: Months, one: str, other: str, measures: Mapping[str, str], bound: float
) -> list[EvidenceItem]:
    """Compare two policies over all months: the ratio of each measure lies within the bound in both
    directions."""
    ratios = {
        f"{one} / {other}, {name}": months.ratio(one, other, whole(key))
        for name, key in measures.items()
    }
    return [
        inside(label, values, 1 / bound, bound, is_ratio=True) for label, values in ratios.items()
    ]


def _monthly_claim(
    name: str, text: str, months: Months, pairs: Sequence[tuple[str, str, str, str]]
) -> Claim:
    """Return the claim that in every month the first policy of each pair has more of a measure (its
    name, its key)."""
    found = [_difference(months, month, *each) for month in months.names for each in pairs]
    together = [
        above(
            f"{first} - {second}, {measure}",
            months.more(first, second, whole(key)),
            0.0,
            *_unit(key),
        )
        for first, second, measure, key in pairs
    ]
    return claim_of(name, text, found, together=together)


def _bounded_claim(
    name: str,
    text: str,
    months: Months,
    policy: str,
    number: Number,
    make: Callable[..., EvidenceItem],
    bound: float,
    *unit: str | float,
) -> Claim:
    """Return the claim that in every month a number lies on one side of a bound; ``unit``: its unit
    and factor when shown."""
    found = [
        make(month, months.at(month).of(policy, number), bound, *unit) for month in months.names
    ]
    return claim_of(
        name, text, found, together=[make(_ALL, months.of(policy, number), bound, *unit)]
    )


def _difference(
    months: Months,
    month: str,
    first: str,
    second: str,
    name: str,
    key: str,
    number: Number | None = None,
) -> EvidenceItem:
    """Return whether the first is above the second in a month; waits in hours."""
    values = months.at(month).more(first, second, number or whole(key))
    return above(f"{month} {first} - {second}, {name}", values, 0.0, *_unit(key))


def _unit(key: str) -> tuple[str, float]:
    return ("", 1.0) if key == SLOWDOWN else (" h", _HOURS)


# ------------------------------------------------------------------------------------------------
# the workload, as printed Classes and demands of Table 4 stand with the generator
# (``workloads/origin2000/tables.py``); this is the rest.

TOTAL_JOBS = {
    "1999-10": 9974,
    "1999-11": 7348,
    "1999-12": 5863,
    "2000-01": 7046,
    "2000-02": 8122,
    "2000-03": 7034,
}
"""Table 4: the total of each month, the sum of its twelve classes."""

ROUNDING_POINTS = 2
"""The most points by which the demands of twelve classes, each rounded, may miss the overall
demand."""

LARGE_PERCENT, LARGE_MONTHS = 30, 4
"""Section 3: "the large jobs (lj) have high demand (i.e., over 30 % ...) during four of the
months"."""

MT_LJ_PERCENT = (10, 15)
LT_MJ_PERCENT = (1, 5)
"""Section 3: the demands of these classes each month."""

PERIODS = {
    "peak": tuple(range(9, 18)),
    "intermediate": (7, 8, *range(18, 24)),
    "low": tuple(range(7)),
}
"""Section 3, Figure 1: "three periods (peak, intermediate, and low) of relatively stable job
arrival rate"; the hours are ours (docs/spec/papers.md, part 3): the figure prints none."""

STATEMENTS = {
    "F.ended-early": (
        "15 to 20 % of the jobs of each class end within a minute",
        ("ended within 1 min, least of the classes", "ended within 1 min, most of the classes"),
    ),
    "F.lt-could-be-st": (
        "Over 50 % of the lt jobs could have asked for st",
        ("lt that could have asked for st",),
    ),
    "F.memory-unused": (
        "25 to 35 % of the jobs of each class use less than a tenth of the memory they request",
        (
            "used below 10 % of memory, least of the classes",
            "used below 10 % of memory, most of the classes",
        ),
    ),
    "F.serial-memory": (
        "About half (40 to 65 %) of the serial jobs request more than 512 MB",
        ("serial jobs that request over 512 MB",),
    ),
    "F.over-an-hour": (
        "12 to 33 % of the jobs that request over an hour end within a minute",
        ("requested over 1 h, ended within 1 min",),
    ),
    "F.over-ten-hours": (
        "11 to 42 % of the jobs that request over ten hours end within a minute",
        ("requested over 10 h, ended within 1 min",),
    ),
}
"""Sections 2.4 and 3: claim, statement, and the statistics of a month behind it.  Some statements
of the paper are about weekday peaks; here they are about whole months."""


# ------------------------------------------------------------------------------------------------
# the workload, as drawn These claims are about numbers, not policies: one holds if it is true of
# every month.  The generator draws a month again until the statements on run times and memory are
# true (docs/papers/origin2000.md), so those claims check the generator.

_FIGURE_1 = "2000-03"
_LARGE = tuple(name for name in CLASSES if name.endswith("_lj"))


# ------------------------------------------------------------------------------------------------
# tables


def workload_tables(drawn: Sequence[DrawnMonth]) -> list[Table]:
    """Return Table 4, Figure 1 and the statistics of the drawn months."""
    return [table_4(drawn), figure_1(drawn), statistics(drawn)]


def table_4(drawn: Sequence[DrawnMonth]) -> Table:
    """Return totals and demands as printed, added up from the printed classes, and of the drawn
    months."""
    lines = []
    for name, month in MONTHS.items():
        mine = [one for one in drawn if one.month == name]
        line = cells(month=name, jobs=TOTAL_JOBS[name])
        line += cell("jobs_sum", "classes", sum(month.counts))
        for key, overall, classes in (
            ("procs", month.procs_overall, month.procs_percent),
            ("memory", month.memory_overall, month.memory_percent),
        ):
            line += [*cell(key, f"{key} %", overall), *cell(f"{key}_sum", "classes", sum(classes))]
            line += means(f"{key}_drawn", "drawn", 1, [sum(getattr(one, key)) for one in mine])[:1]
        for key, some in (("lj", _LARGE), ("mt_lj", ("mt_lj",)), ("lt_mj", ("lt_mj",))):
            line += cell(key, f"{key} %", _printed_share(name, some))
            line += means(f"{key}_drawn", "drawn", 1, [one.share(some) for one in mine])[:1]
        lines.append(line)
    title = (
        "Table 4: totals and demands as printed, added up over the printed classes, and as drawn"
    )
    return table_of_lines("table4", title, lines)


def figure_1(drawn: Sequence[DrawnMonth]) -> Table:
    """Return the arrivals in each hour of a weekday of March 2000, or of the first month that was
    drawn."""
    month = _FIGURE_1 if any(one.month == _FIGURE_1 for one in drawn) else drawn[0].month
    lines = []
    for hour in range(24):
        period = next(name for name, hours in PERIODS.items() if hour in hours)
        arrivals = [one.hourly[hour] for one in drawn if one.month == month]
        lines.append(cells(hour=hour, period=period) + means("arrivals", "arrivals", 1, arrivals))
    return table_of_lines(
        "figure1", f"Figure 1: arrivals in each hour, Mondays to Fridays, {month}", lines
    )


def statistics(drawn: Sequence[DrawnMonth]) -> Table:
    """Return the least and the largest value of each statistic of the drawn months, next to those
    of the paper."""
    lines = []
    for name, (low, high) in drawn[0].ranges.items():
        values = [one.statistics[name] for one in drawn]
        line = [
            *cell("name", "statistic", name),
            *cell("low", "paper from", low, 2),
            *cell("high", "to", high, 2),
        ]
        lines.append(
            [
                *line,
                *cell("least", "drawn from", min(values), 3),
                *cell("most", "to", max(values), 3),
            ]
        )
    notes = ["0 and 1, -1 and 0: the paper names a sign, or says that it is many"]
    return table_of_lines("statistics", "What the jobs of a month are like", lines, notes)


def _printed_share(month: str, classes: Sequence[str]) -> int:
    return sum(MONTHS[month].procs_percent[CLASSES.index(name)] for name in classes)


# ------------------------------------------------------------------------------------------------
# claims


def workload_claims(drawn: Sequence[DrawnMonth], runs: Sequence[Origin2000Figures]) -> list[Claim]:
    """Return the claims A (Table 4) and F (statements on the jobs); ``runs``: runs that counted the
    jobs of each class."""
    return [
        *_claims_of_table_4(drawn, runs),
        _claim_of_periods(drawn),
        *_claims_of_statements(drawn),
    ]


def _claims_of_table_4(
    drawn: Sequence[DrawnMonth], runs: Sequence[Origin2000Figures]
) -> list[Claim]:
    sums = [sum(month.counts) == TOTAL_JOBS[name] for name, month in MONTHS.items()]
    whole = [one for one in runs if one.case.days is None]
    counted = [
        [one.classes[name]["jobs"] for name in CLASSES] == list(MONTHS[one.case.month].counts)
        for one in whole
    ]

    def gaps(demands: Iterable[tuple[str, Sequence[float], Sequence[float]]]) -> list[float]:
        """Return how far demands for processors and memory miss the overall demands of their
        months, in points."""
        each = ((MONTHS[name], procs, memory) for name, procs, memory in demands)
        return [
            gap
            for month, procs, memory in each
            for gap in (sum(procs) - month.procs_overall, sum(memory) - month.memory_overall)
        ]

    printed_gaps = gaps(
        (name, month.procs_percent, month.memory_percent) for name, month in MONTHS.items()
    )
    drawn_gaps = gaps((one.month, one.procs, one.memory) for one in drawn)
    large = [name for name in MONTHS if _printed_share(name, _LARGE) > LARGE_PERCENT]
    as_printed = [
        (round(one.share(_LARGE)) > LARGE_PERCENT) == (one.month in large) for one in drawn
    ]
    by_month = {
        month: [one.share(_LARGE) for one in drawn if one.month == month] for month in MONTHS
    }
    shares = ", ".join(
        f"{month} {min(each):.1f} to {max(each):.1f}" for month, each in by_month.items() if each
    )
    return [
        _claim(
            "A.counts-add-up",
            (
                "The classes of Table 4 add up to its totals; the simulated months have exactly "
                "these "
                "jobs"
            ),
            sums,
            counted,
            f"{sum(sums)} of 6 printed totals, {sum(counted)} of {len(whole)} simulated months",
        ),
        _claim(
            "A.demands-add-up",
            "The demands of the classes add up to the overall demand within 2 points",
            [abs(gap) <= ROUNDING_POINTS for gap in printed_gaps],
            [abs(gap) <= ROUNDING_POINTS for gap in drawn_gaps],
            f"printed: {min(printed_gaps):+} to {max(printed_gaps):+} points; "
            f"drawn: {min(drawn_gaps):+.2f} to {max(drawn_gaps):+.2f}",
        ),
        _claim(
            "A.lj-over-30",
            (
                "The lj demand over 30 % of the processors in four of the months, and the same "
                "months "
                "drawn"
            ),
            [len(large) == LARGE_MONTHS],
            as_printed,
            f"printed: in {', '.join(large)}; drawn: {shares}",
        ),
        _class_claim("A.mt_lj", drawn, "mt_lj", MT_LJ_PERCENT),
        _class_claim("A.lt_mj", drawn, "lt_mj", LT_MJ_PERCENT),
    ]


def _class_claim(
    name: str, drawn: Sequence[DrawnMonth], which: str, bounds: tuple[int, int]
) -> Claim:
    """Return whether a class demands so many whole percents in every month, as printed and as
    drawn."""
    low, high = bounds
    shares = {month: _printed_share(month, [which]) for month in MONTHS}
    mine = [one.share([which]) for one in drawn]
    printed = ", ".join(f"{month} {share}" for month, share in shares.items())
    numbers = f"printed: {printed}; drawn: {min(mine):.1f} to {max(mine):.1f}"
    of_printed = [low <= share <= high for share in shares.values()]
    of_drawn = [low <= round(share) <= high for share in mine]
    text = f"The {which} demand {low} to {high} % of the processors each month"
    claim = _claim(name, text, of_printed, of_drawn, numbers)
    outside = {month: share for month, share in shares.items() if not low <= share <= high}
    is_as_table = of_drawn == [one.month not in outside for one in drawn]
    if not outside or not is_as_table:
        return claim
    prints = ", ".join(f"{share} % for {month}" for month, share in outside.items())
    why = (
        f"the text says {low} to {high} %, Table 4 prints {prints}; the generated months follow "
        "the table"
    )
    return replace(claim, verdict=record.CONTRADICTED, why=why)


def _claim_of_periods(drawn: Sequence[DrawnMonth]) -> Claim:
    """Return whether every hour of a busier period of weekdays has more arrivals than every hour of
    a quieter one."""

    def separation(one: DrawnMonth, busier: str, quieter: str) -> float:
        least = min(one.hourly[hour] for hour in PERIODS[busier])
        most = max(one.hourly[hour] for hour in PERIODS[quieter])
        return math.inf if not most else least / most

    findings = []
    for month in dict.fromkeys(one.month for one in drawn):
        for pair in (("peak", "intermediate"), ("intermediate", "low")):
            ratios = [separation(one, *pair) for one in drawn if one.month == month]
            findings.append(above(f"{month} {' / '.join(pair)}", ratios, 1.0, is_ratio=True))
    text = (
        "Arrivals of weekdays have three periods: the quietest hour of one is busier than the "
        "busiest of the next, peak, "
        "intermediate, low"
    )
    return claim_of("F.arrival-periods", text, findings)


def _claims_of_statements(drawn: Sequence[DrawnMonth]) -> list[Claim]:
    claims = []
    for name, (text, statistics_) in STATEMENTS.items():
        is_inside, said = [], []
        for statistic in statistics_:
            low, high = drawn[0].ranges[statistic]
            values = [one.statistics[statistic] for one in drawn]
            is_inside += [low <= value <= high for value in values]
            said.append(f"{statistic}: {100 * min(values):.1f} to {100 * max(values):.1f} %")
        claims.append(_claim(name, text, [], is_inside, "; ".join(said)))
    return claims


def _claim(
    name: str, text: str, of_printed: Sequence[bool], of_drawn: Sequence[bool], numbers: str
) -> Claim:
    """Return a claim that holds if it is true of every printed and every drawn month."""
    says = [YES if is_true else NO for is_true in (*of_printed, *of_drawn)]
    answers = {answer: says.count(answer) for answer in (YES, NO) if answer in says}
    return Claim(name, text, evidence.verdict_of(says), numbers, answers)


# ------------------------------------------------------------------------------------------------
# known verdicts

_CALM = (
    "the generated months are probably calmer than the real ones: their arrivals are independent "
    "of each other, while users "
    "submit in batches, and the machine is empty a week before the month"
)
_ONE_JOB = "a longest wait is that of one job, and every earlier decision may make it another job"

WHY: Mapping[str, str] = {
    "1.lsf-is-worse": f"{_CALM}. If hardly any job waits, the order of two policies is chance",
    "1.backfills-are-alike": (
        f"{_CALM}. Waits are so short under both that a few jobs decide the ratio"
    ),
    "2.idle-under-specials": (
        "in generated months that ask for much memory (March, January) waits under LSF* reach the "
        "reserve waits of the classes. "
        "Each job that has a special then keeps a host half empty until it fits"
    ),
    "3.lsf-varies-more": (
        "this variation is relative, and under Priority-bf the mean waits of most classes are "
        "minutes: a few jobs make a large "
        "share of little. In hours LSF* varies more"
    ),
    "4.short-first-is-better": (
        f"{_CALM}. If hardly any job waits, the order of jobs hardly matters"
    ),
    "4.not-in-max-wait": _ONE_JOB,
    "6.others-unharmed": f"{_CALM}. The cost of trial runs is a larger share of short waits",
    "6.others-unchanged": f"{_CALM}. Small changes are large shares of short waits",
    "7.p95-is-lower": f"{_CALM}. The 95th percentile is minutes under both",
    "7.rest-is-comparable": (
        f"{_CALM}. Under equal shares no job waits while there is memory; under backfilling jobs do"
    ),
    "7.longest-jobs-wait": (
        f"{_CALM}. Hosts are seldom shared so long that the longest jobs lose much"
    ),
    "7.over-50h-cuts-it": _ONE_JOB,
    "7.interval-hardly-matters": _ONE_JOB,
    "7.placed-at-once": (
        "a job is not placed only when no host has its memory. The generated requests are "
        "independent of the hour and of each "
        "other: in months of high load they fill the memory of all eight hosts more often than the "
        "real ones did"
    ),
    "5.one-reservation-is-enough": (
        "in calm months waits are so short under both that a few jobs decide the ratio"
    ),
    "8.high-load-differs-more": (
        "the paper calls a month high by its demand for processors. In the generated months memory "
        "decides as much: January "
        "and March, which count as low, demand 74 and 78 % of it, no less than December (72 %) and "
        "February (74 %)"
    ),
    "9.hours-or-tens": f"{_CALM}. In calm months serial classes wait minutes",
    "9.max-hundreds": _CALM,
}
"""The best explanation of claims that do not hold, by name."""

EXPECTED: Mapping[str, str] = {
    "A.lt_mj": record.CONTRADICTED,
    **dict.fromkeys(("2.idle-under-specials", "7.placed-at-once", "9.max-hundreds"), record.FAILS),
    **dict.fromkeys(
        (
            "3.lsf-varies-more",
            "4.short-first-is-better",
            "4.sjf-mostly-better",
            "6.others-unharmed",
            "6.others-unchanged",
            "7.p95-is-lower",
            "7.rest-is-comparable",
            "7.interval-hardly-matters",
            "8.high-load-differs-more",
            "9.hours-or-tens",
        ),
        record.UNDECIDED,
    ),
}
"""The known verdicts of six months and ten replicas (docs/papers/origin2000-results.md), by name of
claim; the others hold.

An undecided claim may hold or fail with other seeds, and a claim that fails in some months need not
fail in those of a smaller study: a check expects nothing of either.  ``WHY`` explains each that
does not hold.
"""

METHOD = (
    "Each replica is the month drawn with another seed. A comparison is *yes* if the whole 95 % "
    "interval over the replicas "
    "(paired by seed, Student's t; ratios by their logarithms) lies on the claimed side. It is "
    "*no* if the interval lies on the "
    "other side, else *open*. A claim holds if all its comparisons say yes, and does not hold if "
    "one says no. Else it is not "
    "decidable with these replicas. A claim about *at least one month* holds if one says yes. "
    "Bounds that the paper leaves open "
    '("similar": 25 %, "comparable": twice) are ours. Slowdowns that decide are raw, as in the '
    "paper; the tables also have them "
    "bounded by a minute (run times count as 60 s at least, and no slowdown below 1).",
    "A claim about *every month* is a conjunction: 1.lsf-is-worse is six months x three measures x "
    "two policies, 36 comparisons "
    "that must all say yes. One open comparison leaves the claim open, however clear the others "
    "are. And if two policies do not "
    "differ at all, a comparison still says *no* once in forty times, so one of many may say it by "
    "chance. Therefore the "
    "counts stand next to each verdict, and below it the same comparisons over all months together "
    "(the mean over the months of "
    "each replica). This second reading is no part of any verdict, and was added after the rules.",
    "Claims A and F are about the workload: counted, an answer for each month, no intervals but "
    "for the periods. The generator "
    "draws a month again until the statements F about its jobs are true, so F holds by "
    "construction: it checks the generator.",
)
"""Paragraphs on how a claim is judged."""
