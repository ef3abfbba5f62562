"""All runs behind Figures 3 to 10: which there are, a pool of processes that makes them, and a folder that keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from qbatch.papers.origin2000_kept import KeptOrigin2000Runs
from qbatch.papers.origin2000_runs import POLICIES, WARMUP_DAYS, Origin2000Case, Origin2000Figures, simulate
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import Tell, made_or_kept, silent
from qbatch.workloads.origin2000 import MONTHS


@dataclass(frozen=True, slots=True)
class Origin2000Study:
    """What is run: which months, which seeds (a replica each), under which policies, and on how much of a month.

    ``days``: only the first so many days of each month are submitted (None: all of it).
    """

    months: tuple[str, ...] = tuple(MONTHS)
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    policies: tuple[str, ...] = tuple(POLICIES)
    days: int | None = None
    warmup_days: int = WARMUP_DAYS

    def cases(self) -> list[Origin2000Case]:
        """Return all runs, replica by replica, so that an early end leaves whole replicas."""
        return [
            Origin2000Case(month, seed, policy, self.days, self.warmup_days)
            for seed in self.seeds
            for month in self.months
            for policy in self.policies
        ]


def run_study(
    study: Origin2000Study, tell: Tell = silent, *, workers: int = WORKERS, kept: KeptOrigin2000Runs | None = None
) -> list[Origin2000Figures]:
    """Return the figures of all runs of a study, in the order of its cases; ``workers`` processes share them.

    With one worker everything runs in this process.  Runs that ``kept`` has are not made again; those that are made are
    kept there one by one, so that a study that was interrupted goes on where it stopped.
    """
    return made_or_kept(simulate, study.cases(), "simulations", tell, workers=workers, kept=kept)
