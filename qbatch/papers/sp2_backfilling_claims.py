"""Feitelson and Weil 1998: Tables 1 to 3 and Figures 9 to 11, with the printed numbers and ours,
and its claims with verdicts.

Printed numbers are compared only on the log of the paper (KTH); for any other log they are at most
shown for reference.  The claims are about every log, and each is checked if the log has the
necessary data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from qbatch.papers import sp2_backfilling as paper
from qbatch.papers.evidence import EvidenceItem, above, below, inside, with_intervals
from qbatch.papers.harness import ALONE, Runner
from qbatch.papers.logs import machine_words
from qbatch.papers.pictures import finished, new_picture
from qbatch.papers.record import (
    Claim,
    PaperOutcome,
    Part,
    Table,
    Tolerance,
    cell,
    cells,
    claim,
    half,
    table_of_lines,
)
from qbatch.papers.sp2_backfilling import (
    FactorFigures,
    LoadFigures,
    MonthFigures,
    SizeFigures,
    Sp2Study,
)
from qbatch.reports.plot_style import GREY, PALETTE
from qbatch.workloads import Log

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def is_kth(log: Log) -> bool:
    """Whether a log is that of KTH's SP2, the only one that can be compared with the printed
    numbers."""
    words = machine_words(log)
    return "KTH" in words and "SP2" in words


def run_paper(
    study: Sp2Study, parts: Collection[str] = ("1", "2", "3", "figures"), runner: Runner = ALONE
) -> PaperOutcome:
    """Run some parts of the paper."""
    log, outcome = study.log, PaperOutcome(notes=_notes(study.log))
    has_estimates, name = paper.has_estimates(log), log.name
    if name == "generated":
        runner.say(
            f"NO LOG GIVEN: running on a generated log of {len(log):,} jobs; the printed numbers "
            "are those of KTH's SP2"
        )
    if "1" in parts:
        for variant, sizes in paper.run_table_1(study, runner).items():
            outcome.tables.append(table_1(sizes, variant))
            outcome.claims.extend(claims_of_table_1(sizes, variant))
        outcome.tables.append(table_1_printed())
    if "2" in parts:
        by_month = paper.run_table_2(study, runner)
        for reading, months in by_month.items():
            outcome.tables.append(table_2(months, reading, is_kth=is_kth(log)))
            outcome.claims.extend(claims_of_table_2(months, reading))
        outcome.pictures["table2"] = partial(draw_table_2, by_month, name, is_kth=is_kth(log))
    if "3" in parts:
        by_factor = paper.run_table_3(study, runner)
        for reading, rows in by_factor.items():
            outcome.tables.append(table_3(rows, reading, is_kth=is_kth(log)))
            outcome.claims.extend(claims_of_table_3(rows, reading, has_estimates=has_estimates))
        outcome.pictures["table3"] = partial(draw_table_3, by_factor, name, is_kth=is_kth(log))
    if factors := list(paper.TABLE_3) if "3" in parts else [paper.USERS] if "2" in parts else []:
        logs = paper.run_resampled(study, factors, runner)
        outcome.claims[:] = with_resampled(outcome.claims, logs, has_estimates=has_estimates)
    if "figures" in parts:
        _add_figures(outcome, study, runner, has_estimates=has_estimates)
    return outcome


def _add_figures(
    outcome: PaperOutcome, study: Sp2Study, runner: Runner, *, has_estimates: bool
) -> None:
    points = paper.run_figure_9(study, runner)
    outcome.tables.append(table_9(points))
    outcome.claims.extend(claims_of_figures_9_and_10(points))
    outcome.pictures["figure9"] = partial(draw_figure_9, points)
    outcome.pictures["figure10"] = partial(draw_figure_10, points)
    found = paper.run_figure_11(study) if has_estimates else None
    if found is None:
        outcome.notes.append("this log has no estimates of users: there is no Figure 11")
        return
    outcome.tables.append(table_11(found, is_kth=is_kth(study.log)))
    # A generated log draws its failures, which are independent of kills at the estimate.
    outcome.claims.extend(claims_of_figure_11(found, has_kills=study.log.name != "generated"))
    outcome.pictures["figure11"] = partial(draw_figure_11, study.log, found)


def _notes(log: Log) -> list[str]:
    notes = []
    if not is_kth(log):
        notes.append(
            "the printed numbers of Tables 2 and 3 and Figure 11 are those of KTH's SP2, and this "
            "is another log: only "
            "the claims are checked on it (KTH-SP2-1996 is in the Parallel Workloads Archive)"
        )
    if (log["wait"] < 0).any():
        notes.append(
            "this log does not say how long its jobs waited: it cannot be cut into monthly "
            "accounting files"
        )
    return notes


# ------------------------------------------------------------------------------------------------
# Tables 1 to 3

PER_MONTH = Tolerance(0.25, 10)
WHOLE = Tolerance(0.15)
PER_FACTOR = Tolerance(0.20)
"""Tolerances against printed numbers (docs/spec/papers.md, R001)."""

MOST_WINS, OF_MONTHS = 9, 11
"""A scheme dominates if it wins more than this share of the decided months (R001)."""

ALL = "all"

HELPFUL = (4, 11, 31)
"""The factors that are better than 1, according to the paper."""

READING_TEXTS = {
    "whole": "simulated once as a whole, by month of submission",
    "files": "each month simulated by itself, by month of the logged end",
}

VARIANT_TEXTS = {
    "fitting": "all jobs that fit",
    "same": "the jobs that fit on the smallest",
    "files": "these jobs, each month by itself",
}

_SHORT = {"easy": "EASY", "conservative": "cons"}


def table_1(sizes: Sequence[SizeFigures], variant: str) -> Table:
    """Return the months on three machines, with perfect estimates."""
    lines = []
    for month in sizes[-1].months:
        line = cells(month=month.label, jobs=month.jobs)
        for size, policy in product(sizes, paper.POLICIES):
            of_size = {one.label: one.slowdown[policy] for one in size.months}.get(month.label)
            line += cell(f"{policy}_{size.procs}", f"{_SHORT[policy]} {size.procs}", of_size, 1)
        lines.append(line)
    notes = [
        f"{size.too_wide:,} wide jobs are left out at {size.procs} processors"
        for size in sizes
        if size.too_wide
    ]
    title = (
        f"Table 1: machines of {', '.join(str(size.procs) for size in sizes)} processors, "
        "perfect estimates"
    )
    return table_of_lines(
        _name("table1", variant), f"{title}, {VARIANT_TEXTS[variant]}", lines, notes
    )


def table_1_printed() -> Table:
    """Return the paper's Table 1, of another machine: for reference."""
    lines = []
    for month, (jobs, pairs) in paper.TABLE_1.items():
        line = cells(month=month, jobs=jobs)
        for size, pair in zip(paper.IUCC_SIZES, pairs, strict=True):
            for policy, value in zip(paper.POLICIES, pair, strict=True):
                line += cell(f"{policy}_{size}", f"{_SHORT[policy]} {size}", value)
        lines.append(line)
    title = "Table 1 as printed, for reference: IUCC, another machine; its log is not public"
    return table_of_lines("table1-printed", title, lines)


def claims_of_table_1(sizes: Sequence[SizeFigures], variant: str) -> list[Claim]:
    """Return the claims about smaller machines."""
    name = _name("table1", variant)
    raises = [
        one.slowdown[policy] > other.slowdown[policy]
        for small, large in pairwise(sizes)
        for one, other in product(small.months, large.months)
        if one.label == other.label
        for policy in paper.POLICIES
    ]
    months = [month for size in sizes for month in size.months]
    slowdowns = [month.slowdown for month in months]
    gaps = [
        abs(one["easy"] - one["conservative"]) / one["easy"] for one in slowdowns if one["easy"] > 0
    ]
    middle = median(gaps) if gaps else None
    return [
        claim(
            f"{name}.smaller-is-slower",
            "A smaller machine has a higher slowdown, in every month, under both schemes",
            all(raises) if raises else None,
            f"{sum(raises)} of {len(raises)} steps to the smaller machine raise it",
        ),
        claim(
            f"{name}.alike",
            "The two schemes are alike: the median difference over months and sizes is below 10 %",
            middle < 0.10 if middle is not None else None,
            (
                f"median |EASY - conservative| / EASY = {100 * (middle or 0):.1f} % over "
                f"{len(gaps)} "
                "months"
            ),
        ),
        domination(name, months),
    ]


def table_2(months: Sequence[MonthFigures], reading: str, *, is_kth: bool) -> Table:
    """Return the months next to the printed ones, and the mean over all jobs next to Table 3's row
    of users."""
    printed = {month.label: month for month in paper.TABLE_2} if is_kth else {}
    lines = []
    for month in months:
        known = printed.get(month.label)
        line = cells(month=month.label) + cell(
            "jobs_printed", "jobs printed", known.jobs if known else None
        )
        line += cell("jobs", "jobs ours", month.jobs)
        for policy in paper.POLICIES:
            line += _compared(
                policy, getattr(known, policy) if known else None, month.slowdown[policy], PER_MONTH
            )
        lines.append(line)
    total = sum(month.jobs for month in paper.TABLE_2) if is_kth else None
    line = cells(month=ALL) + cell("jobs_printed", "jobs printed", total)
    line += cell("jobs", "jobs ours", sum(month.jobs for month in months))
    for policy, value in zip(paper.POLICIES, paper.TABLE_3[paper.USERS], strict=True):
        line += _compared(policy, value if is_kth else None, paper.mean_of(months, policy), WHOLE)
    lines.append(line)
    title = f"Table 2: users' estimates, {READING_TEXTS[reading]}"
    return table_of_lines(_name("table2", reading), title, lines)


def _compared(
    policy: str, printed: float | None, ours: float | None, tolerance: Tolerance, *more: Part
) -> list[Part]:
    """Return a printed number, ours, more of ours, and the verdict."""
    short = _SHORT[policy]
    found = [
        *cell(f"{policy}_printed", f"{short} printed", printed),
        *cell(policy, f"{short} ours", ours, 1),
        *more,
    ]
    return found + cell(f"{policy}_verdict", "verdict", tolerance.verdict(printed, ours))


def claims_of_table_2(months: Sequence[MonthFigures], reading: str) -> list[Claim]:
    """Return the claims about the months."""
    name = _name("table2", reading)
    easy, conservative = (paper.mean_of(months, policy) for policy in paper.POLICIES)
    gap = abs(easy - conservative) / easy if easy else 0.0
    return [
        domination(name, months),
        claim(
            f"{name}.alike",
            "Over all jobs the two schemes are alike: within 10 % of each other",
            gap < 0.10,
            f"EASY {easy:.1f}, conservative {conservative:.1f}: {100 * gap:.1f} % apart",
        ),
    ]


def domination(name: str, months: Sequence[MonthFigures]) -> Claim:
    """Return the claim that neither scheme dominates; months with the same whole numbers are
    ties."""
    wins = [
        round(month.slowdown["easy"]) - round(month.slowdown["conservative"]) for month in months
    ]
    easy, conservative = sum(gap < 0 for gap in wins), sum(gap > 0 for gap in wins)
    decided = easy + conservative
    return claim(
        f"{name}.neither-dominates",
        "Neither scheme dominates: none wins more than 9 of 11 of the months that are decided",
        OF_MONTHS * max(easy, conservative) <= MOST_WINS * decided if decided > 1 else None,
        f"EASY is better in {easy}, conservative in {conservative}, {len(months) - decided} ties",
    )


def table_3(rows: Sequence[FactorFigures], reading: str, *, is_kth: bool) -> Table:
    """Return the factors next to the printed ones, each a mean over the seeds with half its 95 %
    interval."""
    lines = []
    for row in rows:
        line = [*cell("f", "f", str(row.factor)), *cell("seeds", "seeds", row.slowdown["easy"].n)]
        for policy, printed in zip(paper.POLICIES, paper.TABLE_3[row.factor], strict=True):
            found, known = row.slowdown[policy], printed if is_kth else None
            width = cell(f"{policy}_half_interval", "+-95 %", half(found), 1)
            line += _compared(
                policy,
                known,
                found.mean,
                WHOLE if row.factor == paper.USERS else PER_FACTOR,
                *width,
            )
        lines.append(line)
    return table_of_lines(
        _name("table3", reading), f"Table 3: drawn estimates, {READING_TEXTS[reading]}", lines
    )


def claims_of_table_3(
    rows: Sequence[FactorFigures], reading: str, *, has_estimates: bool
) -> list[Claim]:
    """Return the claims about the quality of estimates."""
    name = _name("table3", reading)
    means = {
        row.factor: {policy: row.slowdown[policy].mean or 0.0 for policy in paper.POLICIES}
        for row in rows
    }
    helped = {
        policy: min(HELPFUL, key=lambda factor: means[factor][policy]) for policy in paper.POLICIES
    }
    drawn = [factor for factor in means if factor != paper.USERS]
    worst = {policy: max(means[factor][policy] for factor in drawn) for policy in paper.POLICIES}
    kept = [factor for factor in drawn if means[factor]["conservative"] <= means[factor]["easy"]]
    best = [
        (
            f"{_SHORT[policy]} {means[1][policy]:.1f} at f = 1, {means[factor][policy]:.1f} at f = "
            f"{factor}"
        )
        for policy, factor in helped.items()
    ]
    users = means[paper.USERS]
    worse = [
        f"{_SHORT[policy]} users {users[policy]:.1f}, worst drawn {most:.1f}"
        for policy, most in worst.items()
    ]
    return [
        claim(
            f"{name}.inaccuracy-helps",
            (
                "Accurate estimates are not the best: some f of 4, 11, 31 beats f = 1 under both "
                "schemes"
            ),
            all(means[helped[policy]][policy] < means[1][policy] for policy in paper.POLICIES),
            "; ".join(best),
        ),
        claim(
            f"{name}.users-are-worse",
            "The estimates of users are worse than all that are drawn, under both schemes",
            all(users[policy] > worst[policy] for policy in paper.POLICIES)
            if has_estimates
            else None,
            "; ".join(worse),
        ),
        claim(
            f"{name}.conservative-is-better",
            "With drawn estimates conservative is no worse than EASY, at every f",
            len(kept) == len(drawn),
            f"at {len(kept)} of {len(drawn)} factors",
        ),
    ]


def with_resampled(
    claims: Sequence[Claim], logs: Sequence[paper.ResampledMeans], *, has_estimates: bool
) -> list[Claim]:
    """Return claims with intervals over logs made of the log's weeks.

    The verdict is about the log itself.  The intervals show how much it depends on the weeks of the
    log (Student's t over the resampled logs, ratios by their logarithms).
    """
    if len(logs) < 2:
        return list(claims)
    over = f"{len(logs)} logs of its weeks, drawn with replacement"
    return with_intervals(claims, _over_logs(logs, has_estimates=has_estimates), over)


def _over_logs(
    logs: Sequence[paper.ResampledMeans], *, has_estimates: bool
) -> dict[str, list[EvidenceItem]]:
    """Return the comparisons behind each claim, over resampled logs."""
    easy, conservative = paper.POLICIES
    drawn = [factor for factor in logs[0] if factor != paper.USERS]

    def ratios(one: tuple[int | str, str], other: tuple[int | str, str]) -> list[float]:
        pairs = ((log[one[0]][one[1]], log[other[0]][other[1]]) for log in logs)
        return [mine / theirs for mine, theirs in pairs if theirs]

    alike = ratios((paper.USERS, conservative), (paper.USERS, easy))
    found = {"table2.alike": [inside("conservative / EASY", alike, 0.9, 1.1, is_ratio=True)]}
    if not drawn:
        return found
    found["table3.inaccuracy-helps"] = [
        below(
            f"{_SHORT[policy]}, f = {factor} / f = 1",
            ratios((factor, policy), (1, policy)),
            1.0,
            is_ratio=True,
        )
        for policy, factor in product(paper.POLICIES, HELPFUL)
    ]
    found["table3.conservative-is-better"] = [
        below(
            f"f = {factor}, conservative / EASY",
            ratios((factor, conservative), (factor, easy)),
            1.0,
            is_ratio=True,
        )
        for factor in drawn
    ]
    if has_estimates:
        found["table3.users-are-worse"] = []
        for policy in paper.POLICIES:
            worst = [max(log[factor][policy] for factor in drawn) for log in logs]
            times = [
                log[paper.USERS][policy] / most
                for log, most in zip(logs, worst, strict=True)
                if most
            ]
            worse = above(f"{_SHORT[policy]}, users / worst drawn", times, 1.0, is_ratio=True)
            found["table3.users-are-worse"].append(worse)
    return found


def _name(table: str, variant: str) -> str:
    """Return the name of a table; the variant that the specification asks for first has no
    suffix."""
    return table if variant in ("fitting", "whole") else f"{table}-{variant}"


# ------------------------------------------------------------------------------------------------
# Figures 9 to 11

TWO_POINTS = Tolerance(0, 2)
"""Shares in percent may differ by two points (docs/spec/papers.md, R001)."""

COUNTS = Tolerance(0.02)
"""Counts of jobs may differ by 2 %: our choice, the logs are not quite the same."""

_MODEL_NOTE = (
    f"our own generator ({paper.MODEL_JOBS:,} jobs, {paper.MODEL_PROCS} processors) stands in for "
    "the model of the paper, which "
    "it does not print; no number here is meant to meet the paper's"
)


def table_9(points: Sequence[LoadFigures]) -> Table:
    """Return the slowdowns and the shares backfilled by load: Figures 9 and 10."""
    lines = []
    for point in points:
        line = cell("load", "load", point.load, 2)
        for policy in paper.MODEL_POLICIES:
            line += cell(f"slowdown_{policy}", f"slowdown {policy}", point.slowdown[policy], 1)
        for policy in paper.MODEL_POLICIES[1:]:
            line += cell(
                f"backfilled_{policy}", f"backfilled {policy}", point.backfilled[policy], 3
            )
        lines.append(line)
    title = (
        "Figures 9 and 10: bounded slowdown and share backfilled by load, generated logs, "
        "perfect estimates"
    )
    return table_of_lines("figure9", title, lines, [_MODEL_NOTE])


def claims_of_figures_9_and_10(points: Sequence[LoadFigures]) -> list[Claim]:
    """Return the claims about Figures 9 and 10."""
    usual = [point for point in points if point.load <= 0.9]
    high = [point for point in points if point.load > 0.9]
    apart = max(abs(point.slowdown["conservative"] / point.slowdown["easy"] - 1) for point in usual)
    at = min(points, key=lambda point: abs(point.load - 0.7))
    times = at.slowdown["fcfs"] / at.slowdown["easy"]
    more = [
        point for point in points if point.backfilled["conservative"] >= point.backfilled["easy"]
    ]
    differ = max(
        abs(point.backfilled["conservative"] - point.backfilled["easy"]) for point in points
    )
    least = min(points[-1].backfilled[policy] for policy in ("easy", "conservative"))
    claims = [
        claim(
            "figure9.alike",
            "EASY and conservative are within 10 % of each other up to a load of 0.9",
            apart <= 0.10,
            f"at most {100 * apart:.0f} % apart",
        ),
        claim(
            "figure9.conservative-at-high-load",
            "Conservative is slightly better at very high loads",
            all(point.slowdown["conservative"] < point.slowdown["easy"] for point in high),
            "; ".join(
                (
                    f"{p.load:.2f}: EASY {p.slowdown['easy']:.0f}, cons "
                    f"{p.slowdown['conservative']:.0f}"
                )
                for p in high
            ),
        ),
        claim(
            "figure9.fcfs-far-worse",
            "FCFS is far worse: at least five times EASY at a load of 0.7",
            times >= 5,
            f"{times:.1f} times ({at.slowdown['fcfs']:.0f} to {at.slowdown['easy']:.0f})",
        ),
        claim(
            "figure10.conservative-backfills-more",
            "Both backfill about as much (within 5 points), conservative a bit more",
            differ <= 0.05 and len(more) > len(points) / 2,
            (
                f"conservative more at {len(more)} of {len(points)} loads, at most "
                f"{100 * differ:.1f} "
                "points apart"
            ),
        ),
        claim(
            "figure10.nearly-all",
            "At the highest load nearly all jobs are backfilled (90 % or more)",
            least >= 0.90,
            f"{100 * least:.0f} % at {points[-1].load:.2f}",
        ),
    ]
    count = min((len(values) for point in points for values in point.slowdowns.values()), default=0)
    return (
        with_intervals(claims, _over_generated(usual, high, at, points), f"{count} generated logs")
        if count > 1
        else claims
    )


def _over_generated(
    usual: Sequence[LoadFigures],
    high: Sequence[LoadFigures],
    at: LoadFigures,
    points: Sequence[LoadFigures],
) -> dict[str, list[EvidenceItem]]:
    """Return the comparisons behind each claim, over the generated logs, by pairs."""

    def ratios(point: LoadFigures, policy: str) -> list[float]:
        pairs = zip(point.slowdowns[policy], point.slowdowns["easy"], strict=True)
        return [mine / theirs for mine, theirs in pairs if theirs]

    def alike(some: Sequence[LoadFigures]) -> list[tuple[str, list[float]]]:
        return [
            (f"load {point.load:.2f}, conservative / EASY", ratios(point, "conservative"))
            for point in some
        ]

    more = []
    for point in points:
        pairs = zip(point.shares["conservative"], point.shares["easy"], strict=True)
        gaps = [100 * (mine - theirs) for mine, theirs in pairs]
        more.append(above(f"load {point.load:.2f}, conservative - EASY", gaps, 0.0, " points"))
    last = points[-1]
    return {
        "figure9.alike": [inside(*each, 0.9, 1.1, is_ratio=True) for each in alike(usual)],
        "figure9.conservative-at-high-load": [
            below(*each, 1.0, is_ratio=True) for each in alike(high)
        ],
        "figure9.fcfs-far-worse": [
            above(f"load {at.load:.2f}, FCFS / EASY", ratios(at, "fcfs"), 5.0, is_ratio=True)
        ],
        "figure10.conservative-backfills-more": more,
        "figure10.nearly-all": [
            above(f"{each} at {last.load:.2f}", last.shares[each], 0.9) for each in paper.POLICIES
        ],
    }


def table_11(found: paper.EstimateFigures, *, is_kth: bool) -> Table:
    """Return the printed numbers of Figure 11 next to those of the log."""
    full_share = 100 * paper.FIGURE_11_FULL / paper.FIGURE_11_JOBS
    killed_share = 100 * paper.FIGURE_11_KILLED / paper.FIGURE_11_FULL
    counts: list[tuple[str, float | None, float, Tolerance]] = [
        ("jobs of a minute or more", paper.FIGURE_11_JOBS, found.jobs, COUNTS),
        ("used 100 % (rounded) of the request", paper.FIGURE_11_FULL, found.full, COUNTS),
        ("... in % of these jobs", full_share, 100 * found.full / found.jobs, TWO_POINTS),
        ("... killed (status 0)", paper.FIGURE_11_KILLED, found.killed, COUNTS),
        (
            "... killed, in % of them",
            killed_share,
            100 * found.killed / max(found.full, 1),
            TWO_POINTS,
        ),
        (
            "status 0, asked for 4 h, any share used",
            paper.FIGURE_11_FOUR_HOURS,
            found.four_hours,
            COUNTS,
        ),
        ("highest request in h", paper.FIGURE_11_HIGHEST_H, found.highest_h, COUNTS),
        ("ran to the second or longer than asked", None, found.over, COUNTS),
        ("requests up to 2 h in %", None, 100 * found.two_hours_share, TWO_POINTS),
        ("requests of whole 5 min in %", None, 100 * found.five_minutes_share, TWO_POINTS),
    ]
    lines = []
    for what, printed, ours, tolerance in counts:
        known = printed if is_kth else None
        digits = 0 if isinstance(ours, int) else 1
        shown = None if known is None else round(known, digits) if digits else known
        line = cells(quantity=what) + cell("printed", "printed", shown, 1)
        line += cell("ours", "ours", round(ours, digits) if digits else ours, 1)
        lines.append(line + cells(verdict=tolerance.verdict(known, ours)))
    notes = [f"{found.shorter:,} jobs of less than a minute are left out"]
    if is_kth:
        notes.append(
            "the paper does not say which jobs it counts. The cut at a minute, the rounding and "
            "the reading of the 4 h row "
            "were chosen because they meet its counts, so their agreement is no evidence"
        )
    return table_of_lines("figure11", "Figure 11: time used of time asked for", lines, notes)


def claims_of_figure_11(found: paper.EstimateFigures, *, has_kills: bool) -> list[Claim]:
    """Return the claims about Figure 11."""
    below = max(found.histogram[1:98])
    killed = found.killed / found.full if found.full else 0.0
    return [
        claim(
            "figure11.peak",
            (
                "The histogram has one pronounced peak at 100 %: at least twice any other bin from "
                "1 "
                "% "
                "to 97 %"
            ),
            found.histogram[100] >= 2 * below,
            f"{found.histogram[100]:,} jobs at 100 %, at most {below:,} in another bin",
        ),
        claim(
            "figure11.killed",
            "Nearly all jobs at 100 % were killed there (95 % or more)",
            killed >= 0.95 if has_kills and found.full else None,
            f"{found.killed:,} of {found.full:,} have status 0",
        ),
    ]


# ------------------------------------------------------------------------------------------------
# pictures

_COLOURS = {"fcfs": PALETTE[2], "easy": PALETTE[0], "conservative": PALETTE[1]}
_NAMES = {"fcfs": "FCFS", "easy": "EASY", "conservative": "conservative"}
_READINGS = {"whole": "whole log, by submission", "files": "month by month, by logged end"}
_LONGEST_REQUEST_MIN = 120
_AT_LOADS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def _figure(height: float, title: str, name: str) -> Figure:
    name = Path(name).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".swf")
    return new_picture(height, title, name)


def draw_table_2(found: Mapping[str, Sequence[MonthFigures]], name: str, *, is_kth: bool) -> Figure:
    """Draw the months under both schemes, one panel for each reading, the printed numbers as
    marks."""
    figure = _figure(1.1 + 1.7 * len(found), "Table 2, bounded slowdown by month", name)
    panels = figure.subplots(len(found), 1, squeeze=False, sharey=True)[:, 0]
    for axes, (reading, months) in zip(panels, found.items(), strict=True):
        _draw_months(axes, months, is_kth=is_kth)
        axes.set_title(_READINGS[reading])
        axes.set_ylabel("Bounded slowdown")
    return finished(
        figure,
        "Users' estimates. Not clipped at 1."
        + (" Marks: Feitelson and Weil 1998." if is_kth else ""),
    )


def _draw_months(axes: Axes, months: Sequence[MonthFigures], *, is_kth: bool) -> None:
    printed = {month.label: month for month in paper.TABLE_2} if is_kth else {}
    for place, policy in enumerate(paper.POLICIES):
        at = np.arange(len(months)) + (place - 0.5) * 0.4
        colour = _COLOURS[policy]
        axes.bar(
            at,
            [month.slowdown[policy] for month in months],
            0.36,
            color=colour,
            alpha=0.55,
            label=_NAMES[policy],
        )
        known = [
            (x, getattr(printed[m.label], policy))
            for x, m in zip(at, months, strict=True)
            if m.label in printed
        ]
        if known:
            xs, ys = zip(*known, strict=True)
            axes.plot(
                xs,
                ys,
                "D",
                color=colour,
                ms=4,
                mec="white",
                mew=0.6,
                label=f"{_NAMES[policy]}, printed",
            )
    step = -(-len(months) // 14)
    labels = [_month_text(month.label, is_first=not place) for place, month in enumerate(months)]
    axes.set_xticks(range(0, len(months), step), labels[::step])


def _month_text(label: str, *, is_first: bool) -> str:
    """Return ``Oct`` for ``1996-10``, with the year below where one begins; other labels as they
    are."""
    try:
        month = date.fromisoformat(f"{label}-01")
    except ValueError:
        return label
    return f"{month:%b}\n{month.year}" if is_first or month.month == 1 else f"{month:%b}"


def draw_table_3(
    found: Mapping[str, Sequence[FactorFigures]], name: str, *, is_kth: bool
) -> Figure:
    """Draw the slowdown by factor with 95 % intervals, users' estimates last, one panel for each
    reading."""
    figure = _figure(2.9, "Table 3, quality of estimates", name)
    panels = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
    for axes, (reading, rows) in zip(panels, found.items(), strict=True):
        for policy in paper.POLICIES:
            _draw_factors(axes, rows, policy, is_kth=is_kth)
        axes.set_xticks(range(len(rows)), [str(row.factor) for row in rows])
        axes.set_title(_READINGS[reading])
        axes.set_xlabel("f of the estimates")
        axes.set_ylim(0, None)
    panels[0].set_ylabel("Bounded slowdown")
    seeds = max(row.slowdown["easy"].n for rows in found.values() for row in rows)
    text = (
        f"Estimates uniform in [run, f x run], mean of {seeds} seeds; bars: 95 % interval; "
        "users: as logged."
    )
    return finished(figure, text)


def _draw_factors(axes: Axes, rows: Sequence[FactorFigures], policy: str, *, is_kth: bool) -> None:
    colour = _COLOURS[policy]
    drawn = [row for row in rows if row.factor != paper.USERS]
    look: dict[str, Any] = {"color": colour, "marker": "o", "ms": 3, "capsize": 2, "lw": 1.1}
    means = [row.slowdown[policy].mean or 0.0 for row in drawn]
    halves = [half(row.slowdown[policy]) or 0.0 for row in drawn]
    axes.errorbar(range(len(drawn)), means, halves, label=_NAMES[policy], **look)
    users = [row.slowdown[policy].mean or 0.0 for row in rows if row.factor == paper.USERS]
    axes.plot([len(drawn)], users, "o", color=colour, ms=4)
    if is_kth:
        printed = [paper.TABLE_3[row.factor][paper.POLICIES.index(policy)] for row in rows]
        axes.plot(
            range(len(rows)),
            printed,
            "D",
            mfc="none",
            color=colour,
            ms=4.5,
            label=f"{_NAMES[policy]}, printed",
        )


def draw_figure_9(points: Sequence[LoadFigures]) -> Figure:
    """Draw bounded slowdown against load under three schemes, as the paper's Figure 9."""
    figure = _figure(3.0, "Figure 9, bounded slowdown by load", "generated logs")
    axes = figure.add_subplot()
    _draw_loads(
        axes,
        points,
        {policy: [point.slowdown[policy] for point in points] for policy in paper.MODEL_POLICIES},
    )
    axes.set_yscale("log")
    axes.set_ylabel("Bounded slowdown")
    return finished(
        figure, "Perfect estimates; our generator in place of the paper's model. Logarithmic scale."
    )


def draw_figure_10(points: Sequence[LoadFigures]) -> Figure:
    """Draw the share of jobs that are backfilled against load, as the paper's Figure 10."""
    figure = _figure(3.0, "Figure 10, jobs backfilled by load", "generated logs")
    axes = figure.add_subplot()
    shares = {
        policy: [100 * point.backfilled[policy] for point in points] for policy in paper.POLICIES
    }
    _draw_loads(axes, points, shares)
    axes.set_ylim(0, 100)
    axes.set_ylabel("Jobs backfilled (%)")
    return finished(
        figure,
        "Backfilled: started while a job submitted earlier was left waiting. Perfect estimates.",
    )


def _draw_loads(
    axes: Axes, points: Sequence[LoadFigures], values: Mapping[str, Sequence[float]]
) -> None:
    loads = [point.load for point in points]
    for policy, line in values.items():
        style = "--" if policy == "conservative" else "-"
        axes.plot(
            loads, line, style, marker="o", ms=3, color=_COLOURS[policy], label=_NAMES[policy]
        )
    axes.set_xticks(_AT_LOADS)
    axes.set_xlabel("Offered load")


def draw_figure_11(log: Log, found: paper.EstimateFigures) -> Figure:
    """Draw how much of the requested time was used, and run time against request, as the paper's
    Figure 11."""
    figure = _figure(3.3, "Figure 11, estimates and run times", log.name)
    left, right = figure.subplots(1, 2)
    left.bar(np.arange(101), found.histogram, 1.0, color=PALETTE[0], linewidth=0)
    left.set_xlim(-0.5, 101)
    left.set_xlabel("Requested time that was used (%)")
    left.set_ylabel("Jobs in a bin of 1 %")
    asks = paper.estimated(log)
    asked, ran = (np.asarray(log[name])[asks] / 60 for name in ("time_requested", "run"))
    shown = (asked <= _LONGEST_REQUEST_MIN) & (ran >= 1)
    dots: dict[str, Any] = {
        "color": PALETTE[0],
        "ms": 1.2,
        "alpha": 0.35,
        "mew": 0,
        "rasterized": True,
    }
    right.plot(asked[shown], ran[shown], "o", **dots)
    right.plot([0, _LONGEST_REQUEST_MIN], [0, _LONGEST_REQUEST_MIN], color=GREY, linewidth=0.6)
    for limits in (right.set_xlim, right.set_ylim):
        limits(0, 1.02 * _LONGEST_REQUEST_MIN)
    right.set_xticks(range(0, _LONGEST_REQUEST_MIN + 1, 30))
    right.set_yticks(range(0, _LONGEST_REQUEST_MIN + 1, 30))
    right.set_xlabel("Requested time (min)")
    right.set_ylabel("Run time (min)")
    right.set_aspect("equal")
    text = f"{found.jobs:,} jobs of a minute or more; runs beyond the request count as 100 %."
    return finished(figure, f"{text} Right: the {int(shown.sum()):,} that asked for at most 2 h.")
