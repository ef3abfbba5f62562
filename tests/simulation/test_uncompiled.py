"""The loops say the same uncompiled: run in a process with ``NUMBA_DISABLE_JIT=1``, and here for
coverage."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from qbatch.model.machine import Host, Machine, one_host
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.workloads import generate_log

POLICIES = (
    "fcfs",
    "easy",
    "easy:order=lxf",
    "easy:order=sjf",
    "easy:backfill=sjf",
    "hybrid:depth=3",
    "conservative",
    "conservative:compress=start",
    "conservative:compress=none",
    "conservative:compress=scratch",
)


ON_HOSTS = (
    "easy",
    "sjf-backfill:depth=2",
    "lxfw-backfill:depth=3",
    "priority-backfill:wait=1,procs=1,bypass=2",
    "lsf",
    "immediate:inner=lxfw-backfill,protect=60",
    "soon:inner=easy",
    "equispatial:interval=60",
)
POOL = one_host(32)
HOSTS = Machine((Host("a", 16), Host("b", 8), Host("c", 16)), single_host=True)


def starts(policy: str, machine: Machine = POOL) -> list[int]:
    work = prepare(generate_log(jobs=150, procs=16, load=1.3, seed=4), machine)
    return run(work, machine, load_policy(policy), driver="compiled").start.tolist()


RUNS = [*((each, POOL) for each in POLICIES), *((each, HOSTS) for each in ON_HOSTS)]


@pytest.mark.parametrize(("policy", "machine"), RUNS)
def test_the_loops_run_to_the_end(policy: str, machine: Machine) -> None:
    found = starts(policy, machine)
    assert len(found) == 150
    assert min(found) >= 0


def test_compiled_and_uncompiled_loops_agree() -> None:
    code = (
        "import json\nfrom tests.simulation.test_uncompiled import HOSTS, ON_HOSTS, POLICIES, "
        "starts\n"
        "found = {policy: starts(policy) for policy in POLICIES}\n"
        "print(json.dumps([found, {policy: starts(policy, HOSTS) for policy in ON_HOSTS}]))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    on_hosts = {policy: starts(policy, HOSTS) for policy in ON_HOSTS}
    assert json.loads(done.stdout) == [{policy: starts(policy) for policy in POLICIES}, on_hosts]


def test_a_plan_that_remembers_few_releases_says_the_same() -> None:
    code = (
        "import json\nfrom qbatch.planning.kernels import plan\nplan.RELEASES = 3\n"
        "from tests.simulation.test_uncompiled import starts\n"
        "print(json.dumps([starts('conservative'), starts('conservative:compress=start')]))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert json.loads(done.stdout) == [
        starts("conservative"),
        starts("conservative:compress=start"),
    ]
