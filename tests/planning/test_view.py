"""The view of a policy: made when it is looked at, in order, and changed for a policy inside
another one."""

from __future__ import annotations

import random

import pytest

from qbatch.engine.engine import Engine
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.resources import resource_model_of
from qbatch.planning.view import View
from qbatch.policies import load_policy

HOSTS = (Host("a", 4, 100), Host("b", 8), Host("c", 2, 10))
MACHINES = {
    "one pool": one_host(14),
    "single host": Machine(HOSTS, single_host=True),
    "chunked": Machine(HOSTS, chunked=True),
}


def busy_engine(machine: Machine, seed: int) -> Engine:
    rng = random.Random(seed)
    engine = Engine(machine, load_policy("easy"))
    for number in range(25):
        job = Job(
            number=number,
            submit=number,
            procs=rng.randint(1, 8),
            estimate=rng.randint(1, 5),
            memory=rng.randint(0, 9),
        )
        engine.handle(number, [Submitted(job)])
    return engine


@pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
def test_those_that_fit_are_those_that_a_scan_finds(machine: Machine) -> None:
    for seed in range(30):
        view = busy_engine(machine, seed).view()
        widest = resource_model_of(machine).widest(machine, view.free)
        fitting = [job for job in view.waiting if job.procs <= widest]
        assert list(view.that_fit()) == fitting
        assert list(view.that_fit("procs")) == sorted(fitting, key=lambda job: (job.procs, job.row))
        by_two = sorted(fitting, key=lambda job: (job.estimate, job.procs, job.row))
        assert list(view.that_fit("estimate", "procs")) == by_two
        free = view.free_now()
        left_out = [job for job in view.waiting if job.procs > widest]
        assert not any(free.take(job) for job in left_out)  # no job that would fit is left out


def test_a_view_is_what_it_was_when_it_was_looked_at_until_the_pass_is_over() -> None:
    seen: list[View] = []

    class Looks:
        def decide(self, view: View) -> list[object]:
            seen.append(view)
            assert view.free == (14 - 4 * len(view.running),)
            return []

    engine = Engine(one_host(14), Looks())
    engine.handle(0, [Submitted(Job(number=1, submit=0, procs=3, estimate=5))])
    engine.handle(1, [Submitted(Job(number=2, submit=1, procs=4, estimate=5))])
    assert [len(view.queue) for view in seen] == [1, 2]
    assert [job.number for job in seen[1].waiting] == [1, 2]
    with pytest.raises(AttributeError):
        seen[1].free = (0,)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        seen[1].now = 5  # type: ignore[misc]


def test_a_changed_view_shows_what_was_given_and_else_the_same() -> None:
    engine = busy_engine(one_host(14), 3)
    view = engine.view()
    other = view.changed(now=99, free=(5,), memory="mine")
    assert (other.now, other.free, other.free_procs, other.memory) == (99, (5,), 5, "mine")
    assert (view.now, view.free) == (24, engine.view().free)
    assert other.queue is view.queue
    assert other.running == view.running


def test_the_view_holds_the_hosts_of_the_jobs_that_ended() -> None:
    seen_hosts: list[frozenset[int]] = []

    class Looks:
        inner = load_policy("easy")

        def decide(self, view: View) -> object:
            seen_hosts.append(view.ended_on)
            return self.inner.decide(view)

    engine = Engine(Machine((Host("a", 2), Host("b", 4)), single_host=True), Looks())
    engine.handle(0, [Submitted(Job(number=1, submit=0, procs=3, estimate=5))])
    engine.handle(2, [Finished(0)])
    assert seen_hosts == [frozenset(), frozenset({1})]


def test_former_names_still_work() -> None:
    assert (View.room, View.space) == (View.free_now, View.resources)
