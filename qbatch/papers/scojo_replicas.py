"""What is read of the workloads of one source: a number of each, and paired ratios of one scheme to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from qbatch.papers.scojo_runs import ALL, EXACT, MOST_WORKLOADS, ScojoCell, ScojoFigures, cell_name, grouped_share
from qbatch.policies.slice_rules import LONG, MEDIUM

Number = Callable[[ScojoFigures], float | None]
"""What is read of one run."""


def of_cell(field: str, kind: str = ALL, width: str = ALL) -> Number:
    """Return what reads a field of the jobs of a class and a width; None where there is no such job."""
    read: Callable[[ScojoCell], float] = attrgetter(field)
    name = cell_name(kind, width)
    return lambda one: read(one.cells[name]) if name in one.cells else None


def slowdown(kind: str = ALL, width: str = ALL) -> Number:
    """Return what reads the mean slowdown of the jobs of a class and a width."""
    return of_cell("slowdown", kind, width)


RESPONSE, WAIT = of_cell("response_s"), of_cell("wait_s")
UTILISATION: Number = attrgetter("utilisation")


def groups_of(one: ScojoFigures) -> float:
    """Return the groups of a run, of both classes."""
    return one.groups[MEDIUM] + one.groups[LONG]


def grouped_percent(one: ScojoFigures) -> float:
    """Return how many percent of the medium and long jobs were in a group."""
    return 100 * grouped_share(one)


def pruned_percent(one: ScojoFigures) -> float | None:
    """Return how many percent of the nodes were pruned; None without a search."""
    return 100 * one.pruned / one.nodes if one.nodes else None


class ScojoReplicas:
    """The runs of one source with one kind of estimates."""

    def __init__(self, slug: str, runs: Sequence[ScojoFigures], estimates: str = EXACT) -> None:
        self.slug, self.estimates = slug, estimates
        self._found: dict[str, dict[int, ScojoFigures]] = {}
        for one in runs:
            if one.case.source.slug == slug and one.case.estimates == estimates:
                self._found.setdefault(one.case.scheme, {})[one.case.workload] = one

    @classmethod
    def pooled(cls, slug: str, parts: Sequence[ScojoReplicas]) -> ScojoReplicas:
        """Return the workloads of several sources as those of one, each with a number of its own."""
        whole = cls(slug, [], parts[0].estimates if parts else EXACT)
        for place, part in enumerate(parts):
            for scheme, found in part._found.items():
                numbered = {MOST_WORKLOADS * place + workload: one for workload, one in found.items()}
                whole._found.setdefault(scheme, {}).update(numbered)
        return whole

    @property
    def schemes(self) -> list[str]:
        """The schemes of which there is a run."""
        return list(self._found)

    @property
    def workloads(self) -> list[int]:
        """The numbers of the workloads of which there is a run."""
        return sorted({workload for found in self._found.values() for workload in found})

    def only(self, workload: int) -> ScojoReplicas:
        """Return the runs of one workload."""
        runs = [one for found in self._found.values() for place, one in found.items() if place == workload]
        return ScojoReplicas(self.slug, runs, self.estimates)

    def runs(self, scheme: str) -> dict[int, ScojoFigures]:
        """Return the runs of a scheme by workload."""
        return self._found.get(scheme, {})

    def of(self, scheme: str, number: Number) -> dict[int, float]:
        """Return a number by workload, of those that have it."""
        found = {workload: number(one) for workload, one in self.runs(scheme).items()}
        return {workload: float(value) for workload, value in found.items() if value is not None}

    def ratio(self, scheme: str, base: str, number: Number) -> dict[int, float]:
        """Return by workload a scheme's number divided by that of another one, where that is not 0."""
        return {workload: value / below for workload, value, below in self._pairs(scheme, base, number) if below}

    def more(self, scheme: str, base: str, number: Number) -> dict[int, float]:
        """Return by workload how far a scheme's number lies above that of another one."""
        return {workload: value - below for workload, value, below in self._pairs(scheme, base, number)}

    def _pairs(self, scheme: str, base: str, number: Number) -> list[tuple[int, float, float]]:
        mine, theirs = self.of(scheme, number), self.of(base, number)
        return [(workload, value, theirs[workload]) for workload, value in mine.items() if workload in theirs]
