"""Shadows of jobs that really run: nothing is known of an end before it has come, and what is
settled never changes."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.daemon.what_if import policy_run
from qbatch.daemon.what_if.group import PolicyGroup
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey
from tests.daemon.core.driver import ALICE, BOB, ROOT, SECOND, Bench
from tests.daemon.core.test_core_properties import one_step
from tests.daemon.core.test_quantum import config
from tests.daemon.what_if.driver import (
    RealBench,
    alone,
    bench_of,
    ended,
    endings,
    fates,
    group_of,
    present,
)
from tests.harness import size

POLICIES = ("fcfs", "easy", "conservative")


def plain_step(bench: Bench, draw: random.Random) -> None:
    """Submit, hold, release and let time go on: what leaves every run time whole."""
    kind = draw.randrange(8)
    job = str(draw.randrange(1, max(bench.core.next_sequence, 2)))
    if kind < 4:
        select = f"{draw.randrange(1, 5)}:ncpus={draw.randrange(1, 5)}"
        estimate = draw.randrange(1, 60)
        bench.submit(
            actor=draw.choice([ALICE, BOB]),
            runtime=draw.randrange(0, estimate * SECOND + 1),
            resources={"select": select, "walltime": str(estimate)},
            array=draw.choice(["", "", "", "1-3"]),
        )
    elif kind < 7:
        bench.wait(draw.randrange(0, 20))
    else:
        kinds = [requests.Hold(jobs=(job,)), requests.Release(jobs=(job,))]
        bench.do(ROOT, draw.choice(kinds))


def story(real: str, seed: int, steps: int) -> Bench:
    draw = random.Random(seed)
    bench = bench_of(real, "process")
    for _ in range(steps):
        with contextlib.suppress(Refusal):
            plain_step(bench, draw)
    # One that is held for ever may have run under a what-if policy.
    for job in list(bench.core.live_jobs()):
        bench.do(ROOT, requests.Release(jobs=(bench.core.id_of(job.key),), kinds="uos"))
    return bench


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(10, 100), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), real=st.sampled_from(POLICIES))
def test_when_all_ends_are_known_the_shadow_did_what_it_would_have_done_alone(
    policy: str, real: str, seed: int, steps: int
) -> None:
    bench = story(real, seed, steps)
    bench.wait(100_000)
    group = group_of(bench_of(real, "process"), [policy])
    group.follow(bench.journal, bench.now)
    shadow = group.runs[policy]
    assert not group.failed
    assert not group.is_provisional
    assert fates(shadow.core) == fates(alone(policy, bench.journal, bench.now).core)
    assert [row.provisional for row in group.report().policies] == [0, 0]
    assert present(group) == group.report()


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(10, 100), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 50), real=st.sampled_from(POLICIES))
def test_what_is_settled_never_changes_and_rests_on_ends_that_have_come(
    policy: str, real: str, seed: int, steps: int
) -> None:
    bench = story(real, seed, steps)
    bench.wait(100_000)
    final = alone(policy, bench.journal, bench.now)
    starts = {key: fate[2] for key, fate in fates(final.core).items()}
    ends = endings(final)
    group = group_of(bench_of(real, "process"), [policy])
    come: set[JobKey] = set()
    for data in bench.journal:
        group.follow([data])
        come |= {
            key for key, record in group.replica.core.recent.items() if record.ended is not None
        }
        shadow = group.runs[policy].core
        assert shadow.now <= group.replica.frontier
        for key, fate in ended(shadow).items():
            assert key in come, "it ended in shadow before anybody could know when it does"
            assert fate == ends[key]
        for job in shadow.live_jobs():
            for one in shadow.members(job):
                if one.state.letter == "R" and not one.is_array:
                    assert one.present.started == starts.get(
                        one.key, ends.get(one.key, (0, 0, 0, 0))[2]
                    )


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(10, 100), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 50), cut=st.floats(0, 1))
def test_the_policy_of_reality_is_never_provisional(
    policy: str, seed: int, steps: int, cut: float
) -> None:
    draw = random.Random(seed)
    bench = bench_of(policy, "process")
    group, place = group_of(bench, [policy]), 0
    for step in range(steps):
        with contextlib.suppress(Refusal):
            plain_step(bench, draw)
        if step == int(cut * steps):
            group, place = group_of(bench, [policy]), len(bench.journal)
        group.follow(bench.journal[place:], bench.now)
        place = len(bench.journal)
        if (step + seed) % size(4, 1):  # a fork of a process as large as this one is dear
            continue
        real, other = present(group).policies
        assert (
            other.wait_mean_s,
            other.bounded_slowdown_mean,
            other.utilisation,
            other.provisional,
        ) == (real.wait_mean_s, real.bounded_slowdown_mean, real.utilisation, 0)
    bench.wait(1000)
    group.follow(bench.journal[place:], bench.now)
    assert fates(group.runs[policy].core) == fates(group.replica.core)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(12, 100), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), real=st.sampled_from(POLICIES))
def test_whatever_is_done_to_jobs_the_shadow_goes_on_and_gets_there(
    policy: str, real: str, seed: int, steps: int
) -> None:
    """Deletions, reruns, signals, lost hosts: nothing is left behind once no more events of the
    real jobs come."""
    draw = random.Random(seed)
    bench = bench_of(real, "process")
    group = group_of(bench, [policy])
    for _ in range(steps):
        with contextlib.suppress(Refusal):
            one_step(bench, draw)
    bench.do(ROOT, requests.HostControl(hosts=("n1", "n2", "n3", "n4"), action="resume"))
    bench.do(ROOT, requests.QueueControl(queues=("batch", "narrow"), started=True))
    for job in list(bench.core.live_jobs()):
        bench.do(ROOT, requests.Release(jobs=(bench.core.id_of(job.key),), kinds="uos"))
    bench.wait(100_000)
    for place in range(0, len(bench.journal), 7):
        group.follow(bench.journal[place : place + 7])
    group.follow([], bench.now)
    assert not group.failed
    for job in group.runs[policy].core.live_jobs():
        for one in group.runs[policy].core.members(job):
            if one.state.letter == "R" and not one.is_array:
                # It runs on here because it was stopped there, or lost its host there, and may run
                # for its walltime.
                most = one.present.started + one.prepared.walltime
                assert bench.core.find(one.key) is not None or most >= group.replica.frontier


def test_a_provisional_number_becomes_the_settled_one() -> None:
    bench = bench_of("fcfs", "process")
    group = group_of(bench, ["easy"])
    wide = {"select": "3:ncpus=4", "walltime": "100"}
    bench.submit(resources=wide, runtime=50 * SECOND)
    bench.submit(resources=wide, runtime=10 * SECOND)
    bench.submit(resources={"select": "1:ncpus=4", "walltime": "80"}, runtime=60 * SECOND)
    bench.wait(20)
    group.follow(bench.journal, bench.now)
    # EASY has started the third at once; reality, first come first served, has not: how long it
    # runs is unknown.
    real, easy = present(group).policies
    assert (real.started, easy.started, easy.ended) == (1, 2, 0)
    assert easy.provisional == 1
    assert not group.runs["easy"].is_settled
    place = len(bench.journal)
    bench.wait(75)  # it has started at 50; by EASY and by its walltime it would have ended at 80
    group.follow(bench.journal[place:], bench.now)
    real, easy = present(group).policies
    assert (real.ended, easy.ended, easy.provisional) == (2, 3, 1)
    assert easy.bounded_slowdown_mean == (50 / 50 + 60 / 10 + 80 / 80) / 3
    place = len(bench.journal)
    bench.wait(20)
    group.follow(bench.journal[place:], bench.now)
    real, easy = group.report().policies
    assert (easy.ended, easy.provisional, group.is_provisional) == (3, 0, False)
    assert easy.bounded_slowdown_mean == (50 / 50 + 60 / 10 + 60 / 60) / 3
    assert easy.utilisation == (12 * 50 + 12 * 10 + 4 * 60) / (16 * 115)


def test_a_deleted_job_that_only_ran_in_shadow_is_provisional_for_ever() -> None:
    bench = bench_of("fcfs", "process")
    group = group_of(bench, ["easy"])
    bench.submit(resources={"select": "3:ncpus=4", "walltime": "100"}, runtime=50 * SECOND)
    bench.submit(resources={"select": "3:ncpus=4", "walltime": "100"}, runtime=10 * SECOND)
    small = bench.submit(resources={"select": "1:ncpus=4", "walltime": "15"}, runtime=5 * SECOND)
    bench.wait(20)
    bench.do(ROOT, requests.Delete(jobs=(small,)))
    bench.wait(200)
    group.follow(bench.journal, bench.now)
    easy = group.report().policies[1]
    assert (easy.ended, easy.provisional, group.is_provisional) == (3, 1, False)
    assert ended(group.runs["easy"].core)[JobKey(3)] == ("F", 0, 0, 15 * SECOND)


def test_a_shadow_too_far_ahead_goes_on_with_walltimes_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_run, "MOST_ITEMS", 50)
    bench = bench_of("fcfs", "process")
    group: PolicyGroup = group_of(bench, ["easy"])
    bench.submit(resources={"select": "3:ncpus=4", "walltime": "1000"}, runtime=900 * SECOND)
    bench.submit(resources={"select": "3:ncpus=4", "walltime": "1000"}, runtime=900 * SECOND)
    for _ in range(60):
        bench.submit(resources={"select": "1:ncpus=4", "walltime": "10"}, runtime=5 * SECOND)
        bench.wait(1)
    group.follow(bench.journal, bench.now)
    assert "was too far ahead of reality" in group.report().note
    assert present(group).policies[1].provisional > 0
    place = len(bench.journal)
    bench.wait(10_000)
    group.follow(bench.journal[place:], bench.now)
    assert not group.is_provisional
    assert group.report().policies[1].ended == 62


def test_a_policy_that_resizes_is_followed_by_the_work_that_real_jobs_have_done() -> None:
    """Reality runs two jobs of four processors one after the other, for 100 s each; in shadow they
    share, for 200 s."""
    text = (
        config(policy="fcfs")
        .replace("cpus = 4", "cpus = 4\nsingle_host = true")
        .replace('"emulated"', '"process"')
    )
    bench = RealBench(text)
    group = group_of(bench, ["equispatial"])
    shadow = group.runs["equispatial"]
    for _ in range(2):
        bench.submit(resources={"ncpus": "4", "walltime": "150"}, runtime=100 * SECOND)
    bench.wait(150)
    group.follow(bench.journal, bench.now)
    assert group.report().policies[1].ended == 0
    assert not shadow.is_settled  # how long the second runs is not known yet
    place = len(bench.journal)
    bench.wait(51)
    group.follow(bench.journal[place:], bench.now)
    assert not group.is_provisional
    assert ended(bench.core) == {
        JobKey(1): ("F", 0, 0, 100 * SECOND),
        JobKey(2): ("F", 0, 100 * SECOND, 200 * SECOND),
    }
    assert ended(shadow.core) == {
        JobKey(1): ("F", 0, 0, 200 * SECOND),
        JobKey(2): ("F", 0, 0, 200 * SECOND),
    }
