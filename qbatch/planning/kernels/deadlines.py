"""Admission with deadlines on one pool: how QoPS, MSB, MRT and slack-based backfilling search a
plan that admits a job.

Source: docs/spec/papers.md section 2, exact in 2.8 (its rules are cited here); Islam et al. 2003
for QoPS, Figs. 1 to 3.

A plan is ``jobs[space]`` of ``PLANNED_JOB``: its first ``count`` slots are the accepted waiting
jobs in order of (planned start, row), slot ``count`` is the new job.  ``weights`` holds the
priority of each slot (slack-based backfilling only).  ``base`` is the profile that the running jobs
leave.  A search writes the planned start of every slot to ``planned`` and returns whether it found
a plan in which no job starts after its ``latest``; ``jobs`` stays as it was.

Times are integer microseconds.  A booking lasts ``booked``; a deadline is checked as ``latest`` =
deadline - estimate, which is ``FOREVER`` without a deadline.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import sorted_by, stable_order
from qbatch.planning.kernels.profile import FOREVER, add, copied, copy_into, earliest
from qbatch.planning.kernels.tables import record
from qbatch.planning.kernels.types import BoolArray, Float64Array, Int64Array, RecordArray

PLANNED_JOB = record(
    "row",  # in the engine.
    "procs",
    "booked",  # how long it books.
    "estimate",
    "latest",  # the latest start that it accepts.
    "submit",
    "start",  # its planned start.
    "slack",  # its slack (slack-based backfilling).
)
"""A job in a plan, or for which a plan is searched; durations are in microseconds."""

LLF, EDF, BY_START = 0, 1, 2
"""Keys: least latest start first, earliest deadline first, earliest planned start first (MSB's
``ast``).  Ties by row."""

HEAD, SORTED, BOTH = 0, 1, 2
"""Where QoPS puts the new job among those that are placed again: first; by its key; by its key and,
if that fails, first."""

FRACTION, DELAY, MAKESPAN, WEIGHTED = 0, 1, 2, 3
"""Prices of a plan: delays as shares of the remaining slack, delays, the last planned end, shares
weighted by priority."""

MOST = (1 << 63) - 1
"""Larger than any price of a plan."""

SECOND = 1_000_000
"""The least divisor of a delay, a slack in microseconds."""

WITHOUT_DEADLINE = 1 << 61
"""A job with a larger allowance has no deadline any more (rule 9)."""


@kernel
def earliest_of(profile: Int64Array, jobs: RecordArray, slot: int, not_before: int) -> int:
    """Return the first instant from which the processors of a slot are free for as long as it
    books."""
    return earliest(profile, jobs[slot].procs, jobs[slot].booked, not_before)


@kernel
def reserve(profile: Int64Array, jobs: RecordArray, slot: int, start: int) -> None:
    """Book a slot from ``start`` on."""
    add(profile, start, start + jobs[slot].booked, -jobs[slot].procs)


@kernel
def unreserve(profile: Int64Array, jobs: RecordArray, slot: int, start: int) -> None:
    """Take a booking back."""
    add(profile, start, start + jobs[slot].booked, jobs[slot].procs)


@allocating_kernel
def by_key(jobs: RecordArray, count: int, key: int) -> Int64Array:
    """Return the first ``count`` slots in order of a key, ties by row."""
    by_row = stable_order(jobs["row"][:count].copy())
    keys = np.empty(count, np.int64)
    for place in range(count):
        job = jobs[by_row[place]]
        keys[place] = job.start if key == BY_START else job.latest
        if key == EDF and job.latest < FOREVER:
            keys[place] += job.estimate
    return sorted_by(keys, by_row)


@kernel
def next_position(position: int, count: int) -> int:
    """Return the position of QoPS after ``position``: how many of ``count`` waiting jobs keep their
    starts (rule 4)."""
    left = 1
    while left < count and count - (count + left - 1) // left <= position:
        left *= 2
    following = count - (count + left - 1) // left
    return following if following > position else count


@kernel
def _placed_anew(
    now: int,
    profile: Int64Array,
    jobs: RecordArray,
    count: int,
    kept: int,
    order: Int64Array,
    rank: Int64Array,
    is_open: BoolArray,
    placed: Int64Array,
    is_head: bool,
    most: int,
    planned: Int64Array,
) -> bool:
    """Place all but the first ``kept`` slots, and the new job, again; return whether all meet their
    deadlines (rule 5)."""
    length, violations, pointer = kept, 0, 0
    first = count if is_head else -1
    for slot in range(count + 1):
        is_open[rank[slot]] = slot >= kept and slot != first
    while True:
        if first >= 0:
            slot, first = first, -1
        else:
            while pointer <= count and not is_open[pointer]:
                pointer += 1
            if pointer > count:
                return True
            slot = order[pointer]
            is_open[pointer] = False
        start = earliest_of(profile, jobs, slot, now)
        if start <= jobs[slot].latest:
            reserve(profile, jobs, slot, start)
            planned[slot] = start
            placed[length] = slot
            length += 1
            continue
        violations += 1
        middle = (kept + length) // 2
        if violations > most or middle == length:
            return False
        for place in range(middle, length):
            back = placed[place]
            unreserve(profile, jobs, back, planned[back])
            is_open[rank[back]] = True
            pointer = min(pointer, rank[back])
        length = middle
        first = slot


@allocating_kernel
def qops(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    count: int,
    key: int,
    placing: int,
    most: int,
    planned: Int64Array,
) -> bool:
    """Search a plan by QoPS (rules 4 and 5): keep the beginning of the plan, place the rest again,
    move failed jobs forward.

    ``key``: ``LLF`` or ``EDF``.  ``placing``: ``HEAD``, ``SORTED`` or ``BOTH``.  ``most``: K, the
    largest number of violations at a position.
    """
    order = by_key(jobs, count + 1, key)
    rank = np.empty(count + 1, np.int64)
    for place in range(count + 1):
        rank[order[place]] = place
    is_open, placed = np.empty(count + 1, np.bool_), np.empty(count + 1, np.int64)
    profile = copied(base, count + 1)
    for attempt in range(2 if placing == BOTH else 1):
        is_head = placing == HEAD or attempt == 1
        prefix = copied(base, count + 1)
        kept = 0
        while True:
            copy_into(profile, prefix)
            for slot in range(kept):
                planned[slot], placed[slot] = jobs[slot].start, slot
            state = (order, rank, is_open, placed)
            if _placed_anew(now, profile, jobs, count, kept, *state, is_head, most, planned):
                return True
            if kept == count:
                break
            following = next_position(kept, count)
            for slot in range(kept, following):
                reserve(prefix, jobs, slot, jobs[slot].start)
            kept = following
    return False


@kernel
def _cost(
    price: int, jobs: RecordArray, weights: Float64Array, slot: int, is_asking: bool, start: int
) -> tuple[int, float]:
    """Return what a planned start adds to the price of a plan, exactly or as a share of the slack
    (rules 7 and 13).

    It is zero for the last end, which is no sum.
    """
    since = jobs[slot].submit if is_asking else jobs[slot].start
    delay = max(start - since, 0)
    if price == DELAY:
        return delay, 0.0
    if price == WEIGHTED:
        slack = jobs[slot].slack if is_asking else jobs[slot].latest - since
        return 0, weights[slot] * delay / max(slack, SECOND)
    if price == MAKESPAN or jobs[slot].latest >= FOREVER:
        return 0, 0.0
    return 0, delay / max(jobs[slot].latest - since, SECOND)


@kernel
def _exact_with(
    price: int, jobs: RecordArray, slot: int, start: int, exact: int, added: int
) -> int:
    """Return the exact part of a price with one more slot."""
    return max(exact, start + jobs[slot].estimate) if price == MAKESPAN else exact + added


SMALLER, LOOKED_AT = 8, 64
"""How many smaller slots before a slot are kept, and how many slots are searched for them."""


@allocating_kernel
def _smaller_before(jobs: RecordArray, order: Int64Array) -> Int64Array:
    """Return for each slot up to ``SMALLER`` earlier ones with no more processors and no more time,
    nearest first, then -1.

    Each slot is placed at its earliest, so it starts no earlier than such a smaller slot before it.
    """
    found = np.full((SMALLER, order.shape[0] + 1), -1)
    for place in range(order.shape[0]):
        slot, known = order[place], 0
        for before in range(place - 1, max(place - 1 - LOOKED_AT, -1), -1):
            other = order[before]
            if jobs[other].procs <= jobs[slot].procs and jobs[other].booked <= jobs[slot].booked:
                found[known, slot] = other
                known += 1
                if known == SMALLER:
                    break
    return found


@kernel
def _rest_placed(
    now: int,
    profile: Int64Array,
    jobs: RecordArray,
    weights: Float64Array,
    count: int,
    position: int,
    order: Int64Array,
    usual: Int64Array,
    least: Int64Array,
    smaller: Int64Array,
    bounds: Int64Array,
    price: int,
    exact: int,
    share: float,
    best_exact: int,
    best_share: float,
    trial: Int64Array,
) -> tuple[bool, int, int, float]:
    """Place the new job and then the slots from a position on, each at its earliest.

    The search gives up when a slot misses its deadline, or when the price is not below the best: no
    delay makes a plan cheaper.

    A slot starts no earlier than without the new job (``least``), unless a slot before it has moved
    and given processors back; and no earlier than a smaller slot before it.

    Returns:
        Whether the plan is cheaper and meets all deadlines; the next position that makes another
        plan, beyond ``count`` if none does or none can be cheaper; the price.
    """
    start = earliest_of(profile, jobs, count, now)
    added, added_share = _cost(price, jobs, weights, count, True, start)
    exact, share = _exact_with(price, jobs, count, start, exact, added), share + added_share
    if (
        start > jobs[count].latest
        or exact > best_exact
        or (exact == best_exact and share >= best_share)
    ):
        return False, count + 1, exact, share  # it starts no earlier at later positions
    reserve(profile, jobs, count, start)
    trial[count] = start
    freed, following, is_same = FOREVER, position + 1, True
    for place in range(position, count):
        slot = order[place]
        low = max(now, min(least[slot], freed - jobs[slot].booked))
        for each in range(SMALLER):
            if smaller[each, slot] < 0:
                break
            low = max(low, bounds[smaller[each, slot]])
        start = earliest_of(profile, jobs, slot, low)
        added, added_share = _cost(price, jobs, weights, slot, False, start)
        exact, share = _exact_with(price, jobs, slot, start, exact, added), share + added_share
        if (
            start > jobs[slot].latest
            or exact > best_exact
            or (exact == best_exact and share >= best_share)
        ):
            return False, following, exact, share
        reserve(profile, jobs, slot, start)
        trial[slot] = bounds[slot] = start
        if start != usual[slot]:
            freed = min(freed, usual[slot])
        # If a slot does not move, the plan is the same with the new job after it; adding a share of
        # 0 keeps the sum of doubles.
        is_same = is_same and start == usual[slot] and added_share == 0.0
        if is_same:
            following = place + 2
    return True, following, exact, share


@allocating_kernel
def insertion(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    weights: Float64Array,
    count: int,
    key: int,
    price: int,
    planned: Int64Array,
) -> bool:
    """Search the cheapest place of the new job in a fixed order, the first of equals (rules 6, 7
    and 13).

    ``key``: the order: ``BY_START`` leaves the slots before the job where they are; ``LLF`` and
    ``EDF`` place all again.  ``price``: ``FRACTION``, ``DELAY``, ``MAKESPAN`` or ``WEIGHTED``.
    """
    order = by_key(jobs, count, key)
    smaller = _smaller_before(jobs, order)
    prefix, profile = copied(base, count + 1), copied(base, count + 1)
    # Without the new job: the start of each slot, and its earliest start after the slots before it.
    usual, least = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    for place in range(count):
        slot = order[place]
        least[slot] = earliest_of(profile, jobs, slot, now)
        usual[slot] = jobs[slot].start if key == BY_START else least[slot]
        reserve(profile, jobs, slot, usual[slot])
    bounds, trial = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    exact_before, share_before = 0, 0.0
    best, best_exact, best_share = -1, MOST, np.inf
    following = 0
    for position in range(count + 1):
        if position > 0:
            slot = order[position - 1]
            start = usual[slot]
            if start > jobs[slot].latest and key != BY_START:
                break
            reserve(prefix, jobs, slot, start)
            bounds[slot] = least[slot]
            added, added_share = _cost(price, jobs, weights, slot, False, start)
            exact_before = _exact_with(price, jobs, slot, start, exact_before, added)
            share_before += added_share
        if position < following:
            continue
        copy_into(profile, prefix)
        is_best, following, exact, share = _rest_placed(
            now,
            profile,
            jobs,
            weights,
            count,
            position,
            order,
            usual,
            least,
            smaller,
            bounds,
            price,
            exact_before,
            share_before,
            best_exact,
            best_share,
            trial,
        )
        if is_best:
            best, best_exact, best_share = position, exact, share
            for place in range(count):
                slot = order[place]
                planned[slot] = usual[slot] if place < position else trial[slot]
            planned[count] = trial[count]
    return best >= 0


@allocating_kernel
def _shapes(jobs: RecordArray, count: int) -> Int64Array:
    """Return a number for each of the first ``count`` slots: equal for slots with equal processors
    and length."""
    by_length = stable_order(jobs["booked"][:count].copy())
    procs = np.empty(count, np.int64)
    for place in range(count):
        procs[place] = jobs[by_length[place]].procs
    shapes, number, before = np.empty(count, np.int64), -1, -1
    for place in stable_order(procs):
        slot = by_length[place]
        if (
            before < 0
            or jobs[slot].procs != jobs[before].procs
            or jobs[slot].booked != jobs[before].booked
        ):
            number += 1
        shapes[slot], before = number, slot
    return shapes


@kernel
def _is_strongly_feasible(
    profile: Int64Array,
    jobs: RecordArray,
    count: int,
    order: Int64Array,
    is_placed: BoolArray,
    slot: int,
    shapes: Int64Array,
    bounds: Int64Array,
    searched: Int64Array,
    turn: int,
) -> bool:
    """Return whether each job that is not placed meets its deadline if it comes next, alone (rule
    8).

    ``bounds``: for each shape an instant before which none of its jobs can start; raised to the
    earliest possible start. ``searched``: the last turn in which that was done.
    """
    for place in range(count + 1):
        other = order[place]
        if is_placed[other] or other == slot:
            continue
        shape = shapes[other]
        if searched[shape] != turn:
            bounds[shape] = earliest_of(profile, jobs, other, bounds[shape])
            searched[shape] = turn
        if bounds[shape] > jobs[other].latest:
            return False
    return True


@allocating_kernel
def mrt(
    now: int,
    base: Int64Array,
    jobs: RecordArray,
    count: int,
    key: int,
    most: int,
    planned: Int64Array,
) -> bool:
    """Search a plan depth first, each step strongly feasible, with at most ``most`` steps back
    (rule 8).

    ``key``: ``LLF`` or ``EDF``: the order in which candidates are tried.
    """
    order = by_key(jobs, count + 1, key)
    shapes = _shapes(jobs, count + 1)
    profile = copied(base, count + 1)
    is_placed = np.zeros(count + 1, np.bool_)
    # Reservations only delay: a bound holds until one is taken back.
    bounds = np.full(count + 1, now)
    searched, turn = np.zeros(count + 1, np.int64), 0
    chosen, tried = np.empty(count + 2, np.int64), np.zeros(count + 2, np.int64)
    depth = back = 0
    while depth <= count:
        found = -1
        while found < 0 and tried[depth] <= count:
            slot = order[tried[depth]]
            tried[depth] += 1
            if is_placed[slot]:
                continue
            start = earliest_of(profile, jobs, slot, bounds[shapes[slot]])
            if start <= jobs[slot].latest:
                reserve(profile, jobs, slot, start)
                turn += 1
                state = (shapes, bounds, searched, turn)
                if _is_strongly_feasible(profile, jobs, count, order, is_placed, slot, *state):
                    found = slot
                    planned[slot] = start
                    break
                unreserve(profile, jobs, slot, start)
                bounds[:] = now
            back += 1
            if back > most:
                return False
        if found >= 0:
            is_placed[found] = True
            chosen[depth] = found
            depth += 1
            tried[depth] = 0
            continue
        depth -= 1
        if depth < 0:
            return False
        slot = chosen[depth]
        is_placed[slot] = False
        unreserve(profile, jobs, slot, planned[slot])
        bounds[:] = now
        back += 1
        if back > most:
            return False
    return True
