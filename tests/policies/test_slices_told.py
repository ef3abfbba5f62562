"""What the time slices announce (which class has its turn, and when a class has the machine again)
comes true; they take up what another policy left."""

from __future__ import annotations

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.states import State
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.policies import load_policy

SECOND = 1_000_000
LENGTHS = {"short": (300, 400), "medium": (5000, 6000), "long": (40_000, 41_000)}
CLASSES = [name for name, lengths in LENGTHS.items() for _ in lengths]


def submitted(engine: Engine) -> None:
    """Submit two jobs of each class, each as wide as eight processors; rows in the order of
    ``CLASSES``."""
    lengths = [length for both in LENGTHS.values() for length in both]
    jobs = [
        Job(number=n, submit=0, procs=8, estimate=length * SECOND)
        for n, length in enumerate(lengths)
    ]
    engine.handle(0, [Submitted(job) for job in jobs])


@pytest.mark.parametrize("policy", ["scojo:smart=no", "scojo", "scojo-groups"])
def test_the_next_slice_of_a_class_begins_when_it_was_announced(policy: str) -> None:
    """No job ends here, so that all classes go on living."""
    engine = Engine(one_host(8), load_policy(policy), is_audited=True)
    submitted(engine)
    announced: dict[str, set[int]] = {name: set() for name in LENGTHS}
    begun, codes, was = 0, set(), ""
    for _ in range(40):
        phase, at = engine.phase(), engine.now
        assert phase is not None
        assert at is not None
        name = phase.name.removeprefix("slice of ").removesuffix(" jobs")
        if name in LENGTHS and name != was:
            assert announced[name] in (set(), {at})
            begun += bool(announced[name])
            announced[name].clear()
        was = name
        for other, instant in phase.following:
            announced[other].add(instant)
        for row, of_class in enumerate(CLASSES):
            if engine.state_of(row) in (State.QUEUED, State.SUSPENDED):
                reason = engine.explain(row)
                codes.add(reason.code)
                assert reason.numbers.get("slice_end") == phase.until
                if "next_slice" in reason.numbers and of_class != name:
                    announced[of_class].add(reason.numbers["next_slice"])
        timer = engine.next_timer()
        assert timer is not None
        engine.handle(timer, [])
    assert begun >= 10
    assert codes >= {"slice", "processors", "on-disk"}


@pytest.mark.parametrize("before", ["easy", "equispatial:interval=60", "scojo"])
@pytest.mark.parametrize(
    "machine",
    [one_host(8), Machine((Host("a", 8), Host("b", 8)), single_host=True)],
    ids=["one", "two"],
)
def test_what_runs_and_is_suspended_under_another_policy_is_taken_up(
    before: str, machine: Machine
) -> None:
    engine = Engine(machine, load_policy(before), is_audited=True)
    submitted(engine)
    for _ in range(5 if before == "scojo" else 0):
        timer = engine.next_timer()
        assert timer is not None
        engine.handle(timer, [])
    there = {row: engine.state_of(row) for row in range(len(CLASSES))}
    assert (State.SUSPENDED if before == "scojo" else State.RUNNING) in there.values()
    engine.exchange_policy(load_policy("scojo"))
    engine.handle(engine.now or 0, [])
    seen: set[int] = set()
    for _ in range(200):
        running = sorted(engine.view().running)
        seen.update(running)
        timer = engine.next_timer()
        if timer is None or len(seen) == len(CLASSES):
            break
        engine.handle(timer, [])
    assert seen >= {
        row for row, state in there.items() if state in (State.RUNNING, State.SUSPENDED)
    }
    for _ in range(400):
        running = sorted(engine.view().running)
        timer = engine.next_timer()
        if not running and timer is None:
            break
        at = (engine.now or 0) + 1 if running else timer or 0
        engine.handle(at, [Finished(row) for row in running])
    assert {engine.state_of(row) for row in range(len(CLASSES))} == {State.FINISHED}
