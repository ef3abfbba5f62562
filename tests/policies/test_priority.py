"""The priority-backfill family: each weight, each reading, and EASY as a special case (oracle:
test_origin2000.py)."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.snapshot import dump, load
from qbatch.model.actions import Action, Start
from qbatch.model.errors import DecisionError
from qbatch.model.events import Finished, HostClosed, HostOpened, Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.planning.kernels.lists import row_priorities
from qbatch.planning.view import View, jobs_of
from qbatch.policies import load_policy
from qbatch.policies.priority import PriorityBackfill
from tests.harness import run_named, workload_of
from tests.oracle.workloads import random_jobs

SECOND = 1_000_000
HOUR = 3600 * SECOND
HOSTS = (Host("a", 8, 1000), Host("b", 4, 3000), Host("c", 8, 500), Host("d", 2, 4000))
MACHINE = Machine(HOSTS, single_host=True)


@pytest.mark.parametrize(
    ("policy", "other"),
    [
        ("fcfs-backfill", "easy"),
        ("priority-backfill:wait=0,xfactor=0,procs=0", "easy"),
        ("lxf-backfill", "easy:order=lxf"),
        ("fcfs-backfill:depth=4", "hybrid:depth=4"),
        ("fcfs-backfill:depth=0", "hybrid:depth=0"),
    ],
)
def test_on_one_host_it_is_easy_to_the_microsecond(policy: str, other: str) -> None:
    for seed in range(150):
        rng = random.Random(seed)
        work = workload_of(random_jobs(rng, rng.randint(1, 25), 8), 8)
        one, two = run_named(work, policy), run_named(work, other)
        assert np.array_equal(one.start, two.start), seed
        assert np.array_equal(one.end, two.end), seed
        assert np.array_equal(one.kind, two.kind), seed


def submitted(
    number: int, *, submit: int = 0, procs: int = 1, estimate: int = HOUR, memory: int = 0
) -> Submitted:
    return Submitted(
        Job(number=number, submit=submit, procs=procs, estimate=estimate, memory=memory)
    )


@pytest.mark.parametrize(
    ("weight", "jobs", "first"),
    [
        # The job that one weight alone prefers starts first when the machine of 8 becomes free.
        # (wait=1 alone is the order of submission, which also breaks ties.)
        ("wait=-1", [(1, 10, 4, HOUR, 0), (2, 0, 4, HOUR, 0)], 1),
        ("xfactor=1", [(1, 0, 4, 10 * HOUR, 0), (2, 10, 4, HOUR, 0)], 2),
        ("procs=1", [(1, 0, 4, HOUR, 0), (2, 0, 5, HOUR, 0)], 2),
        ("procs=-1", [(1, 0, 5, HOUR, 0), (2, 0, 4, HOUR, 0)], 2),
        ("memory=1", [(1, 0, 5, HOUR, 10), (2, 0, 4, HOUR, 600 << 20)], 2),
        ("both=1", [(1, 0, 5, HOUR, 10), (2, 0, 4, HOUR, 2000 << 20)], 2),
        ("both=1", [(1, 0, 6, HOUR, 10), (2, 0, 5, HOUR, 1000 << 20)], 1),
    ],
)
def test_each_weight_alone(
    weight: str, jobs: list[tuple[int, int, int, int, int]], first: int
) -> None:
    zeros = [name for name in ("wait", "xfactor", "procs") if not weight.startswith(f"{name}=")]
    machine = Machine((Host("m", 8, 4000 << 20),), single_host=True)
    engine = Engine(
        machine,
        load_policy(f"priority-backfill:{weight},{','.join(f'{name}=0' for name in zeros)}"),
        is_audited=True,
    )
    engine.handle(0, [submitted(0, procs=8, memory=1)])
    events = [
        submitted(number, submit=submit * SECOND, procs=procs, estimate=estimate, memory=memory)
        for number, submit, procs, estimate, memory in jobs
    ]
    for event in sorted(events, key=lambda event: event.job.submit):
        engine.handle(event.job.submit, [event])
    done = engine.handle(HOUR, [Finished(0)])
    assert (
        next(
            engine.view().jobs[action.row].number
            for action in done.actions
            if isinstance(action, Start)
        )
        == first
    )


def priorities(policy: PriorityBackfill, view: View, *, is_afterwards: bool = False) -> list[float]:
    """Return the priority of each waiting row at this instant, or at the pass just over."""
    tables = (
        policy._tables_afterwards(view)
        if is_afterwards or view.memory is None
        else view.memory.tables
    )
    return row_priorities(view.now, jobs_of(view), view.queue, tables).tolist()


def test_a_bypass_counts_from_the_next_pass_on() -> None:
    policy = load_policy("priority-backfill:wait=0,xfactor=0,procs=0,bypass=1")
    assert isinstance(policy, PriorityBackfill)
    engine = Engine(one_host(4), policy, is_audited=True)
    engine.handle(0, [submitted(0, procs=3, estimate=HOUR)])
    done = engine.handle(
        1,
        [
            submitted(1, submit=1, procs=4, estimate=HOUR),
            submitted(2, submit=1, procs=1, estimate=SECOND),
        ],
    )
    assert [action.row for action in done.actions if isinstance(action, Start)] == [2]
    view = engine.view()
    assert priorities(policy, view) == [1.0]
    assert priorities(policy, view, is_afterwards=True) == [0.0]
    again = load(engine.machine, load_policy(policy.name), dump(engine))  # a snapshot keeps it
    assert priorities(policy, again.view()) == [1.0]


def test_a_sticky_reservation_outlasts_a_shorter_arrival() -> None:
    # Three jobs: the first runs, the second gets the reservation; then a shorter one comes that
    # would take its place.
    def starts(policy: str) -> list[int]:
        work = workload_of(
            [
                _naive(0, 0, 4, 100, 100),
                _naive(1, 1, 4, 50, 50),
                _naive(2, 2, 4, 10, 10),
            ],
            4,
        )
        return [start // SECOND for start in run_named(work, policy).start.tolist()]

    assert starts("sjf-backfill") == [0, 100, 150]
    assert starts("easy:order=sjf") == [0, 110, 100]


def _naive(sequence: int, submit: int, procs: int, estimate: int, run: int):
    from tests.oracle.naive import Job as Plain

    return Plain(sequence, submit * SECOND, procs, estimate * SECOND, run * SECOND)


def test_a_sticky_reservation_ends_where_its_job_leaves_the_queue_for_closed_hosts() -> None:
    engine = Engine(one_host(4), load_policy("sjf-backfill"))
    engine.handle(0, [Submitted(Job(number=1, submit=0, procs=4, estimate=10_000_000))])
    # Job 2 has a reservation now.
    engine.handle(1, [Submitted(Job(number=2, submit=1, procs=4, estimate=5_000_000))])
    engine.handle(2, [HostClosed(0)])
    engine.handle(3, [Submitted(Job(number=3, submit=3, procs=4, estimate=2_000_000))])
    assert engine.parked == (1, 2)
    engine.handle(4, [HostOpened(0)])
    done = engine.handle(10_000_000, [Finished(0)])
    assert [action.row for action in done.actions if isinstance(action, Start)] == [2]


def test_a_job_goes_to_the_host_with_the_fewest_free_processors() -> None:
    engine = Engine(MACHINE, load_policy("fcfs-backfill"), is_audited=True)
    done = engine.handle(
        0,
        [
            submitted(1, procs=2, memory=600),
            submitted(2, procs=1, memory=600),
            submitted(3, procs=2),
        ],
    )
    places = {
        action.row: HOSTS[action.allocation[0].host].name
        for action in done.actions
        if isinstance(action, Start)
    }
    # d (2 processors) is the fullest; then b (4); then of a and c, equal, the first that has the
    # memory.
    assert places == {0: "d", 1: "b", 2: "b"}


def test_what_waits_says_why_and_for_which_job() -> None:
    engine = Engine(MACHINE, load_policy("priority-backfill"), is_audited=True)
    engine.handle(0, [submitted(number, procs=8, memory=500, estimate=HOUR) for number in range(2)])
    engine.handle(1, [submitted(10, submit=1, procs=8, memory=500, estimate=HOUR)])
    reason = engine.explain(2)
    assert reason.code == "processors"
    assert "8 processors" in reason.text


class Forgetful:
    """A policy around another one that does not keep its record."""

    def __init__(self, inner: str) -> None:
        self.inner = load_policy(inner)

    def decide(self, view: View) -> Iterable[Action]:
        return self.inner.decide(view)


@pytest.mark.parametrize("inner", ["priority-backfill:bypass=1", "sjf-backfill"])
def test_a_wrapper_that_keeps_no_record_is_refused_with_the_reason(inner: str) -> None:
    engine = Engine(one_host(4), Forgetful(inner))
    with pytest.raises(DecisionError, match="keeps what its new_memory returns"):
        engine.handle(0, [Submitted(Job(number=1, submit=0, procs=3, estimate=SECOND))])
