"""Named resources of hosts: worked case 7 of docs/spec/production.md, and random workloads against
an oracle, live and compiled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.model.actions import Action, Start, WakeAt
from qbatch.model.errors import UsageError
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.planning.kernels import lists
from qbatch.planning.kernels.host_pass import AT, ROW, WHERE
from qbatch.planning.policy import Policy, compiled_of
from qbatch.planning.view import View
from qbatch.policies import load_policy
from qbatch.simulation import run
from qbatch.simulation.compiled import CompiledReplay
from tests.harness import same_schedule, size, workload_of
from tests.oracle.naive import Job
from tests.policies import naive_resources as naive

SECOND = 1_000_000
TWO = Machine(
    (Host("h1", 8, resources=(("gpu", 2),)), Host("h2", 8, resources=(("gpu", 2),))),
    single_host=True,
)
RUNNING = [(8, 0, 100), (2, 2, 50)]
J1, J2, J2_LONG, J3, J4 = (4, 2, 60), (6, 0, 40), (6, 0, 60), (1, 1, 30), (4, 0, 200)
SHORT = RUNNING + [J1, J2, J3]
LONG = RUNNING + [J1, J2_LONG, J3, J4]


class EasyByProfile:
    """EASY as a user writes it: what fits with the running jobs and the head's reservation
    starts."""

    def decide(self, view: View) -> Iterable[Action]:
        free, profile, has_head = view.free_now(), view.resources.profile(), False
        for job in view.waiting:
            start, where = profile.earliest(job.row, job.estimate, view.now)
            if start == view.now and free.place_on(job, where[0].host):
                yield Start(job.row, where)
                profile.reserve(where, start, start + job.estimate)
            elif not has_head:
                has_head, booked = True, max(job.estimate, SECOND)
                start, where = profile.earliest(job.row, booked, view.now)
                profile.reserve(where, start, start + booked)


class ConservativeByProfile:
    """Conservative backfilling from scratch as a user writes it: each waiting job has a
    reservation, in order of arrival."""

    def decide(self, view: View) -> Iterable[Action]:
        profile, coming = view.resources.profile(), []
        for job in view.waiting:
            booked = max(job.estimate, SECOND)
            start, where = profile.earliest(job.row, booked, view.now)
            profile.reserve(where, start, start + booked)
            if start == view.now:
                yield Start(job.row, where)
            else:
                coming.append(start)
        if coming:
            yield WakeAt(min(coming))


class FirstFit:
    """What fits starts, where the engine or the resource model puts it."""

    def __init__(self, is_by_engine: bool) -> None:
        self.is_by_engine = is_by_engine

    def decide(self, view: View) -> Iterable[Action]:
        free = view.free_now()
        for job in view.waiting:
            where = free.place(job)
            if where:
                yield Start(job.row) if self.is_by_engine else Start(job.row, where)


def work_of(jobs: list[tuple[int, int, int]], procs_total: int = 16) -> Workload:
    """Return a workload of (processors, gpus, seconds), all submitted at once."""
    work = workload_of(
        [Job(0, 0, procs, seconds * SECOND, seconds * SECOND) for procs, _, seconds in jobs],
        procs_total,
    )
    return work.changed(resources={"gpu": np.array([gpus for _, gpus, _ in jobs], np.int64)})


def starts_of(schedule: Schedule) -> list[tuple[int, int]]:
    assert schedule.host is not None
    return list(zip((schedule.start // SECOND).tolist(), schedule.host.tolist(), strict=True))


def replayed(
    policy: Policy, jobs: list[tuple[int, int, int]], driver: str
) -> list[tuple[int, int]]:
    return starts_of(run(work_of(jobs), TWO, policy, driver=driver, is_audited=True))


EASY: list[Callable[[], tuple[Policy, str]]] = [
    lambda: (load_policy("easy"), "engine"),
    lambda: (load_policy("easy"), "compiled"),
    lambda: (EasyByProfile(), "engine"),
    lambda: (load_policy("fcfs-backfill"), "engine"),
    lambda: (load_policy("fcfs-backfill"), "compiled"),
]


@pytest.mark.parametrize("made", EASY)
def test_worked_case_7_under_easy(made: Callable[[], tuple[Policy, str]]) -> None:
    # J3 starts when a gpu is free on a host with a processor: on h1 at 100, since J1 has both of h2
    # until 110.
    assert replayed(*(made()[0], SHORT), made()[1]) == [(0, 0), (0, 1), (50, 1), (0, 1), (100, 0)]
    # J2 of 60 s would take the processors of J1 at 50; J4 leaves them.
    found = replayed(*(made()[0], LONG), made()[1])
    assert found[:3] == [(0, 0), (0, 1), (50, 1)]
    assert found[5] == (0, 1)
    assert found[3][0] >= 100


CONSERVATIVE: list[Callable[[], tuple[Policy, str]]] = [
    lambda: (load_policy("conservative"), "engine"),
    lambda: (load_policy("conservative"), "auto"),
    lambda: (ConservativeByProfile(), "engine"),
    lambda: (load_policy("hybrid:depth=99"), "engine"),
    lambda: (load_policy("hybrid:depth=99"), "compiled"),
]
"""A kept plan has no compiled loop over hosts; with a reservation for every job, a list scheduler
has one."""


@pytest.mark.parametrize("made", CONSERVATIVE)
def test_worked_case_7_under_conservative_backfilling(
    made: Callable[[], tuple[Policy, str]],
) -> None:
    policy, driver = made()
    assert replayed(policy, SHORT, driver) == [(0, 0), (0, 1), (50, 1), (0, 1), (100, 0)]
    assert replayed(policy, LONG, driver) == [(0, 0), (0, 1), (50, 1), (100, 0), (100, 0), (0, 1)]


def test_the_reservation_of_the_head_stands_on_a_host() -> None:
    for jobs in (SHORT, LONG):
        seen: list[Any] = []
        policy = load_policy("easy")
        run(
            work_of(jobs),
            TWO,
            policy,
            driver="engine",
            observe=lambda engine, done, policy=policy, seen=seen: seen.append(
                (done.at, policy.reserved_after(engine.view()))
            ),
        )
        assert seen[0] == (0, [(2, 1, 50 * SECOND)])


def test_the_compiled_loop_makes_the_same_reservation() -> None:
    # The last pass that leaves a job waiting is that before J1 starts.
    for jobs in (SHORT[:4], RUNNING + [J1, J4]):
        compiled, kept = compiled_of(load_policy("easy"), TWO), []
        assert compiled is not None
        assert compiled.decide is lists.decide_on_hosts

        def new_memory(
            work: Workload, machine: Machine, made=compiled.new_memory, kept=kept
        ) -> Any:
            kept.append(made(work, machine))
            return kept[-1]

        replay = CompiledReplay(
            work_of(jobs), TWO, msgspec.structs.replace(compiled, new_memory=new_memory), "easy"
        )
        schedule = replay.run()
        assert starts_of(schedule)[2] == (50, 1)
        assert kept[0].held[[ROW, WHERE, AT], 0].tolist() == [2, 1, 50 * SECOND]


@pytest.mark.parametrize("is_by_engine", [True, False])
def test_a_resource_model_knows_the_resources(is_by_engine: bool) -> None:
    assert replayed(FirstFit(is_by_engine), SHORT, "engine")[:4] == [
        (0, 0),
        (0, 1),
        (50, 1),
        (0, 1),
    ]


def random_case(seed: int) -> tuple[Machine, Workload, list[naive.Need], list[naive.Task]]:
    rng = random.Random(f"resources {seed}")
    names = ("gpu", "nvme", "fpga")[: rng.randint(1, 3)]
    has_memory = rng.random() < 0.5
    hosts, there = [], []
    for place in range(rng.randint(1, 4)):
        cpus, memory = rng.randint(1, 8), rng.randint(1, 6) if has_memory else 0
        amounts = {name: rng.choice((0, 1, 2, 4)) for name in names}
        said = tuple(
            (name, amount)
            for name, amount in rng.sample(sorted(amounts.items()), len(names))
            if amount
        )
        hosts.append(Host(f"h{place}", cpus, memory, resources=said))
        there.append((cpus, memory, *amounts.values()))
    tasks, submit = [], 0
    for _ in range(rng.randint(1, 25)):
        submit += rng.choice((0, 0, 1, 4, 10)) * SECOND // 4
        host = rng.choice(there)
        need = (
            rng.randint(1, host[0]),
            *(rng.choice((0, 0, rng.randint(0, amount))) for amount in host[1:]),
        )
        estimate = rng.choice((1, 2, 4, rng.randint(1, 60))) * SECOND // 4
        tasks.append(
            naive.Task(
                submit, need, estimate, estimate if rng.random() < 0.5 else rng.randint(0, estimate)
            )
        )
    jobs = [Job(0, task.submit, task.need[0], task.estimate, task.run) for task in tasks]
    work = workload_of(jobs, sum(host.cpus for host in hosts), [task.need[1] for task in tasks])
    columns = {
        name: np.array([task.need[place] for task in tasks], np.int64)
        for place, name in enumerate(names, 2)
    }
    return Machine(tuple(hosts), single_host=True), work.changed(resources=columns), there, tasks


def assert_as_the_oracle(schedule: Schedule, expected: naive.Replay, text: str) -> None:
    rows = range(len(schedule.start))
    assert schedule.start.tolist() == [expected.start[row] for row in rows], text
    if schedule.host is not None:
        assert schedule.host.tolist() == [expected.host[row] for row in rows], text


def test_easy_is_that_of_the_oracle_live_and_compiled() -> None:
    for seed in range(size(120, 3000)):
        machine, work, hosts, tasks = random_case(seed)
        expected = naive.easy(hosts, tasks)
        for driver in ("engine", "compiled"):
            for name in ("easy", "fcfs-backfill"):
                schedule = run(work, machine, load_policy(name), driver=driver, is_audited=True)
                assert_as_the_oracle(schedule, expected, f"{name} {driver} {seed}")
        schedule = run(work, machine, EasyByProfile(), is_audited=True)
        # Among several, a profile prefers those that had the fewest processors free before the
        # pass.
        if len(hosts) == 1:
            assert_as_the_oracle(schedule, expected, f"by profile {seed}")


def test_the_reservations_of_easy_are_those_of_the_oracle() -> None:
    for seed in range(size(40, 1000)):
        machine, work, hosts, tasks = random_case(seed)
        policy, seen = load_policy("easy"), {}

        def look(engine: Engine, done: Any, policy: Any = policy, seen: Any = seen) -> None:
            seen[done.at] = policy.reserved_after(engine.view())

        run(work, machine, policy, driver="engine", observe=look)
        assert seen == naive.easy(hosts, tasks).reservations, seed


def test_conservative_backfilling_is_that_of_the_oracle() -> None:
    for seed in range(size(120, 3000)):
        machine, work, hosts, tasks = random_case(seed)
        schedule = run(work, machine, load_policy("conservative"), is_audited=True)
        assert_as_the_oracle(schedule, naive.conservative(hosts, tasks), f"conservative {seed}")


LISTS = (
    "fcfs",
    "hybrid",
    "hybrid:depth=5",
    "easy:order=lxf",
    "sjf-backfill",
    "sjf-backfill:depth=3",
    "lxfw-backfill",
    "priority-backfill:memory=1,both=1",
    "lxf-backfill:bypass=2",
)


@pytest.mark.parametrize("name", LISTS)
def test_every_list_scheduler_is_the_same_live_and_compiled(name: str) -> None:
    for seed in range(size(25, 300)):
        machine, work, _, _ = random_case(seed)
        both = [
            run(work, machine, load_policy(name), driver=driver, is_audited=True)
            for driver in ("engine", "compiled")
        ]
        assert same_schedule(*both), seed


def test_predictions_go_around_them() -> None:
    for seed in range(size(15, 100)):
        machine, work, _, _ = random_case(seed)
        for inner in ("easy", "conservative"):
            schedule = run(work, machine, load_policy(f"predicted:inner={inner}"), is_audited=True)
            rejected = {each.row for each in schedule.rejected}
            assert all(
                (start >= 0) != (row in rejected)
                for row, start in enumerate(schedule.start.tolist())
            )


@pytest.mark.parametrize(
    "name",
    [
        "lsf",
        "immediate",
        "soon",
        "equispatial",
        "taskqueues",
        "qops",
        "slack",
        "scojo",
        "bottom-line",
    ],
)
@pytest.mark.parametrize("driver", ["auto", "engine"])
def test_policies_that_count_themselves_refuse_the_machine_by_name(name: str, driver: str) -> None:
    with pytest.raises(
        UsageError,
        match=rf"policy {name}.* counts only processors and memory.* also have gpu; choose",
    ):
        run(work_of(SHORT), TWO, load_policy(name), driver=driver)
    run(work_of([(1, 0, 10)]).changed(resources={}), one_host(8), load_policy(name), driver=driver)


def test_what_no_host_has_is_refused_alike_live_and_compiled() -> None:
    jobs = [*SHORT, (1, 3, 10), (8, 1, 10)]
    work = work_of(jobs)
    work = work.changed(
        resources=work.resources | {"fpga": np.array([0, 0, 0, 0, 1, 0, 0], np.int64)}
    )
    for driver in ("engine", "compiled"):
        schedule = run(work, TWO, load_policy("easy"), driver=driver, is_audited=True)
        assert [(each.row, each.code, each.text) for each in schedule.rejected] == [
            (4, "too-many-resources", "needs 1 fpga on one host; no host has any"),
            (5, "too-many-resources", "needs 3 gpu on one host; no host has more than 2"),
        ]
    pool = run(work, one_host(16), load_policy("easy"), driver="compiled")
    assert [each.row for each in pool.rejected] == [1, 2, 4, 5, 6]
