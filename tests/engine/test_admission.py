"""Admission by a policy, quotes, and promises that are taken back: what the engine allows, refuses,
reports and remembers."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qbatch.engine import plain, snapshot
from qbatch.engine.engine import Engine
from qbatch.model.actions import Action, Break, Promise, Reject, Start
from qbatch.model.errors import AuditError, DecisionError
from qbatch.model.events import Event, Finished, HostClosed, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.quote import Quote
from qbatch.model.reasons import Reason
from qbatch.planning.view import View
from tests.engine.test_engine import SECOND, Script, engine_with, job
from tests.policies.refusing import Bounded, Forgetful, Silent

WHY = Reason("late", "the test", "it comes later")


NOT_PLAIN = (
    Reason("late", "the test", "by a number of NumPy", {"late": np.int64(3)}),
    Reason("late", "the test", "by a boolean", {"late": True}),
    Reason("late", "the test", "beyond 64 bits", {"late": 1 << 70}),
    Reason("late", "the test", "a row of NumPy", {}, (np.int64(0),)),
    Reason("late", 7, "said by a number"),  # type: ignore[arg-type]
    Reason("late", "the test", "half a letter \ud800"),
    "too late",
)


def ask(procs: int, estimate: int, submit: int = 0) -> Job:
    return Job(number=99, submit=submit * SECOND, procs=procs, estimate=estimate * SECOND)


def test_a_broken_promise_is_reported_when_it_is_taken_back_and_another_may_be_later() -> None:
    engine = engine_with(
        [Promise(0, 10)], [Break(0, WHY), Promise(0, 50)], [Promise(0, 40)], [Start(0)]
    )
    engine.handle(0, [job()])
    done = engine.handle(5, [Woken()])
    assert done.broken == (0,)
    assert Break(0, WHY) in done.actions
    assert engine.promise_to(0) == 50
    assert engine.handle(6, [Woken()]).broken == ()
    assert engine.handle(40, [Woken()]).broken == ()  # the new promise is kept


@pytest.mark.parametrize("why", NOT_PLAIN)
def test_a_reason_that_no_record_could_hold_is_refused_loudly(why: Reason) -> None:
    for actions in ([Reject(0, why)], [Promise(0, SECOND), Break(0, why)]):
        with pytest.raises(DecisionError, match="its reason is not one of texts and whole numbers"):
            engine_with(actions).handle(0, [job()])


class Saying(Script):
    """A policy that answers what the test gave it."""

    def __init__(self, said: object) -> None:
        super().__init__([])
        self.said = said

    def explain(self, view: View, row: int) -> object:
        """Say why a job waits."""
        return self.said

    def quote(self, view: View, job: Job) -> object:
        """Say what would become of a job."""
        return self.said


@pytest.mark.parametrize("said", [*NOT_PLAIN, None, Quote(start=np.int64(5)), (1, 2)])
def test_an_explanation_or_a_quote_that_no_answer_could_hold_is_refused_loudly(
    said: object,
) -> None:
    engine = Engine(one_host(4), Saying(said))  # type: ignore[arg-type]
    engine.handle(0, [job()])
    with pytest.raises(DecisionError, match="not a Reason of texts and whole numbers"):
        engine.explain(0)
    with pytest.raises(DecisionError, match="not a Quote of texts and whole numbers"):
        engine.quote(ask(1, 1))


def test_a_promise_without_a_successor_is_gone_and_the_start_is_not_late() -> None:
    engine = engine_with([Promise(0, 10)], [Break(0, WHY)], [Start(0)])
    engine.handle(0, [job()])
    assert engine.handle(5, [Woken()]).broken == (0,)
    assert engine.promise_to(0) is None
    assert engine.handle(30, [Woken()]).broken == ()


def test_a_later_promise_that_is_not_kept_is_broken_again() -> None:
    engine = engine_with([Promise(0, 10)], [Break(0, WHY), Promise(0, 20)], [Start(0)])
    engine.handle(0, [job()])
    engine.handle(5, [Woken()])
    assert engine.handle(21, [Woken()]).broken == (0,)


def test_a_promise_that_is_broken_in_the_pass_of_the_late_start_counts_once() -> None:
    engine = engine_with([Promise(0, 10)], [Break(0, WHY), Start(0)])
    engine.handle(0, [job()])
    assert engine.handle(11, [Woken()]).broken == (0,)


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([Break(1, WHY)], "nothing is promised to it"),
        ([Break(0, WHY)], "only a promise to a waiting job"),
        ([Break(7, WHY)], "there is no row 7"),
        ([Promise(1, 50 * SECOND), Break(1, WHY), Break(1, WHY)], "nothing is promised to it"),
    ],
)
def test_a_promise_that_is_not_there_cannot_be_broken(actions: list[Action], reason: str) -> None:
    engine = engine_with([Promise(0, SECOND), Start(0)], actions)
    engine.handle(0, [job(4)])
    with pytest.raises(DecisionError, match=reason):
        engine.handle(1, [job(1, submit=1, number=2)])


def test_the_audit_sees_a_break_that_the_round_does_not_report() -> None:
    engine = engine_with([Promise(0, 10)], [Break(0, WHY)])
    engine.handle(0, [job()])
    engine._broken = type("Deaf", (list,), {"append": lambda self, row: None})()
    with pytest.raises(AuditError, match="broken and not recorded"):
        engine.handle(5, [Woken()])


def test_a_snapshot_keeps_what_is_promised_anew() -> None:
    engine = engine_with([Promise(0, 10)], [Break(0, WHY), Promise(0, 50)])
    engine.handle(0, [job()])
    engine.handle(5, [Woken()])
    again = snapshot.load(
        engine.machine, Script([Start(0)]), snapshot.dump(engine), is_audited=True
    )
    assert again.promise_to(0) == 50
    assert again.handle(51, [Woken()]).broken == (0,)


def test_a_policy_says_whether_it_may_refuse() -> None:
    assert Engine(one_host(4), Bounded()).may_refuse
    assert not engine_with().may_refuse
    engine = Engine(one_host(4), Bounded())
    engine.exchange_policy(Script())
    assert not engine.may_refuse


def test_a_quote_says_what_the_next_pass_would_say() -> None:
    engine = Engine(one_host(4), Bounded(most=100), is_audited=True)
    engine.handle(0, [job(4, 60)])
    assert engine.quote(ask(2, 40)) == Quote(None, 60 * SECOND, 100 * SECOND, 100 * SECOND)
    refused = engine.quote(ask(2, 41))
    assert refused is not None
    assert refused.reason is not None
    assert refused.reason.code == "too-late"
    assert refused.reason.numbers["late"] == SECOND
    assert refused.earliest_deadline == 101 * SECOND


def test_what_could_never_run_is_quoted_by_admission() -> None:
    quote = Engine(one_host(4), Silent()).quote(ask(5, 1))
    assert quote is not None
    assert quote.reason is not None
    assert quote.reason.code == "too-wide"


def test_a_policy_without_a_quote_or_that_does_not_see_the_job_cannot_say() -> None:
    assert Engine(one_host(4), Silent()).quote(ask(1, 1)) is None
    machine = Machine((Host("a", 4), Host("b", 2)))
    engine = Engine(machine, Bounded(), is_audited=True)
    engine.handle(0, [HostClosed(0)])
    assert engine.quote(ask(3, 10)) is None
    assert engine.quote(ask(2, 10)) is not None


def test_a_policy_that_changes_its_memory_for_a_quote_is_refused_by_an_audited_engine() -> None:
    engine = Engine(one_host(4), Forgetful(), is_audited=True)
    engine.handle(0, [job()])
    with pytest.raises(DecisionError, match="changed its memory"):
        engine.quote(ask(1, 1))


def test_an_error_inside_a_quote_is_a_defect_of_the_policy() -> None:
    class Broken(Bounded):
        def quote(self, view: object, job: Job) -> Quote:
            raise ZeroDivisionError("no time left")

    with pytest.raises(DecisionError, match="no time left"):
        Engine(one_host(4), Broken()).quote(ask(1, 1))


@pytest.mark.parametrize("order", ["fcfs", "sjf"])
def test_on_random_workloads_quotes_come_true_and_leave_no_trace(order: str) -> None:
    """Two engines get the same jobs, one is asked for a quote before each: they decide alike, and
    as was quoted."""
    refused = accepted = broken = 0
    for seed in range(60):
        draw = random.Random(seed)
        asked, other = (Engine(one_host(4), Bounded(30, order), is_audited=True) for _ in range(2))
        running: dict[int, int] = {}
        now = 0
        for number in range(1, 40):
            now += draw.randrange(0, 9) * SECOND
            submitted = Job(
                number=number,
                submit=now,
                procs=draw.randrange(1, 5),
                estimate=draw.randrange(0, 20) * SECOND,
            )
            _let_time_go_on((asked, other), running, draw, now)
            row = len(asked.view().jobs)
            quote = asked.quote(submitted, now)
            assert quote is not None
            assert plain.encode(asked.view().memory, "") == plain.encode(other.view().memory, "")
            events: list[Event] = [Submitted(submitted)]
            if draw.random() < 0.1 and other.queue_length:
                # Whoever leaves first, quotes are made without it: only equality is looked at then.
                events.append(Withdrawn(int(draw.choice(other.view().queue.tolist()))))
            rounds = [each.handle(now, events) for each in (asked, other)]
            assert rounds[0] == rounds[1], seed
            _note(rounds[0], running, draw, asked)
            broken += len(rounds[0].broken)
            if len(events) > 1:
                continue
            mine = [each for each in rounds[0].actions if getattr(each, "row", -1) == row]
            if quote.reason is not None:
                assert mine == [Reject(row, quote.reason)], seed
                refused += 1
            else:
                assert mine[0] == Promise(row, quote.start), seed
                accepted += 1
    assert refused > 100
    assert accepted > 100
    assert (broken > 0) == (order == "sjf")


def _note(done: object, running: dict[int, int], draw: random.Random, engine: Engine) -> None:
    for action in done.actions:  # type: ignore[attr-defined]
        if isinstance(action, Start):
            estimate = engine.view().jobs[action.row].estimate
            running[action.row] = done.at + draw.randrange(estimate + 1)  # type: ignore[attr-defined]


def _let_time_go_on(
    engines: tuple[Engine, Engine], running: dict[int, int], draw: random.Random, until: int
) -> None:
    """Hand both engines the ends and timers that fall before or at an instant."""
    while True:
        timer = engines[1].next_timer()
        due = min((*running.values(), *(() if timer is None else (timer,))), default=until + 1)
        if due > until:
            return
        over = [row for row, end in running.items() if end <= due]
        for row in over:
            del running[row]
        done = [
            engine.handle(due, [Finished(row) for row in over] or [Woken()]) for engine in engines
        ]
        assert done[0] == done[1]
        _note(done[1], running, draw, engines[1])
