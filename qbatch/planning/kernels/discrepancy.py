"""Discrepancy search: the best order in which to place jobs on an availability profile, near a
first order.

Source: Harvey and Ginsberg 1995 (limited discrepancy), Korf 1996 (improved), Walsh 1997
(depth-bounded); the thesis on group optimisation in SCOJO-PECT, sections 6.4, 6.5 and 7.3.  Exact
readings: docs/spec/papers.md 4.10, rules 9 to 15 and 18.

The search builds orders depth first, one job at a time; each job is placed at its earliest start
after those before it, and each placement is a *node*.  A child that is not the first remaining job
of the first order is a *discrepancy*.  The value of an order is a pair of integers, the smaller the
better, and more jobs never make it smaller.  So a prefix that is no better than the best complete
order is *cut*.

The jobs are ``jobs[n]`` of ``PLANNED_JOB`` in the first order.  ``rules[1]`` is a record of
``SEARCH``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import is_less
from qbatch.planning.kernels.profile import (
    FOREVER,
    FREE,
    TIME,
    add,
    book,
    copied,
    copy_into,
    earliest,
)
from qbatch.planning.kernels.tables import record
from qbatch.planning.kernels.types import BoolArray, Int64Array, RecordArray

LEX, ILDS, DDS = 0, 1, 2
"""Walks: unrestricted; wave k = exactly k discrepancies; wave k = a discrepancy at depth k, any
above, none below."""

SLOWDOWN, SLOWDOWN_THEN_END, EXCESS = 0, 1, 2
"""Objectives: the sum of the slowdowns, rounded up; the same and then the last end; the sum of the
waits beyond a bound, and then the sum of the slowdowns in millionths."""

SEARCH = record(
    "objective",
    "share",  # the share of time in which the jobs have the machine, in thousandths.
    "least",  # the shortest run time in a slowdown.
    "bound",  # the longest wait that is not excessive.
    "walk",
    # The number of iterations (leaves and cuts), or of placements if ``counts_nodes``, that ends
    # it.
    "budget",
    "counts_nodes",
    "cuts",  # whether prefixes are cut.
    "shifts",  # whether jobs are shifted into holes that are slightly too short.
)
"""The rules of a search."""

SEARCHED = record("nodes", "pruned", "iterations", "found")
"""Counters of a search: placements, cuts before the last job, leaves and cuts, orders better than
all before them."""

FOUND_ORDER = record("first", "second", "end", "area", "response")
"""What is known of a found order: its value, a pair; its last end; all that is booked until then,
in processor-microseconds; the sum of (age times ``share`` + time to the end times 1,000)."""

KEPT = 3
"""The number of found orders that are kept: the last ones, so the best."""


class Walk(NamedTuple):
    """The position of a walk through ``n`` jobs.

    ``profiles[n + 1, 2, space]``: what the first jobs of the prefix leave, by depth.  ``order``,
    ``starts``: ``[n]``, the prefix. ``used``, ``following``: ``[n + 1]``, by depth, discrepancies
    so far and the next child to try.  ``values[n + 1, 2]``: of the prefix, by depth.
    ``is_taken[n]``: whether a job is in the prefix, except at its last place.  ``best[2]``: the
    best value so far.
    """

    profiles: Int64Array
    order: Int64Array
    starts: Int64Array
    used: Int64Array
    following: Int64Array
    values: Int64Array
    is_taken: BoolArray
    best: Int64Array


@kernel
def slowdown(
    jobs: RecordArray, job: int, start: int, now: int, share: int, least: int
) -> tuple[int, int]:
    """Return as a fraction the slowdown of a job that starts at ``start``, over the time in which
    it has the machine (rule 9)."""
    estimate = jobs[job].estimate
    age = now - jobs[job].submit
    return int(age * share + 1000 * (start + estimate - now)), int(share * max(estimate, least))


@kernel
def _worth(
    rules: RecordArray, jobs: RecordArray, job: int, start: int, now: int
) -> tuple[int, int]:
    """Return what a job adds to the value of an order."""
    if rules[0].objective == EXCESS:
        wait, estimate = start - jobs[job].submit, jobs[job].estimate
        response, least = wait + estimate, max(estimate, rules[0].least)
        # In two parts, so that nothing exceeds 64 bits.
        millionths = response // least * 1_000_000 + response % least * 1_000_000 // least
        return int(max(wait - rules[0].bound, 0)), int(millionths)
    over, under = slowdown(jobs, job, start, now, rules[0].share, rules[0].least)
    return max(1, -(-over // under)), 0


@kernel
def _keep(
    rules: RecordArray,
    jobs: RecordArray,
    order: Int64Array,
    starts: Int64Array,
    now: int,
    value: Int64Array,
    profile: Int64Array,
    counts: RecordArray,
    found: Int64Array,
    facts: RecordArray,
) -> None:
    """Keep a complete order that is better than all before it."""
    place = counts[0].found % KEPT
    counts[0].found += 1
    end, response = now, 0
    for at in range(jobs.shape[0]):
        job = order[at]
        found[place, at] = job
        end = max(end, starts[at] + jobs[job].booked)
        response += (now - jobs[job].submit) * rules[0].share + 1000 * (
            starts[at] + jobs[job].estimate - now
        )
    facts[place].first, facts[place].second, facts[place].end = value[0], value[1], end
    # What is booked until then; the last segment has the whole machine free.
    count = profile[0, 0]
    procs, area = profile[FREE, count], 0
    for segment in range(1, count + 1):
        begin = max(profile[TIME, segment], now)
        until = min(profile[TIME, segment + 1], end) if segment < count else end
        if until > begin:
            area += (procs - profile[FREE, segment]) * (until - begin)
    facts[place].area = area
    facts[place].response = response


@kernel
def _is_less(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] or (one[0] == other[0] and one[1] < other[1])


@kernel
def _with(
    rules: RecordArray, value: tuple[int, int], worth: tuple[int, int], end: int
) -> tuple[int, int]:
    """Return a value with one more job, which ends at ``end``."""
    if rules[0].objective == SLOWDOWN_THEN_END:
        return value[0] + worth[0], max(value[1], end)
    return value[0] + worth[0], value[1] + worth[1]


@kernel
def _hole(
    profiles: Int64Array, jobs: RecordArray, order: Int64Array, starts: Int64Array, now: int
) -> tuple[int, int]:
    """Return which place of an order could be shifted into a hole, and when the hole begins; -1 for
    none (rule 14)."""
    for at in range(jobs.shape[0]):
        job, start, begin = order[at], starts[at], -1
        procs, estimate = jobs[job].procs, jobs[job].estimate
        for segment in range(1, profiles[at, 0, 0] + 1):
            since, is_free = (
                max(profiles[at, TIME, segment], now),
                profiles[at, FREE, segment] >= procs,
            )
            if begin >= 0 and not is_free:
                length = since - begin
                if since <= start and length < estimate and 2 * estimate <= 3 * length:
                    return at, begin
                begin = -1
            elif begin < 0 and is_free:
                begin = int(since)
            if since >= start:
                break
    return -1, 0


@kernel
def _spent(rules: RecordArray, counts: RecordArray) -> int:
    """Return the count that the budget limits."""
    return int(counts[0].nodes if rules[0].counts_nodes else counts[0].iterations)


@allocating_kernel
def search(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    rules: RecordArray,
    counts: RecordArray,
    found: Int64Array,
    facts: RecordArray,
) -> None:
    """Search an order of the jobs near their own.

    ``base``: the profile on which they are placed, from ``now`` on; it is not changed.  ``counts``:
    ``[1]`` of ``SEARCHED``, which the search increases (``found`` must be 0 before).  ``found``:
    ``[KEPT, n]``: receives the last orders that were better than all before them, as indices into
    ``jobs``; number k is in row k modulo ``KEPT``. ``facts``: ``[KEPT]`` of ``FOUND_ORDER``:
    receives the facts of these orders.
    """
    count = jobs.shape[0]
    space = base[0, 0] + 2 * count + 4
    walk = Walk(
        np.empty((count + 1, 2, space), np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.zeros(count + 1, np.int64),
        np.zeros(count + 1, np.int64),
        np.zeros((count + 1, 2), np.int64),
        np.zeros(count, np.bool_),
        np.full(2, FOREVER, np.int64),
    )
    copy_into(walk.profiles[0], base)
    if rules[0].objective == SLOWDOWN_THEN_END:
        walk.values[0, 1] = now
    until = _spent(rules, counts) + rules[0].budget
    for wave in range(1 if rules[0].walk == LEX else count):
        depth = 0
        walk.following[0] = 0
        while depth >= 0:
            job = _next_child(
                rules[0].walk, wave, depth, walk.used[depth], walk.is_taken, walk.following[depth]
            )
            if job < 0:
                depth -= 1
                if depth >= 0:
                    walk.is_taken[walk.order[depth]] = False
                continue
            if _spent(rules, counts) >= until and counts[0].found:
                return
            walk.following[depth] = job + 1
            if _place(now, jobs, rules, walk, depth, job, counts):
                continue
            if depth + 1 < count:
                depth += 1
                continue
            counts[0].iterations += 1
            walk.best[0], walk.best[1] = walk.values[count, 0], walk.values[count, 1]
            _keep(
                rules,
                jobs,
                walk.order,
                walk.starts,
                now,
                walk.best,
                walk.profiles[count],
                counts,
                found,
                facts,
            )
            if rules[0].shifts:
                scratch = np.empty((2, space), np.int64), np.empty((2, count), np.int64)
                _shift(now, jobs, rules, walk, *scratch, counts, found, facts)


@kernel
def _place(
    now: int,
    jobs: RecordArray,
    rules: RecordArray,
    walk: Walk,
    depth: int,
    job: int,
    counts: RecordArray,
) -> bool:
    """Place a job after a prefix; return whether that is a dead end: no better than the best
    complete order, and cut."""
    start = earliest(walk.profiles[depth], jobs[job].procs, jobs[job].booked, now)
    end = start + jobs[job].booked
    counts[0].nodes += 1
    walk.order[depth], walk.starts[depth] = job, start
    worth = _worth(rules, jobs, job, start, now)
    first, second = _with(rules, (walk.values[depth, 0], walk.values[depth, 1]), worth, end)
    left = len(walk.order) - depth - 1
    least = 0 if rules[0].objective == EXCESS else left
    is_no_better = not _is_less((first + least, second), (walk.best[0], walk.best[1]))
    if is_no_better and (rules[0].cuts or left == 0):
        counts[0].iterations += 1
        counts[0].pruned += left > 0
        return True
    walk.values[depth + 1, 0], walk.values[depth + 1, 1] = first, second
    copy_into(walk.profiles[depth + 1], walk.profiles[depth])
    add(walk.profiles[depth + 1], start, end, -jobs[job].procs)
    if left:
        walk.used[depth + 1] = walk.used[depth] + (not _is_first(walk.is_taken, job))
        walk.is_taken[job] = True
        walk.following[depth + 1] = 0
    return False


@kernel
def _is_first(is_taken: BoolArray, job: int) -> bool:
    """Return whether all jobs before this one are taken."""
    first = 0
    while first < job and is_taken[first]:
        first += 1
    return first == job


@kernel
def _next_child(
    walk: int, wave: int, depth: int, used: int, is_taken: BoolArray, begin: int
) -> int:
    """Return the next job, from ``begin`` on, with which a wave continues at a depth (from 0); -1
    for none."""
    is_first = _is_first(is_taken, begin)
    count = len(is_taken)
    left = count - depth - 1
    for job in range(begin, count):
        if is_taken[job]:
            continue
        if walk == ILDS:
            may = 0 <= wave - used - (not is_first) <= max(left - 1, 0)
        else:
            may = walk == LEX or depth < wave - 1 or (depth == wave - 1) != is_first
        if may:
            return job
        is_first = False
    return -1


@kernel
def _shift(
    now: int,
    jobs: RecordArray,
    rules: RecordArray,
    walk: Walk,
    profile: Int64Array,
    changed: Int64Array,
    counts: RecordArray,
    found: Int64Array,
    facts: RecordArray,
) -> None:
    """Try the order in which a job moves into a hole that is slightly too short; keep it if it is
    better (rule 14).

    ``profile``, ``changed``: scratch, of the size of a profile of the walk, and ``[2, n]``.
    """
    at, hole = _hole(walk.profiles, jobs, walk.order, walk.starts, now)
    if at < 0:
        return
    # The job moves right after those that start before the hole.
    order, starts, length = changed[0], changed[1], 0
    for place in range(at):
        if walk.starts[place] < hole:
            order[length] = walk.order[place]
            length += 1
    order[length] = walk.order[at]
    length += 1
    for place in range(at):
        if walk.starts[place] >= hole:
            order[length] = walk.order[place]
            length += 1
    for place in range(length, len(order)):
        order[place] = walk.order[place]
    value = place_in_order(rules, jobs, order, now, walk.profiles[0], profile, starts)
    if _is_less(value, (walk.best[0], walk.best[1])):
        walk.best[0], walk.best[1] = value
        _keep(rules, jobs, order, starts, now, walk.best, profile, counts, found, facts)


@kernel
def place_in_order(
    rules: RecordArray,
    jobs: RecordArray,
    order: Int64Array,
    now: int,
    base: Int64Array,
    profile: Int64Array,
    starts: Int64Array,
) -> tuple[int, int]:
    """Place the jobs of an order one after another; return their value.  ``profile`` receives what
    they leave of ``base``."""
    copy_into(profile, base)
    value = (0, now if rules[0].objective == SLOWDOWN_THEN_END else 0)
    for at in range(len(order)):
        job = order[at]
        starts[at] = start = book(profile, jobs[job].procs, jobs[job].booked, now)
        value = _with(rules, value, _worth(rules, jobs, job, start, now), start + jobs[job].booked)
    return value


@allocating_kernel
def merged(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    line: Int64Array,
    rules: RecordArray,
    order: Int64Array,
) -> None:
    """Write an order: always next the job with the largest slowdown if placed now, of those in
    ``line`` only the first (rule 11).

    ``line``: indices into ``jobs`` of those that keep their order relative to each other, in that
    order.  ``order``: ``[n]``, receives indices into ``jobs``.
    """
    count, following = jobs.shape[0], 0
    profile = copied(base, count)
    is_out = np.zeros(count, np.bool_)
    for job in line:
        is_out[job] = True
    for at in range(count):
        if following < len(line):
            is_out[line[following]] = False
        best, best_start, best_over, best_under = -1, 0, 0, 1
        for job in range(count):
            if is_out[job]:
                continue
            start = earliest(profile, jobs[job].procs, jobs[job].booked, now)
            over, under = slowdown(jobs, job, start, now, rules[0].share, rules[0].least)
            over = max(over, under)  # a slowdown is never below 1
            if best < 0 or is_less(best_over, best_under, over, under):
                best, best_start, best_over, best_under = job, start, over, under
        is_out[best] = True
        if following < len(line) and line[following] == best:
            following += 1
        order[at] = best
        add(profile, best_start, best_start + jobs[best].booked, -jobs[best].procs)
