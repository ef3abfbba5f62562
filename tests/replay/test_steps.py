"""The chart pass by pass names what a policy did to jobs that do not run in one go."""

from __future__ import annotations

from qbatch.model.machine import one_host
from qbatch.policies import load_policy
from qbatch.replay.steps import draw_steps
from tests.harness import workload_of
from tests.oracle.naive import Job

SECOND = 1_000_000
JOBS = [
    Job(row, submit * SECOND, procs, estimate * SECOND, run * SECOND)
    for row, (submit, procs, run, estimate) in enumerate([(0, 4, 1000, 2000), (100, 2, 30, 200), (200, 2, 500, 600)])
]


def happened(policy: str) -> list[str]:
    lines = draw_steps(workload_of(JOBS, 4), one_host(4), load_policy(policy))
    return [line.partition(" s: ")[2] for line in lines if line.startswith("t = ")]


def test_quanta_suspensions_and_the_way_back_to_the_queue_are_named() -> None:
    assert happened("immediate:inner=easy,protect=10") == [
        "arrived 1(1); started 1(1)",
        "arrived 2(2); started 2(2) for a quantum; suspended 1(1)",
        "ended 2(2); resumed 1(1)",
        "arrived 3(3); started 3(3) for a quantum; suspended 1(1)",
        "waits again after its quantum 3(3); resumed 1(1)",
        "ended 1(1); started 3(3)",
        "ended 3(3)",
    ]


def test_a_resized_job_is_named_with_its_processors() -> None:
    assert happened("equispatial")[1:3] == [
        "arrived 2(2); started 2(2); resized 1(1) to 2 of 4",
        "ended 2(2); resized 1(1) to 4 of 4",
    ]
