"""All runs behind Figures 4 to 58: which there are, a pool of processes that makes them, and a folder that keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from qbatch.papers import qops_runs
from qbatch.papers.qops_runs import (
    DUPLICATION,
    LOADS,
    REFERENCES,
    SCHEMES,
    SUBSET_JOBS,
    GroupFigures,
    QopsCase,
    Trace,
    simulate,
)
from qbatch.policies import load_policy
from qbatch.sweeps.code import hash_of, modules_of_policy
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import KeptCases, Tell, made_or_kept, silent


@dataclass(frozen=True, slots=True)
class QopsSource:
    """A trace, how its load is changed, and how many of its subsets are run."""

    trace: Trace
    subsets: int
    methods: tuple[str, ...] = (DUPLICATION,)


@dataclass(frozen=True, slots=True)
class QopsStudy:
    """What is run: the sources, the jobs of a subset, the seed of the first."""

    sources: tuple[QopsSource, ...]
    jobs: int = SUBSET_JOBS
    seed: int = 1
    loads: tuple[float, ...] = LOADS

    def cases(self) -> list[QopsCase]:
        """Return all groups, subset by subset, so that an early end leaves whole subsets."""
        return [
            QopsCase(source.trace, method, subset, load, self.jobs, self.seed)
            for subset in range(max(source.subsets for source in self.sources))
            for source in self.sources
            if subset < source.subsets
            for method in source.methods
            for load in self.loads
        ]


class KeptQopsGroups(KeptCases[GroupFigures]):
    """Groups in a folder."""

    def __init__(self, folder: Path) -> None:
        """Keep them in this folder; it is made if only it is missing."""
        super().__init__(folder, GroupFigures, lambda case: sources_hash())


@lru_cache(maxsize=1)
def sources_hash() -> str:
    """Return a hash of all that a group depends on, but for its case."""
    asked = {**SCHEMES, **REFERENCES}
    modules = {qops_runs.__name__}.union(*(modules_of_policy(load_policy(text)) for text in asked.values()))
    return hash_of(repr(asked), modules)


def run_study(
    study: QopsStudy, tell: Tell = silent, *, workers: int = WORKERS, kept: KeptQopsGroups | None = None
) -> list[GroupFigures]:
    """Return the figures of all groups of a study, in the order of its cases; ``workers`` processes share them.

    Groups that ``kept`` has are not made again; those that are made are kept there one by one, so that a study that was
    interrupted goes on where it stopped.
    """
    return made_or_kept(simulate, study.cases(), "groups of runs", tell, workers=workers, kept=kept)
