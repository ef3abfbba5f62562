"""Policies that lie, fail, stall or meddle: one honest line each, and never a wrong result shown as
good."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from qbatch.model.actions import Reject, Start, Suspend, WakeAt
from qbatch.model.errors import DecisionError
from qbatch.model.machine import one_host
from qbatch.model.reasons import Reason
from qbatch.planning.policy import ListRules
from qbatch.policies import load_policy
from qbatch.policies.backfill import Backfill
from qbatch.simulation import run
from tests.harness import run_named, same_schedule, workload_of
from tests.oracle.naive import Job
from tests.oracle.workloads import random_jobs


class Doing:
    """A policy made of one function."""

    name = "doing"

    def __init__(self, decide: Callable) -> None:
        self.decide = decide


def work(count: int = 6):
    return workload_of(random_jobs(random.Random(3), count, 4), 4)


class OwnStart(Start):
    """An action of a policy's own."""


def fail(view):
    raise ValueError("two\nlines")


def leave(view):
    raise SystemExit


def suspend_for_ever(view):
    for row in view.queue.tolist():
        if view.jobs[row].procs <= view.free_procs and not view.running:
            return [Start(row), Suspend(row)]
    return []


@pytest.mark.parametrize(
    ("decide", "says"),
    [
        (lambda view: [], "waiting for ever"),
        (suspend_for_ever, "waiting for ever"),
        (fail, r"failed at .*test_hostile_policies.py:\d+: ValueError: two lines"),
        (leave, "failed at .*SystemExit"),
        (lambda view: None, "failed at .*TypeError"),
        (lambda view: ["hello"], "'hello', which is not an action"),
        (lambda view: [OwnStart(0)], "OwnStart.*, which is not an action"),
        (lambda view: [Start("a")], "row is 'a', not a whole number"),
        (lambda view: [Start(0, until=view.now + 0.5)], "until is .*not a whole number"),
        (lambda view: view.jobs.clear(), "failed at .*clear"),
        (lambda view: view.running.clear(), "failed at .*clear"),
        (lambda view: [WakeAt(view.now + 1)], "did nothing but ask to be woken"),
    ],
)
def test_each_is_reported_in_one_line(
    decide: Callable, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qbatch.simulation.calendar._MOST_IDLE", 50)
    with pytest.raises(DecisionError, match=says) as error:
        run(work(), one_host(4), Doing(decide))
    assert "\n" not in str(error.value)


def test_actions_are_carried_out_after_the_policy_has_looked_at_everything() -> None:
    def first_fit(view):
        free = view.free_now()
        for row in view.queue:
            if free.take(view.jobs[int(row)]):
                yield Start(int(row))

    for seed in range(40):
        case = workload_of(random_jobs(random.Random(seed), 15, 6), 6)
        schedule = run(case, one_host(6), Doing(first_fit), is_audited=True)
        assert schedule.start.tolist() == run_named(case, "hybrid:depth=0").start.tolist(), seed


def test_a_rejected_job_is_no_job_that_ran() -> None:
    no = Reason("never", "test", "never")
    schedule = run(
        work(), one_host(4), Doing(lambda view: [Reject(row, no) for row in view.queue.tolist()])
    )
    assert not schedule.ran.any()


def test_a_class_derived_from_ours_runs_its_own_decide() -> None:
    class Mine(Backfill):
        def decide(self, view):
            return list(super().decide(view))[:1]

    case = work(12)
    mine = Mine("mine", ListRules("fcfs", 1, is_by_shadow=True))
    assert same_schedule(
        run(case, one_host(4), mine), run(case, one_host(4), mine, driver="engine")
    )


def test_submissions_within_a_microsecond_keep_both_drivers_together(tmp_path) -> None:
    from qbatch.simulation import prepare
    from qbatch.workloads import read_log

    path = tmp_path / "sub.swf"
    rows = [
        f"{number} {submit} -1 9 4 -1 -1 4 9 -1 1 1 1 -1 1 -1 -1 -1\n"
        for number, submit in ((1, 1.0000004), (2, 1.0000001), (3, 1.0000003))
    ]
    path.write_text("".join(rows))
    case = prepare(read_log(str(path)), one_host(4))
    for policy in ("fcfs", "easy", "conservative"):
        one, other = (run_named(case, policy, driver=driver) for driver in ("compiled", "engine"))
        assert same_schedule(one, other)
    assert case.number.tolist() == [1, 2, 3]


def test_estimates_that_add_up_beyond_time_are_refused(tmp_path) -> None:
    from qbatch.model.errors import InputError
    from qbatch.simulation import prepare
    from qbatch.workloads import read_log

    path = tmp_path / "huge.swf"
    path.write_text(
        "".join(
            f"{number} 0 -1 1 2 -1 -1 2 4000000000 -1 1 1 1 -1 1 -1 -1 -1\n"
            for number in range(1, 900)
        )
    )
    with pytest.raises(InputError, match="add up to"):
        prepare(read_log(str(path)), one_host(2))


def test_a_broken_promise_in_the_rows_is_a_breach() -> None:
    from dataclasses import replace

    from qbatch.engine.audit import breaches

    jobs = [Job(0, 0, 4, 5_000_000, 5_000_000), Job(1, 0, 4, 5_000_000, 5_000_000)]
    schedule = run(workload_of(jobs, 4), one_host(4), load_policy("conservative"))
    assert breaches(schedule) == []
    assert (
        "started after its promise" in breaches(replace(schedule, promise=schedule.promise - 1))[0]
    )
    assert (
        "processors used"
        in breaches(replace(schedule, start=schedule.start * 0, promise=schedule.promise * 0 + 99))[
            0
        ]
    )
