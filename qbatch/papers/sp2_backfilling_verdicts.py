"""Tables with printed numbers beside ours, and the claims of Feitelson and Weil 1998 with verdicts.

Printed numbers are compared only on the log of the paper (KTH).  On any other log they are not shown, or shown for
reference; the claims are about every log, and are checked on it as far as it has what they need.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from statistics import median

from qbatch.metrics import Interval
from qbatch.papers.evidence import EvidenceItem, above, below, inside, with_intervals
from qbatch.papers.record import Cell, Claim, Column, Table, Tolerance, claim
from qbatch.papers.sp2_backfilling_printed import IUCC_SIZES, POLICIES, TABLE_1, TABLE_2, TABLE_3, USERS
from qbatch.papers.sp2_backfilling_runs import FactorFigures, MonthFigures, ResampledMeans, SizeFigures, mean_of

PER_MONTH = Tolerance(0.25, 10)
WHOLE = Tolerance(0.15)
PER_FACTOR = Tolerance(0.20)
"""How far numbers may lie from the printed ones (docs/spec/papers.md, R001)."""

MOST_WINS, OF_MONTHS = 9, 11
"""A scheme dominates when it wins more than this share of the decided months (R001)."""

ALL = "all"

HELPFUL = (4, 11, 31)
"""The factors of which the paper says that they are better than 1."""

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


# ------------------------------------------------------------------------------------------------ Table 1


def table_1(sizes: Sequence[SizeFigures], variant: str) -> Table:
    """Return the months on three machines, with perfect estimates."""
    columns = [Column("month", "month"), Column("jobs", "jobs")]
    columns += [
        Column(f"{policy}_{size.procs}", f"{_SHORT[policy]} {size.procs}", 1) for size in sizes for policy in POLICIES
    ]
    rows: list[dict[str, Cell]] = []
    for month in sizes[-1].months:
        row: dict[str, Cell] = {"month": month.label, "jobs": month.jobs}
        for size in sizes:
            of_size = {one.label: one for one in size.months}.get(month.label)
            for policy in POLICIES:
                row[f"{policy}_{size.procs}"] = None if of_size is None else of_size.slowdown[policy]
        rows.append(row)
    notes = [f"{size.too_wide:,} wide jobs are left out at {size.procs} processors" for size in sizes if size.too_wide]
    title = f"Table 1: machines of {', '.join(str(size.procs) for size in sizes)} processors, perfect estimates"
    return Table(_name("table1", variant), f"{title}, {VARIANT_TEXTS[variant]}", columns, rows, notes)


def table_1_printed() -> Table:
    """Return the paper's Table 1, of another machine: for reference."""
    columns = [Column("month", "month"), Column("jobs", "jobs")]
    columns += [Column(f"{policy}_{size}", f"{_SHORT[policy]} {size}") for size in IUCC_SIZES for policy in POLICIES]
    rows: list[dict[str, Cell]] = []
    for month, (jobs, pairs) in TABLE_1.items():
        row: dict[str, Cell] = {"month": month, "jobs": jobs}
        for size, pair in zip(IUCC_SIZES, pairs, strict=True):
            row |= {f"{policy}_{size}": value for policy, value in zip(POLICIES, pair, strict=True)}
        rows.append(row)
    title = "Table 1 as printed, for reference: IUCC, another machine, whose log is not public"
    return Table("table1-printed", title, columns, rows)


def claims_of_table_1(sizes: Sequence[SizeFigures], variant: str) -> list[Claim]:
    """Return what the paper says of smaller machines, checked on ours."""
    name = _name("table1", variant)
    steps = broken = 0
    for small, large in pairwise(sizes):
        for one, other in common(small.months, large.months):
            for policy in POLICIES:
                steps += 1
                broken += one.slowdown[policy] <= other.slowdown[policy]
    months = [month for size in sizes for month in size.months]
    gaps = [relative_gap(month) for month in months if month.slowdown["easy"] > 0]
    middle = median(gaps) if gaps else None
    return [
        claim(
            f"{name}.smaller-is-slower",
            "A smaller machine has a higher slowdown, in every month, under both schemes",
            broken == 0 if steps else None,
            f"{steps - broken} of {steps} steps to the smaller machine raise it",
        ),
        claim(
            f"{name}.alike",
            "The two schemes are alike: the median difference over months and sizes is below 10 %",
            middle < 0.10 if middle is not None else None,
            f"median |EASY - conservative| / EASY = {100 * (middle or 0):.1f} % over {len(gaps)} months",
        ),
        domination(name, months),
    ]


def relative_gap(month: MonthFigures) -> float:
    """Return |EASY - conservative| / EASY."""
    return abs(month.slowdown["easy"] - month.slowdown["conservative"]) / month.slowdown["easy"]


def common(one: Sequence[MonthFigures], other: Sequence[MonthFigures]) -> list[tuple[MonthFigures, MonthFigures]]:
    """Return the months that both have, in pairs."""
    by_label = {month.label: month for month in other}
    return [(month, by_label[month.label]) for month in one if month.label in by_label]


# ------------------------------------------------------------------------------------------------ Table 2


def table_2(months: Sequence[MonthFigures], reading: str, *, is_kth: bool) -> Table:
    """Return the months beside the printed ones, and the mean over all jobs beside Table 3's row of users."""
    printed = {month.label: month for month in TABLE_2} if is_kth else {}
    rows: list[dict[str, Cell]] = []
    for month in months:
        row: dict[str, Cell] = {"month": month.label, "jobs": month.jobs}
        known = printed.get(month.label)
        row["jobs_printed"] = known.jobs if known else None
        for policy in POLICIES:
            value: int | None = getattr(known, policy) if known else None
            row |= _pair(policy, value, month.slowdown[policy], PER_MONTH)
        rows.append(row)
    total: dict[str, Cell] = {"month": ALL, "jobs": sum(month.jobs for month in months)}
    total["jobs_printed"] = sum(month.jobs for month in TABLE_2) if is_kth else None
    for policy, value in zip(POLICIES, TABLE_3[USERS], strict=True):
        total |= _pair(policy, value if is_kth else None, mean_of(months, policy), WHOLE)
    columns = [Column("month", "month"), Column("jobs_printed", "jobs printed"), Column("jobs", "jobs ours")]
    columns += _pair_columns()
    name = _name("table2", reading)
    return Table(name, f"Table 2: users' estimates, {READING_TEXTS[reading]}", columns, [*rows, total])


def claims_of_table_2(months: Sequence[MonthFigures], reading: str) -> list[Claim]:
    """Return what the paper says of the months."""
    name = _name("table2", reading)
    easy, conservative = (mean_of(months, policy) for policy in POLICIES)
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
    """Return the claim that neither scheme dominates; months that print the same whole numbers are ties."""
    wins = [round(month.slowdown["easy"]) - round(month.slowdown["conservative"]) for month in months]
    easy, conservative = sum(gap < 0 for gap in wins), sum(gap > 0 for gap in wins)
    decided = easy + conservative
    return claim(
        f"{name}.neither-dominates",
        "Neither scheme dominates: none wins more than 9 of 11 of the months that are decided",
        OF_MONTHS * max(easy, conservative) <= MOST_WINS * decided if decided > 1 else None,
        f"EASY is better in {easy}, conservative in {conservative}, {len(months) - decided} ties",
    )


# ------------------------------------------------------------------------------------------------ Table 3


def table_3(rows: Sequence[FactorFigures], reading: str, *, is_kth: bool) -> Table:
    """Return the factors beside the printed ones, each a mean over the seeds with half its 95 % interval."""
    lines: list[dict[str, Cell]] = []
    for row in rows:
        line: dict[str, Cell] = {"f": str(row.factor), "seeds": row.slowdown["easy"].n}
        for policy, printed in zip(POLICIES, TABLE_3[row.factor], strict=True):
            found = row.slowdown[policy]
            tolerance = WHOLE if row.factor == USERS else PER_FACTOR
            line |= _pair(policy, printed if is_kth else None, found.mean, tolerance)
            line[f"{policy}_half_interval"] = half(found)
        lines.append(line)
    columns = [Column("f", "f"), Column("seeds", "seeds"), *_pair_columns(has_interval=True)]
    name = _name("table3", reading)
    return Table(name, f"Table 3: drawn estimates, {READING_TEXTS[reading]}", columns, lines)


def half(found: Interval) -> float | None:
    """Return half the width of an interval; None where there is none."""
    return None if found.high is None or found.mean is None else found.high - found.mean


def claims_of_table_3(rows: Sequence[FactorFigures], reading: str, *, has_estimates: bool) -> list[Claim]:
    """Return what the paper concludes from the quality of estimates."""
    name = _name("table3", reading)
    means = {row.factor: {policy: row.slowdown[policy].mean or 0.0 for policy in POLICIES} for row in rows}
    helped = {policy: min(HELPFUL, key=lambda factor: means[factor][policy]) for policy in POLICIES}
    drawn = [factor for factor in means if factor != USERS]
    worst = {policy: max(means[factor][policy] for factor in drawn) for policy in POLICIES}
    kept = [factor for factor in drawn if means[factor]["conservative"] <= means[factor]["easy"]]
    return [
        claim(
            f"{name}.inaccuracy-helps",
            "Accurate estimates are not the best: some f of 4, 11, 31 beats f = 1 under both schemes",
            all(means[helped[policy]][policy] < means[1][policy] for policy in POLICIES),
            "; ".join(
                f"{_SHORT[policy]} {means[1][policy]:.1f} at f = 1, {means[best][policy]:.1f} at f = {best}"
                for policy, best in helped.items()
            ),
        ),
        claim(
            f"{name}.users-are-worse",
            "The estimates of users are worse than all that are drawn, under both schemes",
            all(means[USERS][policy] > worst[policy] for policy in POLICIES) if has_estimates else None,
            "; ".join(
                f"{_SHORT[policy]} users {means[USERS][policy]:.1f}, worst drawn {most:.1f}"
                for policy, most in worst.items()
            ),
        ),
        claim(
            f"{name}.conservative-is-better",
            "With drawn estimates conservative is no worse than EASY, at every f",
            len(kept) == len(drawn),
            f"at {len(kept)} of {len(drawn)} factors",
        ),
    ]


# ------------------------------------------------------------------------------------------------ intervals


def with_resampled(claims: Sequence[Claim], logs: Sequence[ResampledMeans], *, has_estimates: bool) -> list[Claim]:
    """Return claims with what logs made of the log's weeks say of them, as intervals.

    The verdict is of the log itself, of which there is one; how much it owes to the weeks that the log happens to have, the
    intervals say (Student's t over the resampled logs, ratios by their logarithms).
    """
    if len(logs) < 2:
        return list(claims)
    over = f"{len(logs)} logs of its weeks, drawn with replacement"
    return with_intervals(claims, _over_logs(logs, has_estimates=has_estimates), over)


def _over_logs(logs: Sequence[ResampledMeans], *, has_estimates: bool) -> dict[str, list[EvidenceItem]]:
    """Return the comparisons behind each claim, over resampled logs."""
    easy, conservative = POLICIES
    drawn = [factor for factor in logs[0] if factor != USERS]

    def ratios(one: tuple[int | str, str], other: tuple[int | str, str]) -> list[float]:
        pairs = ((log[one[0]][one[1]], log[other[0]][other[1]]) for log in logs)
        return [mine / theirs for mine, theirs in pairs if theirs]

    alike = ratios((USERS, conservative), (USERS, easy))
    found = {"table2.alike": [inside("conservative / EASY", alike, 0.9, 1.1, is_ratio=True)]}
    if not drawn:
        return found
    found["table3.inaccuracy-helps"] = [
        below(f"{_SHORT[policy]}, f = {factor} / f = 1", ratios((factor, policy), (1, policy)), 1.0, is_ratio=True)
        for policy, factor in product(POLICIES, HELPFUL)
    ]
    found["table3.conservative-is-better"] = [
        below(f"f = {factor}, conservative / EASY", ratios((factor, conservative), (factor, easy)), 1.0, is_ratio=True)
        for factor in drawn
    ]
    if has_estimates:
        worst = {policy: [max(log[factor][policy] for factor in drawn) for log in logs] for policy in POLICIES}
        found["table3.users-are-worse"] = [
            above(
                f"{_SHORT[policy]}, users / worst drawn",
                [log[USERS][policy] / most for log, most in zip(logs, worst[policy], strict=True) if most], 1.0, is_ratio=True,
            )
            for policy in POLICIES
        ]  # fmt: skip
    return found


# ------------------------------------------------------------------------------------------------ cells


def _name(table: str, variant: str) -> str:
    """Return the name of a table; the variant that the specification asks for first has no suffix."""
    return table if variant in ("fitting", "whole") else f"{table}-{variant}"


def _pair(policy: str, printed: float | None, ours: float | None, tolerance: Tolerance) -> dict[str, Cell]:
    return {
        f"{policy}_printed": printed,
        policy: ours,
        f"{policy}_verdict": tolerance.verdict(printed, ours),
    }


def _pair_columns(*, has_interval: bool = False) -> list[Column]:
    columns = []
    for policy in POLICIES:
        columns += [
            Column(f"{policy}_printed", f"{_SHORT[policy]} printed"),
            Column(policy, f"{_SHORT[policy]} ours", 1),
        ]
        if has_interval:
            columns.append(Column(f"{policy}_half_interval", "+-95 %", 1))
        columns.append(Column(f"{policy}_verdict", "verdict"))
    return columns
