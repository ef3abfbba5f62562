"""The referee against the oracle: right schedules are kept, changed ones are caught."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from qbatch.model.errors import UsageError
from qbatch.model.record import Schedule, finished_run
from qbatch.referee.conservative_plan import PlanCheck
from qbatch.referee.verify import Conditions, judge, read_finished
from tests.harness import size
from tests.oracle import naive
from tests.oracle.naive import SECOND, Job, Outcome
from tests.oracle.workloads import random_jobs, workloads
from tests.reports.samples import changed, tried

COMPLETE = ("fcfs", "easy", "conservative:compress=none")
"""Policies for which the referee accepts their own schedule only."""

POLICIES = (*COMPLETE, "conservative", "conservative:compress=start")


def scheduled(jobs: Sequence[Job], procs: int, policy: str) -> list[Outcome]:
    if policy in ("fcfs", "easy"):
        return {"fcfs": naive.fcfs, "easy": naive.easy}[policy](jobs, procs)
    return naive.conservative(jobs, procs, policy.partition("compress=")[2] or "arrival")


def finished(
    jobs: Sequence[Job], procs: int, starts: Sequence[int], **columns: Sequence[int]
) -> Schedule:
    start, run = np.array(starts, np.int64), np.array([job.run for job in jobs], np.int64)
    given = {"end": start + run} | columns
    return finished_run(
        "",
        name="random",
        procs_total=procs,
        number=np.arange(1, len(jobs) + 1),
        start=start,
        run=run,
        submit=np.array([job.submit for job in jobs], np.int64),
        procs=np.array([job.procs for job in jobs], np.int64),
        estimate=np.array([job.estimate for job in jobs], np.int64),
        **{name: np.asarray(column, np.int64) for name, column in given.items()},
    )


def small(*rows: tuple[int, int, int, int], procs: int, starts: Sequence[int]) -> Schedule:
    """A schedule of jobs from (submit, procs, estimate, run), in seconds."""
    jobs = [Job(i, s * SECOND, p, e * SECOND, r * SECOND) for i, (s, p, e, r) in enumerate(rows)]
    return finished(jobs, procs, [start * SECOND for start in starts])


def codes(done: Schedule, policy: str | None = None, **options: Any) -> list[str]:
    return [breach.code for breach in judge(done, policy, **options).breaches]


def check_kept(jobs: Sequence[Job], procs: int, policy: str) -> None:
    outcomes = scheduled(jobs, procs, policy)
    bare = finished(jobs, procs, [outcome.start for outcome in outcomes])
    assert codes(bare, policy) == [], (policy, jobs)
    if outcomes[0].promise is not None:
        promise, first = [o.promise for o in outcomes], [o.first_promise for o in outcomes]
        promised = replace(bare, promise=np.array(promise), first_promise=np.array(first))
        assert codes(promised, policy) == [], (policy, jobs)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=size(40, 100))
@given(given=workloads())
def test_schedules_of_the_oracle_are_kept(policy: str, given: tuple[list[Job], int]) -> None:
    check_kept(*given, policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_nasty_schedules_are_kept_and_changed_ones_are_caught(policy: str) -> None:
    missed = changed = 0
    for seed in range(size(100, 400)):
        rng = random.Random(seed)
        procs = rng.randint(1, 8)
        jobs = random_jobs(rng, rng.randint(2, 14), procs)
        check_kept(jobs, procs, policy)
        starts = [outcome.start for outcome in scheduled(jobs, procs, policy)]
        other, row, mate = list(starts), rng.randrange(len(jobs)), rng.randrange(len(jobs))
        if rng.random() < 0.5:
            other[row] += rng.choice((-1, 1)) * SECOND
        else:
            other[row], other[mate] = other[mate], other[row]
        if other != starts and min(other) >= 0:
            changed += 1
            missed += not codes(finished(jobs, procs, other), policy)
    assert changed > size(50, 200)
    # With early ends, a conservative plan does not follow from the schedule alone: most changes are
    # caught, not all.
    assert missed <= (0 if policy in COMPLETE else changed // 10)


@pytest.mark.parametrize(
    "policy", ["conservative", "conservative:compress=start", "conservative:compress=none"]
)
def test_derived_promises_are_those_of_the_oracle(policy: str) -> None:
    derived = 0
    for seed in range(size(50, 150)):
        rng = random.Random(seed)
        procs = rng.randint(1, 8)
        jobs = random_jobs(rng, rng.randint(2, 14), procs)
        outcomes = scheduled(jobs, procs, policy)
        first = [outcome.first_promise or 0 for outcome in outcomes]
        done = finished(jobs, procs, [outcome.start for outcome in outcomes], first_promise=first)
        check = PlanCheck(done, is_compressing=not policy.endswith("none"))
        assert list(check.breaches()) == []
        derived += check.derived
        wrong = replace(done, first_promise=done.first_promise + SECOND)
        assert "wrong-promise" in codes(wrong, policy)
    assert derived > size(230, 700)


def test_a_schedule_of_one_policy_is_none_of_another() -> None:
    compared = 0
    for seed in range(100):
        rng = random.Random(seed)
        procs = rng.randint(2, 8)
        jobs = random_jobs(rng, 12, procs)
        easy, fcfs = (scheduled(jobs, procs, policy) for policy in ("easy", "fcfs"))
        if [o.start for o in easy] != [o.start for o in fcfs]:
            compared += 1
            assert codes(finished(jobs, procs, [o.start for o in easy]), "fcfs")
            assert codes(finished(jobs, procs, [o.start for o in fcfs]), "easy")
    assert compared > 20


# --- the common checks ------------------------------------------------------------------------


def test_capacity_names_each_spell_of_overuse_and_the_jobs_that_made_it() -> None:
    rows = [(0, 3, 10, 10), (1, 2, 4, 4), (20, 4, 5, 5), (21, 1, 2, 2)]
    verdict = judge(small(*rows, procs=4, starts=[0, 1, 20, 24]))
    assert [
        (breach.code, breach.instant // SECOND, breach.jobs) for breach in verdict.breaches
    ] == [
        ("capacity", 1, (2, 1)),
        ("capacity", 24, (4, 3)),
    ]
    assert verdict.breaches[0].text == "5 of 4 processors in use, by jobs 2, 1"


def test_ends_come_before_starts_and_no_length_holds_nothing() -> None:
    assert codes(small((0, 4, 5, 5), (0, 4, 5, 5), (2, 4, 0, 0), procs=4, starts=[0, 5, 2])) == []


def test_a_job_wider_than_the_machine_is_over_capacity() -> None:
    assert codes(small((0, 5, 0, 0), procs=4, starts=[0])) == ["capacity"]


def test_a_job_of_no_length_needs_its_place_under_a_policy() -> None:
    done = small((0, 4, 5, 5), (0, 4, 0, 0), procs=4, starts=[0, 2])
    assert codes(done) == []
    assert codes(done, "fcfs") == codes(done, "easy") == ["capacity"]


def test_times_have_to_agree() -> None:
    done = small((5, 1, 10, 10), (5, 1, 10, 12), (5, 1, 3, 3), procs=4, starts=[3, 5, 5])
    assert codes(done) == ["early-start", "overrun"]
    assert codes(done, is_killing=False) == ["early-start"]
    done = changed(done, end=done.end + np.array([0, 0, 1]), number=np.array([1, 2, 2]))
    assert codes(done, is_killing=False) == ["early-start", "wrong-end", "duplicate-job"]
    for policy in ("fcfs", "easy", "conservative", "hybrid"):
        assert codes(done, policy)[0] == "early-start"


def test_promises_in_the_rows_are_held_against_any_policy() -> None:
    done = small((0, 1, 5, 5), (0, 1, 5, 5), procs=2, starts=[0, 0])
    late = replace(
        done, start=done.start + SECOND, end=done.end + SECOND, promise=np.array([0, 2 * SECOND])
    )
    verdict = judge(replace(late, first_promise=np.array([0, SECOND])))
    assert [breach.code for breach in verdict.breaches] == ["promise-broken", "promise-moved"]
    assert verdict.breaches[0].text == "job 1 was promised to start at 0 s, and started at 1 s"
    scratch = judge(late, "conservative:compress=scratch")
    assert scratch.is_kept
    assert any("from scratch" in text for text in scratch.unchecked)


def test_what_cannot_be_decided_is_said() -> None:
    done = small((0, 1, 5, 5), procs=2, starts=[0])
    for policy in ("hybrid", "easy:order=sjf", "fcfs:order=sjf"):
        assert judge(done, policy).unchecked == (
            f"order and backfilling of {policy}: there is no check for this policy yet",
        )
    assert "--policy" in judge(done).unchecked[0]
    with pytest.raises(UsageError, match="did you mean 'easy'"):
        judge(done, "eassy")


def test_a_breach_does_not_drag_others_behind_it() -> None:
    rows = [(0, 2, 10, 10), (0, 2, 5, 5), *((20 + i, 2, 5, 5) for i in range(0, 60, 5))]
    right = [0, 10, *range(20, 80, 5)]
    assert codes(small(*rows, procs=2, starts=right), "easy") == []
    wrong = [0, 11, *right[2:]]
    assert codes(small(*rows, procs=2, starts=wrong), "easy") == ["guarantee", "needless-wait"]


# --- a real log -------------------------------------------------------------------------------


KTH = Path(__file__).parents[3] / "shared" / "traces" / "KTH-SP2-1996-2.1-cln.swf.gz"


@pytest.mark.skipif(not KTH.exists(), reason="the KTH log is not here (../shared/traces)")
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_a_replay_of_a_real_log_is_kept_and_one_changed_start_is_found(policy: str) -> None:
    from qbatch.model.machine import one_host
    from qbatch.policies import load_policy
    from qbatch.simulation import Options, prepare, run
    from qbatch.workloads import read_log

    machine = one_host(100)
    work = prepare(read_log(str(KTH)), machine, Options(first=None if policy == "easy" else 8000))
    done = run(work, machine, load_policy(policy))
    assert judge(done, policy).is_kept
    waited = np.flatnonzero(done.start > done.workload.submit)
    row = int(waited[len(waited) // 2])
    moved = np.zeros(len(done), np.int64)
    moved[row] = SECOND
    verdict = judge(replace(done, start=done.start + moved, end=done.end + moved), policy)
    assert int(done.workload.number[row]) in {
        number for breach in verdict.breaches for number in breach.jobs
    }


# ------------------------------------------------------------------------------------------------
# jobs in pieces

TRIED = ("immediate:inner=easy", "equispatial")


@pytest.mark.parametrize("policy", TRIED)
def test_jobs_in_pieces_are_checked_piece_by_piece(policy: str) -> None:
    done = tried(policy)
    verdict = judge(done, policy)
    assert verdict.breaches == ()
    assert any("execution intervals of" in text for text in verdict.checked)
    # As bars from start to end they would need more than there is: the pieces decide.
    bars = replace(done, pieces=None)
    assert "capacity" in codes(bars)


@pytest.mark.parametrize("policy", TRIED)
@pytest.mark.parametrize(
    ("row", "column", "change", "code"),
    [
        (0, 2, 5 * SECOND, "piece-times"),  # ends later: into the next piece, or does too much
        (0, 1, SECOND, "piece-times"),  # begins later than its job
        (-1, 2, SECOND, "piece-times"),  # ends later than its job
        (-1, 3, 1, "piece-work"),
        (0, 3, 1, "piece-work"),
        (-1, 5, -1, "piece-work"),  # thrown away
        (-1, 3, 9, "capacity"),
    ],
)
def test_a_piece_that_is_changed_is_caught(
    policy: str, row: int, column: int, change: int, code: str
) -> None:
    done = tried(policy)
    assert done.pieces is not None
    pieces = done.pieces.copy()
    pieces = pieces[np.lexsort((pieces[:, 1], pieces[:, 0]))]
    pieces[row, column] += change
    found = codes(replace(done, pieces=pieces))
    assert code in found or (code == "piece-times" and "piece-work" in found), found


@pytest.mark.parametrize(("run", "found"), [(8, ["piece-work"]), (9, []), (10, ["piece-work"])])
def test_the_run_time_of_a_job_that_really_ran_is_its_pieces_rounded_down(
    run: int, found: list[str]
) -> None:
    """5 us on 4 processors and 6 us on 3 are 38 of work: on 4 it would have been 9.5 us, which a
    history holds as 9."""
    times = {
        "number": 1,
        "submit": 0,
        "start": 0,
        "end": 11,
        "procs": 4,
        "run": run,
        "estimate": run,
    }
    columns = {name: np.array([value]) for name, value in times.items()}
    pieces = np.array([[0, 0, 5, 4, 0, 1], [0, 5, 11, 3, 0, 1]])
    done = finished_run("live", procs_total=4, **columns, pieces=pieces)
    assert codes(done) == found


def test_work_is_compared_to_the_microsecond_of_a_run_time() -> None:
    """The run time of a job that really ran is its work over its processors, rounded down: its
    pieces may do a little more."""
    done = tried("equispatial")
    assert done.pieces is not None
    pieces = done.pieces[np.lexsort((done.pieces[:, 1], done.pieces[:, 0]))]
    is_first = np.append(True, pieces[1:, 0] != pieces[:-1, 0])
    narrow = int(np.flatnonzero((pieces[:, 3] < done.workload.procs[pieces[:, 0]]) & ~is_first)[0])
    row = int(pieces[narrow, 0])
    for less, is_found in ((0, False), (1, True), (2, True)):
        run = done.workload.run.copy()
        run[row] -= less
        moved = pieces.copy()
        moved[narrow, 1] -= 0 if less else 1
        assert ("piece-work" in codes(changed(done, pieces=moved, run=run))) is is_found


def test_a_promise_that_a_quantum_put_off_is_counted_and_no_breach() -> None:
    done = tried("immediate:inner=conservative")
    late = replace(done, promise=done.start - 1, first_promise=done.start - 1)
    verdict = judge(late, "immediate:inner=conservative")
    assert verdict.is_kept
    assert "promises: quanta and shares may delay them; 5 of 5 were" in verdict.unchecked
    assert "promise-broken" in {breach.code for breach in judge(late).breaches}


def test_pieces_that_are_not_known_are_said_to_be_unchecked() -> None:
    done = tried(TRIED[0])
    done = replace(done, pieces=None, read_piece_count=done.piece_count)
    verdict = judge(done, TRIED[0])
    assert verdict.breaches == ()
    assert any(
        text.startswith("the 3 jobs with several execution intervals") for text in verdict.unchecked
    )
    assert any("held by jobs with one execution interval" in text for text in verdict.checked)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "hybrid:depth=2", "conservative"])
def test_a_policy_that_never_suspends_has_no_jobs_in_pieces(policy: str) -> None:
    verdict = judge(tried(TRIED[0]), policy)
    assert [(breach.code, breach.jobs) for breach in verdict.breaches] == [
        ("in-pieces", (1,)),
        ("in-pieces", (2,)),
        ("in-pieces", (5,)),
    ]
    assert any("gives every job one execution interval" in text for text in verdict.unchecked)


def test_on_a_machine_of_hosts_the_order_is_not_checked() -> None:
    done = small((0, 3, 9, 9), (1, 2, 9, 9), procs=4, starts=(0, 20))
    assert codes(done, "easy") == ["guarantee", "needless-wait"]
    verdict = judge(done, "easy", Conditions(is_one_pool=False))
    assert verdict.breaches == ()
    assert any("machine has hosts" in text for text in verdict.unchecked)


def test_a_log_of_preempted_jobs_is_not_taken_for_an_overfilled_machine(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    rows = (
        "1 0 0 90 4 -1 -1 4 80 -1 1 -1 -1 -1 -1 -1 -1 -1\n2 0 10 20 4 -1 -1 4 20 -1 1 -1 -1 -1 "
        "-1 -1 -1 -1\n"
    )
    for preemption, found in (("No", {"capacity", "overrun"}), ("TS", set())):
        log.write_text(f"; MaxProcs: 6\n; Preemption: {preemption}\n{rows}")
        ((done, known),) = read_finished(str(log))
        assert set(codes(done, known=known)) == found
    verdict = judge(done, "easy", known)
    assert verdict.breaches == ()
    assert [text.partition(":")[0] for text in verdict.unchecked] == [
        "capacity and run times",
        "order and backfilling of easy",
    ]
