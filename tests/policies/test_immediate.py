"""Immediate service and "soon": against the naive oracle on random small workloads, and in cases
worked by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.states import State
from qbatch.model.actions import Chunk, Start, Suspend
from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.events import (
    Finished,
    HostClosed,
    HostOpened,
    Returned,
    Submitted,
    Withdrawn,
    Woken,
)
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule
from qbatch.planning.kernels.quanta import by_slowdown
from qbatch.planning.policy import compiled_of
from qbatch.policies import load_policy
from qbatch.simulation import run
from tests.harness import same_schedule, size, total_wait, workload_of
from tests.oracle import naive
from tests.policies import naive_quantum
from tests.policies.naive_quantum import Asked

SECOND = 1_000_000


def schedule_of(policy: str, hosts: list[tuple[int, int]], jobs: list[Asked]) -> Schedule:
    machine = Machine(tuple(Host(f"h{n}", *host) for n, host in enumerate(hosts)), single_host=True)
    rows = [
        naive.Job(n, job.submit, job.procs, job.estimate, job.run) for n, job in enumerate(jobs)
    ]
    work = workload_of(rows, machine.procs, [job.memory for job in jobs])
    used = np.array([job.used for job in jobs], np.int64)
    work, chosen = _Used.of(work, used), load_policy(policy)
    schedule = run(work, machine, chosen, driver="engine", is_audited=True)
    if compiled_of(chosen, machine) is not None:
        assert same_quanta(schedule, run(work, machine, chosen, driver="compiled", is_audited=True))
    return schedule


def same_quanta(one: Schedule, other: Schedule) -> bool:
    """Return whether two schedules are equal in places and execution intervals too."""
    lists = [
        [None if part is None else part.tolist() for part in (each.host, each.pieces)]
        for each in (one, other)
    ]
    return same_schedule(one, other) and lists[0] == lists[1]


class _Used:
    """A workload that knows what its jobs use."""

    @staticmethod
    def of(work, used):
        if hasattr(work, "used_memory"):
            return work.changed(used_memory=used)
        kind = type("WorkloadWithUse", (type(work),), {"used_memory": used, "__slots__": ()})
        return kind(**{name: getattr(work, name) for name in type(work).__dataclass_fields__})


def random_case(seed: int) -> tuple[list[tuple[int, int]], list[Asked]]:
    rng = random.Random(seed)
    has_memory = rng.random() < 0.6
    hosts = [
        (rng.randint(1, 6), rng.choice((0, 10, 20, 30)) if has_memory else 0)
        for _ in range(rng.choice((1, 1, 2, 3)))
    ]
    jobs, at = [], 0
    for _ in range(rng.randint(2, 12)):
        at += rng.choice((0, 0, 1, 2, 5, 9)) * SECOND
        procs, memory = rng.choice(hosts)
        estimate = rng.choice((1, 2, 3, 5, 8, 12, 30)) * SECOND
        size = rng.choice((0, 1, 5, 10, memory)) if memory else 0
        size = min(size, memory)
        used = rng.choice((0, size, size // 2, min(size, 3)))
        run_time = rng.choice((estimate, estimate, estimate // 2, 1))
        jobs.append(Asked(at, rng.randint(1, procs), size, estimate, run_time, used))
    return hosts, jobs


@pytest.mark.parametrize("kind", ["immediate", "soon"])
@pytest.mark.parametrize(
    ("inner", "key", "depth"),
    [
        ("lxfw-backfill", naive_quantum.expansion_and_wait, 1),
        ("fcfs-backfill", naive_quantum.first_come, 2),
    ],
)
def test_every_job_goes_as_the_oracle_says(kind: str, inner: str, key, depth: int) -> None:
    pieces = 0
    for seed in range(size(300, 1200)):
        hosts, jobs = random_case(seed)
        rng = random.Random(seed + 1_000_000)
        quantum, memory, protect = (
            rng.choice((1, 2, 4)),
            rng.choice((2, 5, 10)),
            rng.choice((0, 1, 3)),
        )
        text = f"{kind}:inner={inner},quantum={quantum},memory={memory},inner.depth={depth}"
        text += f",protect={protect}" if kind == "immediate" else ""
        schedule = schedule_of(text, hosts, jobs)
        naively = naive_quantum.Machine(
            hosts,
            jobs,
            key,
            depth,
            quantum * SECOND,
            memory,
            protect * SECOND if kind == "immediate" else None,
        ).simulate()
        assert schedule.end.tolist() == [life.end for life in naively], (seed, text, hosts, jobs)
        assert schedule.start.tolist() == [life.first for life in naively], (seed, text)
        pieces += schedule.pieces is not None
    assert pieces > size(75, 300) if kind == "immediate" else size(25, 100)


INNER = (
    "fcfs",
    "easy",
    "easy:order=sjf",
    "hybrid:depth=3",
    "lxfw-backfill",
    "sjf-backfill:depth=2",
    "priority-backfill:procs=1,bypass=2",
)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("kind", ["immediate", "soon"])
def test_both_drivers_give_the_same_schedule(kind: str, inner: str) -> None:
    name, _, rest = inner.partition(":")
    own = "".join(f",inner.{each}" for each in rest.split(",") if each)
    in_pieces = refused = 0
    for seed in range(size(20, 50)):
        rng = random.Random(seed)
        hosts = [(rng.randint(2, 12), rng.choice((0, 20, 40))) for _ in range(rng.randint(2, 4))]
        jobs, at = [], 0
        for _ in range(rng.randint(1, 50)):
            at += rng.choice((0, 0, SECOND, 2 * SECOND, rng.randint(0, 5 * SECOND)))
            procs, memory = rng.choice(hosts)
            estimate = rng.choice((0, 1, 3, 8, 30)) * SECOND
            # Some ask for more than there is, some outlive their estimates, some use more memory
            # than a trial run has.
            run_time = rng.choice((estimate, estimate // 2, 0, rng.randint(0, estimate + SECOND)))
            jobs.append(
                Asked(
                    at,
                    rng.randint(1, procs) + 12 * (rng.random() < 0.03),
                    rng.choice((0, 3, memory)),
                    estimate,
                    run_time,
                    rng.choice((-1, 0, 3, 10)),
                )
            )
        protect = f",protect={rng.choice((0, 1, 3))}" if kind == "immediate" else ""
        schedule = schedule_of(
            f"{kind}:inner={name},quantum=3,memory={rng.choice((2, 5))}{protect}{own}", hosts, jobs
        )
        in_pieces += schedule.pieces is not None
        refused += bool(schedule.rejected)
    assert in_pieces > size(4, 10)
    assert refused > size(4, 10)


def test_many_jobs_of_equal_slowdown_are_preempted_by_sequence() -> None:
    # 3 / 1, 6 / 2 and 9 / 3 are equal as doubles and as whole numbers.
    facts = [
        [0] * 4,
        [1] * 4,
        [9 * SECOND, 3 * SECOND, 6 * SECOND, 10**17 * 3],
        [3 * SECOND, SECOND, 2 * SECOND, 10**17],
    ]
    assert by_slowdown(np.array(facts, np.int64)).tolist() == [0, 1, 2, 3]
    near = [[0] * 3, [1] * 3, [10**17 + 2, 10**17 + 1, 10**17], [10**16] * 3]
    assert by_slowdown(np.array(near, np.int64)).tolist() == [2, 1, 0]


def asked(
    submit: int, procs: int, estimate: int, run_time: int = -1, memory: int = 0, used: int = 0
) -> Asked:
    """A job in seconds."""
    return Asked(
        submit * SECOND,
        procs,
        memory,
        estimate * SECOND,
        (estimate if run_time < 0 else run_time) * SECOND,
        used,
    )


def seconds(times) -> list[float]:
    return [time / SECOND for time in times]


IMMEDIATE = "immediate:inner=fcfs-backfill,quantum=60,memory=10,protect=600"


def test_a_new_job_takes_the_processors_of_a_preempted_job_that_resumes_afterwards() -> None:
    schedule = schedule_of(IMMEDIATE, [(4, 0)], [asked(0, 4, 1000), asked(600, 3, 20)])
    assert seconds(schedule.start) == [0, 600]
    assert seconds(schedule.end) == [1020, 620]
    assert seconds(total_wait(schedule)) == [20, 0]
    assert schedule.pieces.tolist() == [
        [0, 0, 600 * SECOND, 4, 0, 1],
        [0, 620 * SECOND, 1020 * SECOND, 4, 0, 1],
    ]  # the quantum of the trial run was enough: it has one execution interval


def test_a_job_is_protected_for_ten_minutes_and_again_after_it_resumed() -> None:
    jobs = [
        asked(0, 4, 5000),
        asked(599, 3, 20),
        asked(600, 3, 20),
        asked(1219, 3, 20),
        asked(1220, 3, 20),
    ]
    schedule = schedule_of(IMMEDIATE, [(4, 0)], jobs)
    # Job 2 is too early; job 3 is served at 600 and the preempted job resumes at 620; job 4 is too
    # early, job 5 is not.
    assert seconds(schedule.start)[2] == 600
    assert seconds(schedule.start)[4] == 1220
    assert seconds(schedule.end)[0] == 5040
    assert (seconds(schedule.start)[1], seconds(schedule.start)[3]) == (5040, 5060)


def test_a_trial_run_that_does_not_end_loses_what_it_did_and_its_first_start_stands() -> None:
    schedule = schedule_of(IMMEDIATE, [(4, 0)], [asked(0, 4, 1000), asked(700, 4, 100)])
    assert seconds(schedule.start) == [0, 700]
    assert seconds(schedule.end) == [1060, 1160]
    assert seconds(total_wait(schedule)) == [60, 360]
    assert schedule.pieces[:, 5].tolist() == [1, 0, 1, 1]


def test_too_much_memory_ends_the_quantum_at_once_and_the_preempted_job_counts_as_interrupted() -> (
    None
):
    jobs = [
        asked(0, 4, 2000, memory=10),
        asked(700, 4, 30, memory=30, used=11),
        asked(1299, 4, 30),
        asked(1300, 4, 30),
    ]
    schedule = schedule_of(IMMEDIATE, [(4, 50)], jobs)
    # The clock of the preempted job restarts at 700: job 3 comes a second too early, job 4 does
    # not.
    assert seconds(schedule.start) == [0, 700, 2060, 1300]
    assert seconds(schedule.end) == [2030, 2060, 2090, 1330]
    assert seconds(total_wait(schedule))[1] == 1330


def test_jobs_are_preempted_by_slowdown_and_what_they_leave_over_belongs_to_the_quantum() -> None:
    # On 6 processors: job 1 (3) from 0, job 2 (3) waited 100 s: its slowdown is larger, so that job
    # 1 is preempted.
    jobs = [
        asked(0, 3, 5000),
        asked(0, 3, 100),
        asked(0, 3, 5000),
        asked(800, 2, 30),
        asked(810, 1, 10),
    ]
    schedule = schedule_of(IMMEDIATE, [(6, 0)], jobs)
    assert seconds(schedule.start)[2:4] == [100, 800]
    assert seconds(schedule.end) == [5030, 100, 5110, 830, 820]
    # One processor is left over while job 4 runs, and only a quantum of its own starts job 5: job 3
    # is stopped.


def test_a_discarded_quantum_counts_in_the_executed_time_of_a_preempted_job() -> None:
    # Job 3 has a quantum from 40 to 100 and begins at 100 on the processor of job 2.  At 150 its
    # slowdown is 110 / (60 + 50), and that of job 1 150 / (40 + 50): job 3 is suspended for job 4.
    # By the 50 s that are kept its slowdown would be 110 / 50.
    jobs = [asked(0, 1, 1000), asked(0, 1, 100), asked(40, 1, 2000), asked(150, 1, 30)]
    schedule = schedule_of(
        "immediate:inner=fcfs-backfill,quantum=60,memory=10,protect=1", [(2, 0)], jobs
    )
    assert seconds(schedule.end) == [1060, 100, 2130, 180]


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_reservation_that_sticks_ends_with_a_quantum_of_its_holder_whatever_else_waits(
    is_seen: bool,
) -> None:
    # Job 2 has a reservation at 1000 s and a quantum from 700 to 760, in which nothing waits.  When
    # it waits again, at 760 s, the shorter job 3 comes, and gets a reservation before it.
    jobs = [asked(0, 4, 1000), asked(700, 4, 500), asked(760, 4, 100)]
    # On a host of its own a job ends during the quantum: that makes a pass.
    jobs += [asked(600, 1, 120)] if is_seen else []
    jobs.sort(key=lambda job: job.submit)
    policy = "immediate:inner=sjf-backfill,quantum=60,memory=10,protect=600"
    schedule = schedule_of(policy, [(4, 0), (1, 0)] if is_seen else [(4, 0)], jobs)
    assert [end for end in seconds(schedule.end) if end != 720] == [1060, 1660, 1160]


def test_the_host_with_the_fewest_left_over_then_the_fewest_preempted_jobs() -> None:
    jobs = [asked(0, 4, 3000), asked(0, 3, 3000), asked(0, 2, 3000), asked(700, 4, 10)]
    schedule = schedule_of(IMMEDIATE, [(5, 0), (4, 0)], jobs)
    # On the first host two preempted jobs leave 1 over (3 + 2 - 4), on the second one leaves
    # nothing.
    assert seconds(schedule.end) == [3010, 3000, 3000, 710]
    jobs = [asked(0, 2, 3000), asked(0, 2, 3000), asked(0, 4, 3000), asked(700, 4, 10)]
    # Nothing is left over on either host; on the second it is enough to preempt one job.
    assert seconds(schedule_of(IMMEDIATE, [(4, 0), (4, 0)], jobs).end) == [3000, 3000, 3010, 710]


def test_reservations_are_no_constraint_for_a_trial_run() -> None:
    jobs = [asked(0, 2, 100), asked(1, 4, 50), asked(2, 2, 1000, 1000)]
    schedule = schedule_of(IMMEDIATE, [(4, 0)], jobs)
    # Job 3 may not be backfilled, but its quantum takes the idle processors until 62.
    assert seconds(schedule.start) == [0, 100, 2]
    late = schedule_of(IMMEDIATE, [(4, 0)], [asked(0, 2, 50), *jobs[1:]])
    assert seconds(late.start) == [0, 62, 2]


def test_soon_serves_in_sequence_once_each_and_suspends_no_job() -> None:
    soon = "soon:inner=fcfs-backfill,quantum=60,memory=10"
    jobs = [asked(0, 4, 1000), asked(1, 6, 500), asked(2, 2, 2000), asked(3, 1, 3000)]
    schedule = schedule_of(soon, [(6, 0)], jobs)
    # Job 3 would delay job 2, but takes its quantum from 2 to 62; then it is the turn of job 4.
    assert seconds(schedule.start) == [0, 1000, 2, 62]
    assert seconds(schedule.end) == [1000, 1500, 3500, 4500]
    assert [piece[0] for piece in schedule.pieces.tolist() if piece[5] == 0] == [2, 3]


def submitted(number: int, procs: int, estimate: int, at: int, memory: int = 0) -> Submitted:
    return Submitted(
        Job(
            number=number,
            submit=at * SECOND,
            procs=procs,
            estimate=estimate * SECOND,
            memory=memory,
        )
    )


def trial_and_preempted() -> Engine:
    engine = Engine(one_host(4), load_policy(IMMEDIATE), is_audited=True)
    engine.handle(0, [submitted(1, 4, 1000, 0)])
    engine.handle(600 * SECOND, [submitted(2, 2, 500, 600)])
    assert engine.state_of(0) is State.SUSPENDED
    assert engine.state_of(1) is State.RUNNING
    assert engine.view().free == (2,)
    assert engine.next_timer() == 660 * SECOND
    return engine


def test_no_job_takes_what_a_preempted_job_freed_until_that_job_is_taken_back() -> None:
    engine = trial_and_preempted()
    engine.handle(610 * SECOND, [submitted(3, 2, 10, 610)])
    assert engine.state_of(2) is State.QUEUED
    assert engine.explain(2).code == "processors"
    engine.handle(620 * SECOND, [Withdrawn(0)])
    assert engine.state_of(2) is State.RUNNING
    done = engine.handle(660 * SECOND, [Finished(2), Woken()])
    assert done.requeued == (1,)
    assert engine.state_of(1) is State.RUNNING
    assert engine.view().columns.started[1] == 600 * SECOND


def test_a_driver_says_that_a_trial_is_returned_and_the_preempted_job_goes_on() -> None:
    engine = trial_and_preempted()
    done = engine.handle(630 * SECOND, [Returned(1)])
    assert done.requeued == (1,)
    assert engine.state_of(0) is State.RUNNING
    assert engine.view().running[0].expected_end == 1030 * SECOND
    assert engine.view().queue.tolist() == [1]
    with pytest.raises(DecisionError, match="it is not a trial"):
        engine.handle(631 * SECOND, [Returned(0)])


def test_a_preempted_job_on_a_host_that_closed_resumes_when_it_opens() -> None:
    engine = trial_and_preempted()
    engine.handle(610 * SECOND, [HostClosed(0)])
    done = engine.handle(660 * SECOND, [Woken()])
    assert done.requeued == done.parked == (1,)
    assert engine.state_of(0) is State.SUSPENDED
    engine.handle(900 * SECOND, [HostOpened(0)])
    assert engine.state_of(0) is State.RUNNING
    assert engine.view().queue.tolist() == [1]


class Asks:
    """A policy that asks for what the test gives it."""

    def __init__(self, *actions: object) -> None:
        self.actions = actions

    def decide(self, view):
        return self.actions if view.now == 0 or not isinstance(self.actions[0], Suspend) else ()


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Start(0, (Chunk(0, 2),), is_trial=True), "must have an end"),
        (Start(0, (), SECOND, is_trial=True), "must have an allocation"),
        (Start(0, (Chunk(3, 2),), SECOND, is_trial=True), "must have an allocation"),
        (Start(0, (Chunk(0, 1),), SECOND, is_trial=True), "the job asks for 2"),
        (Start(0, (Chunk(0, 2, -1),), SECOND, is_trial=True), "the job asks for 2"),
        (Start(0, (Chunk(0, 2, 60),), SECOND, is_trial=True), "50 bytes free"),
    ],
)
def test_a_wrong_trial_is_refused(action: Start, reason: str) -> None:
    with pytest.raises(DecisionError, match=reason):
        Engine(Machine((Host("a", 4, 50),)), Asks(action)).handle(
            0, [submitted(1, 2, 10, 0, memory=20)]
        )


def test_a_trial_is_neither_suspended_nor_resized() -> None:
    asks = Asks(Start(0, (Chunk(0, 2, 1),), SECOND, is_trial=True), Suspend(0))
    with pytest.raises(DecisionError, match="runs to its end or goes back"):
        Engine(Machine((Host("a", 4, 50),)), asks).handle(0, [submitted(1, 2, 10, 0, memory=20)])


def test_names_carry_the_inner_policy_and_its_parameters() -> None:
    text = "immediate:protect=5,inner.depth=4,inner=priority-backfill,memory=512MB,quantum=60"
    name = "immediate:inner=priority-backfill,memory=512MB,protect=5,inner.depth=4"
    assert load_policy(text).name == load_policy(name).name == name
    assert load_policy("soon:inner=lxfw-backfill").name == "soon"
    for wrong, reason in (
        ("immediate:inner=immediate", "is not one of"),
        ("soon:protect=3", "no parameter 'protect'"),
        ("immediate:inner.dept=3", "did you mean 'depth'"),
        ("immediate:memory=ten", "not an amount of memory such as 512MB, from 0"),
    ):
        with pytest.raises(UsageError, match=reason):
            load_policy(wrong)
