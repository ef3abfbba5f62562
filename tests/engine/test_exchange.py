"""Policies exchanged while jobs run, wait, have quanta and are suspended: no job is lost, nothing
is overcommitted."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.engine.states import State
from qbatch.model.errors import UsageError
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Workload
from qbatch.policies import load_policy
from qbatch.simulation.calendar import Calendar
from tests.engine.live import Life
from tests.oracle import origin2000_checks as checks
from tests.policies.test_origin2000 import machine_of, workload_of

POLICIES = (
    "fcfs",
    "easy",
    "hybrid:depth=2",
    "conservative",
    "priority-backfill",
    "sjf-backfill:depth=2",
    "lsf",
    "immediate:inner=easy",
    "immediate:inner=conservative,protect=30",
    "immediate:inner=lsf,protect=0",
    "soon:inner=lxfw-backfill",
    "soon:inner=lsf",
    "equispatial",
    "equispatial:interval=0,over50=yes",
    "predicted",
    "predicted:inner=conservative,last=1",
)


class Exchanging(Calendar):
    """A calendar that gives the engine another policy now and then, and the pass that the daemon
    would make for it."""

    def __init__(self, work: Workload, machine: Machine, draw: random.Random) -> None:
        super().__init__(work, machine, load_policy(draw.choice(POLICIES)), is_audited=True)
        self.draw = draw
        self.exchanges = self.with_suspended = self.with_trials = 0
        self._is_pass_due = False

    def _next_instant(self) -> int | None:
        return self.engine.now if self._is_pass_due else super()._next_instant()

    def look(self, engine: Engine, done: Round) -> None:
        self._is_pass_due = False
        view = engine.view()
        if self.draw.random() < (0.6 if view.suspended else 0.2):
            self.exchanges += 1
            self.with_suspended += bool(view.suspended)
            self.with_trials += any(engine.is_trial(row) for row in view.running)
            engine.exchange_policy(load_policy(self.draw.choice(POLICIES)))
            self._is_pass_due = True


def runs(seeds: range, kind: str) -> list[Exchanging]:
    found = []
    for seed in seeds:
        jobs, hosts, times = checks.random_workload(random.Random(seed))
        jobs = [
            job
            for job in jobs
            if any(host.cpus >= job.procs and host.memory >= job.memory for host in hosts)
        ]
        jobs.sort(key=lambda job: (job.submit, job.sequence))
        machine = machine_of(hosts, times if kind == "classes" else [])
        if kind == "hosts":
            machine = Machine(machine.hosts, single_host=True)
        elif kind == "pool":
            machine = one_host(max(host.cpus for host in machine.hosts))
        work = workload_of(jobs, machine).changed(user=np.arange(len(jobs)) % 2)
        calendar = Exchanging(work, machine, random.Random(seed))
        schedule = calendar.run(observe=calendar.look)
        assert (schedule.end >= schedule.start).all(), seed
        found.append(calendar)
    return found


@pytest.mark.parametrize("kind", ["hosts", "classes", "pool"])
def test_every_job_ends_whatever_policies_follow_each_other(kind: str) -> None:
    """The engine checks each action, the audit each round, the calendar that no job waits at the
    end."""
    found = runs(range(300), kind)
    assert sum(each.exchanges for each in found) > 1000
    assert sum(each.with_suspended for each in found) > 20
    assert sum(each.with_trials for each in found) > 20


MACHINES = {"pool": one_host(4), "host": Machine((Host("n1", 4, 1 << 30),), single_host=True)}


def after(engine: Engine, seconds: int, *events: object) -> set[int]:
    """Let the engine pass an instant, and its timers before; return the jobs that run."""
    at = seconds * 1_000_000
    while (timer := engine.next_timer()) is not None and timer < at:
        engine.handle(timer, [])
    engine.handle(at, events)  # type: ignore[arg-type]
    return set(engine.view().running)


def wide(number: int, at: int, seconds: int, procs: int = 4) -> Submitted:
    return Submitted(
        Job(number=number, submit=at * 1_000_000, procs=procs, estimate=seconds * 1_000_000)
    )


@pytest.mark.parametrize("machine", MACHINES)
def test_a_job_that_was_suspended_under_another_policy_is_followed_at_once_by_a_plan(
    machine: str,
) -> None:
    """It ends before its estimate, and after the instant at which it would have ended had it not
    stood still."""
    engine = Engine(
        MACHINES[machine], load_policy("immediate:inner=easy,protect=0"), is_audited=True
    )
    after(engine, 0, wide(0, 0, 100))
    assert after(engine, 50, wide(1, 50, 500)) == {1}  # the first stands still for its quantum
    engine.exchange_policy(load_policy("conservative"))
    assert after(engine, 90) == {0}
    assert after(engine, 120, Finished(0)) == {1}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_job_that_was_resized_under_another_policy_gives_back_what_it_has(machine: str) -> None:
    engine = Engine(MACHINES[machine], load_policy("equispatial"), is_audited=True)
    assert after(engine, 0, wide(0, 0, 100), wide(1, 0, 300)) == {0, 1}  # on two processors each
    engine.exchange_policy(load_policy("conservative"))
    assert after(engine, 1, wide(2, 1, 100, 2), wide(3, 1, 100, 2)) == {0, 1}
    assert after(engine, 150, Finished(0)) == {1, 2}
    assert after(engine, 200, Finished(2)) == {1, 3}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_job_that_outlives_its_estimate_in_its_quantum_moves_the_plan_behind_it(
    machine: str,
) -> None:
    engine = Engine(
        MACHINES[machine], load_policy("immediate:inner=conservative,protect=0"), is_audited=True
    )
    after(engine, 0, wide(0, 0, 100))
    # Gets no quantum.
    second = Job(number=1, submit=10_000_000, procs=2, estimate=100_000_000, is_rerunnable=False)
    after(engine, 10, Submitted(second))
    assert after(engine, 96, wide(2, 96, 1)) == {2}  # the first has four seconds left
    for seconds in range(97, 120):
        assert after(engine, seconds) == {2}
    assert after(engine, 120, Finished(2)) == {0}
    assert after(engine, 124, Finished(0)) == {1}


def test_a_policy_that_shares_hosts_among_all_does_not_take_over_jobs_on_disk_without_memory() -> (
    None
):
    """Together they may ask for more memory than the hosts have."""
    engine = Engine(Machine((Host("a", 4, 1000),)), load_policy("scojo"), is_audited=True)
    second, hour = 1_000_000, 3600 * 1_000_000
    engine.handle(0, [Submitted(Job(number=1, submit=0, procs=4, estimate=5 * hour, memory=900))])
    engine.handle(
        second, [Submitted(Job(number=2, submit=second, procs=4, estimate=hour, memory=900))]
    )
    at = engine.next_timer()
    assert at is not None
    engine.handle(at, [])
    assert engine.state_of(0) is State.SUSPENDED
    with pytest.raises(UsageError, match="cannot take over: 1 suspended job gave memory back"):
        engine.exchange_policy(load_policy("equispatial"))
    assert engine.phase() is not None
    engine.exchange_policy(load_policy("easy"))
    engine.handle(at + 1, [])
    assert engine.phase() is None
    assert engine.state_of(0) is State.RUNNING


def test_quanta_count_on_no_processor_for_which_jobs_of_an_earlier_policy_wait() -> None:
    for seed in range(20, 34):
        life = Life(seed, one_host(8))
        engine = Engine(
            life.machine, load_policy("equispatial:interval=3,quantum=2,memory=1"), is_audited=True
        )
        for step in range(70):
            if step == 43:
                engine.exchange_policy(load_policy("immediate:inner=easy,protect=0,quantum=1"))
            drawn = life.next(engine)
            assert drawn is not None
            life.account(engine, engine.handle(*drawn))
