"""List schedulers with a queue that a search puts in order."""

from __future__ import annotations

import os

import numpy as np
import pytest

from qbatch.model.machine import one_host
from qbatch.policies import load_policy
from qbatch.simulation import prepare, run
from qbatch.workloads.lublin import generate_lublin
from tests.harness import run_named
from tests.policies.test_slices import LASTING, random_asked, work_of


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy:order=sjf", "hybrid:depth=4"])
def test_a_search_of_one_order_changes_nothing(policy: str) -> None:
    more = f"{policy}{',' if ':' in policy else ':'}search=ilds,budget=1"
    for seed in range(15):
        work = work_of(random_asked(seed, 10, 40, LASTING))
        plain, searched = run_named(work, policy), run_named(work, more)
        assert plain.start.tolist() == searched.start.tolist(), seed


@pytest.mark.parametrize("walk", ["ilds", "lex", "dds"])
def test_a_search_changes_the_order_and_no_job_is_lost(walk: str) -> None:
    changed = 0
    for seed in range(10):
        work = work_of(random_asked(seed, 10, 40, LASTING))
        schedule = run_named(work, f"easy:search={walk},budget=60")
        assert schedule.ran.all()
        changed += schedule.start.tolist() != run_named(work, "easy").start.tolist()
    assert changed > 3


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="takes minutes uncompiled")
def test_the_least_slowdown_of_the_head_of_the_queue_makes_slowdowns_smaller() -> None:
    work = prepare(generate_lublin(jobs=1500, seed=3, load=0.9), one_host(128))

    def slowdown(policy: str) -> float:
        schedule = run(work, one_host(128), load_policy(policy))
        response = schedule.end - work.submit
        return float(np.mean(np.maximum(response / np.maximum(work.run, 10_000_000), 1.0)))

    assert slowdown("easy:search=ilds") < slowdown("easy")
