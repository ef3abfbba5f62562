"""Chunks on hosts: first-fit placement, and the passes of FCFS and EASY over shapes of jobs.

A *shape* is the request of a job in chunks: ``heads`` of ``SHAPE_HEAD`` and their ``types`` of
``CHUNK_TYPE``, kept by :mod:`qbatch.planning.shapes`.  ``hosts[2, 2, H]`` and ``pieces[4, P]``: the
hosts and the parts of running jobs of :mod:`.tables`, of processors and memory.  ``taken[2, H]``:
what a placement takes of them.  First fit is not monotone: with more free, a job that fitted may
not fit any more.  So no result for a shape outlives a start: each start begins a new *age*, and
each result has its age.
"""

from __future__ import annotations

from qbatch.planning.kernels.host_pass import all_free, most_free
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import CPUS, END, FREE, HELD, HOST, MEMORY, PROCS, THERE, record
from qbatch.planning.kernels.types import Int64Array, RecordArray
from qbatch.planning.kernels.verbs import enter_part

ROW = END
"""First row of ``begun``: the row that starts; the others are as in ``pieces``."""

SHAPE_HEAD = record(
    "first",  # the index of its first chunks in ``types``.
    "types",  # and their number.
    "procs",  # processors in total.
    "largest",  # processors of the largest part that goes to one host.
    "placing",  # its index in ``PLACINGS``.
    "is_exclusive",
    "memory",  # bytes in total.
    "is_valid",  # 0: the request contradicts itself.
    "is_tight",  # whether hosts matter to it (:func:`qbatch.planning.shapes.is_loose`).
)
"""A shape."""

CHUNK_TYPE = record("count", "procs", "memory", "host")
"""Equal chunks: their number, the processors and the memory of each, the only host that they may be
on (-1: any)."""

PACK, SCATTER = 1, 2
"""Values of ``placing``."""


@kernel
def place_chunks(
    heads: RecordArray, types: RecordArray, shape: int, hosts: Int64Array, taken: Int64Array
) -> bool:
    """Place a shape, first fit in host order; return whether it fits (else ``taken`` has no
    meaning)."""
    count = hosts.shape[2]
    if not heads[shape].is_valid:
        return False
    for host in range(count):
        taken[CPUS, host] = taken[MEMORY, host] = 0
    is_exclusive = heads[shape].is_exclusive != 0
    placing = heads[shape].placing
    first = heads[shape].first
    last = first + (1 if placing == PACK else heads[shape].types)
    for kind in range(first, last):
        left = 1 if placing == PACK else types[kind].count
        procs = heads[shape].procs if placing == PACK else types[kind].procs
        memory = heads[shape].memory if placing == PACK else types[kind].memory
        wanted = types[kind].host
        for host in range(count):
            if wanted >= 0 and host != wanted:
                continue
            free = hosts[FREE, CPUS, host] - taken[CPUS, host]
            if free < procs or (placing == SCATTER and taken[CPUS, host] > 0):
                continue
            if is_exclusive and (
                hosts[FREE, CPUS, host] != hosts[THERE, CPUS, host]
                or hosts[FREE, MEMORY, host] != hosts[THERE, MEMORY, host]
            ):
                continue
            fitting = 1 if placing == SCATTER else min(left, free // procs)
            if memory > 0 and hosts[THERE, MEMORY, host] > 0:
                fitting = min(fitting, (hosts[FREE, MEMORY, host] - taken[MEMORY, host]) // memory)
                if fitting <= 0:
                    continue
                taken[MEMORY, host] += fitting * memory
            taken[CPUS, host] += fitting * procs
            left -= fitting
            if left == 0:
                break
        if left > 0:
            return False
    if is_exclusive:
        for host in range(count):
            if taken[CPUS, host] > 0:
                taken[CPUS, host] = hosts[THERE, CPUS, host]
                taken[MEMORY, host] = hosts[THERE, MEMORY, host]
    return True


@kernel
def shapes_fit(
    heads: RecordArray,
    types: RecordArray,
    shapes: Int64Array,
    hosts: Int64Array,
    taken: Int64Array,
    fit: Int64Array,
) -> None:
    """Write to ``fit`` for each of ``shapes`` whether it is valid and fits (1 or 0)."""
    for place in range(shapes.shape[0]):
        fit[place] = 1 if place_chunks(heads, types, shapes[place], hosts, taken) else 0


@kernel
def give(hosts: Int64Array, taken: Int64Array, sign: int) -> None:
    """Give back what was taken (``sign`` 1), or take it (-1)."""
    for host in range(hosts.shape[2]):
        hosts[FREE, CPUS, host] += sign * taken[CPUS, host]
        hosts[FREE, MEMORY, host] += sign * taken[MEMORY, host]


@kernel
def _begin(row: int, hosts: Int64Array, taken: Int64Array, begun: Int64Array, count: int) -> int:
    """Take a placement and record it as begun; return the number of recorded parts."""
    for host in range(hosts.shape[2]):
        if taken[CPUS, host] > 0:
            begun[ROW, count], begun[HOST, count] = row, host
            begun[PROCS, count], begun[HELD, count] = taken[CPUS, host], taken[MEMORY, host]
            count += 1
    give(hosts, taken, -1)
    return count


@kernel
def start_in_order(
    now: int,
    waiting: Int64Array,
    estimate: Int64Array,
    of: Int64Array,
    heads: RecordArray,
    types: RecordArray,
    hosts: Int64Array,
    taken: Int64Array,
    pieces: Int64Array,
    running: int,
    begun: Int64Array,
    facts: Int64Array,
) -> int:
    """Start jobs in order while they fit; return the number of parts that began, and in
    ``facts[0]`` that of jobs."""
    count = place = 0
    while place < waiting.shape[0]:
        row = waiting[place]
        if not place_chunks(heads, types, of[row], hosts, taken):
            break
        fresh = _begin(row, hosts, taken, begun, count)
        for part in range(count, fresh):
            behind = running + part
            pieces[END, behind], pieces[HOST, behind] = now + estimate[row], begun[HOST, part]
            pieces[PROCS, behind], pieces[HELD, behind] = begun[PROCS, part], begun[HELD, part]
            enter_part(pieces, behind)
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
    heads: RecordArray,
    types: RecordArray,
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
    """Make one pass of EASY on hosts; return the number of parts that began.

    The head is the first job that does not fit; its *shadow* time is the first expected end at
    which it does.  A job behind it starts if it fits now and either ends by the shadow time or
    leaves enough for the head at that time. ``facts``: the number of jobs that started in order,
    and the shadow time.  ``learned[2, shapes]``: the age at which a shape did not fit, and the age
    at which it would have delayed the head.
    """
    count = start_in_order(
        now, waiting, estimate, of, heads, types, hosts, taken, pieces, running, begun, facts
    )
    first = facts[0]
    total, widest = all_free(hosts), most_free(hosts)
    if first >= waiting.shape[0] or total == 0:
        return count
    head = of[waiting[first]]
    for host in range(hosts.shape[2]):
        for resource in (CPUS, MEMORY):
            then[FREE, resource, host] = hosts[FREE, resource, host]
            then[THERE, resource, host] = hosts[THERE, resource, host]
    shadow = place = 0
    while True:
        if place == running + count:
            shadow = FOREVER
            break
        shadow = pieces[END, place]
        while place < running + count and pieces[END, place] == shadow:
            then[FREE, CPUS, pieces[HOST, place]] += pieces[PROCS, place]
            then[FREE, MEMORY, pieces[HOST, place]] += pieces[HELD, place]
            place += 1
        if place_chunks(heads, types, head, then, taken):
            break
    facts[1] = shadow
    age = 0
    for place in range(first + 1, waiting.shape[0]):
        row = waiting[place]
        shape = of[row]
        if learned[0, shape] == age or heads[shape].procs > total or heads[shape].largest > widest:
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
        total, widest = all_free(hosts), most_free(hosts)
        if total == 0:
            break
    return count
