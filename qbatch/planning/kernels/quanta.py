"""Quanta for new jobs: on which host a guest gets room, which running jobs are suspended for it, and the pass of ``immediate``
and ``soon`` (:mod:`qbatch.policies.immediate`) around a list scheduler on hosts.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, sections 2.4 and 3;
exact readings in spec/papers.md 3.4.  The victims are taken by the smallest slowdown, which whole numbers decide.
"""

from __future__ import annotations

from typing import NamedTuple

from qbatch.planning.kernels import tables
from qbatch.planning.kernels.host_pass import all_free, most_free
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.lists import HostList, list_pass
from qbatch.planning.kernels.order import stable_order
from qbatch.planning.kernels.tables import (
    CPUS,
    FREE,
    FREE_MEMORY,
    MEMORY,
    REFUSED_START,
    RESUME,
    START,
    SUSPEND,
    TRY,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array
from qbatch.planning.kernels.verbs import book

HOST, PROCS, TOTAL, EXECUTED = 0, 1, 2, 3
"""Rows of ``victims``: the jobs that may be suspended, by sequence.  Host (-1: it is gone), processors, time in the system, and
time executed, at least 1, in the same unit as the former."""

VICTIM_ROWS = 4
"""How many rows ``victims`` has."""


@kernel
def is_less(first: int, over: int, second: int, under: int) -> bool:
    """Tell whether ``first / over`` is less than ``second / under``; all are positive, and no product is made that overflows."""
    while True:
        left, right = first // over, second // under
        if left != right:
            return left < right
        first, second = first % over, second % under
        if first == 0 or second == 0:
            return first < second
        # What is left are proper fractions: they compare as their inverses do, the other way round.
        first, over, second, under = under, second, over, first


@allocating_kernel
def by_slowdown(victims: Int64Array) -> Int64Array:
    """Return the places of ``victims`` by the smallest slowdown, ties by sequence.

    Doubles bring all but near to where it belongs; whole numbers decide.
    """
    order = stable_order(victims[TOTAL] / victims[EXECUTED])
    for place in range(1, order.shape[0]):
        moved, to = order[place], place
        total, executed = victims[TOTAL, moved], victims[EXECUTED, moved]
        while to > 0:
            before = order[to - 1]
            other, divisor = victims[TOTAL, before], victims[EXECUTED, before]
            is_later = is_less(total, executed, other, divisor)
            if not is_later and (moved > before or is_less(other, divisor, total, executed)):
                break
            order[to] = before
            to -= 1
        order[to] = moved
    return order


@kernel
def make_room(
    host: int, procs: int, room: int, victims: Int64Array, order: Int64Array, chosen: Int64Array
) -> tuple[int, int]:
    """Choose victims on a host in order until there is room; return how much there is, and how many are chosen."""
    count = 0
    for place in order:
        if room >= procs:
            break
        if victims[HOST, place] == host:
            chosen[count] = place
            count += 1
            room += victims[PROCS, place]
    return room, count


@kernel
def guest_host(
    procs: int, memory: int, hosts: Int64Array, victims: Int64Array, order: Int64Array, chosen: Int64Array
) -> tuple[int, int]:
    """Return the host that a guest gets, -1 for none, and how many victims make room for it.

    It is the host with the fewest processors left over, then with the fewest victims, then the first.

    Args:
        memory: that the guest gets where memory counts, bytes.
        hosts: ``[4, H]``, what is free and what there is (:mod:`host_pass`).
        order: places of ``victims`` in the order in which they are taken.
        chosen: the places of the victims are written here.
    """
    best, least, fewest = -1, 0, 0
    for host in range(hosts.shape[1]):
        if hosts[CPUS, host] < procs or (hosts[MEMORY, host] > 0 and hosts[FREE_MEMORY, host] < memory):
            continue
        room, count = make_room(host, procs, hosts[FREE, host], victims, order, chosen)
        if room >= procs and (best < 0 or room < least or (room == least and count < fewest)):
            best, least, fewest = host, room, count
    if best >= 0:
        make_room(best, procs, hosts[FREE, best], victims, order, chosen)
    return best, fewest


GUEST, IDLE, BEGIN, END, IS_OVER = 0, 1, 2, 3, 4
"""Columns of ``quanta``: the guest, the idle processors that it took, when it began, its end by its estimate and its quantum,
and whether it has gone."""

QUANTUM_COLUMNS = 5
"""How many columns ``quanta`` has."""

ASLEEP, QUANTA = 0, 1
"""Places in ``counts``: how many jobs are suspended, and how many quanta there are."""

OVERDUE = 1_000_000
"""A job that outlives its estimate is taken to end this many microseconds from now."""


class QuantaTables(NamedTuple):
    """What is remembered of quanta around a list scheduler.

    ``quantum``, ``protect`` (-1: no job is suspended): microseconds; ``memory``: the most that a guest gets, bytes.
    ``had[R]``: how long a job ran as a guest (-1: it was none).  ``guest_of[R]``: the guest for which it is suspended (-1: it is
    not).  ``suspended[P]``: their rows.  ``quanta[P, 5]``: the oldest first.  ``counts[2]``.  To work with: ``hosts[4, H]``,
    ``parts[4, 2 P]``, ``victims[4, P]``, ``rows[P]`` and ``chosen[P]``.
    """

    inner: HostList
    quantum: int
    protect: int
    memory: int
    had: Int64Array
    guest_of: Int64Array
    suspended: Int64Array
    quanta: Int64Array
    counts: Int64Array
    hosts: Int64Array
    parts: Int64Array
    victims: Int64Array
    rows: Int64Array
    chosen: Int64Array


@allocating_kernel
def decide_quanta(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables
) -> int:  # fmt: skip
    """Resume the jobs that were suspended for guests that have gone, make the inner pass, give new guests their quanta.

    No host closes in a replay, and the jobs of a log may be begun twice.
    """
    now, hosts, counts = instant.now, memory.hosts, memory.counts
    for place in range(counts[QUANTA]):
        quantum = memory.quanta[place]
        quantum[IS_OVER] = state.runs[quantum[GUEST]].since < 0
        if quantum[IS_OVER]:
            memory.had[quantum[GUEST]] = now - quantum[BEGIN]
    forget_holders(instant, state, memory)
    if instant.head == instant.tail and counts[QUANTA] == 0:
        return 0
    show_hosts(jobs, state, done, memory)
    free = all_free(hosts)
    makes_pass = instant.head < instant.tail and (free > 0 or memory.inner.is_sticky)
    shown = show_running(now, jobs, state, done, memory) if makes_pass else 0
    count = resume_victims(state, done, memory)
    if makes_pass:
        seen = Instant(now, free, instant.head, instant.tail, 0, shown, 0, 0, 0, 0)
        started = list_pass(
            seen, jobs, state.waiting, hosts, memory.parts, state.started, state.places, memory.inner
        )
        for place in range(started):
            row, host = state.started[place], state.places[place]
            held = jobs.memory[row] if hosts[MEMORY, host] > 0 else 0
            book(hosts, host, -jobs.procs[row], -held)
            write(START, row, host, jobs.procs[row], held, -1, count, state)
            memory.had[row] = max(memory.had[row], 0)  # no guest any more
            count += 1
    if memory.protect < 0:
        most = most_free(hosts)
        for place in range(instant.head, instant.tail):
            row = state.waiting[place]
            if memory.had[row] < 0 and jobs.procs[row] <= most:
                count = serve(now, row, 0, count, jobs, state, memory)
    else:
        known = -1
        for row in range(instant.first_arrived, instant.arrived):
            if memory.had[row] < 0 and done.start[row] != REFUSED_START:
                if known < 0:
                    known = find_victims(now, jobs, state, done, memory)
                count = serve(now, row, known, count, jobs, state, memory)
    return count


@kernel
def write(
    kind: int, row: int, host: int, procs: int, held: int, until: int, count: int, state: StateTables
) -> None:  # fmt: skip
    """Write an action behind ``count`` others."""
    action = state.actions[count]
    action.kind, action.row, action.host, action.procs, action.held, action.until = kind, row, host, procs, held, until


@kernel
def forget_holders(instant: Instant, state: StateTables, memory: QuantaTables) -> None:
    """Forget the reservations of jobs that have run as guests since the last pass."""
    kept, held = 0, memory.inner.held
    for place in range(memory.inner.holders[0]):
        row = held[0, place]
        has_run = state.runs[row].since >= 0
        for entry in range(instant.ended):
            has_run = has_run or state.ended[entry] == row
        for entry in range(instant.returned):
            has_run = has_run or state.returned[entry] == row
        if not has_run:
            for field in range(3):
                held[field, kept] = held[field, place]
            kept += 1
    memory.inner.holders[0] = kept


@kernel
def time_left(row: int, jobs: JobColumns, state: StateTables) -> int:
    """Return how much longer a job runs by its estimate, from when it last began to run or stood still."""
    run = state.runs[row]
    return int(max(jobs.estimate[row] - run.done // run.procs, 0))


@kernel
def show(parts: Int64Array, count: int, end: int, host: int, procs: int, held: int) -> int:
    """Note a part of a running job as the inner pass sees it; return how many there are."""
    parts[tables.END, count], parts[tables.HOST, count] = end, host
    parts[tables.PROCS, count], parts[tables.HELD, count] = procs, held
    return count + 1


@allocating_kernel
def show_running(now: int, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables) -> int:
    """Write the running jobs as the inner pass sees them, in order of expected end; return how many they are.

    A guest is seen on the idle processors that it took, its victims as running, later by the time that it can take.
    """
    counts, count = memory.counts, 0
    found = memory.parts.copy()
    for place in range(state.counts[0].running):
        row = state.running[place]
        run = state.runs[row]
        if run.until < 0:
            end = run.since + time_left(row, jobs, state)
            is_late = end <= now and run.since < now
            count = show(found, count, now + OVERDUE if is_late else end, done.host[row], run.procs, run.held)
    for place in range(counts[QUANTA]):
        quantum = memory.quanta[place]
        guest, resumes = quantum[GUEST], now
        if not quantum[IS_OVER]:
            is_late = quantum[END] <= now and quantum[BEGIN] < now
            end = now + OVERDUE if is_late else quantum[END]
            count = show(found, count, end, done.host[guest], quantum[IDLE], state.runs[guest].held)
            resumes = max(quantum[END], now)
        for other in range(counts[ASLEEP]):
            row = memory.suspended[other]
            if memory.guest_of[row] == guest:
                end = resumes + time_left(row, jobs, state)
                end = now + OVERDUE if end <= now else end
                count = show(found, count, end, done.host[row], state.runs[row].procs, state.runs[row].held)
    order = stable_order(found[tables.END, :count].copy())
    for place in range(count):
        for field in range(4):
            memory.parts[field, place] = found[field, order[place]]
    return count


@kernel
def resume_victims(state: StateTables, done: ScheduleTable, memory: QuantaTables) -> int:
    """Let the victims go on of guests that have gone, on their own processors, and forget those quanta; return how many
    actions that makes."""
    counts, kept, count = memory.counts, 0, 0
    for place in range(counts[ASLEEP]):
        row = memory.suspended[place]
        run = state.runs[row]
        if state.runs[memory.guest_of[row]].since < 0:
            memory.guest_of[row] = -1
            write(RESUME, row, done.host[row], run.procs, run.held, -1, count, state)
            count += 1
        else:
            memory.suspended[kept] = row
            kept += 1
    counts[ASLEEP], kept = kept, 0
    for place in range(counts[QUANTA]):
        if not memory.quanta[place, IS_OVER]:
            for field in range(QUANTUM_COLUMNS):
                memory.quanta[kept, field] = memory.quanta[place, field]
            kept += 1
    counts[QUANTA] = kept
    return count


@kernel
def show_hosts(jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables) -> None:
    """Write the hosts as the inner pass sees them: a guest has the idle processors that it took, and each victim its own, whether
    it goes on now or later."""
    hosts = memory.hosts
    for field in range(4):
        for host in range(hosts.shape[1]):
            hosts[field, host] = state.hosts[field, host]
    for place in range(memory.counts[QUANTA]):
        quantum = memory.quanta[place]
        if not quantum[IS_OVER]:
            hosts[FREE, done.host[quantum[GUEST]]] += jobs.procs[quantum[GUEST]] - quantum[IDLE]
    for place in range(memory.counts[ASLEEP]):
        row = memory.suspended[place]
        hosts[FREE, done.host[row]] -= state.runs[row].procs


@kernel
def find_victims(now: int, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: QuantaTables) -> int:
    """Write which jobs may be suspended into ``victims`` and ``rows``; return how many they are."""
    count = 0
    for place in range(state.counts[0].running):
        row = state.running[place]
        run = state.runs[row]
        if run.since <= now - max(memory.protect, 1) and run.until < 0:
            memory.rows[count], memory.victims[HOST, count] = row, done.host[row]
            memory.victims[PROCS, count], memory.victims[TOTAL, count] = run.procs, now - jobs.submit[row]
            memory.victims[EXECUTED, count] = run.done // run.procs + now - run.since + max(memory.had[row], 0)
            count += 1
    return count


@allocating_kernel
def serve(now: int, row: int, known: int, count: int, jobs: JobColumns, state: StateTables, memory: QuantaTables) -> int:
    """Give a waiting job a quantum, if there is a host for it; return how many actions there are.

    Args:
        known: how many may be suspended.
    """
    hosts, counts, victims = memory.hosts, memory.counts, memory.victims[:, :known].copy()
    need = min(jobs.memory[row], memory.memory)
    order = by_slowdown(victims)
    host, taken = guest_host(jobs.procs[row], need, hosts, victims, order, memory.chosen)
    if host < 0:
        return count
    for place in memory.chosen[:taken]:
        memory.victims[HOST, place] = -1
        victim = memory.rows[place]
        memory.guest_of[victim] = row
        memory.suspended[counts[ASLEEP]] = victim
        counts[ASLEEP] += 1
        write(SUSPEND, victim, host, 0, state.runs[victim].held, -1, count, state)
        count += 1
    quantum, held = memory.quanta[counts[QUANTA]], need if hosts[MEMORY, host] > 0 else 0
    quantum[GUEST], quantum[IDLE] = row, min(hosts[FREE, host], jobs.procs[row])
    quantum[BEGIN], quantum[END] = now, now + min(memory.quantum, jobs.estimate[row])
    counts[QUANTA] += 1
    memory.had[row] = 0
    book(hosts, host, -quantum[IDLE], -held)
    write(TRY, row, host, jobs.procs[row], held, now + memory.quantum, count, state)
    return count + 1
