"""Starts that an operator forces, under every policy: free resources are checked, everything runs
once, the audit holds."""

from __future__ import annotations

import random

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Chunk, Promise, Start
from qbatch.model.errors import DecisionError
from qbatch.model.events import Finished, Forced, HostClosed, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Machine, one_host
from qbatch.model.record import Workload
from qbatch.policies import load_policy
from qbatch.policies.registry import POLICIES
from qbatch.simulation.calendar import Calendar
from tests.contract.test_policies import MACHINES, cases, takes
from tests.harness import size

S = 1_000_000
NAMES = (
    *POLICIES,
    "immediate:protect=0,quantum=2,memory=300",
    "immediate:inner=conservative",
    "equispatial:interval=2",
    "predicted:inner=conservative",
    "conservative:compress=none",
    "conservative:compress=scratch",
)


class Forcing(Calendar):
    """A calendar with an operator that starts a waiting job now and then, in a pass of its own, as
    in the daemon."""

    def __init__(self, work: Workload, machine: Machine, policy: str, draw: random.Random) -> None:
        super().__init__(work, machine, load_policy(policy), is_audited=True)
        self.draw = draw
        self.forced = 0

    def look(self, engine: Engine, done: Round) -> None:
        for row in engine.view().queue.tolist():
            if self.draw.random() < 0.4 and (room := engine.allocation_for(row)):
                self.forced += 1
                self._account(engine.handle(done.at, [Forced(row, room)]))
                return


@pytest.mark.parametrize("policy", NAMES)
def test_every_job_runs_once_and_the_audit_holds(policy: str) -> None:
    forced = 0
    for machine in MACHINES.values():
        if takes(policy, machine):
            for seed, work in cases(machine, size(30, 200)):
                calendar = Forcing(work, machine, policy, random.Random(seed))
                schedule = calendar.run(calendar.look)
                assert schedule.ran.sum() + len(schedule.rejected) == len(work), seed
                forced += calendar.forced
    # In these few runs these policies leave no job waiting that would fit.
    assert forced or policy in ("lsf", "equispatial", "soon")


def submitted(number: int, procs: int, estimate: int) -> Submitted:
    return Submitted(Job(number=number, submit=0, procs=procs, estimate=estimate))


def test_a_forced_start_goes_before_the_policy_and_to_the_hosts_it_names() -> None:
    engine = Engine(MACHINES["spanned hosts"], load_policy("fcfs"), is_audited=True)
    engine.handle(0, [submitted(1, 5, 100), submitted(2, 8, 100), submitted(3, 1, 50)])
    assert sorted(engine.view().running) == [0]
    assert engine.allocation_for(1) == ()  # 3 of 8 are free
    assert engine.allocation_for(2) == (Chunk(1, 1),)
    assert engine.allocation_for(2, {2}) == (Chunk(2, 1),)
    assert engine.allocation_for(2, {0}) == ()
    done = engine.handle(10, [Forced(2, engine.allocation_for(2, {2}))])
    assert done.actions == (Start(2, (Chunk(2, 1),)),)
    assert sorted(engine.view().running) == [0, 2]
    assert engine.handle(100, [Finished(0), Finished(2)]).actions == (
        Start(1, (Chunk(0, 3), Chunk(1, 4), Chunk(2, 1))),
    )


def test_a_forced_start_that_does_not_fit_is_refused_as_one_of_the_policy() -> None:
    engine = Engine(one_host(8), load_policy("easy"), is_audited=True)
    engine.handle(0, [submitted(1, 5, 100), submitted(2, 8, 100)])
    with pytest.raises(DecisionError, match="has 3 processors free"):
        engine.handle(0, [Forced(1, (Chunk(0, 8),))])


def test_a_job_fits_nowhere_when_its_hosts_are_closed() -> None:
    engine = Engine(MACHINES["hosts with memory"], load_policy("easy"), is_audited=True)
    engine.handle(0, [submitted(1, 8, 100), submitted(2, 8, 100), HostClosed(0)])
    assert engine.parked == (0, 1)
    assert engine.allocation_for(0) == ()


def test_a_promise_that_a_forced_start_breaks_is_recorded() -> None:
    engine = Engine(one_host(8), load_policy("conservative"), is_audited=True)
    done = engine.handle(
        0, [submitted(1, 5, 100 * S), submitted(2, 8, 100 * S), submitted(3, 3, 500 * S)]
    )
    assert {Promise(1, 100 * S), Promise(2, 200 * S)} <= set(done.actions)
    engine.handle(0, [Forced(2, engine.allocation_for(2))])
    assert not [
        action
        for action in engine.handle(100 * S, [Finished(0)]).actions
        if isinstance(action, Start)
    ]
    done = engine.handle(500 * S, [Finished(2)])
    assert done.actions[0] == Start(1, (Chunk(0, 8),))
    assert done.broken == (1,)
