"""One pass over hosts that each hold whole jobs, with resources: starts, and the first DEPTH
reservations.

The rows come in the order of the scan.  A job that can start now is started, on the host with the
fewest free processors, then in host order.  Each of the first ``depth`` jobs that cannot start gets
a reservation: the earliest start over the hosts; ties: fewest processors free now, then host order.
A start must fit with the running jobs and the reservations of its own host for its whole estimate;
a reservation books at least a second (docs/spec/papers.md 3.3 and 3.7).
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER, add, booked, earliest, fits, has_room, reset
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    END,
    FREE,
    HOST,
    MEMORY,
    THERE,
    Instant,
    JobColumns,
)
from qbatch.planning.kernels.types import BoolArray, Int64Array

ROW, WHERE, AT = 0, 1, 2
"""Rows of ``reserved``: the job, its host, its start."""


@kernel
def taken(resource: int, row: int, host: int, asked: Int64Array, hosts: Int64Array) -> int:
    """Return how much of a resource a job takes on a host: what it asks for, but no memory if
    memory is not counted."""
    if resource == MEMORY and hosts[THERE, MEMORY, host] == 0:
        return 0
    return int(asked[resource, row])


@kernel
def is_within(what: int, row: int, host: int, asked: Int64Array, hosts: Int64Array) -> bool:
    """Return whether a job asks for no more than a host has free (``FREE``), or has in total
    (``THERE``)."""
    is_lacking = False
    for resource in range(hosts.shape[1]):
        is_lacking = is_lacking or hosts[what, resource, host] < taken(
            resource, row, host, asked, hosts
        )
    return not is_lacking


@kernel
def fill_profiles(
    now: int, hosts: Int64Array, pieces: Int64Array, running: int, free: Int64Array
) -> None:
    """Fill the profiles ``free[H, N, 2, space]`` of every host: what is free now, and what each
    running job gives back at its end."""
    for host in range(hosts.shape[2]):
        for resource in range(hosts.shape[1]):
            reset(free[host, resource], hosts[FREE, resource, host], now)
    for piece in range(running):
        host = pieces[HOST, piece]
        end = max(pieces[END, piece], now)
        for resource in range(hosts.shape[1]):
            add(free[host, resource], end, FOREVER, pieces[AMOUNTS + resource, piece])


@kernel
def fits_any(rows: Int64Array, asked: Int64Array, hosts: Int64Array) -> bool:
    """Return whether a host now has enough for one of the rows."""
    for row in rows:
        for host in range(hosts.shape[2]):
            if is_within(FREE, row, host, asked, hosts):
                return True
    return False


@kernel
def most_free(hosts: Int64Array) -> int:
    """Return the most processors that are free on a host."""
    most = 0
    for host in range(hosts.shape[2]):
        most = max(most, hosts[FREE, CPUS, host])
    return most


@kernel
def all_free(hosts: Int64Array) -> int:
    """Return how many processors are free on all hosts."""
    free = 0
    for host in range(hosts.shape[2]):
        free += hosts[FREE, CPUS, host]
    return free


@kernel
def stays_free(
    row: int,
    host: int,
    start: int,
    end: int,
    asked: Int64Array,
    hosts: Int64Array,
    free: Int64Array,
) -> bool:
    """Return whether the request of a job is free on a host over the whole of ``[start, end)``."""
    for resource in range(hosts.shape[1]):
        if not fits(free[host, resource], taken(resource, row, host, asked, hosts), start, end):
            return False
    return True


@kernel
def start_host(
    row: int,
    now: int,
    end: int,
    asked: Int64Array,
    hosts: Int64Array,
    is_reserved: BoolArray,
    free: Int64Array,
) -> int:
    """Return the host on which a job may start now, -1 for none."""
    best, procs = -1, asked[CPUS, row]
    for host in range(hosts.shape[2]):
        free_now = hosts[FREE, CPUS, host]
        if free_now < procs or (best >= 0 and free_now >= hosts[FREE, CPUS, best]):
            continue
        if is_within(FREE, row, host, asked, hosts) and (
            end <= now
            or not is_reserved[host]
            or stays_free(row, host, now, end, asked, hosts, free)
        ):
            best = host
    return best


@kernel
def start_on(
    row: int,
    host: int,
    not_before: int,
    duration: int,
    asked: Int64Array,
    hosts: Int64Array,
    profiles: Int64Array,
) -> int:
    """Return the earliest start of a job on a host with these profiles, one per resource;
    ``FOREVER`` if it could never hold the job.

    Each resource alone gives a lower bound for the common answer; each starts its search from the
    bound of the others, so the bounds rise to the least instant on which all agree.
    """
    if not is_within(THERE, row, host, asked, hosts):
        return FOREVER
    resources = hosts.shape[1]
    instant, resource, agreeing = not_before, 0, 0
    while agreeing < resources and instant < FOREVER:
        found = earliest(
            profiles[resource], taken(resource, row, host, asked, hosts), duration, instant
        )
        agreeing = agreeing + 1 if found == instant else 1
        instant = found
        resource = resource + 1 if resource + 1 < resources else 0
    return int(instant)


@kernel
def earliest_start(
    row: int, not_before: int, duration: int, asked: Int64Array, hosts: Int64Array, free: Int64Array
) -> tuple[int, int]:
    """Return the earliest start over the hosts and its host; ties: fewest processors free now, then
    host order."""
    best, place = FOREVER, -1
    for host in range(hosts.shape[2]):
        at = start_on(row, host, not_before, duration, asked, hosts, free[host])
        if at < best or (
            at == best and at < FOREVER and hosts[FREE, CPUS, host] < hosts[FREE, CPUS, place]
        ):
            best, place = at, host
    return best, place


@kernel
def change(
    row: int,
    host: int,
    start: int,
    end: int,
    sign: int,
    asked: Int64Array,
    hosts: Int64Array,
    free: Int64Array,
) -> None:
    """Take the resources of a job on a host out of its profiles over ``[start, end)`` (``sign``
    -1), or put them back (1)."""
    for resource in range(hosts.shape[1]):
        add(free[host, resource], start, end, sign * taken(resource, row, host, asked, hosts))


@kernel
def add_part(
    host: int,
    start: int,
    end: int,
    sign: int,
    amounts: Int64Array,
    hosts: Int64Array,
    free: Int64Array,
) -> bool:
    """Add amounts by resource to what is free on a host over ``[start, end)``, or take them
    (``sign`` -1); return whether the profiles had the space (if not, nothing changes)."""
    for resource in range(hosts.shape[1]):
        if not has_room(free[host, resource], 1):
            return False
    for resource in range(hosts.shape[1]):
        if resource != MEMORY or hosts[THERE, MEMORY, host] > 0:
            add(free[host, resource], start, end, sign * amounts[resource])
    return True


@kernel
def reserve(
    row: int,
    host: int,
    at: int,
    now: int,
    sign: int,
    asked: Int64Array,
    estimate: Int64Array,
    hosts: Int64Array,
    free: Int64Array,
) -> None:
    """Book a reservation (``sign`` -1) or lift it out (1); a reservation in the past books
    nothing."""
    if at >= now:
        change(row, host, at, at + booked(estimate[row]), sign, asked, hosts, free)


@allocating_kernel
def host_pass(
    instant: Instant,
    jobs: JobColumns,
    hosts: Int64Array,
    parts: Int64Array,
    rows: Int64Array,
    depth: int,
    is_stopping: bool,
    holders: int,
    reserved: Int64Array,
    started: Int64Array,
    places: Int64Array,
) -> tuple[int, int]:
    """Make one pass; return the number of started jobs and the number of reservations.

    ``hosts``: the free and the total amounts; not changed.  ``parts``: of the running jobs, of
    which ``instant.parts`` are in use.  ``rows``: in the order of the scan; the first ``holders``
    hold the first of ``reserved`` from earlier passes, which only move earlier.  ``is_stopping``:
    the pass ends at the first job that does not fit.  ``reserved``: receives the row, host and
    start of each reservation.  ``started``, ``places``: receive the rows that start, and their
    hosts.
    """
    now, asked, estimate, hosts, held = (
        instant.now,
        jobs.asked,
        jobs.estimate,
        hosts.copy(),
        reserved[:, :holders].copy(),
    )
    count, kept, running = 0, 0, instant.parts
    most = min(rows.shape[0], all_free(hosts)) + min(depth, rows.shape[0]) + 2 * holders
    free = np.zeros((hosts.shape[2], hosts.shape[1], 2, 2 * (running + most) + 20), np.int64)
    is_reserved = np.zeros(hosts.shape[2], np.bool_)
    is_filled = holders > 0
    if is_filled:
        fill_profiles(now, hosts, parts, running, free)
        # Each constrains all the others until it is lifted out at its turn.
        for place in range(holders):
            is_reserved[held[WHERE, place]] = True
            reserve(
                rows[place],
                held[WHERE, place],
                held[AT, place],
                now,
                -1,
                asked,
                estimate,
                hosts,
                free,
            )
    for place in range(rows.shape[0]):
        row = rows[place]
        end = now + estimate[row]
        if place < holders:
            reserve(row, held[WHERE, place], held[AT, place], now, 1, asked, estimate, hosts, free)
        host = start_host(row, now, end, asked, hosts, is_reserved, free)
        if host >= 0:
            started[count], places[count] = row, host
            count += 1
            if is_filled:
                change(row, host, now, end, -1, asked, hosts, free)
            for resource in range(hosts.shape[1]):
                hosts[FREE, resource, host] -= taken(resource, row, host, asked, hosts)
        elif is_stopping:
            break
        elif place < holders or kept < depth:
            if not is_filled:
                is_filled = True
                fill_profiles(now, hosts, parts, running, free)
                # Jobs started in this pass are gone from what is free, and return at their end.
                for other in range(count):
                    begun = started[other]
                    change(
                        begun, places[other], now + estimate[begun], FOREVER, 1, asked, hosts, free
                    )
            duration = booked(estimate[row])
            at, host = earliest_start(row, now, duration, asked, hosts, free)
            # The earlier reservation stays, if it can.
            if place < holders and now <= held[AT, place] <= at:
                own, own_at = held[WHERE, place], held[AT, place]
                is_open = hosts[THERE, CPUS, own] >= asked[CPUS, row]
                if is_open and stays_free(row, own, own_at, own_at + duration, asked, hosts, free):
                    at, host = own_at, own
            if at < FOREVER:
                is_reserved[host] = True
                reserve(row, host, at, now, -1, asked, estimate, hosts, free)
                reserved[ROW, kept], reserved[WHERE, kept], reserved[AT, kept] = row, host, at
                kept += 1
            else:
                depth -= 1
        elif most_free(hosts) == 0:
            break
    return count, kept
