"""The README's own policy runs and keeps the contract, and the files that it names are there."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from qbatch.replay import run
from tests.contract.test_policies import MACHINES, cases
from tests.harness import workload_of
from tests.oracle.workloads import random_jobs

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def own_policy():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    space: dict[str, object] = {}
    exec(code, space)  # the block that readers copy
    return space["Smallest"]()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_the_policy_of_the_readme_runs_every_job_on_every_machine(machine) -> None:
    for seed, work in cases(machine, 15):
        assert run(work, machine, own_policy(), is_audited=True).ran.all(), seed


def test_the_policy_of_the_readme_does_what_it_says() -> None:
    work = workload_of(random_jobs(random.Random(1), 10, 4), 4)
    schedule = run(work, MACHINES["one host"], own_policy())
    assert schedule.policy == "smallest"


def test_what_the_readme_links_to_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
    for command in re.findall(r"traces/[\w.-]+", README):
        assert (ROOT / command.rstrip(".")).exists(), command
