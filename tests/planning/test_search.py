"""The discrepancy search: the orders that it visits, what it finds, what it costs."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations
from math import factorial

import msgspec
import numpy as np
import pytest

from qbatch.planning import search as searching
from qbatch.planning.kernels.order import is_less
from qbatch.planning.kernels.profile import add, new_profile
from tests.policies.slice_oracle import walk

SECOND = 1_000_000
PROCS = 8


def random_jobs(draw: random.Random, count: int) -> np.ndarray:
    """Return jobs that were submitted before instant 0."""
    estimates = [draw.choice((60, 600, 900, 2000, 5000, 20000)) * SECOND for _ in range(count)]
    procs = [draw.choice((1, 2, 3, 5, 8)) for _ in range(count)]
    submits = [-draw.choice((0, 10, 1000, 50000)) * SECOND for _ in range(count)]
    return searching.jobs_to_search(
        *(np.array(each, np.int64) for each in (procs, estimates, submits)), 1
    )


def random_base(draw: random.Random) -> np.ndarray:
    base, left = new_profile(PROCS, 0, 64), PROCS
    while left:
        procs = draw.randint(1, left)
        add(base, 0, draw.choice((0, 100, 700, 3000)) * SECOND, -procs)
        left -= procs
    return base


def value_of(jobs: np.ndarray, order: tuple[int, ...], base: np.ndarray, share: int) -> int:
    """Return the total slowdown of an order, with a list of bookings that is asked at every second
    instant that matters."""
    taken = [
        (int(base[0, place]), int(base[0, place + 1]), PROCS - int(base[1, place]))
        for place in range(1, int(base[0, 0]))
    ]
    total = 0
    for job in order:
        procs, lasts, estimate, submit = (
            int(jobs[name][job]) for name in ("procs", "booked", "estimate", "submit")
        )
        for start in sorted({0, *(end for _, end, _ in taken)}):
            inside = [start, *(begin for begin, _, _ in taken if start < begin < start + lasts)]
            if all(sum(p for b, e, p in taken if b <= at < e) + procs <= PROCS for at in inside):
                break
        taken.append((start, start + lasts, procs))
        slowdown = Fraction(
            -submit * share + 1000 * (start + estimate), share * max(estimate, 600 * SECOND)
        )
        total += max(1, -(-slowdown.numerator // slowdown.denominator))
    return total


@pytest.mark.parametrize(
    ("walk_name", "waves"), [("ilds", [1, 6, 11, 6]), ("dds", [1, 3, 8, 12]), ("lex", [24])]
)
def test_every_order_is_visited_once_in_waves(walk_name: str, waves: list[int]) -> None:
    """A budget of n iterations is spent on the n first orders: the best of them is known by brute
    force."""
    draw = random.Random(4)
    orders = [tuple(order) for order in walk(4, walk_name)]
    assert len(orders) == len(set(orders)) == sum(waves) == factorial(4)
    for _ in range(20):
        jobs, base = random_jobs(draw, 4), random_base(draw)
        values = [value_of(jobs, order, base, 1000) for order in orders]
        for budget in (1, *np.cumsum(waves).tolist()):
            rules = searching.SearchRules(walk=walk_name, budget=budget, cuts=False)
            best = searching.search(0, base, jobs, rules).best
            assert best.value[0] == min(values[:budget])
            assert best.order == orders[values.index(best.value[0])]


@pytest.mark.parametrize("walk_name", searching.WALKS)
def test_the_search_finds_the_optimum_with_and_without_cuts(walk_name: str) -> None:
    draw = random.Random(7)
    for count in (1, 2, 5, 6, 7):
        jobs, base = random_jobs(draw, count), random_base(draw)
        rules = searching.SearchRules(walk=walk_name, share=265)
        with_cuts, without = (
            searching.search(0, base, jobs, msgspec.structs.replace(rules, cuts=cuts))
            for cuts in (True, False)
        )
        assert with_cuts.best.value == without.best.value
        assert with_cuts.best.order == without.best.order
        assert with_cuts.nodes <= without.nodes
        if count < 7:
            assert with_cuts.best.value[0] == min(
                value_of(jobs, order, base, 265) for order in permutations(range(count))
            )


@pytest.mark.parametrize(("count", "paths", "nodes"), [(4, 24, 64), (8, 40_320, 109_600)])
def test_the_tree_of_all_orders_has_as_many_nodes_as_table_2_says(
    count: int, paths: int, nodes: int
) -> None:
    jobs, base = random_jobs(random.Random(1), count), new_profile(PROCS, 0, 64)
    rules = searching.SearchRules(walk="lex", budget=paths, cuts=False)
    assert searching.search(0, base, jobs, rules).nodes == nodes
    fewer = searching.search(0, base, jobs, msgspec.structs.replace(rules, budget=paths - 1))
    assert fewer.nodes == nodes - 2, "the last order has its two last placements for itself"


def test_the_plan_is_never_worse_than_its_start_and_a_budget_of_placements_completes_the_first_order() -> (
    None
):
    draw = random.Random(11)
    for walk_name in searching.WALKS:
        for count in (3, 9, 20):
            jobs, base = random_jobs(draw, count), random_base(draw)
            rules = searching.SearchRules(
                walk=walk_name, budget=2, counts_placements=True, cuts=False
            )
            outcome = searching.search(0, base, jobs, rules)
            assert outcome.best.order == tuple(range(count))
            assert outcome.nodes == count
            for shifts in (False, True):
                more = msgspec.structs.replace(rules, budget=300, shifts=shifts, cuts=True)
                assert searching.search(0, base, jobs, more).best.value <= outcome.best.value


def test_the_base_stays_as_it_is_and_what_is_found_can_be_placed() -> None:
    draw = random.Random(13)
    jobs, base = random_jobs(draw, 12), random_base(draw)
    before = base.copy()
    rules = searching.SearchRules(shifts=True)
    found = searching.search(0, base, jobs, rules).best
    starts, profile, value = searching.place_in_order(0, base, jobs, found.order, rules)
    assert (base == before).all()
    assert value == found.value
    ends = starts + jobs["booked"][list(found.order)]
    assert ends.max() == found.end
    assert profile[1, 1 : int(profile[0, 0]) + 1].min() >= 0


def test_fractions_are_compared_exactly() -> None:
    draw = random.Random(17)
    large = 10**17
    for _ in range(3000):
        one, other = (Fraction(draw.randint(0, large), draw.randint(1, 10**12)) for _ in range(2))
        if draw.random() < 0.3:
            other = one + Fraction(draw.choice((-1, 0, 1)), 10**6)
        other = max(other, Fraction(0))
        if max(one.numerator, one.denominator, other.numerator, other.denominator) < 2**62:
            found = is_less(one.numerator, one.denominator, other.numerator, other.denominator)
            assert found == (one < other), (one, other)


def test_among_the_last_orders_another_one_is_taken_only_if_it_is_near_in_all_and_better_in_one() -> (
    None
):
    def found(end: int, area: int, response: int) -> searching.Found:
        return searching.Found((0,), (1, 0), end, area, response)

    best = found(1000, 4000, 100)
    for other, is_taken in [
        (found(999, 3996, 109), True),  # ends earlier
        (found(1100, 4400, 99), False),  # 10 * 1100 is not below 11 * 1000
        (found(1099, 4396, 99), True),  # the response is better
        (found(1000, 4000, 100), False),  # better in nothing
        (found(1000, 3800, 90), False),  # .95 of the utilisation is not above .95
        (found(1000, 3801, 90), True),
        (found(900, 3600, 110), False),
    ]:
        assert (searching.chosen([other, best], PROCS, 0) is other) == is_taken, other
