"""The oracle of the time-sliced schedulers by itself: examples worked out by hand, and laws of
every workload.

Examples are in seconds, those of the paper in units of one minute.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import pytest

from tests.policies import slice_oracle as oracle
from tests.policies.slice_oracle import (
    SECOND,
    Asked,
    Booking,
    Fact,
    Frame,
    Merits,
    Outcome,
    Placed,
    Settings,
    Simulation,
)

SMALL_GROUPS: dict[str, Any] = {
    "groups": True,
    "medium": (3, 0.5, 0, 0, 6),
    "long": (3, 0.5, 0, 0, 5),
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"smart": False},
    {"backfill": "easy"},
    {"backfill": "easy", "switch": 0},
    {"bottom_line": True, "node_limit": 40},
    {"bottom_line": True, "smart": False, "switch": 0, "bound": 0, "node_limit": 40},
    SMALL_GROUPS,
    {**SMALL_GROUPS, "search": "lex", "switch": 0, "select": False},
    {**SMALL_GROUPS, "search": "dds", "smart": False, "shift": False, "budget": 20},
    {**SMALL_GROUPS, "backfill": "easy", "dynamic": False, "split": False, "level1": False},
    {**SMALL_GROUPS, "level2": False},
]


def named(settings: dict[str, Any]) -> str:
    """Name a parameter set after its values."""
    return "-".join(str(value).replace(" ", "") for value in settings.values()) or "default"


def job(submit: int, procs: int, estimate: int, run: int | None = None) -> Asked:
    """A job in seconds; it runs its whole estimate unless ``run`` is given."""
    return Asked(
        submit * SECOND, procs, estimate * SECOND, (estimate if run is None else run) * SECOND
    )


def fact(row: int, submit: int, procs: int, estimate: int) -> Fact:
    return Fact(row, submit * SECOND, procs, estimate * SECOND)


def booking(start: int, end: int, procs: int) -> Booking:
    return Booking(start * SECOND, end * SECOND, procs)


def frame(now: int, machine: int, bookings: list[Booking], kind: str = "M") -> Frame:
    return Frame(now * SECOND, machine, tuple(bookings), kind)


def seconds(outcome: Outcome) -> list[tuple[int, int]]:
    """First start and end, by row."""
    return [
        (start // SECOND, end // SECOND)
        for start, end in zip(outcome.start, outcome.end, strict=True)
    ]


def stretches(outcome: Outcome, row: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """The pieces of a row."""
    return [(p.start // SECOND, p.end // SECOND, p.nodes) for p in outcome.pieces if p.row == row]


def workload(seed: int, length: int, procs: int) -> list[Asked]:
    """Jobs of all classes; some of no length, some early, some submitted together."""
    draw = random.Random(seed)
    submit, jobs = 0, []
    for _ in range(length):
        submit += 0 if draw.random() < 0.3 else draw.randrange(400) * SECOND
        estimate = draw.choice(
            [
                draw.choice([0, 1, 60, 599]),
                draw.randrange(600, 10_800),
                draw.choice([600, 3_000, 10_800, 15_000, 20_000]),
            ]
        )
        run = draw.choice([0, estimate, estimate, draw.randint(0, estimate)])
        jobs.append(
            job(submit // SECOND, draw.randint(1, draw.choice([procs, procs // 2])), estimate, run)
        )
    return jobs


# ---- slices
# --------------------------------------------------------------------------------------------------------


def test_slice_lengths() -> None:
    assert oracle.slice_lengths() == {"S": 600 * SECOND, "M": 1_757 * SECOND, "L": 4_843 * SECOND}


def test_unknown_and_clashing_settings_are_refused() -> None:
    for wrong in (
        {"search": "bfs"},
        {"backfill": "none"},
        {"class_by": "user"},
        {"groups": True, "bottom_line": True},
    ):
        with pytest.raises(ValueError):
            oracle.simulate([], 1, **wrong)
    with pytest.raises(ValueError):
        oracle.simulate([], 1, cycle=600 * SECOND)
    with pytest.raises(ValueError):
        oracle.simulate([], 1, budget=0)
    with pytest.raises(ValueError):
        oracle.simulate([job(0, 1, 1)], 1, class_by="queue")
    with pytest.raises(ValueError):
        oracle.simulate([job(0, 2, 1)], 1)


def test_class_borders() -> None:
    simulation = Simulation(
        [job(0, 1, estimate) for estimate in (0, 599, 600, 10_799, 10_800)], 1, Settings()
    )
    assert simulation.kind == ["S", "S", "M", "M", "L"]
    by_queue = [Asked(0, 1, SECOND, SECOND, queue) for queue in (1, 2, 3)]
    assert Simulation(by_queue, 1, Settings(class_by="queue")).kind == ["S", "M", "L"]


def test_a_short_and_a_long_job() -> None:
    # 4 nodes.  0: slice S, the short job on node 0; the long one fits next to it on 1 to 3.  300: S
    # lives no longer: switch to 360, slice L; it goes on for as long as only L lives.  300 s done
    # at 360: end 360 + 11,700.
    jobs = [job(0, 1, 300), job(0, 3, 12_000)]
    outcome = oracle.simulate(jobs, 4)
    assert seconds(outcome) == [(0, 300), (0, 12_060)]
    assert stretches(outcome, 1) == [(0, 300, (1, 2, 3)), (360, 12_060, (1, 2, 3))]
    # Without smart backfilling the long job starts in its own slice, on the lowest nodes.
    assert stretches(oracle.simulate(jobs, 4, smart=False), 1) == [(360, 12_360, (0, 1, 2))]


def test_a_medium_and_a_long_job_take_turns() -> None:
    # Both need the machine.  M 0 to 1757, L 1817 to 6660, M 6720 to 6720 + 3000 - 1757 = 7963,
    # where M lives no longer.  L from 8023, with 11,000 - 4843 = 6157 to do; no other class lives
    # at 12,866: L goes on, to 14,180.
    simulation = Simulation([job(0, 2, 3_000), job(0, 2, 11_000)], 2, Settings())
    outcome = simulation.run()
    assert stretches(outcome, 0) == [(0, 1757, (0, 1)), (6720, 7963, (0, 1))]
    assert stretches(outcome, 1) == [(1817, 6660, (0, 1)), (8023, 14_180, (0, 1))]
    assert [past.kind for past in simulation.history] == ["M", "-", "L", "-", "M", "-", "L"]


def test_a_class_without_work_is_passed_over_and_a_new_one_gets_its_turn() -> None:
    # L goes on at 4843 (only L lives) and would end at 9686; the short job of 5000 does not fit and
    # waits for that.
    outcome = oracle.simulate([job(0, 1, 20_000), job(5_000, 1, 60)], 1)
    assert seconds(outcome) == [(0, 20_180), (9_746, 9_806)]


def test_own_jobs_wait_for_backfilled_ones_until_the_slice_ends() -> None:
    # Slice M from 0: A (2 of 4 nodes, ends early at 500), B of class L is backfilled next to it to
    # 1757 at most.  C needs all 4: not at 500 nor in this slice, since B stays to its end.  L 1817
    # to 6660 (C cannot), C at 6720.
    outcome = oracle.simulate([job(0, 2, 1_000, 500), job(0, 2, 20_000), job(100, 4, 600)], 4)
    assert seconds(outcome)[2] == (6720, 7320)
    assert stretches(outcome, 1)[0] == (0, 1757, (2, 3))


def test_a_backfilled_job_that_ends_early_lets_an_own_job_start() -> None:
    # As before, but B runs 400 s only; at 500 the machine is empty.
    outcome = oracle.simulate([job(0, 2, 1_000, 500), job(0, 2, 20_000, 400), job(100, 4, 600)], 4)
    assert seconds(outcome)[2] == (500, 1100)


def test_no_migration() -> None:
    # 2 nodes.  A (M) on node 0 to 1757, where the short job of 1700 ends the slice.  The long job
    # comes in the switch and takes node 0 at 1817: A is not of its class.  A may not move to node
    # 1.  D (M) may start there, then E (M). L to 6660; S 6720 to 6780; M at 6840, where A resumes.
    jobs = [
        job(0, 1, 3_000),
        job(1_700, 2, 60),
        job(1_800, 1, 11_000),
        job(2_000, 1, 700),
        job(2_100, 1, 600),
    ]
    outcome = oracle.simulate(jobs, 2)
    assert stretches(outcome, 0) == [(0, 1757, (0,)), (6840, 8083, (0,))]
    assert stretches(outcome, 1) == [(6720, 6780, (0, 1))]
    assert stretches(outcome, 2)[0] == (1817, 6660, (0,))
    assert stretches(outcome, 3) == [(2000, 2700, (1,))]
    assert stretches(outcome, 4) == [(2700, 3300, (1,))]


def test_a_backfilled_job_avoids_the_nodes_of_the_suspended_of_its_class() -> None:
    # 3 nodes, the same course.  A (M) owns 0 and 1.  In slice L node 0 goes to the long job, so
    # that A cannot resume. D (M, one node) gets node 2, not 1.  E (M, two nodes) finds none, though
    # from 2700 nodes 1 and 2 are idle.
    jobs = [
        job(0, 2, 3_000),
        job(1_700, 3, 60),
        job(1_800, 1, 11_000),
        job(2_000, 1, 700),
        job(2_100, 2, 600),
    ]
    outcome = oracle.simulate(jobs, 3)
    assert stretches(outcome, 2)[0] == (1817, 6660, (0,))
    assert stretches(outcome, 3) == [(2000, 2700, (2,))]
    # E starts when A has ended (slice M 6840 to 8597), and gets the rest of its time in the next
    # one.
    assert stretches(outcome, 4)[0] == (8083, 8597, (0, 1))


def test_conservative_and_easy() -> None:
    # 4 nodes, only M lives.  A to 1000; B (3 nodes) booked 1000 to 2000; C (4 nodes) 2000 to 2600.
    # D (1 node, 2500 s) fits with A and B, not with C: conservative books it at 2600, EASY starts
    # it and C waits for it.
    jobs = [job(0, 2, 1_000), job(1, 3, 1_000), job(2, 4, 600), job(3, 1, 2_500)]
    assert seconds(oracle.simulate(jobs, 4))[1:] == [(1000, 2000), (2000, 2600), (2600, 5100)]
    assert seconds(oracle.simulate(jobs, 4, backfill="easy"))[1:] == [
        (1000, 2000),
        (2503, 3103),
        (3, 2503),
    ]


def test_jobs_of_no_length() -> None:
    # Both at one instant: A ends in the instant of its start, and a second round starts B.
    outcome = oracle.simulate([job(0, 1, 60, 0), job(0, 1, 60)], 1)
    assert seconds(outcome) == [(0, 0), (0, 60)]
    assert stretches(outcome, 0) == [(0, 0, (0,))]
    # An estimate of nothing books one second: C (1 of 2 nodes) starts; D, which needs both, starts
    # in the next round.
    assert seconds(oracle.simulate([job(0, 1, 0), job(0, 2, 60)], 2)) == [(0, 0), (0, 60)]


def test_without_switch_time_the_next_slice_begins_at_once() -> None:
    outcome = oracle.simulate([job(0, 2, 3_000), job(0, 2, 11_000)], 2, switch=0)
    assert stretches(outcome, 1) == [(1757, 6600, (0, 1)), (7843, 14_000, (0, 1))]


# ---- orders
# --------------------------------------------------------------------------------------------------------


def waves(kind: str, length: int) -> list[int]:
    """How many orders each wave visits."""
    return [
        sum(len(prefix) == length for prefix in oracle.below((), length, kind, wave))
        for wave in range(length)
    ]


def test_waves() -> None:
    assert waves("ilds", 4) == [1, 6, 11, 6]
    assert waves("dds", 4) == [1, 3, 8, 12]


@pytest.mark.parametrize("kind", ["lex", "ilds", "dds"])
def test_every_walk_visits_every_order_once_and_the_first_order_first(kind: str) -> None:
    for length in range(1, 6):
        orders = list(oracle.walk(length, kind))
        assert orders[0] == tuple(range(length))
        assert sorted(orders) == list(permutations(range(length)))


def test_discrepancies_in_lexicographic_order() -> None:
    assert [oracle.discrepancies(order) for order in oracle.walk(3, "lex")] == [0, 1, 1, 2, 1, 2]
    assert list(oracle.walk(4, "lex")) == list(permutations(range(4)))


def test_waves_by_their_discrepancies() -> None:
    counts = [oracle.discrepancies(order) for order in oracle.walk(5, "ilds")]
    assert counts == sorted(counts)
    # A wave of dds is known by the depth of the last discrepancy; within a wave both go from left
    # to right.
    orders = list(oracle.walk(4, "dds"))
    last = [
        max((d for d in range(1, 5) if oracle.strays(order[:d])), default=0) for order in orders
    ]
    assert last == sorted(last)
    assert orders[:4] == [(0, 1, 2, 3), (1, 0, 2, 3), (2, 0, 1, 3), (3, 0, 1, 2)]
    assert orders[4:12] == [
        (0, 2, 1, 3),
        (0, 3, 1, 2),
        (1, 2, 0, 3),
        (1, 3, 0, 2),
        (2, 1, 0, 3),
        (2, 3, 0, 1),
        (3, 1, 0, 2),
        (3, 2, 0, 1),
    ]
    assert list(oracle.walk(3, "ilds")) == [
        (0, 1, 2),
        (0, 2, 1),
        (1, 0, 2),
        (2, 0, 1),
        (1, 2, 0),
        (2, 1, 0),
    ]


@pytest.mark.parametrize(("length", "paths", "nodes"), [(4, 24, 64), (8, 40_320, 109_600)])
def test_the_paths_and_nodes_of_table_2(length: int, paths: int, nodes: int) -> None:
    lengths = [len(prefix) for prefix in oracle.prefixes(length, "lex")]
    assert (lengths.count(length), len(lengths)) == (paths, nodes)


# ---- profile, slowdown, search
# -------------------------------------------------------------------------------------


def test_profile() -> None:
    bookings = [booking(0, 10, 2), booking(5, 20, 1), booking(30, 40, 3)]
    assert oracle.earliest(bookings, 3, 1, 5 * SECOND, 0) == 0
    assert oracle.earliest(bookings, 3, 1, 6 * SECOND, 0) == 10 * SECOND
    assert oracle.earliest(bookings, 3, 3, 10 * SECOND, 0) == 20 * SECOND
    assert oracle.earliest(bookings, 3, 3, 11 * SECOND, 0) == 40 * SECOND
    spans = oracle.holes(bookings, 3, 1, 0, 40 * SECOND)
    assert [(a // SECOND, b // SECOND) for a, b in spans] == [(0, 5), (10, 30)]


def test_slowdown() -> None:
    # Long, 730 s old, starts now: (730 * 730 + 1000 * 15,000) / (730 * 15,000) = 1.42.
    assert oracle.slowdown(fact(0, 0, 1, 15_000), "L", 730 * SECOND, 730 * SECOND) == 2
    # Medium, new, 600 s, starts now: 1000 / 265 = 3.77.  It starts 600 s later: 7.55.
    assert oracle.slowdown(fact(0, 0, 1, 600), "M", 0, 0) == 4
    assert oracle.slowdown(job(0, 1, 600), "M", 0, 600 * SECOND) == 8
    assert oracle.stretched(fact(0, 0, 1, 600), "M", 0, 0) == Fraction(200, 53)
    # 159 s, medium by queue: 159,000 / (265 * 600) = 1 exactly, 160 s is above; never below 1.
    assert [oracle.slowdown(fact(0, 0, 1, estimate), "M", 0, 0) for estimate in (10, 159, 160)] == [
        1,
        1,
        2,
    ]
    assert oracle.stretched(fact(0, 0, 1, 10), "M", 0, 0) == 1


def test_long_wide_jobs() -> None:
    # Machine of 8, class L: at least 2 processors and 15,000 s.  Two such jobs are too few.
    wide = [fact(0, 0, 2, 15_000), fact(1, 0, 8, 20_000)]
    narrow = [fact(2, 0, 1, 90_000), fact(3, 0, 8, 14_999)]
    assert oracle.long_wide(wide + narrow, frame(0, 8, [], "L")) == []
    # With a third: 0 (2 wide) and 4 (6 wide) run side by side, then 1: slowdowns 2, 2 and 3.  The
    # orders 0 1 4, 0 4 1, 4 0 1 and 4 1 0 all give this plan; the first of them is taken.
    third = fact(4, 0, 6, 15_000)
    assert [j.row for j in oracle.long_wide([*wide, *narrow, third], frame(0, 8, [], "L"))] == [
        0,
        1,
        4,
    ]


def test_only_the_six_of_largest_work_are_long_wide() -> None:
    jobs = [fact(row, 0, 1 + row % 2, 1_000) for row in range(8)]
    # Four of work 2000 (rows 1, 3, 5, 7), and the first two of work 1000 (rows 0, 2).
    assert sorted(j.row for j in oracle.long_wide(jobs, frame(0, 10, []))) == [0, 1, 2, 3, 5, 7]


def test_initial_order() -> None:
    # One processor, medium.  Largest slowdown if placed now: 600 s old and 1000 s long: (600 +
    # 3773.6) / 1000 = 4.37; new and 600 s: 3.77.  After 1000 s of the first the second gives 10.06,
    # the third (2000 s) 5.66.
    jobs = [fact(0, 600, 1, 2_000), fact(1, 0, 1, 1_000), fact(2, 600, 1, 600)]
    placed = oracle.initial_order(jobs, [], frame(600, 1, []))
    assert [(p.job.row, p.start // SECOND) for p in placed] == [(1, 600), (2, 1600), (0, 2200)]
    # Of long-wide jobs only the next one may be taken: with 0 before 1, 0 and 2 compete first (3.77
    # each, 0 is first).
    placed = oracle.initial_order(jobs, [jobs[0], jobs[1]], frame(600, 1, []))
    assert [p.job.row for p in placed] == [0, 2, 1]


def test_force_shifting() -> None:
    # 2 processors, one booked to 1000.  A needs both: 1000 to 1600.  B (1 processor) finds a hole
    # of 1000 before A.
    base = frame(0, 2, [booking(0, 1000, 1)])
    for estimate, shifts in ((1000, False), (1001, True), (1500, True), (1501, False)):
        plan = base.place_all([fact(0, 0, 2, 600), fact(1, 0, 1, estimate)])
        other = oracle.shifted(plan, base)
        assert ([j.row for j in other] if other else None) == ([1, 0] if shifts else None)


def test_force_shifting_keeps_what_starts_before_the_hole() -> None:
    # One processor: A 0 to 600; a booking 600 to 700; hole 700 to 1700; a booking to 1800.  B (1600
    # s) at 1800 behind it does not fit the hole (1.6); C (1400 s) does, D follows.
    base = frame(0, 1, [booking(600, 700, 1), booking(1700, 1800, 1)])
    plan = base.place_all(
        [fact(0, 0, 1, 600), fact(1, 0, 1, 1600), fact(2, 0, 1, 1400), fact(3, 0, 1, 600)]
    )
    assert [p.start // SECOND for p in plan] == [0, 1800, 3400, 700]
    other = oracle.shifted(plan, base)
    assert other is not None
    assert [j.row for j in other] == [0, 2, 1, 3]


def test_selection() -> None:
    b = Merits(1000, Fraction(1, 2), Fraction(1000))
    better: dict[str, Any] = {
        "makespan": 999,
        "utilisation": Fraction(501, 1000),
        "response": Fraction(999),
    }
    for name, value in better.items():
        assert oracle.replaces(b._replace(**{name: value}), b)
    assert not oracle.replaces(b, b)
    assert oracle.replaces(Merits(1099, Fraction(476, 1000), Fraction(999)), b)
    assert not oracle.replaces(Merits(1100, Fraction(1), Fraction(999)), b)
    assert not oracle.replaces(Merits(999, Fraction(475, 1000), Fraction(999)), b)
    assert not oracle.replaces(Merits(999, Fraction(1), Fraction(1100)), b)


def test_merits() -> None:
    # 2 processors, now 100: a booking of 1 over [100, 300); the plan: 1 processor [100, 200), 2
    # over [300, 400).
    base = frame(100, 2, [booking(100, 300, 1)])
    plan = base.place_all([fact(0, 0, 1, 100), fact(1, 50, 2, 100)])
    assert [p.start // SECOND for p in plan] == [100, 300]
    # Ages 100 and 50; v = 100 and 300: R = 150 + 400,000 / 265.  Area 200 + 100 + 200 of 2 * 300.
    found = oracle.merits(base, plan)
    assert found == (300 * SECOND, Fraction(5, 6), (150 + Fraction(400_000, 265)) * SECOND)


def test_finish_job() -> None:
    # 2 processors; A 2 over [0, 100), B 1 over [100, 200), C 1 over [100, 400): utilisation 1, 1,
    # .75; not above .75.
    def plan(last: int) -> list[Placed]:
        a, b, c = fact(0, 0, 2, 100), fact(1, 0, 1, 100), fact(2, 0, 1, last)
        return [Placed(a, 0), Placed(b, 100 * SECOND), Placed(c, 100 * SECOND)]

    base = frame(0, 2, [])
    assert oracle.finish_job([], plan(300), 1, base) == 1
    assert oracle.finish_job([], plan(299), 1, base) == 2
    # From the third end of a plan job on, whatever its utilisation; with fewer plan jobs than that
    # there is none.
    assert oracle.finish_job([], plan(300), 3, base) == 2
    assert oracle.finish_job([], plan(300), 4, base) is None
    # A running job is no plan job, but its end may be the finish: with B over [0, 100) with 500 s
    # left (.6: no) or 190 s (.763: yes).
    beside = [Placed(fact(1, 0, 1, 100), 0)]
    assert oracle.finish_job([Placed(fact(9, 0, 1, 500), 0)], beside, 1, base) == 1
    assert oracle.finish_job([Placed(fact(9, 0, 1, 190), 0)], beside, 1, base) == 9
    assert oracle.finish_job([Placed(fact(9, 0, 2, 50), 0)], beside, 2, base) is None


def brute_force(
    jobs: list[tuple[int, int, int]], taken: list[int], machine: int, share: int, now: int
) -> int:
    """The least total slowdown of all orders, on a grid of 600 s; a job is (age, processors,
    length) in grid steps."""
    least: int | None = None
    for order in permutations(jobs):
        free = [machine - busy for busy in taken] + [machine] * 100
        total = 0
        for age, width, length in order:
            at = 0
            while any(room < width for room in free[at : at + length]):
                at += 1
            for step in range(at, at + length):
                free[step] -= width
            response = Fraction(age) + Fraction(1000 * (at + length), share)
            whole = response / length
            total += max(1, whole.numerator // whole.denominator + (whole.denominator > 1))
        least = total if least is None else min(least, total)
    assert least is not None
    return least


@pytest.mark.parametrize("kind", ["lex", "ilds", "dds"])
@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_the_optimum(kind: str, seed: int) -> None:
    draw = random.Random(seed)
    machine, step, now = 5, 600, 6_000
    small = [
        (draw.randrange(10), draw.randint(1, machine), draw.randint(1, 6)) for _ in range(2 + seed)
    ]
    taken = sorted((draw.randint(0, machine) for _ in range(draw.randint(0, 6))), reverse=True)
    bookings = [
        booking(now + step * at, now + step * (at + 1), busy)
        for at, busy in enumerate(taken)
        if busy
    ]
    jobs = [
        fact(row, now - step * age, width, step * length)
        for row, (age, width, length) in enumerate(small)
    ]
    settings = Settings(
        groups=True, search=kind, select=False, shift=False, medium=(3, 0.5, 0, 0, 9)
    )
    base = frame(now, machine, bookings)
    found = oracle.searched(jobs, base, settings)
    assert base.total(found.plan) == brute_force(small, taken, machine, 265, now)
    assert base.place_all(placed.job for placed in found.plan) == found.plan


def test_the_search_counts_nodes_and_cuts() -> None:
    # Two equal jobs, one processor, class M: the first order costs 4 + 8.  lex: 2 nodes; then job 1
    # first: 4 + 1 left is less than 12: a node; the leaf costs 12: cut, nothing left, so not
    # pruned: 4 nodes in all.
    jobs = [fact(0, 0, 1, 600), fact(1, 0, 1, 600)]
    settings = Settings(groups=True, search="lex", shift=False)
    found = oracle.searched(jobs, frame(0, 1, []), settings)
    assert ([p.job.row for p in found.plan], found.nodes, found.pruned) == ([0, 1], 4, 0)
    # Job 1 is 6000 s long: 0 before 1 costs 4 + 5; 1 first costs 4, and 4 + 1 left is less than 9:
    # placed: 4 + 42. The budget of one iteration ends the search at the first leaf.
    jobs = [fact(0, 0, 1, 600), fact(1, 0, 1, 6_000)]
    assert oracle.searched(jobs, frame(0, 1, []), settings).nodes == 4
    assert oracle.searched(jobs, frame(0, 1, []), Settings(search="lex", budget=1)).nodes == 2
    # Both 1 s long, by queue: slowdown 1 each, so 1 + 1 left >= 2: the second branch is cut at once
    # and pruned.
    jobs = [fact(0, 0, 1, 1), fact(1, 0, 1, 1)]
    found = oracle.searched(jobs, frame(0, 1, []), settings)
    assert (found.nodes, found.pruned) == (3, 1)


def test_halves() -> None:
    # Three jobs, the maximum: halves of 2 and 1; without the split one tree of 15 nodes at most.
    jobs = [fact(row, 0, 1, 3_000 - 600 * row) for row in range(3)]
    limits: dict[str, Any] = {"search": "lex", "shift": False, "medium": (3, 0.5, 0, 0, 3)}
    assert oracle.searched(jobs, frame(0, 1, []), Settings(**limits)).nodes == 4 + 1
    assert oracle.searched(jobs, frame(0, 1, []), Settings(**limits, split=False)).nodes > 5


# ---- groups in the simulation
# --------------------------------------------------------------------------------------


def test_a_group_ends_when_all_its_jobs_have_started_and_the_next_one_forms() -> None:
    # One node.  0: A and B make a group; C and D come and wait.  600: B starts, so the group ends;
    # the next pass of a slice of M is at 1200, where C and D make a group at once.
    outcome = oracle.simulate(
        [job(at, 1, 600) for at in (0, 0, 10, 10)], 1, groups=True, medium=(2, 0, 0, 0, 2)
    )
    assert outcome.groups == [(0, "M", (0, 1)), (1200 * SECOND, "M", (2, 3))]
    assert seconds(outcome) == [(0, 600), (600, 1200), (1200, 1800), (1800, 2400)]


def test_group_limits() -> None:
    # Three tests: at least two jobs, more than 1.5 machines, more than 600 s of the machine's work.
    def formed(*jobs: Asked) -> bool:
        return bool(oracle.simulate(jobs, 2, groups=True, medium=(2, 1.5, 1, 600, 9)).groups)

    assert formed(job(0, 2, 600), job(0, 2, 600))
    assert formed(job(0, 2, 600), job(0, 2, 601))
    assert not formed(job(0, 2, 6000))
    assert not formed(job(0, 2, 600), job(0, 1, 6000))
    limits = oracle.Limits(2, 1.5, 2, 600, 9)
    simulation = Simulation([], 2, Settings())
    assert not simulation.group_forms([fact(0, 0, 2, 600), fact(1, 0, 2, 600)], limits)
    assert simulation.group_forms([fact(0, 0, 2, 600), fact(1, 0, 2, 601)], limits)


def test_dynamic_backfilling_looks_to_the_end_of_the_slice_only() -> None:
    # 2 nodes, only M lives.  The group: A (one node, 0 to 5000), B (both, 5000 to 10,000).  C comes
    # at 100 (one node, 6000 s): its first slice ends at 1757, it fits up to there and is booked to
    # its end, so B moves to 6100.
    jobs = [job(0, 1, 5_000), job(0, 2, 5_000), job(100, 1, 6_000)]
    limits: dict[str, Any] = {"groups": True, "medium": (2, 0, 0, 0, 5)}
    assert seconds(oracle.simulate(jobs, 2, **limits)) == [(0, 5000), (6100, 11_100), (100, 6100)]
    # Without it C must fit over its whole estimate.  Also if it came while the group was not there
    # (rule 16: arrivals).
    expected = [(0, 5000), (5000, 10_000), (10_000, 16_000)]
    assert seconds(oracle.simulate(jobs, 2, **limits, dynamic=False)) == expected


def test_waiting_jobs_of_the_class_do_not_delay_the_plan() -> None:
    # The same group; a C of 4900 s ends at 5000 with A: it fits over its whole estimate.
    jobs = [job(0, 1, 5_000), job(0, 2, 5_000), job(100, 1, 4_900)]
    outcome = oracle.simulate(jobs, 2, groups=True, medium=(2, 0, 0, 0, 5), dynamic=False)
    assert seconds(outcome) == [(0, 5000), (5000, 10_000), (100, 5000)]


def test_without_smart_backfilling_a_group_admits_arrivals_of_its_class_only() -> None:
    # The short job fits next to A, but waits for a slice of its own: M ends at 1757.
    jobs = [job(0, 1, 5_000), job(0, 2, 5_000), job(100, 1, 60)]
    limits: dict[str, Any] = {"groups": True, "medium": (2, 0, 0, 0, 5)}
    assert oracle.simulate(jobs, 2, **limits).start[2] == 100 * SECOND
    assert oracle.simulate(jobs, 2, **limits, smart=False).start[2] == 1817 * SECOND


def test_plan_jobs_are_backfilled_in_other_slices() -> None:
    # 2 nodes.  0: group of A and B (M), each needs both nodes; A 0 to 600.  L comes at 10 with one
    # node; B 600 to 1200. A third, C (one node, 10,000 s, M), is of the group and runs next to L in
    # its slice, on the other node.
    jobs = [job(0, 2, 600), job(0, 2, 600), job(0, 1, 10_000), job(10, 1, 11_000)]
    outcome = oracle.simulate(jobs, 2, groups=True, medium=(3, 0, 0, 0, 5))
    assert outcome.groups == [(0, "M", (0, 1, 2))]
    assert seconds(outcome)[:2] == [(0, 600), (600, 1200)]
    # 1200: C starts in slice M, L next to it; both are suspended at 1757 and resume together at
    # 1817.
    assert stretches(outcome, 2)[:2] == [(1200, 1757, (0,)), (1817, 6660, (0,))]
    assert stretches(outcome, 3)[:2] == [(1200, 1757, (1,)), (1817, 6660, (1,))]


def test_the_next_group_waits_for_a_slice_of_its_class() -> None:
    # One node, switch 0, classes by queue; slices S 100, M 265, L 730 s.  Groups of two, of M.  A
    # and B (200 s each) make a group at 0, C comes too late.  A 0 to 200.  The long job Z comes at
    # 100.  B starts at 200: all have begun, so the group is over.  At 265 the slice of L begins; C
    # and D make the next group at 565.
    def asked(submit: int, length: int, queue: int) -> Asked:
        return Asked(submit * SECOND, 1, length * SECOND, length * SECOND, queue)

    jobs = [
        asked(0, 200, 2),
        asked(0, 200, 2),
        asked(100, 300, 3),
        asked(110, 200, 2),
        asked(120, 200, 2),
    ]
    outcome = oracle.simulate(
        jobs,
        1,
        groups=True,
        class_by="queue",
        switch=0,
        short=100 * SECOND,
        cycle=1_095 * SECOND,
        medium=(2, 0, 0, 0, 2),
        long=(9, 0, 0, 0, 9),
    )
    # M 0 to 265; L 265 to 565, where Z ends; M again: B has 135 s left, to 700.
    assert seconds(outcome)[:3] == [(0, 200), (200, 700), (265, 565)]
    assert outcome.groups == [(0, "M", (0, 1)), (565 * SECOND, "M", (3, 4))]


def group_state(finish: int) -> Simulation:
    """A simulation in slice M with a group of M that has unstarted jobs."""
    simulation = Simulation([job(0, 1, 600)] * 3, 3, Settings(groups=True))
    simulation.groups["M"] = oracle.Group([0, 1, 2], finish)
    simulation.phase, simulation.slice = "slice", "M"
    simulation.state = ["runs", "runs", "planned"]
    return simulation


def test_a_group_ends_with_its_finish_job_in_a_slice_of_its_class() -> None:
    simulation = group_state(finish=1)
    simulation.complete(0)
    assert not simulation.groups["M"].over
    simulation.complete(1)
    assert simulation.groups["M"].over


def test_a_group_whose_finish_job_ended_elsewhere_ends_at_the_next_completion_in_its_slice() -> (
    None
):
    simulation = group_state(finish=1)
    simulation.slice = "L"
    simulation.complete(1)
    assert not simulation.groups["M"].over
    simulation.slice = "M"
    simulation.complete(0)
    assert simulation.groups["M"].over


# ---- the bottom line
# -----------------------------------------------------------------------------------------------


def test_bottom_line_takes_the_job_of_least_excess() -> None:
    # One node.  600: B waits 590 s and lasts 6000 s, C waits 580 s and lasts 600 s.  The bound is
    # 590 s.  B, C: C waits 6580 s: excess 5990.  C, B: B waits 1190 s: excess 600.  So C is first;
    # the baseline takes B.
    jobs = [job(0, 1, 600), job(10, 1, 6_000), job(20, 1, 600)]
    assert seconds(oracle.simulate(jobs, 1))[1:] == [(600, 6600), (6600, 7200)]
    assert seconds(oracle.simulate(jobs, 1, bottom_line=True))[1:] == [(1200, 7200), (600, 1200)]


def test_bottom_line_stops_at_its_limit_but_completes_the_first_order() -> None:
    # One processor, now 600.  Largest slowdown first is 0 (1.5), 1 (1.4), which is also best under
    # a bound of 0, where all waits are excess: 600 + 1800, the other order 600 + 2100.
    jobs = [fact(0, 0, 1, 1_200), fact(1, 0, 1, 1_500)]
    order = oracle.bottom_line(jobs, frame(600, 1, []), 1_000, 0)
    assert [p.job.row for p in order] == [0, 1]
    jobs = [fact(0, 0, 1, 1_500), fact(1, 300, 1, 100)]
    # 600: (600 + 1500) / 1500 = 1.4, (300 + 100) / 100 = 4: row 1 first, which is also best.
    assert [p.job.row for p in oracle.bottom_line(jobs, frame(600, 1, []), 1_000, 0)] == [1, 0]
    # 5 s of estimate count as 60: (5 + 5) / 60, so 0 is first.  Best is 1 first: excess 5 + 605,
    # not 600 + 1505.  It is the second order, complete with the fourth placement; the first one is
    # completed whatever the limit.
    jobs = [fact(0, 0, 1, 1_500), fact(1, 595, 1, 5)]
    assert [p.job.row for p in oracle.bottom_line(jobs, frame(600, 1, []), 1, 0)] == [0, 1]
    assert [p.job.row for p in oracle.bottom_line(jobs, frame(600, 1, []), 3, 0)] == [0, 1]
    assert [p.job.row for p in oracle.bottom_line(jobs, frame(600, 1, []), 4, 0)] == [1, 0]


def test_bottom_value() -> None:
    plan = [Placed(fact(0, 0, 1, 900), 450 * SECOND), Placed(fact(1, 100, 1, 60), 400 * SECOND)]
    # Waits 450 and 300, bound 400; responses 1350 / 900 and 360 / 600.
    assert oracle.bottom_value(plan, 400 * SECOND) == (50 * SECOND, 1_500_000 + 600_000)


# ---- laws
# ----------------------------------------------------------------------------------------------------------


def overlap(a: oracle.Piece, b: oracle.Piece) -> bool:
    """Whether two pieces share a node at an instant."""
    return a.start < b.end and b.start < a.end and not set(a.nodes).isdisjoint(b.nodes)


def check_pieces(jobs: list[Asked], outcome: Outcome, procs: int) -> None:
    """Each job runs for its run time, on nodes of its own that never change."""
    for row, one in enumerate(jobs):
        own = [piece for piece in outcome.pieces if piece.row == row]
        assert sum(piece.end - piece.start for piece in own) == one.run
        assert {piece.nodes for piece in own} == {own[0].nodes}
        assert sorted(set(own[0].nodes)) == list(own[0].nodes)
        assert len(own[0].nodes) == one.procs
        assert set(own[0].nodes) <= set(range(procs))
        assert one.submit <= own[0].start == outcome.start[row]
        assert own[-1].end == outcome.end[row]
        assert all(before.end <= after.start for before, after in pairwise(own))
    for place, piece in enumerate(outcome.pieces):
        assert not any(overlap(piece, other) for other in outcome.pieces[place + 1 :])
    assert [(p.start, p.row) for p in outcome.pieces] == sorted(
        (p.start, p.row) for p in outcome.pieces
    )


def check_slices(simulation: Simulation, outcome: Outcome) -> None:
    """Nothing runs in a switch; a slice resumes its own; other classes come only with smart
    backfilling, and leave."""
    lengths = simulation.lengths
    for past in simulation.history:
        inside = [p for p in outcome.pieces if p.start < past.end and past.start < p.end]
        if past.kind == "-":
            assert past.end - past.start == simulation.settings.switch
            assert not inside
            continue
        assert all(p.end <= past.end for p in inside)
        if not simulation.settings.smart:
            assert all(simulation.kind[p.row] == past.kind for p in inside)
        begun = [
            r
            for r, at in enumerate(outcome.start)
            if simulation.kind[r] == past.kind and at < past.start
        ]
        for row in begun:
            resumed = any(p.row == row and p.start == past.start for p in outcome.pieces)
            assert resumed or outcome.end[row] <= past.start
    slices = [past for past in simulation.history if past.kind != "-"]
    for past, after in pairwise(simulation.history):
        assert past.end <= after.start
    assert all(past.start <= past.end for past in slices)
    assert all(past.kind in lengths for past in slices)


def check_turns(simulation: Simulation, outcome: Outcome) -> None:
    """A slice lasts its length, or several, or until its class is dead; after a switch comes the
    next class that lives.

    With switch time only: without it several slices may begin at one instant.
    """

    def lives(kind: str, at: int) -> bool:
        rows = [row for row, own in enumerate(simulation.kind) if own == kind]
        return any(
            simulation.jobs[r].submit <= at and (outcome.end[r] > at or outcome.start[r] == at)
            for r in rows
        )

    for past in simulation.history:
        if past.kind != "-":
            whole = (past.end - past.start) % simulation.lengths[past.kind] == 0
            assert whole or not any(
                one.submit < past.end < outcome.end[row]
                for row, one in enumerate(simulation.jobs)
                if simulation.kind[row] == past.kind
            )
    for before, switch, after in zip(
        simulation.history, simulation.history[1:], simulation.history[2:], strict=False
    ):
        if switch.kind == "-":
            place = oracle.CLASSES.index(before.kind) + 1
            turns = oracle.CLASSES[place:] + oracle.CLASSES[:place]
            assert after.kind == next(kind for kind in turns if lives(kind, after.start))


def check_owned(simulation: Simulation, outcome: Outcome) -> None:
    """Jobs of one class that have started and not ended never own one node."""
    nodes = {piece.row: set(piece.nodes) for piece in outcome.pieces}
    spans = [(r, outcome.start[r], outcome.end[r]) for r in range(len(outcome.start))]
    for a, start, end in spans:
        for b, other_start, other_end in spans[a + 1 :]:
            if simulation.kind[a] == simulation.kind[b] and start < other_end and other_start < end:
                assert nodes[a].isdisjoint(nodes[b])


@pytest.mark.parametrize("settings", SETTINGS, ids=named)
@pytest.mark.parametrize("seed", range(12))
def test_laws(settings: dict[str, Any], seed: int) -> None:
    procs = 4 + seed
    jobs = workload(seed, 20, procs)
    simulation = Simulation(jobs, procs, Settings(**settings))
    outcome = simulation.run()
    check_pieces(jobs, outcome, procs)
    check_slices(simulation, outcome)
    if simulation.settings.switch:
        check_turns(simulation, outcome)
    check_owned(simulation, outcome)
    grouped = [row for _, _, rows in outcome.groups for row in rows]
    for at, kind, rows in outcome.groups:
        assert list(rows) == sorted(rows)
        assert all(
            simulation.kind[row] == kind and jobs[row].submit <= at <= outcome.start[row]
            for row in rows
        )
        assert 3 <= len(rows) <= simulation.settings.limits(kind).maximum
    assert bool(grouped) <= simulation.settings.groups
    assert outcome == oracle.simulate(jobs, procs, **settings)


def test_the_workloads_of_the_laws_form_groups_and_cut() -> None:
    outcomes = [
        oracle.simulate(workload(seed, 20, 4 + seed), 4 + seed, **SMALL_GROUPS)
        for seed in range(12)
    ]
    assert sum(len(outcome.groups) for outcome in outcomes) > 15
    assert all(
        sum(kind == wanted for o in outcomes for _, kind, _ in o.groups) > 2 for wanted in "ML"
    )
    assert sum(outcome.pruned for outcome in outcomes) > 10


@pytest.mark.parametrize("seed", range(12))
def test_a_group_rule_that_never_forms_a_group_changes_nothing(seed: int) -> None:
    jobs = workload(seed, 15, 6)
    never = (99, 0, 0, 0, 99)
    assert oracle.simulate(jobs, 6, groups=True, medium=never, long=never) == oracle.simulate(
        jobs, 6
    )


@pytest.mark.parametrize("seed", range(12))
def test_one_class_with_exact_estimates_is_plain_conservative_backfilling(seed: int) -> None:
    # Each job at its earliest from its arrival on, given the earlier ones, once and for all.
    drawn = [one._replace(run=one.estimate) for one in workload(seed, 40, 6)]
    jobs = [one for one in drawn if 600 * SECOND <= one.estimate < 10_800 * SECOND]
    bookings: list[Booking] = []
    for one in jobs:
        start = oracle.earliest(bookings, 6, one.procs, one.estimate, one.submit)
        bookings.append(Booking(start, start + one.estimate, one.procs))
    assert oracle.simulate(jobs, 6).start == [booked.start for booked in bookings]


@pytest.mark.parametrize("seed", range(12))
def test_a_bottom_line_of_one_job_at_a_time_is_the_baseline(seed: int) -> None:
    # Jobs that each have the machine for themselves: every queue is one job long.
    jobs = [one._replace(submit=10**12 * row) for row, one in enumerate(workload(seed, 8, 6))]
    assert oracle.simulate(jobs, 6, bottom_line=True) == oracle.simulate(jobs, 6)


# ---- the examples of the paper (R002, T1 and T3)
# -------------------------------------------------------------------

UNIT = 60 * SECOND


def example(submit: int, kind: str, run: int, size: int) -> Asked:
    """A row of Table 1 or 3 in the paper's column order."""
    return Asked(submit * UNIT, size, run * UNIT, run * UNIT, "SML".index(kind) + 1)


def table_1() -> tuple[dict[int, Asked], Settings]:
    """The jobs of Table 1 by number, and the settings of the test below."""
    jobs = {
        1: example(0, "L", 47, 3),
        2: example(0, "S", 17, 7),
        3: example(10, "M", 65, 7),
        4: example(35, "M", 34, 3),
        5: example(40, "S", 9, 7),
        6: example(41, "S", 5, 2),
        7: example(50, "S", 5, 3),
        8: example(75, "L", 98, 4),
        9: example(77, "L", 80, 5),
        10: example(90, "M", 40, 6),
    }
    settings = Settings(
        class_by="queue", switch=0, short=20 * UNIT, cycle=20 * UNIT + 3_830 * SECOND
    )
    return jobs, settings


def table_3() -> tuple[dict[int, Asked], Settings, int]:
    """The jobs of Table 3 by number, the settings of the test below, and by how much they are
    submitted later."""
    cycle = 20_276 * SECOND + 20 * UNIT
    long_slice = oracle.slice_lengths(cycle, 20 * UNIT)["L"]
    # So that the long slice, which begins with the simulation, ends at 41.
    shift = long_slice - 41 * UNIT
    before = {
        0: Asked(0, 5, long_slice, long_slice, 3),
        1: Asked(0, 3, long_slice + 30 * UNIT, long_slice + 30 * UNIT, 3),
    }
    table = {
        8: example(10, "M", 65, 5),
        2: example(30, "S", 9, 8),
        9: example(35, "M", 40, 3),
        10: example(40, "M", 30, 6),
        11: example(41, "M", 70, 7),
        12: example(50, "M", 50, 5),
        13: example(75, "S", 15, 4),
        14: example(77, "L", 80, 3),
        15: example(90, "M", 15, 6),
    }
    jobs = before | {
        number: one._replace(submit=one.submit + shift) for number, one in table.items()
    }
    settings = Settings(
        groups=True,
        class_by="queue",
        switch=0,
        short=20 * UNIT,
        cycle=cycle,
        medium=(5, 0, 0, 0, 20),
        long=(9, 0, 0, 0, 20),
    )
    return jobs, settings, shift


def test_the_example_of_table_1() -> None:
    """Table 1 and Figure 3: 10 nodes, the switch not shown.

    The paper leaves open the size and run time of Jobs 1 and 2.  Here Job 1 is long, 3 nodes, 47
    units, backfilled in the short slice of Job 2: 7 nodes, 17 units.  It leaves open the slice
    lengths, too (here S 20, M 17, L 46.8 units).
    """
    jobs, settings = table_1()
    simulation = Simulation(list(jobs.values()), 10, settings)
    assert simulation.lengths["M"] == 17 * UNIT
    outcome = simulation.run()

    def ran(number: int) -> list[tuple[float, float, tuple[int, ...]]]:
        row = list(jobs).index(number)
        return [(p.start / UNIT, p.end / UNIT, p.nodes) for p in outcome.pieces if p.row == row]

    slices = [
        (past.kind, past.start / UNIT, past.end / UNIT)
        for past in simulation.history
        if past.kind != "-"
    ]
    # S with Job 2, M with Job 3, L with Job 1 to its end, S with Jobs 5 to 7; M goes on at 74,
    # where only it lives.
    assert slices[:5] == [("S", 0, 17), ("M", 17, 34), ("L", 34, 47), ("S", 47, 57), ("M", 57, 91)]
    low, high = tuple(range(7)), (7, 8, 9)
    # "A smart-backfilled long job (Job 1) and a short job (Job 2) are running."
    assert ran(2) == [(0, 17, low)]
    assert ran(1)[0] == (0, 17, high)
    # "Job 3 is scheduled in the medium slice."  (By rule 7 Job 1 is backfilled there.)
    assert ran(3)[0] == (17, 34, low)
    assert ran(1)[1] == (17, 34, high)
    # "During the next long slice, the preempted long job, Job 1, is scheduled.  The medium job, Job
    # 3, is backfilled."
    assert ran(1)[2:] == [(34, 47, high)]
    assert ran(3)[1] == (34, 47, low)
    # "Upcoming short slice would start the short Jobs 5, 6 and 7", and other jobs do not fit: 5 and
    # 6 (9 nodes) at once, 7 after 6 (10 nodes).  Job 3 gets the last unit, when Job 5 is gone.
    assert [ran(5), ran(6), ran(7)] == [[(47, 56, low)], [(47, 52, (7, 8))], [(52, 57, high)]]
    assert ran(3)[2] == (56, 57, low)
    # "In the next medium slice, medium preempted Job 3 is scheduled followed by medium job 4", on
    # its initial nodes.
    assert ran(3)[3:] == [(57, 91, low)]
    assert ran(4) == [(57, 91, high)]
    # "Job 8 starts immediately after job 4 is finished.  Job 9 does not have to wait as enough
    # processors are available."
    assert ran(8)[0][0] == ran(9)[0][0] == ran(4)[0][1] == 91
    # Job 10 (6 nodes, medium) finds one node idle in the long slice, and waits for the slice of its
    # class.
    assert ran(10)[0][0] == next(start for kind, start, _ in slices if kind == "M" and start > 91)


def test_the_example_of_table_3() -> None:
    """Table 3 and Figure 13: 10 nodes, a group of the medium Jobs 8 to 12.

    The paper leaves open what runs before, the slice lengths (M 90 units) and the order found.
    Here two long jobs run before, Job 1 with 3 nodes and one with 5, in a long slice that ends at
    41, then a short job of 8 nodes to 50.  Rules 1 to 18 cannot give a group that ends with Job 15,
    which comes after the group has formed.  Nor do they start Job 13 at once at 75: the plan found
    leaves one node idle then.  The two tests after this one show such backfilling.
    """
    jobs, settings, shift = table_3()
    numbers = list(jobs)
    simulation = Simulation(list(jobs.values()), 10, settings)
    assert simulation.lengths["M"] == 90 * UNIT
    outcome = simulation.run()

    def ran(number: int) -> list[tuple[float, float]]:
        row = numbers.index(number)
        return [
            ((p.start - shift) / UNIT, (p.end - shift) / UNIT)
            for p in outcome.pieces
            if p.row == row
        ]

    slices = [
        (s.kind, (s.start - shift) / UNIT, (s.end - shift) / UNIT)
        for s in simulation.history
        if s.kind != "-"
    ]
    # "Normal scheduling happens until the end of the second small slice."  Jobs 8 and 9 cannot be backfilled into the
    # long slice; in the short one two nodes are idle, too few for any of them.
    assert slices == [
        ("L", -shift / UNIT, 41),
        ("S", 41, 50),
        ("M", 50, 140),
        ("L", 140, 220),
        ("M", 220, 260),
    ]
    # "We have five medium jobs (Jobs 8-12) which can be grouped together."
    assert outcome.groups == [
        (50 * UNIT + shift, "M", tuple(numbers.index(number) for number in (8, 9, 10, 11, 12)))
    ]
    # "The jobs try to stick to the plan": 9 and 10 (9 nodes), 8 after 10, 12 after 9, at the end
    # 11.
    assert [ran(9), ran(10), ran(8)[0], ran(12)] == [[(50, 90)], [(50, 80)], (80, 140), [(90, 140)]]
    # "Job 1 starts on the same nodes": in the next long slice, as the plan leaves it no three nodes
    # before.
    assert ran(1)[1:] == [(140, 170)]
    assert {piece.nodes for piece in outcome.pieces if piece.row == 1} == {(5, 6, 7)}
    # Jobs 13 and 14 find no nodes outside the plan either; Job 14 has its own slice, Job 13 is
    # backfilled in it.
    assert [ran(13), ran(14)] == [[(140, 155)], [(140, 220)]]
    # Job 8 has the nodes 3 to 7 and waits for Job 1.  Then "Job 11 despite being a medium job
    # continues executing (smart backfilled) in the next long slice as nodes remain free after Job 1
    # terminates", and in the medium one.
    assert ran(8)[1] == (170, 175)
    assert ran(11) == [(175, 220), (220, 245)]
    # Job 15 came too late for the group; the group is over when Job 11 has started.
    assert ran(15) == [(245, 260)]


def test_a_short_arrival_runs_in_the_group_slice() -> None:
    """The case of Job 13: "as sufficient processors are available, it is backfilled and started
    immediately"."""
    # The plan: 6 nodes for 30, then 5 for 50, then 7 for 70 (slowdowns 4, 7 and 9): four nodes are
    # idle at 10.
    jobs = [
        example(0, "M", 30, 6),
        example(0, "M", 70, 7),
        example(0, "M", 50, 5),
        example(10, "S", 15, 4),
    ]
    limits: dict[str, Any] = {
        "class_by": "queue",
        "medium": (3, 0, 0, 0, 20),
        "cycle": 20_000 * SECOND,
    }
    outcome = oracle.simulate(jobs, 10, groups=True, **limits)
    assert outcome.groups == [(0, "M", (0, 1, 2))]
    assert [start / UNIT for start in outcome.start] == [0, 80, 30, 10]
    assert next(piece for piece in outcome.pieces if piece.row == 3) == (
        3,
        10 * UNIT,
        25 * UNIT,
        (6, 7, 8, 9),
    )


def test_long_jobs_are_backfilled_in_a_group_slice() -> None:
    """The case of Jobs 1 and 14: backfilled into the group slice, on the same nodes, the plan not
    disturbed."""
    limits: dict[str, Any] = {
        "class_by": "queue",
        "medium": (3, 0, 0, 0, 20),
        "cycle": 20_000 * SECOND,
        "switch": 0,
    }
    lengths = oracle.slice_lengths(20_000 * SECOND, 600 * SECOND)
    end = lengths["L"]
    # A long job of 7 nodes puts Job 1 on nodes 7 to 9 and is gone when the slice ends and the group
    # comes.
    plan = [example(0, "M", 30, 6), example(0, "M", 70, 7), example(0, "M", 50, 5)]
    jobs = [
        example(0, "L", 10, 7),
        example(0, "L", 1_000, 3),
        *(one._replace(submit=end) for one in plan),
        example(10, "L", 20, 1)._replace(submit=end + 10 * UNIT),
    ]
    outcome = oracle.simulate(jobs, 10, groups=True, **limits)
    assert outcome.groups == [(end, "M", (2, 3, 4))]
    assert [(start - end) / UNIT for start in outcome.start[2:]] == [0, 80, 30, 10]
    pieces = [(piece.start, piece.end, piece.nodes) for piece in outcome.pieces if piece.row == 1]
    assert pieces[:2] == [(0, end, (7, 8, 9)), (end, end + lengths["M"], (7, 8, 9))]
    assert [piece[1:] for piece in outcome.pieces if piece.row == 5] == [
        (end + 10 * UNIT, end + 30 * UNIT, (6,))
    ]
