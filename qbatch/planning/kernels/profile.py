"""The availability profile: how much of one resource is free at every future instant.

A profile is a step function of time, constant on half-open segments ``[time, next time)``; its last
segment extends to infinity.  One profile counts one resource: the processors of a host, or its
memory.

The segments are in one flat array in time order: ``profile[2, space]``.  Its first column holds the
number of segments; columns 1, 2, ... are the segments.  It is one plain array, because Numba counts
references to everything that a compiled call receives: records of arrays made the calls three times
slower and their compilation five times.  It is flat, because a list of blocks with their extremes
was slower when measured.  Jobs of equal shape share breakpoints, so that 20,000 reservations make
some thousand segments; reading these in sequence beats jumping.

``add(profile, start, end, -amount)`` reserves, ``add(profile, start, end, amount)`` gives back.
Equal neighbours are joined, so that reserving and giving back restores the identical function.
The caller provides space: it calls ``has_room`` first, and ``grown`` if that returns False.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.types import Int64Array

FOREVER = 1 << 62
"""An instant after every instant that a log can hold (146,000 years in microseconds)."""

SHORTEST_BOOKING = 1_000_000
"""A reservation books at least one second (docs/design.md, "The meaning of one instant")."""

TIME, FREE = 0, 1
"""Rows of a profile: the start of each segment in microseconds, and what is free in it."""


@allocating_kernel
def new_profile(amount: int, origin: int, space: int) -> Int64Array:
    """Return a profile with ``amount`` free from ``origin`` on for ever, and space for ``space``
    segments."""
    profile = np.zeros((2, max(space, 16)), np.int64)
    reset(profile, amount, origin)
    return profile


@kernel
def reset(profile: Int64Array, amount: int, origin: int) -> None:
    """Set the profile to ``amount`` from ``origin`` on for ever."""
    profile[0, 0] = 1
    profile[TIME, 1] = origin
    profile[FREE, 1] = amount


@kernel
def has_room(profile: Int64Array, additions: int) -> bool:
    """Return whether ``additions`` calls of :func:`add` fit (each makes at most two
    breakpoints)."""
    return bool(profile[0, 0] + 1 + 2 * additions <= profile.shape[1])


@allocating_kernel
def grown(profile: Int64Array) -> Int64Array:
    """Return the same profile with twice the space."""
    bigger = np.zeros((2, 2 * profile.shape[1]), np.int64)
    copy_into(bigger, profile)
    return bigger


@allocating_kernel
def copied(profile: Int64Array, additions: int) -> Int64Array:
    """Return a copy of a profile with space for ``additions`` calls of :func:`add`."""
    copy = np.empty((2, profile[0, 0] + 2 * additions + 16), np.int64)
    copy_into(copy, profile)
    return copy


@kernel
def copy_into(copy: Int64Array, profile: Int64Array) -> None:
    """Copy the function of ``profile`` into a profile that has the space."""
    for segment in range(profile[0, 0] + 1):
        copy[TIME, segment] = profile[TIME, segment]
        copy[FREE, segment] = profile[FREE, segment]


@kernel
def segment_at(profile: Int64Array, instant: int) -> int:
    """Return the number of the segment that contains ``instant``; 1 for an instant before all."""
    low = 1
    high = profile[0, 0] + 1
    while high - low > 1:
        middle = (low + high) >> 1
        if profile[TIME, middle] <= instant:
            low = middle
        else:
            high = middle
    return low


@kernel
def break_at(profile: Int64Array, instant: int) -> int:
    """Make ``instant`` the start of a segment and return that segment's number (1 if it is before
    all)."""
    segment = segment_at(profile, instant)
    if profile[TIME, segment] >= instant:
        return segment
    segment += 1
    count = profile[0, 0] + 1
    for place in range(count, segment, -1):
        profile[TIME, place] = profile[TIME, place - 1]
        profile[FREE, place] = profile[FREE, place - 1]
    profile[TIME, segment] = instant
    profile[FREE, segment] = profile[FREE, segment - 1]
    profile[0, 0] = count
    return segment


@kernel
def join_at(profile: Int64Array, segment: int) -> None:
    """Join a segment to the one before it, if the amounts are equal."""
    if segment <= 1 or profile[FREE, segment] != profile[FREE, segment - 1]:
        return
    count = profile[0, 0]
    for place in range(segment, count):
        profile[TIME, place] = profile[TIME, place + 1]
        profile[FREE, place] = profile[FREE, place + 1]
    profile[0, 0] = count - 1


@kernel
def add(profile: Int64Array, start: int, end: int, amount: int) -> None:
    """Add ``amount`` (negative to reserve) to what is free over ``[start, end)``; an empty span
    changes nothing."""
    if end <= start or amount == 0:
        return
    first = break_at(profile, start)
    last = break_at(profile, end) if end < FOREVER else profile[0, 0] + 1
    for segment in range(first, last):
        profile[FREE, segment] += amount
    if end < FOREVER:
        join_at(profile, last)
    join_at(profile, first)


@kernel
def forget_before(profile: Int64Array, instant: int) -> None:
    """Drop the segments that end at or before ``instant``; from ``instant`` on the function does
    not change."""
    drop = segment_at(profile, instant) - 1
    if drop == 0:
        return
    count = profile[0, 0]
    for place in range(drop + 1, count + 1):
        profile[TIME, place - drop] = profile[TIME, place]
        profile[FREE, place - drop] = profile[FREE, place]
    profile[0, 0] = count - drop


@kernel
def window_between(
    profile: Int64Array, amount: int, duration: int, low: int, high: int, own: int
) -> int:
    """Return the first ``t`` in ``[low, high)`` with ``amount`` free over ``[t, min(t + duration,
    own))``, else ``high``.

    With ``high`` and ``own`` at ``FOREVER`` this is the anchor search of Feitelson and Weil 1998,
    Fig. 2. With both at the planned start of a reservation of this amount and duration, it finds an
    earlier start for it, as if it had been lifted out first: its own processors count as free.
    """
    end = profile[0, 0] + 1
    segment = segment_at(profile, low)
    while True:
        while segment < end and profile[FREE, segment] < amount:
            segment += 1
        if segment == end:
            return high
        candidate = max(profile[TIME, segment], low)
        if candidate >= high:
            return high
        enough = min(candidate + duration, own)
        segment += 1
        while (
            segment < end and profile[TIME, segment] < enough and profile[FREE, segment] >= amount
        ):
            segment += 1
        if segment == end or profile[TIME, segment] >= enough:
            return int(candidate)


@kernel
def earliest(profile: Int64Array, amount: int, duration: int, not_before: int) -> int:
    """Return the first instant from ``not_before`` on from which ``amount`` stays free for
    ``duration``; ``FOREVER`` for none."""
    return int(window_between(profile, amount, duration, not_before, FOREVER, FOREVER))


@kernel
def booked(estimate: int) -> int:
    """Return the length of a reservation for this estimate, in microseconds."""
    return max(estimate, SHORTEST_BOOKING)


@kernel
def book(profile: Int64Array, amount: int, duration: int, not_before: int) -> int:
    """Reserve ``amount`` for ``duration`` at the earliest instant, and return it."""
    start = int(window_between(profile, amount, duration, not_before, FOREVER, FOREVER))
    add(profile, start, start + duration, -amount)
    return start


@kernel
def fits(profile: Int64Array, amount: int, start: int, end: int) -> bool:
    """Return whether ``amount`` is free over the whole of ``[start, end)``, or at ``start`` if the
    span is empty."""
    segment = segment_at(profile, start)
    end = max(end, start + 1)
    while segment <= profile[0, 0] and profile[TIME, segment] < end:
        if profile[FREE, segment] < amount:
            return False
        segment += 1
    return True


@kernel
def highest_between(profile: Int64Array, start: int, end: int) -> int:
    """Return the highest free amount anywhere in ``[start, end)``."""
    segment = segment_at(profile, start)
    best = profile[FREE, segment]
    while segment <= profile[0, 0] and profile[TIME, segment] < end:
        best = max(best, profile[FREE, segment])
        segment += 1
    return int(best)
