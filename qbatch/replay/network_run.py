"""One replication of a closed network through the compiled loop, with its measures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.planning.kernels import task_queues
from qbatch.planning.kernels.types import Int64Array
from qbatch.policies.task_queues import DISCIPLINES, ROUTINGS, QueueRules
from qbatch.replay.kernels import network_loop as loop
from qbatch.workloads.kernels import network as draws_layout
from qbatch.workloads.network import Network, NetworkDraws

__all__ = ["NetworkMeasures", "NetworkRun", "QueueRules"]

_MOST_CELLS = 200_000_000


class NetworkMeasures(NamedTuple):
    """What one replication gave in its window (papers.md 5.5, rule 11); times in seconds.

    ``throughput``: I/O completions a second (R).  ``utilisation``: busy share of the processors (U).  ``parents``: jobs whose
    last task ended.  ``response_mean``, ``response_max``: of them, the processors' part only (the paper's RT_max);
    ``slowdown_mean``: response over the longest demand among its tasks; ``spread_mean``: last end less first.  None where no
    parent ended. ``tasks``: tasks that ended since the beginning.
    """

    throughput: float
    utilisation: float
    parents: int
    response_mean: float | None
    response_max: float | None
    slowdown_mean: float | None
    spread_mean: float | None
    tasks: int


class NetworkRun:
    """One replication under one policy.

    Args:
        network: its numbers.
        rules: of the queues.
        seed: of the draws, which policies share.
        traced: for how many tasks, and for how many visits, to keep what happened.

    Raises:
        UsageError: the network is too large for the loop.
    """

    def __init__(self, network: Network, rules: QueueRules, seed: int, *, traced: int = 0) -> None:
        jobs, processors, stations = network.jobs, network.processors, network.stations
        if stations * jobs * processors * task_queues.COLUMNS > _MOST_CELLS:
            raise UsageError(
                f"network {network.name}: queues of {jobs} x {processors} tasks at {stations} stations are too large; "
                "use fewer jobs or processors"
            )
        draws = NetworkDraws(network, seed)
        window = round(network.warmup * 1e6)
        self.network = network
        self._keys = draws.keys
        stations_table = np.zeros((loop.STATION_ROWS, stations), np.int64)
        stations_table[loop.FREE] = network.servers
        job_table = np.zeros((loop.JOB_ROWS, jobs), np.int64)
        job_table[loop.VISIT] = -1
        of_rules = (
            processors, network.servers, ROUTINGS[rules.routing], DISCIPLINES[rules.discipline], rules.limit,
            rules.ties == "lowest", window, network.horizon, network.tasks != "varying", network.demand != "varying",
        )  # fmt: skip
        switches = np.zeros((2, loop.SWITCH_COLUMNS), np.int64)
        switches[:, loop.IS_SECOND] = network.tasks == "normal", network.demand == "erlang"
        self._state = loop.NetworkState(
            rules=np.array(of_rules, np.int64),
            counts=np.zeros(10, np.int64),
            numbers=draws.numbers,
            cumulative=draws.cumulative,
            intervals=np.array([network.tasks_interval, network.demand_interval]),
            switches=switches,
            jobs=job_table,
            tasks=np.zeros((jobs, processors, draws_layout.TASK_COLUMNS), np.int64),
            stations=stations_table,
            servers=np.full(stations, network.servers, np.int64),
            queues=np.zeros((stations, jobs * processors, task_queues.COLUMNS), np.int64),
            ends=np.full(processors, loop.NEVER, np.int64),
            serving=np.zeros(processors, np.int64),
            io=np.zeros(jobs, np.int64),
            back=np.zeros(jobs, np.int64),
            done=np.zeros(jobs, np.int64),
            totals=np.zeros(loop.TOTALS),
            trace=np.zeros((traced, loop.TRACE_COLUMNS), np.int64),
            visits=np.zeros((traced, loop.VISIT_COLUMNS), np.int64),
        )

    def run(self, until: int | None = None) -> NetworkMeasures:
        """Run up to an instant in microseconds (the end of the window), and return what was measured so far."""
        # The words of the draws wrap around.
        with np.errstate(over="ignore"):
            loop.run_network(self._state, self._keys, self.network.horizon if until is None else until)
        totals = [float(each) for each in self._state.totals]
        length, parents = self.network.length, int(totals[loop.RESPONSES])

        def mean(place: int, unit: float = 1e6) -> float | None:
            return totals[place] / unit / parents if parents else None

        return NetworkMeasures(
            throughput=totals[loop.COMPLETED] / length,
            utilisation=totals[loop.BUSY] / 1e6 / (length * self.network.processors),
            parents=parents,
            response_mean=mean(loop.RESPONSE_SUM),
            response_max=totals[loop.RESPONSE_MAX] / 1e6 if parents else None,
            slowdown_mean=mean(loop.SLOWDOWN_SUM, 1.0),
            spread_mean=mean(loop.SPREAD_SUM),
            tasks=int(self._state.counts[loop.TASKS]),
        )

    @property
    def trace(self) -> Int64Array:
        """The tasks that have started: job, visit, task, station, dispatched, start, end."""
        return self._state.trace[: int(self._state.counts[loop.TRACED])]

    @property
    def visits(self) -> Int64Array:
        """The visits whose last task has ended: job, visit, tasks, submitted, ended, begin and end of the I/O (-1: not yet)."""
        return self._state.visits[: int(self._state.counts[loop.VISITED])]
