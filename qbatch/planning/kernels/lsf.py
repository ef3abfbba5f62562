"""The NCSA-LSF* scheduler of the Origin 2000: class limits by host and system-wide, special reservations of whole hosts.

Source: Chiang and Vernon 2001, section 2.1; readings in spec/papers.md 3.2 and 3.7, item 10.  A *special* is a job that has
waited longer than the reserve wait of its class: the host it asked for starts nobody else until it fits.
"""

from __future__ import annotations

from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.types import Int64Array

TIME, SIZE, MAY = 0, 1, 2
"""Rows of ``jobs[3, row]``: the time class, the size class, and whether a class takes the job at all."""

FREE, FREE_MEMORY, CPUS, MEMORY, SPECIAL, HAS_ENDED = 0, 1, 2, 3, 4, 5
"""Rows of ``hosts[6, host]``: ... ``SPECIAL`` the row that it is kept for (-1), ``HAS_ENDED`` whether a job ended there."""

LIMIT, RUNNING, GOES_FIRST, RESERVE_WAIT = 0, 1, 2, 3
"""Rows of ``times[4, time class]``: how many may run on the machine, how many do, whether it goes first, its reserve wait."""


@kernel
def could_hold(host: int, row: int, procs: Int64Array, memory: Int64Array, hosts: Int64Array) -> bool:
    """Tell whether the empty host could hold a job."""
    has_memory = hosts[MEMORY, host] == 0 or hosts[MEMORY, host] >= memory[row]
    return bool(hosts[CPUS, host] >= procs[row] and has_memory)


@kernel
def is_free_for(host: int, row: int, procs: Int64Array, memory: Int64Array, hosts: Int64Array) -> bool:
    """Tell whether processors and memory are free for a job now."""
    has_memory = hosts[MEMORY, host] == 0 or hosts[FREE_MEMORY, host] >= memory[row]
    return bool(hosts[FREE, host] >= procs[row] and has_memory)


@kernel
def is_limited(row: int, jobs: Int64Array, times: Int64Array) -> bool:
    """Tell whether as many jobs of its time class run on the machine as may."""
    time = jobs[TIME, row]
    return bool(times[RUNNING, time] >= times[LIMIT, time])


@kernel
def begin(
    host: int, row: int, procs: Int64Array, memory: Int64Array, jobs: Int64Array, hosts: Int64Array, counts: Int64Array,
    times: Int64Array, begun: Int64Array, count: int,
) -> int:  # fmt: skip
    """Start a job on a host; return how many have started.  Whatever special it has is over."""
    hosts[FREE, host] -= procs[row]
    if hosts[MEMORY, host] > 0:
        hosts[FREE_MEMORY, host] -= memory[row]
    counts[host, jobs[SIZE, row]] += 1
    times[RUNNING, jobs[TIME, row]] += 1
    for other in range(hosts.shape[1]):
        if hosts[SPECIAL, other] == row:
            hosts[SPECIAL, other] = -1
    jobs[MAY, row] = 2  # it does not wait any more
    begun[0, count], begun[1, count] = row, host
    return count + 1


@kernel
def ask_special(
    host: int, now: int, queue: Int64Array, submit: Int64Array, procs: Int64Array, memory: Int64Array, jobs: Int64Array,
    hosts: Int64Array, ranks: Int64Array, times: Int64Array,
) -> int:  # fmt: skip
    """Return the job of highest priority for a host that has waited longer than its reserve wait, -1 for none.

    By the host's order of size classes, then time classes that go first, then sequence.  Jobs with a special somewhere, of
    a class that the host does not serve, too large for it, or at their system limit do not ask.
    """
    best, best_rank = -1, 1 << 30
    for place in range(queue.shape[0]):
        row = queue[place]
        time, size = jobs[TIME, row], jobs[SIZE, row]
        if jobs[MAY, row] != 1 or ranks[host, size] < 0 or times[RESERVE_WAIT, time] < 0:
            continue
        if now - submit[row] <= times[RESERVE_WAIT, time] or is_limited(row, jobs, times):
            continue
        rank = 2 * ranks[host, size] + (0 if times[GOES_FIRST, time] else 1)
        if rank >= best_rank or not could_hold(host, row, procs, memory, hosts):
            continue
        has_special = False
        for other in range(hosts.shape[1]):
            has_special = has_special or hosts[SPECIAL, other] == row
        if not has_special:
            best, best_rank = row, rank
    return best


@kernel
def schedule_host(
    host: int, queue: Int64Array, procs: Int64Array, memory: Int64Array, jobs: Int64Array, hosts: Int64Array,
    order: Int64Array, limits: Int64Array, counts: Int64Array, times: Int64Array, begun: Int64Array, count: int,
) -> int:  # fmt: skip
    """Start what may start on one host; return how many have started so far.

    A special at the system limit of its class neither starts nor blocks, and stays special.
    """
    special = hosts[SPECIAL, host]
    if special >= 0 and not is_limited(special, jobs, times):
        size = jobs[SIZE, special]
        if counts[host, size] >= limits[host, size] or not is_free_for(host, special, procs, memory, hosts):
            return count
        count = begin(host, special, procs, memory, jobs, hosts, counts, times, begun, count)
    for rank in range(order.shape[1]):
        size = order[host, rank]
        if size < 0:
            break
        if counts[host, size] >= limits[host, size]:
            continue
        is_blocked = False
        for turn in range(2):
            for place in range(queue.shape[0]):
                row = queue[place]
                if (
                    jobs[MAY, row] != 1
                    or jobs[SIZE, row] != size
                    or (times[GOES_FIRST, jobs[TIME, row]] > 0) != (turn == 0)
                ):
                    continue
                if is_limited(row, jobs, times) or not could_hold(host, row, procs, memory, hosts):
                    continue
                if not is_free_for(host, row, procs, memory, hosts):
                    is_blocked = True
                    continue
                count = begin(host, row, procs, memory, jobs, hosts, counts, times, begun, count)
                if counts[host, size] >= limits[host, size]:
                    break
            if counts[host, size] >= limits[host, size]:
                break
        if is_blocked and counts[host, size] < limits[host, size]:
            return count
    return count


@kernel
def lsf_pass(
    now: int, queue: Int64Array, submit: Int64Array, procs: Int64Array, memory: Int64Array, jobs: Int64Array,
    hosts: Int64Array, sweep: Int64Array, order: Int64Array, ranks: Int64Array, limits: Int64Array, counts: Int64Array,
    times: Int64Array, begun: Int64Array,
) -> int:  # fmt: skip
    """Make one pass: a special step for each host where a job has ended, then sweeps over all hosts until one starts nobody.

    Args:
        sweep: hosts in the order in which they are swept, the restricted ones first.
        order, ranks: by host, the size classes that it serves in their order, and the place of each size class (-1: none).
        limits, counts: by host and size class, how many may run and how many do.
    """
    count = 0
    for place in range(sweep.shape[0]):
        host = sweep[place]
        if hosts[HAS_ENDED, host] and hosts[SPECIAL, host] < 0:
            row = ask_special(host, now, queue, submit, procs, memory, jobs, hosts, ranks, times)
            if row >= 0:
                size = jobs[SIZE, row]
                if counts[host, size] < limits[host, size] and is_free_for(host, row, procs, memory, hosts):
                    count = begin(host, row, procs, memory, jobs, hosts, counts, times, begun, count)
                else:
                    hosts[SPECIAL, host] = row
    before = -1
    while before != count:
        before = count
        for place in range(sweep.shape[0]):
            count = schedule_host(
                sweep[place], queue, procs, memory, jobs, hosts, order, limits, counts, times, begun, count
            )
    return count
