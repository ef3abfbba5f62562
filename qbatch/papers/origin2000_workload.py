"""The workload behind the figures: Table 4, Figure 1, and what the paper says of its jobs, printed and drawn.

These claims are of numbers, not of policies: one holds if it is true of every month.  The generator draws a month again until
what is said of run times and memory is true of it (docs/papers/origin2000.md), so those claims check the generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

import numpy as np

from qbatch.metrics import interval
from qbatch.papers import evidence
from qbatch.papers import origin2000_printed as printed
from qbatch.papers.evidence import NO, YES
from qbatch.papers.origin2000_runs import Origin2000Figures
from qbatch.papers.record import CONTRADICTED, Cell, Claim, Column, Table
from qbatch.workloads.origin2000 import CLASSES, MONTHS, generate_month
from qbatch.workloads.origin2000.arrivals import DAY_S, HOUR_S, is_weekend
from qbatch.workloads.origin2000.month import month_record

_FIGURE_1 = "2000-03"
_LARGE = tuple(name for name in CLASSES if name.endswith("_lj"))


@dataclass(frozen=True, slots=True)
class DrawnMonth:
    """One drawn month: demands of the classes in percent of the machine, statistics by name, arrivals by hour of a weekday.

    ``ranges``: what the paper says of each statistic.
    """

    month: str
    seed: int
    procs: tuple[float, ...]
    memory: tuple[float, ...]
    statistics: dict[str, float]
    ranges: dict[str, tuple[float, float]]
    hourly: tuple[float, ...]

    def share(self, classes: Sequence[str]) -> float:
        """Return the demand of some classes for processors, in percent."""
        return sum(self.procs[CLASSES.index(name)] for name in classes)


@lru_cache(maxsize=128)
def drawn_month(month: str, seed: int) -> DrawnMonth:
    """Draw a whole month and look at it."""
    record = month_record(month, seed)
    return DrawnMonth(
        month,
        seed,
        tuple(one["procs_percent"] for one in record["classes"]),
        tuple(one["memory_percent"] for one in record["classes"]),
        {fact["name"]: fact["value"] for fact in record["facts"]},
        {fact["name"]: (fact["low"], fact["high"]) for fact in record["facts"]},
        _hourly(month, seed),
    )


def _hourly(month: str, seed: int) -> tuple[float, ...]:
    first = date(MONTHS[month].year, MONTHS[month].month, 1)
    submit = np.asarray(generate_month(month, seed=seed, warmup_days=0)["submit"])
    days = np.arange(MONTHS[month].days)
    weekdays = int(np.count_nonzero(~is_weekend(days, first)))
    on_weekdays = submit[~is_weekend(submit // DAY_S, first)]
    counts = np.bincount(on_weekdays // HOUR_S % 24, minlength=24)
    return tuple((counts / weekdays).tolist())


# ------------------------------------------------------------------------------------------------ tables


def workload_tables(drawn: Sequence[DrawnMonth]) -> list[Table]:
    """Return Table 4, Figure 1 and the statistics of the drawn months."""
    return [table_4(drawn), figure_1(drawn), statistics(drawn)]


def table_4(drawn: Sequence[DrawnMonth]) -> Table:
    """Return totals and demands as printed, added up from the printed classes, and of the drawn months."""
    rows: list[dict[str, Cell]] = []
    for name, month in MONTHS.items():
        mine = [one for one in drawn if one.month == name]
        row: dict[str, Cell] = {"month": name, "jobs": printed.TOTAL_JOBS[name], "jobs_sum": sum(month.counts)}
        overall = {"procs": month.procs_overall, "memory": month.memory_overall}
        classes = {"procs": month.procs_percent, "memory": month.memory_percent}
        for key, value in overall.items():
            row |= {key: value, f"{key}_sum": sum(classes[key])}
            row[f"{key}_drawn"] = interval([sum(getattr(one, key)) for one in mine]).mean
        for key, some in (("lj", _LARGE), ("mt_lj", ("mt_lj",)), ("lt_mj", ("lt_mj",))):
            row[key] = _printed_share(name, some)
            row[f"{key}_drawn"] = interval([one.share(some) for one in mine]).mean
        rows.append(row)
    columns = [Column("month", "month"), Column("jobs", "jobs"), Column("jobs_sum", "classes")]
    for key, heading in (("procs", "procs %"), ("memory", "memory %")):
        columns += [Column(key, heading), Column(f"{key}_sum", "classes"), Column(f"{key}_drawn", "drawn", 1)]
    for key in ("lj", "mt_lj", "lt_mj"):
        columns += [Column(key, f"{key} %"), Column(f"{key}_drawn", "drawn", 1)]
    title = "Table 4: totals and demands as printed, added up over the printed classes, and as drawn"
    return Table("table4", title, columns, rows)


def figure_1(drawn: Sequence[DrawnMonth]) -> Table:
    """Return the arrivals in each hour of a weekday of March 2000, or of the first month that was drawn."""
    month = _FIGURE_1 if any(one.month == _FIGURE_1 for one in drawn) else drawn[0].month
    rows: list[dict[str, Cell]] = []
    for hour in range(24):
        found = interval([one.hourly[hour] for one in drawn if one.month == month])
        half = None if found.high is None or found.mean is None else found.high - found.mean
        period = next(name for name, hours in printed.PERIODS.items() if hour in hours)
        rows.append({"hour": hour, "period": period, "arrivals": found.mean, "arrivals_half": half})
    columns = [Column("hour", "hour"), Column("period", "period"), Column("arrivals", "arrivals", 1)]
    columns.append(Column("arrivals_half", "+-", 1))
    return Table("figure1", f"Figure 1: arrivals in each hour, Mondays to Fridays, {month}", columns, rows)


def statistics(drawn: Sequence[DrawnMonth]) -> Table:
    """Return the smallest and the largest value of each statistic of the drawn months, beside what the paper says."""
    rows: list[dict[str, Cell]] = []
    for name, (low, high) in drawn[0].ranges.items():
        values = [one.statistics[name] for one in drawn]
        rows.append({"name": name, "low": low, "high": high, "least": min(values), "most": max(values)})
    columns = [Column("name", "statistic"), Column("low", "paper from", 2), Column("high", "to", 2)]
    columns += [Column("least", "drawn from", 3), Column("most", "to", 3)]
    notes = ["0 and 1, -1 and 0: the paper names a sign, or says that it is many"]
    return Table("statistics", "What the jobs of a month are like", columns, rows, notes)


def _printed_share(month: str, classes: Sequence[str]) -> int:
    return sum(MONTHS[month].procs_percent[CLASSES.index(name)] for name in classes)


# ------------------------------------------------------------------------------------------------ claims


def workload_claims(drawn: Sequence[DrawnMonth], runs: Sequence[Origin2000Figures]) -> list[Claim]:
    """Return the claims A (Table 4) and F (what is said of the jobs); ``runs``: where the jobs of a class were counted."""
    return [*_claims_of_table_4(drawn, runs), _claim_of_periods(drawn), *_claims_of_statements(drawn)]


def _claims_of_table_4(drawn: Sequence[DrawnMonth], runs: Sequence[Origin2000Figures]) -> list[Claim]:
    sums = [sum(month.counts) == printed.TOTAL_JOBS[name] for name, month in MONTHS.items()]
    whole = [one for one in runs if one.case.days is None]
    counted = [
        all(
            one.classes[name]["jobs"] == count
            for name, count in zip(CLASSES, MONTHS[one.case.month].counts, strict=True)
        )
        for one in whole
    ]
    gaps = [
        gap
        for month in MONTHS.values()
        for gap in (sum(month.procs_percent) - month.procs_overall, sum(month.memory_percent) - month.memory_overall)
    ]
    drawn_gaps = [
        gap
        for one in drawn
        for gap in (
            sum(one.procs) - MONTHS[one.month].procs_overall,
            sum(one.memory) - MONTHS[one.month].memory_overall,
        )
    ]
    large = [name for name in MONTHS if _printed_share(name, _LARGE) > printed.LARGE_PERCENT]
    return [
        _claim("A.counts-add-up", "The classes of Table 4 add up to its totals; the simulated months have exactly these jobs",
               sums, counted, f"{sum(sums)} of 6 printed totals, {sum(counted)} of {len(whole)} simulated months"),
        _claim("A.demands-add-up", "The demands of the classes add up to the overall demand within 2 points",
               [abs(gap) <= printed.ROUNDING_POINTS for gap in gaps],
               [abs(gap) <= printed.ROUNDING_POINTS for gap in drawn_gaps],
               f"printed: {min(gaps):+} to {max(gaps):+} points; drawn: {min(drawn_gaps):+.2f} to {max(drawn_gaps):+.2f}"),
        _claim("A.lj-over-30", "The lj demand over 30 % of the processors in four of the months, and the same months drawn",
               [len(large) == printed.LARGE_MONTHS], _large_as_printed(drawn, large),
               f"printed: in {', '.join(large)}; drawn: {_large_text(drawn)}"),
        _class_claim("A.mt_lj", drawn, "mt_lj", printed.MT_LJ_PERCENT),
        _class_claim("A.lt_mj", drawn, "lt_mj", printed.LT_MJ_PERCENT),
    ]  # fmt: skip


def _large_as_printed(drawn: Sequence[DrawnMonth], large: Sequence[str]) -> list[bool]:
    """Tell of each drawn month whether its lj demand over 30 %, in whole percents, if and only if the printed ones do."""
    return [(round(one.share(_LARGE)) > printed.LARGE_PERCENT) == (one.month in large) for one in drawn]


def _large_text(drawn: Sequence[DrawnMonth]) -> str:
    by_month = {month: [one.share(_LARGE) for one in drawn if one.month == month] for month in MONTHS}
    return ", ".join(f"{month} {min(all_):.1f} to {max(all_):.1f}" for month, all_ in by_month.items() if all_)


def _class_claim(name: str, drawn: Sequence[DrawnMonth], which: str, bounds: tuple[int, int]) -> Claim:
    """Return whether a class demands so many whole percents in every month, as printed and as drawn."""
    low, high = bounds
    shares = {month: _printed_share(month, [which]) for month in MONTHS}
    mine = [one.share([which]) for one in drawn]
    claim = _claim(
        name,
        f"The {which} demand {low} to {high} % of the processors each month",
        [low <= share <= high for share in shares.values()],
        [low <= round(share) <= high for share in mine],
        f"printed: {', '.join(f'{month} {share}' for month, share in shares.items())}; "
        f"drawn: {min(mine):.1f} to {max(mine):.1f}",
    )
    outside = {month: share for month, share in shares.items() if not low <= share <= high}
    is_as_table = all(
        (low <= round(share) <= high) == (one.month not in outside) for one, share in zip(drawn, mine, strict=True)
    )
    if not outside or not is_as_table:
        return claim
    prints = ", ".join(f"{share} % for {month}" for month, share in outside.items())
    why = f"the text says {low} to {high} %, Table 4 prints {prints}; the generated months follow the table"
    return replace(claim, verdict=CONTRADICTED, why=why)


def _claim_of_periods(drawn: Sequence[DrawnMonth]) -> Claim:
    """Return whether every hour of a busier period of weekdays has more arrivals than every hour of a quieter one."""
    findings = []
    for month in dict.fromkeys(one.month for one in drawn):
        for busier, quieter in (("peak", "intermediate"), ("intermediate", "low")):
            ratios = [_separation(one, busier, quieter) for one in drawn if one.month == month]
            findings.append(evidence.above(f"{month} {busier} / {quieter}", ratios, 1.0, is_ratio=True))
    text = (
        "Arrivals of weekdays have three periods: the quietest hour of one is busier than the busiest of the next, peak, "
        "intermediate, low"
    )
    return evidence.claim_of("F.arrival-periods", text, findings)


def _separation(one: DrawnMonth, busier: str, quieter: str) -> float:
    """Return the arrivals of the quietest hour of a busier period over those of the busiest hour of a quieter one."""
    least = min(one.hourly[hour] for hour in printed.PERIODS[busier])
    most = max(one.hourly[hour] for hour in printed.PERIODS[quieter])
    return math.inf if not most else least / most


def _claims_of_statements(drawn: Sequence[DrawnMonth]) -> list[Claim]:
    claims = []
    for name, (text, statistics_) in printed.STATEMENTS.items():
        is_inside, said = [], []
        for statistic in statistics_:
            low, high = drawn[0].ranges[statistic]
            values = [one.statistics[statistic] for one in drawn]
            is_inside += [low <= value <= high for value in values]
            said.append(f"{statistic}: {100 * min(values):.1f} to {100 * max(values):.1f} %")
        claims.append(_claim(name, text, [], is_inside, "; ".join(said)))
    return claims


def _claim(name: str, text: str, of_printed: Sequence[bool], of_drawn: Sequence[bool], numbers: str) -> Claim:
    """Return a claim that holds if it is true of every printed and every drawn month."""
    says = [YES if is_true else NO for is_true in (*of_printed, *of_drawn)]
    verdict = evidence.verdict_of(says)
    answers = {answer: says.count(answer) for answer in (YES, NO) if answer in says}
    return Claim(name, text, verdict, numbers, answers)
