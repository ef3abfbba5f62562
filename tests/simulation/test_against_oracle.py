"""Every start of every policy equals the brute-force oracle's, job for job, in both drivers."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

from tests.harness import assert_same, real_log, run_named, size, workload_of
from tests.oracle import naive
from tests.oracle.naive import Job
from tests.oracle.workloads import random_jobs, workloads

POLICIES = {
    "fcfs": naive.fcfs,
    "easy": naive.easy,
    "hybrid:depth=0": lambda jobs, procs: naive.hybrid(jobs, procs, 0),
    "hybrid:depth=1": lambda jobs, procs: naive.hybrid(jobs, procs, 1),
    "hybrid": lambda jobs, procs: naive.hybrid(jobs, procs, 2),
    "hybrid:depth=1000": lambda jobs, procs: naive.hybrid(jobs, procs, 1000),
    "conservative": lambda jobs, procs: naive.conservative(jobs, procs, "arrival"),
    "conservative:compress=start": lambda jobs, procs: naive.conservative(jobs, procs, "start"),
    "conservative:compress=none": lambda jobs, procs: naive.conservative(jobs, procs, "none"),
    "conservative:compress=scratch": lambda jobs, procs: naive.conservative(jobs, procs, "scratch"),
}
LOGS = (
    ("KTH-SP2-1996-2.1-cln", 100),
    ("CTC-SP2-1996-3.1-cln", 338),
    ("SDSC-SP2-1998-4.2-cln", 128),
    ("SDSC-BLUE-2000-4.2-cln", 1152),
    ("LANL-CM5-1994-4.1-cln", 1024),
    ("NASA-iPSC-1993-3.1-cln", 128),
)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("part", range(4))
def test_compiled_equals_oracle_on_thousands_of_random_workloads(policy: str, part: int) -> None:
    for seed in range(part * 1000, part * 1000 + size(200, 1000)):
        rng = random.Random(seed)
        procs = rng.randint(1, 10)
        jobs = random_jobs(rng, rng.randint(1, 14), procs)
        schedule = run_named(workload_of(jobs, procs), policy, driver="compiled")
        assert_same(schedule, POLICIES[policy](jobs, procs), f"seed {seed}: {jobs} on {procs}")


@pytest.mark.parametrize("policy", POLICIES)
def test_engine_equals_oracle_on_random_workloads(policy: str) -> None:
    for seed in range(10_000, 10_000 + size(60, 250)):
        rng = random.Random(seed)
        procs = rng.randint(1, 10)
        jobs = random_jobs(rng, rng.randint(1, 14), procs)
        schedule = run_named(workload_of(jobs, procs), policy, driver="engine")
        assert_same(schedule, POLICIES[policy](jobs, procs), f"seed {seed}: {jobs} on {procs}")


@pytest.mark.parametrize("policy", POLICIES)
@given(drawn=workloads())
@settings(max_examples=size(30, 60))
def test_compiled_and_engine_equal_oracle_on_drawn_workloads(
    policy: str, drawn: tuple[list[Job], int]
) -> None:
    jobs, procs = drawn
    expected = POLICIES[policy](jobs, procs)
    work = workload_of(jobs, procs)
    assert_same(run_named(work, policy, driver="compiled"), expected)
    assert_same(run_named(work, policy, driver="engine"), expected)


@pytest.mark.parametrize("policy", [name for name in POLICIES if "1000" not in name])
def test_deep_queues_equal_oracle(policy: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        jobs = random_jobs(rng, 150, 16)
        schedule = run_named(workload_of(jobs, 16), policy, driver="compiled")
        assert_same(schedule, POLICIES[policy](jobs, 16), f"seed {seed}")


@pytest.mark.parametrize(("log", "procs"), LOGS)
@pytest.mark.parametrize(
    "options", [{}, {"kill": False}, {"estimates": "perfect"}], ids=["kill", "no-kill", "perfect"]
)
def test_prefixes_of_real_logs_equal_oracle(
    log: str, procs: int, options: dict[str, object]
) -> None:
    work = real_log(log, procs, first=size(300, 500), **options)
    columns = zip(
        work.submit.tolist(),
        work.procs.tolist(),
        work.estimate.tolist(),
        work.run.tolist(),
        strict=True,
    )
    jobs = [Job(row, *values) for row, values in enumerate(columns)]
    for policy in ("fcfs", "easy", "conservative", "conservative:compress=start"):
        assert_same(
            run_named(work, policy, driver="compiled"), POLICIES[policy](jobs, procs), policy
        )


@pytest.mark.parametrize(
    ("log", "procs", "means"),
    [
        ("KTH-SP2-1996-2.1-cln", 100, {"fcfs": 353_943, "easy": 6_837, "conservative": 7_320}),
        ("CTC-SP2-1996-3.1-cln", 338, {"fcfs": 655_536, "easy": 13_943, "conservative": 17_675}),
    ],
)
def test_whole_logs_give_the_known_mean_waits(log: str, procs: int, means: dict[str, int]) -> None:
    work = real_log(log, procs)
    for policy, mean in means.items():
        schedule = run_named(work, policy, driver="compiled")
        assert round(float((schedule.start - work.submit).mean()) / 1e6) == mean
