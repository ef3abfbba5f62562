"""Time slices, groups and the bottom line: against the oracle, job for job and piece for piece, and
what they keep to."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from qbatch.engine import snapshot
from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Resume, Start, Suspend, parts_of
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.planning.policy import Policy
from qbatch.policies import load_policy
from qbatch.policies.groups import GroupRules, GroupScheduler, GroupSize
from qbatch.policies.slice_rules import slice_rules
from qbatch.policies.slices import SliceScheduler
from qbatch.referee.slices import check_slices
from qbatch.referee.verify import judge
from qbatch.simulation.calendar import Calendar
from tests.harness import run_named, size, workload_of
from tests.policies.slice_oracle import Asked, Outcome, Settings, Simulation, simulate
from tests.policies.test_slice_oracle import table_1, table_3

SECOND = 1_000_000
PROCS = 8
NODES = Machine(tuple(Host(f"n{number}", 1) for number in range(PROCS)))
HOSTS = Machine((Host("a", 3), Host("b", 4), Host("c", 1)))

ESTIMATES = (0, 1, 60, 300, 599, 600, 601, 900, 2000, 5000, 7000, 10799, 10800, 12000, 20000, 40000)
LASTING = (300, 600, 900, 2000, 5000, 7000, 10799, 10800, 12000, 15000, 20000, 40000)

SLICES: dict[str, dict[str, object]] = {
    "scojo": {},
    "scojo:backfill=easy": {"backfill": "easy"},
    "scojo:smart=no": {"smart": False},
    "scojo:switch=0": {"switch": 0},
    "scojo:cycle=3000,switch=7,backfill=easy,smart=no": {
        "cycle": 3000 * SECOND,
        "switch": 7 * SECOND,
        "backfill": "easy",
        "smart": False,
    },
    "scojo:cycle=2000,switch=3,short=100,class_by=queue": {
        "cycle": 2000 * SECOND,
        "switch": 3 * SECOND,
        "short": 100 * SECOND,
        "class_by": "queue",
    },
}
"""Policies without groups, and what the oracle calls the same."""

_SMALL = "least_medium=3,most_medium=6,least_long=3,most_long=6"
_GROUPS = {"groups": True, "medium": (3, 1.5, 2, 800, 6), "long": (3, 2.0, 1, 15000, 6)}

GROUPS: dict[str, dict[str, object]] = {
    f"scojo-groups:{_SMALL}": {},
    f"scojo-groups:search=lex,{_SMALL}": {"search": "lex"},
    f"scojo-groups:search=dds,{_SMALL}": {"search": "dds"},
    f"scojo-groups:{_SMALL},select=no,shift=no": {"select": False, "shift": False},
    f"scojo-groups:smart=no,{_SMALL}": {"smart": False},
    f"scojo-groups:{_SMALL},dynamic=no,halves=no": {"dynamic": False, "split": False},
    f"scojo-groups:budget=5,{_SMALL},level1=no": {"budget": 5, "level1": False},
    f"scojo-groups:{_SMALL},level2=no": {"level2": False},
    f"scojo-groups:switch=0,backfill=easy,{_SMALL}": {"switch": 0, "backfill": "easy"},
}
"""Policies with groups."""

BOTTOM: dict[str, dict[str, object]] = {
    "bottom-line:nodes=200": {"node_limit": 200},
    "bottom-line:smart=no,nodes=20": {"node_limit": 20, "smart": False},
    "bottom-line:nodes=100,bound=3": {"node_limit": 100, "bound": 3 * 3600 * SECOND},
}


def random_asked(seed: int, least: int, most: int, estimates: tuple[int, ...]) -> list[Asked]:
    """Return a small workload of ties, zero lengths, full widths and jobs at the borders of the
    classes."""
    draw, at, jobs = random.Random(seed), 0, []
    for _ in range(draw.randint(least, most)):
        at += draw.choice((0, 0, 1, 30, 300, 900, 1500 if len(estimates) == len(LASTING) else 8000))
        estimate = draw.choice(estimates)
        run = draw.choice((estimate, estimate, estimate // 2, 0, estimate // 7))
        procs = draw.choice((1, 1, 2, 3, 4, 5, 8))
        jobs.append(
            Asked(at * SECOND, procs, estimate * SECOND, run * SECOND, draw.choice((1, 2, 3)))
        )
    return jobs


def work_of(jobs: list[Asked]) -> Workload:
    work = workload_of([SimpleNamespace(**job._asdict()) for job in jobs], PROCS)
    return work.changed(queue=np.array([job.queue for job in jobs], np.int64))


def assert_as_the_oracle(schedule: Schedule, expected: Outcome, context: object) -> None:
    assert schedule.start.tolist() == expected.start, context
    assert schedule.end.tolist() == expected.end, context


@pytest.mark.parametrize("policy", SLICES)
def test_slices_are_those_of_the_oracle_job_for_job(policy: str) -> None:
    for seed in range(size(25, 60)):
        jobs = random_asked(seed, 2, 25, ESTIMATES)
        assert_as_the_oracle(
            run_named(work_of(jobs), policy), simulate(jobs, PROCS, **SLICES[policy]), seed
        )


@pytest.mark.parametrize("policy", GROUPS)
def test_groups_are_those_of_the_oracle_and_so_is_what_their_search_costs(policy: str) -> None:
    formed = 0
    for seed in range(size(20, 40)):
        jobs = random_asked(seed, 10, 40, LASTING)
        calendar = Calendar(work_of(jobs), one_host(PROCS), load_policy(policy), is_audited=True)
        expected = simulate(jobs, PROCS, **_GROUPS, **GROUPS[policy])
        assert_as_the_oracle(calendar.run(), expected, seed)
        counts = calendar.engine.view().memory.counts
        assert (sum(counts.groups), counts.nodes, counts.pruned) == (
            len(expected.groups),
            expected.nodes,
            expected.pruned,
        )
        assert sum(counts.grouped) == sum(len(rows) for _, _, rows in expected.groups)
        formed += len(expected.groups)
    assert formed > 20


@pytest.mark.parametrize("policy", BOTTOM)
def test_the_bottom_line_is_that_of_the_oracle(policy: str) -> None:
    for seed in range(20):
        jobs = random_asked(seed, 6, 25, LASTING)
        expected = simulate(jobs, PROCS, bottom_line=True, **BOTTOM[policy])
        assert_as_the_oracle(run_named(work_of(jobs), policy), expected, seed)


@pytest.mark.parametrize(
    "policy", ["scojo", f"scojo-groups:{_SMALL}", "scojo:switch=0,backfill=easy"]
)
def test_jobs_run_on_the_nodes_of_the_oracle_piece_for_piece(policy: str) -> None:
    settings: dict[str, object] = {
        **SLICES,
        **{name: _GROUPS | more for name, more in GROUPS.items()},
    }.get(policy, {"switch": 0, "backfill": "easy"})
    for seed in range(25):
        jobs = random_asked(seed, 6, 30, LASTING)
        pieces: list[tuple[int, int, int, tuple[int, ...]]] = []
        running: dict[int, tuple[int, tuple[int, ...]]] = {}

        def note(engine: Engine, done: Round, pieces=pieces, running=running) -> None:
            for row in done.finished:
                begin, nodes = running.pop(row)
                pieces.append((row, begin, done.at, nodes))
            for action in done.actions:
                if isinstance(action, Suspend):
                    begin, nodes = running.pop(action.row)
                    pieces.append((action.row, begin, done.at, nodes))
                elif isinstance(action, Start | Resume):
                    allocation = engine.view().running[action.row].allocation
                    running[action.row] = (
                        done.at,
                        tuple(host for host, _, _ in parts_of(allocation)),
                    )

        Calendar(work_of(jobs), NODES, load_policy(policy), is_audited=True).run(note)
        expected = simulate(jobs, PROCS, **settings).pieces
        assert sorted(pieces) == sorted(
            (row, start, end, nodes) for row, start, end, nodes in expected
        ), seed


def test_the_examples_of_the_paper_run_as_its_text_says() -> None:
    """Tables 1 and 3: ours is the oracle's schedule, of which tests/policies/test_slice_oracle.py
    asserts what the paper says."""
    switchless = {
        "switch": 0,
        "class_by": "queue",
        "night": (0, 18, 8),
        "is_easy": False,
        "is_smart": True,
    }
    minute = 60
    one, settings = table_1()
    rules = slice_rules(
        cycle=20 * minute + 3830, short=20 * minute, medium=265, long=730, **switchless
    )
    assert_example(one, settings, SliceScheduler("scojo", rules))
    three, settings, _ = table_3()
    rules = slice_rules(
        cycle=20_276 + 20 * minute, short=20 * minute, medium=265, long=730, **switchless
    )
    sizes = (
        None,
        GroupSize(5, 0, 0, 20, 10, 800 * SECOND),
        GroupSize(9, 0, 0, 20, 4, 15_000 * SECOND),
    )
    assert_example(three, settings, GroupScheduler("scojo-groups", rules, GroupRules(sizes)))


def assert_example(jobs: dict[int, Asked], settings: Settings, policy: Policy) -> None:
    asked = sorted(jobs.values(), key=lambda job: job.submit)
    assert asked == list(jobs.values())
    work = workload_of([SimpleNamespace(**job._asdict()) for job in asked], 10)
    work = work.changed(queue=np.array([job.queue for job in asked], np.int64))
    nodes = Machine(tuple(Host(f"n{number}", 1) for number in range(10)))
    schedule = Calendar(work, nodes, policy, is_audited=True).run()
    assert_as_the_oracle(schedule, Simulation(asked, 10, settings).run(), settings)


@pytest.mark.parametrize("policy", [*SLICES, *GROUPS, "bottom-line:nodes=50"])
def test_how_the_processors_are_divided_into_hosts_changes_nothing(policy: str) -> None:
    for seed in range(6):
        work = work_of(random_asked(seed, 10, 30, LASTING))
        plain = run_named(work, policy)
        for machine in (NODES, HOSTS):
            other = run_named(work, policy, machine=machine)
            assert plain.start.tolist() == other.start.tolist(), (seed, machine)
            assert plain.end.tolist() == other.end.tolist(), (seed, machine)


def test_a_machine_of_one_class_is_plain_conservative_backfilling_where_estimates_are_exact() -> (
    None
):
    for seed in range(20):
        jobs = [job._replace(run=job.estimate) for job in random_asked(seed, 5, 25, ESTIMATES[1:])]
        alone = run_named(work_of(jobs), "scojo:class_by=none")
        plain = run_named(work_of(jobs), "conservative:compress=scratch")
        assert alone.start.tolist() == plain.start.tolist(), seed
        assert alone.pieces is None or not len(alone.pieces)


@pytest.mark.parametrize(
    ("settings", "lengths"),
    [
        ("scojo", (600, 1757, 4843)),
        ("scojo:cycle=1000,short=100", (100, 239, 661)),
        ("scojo:cycle=3", (600, 1, 1)),
    ],
)
def test_slices_are_as_long_as_the_shares_say(settings: str, lengths: tuple[int, int, int]) -> None:
    rules = load_policy(settings).rules
    assert rules.lengths == tuple(length * SECOND for length in lengths)


def test_shares_may_be_others_at_night() -> None:
    rules = load_policy("scojo:night_medium=600,night_from=20,night_to=6").rules
    for hour, medium in (
        (0, 3979),
        (5, 3979),
        (6, 1757),
        (19, 1757),
        (20, 3979),
        (23, 3979),
        (24 + 7, 1757),
    ):
        assert rules.length(1, hour * 3600 * SECOND) == medium * SECOND, hour
        assert sum(rules.length(kind, hour * 3600 * SECOND) for kind in range(3)) == 7200 * SECOND
    by_day = load_policy("scojo:night_medium=600,night_from=9,night_to=17").rules
    assert [by_day.is_night(hour * 3600 * SECOND) for hour in (8, 9, 16, 17)] == [
        False,
        True,
        True,
        False,
    ]
    jobs = [
        job._replace(submit=job.submit + 19 * 3600 * SECOND)
        for job in random_asked(2, 20, 30, LASTING)
    ]
    policy = "scojo:night_medium=600,night_from=20,night_to=6"
    schedule = run_named(work_of(jobs), policy)
    assert schedule.end.tolist() != run_named(work_of(jobs), "scojo").end.tolist()
    assert judge(schedule, policy).is_kept


@pytest.mark.parametrize("policy", ["scojo", f"scojo-groups:{_SMALL}", "bottom-line:nodes=50"])
def test_an_engine_from_a_snapshot_goes_on_as_the_other_one(policy: str) -> None:
    """In a slice, in a switch, with a group half carried out: at every round of a workload."""
    rounds = 0
    for seed in range(3):
        calendar = Calendar(
            work_of(random_asked(seed, 15, 25, LASTING)), HOSTS, load_policy(policy)
        )
        engine, handle = calendar.engine, calendar.engine.handle

        def handle_twice(
            at: int, *arguments: Any, engine: Engine = engine, handle: Callable[..., Round] = handle
        ) -> Round:
            nonlocal rounds
            other = snapshot.load(HOSTS, load_policy(policy), snapshot.dump(engine))
            done = handle(at, *arguments)
            assert other.handle(at, *arguments) == done
            assert snapshot.dump(other) == snapshot.dump(engine)
            rounds += 1
            return done

        engine.handle = handle_twice  # type: ignore[method-assign]
        calendar.run()
    assert rounds > 100


WITH_MEMORY = {
    "one host": Machine((Host("a", 8, 1000),)),
    "hosts": Machine((Host("a", 8, 1000), Host("b", 8, 3000)), single_host=True),
    "chunks": Machine((Host("a", 8, 1000), Host("b", 4, 3000), Host("c", 2)), chunked=True),
    "spanned": Machine((Host("a", 4, 1000), Host("b", 4, 1000))),
}


@pytest.mark.parametrize("machine", WITH_MEMORY.values(), ids=WITH_MEMORY.keys())
@pytest.mark.parametrize(
    "policy", ["scojo", "scojo:backfill=easy", f"scojo-groups:{_SMALL}", "bottom-line:nodes=50"]
)
def test_where_hosts_matter_a_job_on_disk_always_goes_on_in_the_slice_of_its_class(
    policy: str, machine: Machine
) -> None:
    """What is on disk gives its memory to other classes, and its own class leaves it:
    docs/spec/papers.md 4.2 and 4.10, rules 4 and 6."""
    draw, suspended = random.Random(str(machine)), 0
    for seed in range(25):
        jobs = random_asked(seed, 10, 30, LASTING)
        memory = np.array([draw.choice((0, 1, 300, 600, 1000)) for _ in jobs], np.int64)
        work = work_of(jobs).changed(memory=memory, procs_total=machine.procs)
        schedule = Calendar(work, machine, load_policy(policy), is_audited=True).run()
        assert schedule.ran.sum() + len(schedule.rejected) == len(jobs), (
            "admission refuses what no host can hold"
        )
        assert list(check_slices(schedule, load_policy(policy).rules)) == [], seed
        suspended += 0 if schedule.pieces is None else len(schedule.pieces)
    assert suspended > 100


@pytest.mark.parametrize("policy", [*SLICES, *GROUPS])
def test_memory_that_no_job_asks_for_changes_nothing(policy: str) -> None:
    """Placed one by one on a host with memory, jobs run as by the compiled steps on a pool."""
    for seed in range(10):
        work = work_of(random_asked(seed, 10, 35, LASTING))
        plain = run_named(work, policy)
        placed = run_named(work, policy, machine=Machine((Host("a", PROCS, 1000),)))
        assert plain.start.tolist() == placed.start.tolist(), seed
        assert plain.end.tolist() == placed.end.tolist(), seed
