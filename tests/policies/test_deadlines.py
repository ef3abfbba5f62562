"""QoPS, MSB, MRT and slack-based backfilling: against the oracle, compiled and through the engine,
and what they promise."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pytest

from qbatch.engine import snapshot
from qbatch.engine.audit import breaches
from qbatch.engine.engine import Engine
from qbatch.engine.round import Round
from qbatch.model.actions import Break, Promise, Reject, Start, WakeAt
from qbatch.model.errors import UsageError
from qbatch.model.events import Event, Finished, HostClosed, HostOpened, Submitted, Withdrawn, Woken
from qbatch.model.job import Job
from qbatch.model.machine import Host, Machine, one_host
from qbatch.model.record import Schedule, Workload
from qbatch.policies import load_policy
from qbatch.referee.every_schedule import check_promises, taken_back
from qbatch.simulation.calendar import Calendar
from qbatch.simulation.drivers import run
from tests.harness import same_schedule, size, workload_of
from tests.oracle.naive import Job as Waiting
from tests.oracle.workloads import random_jobs
from tests.policies.deadline_oracle import Asked, quoted, simulate

SECOND = 1_000_000
PROCS = 8

VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "qops": ("qops", {"placing": "sorted"}),
    "qops:placing=head,key=edf,violations=1,others=reject": (
        "qops",
        {"placing": "head", "key": "edf", "violations": 1, "others": "reject"},
    ),
    "qops:placing=both,violations=2": ("qops", {"placing": "both", "violations": 2}),
    "msb": ("msb", {}),
    "msb:price=delay,others=reject": ("msb", {"price": "delay", "others": "reject"}),
    "msb:order=edf,price=makespan": ("msb", {"order": "edf", "price": "makespan"}),
    "msb:order=llf": ("msb", {"order": "llf"}),
    "mrt": ("mrt", {}),
    "mrt:key=edf,backtracks=0,others=reject": (
        "mrt",
        {"key": "edf", "backtracks": 0, "others": "reject"},
    ),
    "slack": ("slack", {}),
    "slack:factor=0.5,administrative=0.3": ("slack", {"slack_factor": 0.5, "administrative": 0.3}),
}
"""Policies, and what the oracle calls the same."""


def with_deadlines(seed: int) -> Workload:
    """Return a small nasty workload (ties, zero lengths, full width, floods), most of its jobs with
    deadlines."""
    draw = random.Random(seed)
    jobs = random_jobs(draw, draw.randint(1, 22), PROCS)
    work = workload_of(jobs, PROCS)
    slack = [draw.choice((-3, 0, 0, 2, 10, 50, 400)) * SECOND for _ in jobs]
    has_one = [draw.random() < 0.7 for _ in jobs]
    found = [
        max(int(submit + estimate) + more, 0) if has else -1
        for submit, estimate, more, has in zip(
            work.submit, work.estimate, slack, has_one, strict=True
        )
    ]
    return work.changed(deadline=np.array(found, np.int64))


def asked_of(work: Workload) -> list[Asked]:
    columns = (work.submit, work.procs, work.estimate, work.run, work.deadline)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Asked(*row, deadline=None if deadline < 0 else deadline) for *row, deadline in rows]


def starts(schedule: Schedule) -> list[int | None]:
    return [None if start < 0 else start for start in schedule.start.tolist()]


@pytest.mark.parametrize("policy", VARIANTS)
def test_the_schedule_is_that_of_the_oracle_job_for_job(policy: str) -> None:
    scheme, settings = VARIANTS[policy]
    refused = 0
    for seed in range(size(25, 60)):
        work = with_deadlines(seed)
        schedule, outcome = (
            run(work, one_host(PROCS), load_policy(policy)),
            simulate(asked_of(work), PROCS, scheme, **settings),
        )
        assert starts(schedule) == outcome.start, seed
        promises = [None if latest < 0 else latest for latest in schedule.promise.tolist()]
        if scheme == "slack":
            assert promises == outcome.guarantee, seed
        else:
            ends = [
                None if latest is None else latest + int(work.estimate[row])
                for row, latest in enumerate(promises)
            ]
            assert ends == outcome.deadline, seed
        refused += len(schedule.rejected)
    assert (refused > 0) == (scheme != "slack")


@pytest.mark.parametrize("policy", [each for each in VARIANTS if each.startswith(("msb", "slack"))])
def test_what_insertion_leaves_out_changes_nothing_with_many_waiting_jobs(policy: str) -> None:
    scheme, settings = VARIANTS[policy]
    longest = 0
    for seed in range(size(1, 4)):
        draw = random.Random(seed)
        each_instant = draw.choice((2, 5))
        times = [draw.randint(1, 60) * SECOND for _ in range(70)]
        work = workload_of(
            [
                Waiting(
                    row,
                    row // each_instant * SECOND,
                    draw.randint(1, PROCS),
                    time,
                    draw.choice((time, time, time // 2)),
                )
                for row, time in enumerate(times)
            ],
            PROCS,
        )
        slack = np.array([draw.randrange(2500) * SECOND for _ in times])
        work = work.changed(
            deadline=np.where(slack % (5 * SECOND) == 0, -1, work.submit + work.estimate + slack)
        )
        schedule = run(work, one_host(PROCS), load_policy(policy))
        assert starts(schedule) == simulate(asked_of(work), PROCS, scheme, **settings).start, seed
        longest = max(longest, schedule.queue_max)
    assert longest > 40


@pytest.mark.parametrize("policy", VARIANTS)
def test_the_compiled_loop_and_the_engine_agree_in_everything(policy: str) -> None:
    for seed in range(size(20, 40)):
        work = with_deadlines(seed)
        one, other = (
            run(work, one_host(PROCS), load_policy(policy), driver=driver, is_audited=True)
            for driver in ("compiled", "engine")
        )
        assert same_schedule(one, other), seed
        assert one.rejected == other.rejected, seed
        assert one.queue_max == other.queue_max, seed


@pytest.mark.parametrize("policy", [each for each in VARIANTS if not each.startswith("slack")])
def test_every_accepted_deadline_is_met(policy: str) -> None:
    for seed in range(100, 100 + size(40, 100)):
        work = with_deadlines(seed)
        schedule = run(work, one_host(PROCS), load_policy(policy))
        owed = schedule.ran & (work.deadline >= 0)
        assert (schedule.end[owed] <= work.deadline[owed]).all(), seed
        assert (schedule.start[schedule.ran] >= 0).all()
        relaxes = "others=reject" not in policy
        assert not relaxes or all(work.deadline[each.row] >= 0 for each in schedule.rejected), seed


def test_the_audit_finds_a_deadline_that_was_missed() -> None:
    work = with_deadlines(3)
    schedule = run(work, one_host(PROCS), load_policy("easy"))
    late = schedule.ran & (work.deadline >= 0) & (schedule.end > work.deadline)
    assert late.any()
    assert any(
        "ended after its deadline" in text for text in breaches(schedule, keeps_deadlines=True)
    )
    assert not any("deadline" in text for text in breaches(schedule))


def test_an_easy_schedule_meets_every_deadline_at_stringency_zero() -> None:
    for seed in range(size(20, 40)):
        work = with_deadlines(seed).changed(deadline=np.empty(0, np.int64))
        work = work.changed(estimate=work.run)
        reference = run(work, one_host(PROCS), load_policy("easy"))
        work = work.changed(deadline=reference.end)
        again = run(work, one_host(PROCS), load_policy("easy"))
        assert (again.end <= work.deadline).all(), seed


# ----------------------------------------------------------------------------------------------
# quotes


@pytest.mark.parametrize(
    "policy", ["qops", "msb", "mrt", "qops:placing=head,key=edf,violations=1,others=reject"]
)
def test_a_quoted_deadline_is_accepted_and_one_second_less_is_not(policy: str) -> None:
    scheme, settings = VARIANTS[policy]
    counted = 0
    for seed in range(size(25, 60)):
        work, draw = with_deadlines(seed), random.Random(seed)
        at = int(draw.choice(work.submit.tolist())) + draw.choice((0, 0, 1, 3)) * SECOND
        engine = lived(work, policy, at)
        wanted = Job(
            number=99,
            submit=at,
            procs=draw.randint(1, PROCS),
            estimate=draw.choice((0, 1, 5, 40)) * SECOND,
        )
        quote = engine.quote(wanted, at)
        assert quote is not None
        asked = Asked(at, wanted.procs, wanted.estimate, wanted.estimate)
        earliest = quoted(asked_of(work), PROCS, scheme, at, asked, **settings)
        assert quote.earliest_deadline == earliest, seed
        if earliest is None:
            continue
        counted += 1
        for deadline, is_accepted in ((earliest, True), (earliest - SECOND, False)):
            other = snapshot.load(engine.machine, load_policy(policy), snapshot.dump(engine))
            job = Job(
                number=99,
                submit=at,
                procs=wanted.procs,
                estimate=wanted.estimate,
                deadline=deadline,
            )
            done = other.handle(at, [Submitted(job)])
            assert any(isinstance(action, Reject) for action in done.actions) != is_accepted, (
                seed,
                deadline,
            )
    assert counted > size(12, 30)


def lived(work: Workload, policy: str, until: int) -> Engine:
    """Return the engine after all rounds of a workload up to an instant, that instant included."""
    calendar = Calendar(work, one_host(PROCS), load_policy(policy), is_audited=True)

    def stop(engine: Engine, done: Round) -> None:
        following = calendar._next_instant()
        if following is None or following > until:
            raise StopIteration

    assert int(work.submit[0]) <= until
    with suppress(StopIteration):
        calendar.run(stop)
    return calendar.engine


def test_a_quote_shows_the_price_that_the_job_is_then_given() -> None:
    engine = Engine(one_host(4), load_policy("qops"), is_audited=True)
    engine.handle(0, [asking(0, 2, 3600)])
    # Half the machine is booked for an hour of the day: a 48th of it.
    wanted = Job(number=2, submit=0, procs=3, estimate=3600 * SECOND)
    quote = engine.quote(wanted, 0)
    assert quote is not None
    assert (quote.start, quote.end) == (3600 * SECOND, 7200 * SECOND)
    assert quote.price == round(3 * (1 + 1 / 48) * 1e6)
    urgent = Job(number=2, submit=0, procs=2, estimate=3600 * SECOND, deadline=3600 * SECOND)
    done = engine.handle(0, [Submitted(urgent)])
    assert Start(1) in [Start(action.row) for action in done.actions if isinstance(action, Start)]
    # Its earliest end is its deadline: no urgency.
    assert engine.price_of(1) == round(2 * (1 + 0) * (1 + 1 / 48) * 1e6)


# ----------------------------------------------------------------------------------------------
# promises that break


def asking(
    number: int,
    procs: int,
    estimate: int,
    deadline: int | None = None,
    submit: int = 0,
    **facts: object,
) -> Submitted:
    job = Job(
        number=number,
        submit=submit * SECOND,
        procs=procs,
        estimate=estimate * SECOND,
        deadline=None if deadline is None else deadline * SECOND,
        **facts,  # type: ignore[arg-type]
    )
    return Submitted(job)


def actions_of(engine: Engine, at: int, *events: Event) -> list[object]:
    done = engine.handle(at * SECOND, events or [Woken()])
    return [action for action in done.actions if not isinstance(action, WakeAt)]


def test_a_job_that_outlives_its_estimate_breaks_a_promise_at_once_and_once() -> None:
    engine = Engine(one_host(4), load_policy("qops"), is_audited=True)
    actions_of(engine, 0, asking(0, 4, 100), asking(1, 4, 50, 150), asking(2, 4, 10, 500))
    found = actions_of(engine, 100)
    assert [type(action) for action in found] == [Break]
    assert found[0].row == 1  # type: ignore[attr-defined]
    assert engine.promise_to(1) is None
    # It is still there second by second: the plan moves on, and no promise is announced a second
    # time.
    for second in range(101, 220):
        assert actions_of(engine, second) == []
    assert engine.explain(1).numbers["planned"] == 220 * SECOND
    assert "latest_start" not in engine.explain(1).numbers
    # It ends between two seconds: what waits starts then, and its start is the one correction.
    done = engine.handle(219 * SECOND + 300_000, [Finished(0)])
    found = [action for action in done.actions if not isinstance(action, WakeAt)]
    assert found[0] == Promise(1, 219 * SECOND + 300_000)
    assert [(type(action), action.row) for action in found] == [(Promise, 1), (Start, 1)]  # type: ignore[attr-defined]
    assert done.broken == ()


@pytest.mark.parametrize("policy", ["qops", "msb", "mrt", "slack:factor=0.001"])
def test_of_jobs_that_outlive_their_estimates_each_promise_is_taken_back_once(policy: str) -> None:
    jobs = 0
    for seed in range(size(25, 100)):
        work, draw = with_deadlines(seed), random.Random(seed)
        more = [draw.choice((0, 0, 0, 3, 40)) * SECOND for _ in range(len(work))]
        work = work.changed(run=work.run + np.array(more, np.int64))
        schedule = run(work, one_host(PROCS), load_policy(policy), driver="engine")
        if schedule.broken is None:
            continue
        is_broken = schedule.broken > 0
        assert schedule.broken.max() == 1, seed
        assert (schedule.promise[is_broken] == schedule.start[is_broken]).all(), seed
        assert (taken_back(schedule) == is_broken).all(), seed
        assert not list(check_promises(schedule)), seed
        jobs += int(is_broken.sum())
    assert jobs > 10


def test_a_promise_that_a_closed_host_makes_impossible_is_broken_and_nothing_is_dropped() -> None:
    machine = Machine((Host("a", 4), Host("b", 4)))
    engine = Engine(machine, load_policy("qops"), is_audited=True)
    actions_of(engine, 0, asking(0, 8, 100, 100), asking(1, 4, 50, 150), asking(2, 4, 50, 150))
    found = actions_of(engine, 10, HostClosed(1))
    assert [action.row for action in found if isinstance(action, Break)] == [2]
    assert engine.explain(2).numbers["planned"] == 150 * SECOND
    actions_of(engine, 20, HostOpened(1))
    done = engine.handle(100 * SECOND, [Finished(0)])
    assert [
        action.at for action in done.actions if isinstance(action, Promise) and action.row == 2
    ] == [100 * SECOND]
    assert engine.queue_length == 0


def test_a_wide_job_that_is_parked_keeps_what_it_was_promised() -> None:
    machine = Machine((Host("a", 4), Host("b", 4)))
    engine = Engine(machine, load_policy("msb"), is_audited=True)
    actions_of(engine, 0, asking(0, 4, 100), asking(1, 8, 50, 400))
    actions_of(engine, 10, HostClosed(1))
    assert engine.parked == (1,)
    found = actions_of(engine, 20, HostOpened(1))
    assert not [action for action in found if isinstance(action, Break | Reject)]
    late = Engine(machine, load_policy("msb"), is_audited=True)
    actions_of(late, 0, asking(0, 4, 100), asking(1, 8, 50, 150))
    actions_of(late, 10, HostClosed(1))
    late.handle(100 * SECOND, [Finished(0)])
    found = actions_of(late, 120, HostOpened(1))
    assert [type(action) for action in found] == [Break, Promise, Start]


def test_a_job_that_comes_again_is_never_refused() -> None:
    engine = Engine(one_host(4), load_policy("qops"), is_audited=True)
    actions_of(engine, 0, asking(0, 4, 100))
    found = actions_of(engine, 50, asking(1, 4, 50, 60, submit=50, is_admitted=True))
    assert [type(action) for action in found] == [Promise, Break]
    assert engine.promise_to(1) is None
    assert isinstance(actions_of(engine, 50, asking(2, 4, 50, 60, submit=50))[0], Reject)


def test_a_policy_that_takes_over_takes_in_all_that_wait() -> None:
    engine = Engine(one_host(4), load_policy("easy"), is_audited=True)
    actions_of(
        engine, 0, asking(0, 4, 100), asking(1, 4, 50, 60), asking(2, 1, 10, 1000), asking(3, 1, 10)
    )
    engine.exchange_policy(load_policy("qops"))
    found = actions_of(engine, 10)
    assert {action.row for action in found if isinstance(action, Promise)} >= {1, 2, 3}
    assert [action.row for action in found if isinstance(action, Break)] == [1]
    assert not [action for action in found if isinstance(action, Reject)]


# ----------------------------------------------------------------------------------------------
# memory


@pytest.mark.parametrize("policy", ["qops", "msb", "mrt", "slack"])
def test_a_snapshot_in_the_midst_changes_nothing(policy: str) -> None:
    for seed in range(15):
        work = with_deadlines(seed)
        jobs = [
            Submitted(
                Job(
                    number=row + 1,
                    submit=submit,
                    procs=procs,
                    estimate=estimate,
                    deadline=None if until < 0 else until,
                )
            )
            for row, (submit, procs, estimate, until) in enumerate(
                zip(
                    *(
                        each.tolist()
                        for each in (work.submit, work.procs, work.estimate, work.deadline)
                    ),
                    strict=True,
                )
            )
        ]
        engine = Engine(one_host(PROCS), load_policy(policy), is_audited=True)
        for at in sorted(set(work.submit.tolist())):
            due = [event for event in jobs if event.job.submit == at]
            again = snapshot.load(engine.machine, load_policy(policy), snapshot.dump(engine))
            assert again.handle(at, due) == engine.handle(at, due), (seed, at)


def test_a_withdrawn_job_gives_its_place_back() -> None:
    engine = Engine(one_host(4), load_policy("qops"), is_audited=True)
    actions_of(engine, 0, asking(0, 4, 100), asking(1, 4, 100, 250), asking(2, 4, 100, 400))
    assert engine.explain(2).numbers["planned"] == 200 * SECOND
    actions_of(engine, 5, Withdrawn(1))
    assert engine.explain(2).numbers["planned"] == 100 * SECOND
    assert engine.price_of(1) is None


def test_explanations_name_the_planned_start_and_the_slack_left() -> None:
    engine = Engine(one_host(4), load_policy("qops"), is_audited=True)
    actions_of(engine, 0, asking(0, 4, 100), asking(1, 4, 50, 170))
    reason = engine.explain(1)
    assert reason.code == "planned"
    assert reason.numbers["latest_start"] == 120 * SECOND
    assert reason.numbers["slack"] == 20 * SECOND


@pytest.mark.parametrize(
    ("deadline", "code"), [(40, "deadline-too-soon"), (140, "deadline-not-kept")]
)
def test_a_refusal_says_why(deadline: int, code: str) -> None:
    engine = Engine(one_host(4), load_policy("qops"), is_audited=True)
    actions_of(engine, 0, asking(0, 4, 100))
    (rejected,) = actions_of(engine, 0, asking(1, 4, 50, deadline))
    assert isinstance(rejected, Reject)
    assert rejected.reason.code == code


def test_hosts_that_matter_are_refused_with_the_way_out() -> None:
    for machine in (
        Machine((Host("a", 4, 1000),)),
        Machine((Host("a", 4), Host("b", 4)), chunked=True),
    ):
        with pytest.raises(UsageError, match="spans = true"):
            Engine(machine, load_policy("qops"))


def test_importance_and_width_lessen_the_slack() -> None:
    def slacks(priorities: Sequence[int], widths: Sequence[int]) -> list[int]:
        engine = Engine(one_host(4), load_policy("slack"), is_audited=True)
        jobs = [
            asking(row, width, 100, priority=p)
            for row, (p, width) in enumerate(zip(priorities, widths, strict=True))
        ]
        actions_of(engine, 0, asking(9, 4, 100), *jobs)
        return [
            (engine.promise_to(row) or 0) - engine.explain(row).numbers["planned"]
            for row in range(len(jobs))
            if row
        ]

    low, high = slacks([0, 0, 1000], [4, 4, 4])
    assert low > high
    narrow, wide = slacks([0, 0, 0], [4, 1, 4])
    assert narrow > wide
