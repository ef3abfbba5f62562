"""A process that has little to do loads no compiler: the same schedule, in plain Python; one with
more to do changes over."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from qbatch.planning.kernels import jit
from tests.harness import OWN_TRACES

pytestmark = pytest.mark.skipif(jit.IS_PLAIN, reason="nothing is compiled here")

CODE = """
import json, sys
from qbatch.planning.kernels import jit
from qbatch.model.machine import Host, Machine, one_host
from qbatch.metrics import measure
from qbatch.policies import load_policy
from qbatch.simulation import compiled, prepare, run
from qbatch.workloads import read_log
from qbatch.workloads.transform import taken

compiled._plain_seconds, driver, policies = float(sys.argv[1]), sys.argv[2], sys.argv[4:]
if driver == "compiled":
    jit.load()
log = taken(read_log(sys.argv[3]), first=1000)
hosts = Machine((Host("a", 128), Host("b", 64)), single_host=True)
found = []
for policy in policies:
    machine = hosts if policy.startswith(("immediate", "equi")) else one_host(128)
    schedule = run(prepare(log, machine), machine, load_policy(policy), driver=driver)
    pieces = None if schedule.pieces is None else schedule.pieces.tolist()
    columns = (schedule.start, schedule.end, schedule.kind, schedule.promise)
    found.append([*(column.tolist() for column in columns), pieces])
measure(schedule)
print(json.dumps(["numba" in sys.modules, found]))
"""
POLICIES = (
    "easy",
    "fcfs",
    "hybrid:depth=3",
    "easy:order=sjf",
    "conservative",
    "lxfw-backfill",
    "immediate:inner=lxfw-backfill",
    "equispatial:interval=300",
    "qops",
)


def ran(seconds: float, driver: str, *policies: str) -> tuple[bool, object]:
    arguments = [
        sys.executable,
        "-W",
        "error",
        "-c",
        CODE,
        str(seconds),
        driver,
        str(OWN_TRACES / "demo-128.swf"),
        *policies,
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=os.environ)
    is_loaded, found = json.loads(done.stdout)
    return is_loaded, found


def test_little_work_loads_no_compiler_and_more_changes_over_in_the_middle() -> None:
    """To what the compiler has made of the loops, which is kept as object code: the compiler is not
    loaded for it."""
    is_loaded, expected = ran(0.0, "compiled", *POLICIES)
    assert is_loaded
    assert ran(60.0, "auto", *POLICIES) == (False, expected)
    assert ran(0.1, "auto", *POLICIES) == (False, expected)
    assert ran(0.0, "auto", *POLICIES) == (False, expected)
