"""A library that searches an order of jobs on an availability profile: orders in, schedules and
their values out.

Any policy may use it; the kernels are in :mod:`qbatch.planning.kernels.discrepancy`.  A number of
iterations or of placements bounds a search, never time: the speed of the machine must not decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec
import numpy as np

from qbatch.planning.kernels import discrepancy
from qbatch.planning.kernels.deadlines import PLANNED_JOB
from qbatch.planning.kernels.entries import entry_to
from qbatch.planning.kernels.types import Int64Array, RecordArray

WALKS = ("lex", "ilds", "dds")
"""The walk through the orders: lexicographic; improved limited discrepancy; depth-bounded
discrepancy."""

_search = entry_to(discrepancy.search)
_place_in_order = entry_to(discrepancy.place_in_order)
_merged = entry_to(discrepancy.merged)


class SearchRules(msgspec.Struct, frozen=True):
    """The objective and the walk of a search.

    ``walk``: of :data:`WALKS`.  ``budget``: the number of iterations (complete orders and cuts)
    that ends the search, or of placements if ``counts_placements``; the first order is always
    completed.  ``objective``: of the kernels.  ``share``: the share of time in which the jobs have
    the machine, in thousandths.  ``least``: the shortest run time in a slowdown; ``bound``: the
    longest wait that is not excessive; both in microseconds.  ``cuts``: prefixes that cannot win
    are cut. ``shifts``: jobs are tried in holes that are slightly too short for them.
    """

    walk: str = "ilds"
    budget: int = 10_000
    counts_placements: bool = False
    objective: int = discrepancy.SLOWDOWN
    share: int = 1000
    least: int = 600_000_000
    bound: int = 0
    cuts: bool = True
    shifts: bool = False

    def for_kernels(self) -> RecordArray:
        """Return the rules as a record of the kernels."""
        values = (
            self.objective,
            self.share,
            self.least,
            self.bound,
            WALKS.index(self.walk),
            self.budget,
            self.counts_placements,
            self.cuts,
            self.shifts,
        )
        return np.array([values], discrepancy.SEARCH)


class Found(NamedTuple):
    """One complete order: indices into the given jobs; its value; its last end; all that is booked
    until then, in processor-microseconds; the sum of age times share and time to the end times
    1,000."""

    order: tuple[int, ...]
    value: tuple[int, int]
    end: int
    area: int
    response: int


class SearchOutcome(NamedTuple):
    """The result of a search: the last orders that were better than all before them (at most three,
    the best last).  Also the number of placements, and the number of prefixes with jobs left that
    were cut."""

    found: list[Found]
    nodes: int
    pruned: int

    @property
    def best(self) -> Found:
        """The order of the least value, the first of equals."""
        return self.found[-1]


def jobs_to_search(
    procs: Int64Array, estimate: Int64Array, submit: Int64Array, shortest: int
) -> RecordArray:
    """Return jobs for :func:`search`; each books its estimate, at least ``shortest``, in
    microseconds."""
    jobs = np.zeros(len(procs), PLANNED_JOB)
    jobs["procs"], jobs["estimate"], jobs["submit"] = procs, estimate, submit
    jobs["booked"] = np.maximum(estimate, shortest)
    return jobs


def search(now: int, base: Int64Array, jobs: RecordArray, rules: SearchRules) -> SearchOutcome:
    """Search the order of the least value.

    Args:
        now: microseconds; no job is placed before it.
        base: the profile on which the jobs are placed (:mod:`qbatch.planning.kernels.profile`); it
            is not changed.
        jobs: in the first order (:func:`jobs_to_search`), at least one.
    """
    counts = np.zeros(1, discrepancy.SEARCHED)
    found = np.zeros((discrepancy.KEPT, len(jobs)), np.int64)
    facts = np.zeros(discrepancy.KEPT, discrepancy.FOUND_ORDER)
    _search(now, base, jobs, rules.for_kernels(), counts, found, facts)
    nodes, pruned, _, orders = counts[0].item()
    outcomes = []
    for number in range(max(orders - discrepancy.KEPT, 0), orders):
        place = number % discrepancy.KEPT
        first, second, end, area, response = facts[place].item()
        outcomes.append(Found(tuple(found[place].tolist()), (first, second), end, area, response))
    return SearchOutcome(outcomes, nodes, pruned)


def place_in_order(
    now: int, base: Int64Array, jobs: RecordArray, order: Sequence[int], rules: SearchRules
) -> tuple[Int64Array, Int64Array, tuple[int, int]]:
    """Place jobs one after another, each at its earliest start; return their starts, the profile
    that remains, and the value."""
    places = np.array(order, np.int64)
    profile = np.empty((2, int(base[0, 0]) + 2 * len(places) + 4), np.int64)
    starts = np.empty(len(places), np.int64)
    value = _place_in_order(rules.for_kernels(), jobs, places, now, base, profile, starts)
    return starts, profile, (int(value[0]), int(value[1]))


def largest_slowdown_first(
    now: int, base: Int64Array, jobs: RecordArray, line: Sequence[int], rules: SearchRules
) -> list[int]:
    """Return an order: always next the job with the largest slowdown if it were placed now.

    Args:
        line: indices into ``jobs``, which keep this order relative to each other.
    """
    order = np.empty(len(jobs), np.int64)
    _merged(now, base, jobs, np.array(line, np.int64), rules.for_kernels(), order)
    found: list[int] = order.tolist()
    return found


def chosen(found: Sequence[Found], procs: int, now: int) -> Found:
    """Return the order to take of the last ones (rule 15): the one of least value, unless another
    one is not much worse in last end, utilisation and response, and better in one of them."""
    best = found[-1]
    for other in reversed(found[:-1]):
        span, best_span = other.end - now, best.end - now
        used, best_used = Fraction(other.area, procs * span), Fraction(best.area, procs * best_span)
        is_near = (
            10 * span < 11 * best_span
            and 20 * used > 19 * best_used
            and 10 * other.response < 11 * best.response
        )
        if is_near and (span < best_span or used > best_used or other.response < best.response):
            best = other
    return best
