"""Chunks on hosts: first-fit placement, and the passes of FCFS and EASY over shapes of jobs.

The shapes are those of :mod:`qbatch.planning.shapes`.  ``hosts[4, H]`` has the columns below; ``taken[2, H]`` is what a
placement takes.  First fit is not monotone (with more free, a job that fitted may not fit any more), so that
nothing learned about a shape outlives a start: each start begins a new *age*, and what was learned bears its age.
"""

from __future__ import annotations

from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.types import Int64Array

CPUS, SIZE, FREE, FREE_MEMORY = 0, 1, 2, 3
"""Rows of ``hosts``: processors and memory that a host has (0 bytes: not counted), and what of them is free."""

END, HOST, PROCS, MEMORY = 0, 1, 2, 3
"""Rows of ``pieces``: expected end, host, processors and memory of a part of a running job; in order of end."""

ROW = 0
"""First row of ``begun``: the row that starts; the others are as in ``pieces``."""

FIRST, TYPES, TOTAL, LARGEST, PLACING, EXCLUSIVE, ALL_MEMORY, VALID = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of ``heads``, as in :mod:`qbatch.planning.shapes`."""

PACK, SCATTER = 1, 2
"""Values of ``PLACING``."""


@kernel
def place_chunks(heads: Int64Array, types: Int64Array, shape: int, hosts: Int64Array, taken: Int64Array) -> bool:
    """Place a shape, first fit in host order; tell whether it fits (else ``taken`` holds nothing of use)."""
    count = hosts.shape[1]
    if heads[shape, VALID] == 0:
        return False
    for host in range(count):
        taken[0, host] = 0
        taken[1, host] = 0
    is_exclusive = heads[shape, EXCLUSIVE] != 0
    placing = heads[shape, PLACING]
    first = heads[shape, FIRST]
    last = first + (1 if placing == PACK else heads[shape, TYPES])
    for kind in range(first, last):
        left = 1 if placing == PACK else types[kind, 0]
        procs = heads[shape, TOTAL] if placing == PACK else types[kind, 1]
        memory = heads[shape, ALL_MEMORY] if placing == PACK else types[kind, 2]
        wanted = types[kind, 3]
        for host in range(count):
            if wanted >= 0 and host != wanted:
                continue
            free = hosts[FREE, host] - taken[0, host]
            if free < procs or (placing == SCATTER and taken[0, host] > 0):
                continue
            if is_exclusive and (
                hosts[FREE, host] != hosts[CPUS, host] or hosts[FREE_MEMORY, host] != hosts[SIZE, host]
            ):
                continue
            room = 1 if placing == SCATTER else min(left, free // procs)
            if memory > 0 and hosts[SIZE, host] > 0:
                room = min(room, (hosts[FREE_MEMORY, host] - taken[1, host]) // memory)
                if room <= 0:
                    continue
                taken[1, host] += room * memory
            taken[0, host] += room * procs
            left -= room
            if left == 0:
                break
        if left > 0:
            return False
    if is_exclusive:
        for host in range(count):
            if taken[0, host] > 0:
                taken[0, host] = hosts[CPUS, host]
                taken[1, host] = hosts[SIZE, host]
    return True


@kernel
def shapes_fit(
    heads: Int64Array, types: Int64Array, shapes: Int64Array, hosts: Int64Array, taken: Int64Array, fit: Int64Array
) -> None:
    """Note for each of ``shapes`` in ``fit`` whether it makes sense and fits (1 or 0)."""
    for place in range(shapes.shape[0]):
        shape = shapes[place]
        is_valid = heads[shape, VALID] != 0
        fit[place] = 1 if is_valid and place_chunks(heads, types, shape, hosts, taken) else 0


@kernel
def give(hosts: Int64Array, taken: Int64Array, sign: int) -> None:
    """Give what was taken back (``sign`` 1), or take it (-1)."""
    for host in range(hosts.shape[1]):
        hosts[FREE, host] += sign * taken[0, host]
        hosts[FREE_MEMORY, host] += sign * taken[1, host]


@kernel
def _enter(pieces: Int64Array, count: int, end: int, host: int, procs: int, memory: int) -> None:
    place = count
    while place > 0 and pieces[END, place - 1] > end:
        for column in range(4):
            pieces[column, place] = pieces[column, place - 1]
        place -= 1
    pieces[END, place] = end
    pieces[HOST, place] = host
    pieces[PROCS, place] = procs
    pieces[MEMORY, place] = memory


@kernel
def _begin(row: int, hosts: Int64Array, taken: Int64Array, begun: Int64Array, count: int) -> int:
    """Take a placement and note it as begun; return how many parts are noted now."""
    for host in range(hosts.shape[1]):
        if taken[0, host] > 0:
            begun[ROW, count] = row
            begun[HOST, count] = host
            begun[PROCS, count] = taken[0, host]
            begun[MEMORY, count] = taken[1, host]
            count += 1
    give(hosts, taken, -1)
    return count


@kernel
def find_shadow(
    heads: Int64Array,
    types: Int64Array,
    shape: int,
    pieces: Int64Array,
    count: int,
    then: Int64Array,
    taken: Int64Array,
) -> int:
    """Return the first expected end at which a shape fits, ``FOREVER`` if there is none.

    ``then`` is what is free now, and becomes what is free at that instant.
    """
    place = 0
    while place < count:
        shadow = pieces[END, place]
        while place < count and pieces[END, place] == shadow:
            then[FREE, pieces[HOST, place]] += pieces[PROCS, place]
            then[FREE_MEMORY, pieces[HOST, place]] += pieces[MEMORY, place]
            place += 1
        if place_chunks(heads, types, shape, then, taken):
            return int(shadow)
    return FOREVER


@kernel
def start_in_order(
    now: int,
    waiting: Int64Array,
    estimate: Int64Array,
    of: Int64Array,
    heads: Int64Array,
    types: Int64Array,
    hosts: Int64Array,
    taken: Int64Array,
    pieces: Int64Array,
    running: int,
    begun: Int64Array,
    facts: Int64Array,
) -> int:
    """Start jobs in order while they fit; return how many parts began, and in ``facts[0]`` how many jobs."""
    count = 0
    place = 0
    while place < waiting.shape[0]:
        row = waiting[place]
        if not place_chunks(heads, types, of[row], hosts, taken):
            break
        fresh = _begin(row, hosts, taken, begun, count)
        for part in range(count, fresh):
            end = now + estimate[row]
            _enter(pieces, running + part, end, begun[HOST, part], begun[PROCS, part], begun[MEMORY, part])
        count = fresh
        place += 1
    facts[0] = place
    return count


@kernel
def backfill(
    now: int,
    waiting: Int64Array,
    estimate: Int64Array,
    of: Int64Array,
    heads: Int64Array,
    types: Int64Array,
    hosts: Int64Array,
    then: Int64Array,
    taken: Int64Array,
    other: Int64Array,
    pieces: Int64Array,
    running: int,
    begun: Int64Array,
    learned: Int64Array,
    facts: Int64Array,
) -> int:
    """One pass of EASY on hosts; return how many parts began.

    The head is the first that does not fit; its *shadow* time the first expected end at which it does.  A job
    behind it starts if it fits now and either ends by the shadow time or leaves the head room at that time.
    ``facts``: the number of jobs that started in order, and the shadow time.  ``learned[2, shapes]``: the age at
    which a shape did not fit, and at which it stood in the head's way.
    """
    count = start_in_order(now, waiting, estimate, of, heads, types, hosts, taken, pieces, running, begun, facts)
    first = facts[0]
    total = 0
    widest = 0
    for host in range(hosts.shape[1]):
        total += hosts[FREE, host]
        widest = max(widest, hosts[FREE, host])
    if first >= waiting.shape[0] or total == 0:
        return count
    head = of[waiting[first]]
    for host in range(hosts.shape[1]):
        for column in range(4):
            then[column, host] = hosts[column, host]
    shadow = find_shadow(heads, types, head, pieces, running + count, then, taken)
    facts[1] = shadow
    age = 0
    for place in range(first + 1, waiting.shape[0]):
        row = waiting[place]
        shape = of[row]
        if learned[0, shape] == age or heads[shape, TOTAL] > total or heads[shape, LARGEST] > widest:
            continue
        finish = now + estimate[row]
        if finish > shadow and learned[1, shape] == age:
            continue
        if not place_chunks(heads, types, shape, hosts, taken):
            learned[0, shape] = age
            continue
        if finish > shadow:
            give(then, taken, -1)
            if not place_chunks(heads, types, head, then, other):
                give(then, taken, 1)
                learned[1, shape] = age
                continue
        count = _begin(row, hosts, taken, begun, count)
        age += 1
        total = 0
        widest = 0
        for host in range(hosts.shape[1]):
            total += hosts[FREE, host]
            widest = max(widest, hosts[FREE, host])
        if total == 0:
            break
    return count
