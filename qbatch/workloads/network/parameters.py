"""The numbers of a closed network, under the letters of the paper's Table 1, and how they are typed: ``closed:N=24,C=4``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.parameters import Choice, Parameter, Real, Whole, canonical_name, read_parameters
from qbatch.workloads.log import Column
from qbatch.workloads.portable import exp

VARYING = "varying"

PARAMETERS: tuple[Parameter, ...] = (
    Whole("N", 16, 1, 100_000, "jobs in the network (degree of multiprogramming)"),
    Whole("P", 16, 1, 4096, "processors; a job has 1 to P tasks"),
    Whole("servers", 1, 1, 4096, "processors of a station, which share its queue; they divide P"),
    Real("C", 2.0, 1.0, 1000.0, "coefficient of variation of the branching Erlang distribution"),
    Real("x", 1.0, 1e-6, 1e6, "mean service demand of a task, seconds"),
    Real("z", 0.531, 0.0, 1e6, "mean service time of the I/O station, seconds"),
    Real("d", 20.0, 1e-3, 1e9, "mean time until the distribution of the number of tasks changes, seconds"),
    Real("e", 20.0, 1e-3, 1e9, "mean time until the distribution of the demands changes, seconds"),
    Real("E", 0.0, 0.0, 1.0, "error of estimates: they are uniform in demand x (1 - E) to demand x (1 + E)"),
    Choice("tasks", VARYING, (VARYING, "uniform", "normal"), "distribution of the number of tasks; varying: both in turn"),
    Choice(
        "demand", VARYING, (VARYING, "exponential", "erlang"), "distribution of the demands; varying: both in turn"
    ),
    Whole("replication", 0, 0, 10**9, "which replication of the seed"),
    Real("warmup", 200.0, 0.0, 1e9, "how long the network runs before it is measured, seconds"),
    Real("length", 2000.0, 1e-6, 1e9, "how long it is measured, seconds"),
)  # fmt: skip
"""What can be said of a network."""

_QUANTUM = 2.0**-40


@dataclass(frozen=True)
class Network:
    """A closed network (docs/spec/papers.md 5.1); times in seconds.

    Attributes:
        jobs, processors, servers: N, P, and how many processors share a queue.
        variation: C.  mean_demand, mean_io: x and z.
        tasks_interval, demand_interval: d and e.
        error: E.
        tasks, demand: ``varying``, or the one distribution that is always in force.
        replication: which one of the seed.
        warmup, length: the measured window is (warmup, warmup + length].

    Raises:
        UsageError: for a number out of its range (named), and servers that do not divide the processors.
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
        for field, parameter in zip(self.__dataclass_fields__, PARAMETERS, strict=True):
            value = getattr(self, field)
            text = value if isinstance(value, str) else parameter.text(value)
            parameter.read(text, "network")
        if self.processors % self.servers:
            raise UsageError(
                f"network: servers={self.servers} does not divide the P={self.processors} processors into equal stations"
            )

    @property
    def stations(self) -> int:
        """How many stations with a queue there are."""
        return self.processors // self.servers

    @property
    def horizon(self) -> int:
        """The end of the measured window in microseconds."""
        return round((self.warmup + self.length) * 1e6)

    @property
    def name(self) -> str:
        """The network as it is typed: what differs from the defaults."""
        values = {
            parameter.name: getattr(self, field)
            for field, parameter in zip(self.__dataclass_fields__, PARAMETERS, strict=True)
        }
        return canonical_name("closed", values, PARAMETERS)

    def machine(self) -> Machine:
        """Return the machine of the network: a host a station, and a task lives inside one."""
        if self.stations == 1:
            return one_host(self.servers)
        width = len(str(self.stations))
        hosts = tuple(Host(f"n{place:0{width}d}", self.servers) for place in range(1, self.stations + 1))
        return Machine(hosts, single_host=True)

    def cumulative(self) -> Column:
        """Return the probability of at most k tasks, k = 1 ... P, of the bounded normal: mean (1 + P) / 2, deviation a quarter.

        A value is rounded to the nearest whole number, halves up, and drawn again outside 1 ... P.
        """
        mean = (1 + self.processors) / 2
        edges = (np.arange(self.processors + 1) + 0.5 - mean) / (mean / 4)
        upto = np.array([_normal_upto(float(edge)) for edge in edges])
        shares = (upto - upto[0]) / (upto[-1] - upto[0])
        return np.asarray(np.floor(shares[1:] / _QUANTUM + 0.5) * _QUANTUM)


def _normal_upto(z: float) -> float:
    """Return the probability that a standard normal variate is at most z, for |z| up to 8 (Marsaglia 2004)."""
    total = term = z
    divisor = 1
    while total != total + term:
        divisor += 2
        term = term * z * z / divisor
        total = total + term
    density = 0.3989422804014327 * float(exp(np.array([-0.5 * z * z]))[0])
    return 0.5 + total * density


def read_network(text: str) -> Network:
    """Return the network that a text such as ``closed:N=24,C=4,d=10,e=10`` names.

    Raises:
        UsageError: naming the source or parameter, the reason, and what is there.
    """
    head, _, tail = text.partition(":")
    if head != "closed":
        raise UsageError(f"source {text!r}: there is no source {head!r}{suggestion(head, ['closed'])} (known: closed)")
    values = read_parameters([pair for pair in tail.split(",") if pair], PARAMETERS, f"source {text!r}")
    return Network(**dict(zip(Network.__dataclass_fields__, values.values(), strict=True)))
