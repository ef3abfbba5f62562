"""The plan of conservative backfilling: a reservation for every queued job, kept between passes.

Source: Feitelson and Weil 1998, sections 2.1 and 2.2; the order of events at one instant is that of
docs/design.md.

A job is a *row*: its number in order of sequence.  ``compress`` is one sweep over the queue in
which each job is lifted out and put back at the earliest feasible instant.

**What a sweep may skip.**  A queued job stands at the earliest instant that was feasible when the
sweep last looked at it.  It can move only if processors were *released* since, at an instant before
its start, and only if enough of them are free there.  So the plan records the spans released since
the last sweep (and, during one, adds those that moved jobs leave behind).  A sweep looks only at
jobs that start after the earliest span and need no more than the most that is free in any of them;
the search begins one duration before the earliest. Within a sweep, jobs of equal shape (processors,
duration) share results.  The next job of a shape resumes a search that found nothing up to some
instant.  A job planned for the same instant as the previous one of its shape is not searched at
all, unless processors were released in between.  Queues of thousands of jobs are mostly arrays and
campaigns, so this shortens a sweep. The plain sweep of the definition, in the tests, gives the same
starts, microsecond for microsecond.

The arrays of a plan are in :class:`PlanTables`; kernels take them under the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.entries import uncompiled
from qbatch.planning.kernels.jit import allocating_kernel, inlined_kernel, kernel
from qbatch.planning.kernels.order import sorted_by
from qbatch.planning.kernels.profile import (
    FOREVER,
    FREE,
    TIME,
    add,
    book,
    booked,
    forget_before,
    highest_between,
    new_profile,
    segment_at,
    window_between,
)
from qbatch.planning.kernels.tables import (
    NO_JOB,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
    record,
)
from qbatch.planning.kernels.types import Int64Array, RecordArray

PLANNED = record("procs", "booked", "row", "start", "shape_place")
"""A waiting row (``row`` negative: it has left), how long it books, its planned start, and the
index of its shape."""

SHAPE = record(
    "procs",
    "booked",
    "bound",  # no window of it begins before this instant.
    "seen",  # the number of releases that ``bound`` takes into account.
    "sweep",  # the sweep of these results.
    "last",  # the planned start of its last job that the sweep looked at and did not move.
)
"""The results for jobs of equal shape."""

SPAN = record("begin", "end")
"""A span in which processors were released."""

RELEASES = 1024
"""The number of released spans that are kept one by one; more are joined into one that covers
them."""

IN_USE = record("queued", "gone", "starts", "released", "shapes", "sweeps")
"""The numbers of entries of a plan: of the queue, of its rows that have left, of the heap, of the
released spans, of the known shapes.  Then the number of sweeps made."""


class PlanTables(NamedTuple):
    """The arrays of a plan for ``R`` jobs.

    ``queue[R]`` of ``PLANNED``: the waiting rows in order of arrival.  ``place[R]``: the index of a
    row in the queue, negative if it is not there.  ``shapes[R]`` of ``SHAPE``, and ``table[2^k]``,
    the hash table that finds them.  ``starts[., 2]``: a heap of planned starts; outdated entries
    are skipped.  ``released[RELEASES]`` of ``SPAN``: spans released since the last sweep.
    ``counts[1]`` of ``IN_USE``.  ``profile``: the processors that all reservations and running
    jobs leave.
    """

    queue: RecordArray
    place: Int64Array
    shapes: RecordArray
    table: Int64Array
    starts: Int64Array
    released: RecordArray
    counts: RecordArray
    profile: Int64Array


@kernel
def queued(counts: RecordArray) -> int:
    """Return the number of waiting rows."""
    return int(counts[0].queued - counts[0].gone)


@allocating_kernel
def waiting_places(queue: RecordArray, counts: RecordArray) -> Int64Array:
    """Return the indices of the queue at which a row waits, in order of arrival."""
    found = np.empty(queued(counts), np.int64)
    count = 0
    for place in range(counts[0].queued):
        if queue[place].row >= 0:
            found[count] = place
            count += 1
    return found


@kernel
def _holds(queue: RecordArray, place: Int64Array, starts: Int64Array, entry: int) -> bool:
    where = place[starts[entry, heap.ROW]]
    return bool(where >= 0 and queue[where].start == starts[entry, heap.INSTANT])


@kernel
def _note_start(
    queue: RecordArray,
    place: Int64Array,
    starts: Int64Array,
    counts: RecordArray,
    where: int,
    start: int,
) -> None:
    """Set the planned start of the row at an index of the queue."""
    queue[where].start = start
    if counts[0].starts == starts.shape[0]:
        kept = 0
        for entry in range(counts[0].starts):
            if _holds(queue, place, starts, entry):
                heap.push(starts, kept, starts[entry, heap.INSTANT], starts[entry, heap.ROW])
                kept += 1
        counts[0].starts = kept
    heap.push(starts, counts[0].starts, start, queue[where].row)
    counts[0].starts += 1


@kernel
def release(
    released: RecordArray,
    counts: RecordArray,
    profile: Int64Array,
    start: int,
    end: int,
    amount: int,
) -> None:
    """Give back ``amount`` over ``[start, end)`` and record the span for the next sweep."""
    if end <= start:
        return
    add(profile, start, end, amount)
    note_release(released, counts, start, end)


@kernel
def note_release(released: RecordArray, counts: RecordArray, start: int, end: int) -> None:
    """Record that processors were released in ``[start, end)``."""
    if counts[0].released == RELEASES:
        for span in range(RELEASES):
            start = min(start, released[span].begin)
            end = max(end, released[span].end)
        counts[0].released = 0
        # The counts of releases so far are no longer valid.
        counts[0].sweeps += 1
    released[counts[0].released].begin = start
    released[counts[0].released].end = end
    counts[0].released += 1


@kernel
def _slot(table: Int64Array, procs: int, duration: int) -> int:
    return int(
        (procs * 1_000_003 ^ (duration // 1_000_000) * 7_919 ^ duration) & (table.shape[0] - 1)
    )


@allocating_kernel
def rehashed(shapes: RecordArray, count: int) -> Int64Array:
    """Return a hash table for ``count`` known shapes: its length is a power of two, at least twice
    that of ``shapes``."""
    slots = 64
    while slots < 2 * shapes.shape[0]:
        slots *= 2
    table, mask = np.full(slots, -1, np.int64), slots - 1
    for shape in range(count):
        slot = _slot(table, shapes[shape].procs, shapes[shape].booked)
        while table[slot] >= 0:
            slot = (slot + 1) & mask
        table[slot] = shape
    return table


@kernel
def _shape_of(
    shapes: RecordArray, table: Int64Array, counts: RecordArray, procs: int, duration: int
) -> int:
    """Return the number of the shape, adding it if it is new."""
    mask = table.shape[0] - 1
    slot = _slot(table, procs, duration)
    while table[slot] >= 0:
        shape = table[slot]
        if shapes[shape].procs == procs and shapes[shape].booked == duration:
            return int(shape)
        slot = (slot + 1) & mask
    shape = counts[0].shapes
    counts[0].shapes = shape + 1
    table[slot] = shape
    shapes[shape].procs, shapes[shape].booked, shapes[shape].sweep = procs, duration, -1
    return int(shape)


@kernel
def _earlier_start(
    profile: Int64Array, procs: int, duration: int, planned: int, bound: int, latest: int, now: int
) -> int:
    """Return the earliest start of a row if it were lifted out, or its planned start if there is no
    earlier one.

    ``bound``: no window that ends before the planned start begins before it.  ``latest``: none
    begins at or after it, because no processors were released there.
    """
    found = planned
    if bound < min(planned, latest):
        found = window_between(profile, procs, duration, bound, min(planned, latest), planned)
        if found == latest:
            found = planned
        if bound < found < planned:
            return int(found)
    # The run of free processors that ends at the row's own reservation may begin before the bound.
    segment = segment_at(profile, found)
    if profile[TIME, segment] == found:
        segment -= 1
    while segment >= 1 and found > now and profile[FREE, segment] >= procs:
        found = max(profile[TIME, segment], now)
        segment -= 1
    return int(found)


@kernel
def enqueue(
    queue: RecordArray,
    place: Int64Array,
    shapes: RecordArray,
    table: Int64Array,
    starts: Int64Array,
    counts: RecordArray,
    profile: Int64Array,
    row: int,
    procs: int,
    estimate: int,
    now: int,
) -> int:
    """Add a row to the queue with the earliest reservation that moves no other job; return its
    planned start."""
    duration = booked(estimate)
    where = counts[0].queued
    counts[0].queued = where + 1
    queue[where].row, queue[where].procs, queue[where].booked = row, procs, duration
    queue[where].shape_place = _shape_of(shapes, table, counts, procs, duration)
    place[row] = where
    start = book(profile, procs, duration, now)
    _note_start(queue, place, starts, counts, where, start)
    return start


@allocating_kernel
def compress(
    queue: RecordArray,
    place: Int64Array,
    shapes: RecordArray,
    starts: Int64Array,
    released: RecordArray,
    counts: RecordArray,
    profile: Int64Array,
    by_start: bool,
    now: int,
) -> None:
    """Put the waiting rows, one after another, at their earliest feasible instants.

    The caller ensures that the profile has space for two additions per waiting row.

    ``by_start``: in order of the planned starts before the sweep, ties by sequence, not in order of
    arrival.  Lifting jobs out and putting them back one by one then equals placing all again in
    that order on a profile of the running jobs: a later job does not prevent an earlier start.  So
    no job is delayed, and the paper's fallback never acts.
    """
    order = waiting_places(queue, counts)
    if by_start:
        planned_starts = np.empty(order.shape[0], np.int64)
        for entry in range(order.shape[0]):
            planned_starts[entry] = queue[order[entry]].start
        order = sorted_by(planned_starts, order)
    earliest_released, latest_released, most_free = FOREVER, now, 0
    for span in range(counts[0].released):
        start = max(released[span].begin, now)
        if start < released[span].end:
            earliest_released = min(earliest_released, start)
            latest_released = max(latest_released, released[span].end)
            most_free = max(most_free, highest_between(profile, start, released[span].end))
    counts[0].released = 0
    counts[0].sweeps += 1
    for where in order:
        procs = queue[where].procs
        planned = queue[where].start
        if procs > most_free or planned <= earliest_released:
            continue
        shape = queue[where].shape_place
        is_known = shapes[shape].sweep == counts[0].sweeps
        if is_known and shapes[shape].seen == counts[0].released and shapes[shape].last == planned:
            continue
        duration = queue[where].booked
        if is_known:
            bound = shapes[shape].bound
            for span in range(shapes[shape].seen, counts[0].released):
                bound = min(bound, released[span].begin - duration + 1)
            bound = max(bound, now)
            start = _earlier_start(profile, procs, duration, planned, bound, latest_released, now)
        else:
            # Anything that became free for this row begins less than its duration before the first
            # release.
            bound = max(earliest_released - duration + 1, now)
            last = min(planned, latest_released)
            start = window_between(profile, procs, duration, bound, last, planned)
            if start == last:
                start = planned
        shapes[shape].sweep = counts[0].sweeps
        shapes[shape].seen = counts[0].released
        # No window of this shape begins before this start: the search would have found it.
        shapes[shape].bound = max(bound, start)
        shapes[shape].last = start
        if start == planned:
            continue
        left = max(planned, start + duration)
        add(profile, start, min(start + duration, planned), -procs)
        add(profile, left, planned + duration, procs)
        _note_start(queue, place, starts, counts, where, start)
        note_release(released, counts, left, planned + duration)
        earliest_released = min(earliest_released, left)
        latest_released = max(latest_released, planned + duration)
        most_free = max(most_free, highest_between(profile, left, planned + duration))


@allocating_kernel
def replan(
    queue: RecordArray,
    place: Int64Array,
    starts: Int64Array,
    counts: RecordArray,
    profile: Int64Array,
    now: int,
) -> None:
    """Drop all reservations and place the queue again in order of arrival; this may break promises.

    The paper's "new round of backfilling" (section 2.1): it violates guarantees, Fig. 4 shows how.
    """
    for where in waiting_places(queue, counts):
        start = queue[where].start
        add(profile, start, start + queue[where].booked, queue[where].procs)
    counts[0].released = 0
    place_anew(queue, place, starts, counts, profile, now)


@allocating_kernel
def place_anew(
    queue: RecordArray,
    place: Int64Array,
    starts: Int64Array,
    counts: RecordArray,
    profile: Int64Array,
    now: int,
) -> None:
    """Give the whole queue, in order of arrival, the earliest reservations on a profile that
    contains none of theirs."""
    counts[0].starts = 0
    for where in waiting_places(queue, counts):
        start = book(profile, queue[where].procs, queue[where].booked, now)
        _note_start(queue, place, starts, counts, where, start)


@kernel
def next_start(
    queue: RecordArray, place: Int64Array, starts: Int64Array, counts: RecordArray
) -> int:
    """Return the earliest planned start, or ``FOREVER``."""
    count = counts[0].starts
    while count > 0 and not _holds(queue, place, starts, 0):
        heap.pop(starts, count)
        count -= 1
    counts[0].starts = count
    return int(starts[0, heap.INSTANT]) if count > 0 else FOREVER


@kernel
def take_due(
    queue: RecordArray, place: Int64Array, starts: Int64Array, counts: RecordArray, now: int
) -> int:
    """Remove one row that is planned for ``now`` from the queue, least row first; ``NO_JOB`` if
    none is left.

    The processors stay booked: the job runs in its reservation.
    """
    if next_start(queue, place, starts, counts) != now:
        return NO_JOB
    row = int(starts[0, heap.ROW])
    heap.pop(starts, counts[0].starts)
    counts[0].starts -= 1
    leave_queue(queue, place, counts, row)
    return row


@kernel
def hand_out(
    queue: RecordArray,
    place: Int64Array,
    starts: Int64Array,
    counts: RecordArray,
    promises: Int64Array,
    now: int,
    news: Int64Array,
    due: Int64Array,
) -> tuple[int, int, int]:
    """End a pass: make new promises, and move all due rows to ``due`` (:func:`take_due`).

    ``promises``: by row, the promised start.  ``news``: ``[n, 2]``, receives the rows with a
    planned start earlier than promised, in order of arrival, and that start.

    Returns:
        The number of new promises and of due rows, and the next start.
    """
    promised = count = 0
    for where in range(counts[0].queued):
        row, start = queue[where].row, queue[where].start
        if row >= 0 and start < promises[row]:
            promises[row] = news[promised, 1] = start
            news[promised, 0] = row
            promised += 1
    while True:
        row = take_due(queue, place, starts, counts, now)
        if row == NO_JOB:
            return promised, count, next_start(queue, place, starts, counts)
        due[count] = row
        count += 1


@kernel
def leave_queue(queue: RecordArray, place: Int64Array, counts: RecordArray, row: int) -> None:
    """Remove a row from the queue; its booking stays."""
    queue[place[row]].row = NO_JOB
    place[row] = NO_JOB
    counts[0].gone += 1
    if counts[0].gone > 16 and 4 * counts[0].gone > counts[0].queued:
        kept = 0
        for where in range(counts[0].queued):
            other = queue[where].row
            if other >= 0:
                queue[kept] = queue[where]
                place[other] = kept
                kept += 1
        counts[0].queued = kept
        counts[0].gone = 0


COMPRESS_NONE, COMPRESS_ARRIVAL, COMPRESS_START, COMPRESS_SCRATCH = 0, 1, 2, 3
"""The compression of the plan when a job ends before its estimate."""


def new_plan(rows: int, procs: int, now: int) -> PlanTables:
    """Return an empty plan with space for ``rows`` rows, on a machine on which no job runs."""
    shapes = np.zeros(rows, SHAPE)
    return PlanTables(
        queue=np.zeros(rows, PLANNED),
        place=np.full(rows, NO_JOB, np.int64),
        shapes=shapes,
        table=uncompiled(rehashed)(shapes, 0),
        starts=np.zeros((2 * rows + 64, 2), np.int64),
        released=np.zeros(RELEASES, SPAN),
        counts=np.zeros(1, IN_USE),
        # Each booking makes two breakpoints, and a sweep up to four more per job.
        profile=uncompiled(new_profile)(procs, now, 6 * rows + 64),
    )


@cache
def conservative(compression: int) -> Callable[..., int]:
    """Return the ``decide`` of conservative backfilling with one way of compressing the plan."""

    @inlined_kernel
    def decide(
        instant: Instant,
        jobs: JobColumns,
        state: StateTables,
        done: ScheduleTable,
        memory: PlanTables,
    ) -> int:
        queue, place, shapes, table, starts, released, counts, profile = memory
        now, start, estimate, promise = instant.now, done.start, jobs.estimate, done.promise
        forget_before(profile, now)
        is_early = False
        for entry in range(instant.ended):
            row = state.ended[entry]
            release(
                released, counts, profile, now, start[row] + booked(estimate[row]), jobs.procs[row]
            )
            is_early = is_early or now < start[row] + estimate[row]
        if is_early and queued(counts) > 0:
            if compression == COMPRESS_SCRATCH:
                replan(queue, place, starts, counts, profile, now)
                for where in range(counts[0].queued):
                    row = queue[where].row
                    if row >= 0:
                        promise[row] = min(promise[row], queue[where].start)
            elif compression != COMPRESS_NONE:
                compress(
                    queue,
                    place,
                    shapes,
                    starts,
                    released,
                    counts,
                    profile,
                    compression == COMPRESS_START,
                    now,
                )
        for row in range(instant.first_arrived, instant.arrived):
            done.first_promise[row] = enqueue(
                queue,
                place,
                shapes,
                table,
                starts,
                counts,
                profile,
                row,
                jobs.procs[row],
                estimate[row],
                now,
            )
            promise[row] = done.first_promise[row]
        count = 0
        while True:
            row = take_due(queue, place, starts, counts, now)
            if row == NO_JOB:
                break
            promise[row] = min(promise[row], now)
            state.started[count] = row
            count += 1
        state.counts[0].timer = next_start(queue, place, starts, counts)
        return count

    return cast(Callable[..., int], decide)
