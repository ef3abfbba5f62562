"""What the priority-backfill family promises: exact weights, reservations that stick or not, no job
starves."""

from __future__ import annotations

import random

import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.events import Submitted
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine
from qbatch.policies import load_policy
from qbatch.policies.priority import PriorityBackfill
from qbatch.simulation.calendar import Calendar
from tests.contract.test_policies import MACHINES, cases
from tests.harness import run_named, workload_of
from tests.oracle.naive import Job as Asked
from tests.policies.test_priority import priorities

SECOND = 1_000_000
HOUR = 3600 * SECOND
NAMES = ("wait", "xfactor", "procs", "memory", "both", "bypass")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wait", 2.0),  # hours
        ("xfactor", (2 * 3600 + 60) / 60),  # an estimate below a minute counts as one
        ("procs", 3.0),
        ("memory", 5.0),  # 1792 MB, in 358.4 MB
        ("both", 5.0),  # the greater of 3 and 5
        ("bypass", 1.0),  # one job that came later was started before it
    ],
)
def test_each_weight_weighs_its_own_measure(name: str, value: float) -> None:
    # Job 1 holds 6 of 8 processors for ten hours, job 2 waits for 3 from 0 on, job 3 starts behind
    # it at 1 s and is gone.
    weights = ",".join(f"{each}={1 if each == name else 0}" for each in NAMES)
    policy = load_policy(f"priority-backfill:{weights}")
    assert isinstance(policy, PriorityBackfill)
    machine = Machine((Host("m", 8, 8 << 30),), single_host=True)
    engine = Engine(machine, policy, is_audited=True)
    asked = Job(number=2, submit=0, procs=3, estimate=30 * SECOND, memory=1792 << 20)
    engine.handle(0, [Submitted(Job(number=1, submit=0, procs=6, estimate=10 * HOUR))])
    engine.handle(0, [Submitted(asked)])
    # Whatever weighs, job 3 stands behind job 2.
    engine.handle(SECOND, [Submitted(Job(number=3, submit=SECOND, procs=1, estimate=SECOND))])
    assert list(engine.view().running) == [0, 2]
    view = engine.view().changed(now=2 * HOUR)
    assert priorities(policy, view) == pytest.approx([value], rel=1e-15)


@pytest.mark.parametrize(
    ("policy", "first"),
    [
        ("fcfs-backfill", 1),
        ("priority-backfill", 2),
        ("lxf-backfill", 2),
        ("lxfw-backfill", 2),
        ("sjf-backfill", 1),
        ("easy:order=sjf", 2),
    ],
)
def test_a_reservation_is_of_the_highest_priority_now_but_sticks_under_sjf(
    policy: str, first: int
) -> None:
    # All 4 processors until 100 s.  Job 1 (10 h) has the reservation from 0 on.  Job 2 (a minute,
    # from 1 s) is behind it by submission alone; at 100 s its expansion factor is 1 + 99/60, that
    # of job 1 is 1 + 100/36000.
    jobs = [
        Asked(0, 0, 4, 100 * SECOND, 100 * SECOND),
        Asked(1, 0, 4, 10 * HOUR, 10 * HOUR),
        Asked(2, SECOND, 4, 60 * SECOND, 60 * SECOND),
    ]
    start = run_named(workload_of(jobs, 4), policy).start.tolist()
    assert start[first] == 100 * SECOND
    assert start[3 - first] == start[first] + jobs[first].run


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("kind", ["one host", "hosts with memory"])
def test_what_sticks_stays_until_it_starts_and_only_moves_earlier(depth: int, kind: str) -> None:
    kept = moved = 0
    for seed, work in cases(MACHINES[kind], 80):
        before: list[tuple[int, int, int]] = []

        def look(
            engine: Engine,
            done: Round,
            seed: int = seed,
            before: list[tuple[int, int, int]] = before,
        ) -> None:
            nonlocal kept, moved
            waiting = set(engine.view().queue.tolist())
            now = {row: (host, at) for row, host, at in engine.view().memory.held}
            assert set(now) <= waiting
            for row, host, at in before:
                if row in waiting:
                    kept += 1
                    assert row in now, (seed, done.at)
                    assert now[row][1] < at or now[row] == (host, at), (seed, done.at)
                    moved += now[row][1] < at
                else:
                    assert done.at <= at, (seed, row)
            before[:] = engine.view().memory.held

        Calendar(
            work, MACHINES[kind], load_policy(f"sjf-backfill:depth={depth}"), is_audited=True
        ).run(look)
    assert kept > 100
    assert moved > 0


SHORTEST, LONGEST = 500, 700
"""Run times of the small jobs below, seconds."""


def stream(seed: int, count: int) -> tuple[list[Asked], int]:
    """Small jobs that overlap without an end, for half of the processors, and one job that needs
    all 4."""
    rng = random.Random(seed)
    rows, at = [(1000 * SECOND, 4, rng.choice([1, 5, 10]) * HOUR)], 0
    for _ in range(count):
        run = rng.randint(SHORTEST, LONGEST) * SECOND
        rows.append((at, rng.choice([1, 2]), run))
        at += rng.randint(300, 480) * SECOND
    rows.sort()
    jobs = [
        Asked(number, submit, procs, run, run) for number, (submit, procs, run) in enumerate(rows)
    ]
    return jobs, next(job.sequence for job in jobs if job.procs == 4)


@pytest.mark.parametrize(
    ("policy", "wait", "factor"),
    [("lxfw-backfill", 0.0167, 1), ("lxf-backfill", 0, 1), ("priority-backfill", 1, 5)],
)
def test_no_job_starves(policy: str, wait: float, factor: float) -> None:
    # A job of higher priority can overtake the wide job.  A small one has waited for at most 2 x
    # 700 s when it starts, for it fits as soon as the wide job or two small ones are gone.  So from
    # some wait on the wide job has the highest priority for ever, and it starts when the running
    # jobs end.
    for seed in range(10):
        found = []
        for count in (300, 600):
            jobs, wide = stream(seed, count)
            schedule = run_named(workload_of(jobs, 4), policy)
            found.append(int(schedule.start[wide]))
            most = factor * 2 * LONGEST / SHORTEST + wait * 2 * LONGEST / 3600
            hours = most / (wait + factor / (jobs[wide].estimate / HOUR))
            assert found[-1] <= jobs[wide].submit + hours * HOUR + LONGEST * SECOND, seed
            assert found[-1] < jobs[-1].submit, seed
            # The same jobs do starve it where the shortest is always first and no job has a
            # reservation.
            starving = run_named(workload_of(jobs, 4), "easy:order=sjf")
            assert starving.start[wide] > jobs[-1].submit, seed
        assert found[0] == found[1], (seed, "what comes later decides")
