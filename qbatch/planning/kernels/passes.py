"""One scheduling pass over a pool of each memoryless policy, called by the live engine and by the
replay loop.

A pass reads the waiting rows in the order of the policy (``head`` to ``tail`` of ``waiting``) and
the free processors. If it plans ahead, it also reads the running jobs sorted by expected end
(``END`` and ``PROCS`` of ``parts``, which has space for all that may start).  It writes the rows
that start now into ``started``, in the order of their starts, enters them among the running jobs,
and returns their number.
"""

from __future__ import annotations

from typing import NamedTuple

from qbatch.planning.kernels.jit import inlined_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER, FREE, TIME, add, book, booked, fits, reset
from qbatch.planning.kernels.running import enter
from qbatch.planning.kernels.tables import END, PROCS, Instant, JobColumns
from qbatch.planning.kernels.types import Int64Array


class PoolList(NamedTuple):
    """A list scheduler of a pool: the order of the queue (:mod:`orders`), how many jobs get a
    reservation, and a working profile (:mod:`profile`) of at least three segments per running or
    reserved job."""

    order: int
    depth: int
    profile: Int64Array


@inlined_kernel
def fcfs_pass(
    rules: PoolList,
    instant: Instant,
    jobs: JobColumns,
    waiting: Int64Array,
    parts: Int64Array,
    started: Int64Array,
) -> int:
    """Start jobs in order while they fit; stop at the first that does not.  The pass needs no
    expected ends."""
    free, count = instant.free, 0
    for place in range(instant.head, instant.tail):
        row = waiting[place]
        if jobs.procs[row] > free:
            break
        free -= jobs.procs[row]
        started[count] = row
        count += 1
    return count


@inlined_kernel
def easy_pass(
    rules: PoolList,
    instant: Instant,
    jobs: JobColumns,
    waiting: Int64Array,
    parts: Int64Array,
    started: Int64Array,
) -> int:
    """EASY backfilling (Feitelson and Weil 1998, Fig. 5; Lifka 1995).

    Starts the head while it fits.  Then the *shadow time* is the earliest instant at which the head
    fits by the estimates of the running jobs; every job that ends exactly then counts toward the
    *extra* processors. The rest is scanned once: a job starts if it fits now and either ends by the
    shadow time or uses extra processors only.

    ``scan_from`` of the instant is the first index that the backfill scan has to look at, usually
    ``head``.  It is the first new arrival when only arrivals happened since the last pass and the
    order is of arrival.  A job that could not start then cannot start now: free and extra are no
    larger, the shadow time is no later.
    """
    now, free, end, running = instant.now, instant.free, instant.tail, instant.parts
    procs, estimate, ends, amounts = jobs.procs, jobs.estimate, parts[END], parts[PROCS]
    count = 0
    for place in range(instant.head, end):
        row = waiting[place]
        amount = procs[row]
        if amount > free:
            break
        free -= amount
        enter(ends, amounts, running + count, now + estimate[row], amount)
        started[count] = row
        count += 1
    head = instant.head + count
    first = max(instant.scan_from, head + 1)
    if free == 0 or first >= end:
        return count
    wanted = procs[waiting[head]]
    available, shadow, place = free, now, 0
    while available < wanted:
        if place == running + count:
            # No end of a running job makes it fit: nothing that starts now can delay it.
            shadow = FOREVER
            available = wanted + free
            break
        shadow = ends[place]
        while place < running + count and ends[place] == shadow:
            available += amounts[place]
            place += 1
    extra = available - wanted
    for place in range(first, end):
        row = waiting[place]
        amount = procs[row]
        if amount > free:
            continue
        finish = now + estimate[row]
        if finish > shadow:
            if amount > extra:
                continue
            extra -= amount
        free -= amount
        enter(ends, amounts, running + count, finish, amount)
        started[count] = row
        count += 1
        if free == 0:
            break
    return count


@inlined_kernel
def hybrid_pass(
    rules: PoolList,
    instant: Instant,
    jobs: JobColumns,
    waiting: Int64Array,
    parts: Int64Array,
    started: Int64Array,
) -> int:
    """Make one scan that gives each of the first ``depth`` jobs that cannot start a reservation.

    Depth 1 is EASY, a depth as long as the queue is conservative backfilling from scratch
    (Feitelson and Weil 1998, Fig. 2); depth 0 starts whatever fits.  A start is tested with the
    literal estimate; a reservation books at least a second.
    """
    now, free, running, depth, profile = (
        instant.now,
        instant.free,
        instant.parts,
        rules.depth,
        rules.profile,
    )
    procs, estimate, ends, amounts = jobs.procs, jobs.estimate, parts[END], parts[PROCS]
    fill_profile(profile, now, free, ends, amounts, running)
    count = reserved = 0
    for place in range(instant.head, instant.tail):
        row = waiting[place]
        amount = procs[row]
        finish = now + estimate[row]
        if amount <= free and (finish == now or fits(profile, amount, now, finish)):
            add(profile, now, finish, -amount)
            free -= amount
            enter(ends, amounts, running + count, finish, amount)
            started[count] = row
            count += 1
        elif reserved < depth:
            book(profile, amount, booked(estimate[row]), now)
            reserved += 1
        if free == 0 and reserved >= depth:
            break
    return count


@kernel
def fill_profile(
    profile: Int64Array, now: int, free: int, ends: Int64Array, amounts: Int64Array, running: int
) -> None:
    """Set the profile to that of the running jobs: ``free`` now, more at each expected end."""
    reset(profile, free, now)
    last = 1
    for place in range(running):
        if ends[place] <= profile[TIME, last]:
            profile[FREE, last] += amounts[place]
        else:
            last += 1
            profile[TIME, last] = ends[place]
            profile[FREE, last] = profile[FREE, last - 1] + amounts[place]
    profile[0, 0] = last
