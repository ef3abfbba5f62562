"""Hosts close and open under every policy: nothing starts there, no job is lost, every job runs in
the end."""

from __future__ import annotations

import numpy as np
import pytest

from qbatch.engine.admission import Admission, refusal
from qbatch.engine.engine import Engine
from qbatch.engine.states import ENDS, State
from qbatch.model.actions import Chunk, Promise, Start
from qbatch.model.errors import DecisionError
from qbatch.model.events import Finished, HostClosed, HostOpened, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.reasons import COULD_START
from qbatch.policies import POLICIES, load_policy
from tests.engine.live import MACHINES, SECOND, Life, Slices, every_policy, pairs
from tests.harness import draws

THREE = Machine((Host("a", 4), Host("b", 4), Host("c", 2)))


@pytest.mark.parametrize(("name", "where"), pairs("slices"))
def test_whatever_closes_everyone_runs_in_the_end(name: str, where: str) -> None:
    machine = MACHINES[where]
    for seed in range(100, 100 + draws(8, name)):
        life = Life(seed, machine)
        engine = Engine(
            machine, Slices() if name == "slices" else load_policy(name), is_audited=True
        )
        for _ in range(60):
            drawn = life.next(engine)
            assert drawn is not None
            life.account(engine, engine.handle(*drawn))
            if life.rng.random() < 0.3:
                _look(engine, machine)
        life.account(engine, engine.handle(life.now, life.end(engine)))
        assert engine.parked == ()
        while (drawn := life.next(engine)) is not None:
            life.account(engine, engine.handle(*drawn))
        states = [engine.state_of(row) for row in range(len(engine.view().columns.submit))]
        assert set(states) <= ENDS, (seed, states)


def _look(engine: Engine, machine: Machine) -> None:
    view = engine.view()
    opened = Admission(machine, engine.closed)
    for row in view.queue.tolist():
        assert opened.refusal(view.jobs[row]) is None
        assert engine.explain(row).code != COULD_START
    for row in engine.parked:
        assert opened.refusal(view.jobs[row]) is not None
        reason = engine.explain(row)
        assert reason.code == "hosts-closed"
        assert reason.numbers["closed"] == len(engine.closed)
    for row, run in view.suspended.items():
        assert engine.state_of(row) is State.SUSPENDED
        assert run.allocation


def submitted(number: int, procs: int, estimate: int, at: int = 0, memory: int = 0) -> Submitted:
    return Submitted(
        Job(
            number=number,
            submit=at * SECOND,
            procs=procs,
            estimate=estimate * SECOND,
            memory=memory,
        )
    )


def test_a_closed_host_takes_nothing_and_what_runs_there_goes_on() -> None:
    engine = Engine(THREE, load_policy("fcfs"), is_audited=True)
    engine.handle(0, [submitted(1, 3, 10)])
    engine.handle(1 * SECOND, [HostClosed(0)])
    assert engine.closed == {0}
    assert engine.view().free == (0, 4, 2)
    done = engine.handle(2 * SECOND, [submitted(2, 2, 10, 2)])
    assert done.actions == (Start(1, (Chunk(1, 2),)),)
    engine.handle(3 * SECOND, [Finished(0)])
    assert engine.view().free == (0, 2, 2)
    engine.handle(4 * SECOND, [HostOpened(0)])
    assert engine.view().free == (4, 2, 2)


def test_parked_rows_come_back_to_their_old_places() -> None:
    engine = Engine(THREE, load_policy("fcfs"), is_audited=True)
    engine.handle(0, [submitted(1, 10, 100)])
    engine.handle(
        1, [submitted(2, 9, 5), submitted(3, 2, 5), submitted(4, 10, 5), submitted(5, 1, 5)]
    )
    done = engine.handle(2, [HostClosed(2)])
    assert (done.parked, done.returned) == ((1, 3), ())
    assert engine.view().queue.tolist() == [2, 4]
    assert engine.state_of(1) is State.QUEUED
    done = engine.handle(3, [HostClosed(1), submitted(6, 9, 5), submitted(7, 4, 5)])
    assert (done.arrived, done.parked) == ((5, 6), (5,))
    assert engine.parked == (1, 3, 5)
    reason = engine.explain(5)
    assert (
        reason.text
        == "the open hosts could never hold it: needs 9 processors on the machine; 4 are there; closed: b, c"
    )
    assert reason.numbers == {"procs": 9, "widest": 4, "closed": 2}
    engine.handle(4, [Withdrawn(3)])
    assert engine.parked == (1, 5)
    done = engine.handle(5, [HostOpened(1), HostOpened(2)])
    assert done.returned == (1, 5)
    assert engine.view().queue.tolist() == [1, 2, 4, 5, 6]


def test_easy_does_not_count_what_ends_on_a_closed_host() -> None:
    engine = Engine(THREE, load_policy("easy"), is_audited=True)
    # Job 1 takes a and half of b until 10, job 2 the rest of b until 20.
    engine.handle(0, [submitted(1, 6, 10), submitted(2, 2, 20)])
    engine.handle(1 * SECOND, [HostClosed(0)])
    # Of b and c 2 are free; the head needs 5: at 10 there are 4, at 20 there are 6.
    engine.handle(2 * SECOND, [submitted(3, 5, 50, 2)])
    engine.handle(3 * SECOND, [submitted(4, 2, 17, 3)])
    assert engine.state_of(3) is State.RUNNING
    engine.handle(3 * SECOND, [submitted(5, 2, 18, 3)])
    assert engine.state_of(4) is State.QUEUED
    engine.handle(10 * SECOND, [Finished(0)])
    # By 20 there are 4 + 2 - 5 extra.
    engine.handle(10 * SECOND, [submitted(6, 1, 50, 10)])
    assert engine.state_of(5) is State.RUNNING


@pytest.mark.parametrize(
    "name",
    [name for name in every_policy() if not POLICIES[name.partition(":")[0]].has_own_passes],
)
def test_everything_closed_parks_everyone(name: str) -> None:
    engine = Engine(one_host(4), load_policy(name), is_audited=True)
    engine.handle(0, [submitted(1, 3, 10), submitted(2, 3, 10), submitted(3, 1, 30)])
    engine.handle(1 * SECOND, [HostClosed(0), submitted(4, 2, 10, 1)])
    assert len(engine.view().queue) == 0
    assert engine.explain(3).text.endswith("closed: machine")
    engine.handle(9 * SECOND, [Finished(0), Woken()])
    engine.handle(10 * SECOND, [HostOpened(0)])
    running = [row for row in (1, 3) if engine.state_of(row) is State.RUNNING]
    # Which of the two that cannot run together is first is up to the policy's order; most look by
    # submission.
    assert running
    assert running[0] == 1 or "=-" in name


@pytest.mark.parametrize(
    "machine", [THREE, MACHINES["hosts without memory"]], ids=["pool", "hosts"]
)
def test_a_promise_that_a_closing_breaks_stays_announced_and_is_recorded(machine: Machine) -> None:
    engine = Engine(machine, load_policy("conservative"), is_audited=True)
    engine.handle(
        0, [submitted(1, 5, 10), submitted(2, 5, 10), submitted(3, 5, 10), submitted(4, 5, 10)]
    )
    promised = engine.promise_to(3)
    assert promised is not None
    engine.handle(1 * SECOND, [HostClosed(1)])
    engine.handle(10 * SECOND, [Finished(0)])
    assert engine.promise_to(3) == promised
    done = engine.handle(50 * SECOND, [HostOpened(1)])
    assert [action.at for action in done.actions if isinstance(action, Promise)] == []
    ends = dict.fromkeys((1, 2, 3))
    broken = set(done.broken)
    at = 50
    while ends and at < 100:
        at += 1
        running = list(engine.view().running)
        done = engine.handle(at * SECOND, [Finished(row) for row in running])
        broken |= set(done.broken)
        ends = {row: None for row in ends if engine.state_of(row) is State.QUEUED}
    assert 3 in broken


def test_a_policy_may_not_start_what_is_parked_or_use_a_closed_host() -> None:
    class Stubborn:
        def __init__(self, action: Start) -> None:
            self.action = action

        def decide(self, view: object) -> list[Start]:
            return [self.action] if view.closed else []  # type: ignore[attr-defined]

    for action, reason in (
        (Start(0), "are closed"),
        (Start(1, (Chunk(0, 1),)), "host a is closed"),
    ):
        engine = Engine(THREE, Stubborn(action), is_audited=True)
        engine.handle(0, [submitted(1, 10, 1), submitted(2, 1, 1)])
        with pytest.raises(DecisionError, match=reason):
            engine.handle(1, [HostClosed(0)])
    with pytest.raises(DecisionError, match="no host 7"):
        Engine(THREE, load_policy("fcfs")).handle(0, [HostClosed(7)])


def test_the_quick_admission_says_what_the_slow_one_says() -> None:
    gpus = (
        Host("a", 8, 1000, resources=(("gpu", 2),)),
        Host("b", 4),
        Host("c", 10, resources=(("gpu", 1), ("nvme", 1))),
    )
    for machine in (*MACHINES.values(), THREE, Machine(gpus, single_host=True)):
        if machine.chunked:
            continue
        places = range(len(machine.hosts))
        for closed in (frozenset(), frozenset({0}), frozenset(places)):
            opened = Admission(machine, closed)
            jobs = [
                Job(number=1, submit=0, procs=procs, estimate=1, memory=memory, resources=resources)
                for procs in range(1, 12)
                for memory in (0, 1, 999, 1000, 1001, 3000, 3001)
                for resources in (
                    ((), (("gpu", 1),), (("nvme", 1), ("gpu", 2))) if machine.resources else ((),)
                )
            ]
            asked = np.array(
                [(job.procs, job.memory, *machine.amounts(job.resources)) for job in jobs]
            ).T
            found = opened.holds(asked).tolist()
            assert found == [refusal(opened.machine, job) is None for job in jobs]
