"""What a scheduler of hosts does in one round of the compiled loop: order the queue, make the pass, book what starts.

``host_round`` is :class:`qbatch.policies.priority.PriorityBackfill` by the same kernels: its order, its pass and what it
remembers.  ``lsf_round`` is :class:`qbatch.policies.lsf.Lsf`.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels import lsf
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
from qbatch.planning.kernels.layout import JobColumns, LoopState, OnHosts, Scan
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
    for place in range(holders):
        found[place] = held[ROW, place]
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


@kernel
def host_ended(row: int, procs: Int64Array, on: OnHosts) -> None:
    """Give back what a job had."""
    book(on.hosts, on.where[row], procs[row], on.memory[row])


@allocating_kernel
def list_round(
    scan: Scan, jobs: JobColumns, waiting: Int64Array, started: Int64Array, hosts: Int64Array, pieces: Int64Array,
    on: OnHosts,
) -> int:  # fmt: skip
    """Make one pass over what is shown; write the rows that start into ``started`` and their hosts into ``on.where``, and
    return how many they are.  What they take is booked nowhere.

    Args:
        hosts: what the hosts have, free and in all.
        pieces: the running jobs in order of expected end, as :func:`host_pass` takes them.
    """
    submit, procs, estimate, _ = jobs
    holders = on.holders[0]
    rows = in_order(
        scan.order, scan.now, waiting, scan.head, scan.tail, submit, procs, on.memory, estimate, on.bypasses,
        on.weights,
    )  # fmt: skip
    looked = holders_first(rows, on.held, holders) if holders > 0 else rows
    kept_before = np.empty((3, holders), np.int64)
    for place in range(holders):
        for field in range(3):
            kept_before[field, place] = on.held[field, place]
    begun = np.empty((2, min(looked.shape[0], scan.free)), np.int64)
    reserved = np.empty((3, min(scan.depth, looked.shape[0]) + holders), np.int64)
    count, kept = host_pass(
        scan.now, looked, scan.depth, on.is_stopping, procs, on.memory, estimate, hosts.copy(), pieces, pieces.shape[1],
        kept_before, begun, reserved,
    )  # fmt: skip
    for place in range(count):
        row = begun[ROW, place]
        started[place], on.where[row] = row, begun[WHERE, place]
    if on.weights[BYPASS] != 0.0:
        count_bypasses(rows, started, count, on.bypasses)
    if on.is_sticky:
        on.holders[0] = kept
        for place in range(kept):
            for field in (ROW, WHERE, AT):
                on.held[field, place] = reserved[field, place]
    return count


@allocating_kernel
def host_round(scan: Scan, jobs: JobColumns, state: LoopState, start: Int64Array, on: OnHosts) -> int:
    """Make one pass and book what starts; write these rows into ``state.started``, and return how many they are.

    Args:
        start: of the jobs that have started, by row.
    """
    # A reservation that stays is made even where nothing can start.
    if scan.head == scan.tail or (scan.free == 0 and not on.is_sticky):
        return 0
    _, procs, estimate, _ = jobs
    pieces = pieces_by_end(state.endings, scan.active, start, on.where, procs, on.memory, estimate, on.hosts)
    count = list_round(scan, jobs, state.waiting, state.started, on.hosts, pieces, on)
    for row in state.started[:count]:
        book(on.hosts, on.where[row], -procs[row], -on.memory[row])
    return count


@kernel
def lsf_ended(row: int, procs: Int64Array, on: OnHosts) -> None:
    """Give back what a job had, and count it no more; a special may be asked for on its host in this round."""
    host = on.where[row]
    book(on.hosts, host, procs[row], on.memory[row])
    lsf.leave(host, row, on.classes.jobs, on.hosts.shape[1], on.classes.quota)
    on.hosts[lsf.HAS_ENDED, host] = 1


@allocating_kernel
def lsf_round(scan: Scan, jobs: JobColumns, state: LoopState, start: Int64Array, on: OnHosts) -> int:
    """Make one pass of LSF*; the arguments are those of :func:`host_round`."""
    count = 0
    if scan.head < scan.tail and (scan.free > 0 or scan.has_ended):
        begun = np.empty((2, min(scan.tail - scan.head, scan.free)), np.int64)
        count = lsf.lsf_pass(
            scan.now, state.waiting[scan.head : scan.tail], jobs.submit, jobs.procs, on.memory, on.classes.jobs, on.hosts,
            on.classes.sweep, on.classes.order, on.classes.ranks, on.classes.rules, on.classes.quota, begun,
        )  # fmt: skip
        for place in range(count):
            state.started[place] = begun[0, place]
            on.where[begun[0, place]] = begun[1, place]
    for host in range(on.hosts.shape[1]):
        on.hosts[lsf.HAS_ENDED, host] = 0
    return count
