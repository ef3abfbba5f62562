"""All runs behind Karatza and Hilzer 2003 and beyond it: which there are, who makes them, a folder that keeps them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

from qbatch.papers import closed_network_runs
from qbatch.papers.closed_network_printed import INTERVALS, JOBS, POLICIES, SQFCFS, VARIATIONS
from qbatch.papers.closed_network_runs import (
    ESTIMATING,
    PRSNUTF_STF,
    RULES,
    SEED,
    SQLSTF,
    SQSNUTF,
    SQSTF,
    NetworkCase,
    NetworkFigures,
    asked,
    simulate,
)
from qbatch.simulation import network_run
from qbatch.sweeps.code import hash_of
from qbatch.sweeps.executors import WORKERS
from qbatch.sweeps.kept import KeptCases, Tell, made_or_kept, silent
from qbatch.workloads.network import Network

FIGURES, TIES, MAXIMA, ERRORS, COMBINATIONS = "figures", "ties", "maxima", "errors", "combinations"
TAILS, STATIONS, SIZES = "tails", "stations", "sizes"
PARTS = (FIGURES, TIES, MAXIMA, ERRORS, COMBINATIONS, TAILS, STATIONS, SIZES)

REPLICATIONS = 30
WARMUP_S, LENGTH_S = 200.0, 2000.0
"""The window of rule 11."""

MIDDLE = 20.0
"""The d = e of what is asked beyond the paper, where d is seen to hardly matter."""

BEYOND_JOBS = (16, 32, 48)
ERROR_STEPS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Errors of estimates: the three of the paper, and three beyond it."""

COMBINED = (SQFCFS, SQSTF, SQSNUTF, SQLSTF)
"""The policies that join the shortest queue."""

TAIL = 8.0
TAIL_LENGTHS_S = (2_000.0, 8_000.0, 32_000.0)
"""C of the heavier tail, and the windows that are tried."""

SERVERS = (1, 2, 4, 8, 16)
"""Processors of a station, of 16 in all."""

SIZED_JOBS = {64: (64, 128, 192), 256: (256, 768)}
"""P of larger networks, and their N: 1 to 3 for each processor, as in the paper."""

MANY = 400
"""How many replications a bound of 5 % for RT_max was thought to take (rule 12: some 370)."""

MANY_AT = ((48, 2.0), (48, 4.0))
"""N and C of the networks that are run so often."""

_BLOCK, _OF_PROCESSORS = 10, 16
"""Replications of a block, and the processors of the networks that have so many."""


@dataclass(frozen=True, slots=True)
class NetworkStudy:
    """What is run: replications of each network, the seed of their draws, the length of the window in seconds."""

    replications: int = REPLICATIONS
    seed: int = SEED
    length: float = LENGTH_S

    @property
    def warmup(self) -> float:
        """For how many seconds a network runs before it is measured."""
        return WARMUP_S * self.length / LENGTH_S

    def network(self, jobs: int, variation: float, interval: float = MIDDLE, **more: float | int) -> Network:
        """Return the network of one point of the paper, or one that differs by its other numbers."""
        numbers = {"warmup": self.warmup, "length": self.length, **more}
        return Network(jobs=jobs, variation=variation, tasks_interval=interval, demand_interval=interval, **numbers)  # type: ignore[arg-type]

    def of_paper(self) -> list[Network]:
        """Return the networks of Figures 3 to 14, in their order."""
        return [self.network(jobs, *point) for point in product(VARIATIONS, INTERVALS) for jobs in JOBS]

    def short(self, jobs: int, variation: float, interval: float) -> Network:
        """Return a network of Table 2 measured from its empty start on, for half the time."""
        return self.network(jobs, variation, interval, warmup=0.0, length=self.length / 2)

    def tail(self, jobs: int, length: float) -> Network:
        """Return a network with a heavier tail, and a window of this length in seconds (where the usual one is of 2,000)."""
        length *= self.length / LENGTH_S
        return self.network(jobs, TAIL, warmup=length / 10, length=length)

    def sized(self, processors: int, jobs: int, variation: float) -> Network:
        """Return a network of more processors: its I/O is as balanced, and it warms up for longer, as each job takes longer."""
        return self.network(
            jobs,
            variation,
            processors=processors,
            mean_io=(processors + 1) / (2 * processors),
            warmup=self.warmup * processors / _OF_PROCESSORS,
        )

    def many(self, part: str) -> int:
        """Return how many replications a part of the study has."""
        return max(self.replications, MANY * self.replications // REPLICATIONS) if part == MAXIMA else self.replications

    def cases(self, parts: Collection[str] = PARTS) -> list[NetworkCase]:
        """Return all blocks of some parts: small networks first, and of these the first replications."""
        found = dict.fromkeys(one for part in PARTS if part in parts for one in self._cases(part))
        return sorted(found, key=lambda case: (case.network.processors, case.first))

    def _cases(self, part: str) -> Iterator[NetworkCase]:
        for network, policies in self._networks(part):
            replications = self.many(part)
            block = max(_BLOCK * _OF_PROCESSORS // network.processors, 1)
            if network.processors >= max(SIZED_JOBS):
                replications = max(replications // 5, 1)
            for policy in policies:
                for first in range(0, replications, block):
                    yield NetworkCase(asked(network, policy), policy, first, min(block, replications - first), self.seed)

    def _networks(self, part: str) -> Iterator[tuple[Network, tuple[str, ...]]]:
        if part == FIGURES:
            for network in self.of_paper():
                yield network, POLICIES
            for variation, interval, jobs in product(VARIATIONS, INTERVALS, (JOBS[0], JOBS[-1])):
                yield self.short(jobs, variation, interval), POLICIES
        elif part == TIES:
            for network in self.of_paper():
                yield network, (*POLICIES, PRSNUTF_STF)
        elif part == MAXIMA:
            for jobs, variation in MANY_AT:
                yield self.network(jobs, variation), POLICIES
        elif part == ERRORS:
            for variation, interval, jobs in product(VARIATIONS, INTERVALS, JOBS):
                yield self.network(jobs, variation, interval), POLICIES
                for error in ERROR_STEPS:
                    estimating = tuple(policy for policy in POLICIES if policy in ESTIMATING)
                    yield self.network(jobs, variation, interval, error=error), estimating
        elif part == COMBINATIONS:
            for variation, jobs in product(VARIATIONS, JOBS):
                yield self.network(jobs, variation), (*POLICIES, *COMBINED)
        else:
            for variation, jobs in product(VARIATIONS, BEYOND_JOBS):
                yield self.network(jobs, variation), POLICIES
            yield from ((network, POLICIES) for network in self._beyond(part))

    def _beyond(self, part: str) -> Iterator[Network]:
        if part == TAILS:
            for jobs, length in product(BEYOND_JOBS, TAIL_LENGTHS_S):
                yield self.tail(jobs, length)
        elif part == STATIONS:
            for variation, jobs, servers in product(VARIATIONS, BEYOND_JOBS, SERVERS[1:]):
                yield self.network(jobs, variation, servers=servers)
        else:
            for variation, (processors, several) in product(VARIATIONS, SIZED_JOBS.items()):
                for jobs in several:
                    yield self.sized(processors, jobs, variation)


class KeptNetworkRuns(KeptCases[NetworkFigures]):
    """Blocks in a folder."""

    def __init__(self, folder: Path) -> None:
        """Keep them in this folder; it is made if only it is missing."""
        super().__init__(folder, NetworkFigures, lambda case: sources_hash(case.policy))


@lru_cache(maxsize=len(RULES))
def sources_hash(policy: str) -> str:
    """Return a hash of all that a run under a policy depends on, but for the network, the seed and the replications."""
    return hash_of(repr(RULES[policy]), {closed_network_runs.__name__, network_run.__name__})


def run_study(
    study: NetworkStudy,
    parts: Collection[str] = PARTS,
    tell: Tell = silent,
    *,
    workers: int = WORKERS,
    kept: KeptNetworkRuns | None = None,
) -> list[NetworkFigures]:
    """Return the figures of all blocks of a study, in the order of its cases (``made_or_kept``)."""
    return made_or_kept(simulate, study.cases(parts), "blocks of runs", tell, workers=workers, kept=kept)
