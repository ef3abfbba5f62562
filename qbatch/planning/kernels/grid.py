"""Availability of many hosts over time: for each segment of time, what is free on each host.

``times[space]`` holds the starts of segments, of which ``state[0]`` are in use; ``free[space, 2,
H]`` the processors and the memory that are free on each host in each segment.  The last segment
extends to infinity.  The caller keeps space for two more segments before every :func:`add_part`.
"""

from __future__ import annotations

from qbatch.planning.kernels.chunks import place_chunks
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import CPUS, FREE, MEMORY
from qbatch.planning.kernels.types import Int64Array, RecordArray


@kernel
def _break_at(times: Int64Array, free: Int64Array, state: Int64Array, instant: int) -> int:
    """Make an instant the start of a segment; return the segment's number (0 if it is before
    all)."""
    segment = state[0]
    while segment > 0 and times[segment - 1] >= instant:
        segment -= 1
    if segment < state[0] and times[segment] == instant:
        return int(segment)
    if segment == 0:
        return 0
    for place in range(state[0], segment, -1):
        times[place] = times[place - 1]
        for kind in range(2):
            for host in range(free.shape[2]):
                free[place, kind, host] = free[place - 1, kind, host]
    times[segment] = instant
    for kind in range(2):
        for host in range(free.shape[2]):
            free[segment, kind, host] = free[segment - 1, kind, host]
    state[0] += 1
    return int(segment)


@kernel
def add_part(
    times: Int64Array,
    free: Int64Array,
    state: Int64Array,
    start: int,
    end: int,
    host: int,
    procs: int,
    memory: int,
) -> None:
    """Add processors and memory (negative to reserve) of a host over ``[start, end)``."""
    if end <= start:
        return
    first = _break_at(times, free, state, start)
    last = _break_at(times, free, state, end) if end < FOREVER else state[0]
    for segment in range(first, last):
        free[segment, CPUS, host] += procs
        free[segment, MEMORY, host] += memory


@kernel
def _lower(
    times: Int64Array,
    free: Int64Array,
    state: Int64Array,
    segment: int,
    end: int,
    hosts: Int64Array,
) -> None:
    """Lower what is free on ``hosts`` to the least that is free from a segment on and before
    ``end``."""
    while segment < state[0] and times[segment] < end:
        for resource in (CPUS, MEMORY):
            for host in range(hosts.shape[2]):
                hosts[FREE, resource, host] = min(
                    hosts[FREE, resource, host], free[segment, resource, host]
                )
        segment += 1


@kernel
def earliest_chunks(
    times: Int64Array,
    free: Int64Array,
    state: Int64Array,
    heads: RecordArray,
    types: RecordArray,
    shape: int,
    duration: int,
    not_before: int,
    hosts: Int64Array,
    taken: Int64Array,
) -> int:
    """Return the first instant from which the chunks of a shape fit for ``duration``; ``taken``:
    the placement.

    Candidates are ``not_before`` and the starts of the segments after it: at no other instant do
    resources become free.
    """
    for segment in range(state[0]):
        if segment + 1 < state[0] and times[segment + 1] <= not_before:
            continue
        start = max(times[segment], not_before)
        for resource in (CPUS, MEMORY):
            for host in range(hosts.shape[2]):
                hosts[FREE, resource, host] = free[segment, resource, host]
        _lower(times, free, state, segment + 1, start + duration, hosts)
        if place_chunks(heads, types, shape, hosts, taken):
            return int(start)
    return FOREVER


@kernel
def chunks_fit(
    times: Int64Array,
    free: Int64Array,
    state: Int64Array,
    heads: RecordArray,
    types: RecordArray,
    shape: int,
    start: int,
    end: int,
    now_free: Int64Array,
    hosts: Int64Array,
    taken: Int64Array,
) -> bool:
    """Return whether a shape fits over ``[start, end)`` and into what is free right now; ``taken``:
    the placement."""
    for resource in (CPUS, MEMORY):
        for host in range(hosts.shape[2]):
            hosts[FREE, resource, host] = now_free[resource, host]
    segment = 0
    while segment + 1 < state[0] and times[segment + 1] <= start:
        segment += 1
    _lower(times, free, state, segment, end, hosts)
    return place_chunks(heads, types, shape, hosts, taken)
