"""All runs behind Figures 4 to 58: which there are, a pool of processes that makes them, and a folder that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from qbatch.papers import qops_runs
from qbatch.papers.kept import Folder, hash_of, modules_of_policy
from qbatch.papers.processes import WORKERS, each_made
from qbatch.papers.qops_runs import (
    DUPLICATION,
    LOADS,
    REFERENCES,
    SCHEMES,
    SUBSET_JOBS,
    Case,
    GroupFigures,
    Trace,
    simulate,
)
from qbatch.papers.record import Tell, silent
from qbatch.policies import load_policy


@dataclass(frozen=True, slots=True)
class Source:
    """A trace, how its load is changed, and how many of its subsets are run."""

    trace: Trace
    subsets: int
    methods: tuple[str, ...] = (DUPLICATION,)


@dataclass(frozen=True, slots=True)
class Study:
    """What is run: the sources, the jobs of a subset, the seed of the first."""

    sources: tuple[Source, ...]
    jobs: int = SUBSET_JOBS
    seed: int = 1
    loads: tuple[float, ...] = LOADS

    def cases(self) -> list[Case]:
        """Return all groups, subset by subset, so that an early end leaves whole subsets."""
        return [
            Case(source.trace, method, subset, load, self.jobs, self.seed)
            for subset in range(max(source.subsets for source in self.sources))
            for source in self.sources
            if subset < source.subsets
            for method in source.methods
            for load in self.loads
        ]


class Kept(Folder[GroupFigures]):
    """Groups in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        """Keep groups in this folder; it is made if only it is missing."""
        super().__init__(folder, GroupFigures)

    def read(self, case: Case) -> GroupFigures | None:
        """Return the group that is kept of a case; None if there is none, or if it was made by other sources."""
        found = self.find(_name(case), sources_hash())
        if found is None or found.case != case:
            return None
        self.read_count += 1
        return found

    def write(self, one: GroupFigures) -> None:
        """Keep a group in place of what was kept of its case."""
        self.put(_name(one.case), sources_hash(), one)


def _name(case: Case) -> str:
    return f"{case.trace.slug}-{case.method}-{case.load:g}-{case.jobs}jobs-seed{case.seed}-subset{case.subset}.json"


@lru_cache(maxsize=1)
def sources_hash() -> str:
    """Return a hash of all that a group depends on, but for its case."""
    asked = {**SCHEMES, **REFERENCES}
    modules = {qops_runs.__name__}.union(*(modules_of_policy(load_policy(text)) for text in asked.values()))
    return hash_of(repr(asked), modules)


def run_study(
    study: Study, tell: Tell = silent, *, workers: int = WORKERS, kept: Kept | None = None
) -> list[GroupFigures]:
    """Return the figures of all groups of a study, in the order of its cases; ``workers`` processes share them.

    Groups that ``kept`` has are not made again; those that are made are kept there one by one, so that a study that was
    interrupted goes on where it stopped.
    """
    cases: Sequence[Case] = study.cases()
    results: dict[Case, GroupFigures] = {}
    for case in cases:
        if kept is not None and (found := kept.read(case)) is not None:
            results[case] = found
    tell("groups of runs", len(results), len(cases))
    for one in each_made(simulate, [case for case in cases if case not in results], workers):
        results[one.case] = one
        if kept is not None:
            kept.write(one)
        tell("groups of runs", len(results), len(cases))
    return [results[case] for case in cases]
