"""Stations with queues of tasks: how an arriving task is routed, and which task a station selects.

Source: docs/spec/papers.md 5.2 and 5.5.

A station has servers and its own queue.  ``queue[n]`` of ``QUEUED_TASK``: its waiting tasks in
order of sequence, that is, of routing.  ``left``: by parent, how many of its tasks have not ended.
The live engine and the compiled loop call these kernels.
"""

from __future__ import annotations

from qbatch.planning.kernels.fractions import below
from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.tables import record
from qbatch.planning.kernels.types import Int64Array, RecordArray

QUEUED_TASK = record("task", "estimate", "parent")
"""A task that waits at a station, its estimated demand, and the index of its parent in ``left``."""

PROBABILISTIC, SHORTEST = ROUTINGS = 0, 1
"""Routing: any station with equal probability; or the one with the least tasks per server."""

FCFS, STF, SNUTF, LSTF, SNUTF_STF = DISCIPLINES = 0, 1, 2, 3, 4
"""The task that a station selects.  In order: the first routed; the one with the least estimate;
one of the parent with the least tasks left; the least estimate, but after a number of selections
the first routed.  ``SNUTF_STF`` is ``SNUTF`` with ties by estimate."""

LOWEST = -1
"""A draw that breaks ties among the shortest queues by the order of the stations."""


@kernel
def routed(routing: int, drawn: int, lengths: Int64Array, servers: Int64Array) -> int:
    """Return the station of a task, -1 if there is none.

    ``routing``: one of ``ROUTINGS``.  ``drawn``: 53 random bits, or ``LOWEST``.  ``lengths``: by
    station, tasks that wait or are in service.  ``servers``: by station, 0 if the task may not go
    there.
    """
    best, many = -1, 0
    for station in range(len(servers)):
        if servers[station] == 0:
            continue
        if best >= 0 and routing == SHORTEST:
            mine, least = lengths[station] * servers[best], lengths[best] * servers[station]
            if mine > least:
                continue
            if mine < least:
                best, many = station, 0
        if best < 0:
            best = station
        many += 1
    if many <= 1 or drawn == LOWEST:
        return best
    skip = below(drawn, many)
    for station in range(best, len(servers)):
        is_among = servers[station] > 0 and (
            routing == PROBABILISTIC
            or lengths[station] * servers[best] == lengths[best] * servers[station]
        )
        if is_among and skip == 0:
            return station
        skip -= is_among
    return best


@kernel
def select(
    discipline: int,
    limit: int,
    station: int,
    queue: RecordArray,
    waiting: int,
    left: Int64Array,
    selections: Int64Array,
) -> int:
    """Return the index in its queue of the task that a station selects now, and count the selection
    (5.5, rule 9).

    ``limit``: the number of selections after which ``LSTF`` takes the first routed task.
    ``selections``: by station, the number of selections since then.
    """
    is_oldest = discipline == LSTF and selections[station] >= limit
    selections[station] = 0 if is_oldest else selections[station] + 1
    if discipline == FCFS or is_oldest:
        return 0
    best = 0
    for place in range(1, waiting):
        is_better = queue[place].estimate < queue[best].estimate
        if discipline in (SNUTF, SNUTF_STF):
            mine, least = left[queue[place].parent], left[queue[best].parent]
            is_better = mine < least or (mine == least and is_better and discipline == SNUTF_STF)
        if is_better:
            best = place
    return best


@kernel
def take_out(queue: RecordArray, waiting: int, place: int) -> None:
    """Remove a task from a queue; those behind it move up."""
    for each in range(place, waiting - 1):
        queue[each] = queue[each + 1]


@kernel
def append(queue: RecordArray, waiting: int, task: int, estimate: int, parent: int) -> None:
    """Add a task to the end of a queue of ``waiting``."""
    last = queue[waiting]
    last.task, last.estimate, last.parent = task, estimate, parent
