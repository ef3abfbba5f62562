"""The oracle of the deadline schedulers by itself: examples worked out by hand, and laws that hold
of every workload.

One processor unless an example says otherwise.  ``A@10`` is: A is planned to start at second 10.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

from tests.harness import size
from tests.policies import deadline_oracle as oracle
from tests.policies.deadline_oracle import (
    DAY,
    HOUR,
    SECOND,
    Asked,
    Job,
    Outcome,
    Settings,
    Simulation,
    State,
)

SCHEMES: list[dict[str, Any]] = [
    {"scheme": "qops"},
    {"scheme": "qops", "placing": "both", "violations": 20},
    {"scheme": "qops", "placing": "sorted", "key": "edf", "violations": 1},
    {"scheme": "msb"},
    {"scheme": "msb", "price": "delay"},
    {"scheme": "msb", "order": "llf", "price": "makespan"},
    {"scheme": "msb", "order": "edf"},
    {"scheme": "mrt"},
    {"scheme": "mrt", "key": "edf", "backtracks": 0},
]
SLACK: list[dict[str, Any]] = [
    {"scheme": "slack"},
    {"scheme": "slack", "slack_factor": 1, "administrative": 2},
]


def named(settings: dict[str, Any]) -> str:
    """Name a parameter set after its values."""
    return "-".join(str(value) for value in settings.values())


# Examples in seconds.


def asked(
    submit: int,
    procs: int,
    estimate: int,
    run: int | None = None,
    deadline: int | None = None,
    priority: int = 0,
) -> Asked:
    """Return a job from times in seconds; it runs as long as estimated unless ``run`` is given."""
    run = estimate if run is None else run
    due = None if deadline is None else deadline * SECOND
    return Asked(submit * SECOND, procs, estimate * SECOND, run * SECOND, due, priority)


def in_seconds(found: list[int | None]) -> list[float | None]:
    """Turn microseconds into seconds."""
    return [None if instant is None else instant / SECOND for instant in found]


def starts(jobs: list[Asked], procs: int, scheme: str, **settings: Any) -> list[float | None]:
    """Return the starts in seconds."""
    return in_seconds(oracle.simulate(jobs, procs, scheme, **settings).start)


def waiting(row: int, estimate: int, latest: int, procs: int = 1, submit: int = 0) -> Job:
    """Return a job that may start at ``latest`` at the latest, in seconds."""
    return Job(row, submit * SECOND, procs, estimate * SECOND, (latest + estimate) * SECOND)


def state_of(settings: Settings, planned: dict[Job, int], procs: int = 1, now: int = 0) -> State:
    """Return a state in which row 0 holds the machine from 0 to 10 and some jobs wait at planned
    seconds."""
    state = State(procs, settings, now=now * SECOND)
    state.known = {0: Job(0, 0, procs, 10 * SECOND, None)} | {job.row: job for job in planned}
    state.started = {0: 0}
    state.planned = {job.row: start * SECOND for job, start in planned.items()}
    return state


def seconds_of(plan: dict[int, int] | None) -> dict[int, float] | None:
    """Return a plan in seconds."""
    return None if plan is None else {row: start / SECOND for row, start in plan.items()}


# The profile and the round.


def free_at(bookings: list[tuple[int, int, int]], procs: int, at: int) -> int:
    """Add up what is booked at one instant."""
    return procs - sum(each for start, end, each in bookings if start <= at < end)


def earliest_by_every_instant(bookings: list[tuple[int, int, int]], procs: int, job: Job) -> int:
    """Look at every instant from 0 on."""
    start = 0
    while any(free_at(bookings, procs, at) < job.procs for at in range(start, start + job.booking)):
        start += 1
    return start


def test_the_earliest_place_is_the_one_found_by_looking_at_every_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oracle, "SECOND", 2)  # so that the least booking is two instants
    rng = random.Random(1)
    for _ in range(300):
        procs = rng.randrange(1, 5)
        profile = oracle.Profile(procs, 0)
        bookings: list[tuple[int, int, int]] = []
        for row in range(rng.randrange(1, 9)):
            job = Job(row, 0, rng.randrange(1, procs + 1), rng.randrange(0, 7), None)
            start = profile.earliest(job)
            assert start == earliest_by_every_instant(bookings, procs, job)
            start += rng.randrange(0, 3) * 50  # now and then far away, so that holes are left
            profile.book(job, start)
            bookings.append((start, start + job.booking, job.procs))


def test_an_early_end_lets_those_behind_come_forward_in_order_of_arrival() -> None:
    # X holds 2 of 2 until 100 and ends at 40.  A (2 wide, 50) waits at 100, B (1 wide, 10) at 150.
    # At 40, A is lifted first: 40.  Then B: 90.
    jobs = [asked(0, 2, 100, 40, 9999), asked(1, 2, 50, None, 9999), asked(2, 1, 10, None, 9999)]
    assert starts(jobs, 2, "qops", placing="sorted", key="edf") == [0, 40, 90]


def test_a_sweep_goes_in_order_of_arrival_not_of_plan() -> None:
    # Nothing runs.  A (10 s) at 20, B (5 s) at 10: A is lifted first and fits at 0 before B, which
    # stays.
    state = state_of(Settings("msb"), {waiting(1, 10, 90): 20, waiting(2, 5, 90): 10})
    state.started = {}
    state.compress()
    assert seconds_of(state.planned) == {1: 0, 2: 10}


def test_a_running_job_that_should_have_ended_by_now_ends_in_one_second() -> None:
    assert (
        state_of(Settings("msb"), {}, now=10).profile().earliest(waiting(1, 10, 90)) == 11 * SECOND
    )


def test_a_job_of_zero_estimate_is_booked_for_a_second_and_its_end_moves_no_job() -> None:
    # A ends at 0 but B was promised 1; a job of 10 s that ends at 0 is an early end: B starts in
    # the second round of 0.
    assert starts([asked(0, 1, 0, 0, 99), asked(0, 1, 10, 10, 99)], 1, "msb") == [0, 1]
    assert starts([asked(0, 1, 10, 0, 99), asked(0, 1, 10, 10, 99)], 1, "msb") == [0, 0]
    # Half a second is booked as a whole one, too, and ends as estimated.
    half = Asked(0, 1, SECOND // 2, SECOND // 2, 99 * SECOND)
    assert starts([half, asked(0, 1, 10, 10, 99)], 1, "msb") == [0, 1]


def test_what_starts_at_this_instant_is_never_moved_by_a_later_arrival_of_the_same_instant() -> (
    None
):
    # A alone starts at 0; B (latest 0) would need its place; it is refused.
    jobs = [asked(0, 1, 10, 10, 1000), asked(0, 1, 10, 10, 10)]
    for settings in SCHEMES:
        assert starts(jobs, 1, **settings) == [0, None]


def test_a_deadline_before_the_least_possible_end_is_refused_without_a_search() -> None:
    for settings in SCHEMES:
        assert starts([asked(5, 1, 10, 10, 14), asked(5, 1, 10, 10, 15)], 1, **settings) == [
            None,
            5,
        ]


# QoPS.


def test_positions_are_those_printed() -> None:
    assert [oracle.positions(count) for count in (0, 1, 3, 5, 8)] == [
        [0],
        [0, 1],
        [0, 1, 2, 3],
        [0, 2, 3, 4, 5],
        [0, 4, 6, 7, 8],
    ]


def test_qops_puts_the_arrival_at_the_head_and_moves_jobs_that_have_time() -> None:
    # X runs 0-10.  A (latest 30) at 10.  J (latest 15): position 0, TL = J A: J@10, A@20. Then Z
    # (latest 19): 0: Z@10, J@20 fails (1), T=1, m=0, TL = J, Z A: J@10, Z@20 fails (2), and so on
    # until K. 1: J kept, Z@20 fails, T=1, m=(1+1)//2=T; 2: Z@30 fails, T=m=2.  Refused, and nothing
    # has changed.
    jobs = [
        asked(0, 4, 10, 10, 10),
        asked(0, 4, 10, 10, 40),
        asked(1, 4, 10, 10, 25),
        asked(2, 4, 10, 10, 29),
    ]
    assert starts(jobs, 4, "qops") == [0, 20, 10, None]
    assert in_seconds(oracle.simulate(jobs, 4, "qops").deadline) == [10, 40, 25, None]


def test_qops_pushes_the_failing_job_to_the_middle_and_counts_violations() -> None:
    # A@10 (latest 20), B@20 (latest 25), J (latest 110). Position 0: J@10, A@20, B@30 fails (1),
    # T=2, m=1, J stays; TL = B A: B@20, A@30 fails (2); TL = A B: B fails ... until K.  Position 1:
    # A stays; J@20, B@30 fails (1), T=2, m=(1+2)//2=1; TL = B J: B@20, J@30. Position 2: J@30, no
    # violation.
    planned = {waiting(1, 10, 20): 10, waiting(2, 10, 25): 20}
    arrival = waiting(3, 10, 110)

    def tried(violations: int, position: int) -> dict[int, float] | None:
        state = state_of(Settings("qops", violations=violations), planned)
        return seconds_of(oracle.qops_position(state, arrival, position, True))

    assert tried(99, 0) is None
    assert tried(1, 1) == {1: 10, 2: 20, 3: 30}
    assert tried(0, 1) is None
    assert tried(0, 2) == {1: 10, 2: 20, 3: 30}
    # With C@30 (latest 35) behind, position 2: J@30, C@40 fails, T=3, m=(2+3)//2=2: A and B stay,
    # C@30, J@40.
    planned[waiting(4, 10, 35)] = 30
    assert tried(1, 2) == {1: 10, 2: 20, 4: 30, 3: 40}


def test_the_failing_job_goes_first_whatever_its_key() -> None:
    # S (20 s, latest 15) is first by key: S@10, T (2 s, latest 16) fails at 30; T first: T@10,
    # S@12.
    state = state_of(Settings("qops", placing="sorted", violations=1), {waiting(1, 20, 15): 10})
    assert seconds_of(oracle.qops_position(state, waiting(2, 2, 16), 0, False)) == {2: 10, 1: 12}


def test_qops_places_by_key_or_at_the_head() -> None:
    # A: 10 s, deadline 60, latest 50.  J: 30 s, deadline 70, latest 40.
    for placing, key, plan in [
        ("head", "edf", {2: 10, 1: 40}),
        ("sorted", "llf", {2: 10, 1: 40}),
        ("sorted", "edf", {1: 10, 2: 20}),
        ("both", "edf", {1: 10, 2: 20}),
    ]:
        state = state_of(Settings("qops", placing=placing, key=key), {waiting(1, 10, 50): 10})
        assert seconds_of(oracle.qops_plan(state, waiting(2, 30, 40))) == plan


# MSB.


def test_msb_takes_the_cheapest_position_by_each_price() -> None:
    # X until 10; A (10 s, latest 30) at 10; J (5 s, submit 5, latest 95). 0: J@10 A@15: fraction
    # 5/90 + 5/20 = .306, delay 5+5 = 10, makespan 25.  1: A@10 J@20: 15/90 = .167, 15, 25.
    jobs = [asked(0, 1, 10, 10, 10), asked(0, 1, 10, 10, 40), asked(5, 1, 5, 5, 100)]
    assert starts(jobs, 1, "msb", price="fraction") == [0, 10, 20]
    assert starts(jobs, 1, "msb", price="delay") == [0, 15, 10]
    assert starts(jobs, 1, "msb", price="makespan") == [0, 15, 10]


def test_what_slack_is_left_and_the_least_slack_make_the_fraction() -> None:
    # A was planned at 10 and may start at 30: pushed to 15 it uses 5 of 20.  B has half a second
    # left: 1 s is taken.
    state = state_of(Settings("msb"), {waiting(1, 10, 30): 10})
    arrival = waiting(2, 5, 95, submit=5)
    share = oracle.price_of_fraction(state, arrival, {2: 10 * SECOND, 1: 15 * SECOND})
    assert share == 5 / 90 + 5 / 20
    tight = Job(3, 0, 1, 10 * SECOND, 20 * SECOND + SECOND // 2)
    state.known[3], state.planned[3] = tight, 10 * SECOND
    assert oracle.price_of_fraction(state, arrival, {3: 10 * SECOND + SECOND // 4}) == 0.25


def test_msb_keeps_its_order() -> None:
    # A@10 (latest 90), B@20 (latest 30), J (latest 90), 10 s each; price delay.
    # ast: J@10 A@20 B@30: 30; A@10 J@20 B@30: 30; A@10 B@20 J@30: 30; the first.
    # edf: J@10 B@20 A@30: 10+0+20 = 30; B@10 J@20 A@30: 40; B@10 A@20 J@30: 40; the first.
    planned = {waiting(1, 10, 90): 10, waiting(2, 10, 30): 20}
    for order, plan in [
        ("ast", {3: 10, 1: 20, 2: 30}),
        ("edf", {3: 10, 2: 20, 1: 30}),
        ("llf", {3: 10, 2: 20, 1: 30}),
    ]:
        state = state_of(Settings("msb", order=order, price="delay"), planned)
        assert seconds_of(oracle.msb_plan(state, waiting(3, 10, 90))) == plan


def test_msb_in_planned_order_keeps_those_in_front_where_they_are() -> None:
    # A@30 (latest 50) with a hole before it; J (100 s, latest 90) does not fit into it.  0: A would
    # start at 110. 1: A stays, J@40.  In key order A is placed anew: A@10, J@20.
    for order, plan in [("ast", {1: 30, 2: 40}), ("llf", {1: 10, 2: 20})]:
        state = state_of(Settings("msb", order=order), {waiting(1, 10, 50): 30})
        assert seconds_of(oracle.msb_plan(state, waiting(2, 100, 90))) == plan


def test_a_job_that_comes_forward_earns_nothing() -> None:
    # A from 10 to 20, B from 20 to 10, J (submitted at 0) at 30: 10 + 0 + 30.
    state = state_of(Settings("msb"), {waiting(1, 10, 90): 10, waiting(2, 10, 30): 20})
    plan = {2: 10 * SECOND, 1: 20 * SECOND, 3: 30 * SECOND}
    assert oracle.price_of_delay(state, waiting(3, 10, 90), plan) == 40 * SECOND
    assert oracle.price_of_fraction(state, waiting(3, 10, 90), plan) == 10 / 80 + 30 / 90


def test_msb_refuses_when_somebody_misses_at_every_position() -> None:
    # A@10 (latest 12); J (latest 15): before A it makes A miss, behind A it starts at 20.
    jobs = [asked(0, 1, 10, 10, 10), asked(0, 1, 10, 10, 22), asked(5, 1, 10, 10, 25)]
    assert starts(jobs, 1, "msb") == [0, 10, None]


# MRT.


def test_mrt_goes_back_once_and_not_more_often_than_it_may() -> None:
    # S (20 s, latest 15, deadline 35), T (2 s, latest 16, deadline 18).  llf: S@10, then T next at
    # 30 fails (1); T@10, S@12.  edf: T is first, nothing fails.
    jobs = [asked(0, 1, 10, 10, 10), asked(0, 1, 20, 20, 35), asked(1, 1, 2, 2, 18)]
    assert starts(jobs, 1, "mrt", backtracks=1) == [0, 12, 10]
    assert starts(jobs, 1, "mrt", backtracks=0) == [0, 10, None]
    assert starts(jobs, 1, "mrt", backtracks=0, key="edf") == [0, 12, 10]


def test_the_return_from_a_subtree_that_failed_counts_as_a_backtrack() -> None:
    # Z (20 s, latest 30), B (10 s, latest 35), C (10 s, latest 36).  Z@10: B and C fit next, at 30
    # each. B@30: C at 40 fails (1).  C@30: B at 40 fails (2).  Return (3). B@10: Z and C fit next.
    # Z@20: C at 40 fails (4).  C@20: Z@30.
    planned = {waiting(1, 20, 30): 30, waiting(2, 10, 35): 10}
    for backtracks, plan in [(3, None), (4, {2: 10, 3: 20, 1: 30})]:
        state = state_of(Settings("mrt", backtracks=backtracks), planned)
        assert seconds_of(oracle.mrt_plan(state, waiting(3, 10, 36))) == plan


def test_mrt_refuses_when_the_root_is_exhausted() -> None:
    # A@10 (latest 12), J (latest 15): either misses behind the other: two backtracks, none left to
    # try.
    jobs = [asked(0, 1, 10, 10, 10), asked(0, 1, 10, 10, 22), asked(5, 1, 10, 10, 25)]
    assert starts(jobs, 1, "mrt", backtracks=99) == [0, 10, None]


# Jobs without a deadline.


def test_an_artificial_deadline_doubles_until_the_job_fits() -> None:
    # X holds the machine for 30 h.  J (1 h) may end at 24 h: refused; at 48 h: starts at 30 h.
    jobs = [asked(0, 1, 108_000, None, 108_000), asked(0, 1, 3_600)]
    for settings in SCHEMES:
        outcome = oracle.simulate(jobs, 1, **settings)
        assert outcome == Outcome([0, 30 * HOUR], [30 * HOUR, 2 * DAY], 1, [None, None])
        outcome = oracle.simulate(jobs, 1, **settings, others="reject")
        assert outcome == Outcome([0, None], [30 * HOUR, None], 0, [None, None])


def test_an_artificial_deadline_grows_with_the_estimate_and_from_submission() -> None:
    jobs = [asked(7, 1, 36_000)]
    assert oracle.simulate(jobs, 1, "qops").deadline == [7 * SECOND + 50 * HOUR]
    assert oracle.simulate(jobs, 1, "qops", factor=2).deadline == [7 * SECOND + DAY]
    thousandths = Fraction(2_500, 1_000)
    assert oracle.simulate(jobs, 1, "qops", factor=thousandths).deadline == [7 * SECOND + 25 * HOUR]


def test_a_job_that_no_deadline_helps_takes_the_earliest_place_in_the_old_plan() -> None:
    # B (2 s, latest 13) is planned at 10, A (10 s, latest 12) behind it at 12.  llf tries A first,
    # and B misses: MRT without backtracks refuses every arrival.  24 h doubles 25 times until it is
    # beyond 2^61 us: none.
    planned = {waiting(1, 10, 12): 12, waiting(2, 2, 13): 10}
    state = state_of(Settings("mrt", backtracks=0), planned)
    state.arrive(3, asked(0, 1, 5))
    assert seconds_of(state.planned) == {1: 12, 2: 10, 3: 22}
    assert (state.relaxed, state.known[3].deadline) == (25, None)


# Slack-based.


def test_slack_by_hand() -> None:
    # P = 4, AWT = 1 h, all priorities 2: slack of 4 wide 3 h / 1.5 = 7,200 s, of 1 wide 3 h / .75 =
    # 14,400 s. X 0-100.  A (50 s) at 100, guarantee 7,300.  J (1 wide, 10 s) at 10: 0: J@100 A@110:
    # 2*90/14,400 + 2*10/7,200 = .0153.  1: A@100 J@150: 2*140/14,400 = .0194.
    jobs = [asked(0, 4, 100), asked(0, 4, 50), asked(10, 1, 10)]
    outcome = oracle.simulate(jobs, 4, "slack")
    assert in_seconds(outcome.start) == [0, 110, 100]
    assert in_seconds(outcome.guarantee) == [7_200, 7_300, 14_500]
    assert (outcome.deadline, outcome.relaxed) == ([None] * 3, 0)


def test_slack_of_an_important_job_is_small() -> None:
    # J with priority 1024: pr = 3, mean (2 + 2 + 3) / 3: 10,800 * 7/3 / (3 * 3/4) = 11,200 s.
    # 0: 3*90/11,200 + 2*10/7,200 = .0269.  1: 3*140/11,200 = .0375.
    jobs = [asked(0, 4, 100), asked(0, 4, 50), asked(10, 1, 10, None, None, 1_024)]
    assert in_seconds(oracle.simulate(jobs, 4, "slack").guarantee) == [7_200, 7_300, 11_300]


def test_the_price_of_a_push_is_measured_by_what_is_left_of_the_slack() -> None:
    # A tenth of that slack: A has 720 s left from 100 on, J (27 s) has 1,440 s. 0: 2*90/1,440 +
    # 2*27/720 = .2.  1: 2*140/1,440 = .194.  (Counted from A's submission, 820 s, 0 would be
    # cheaper.)
    jobs = [asked(0, 4, 100), asked(0, 4, 50), asked(10, 1, 27)]
    assert starts(jobs, 4, "slack", slack_factor=Fraction(3, 10)) == [0, 100, 150]


def test_the_mean_wait_counts_the_jobs_that_have_ended() -> None:
    # A waited 100 s and has ended at 150, X waited 0: AWT = (3,600 + 100) / 3; J (4 wide) at 150
    # starts at once.
    jobs = [asked(0, 4, 100), asked(0, 4, 50), asked(150, 4, 10)]
    guarantee = oracle.simulate(jobs, 4, "slack").guarantee[2]
    assert guarantee == 150 * SECOND + 3 * 3_700 * SECOND * 2 // 3 // 3
    assert oracle.simulate(jobs, 4, "slack", slack_factor=0).guarantee[2] == 150 * SECOND


def test_a_job_at_its_guarantee_is_not_pushed() -> None:
    # Without slack A stays at 100: J goes behind it.
    jobs = [asked(0, 4, 100), asked(0, 4, 50), asked(10, 1, 10)]
    assert starts(jobs, 4, "slack", slack_factor=0) == [0, 100, 150]


# Quotes.


def test_quotes_by_hand() -> None:
    # X 0-10; A@10 (10 s, latest 30).  J (5 s) at 5.  Prefixes: 0: J@10, end 15; 1: J@20, end 25.
    # 15 is accepted (A@15); refused is 9; 12 no, 13 no, 14 no: 15.
    jobs = [asked(0, 1, 10, 10, 10), asked(0, 1, 10, 10, 40)]
    asks = asked(5, 1, 5, 5, 1)
    for settings in SCHEMES:
        assert oracle.quoted(jobs, 1, at=5 * SECOND, job=asks, **settings) == 15 * SECOND
    # With A's latest start 12, the first end is refused: A would start at 15.
    jobs[1] = asked(0, 1, 10, 10, 22)
    for settings in SCHEMES:
        assert oracle.quoted(jobs, 1, at=5 * SECOND, job=asks, **settings) == 25 * SECOND
    # At 10 A has started.  The machine is free at 20; at 21.5 the end 26.5 is quoted as 27.
    for at, quote in [(10, 25), (20, 25), (21.5, 27)]:
        assert oracle.quoted(jobs, 1, "qops", int(at * SECOND), asks) == quote * SECOND


def test_candidates_are_the_ends_behind_the_prefixes_and_then_twice_as_far_each_time() -> None:
    # Now 5; A@10 (10 s); J (5 s): ends 15 and 25; 25 is 20 from now: 45, 85, ...
    state = state_of(Settings("mrt"), {waiting(1, 10, 30): 10}, now=5)
    found = list(oracle.candidates(state, waiting(2, 5, 99)))
    assert [end / SECOND for end in found[:4]] == [15, 25, 45, 85]
    assert (len(found), found[-1]) == (22, (5 + 20 * 2**20) * SECOND)


# Repairs.


def test_an_overdue_job_pushes_the_plan_back_a_second_and_a_breach_gets_its_new_end() -> None:
    # X should have ended at 10 = now: it is taken to end at 11.  A@10 (latest 10) misses in either
    # order; B@21 does not.
    running = [oracle.Running(1, 0, 10 * SECOND)]
    late = oracle.Waiting(1, 1, 10 * SECOND, 10 * SECOND, 20 * SECOND)
    behind = oracle.Waiting(2, 1, 5 * SECOND, 20 * SECOND, 26 * SECOND)
    found = oracle.repaired(running, [late, behind], 1, 10 * SECOND)
    assert found == ({1: 11 * SECOND, 2: 21 * SECOND}, [1], {1: 21 * SECOND})


def test_a_repair_in_order_of_latest_start_is_taken_if_fewer_miss() -> None:
    # A has no deadline: A@11, B@21 misses (latest 20).  By latest start B@11, A@16: no job does.
    running = [oracle.Running(1, 0, 10 * SECOND)]
    first = oracle.Waiting(1, 1, 10 * SECOND, 10 * SECOND)
    second = oracle.Waiting(2, 1, 5 * SECOND, 20 * SECOND, 25 * SECOND)
    found = oracle.repaired(running, [first, second], 1, 10 * SECOND)
    assert found == ({2: 11 * SECOND, 1: 16 * SECOND}, [], {})


def test_a_repair_that_is_no_better_leaves_the_planned_order() -> None:
    # By plan A@11, B@21 (latest 15) misses; by latest start (A 13, B 15) the same.  By deadline B
    # would go first.
    running = [oracle.Running(1, 0, 10 * SECOND)]
    first = oracle.Waiting(1, 1, 10 * SECOND, 10 * SECOND, 23 * SECOND)
    second = oracle.Waiting(2, 1, 2 * SECOND, 20 * SECOND, 17 * SECOND)
    found = oracle.repaired(running, [first, second], 1, 10 * SECOND)
    assert found == ({1: 11 * SECOND, 2: 21 * SECOND}, [2], {2: 23 * SECOND})
    # Latest 12 and 11: B@11 would make A miss at 13: one either way, so B stays behind.
    first, second = first._replace(deadline=22 * SECOND), second._replace(deadline=13 * SECOND)
    found = oracle.repaired(running, [first, second], 1, 10 * SECOND)
    assert found == ({1: 11 * SECOND, 2: 21 * SECOND}, [2], {2: 23 * SECOND})


def test_a_job_wider_than_the_open_machine_has_no_place_and_is_kept() -> None:
    wide = oracle.Waiting(1, 2, SECOND, 10 * SECOND, 20 * SECOND)
    free = oracle.Waiting(2, 2, SECOND, 10 * SECOND)
    assert oracle.repaired([], [wide, free], 1, 0) == ({1: None, 2: None}, [1], {1: None})


# Laws.


def random_workload(rng: random.Random) -> tuple[list[Asked], int]:
    """Draw 12 to 25 jobs: many at one instant, some of no length, some that end early, some without
    a deadline."""
    unit = rng.choice([SECOND, SECOND + 7, 1_800 * SECOND])
    procs, submit, jobs = rng.choice([2, 4, 8, 16]), 0, []
    for _ in range(rng.randrange(12, 26)):
        submit += rng.choice([0, 0, rng.randrange(20)]) * unit
        estimate = (
            rng.choice([0, rng.randrange(1, 60), rng.randrange(1, 60), rng.randrange(1, 60)]) * unit
        )
        run = rng.choice([estimate, estimate, rng.randrange(estimate + 1)])
        deadline = (
            None if rng.random() < 0.3 else submit + estimate + rng.randrange(6 * estimate + 1)
        )
        jobs.append(
            Asked(
                submit,
                rng.randrange(1, procs + 1),
                estimate,
                run,
                deadline,
                rng.randrange(-1_024, 1_024),
            )
        )
    return jobs, procs


def assert_fits(jobs: list[Asked], procs: int, start: list[int | None]) -> None:
    """No job starts before it is asked for, and never more processors are used than there are."""
    for job, begin in zip(jobs, start, strict=True):
        assert begin is None or begin >= job.submit
        used = sum(
            other.procs
            for other, first in zip(jobs, start, strict=True)
            if begin is not None and first is not None and first <= begin < first + other.run
        )
        assert used <= procs


@pytest.mark.parametrize("settings", SCHEMES + SLACK, ids=named)
def test_every_promise_is_kept_on_random_workloads(settings: dict[str, Any]) -> None:
    rng = random.Random(2)
    # The four schemes as they come, and their variants.
    for _ in range(size(100, 500) if len(settings) == 1 else size(30, 100)):
        jobs, procs = random_workload(rng)
        outcome = oracle.simulate(jobs, procs, **settings)
        assert_fits(jobs, procs, outcome.start)
        is_slack = settings["scheme"] == "slack"
        for row, (job, begin) in enumerate(zip(jobs, outcome.start, strict=True)):
            # Relax and slack refuse no job.
            assert begin is not None or (job.deadline is not None and not is_slack)
            if begin is None:
                continue
            deadline, guarantee = outcome.deadline[row], outcome.guarantee[row]
            assert begin + job.estimate <= (math.inf if deadline is None else deadline)
            assert begin <= (math.inf if guarantee is None else guarantee)
            assert is_slack or job.deadline in (None, deadline)


@pytest.mark.parametrize("settings", SCHEMES + SLACK, ids=named)
def test_simultaneous_arrivals_are_arrivals_one_after_another(settings: dict[str, Any]) -> None:
    # Jobs that end at the instant at which they start are left out: their end would come between
    # two arrivals.
    rng = random.Random(3)
    for _ in range(size(30, 100)):
        jobs, procs = random_workload(rng)
        jobs = [job._replace(run=max(job.run, 1), estimate=max(job.estimate, 1)) for job in jobs]
        alone = Simulation(jobs, procs, Settings(**settings))
        while (now := alone.next_instant()) is not None:
            alone.make_round(now, limit=1)
        assert alone.outcome() == oracle.simulate(jobs, procs, **settings)


@pytest.mark.parametrize("settings", SCHEMES, ids=named)
def test_a_refused_job_changes_nothing(settings: dict[str, Any]) -> None:
    rng = random.Random(4)
    for _ in range(size(30, 100)):
        jobs, procs = random_workload(rng)
        outcome = oracle.simulate(jobs, procs, **settings)
        kept = [row for row, begin in enumerate(outcome.start) if begin is not None]
        again = oracle.simulate([jobs[row] for row in kept], procs, **settings)
        assert again.start == [outcome.start[row] for row in kept]


@pytest.mark.parametrize("settings", SCHEMES, ids=named)
def test_a_quote_is_accepted_and_one_second_less_is_not(settings: dict[str, Any]) -> None:
    rng = random.Random(5)
    for _ in range(size(25, 60)):
        jobs, procs = random_workload(rng)
        jobs = [job._replace(run=max(job.run, 1), estimate=max(job.estimate, 1)) for job in jobs]
        at = rng.choice(jobs).submit + rng.choice([0, 0, SECOND // 3, SECOND])
        new = Asked(at, rng.randrange(1, procs + 1), rng.randrange(60 * SECOND), 0)
        quote = oracle.quoted(jobs, procs, at=at, job=new, **settings)
        assert quote is None or quote % SECOND == 0
        assert (
            quote is not None
            or settings["scheme"] == "mrt"
            or settings.get("order", "ast") != "ast"
        )
        if quote is None:
            continue
        place = sum(job.submit <= at for job in jobs)
        for deadline, is_accepted in [(quote, True), (quote - SECOND, False)]:
            with_it = [*jobs[:place], new._replace(deadline=deadline), *jobs[place:]]
            assert (
                oracle.simulate(with_it, procs, **settings).start[place] is not None
            ) == is_accepted


def packed(rng: random.Random, left: int, procs: int, begin: int, end: int) -> list[Asked]:
    """Cut a rectangle into jobs that fill it; each arrives where it lies and must end where it
    does."""
    if procs > 4 and (end - begin <= 360 or rng.random() < 0.5):
        cut = rng.randrange(1, procs)
        return packed(rng, left, cut, begin, end) + packed(rng, left + cut, procs - cut, begin, end)
    if end - begin > 360:
        middle = rng.randrange(begin + 60, end - 59)
        return packed(rng, left, procs, begin, middle) + packed(rng, left, procs, middle, end)
    return [asked(begin, procs, end - begin, None, end)]


@pytest.mark.parametrize("settings", SCHEMES, ids=named)
def test_a_packed_set_that_arrives_as_it_was_packed_is_admitted_whole(
    settings: dict[str, Any],
) -> None:
    for seed in range(3):
        jobs = sorted(packed(random.Random(seed), 0, 8, 0, 3_600), key=lambda job: job.submit)
        assert oracle.simulate(jobs, 8, **settings).start == [job.submit for job in jobs]
