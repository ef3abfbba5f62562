"""Karatza and Hilzer, "Performance Analysis of Parallel Job Scheduling in Distributed Systems",
2003: its numbers and runs.

Source: papers/closed-network-task-scheduling.txt, as docs/spec/papers.md 5.5 reads it, with its
rules by number.  A *network* is one point of a table or figure; its replications have draws of
their own, which all policies share (rule 4).  A *block* is some replications of one network under
one policy.  Beyond the paper: wrong estimates, heavier tails, stations of several processors, more
processors, other combinations.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from operator import attrgetter
from typing import Any

from qbatch.metrics.interval import interval, t_quantile
from qbatch.papers.replicas import Number, Values, by_point, difference, ratio_of_means
from qbatch.policies.task_queues import QueueRules
from qbatch.simulation.network_run import NetworkMeasures, NetworkRun
from qbatch.workloads.network import Network

# ------------------------------------------------------------------------------------------------
# what the paper prints Table 2 holds all its numbers: Figures 3 to 14 carry none.  The calibration
# is an earlier C program of docs/spec/papers.md (R003), with windows of 120,000 s at d = e = 20.

PRFCFS, SQFCFS, PRSTF, PRSNUTF, PRLSTF = "PrFCFS", "SQFCFS", "PrSTF", "PrSNUTF", "PrLSTF"
POLICIES = (PRFCFS, SQFCFS, PRSTF, PRSNUTF, PRLSTF)
"""The policies of the paper, in its order."""

JOBS = (16, 24, 32, 40, 48)
INTERVALS = (10.0, 20.0, 30.0)
VARIATIONS = (2.0, 4.0)
"""N, d = e (s), and C of the paper."""

Range = tuple[float, float]

TABLE_2: dict[float, dict[str, tuple[Range, Range, Range]]] = {
    2.0: {
        PRFCFS: ((0.64, 0.84), (0.64, 0.83), (0.65, 0.83)),
        SQFCFS: ((0.88, 0.98), (0.89, 0.99), (0.89, 0.98)),
        PRSTF: ((0.71, 0.91), (0.71, 0.92), (0.72, 0.91)),
        PRSNUTF: ((0.69, 0.90), (0.69, 0.90), (0.70, 0.90)),
        PRLSTF: ((0.70, 0.88), (0.69, 0.90), (0.70, 0.89)),
    },
    4.0: {
        PRFCFS: ((0.48, 0.69), (0.48, 0.70), (0.49, 0.70)),
        SQFCFS: ((0.82, 0.96), (0.82, 0.96), (0.82, 0.96)),
        PRSTF: ((0.51, 0.80), (0.52, 0.81), (0.55, 0.81)),
        PRSNUTF: ((0.50, 0.76), (0.52, 0.76), (0.53, 0.78)),
        PRLSTF: ((0.51, 0.74), (0.51, 0.74), (0.53, 0.76)),
    },
}
"""Table 2: by C and policy the utilisation at N = 16 and at N = 48, for d = 10, 20 and 30."""

TOLERANCES = {2.0: 0.03, 4.0: 0.05}
"""Tolerances of our numbers against Table 2, by C (R003)."""

CALIBRATED_UTILISATION: dict[float, dict[str, Range]] = {
    2.0: {
        PRFCFS: (0.647, 0.838),
        SQFCFS: (0.878, 0.974),
        PRSTF: (0.708, 0.914),
        PRSNUTF: (0.675, 0.880),
        PRLSTF: (0.687, 0.877),
    },
    4.0: {
        PRFCFS: (0.461, 0.678),
        SQFCFS: (0.804, 0.950),
        PRSTF: (0.509, 0.784),
        PRSNUTF: (0.487, 0.709),
        PRLSTF: (0.496, 0.731),
    },
}
"""Calibration: utilisation at N = 16 and at N = 48."""

CALIBRATED_GAIN: dict[float, dict[str, tuple[float, ...]]] = {
    2.0: {
        SQFCFS: (35.6, 28.9, 23.0, 18.3, 16.0),
        PRSTF: (9.2, 10.3, 10.6, 9.4, 8.6),
        PRSNUTF: (4.3, 5.0, 5.4, 5.0, 4.9),
        PRLSTF: (6.0, 6.2, 6.2, 4.9, 4.5),
    },
    4.0: {
        SQFCFS: (73.0, 64.0, 55.0, 49.0, 40.0),
        PRSTF: (10.6, 11.8, 13.7, 16.7, 15.6),
        PRSNUTF: (5.0, 3.4, 5.5, 6.2, 4.1),
        PRLSTF: (7.2, 6.5, 7.7, 9.6, 7.8),
    },
}
"""Calibration: D_R in percent by N."""

CALIBRATED_RATIO: dict[float, dict[str, str]] = {
    2.0: {PRSTF: "3.7..21", PRSNUTF: "2.3..7.8", PRLSTF: "1.6..2.2"},
    4.0: {PRSTF: "1.6..5.1", PRSNUTF: "1.2..2.9", PRLSTF: "1.0..1.4"},
}
"""Calibration: the range of the ratios of RT_max over N."""


# ------------------------------------------------------------------------------------------------
# runs

SQSTF, SQSNUTF, SQLSTF = "SQSTF", "SQSNUTF", "SQLSTF"
"""Policies beyond the paper: the shortest queue with a discipline other than FCFS."""

PRSNUTF_STF = "PrSNUTF-STF"
"""PrSNUTF, if of two tasks of jobs with as few uncompleted tasks the one with the least estimate
goes first."""

RULES = {
    PRFCFS: QueueRules("probabilistic", "fcfs"),
    SQFCFS: QueueRules("shortest", "fcfs"),
    PRSTF: QueueRules("probabilistic", "stf"),
    PRSNUTF: QueueRules("probabilistic", "snutf"),
    PRLSTF: QueueRules("probabilistic", "lstf"),
    SQSTF: QueueRules("shortest", "stf"),
    SQSNUTF: QueueRules("shortest", "snutf"),
    SQLSTF: QueueRules("shortest", "lstf"),
    PRSNUTF_STF: QueueRules("probabilistic", "snutf-stf"),
}
"""The policies by the names of the tables: routing, then discipline."""

ESTIMATING = tuple(
    name for name, rules in RULES.items() if rules.discipline in ("stf", "lstf", "snutf-stf")
)
"""The policies that use an estimate: for the others its error changes nothing."""

REPLICATIONS, SEED = 30, 1


@dataclass(frozen=True, slots=True)
class NetworkCase:
    """One block: ``count`` replications of a network from the ``first`` on, under a policy;
    ``seed``: of the draws."""

    network: Network
    policy: str
    first: int
    count: int
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """The measures of each replication of a block, in order."""

    case: NetworkCase
    measures: list[NetworkMeasures]


def asked(network: Network, policy: str) -> Network:
    """Return the network that is run under a policy: without errors if the policy uses no
    estimate."""
    return network if policy in ESTIMATING or not network.error else replace(network, error=0.0)


def simulate(case: NetworkCase) -> NetworkFigures:
    """Run a block."""
    networks = (
        replace(case.network, replication=place)
        for place in range(case.first, case.first + case.count)
    )
    return NetworkFigures(
        case, [NetworkRun(network, RULES[case.policy], case.seed).run() for network in networks]
    )


# ------------------------------------------------------------------------------------------------
# the study

FIGURES, TIES, MAXIMA, ERRORS, COMBINATIONS = "figures", "ties", "maxima", "errors", "combinations"
TAILS, STATIONS, SIZES = "tails", "stations", "sizes"
PARTS = (FIGURES, TIES, MAXIMA, ERRORS, COMBINATIONS, TAILS, STATIONS, SIZES)

WARMUP_S, LENGTH_S = 200.0, 2000.0
"""The window of rule 11."""

MIDDLE = 20.0
"""The d = e of runs beyond the paper: d hardly matters."""

BEYOND_JOBS = (16, 32, 48)
ERROR_STEPS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Errors of estimates: the three of the paper, and three beyond it."""

COMBINED = (SQFCFS, SQSTF, SQSNUTF, SQLSTF)
"""The policies that join the shortest queue."""

TAIL = 8.0
TAIL_LENGTHS_S = (2_000.0, 8_000.0, 32_000.0)
"""C of the heavier tail, and the windows."""

SERVERS = (1, 2, 4, 8, 16)
"""Processors of a station, of 16 in all."""

SIZED_JOBS = {64: (64, 128, 192), 256: (256, 768)}
"""P of larger networks, and their N: 1 to 3 for each processor, as in the paper."""

MANY = 400
"""Replications for a bound of 5 % for RT_max, as expected (rule 12: some 370)."""

MANY_AT = ((48, 2.0), (48, 4.0))
"""N and C of the networks with so many replications."""

_BLOCK, _OF_PROCESSORS = 10, 16
"""Replications of a block of a network with 16 processors."""


@dataclass(frozen=True, slots=True)
class NetworkStudy:
    """The runs: replications of each network, the seed of their draws, the length of the window in
    seconds."""

    replications: int = REPLICATIONS
    seed: int = SEED
    length: float = LENGTH_S

    def facts(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return the machine and the options, for the record of the command."""
        options = {
            "replications": self.replications,
            "seed": self.seed,
            "warmup_s": self.warmup,
            "window_s": self.length,
        }
        return {"machine": {"name": "closed-network"}, "options": {**options, "parts": parts}}

    @property
    def warmup(self) -> float:
        """Seconds for which a network runs before it is measured."""
        return WARMUP_S * self.length / LENGTH_S

    def network(
        self, jobs: int, variation: float, interval: float = MIDDLE, **more: float | int
    ) -> Network:
        """Return the network of one point of the paper, or one with other numbers, too."""
        numbers = {"warmup": self.warmup, "length": self.length, **more}
        return Network(
            jobs=jobs,
            variation=variation,
            tasks_interval=interval,
            demand_interval=interval,
            **numbers,  # type: ignore[arg-type]
        )

    def of_paper(self) -> list[Network]:
        """Return the networks of Figures 3 to 14, in their order."""
        return [
            self.network(jobs, *point) for point in product(VARIATIONS, INTERVALS) for jobs in JOBS
        ]

    def short(self, jobs: int, variation: float, interval: float) -> Network:
        """Return a network of Table 2 that is measured from its empty start on, for half the
        time."""
        return self.network(jobs, variation, interval, warmup=0.0, length=self.length / 2)

    def tail(self, jobs: int, length: float) -> Network:
        """Return a network with a heavier tail and a window of this length in seconds, if the usual
        one is of 2,000."""
        length *= self.length / LENGTH_S
        return self.network(jobs, TAIL, warmup=length / 10, length=length)

    def sized(self, processors: int, jobs: int, variation: float) -> Network:
        """Return a network of more processors: its I/O is as balanced, and its warm-up is longer,
        because each job is."""
        mean_io, warmup = (
            (processors + 1) / (2 * processors),
            self.warmup * processors / _OF_PROCESSORS,
        )
        return self.network(jobs, variation, processors=processors, mean_io=mean_io, warmup=warmup)

    def many(self, part: str) -> int:
        """Return the number of replications in a part of the study."""
        return (
            max(self.replications, MANY * self.replications // REPLICATIONS)
            if part == MAXIMA
            else self.replications
        )

    def cases(self, parts: Collection[str] = PARTS) -> list[NetworkCase]:
        """Return all blocks of some parts: small networks first, and of these the first
        replications."""
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
                    yield NetworkCase(
                        asked(network, policy),
                        policy,
                        first,
                        min(block, replications - first),
                        self.seed,
                    )

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
                estimating = tuple(policy for policy in POLICIES if policy in ESTIMATING)
                for error in ERROR_STEPS:
                    yield self.network(jobs, variation, interval, error=error), estimating
        elif part == COMBINATIONS:
            for variation, jobs in product(VARIATIONS, JOBS):
                yield self.network(jobs, variation), (*POLICIES, *COMBINED)
        else:
            usual = [(jobs, variation) for variation, jobs in product(VARIATIONS, BEYOND_JOBS)]
            sized = [
                (processors, jobs) for processors, several in SIZED_JOBS.items() for jobs in several
            ]
            others = {
                TAILS: (self.tail(*each) for each in product(BEYOND_JOBS, TAIL_LENGTHS_S)),
                STATIONS: (
                    self.network(*each, servers=servers)
                    for each, servers in product(usual, SERVERS[1:])
                ),
                SIZES: (
                    self.sized(*each, variation) for variation, each in product(VARIATIONS, sized)
                ),
            }
            for network in chain((self.network(*each) for each in usual), others[part]):
                yield network, POLICIES


def study_of(*, replications: int = REPLICATIONS, seed: int = SEED) -> NetworkStudy:
    """Return the study with this many replications of each network."""
    return NetworkStudy(replications, seed)


# ------------------------------------------------------------------------------------------------
# numbers of the runs

UTILISATION: Number = attrgetter("utilisation")
THROUGHPUT: Number = attrgetter("throughput")
LONGEST: Number = attrgetter("response_max")
RESPONSE: Number = attrgetter("response_mean")
SLOWDOWN: Number = attrgetter("slowdown_mean")
SPREAD: Number = attrgetter("spread_mean")

PERCENT = 100.0
BOUND = 0.05
"""The share of the mean that no half interval of the paper reaches."""


class NetworkReplicas:
    """The runs of a study by network, policy and replication; ``most``: only this many replications
    of each network.

    Policies and networks share the draws of a replication, so every difference is by pairs.
    """

    def __init__(self, runs: Sequence[NetworkFigures], most: int | None = None) -> None:
        """Hold the replications of these blocks."""
        self._at = by_point(
            (one.case.network, one.case.policy, replication, measures)
            for one in sorted(runs, key=lambda one: one.case.first)
            for replication, measures in enumerate(one.measures, one.case.first)
            if most is None or replication < most
        )

    def of(self, network: Network, policy: str, number: Number) -> dict[int, float]:
        """Return a number by replication, without replications that lack it."""
        return self._at(asked(network, policy)).of(policy, number)

    def more(self, network: Network, policy: str, base: str, number: Number) -> dict[int, float]:
        """Return the difference of a policy's number from that of another one."""
        return difference(self.of(network, policy, number), self.of(network, base, number))

    def ratio(
        self, network: Network, policy: str, number: Number, base: str = PRFCFS
    ) -> dict[int, float]:
        """Return the ratio of a policy's mean to that of another one, ready for an interval
        (``ratio_of_means``)."""
        return ratio_of_means(self.of(network, policy, number), self.of(network, base, number))

    def gain(self, network: Network, policy: str, base: str = PRFCFS) -> dict[int, float]:
        """Return D_R: the gain of a policy's throughput over that of another one, in percent."""
        ratios = self.ratio(network, policy, THROUGHPUT, base)
        return {replication: PERCENT * (value - 1) for replication, value in ratios.items()}


def half_share(values: Values) -> float | None:
    """Return half the interval of the mean as a share of it; None if there is no interval."""
    found = interval(list(values.values()))
    return (
        None
        if found.high is None or not found.mean
        else (found.high - found.mean) / abs(found.mean)
    )


def replications_needed(values: Values, share: float = BOUND) -> int | None:
    """Return how many replications bring half the interval below a share of the mean, by the
    variance of these values."""
    width = half_share(values)
    if width is None:
        return None
    n = len(values)
    deviation = width * math.sqrt(n) / t_quantile(0.975, n - 1)
    needed = 2
    while t_quantile(0.975, needed - 1) * deviation / math.sqrt(needed) >= share:
        # The bound falls with n: no n below this one can be enough.
        needed = max(needed + 1, math.floor((t_quantile(0.975, 10**6) * deviation / share) ** 2))
    return needed
