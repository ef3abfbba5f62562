"""Policies exchanged while jobs run, wait, have quanta and are suspended: nobody is lost, nothing is overcommitted."""

from __future__ import annotations

import random

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.machine import Machine
from qbatch.model.record import Workload
from qbatch.policies import load_policy
from qbatch.replay.calendar import Calendar
from tests.oracle import origin2000_checks as checks
from tests.policies.test_origin2000 import machine_of, workload_of

POLICIES = (
    "fcfs", "easy", "hybrid:depth=2", "conservative", "priority-backfill", "sjf-backfill:depth=2", "lsf",
    "immediate:inner=easy", "immediate:inner=conservative,protect=30", "immediate:inner=lsf,protect=0",
    "soon:inner=lxfw-backfill", "soon:inner=lsf", "equispatial", "equispatial:interval=0,over50=yes",
)  # fmt: skip


class Exchanging(Calendar):
    """A calendar that gives the engine another policy now and then, and the pass that the daemon would make for it."""

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


def runs(seeds: range, *, classes: bool) -> list[Exchanging]:
    found = []
    for seed in seeds:
        jobs, hosts, times = checks.random_workload(random.Random(seed))
        jobs = [job for job in jobs if any(host.cpus >= job.procs and host.memory >= job.memory for host in hosts)]
        jobs.sort(key=lambda job: (job.submit, job.sequence))
        machine = machine_of(hosts, times if classes else [])
        if not classes:
            machine = Machine(machine.hosts, single_host=True)
        calendar = Exchanging(workload_of(jobs, machine), machine, random.Random(seed))
        schedule = calendar.run(observe=calendar.look)
        assert (schedule.end >= schedule.start).all(), seed
        found.append(calendar)
    return found


@pytest.mark.parametrize("classes", [False, True])
def test_every_job_ends_whatever_policies_follow_each_other(classes: bool) -> None:
    """The engine checks each action, the audit each round, the calendar that nobody waits at the end."""
    found = runs(range(300), classes=classes)
    assert sum(each.exchanges for each in found) > 1000
    assert sum(each.with_suspended for each in found) > 20
    assert sum(each.with_trials for each in found) > 20
