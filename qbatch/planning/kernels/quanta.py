"""Room for a guest: on which host a new job gets its quantum, and which running jobs are suspended for it.

Source: Chiang and Vernon, "Production Job Scheduling for Parallel Shared Memory Systems", IPDPS 2001, sections 2.4 and 3;
exact readings in spec/papers.md 3.4.  The victims are taken by the smallest slowdown, which whole numbers decide.
"""

from __future__ import annotations

from qbatch.planning.kernels.host_pass import CPUS, FREE, FREE_MEMORY, MEMORY
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.order import stable_order
from qbatch.planning.kernels.types import Int64Array

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
