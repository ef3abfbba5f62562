"""LSF's limits that the paper's simulations left out: by user, by class and pool of hosts; kept at
every instant."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbatch.engine.engine import Engine
from qbatch.model.events import Finished, Submitted
from qbatch.model.job import Job
from qbatch.model.job_class import JobClass
from qbatch.model.machine import Host, Machine
from qbatch.model.machine_file import parse_machine
from qbatch.model.reasons import Reason
from qbatch.model.record import Workload
from qbatch.policies import load_policy
from qbatch.simulation.calendar import Calendar

SECOND = 1_000_000
MACHINE = """
schema = 1
single_host = true
per_user = 3
[[host]]
name = "a"
cpus = 8
[[host]]
name = "b"
cpus = 4
pool = "small"
[[class]]
name = "short"
procs = 4
time = 100
per_user = 1
[[class]]
name = "long"
procs = 4
limit = 2
hosts = ["small"]
"""


def work_of(jobs: list[tuple[int, int, int, int]], machine: Machine) -> Workload:
    """Jobs as (submit, procs, seconds, user), in order of submission."""

    def column(values: list[int]) -> Any:
        return np.array(values, np.int64)

    times = column([seconds * SECOND for _, _, seconds, _ in jobs])
    absent = column([-1] * len(jobs))
    return Workload(
        "limits",
        machine.procs,
        np.arange(1, len(jobs) + 1),
        column([job[0] * SECOND for job in jobs]),
        column([job[1] for job in jobs]),
        times,
        times,
        times,
        absent * 0,
        column([job[3] for job in jobs]),
        absent,
        absent,
        np.ones(len(jobs), np.bool_),
        np.arange(len(jobs)),
    )


def starts(jobs: list[tuple[int, int, int, int]], machine: Machine) -> list[int]:
    schedule = Calendar(work_of(jobs, machine), machine, load_policy("lsf"), is_audited=True).run()
    return (schedule.start // SECOND).tolist()


def test_a_user_has_one_short_job_at_a_time_and_others_go_past() -> None:
    machine = parse_machine(MACHINE, "machine.toml")
    assert starts([(0, 1, 50, 1), (0, 1, 50, 1), (0, 1, 50, 2)], machine) == [0, 50, 0]


def test_long_jobs_run_in_their_pool_only_and_two_at_a_time() -> None:
    machine = parse_machine(MACHINE, "machine.toml")
    # Host a could take all; the class is for the pool small, with one host that takes four of them.
    assert starts([(0, 1, 200, user) for user in range(3)], machine) == [0, 0, 200]
    assert starts([(0, 3, 200, 1), (0, 3, 200, 2)], machine) == [0, 200]


def test_a_user_has_so_many_jobs_of_all_classes() -> None:
    machine = parse_machine(
        MACHINE.replace("per_user = 1", "").replace("per_user = 3", "per_user = 2"), "machine.toml"
    )
    assert starts([(0, 1, 50, 1)] * 3 + [(0, 1, 50, 2)], machine) == [0, 0, 50, 0]


def test_a_job_whose_class_runs_nowhere_is_refused() -> None:
    machine = parse_machine(
        MACHINE.replace('"small"]', '"b"]').replace("cpus = 4", "cpus = 2"), "machine.toml"
    )
    calendar = Calendar(work_of([(0, 3, 200, 1)], machine), machine, load_policy("lsf"))
    assert calendar.run().start.tolist() == [-1]


def test_a_job_whose_class_a_limit_of_0_keeps_off_every_host_is_refused_and_takes_no_host() -> None:
    text = MACHINE.replace('name = "b"', 'name = "b"\nlimits = { long = 0 }').replace(
        "limit = 2", "reserve_wait = 10"
    )
    machine = parse_machine(text, "machine.toml")
    assert starts([(0, 1, 200, 1), (0, 1, 50, 1), (60, 4, 50, 2)], machine) == [-1, 0, 60]


LIMITS = st.one_of(st.none(), st.integers(1, 2))
CLASSES = st.builds(
    lambda short, per_host, limit, per_user, hosts: (
        JobClass(
            "short",
            time=60 * SECOND,
            per_host=per_host,
            limit=limit,
            per_user=per_user,
            goes_first=short,
        ),
        JobClass("long", limit=per_host, per_user=limit, hosts=("a",) if hosts else ()),
    ),
    st.booleans(),
    LIMITS,
    LIMITS,
    LIMITS,
    st.booleans(),
)
JOBS = st.lists(
    st.tuples(
        st.integers(0, 100),
        st.integers(1, 3),
        st.sampled_from([10, 60, 61, 150]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(JOBS, CLASSES, LIMITS, LIMITS)
def test_no_limit_is_ever_passed(
    jobs: list[tuple[int, int, int, int]],
    classes: tuple[JobClass, ...],
    on_a: int | None,
    per_user: int | None,
) -> None:
    limits = () if on_a is None else (("short", on_a),)
    hosts = (Host("a", 6, limits=limits), Host("b", 3))
    machine = Machine(hosts, single_host=True, classes=classes, per_user=per_user)
    most = {
        **{(place, each.name): each.per_host for place in ("a", "b") for each in classes},
        **{("", each.name): each.limit for each in classes},
        **{(user, each.name): each.per_user for user in range(3) for each in classes},
        **{(user, ""): per_user for user in range(3)},
    }
    if on_a is not None:
        most["a", "short"] = on_a

    def look(engine: Engine, _: object) -> None:
        view = engine.view()
        running: Counter[tuple[Any, str]] = Counter()
        for row, run in view.running.items():
            job = view.jobs[row]
            pair = machine.class_of(job.procs, job.memory, job.estimate)
            assert pair is not None
            place = machine.hosts[run.allocation[0].host].name
            assert pair.time.runs_on(place, "batch")
            running.update(
                [(place, pair.name), ("", pair.name), (job.user, pair.name), (job.user, "")]
            )
        for what, count in running.items():
            limit = most.get(what)
            assert limit is None or count <= limit, (what, count, limit)

    jobs = sorted(jobs, key=lambda job: job[0])
    calendar = Calendar(work_of(jobs, machine), machine, load_policy("lsf"), is_audited=True)
    schedule = calendar.run(observe=look)
    assert (schedule.start >= 0).all()


def test_a_limit_of_users_is_known_to_the_machine() -> None:
    machine = parse_machine(MACHINE, "machine.toml")
    assert machine.limits_users
    assert not msgspec.structs.replace(machine, per_user=None, classes=()).limits_users


def test_a_job_that_began_under_another_policy_counts_in_its_class() -> None:
    machine = parse_machine(
        MACHINE.replace("per_user = 1", "per_user = 3").replace("per_user = 3", "", 1),
        "machine.toml",
    )
    engine = Engine(machine, load_policy("easy"), is_audited=True)
    jobs = [
        Job(number=number, submit=0, procs=1, estimate=50 * SECOND, user=1) for number in range(70)
    ]
    engine.handle(0, [Submitted(job) for job in jobs[:68]])
    for second in range(1, 6):
        engine.handle(second * SECOND, [Finished(row) for row in engine.view().running])
    engine.handle(10 * SECOND, [Submitted(job) for job in jobs[68:]])
    assert sorted(engine.view().running) == [60, 61, 62, 63, 64, 65, 66, 67, 68, 69]
    engine.handle(11 * SECOND, [Finished(row) for row in range(60, 68)])
    engine.exchange_policy(load_policy("lsf"))
    later = [
        Job(number=number, submit=12 * SECOND, procs=1, estimate=50 * SECOND, user=1)
        for number in (70, 71)
    ]
    engine.handle(12 * SECOND, [Submitted(job) for job in later])
    # Three of the user: two of them from before.
    assert sorted(engine.view().running) == [68, 69, 70]
    assert engine.explain(71).text == "3 jobs of class short of this user run, per_user = 3"


def explained(
    jobs: list[tuple[int, int, int, int]], machine: Machine, at: int = 0
) -> dict[int, Reason]:
    """Why each job waits at an instant, by number."""
    found: dict[int, Reason] = {}

    def look(engine: Engine, _: object) -> None:
        view = engine.view()
        if view.now <= at * SECOND:
            found.clear()
            found.update(
                {view.jobs[row].number: engine.explain(row) for row in view.queue.tolist()}
            )

    Calendar(work_of(jobs, machine), machine, load_policy("lsf"), is_audited=True).run(observe=look)
    return found


def test_a_limit_is_named_with_its_class_and_its_key() -> None:
    machine = parse_machine(MACHINE, "machine.toml")
    short = (0, 1, 50, 1)
    assert (
        explained([short, short], machine)[2].text
        == "1 job of class short of this user runs, per_user = 1"
    )
    texts = explained([(0, 1, 200, user) for user in range(3)], machine)
    assert texts[3].text == "2 jobs of class long run, limit = 2"
    changed = msgspec.structs.replace(machine, classes=(JobClass("any"),))
    assert explained([short] * 4, changed)[4].text == "3 jobs of this user run, per_user = 3"
    hosts = (Host("a", 8, limits=(("any", 1),)), Host("b", 8))
    changed = Machine(hosts, single_host=True, classes=(JobClass("any", per_host=2),))
    assert explained([short] * 4, changed)[4].text == (
        "every host of its class runs as many jobs as it may: a (1 of class any, limits = 1), b (2 "
        "of class any, per_host = 2)"
    )


KINDS = """
schema = 1
single_host = true
[[host]]
name = "a"
cpus = 8
memory = "8GB"
serves = ["large", "small"]
[[class]]
name = "quick"
kind = "time"
time = 100
limit = 2
[[class]]
name = "slow"
kind = "time"
[[class]]
name = "small"
kind = "size"
procs = 2
[[class]]
name = "large"
kind = "size"
"""


def test_full_hosts_and_a_larger_class_that_waits_are_distinguished() -> None:
    machine = parse_machine(KINDS, "kinds.toml")
    reasons = explained([(0, 6, 200, 1), (0, 4, 200, 1), (0, 1, 200, 1), (0, 1, 50, 1)], machine)
    assert (
        reasons[2].text
        == "no host that may run another job of class slow_large has 4 processors free"
    )
    assert (
        reasons[3].text == "host a has enough free, but job 2 of class slow_large waits there first"
    )
    assert reasons[3].blocked_by == (1,)
    reasons = explained([(0, 1, 50, 1)] * 3, machine)
    assert reasons[3].text == "2 jobs of time class quick run, limit = 2"


@settings(max_examples=100, deadline=None)
@given(JOBS, CLASSES, LIMITS)
def test_what_an_explanation_says_of_the_hosts_is_so(
    jobs: list[tuple[int, int, int, int]], classes: tuple[JobClass, ...], per_user: int | None
) -> None:
    machine = Machine(
        (Host("a", 6), Host("b", 3)), single_host=True, classes=classes, per_user=per_user
    )

    def look(engine: Engine, _: object) -> None:
        view = engine.view()
        for row in view.queue.tolist():
            job, reason = view.jobs[row], engine.explain(row)
            pair = machine.class_of(job.procs, job.memory, job.estimate)
            assert pair is not None
            mine = [
                run.allocation[0].host
                for other, run in view.running.items()
                if pair
                == machine.class_of(
                    view.jobs[other].procs, view.jobs[other].memory, view.jobs[other].estimate
                )
            ]
            open_ones = [
                host
                for host in range(2)
                if pair.time.runs_on(machine.hosts[host].name, "batch")
                and (pair.time.per_host is None or mine.count(host) < pair.time.per_host)
            ]
            roomy = [host for host in open_ones if view.free[host] >= job.procs]
            if reason.code == "hosts":
                assert open_ones
                assert not roomy
            elif reason.code == "order":
                assert any(
                    f"host {machine.hosts[host].name} has enough free" in reason.text
                    for host in roomy
                )
                (other,) = reason.blocked_by
                assert all(view.free[host] < view.jobs[other].procs for host in roomy[:1])
            else:
                assert reason.code == "class-limit"

    jobs = sorted(jobs, key=lambda job: job[0])
    Calendar(work_of(jobs, machine), machine, load_policy("lsf"), is_audited=True).run(observe=look)


def test_memory_that_is_not_free_is_shown_in_units_and_makes_smaller_classes_wait() -> None:
    machine = parse_machine(KINDS, "kinds.toml")
    work = work_of([(0, 3, 200, 1), (0, 4, 200, 1), (0, 1, 200, 1)], machine)
    work = dataclasses.replace(work, memory=np.array([6, 3, 1], np.int64) * 2**30)
    texts: list[str] = []

    def look(engine: Engine, _: object) -> None:
        if not texts:
            texts.extend(engine.explain(row).text for row in engine.view().queue.tolist())

    Calendar(work, machine, load_policy("lsf"), is_audited=True).run(observe=look)
    assert texts == [
        (
            "no host that may run another job of class slow_large has 4 processors and 3GB of "
            "memory "
            "free"
        ),
        "host a has enough free, but job 2 of class slow_large waits there first",
    ]
