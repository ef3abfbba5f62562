"""The draws of one replication of a network."""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels import fractions
from qbatch.planning.kernels.entries import entries_to
from qbatch.workloads.kernels import network as kernels
from qbatch.workloads.log import Column
from qbatch.workloads.network.parameters import Network

_fractions, _kernels = entries_to(fractions), entries_to(kernels)

_JOBS, TASKS, DEMAND = 0, 1, 2
"""The purposes of the keys within that of a replication: the visits, and the changes of the two distributions."""


class NetworkDraws:
    """The random events of one replication of a network, which do not depend on the policy.

    Args:
        network: its parameters, with the number of the replication.
        seed: a whole number >= 0.
    """

    def __init__(self, network: Network, seed: int) -> None:
        of_seed = _folded(np.uint64(seed), network.replication)
        self.keys = tuple(_folded(of_seed, purpose) for purpose in (_JOBS, TASKS, DEMAND))
        self.network = network
        self.numbers = np.array([network.mean_demand, network.variation, network.mean_io, network.error])
        self.cumulative = network.cumulative()

    def interval(self, which: int, number: int) -> int:
        """Return how many microseconds one of the distributions (``TASKS``, ``DEMAND``) is active, the number-th time."""
        mean = self.network.tasks_interval if which == TASKS else self.network.demand_interval
        with np.errstate(over="ignore"):
            return int(_kernels.interval(self.keys[which], mean, number))

    def visit(self, job: int, visit: int, *, is_normal: bool, is_erlang: bool) -> Column:
        """Return the tasks of a visit of a job, ``[k, 3]``: demand and estimate in microseconds, and 53 bits for the route."""
        tasks = np.empty((self.network.processors, kernels.TASK_COLUMNS), np.int64)
        with np.errstate(over="ignore"):
            count = _kernels.draw_visit(
                self._visit_key(job, visit), self.numbers, self.cumulative, is_normal, is_erlang, tasks
            )
        return tasks[:count]

    def io_time(self, job: int, visit: int) -> int:
        """Return the I/O time at the end of a visit in microseconds."""
        with np.errstate(over="ignore"):
            return int(_kernels.io_time(self._visit_key(job, visit), self.numbers))

    def _visit_key(self, job: int, visit: int) -> np.uint64:
        with np.errstate(over="ignore"):
            return np.uint64(_kernels.visit_key(self.keys[_JOBS], job, visit))


def _folded(key: np.uint64, number: int) -> np.uint64:
    # Words wrap around on purpose.
    with np.errstate(over="ignore"):
        return np.uint64(_fractions.folded(key, number))
