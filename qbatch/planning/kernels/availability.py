"""What is free on each host over time, and when and where the chunks of a job fit (the rules are
those of docs/spec/production.md 1.3).

A job is groups of equal chunks, each chunk inside one host (:class:`.tables.Requests`).  A job
without a request is one chunk, of its own columns.  Of a group, ``k`` chunks fit a host over an
interval, where ``k`` is the least of *free // asked* over the segments of the interval and over the
resources.  Groups are placed in their order, without backtracking: what one takes is not free for
the next.  The hosts of a request are tried in file order; a job that is one chunk goes to the host
with the fewest processors free now, ties in file order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.jit import allocating_kernel, inlined_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    BEGIN,
    CPUS,
    END,
    FREE,
    GROUP,
    HOST,
    MEMORY,
    OVER,
    REQUEST,
    RESERVED,
    THERE,
    JobColumns,
    Requests,
)
from qbatch.planning.kernels.types import BoolArray, Int64Array

CHUNKS = HOST
"""The row of ``taken`` with the number of chunks on each host."""

NEVER = 2**62
"""The number of chunks left of a request that never fits, because it contradicts itself."""

ONE_CHUNK = -1
"""The group of a job without a request: one chunk of what the job's columns ask for."""


class Availability(NamedTuple):
    """The free amounts of each host, as segments of time.

    ``times[H, S]``: the begin of each segment, of which ``used[H]`` are in use (0: the host is not
    filled); the last extends for ever.  ``level[H, S, N]``: what is free in it, by resource.
    ``booked[H]``: whether something is booked there after now.
    """

    times: Int64Array
    level: Int64Array
    used: Int64Array
    booked: Int64Array


@allocating_kernel
def new_availability(hosts: int, resources: int, space: int) -> Availability:
    """Return the tables for some hosts, not filled, with space for ``space`` segments of each."""
    return Availability(
        np.empty((hosts, space), np.int64),
        np.empty((hosts, space, resources), np.int64),
        np.zeros(hosts, np.int64),
        np.zeros(hosts, np.int64),
    )


@allocating_kernel
def with_space(free: Availability, host: int) -> Availability:
    """Return tables in which a host has space for two more segments: these, or longer copies."""
    space = free.times.shape[1]
    if free.used[host] + 2 <= space:
        return free
    longer = new_availability(free.used.shape[0], free.level.shape[2], 2 * space + 2)
    for each in range(free.used.shape[0]):
        longer.used[each], longer.booked[each] = free.used[each], free.booked[each]
        for segment in range(free.used[each]):
            longer.times[each, segment] = free.times[each, segment]
            for resource in range(free.level.shape[2]):
                longer.level[each, segment, resource] = free.level[each, segment, resource]
    return longer


@inlined_kernel
def segment_at(free: Availability, host: int, instant: int) -> int:
    """Return the number of the segment that contains an instant; 0 for an instant before all."""
    low, high = 0, free.used[host]
    while high - low > 1:
        middle = (low + high) >> 1
        if free.times[host, middle] <= instant:
            low = middle
        else:
            high = middle
    return low


@kernel
def _break_at(free: Availability, host: int, instant: int) -> int:
    """Make an instant the begin of a segment; return its number (0 if it is before all)."""
    segment = segment_at(free, host, instant)
    if free.times[host, segment] >= instant:
        return segment
    segment += 1
    for place in range(free.used[host], segment, -1):
        free.times[host, place] = free.times[host, place - 1]
        for resource in range(free.level.shape[2]):
            free.level[host, place, resource] = free.level[host, place - 1, resource]
    free.times[host, segment] = instant
    for resource in range(free.level.shape[2]):
        free.level[host, segment, resource] = free.level[host, segment - 1, resource]
    free.used[host] += 1
    return segment


@kernel
def add(
    free: Availability, host: int, start: int, end: int, sign: int, table: Int64Array, column: int
) -> None:
    """Give the amounts of a part back to its host over ``[start, end)`` (``sign`` 1), or take them
    (-1).

    ``table``, ``column``: the amounts, by resource, in the rows from ``AMOUNTS`` on.  The host has
    space for two more segments.
    """
    if end <= start:
        return
    first = _break_at(free, host, start)
    last = _break_at(free, host, end) if end < FOREVER else free.used[host]
    for segment in range(first, last):
        for resource in range(free.level.shape[2]):
            free.level[host, segment, resource] += sign * table[AMOUNTS + resource, column]


@allocating_kernel
def filled(
    now: int, hosts: Int64Array, parts: Int64Array, running: int, bookings: int
) -> Availability:
    """Return new tables in which every host is filled (:func:`fill`)."""
    free = empty_for(hosts, parts, running, bookings)
    fill(np.ones(hosts.shape[2], np.bool_), free, now, hosts, parts, running)
    return free


@allocating_kernel
def empty_for(hosts: Int64Array, parts: Int64Array, running: int, bookings: int) -> Availability:
    """Return new tables, not filled, with space for the running jobs and for some bookings on each
    host."""
    counts, most = np.zeros(hosts.shape[2], np.int64), 0
    for part in range(running):
        counts[parts[HOST, part]] += 1
        most = max(most, counts[parts[HOST, part]])
    return new_availability(hosts.shape[2], hosts.shape[1], most + 2 * bookings + 4)


@kernel
def fill(
    wanted: BoolArray,
    free: Availability,
    now: int,
    hosts: Int64Array,
    parts: Int64Array,
    running: int,
) -> None:
    """Fill the tables of the wanted hosts: what is free now, and what each part of the running jobs
    gives back at its end.

    ``parts``: those of which ``running`` are in use, in order of expected end.  There is space for
    a segment for each part on a host (:func:`empty_for`).
    """
    for host in range(hosts.shape[2]):
        if wanted[host]:
            free.used[host], free.times[host, 0], free.booked[host] = 1, now, 0
            for resource in range(hosts.shape[1]):
                free.level[host, 0, resource] = hosts[FREE, resource, host]
    for part in range(running):
        host = parts[HOST, part]
        if wanted[host]:
            at, last = max(parts[END, part], now), free.used[host] - 1
            if free.times[host, last] < at:
                last += 1
                free.used[host], free.times[host, last] = last + 1, at
                for resource in range(hosts.shape[1]):
                    free.level[host, last, resource] = free.level[host, last - 1, resource]
            for resource in range(hosts.shape[1]):
                free.level[host, last, resource] += parts[AMOUNTS + resource, part]


@allocating_kernel
def change(parts: Int64Array, start: int, end: int, sign: int, free: Availability) -> Availability:
    """Give parts back to their hosts over ``[start, end)`` (``sign`` 1), or take them (-1)."""
    for part in range(parts.shape[1]):
        free = with_space(free, parts[HOST, part])
        if sign < 0:
            free.booked[parts[HOST, part]] = 1
        add(free, parts[HOST, part], start, end, sign, parts, part)
    return free


@allocating_kernel
def requests_of_none() -> Requests:
    """Return the requests of jobs that are one chunk each (:func:`.tables.no_requests`)."""
    return Requests(
        np.empty(0, np.int64),
        np.empty(0, REQUEST),
        np.empty(0, GROUP),
        np.empty((0, 0), np.int64),
        np.empty((0, 0), np.int8),
        np.empty(0, np.int64),
        np.empty((3, 0), np.int64),
    )


@inlined_kernel
def groups_of(row: int, jobs: JobColumns) -> tuple[int, int]:
    """Return the first group of a job's request, and the one after its last."""
    if jobs.requests.of.shape[0] == 0:
        return ONE_CHUNK, ONE_CHUNK + 1
    head = jobs.requests.heads[jobs.requests.of[row]]
    return head.first, head.first + head.groups


@inlined_kernel
def is_mixed(row: int, jobs: JobColumns) -> bool:
    """Return whether two groups of a job may be on one host.

    Only then may a job that did not fit fit when less is free.
    """
    if jobs.requests.of.shape[0] == 0:
        return False
    return bool(jobs.requests.heads[jobs.requests.of[row]].is_mixed != 0)


@inlined_kernel
def chunks_of(group: int, jobs: JobColumns) -> int:
    """Return the number of chunks of a group."""
    return 1 if group == ONE_CHUNK else int(jobs.requests.groups[group].count)


@inlined_kernel
def asks(
    group: int, row: int, resource: int, host: int, jobs: JobColumns, hosts: Int64Array
) -> int:
    """Return how much of a resource a chunk of a group takes on a host: what it asks for, but no
    memory if memory is not counted."""
    if resource == MEMORY and hosts[THERE, MEMORY, host] == 0:
        return 0
    if group == ONE_CHUNK:
        return int(jobs.asked[resource, row])
    return int(jobs.requests.amounts[group, resource])


@inlined_kernel
def range_of(group: int, jobs: JobColumns, hosts: int) -> tuple[int, int]:
    """Return the first of some hosts on which chunks of a group may be, and the one after the
    last."""
    if group == ONE_CHUNK:
        return 0, hosts
    return int(jobs.requests.groups[group].begin), int(jobs.requests.groups[group].end)


@inlined_kernel
def may_be_on(group: int, host: int, jobs: JobColumns) -> bool:
    """Return whether chunks of a group may be on a host at all."""
    if group == ONE_CHUNK:
        return True
    chosen = jobs.requests.groups[group].hosts
    return bool(chosen < 0 or jobs.requests.sets[chosen, host] != 0)


@inlined_kernel
def most_on(group: int, row: int, host: int, left: int, jobs: JobColumns, taken: Int64Array) -> int:
    """Return how many of the ``left`` chunks of a group may be on a host, whatever is free there.

    If the chunks of the job go to different hosts, it is one, and none where the job has a chunk.
    """
    if group == ONE_CHUNK:
        return left
    if not may_be_on(group, host, jobs):
        return 0
    if jobs.requests.heads[jobs.requests.of[row]].is_scattered:
        return 0 if taken[CHUNKS, host] > 0 else min(left, 1)
    return left


@kernel
def is_anywhere(row: int, jobs: JobColumns) -> bool:
    """Return whether a job is not bound to sets of hosts."""
    first, last = groups_of(row, jobs)
    is_found = False
    for group in range(first, last):
        is_found = is_found or group == ONE_CHUNK or jobs.requests.groups[group].hosts < 0
    return is_found


@kernel
def watch(row: int, jobs: JobColumns, watched: BoolArray) -> None:
    """Mark the hosts on which chunks of a job may be.

    A job with groups that share hosts is tried at each change of what is free (:func:`earliest`):
    all hosts are its own.
    """
    if is_mixed(row, jobs):
        for host in range(watched.shape[0]):
            watched[host] = True
    first, last = groups_of(row, jobs)
    for group in range(first, last):
        begin, end = range_of(group, jobs, watched.shape[0])
        for host in range(begin, end):
            watched[host] = watched[host] or may_be_on(group, host, jobs)


@kernel
def widen(wanted: BoolArray, jobs: JobColumns) -> None:
    """Add to some hosts all that are in one set of hosts with them, and so on.

    What happens on other hosts does not matter to jobs that may be on these.
    """
    sets, is_wider = jobs.requests.sets, True
    while is_wider:
        is_wider = False
        for each in range(sets.shape[0]):
            has_wanted, has_others = False, False
            for host in range(sets.shape[1]):
                if sets[each, host] != 0:
                    has_wanted = has_wanted or wanted[host]
                    has_others = has_others or not wanted[host]
            if has_wanted and has_others:
                is_wider = True
                for host in range(sets.shape[1]):
                    wanted[host] = wanted[host] or sets[each, host] != 0


@kernel
def opens(row: int, host: int, start: int, end: int, jobs: JobColumns) -> int:
    """Return ``start`` if no reservation keeps a job from a host over ``[start, end)``, else a
    later instant before which the host is not open to it (``FOREVER``: it never is).

    A window of another reservation keeps it out.  A job that has to be inside its own reservation
    starts in a window of it, and may end after that; a host without such windows is the server.
    """
    firsts, windows = jobs.requests.firsts, jobs.requests.windows
    head = jobs.requests.heads[jobs.requests.of[row]]
    is_inside, is_own, following, until = head.is_inside == 0, False, FOREVER, start
    for window in range(firsts[host], firsts[host + 1]):
        begin, over = windows[BEGIN, window], windows[OVER, window]
        if windows[RESERVED, window] == head.reservation:
            is_own = True
            if begin <= start < over:
                is_inside = True
            elif begin > start:
                following = min(following, begin)
        elif begin < max(end, start + 1) and over > start:
            until = max(until, over)
    return until if is_inside or not is_own else max(until, following)


@inlined_kernel
def has_windows(jobs: JobColumns) -> bool:
    """Return whether hosts are reserved at times."""
    return bool(jobs.requests.firsts.shape[0] > 0)


@inlined_kernel
def takes_whole(group: int, row: int, host: int, jobs: JobColumns, hosts: Int64Array) -> bool:
    """Return whether a job takes a host whole.  The amounts of the server, which has no processors,
    are taken one by one."""
    if group == ONE_CHUNK or hosts[THERE, CPUS, host] == 0:
        return False
    return bool(jobs.requests.heads[jobs.requests.of[row]].is_exclusive != 0)


@inlined_kernel
def _less(most: int, amount: int, asked: int) -> int:
    """Return how many times ``asked`` is in ``amount``, but at most ``most``."""
    if amount < asked:
        return 0
    return min(most, amount // asked) if most > 1 and asked > 0 else most


@inlined_kernel
def fit_now(
    group: int,
    row: int,
    host: int,
    most: int,
    jobs: JobColumns,
    hosts: Int64Array,
    taken: Int64Array,
) -> int:
    """Return how many chunks of a group fit what is free on a host now, at most ``most``.

    ``taken[AMOUNTS + N, H]``: what earlier groups of the job take (:func:`place`).
    """
    is_whole = takes_whole(group, row, host, jobs, hosts)
    for resource in range(hosts.shape[1]):
        amount = hosts[FREE, resource, host]
        if is_whole and amount != hosts[THERE, resource, host]:
            return 0
        asked = asks(group, row, resource, host, jobs, hosts)
        if asked > 0:
            most = _less(most, amount - taken[AMOUNTS + resource, host], asked)
            if most == 0:
                return 0
    return most


@inlined_kernel
def fit_over(
    group: int,
    row: int,
    host: int,
    most: int,
    start: int,
    end: int,
    needs_rise: bool,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> tuple[int, int]:
    """Return how many chunks of a group fit a host over the whole of ``[start, end)``, at most
    ``most``, and the first later instant at which more might fit from then on (``FOREVER``:
    never).

    ``needs_rise``: whether the instant is asked for.  On a host on which nothing is booked, what is
    free only grows.
    """
    is_rising = free.booked[host] == 0
    is_whole = takes_whole(group, row, host, jobs, hosts)
    segment = segment_at(free, host, start)
    least, blocking, is_first = most, segment, True
    while is_first or (segment < free.used[host] and free.times[host, segment] < end):
        here, is_first = most, False
        for resource in range(hosts.shape[1]):
            amount = free.level[host, segment, resource]
            if is_whole and amount != hosts[THERE, resource, host]:
                here = 0
            asked = asks(group, row, resource, host, jobs, hosts)
            if asked > 0 and here > 0:
                here = _less(here, amount - taken[AMOUNTS + resource, host], asked)
        if here <= least:
            least, blocking = here, segment
        if (is_rising and (here > least or least == most)) or (least == 0 and not needs_rise):
            break
        segment += 1
    after = blocking + 1
    if least == most or after >= free.used[host]:
        return least, FOREVER
    return least, free.times[host, after]


@inlined_kernel
def fitting(
    group: int,
    row: int,
    host: int,
    left: int,
    start: int,
    end: int,
    is_now: bool,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> tuple[int, bool]:
    """Return how many of the ``left`` chunks of a group may be on a host over ``[start, end)``, and
    whether what is booked or reserved there keeps out others.

    ``is_now``: they have to fit what is free now, too; then an empty interval, and a host on which
    nothing is booked, need no more than that.
    """
    most = most_on(group, row, host, left, jobs, taken)
    if most > 0 and is_now:
        most = fit_now(group, row, host, most, jobs, hosts, taken)
    most_now = most
    if most > 0 and has_windows(jobs) and opens(row, host, start, end, jobs) > start:
        most = 0
    if most > 0 and (not is_now or (end > start and free.booked[host] > 0)):
        most = fit_over(group, row, host, most, start, end, False, jobs, hosts, free, taken)[0]
    return most, most < most_now


@inlined_kernel
def clear(taken: Int64Array) -> None:
    """Take no chunk on any host.  Amounts are only of hosts with chunks."""
    for host in range(taken.shape[1]):
        if taken[CHUNKS, host] != 0:
            for field in range(CHUNKS, taken.shape[0]):
                taken[field, host] = 0


@kernel
def next_taken(host: int, taken: Int64Array) -> int:
    """Return the first host from one on where a placed job has chunks, the number of hosts for
    none.

    A loop over all hosts in a kernel that makes arrays would count references at each turn.
    """
    while host < taken.shape[1] and taken[CHUNKS, host] == 0:
        host += 1
    return host


@inlined_kernel
def place(
    row: int,
    start: int,
    end: int,
    is_now: bool,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> int:
    """Place the chunks of a job over ``[start, end)``; return how many of the first group that does
    not fit are left (0: all fit), as a negative number if bookings kept some out.

    ``taken[AMOUNTS + N, H]``: receives the number of chunks on each host in the row ``CHUNKS``, and
    what they take in the form of ``parts``.  If they do not fit, it has no meaning.  It is cleared
    first (:func:`clear`).
    """
    first, last = groups_of(row, jobs)
    clear(taken)
    if first == last:
        return NEVER
    is_kept_out = False
    for group in range(first, last):
        left = chunks_of(group, jobs)
        begin, after = range_of(group, jobs, hosts.shape[2])
        while left > 0:
            # The next host: in file order, or of those left the one with the fewest free.
            chosen, fits = -1, 0
            for host in range(begin, after):
                if chosen >= 0 and hosts[FREE, CPUS, host] >= hosts[FREE, CPUS, chosen]:
                    continue
                here, is_out = fitting(
                    group, row, host, left, start, end, is_now, jobs, hosts, free, taken
                )
                is_kept_out = is_kept_out or is_out
                if here > 0:
                    chosen, fits = host, here
                    if group != ONE_CHUNK:
                        break
            if chosen < 0:
                return -left if is_kept_out else left
            taken[CHUNKS, chosen] += fits
            for resource in range(hosts.shape[1]):
                asked = asks(group, row, resource, chosen, jobs, hosts)
                taken[AMOUNTS + resource, chosen] += fits * asked
            left -= fits
            if group != ONE_CHUNK:
                begin = chosen + 1
    for host in range(taken.shape[1]):
        if taken[CHUNKS, host] > 0 and takes_whole(first, row, host, jobs, hosts):
            for resource in range(hosts.shape[1]):
                taken[AMOUNTS + resource, host] = hosts[THERE, resource, host]
    return 0


@allocating_kernel
def each_fits(jobs: JobColumns, hosts: Int64Array) -> Int64Array:
    """Return for each job whether it fits what is free on some hosts (1 or 0)."""
    fits = np.zeros(jobs.requests.of.shape[0], np.int64)
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    free = new_availability(hosts.shape[2], hosts.shape[1], 0)
    for row in range(fits.shape[0]):
        fits[row] = 1 if place_now(row, 0, 0, jobs, hosts, free, taken) else 0
    return fits


@kernel
def left_now(
    row: int,
    start: int,
    end: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> int:
    """Place the chunks of a job over an interval that begins now; return what :func:`place`
    does."""
    return place(row, start, end, True, jobs, hosts, free, taken)


@inlined_kernel
def place_now(
    row: int,
    start: int,
    end: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> bool:
    """Place the chunks of a job over an interval that begins now (:func:`place`); return whether
    they fit."""
    return left_now(row, start, end, jobs, hosts, free, taken) == 0


@kernel
def place_over(
    row: int,
    start: int,
    end: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> bool:
    """Place the chunks of a job over an interval that need not begin now (:func:`place`); return
    whether they fit."""
    return place(row, start, end, False, jobs, hosts, free, taken) == 0


@allocating_kernel
def earliest(
    row: int,
    not_before: int,
    before: int,
    duration: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> int:
    """Return the first instant in ``[not_before, before)`` from which the chunks of a job fit for a
    duration; ``FOREVER``: there is none.  ``taken``: as for :func:`place`.

    Candidates are ``not_before`` and every later begin of a segment, in order.  Only a request with
    groups that share hosts can fit when less is free: all its candidates are tried.
    """
    if is_mixed(row, jobs):
        start = not_before
        while start < before:
            if place_over(row, start, start + duration, jobs, hosts, free, taken):
                return start
            start = min(next_begin(start, free), next_turn(start, jobs))
        return FOREVER
    first, last = groups_of(row, jobs)
    size = (last - first) * hosts.shape[2]
    fits, missing = np.zeros(size, np.int64), np.empty(last - first, np.int64)
    rises, over = np.empty((size, 2), np.int64), np.empty(size, np.int64)
    start = first_enough(
        row, not_before, before, duration, jobs, hosts, free, taken, fits, missing, rises, over
    )
    if start < FOREVER:
        place_over(row, start, start + duration, jobs, hosts, free, taken)
    return start


@kernel
def first_enough(
    row: int,
    not_before: int,
    before: int,
    duration: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
    fits: Int64Array,
    missing: Int64Array,
    rises: Int64Array,
    over: Int64Array,
) -> int:
    """Return the first instant of :func:`earliest` for a job with groups that share no hosts.

    ``fits``, by group and host, are upper bounds of the chunks that fit; at first 0.  Each holds
    until an instant in the heap ``rises``.  Before the next of them, no candidate fits while the
    bounds of a group do not add up to its chunks (``missing`` are left).  When they do, all are
    looked at again, and are exact.  ``over``: space for the bounds that do not hold any longer.
    """
    first, last = groups_of(row, jobs)
    many, count, is_exact = hosts.shape[2], 0, True
    for group in range(first, last):
        missing[group - first] = chunks_of(group, jobs)
    clear(taken)
    start = not_before if first < last else FOREVER
    while start < before:
        looks = 0
        if is_exact:
            count = 0
            for group in range(first, last):
                begin, after = range_of(group, jobs, many)
                for host in range(begin, after):
                    over[looks] = (group - first) * many + host
                    looks += 1
        while count > 0 and rises[0, heap.INSTANT] <= start:
            over[looks] = rises[0, heap.ROW]
            heap.pop(rises, count)
            count -= 1
            looks += 1
        for look in range(looks):
            bound = over[look]
            group, host = first + bound // many, bound % many
            here, rise = most_on(group, row, host, chunks_of(group, jobs), jobs, taken), FOREVER
            if here > 0 and has_windows(jobs):
                opening = opens(row, host, start, start + duration, jobs)
                if opening > start:
                    here, rise = 0, opening
            if here > 0:
                here, rise = fit_over(
                    group, row, host, here, start, start + duration, True, jobs, hosts, free, taken
                )
            missing[group - first] += fits[bound] - here
            fits[bound] = here
            if rise < FOREVER:
                heap.push(rises, count, rise, bound)
                count += 1
        is_enough = True
        for group in range(last - first):
            is_enough = is_enough and missing[group] <= 0
        if is_enough and is_exact:
            return start
        is_exact = is_enough
        if not is_enough:
            start = rises[0, heap.INSTANT] if count > 0 else FOREVER
    return FOREVER


@kernel
def next_turn(instant: int, jobs: JobColumns) -> int:
    """Return the next begin or end of a reservation after an instant, ``FOREVER`` for none."""
    following, windows = FOREVER, jobs.requests.windows
    for window in range(windows.shape[1] if has_windows(jobs) else 0):
        for turn in (windows[BEGIN, window], windows[OVER, window]):
            if turn > instant:
                following = min(following, turn)
    return following


@kernel
def next_begin(instant: int, free: Availability) -> int:
    """Return the next begin of a segment of any host after an instant, ``FOREVER`` for none."""
    following = FOREVER
    for host in range(free.used.shape[0]):
        segment = segment_at(free, host, instant)
        while segment < free.used[host] and free.times[host, segment] <= instant:
            segment += 1
        if segment < free.used[host]:
            following = min(following, free.times[host, segment])
    return following
