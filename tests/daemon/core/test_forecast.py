"""A forecast is what then happens, where estimates are exact and nothing else is submitted."""

from __future__ import annotations

import random

import pytest

from qbatch.daemon.forecast import is_hopeful
from qbatch.wire import requests
from tests.daemon.core.driver import EMULATED, ROOT, SECOND, Bench, forecast_of

POLICIES = ("fcfs", "easy", "easy:order=sjf", "easy:order=lxf", "hybrid:depth=3", "conservative")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", ["spans = true", "single_host = true", ""])
def test_what_is_forecast_happens(policy: str, kind: str) -> None:
    for seed in range(8):
        draw = random.Random(seed)
        bench = Bench(EMULATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"\n{kind}'))
        for _ in range(40):
            seconds = draw.randrange(1, 200)
            bench.submit(
                resources={"ncpus": str(draw.randrange(1, 5)), "walltime": str(seconds)}, runtime=seconds * SECOND
            )
            bench.wait(draw.choice([0, 0, 1, 5]))
        if seed % 2:
            bench.do(ROOT, requests.HostControl(hosts=("n2",), action="drain"))
            bench.wait(1)
        bench.wait(1)
        found = forecast_of(bench)
        assert found.keys() == hopeful(bench)
        assert found
        bench.wait(100_000)
        assert found == {job: (bench.ended[job].started, bench.ended[job].ended) for job in found}


GATED = (
    EMULATED
    + """
[[queue]]
name = "few"
max_running_per_user = 2
[[queue]]
name = "one"
max_running = 1
"""
)


def hopeful(bench: Bench) -> set[str]:
    """Return the jobs that start in time if nobody does anything."""
    jobs = [each for job in bench.core.live_jobs() for each in bench.core.members(job)]
    return {bench.core.id_of(job.key) for job in jobs if is_hopeful(bench.core, job)}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "immediate:inner=easy", "equispatial"])
def test_run_limits_dependencies_and_times_are_forecast_as_they_happen(policy: str) -> None:
    kind = "single_host = true" if policy in ("equispatial", "immediate:inner=easy") else "spans = true"
    for seed in range(6):
        draw = random.Random(seed)
        bench = Bench(GATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"\n{kind}'))
        jobs: list[str] = []
        for number in range(30):
            seconds = draw.randrange(1, 200)
            more: dict[str, object] = {}
            if jobs and draw.random() < 0.2:
                more["depend"] = f"{draw.choice(['after', 'afterok', 'afterany'])}:{draw.choice(jobs)}"
            if draw.random() < 0.2:
                more["not_before"] = bench.now + draw.randrange(1, 300) * SECOND
            if draw.random() < 0.1:
                more["array"] = "1-4%2"
            job = bench.submit(
                resources={"ncpus": str(draw.randrange(1, 5)), "walltime": str(seconds)}, runtime=seconds * SECOND,
                queue=draw.choice(["batch", "few", "one"]), name=f"n{number}", **more,
            )  # fmt: skip
            if "array" not in more:
                jobs.append(job)
            bench.wait(draw.choice([0, 0, 1, 5]))
        bench.wait(1)
        waiting = hopeful(bench)
        assert any(job.row < 0 for job in bench.core.live_jobs())
        found = forecast_of(bench)
        assert found.keys() == waiting, seed
        bench.wait(1_000_000)
        happened = {job: (bench.ended[job].started, bench.ended[job].ended) for job in found}
        if policy in ("fcfs", "easy", "conservative"):
            assert found == happened, seed
        else:  # how long a resized job takes, or one that is suspended, is not known when it starts
            assert {job: start for job, (start, _) in found.items()} == {job: each[0] for job, each in happened.items()}


def test_a_failed_parent_has_no_forecast_for_who_waits_for_its_failure() -> None:
    bench = Bench(GATED)
    first = bench.submit("sleep 100\n", resources={"walltime": "200"})
    bench.wait(1)
    good = bench.submit("true\n", depend=f"afterok:{first}")
    bad = bench.submit("true\n", depend=f"afternotok:{first}")
    held = bench.submit("true\n", hold="u")
    found = forecast_of(bench)
    assert found[good][0] == 200 * SECOND
    assert not {bad, held} & found.keys()
