"""The closed network: task completions a second through the compiled loop, and through engine,
source and policy."""

from __future__ import annotations

from collections.abc import Callable

from qbatch.policies import load_policy
from qbatch.policies.task_queues import QueueRules
from qbatch.simulation.calendar import Calendar
from qbatch.simulation.network import NetworkSource
from qbatch.simulation.network_run import NetworkRun
from qbatch.workloads.network import Network
from tests.bench.timing import best, missed

Row = Callable[[str, str], None]
TARGET = 1_000_000
POLICIES = {
    "PrFCFS": QueueRules("probabilistic"),
    "SQFCFS": QueueRules("shortest"),
    "PrSTF": QueueRules("probabilistic", "stf"),
    "PrSNUTF": QueueRules("probabilistic", "snutf"),
    "PrLSTF": QueueRules("probabilistic", "lstf"),
}


def figures(row: Row, *, is_short: bool) -> None:
    """Measure and tell."""
    length = 2_000.0 if is_short else 20_000.0
    sizes = ((16, 16), (48, 16)) if is_short else ((16, 16), (48, 16), (192, 64), (768, 256))
    for jobs, processors in sizes:
        network = Network(
            jobs=jobs,
            processors=processors,
            length=length,
            mean_io=(processors + 1) / 2 / processors,
        )
        for name, rules in POLICIES.items():
            row(f"{name}, {jobs} jobs, {processors} processors", _speed(network, rules))
    network = Network(jobs=16, length=200.0)
    count = len(_through_engine(network))
    seconds = best(lambda: _through_engine(network), 3)
    row(
        f"the same through engine, source and policy, SQFCFS, 16 jobs, {count:,} tasks",
        f"{count / seconds:,.0f} tasks/s",
    )


def _speed(network: Network, rules: QueueRules) -> str:
    tasks = NetworkRun(network, rules, 1).run().tasks
    runs = [NetworkRun(network, rules, 1) for _ in range(3)]
    speed = tasks / best(lambda: runs.pop().run(), 3)
    return f"{speed:,.0f} tasks/s (target {TARGET:,}{missed(speed < TARGET)})"


def _through_engine(network: Network) -> object:
    return Calendar(NetworkSource(network, 1), network.machine(), load_policy("taskqueues")).run()
