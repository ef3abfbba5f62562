"""The claims of Chiang and Vernon 2001, section 4, on the generated months: docs/spec/papers.md, R004, rows (1) to (9).

One function for each row.  Every claim is a set of comparisons over replicas (``evidence``); bounds that the paper
leaves open ("similar", "comparable") are readings of ours and stand in the text of the claim.  A claim of every month tells
beside its verdict what the same comparisons say over all months together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

from qbatch.metrics import interval
from qbatch.papers import evidence
from qbatch.papers import origin2000_replicas as replicas
from qbatch.papers.evidence import EvidenceItem, claim_of
from qbatch.papers.origin2000_replicas import Number
from qbatch.papers.origin2000_runs import Origin2000Figures
from qbatch.papers.origin2000_why import WHY
from qbatch.papers.record import Claim

Runs = Sequence[Origin2000Figures]
Months = Sequence[str]

HIGH_LOAD = ("1999-12", "2000-02")
"""The months that Table 4 marks as of high load."""

VERY_LONG = ("2000-02", "2000-03")
"""The months in which the paper saw extremely long waits under equal shares."""

MEAN, P95, LONGEST, SLOWDOWN = "wait_mean_s", "wait_p95_s", "wait_max_s", "slowdown_mean"
WAITS = {"mean wait": MEAN, "95th percentile": P95, "max wait": LONGEST}
SERVICE = {"mean wait": MEAN, "95th percentile": P95, "slowdown": SLOWDOWN}
"""What every policy that favours short jobs is held to; the raw slowdown, as in the paper."""

DEPTHS = ("2", "4", "8", "16", "all")
"""Numbers of reservations, beside one."""

_HOURS = 1 / replicas.HOUR_S
_ALL = "all months"
_SIMILAR = 1.25
_COMPARABLE = 2.0
_VERY_LONG_JOBS = ">100h"
_SHORT_RANGES = ("<1m", "1-10m", "10m-1h", "1-10h", "10-50h")


def all_claims(runs: Runs, months: Months) -> list[Claim]:
    """Return every claim with its verdict, in the order of R004."""
    return [claim for row in ROWS for claim in row(runs, months)]


def _ratios_within(
    runs: Runs, months: Months, policies: tuple[str, str], measures: Mapping[str, str], bound: float
) -> list[EvidenceItem]:
    """Compare two policies over all months: the ratio of each measure lies within the bound, either way."""
    one, other = policies
    return [
        evidence.inside(
            f"{one} / {other}, {name}",
            replicas.overall_ratios(runs, months, one, other, replicas.whole(key)), 1 / bound, bound, is_ratio=True,
        )
        for name, key in measures.items()
    ]  # fmt: skip


def row_1(runs: Runs, months: Months) -> list[Claim]:
    """LSF* waits longest; the two plain backfill policies are alike."""
    pairs = [("LSF*", other, name, key) for other in ("FCFS-bf", "Priority-bf") for name, key in WAITS.items()]
    alike = _ratios_within(runs, months, ("Priority-bf", "FCFS-bf"), WAITS, _SIMILAR)
    return [
        _monthly_claim(
            "1.lsf-is-worse",
            "LSF* waits longer than FCFS-bf and Priority-bf: mean, max and 95 %, every month",
            runs,
            months,
            pairs,
        ),
        _claim(
            "1.backfills-are-alike", "FCFS-bf and Priority-bf lie within 25 % of each other, over the months", alike
        ),
    ]


def row_2(runs: Runs, months: Months) -> list[Claim]:
    """Little of the machine is idle under specials."""
    found = [
        evidence.below(label, values, 0.04, " %", 100.0)
        for label, values in _by_month(runs, months, "LSF*", lambda one: one.kept_idle).items()
    ]
    text = "LSF*: less than 4 % of all processor time is idle under a special, every month"
    return [_claim("2.idle-under-specials", text, found[:-1], together=found[-1:])]


def row_3(runs: Runs, months: Months) -> list[Claim]:
    """LSF* varies more from month to month."""
    lsf, priority = (variations(runs, months, policy) for policy in ("LSF*", "Priority-bf"))
    gap = [one - other for one, other in zip(lsf, priority, strict=False)] if len(months) > 1 else []
    found = [evidence.above("LSF* less Priority-bf, mean over the classes", gap, 0.0)] if gap else []
    note = " and ".join(
        f"{name} {evidence.written(interval(values))}" for name, values in (("LSF*", lsf), ("Priority-bf", priority))
    )
    text = "Mean waits of classes vary more from month to month (standard deviation / mean) under LSF* than Priority-bf"
    return [_claim("3.lsf-varies-more", text, found, note)]


def variations(runs: Runs, months: Months, policy: str) -> list[float]:
    """Return for each replica the variation of a class's mean wait over the months, averaged over the classes."""
    seeds = sorted({one.case.seed for one in runs if one.case.policy == policy})
    found = []
    for seed in seeds:
        mine = [one for one in runs if one.case.policy == policy and one.case.seed == seed and one.case.month in months]
        names = sorted(set.intersection(*(set(one.classes) for one in mine)))
        each = []
        for name in names:
            waits = [float(one.classes[name]["wait_mean_s"] or 0) for one in mine]
            if any(waits):
                each.append(pstdev(waits) / fmean(waits))
        if each:
            found.append(fmean(each))
    return found


def row_4(runs: Runs, months: Months) -> list[Claim]:
    """Short jobs first: better than Priority-bf in all but the longest wait."""
    pairs = [("Priority-bf", policy, name, key) for policy in ("LXF&W-bf", "SJF-bf") for name, key in SERVICE.items()]
    longest = [
        evidence.above(
            f"{policy} - Priority-bf, max wait",
            replicas.overall_differences(runs, months, policy, "Priority-bf", replicas.whole(LONGEST)), 0.0, " h", _HOURS,
        )
        for policy in ("LXF&W-bf", "SJF-bf")
    ]  # fmt: skip
    won = [
        evidence.above(
            "share of months and measures in which SJF-bf is better", _won(runs, months, list(SERVICE.values())), 0.5
        )
    ]
    starved = [_difference(runs, month, "SJF-bf", "LXF&W-bf", "max wait", LONGEST) for month in months]
    return [
        _monthly_claim(
            "4.short-first-is-better", "LXF&W-bf and SJF-bf beat Priority-bf in mean wait, 95 % and slowdown, every month",
            runs, months, pairs,
        ),
        _claim("4.not-in-max-wait", "They do not beat it in max wait: over the months theirs is longer", longest),
        _claim("4.sjf-mostly-better", "SJF-bf is better than LXF&W-bf in most months and measures", won),
        _any_claim("4.sjf-starves", "SJF-bf has a longer max wait than LXF&W-bf in at least one month (the paper: February)",
                   starved),
    ]  # fmt: skip


def _won(runs: Runs, months: Months, keys: Sequence[str]) -> list[float]:
    """Return for each replica the share of months and measures in which SJF-bf lies below LXF&W-bf; a tie is half of one."""
    rows = replicas.pairs_by_replica(runs, months, "SJF-bf", "LXF&W-bf", [replicas.whole(key) for key in keys])
    return [fmean(1.0 if sjf < lxf else 0.5 if sjf == lxf else 0.0 for sjf, lxf in row) for row in rows]


def row_5(runs: Runs, months: Months) -> list[Claim]:
    """More reservations do not help."""
    found = [
        evidence.above(
            f"D={depth} / D=1, {name}",
            replicas.overall_ratios(runs, months, f"Priority-bf, D={depth}", "Priority-bf", replicas.whole(key)), 0.95,
            is_ratio=True,
        )
        for depth in DEPTHS
        for name, key in SERVICE.items()
    ]  # fmt: skip
    text = (
        "More than one reservation does not help: Priority-bf with 2, 4, 8, 16 or all is no more than 5 % better, over the "
        "months"
    )
    longest = [
        evidence.above(
            f"D={depth} / D=1, max wait",
            replicas.overall_ratios(runs, months, f"Priority-bf, D={depth}", "Priority-bf", replicas.whole(LONGEST)),
            0.95,
            is_ratio=True,
        )
        for depth in DEPTHS
    ]
    note = f"not judged: {'; '.join(one.text() for one in longest)}"
    return [_claim("5.one-reservation-is-enough", text, found, note)]


def row_6(runs: Runs, months: Months) -> list[Claim]:
    """Immediate service: short jobs gain much, the others lose little."""
    slowdown = replicas.whole(SLOWDOWN)
    falls = {month: replicas.ratios(runs, month, "LXF&W-bf", "/immediate", slowdown) for month in months}
    falls[_ALL] = replicas.overall_ratios(runs, months, "LXF&W-bf", "/immediate", slowdown)
    fall = [evidence.above(label, values, 2.0, is_ratio=True) for label, values in falls.items()]
    kept = {
        name: replicas.overall_ratios(runs, months, "/immediate", "LXF&W-bf", replicas.longer(key))
        for name, key in WAITS.items()
    }
    unharmed = [
        evidence.below(f"/immediate / none, {name}", values, 1.1, is_ratio=True) for name, values in kept.items()
    ]
    unchanged = [
        evidence.inside(f"/immediate / none, {name}", values, 0.9, 1.1, is_ratio=True) for name, values in kept.items()
    ]
    return [
        _claim("6.slowdown-falls", "Immediate service makes the mean slowdown less than half, every month", fall[:-1],
               together=fall[-1:]),
        _claim("6.others-unharmed", "Jobs above 1 min wait no more than 10 % longer: mean, 95 % and max, over the months",
               unharmed),
        _claim("6.others-unchanged", "Jobs above 1 min wait the same within 10 %: mean, 95 % and max, over the months",
               unchanged),
        _monthly_claim("6.better-than-soon", "/immediate has a lower mean slowdown than /soon, every month",
                       runs, months, [("/soon", "/immediate", "slowdown", SLOWDOWN)]),
    ]  # fmt: skip


def row_7(runs: Runs, months: Months) -> list[Claim]:
    """Equal shares against immediate service."""
    names = {"mean wait": MEAN, "max wait": LONGEST, "slowdown": SLOWDOWN}
    comparable = _ratios_within(runs, months, ("EQ-5m", "/immediate"), names, _COMPARABLE)
    longest = replicas.in_range(_VERY_LONG_JOBS, LONGEST)
    high = [
        _difference(runs, month, "EQ-5m", "/immediate", f"max wait {_VERY_LONG_JOBS}", "", longest)
        for month in months
        if month in VERY_LONG
    ]
    cut = [
        evidence.above(
            f"EQ-5m - EQ-5m/>50hr, max wait {_VERY_LONG_JOBS}",
            replicas.overall_differences(runs, months, "EQ-5m", "EQ-5m/>50hr", longest), 0.0, " h", _HOURS,
        )
    ]  # fmt: skip
    placed = [
        evidence.above(label, values, 0.99, " %", 100.0)
        for label, values in _by_month(runs, months, "EQ-5m", lambda one: one.placed).items()
    ]
    return [
        _monthly_claim("7.p95-is-lower", "EQ-5m has a lower 95th percentile of wait than /immediate, every month",
                       runs, months, [("/immediate", "EQ-5m", "95th percentile", P95)]),
        _claim("7.rest-is-comparable", "Mean wait, max wait and slowdown differ by less than twice, over the months",
               comparable),
        _claim("7.longest-jobs-wait", "In February and March jobs above 100 h wait at most far longer under EQ-5m", high),
        _claim("7.over-50h-cuts-it", "EQ-5m/>50hr shortens the longest wait of jobs above 100 h, over the months", cut),
        _claim("7.interval-hardly-matters", "EQ-0m is as EQ-5m: waits within 10 % or 5 min, slowdown within 10 %",
               _interval_matters(runs, months)),
        _claim("7.placed-at-once", "EQ-5m gives more than 99 % of the jobs a place when they arrive, every month",
               placed[:-1], together=placed[-1:]),
    ]  # fmt: skip


def _interval_matters(runs: Runs, months: Months) -> list[EvidenceItem]:
    found = []
    for name, key in (*WAITS.items(), ("slowdown", SLOWDOWN)):
        number = replicas.whole(key)
        ratio = evidence.inside(
            f"EQ-0m / EQ-5m, {name}",
            replicas.overall_ratios(runs, months, "EQ-0m", "EQ-5m", number),
            0.9,
            1.1,
            is_ratio=True,
        )
        gaps = replicas.overall_differences(runs, months, "EQ-0m", "EQ-5m", number)
        gap = evidence.inside(f"EQ-0m - EQ-5m, {name}", gaps, -300.0, 300.0, " s")
        found.append(gap if key != SLOWDOWN and ratio.says != evidence.YES else ratio)
    return found


def row_8(runs: Runs, months: Months) -> list[Claim]:
    """High load makes policies differ more."""
    high = [month for month in months if month in HIGH_LOAD]
    low = [month for month in months if month not in HIGH_LOAD]
    found = []
    for first, second in (("LSF*", "Priority-bf"), ("Priority-bf", "/immediate"), ("/immediate", "EQ-5m")):
        number = replicas.whole(MEAN)
        at_high = replicas.overall_differences(runs, high, first, second, number)
        at_low = replicas.overall_differences(runs, low, first, second, number)
        gaps = [abs(one) - abs(other) for one, other in zip(at_high, at_low, strict=False)]
        if gaps:
            found.append(evidence.above(f"{first} against {second}, mean wait", gaps, 0.0, " h", _HOURS))
    text = "Policies differ more in December and February than in the other months (mean wait, high less low)"
    return [_claim("8.high-load-differs-more", text, found)]


def row_9(runs: Runs, months: Months) -> list[Claim]:
    """How long the waits under LSF* are, and whose."""
    most = [
        evidence.above(label, values, 0.5, " %", 100.0)
        for label, values in _by_month(runs, months, "LSF*", _hours_share).items()
    ]
    longest = [
        evidence.above(label, values, 100 * replicas.HOUR_S, " h", _HOURS)
        for label, values in _by_month(runs, months, "LSF*", replicas.whole(LONGEST)).items()
    ]
    scattered = [
        evidence.above(
            f"{label}, share of the 5 %",
            replicas.overall_values(runs, months, "LSF*", partial(_top_share, label=label)), 0.0, " %", 100.0,
        )
        for label in _SHORT_RANGES
    ]  # fmt: skip
    return [
        _claim("9.hours-or-tens", "LSF*: most classes wait hours or tens of hours (1 to 100) on average, every month",
               most[:-1], together=most[-1:]),
        _claim("9.max-hundreds", "LSF*: the longest wait is above 100 h, every month", longest[:-1],
               together=longest[-1:]),
        _claim("9.at-all-run-times", "LSF*: the 5 % that wait longest are of every range of run time, below 1 min too",
               scattered),
    ]  # fmt: skip


def _hours_share(one: Origin2000Figures) -> float:
    """Return the share of the classes whose mean wait is 1 to 100 hours."""
    waits = [float(each["wait_mean_s"] or 0) / replicas.HOUR_S for each in one.classes.values()]
    return sum(1 <= wait < 100 for wait in waits) / len(waits)


def _top_share(one: Origin2000Figures, label: str) -> float:
    """Return the share of one range of run time among the 5 % that waited longest."""
    return len(replicas.top_of_range(one, label)) / len(one.top) if one.top else 0.0


ROWS: tuple[Callable[[Runs, Months], list[Claim]], ...] = (
    row_1, row_2, row_3, row_4, row_5, row_6, row_7, row_8, row_9,
)  # fmt: skip
"""The rows of R004 in order."""


# ------------------------------------------------------------------------------------------------ helpers


def _claim(
    name: str, text: str, findings: Sequence[EvidenceItem], note: str = "", together: Sequence[EvidenceItem] = ()
) -> Claim:
    return claim_of(name, text, findings, why=WHY.get(name, ""), note=note, together=together)


def _monthly_claim(
    name: str, text: str, runs: Runs, months: Months, pairs: Sequence[tuple[str, str, str, str]]
) -> Claim:
    """Return the claim that in every month the first policy of each pair has more of a measure (its name, its key)."""
    found = [_difference(runs, month, *pair) for month in months for pair in pairs]
    together = []
    for first, second, measure, key in pairs:
        gaps = replicas.overall_differences(runs, months, first, second, replicas.whole(key))
        together.append(evidence.above(f"{first} - {second}, {measure}", gaps, 0.0, *_unit(key)))
    return _claim(name, text, found, together=together)


def _by_month(runs: Runs, months: Months, policy: str, number: Number) -> dict[str, list[float]]:
    """Return a number of the replicas by month, and last its mean over the months."""
    by_month = {month: replicas.values_of(runs, month, policy, number) for month in months}
    return {**by_month, _ALL: replicas.overall_values(runs, months, policy, number)}


def _any_claim(name: str, text: str, findings: Sequence[EvidenceItem]) -> Claim:
    """Return a claim that one comparison is enough for: the best of them decides."""
    says = [one.says for one in findings]
    decisive = [one for one in findings if one.says == evidence.YES]
    if not decisive and evidence.OPEN in says:
        decisive = [one for one in findings if one.says == evidence.OPEN]
    claim = _claim(name, text, decisive or findings)
    return replace(claim, answers=evidence.answers_of(findings))


def _difference(
    runs: Runs, month: str, first: str, second: str, name: str, key: str, number: Number | None = None
) -> EvidenceItem:
    """Return whether the first is above the second in a month; waits in hours."""
    values = replicas.differences(runs, month, first, second, number or replicas.whole(key))
    return evidence.above(f"{month} {first} - {second}, {name}", values, 0.0, *_unit(key))


def _unit(key: str) -> tuple[str, float]:
    return ("", 1.0) if key == SLOWDOWN else (" h", _HOURS)
