"""The loops say the same uncompiled: run in a process with ``NUMBA_DISABLE_JIT=1``, and here for coverage."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from qbatch.model.machine import one_host
from qbatch.replay import prepare
from qbatch.workloads import generate_log
from tests.harness import run_named

POLICIES = ("fcfs", "easy", "easy:order=lxf", "easy:order=sjf", "hybrid:depth=3", "conservative",
            "conservative:compress=start", "conservative:compress=none", "conservative:compress=scratch")  # fmt: skip


def starts(policy: str) -> list[int]:
    work = prepare(generate_log(jobs=150, procs=32, load=1.3, seed=4), one_host(32))
    return run_named(work, policy, driver="compiled").start.tolist()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_loops_run_to_the_end(policy: str) -> None:
    found = starts(policy)
    assert len(found) == 150
    assert min(found) >= 0


def test_compiled_and_uncompiled_loops_agree() -> None:
    code = (
        "import json\nfrom tests.replay.test_uncompiled import POLICIES, starts\n"
        "print(json.dumps({policy: starts(policy) for policy in POLICIES}))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout) == {policy: starts(policy) for policy in POLICIES}


def test_a_plan_that_remembers_few_releases_says_the_same() -> None:
    code = (
        "import json\nfrom qbatch.planning.kernels import plan\nplan.RELEASES = 3\n"
        "from tests.replay.test_uncompiled import starts\n"
        "print(json.dumps([starts('conservative'), starts('conservative:compress=start')]))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert json.loads(done.stdout) == [starts("conservative"), starts("conservative:compress=start")]
