"""The running jobs, as arrays sorted by expected end, for the passes."""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import first_from, stable_order
from qbatch.planning.kernels.tables import AMOUNTS, CPUS, END, HOST, PROCS, THERE
from qbatch.planning.kernels.types import Int64Array


@kernel
def enter(ends: Int64Array, amounts: Int64Array, count: int, end: int, amount: int) -> None:
    """Insert one running job into ``count`` sorted ones; the caller updates the count."""
    place = count
    while place > 0 and ends[place - 1] > end:
        ends[place] = ends[place - 1]
        amounts[place] = amounts[place - 1]
        place -= 1
    ends[place] = end
    amounts[place] = amount


@kernel
def leave(ends: Int64Array, amounts: Int64Array, count: int, end: int, amount: int) -> None:
    """Remove one running job with this expected end and amount; the caller updates the count.

    Two jobs with the same end and amount are the same to every pass, so either may go.
    """
    low = first_from(ends, count, end)
    while amounts[low] != amount:
        low += 1
    for place in range(low, count - 1):
        ends[place] = ends[place + 1]
        amounts[place] = amounts[place + 1]


@allocating_kernel
def ends_of(parts: Int64Array, count: int, hosts: Int64Array) -> tuple[Int64Array, Int64Array, int]:
    """Return the expected ends of ``count`` parts on open hosts, each instant once; the processors
    of each; and the number of ends."""
    ends, amounts, found = np.empty(count, np.int64), np.empty(count, np.int64), 0
    for place in range(count):
        if hosts[THERE, CPUS, parts[HOST, place]] > 0:
            if found == 0 or ends[found - 1] != parts[END, place]:
                ends[found], amounts[found] = parts[END, place], 0
                found += 1
            amounts[found - 1] += parts[PROCS, place]
    return ends, amounts, found


@allocating_kernel
def parts_by_end(
    pieces: Int64Array, now: int, overdue: int, closed: Int64Array
) -> tuple[Int64Array, int]:
    """Return the parts of running jobs in order of expected end, ties in the given order, and their
    number.

    ``pieces``: ``[3 + N, n]``: expected end, host, amount of each resource (all 0: no part), when
    the run began. ``overdue``: the end of a part that reached its expected end before now.
    ``closed``: hosts of which the parts are left out.
    """
    chosen = np.empty(pieces.shape[1], np.int64)
    ends = np.empty(pieces.shape[1], np.int64)
    count, since = 0, pieces.shape[0] - 1
    for place in range(pieces.shape[1]):
        is_open = False
        for field in range(AMOUNTS, since):
            is_open = is_open or pieces[field, place] > 0
        for host in closed:
            is_open = is_open and pieces[HOST, place] != host
        if is_open:
            is_late = pieces[END, place] <= now and pieces[since, place] < now
            chosen[count] = place
            ends[count] = overdue if is_late else pieces[END, place]
            count += 1
    order = stable_order(ends[:count])
    found = np.empty((since, count), np.int64)
    for place in range(count):
        found[END, place] = ends[order[place]]
        for field in range(HOST, since):
            found[field, place] = pieces[field, chosen[order[place]]]
    return found, count
