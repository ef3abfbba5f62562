"""Figures 3 to 10 of Chiang and Vernon 2001 as tables: hours of wait, means over the replicas with half their 95 % intervals.

Figure 6 is of measured months after the machine's scheduler had been changed; no simulation stands behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qbatch.metrics import Interval, interval
from qbatch.metrics.per_job import Metrics
from qbatch.papers.origin2000_replicas import HOUR_S, RANGES, Number, top_of_range, values_of, whole
from qbatch.papers.origin2000_runs import BOUNDED, Origin2000Figures, by_policy
from qbatch.papers.record import Cell, Column, Table
from qbatch.workloads.origin2000 import CLASSES

SUMMARIES = {
    "figure5-months": ("Figure 5 (c) to (f): LSF* and plain backfilling, by month", ("LSF*", "FCFS-bf", "Priority-bf")),
    "figure7": ("Figure 7: alternative priorities", ("FCFS-bf", "Priority-bf", "LXF&W-bf", "SJF-bf")),
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
    ("bounded", "slowdown 60 s", BOUNDED, 2),
)
"""What is told of each month: key, heading, metric, decimals.  The second slowdown counts run times as 60 s at least."""

_SHARES: tuple[tuple[str, str, Number, str], ...] = (
    ("idle", "LSF*", lambda one: one.kept_idle, "LSF* idle"),
    *((f"placed_{policy}", policy, lambda one: one.placed, f"{policy} placed") for policy in ("EQ-5m", "EQ-0m")),
    *((f"busy_{policy}", policy, whole("utilisation_submit"), f"{policy} busy") for policy in ("LSF*", "Priority-bf")),
)
"""What is told in percent of each month: key, policy, number, heading."""

_FIGURE_4 = "2000-01"
_FIGURE_9 = "1999-11"


def all_tables(runs: Sequence[Origin2000Figures], months: Sequence[str]) -> list[Table]:
    """Return every table in the order of the figures."""
    summaries = {name: summary(runs, months, name) for name in SUMMARIES}
    return [
        figure_3(runs, months),
        figure_4(runs, months),
        by_range(runs, months, "figure5", "Figure 5 (a), (b): by range of run time", SUMMARIES["figure5-months"][1]),
        summaries["figure5-months"],
        summaries["figure7"],
        summaries["figure8"],
        by_range(
            runs,
            [the_month(months, _FIGURE_9)],
            "figure9",
            "Figure 9: equal shares, by range of run time",
            SUMMARIES["figure10"][1][:3],
        ),
        summaries["figure10"],
        summaries["reservations"],
        shares(runs, months),
    ]


def figure_3(runs: Sequence[Origin2000Figures], months: Sequence[str]) -> Table:
    """Return the mean wait of each class under LSF*, a column for each month."""
    rows: list[dict[str, Cell]] = []
    for name in CLASSES:
        row: dict[str, Cell] = {"class": name}
        for month in months:
            row |= _cells(month, _over(by_policy(runs, month, "LSF*"), name, "wait_mean_s", "classes"), HOUR_S)
        rows.append(row)
    columns = [Column("class", "class")]
    for month in months:
        columns += [Column(month, month, 1), Column(f"{month}_half", "+-", 1)]
    return Table("figure3", "Figure 3: mean wait in hours of each class under LSF*", columns, rows)


def figure_4(runs: Sequence[Origin2000Figures], months: Sequence[str]) -> Table:
    """Return how the 5 % of jobs that wait longest under LSF* are spread over the ranges of run time."""
    month = the_month(months, _FIGURE_4)
    mine = by_policy(runs, month, "LSF*")
    rows: list[dict[str, Cell]] = []
    for label in RANGES:
        waits = [top_of_range(one, label) for one in mine]
        jobs = interval([float(len(each)) for each in waits])
        longest = interval([max(each) for each in waits if each])
        rows.append({"range": label, **_cells("jobs", jobs), **_cells("longest", longest, HOUR_S)})
    columns = [
        Column("range", "run time"),
        Column("jobs", "jobs", 1),
        Column("jobs_half", "+-", 1),
        Column("longest", "longest wait h", 1),
        Column("longest_half", "+-", 1),
    ]
    return Table("figure4", f"Figure 4: the 5 % of jobs that wait longest under LSF*, {month}", columns, rows)


def by_range(
    runs: Sequence[Origin2000Figures], months: Sequence[str], name: str, title: str, policies: Sequence[str]
) -> Table:
    """Return mean wait, 95th percentile and slowdown by range of run time, a line for each month and range."""
    measures = [measure for measure in MEASURES if measure[0] != "max"]
    rows: list[dict[str, Cell]] = []
    for month in months:
        for label in RANGES:
            row: dict[str, Cell] = {"month": month, "range": label}
            for policy in policies:
                for key, _, metric, _ in measures:
                    found = _over(by_policy(runs, month, policy), label, metric, "ranges")
                    row |= _cells(f"{policy}_{key}", found, divisor_of(metric))
            rows.append(row)
    columns = [Column("month", "month"), Column("range", "run time")]
    for key, heading, _, decimals in measures:
        columns += [Column(f"{policy}_{key}", f"{policy} {heading}", decimals) for policy in policies]
    return Table(name, title, columns, rows)


def summary(runs: Sequence[Origin2000Figures], months: Sequence[str], name: str) -> Table:
    """Return the four measures of some policies, a line for each month and policy."""
    title, policies = SUMMARIES[name]
    rows = [_summary_row(by_policy(runs, month, policy), month, policy) for month in months for policy in policies]
    columns = [Column("month", "month"), Column("policy", "policy"), Column("replicas", "replicas")]
    for key, heading, _, decimals in MEASURES:
        columns += [Column(key, heading, decimals), Column(f"{key}_half", "+-", decimals)]
    return Table(name, title, columns, rows)


def _summary_row(replicas: Sequence[Origin2000Figures], month: str, policy: str) -> dict[str, Cell]:
    row: dict[str, Cell] = {"month": month, "policy": policy, "replicas": len(replicas)}
    for key, _, metric, _ in MEASURES:
        values = interval([float(value) for one in replicas if (value := one.whole[metric]) is not None])
        row |= _cells(key, values, divisor_of(metric))
    return row


def shares(runs: Sequence[Origin2000Figures], months: Sequence[str]) -> Table:
    """Return in percent: what stood idle under specials, which jobs had a place at once, how busy the machine was."""
    rows: list[dict[str, Cell]] = []
    for month in months:
        row: dict[str, Cell] = {"month": month}
        for key, policy, number, _ in _SHARES:
            row |= _cells(key, interval([100 * value for value in values_of(runs, month, policy, number)]))
        rows.append(row)
    columns = [Column("month", "month")]
    for key, _, _, heading in _SHARES:
        columns += [Column(key, heading, 1), Column(f"{key}_half", "+-", 1)]
    notes = ["busy: up to the last submission, the warm-up included"]
    return Table("shares", "Idle under specials, placed at once, busy, in percent", columns, rows, notes)


def divisor_of(metric: str) -> float:
    """Return what a metric is divided by to be told: waits in seconds become hours."""
    return HOUR_S if metric.endswith("_s") else 1.0


def _over(replicas: Sequence[Origin2000Figures], label: str, metric: str, where: str) -> Interval:
    """Return the interval of a metric of one class or range over the replicas that have such jobs."""
    return interval(list(read_group(replicas, label, metric, where)))


def read_group(replicas: Sequence[Origin2000Figures], label: str, metric: str, where: str) -> Iterator[float]:
    """Give a metric of one class (``where`` is classes) or range of run time, for each replica that has such jobs."""
    for one in replicas:
        groups: dict[str, Metrics] = one.classes if where == "classes" else one.ranges
        value = groups[label][metric] if label in groups else None
        if value is not None:
            yield float(value)


def _cells(key: str, found: Interval, divisor: float = 1.0) -> dict[str, Cell]:
    """Return a mean and half its interval; None where there is none."""
    if found.mean is None:
        return {key: None, f"{key}_half": None}
    half = None if found.high is None else (found.high - found.mean) / divisor
    return {key: found.mean / divisor, f"{key}_half": half}


def the_month(months: Sequence[str], wanted: str) -> str:
    """Return the month that the figure shows, or the first of those that were run."""
    return wanted if wanted in months else months[0]
