"""How a claim is tested over replicas: paired intervals, one comparison at a time, and the verdict they add up to.

A comparison says *yes* where the whole 95 % interval lies on the claimed side, *no* where it lies wholly on the other side, and
*open* where it reaches over the bound, or where there is only one replica.  A claim of several comparisons holds if all say
yes, does not hold if one says no, and else is not decidable.  Ratios are averaged, and their intervals made, on a scale of
logarithms.  Where they are shown as changes in percent (``is_change``), so are the bounds.
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
YES, NO, OPEN = "yes", "no", "open"


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


class Scale(TypedDict, total=False):
    """Whether values are ratios, to be averaged by their logarithms, and whether they are shown as changes in percent."""

    is_ratio: bool
    is_change: bool


def above(
    label: str, values: Values | Sequence[float], bound: float, unit: str = "", factor: float = 1.0, **scale: Unpack[Scale]
) -> EvidenceItem:
    """Return whether the values of the replicas lie above a bound."""
    found = _interval(values, scale)
    says = _says(found, lambda low, _: low > bound, lambda _, high: high < bound)
    return EvidenceItem(label, says, found, unit, factor)


def below(
    label: str, values: Values | Sequence[float], bound: float, unit: str = "", factor: float = 1.0, **scale: Unpack[Scale]
) -> EvidenceItem:
    """Return whether the values of the replicas lie below a bound."""
    item = above(label, values, bound, unit, factor, **scale)
    return replace(item, says={YES: NO, NO: YES, OPEN: OPEN}[item.says])


def inside(
    label: str, values: Values | Sequence[float], low: float, high: float, unit: str = "", **scale: Unpack[Scale]
) -> EvidenceItem:
    """Return whether the values of the replicas lie between two bounds."""
    found = _interval(values, scale)
    says = _says(
        found, lambda least, most: low <= least and most <= high, lambda least, most: most < low or least > high
    )
    return EvidenceItem(label, says, found, unit)


def _says(found: Interval, is_yes: Callable[[float, float], bool], is_no: Callable[[float, float], bool]) -> str:
    if found.low is None or found.high is None:
        return OPEN
    return YES if is_yes(found.low, found.high) else NO if is_no(found.low, found.high) else OPEN


def _interval(values: Values | Sequence[float], scale: Scale) -> Interval:
    if scale.get("is_change"):
        return change_interval(values)
    return ratio_interval(values) if scale.get("is_ratio") else interval(listed(values))


def ratio_interval(values: Values | Sequence[float]) -> Interval:
    """Return the interval of ratios by their logarithms: the geometric mean, and bounds that a / b and b / a agree on.

    A ratio beyond a thousand or below a thousandth counts as that much, so that a 0 has a place.
    """
    found = interval([math.log(min(max(value, 1 / _MOST_RATIO), _MOST_RATIO)) for value in listed(values)])
    mean, low, high = (None if bound is None else math.exp(bound) for bound in (found.mean, found.low, found.high))
    return Interval(mean, low, high, found.n)


def change_interval(ratios: Values | Sequence[float]) -> Interval:
    """Return the interval of ratios by their logarithms, as changes in percent: of 0.9 it is -10."""
    found = ratio_interval(ratios)
    mean, low, high = (None if bound is None else 100 * (bound - 1) for bound in (found.mean, found.low, found.high))
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
    note: str = "",
    together: Sequence[EvidenceItem] = (),
    most: int = 4,
) -> Claim:
    """Return a claim that holds if all its comparisons say yes.

    The numbers are those of the comparisons, those that speak against it first.  ``together``: what the comparisons say over
    all months or all loads together, where the claim is of every single one.
    """
    ordered = _against_first(findings)
    is_cut = len(ordered) > most + 2
    numbers = "; ".join(one.text() for one in (ordered[:most] if is_cut else ordered)) or "no such runs"
    if is_cut:
        numbers += f"; and {len(ordered) - most} more"
    if note:
        numbers += f"; {note}"
    verdict = verdict_of([one.says for one in findings])
    return Claim(name, text, verdict, numbers, answers_of(findings), _together(together))


def explained(claims: Iterable[Claim], why: Mapping[str, str], expected: Callable[[str], str]) -> list[Claim]:
    """Return claims with the verdict that is known of each, and the best explanation of those that do not hold.

    Args:
        why: explanations by the whole name of a claim, or by what is left of it without its first two parts.
        expected: gives for a name the verdict that is known.
    """
    return [
        replace(
            one,
            expected=expected(one.name),
            why=one.why or (why.get(one.name, why.get(one.name.split(".", 2)[-1], "")) if one.verdict == FAILS else ""),
        )
        for one in claims
    ]


def answers_of(findings: Sequence[EvidenceItem]) -> dict[str, int]:
    """Return how many comparisons say what, without those answers that none gives."""
    says = [one.says for one in findings]
    return {answer: says.count(answer) for answer in (YES, NO, OPEN) if answer in says}


def _against_first(findings: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    return sorted(findings, key=lambda one: (NO, OPEN, YES).index(one.says))


def _together(findings: Sequence[EvidenceItem]) -> str:
    counts = ", ".join(f"{count} {answer}" for answer, count in answers_of(findings).items())
    return f"{counts}: {'; '.join(one.text() for one in _against_first(findings))}" if findings else ""


def with_intervals(claims: Sequence[Claim], found: Mapping[str, Sequence[EvidenceItem]], over: str) -> list[Claim]:
    """Return claims that were judged by single numbers with comparisons by intervals beside them: no part of the verdict.

    Args:
        found: the comparisons by name of claim; a claim without any stays as it is.
        over: over what the intervals are, in words.
    """
    return [
        replace(one, together=f"{over}: {_together(found[one.name])}") if found.get(one.name) else one for one in claims
    ]
