"""Shadows of emulated jobs: the same policy does what reality does; another does what it would have
done alone."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.daemon import journal_entry
from qbatch.daemon.core import passes
from qbatch.daemon.core.state import Core
from qbatch.daemon.settings import Pool, Queue, Settings
from qbatch.daemon.sources import TraceSource
from qbatch.daemon.what_if.group import PolicyGroup
from qbatch.model.errors import QbatchError
from qbatch.model.machine import Host, one_host
from qbatch.policies.registry import load_policy
from qbatch.simulation.drivers import run
from qbatch.simulation.prepare import Options, prepare
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from qbatch.workloads import read_log
from tests.daemon.core.driver import ALICE, ROOT, SECOND, Bench
from tests.daemon.core.test_core_properties import one_step
from tests.daemon.harness import ROOT as HOME
from tests.daemon.what_if.driver import alone, bench_of, ended, endings, fates, group_of
from tests.harness import size

POLICIES = ("fcfs", "easy", "conservative")


def in_pieces(draw: random.Random, journal: list[bytes]) -> list[list[bytes]]:
    pieces = []
    while journal:
        size = draw.randrange(1, 20)
        pieces.append(journal[:size])
        journal = journal[size:]
    return pieces


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(25, 60), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), cut=st.floats(0, 1))
def test_the_policy_of_reality_in_shadow_does_what_reality_does(
    policy: str, seed: int, steps: int, cut: float
) -> None:
    draw = random.Random(seed)
    bench = bench_of(policy)
    group, place = None, 0
    for step in range(steps):
        with contextlib.suppress(Refusal):
            one_step(bench, draw)
        if step == int(cut * (steps - 1)):
            group, place = group_of(bench, [policy]), len(bench.journal)
    bench.wait(1)
    assert group is not None
    for piece in in_pieces(draw, bench.journal[place:]):
        group.follow(piece)
    group.follow([], bench.core.now + 1)
    what_if, replica = group.runs[policy].core, group.replica.core
    assert not group.failed
    assert fates(replica) == fates(what_if)
    # The tables differ in the policy that decides, and in nothing else.
    real, other = group.report().policies
    assert (real.is_real, other.is_real) == (True, False)
    names = [name for name in real.__struct_fields__ if name != "is_real"]
    assert [getattr(real, name) for name in names] == [getattr(other, name) for name in names]


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(25, 60), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), real=st.sampled_from(POLICIES))
def test_another_policy_in_shadow_does_what_it_would_have_done_alone(
    policy: str, real: str, seed: int, steps: int
) -> None:
    draw = random.Random(seed)
    bench = bench_of(real)
    group = group_of(bench, [policy])
    for _ in range(steps):
        with contextlib.suppress(Refusal):
            one_step(bench, draw)
    bench.wait(1)
    own = alone(policy, bench.journal, bench.now)
    for piece in in_pieces(draw, bench.journal):
        group.follow(piece)
    group.follow([], bench.now + 1)
    assert not group.failed
    assert ended(group.runs[policy].core) == endings(own)
    assert fates(group.runs[policy].core) == fates(own.core)


def test_a_policy_that_is_set_in_reality_leaves_the_shadows_as_they_are() -> None:
    draw = random.Random(1)
    bench = bench_of("fcfs")
    group = group_of(bench, ["easy", "conservative"])
    for step in range(60):
        with contextlib.suppress(Refusal):
            one_step(bench, draw)
        if step == 30:
            said = bench.do(ROOT, requests.PolicySet("conservative"))
            assert "fcfs -> conservative" in str(said)
    bench.wait(1)
    group.follow(bench.journal)
    group.follow([], bench.now + 1)
    assert [(row.policy, row.is_real) for row in group.report().policies] == [
        ("conservative", True),
        ("easy", False),
        ("conservative", False),
    ]
    journal = [
        data
        for data in bench.journal
        if not isinstance(journal_entry.read(data).request, requests.PolicySet)
    ]
    for policy, shadow in group.runs.items():
        own = alone(policy, journal, bench.now)
        assert ended(shadow.core) == endings(own)
        assert fates(shadow.core) == fates(own.core)


@pytest.mark.parametrize("real", POLICIES)
def test_a_log_of_300_jobs_runs_in_shadow_as_it_is_replayed(real: str) -> None:
    work = prepare(
        read_log(str(HOME / "traces" / "demo-128.swf")), one_host(128), Options(first=300)
    )
    pool = Pool(name="main", hosts=(Host("machine", 128),), policy=real, spans=True)
    config = Settings(executor="emulated", pools=(pool,), queues=(Queue(name="batch"),))
    core, journal = Core(config, load_policy), []
    trace = TraceSource(work, 0)
    trace.attach(core)
    while instants := [
        each for each in (passes.next_due(core), trace.next_instant()) if each is not None
    ]:
        at = max(min(instants), core.now)
        journal += trace.take(core, at)
        passes.advance(core, at)
        journal.append(journal_entry.one_pass(core.now))
    group = PolicyGroup(Core(config, load_policy), POLICIES, 0)
    group.follow(journal, 1 << 60)
    for policy, shadow in group.runs.items():
        schedule = run(work, one_host(128), load_policy(policy))
        expected = zip(
            work.number.tolist(), schedule.start.tolist(), schedule.end.tolist(), strict=True
        )
        found = [
            (record.extra["log_number"], record.started, record.ended)
            for record in shadow.core.recent.values()
        ]
        assert sorted(found) == sorted((str(number), start, end) for number, start, end in expected)


def test_limits_that_reality_has_applied_do_not_hold_in_shadow() -> None:
    bench = Bench(
        'executor="emulated"\n[[pool]]\nhosts="a"\ncpus=1\npolicy="easy"\n[[queue]]\nname="batch"\n'
        "max_queued=2\n"
        '[[queue]]\nname="spare"\n[[queue]]\nname="route"\ndestinations=["batch","spare"]\n'
    )
    group = group_of(bench, ["fcfs"])
    for runtime in (5, 5, 5, 5):
        bench.submit(queue="route", runtime=runtime * SECOND)
    bench.wait(30)
    group.follow(bench.journal, bench.now)
    queues = {key.sequence: record.queue for key, record in group.runs["fcfs"].core.recent.items()}
    assert queues == {1: "batch", 2: "batch", 3: "spare", 4: "spare"}


def test_only_jobs_that_came_since_count_for_waits_but_all_that_run_use_the_machine() -> None:
    bench = bench_of("fcfs")
    bench.submit(resources={"select": "4:ncpus=4", "walltime": "100"}, runtime=100 * SECOND)
    bench.wait(50)
    group, place = group_of(bench, ["easy"]), len(bench.journal)
    bench.submit(resources={"select": "4:ncpus=4", "walltime": "10"}, runtime=5 * SECOND)
    # Ends at its walltime.
    bench.submit(resources={"select": "1:ncpus=4", "walltime": "10"}, runtime=20 * SECOND)
    bench.wait(100)
    group.follow(bench.journal[place:], bench.now)
    real, easy = group.report().policies
    assert (real.started, real.ended, real.waiting) == (2, 2, 0)
    assert real.wait_mean_s == (50 + 55) / 2
    assert real.wait_max_s == 55
    assert real.bounded_slowdown_mean == (55 / 10 + 65 / 10) / 2
    assert real.utilisation == (50 * 16 + 5 * 16 + 10 * 4) / (16 * 100)
    assert easy.wait_mean_s == real.wait_mean_s


def test_a_shadow_begins_with_what_runs_and_waits() -> None:
    bench = bench_of("fcfs")
    bench.submit(resources={"select": "2:ncpus=4", "walltime": "100"}, runtime=100 * SECOND)
    bench.submit(resources={"select": "4:ncpus=4", "walltime": "10"}, runtime=10 * SECOND)
    small = bench.submit(resources={"select": "1:ncpus=4", "walltime": "20"}, runtime=20 * SECOND)
    bench.wait(10)
    assert bench.state(small) == "Q"
    for policy in ("easy", "conservative"):
        group = group_of(bench, [policy])
        group.follow([], bench.now + 15 * SECOND)
        shadow = fates(group.runs[policy].core)
        assert [each[2] for each in shadow.values()] == [0, None, 10 * SECOND], policy
        assert group.report().policies[1].started == 0


def test_a_policy_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(QbatchError, match="no policy 'esy'"):
        group_of(bench_of("fcfs"), ["esy"])


def test_a_policy_that_fails_leaves_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong_one.py").write_text(
        "class Wrong:\n    name = 'wrong'\n    def decide(self, view):\n        raise "
        "RuntimeError('no\\nidea')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    bench = bench_of("fcfs")
    group = group_of(bench, ["wrong_one:Wrong", "easy"])
    bench.submit(actor=ALICE)
    bench.do(ROOT, requests.HostControl(hosts=("n1",), action="drain"))
    bench.wait(30)
    group.follow(bench.journal, bench.now)
    said = group.report()
    assert [row.policy for row in said.policies] == ["fcfs", "easy"]
    assert "wrong_one:Wrong has failed" in said.note
    assert "\n" not in said.note
    assert said.policies[1].ended == 1
