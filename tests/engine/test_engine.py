"""The engine with small scripted policies: every action, every refusal, every transition."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from qbatch.engine.engine import Engine
from qbatch.engine.states import CODES, ENDS, TRANSITIONS, State, diagram
from qbatch.model.actions import (
    Action,
    Chunk,
    Promise,
    Reject,
    Resize,
    Resume,
    Start,
    Suspend,
    WakeAt,
)
from qbatch.model.errors import AuditError, DecisionError
from qbatch.model.events import Finished, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.reasons import Reason
from qbatch.planning.view import View

SECOND = 1_000_000
Step = Callable[[View], Iterable[Action]]


class Script:
    """A policy that does what the test says, pass by pass; an exhausted script does nothing."""

    def __init__(self, *steps: Step | list[Action]) -> None:
        self.steps = list(steps)
        self.views: list[View] = []

    def decide(self, view: View) -> Iterable[Action]:
        self.views.append(view)
        step = self.steps.pop(0) if self.steps else []
        return step(view) if callable(step) else step


def job(procs: int = 1, estimate: int = 100, submit: int = 0, **more: int) -> Submitted:
    number = more.pop("number", 1)
    return Submitted(
        Job(number=number, submit=submit, procs=procs, estimate=estimate * SECOND, **more)
    )


def engine_with(*steps: Step | list[Action], machine: Machine | None = None) -> Engine:
    return Engine(machine or one_host(4), Script(*steps), is_audited=True)


def test_a_job_walks_from_queued_through_running_to_finished() -> None:
    engine = engine_with([Start(0)])
    done = engine.handle(0, [job(2)])
    assert done.actions == (Start(0, (Chunk(0, 2),)),)
    assert engine.state_of(0) is State.RUNNING
    assert engine.view().free == (2,)
    engine.handle(10, [Finished(0)])
    assert engine.state_of(0) is State.FINISHED
    assert engine.view().free == (4,)


def test_the_events_of_one_instant_are_ordered_by_the_engine() -> None:
    engine = engine_with([Start(0)])
    engine.handle(0, [job(4)])
    done = engine.handle(5, [job(1, number=9, submit=5), job(1, number=3, submit=5), Finished(0)])
    assert done.finished == (0,)
    assert [engine.view().jobs[row].number for row in done.arrived] == [3, 9]


def test_the_view_says_what_happened_in_this_round() -> None:
    engine = engine_with([Start(0)], [], [])
    engine.handle(0, [job(4)])
    engine.handle(1, [job(1, number=2, submit=1)])
    engine.handle(2, [Finished(0)])
    first, second, third = engine.policy.views
    assert (first.arrived, second.arrived, third.arrived) == ((0,), (1,), ())
    assert (second.only_arrivals, third.only_arrivals) == (True, False)
    assert third.finished == (0,)


def test_a_policy_cannot_write_into_its_view() -> None:
    engine = engine_with([])
    engine.handle(0, [job(1)])
    view = engine.view()
    for array in (view.queue, view.columns.procs, view.ends):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError):
        view.now = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Start(7), "there is no row 7"),
        (Start(1, (Chunk(0, 5),)), "allocates 5 processors"),
        (Start(1, (Chunk(0, 1), Chunk(0, 2))), "different hosts"),
        (Start(1, (Chunk(3, 3),)), "different hosts of the machine"),
        (Start(1, (Chunk(0, 1, 0, 3),)), "different hosts of the machine"),
        (Start(1, (Chunk(0, 3, 0, 0),)), "different hosts of the machine"),
        (Start(1, (Chunk(0, np.int64(3)),)), "its procs is .*3.*, not a whole number"),
        (Start(1, (Chunk(np.int64(0), 3),)), "its host is .*0.*, not a whole number"),
        (Start(1, (Chunk(0, 3, 0.5),)), "its memory is 0.5, not a whole number"),  # type: ignore[arg-type]
        (Start(1, (Chunk(0, 3, 0, True),)), "its count is True, not a whole number"),
        (
            Start(1, (Chunk(np.int64(0), 3),), 5, is_trial=True),
            "its host is .*0.*, not a whole number",
        ),
        (Start(1), "no host can now hold a job of 3 processors"),
        (Start(1, (Chunk(0, 3),)), "has 2 processors free"),
        (Start(0), "is running"),
        (Start(1, (), 0), "until must be later"),
        (Suspend(1), "is queued"),
        (Resume(0), "is running"),
        (Resize(1, 2), "is queued"),
        (Resize(0, 3), "is rigid"),
        (Reject(0, Reason("x", "test", "x")), "is running"),
        (Promise(0, 50), "only a waiting job"),
        (Promise(1, -5), "not in the past"),
        (WakeAt(0), "later than now"),
    ],
)
def test_a_wrong_action_is_refused_loudly(action: Action, reason: str) -> None:
    engine = engine_with([Start(0), action])
    with pytest.raises(DecisionError, match=reason):
        engine.handle(0, [job(2), job(3, number=2)])


def test_a_job_on_two_hosts_is_refused_where_it_must_stay_inside_one() -> None:
    machine = Machine((Host("a", 2), Host("b", 2)), single_host=True)
    with pytest.raises(DecisionError, match="inside one host"):
        engine_with([Start(0, (Chunk(0, 1), Chunk(1, 1)))], machine=machine).handle(0, [job(2)])


def test_a_job_spans_hosts_in_their_order_where_it_may() -> None:
    machine = Machine((Host("a", 2), Host("b", 3)))
    done = engine_with([Start(0)], machine=machine).handle(0, [job(4)])
    assert done.actions == (Start(0, (Chunk(0, 2, count=2),)),)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((Chunk(0, 1), Chunk(1, 1), Chunk(2, 1)), (Chunk(0, 1, 0, 3),)),
        ((Chunk(0, 1, 0, 2), Chunk(2, 1)), (Chunk(0, 1, 0, 3),)),
        ((Chunk(1, 1, 0, 2), Chunk(0, 1)), (Chunk(1, 1, 0, 2), Chunk(0, 1))),
        ((Chunk(2, 2), Chunk(0, 1)), (Chunk(2, 2), Chunk(0, 1))),
    ],
)
def test_neighbours_that_give_the_same_are_one_range_however_a_policy_says_it(
    given: tuple[Chunk, ...], kept: tuple[Chunk, ...]
) -> None:
    machine = Machine(tuple(Host(name, 2) for name in "abc"))
    engine = Engine(machine, engine_with([Start(0, given)], []).policy, is_audited=True)
    assert engine.handle(0, [job(3)]).actions == (Start(0, kept),)
    assert engine.view().running[0].allocation == kept
    engine.handle(5, [Finished(0)])
    assert engine.view().free == (2, 2, 2)


def test_ranges_that_overlap_are_refused() -> None:
    machine = Machine(tuple(Host(name, 2) for name in "abc"))
    with pytest.raises(DecisionError, match="different hosts"):
        engine_with([Start(0, (Chunk(1, 1), Chunk(0, 1, 0, 2)))], machine=machine).handle(
            0, [job(3)]
        )


def test_memory_limits_what_fits_on_a_host() -> None:
    machine = Machine((Host("a", 8, memory=100),), single_host=True)
    engine = engine_with(
        [Start(0, (Chunk(0, 1, 60),)), Start(1, (Chunk(0, 1, 60),))], machine=machine
    )
    with pytest.raises(DecisionError, match="40 bytes free"):
        engine.handle(0, [job(1, memory=60), job(1, memory=60, number=2)])
    with pytest.raises(DecisionError, match="asks for 60"):
        engine_with([Start(0, (Chunk(0, 1, 10),))], machine=machine).handle(0, [job(1, memory=60)])


def test_a_suspended_job_keeps_its_memory_and_resumes_on_its_own_host() -> None:
    machine = Machine((Host("a", 2, memory=100), Host("b", 2, memory=100)), single_host=True)
    engine = engine_with([Start(0, (Chunk(1, 2, 70),))], [Suspend(0)], [Resume(0)], machine=machine)
    engine.handle(0, [job(2, memory=70)])
    engine.handle(10 * SECOND, [Woken()])
    assert engine.state_of(0) is State.SUSPENDED
    assert engine.view().free == (2, 2)
    assert engine.view().free_memory == (100, 30)
    engine.handle(30 * SECOND, [Woken()])
    run = engine.view().running[0]
    assert run.allocation == (Chunk(1, 2, 70),)
    # 10 of 100 estimated seconds are done, so that 90 are left from 30 on.
    assert run.expected_end == 120 * SECOND


def test_a_suspension_can_give_the_memory_back() -> None:
    machine = Machine((Host("a", 2, memory=100),), single_host=True)
    steps: list[list[Action]] = [[Start(0)], [Suspend(0, keep_memory=False), Start(1)], [Resume(0)]]
    engine = engine_with(*steps, machine=machine)
    engine.handle(0, [job(2, memory=80), job(1, memory=80, number=2)])
    engine.handle(1, [Woken()])
    assert engine.view().free_memory == (20,)
    with pytest.raises(DecisionError, match="own host a has 1 processors"):
        engine.handle(2, [Woken()])


def test_until_ends_a_run_without_being_asked_again() -> None:
    engine = engine_with([Start(0, until=7)])
    engine.handle(0, [job(1)])
    assert engine.next_timer() == 7
    done = engine.handle(7, [Woken()])
    assert done.stopped == (0,)
    assert engine.state_of(0) is State.SUSPENDED
    assert engine.next_timer() is None


def test_a_malleable_job_is_resized_and_its_end_moves() -> None:
    engine = engine_with([Start(0)], [Resize(0, 4)], [Resize(0, 1)])
    engine.handle(0, [job(2, min_procs=1, max_procs=4)])
    engine.handle(50 * SECOND, [Woken()])
    assert engine.view().running[0].expected_end == 75 * SECOND
    engine.handle(60 * SECOND, [Woken()])
    assert engine.view().running[0].expected_end == 120 * SECOND
    assert engine.view().free == (3,)


def test_resizing_beyond_the_job_or_the_host_is_refused() -> None:
    for procs, reason in ((5, "takes 1 to 4"), (4, "has 0 processors free")):
        engine = engine_with([Start(0), Start(1)], [Resize(0, procs)])
        engine.handle(0, [job(2, min_procs=1, max_procs=4), job(2, number=2)])
        with pytest.raises(DecisionError, match=reason):
            engine.handle(1, [Woken()])


def test_a_rejected_job_is_gone_for_good() -> None:
    reason = Reason("deadline", "test", "cannot make its deadline")
    engine = engine_with([Reject(0, reason)], [Start(0)])
    engine.handle(0, [job(1)])
    assert engine.state_of(0) is State.REJECTED
    with pytest.raises(DecisionError, match="is rejected"):
        engine.handle(1, [Woken()])


def test_promises_only_move_earlier() -> None:
    engine = engine_with([Promise(0, 90), Promise(0, 50)], [Promise(0, 60)])
    engine.handle(0, [job(1)])
    assert engine.promise_to(0) == 50
    with pytest.raises(DecisionError, match="only moves earlier"):
        engine.handle(1, [Woken()])


def test_wake_ups_are_timers_and_are_used_up() -> None:
    engine = engine_with([WakeAt(30), WakeAt(20)])
    engine.handle(0, [job(1)])
    assert engine.next_timer() == 20
    engine.handle(20, [Woken()])
    assert engine.next_timer() == 30


def test_withdrawn_jobs_leave_the_queue_or_give_their_memory_back() -> None:
    machine = Machine((Host("a", 2, memory=10),), single_host=True)
    engine = engine_with([Start(0, until=5)], machine=machine)
    engine.handle(0, [job(2, memory=10), job(1, number=2)])
    engine.handle(1, [Withdrawn(1)])
    assert engine.state_of(1) is State.WITHDRAWN
    engine.handle(5, [Woken()])
    engine.handle(6, [Withdrawn(0)])
    assert engine.view().free_memory == (10,)
    with pytest.raises(DecisionError, match="cannot be withdrawn"):
        engine.handle(7, [Withdrawn(0)])


def test_what_can_never_run_is_refused_at_submission_with_the_reason() -> None:
    engine = engine_with()
    done = engine.handle(0, [job(5), job(1, number=2)])
    ((row, reason),) = done.refused
    assert (row, reason.code, reason.numbers) == (0, "too-wide", {"procs": 5, "widest": 4})
    assert done.arrived == (1,)
    assert engine.state_of(0) is State.REJECTED
    machine = Machine((Host("a", 8, memory=10), Host("b", 2, memory=99)), single_host=True)
    done = Engine(machine, Script()).handle(0, [job(4, memory=50), job(9, number=2)])
    assert [reason.code for _, reason in done.refused] == ["too-much-memory", "too-wide"]


def test_time_must_not_run_backwards_and_events_must_fit() -> None:
    engine = engine_with()
    engine.handle(5, [job(1)])
    with pytest.raises(DecisionError, match="backwards"):
        engine.handle(4, [])
    with pytest.raises(DecisionError, match="cannot be finished"):
        engine.handle(6, [Finished(0)])
    with pytest.raises(DecisionError, match="unknown"):
        engine.handle(7, [Finished(12)])


def test_every_transition_of_the_table_is_reachable_and_ends_are_final() -> None:
    assert {state.value for state in ENDS} == {"finished", "rejected", "withdrawn"}
    reached = {None}
    for _ in State:
        reached |= {target for (source, _), target in TRANSITIONS.items() if source in reached}
    assert reached == {None, *State}


@pytest.mark.parametrize("style", ["text", "mermaid", "dot"])
def test_the_diagram_shows_every_transition(style: str) -> None:
    drawn = diagram(style)
    for (_, cause), target in TRANSITIONS.items():
        assert cause in drawn
        assert target.value in drawn


def test_the_audit_notices_a_cluster_that_lies() -> None:
    engine = engine_with([Start(0)])
    engine.handle(0, [job(1)])
    engine._cluster.free[0] = 4
    with pytest.raises(AuditError, match="host machine: 1 of 4 processors used, 4 free"):
        engine.handle(1, [])
    engine = engine_with()
    engine.handle(0, [job(1)])
    engine._cluster.codes[0] = CODES[State.RUNNING]
    with pytest.raises(AuditError, match="lost or doubled"):
        engine.handle(1, [])


def test_a_job_that_outlives_its_estimate_ends_one_second_from_now_again_and_again() -> None:
    engine = engine_with([Start(0)])
    engine.handle(0, [job(1, estimate=10)])
    for now in (11 * SECOND, 25 * SECOND):
        engine.handle(now, [Woken()])
        ends, amounts, count = engine.view().expected_ends()
        assert (ends[:count].tolist(), amounts[:count].tolist(), count) == ([now + SECOND], [1], 1)


def test_another_policy_takes_over_what_runs_and_waits_and_plans_anew() -> None:
    engine = engine_with([Start(0), Promise(1, 50), WakeAt(50)])
    engine.handle(0, [job(3, number=1), job(2, number=2)])
    other = Script([], [Start(1)])
    engine.exchange_policy(other)
    assert engine.next_timer() is None
    assert engine.promise_to(1) is None
    engine.handle(5, [Woken()])
    assert other.views[0].is_machine_changed
    assert list(other.views[0].running) == [0]
    assert other.views[0].queue.tolist() == [1]
    engine.handle(9, [Finished(0)])
    assert not other.views[1].is_machine_changed
    assert engine.state_of(1) is State.RUNNING
