"""How a claim is tested over replicas: paired intervals, one comparison at a time, and the verdict they add up to.

A comparison says *yes* where the whole 95 % interval lies on the claimed side, *no* where it lies wholly on the other side, and
*open* where it reaches over the bound, or where there is only one replica.  A claim of several comparisons holds if all say
yes, does not hold if one says no, and else is not decidable.  Ratios are averaged, and their intervals made, on a scale of
logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from qbatch.metrics import Interval, interval
from qbatch.papers.origin2000_runs import RunFigures, by_policy
from qbatch.papers.record import FAILS, HOLDS, UNCHECKED, UNDECIDED, Claim

_MOST_RATIO = 1000.0
YES, NO, OPEN = "yes", "no", "open"

HOUR_S = 3600.0
RANGES = {
    "<1m": 60.0, "1-10m": 600.0, "10m-1h": 3600.0, "1-10h": 36_000.0, "10-50h": 180_000.0, "50-100h": 360_000.0,
    ">100h": math.inf,
}  # fmt: skip
"""The ranges of run time of the figures, and where each ends, in seconds; one that lies on an end belongs to the next."""

Number = Callable[[RunFigures], float | None]
"""What is read of one run."""

_Told = TypeVar("_Told")


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One comparison: what is compared, what it says, and the interval that says so."""

    label: str
    says: str
    found: Interval
    unit: str = ""
    factor: float = 1.0

    def text(self) -> str:
        """Return ``1999-12 mean wait 2.1 h [1.8, 2.4]``."""
        return f"{self.label} {written(self.found, self.unit, self.factor)}"


def written(found: Interval, unit: str = "", factor: float = 1.0) -> str:
    """Return a mean with its interval."""
    if found.mean is None:
        return "-"
    mean = f"{_short(found.mean * factor)}{unit}"
    if found.low is None or found.high is None:
        return mean
    return f"{mean} [{_short(found.low * factor)}, {_short(found.high * factor)}]"


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def above(
    label: str, values: Sequence[float], bound: float, unit: str = "", factor: float = 1.0, *, is_ratio: bool = False
) -> EvidenceItem:
    """Return whether the values of the replicas lie above a bound."""
    found = _interval(values, is_ratio=is_ratio)
    says = _says(found, lambda low, _: low > bound, lambda _, high: high < bound)
    return EvidenceItem(label, says, found, unit, factor)


def below(
    label: str, values: Sequence[float], bound: float, unit: str = "", factor: float = 1.0, *, is_ratio: bool = False
) -> EvidenceItem:
    """Return whether the values of the replicas lie below a bound."""
    found = _interval(values, is_ratio=is_ratio)
    says = _says(found, lambda _, high: high < bound, lambda low, _: low > bound)
    return EvidenceItem(label, says, found, unit, factor)


def inside(
    label: str, values: Sequence[float], low: float, high: float, unit: str = "", *, is_ratio: bool = False
) -> EvidenceItem:
    """Return whether the values of the replicas lie between two bounds."""
    found = _interval(values, is_ratio=is_ratio)
    says = _says(
        found, lambda least, most: low <= least and most <= high, lambda least, most: most < low or least > high
    )
    return EvidenceItem(label, says, found, unit)


def _says(found: Interval, is_yes: Callable[[float, float], bool], is_no: Callable[[float, float], bool]) -> str:
    if found.low is None or found.high is None:
        return OPEN
    return YES if is_yes(found.low, found.high) else NO if is_no(found.low, found.high) else OPEN


def _interval(values: Sequence[float], *, is_ratio: bool) -> Interval:
    return ratio_interval(values) if is_ratio else interval(values)


def ratio_interval(values: Sequence[float]) -> Interval:
    """Return the interval of ratios by their logarithms: the geometric mean, and bounds that a / b and b / a agree on.

    A ratio beyond a thousand or below a thousandth counts as that much, so that a 0 has a place.
    """
    found = interval([math.log(min(max(value, 1 / _MOST_RATIO), _MOST_RATIO)) for value in values])
    mean, low, high = (None if bound is None else math.exp(bound) for bound in (found.mean, found.low, found.high))
    return Interval(mean, low, high, found.n)


def verdict_of(says: Sequence[str]) -> str:
    """Return what several comparisons add up to."""
    if not says:
        return UNCHECKED
    if NO in says:
        return FAILS
    return HOLDS if all(one == YES for one in says) else UNDECIDED


def claim_of(
    name: str,
    text: str,
    findings: Sequence[EvidenceItem],
    *,
    why: str = "",
    note: str = "",
    together: Sequence[EvidenceItem] = (),
    most: int = 4,
) -> Claim:
    """Return a claim that holds if all its comparisons say yes; ``why`` explains one that does not.

    The numbers are those of the comparisons, those that speak against it first.  ``together``: what the comparisons say over
    all months together, where the claim is of every single one.
    """
    verdict = verdict_of([one.says for one in findings])
    ordered = _against_first(findings)
    is_cut = len(ordered) > most + 2
    numbers = "; ".join(one.text() for one in (ordered[:most] if is_cut else ordered)) or "no such runs"
    if is_cut:
        numbers += f"; and {len(ordered) - most} more"
    if note:
        numbers += f"; {note}"
    return Claim(
        name,
        text,
        verdict,
        numbers,
        answers_of(findings),
        _together(together),
        why if verdict == FAILS else "",
    )


def answers_of(findings: Sequence[EvidenceItem]) -> dict[str, int]:
    """Return how many comparisons say what, without those answers that none gives."""
    says = [one.says for one in findings]
    return {answer: says.count(answer) for answer in (YES, NO, OPEN) if answer in says}


def _against_first(findings: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    return sorted(findings, key=lambda one: (NO, OPEN, YES).index(one.says))


def _together(findings: Sequence[EvidenceItem]) -> str:
    counts = ", ".join(f"{count} {answer}" for answer, count in answers_of(findings).items())
    return f"{counts}: {'; '.join(one.text() for one in _against_first(findings))}" if findings else ""


# ------------------------------------------------------------------------------------------------ numbers


def whole(key: str) -> Number:
    """Return the reader of a metric over all jobs of the month."""
    return lambda one: _as_float(one.whole.get(key))


def longer(key: str) -> Number:
    """Return the reader of a metric over the jobs that ran more than a minute."""
    return lambda one: _as_float(one.longer.get(key))


def in_range(label: str, key: str) -> Number:
    """Return the reader of a metric over the jobs of one range of run time."""
    return lambda one: _as_float(one.ranges.get(label, {}).get(key))


def top_of_range(one: RunFigures, label: str) -> list[float]:
    """Return the waits in seconds of those of the 5 % that waited longest whose run time lies in a range."""
    labels = list(RANGES)
    place = labels.index(label)
    least = RANGES[labels[place - 1]] if place else 0.0
    return [wait_s for run_s, wait_s in one.top if least <= run_s < RANGES[label]]


def _as_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def differences(runs: Sequence[RunFigures], month: str, first: str, second: str, number: Number) -> list[float]:
    """Return first - second for each replica of a month that has both."""
    return [one - other for one, other in _pairs(runs, month, first, second, number).values()]


def ratios(runs: Sequence[RunFigures], month: str, first: str, second: str, number: Number) -> list[float]:
    """Return first / second for each replica of a month; a replica where the second is 0 is left out."""
    return [one / other for one, other in _pairs(runs, month, first, second, number).values() if other]


def values_of(runs: Sequence[RunFigures], month: str, policy: str, number: Number) -> list[float]:
    """Return a number of each replica of a month under a policy that has it."""
    return list(_values(runs, month, policy, number).values())


def overall_values(runs: Sequence[RunFigures], months: Sequence[str], policy: str, number: Number) -> list[float]:
    """Return for each replica the mean of a number over the months (see ``_by_replica``)."""
    return [_mean(row) for row in _by_replica([_values(runs, month, policy, number) for month in months])]


def overall_ratios(
    runs: Sequence[RunFigures], months: Sequence[str], first: str, second: str, number: Number
) -> list[float]:
    """Return for each replica the mean over the months under the first, divided by that under the second."""
    found = []
    for row in _by_replica([_pairs(runs, month, first, second, number) for month in months]):
        other = math.fsum(pair[1] for pair in row)
        if other:
            found.append(math.fsum(pair[0] for pair in row) / other)
    return found


def overall_differences(
    runs: Sequence[RunFigures], months: Sequence[str], first: str, second: str, number: Number
) -> list[float]:
    """Return for each replica the mean over the months of first - second."""
    rows = _by_replica([_pairs(runs, month, first, second, number) for month in months])
    return [_mean([one - other for one, other in row]) for row in rows]


def pairs_by_replica(
    runs: Sequence[RunFigures], months: Sequence[str], first: str, second: str, numbers: Sequence[Number]
) -> list[list[tuple[float, float]]]:
    """Return for each replica the pairs of all numbers in all months."""
    return _by_replica([_pairs(runs, month, first, second, number) for month in months for number in numbers])


def _by_replica(columns: Sequence[Mapping[int, _Told]]) -> list[list[_Told]]:
    """Return for each seed what the columns, one a month, tell of it: the same seed in all of them.

    A month of which no replica tells anything is left out; then a replica that lacks one of the others.
    """
    known = [column for column in columns if column]
    seeds = [seed for seed in known[0] if all(seed in column for column in known)] if known else []
    return [[column[seed] for column in known] for seed in seeds]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _values(runs: Sequence[RunFigures], month: str, policy: str, number: Number) -> dict[int, float]:
    """Return a number by seed, of the replicas that have it."""
    found = {one.case.seed: number(one) for one in by_policy(runs, month, policy)}
    return {seed: value for seed, value in found.items() if value is not None}


def _pairs(
    runs: Sequence[RunFigures], month: str, first: str, second: str, number: Number
) -> dict[int, tuple[float, float]]:
    """Return a number under two policies by seed, of the replicas that have both."""
    others = _values(runs, month, second, number)
    mine = _values(runs, month, first, number)
    return {seed: (value, others[seed]) for seed, value in mine.items() if seed in others}
