"""One replication of a closed network through the compiled loop, with its measures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.model.errors import UsageError
from qbatch.planning.kernels import tables, task_queues
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import JobColumns, LogTable, ScheduleTable, StateTables
from qbatch.planning.kernels.types import Int64Array, RecordArray
from qbatch.policies.task_queues import DISCIPLINES, ROUTINGS, QueueRules
from qbatch.simulation.kernels import closed_network
from qbatch.simulation.kernels.loop import loop_around
from qbatch.workloads.kernels import network as draws_layout
from qbatch.workloads.network import DEMAND, TASKS, Network, NetworkDraws

_MOST_QUEUED = 66_000_000


class NetworkMeasures(NamedTuple):
    """The measures of one replication in its window (docs/spec/papers.md 5.5, rule 11); times in
    seconds.

    ``throughput``: I/O completions per second (R).  ``utilisation``: busy share of the processors
    (U).  ``parents``: jobs of which the last task ended.  ``response_mean``, ``response_max``: of
    them, the processors' part only (the paper's RT_max); ``slowdown_mean``: response over the
    longest demand among its tasks; ``spread_mean``: last end minus first end.  None if no parent
    ended. ``tasks``: tasks that ended since the beginning.
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
    """One replication under the rules of the queues; the draws by ``seed`` are the same for every
    policy.

    ``traced``: the number of tasks, and of visits, of which the trace is kept.  UsageError: the
    network is too large.
    """

    def __init__(self, network: Network, rules: QueueRules, seed: int, *, traced: int = 0) -> None:
        jobs, processors, stations = network.jobs, network.processors, network.stations
        if stations * jobs * processors > _MOST_QUEUED:
            raise UsageError(
                f"network {network.name}: queues of {jobs} x {processors} tasks at {stations} "
                "stations are too large; "
                "use fewer jobs or processors"
            )
        draws = NetworkDraws(network, seed)
        self.network = network
        self._loop = loop_around(
            closed_network.decide, closed_network.NEEDS, has_admission=False, is_checked=False
        )
        self._tables = _tables(network, rules, draws, traced)
        rows, none = jobs * processors, np.empty(0, np.int64)
        counts = np.zeros(1, tables.COUNTS)
        counts["arrived"], counts["free"] = rows, processors  # the timer of 0 brings all jobs
        self._jobs = JobColumns(
            np.zeros(rows, np.int64),
            np.ones(rows, np.int64),
            none,
            np.empty((0, 0), np.int64),
            tables.no_requests(),
        )
        self._log = LogTable(self._tables.demand, none, np.empty(0, np.int8))
        self._state = StateTables(
            counts=counts,
            endings=np.empty((processors, 2), np.int64),
            waiting=none,
            parts=np.empty((4, 0), np.int64),
            hosts=np.empty((2, 0, 0), np.int64),
            started=np.empty(processors + 1, np.int64),
            places=none,
            begun=np.empty((0, 0), np.int64),
            ended=np.empty(processors, np.int64),
            stopped=none,
            returned=none,
            runs=np.empty(0, tables.RUN),
            running=none,
            intervals=np.empty(0, tables.INTERVAL),
            actions=np.empty(0, tables.ACTION),
        )
        self._done = ScheduleTable(
            np.full(rows, -1), np.zeros(rows, np.int8), none, np.full(rows, -1), none, none
        )

    def run(self, until: int | None = None) -> NetworkMeasures:
        """Run up to an instant in microseconds (the end of the window), and return the measures so
        far."""
        self._state.counts["until"] = self.network.horizon if until is None else until
        # The words of the draws wrap around.
        with np.errstate(over="ignore"):
            self._loop(self._jobs, self._log, self._state, self._done, self._tables, FOREVER)
        totals = self._tables.totals[0]
        length, parents = self.network.length, int(totals.responses)

        def mean(of_all: float, unit: float = 1e6) -> float | None:
            return float(of_all) / unit / parents if parents else None

        return NetworkMeasures(
            throughput=float(totals.completed) / length,
            utilisation=float(totals.busy) / 1e6 / (length * self.network.processors),
            parents=parents,
            response_mean=mean(totals.response_sum),
            response_max=float(totals.response_max) / 1e6 if parents else None,
            slowdown_mean=mean(totals.slowdown_sum, 1.0),
            spread_mean=mean(totals.spread_sum),
            tasks=int(self._tables.counts[0].tasks),
        )

    @property
    def trace(self) -> Int64Array:
        """The tasks that have started: job, visit, task, station, dispatched, start, end."""
        return _matrix(self._tables.trace[: self._tables.counts[0].traced])

    @property
    def visits(self) -> Int64Array:
        """The completed visits: job, visit, tasks, submitted, ended, begin and end of the I/O (-1:
        not yet)."""
        return _matrix(self._tables.visits[: self._tables.counts[0].visited])


def _matrix(records: RecordArray) -> Int64Array:
    return records.view(np.int64).reshape(-1, len(records.dtype.names or ()))


def _tables(
    network: Network, rules: QueueRules, draws: NetworkDraws, traced: int
) -> closed_network.NetworkTables:
    """Return the tables of a network to which all jobs come back at the instant 0."""
    jobs, processors, stations = network.jobs, network.processors, network.stations
    of_stations, of_jobs = (
        np.zeros(stations, closed_network.STATION),
        np.zeros(jobs, closed_network.PARENT),
    )
    of_stations["free"], of_jobs["visit"] = network.servers, -1
    of_rules = (
        processors,
        ROUTINGS[rules.routing],
        DISCIPLINES[rules.discipline],
        rules.limit,
        rules.ties == "lowest",
        round(network.warmup * 1e6),
        network.horizon,
    )
    switches, counts = (
        np.zeros(2, closed_network.SWITCH),
        np.zeros(1, closed_network.NETWORK_COUNTS),
    )
    switches["is_second"] = network.tasks == "normal", network.demand == "erlang"
    kinds = (TASKS, network.tasks), (DEMAND, network.demand)
    switches["following"] = [
        draws.interval(which, 0) if kind == "varying" else FOREVER for which, kind in kinds
    ]
    counts["io_end"], counts["back"] = FOREVER, jobs
    return closed_network.NetworkTables(
        keys=draws.keys,
        rules=np.array([of_rules], closed_network.RULES),
        counts=counts,
        numbers=draws.numbers,
        cumulative=draws.cumulative,
        intervals=np.array([network.tasks_interval, network.demand_interval]),
        switches=switches,
        jobs=of_jobs,
        tasks=np.zeros((jobs, processors, draws_layout.TASK_COLUMNS), np.int64),
        stations=of_stations,
        servers=np.full(stations, network.servers, np.int64),
        queues=np.zeros((stations, jobs * processors), task_queues.QUEUED_TASK),
        demand=np.zeros(jobs * processors, np.int64),
        io=np.zeros(jobs, np.int64),
        back=np.arange(jobs),
        done=np.zeros(jobs, np.int64),
        totals=np.zeros(1, closed_network.MEASURED),
        trace=np.zeros(traced, closed_network.TASK_TRACE),
        visits=np.zeros(traced, closed_network.VISIT_TRACE),
    )
