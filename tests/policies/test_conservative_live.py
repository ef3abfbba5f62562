"""What only a live cluster does to a plan: jobs that outlive their estimates, jobs that are taken
back."""

from __future__ import annotations

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.states import State
from qbatch.model.events import Finished, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.policies import load_policy

SECOND = 1_000_000
MACHINES = [one_host(4), Machine((Host("a", 4, 1000),))]


def submitted(number: int, procs: int, estimate: float, submit: float = 0) -> Submitted:
    return Submitted(
        Job(
            number=number, submit=int(submit * SECOND), procs=procs, estimate=int(estimate * SECOND)
        )
    )


def engine_on(machine: Machine) -> Engine:
    return Engine(machine, load_policy("conservative"), is_audited=True)


@pytest.mark.parametrize("machine", MACHINES, ids=["pool", "host"])
def test_a_job_that_outlives_its_estimate_breaks_a_promise_and_that_is_recorded(
    machine: Machine,
) -> None:
    engine = engine_on(machine)
    engine.handle(0, [submitted(1, 4, 10), submitted(2, 4, 5)])
    assert engine.promise_to(1) == 10 * SECOND
    # It is still there at its estimate: taken to end one second from now, again and again.
    done = engine.handle(10 * SECOND, [Woken()])
    assert done.actions[-1].at == 11 * SECOND
    assert engine.next_timer() == 11 * SECOND
    done = engine.handle(11 * SECOND, [Woken()])
    assert engine.next_timer() == 12 * SECOND
    # The promise is not silently moved.
    assert engine.promise_to(1) == 10 * SECOND
    done = engine.handle(11 * SECOND + 400_000, [Finished(0)])
    assert engine.state_of(1) is State.RUNNING
    assert done.broken == (1,)


@pytest.mark.parametrize("machine", MACHINES, ids=["pool", "host"])
def test_arrivals_while_a_job_is_late_are_planned_behind_it(machine: Machine) -> None:
    engine = engine_on(machine)
    engine.handle(0, [submitted(1, 3, 10)])
    engine.handle(12 * SECOND, [submitted(2, 3, 5, 12), submitted(3, 1, 5, 12)])
    assert engine.state_of(2) is State.RUNNING
    assert engine.promise_to(1) == 13 * SECOND


@pytest.mark.parametrize("machine", MACHINES, ids=["pool", "host"])
def test_a_job_that_is_taken_back_frees_its_place_for_those_behind_it(machine: Machine) -> None:
    engine = engine_on(machine)
    engine.handle(
        0, [submitted(1, 3, 100), submitted(2, 4, 50), submitted(3, 1, 120), submitted(4, 2, 10)]
    )
    assert [engine.promise_to(row) for row in (1, 2, 3)] == [
        100 * SECOND,
        150 * SECOND,
        150 * SECOND,
    ]
    engine.handle(20 * SECOND, [Withdrawn(1)])
    assert engine.state_of(2) is State.RUNNING
    assert engine.promise_to(3) == 100 * SECOND
    engine.handle(100 * SECOND, [Finished(0)])
    assert engine.state_of(3) is State.RUNNING


def test_easy_treats_a_late_job_the_same_way() -> None:
    engine = Engine(one_host(4), load_policy("easy"), is_audited=True)
    engine.handle(0, [submitted(1, 3, 10), submitted(2, 4, 5)])
    engine.handle(15 * SECOND, [submitted(3, 1, 1, 15), submitted(4, 1, 2, 15)])
    # The head is expected at 16: the job of one second ends by then, the one of two seconds does
    # not.
    assert engine.state_of(2) is State.RUNNING
    assert engine.state_of(3) is State.QUEUED
    assert engine.explain(3).code in ("processors", "reservation")
