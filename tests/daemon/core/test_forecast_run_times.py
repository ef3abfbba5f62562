"""Forecasts by predictions: what then happens, where each user's jobs run as the last ones did."""

from __future__ import annotations

import random

import pytest

from qbatch.daemon.config import as_toml, parse_config
from qbatch.daemon.core import flow, state_snapshot
from qbatch.daemon.executors.attempt import NOT_STARTED
from qbatch.daemon.forecasts import AsExpected
from qbatch.model.errors import InputError
from qbatch.policies import load_policy
from qbatch.wire import requests
from tests.daemon.core.driver import ALICE, BOB, EMULATED, ROOT, SECOND, Bench, forecast_of

PREDICTIONS = 'forecast_run_times = "predictions"\n'
LENGTHS = {ALICE: 40, BOB: 90}


def bench_of(seed: int, policy: str, *, pool: str = "", queue: str = "batch") -> Bench:
    """A server on which alice's jobs always run for 40 s, bob's for 90 s, and both ask for much
    more."""
    draw = random.Random(seed)
    bench = Bench(
        PREDICTIONS + EMULATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"\n{pool}')
    )

    def submit(actor, ncpus: int, walltime: int, queue: str) -> None:
        resources = {"ncpus": str(ncpus), "walltime": str(walltime)}
        bench.submit(resources=resources, runtime=LENGTHS[actor] * SECOND, actor=actor, queue=queue)

    for actor in (ALICE, ALICE, BOB, BOB):
        submit(actor, 1, 1000, "batch")
    bench.wait(200)
    for _ in range(40):
        submit(
            draw.choice((ALICE, BOB)),
            draw.randrange(1, 5),
            draw.randrange(100, 2000),
            draw.choice(("batch", queue)),
        )
        bench.wait(draw.choice([0, 0, 1, 5]))
    bench.wait(1)
    return bench


def starts_and_ends(bench: Bench, jobs: list[str]) -> dict[str, tuple[int | None, int | None]]:
    bench.wait(100_000)
    return {job: (bench.ended[job].started, bench.ended[job].ended) for job in jobs}


@pytest.mark.parametrize(
    "policy",
    [
        "fcfs",
        "easy",
        "easy:order=sjf",
        "hybrid:depth=3",
        "conservative",
        "predicted",
        "predicted:inner=conservative",
    ],
)
@pytest.mark.parametrize("pool", ["spans = true", "single_host = true", ""])
def test_what_is_forecast_happens(policy: str, pool: str) -> None:
    sooner = 0
    for seed in range(4):
        bench = bench_of(seed, policy, pool=pool)
        waiting = {
            bench.core.id_of(job.key) for job in bench.core.live_jobs() if job.state.letter == "Q"
        }
        found, by_estimates = forecast_of(bench), forecast_of(bench, by="estimates")
        assert found.keys() == waiting
        assert found
        assert found == starts_and_ends(bench, list(found))
        sooner += sum(found[job][1] < by_estimates[job][1] for job in found)
    assert sooner > 30


def test_so_it_does_where_jobs_wait_outside_the_engines() -> None:
    for seed in range(3):
        bench = bench_of(seed, "easy", queue="narrow")
        assert any(job.row < 0 for job in bench.core.live_jobs())
        named = forecast_of(bench)
        assert len(named) > 10
        assert named == starts_and_ends(bench, list(named))


def test_of_a_job_that_outlives_its_prediction_a_longer_run_is_expected() -> None:
    bench = bench_of(0, "easy")
    bench.wait(10_000 - bench.now / SECOND)
    late = bench.submit(
        resources={"ncpus": "1", "walltime": "3000"}, runtime=2900 * SECOND, actor=BOB
    )
    bench.wait(0)
    found = bench.core.live(late)
    expected = []
    for seconds in (1, 95, 160, 460):
        bench.wait(10_000 + seconds - bench.now / SECOND)
        bench.core.now = bench.now
        expected.append(AsExpected(bench.core).run_of(found) / SECOND)
    assert expected == [90, 150, 450, 1350]


def test_the_run_times_are_kept_and_made_again_from_the_journal() -> None:
    bench = bench_of(1, "predicted")
    assert bench.core.run_times == {"alice": [40 * SECOND] * 2, "bob": [90 * SECOND] * 2}
    assert bench.replayed(bench.journal).run_times == bench.core.run_times
    copy = state_snapshot.load(state_snapshot.dump(bench.core), bench.settings, load_policy)
    assert copy.run_times == bench.core.run_times


def learnt(bench: Bench) -> list[int]:
    """Return the run times that the policy goes by for alice's jobs, which have to be those that
    the core keeps."""
    (by_policy,) = bench.core.pools[0].engine.view().memory.ended.values()
    assert by_policy == bench.core.run_times["alice"]
    return [each // SECOND for each in by_policy]


def wide(bench: Bench, seconds: int, walltime: int = 3000) -> str:
    return bench.submit(
        resources={"ncpus": "4", "walltime": str(walltime)}, runtime=seconds * SECOND
    )


def past(policy: str, by: str = "predictions") -> Bench:
    """A server of four processors on which two jobs of alice, one after the other, ran for 100
    s."""
    config = EMULATED.replace(
        "[[pool]]", f'[[pool]]\npolicy = "{policy}"\nsingle_host = true\n'
    ).replace("n[1-4]", "n1")
    bench = Bench(f'forecast_run_times = "{by}"\n' + config)
    for _ in range(2):
        wide(bench, 100, 100)
    bench.wait(200)
    return bench


def signal(bench: Bench, job: str, name: str) -> None:
    bench.do(ALICE, requests.Signal(jobs=(job,), signal=name))


def test_an_attempt_that_begins_again_is_no_ended_job_for_the_policy_nor_for_the_forecast() -> None:
    bench = past("predicted")
    job = wide(bench, 50)
    for _ in range(2):
        bench.wait(1)
        bench.do(ROOT, requests.Rerun(jobs=(job,)))
        bench.wait(0)
        assert learnt(bench) == [100, 100]
    wide(bench, 30)
    bench.wait(1000)
    assert learnt(bench) == [50, 30]


def test_a_script_that_could_not_start_is_none_and_a_deleted_job_is_one() -> None:
    bench = past("predicted")
    job = wide(bench, 50)
    bench.wait(1)
    flow.ended(bench.core, bench.core.live(job), NOT_STARTED, "no such interpreter")
    bench.make_pass()
    assert learnt(bench) == [100, 100]
    job = wide(bench, 50)
    bench.wait(20)
    bench.do(ALICE, requests.Delete(jobs=(job,), is_forced=True))
    bench.wait(1)
    assert learnt(bench) == [100, 20]


def test_the_time_for_which_a_job_was_suspended_is_no_run_time() -> None:
    bench = past("predicted")
    job = wide(bench, 50)
    bench.wait(10)
    signal(bench, job, "suspend")
    bench.wait(1000)
    signal(bench, job, "resume")
    bench.wait(100)
    assert (bench.state(job), learnt(bench)) == ("F", [100, 50])


@pytest.mark.parametrize("policy", ["easy", "conservative", "predicted", "fcfs"])
@pytest.mark.parametrize(("by", "length"), [("predictions", 100), ("estimates", 3000)])
def test_what_is_forecast_happens_after_a_job_was_suspended_and_went_on(
    policy: str, by: str, length: int
) -> None:
    bench = past(policy, by)
    job, waiting = wide(bench, length), wide(bench, length)
    began = bench.now
    bench.wait(10)
    for stood, ran in ((1000, 20), (5, 20)):
        signal(bench, job, "suspend")
        bench.wait(stood)
        signal(bench, job, "resume")
        bench.wait(ran)
        found = forecast_of(bench)
        begins = began + (length + 1000 + 5 * (stood == 5)) * SECOND
        assert found == {waiting: (begins, begins + length * SECOND)}
    assert starts_and_ends(bench, [waiting]) == found


@pytest.mark.parametrize("again", ["hold", "rerun"])
def test_a_job_that_is_handed_in_again_is_predicted_anew(again: str) -> None:
    bench = past("predicted")
    wide(bench, 200)
    job = wide(bench, 70)
    bench.wait(1)

    def first(job: str) -> int:
        one = bench.core.pools[0]
        return (
            int(one.policy.first_predictions(one.engine.view())[bench.core.live(job).row]) // SECOND
        )

    assert first(job) == 100
    if again == "hold":
        bench.do(ALICE, requests.Hold(jobs=(job,)))
        bench.wait(300)
        assert learnt(bench) == [100, 200]
        bench.do(ALICE, requests.Release(jobs=(job,)))
    else:
        bench.wait(210)
        assert bench.state(job) == "R"
        bench.do(ROOT, requests.Rerun(jobs=(job,)))
    bench.make_pass()
    assert first(job) == 150


def test_the_key_is_read_written_and_refused_by_name() -> None:
    settings = parse_config(PREDICTIONS + EMULATED, "the test")
    assert settings.forecast_run_times == "predictions"
    assert parse_config(as_toml(settings), "again").forecast_run_times == "predictions"
    assert parse_config(EMULATED, "the test").forecast_run_times == "estimates"
    with pytest.raises(
        InputError, match=r"'guesses' is not known \(known: estimates, predictions\)"
    ):
        parse_config('forecast_run_times = "guesses"\n' + EMULATED, "the test")
