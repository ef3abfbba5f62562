"""What a list scheduler does in one round on hosts, for the compiled loop: order the queue, make the pass, book what starts.

The order, the pass and what is remembered are those of :class:`qbatch.policies.priority.PriorityBackfill`, by the same kernels.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.host_pass import (
    AT,
    END,
    FREE,
    FREE_MEMORY,
    HELD,
    HOST,
    MEMORY,
    PROCS,
    ROW,
    WHERE,
    host_pass,
)
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import BYPASS, ordered, priorities, stable_order
from qbatch.planning.kernels.orders import FCFS, PRIORITY
from qbatch.planning.kernels.types import Float64Array, Int64Array


@kernel
def book(hosts: Int64Array, host: int, procs: int, memory: int) -> None:
    """Give processors and memory back to a host, or take them (both negative)."""
    hosts[FREE, host] += procs
    if hosts[MEMORY, host] > 0:
        hosts[FREE_MEMORY, host] += memory


@allocating_kernel
def pieces_by_end(
    endings: Int64Array, active: int, start: Int64Array, where: Int64Array, procs: Int64Array, memory: Int64Array,
    estimate: Int64Array, hosts: Int64Array,
) -> Int64Array:  # fmt: skip
    """Return the running jobs in order of expected end, as :func:`host_pass` takes them.

    Args:
        endings: ``[n, 2]``: instant and row; the first ``active`` are in use.
    """
    ends = np.empty(active, np.int64)
    for place in range(active):
        row = endings[place, 1]
        ends[place] = start[row] + estimate[row]
    order = stable_order(ends)
    pieces = np.empty((4, active), np.int64)
    for place in range(active):
        row = endings[order[place], 1]
        host = where[row]
        pieces[END, place], pieces[HOST, place], pieces[PROCS, place] = ends[order[place]], host, procs[row]
        pieces[HELD, place] = memory[row] if hosts[MEMORY, host] > 0 else 0
    return pieces


@allocating_kernel
def in_order(
    order: int, now: int, waiting: Int64Array, head: int, tail: int, submit: Int64Array, procs: Int64Array,
    memory: Int64Array, estimate: Int64Array, bypasses: Float64Array, weights: Float64Array,
) -> Int64Array:  # fmt: skip
    """Return the waiting rows as they are looked through."""
    rows = waiting[head:tail].copy()
    if order == FCFS:
        return rows
    if order != PRIORITY:
        return ordered(order, now, waiting, head, tail, submit, estimate)
    passed_by = np.zeros(rows.shape[0], np.float64)
    if weights[BYPASS] != 0.0:
        for place in range(rows.shape[0]):
            passed_by[place] = bypasses[rows[place]]
    keys = priorities(now, rows, submit, procs, memory, estimate, passed_by, weights)
    found = stable_order(-keys)
    for place in range(found.shape[0]):
        found[place] = rows[found[place]]
    return found


@allocating_kernel
def holders_first(rows: Int64Array, held: Int64Array, holders: int) -> Int64Array:
    """Return the rows with the holders of reservations before all others, the oldest first."""
    found = np.empty(rows.shape[0], np.int64)
    found[:holders] = held[ROW, :holders]
    count = holders
    for row in rows:
        is_holder = False
        for place in range(holders):
            is_holder = is_holder or held[ROW, place] == row
        if not is_holder:
            found[count] = row
            count += 1
    return found


@kernel
def count_bypasses(rows: Int64Array, started: Int64Array, count: int, bypasses: Float64Array) -> None:
    """Add to each job that still waits how many of those behind it in the order have started."""
    for place in range(count):
        bypasses[started[place]] = -1.0
    passed = 0
    for place in range(rows.shape[0] - 1, -1, -1):
        row = rows[place]
        if bypasses[row] < 0.0:
            passed += 1
            bypasses[row] = 0.0
        else:
            bypasses[row] += passed


@allocating_kernel
def host_round(
    now: int, order: int, depth: int, is_stopping: bool, is_sticky: bool, waiting: Int64Array, head: int, tail: int,
    submit: Int64Array, procs: Int64Array, memory: Int64Array, estimate: Int64Array, hosts: Int64Array,
    endings: Int64Array, active: int, start: Int64Array, where: Int64Array, bypasses: Float64Array, held: Int64Array,
    holders: int, weights: Float64Array, started: Int64Array,
) -> tuple[int, int]:  # fmt: skip
    """Make one pass over ``waiting[head:tail]``; return how many jobs start and how many reservations are held after it.

    Args:
        hosts: what is free and what there is, by host (:mod:`host_pass`); what starts is taken.
        where: the host of each row that runs; those that start are added.
        held: ``[3, n]``: row, host and start of each reservation that is held, of which ``holders`` are in use.
        started: is written: the rows that start.
    """
    rows = in_order(order, now, waiting, head, tail, submit, procs, memory, estimate, bypasses, weights)
    looked = holders_first(rows, held, holders) if holders > 0 else rows
    kept_before = np.empty((3, holders), np.int64)
    for place in range(holders):
        for field in range(3):
            kept_before[field, place] = held[field, place]
    pieces = pieces_by_end(endings, active, start, where, procs, memory, estimate, hosts)
    begun = np.empty((2, min(looked.shape[0], int(hosts[FREE].sum()))), np.int64)
    reserved = np.empty((3, min(depth, looked.shape[0]) + holders), np.int64)
    count, kept = host_pass(
        now, looked, depth, is_stopping, procs, memory, estimate, hosts.copy(), pieces, active, kept_before, begun, reserved
    )
    for place in range(count):
        row, host = begun[ROW, place], begun[WHERE, place]
        started[place], where[row] = row, host
        book(hosts, host, -procs[row], -memory[row])
    if weights[BYPASS] != 0.0:
        count_bypasses(rows, started, count, bypasses)
    if not is_sticky:
        return count, 0
    for place in range(kept):
        for field in (ROW, WHERE, AT):
            held[field, place] = reserved[field, place]
    return count, kept
