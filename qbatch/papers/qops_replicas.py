"""What is read of the subsets of one trace: a number of each, paired differences, and curves at equal utilisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import numpy as np

from qbatch.papers.qops_runs import LOADS, GroupFigures, SchemeFigures, Setting, Trace

Number = Callable[[SchemeFigures], float | None]
"""What is read of one run."""

JOBS, WORK = attrgetter("unadmitted"), attrgetter("lost_work")
ALL_JOBS, ALL_WORK = attrgetter("unadmitted_all"), attrgetter("lost_work_all")
UTILISATION, RESPONSE, SLOWDOWN = attrgetter("utilisation"), attrgetter("response_s"), attrgetter("slowdown")
REFUSED = attrgetter("refused")

_PLACES = 9
"""At how many utilisations, evenly spread over what two curves share, they are compared."""

Subsets = Mapping[int, float]
"""A number by subset."""


class QopsReplicas:
    """The groups of one trace whose load was changed by one method."""

    def __init__(self, trace: Trace, method: str, groups: Sequence[GroupFigures]) -> None:
        self.trace = trace
        self.method = method
        self.groups = [one for one in groups if one.case.trace == trace and one.case.method == method]
        self._found: dict[tuple[Setting, float, str], dict[int, SchemeFigures]] = {}
        for group in self.groups:
            for each in group.settings:
                for scheme, figures in each.schemes.items():
                    place = self._found.setdefault((each.setting, group.case.load, scheme), {})
                    place[group.case.subset] = figures

    @property
    def subsets(self) -> list[int]:
        """The subsets of which there is any group."""
        return sorted({one.case.subset for one in self.groups})

    def every(self) -> list[tuple[str, SchemeFigures]]:
        """Return every run with its scheme."""
        return [(scheme, one) for (_, _, scheme), found in self._found.items() for one in found.values()]

    def at(self, setting: Setting, load: float, scheme: str, number: Number) -> dict[int, float]:
        """Return a number at one load by subset, of the subsets that have it."""
        found = {subset: number(one) for subset, one in self._found.get((setting, load, scheme), {}).items()}
        return {subset: float(value) for subset, value in found.items() if value is not None}

    def over(self, setting: Setting, scheme: str, number: Number, loads: Sequence[float] = LOADS) -> dict[int, float]:
        """Return the mean of a number over loads by subset, of the subsets that have it at each."""
        return mean_of([self.at(setting, load, scheme, number) for load in loads])

    def ratios_at_equal_utilisation(
        self, setting: Setting, first: str, second: str, number: Number
    ) -> dict[int, float]:
        """Return by subset the first's number divided by the second's, where their curves have the same utilisation.

        A curve joins the points (utilisation, number) of the loads by straight lines (rule 18).  The ratio is the geometric mean
        at ``_PLACES`` utilisations, evenly spread over what both span; a subset in which they share nothing is left out.
        """
        found = {}
        for subset in self.subsets:
            one, other = (self._curve(setting, scheme, number, subset) for scheme in (first, second))
            if len(one) < 2 or len(other) < 2:
                continue
            low, high = max(one[0][0], other[0][0]), min(one[-1][0], other[-1][0])
            if low >= high:
                continue
            places = np.linspace(low, high, _PLACES)
            values = [np.interp(places, *np.array(curve).T) for curve in (one, other)]
            if values[0].min() > 0 and values[1].min() > 0:
                logs = [math.log(a) - math.log(b) for a, b in zip(*(each.tolist() for each in values), strict=True)]
                found[subset] = math.exp(math.fsum(logs) / len(logs))
        return found

    def _curve(self, setting: Setting, scheme: str, number: Number, subset: int) -> list[tuple[float, float]]:
        points = []
        for load in LOADS:
            figures = self._found.get((setting, load, scheme), {}).get(subset)
            value = None if figures is None else number(figures)
            if figures is not None and value is not None:
                points.append((figures.utilisation, float(value)))
        return sorted(points)


def mean_of(columns: Sequence[Subsets]) -> dict[int, float]:
    """Return the mean of several numbers by subset, of the subsets that have all."""
    shared = sorted(set.intersection(*(set(one) for one in columns))) if columns else []
    return {subset: math.fsum(one[subset] for one in columns) / len(columns) for subset in shared}


def less(first: Subsets, second: Subsets) -> list[float]:
    """Return first - second of the subsets that have both."""
    return [value - second[subset] for subset, value in first.items() if subset in second]


def ratio(first: Subsets, second: Subsets) -> list[float]:
    """Return first / second of the subsets that have both; one where the second is 0 is left out."""
    return [value / second[subset] for subset, value in first.items() if second.get(subset)]
