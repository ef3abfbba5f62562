"""One pass over machines where a job lives inside one host: starts, and the first DEPTH reservations, on hosts with memory.

The queue comes in the order in which it is looked through.  A job that can start now is started, on the host with the
fewest free processors, then in host order.  The first ``depth`` that cannot get a reservation each: the earliest start
over the hosts; ties: fewest processors free now, then host order.  A start must fit beside the running jobs and the
reservations of its own host for its whole estimate; a reservation books at least a second (spec/papers.md 3.3 and 3.7).
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.plan import booked
from qbatch.planning.kernels.profile import FOREVER, add, earliest, earliest_pair, fits, reset
from qbatch.planning.kernels.tables import CPUS, END, FREE, FREE_MEMORY, HELD, HOST, MEMORY, PROCS
from qbatch.planning.kernels.types import BoolArray, Int64Array

ROW, WHERE, AT = 0, 1, 2
"""Rows of ``started`` (the first two) and of ``reserved``: the job, its host, its start."""


@kernel
def fill_profiles(
    now: int, hosts: Int64Array, pieces: Int64Array, running: int, free_procs: Int64Array, free_memory: Int64Array
) -> None:
    """Make the profiles of every host anew: what is free now, and what each running job gives back at its end."""
    for host in range(hosts.shape[1]):
        reset(free_procs[host], hosts[FREE, host], now)
        reset(free_memory[host], hosts[FREE_MEMORY, host], now)
    for piece in range(running):
        host = pieces[HOST, piece]
        end = max(pieces[END, piece], now)
        add(free_procs[host], end, FOREVER, pieces[PROCS, piece])
        add(free_memory[host], end, FOREVER, pieces[HELD, piece])


@kernel
def fits_any(rows: Int64Array, procs: Int64Array, memory: Int64Array, hosts: Int64Array) -> bool:
    """Tell whether a host has processors and memory for one of the rows now."""
    for row in rows:
        for host in range(hosts.shape[1]):
            if hosts[FREE, host] >= procs[row] and (
                hosts[MEMORY, host] == 0 or hosts[FREE_MEMORY, host] >= memory[row]
            ):
                return True
    return False


@kernel
def most_free(hosts: Int64Array) -> int:
    """Return the most processors that are free on a host."""
    most = 0
    for host in range(hosts.shape[1]):
        most = max(most, hosts[FREE, host])
    return most


@kernel
def all_free(hosts: Int64Array) -> int:
    """Return how many processors are free on all hosts."""
    free = 0
    for host in range(hosts.shape[1]):
        free += hosts[FREE, host]
    return free


@kernel
def start_host(
    now: int, end: int, procs: int, memory: int, hosts: Int64Array, is_reserved: BoolArray, free_procs: Int64Array,
    free_memory: Int64Array,
) -> int:  # fmt: skip
    """Return the host on which a job may start now, -1 for none."""
    best = -1
    for host in range(hosts.shape[1]):
        counts = hosts[MEMORY, host] > 0
        if hosts[FREE, host] < procs or (counts and hosts[FREE_MEMORY, host] < memory):
            continue
        if best >= 0 and hosts[FREE, host] >= hosts[FREE, best]:
            continue
        is_free = not is_reserved[host] or end <= now
        if is_free or (
            fits(free_procs[host], procs, now, end) and (not counts or fits(free_memory[host], memory, now, end))
        ):
            best = host
    return best


@kernel
def start_on(
    host: int, now: int, procs: int, memory: int, duration: int, hosts: Int64Array, free_procs: Int64Array,
    free_memory: Int64Array,
) -> int:  # fmt: skip
    """Return the earliest start on a host, ``FOREVER`` if it could never hold the job."""
    if hosts[CPUS, host] < procs:
        return FOREVER
    if hosts[MEMORY, host] == 0:
        return int(earliest(free_procs[host], procs, duration, now))
    if hosts[MEMORY, host] < memory:
        return FOREVER
    return int(earliest_pair(free_procs[host], procs, free_memory[host], memory, duration, now))


@kernel
def earliest_start(
    now: int, procs: int, memory: int, duration: int, hosts: Int64Array, free_procs: Int64Array, free_memory: Int64Array
) -> tuple[int, int]:
    """Return the earliest start over the hosts and its host; ties: fewest processors free now, then host order."""
    best, place = FOREVER, -1
    for host in range(hosts.shape[1]):
        at = start_on(host, now, procs, memory, duration, hosts, free_procs, free_memory)
        if at < best or (at == best and at < FOREVER and hosts[FREE, host] < hosts[FREE, place]):
            best, place = at, host
    return best, place


@kernel
def stands(
    at: int, host: int, now: int, procs: int, memory: int, duration: int, hosts: Int64Array, free_procs: Int64Array,
    free_memory: Int64Array,
) -> bool:  # fmt: skip
    """Tell whether a reservation that was made before can stay where it is."""
    if at < now or hosts[CPUS, host] < procs:
        return False
    counts = hosts[MEMORY, host] > 0
    end = at + duration
    return fits(free_procs[host], procs, at, end) and (not counts or fits(free_memory[host], memory, at, end))


@kernel
def reserve(
    host: int, at: int, now: int, sign: int, row: int, procs: Int64Array, memory: Int64Array, estimate: Int64Array,
    hosts: Int64Array, free_procs: Int64Array, free_memory: Int64Array,
) -> None:  # fmt: skip
    """Book a reservation (``sign`` -1) or lift it out (1); one whose time is over books nothing."""
    if at < now:
        return
    end = at + booked(estimate[row])
    add(free_procs[host], at, end, sign * procs[row])
    if hosts[MEMORY, host] > 0:
        add(free_memory[host], at, end, sign * memory[row])


@kernel
def book_held(
    now: int, order: Int64Array, held: Int64Array, is_reserved: BoolArray, procs: Int64Array, memory: Int64Array,
    estimate: Int64Array, hosts: Int64Array, free_procs: Int64Array, free_memory: Int64Array,
) -> None:  # fmt: skip
    """Book every reservation that is held: each binds all the others until it is lifted out at its turn."""
    for place in range(held.shape[1]):
        host = held[WHERE, place]
        is_reserved[host] = True
        reserve(host, held[AT, place], now, -1, order[place], procs, memory, estimate, hosts, free_procs, free_memory)


@kernel
def give_back(
    now: int, started: Int64Array, count: int, procs: Int64Array, memory: Int64Array, estimate: Int64Array,
    hosts: Int64Array, free_procs: Int64Array, free_memory: Int64Array,
) -> None:  # fmt: skip
    """What has started in this pass is gone from what is free; note in the profiles when it comes back."""
    for place in range(count):
        row, host = started[ROW, place], started[WHERE, place]
        until = now + estimate[row]
        add(free_procs[host], until, FOREVER, procs[row])
        if hosts[MEMORY, host] > 0:
            add(free_memory[host], until, FOREVER, memory[row])


@allocating_kernel
def host_pass(
    now: int, order: Int64Array, depth: int, is_stopping: bool, procs: Int64Array, memory: Int64Array, estimate: Int64Array,
    hosts: Int64Array, pieces: Int64Array, running: int, held: Int64Array, started: Int64Array, reserved: Int64Array,
) -> tuple[int, int]:  # fmt: skip
    """Make one pass; return how many jobs started and how many reservations there are.

    Args:
        order: rows as they are looked through; the first ``held.shape[1]`` hold reservations from earlier passes.
        is_stopping: the pass ends at the first job that does not fit.
        hosts: used up.
        held: host and start (rows ``WHERE`` and ``AT``) of the reservations that are held; they only move earlier.
        started, reserved: are written.
    """
    count, kept = 0, 0
    holders = held.shape[1]
    most = min(order.shape[0], all_free(hosts)) + min(depth, order.shape[0]) + 2 * holders
    space = 2 * (running + most) + 20
    free_procs = np.zeros((hosts.shape[1], 2, space), np.int64)
    free_memory = np.zeros((hosts.shape[1], 2, space), np.int64)
    is_reserved = np.zeros(hosts.shape[1], np.bool_)
    is_filled = holders > 0
    if is_filled:
        fill_profiles(now, hosts, pieces, running, free_procs, free_memory)
        book_held(now, order, held, is_reserved, procs, memory, estimate, hosts, free_procs, free_memory)
    for place in range(order.shape[0]):
        row = order[place]
        width, need, end = procs[row], memory[row], now + estimate[row]
        if place < holders:
            reserve(held[WHERE, place], held[AT, place], now, 1, row, procs, memory, estimate, hosts, free_procs,
                    free_memory)  # fmt: skip
        host = start_host(now, end, width, need, hosts, is_reserved, free_procs, free_memory)
        if host >= 0:
            need = need if hosts[MEMORY, host] > 0 else 0
            started[ROW, count], started[WHERE, count] = row, host
            count += 1
            if is_filled:
                add(free_procs[host], now, end, -width)
                add(free_memory[host], now, end, -need)
            hosts[FREE, host] -= width
            hosts[FREE_MEMORY, host] -= need
        elif is_stopping:
            break
        elif place < holders or kept < depth:
            if not is_filled:
                is_filled = True
                fill_profiles(now, hosts, pieces, running, free_procs, free_memory)
                give_back(now, started, count, procs, memory, estimate, hosts, free_procs, free_memory)
            duration = booked(estimate[row])
            at, host = earliest_start(now, width, need, duration, hosts, free_procs, free_memory)
            if (
                place < holders
                and held[AT, place] <= at
                and stands(
                    held[AT, place], held[WHERE, place], now, width, need, duration, hosts, free_procs, free_memory
                )
            ):
                at, host = held[AT, place], held[WHERE, place]
            if at < FOREVER:
                is_reserved[host] = True
                reserve(host, at, now, -1, row, procs, memory, estimate, hosts, free_procs, free_memory)
                reserved[ROW, kept], reserved[WHERE, kept], reserved[AT, kept] = row, host, at
                kept += 1
            else:
                depth -= 1
        elif most_free(hosts) == 0:
            break
    return count, kept
