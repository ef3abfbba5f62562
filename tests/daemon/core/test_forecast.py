"""A forecast is what then happens, where estimates are exact and nothing else is submitted."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from qbatch.daemon.core import passes
from qbatch.daemon.forecasts import is_hopeful
from qbatch.wire import requests
from tests.daemon.core.driver import EMULATED, ROOT, SECOND, Bench, forecast_made, forecast_of

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
                resources={"ncpus": str(draw.randrange(1, 5)), "walltime": str(seconds)},
                runtime=seconds * SECOND,
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


SLICES = "scojo:cycle=60,switch=3,short=20,class_by=queue"

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
    """Return the jobs that start in time if no user does anything."""
    jobs = [each for job in bench.core.live_jobs() for each in bench.core.members(job)]
    return {bench.core.id_of(job.key) for job in jobs if is_hopeful(bench.core, job)}


def happened(bench: Bench, jobs: Iterable[str]) -> dict[str, tuple[int | None, int | None]]:
    """Return when jobs that have ended started and ended."""
    return {job: (bench.ended[job].started, bench.ended[job].ended) for job in jobs}


@pytest.mark.parametrize(
    "policy", ["fcfs", "easy", "conservative", "immediate:inner=easy", "equispatial"]
)
def test_run_limits_dependencies_and_times_are_forecast_as_they_happen(policy: str) -> None:
    kind = (
        "single_host = true"
        if policy in ("equispatial", "immediate:inner=easy")
        else "spans = true"
    )
    for seed in range(6):
        draw = random.Random(seed)
        bench = Bench(GATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"\n{kind}'))
        jobs: list[str] = []
        for number in range(30):
            seconds = draw.randrange(1, 200)
            more: dict[str, object] = {}
            if jobs and draw.random() < 0.2:
                more["depend"] = (
                    f"{draw.choice(['after', 'afterok', 'afterany'])}:{draw.choice(jobs)}"
                )
            if draw.random() < 0.2:
                more["not_before"] = bench.now + draw.randrange(1, 300) * SECOND
            if draw.random() < 0.1:
                more["array"] = "1-4%2"
            job = bench.submit(
                resources={"ncpus": str(draw.randrange(1, 5)), "walltime": str(seconds)},
                runtime=seconds * SECOND,
                queue=draw.choice(["batch", "few", "one"]),
                name=f"n{number}",
                **more,
            )
            if "array" not in more:
                jobs.append(job)
            bench.wait(draw.choice([0, 0, 1, 5]))
        bench.wait(1)
        waiting = hopeful(bench)
        assert any(job.row < 0 for job in bench.core.live_jobs())
        found = forecast_of(bench)
        assert found.keys() == waiting, seed
        bench.wait(1_000_000)
        assert found == happened(bench, found), seed


def test_a_failed_parent_has_no_forecast_for_jobs_that_wait_for_its_failure() -> None:
    bench = Bench(GATED)
    first = bench.submit("sleep 100\n", resources={"walltime": "200"})
    bench.wait(1)
    good = bench.submit("true\n", depend=f"afterok:{first}")
    bad = bench.submit("true\n", depend=f"afternotok:{first}")
    held = bench.submit("true\n", hold="u")
    found = forecast_of(bench)
    assert found[good][0] == 200 * SECOND
    assert not {bad, held} & found.keys()


ON_HOSTS = (
    "fcfs",
    "easy:order=lxf",
    "conservative",
    "immediate:inner=easy,protect=0,quantum=30",
    "equispatial",
    SLICES,
)


def crowded(policy: str, seed: int) -> Bench:
    """A server with long queue: each job runs for its walltime."""
    draw = random.Random(seed)
    kind = "single_host = true"
    bench = Bench(GATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"\n{kind}'))
    for _ in range(60):
        seconds = draw.randrange(1, 400)
        bench.submit(
            resources={"ncpus": str(draw.randrange(1, 5)), "walltime": str(seconds)},
            runtime=seconds * SECOND,
            queue=draw.choice(["batch", "batch", "few"]),
        )
        bench.wait(draw.choice([0, 0, 1]))
    bench.wait(1)
    return bench


@pytest.mark.parametrize("policy", ON_HOSTS)
def test_a_forecast_goes_no_further_than_what_is_asked_for(policy: str) -> None:
    for seed in range(3):
        bench = crowded(policy, seed)
        whole = forecast_made(bench)
        assert whole.is_whole
        assert len(whole.found) > 20
        by_start = sorted(whole.found.items(), key=lambda item: item[1].start)
        made = forecast_made(bench, first=5)
        assert not made.is_whole
        starts = sorted(each.start for each in made.found.values())
        assert starts == [each.start for _, each in by_start[: len(starts)]]
        for key, expected in by_start:
            if expected.start < by_start[5][1].start:
                assert made.found[key] == expected, "the end too is that of the whole forecast"
        # Under the others it waits for ends.
        if policy in ("fcfs", "easy:order=lxf", "conservative"):
            assert starts[-1] == by_start[4][1].start
        key, expected = by_start[8]
        made = forecast_made(bench, first=0, jobs=(bench.core.id_of(key),))
        assert made.found[key].start == expected.start
        assert len(made.found) < len(whole.found)
        assert forecast_made(bench, first=len(by_start)) == whole
        bench.wait(1_000_000)
        found = {bench.core.id_of(key): times for key, times in whole.found.items()}
        assert found == happened(bench, found)


def test_of_an_array_the_first_start_is_enough() -> None:
    bench = Bench(GATED)
    bench.submit("sleep 100\n", resources={"select": "4:ncpus=4", "walltime": "100"})
    array = bench.submit("sleep 100\n", resources={"ncpus": "4", "walltime": "100"}, array="1-40%2")
    bench.wait(1)
    found = forecast_of(bench, first=0, jobs=(array,))
    assert sorted(found.values()) == [(100 * SECOND, 200 * SECOND)] * 2


def test_a_job_that_never_starts_is_looked_for_until_nothing_is_due() -> None:
    bench = Bench(GATED)
    first = bench.submit("sleep 100\n", resources={"walltime": "200"})
    bench.wait(1)
    never = bench.submit("true\n", depend=f"afternotok:{first}")
    held = bench.submit("true\n", hold="u")
    for job in (never, held):
        made = forecast_made(bench, first=0, jobs=(job,))
        assert made.is_whole
        assert made.found == {}


def test_jobs_that_a_user_holds_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(GATED)
    for _ in range(3):
        bench.submit("sleep 100\n", resources={"select": "4:ncpus=4", "walltime": "100"})
    bench.submit("true\n", hold="u")
    bench.wait(1)
    instants: list[int] = []
    advance = passes.advance
    monkeypatch.setattr(
        passes, "advance", lambda core, at: (instants.append(at), advance(core, at))
    )
    made = forecast_made(bench)
    assert made.is_whole
    assert [each.start // SECOND for each in made.found.values()] == [100, 200]
    assert instants[-1] == 200 * SECOND, "nor are ends, once every job has started"


def test_a_trial_that_has_too_little_memory_is_no_start() -> None:
    pool = (
        '[[pool]]\npolicy = "immediate:inner=easy,protect=0,quantum=30,memory=1GB"\nmemory = "8GB"'
    )
    bench = Bench(GATED.replace("[[pool]]", pool).replace("n[1-4]", "n1"))
    bench.submit("sleep 100\n", resources={"ncpus": "4", "walltime": "100"})
    bench.wait(10)
    asked = {"ncpus": "2", "walltime": "50", "mem": "4gb"}
    waiting = bench.submit("sleep 50\n", resources=asked, used_memory=4 << 30)
    found = forecast_of(bench)
    bench.wait(1000)
    assert bench.ended[waiting].run_count > 1
    assert found == happened(bench, [waiting])
