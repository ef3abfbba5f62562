"""What fits on hosts, when, and what a list scheduler starts there: the kernels say the same as an
oracle that was written from the specification (docs/spec/production.md 1.3 and 1.4)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest

from qbatch.planning.kernels import availability, host_pass
from qbatch.planning.kernels.entries import entry_to, uncompiled
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    AMOUNTS,
    CPUS,
    END,
    FREE,
    GROUP,
    HOST,
    MEMORY,
    NAMED,
    NO_JOB,
    OF_ROW,
    REQUEST,
    SPREAD,
    THERE,
    Instant,
    JobColumns,
    Requests,
    no_requests,
)
from qbatch.planning.windows import NO_WINDOWS
from tests.harness import size
from tests.planning import naive_hosts as naive
from tests.planning.naive_hosts import (
    SECOND,
    Booking,
    Group,
    Host,
    Job,
    Machine,
    Part,
    Placement,
    Window,
)

GIB = 1 << 30
DURATIONS = (*(count * SECOND for count in (1, 2, 3, 3, 5, 8, 13)), SECOND // 2, 1, 900 * SECOND)
FORMS = (entry_to, uncompiled)
"""The kernels compiled, and the same source as plain Python."""


class Case(NamedTuple):
    """A machine, jobs in the order of the scan, and whether each is one chunk without a request."""

    machine: Machine
    jobs: list[Job]
    is_one_chunk: bool


class Tables(NamedTuple):
    """The arrays of a case."""

    jobs: JobColumns
    hosts: np.ndarray
    parts: np.ndarray
    free: int


def random_case(rng: random.Random, most_jobs: int = 10) -> Case:
    """Return random jobs on a random machine on which jobs already run."""
    if rng.random() < 0.25:
        return random_mixed_case(rng)
    if rng.random() < 0.15:
        return random_loose_case(rng)
    is_one_chunk = rng.random() < 0.35
    machine = random_machine(rng)
    jobs: list[Job] = []
    for row in range(rng.randint(1, most_jobs)):
        # Equal jobs are frequent in logs.
        if jobs and rng.random() < 0.15:
            model = rng.choice(jobs)
            jobs.append(
                Job(
                    row,
                    rng.choice((model.estimate, 0, *DURATIONS)),
                    model.groups,
                    model.is_scattered,
                    model.is_exclusive,
                    model.is_one_chunk,
                )
            )
        else:
            jobs.append(random_job(rng, row, machine.hosts, is_one_chunk))
    start_some(rng, machine, (0, 0, 1, 2, 4, 8, 16))
    if not is_one_chunk and rng.random() < 0.5:
        reserve_some(rng, machine, jobs)
    rng.shuffle(jobs)
    return Case(machine, jobs, is_one_chunk)


def is_pool_case(case: Case) -> bool:
    """Return whether hosts matter to no job."""
    return not case.machine.windows and all(job.is_loose for job in case.jobs)


def reserve_some(rng: random.Random, machine: Machine, jobs: Sequence[Job]) -> None:
    """Reserve hosts, but not the server, and let some jobs name a reservation."""
    hosts = [place for place, host in enumerate(machine.hosts) if not host.is_server]
    for reservation in range(rng.randint(1, 3)):
        for _ in range(rng.randint(1, 3)):
            start = machine.now + (rng.randint(-3, 10) * SECOND) // rng.choice((1, 1, 2))
            end = start + rng.choice(DURATIONS)
            machine.windows += [
                Window(host, start, end, reservation) for host in hosts if rng.random() < 0.6
            ]
    machine.windows.sort(key=lambda window: (window.host, window.start))
    for job in jobs:
        if rng.random() < 0.4:
            job.reservation, job.is_inside = rng.randint(0, 2), rng.random() < 0.7


def random_machine(rng: random.Random) -> Machine:
    """Return a machine on which no job runs."""
    named = rng.choice((0, 0, 1, 1, 2))
    has_server = rng.random() < 0.4
    memory = rng.choice(((0,), (0,), (0, 4, 8), (2, 4, 8)))
    hosts = [
        Host(
            [rng.randint(1, 8), rng.choice(memory) * GIB]
            + [rng.choice((0, 1, 2, 4)) for _ in range(named)]
            + [0] * has_server,
        )
        for _ in range(rng.randint(1, 6 - has_server))
    ]
    if rng.random() < 0.3:  # some hosts are alike
        for place in range(1, len(hosts)):
            if rng.random() < 0.7:
                hosts[place] = Host(list(hosts[0].total))
    if len(hosts) > 1 and rng.random() < 0.1:
        hosts[rng.randrange(len(hosts))] = Host([0] * len(hosts[0].total), is_closed=True)
    if has_server:
        hosts.append(Host([0, 0] + [0] * named + [rng.randint(1, 5)], is_server=True))
    return Machine(rng.choice((0, 1, 1000 * SECOND, 123_456_789)), hosts)


def random_amounts(rng: random.Random, hosts: Sequence[Host], is_large: bool) -> naive.Vector:
    """Return what a chunk asks for: seldom more than any host has."""
    kinds = len(hosts[0].total)
    most = [max(host.total[kind] for host in hosts if not host.is_server) for kind in range(kinds)]
    if is_large:
        amounts = [rng.randint((total + 1) // 2, total) for total in most]
    else:
        amounts = [rng.randint(0, (total + 1) // 2) for total in most]
    amounts[CPUS] = max(1, amounts[CPUS])
    for kind in range(MEMORY, kinds):
        if rng.random() < 0.5:
            amounts[kind] = 0
    if kinds > MEMORY and amounts[MEMORY] == 0 and rng.random() < 0.1:
        amounts[MEMORY] = GIB  # on hosts that do not count it, too
    if rng.random() < 0.03:
        amounts[rng.randrange(kinds)] += max(most)
    elif kinds > NAMED and amounts[NAMED] and rng.random() < 0.3:
        amounts[CPUS] = amounts[MEMORY] = 0  # a chunk of named resources only
    return amounts


def random_job(rng: random.Random, row: int, hosts: Sequence[Host], is_one_chunk: bool) -> Job:
    estimate = rng.choice((0, *DURATIONS))
    if is_one_chunk:
        amounts = random_amounts(rng, hosts, rng.random() < 0.5)
        amounts[CPUS] = max(1, amounts[CPUS])
        return Job(row, estimate, [Group(1, amounts)], is_one_chunk=True)
    kind = rng.random()
    groups = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        allowed = None
        if rng.random() < 0.6:
            allowed = {place for place in range(len(hosts)) if rng.random() < 0.5}
            # A chunk that may be on the server only is a request for a licence.
            allowed -= {place for place, host in enumerate(hosts) if host.is_server}
            allowed = allowed or {0}
        count = rng.choice((1, 1, 1, 2, 2, 3, 4, 6))
        amounts = random_amounts(rng, hosts, count == 1)
        if not groups:  # each job has a processor
            amounts[CPUS] = max(1, amounts[CPUS])
        groups.append(Group(count, amounts, allowed))
    is_exclusive = 0.15 < kind < 0.4
    if hosts[-1].is_server and rng.random() < 0.5:
        amounts = [0] * len(hosts[0].total)
        amounts[-1] = rng.randint(1, hosts[-1].total[-1])
        place = rng.choice((0, len(groups)))
        groups.insert(place, Group(1, amounts, {len(hosts) - 1}))
    if rng.random() < 0.03:
        groups = []
    return Job(row, estimate, groups, is_scattered=kind < 0.25, is_exclusive=is_exclusive)


def random_mixed_case(rng: random.Random) -> Case:
    """Return a case of jobs with groups that compete for few hosts.

    The first group of such a job often takes what the second needs.  So the job may fit only when
    another has something of the first host.
    """
    kinds = NAMED + rng.choice((1, 1, 2))
    hosts = [
        Host([rng.randint(2, 6), 0] + [rng.randint(0, 2) for _ in range(kinds - NAMED)])
        for _ in range(rng.choice((2, 2, 3, 4)))
    ]
    named = kinds - NAMED
    jobs = []
    for row in range(rng.randint(2, 8)):
        groups = []
        target = rng.choice((0, 0, rng.randrange(len(hosts))))
        kind = rng.random()
        if kind < 0.5:  # the second group needs processors of a host that the first may take
            groups = [
                Group(1, [rng.randint(1, 3), 0] + [rng.randint(1, 2)] * named),
                Group(1, [rng.randint(1, hosts[target].total[CPUS]), 0] + [0] * named, {target}),
            ]
        elif kind < 0.75:  # it takes named resources there
            amounts = [1, 0] + [rng.randint(0, 2) for _ in range(named)]
            groups = [Group(1, amounts, rng.choice(({target}, None)))]
        else:
            for _ in range(rng.choice((1, 2, 2, 3))):
                amounts = [rng.randint(1, 4), 0] + [rng.choice((0, 0, 1, 2)) for _ in range(named)]
                allowed = {rng.randrange(len(hosts))} if rng.random() < 0.5 else None
                groups.append(Group(rng.choice((1, 1, 1, 2)), amounts, allowed))
        is_scattered, is_exclusive = rng.random() < 0.15, rng.random() < 0.05
        estimate = rng.choice((0, *DURATIONS))
        jobs.append(Job(row, estimate, groups, is_scattered, is_exclusive))
    machine = Machine(rng.choice((0, 7 * SECOND)), hosts)
    start_some(rng, machine, (0, 1, 1, 2, 3))
    rng.shuffle(jobs)
    return Case(machine, jobs, False)


def random_loose_case(rng: random.Random) -> Case:
    """Return a case of jobs that are chunks of one processor, anywhere, and sometimes one other."""
    machine = random_machine(rng)
    procs = sum(host.total[CPUS] for host in machine.hosts)
    other = [0] * (len(machine.hosts[0].total) - 1)
    jobs = [
        Job(
            row,
            rng.choice((0, *DURATIONS)),
            [
                Group(rng.randint(1, max(1, procs // 2)), [1, *other])
                for _ in range(rng.choice((1, 1, 2)))
            ],
        )
        for row in range(rng.randint(2, 10))
    ]
    if rng.random() < 0.3:
        jobs.append(random_job(rng, len(jobs), machine.hosts, False))
    start_some(rng, machine, (0, 1, 2, 4, 8))
    rng.shuffle(jobs)
    return Case(machine, jobs, False)


def start_some(rng: random.Random, machine: Machine, most: Sequence[int]) -> None:
    """Let some jobs run; some of them should have ended."""
    ends = [
        machine.now + rng.choice((1, 2, 3, 4, 5, 6, 8, 10, 20)) * SECOND // rng.choice((1, 1, 2))
        for _ in range(rng.randint(1, 4))
    ]
    for _ in range(rng.choice(most)):
        place = rng.randrange(len(machine.hosts))
        free = machine.free_now(place)
        amounts = [rng.randint(0, amount) for amount in free]
        if rng.random() < 0.5:
            amounts[MEMORY:] = [amount * rng.randint(0, 1) for amount in amounts[MEMORY:]]
        if rng.random() < 0.15:
            amounts = free
        end = rng.choice(ends)
        if rng.random() < 0.1:
            end = max(0, machine.now - rng.choice((0, 0, 1, SECOND)))
        if any(amounts):
            machine.parts.append(Part(end, place, amounts))
    machine.parts.sort(key=lambda part: part.end)


def book_some(rng: random.Random, machine: Machine) -> None:
    """Book amounts that are free over random intervals."""
    instants = [
        machine.now + count * SECOND // rng.choice((1, 1, 2)) for count in (0, 1, 2, 3, 4, 6, 9, 15)
    ]
    instants += [machine.end_of(part) for part in machine.parts]
    for _ in range(rng.choice((0, 1, 2, 4, 8))):
        start, end = rng.choice(instants), rng.choice(instants)
        place = rng.randrange(len(machine.hosts))
        if start < end:
            segments = machine.free_over(place, start, end)
            least = [min(free[kind] for free in segments) for kind in range(len(segments[0]))]
            amounts = [rng.choice((0, rng.randint(0, amount), amount)) for amount in least]
            if any(amounts):
                machine.bookings.append(Booking(place, start, end, amounts))


def tables_of(case: Case, rng: random.Random) -> Tables:
    """Return the arrays of a case."""
    machine, count = case.machine, len(case.jobs)
    kinds = len(machine.hosts[0].total)
    by_row = sorted(case.jobs, key=lambda job: job.row)
    asked = np.zeros((kinds, count), np.int64)
    for job in by_row:
        for group in job.groups:
            asked[:, job.row] += np.array(group.amounts) * group.count
    jobs = JobColumns(
        np.arange(count),
        asked[CPUS].copy(),
        np.array([job.estimate for job in by_row], np.int64),
        asked,
        no_requests() if case.is_one_chunk else _requests_of(by_row, machine),
    )
    hosts = np.zeros((2, kinds, len(machine.hosts)), np.int64)
    for place, host in enumerate(machine.hosts):
        hosts[FREE, :, place] = machine.free_now(place)
        hosts[THERE, :, place] = host.total
    extra = rng.choice((0, 3))  # columns that are not in use
    rows = AMOUNTS + kinds + (0 if case.is_one_chunk else 2)
    parts = np.full((rows, len(machine.parts) + extra), 77, np.int64)
    for column, part in enumerate(machine.parts):
        parts[:, column] = -1
        parts[END, column], parts[HOST, column] = part.end, part.host
        parts[AMOUNTS : AMOUNTS + kinds, column] = part.amounts
    return Tables(jobs, hosts, parts, int(hosts[FREE, CPUS].sum()))


def _requests_of(jobs: Sequence[Job], machine: Machine) -> Requests:
    """Return the requests, one for all jobs that ask for the same."""
    distinct: list[Job] = []
    of = []
    for job in jobs:
        if not any(_asks_the_same(job, other) for other in distinct):
            distinct.append(job)
        of.append(next(at for at, other in enumerate(distinct) if _asks_the_same(job, other)))
    heads = np.zeros(len(distinct), REQUEST)
    groups: list[Group] = []
    for head, job in zip(heads, distinct, strict=True):
        head["first"], head["groups"] = len(groups), len(job.groups)
        head["procs"] = sum(group.count * group.amounts[CPUS] for group in job.groups)
        head["is_scattered"], head["is_exclusive"] = job.is_scattered, job.is_exclusive
        head["is_mixed"] = job.is_mixed
        head["is_tight"] = not job.is_loose or bool(machine.windows)
        head["reservation"], head["is_inside"] = job.reservation, job.is_inside
        groups += job.groups
    sets = [group.allowed for group in groups if group.allowed is not None]
    members = np.zeros((len(sets), len(machine.hosts)), np.int8)
    for number, allowed in enumerate(sets):
        members[number, sorted(allowed)] = 1
    records = np.zeros(len(groups), GROUP)
    used = 0
    for record, group in zip(records, groups, strict=True):
        record["count"], record["hosts"] = group.count, -1 if group.allowed is None else used
        chosen = range(len(machine.hosts)) if group.allowed is None else group.allowed
        record["begin"], record["end"] = min(chosen, default=0), max(chosen, default=-1) + 1
        used += group.allowed is not None
    amounts = np.array([group.amounts for group in groups], np.int64)
    amounts = amounts.reshape(len(groups), len(machine.hosts[0].total))
    firsts, windows = NO_WINDOWS
    if machine.windows:
        hosts = [window.host for window in machine.windows]
        firsts = np.searchsorted(hosts, np.arange(len(machine.hosts) + 1)).astype(np.int64)
        rows = [(window.start, window.end, window.reservation) for window in machine.windows]
        windows = np.array(rows, np.int64).T.copy()
    return Requests(np.array(of, np.int64), heads, records, amounts, members, firsts, windows)


def _asks_the_same(one: Job, other: Job) -> bool:
    asks = attrgetter("groups", "is_scattered", "is_exclusive", "reservation", "is_inside")
    return bool(asks(one) == asks(other))


def filled(form: Callable[[Any], Any], case: Case, tables: Tables) -> availability.Availability:
    """Return what is free over time, as the kernels say it."""
    machine = case.machine
    kinds = len(machine.hosts[0].total)
    free = form(availability.filled)(machine.now, tables.hosts, tables.parts, len(machine.parts), 0)
    for booking in machine.bookings:
        part = np.zeros((AMOUNTS + kinds, 1), np.int64)
        part[HOST], part[AMOUNTS:, 0] = booking.host, booking.amounts
        free = form(availability.change)(part, booking.start, booking.end, -1, free)
        free.booked[booking.host] = 1
    return free


def placement_of(taken: np.ndarray) -> Placement:
    """Return a placement that a kernel wrote."""
    return {
        host: naive.Placed(int(taken[availability.CHUNKS, host]), taken[AMOUNTS:, host].tolist())
        for host in range(taken.shape[1])
        if taken[availability.CHUNKS, host]
    }


def new_taken(tables: Tables) -> np.ndarray:
    kinds, hosts = tables.hosts.shape[1:]
    return np.zeros((AMOUNTS + kinds, hosts), np.int64)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_free_over_time_is_what_the_oracle_says(form: Callable[[Any], Any]) -> None:
    for seed in range(size(100, 3000)):
        rng = random.Random(seed)
        case = random_case(rng)
        book_some(rng, case.machine)
        free = filled(form, case, tables_of(case, rng))
        for host in range(len(case.machine.hosts)):
            for instant in {case.machine.now, *case.machine.changes(host)}:
                segment = form(availability.segment_at)(free, host, instant)
                found = free.level[host, segment].tolist()
                assert found == case.machine.free_at(host, instant), (seed, host, instant)


@pytest.mark.parametrize("form", FORMS)
def test_a_place_over_an_interval_is_that_of_the_oracle(form: Callable[[Any], Any]) -> None:
    fits = several = 0
    for seed in range(size(300, 10_000)):
        rng = random.Random(seed)
        case = random_case(rng, 6)
        book_some(rng, case.machine)
        tables = tables_of(case, rng)
        free, now = filled(form, case, tables), case.machine.now
        instants = sorted(
            {at for host in range(len(case.machine.hosts)) for at in case.machine.changes(host)}
        )
        for job in case.jobs:
            later = rng.choice([now, now + SECOND // 3, *(at for at in instants if at >= now)])
            for start, end, is_now in (
                (now, now + job.estimate, True),
                (later, later + rng.choice(DURATIONS), False),
            ):
                taken = new_taken(tables)
                left = form(availability.place)(
                    job.row, start, end, is_now, tables.jobs, tables.hosts, free, taken
                )
                expected = naive.place(case.machine, job, start, end, is_now)
                found = placement_of(taken) if left == 0 else None
                assert found == expected, (seed, job, start, end, is_now)
                if is_now and left > 0:  # it does not fit, whatever is booked
                    assert naive.place(case.machine, job, start, start, True) is None
                fits += expected is not None
                several += expected is not None and len(expected) > 1
    assert fits > size(500, 15_000)
    assert several > size(50, 1500)


@pytest.mark.parametrize("form", FORMS)
def test_the_earliest_start_is_that_of_the_oracle(form: Callable[[Any], Any]) -> None:
    waits = never = 0
    for seed in range(size(300, 10_000)):
        rng = random.Random(seed)
        case = random_case(rng, 6)
        book_some(rng, case.machine)
        tables = tables_of(case, rng)
        free, now = filled(form, case, tables), case.machine.now
        for job in case.jobs:
            not_before = now + rng.choice((0, 0, 1, SECOND, 3 * SECOND, SECOND * 7 // 2))
            duration = max(job.estimate, rng.choice((1, SECOND)))
            taken = new_taken(tables)
            start = form(availability.earliest)(
                job.row, not_before, FOREVER, duration, tables.jobs, tables.hosts, free, taken
            )
            found = None if start == FOREVER else (start, placement_of(taken))
            expected = naive.earliest(case.machine, job, not_before, duration)
            assert found == expected, (seed, job, not_before, duration)
            waits += expected is not None and expected[0] > not_before
            never += expected is None
    assert waits > size(200, 6000)
    assert never > size(20, 600)


class Found(NamedTuple):
    """What a pass does, in the form in which it is compared.  ``starts``: of the row, its expected
    end, and the amounts on each host.  ``reserved``: of the row, the start, and the host of a job
    that is one chunk."""

    starts: list[tuple[int, int, dict[int, naive.Vector]]]
    reserved: list[tuple[int, int, int]]


def expected_of(case: Case, outcome: naive.Outcome) -> Found:
    estimate = {job.row: job.estimate for job in case.jobs}
    return Found(
        [
            (
                row,
                case.machine.now + estimate[row],
                {host: placed.amounts for host, placed in where.items()},
            )
            for row, where in outcome.starts
        ],
        [
            (row, start, next(iter(where)) if case.is_one_chunk else SPREAD)
            for row, start, where in outcome.reserved
        ],
    )


def pass_of(
    form: Callable[[Any], Any],
    case: Case,
    tables: Tables,
    depth: int,
    is_stopping: bool,
    is_told: bool = True,
) -> Found:
    """Return what the kernel does; ``is_told``: with all its reservations."""
    now, kinds, count = case.machine.now, tables.hosts.shape[1], len(case.jobs)
    rows = np.array([job.row for job in case.jobs], np.int64)
    instant = Instant(now, tables.free, 0, count, 0, len(case.machine.parts), 0, 0, 0, 0)
    reserved = np.empty((3, min(depth, count)), np.int64)
    started, places = np.empty(count, np.int64), np.empty(count, np.int64)
    space = sum(group.count for job in case.jobs for group in job.groups) + 1
    begun = np.full((0, 0) if case.is_one_chunk else (AMOUNTS + kinds + 2, space), 55, np.int64)
    hosts, parts = tables.hosts.copy(), tables.parts.copy()
    starts, kept = form(host_pass.host_pass)(
        host_pass.PassTables(instant, tables.jobs, hosts, parts, started, places, begun),
        rows,
        depth,
        is_stopping,
        0,
        0,
        is_told,
        reserved,
        form(host_pass.no_failures)(tables.jobs),
    )
    assert np.array_equal(hosts, tables.hosts)
    assert np.array_equal(parts, tables.parts)
    found: list[tuple[int, int, dict[int, naive.Vector]]] = []
    column = 0
    for row, place in zip(started[:starts].tolist(), places[:starts].tolist(), strict=True):
        if case.is_one_chunk:
            amounts = naive.asked_on(case.machine.hosts[place], tables.jobs.asked[:, row].tolist())
            end = now + int(tables.jobs.estimate[row])
            found.append((row, end, {place: amounts}))
            continue
        assert place == SPREAD
        where: dict[int, naive.Vector] = {}
        ends = set()
        while begun[OF_ROW, column] == row:
            assert begun[HOST, column] not in where
            where[int(begun[HOST, column])] = begun[AMOUNTS : AMOUNTS + kinds, column].tolist()
            ends.add(int(begun[END, column]))
            column += 1
        (end,) = ends
        found.append((row, end, where))
    if not case.is_one_chunk:
        assert begun[OF_ROW, column] == NO_JOB
    if is_pool_case(case):
        reserved[host_pass.WHERE] = SPREAD  # hosts do not matter
    fields = [host_pass.ROW, host_pass.AT, host_pass.WHERE]
    return Found(found, [tuple(each) for each in reserved[fields, :kept].T.tolist()])


@pytest.mark.parametrize("form", FORMS)
def test_a_pass_is_that_of_the_oracle(form: Callable[[Any], Any]) -> None:
    starts = reserved = backfilled = 0
    for seed in range(size(300, 10_000)):
        rng = random.Random(seed)
        case = random_case(rng, rng.choice((6, 12)))
        tables = tables_of(case, rng)
        depth = rng.choice((0, 1, 1, 2, 4, 100))
        is_stopping = depth == 0 and rng.random() < 0.5
        is_pool = is_pool_case(case)
        oracle = naive.pool_pass if is_pool else naive.list_pass
        outcome = oracle(case.machine, case.jobs, depth, is_stopping=is_stopping)
        expected = expected_of(case, outcome)
        assert pass_of(form, case, tables, depth, is_stopping) == expected, (seed, depth)
        untold = pass_of(form, case, tables, depth, is_stopping, False)
        assert untold.starts == expected.starts, (seed, depth)
        starts += len(expected.starts)
        reserved += len(expected.reserved)
        backfilled += bool(expected.reserved and expected.starts)
    assert starts > size(200, 8000)
    assert reserved > size(120, 4000)
    assert backfilled > size(40, 1500)


def outcome_of(
    form: Callable[[Any], Any],
    machine: Machine,
    jobs: list[Job],
    depth: int,
    is_stopping: bool = False,
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the rows that a pass starts, and the rows and starts of its reservations, in seconds;
    the oracle says the same."""
    case = Case(machine, jobs, jobs[0].is_one_chunk)
    found = pass_of(form, case, tables_of(case, random.Random(0)), depth, is_stopping)
    expected = naive.list_pass(machine, jobs, depth, is_stopping=is_stopping)
    assert found == expected_of(case, expected)
    return (
        [row for row, _, _ in found.starts],
        [(row, start // SECOND) for row, start, _ in found.reserved],
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_one_chunk", [True, False])
@pytest.mark.parametrize(
    ("second", "starts"), [(40, {1: {1: [6, 0, 0]}}), (60, {3: {1: [4, 0, 0]}})]
)
def test_worked_case_7(
    form: Callable[[Any], Any],
    is_one_chunk: bool,
    second: int,
    starts: dict[int, dict[int, list[int]]],
) -> None:
    """Two hosts with 8 processors and 2 GPUs: the first job waits for both on the second host."""

    def job(row: int, cpus: int, gpus: int, estimate: int) -> Job:
        group = Group(1, [cpus, 0, gpus])
        return Job(row, estimate * SECOND, [group], is_one_chunk=is_one_chunk)

    machine = Machine(
        0,
        [Host([8, 0, 2]), Host([8, 0, 2])],
        [Part(50 * SECOND, 1, [2, 0, 2]), Part(100 * SECOND, 0, [8, 0, 0])],
    )
    jobs = [job(0, 4, 2, 60), job(1, 6, 0, second), job(2, 1, 1, 10), job(3, 4, 0, 200)]
    case = Case(machine, jobs, is_one_chunk)
    found = pass_of(form, case, tables_of(case, random.Random(0)), 1, False)
    assert {row: where for row, _, where in found.starts} == starts
    assert found.reserved == [(0, 50 * SECOND, 1 if is_one_chunk else SPREAD)]
    assert found == expected_of(case, naive.list_pass(machine, jobs, 1))


@pytest.mark.parametrize("form", FORMS)
def test_a_shorter_job_that_asks_for_the_same_is_tried(form: Callable[[Any], Any]) -> None:
    machine = Machine(0, [Host([8, 0])], [Part(50 * SECOND, 0, [2, 0])])
    jobs = [
        Job(row, estimate * SECOND, [Group(1, [cpus, 0], {0})])
        for row, (cpus, estimate) in enumerate([(8, 10), (3, 60), (3, 50), (3, 51), (3, 40)])
    ]
    assert outcome_of(form, machine, jobs, 1) == ([2, 4], [(0, 50)])


def two_groups(row: int) -> Job:
    """Return a job that fits two idle hosts in no way: what needs a GPU takes the first host, and
    the rest must be there, too."""
    return Job(row, 10 * SECOND, [Group(1, [2, 0, 1]), Group(1, [3, 0, 0], {0})])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("depth", [0, 1])
def test_a_start_that_lets_a_job_passed_over_fit_repeats_the_scan(
    form: Callable[[Any], Any], depth: int
) -> None:
    machine = Machine(0, [Host([4, 0, 1]), Host([4, 0, 1])])
    takes, never = Group(1, [1, 0, 1], {0}), Group(1, [9, 0, 0])
    jobs = [two_groups(0), Job(1, SECOND, [takes])]
    assert outcome_of(form, machine, jobs, depth) == ([1, 0], [])
    assert outcome_of(form, machine, jobs, 0, is_stopping=True) == ([], [])
    assert outcome_of(form, machine, jobs[::-1], depth) == ([1, 0], [])
    assert outcome_of(form, machine, [*jobs, Job(2, SECOND, [never])], depth) == ([1, 0], [])
    # In the first scan the second of two equal jobs comes after the job that it needs.
    assert outcome_of(form, machine, [*jobs, two_groups(2)], depth)[0] == [1, 2]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("named", "starts"), [(0, [1]), (1, [])])
def test_a_reservation_of_loose_jobs_has_no_hosts(
    form: Callable[[Any], Any], named: int, starts: list[int]
) -> None:
    """From 10 s on the first job takes three of four processors.

    If hosts matter to a job, that is both of the first host, on which alone the second could start.
    """
    machine = Machine(0, [Host([2, 0, 1]), Host([2, 0, 1])], [Part(10 * SECOND, 1, [2, 0, 0])])
    jobs = [
        Job(0, 90 * SECOND, [Group(3, [1, 0, 0])]),
        Job(1, 20 * SECOND, [Group(1, [1, 0, named])]),
    ]
    case = Case(machine, jobs, False)
    oracle = naive.list_pass if named else naive.pool_pass
    found = pass_of(form, case, tables_of(case, random.Random(0)), 1, False)
    assert found == expected_of(case, oracle(machine, jobs, 1))
    assert [row for row, _, _ in found.starts] == starts
    assert found.reserved == [(0, 10 * SECOND, SPREAD)]


@pytest.mark.parametrize("form", FORMS)
def test_a_change_on_any_host_is_a_candidate(form: Callable[[Any], Any]) -> None:
    """From 5 s on the GPU of the first host is not free for the whole time."""
    machine = Machine(0, [Host([4, 0, 1]), Host([4, 0, 1]), Host([1, 0, 0])])
    machine.bookings = [
        Booking(0, 12 * SECOND, 100 * SECOND, [0, 0, 1]),
        Booking(2, 0, 5 * SECOND, [1, 0, 0]),
    ]
    case = Case(machine, [two_groups(0)], False)
    tables = tables_of(case, random.Random(0))
    free, taken = filled(form, case, tables), new_taken(tables)
    start = form(availability.earliest)(
        0, 0, FOREVER, 10 * SECOND, tables.jobs, tables.hosts, free, taken
    )
    assert start == 5 * SECOND
    assert (start, placement_of(taken)) == naive.earliest(machine, case.jobs[0], 0, 10 * SECOND)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_one_chunk", [True, False])
@pytest.mark.parametrize(("estimate", "starts", "second"), [(0, [1], 2), (1, [], 1)])
def test_a_job_of_no_length_needs_only_what_is_free_now(
    form: Callable[[Any], Any], is_one_chunk: bool, estimate: int, starts: list[int], second: int
) -> None:
    """The first job is reserved now, because the running job should have ended."""
    jobs = [
        Job(0, 0, [Group(1, [4, 0])], is_one_chunk=is_one_chunk),
        Job(1, estimate, [Group(1, [2, 0])], is_one_chunk=is_one_chunk),
        Job(2, SECOND, [Group(1, [3, 0])], is_one_chunk=is_one_chunk),
    ]
    for end in (5 * SECOND, 9 * SECOND):
        machine = Machine(9 * SECOND, [Host([4, 0])], [Part(end, 0, [2, 0])])
        # The reservation of a job of no length is a second long.
        assert outcome_of(form, machine, jobs, 2) == (starts, [(0, 9), (second, 10)])


@pytest.mark.parametrize("form", FORMS)
def test_an_exclusive_job_takes_only_the_licences_that_it_asks_for(
    form: Callable[[Any], Any],
) -> None:
    """Licences are amounts of the machine, not of a host that a job could have alone (1.1)."""
    machine = Machine(
        0, [Host([4, 0, 0]), Host([0, 0, 4], is_server=True)], [Part(SECOND, 1, [0, 0, 1])]
    )
    groups = [Group(1, [1, 0, 0], {0}), Group(1, [0, 0, 1], {1})]
    assert outcome_of(form, machine, [Job(0, SECOND, groups, is_exclusive=True)], 0) == ([0], [])
