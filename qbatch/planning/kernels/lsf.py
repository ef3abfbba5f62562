"""The NCSA-LSF* scheduler of the Origin 2000: class limits by host and system-wide, special
reservations of whole hosts.

Source: Chiang and Vernon 2001, section 2.1; readings in docs/spec/papers.md 3.2 and 3.7, item 10.
A *special* is a job that has waited longer than the reserve wait of its class: the host that it
asked for starts no other job until it fits.
"""

from __future__ import annotations

from typing import NamedTuple

from qbatch.planning.kernels import tables
from qbatch.planning.kernels.jit import inlined_kernel, kernel
from qbatch.planning.kernels.tables import Instant, JobColumns, ScheduleTable, StateTables
from qbatch.planning.kernels.types import Int64Array

TIME, SIZE, MAY, USER = 0, 1, 2, 3
"""Rows of ``jobs[4, row]``: the time class and the size class as classes of ``quota``, whether a
class accepts the job at all, and the user, from 0, if the machine limits users (else 0)."""

MAY_START, HAS_BEGUN = 1, 2
"""Values of ``MAY`` other than 0 (no class accepts the job): it waits; it no longer waits."""

FREE, FREE_MEMORY, CPUS, MEMORY, SPECIAL, HAS_ENDED = 0, 1, 2, 3, 4, 5
"""Rows of ``hosts[6, host]``: the free processors and memory, and the totals, in the order of the
tables of the core; the row that the host is kept for (-1: none), whether a job ended there."""

GOES_FIRST, RESERVE_WAIT = 0, 1
"""Rows of ``rules[2, class]``: whether a time class goes first, its reserve wait (-1: it never asks
for a special)."""

MOST, RUNNING = 0, 1
"""``quota[2, place, class]``: how many jobs may run and how many do.  Places are the hosts, then
the whole machine, then users; classes are the time classes, then the size classes, then all jobs
together."""


class ClassTables(NamedTuple):
    """The jobs by the classes of a machine.

    ``jobs``, ``hosts``, ``rules``, ``quota``: see above.  ``sweep``: hosts in the order of the
    sweep, the restricted ones first.  ``order``: by host, the size classes that it serves in their
    order (-1: no more).  ``ranks``: by host, time class and size class, the index of the size class
    in that order (-1: such jobs do not run there).  ``begun[2, P]`` receives the row and the host
    of each start.
    """

    jobs: Int64Array
    hosts: Int64Array
    sweep: Int64Array
    order: Int64Array
    ranks: Int64Array
    rules: Int64Array
    quota: Int64Array
    begun: Int64Array


@inlined_kernel
def could_hold(host: int, row: int, asked: JobColumns, memory: ClassTables) -> bool:
    """Return whether the host, when empty, could hold a job, and runs jobs of its class."""
    jobs, hosts = memory.jobs, memory.hosts
    has_memory = hosts[MEMORY, host] == 0 or hosts[MEMORY, host] >= asked.asked[tables.MEMORY, row]
    rank = memory.ranks[host, jobs[TIME, row], jobs[SIZE, row]]
    return bool(hosts[CPUS, host] >= asked.procs[row] and has_memory and rank >= 0)


@inlined_kernel
def is_free_for(host: int, row: int, asked: JobColumns, hosts: Int64Array) -> bool:
    """Return whether processors and memory are free for a job now."""
    has_memory = (
        hosts[MEMORY, host] == 0 or hosts[FREE_MEMORY, host] >= asked.asked[tables.MEMORY, row]
    )
    return bool(hosts[FREE, host] >= asked.procs[row] and has_memory)


@kernel
def is_full(place: int, each: int, quota: Int64Array) -> bool:
    """Return whether the limit of running jobs of a class is reached at a place."""
    return bool(quota[RUNNING, place, each] >= quota[MOST, place, each])


@kernel
def is_limited(row: int, jobs: Int64Array, hosts: Int64Array, quota: Int64Array) -> bool:
    """Return whether the machine, or the job's user, is at the limit of running jobs of one of the
    job's classes."""
    machine = hosts.shape[1]
    everything = quota.shape[2] - 1
    for place in (machine, machine + 1 + jobs[USER, row]):
        for each in (jobs[TIME, row], jobs[SIZE, row], everything):
            if is_full(place, each, quota):
                return True
    return False


@kernel
def count_running(
    sign: int, host: int, row: int, jobs: Int64Array, machine: int, quota: Int64Array
) -> None:
    """Count a job as running (``sign`` 1), or no longer (-1): on its host, on the machine (the
    place after the hosts), and for its user."""
    for place in (host, machine, machine + 1 + jobs[USER, row]):
        for each in (jobs[TIME, row], jobs[SIZE, row], quota.shape[2] - 1):
            quota[RUNNING, place, each] += sign


@kernel
def count_all(running: Int64Array, jobs: Int64Array, machine: int, quota: Int64Array) -> None:
    """Count all running jobs: ``running[2, n]`` are their rows and their hosts."""
    for each in range(running.shape[1]):
        count_running(1, running[1, each], running[0, each], jobs, machine, quota)


@kernel
def begin(host: int, row: int, asked: JobColumns, memory: ClassTables, count: int) -> int:
    """Start a job on a host; return how many have started.  A special of the job is over."""
    hosts = memory.hosts
    hosts[FREE, host] -= asked.procs[row]
    if hosts[MEMORY, host] > 0:
        hosts[FREE_MEMORY, host] -= asked.asked[tables.MEMORY, row]
    count_running(1, host, row, memory.jobs, hosts.shape[1], memory.quota)
    for other in range(hosts.shape[1]):
        if hosts[SPECIAL, other] == row:
            hosts[SPECIAL, other] = -1
    memory.jobs[MAY, row] = HAS_BEGUN
    memory.begun[0, count], memory.begun[1, count] = row, host
    return count + 1


@kernel
def ask_special(
    host: int, now: int, queue: Int64Array, asked: JobColumns, memory: ClassTables
) -> int:
    """Return the job of highest priority for a host that has waited longer than its reserve wait,
    -1 for none.

    The priority is the host's order of size classes, then time classes that go first, then
    sequence.  Jobs with a special somewhere, of a class that the host does not serve, too large for
    it, or at their system limit do not ask.
    """
    jobs, hosts, rules = memory.jobs, memory.hosts, memory.rules
    best, best_rank = -1, 1 << 30
    for row in queue:
        time = jobs[TIME, row]
        least = rules[RESERVE_WAIT, time]
        if jobs[MAY, row] != MAY_START or least < 0 or now - asked.submit[row] <= least:
            continue
        if not could_hold(host, row, asked, memory) or is_limited(row, jobs, hosts, memory.quota):
            continue
        rank = 2 * memory.ranks[host, time, jobs[SIZE, row]] + (0 if rules[GOES_FIRST, time] else 1)
        if rank >= best_rank:
            continue
        has_special = False
        for other in range(hosts.shape[1]):
            has_special = has_special or hosts[SPECIAL, other] == row
        if not has_special:
            best, best_rank = row, rank
    return best


@kernel
def schedule_size(
    host: int, size: int, queue: Int64Array, asked: JobColumns, memory: ClassTables, count: int
) -> tuple[int, bool]:
    """Start the jobs of one size class that may start on one host, first those of time classes that
    go first.

    Returns:
        The number of starts so far, and whether a job that might run here does not fit (it is
        *blocked*).
    """
    jobs, hosts, quota, is_blocked = memory.jobs, memory.hosts, memory.quota, False
    for turn in range(2):
        for row in queue:
            if (
                jobs[MAY, row] != MAY_START
                or jobs[SIZE, row] != size
                or (memory.rules[GOES_FIRST, jobs[TIME, row]] > 0) != (turn == 0)
                or is_full(host, jobs[TIME, row], quota)
                or is_limited(row, jobs, hosts, quota)
                or not could_hold(host, row, asked, memory)
            ):
                continue
            if not is_free_for(host, row, asked, hosts):
                is_blocked = True
                continue
            count = begin(host, row, asked, memory, count)
            if is_full(host, size, quota):
                return count, is_blocked
    return count, is_blocked


@kernel
def schedule_host(
    host: int, queue: Int64Array, asked: JobColumns, memory: ClassTables, count: int
) -> int:
    """Start what may start on one host; return the number of starts so far.

    A special at the system limit of its class neither starts nor blocks, and stays special.
    """
    jobs, hosts, quota, order = memory.jobs, memory.hosts, memory.quota, memory.order
    special = hosts[SPECIAL, host]
    if special >= 0 and not is_limited(special, jobs, hosts, quota):
        is_at_limit = is_full(host, jobs[SIZE, special], quota) or is_full(
            host, jobs[TIME, special], quota
        )
        if is_at_limit or not is_free_for(host, special, asked, hosts):
            return count
        count = begin(host, special, asked, memory, count)
    for rank in range(order.shape[1]):
        size = order[host, rank]
        if size < 0:
            break
        if is_full(host, size, quota):
            continue
        count, is_blocked = schedule_size(host, size, queue, asked, memory, count)
        if is_blocked and not is_full(host, size, quota):
            return count
    return count


@kernel
def lsf_pass(now: int, queue: Int64Array, asked: JobColumns, memory: ClassTables) -> int:
    """Make one pass: a special step for each host on which a job has ended, then sweeps over all
    hosts until one starts no job.

    Return the number of starts.
    """
    jobs, hosts, quota, count = memory.jobs, memory.hosts, memory.quota, 0
    for host in memory.sweep:
        if hosts[HAS_ENDED, host] and hosts[SPECIAL, host] < 0:
            row = ask_special(host, now, queue, asked, memory)
            if row >= 0:
                is_at_limit = is_full(host, jobs[SIZE, row], quota) or is_full(
                    host, jobs[TIME, row], quota
                )
                if not is_at_limit and is_free_for(host, row, asked, hosts):
                    count = begin(host, row, asked, memory, count)
                else:
                    hosts[SPECIAL, host] = row
    before = -1
    while before != count:
        before = count
        for host in memory.sweep:
            count = schedule_host(host, queue, asked, memory, count)
    return count


@kernel
def decide_lsf(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: ClassTables
) -> int:
    """Make one pass of LSF*; a special may be requested on a host where a job ended in this
    round."""
    hosts = memory.hosts
    for host in range(hosts.shape[1]):
        hosts[FREE, host] = state.hosts[tables.FREE, tables.CPUS, host]
        hosts[FREE_MEMORY, host] = state.hosts[tables.FREE, tables.MEMORY, host]
        hosts[HAS_ENDED, host] = 0
    for place in range(instant.ended):
        row = state.ended[place]
        count_running(-1, done.host[row], row, memory.jobs, hosts.shape[1], memory.quota)
        hosts[HAS_ENDED, done.host[row]] = 1
    if instant.head == instant.tail or (instant.free == 0 and instant.ended == 0):
        return 0
    count = lsf_pass(instant.now, state.waiting[instant.head : instant.tail], jobs, memory)
    for place in range(count):
        state.started[place], state.places[place] = memory.begun[0, place], memory.begun[1, place]
    return int(count)
