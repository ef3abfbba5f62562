"""What is read of the replications of the closed network: a number of each, and paired differences and ratios of means.

All values are by replication.  Policies, and networks, share the draws of a replication, so every difference is by pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from qbatch.metrics.interval import interval, t_quantile
from qbatch.papers.closed_network_printed import PRFCFS
from qbatch.papers.closed_network_runs import NetworkFigures, asked
from qbatch.papers.record import half
from qbatch.replay.network_run import NetworkMeasures
from qbatch.workloads.network import Network

Number = Callable[[NetworkMeasures], float | None]
"""What is read of one replication."""

Values = Mapping[int, float]
"""A number by replication."""

UTILISATION: Number = attrgetter("utilisation")
THROUGHPUT: Number = attrgetter("throughput")
LONGEST: Number = attrgetter("response_max")
RESPONSE: Number = attrgetter("response_mean")
SLOWDOWN: Number = attrgetter("slowdown_mean")
SPREAD: Number = attrgetter("spread_mean")

PERCENT = 100.0
BOUND = 0.05
"""Under which share of the mean the paper has all half intervals."""


class NetworkReplicas:
    """The runs of a study; ``most``: only the first so many replications of each network."""

    def __init__(self, runs: Sequence[NetworkFigures], most: int | None = None) -> None:
        self._found: dict[tuple[Network, str], dict[int, NetworkMeasures]] = {}
        for one in sorted(runs, key=lambda one: one.case.first):
            of_policy = self._found.setdefault((one.case.network, one.case.policy), {})
            for replication, measures in enumerate(one.measures, one.case.first):
                if most is None or replication < most:
                    of_policy[replication] = measures

    def has(self, network: Network, policy: str = PRFCFS) -> bool:
        """Return whether there is a run of a network under a policy."""
        return (asked(network, policy), policy) in self._found

    def of(self, network: Network, policy: str, number: Number) -> dict[int, float]:
        """Return a number by replication, of those that have it."""
        found = self._found.get((asked(network, policy), policy), {})
        numbers = {replication: number(measures) for replication, measures in found.items()}
        return {replication: float(value) for replication, value in numbers.items() if value is not None}

    def more(self, network: Network, policy: str, base: str, number: Number) -> dict[int, float]:
        """Return how far a policy's number lies above that of another one."""
        return difference(self.of(network, policy, number), self.of(network, base, number))

    def ratio(self, network: Network, policy: str, number: Number, base: str = PRFCFS) -> dict[int, float]:
        """Return a policy's mean divided by that of another one, made ready for an interval (``ratio_of_means``)."""
        return ratio_of_means(self.of(network, policy, number), self.of(network, base, number))

    def gain(self, network: Network, policy: str, base: str = PRFCFS) -> dict[int, float]:
        """Return D_R: by how many percent a policy's throughput lies above that of another one."""
        ratios = self.ratio(network, policy, THROUGHPUT, base)
        return {replication: PERCENT * (value - 1) for replication, value in ratios.items()}


def combined(function: Callable[..., float], *columns: Values) -> dict[int, float]:
    """Return what a function makes of several numbers, of the replications that have all."""
    shared = sorted(set.intersection(*(set(one) for one in columns)))
    return {replication: function(*(one[replication] for one in columns)) for replication in shared}


def difference(first: Values, second: Values) -> dict[int, float]:
    """Return first - second."""
    return combined(lambda one, other: one - other, first, second)


def mean(values: Values) -> float | None:
    """Return the mean; None without values."""
    return math.fsum(values.values()) / len(values) if values else None


def ratio_of_means(above: Values, below: Values) -> dict[int, float]:
    """Return values whose mean is mean(above) / mean(below), and whose Student interval is that of this ratio by pairs.

    They are r + (a - r b) / mean(b), which have to first order the error of the ratio r of the means (the delta method; Cochran
    1977, "Sampling Techniques", section 6.3).  None where there is no pair, or where the mean below is 0.
    """
    pairs = combined(lambda one, other: one, above, below), combined(lambda one, other: other, above, below)
    top, bottom = mean(pairs[0]), mean(pairs[1])
    if top is None or not bottom:
        return {}
    ratio = top / bottom
    return combined(lambda one, other: ratio + (one - ratio * other) / bottom, *pairs)


def half_share(values: Values) -> float | None:
    """Return half the interval of the mean as a share of it; None where there is no interval."""
    found = interval(list(values.values()))
    width = half(found)
    return None if width is None or not found.mean else width / abs(found.mean)


def replications_needed(values: Values, share: float = BOUND) -> int | None:
    """Return with how many replications half the interval would be below a share of the mean, by the variance that was seen."""
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
