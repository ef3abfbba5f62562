"""One block of runs behind Karatza and Hilzer 2003: some replications of one network under one policy.

Source: papers/closed-network-task-scheduling.txt; every reading is that of docs/spec/papers.md 5.5, its rules by number.  A
*network* is one point of a table or figure; its replications have draws of their own, which all policies share (rule 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qbatch.papers.closed_network_printed import PRFCFS, PRLSTF, PRSNUTF, PRSTF, SQFCFS
from qbatch.replay.network_run import NetworkMeasures, NetworkRun, QueueRules
from qbatch.workloads.network import Network

SQSTF, SQSNUTF, SQLSTF = "SQSTF", "SQSNUTF", "SQLSTF"
"""What the paper does not try: the shortest queue with a discipline that is not FCFS."""

PRSNUTF_STF = "PrSNUTF-STF"
"""PrSNUTF, if of two tasks whose jobs have as few uncompleted tasks the one with the least estimate goes first."""

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

ESTIMATING = tuple(name for name, rules in RULES.items() if rules.discipline in ("stf", "lstf", "snutf-stf"))
"""The policies that ask for an estimate: for the others its error changes nothing."""

SEED = 1


@dataclass(frozen=True, slots=True)
class NetworkCase:
    """One block: ``count`` replications of a network from the ``first`` on, under a policy; ``seed``: of the draws."""

    network: Network
    policy: str
    first: int
    count: int
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """What each replication of a block gave, in order."""

    case: NetworkCase
    measures: list[NetworkMeasures]


def asked(network: Network, policy: str) -> Network:
    """Return the network that is run under a policy: for one that asks for no estimate, that without errors."""
    return network if policy in ESTIMATING or not network.error else replace(network, error=0.0)


def simulate(case: NetworkCase) -> NetworkFigures:
    """Run a block."""
    return NetworkFigures(
        case,
        [
            NetworkRun(replace(case.network, replication=replication), RULES[case.policy], case.seed).run()
            for replication in range(case.first, case.first + case.count)
        ],
    )
