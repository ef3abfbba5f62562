"""The closed network, N jobs that circulate between processors with their own queues and one I/O
station: its parameters, under the letters of the paper's Table 1 as in ``closed:N=24,C=4``, and its
draws.  The simulation package runs it.

Source: H. D. Karatza and R. C. Hilzer, *Performance analysis of parallel job scheduling in
distributed systems*, 36th Annual Simulation Symposium, 2003; exact readings in docs/spec/papers.md
5.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.parameters import Choice, Parameter, Real, Whole, canonical_name, read_parameters
from qbatch.planning.kernels import fractions
from qbatch.planning.kernels.entries import entries_to
from qbatch.workloads.draws import exp
from qbatch.workloads.kernels import network as kernels
from qbatch.workloads.log import Column

VARYING = "varying"

PARAMETERS: tuple[Parameter, ...] = (
    Whole("N", 16, 1, 100_000, "jobs in the network (degree of multiprogramming)"),
    Whole("P", 16, 1, 4096, "processors; a job has 1 to P tasks"),
    Whole("servers", 1, 1, 4096, "processors of a station, which share its queue; they divide P"),
    Real("C", 2.0, 1.0, 1000.0, "coefficient of variation of the branching Erlang distribution"),
    Real("x", 1.0, 1e-6, 1e6, "mean service demand of a task, seconds"),
    Real("z", 0.531, 0.0, 1e6, "mean service time of the I/O station, seconds"),
    Real(
        "d",
        20.0,
        1e-3,
        1e9,
        "mean time until the distribution of the number of tasks changes, seconds",
    ),
    Real("e", 20.0, 1e-3, 1e9, "mean time until the distribution of the demands changes, seconds"),
    Real(
        "E",
        0.0,
        0.0,
        1.0,
        "error of estimates: they are uniform in demand x (1 - E) to demand x (1 + E)",
    ),
    Choice(
        "tasks",
        VARYING,
        (VARYING, "uniform", "normal"),
        "distribution of the number of tasks; varying: both in turn",
    ),
    Choice(
        "demand",
        VARYING,
        (VARYING, "exponential", "erlang"),
        "distribution of the demands; varying: both in turn",
    ),
    Whole("replication", 0, 0, 10**9, "which replication of the seed"),
    Real("warmup", 200.0, 0.0, 1e9, "the time before the measured window, seconds"),
    Real("length", 2000.0, 1e-6, 1e9, "the length of the measured window, seconds"),
)
"""The parameters of a network."""

_QUANTUM = 2.0**-40


@dataclass(frozen=True)
class Network:
    """A closed network (docs/spec/papers.md 5.1); times in seconds.

    The attributes are those of ``PARAMETERS``, in their order; the measured window is (warmup,
    warmup + length].

    Raises:
        UsageError: a number is out of its range (named), or servers do not divide the processors.
    """

    jobs: int = 16
    processors: int = 16
    servers: int = 1
    variation: float = 2.0
    mean_demand: float = 1.0
    mean_io: float = 0.531
    tasks_interval: float = 20.0
    demand_interval: float = 20.0
    error: float = 0.0
    tasks: str = VARYING
    demand: str = VARYING
    replication: int = 0
    warmup: float = 200.0
    length: float = 2000.0

    def __post_init__(self) -> None:
        for value, parameter in zip(self._values, PARAMETERS, strict=True):
            parameter.read(value if isinstance(value, str) else parameter.text(value), "network")
        if self.processors % self.servers:
            raise UsageError(
                f"network: servers={self.servers} does not divide the P={self.processors} "
                "processors into equal stations"
            )

    @property
    def _values(self) -> list[Any]:
        return [getattr(self, field) for field in self.__dataclass_fields__]

    @property
    def stations(self) -> int:
        """The number of stations, each with a queue."""
        return self.processors // self.servers

    @property
    def horizon(self) -> int:
        """The end of the measured window in microseconds."""
        return round((self.warmup + self.length) * 1e6)

    @property
    def name(self) -> str:
        """The network as text: only parameters that differ from the defaults."""
        values = zip((parameter.name for parameter in PARAMETERS), self._values, strict=True)
        return canonical_name("closed", dict(values), PARAMETERS)

    def machine(self) -> Machine:
        """Return the machine of the network: a host per station; each task is inside one host."""
        if self.stations == 1:
            return one_host(self.servers)
        width = len(str(self.stations))
        hosts = tuple(
            Host(f"n{place:0{width}d}", self.servers) for place in range(1, self.stations + 1)
        )
        return Machine(hosts, single_host=True)

    def cumulative(self) -> Column:
        """Return the probability of at most k tasks, k = 1 ... P, of the bounded normal: mean (1 +
        P) / 2, deviation a quarter.

        A value is rounded to the nearest whole number, halves up, and drawn again outside 1 ... P.
        """
        mean = (1 + self.processors) / 2
        edges = (np.arange(self.processors + 1) + 0.5 - mean) / (mean / 4)
        upto = np.array([_normal_upto(float(edge)) for edge in edges])
        shares = (upto - upto[0]) / (upto[-1] - upto[0])
        return np.asarray(np.floor(shares[1:] / _QUANTUM + 0.5) * _QUANTUM)


def _normal_upto(z: float) -> float:
    """Return the probability that a standard normal variate is at most z, for |z| up to 8
    (Marsaglia 2004)."""
    total = term = z
    divisor = 1
    while total != total + term:
        divisor += 2
        term = term * z * z / divisor
        total = total + term
    density = 0.3989422804014327 * float(exp(np.array([-0.5 * z * z]))[0])
    return 0.5 + total * density


def read_network(text: str) -> Network:
    """Return the network of a text such as ``closed:N=24,C=4,d=10,e=10``.

    Raises:
        UsageError: names the source or parameter, the reason, and the known ones.
    """
    head, _, tail = text.partition(":")
    if head != "closed":
        raise UsageError(
            f"source {text!r}: there is no source {head!r}{suggestion(head, ['closed'])} (known: "
            "closed)"
        )
    values = read_parameters(
        [pair for pair in tail.split(",") if pair], PARAMETERS, f"source {text!r}"
    )
    return Network(**dict(zip(Network.__dataclass_fields__, values.values(), strict=True)))


_fractions, _kernels = entries_to(fractions), entries_to(kernels)

_JOBS, TASKS, DEMAND = 0, 1, 2
"""The purposes of the keys within that of a replication: the visits, and the changes of the two
distributions."""


class NetworkDraws:
    """The random events of one replication of a network, which do not depend on the policy;
    ``seed`` is 0 or more."""

    def __init__(self, network: Network, seed: int) -> None:
        of_seed = _folded(np.uint64(seed), network.replication)
        self.keys = tuple(_folded(of_seed, purpose) for purpose in (_JOBS, TASKS, DEMAND))
        self.network = network
        self.numbers = np.array(
            [network.mean_demand, network.variation, network.mean_io, network.error]
        )
        self.cumulative = network.cumulative()

    def interval(self, which: int, number: int) -> int:
        """Return how many microseconds one of the distributions (``TASKS``, ``DEMAND``) is active,
        the number-th time."""
        mean = self.network.tasks_interval if which == TASKS else self.network.demand_interval
        with np.errstate(over="ignore"):
            return int(_kernels.interval(self.keys[which], mean, number))

    def visit(self, job: int, visit: int, *, is_normal: bool, is_erlang: bool) -> Column:
        """Return the tasks of a visit of a job, ``[k, 3]``: demand and estimate in microseconds,
        and 53 bits for the route."""
        tasks = np.empty((self.network.processors, kernels.TASK_COLUMNS), np.int64)
        with np.errstate(over="ignore"):
            count = _kernels.draw_visit(
                self._visit_key(job, visit),
                self.numbers,
                self.cumulative,
                is_normal,
                is_erlang,
                tasks,
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
