"""Policies written in Python make the schedules of the compiled ones: same starts, on the same
hosts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from qbatch.model.actions import Action, Start
from qbatch.model.machine import Host, Machine
from qbatch.model.record import Schedule
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.drivers import run_around_python
from tests.golden.cases import MACHINES, random_workload
from tests.harness import same_places, size, workload_of
from tests.oracle.naive import Job

SECOND = 1_000_000


class FirstComeFirstServed:
    def decide(self, view: View) -> Iterator[Action]:
        free = view.free_now()
        for job in view.waiting:
            if not free.take(job):
                return
            yield Start(job.row)


class FirstFit:
    def decide(self, view: View) -> Iterator[Action]:
        free = view.free_now()
        for job in view.waiting:
            if free.take(job):
                yield Start(job.row)


class Easy:
    """The first job that cannot start gets a reservation that no other delays."""

    def decide(self, view: View) -> Iterator[Action]:
        free, profile, begun = view.free_now(), None, []
        for job in view.waiting:
            if profile is None:
                if allocation := free.place(job):
                    begun.append((allocation, view.now + job.estimate))
                    yield Start(job.row, allocation)
                    continue
                profile = view.resources.profile()
                for allocation, end in begun:
                    profile.reserve(allocation, view.now, end)
                at, allocation = profile.earliest(job.row, max(job.estimate, SECOND), view.now)
                profile.reserve(allocation, at, at + max(job.estimate, SECOND))
            else:
                at, allocation = profile.earliest(job.row, job.estimate, view.now)
                if at == view.now:
                    profile.reserve(allocation, at, at + job.estimate)
                    yield view.resources.start(job.row, allocation)


def compared(kind: type, name: str, machine: str) -> Iterator[tuple[int, Schedule, Schedule]]:
    """Yield the schedules of a policy by name, and of one in Python by both drivers of it."""
    for seed in range(size(25, 400)):
        work = random_workload(random.Random(f"{machine} {seed} in Python"), MACHINES[machine])
        if kind is Easy:  # a job of no length holds processors that a profile gives away
            estimate = np.maximum(work.estimate, SECOND)
            work = replace(work, run=np.clip(work.run, 1, estimate), estimate=estimate)
        named = run(work, MACHINES[machine], load_policy(name))
        yield seed, named, run(work, MACHINES[machine], kind(), driver="engine")
        yield seed, named, run_around_python(work, MACHINES[machine], kind())


COMPILED = {FirstComeFirstServed: "fcfs", FirstFit: "hybrid:depth=0", Easy: "easy"}
# On chunks EASY keeps an instant free for the first job, and a profile keeps hosts free.
PAIRS = [
    (kind, machine)
    for kind in COMPILED
    for machine in MACHINES
    if not (kind is Easy and MACHINES[machine].chunked)
]


@pytest.mark.parametrize(("kind", "machine"), PAIRS)
def test_a_policy_in_python_makes_the_schedule_of_the_compiled_one(
    kind: type, machine: str
) -> None:
    for seed, named, mine in compared(kind, COMPILED[kind], machine):
        assert same_places(named, mine), seed


@pytest.mark.parametrize("driver", ["engine", "loop"])
def test_a_start_without_a_place_takes_the_host_with_the_fewest_free_processors(
    driver: str,
) -> None:
    machine = Machine((Host("a", 2), Host("b", 1)), single_host=True)
    work = workload_of(
        [Job(0, 0, 1, 10 * SECOND, 10 * SECOND), Job(1, 0, 2, 10 * SECOND, 10 * SECOND)], 3
    )
    policy = FirstComeFirstServed()
    mine = (
        run_around_python(work, machine, policy)
        if driver == "loop"
        else run(work, machine, policy, driver="engine", is_audited=True)
    )
    assert mine.start.tolist() == [0, 0]
    assert mine.host is not None
    assert mine.host.tolist() == [1, 0]
    assert same_places(run(work, machine, load_policy("fcfs")), mine)
