"""Parsl: pilot jobs of HighThroughputExecutor through the provider named by the first argument,
PBSPro or Torque."""

import os
import subprocess
import sys
import time

import parsl
from parsl.addresses import address_by_interface
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.jobs.states import JobState
from parsl.launchers import SingleNodeLauncher
from parsl.providers import PBSProProvider, TorqueProvider

PATH = f"export PATH={os.path.dirname(sys.executable)}:$PATH"


def live() -> list[str]:
    lines = subprocess.run(
        ["qstat"], check=True, capture_output=True, text=True
    ).stdout.splitlines()[2:]
    return [line.split()[0] for line in lines if line.split()[4] in "QREH"]


@parsl.python_app
def square(number):  # type: ignore[no-untyped-def]
    import os

    return number * number, os.environ["PBS_JOBID"]


def main() -> None:
    kind = {"PBSPro": PBSProProvider, "Torque": TorqueProvider}[sys.argv[1]]
    provider = kind(
        queue="batch",
        init_blocks=1,
        max_blocks=1,
        walltime="00:05:00",
        worker_init=PATH,
        launcher=SingleNodeLauncher(),
    )
    executor = HighThroughputExecutor(
        label="htex", address=address_by_interface("lo"), max_workers_per_node=1, provider=provider
    )
    with parsl.load(
        Config(executors=[executor], strategy="none", strategy_period=0.5, usage_tracking=0)
    ):
        found = [square(number).result(timeout=60) for number in range(8)]
        assert [value for value, _ in found] == [number * number for number in range(8)]
        assert {name for _, name in found} == set(live()), (found, live())
        (job,) = provider.resources
        assert provider.status([job])[0].state == JobState.RUNNING, provider.status([job])
        other = provider.submit("sleep 1", 1, "other")
        deadline = time.monotonic() + 30
        while provider.status([other])[0].state != JobState.COMPLETED:
            assert time.monotonic() < deadline, provider.status([other])
            time.sleep(0.2)
    deadline = time.monotonic() + 30
    while live():
        assert time.monotonic() < deadline, live()
        time.sleep(0.1)
    print("done", found)


if __name__ == "__main__":
    main()
