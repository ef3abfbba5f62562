"""Tests of a claim over replicas: comparisons by paired intervals, and their common verdict.

A comparison says *yes* if the whole 95 % interval lies on the claimed side, and *no* if it lies on
the other side.  It is *open* if the interval contains the bound, or if there is only one replica.
A claim of several comparisons holds if all say yes, does not hold if one says no, and else is not
decidable.  Ratios are averaged, and their intervals made, on a scale of logarithms.  If they are
shown as changes in percent (``is_change``), so are the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from qbatch.metrics import Interval, interval
from qbatch.papers.record import FAILS, HOLDS, UNCHECKED, UNDECIDED, Claim
from qbatch.papers.replicas import Values, listed

_MOST_RATIO = 1000.0
_SHOWN = 4
"""Comparisons shown with a claim, if there are many."""

YES, NO, OPEN = "yes", "no", "open"


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One comparison: its label, its answer, and the interval behind the answer."""

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


class Scale(TypedDict, total=False):
    """Whether values are ratios, averaged by their logarithms, and whether they are shown as
    changes in percent."""

    is_ratio: bool
    is_change: bool


def above(
    label: str,
    values: Values | Sequence[float],
    bound: float,
    unit: str = "",
    factor: float = 1.0,
    **scale: Unpack[Scale],
) -> EvidenceItem:
    """Return whether the values of the replicas lie above a bound."""
    found = _interval(values, scale)
    says = _says(found, lambda low, _: low > bound, lambda _, high: high < bound)
    return EvidenceItem(label, says, found, unit, factor)


def below(
    label: str,
    values: Values | Sequence[float],
    bound: float,
    unit: str = "",
    factor: float = 1.0,
    **scale: Unpack[Scale],
) -> EvidenceItem:
    """Return whether the values of the replicas lie below a bound."""
    item = above(label, values, bound, unit, factor, **scale)
    return replace(item, says={YES: NO, NO: YES, OPEN: OPEN}[item.says])


def inside(
    label: str,
    values: Values | Sequence[float],
    low: float,
    high: float,
    unit: str = "",
    **scale: Unpack[Scale],
) -> EvidenceItem:
    """Return whether the values of the replicas lie between two bounds."""
    found = _interval(values, scale)
    says = _says(
        found,
        lambda least, most: low <= least and most <= high,
        lambda least, most: most < low or least > high,
    )
    return EvidenceItem(label, says, found, unit)


def _says(
    found: Interval, is_yes: Callable[[float, float], bool], is_no: Callable[[float, float], bool]
) -> str:
    if found.low is None or found.high is None:
        return OPEN
    return YES if is_yes(found.low, found.high) else NO if is_no(found.low, found.high) else OPEN


def _interval(values: Values | Sequence[float], scale: Scale) -> Interval:
    if scale.get("is_change"):
        return change_interval(values)
    return ratio_interval(values) if scale.get("is_ratio") else interval(listed(values))


def ratio_interval(values: Values | Sequence[float]) -> Interval:
    """Return the interval of ratios by their logarithms: the geometric mean, and bounds on which a
    / b and b / a agree.

    A ratio above a thousand or below a thousandth counts as a thousand or a thousandth, so that 0
    is possible.
    """
    found = interval(
        [math.log(min(max(value, 1 / _MOST_RATIO), _MOST_RATIO)) for value in listed(values)]
    )
    mean, low, high = (
        None if bound is None else math.exp(bound) for bound in (found.mean, found.low, found.high)
    )
    return Interval(mean, low, high, found.n)


def change_interval(ratios: Values | Sequence[float]) -> Interval:
    """Return the interval of ratios by their logarithms, as changes in percent: -10 for 0.9."""
    found = ratio_interval(ratios)
    mean, low, high = (
        None if bound is None else 100 * (bound - 1)
        for bound in (found.mean, found.low, found.high)
    )
    return Interval(mean, low, high, found.n)


def verdict_of(says: Sequence[str]) -> str:
    """Return the verdict of several comparisons."""
    if not says:
        return UNCHECKED
    if NO in says:
        return FAILS
    return HOLDS if all(one == YES for one in says) else UNDECIDED


def claim_of(
    name: str,
    text: str,
    findings: Sequence[EvidenceItem],
    note: str = "",
    together: Sequence[EvidenceItem] = (),
) -> Claim:
    """Return a claim that holds if all its comparisons say yes.

    The numbers are those of the comparisons, those against the claim first.  ``together``: the same
    comparisons over all months or all loads together, for a claim about every single one.
    """
    ordered = _against_first(findings)
    shown = ordered if len(ordered) <= _SHOWN + 2 else ordered[:_SHOWN]
    numbers = "; ".join(one.text() for one in shown) or "no such runs"
    if len(shown) < len(ordered):
        numbers += f"; and {len(ordered) - len(shown)} more"
    if note:
        numbers += f"; {note}"
    verdict = verdict_of([one.says for one in findings])
    return Claim(name, text, verdict, numbers, answers_of(findings), _together(together))


def explained(
    claims: Iterable[Claim], why: Mapping[str, str], expected: Callable[[str], str]
) -> list[Claim]:
    """Return claims with the known verdict of each, and the best explanation of those that do not
    hold.

    Args:
        claims: the claims.
        why: explanations by the whole name of a claim, or by its name without the first two parts.
        expected: returns the known verdict for a name.
    """
    found = []
    for one in claims:
        reason = (
            why.get(one.name, why.get(one.name.split(".", 2)[-1], ""))
            if one.verdict == FAILS
            else ""
        )
        found.append(replace(one, expected=expected(one.name), why=one.why or reason))
    return found


def known_verdicts(held: str, failed: str) -> dict[str, str]:
    """Return verdicts by name, from the names of claims that hold and of those that do not."""
    return {**dict.fromkeys(held.split(), HOLDS), **dict.fromkeys(failed.split(), FAILS)}


def answers_of(findings: Sequence[EvidenceItem]) -> dict[str, int]:
    """Return how many comparisons give each answer, without answers that none gives."""
    says = [one.says for one in findings]
    return {answer: says.count(answer) for answer in (YES, NO, OPEN) if answer in says}


def _against_first(findings: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    return sorted(findings, key=lambda one: (NO, OPEN, YES).index(one.says))


def _together(findings: Sequence[EvidenceItem]) -> str:
    counts = ", ".join(f"{count} {answer}" for answer, count in answers_of(findings).items())
    return (
        f"{counts}: {'; '.join(one.text() for one in _against_first(findings))}" if findings else ""
    )


def with_intervals(
    claims: Sequence[Claim], found: Mapping[str, Sequence[EvidenceItem]], over: str
) -> list[Claim]:
    """Return claims about single numbers with comparisons by intervals, which have no influence on
    the verdict.

    Args:
        claims: the claims.
        found: the comparisons by name of claim; a claim without any stays as it is.
        over: what the intervals are over, in words.
    """
    return [
        replace(one, together=f"{over}: {_together(found[one.name])}")
        if found.get(one.name)
        else one
        for one in claims
    ]
