"""All runs behind the figures of the thesis on group optimisation: which there are, who makes them, a folder that keeps them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

from qbatch.papers import scojo_runs
from qbatch.papers.scojo_printed import LABELS, SIZES
from qbatch.papers.scojo_runs import (
    BOTTOM,
    BOTTOM_ALONE,
    CONSERVATIVE,
    DDS,
    EASY,
    EXACT,
    GROUPS,
    GROUPS_ALONE,
    LEX,
    MODEL,
    NO_DYNAMIC,
    NO_HALVES,
    NO_LEVEL1,
    NO_LEVEL2,
    NO_SELECT,
    NO_SHIFT,
    ONE,
    ONE_BOTTOM,
    ONE_GROUPS,
    ONE_UNSEARCHED,
    SCHEMES,
    SCOJO,
    SCOJO_ALONE,
    SCOJO_EASY,
    USERS,
    WORKLOAD_JOBS,
    ScojoCase,
    ScojoFigures,
    ScojoSource,
    simulate,
    sized,
)
from qbatch.policies import load_policy
from qbatch.sweeps.code import hash_of, modules_of_policy
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import KeptCases, Tell, made_or_kept, silent

FIGURES, SIZES_PART, ESTIMATES, PLAIN = "figures", "sizes", "estimates", "plain"

SCHEMES_OF = {
    FIGURES: (
        SCOJO, SCOJO_EASY, SCOJO_ALONE, GROUPS, GROUPS_ALONE, NO_DYNAMIC, NO_LEVEL2, NO_LEVEL1, NO_SELECT, NO_SHIFT, NO_HALVES,
        LEX, DDS, BOTTOM, BOTTOM_ALONE,
    ),
    SIZES_PART: (SCOJO, *(sized(medium, long) for medium, long in product(SIZES, SIZES))),
    ESTIMATES: (SCOJO, SCOJO_EASY, GROUPS, BOTTOM, EASY, CONSERVATIVE),
    PLAIN: (EASY, CONSERVATIVE, ONE, ONE_GROUPS, ONE_BOTTOM, ONE_UNSEARCHED),
}  # fmt: skip
"""Which schemes each part of the study needs."""


@dataclass(frozen=True, slots=True)
class ScojoStudy:
    """What is run: workloads of the model, and of each log so many; the jobs of each; the seed of those of the model.

    ``logs``: with the number of their workloads; those among ``figures`` (by slug) have the runs of the paper too, of the first.
    """

    workloads: int
    logs: tuple[tuple[ScojoSource, int], ...] = ()
    figures: tuple[str, ...] = ()
    jobs: int = WORKLOAD_JOBS
    seed: int = scojo_runs.SEED

    def cases(self, parts: Collection[str]) -> list[ScojoCase]:
        """Return all runs of some parts, workload by workload, so that an early end leaves whole ones."""
        return list(dict.fromkeys(self._cases(parts)))

    def _cases(self, parts: Collection[str]) -> Iterator[ScojoCase]:
        for workload in range(self.workloads):
            for part in (one for one in SCHEMES_OF if one in parts):
                if part != SIZES_PART or workload < len(LABELS):
                    for known in (EXACT, USERS) if part in (ESTIMATES, PLAIN) else (EXACT,):
                        yield from self._of(MODEL, workload, known, part)
        for source, workloads in self.logs:
            if FIGURES in parts and source.slug in self.figures:
                yield from self._of(source, 0, EXACT, FIGURES)
            for workload in range(workloads if source.has_estimates else 0):
                for part in (one for one in (ESTIMATES, PLAIN) if one in parts):
                    for known in (EXACT, USERS):
                        yield from self._of(source, workload, known, part)

    def _of(self, source: ScojoSource, workload: int, known: str, part: str) -> Iterator[ScojoCase]:
        for scheme in SCHEMES_OF[part]:
            yield ScojoCase(source, workload, known, scheme, self.jobs, self.seed)


class KeptScojoRuns(KeptCases[ScojoFigures]):
    """Runs in a folder."""

    def __init__(self, folder: Path) -> None:
        """Keep them in this folder; it is made if only it is missing."""
        super().__init__(folder, ScojoFigures, lambda case: sources_hash(case.scheme))


@lru_cache(maxsize=len(SCHEMES))
def sources_hash(scheme: str) -> str:
    """Return a hash of all that a run under a scheme depends on, but for its workload."""
    asked = SCHEMES[scheme]
    return hash_of(asked, {scojo_runs.__name__} | modules_of_policy(load_policy(asked)))


def run_study(
    study: ScojoStudy,
    parts: Collection[str] = tuple(SCHEMES_OF),
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: KeptScojoRuns | None = None,
) -> list[ScojoFigures]:
    """Return the figures of all runs of a study, in the order of its cases; ``workers`` processes share them.

    Runs that ``kept`` has are not made again; those that are made are kept there one by one, so that a study that was
    interrupted goes on where it stopped.
    """
    return made_or_kept(simulate, study.cases(parts), "runs", tell, workers=workers, kept=kept)
