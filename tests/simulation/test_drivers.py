"""The policy that is evaluated is the policy that runs: both drivers give the same schedule, to the
microsecond."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from qbatch.model.errors import DecisionError, UsageError
from qbatch.model.machine import Host, Machine, one_host
from qbatch.policies import load_policy
from qbatch.simulation import Options, prepare, run
from qbatch.workloads import generate_log
from qbatch.workloads.machines import load_machine
from tests.harness import real_log, run_named, same_schedule, size, workload_of
from tests.oracle.workloads import random_jobs

POLICIES = (
    "fcfs",
    "fcfs:order=sjf",
    "fcfs:order=lxf",
    "easy",
    "easy:order=sjf",
    "easy:order=lxf",
    "easy:backfill=sjf",
    "hybrid:depth=4",
    "hybrid:depth=3,order=lxf",
    "conservative",
    "conservative:compress=start",
    "conservative:compress=none",
    "conservative:compress=scratch",
)


@pytest.mark.parametrize("policy", POLICIES)
def test_drivers_agree_on_a_generated_log(policy: str) -> None:
    work = prepare(
        generate_log(jobs=size(600, 1500), procs=64, load=0.95, seed=5, campaigns=0.2), one_host(64)
    )
    assert same_schedule(
        run_named(work, policy, driver="compiled"), run_named(work, policy, driver="engine")
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_drivers_agree_on_random_workloads(policy: str) -> None:
    for seed in range(size(40, 150)):
        rng = random.Random(seed)
        work = workload_of(random_jobs(rng, rng.randint(1, 25), 8), 8)
        one, other = (run_named(work, policy, driver=driver) for driver in ("compiled", "engine"))
        assert same_schedule(one, other), seed


ON_HOSTS = (
    "fcfs",
    "fcfs:order=lxf",
    "easy",
    "easy:order=sjf",
    "hybrid:depth=3",
    "fcfs-backfill",
    "lxf-backfill",
    "lxfw-backfill",
    "lxfw-backfill:depth=3",
    "sjf-backfill",
    "sjf-backfill:depth=2",
    "priority-backfill",
    "priority-backfill:depth=4,bypass=2",
    "priority-backfill:memory=-1,both=0.25,bypass=3",
    "priority-backfill:depth=0",
    "lsf",
)


@pytest.mark.parametrize("policy", ON_HOSTS)
def test_drivers_agree_on_hosts_with_memory(policy: str) -> None:
    for seed in range(size(40, 150)):
        rng = random.Random(seed)
        hosts = tuple(
            Host(f"h{n}", rng.randint(2, 8), rng.choice((0, 40, 100)))
            for n in range(rng.randint(1, 4))
        )
        machine = Machine((Host("h", 8, 100), *hosts), single_host=True)
        jobs = random_jobs(rng, rng.randint(1, 30), 8)
        work = workload_of(
            jobs, machine.procs, memory=[rng.choice((0, 0, 10, 40, 90)) for _ in jobs]
        )
        one, other = (
            run(work, machine, load_policy(policy), driver=driver)
            for driver in ("compiled", "engine")
        )
        assert same_schedule(one, other), seed
        assert one.host is not None
        assert other.host is not None
        assert one.host.tolist() == other.host.tolist(), seed


@pytest.mark.parametrize(
    "policy", [policy for policy in ON_HOSTS if "-" in policy or policy == "lsf"]
)
def test_drivers_agree_on_one_pool_under_the_priority_family(policy: str) -> None:
    for seed in range(size(30, 100)):
        rng = random.Random(seed)
        work = workload_of(random_jobs(rng, rng.randint(1, 25), 8), 8)
        one, other = (run_named(work, policy, driver=driver) for driver in ("compiled", "engine"))
        assert same_schedule(one, other), seed


def test_jobs_that_no_host_could_hold_are_refused_and_not_waited_for() -> None:
    machine = Machine((Host("a", 4, 10), Host("b", 8, 5)), single_host=True)
    jobs = random_jobs(random.Random(3), 5, 4)
    work = workload_of(jobs, machine.procs, memory=[11, 0, 0, 0, 0])
    one, other = (
        run(work, machine, load_policy("easy"), driver=driver) for driver in ("compiled", "engine")
    )
    assert same_schedule(one, other)
    assert one.start.tolist().count(-1) == 1


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_drivers_agree_on_a_real_log(policy: str) -> None:
    work = real_log("KTH-SP2-1996-2.1-cln", 100, first=size(1500, 4000))
    assert same_schedule(
        run_named(work, policy, driver="compiled"), run_named(work, policy, driver="engine")
    )


def test_same_input_gives_the_same_output_twice() -> None:
    work = prepare(
        generate_log(jobs=800, procs=32, load=1.1, seed=9),
        one_host(32),
        Options(estimates="f:4", seed=3),
    )
    for policy in POLICIES:
        assert same_schedule(run_named(work, policy), run_named(work, policy))


def test_a_compiled_run_in_small_budgets_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    work = prepare(generate_log(jobs=500, procs=32, load=1.1, seed=2), one_host(32))
    seen: list[int] = []
    for policy in ("easy", "conservative"):
        whole = run_named(work, policy)
        monkeypatch.setattr("qbatch.simulation.compiled.BUDGET", 7)
        parts = run(
            work,
            one_host(32),
            load_policy(policy),
            progress=lambda arrived, now: seen.append(arrived),
        )
        monkeypatch.undo()
        assert same_schedule(whole, parts)
    assert len(seen) > 100
    assert max(seen) == 500


def test_a_policy_without_a_loop_is_refused_only_when_it_must_be_compiled() -> None:
    class Lazy:
        def decide(self, view):
            return []

    work = workload_of(random_jobs(random.Random(1), 3, 4), 4)
    with pytest.raises(UsageError, match="no compiled loop"):
        run(work, one_host(4), Lazy(), driver="compiled")
    with pytest.raises(DecisionError, match="left 3 jobs waiting for ever"):
        run(work, one_host(4), Lazy())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["start"], "which is not an action"),
        ([1 / 3], "not an action"),
        (None, "failed at .* TypeError"),
    ],
)
def test_a_policy_that_talks_nonsense_is_reported_in_one_line(given: object, says: str) -> None:
    class Odd:
        name = "odd"

        def decide(self, view):
            return given

    work = workload_of(random_jobs(random.Random(1), 3, 4), 4)
    with pytest.raises(DecisionError, match=says) as error:
        run(work, one_host(4), Odd())
    assert "\n" not in str(error.value)


def test_depth_one_on_a_profile_is_easy() -> None:
    for seed in range(size(100, 400)):
        rng = random.Random(seed)
        work = workload_of(random_jobs(rng, rng.randint(1, 20), 8), 8)
        assert same_schedule(run_named(work, "easy"), run_named(work, "hybrid:depth=1"))


@pytest.mark.parametrize("policy", [name for name in POLICIES if "order" not in name])
def test_a_profile_of_each_host_gives_what_the_pool_gives_where_memory_does_not_matter(
    policy: str,
) -> None:
    machine = Machine((Host("only", 8, 10**12),))
    for seed in range(size(40, 120)):
        rng = random.Random(seed)
        work = workload_of(random_jobs(rng, rng.randint(1, 20), 8), 8)
        assert same_schedule(run_named(work, policy, machine=machine), run_named(work, policy)), (
            seed
        )


@pytest.mark.parametrize("per_user", [None, 2])
def test_drivers_agree_under_class_limits_and_specials(per_user: int | None) -> None:
    machine = msgspec.structs.replace(load_machine("origin2000"), per_user=per_user)
    for seed in range(12):
        rng = random.Random(seed)
        jobs = random_jobs(rng, 200, 80)
        hours = rng.choice((60, 1800))  # some beyond what any class takes
        work = workload_of(
            jobs, machine.procs, memory=[rng.choice((0, 1 << 30, 20 << 30, 1 << 45)) for _ in jobs]
        )
        work = work.changed(
            submit=work.submit * 20,
            run=work.run * hours,
            estimate=work.estimate * hours,
            logged_run=work.run * hours,
            user=np.array([rng.randint(1, 9) for _ in jobs]),
        )
        one, other = (
            run(work, machine, load_policy("lsf"), driver=driver)
            for driver in ("compiled", "engine")
        )
        assert same_schedule(one, other), seed
        assert one.host is not None
        assert other.host is not None
        assert one.host.tolist() == other.host.tolist(), seed
        assert 0 < (one.start < 0).sum() < len(work)
