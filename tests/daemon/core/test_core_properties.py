"""Random commands at random instants: the invariants hold, and a crash anywhere changes nothing."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.daemon.core import state_snapshot
from qbatch.wire import requests
from qbatch.wire.errors import Refusal
from tests.daemon.core.driver import ALICE, BOB, EMULATED, ROOT, Bench
from tests.harness import size

POLICIES = ("fcfs", "easy", "conservative")


def one_step(bench: Bench, draw: random.Random) -> None:
    known = [str(number) for number in range(1, bench.core.next_sequence)] or ["1"]
    job = draw.choice(known)
    if draw.random() < 0.2 and bench.core.arrays:
        job = f"{draw.choice(list(bench.core.arrays))}[{draw.randrange(1, 5)}]"
    actor = draw.choice([ALICE, BOB, ROOT])
    kind = draw.randrange(16)
    if kind < 5:
        spec: dict[str, object] = {
            "resources": {
                "select": f"{draw.randrange(1, 4)}:ncpus={draw.randrange(1, 5)}",
                "walltime": str(draw.randrange(1, 60)),
            },
            "runtime": draw.randrange(0, 60) * 1_000_000,
            "queue": draw.choice(["batch", "batch", "narrow"]),
            "hold": draw.choice(["", "", "", "u"]),
            "array": draw.choice(["", "", "", "1-4", "1-4%2"]),
        }
        if draw.random() < 0.3:
            spec["depend"] = (
                f"{draw.choice(['afterok', 'afterany', 'afternotok', 'after', 'beforeany', 'runone'])}:{job}"
            )
        if draw.random() < 0.1:
            spec["not_before"] = bench.now + draw.randrange(30) * 1_000_000
        bench.submit(actor=actor, **spec)
    elif kind < 9:
        bench.wait(draw.randrange(0, 20) + draw.choice([0, 0.5]))
    else:
        what = (
            requests.Delete(jobs=(job,)),
            requests.Hold(jobs=(job,)),
            requests.Release(jobs=(job,)),
            requests.Rerun(jobs=(job,)),
            requests.Signal(jobs=(job,), signal=draw.choice(["suspend", "resume", "TERM"])),
            requests.Alter(
                jobs=(job,),
                changes=requests.Changes(resources={"walltime": str(draw.randrange(1, 90))}),
            ),
            requests.Move(jobs=(job,), destination=draw.choice(["batch", "narrow"])),
            requests.HostControl(
                hosts=(f"n{draw.randrange(1, 5)}",),
                action=draw.choice(["drain", "down", "resume", "resume"]),
            ),
            requests.QueueControl(queues=("batch",), started=draw.random() < 0.7),
            requests.ForceStart(
                jobs=tuple(str(number) for number in range(1, bench.core.next_sequence)),
                hosts=draw.choice([(), ("n1",), ("n2", "n3")]),
            ),
        )
        request = draw.choice(what)
        operators = requests.HostControl | requests.QueueControl | requests.ForceStart
        bench.do(ROOT if isinstance(request, operators) else actor, request)


def bench_of(policy: str) -> Bench:
    return Bench(EMULATED.replace("[[pool]]", f'[[pool]]\npolicy = "{policy}"'))


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(25, 60), deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), cut=st.floats(0, 1))
def test_a_crash_anywhere_changes_nothing(policy: str, seed: int, steps: int, cut: float) -> None:
    draw = random.Random(seed)
    bench = bench_of(policy)
    snapshot, place = None, 0
    for step in range(steps):
        with contextlib.suppress(Refusal):
            one_step(bench, draw)
        bench.check()
        if step == int(cut * steps):
            snapshot, place = state_snapshot.dump(bench.core), len(bench.journal)
    whole = state_snapshot.dump(bench.core)
    assert state_snapshot.dump(bench.replayed(bench.journal)) == whole
    assert state_snapshot.dump(bench.replayed(bench.journal[place:], snapshot)) == whole


@pytest.mark.parametrize("policy", POLICIES)
def test_every_job_ends_once_all_is_open(policy: str) -> None:
    for seed in range(size(20, 40)):
        draw = random.Random(seed)
        bench = bench_of(policy)
        for _ in range(60):
            try:
                one_step(bench, draw)
            except Refusal:
                continue
        bench.do(ROOT, requests.HostControl(hosts=("n1", "n2", "n3", "n4"), action="resume"))
        bench.do(ROOT, requests.QueueControl(queues=("batch", "narrow"), started=True))
        for job in list(bench.core.live_jobs()):
            bench.do(ROOT, requests.Release(jobs=(bench.core.id_of(job.key),), kinds="uos"))
            for one in bench.core.members(job) if job.sequence in bench.core.jobs else []:
                if one.state.letter == "S":
                    bench.do(
                        ROOT, requests.Signal(jobs=(bench.core.id_of(one.key),), signal="resume")
                    )
                elif one.hold:
                    bench.do(ROOT, requests.Release(jobs=(bench.core.id_of(one.key),), kinds="uos"))
        bench.wait(100_000)
        bench.check()
        # Jobs that users made to wait for each other wait for ever: that is what they asked for.
        left = [bench.core.id_of(job.key) for job in bench.core.live_jobs() if not job.unmet]
        assert left == [], (seed, left)
