"""The README is short, and its policy runs every job and keeps the contract."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from qbatch.simulation import run
from tests.contract.test_policies import MACHINES, cases
from tests.harness import workload_of
from tests.oracle.workloads import random_jobs

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def own_code() -> str:
    (code,) = (
        each
        for each in re.findall(r"```python\n(.*?)```", README, re.DOTALL)
        if "class Smallest" in each
    )
    return code


def own_policy():
    space: dict[str, object] = {}
    exec(own_code(), space)  # the block that readers copy
    return space["Smallest"]()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_the_policy_of_the_readme_runs_every_job_on_every_machine(machine) -> None:
    for seed, work in cases(machine, 15):
        assert run(work, machine, own_policy(), is_audited=True).ran.all(), seed


def test_the_policy_of_the_readme_does_what_it_says() -> None:
    work = workload_of(random_jobs(random.Random(1), 10, 4), 4)
    schedule = run(work, MACHINES["one host"], own_policy())
    assert schedule.policy == "smallest"


def test_the_contract_is_run_against_that_policy_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(own_code(), encoding="utf-8")
    command = [
        Path(sys.executable).with_name("pytest"),
        "-q",
        "-p",
        "no:cacheprovider",
        ROOT / "tests" / "contract",
    ]
    found = {}
    for policy in ("mine:Smallest", "mine:Smalest"):
        done = subprocess.run(
            [*command, "--policy", policy],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        found[policy] = (done.returncode, done.stdout + done.stderr)
    code, text = found["mine:Smallest"]
    assert code == 0, text
    assert re.search(r"^22 passed, \d+ deselected", text, re.MULTILINE), text
    code, text = found["mine:Smalest"]
    assert code == 4, text
    assert "--policy: policy 'mine:Smalest': module 'mine' has no 'Smalest'" in text


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150
