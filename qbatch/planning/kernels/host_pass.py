"""One pass of a list scheduler over hosts: starts, and the first DEPTH reservations.

The rows come in the order of the scan.  A job that can start now is started.  Each of the first
``depth`` jobs that cannot start gets a reservation at its earliest start, on the hosts found there.
A start must fit with the running jobs and the reservations for its whole estimate; a reservation
books at least a second.  Which hosts a job takes: :mod:`.availability` (docs/spec/papers.md 3.3 and
3.7, docs/spec/production.md 1.3 and 1.4).

A job with groups of chunks that may share hosts can fit although it did not fit when more was free.
So a scan that passed over such a job and started another is repeated, as if the started jobs had
been running, until one starts none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.planning.kernels.availability import (
    CHUNKS,
    ONE_CHUNK,
    Availability,
    add,
    asks,
    clear,
    earliest,
    empty_for,
    fill,
    fit_now,
    fit_over,
    groups_of,
    is_mixed,
    left_now,
    most_on,
    new_availability,
    next_taken,
    place_now,
    place_over,
    requests_of_none,
    watch,
    with_space,
)
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER, booked
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    END,
    FREE,
    HOST,
    NO_JOB,
    OF_ROW,
    PROCS,
    SINCE,
    SPREAD,
    THERE,
    Instant,
    JobColumns,
)
from qbatch.planning.kernels.types import BoolArray, Int64Array

ROW, WHERE, AT = 0, 1, 2
"""Rows of ``reserved``: the job, its host (``SPREAD``: several), its start."""


class PassTables(NamedTuple):
    """What a pass reads, and where it writes its starts (:func:`host_pass`)."""

    instant: Instant
    jobs: JobColumns
    hosts: Int64Array
    parts: Int64Array
    started: Int64Array
    places: Int64Array
    begun: Int64Array


NOT_NOW = -1
"""``Failures.until`` of a request that does not fit what is free now, whatever is booked."""


class Failures(NamedTuple):
    """Which requests did not fit in a pass.

    ``until[Q]``: the least end until which a request did not fit (``FOREVER``: it was not tried); it
    does not fit for a longer time either.  ``left[Q]``: of how many chunks there has to be more
    space before it fits.
    """

    until: Int64Array
    left: Int64Array


@allocating_kernel
def no_failures(jobs: JobColumns) -> Failures:
    """Return that no request is known not to fit."""
    until = np.full(jobs.requests.heads.shape[0], FOREVER, np.int64)
    return Failures(until, np.zeros(until.shape[0], np.int64))


@allocating_kernel
def fits_any(rows: Int64Array, jobs: JobColumns, hosts: Int64Array) -> bool:
    """Return whether a host now has enough for a chunk of one of the rows."""
    nothing = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    for row in rows:
        group = groups_of(row, jobs)[0]
        for host in range(hosts.shape[2]):
            most = most_on(group, row, host, 1, jobs, nothing)
            if most > 0 and fit_now(group, row, host, most, jobs, hosts, nothing) > 0:
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


@allocating_kernel
def start_host(asked: Int64Array, hosts: Int64Array) -> int:
    """Return the host on which a job of one chunk may start now, -1 for none; ``asked[N, 1]``: what
    it asks for."""
    jobs = JobColumns(asked[CPUS], asked[CPUS], asked[CPUS], asked, requests_of_none())
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    free = new_availability(hosts.shape[2], hosts.shape[1], 0)
    if place_now(0, 0, 0, jobs, hosts, free, taken):
        for host in range(hosts.shape[2]):
            if taken[CHUNKS, host] > 0:
                return host
    return -1


@allocating_kernel
def book(start: int, end: int, sign: int, free: Availability, taken: Int64Array) -> Availability:
    """Take what a job takes on its hosts over ``[start, end)`` (``sign`` -1), or give it back (1);
    hosts that are not filled are left out."""
    host = next_taken(0, taken)
    while host < taken.shape[1]:
        if free.used[host] > 0:
            free = with_space(free, host)
            add(free, host, start, end, sign, taken, host)
        host = next_taken(host + 1, taken)
    return free


@allocating_kernel
def keep(
    row: int,
    held: Int64Array,
    now: int,
    sign: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
) -> Availability:
    """Book the reservation that a job of one chunk kept (``sign`` -1), or lift it out (1).

    ``held``: of ``reserved``.  One in the past books nothing, nor does one on several hosts.
    """
    host, at = held[WHERE], held[AT]
    if at < now or host < 0:
        return free
    part = np.zeros((AMOUNTS + hosts.shape[1], 1), np.int64)
    for resource in range(hosts.shape[1]):
        part[AMOUNTS + resource, 0] = asks(ONE_CHUNK, row, resource, host, jobs, hosts)
    free = with_space(free, host)
    add(free, host, at, at + booked(jobs.estimate[row]), sign, part, 0)
    free.booked[host] = 1
    return free


@allocating_kernel
def reserve(
    row: int,
    now: int,
    own: int,
    own_at: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> tuple[Availability, int, int]:
    """Book the earliest reservation of a job; return the availability, its host (``SPREAD``:
    several) and its start (``FOREVER``: none is booked).

    A reservation that the job kept, on the host ``own`` at ``own_at``, stays there if it cannot be
    earlier.
    """
    duration = booked(jobs.estimate[row])
    at = earliest(row, now, FOREVER, duration, jobs, hosts, free, taken)
    if at == FOREVER:
        return free, SPREAD, at
    if at == own_at and own >= 0:
        stay(row, own, at, duration, jobs, hosts, free, taken)
    free = book(at, at + duration, -1, free, taken)
    where, host = SPREAD, next_taken(0, taken)
    while host < taken.shape[1]:
        free.booked[host], where = 1, host
        host = next_taken(host + 1, taken)
    return free, SPREAD if jobs.requests.of.shape[0] > 0 else where, at


@kernel
def write_begun(
    row: int, end: int, jobs: JobColumns, taken: Int64Array, begun: Int64Array, parts: int
) -> tuple[int, int]:
    """Write where a starting job goes: return the host of a job of one chunk; else write its parts
    into ``begun`` after ``parts`` others.  Also return the number of parts in ``begun``."""
    if jobs.requests.of.shape[0] == 0:
        for host in range(taken.shape[1]):
            if taken[CHUNKS, host] > 0:
                return host, 0
    for host in range(taken.shape[1]):
        if taken[CHUNKS, host] > 0:
            begun[END, parts], begun[HOST, parts], begun[OF_ROW, parts] = end, host, row
            for field in range(AMOUNTS, taken.shape[0]):
                begun[field, parts] = taken[field, host]
            parts += 1
    return SPREAD, parts


@kernel
def is_on(hosts: BoolArray, taken: Int64Array) -> bool:
    """Return whether a placed job is on one of some hosts."""
    for host in range(taken.shape[1]):  # noqa: SIM110, the compiler takes no generators
        if taken[CHUNKS, host] > 0 and hosts[host]:
            return True
    return False


@allocating_kernel
def fill_more(
    watched: BoolArray,
    bookings: int,
    tables: PassTables,
    count: int,
    parts_begun: int,
    free: Availability,
) -> Availability:
    """Fill those of some hosts that are not filled yet, with the running jobs and the ``count``
    jobs that this pass has started."""
    instant, hosts, parts = tables.instant, tables.hosts, tables.parts
    if free.times.shape[1] == 0:
        free = empty_for(hosts, parts, instant.parts, bookings)
    wanted = watched & (free.used == 0)
    fill(wanted, free, instant.now, hosts, parts, instant.parts)
    return return_begun(wanted, count, tables, parts_begun, free)


@allocating_kernel
def reserve_awaited(
    awaiting: Int64Array,
    watched: BoolArray,
    bookings: int,
    tables: PassTables,
    count: int,
    parts_begun: int,
    free: Availability,
    taken: Int64Array,
    reserved: Int64Array,
    kept: int,
) -> tuple[Availability, int]:
    """Fill the watched hosts (:func:`fill_more`) and book the reservations of the awaiting jobs;
    return the availability, and the number of reservations with the ``kept`` ones before."""
    free = fill_more(watched, bookings, tables, count, parts_begun, free)
    now, jobs, hosts = tables.instant.now, tables.jobs, tables.hosts
    for row in awaiting:
        free, where, at = reserve(row, now, SPREAD, FOREVER, jobs, hosts, free, taken)
        if at < FOREVER:
            reserved[ROW, kept], reserved[WHERE, kept], reserved[AT, kept] = row, where, at
            kept += 1
    return free, kept


@kernel
def note_failure(row: int, end: int, left: int, jobs: JobColumns, failures: Failures) -> None:
    """Note that a job did not fit from now until an end, for all jobs that ask for the same.

    ``left``: what :func:`.availability.place` returned.
    """
    request = jobs.requests.of[row]
    if left > 0:
        failures.until[request], failures.left[request] = NOT_NOW, left
    else:
        # It may fit as soon as one chunk more does.
        failures.until[request] = min(failures.until[request], end)
        failures.left[request] = 1


@kernel
def forget_bookings(rows: Int64Array, jobs: JobColumns, failures: Failures) -> None:
    """Forget for some rows which requests did not fit because of what was booked."""
    for row in rows:
        request = jobs.requests.of[row]
        if failures.until[request] != NOT_NOW:
            failures.until[request] = FOREVER


@kernel
def next_fit(
    turn: int,
    rows: Int64Array,
    now: int,
    left: int,
    has_begun: BoolArray,
    failures: Failures,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> int:
    """Return the first turn from one on with a job that fits, or that has groups which share
    hosts; for jobs with requests, of which none gets a reservation.

    A loop in a kernel that makes arrays would count references at each turn.
    """
    while turn < rows.shape[0]:
        row = rows[turn]
        if is_mixed(row, jobs):
            break
        end, request = now + jobs.estimate[row], jobs.requests.of[row]
        if end < failures.until[request] and jobs.procs[row] <= left and not has_begun[turn]:
            missing = left_now(row, now, end, jobs, hosts, free, taken)
            if missing == 0:
                break
            note_failure(row, end, missing, jobs, failures)
        turn += 1
    return turn


@allocating_kernel
def scan_hosts(  # noqa: PLR0915, it is one thought
    tables: PassTables,
    rows: Int64Array,
    depth: int,
    is_stopping: bool,
    known: int,
    holders: int,
    is_told: bool,
    reserved: Int64Array,
    failures: Failures,
) -> tuple[int, int]:
    """Make the pass of :func:`host_pass` where hosts matter.

    Most passes need no reservation.  So the jobs that are to get one are collected (``awaiting``),
    until a later job could start on a host on which one of them may be (``watched``).  Only such
    hosts are filled.
    """
    jobs, hosts, begun = tables.jobs, tables.hosts, tables.begun
    now, held, requests = tables.instant.now, reserved[:, :holders].copy(), jobs.requests
    bookings = min(depth + holders, 16)
    has_begun = np.zeros(rows.shape[0], np.bool_)
    awaiting = np.empty(min(depth, rows.shape[0]), np.int64)
    watched = np.zeros(hosts.shape[2], np.bool_)
    count, kept, parts_begun = 0, 0, 0
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    all_left, most_left = all_free(hosts), most_free(hosts)
    while True:
        before, has_passed_mixed, kept, most, awaited = count, False, 0, depth, 0
        if count > 0 and requests.of.shape[0] > 0:
            forget_bookings(rows, jobs, failures)
        free = new_availability(hosts.shape[2], hosts.shape[1], 0)
        watched[:] = holders > 0
        if holders > 0:
            free = fill_more(watched, bookings, tables, count, parts_begun, free)
            watched[:] = False
            # Each constrains all the others until it is lifted out at its turn.
            for turn in range(holders):
                free = keep(rows[turn], held[:, turn], now, -1, jobs, hosts, free)
        turn = -1
        while turn + 1 < rows.shape[0]:
            turn += 1
            if requests.of.shape[0] > 0 and kept + awaited >= most and not is_stopping:
                turn = next_fit(
                    turn,
                    rows,
                    now,
                    all_left,
                    has_begun,
                    failures,
                    jobs,
                    hosts,
                    free,
                    taken,
                )
            if turn == rows.shape[0]:
                break
            if has_begun[turn]:
                continue
            row = rows[turn]
            end = now + jobs.estimate[row]
            if turn < holders:
                free = keep(row, held[:, turn], now, 1, jobs, hosts, free)
            request = requests.of[row] if requests.of.shape[0] > 0 else -1
            # What asks for more processors than are free needs no look.
            procs = jobs.procs[row]
            may_fit = procs <= most_left if request < 0 else procs <= all_left
            may_fit = may_fit and turn >= known and (request < 0 or end < failures.until[request])
            is_placed, left = False, 1
            while may_fit and not is_placed:
                left = left_now(row, now, end, jobs, hosts, free, taken)
                may_fit = left == 0
                is_placed = may_fit and not (awaited > 0 and is_on(watched, taken))
                if may_fit and not is_placed:
                    made = kept
                    free, kept = reserve_awaited(
                        awaiting[:awaited],
                        watched,
                        bookings,
                        tables,
                        count,
                        parts_begun,
                        free,
                        taken,
                        reserved,
                        kept,
                    )
                    most -= awaited - (kept - made)
                    awaited, watched[:] = 0, False
            if is_placed:
                where, parts_begun = write_begun(row, end, jobs, taken, begun, parts_begun)
                tables.started[count], tables.places[count] = row, where
                count += 1
                has_begun[turn] = True
                free = book(now, end, -1, free, taken)
                take_now(hosts, taken)
                all_left, most_left = all_free(hosts), most_free(hosts)
                continue
            if is_mixed(row, jobs):
                has_passed_mixed = True
            elif request >= 0 and turn >= known and end < failures.until[request]:
                note_failure(row, end, left, jobs, failures)
            if is_stopping:
                break
            if turn < holders:
                own, own_at = held[WHERE, turn], held[AT, turn]
                free, where, at = reserve(row, now, own, own_at, jobs, hosts, free, taken)
                if at < FOREVER:
                    reserved[ROW, kept], reserved[WHERE, kept], reserved[AT, kept] = row, where, at
                    kept += 1
                else:
                    most -= 1
            elif kept + awaited < most:
                awaiting[awaited] = row
                awaited += 1
                watch(row, jobs, watched)
            elif most_left == 0:
                break
        if is_stopping or not has_passed_mixed or count == before:
            break
    if is_told and awaited > 0:
        free, kept = reserve_awaited(
            awaiting[:awaited],
            watched,
            bookings,
            tables,
            count,
            parts_begun,
            free,
            taken,
            reserved,
            kept,
        )
    give_back_begun(count, parts_begun, tables)
    if requests.of.shape[0] > 0:
        begun[OF_ROW, parts_begun] = NO_JOB
    return count, kept


@allocating_kernel
def host_pass(
    tables: PassTables,
    rows: Int64Array,
    depth: int,
    is_stopping: bool,
    known: int,
    holders: int,
    is_told: bool,
    reserved: Int64Array,
    failures: Failures,
) -> tuple[int, int]:
    """Make one pass; return the number of started jobs and the number of reservations.

    ``hosts``: the free and the total amounts; not changed.  ``parts``: of the running jobs, of
    which ``instant.parts`` are in use.  ``rows``: in the order of the scan; the first ``holders``
    hold the first of ``reserved`` from earlier passes, which only move earlier.  ``is_stopping``:
    the pass ends at the first job that does not fit.  ``known``: so many of the first rows are
    known not to start now.  ``reserved``: receives the row, host and
    start of each reservation.  ``started``, ``places``: receive the rows that start, and their
    hosts.  ``is_told``: ``reserved`` receives all reservations, also those that no start needed to
    know.  ``begun``: receives the parts of jobs that have requests; for them ``places`` is
    ``SPREAD``.  It has space for one more: ``NO_JOB`` in ``OF_ROW`` is behind the last.
    ``failures``: what is known not to fit what is free now, and receives what was found out.
    """
    jobs, hosts, begun = tables.jobs, tables.hosts, tables.begun
    requests = jobs.requests
    is_loose = requests.of.shape[0] > 0
    for row in rows:
        is_loose = is_loose and not requests.heads[requests.of[row]].is_tight
    if not is_loose:
        # Reservations on several hosts hold until the next pass only.
        staying = holders if requests.of.shape[0] == 0 else 0
        return scan_hosts(
            tables, rows, depth, is_stopping, known, staying, is_told, reserved, failures
        )
    # Hosts matter to no job: the pass is that of one pool, and hosts are chosen afterwards.
    forget_bookings(rows, jobs, failures)
    pool, together, alone = as_pool(tables.instant.parts, jobs, hosts, tables.parts)
    as_one = PassTables(tables.instant, alone, pool, together, tables.started, tables.places, begun)
    count, kept = scan_hosts(
        as_one, rows, depth, is_stopping, known, holders, is_told, reserved, failures
    )
    left, parts_begun = hosts.copy(), 0
    taken = np.zeros((AMOUNTS + hosts.shape[1], hosts.shape[2]), np.int64)
    nothing = new_availability(hosts.shape[2], hosts.shape[1], 0)
    now = tables.instant.now
    for turn in range(count):
        row = tables.started[turn]
        place_now(row, now, now, jobs, left, nothing, taken)
        take_now(left, taken)
        end = now + jobs.estimate[row]
        tables.places[turn], parts_begun = write_begun(row, end, jobs, taken, begun, parts_begun)
    begun[OF_ROW, parts_begun] = NO_JOB
    return count, kept


@allocating_kernel
def as_pool(
    running: int, jobs: JobColumns, hosts: Int64Array, parts: Int64Array
) -> tuple[Int64Array, Int64Array, JobColumns]:
    """Return hosts, ``running`` parts and jobs as one pool of processors."""
    pool = np.zeros((hosts.shape[0], hosts.shape[1], 1), np.int64)
    pool[FREE, CPUS, 0], pool[THERE, CPUS, 0] = all_free(hosts), hosts[THERE, CPUS].sum()
    together = np.zeros((parts.shape[0], running), np.int64)
    for part in range(running):
        together[END, part], together[PROCS, part] = parts[END, part], parts[PROCS, part]
        if parts.shape[0] > AMOUNTS + hosts.shape[1]:
            together[SINCE, part], together[OF_ROW, part] = parts[SINCE, part], parts[OF_ROW, part]
    alone = JobColumns(jobs.submit, jobs.procs, jobs.estimate, jobs.asked, requests_of_none())
    return pool, together, alone


@kernel
def take_now(hosts: Int64Array, taken: Int64Array) -> None:
    """Take what a job takes from what is free on its hosts now."""
    for host in range(hosts.shape[2]):
        if taken[CHUNKS, host] > 0:
            for resource in range(hosts.shape[1]):
                hosts[FREE, resource, host] -= taken[AMOUNTS + resource, host]


@kernel
def give_back_begun(count: int, parts: int, tables: PassTables) -> None:
    """Give back what the jobs started in this pass took of what is free now: a pass only decides."""
    jobs, hosts, begun = tables.jobs, tables.hosts, tables.begun
    for turn in range(count):
        row, host = tables.started[turn], tables.places[turn]
        if host >= 0:
            for resource in range(hosts.shape[1]):
                hosts[FREE, resource, host] += asks(ONE_CHUNK, row, resource, host, jobs, hosts)
    for part in range(parts):
        for resource in range(hosts.shape[1]):
            hosts[FREE, resource, begun[HOST, part]] += begun[AMOUNTS + resource, part]


@allocating_kernel
def return_begun(
    wanted: BoolArray, count: int, tables: PassTables, parts: int, free: Availability
) -> Availability:
    """Give back, at their ends, what the jobs started in this pass take of the wanted hosts: they
    are gone from what is free now, and do not run yet."""
    jobs, hosts, begun = tables.jobs, tables.hosts, tables.begun
    part = np.zeros((AMOUNTS + hosts.shape[1], 1), np.int64)
    for turn in range(count):
        row, host = tables.started[turn], tables.places[turn]
        if host >= 0 and wanted[host]:
            for resource in range(hosts.shape[1]):
                part[AMOUNTS + resource, 0] = asks(ONE_CHUNK, row, resource, host, jobs, hosts)
            end = tables.instant.now + jobs.estimate[row]
            free = with_space(free, host)
            add(free, host, end, FOREVER, 1, part, 0)
    for each in range(parts):
        if wanted[begun[HOST, each]]:
            free = with_space(free, begun[HOST, each])
            add(free, begun[HOST, each], begun[END, each], FOREVER, 1, begun, each)
    return free


@kernel
def stay(
    row: int,
    host: int,
    at: int,
    duration: int,
    jobs: JobColumns,
    hosts: Int64Array,
    free: Availability,
    taken: Int64Array,
) -> None:
    """Let a kept reservation that cannot be earlier stay on its host, if it fits there
    (``taken``)."""
    clear(taken)
    if (
        fit_over(ONE_CHUNK, row, host, 1, at, at + duration, False, jobs, hosts, free, taken)[0]
        == 0
    ):
        place_over(row, at, at + duration, jobs, hosts, free, taken)
        return
    taken[CHUNKS, host] = 1
    for resource in range(hosts.shape[1]):
        taken[AMOUNTS + resource, host] = asks(ONE_CHUNK, row, resource, host, jobs, hosts)
