"""The referee over time slices: the clock follows from the schedule, and a job that breaks it is
named."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from qbatch.model.machine import one_host
from qbatch.model.record import Schedule
from qbatch.policies import load_policy
from qbatch.referee.slices import SWITCH, check_slices, classes_of, clock_of
from qbatch.referee.verify import judge
from qbatch.simulation.drivers import run
from tests.harness import size, workload_of
from tests.policies.slice_oracle import Asked, Settings, Simulation
from tests.policies.test_slices import (
    ESTIMATES,
    GROUPS,
    LASTING,
    PROCS,
    SLICES,
    random_asked,
    work_of,
)

SECOND = 1_000_000
POLICIES = [each for each in (*SLICES, *GROUPS, "bottom-line:nodes=50") if "switch=0" not in each]


def schedule_of(policy: str, jobs: list[Asked]) -> Schedule:
    return run(work_of(jobs), one_host(PROCS), load_policy(policy))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_schedule_of_ours_has_no_breach(policy: str) -> None:
    for seed in range(size(15, 25)):
        schedule = schedule_of(
            policy, random_asked(seed, 10, 35, LASTING if seed % 2 else ESTIMATES)
        )
        verdict = judge(schedule, policy)
        assert verdict.breaches == (), (seed, verdict.breaches[:2])
        assert any("slices of" in text for text in verdict.checked)


@pytest.mark.parametrize("policy", [each for each in SLICES if "switch=0" not in each])
def test_the_clock_is_that_of_the_oracle(policy: str) -> None:
    for seed in range(size(15, 25)):
        jobs = random_asked(seed, 5, 30, ESTIMATES)
        simulation = Simulation(jobs, PROCS, Settings(**SLICES[policy]))
        simulation.run()
        expected = [
            (each.start, each.end, "SML".find(each.kind))
            for each in simulation.history
            if each.end > each.start
        ]
        found = clock_of(schedule_of(policy, jobs), load_policy(policy).rules)
        assert [tuple(each) for each in found] == expected, seed


def test_a_job_that_runs_in_a_switch_or_is_suspended_in_its_own_slice_is_named() -> None:
    named = set()
    for seed in range(12):
        schedule = schedule_of("scojo", random_asked(seed, 12, 30, LASTING))
        if schedule.pieces is None or not len(schedule.pieces):
            continue
        rules = load_policy("scojo").rules
        switches = [each for each in clock_of(schedule, rules) if each.kind == SWITCH]
        pieces = schedule.pieces.copy()
        place = int(np.argmax(pieces[:, 2] == switches[0].start))
        longer = pieces.copy()
        longer[place, 2] += 10 * SECOND
        assert {
            breach.code for breach in check_slices(replace(schedule, pieces=longer), rules)
        } == {"outside-slice"}
        shorter = pieces.copy()
        kinds = [rules.class_of(int(estimate), -1) for estimate in schedule.workload.estimate]
        clock = clock_of(schedule, rules)
        for place, (row, begin, end, *_) in enumerate(pieces.tolist()):
            mine = next(each for each in clock if each.start <= begin < each.end)
            if mine.kind == kinds[row] and end - begin > 20 * SECOND and end < schedule.end[row]:
                shorter[place, 2] -= 10 * SECOND
                (breach,) = check_slices(replace(schedule, pieces=shorter), rules)
                assert (breach.code, breach.jobs) == (
                    "idle-in-slice",
                    (int(schedule.workload.number[row]),),
                )
                named.add(seed)
                break
    assert len(named) > 3


def test_a_piece_that_lasts_beyond_its_slice_is_named() -> None:
    jobs = [Asked(0, 1, 900 * SECOND, 900 * SECOND), Asked(0, 1, 20000 * SECOND, 20000 * SECOND)]
    schedule = schedule_of("scojo:smart=no", jobs)
    assert judge(schedule, "scojo:smart=no").is_kept
    whole = replace(
        schedule, pieces=None, start=np.array([0, 0]), end=np.array([900, 20000]) * SECOND
    )
    codes = {breach.code for breach in judge(whole, "scojo:smart=no").breaches}
    assert "outside-slice" in codes


def test_classes_that_are_always_there_have_the_shares_of_their_slices() -> None:
    """8.3, 24.4 and 67.3 % (docs/spec/papers.md 4.10, rule 2), within 2 points."""
    jobs = []
    for number in range(120):
        jobs += [(0, 4, 500), (0, 4, 5000)] if number < 60 else [(0, 4, 500)]
        jobs.append((0, 4, 40000))
    asked = [
        SimpleNamespace(submit=at, procs=procs, estimate=length * SECOND, run=length * SECOND)
        for at, procs, length in jobs
    ]
    schedule = run(
        workload_of(asked, PROCS), one_host(PROCS), load_policy("scojo:smart=no"), is_audited=True
    )
    rules = load_policy("scojo:smart=no").rules
    kinds = np.array(classes_of(schedule, rules))
    # From 0 until then all classes are there.
    until = min(schedule.end[kinds == kind].max() for kind in range(3))
    lasted = [
        sum(
            max(min(one.end, until) - one.start, 0)
            for one in clock_of(schedule, rules)
            if one.kind == kind
        )
        for kind in range(3)
    ]
    assert np.array(lasted) / sum(lasted) == pytest.approx((0.083, 0.244, 0.673), abs=0.02)


def test_rows_without_their_pieces_are_said_to_be_unchecked() -> None:
    schedule = schedule_of("scojo", random_asked(3, 20, 30, LASTING))
    assert schedule.pieces is not None
    bare = replace(schedule, pieces=None, read_piece_count=schedule.piece_count)
    assert any("slices of scojo" in text for text in judge(bare, "scojo").unchecked)
