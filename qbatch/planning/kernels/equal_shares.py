"""Equal shares of hosts: where a job has its place, how a host is divided, what is owed to jobs that wait for memory.

The rules and their source stand in :mod:`qbatch.policies.equispatial`.  The live policy and the compiled one call the same
kernels: :func:`depart` and :func:`come` for what happened, then :func:`share_pass` and :func:`write_changes`.

Who is there is one table, each job in a slot that stays the same.  The jobs of a host are a list in order of sequence; those
for which no host has memory are the list of the *queue*, the line behind the last host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.model.machine import Machine
from qbatch.planning.kernels import tables
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    NOBODY,
    REFUSED_START,
    RESIZE,
    RESUME,
    START,
    SUSPEND,
    TRY,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.types import Int64Array, RecordArray


class SharesState(NamedTuple):
    """Who shares ``H`` hosts equally; the columns are named below.

    ``jobs[S, ...]``: those that wait, or have a place on a host.  ``hosts[H + 1, ...]``: the hosts, and behind them the queue.
    ``counts``: numbers of the whole.
    """

    jobs: Int64Array
    hosts: Int64Array
    counts: Int64Array


ROW, HOST, NEXT, REQUESTED, HELD, PROCS, HAD, SHARE, OWED, EXECUTED, GUEST, IS_NEW = range(12)
"""Columns of ``jobs``.  Its row (``NOBODY``: the slot is vacant), its host (the queue: none), the slot behind it on the list of
the host (-1: none); processors that it asks for, bytes that it holds or waits for; processors that it has now, and had before
this pass (-1: it has not begun); what equal sharing gives it (one that waits: would give it); processor-microseconds that are
owed to it, and how long it has executed, both by ``AT`` of its host; whether it is a guest for a quantum; whether it may become
one in this pass."""

JOB_COLUMNS = 12
"""How many columns ``jobs`` has."""

NO_GUEST, ON_IDLE, SQUEEZING = 0, 1, 2
"""Guests: on processors that were idle, or on such that others gave up for it."""

CPUS, MEMORY, FREE_MEMORY, IS_CLOSED, IDLE, DEMAND, GUESTS, SHARING, OWING = range(9)
"""Columns of ``hosts``: processors; bytes (0: not counted), and those that nobody holds; whether it is closed; processors that
nobody has, that all there ask for, that guests have; how many jobs are there beside guests, and to how many something is
owed."""

AT, LAST, IS_DUE, IS_STALE, LOOK_AT, IS_TOUCHED, IS_FORCED, FIRST = range(9, 17)
"""Columns of ``hosts``: the instant up to which its books are kept; when it was divided last; whether it must be again; whether
who is there changed since shares were found; when to look at it again; whether its books were brought up to date in this pass,
and whether it is divided in this pass whatever the interval; the slot of the first job there (-1: none)."""

HOST_COLUMNS = 17
"""How many columns ``hosts`` has."""

USED, INTERVAL, LONG, QUANTUM, MOST_MEMORY = range(5)
"""Places in ``counts``: how many slots were ever used; the shortest time between two divisions of a host; executed time after
which a job gets all that it asks for (``FOREVER``: never); how long a guest may run; the most memory that it gets."""

NEVER = -FOREVER
"""``LAST`` of a host that was never divided."""

ALL, FAVOURED, OTHERS = 0, 1, 2
"""Jobs of a host among which processors are divided: all but guests; of those who is to get all that it asks for; the rest."""

_LEVELS = 64
"""So many levels are remembered while the shares of those that wait are found."""


def new_state(machine: Machine, rules: tuple[int, int, int, int], slots: int = 64) -> SharesState:
    """Return the books of a machine on which nothing has happened yet.

    Args:
        rules: what stands in ``counts`` from ``INTERVAL`` on.
        slots: for how many jobs there is room at first.
    """
    hosts = np.zeros((len(machine.hosts) + 1, HOST_COLUMNS), np.int64)
    for place, host in enumerate(machine.hosts):
        hosts[place, CPUS] = hosts[place, IDLE] = host.cpus
        hosts[place, MEMORY] = hosts[place, FREE_MEMORY] = host.memory
    hosts[:, FIRST], hosts[:, LAST], hosts[:, LOOK_AT] = -1, NEVER, FOREVER
    hosts[-1, IS_CLOSED] = 1
    return SharesState(np.zeros((slots, JOB_COLUMNS), np.int64), hosts, np.array([0, *rules], np.int64))


def grown(state: SharesState) -> SharesState:
    """Return the same books with room for twice as many jobs."""
    return state._replace(jobs=np.concatenate([state.jobs, np.zeros_like(state.jobs)]))


@kernel
def slot_of(row: int, state: SharesState) -> int:
    """Return the slot of a row, -1 if it is not there."""
    for slot in range(state.counts[USED]):
        if state.jobs[slot, ROW] == row:
            return slot
    return -1


@kernel
def link(slot: int, host: int, state: SharesState) -> None:
    """Put a job on the list of a host, or of the queue."""
    jobs, hosts = state.jobs, state.hosts
    before, after = -1, hosts[host, FIRST]
    while after >= 0 and jobs[after, ROW] < jobs[slot, ROW]:
        before, after = after, jobs[after, NEXT]
    jobs[slot, HOST], jobs[slot, NEXT] = host, after
    if before < 0:
        hosts[host, FIRST] = slot
    else:
        jobs[before, NEXT] = slot
    if jobs[slot, GUEST] == NO_GUEST:
        hosts[host, SHARING] += 1


@kernel
def unlink(slot: int, state: SharesState) -> None:
    """Take a job from its list."""
    jobs, hosts, host = state.jobs, state.hosts, state.jobs[slot, HOST]
    if hosts[host, FIRST] == slot:
        hosts[host, FIRST] = jobs[slot, NEXT]
    else:
        before = hosts[host, FIRST]
        while jobs[before, NEXT] != slot:
            before = jobs[before, NEXT]
        jobs[before, NEXT] = jobs[slot, NEXT]
    if jobs[slot, GUEST] == NO_GUEST:
        hosts[host, SHARING] -= 1


@kernel
def touch(now: int, host: int, state: SharesState) -> None:
    """Bring the books of a host, or of the queue, up to date: who executed how long, what is owed to whom."""
    at, counts = state.hosts[host], state.counts
    is_queue, length = host == state.hosts.shape[0] - 1, now - at[AT]
    at[IS_TOUCHED], at[AT] = 1, now
    slot = at[FIRST] if length > 0 else -1
    while slot >= 0:
        job = state.jobs[slot]
        if job[PROCS] > 0:
            job[EXECUTED] += length
            if job[GUEST] == NO_GUEST and job[EXECUTED] - length <= counts[LONG] < job[EXECUTED]:
                at[IS_DUE] = 1
        if job[OWED] > 0 or is_queue:
            job[OWED] = max(job[OWED] - (job[PROCS] - job[SHARE]) * length, 0)
            if job[OWED] == 0 and not is_queue:
                at[OWING] -= 1
                at[IS_DUE] = 1
        slot = job[NEXT]


@kernel
def come(row: int, requested: int, held: int, is_new: int, state: SharesState) -> int:
    """Enter a job that waits and return its slot; there must be one (``jobs`` is longer than those that are there).

    Args:
        held: bytes that it asks for.
        is_new: 1 if it may have a quantum in this pass, else 0.
    """
    slot = slot_of(NOBODY, state)
    if slot < 0:
        slot = state.counts[USED]
        state.counts[USED] += 1
    job = state.jobs[slot]
    job[:] = 0
    job[ROW], job[REQUESTED], job[HELD], job[HAD], job[IS_NEW] = row, requested, held, -1, is_new
    link(slot, state.hosts.shape[0] - 1, state)
    return slot


@kernel
def enter(now: int, slot: int, host: int, procs: int, guest: int, state: SharesState) -> None:
    """Give a job that waits its place on a host, with so many processors; the host must be divided anew.

    Args:
        guest: ``NO_GUEST``, ``ON_IDLE`` or ``SQUEEZING``.
    """
    touch(now, host, state)
    job, at = state.jobs[slot], state.hosts[host]
    unlink(slot, state)
    job[PROCS], job[GUEST], job[IS_NEW] = procs, guest, 0
    link(slot, host, state)
    at[IDLE] -= procs
    at[DEMAND] += job[REQUESTED]
    at[FREE_MEMORY] -= job[HELD]
    at[GUESTS] += procs if guest != NO_GUEST else 0
    at[OWING] += 1 if job[OWED] > 0 else 0
    at[IS_DUE] = at[IS_STALE] = 1


@kernel
def depart(now: int, row: int, state: SharesState) -> None:
    """Take a row out, if it is there; its host must be divided anew, at once if the others gave processors up for it."""
    slot = slot_of(row, state)
    if slot < 0:
        return
    job, at = state.jobs[slot], state.hosts[state.jobs[slot, HOST]]
    if job[HOST] < state.hosts.shape[0] - 1:
        touch(now, job[HOST], state)
        at[IDLE] += job[PROCS]
        at[DEMAND] -= job[REQUESTED]
        at[FREE_MEMORY] += job[HELD]
        at[GUESTS] -= job[PROCS] if job[GUEST] != NO_GUEST else 0
        at[OWING] -= 1 if job[OWED] > 0 else 0
        at[IS_DUE] = at[IS_STALE] = 1
        if job[GUEST] == SQUEEZING:
            at[IS_FORCED] = 1
    unlink(slot, state)
    job[:] = 0
    job[ROW] = NOBODY


@kernel
def belongs(slot: int, group: int, state: SharesState) -> bool:
    """Tell whether a job of a host belongs to a group among which processors are divided."""
    job = state.jobs[slot]
    if job[GUEST] != NO_GUEST:
        return False
    return group == ALL or (job[OWED] > 0 or job[EXECUTED] > state.counts[LONG]) == (group == FAVOURED)


@kernel
def water_level(host: int, group: int, room: int, requested: int, state: SharesState) -> tuple[int, int]:
    """Return the greatest common level to which processors reach, and how many of those that ask for more get one above it.

    Args:
        room: the processors.
        requested: of one job more; 0: of none.
    """
    jobs, level = state.jobs, 0
    while True:
        left, count = room, 0
        if requested > level:
            count += 1
        else:
            left -= requested
        slot = state.hosts[host, FIRST]
        while slot >= 0:
            if belongs(slot, group, state):
                if jobs[slot, REQUESTED] > level:
                    count += 1
                else:
                    left -= jobs[slot, REQUESTED]
            slot = jobs[slot, NEXT]
        if count == 0:
            return FOREVER, 0
        if left // count == level:
            return level, left - level * count
        level = left // count


@kernel
def fill(host: int, group: int, room: int, column: int, state: SharesState) -> int:
    """Divide processors equally: nobody above its request, the remainder one each in order; return how many are given.

    Args:
        column: of ``jobs``, where what each gets is written.
    """
    level, spare = water_level(host, group, room, 0, state)
    given, slot = 0, state.hosts[host, FIRST]
    while slot >= 0:
        job = state.jobs[slot]
        if belongs(slot, group, state):
            share = min(job[REQUESTED], level)
            if job[REQUESTED] > level and spare > 0:
                share += 1
                spare -= 1
            job[column] = share
            given += share
        slot = job[NEXT]
    return given


@kernel
def find_shares(host: int, state: SharesState) -> None:
    """Say what equal sharing would give to each job of a host, whether it is divided now or later."""
    at = state.hosts[host]
    if at[IS_STALE]:
        fill(host, ALL, at[CPUS] - at[GUESTS], SHARE, state)
        at[IS_STALE] = 0


@kernel
def divide(now: int, host: int, state: SharesState) -> None:
    """Divide a host among its jobs.

    Who is to get all that it asks for leaves one processor to every other job; several of them share what that is.
    """
    touch(now, host, state)
    jobs, at = state.jobs, state.hosts[host]
    room, favoured = at[CPUS] - at[GUESTS], 0
    slot = at[FIRST]
    while slot >= 0:
        favoured += 1 if belongs(slot, FAVOURED, state) else 0
        slot = jobs[slot, NEXT]
    if favoured > 0 and room >= at[SHARING]:
        given = fill(host, FAVOURED, room - (at[SHARING] - favoured), PROCS, state)
        given += fill(host, OTHERS, room - given, PROCS, state)
    else:
        given = fill(host, ALL, room, PROCS, state)
    at[IDLE], at[LAST], at[IS_DUE] = room - given, now, 0


@kernel
def extra(host: int, state: SharesState) -> int:
    """Return how many processors above their share those of a host have to whom something is owed."""
    if state.hosts[host, OWING] == 0:
        return 0
    find_shares(host, state)
    found, slot = 0, state.hosts[host, FIRST]
    while slot >= 0:
        job = state.jobs[slot]
        if job[OWED] > 0:
            found += max(job[PROCS] - job[SHARE], 0)
        slot = job[NEXT]
    return found


@kernel
def could_hold(host: int, requested: int, held: int, is_guest: int, state: SharesState) -> bool:
    """Tell whether an open host has the memory for a job, and as many processors as it asks for.

    For a guest they must be left where every other job keeps one, and a guest all that it has.
    """
    at = state.hosts[host]
    least = requested + (at[SHARING] + at[GUESTS] if is_guest else 0)
    return bool(at[IS_CLOSED] == 0 and at[CPUS] >= least and (at[MEMORY] == 0 or at[FREE_MEMORY] >= held))


@kernel
def best_ratio(requested: int, held: int, is_guest: int, state: SharesState) -> int:
    """Return the host with the most processors for each one requested on it, the new job included; -1 if none could hold it."""
    best, most, least = -1, 0, 1
    for host in range(state.hosts.shape[0] - 1):
        if could_hold(host, requested, held, is_guest, state):
            size, demand = state.hosts[host, CPUS] - extra(host, state), state.hosts[host, DEMAND] + requested
            if best < 0 or size * least > most * demand:
                best, most, least = host, size, demand
    return best


@kernel
def choose(requested: int, held: int, is_guest: int, state: SharesState) -> int:
    """Return the host for a job: with the fewest unallocated processors that are enough, else by the ratio; -1 for none."""
    best = -1
    for host in range(state.hosts.shape[0] - 1):
        idle = state.hosts[host, IDLE]
        if requested <= idle and (best < 0 or idle < state.hosts[best, IDLE]):
            best = host if could_hold(host, requested, held, is_guest, state) else best
    return best if best >= 0 else best_ratio(requested, held, is_guest, state)


@kernel
def most_memory(state: SharesState) -> int:
    """Return the most memory that is free on an open host; without bound where memory is not counted."""
    most = -1
    for host in range(state.hosts.shape[0] - 1):
        at = state.hosts[host]
        if at[IS_CLOSED] == 0:
            most = max(most, FOREVER if at[MEMORY] == 0 else at[FREE_MEMORY])
    return most


@kernel
def place(now: int, state: SharesState) -> None:
    """Give places to those that wait, in sequence.

    One that found none in an earlier pass finds one only after memory was given back, or a host opened.
    """
    jobs, hosts = state.jobs, state.hosts
    most, slot = most_memory(state), hosts[hosts.shape[0] - 1, FIRST]
    while slot >= 0:
        job = jobs[slot]
        after = job[NEXT]
        if job[HELD] <= most:
            host = choose(job[REQUESTED], job[HELD], 0, state)
            if host >= 0:
                enter(now, slot, host, min(job[REQUESTED], hosts[host, IDLE]), NO_GUEST, state)
        slot = after


@kernel
def serve(now: int, state: SharesState) -> None:
    """Give arrivals without memory their quantum, where there is a host for it."""
    jobs, hosts = state.jobs, state.hosts
    slot = hosts[hosts.shape[0] - 1, FIRST]
    while slot >= 0:
        job = jobs[slot]
        after, need = job[NEXT], min(job[HELD], state.counts[MOST_MEMORY])
        if job[IS_NEW] and need < job[HELD]:
            host = choose(job[REQUESTED], need, 1, state)
            if host >= 0:
                is_squeezing = hosts[host, IDLE] < job[REQUESTED]
                job[HELD], job[OWED] = need, 0
                enter(now, slot, host, job[REQUESTED], SQUEEZING if is_squeezing else ON_IDLE, state)
                if is_squeezing:
                    hosts[host, IS_FORCED] = 1
        job[IS_NEW] = 0
        slot = after


@kernel
def level_with(requested: int, state: SharesState) -> tuple[int, int]:
    """Return the level that a job more would bring about where the ratio puts it, and until which row one gets one above it."""
    host = best_ratio(requested, 0, 0, state)
    if host < 0:
        return 0, NOBODY
    at = state.hosts[host]
    reached, spare = water_level(host, ALL, at[CPUS] - at[GUESTS], requested, state)
    slot, last = at[FIRST], NOBODY if spare == 0 else FOREVER
    while slot >= 0 and spare > 0:
        job = state.jobs[slot]
        if job[GUEST] == NO_GUEST and job[REQUESTED] > reached:
            spare -= 1
            last = job[ROW] if spare == 0 else last
        slot = job[NEXT]
    return reached, last


@allocating_kernel
def would_share(state: SharesState) -> None:
    """Say what each job that waits would have on the host that the ratio picks.

    It depends on the processors that it asks for and, if the level is lower, on who comes before it on the host.
    """
    jobs, slot = state.jobs, state.hosts[state.hosts.shape[0] - 1, FIRST]
    if slot < 0:
        return
    levels = np.zeros((_LEVELS, 3), np.int64)
    while slot >= 0:
        job = jobs[slot]
        found = levels[job[REQUESTED] % _LEVELS]
        if found[0] != job[REQUESTED]:
            found[0] = job[REQUESTED]
            found[1], found[2] = level_with(job[REQUESTED], state)
        job[SHARE] = job[REQUESTED]
        if job[REQUESTED] > found[1]:
            job[SHARE] = found[1] + (1 if job[ROW] < found[2] else 0)
        slot = job[NEXT]


@kernel
def next_look(now: int, host: int, state: SharesState) -> int:
    """Return when a debt is paid or a job becomes a long one, if all stays as it is; ``FOREVER`` if never."""
    found, longest, long = FOREVER, -1, state.counts[LONG]
    slot = state.hosts[host, FIRST] if state.hosts[host, IS_CLOSED] == 0 else -1
    while slot >= 0:
        job = state.jobs[slot]
        if job[OWED] > 0 and job[PROCS] > job[SHARE]:
            found = min(found, now - (-job[OWED] // (job[PROCS] - job[SHARE])))
        if job[GUEST] == NO_GUEST and job[PROCS] > 0 and job[EXECUTED] <= long:
            longest = max(longest, job[EXECUTED])
        slot = job[NEXT]
    return min(found, now + long - longest + 1) if longest >= 0 and long < FOREVER else found


@allocating_kernel
def share_pass(now: int, state: SharesState) -> int:
    """Place who waits and divide the hosts that are due; return when to make another pass, ``FOREVER`` if nothing is to come.

    :func:`write_changes` tells which jobs have more or less than before.
    """
    hosts, queue = state.hosts, state.hosts.shape[0] - 1
    for host in range(queue):
        if hosts[host, LOOK_AT] <= now:
            touch(now, host, state)
    touch(now, queue, state)
    place(now, state)
    serve(now, state)
    for host in range(queue):
        if hosts[host, IS_DUE] and not hosts[host, IS_CLOSED]:
            find_shares(host, state)
            if now - hosts[host, LAST] >= state.counts[INTERVAL] or hosts[host, IS_FORCED]:
                divide(now, host, state)
    would_share(state)
    instant = FOREVER
    for host in range(queue):
        at = hosts[host]
        if at[IS_TOUCHED]:
            at[LOOK_AT] = next_look(now, host, state)
        if at[LOOK_AT] > now:
            instant = min(instant, at[LOOK_AT])
        if at[IS_DUE] and not at[IS_CLOSED] and at[LAST] + state.counts[INTERVAL] > now:
            instant = min(instant, at[LAST] + state.counts[INTERVAL])
        at[IS_TOUCHED] = at[IS_FORCED] = 0
    hosts[queue, IS_TOUCHED] = 0
    return instant


@kernel
def write_changes(now: int, state: SharesState, actions: RecordArray) -> int:
    """Write what the pass changes into ``actions``, those first that give processors up, each in order of sequence; return how
    many there are."""
    count = 0
    for is_more in (False, True):
        begin = count
        for slot in range(state.counts[USED]):
            job = state.jobs[slot]
            had, procs = job[HAD], job[PROCS]
            if procs == max(had, 0) or (procs > had) != is_more:
                continue
            place, row = count, job[ROW]
            while place > begin and actions[place - 1].row > row:
                actions[place] = actions[place - 1]
                place -= 1
            action = actions[place]
            action.row, action.host, action.procs, action.until, action.parts = row, job[HOST], procs, -1, 0
            action.held = job[HELD] if state.hosts[job[HOST], MEMORY] > 0 else 0
            if procs == 0:
                action.kind, action.held = SUSPEND, 1
            elif had > 0:
                action.kind = RESIZE
            elif had == 0:
                action.kind = RESUME
            elif job[GUEST] == NO_GUEST:
                action.kind = START
            else:
                action.kind, action.until = TRY, now + state.counts[QUANTUM]
            job[HAD] = procs
            count += 1
    return count


@kernel
def decide_shares(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: SharesState
) -> int:  # fmt: skip
    """Make one pass of equal shares.  No host closes in a replay, and the jobs of a log may be begun twice."""
    now = instant.now
    for place in range(instant.ended):
        depart(now, state.ended[place], memory)
    for place in range(instant.returned):
        row = state.returned[place]
        depart(now, row, memory)
        come(row, jobs.procs[row], jobs.asked[tables.MEMORY, row], 0, memory)
    for row in range(instant.first_arrived, instant.arrived):
        if done.start[row] != REFUSED_START:
            come(row, jobs.procs[row], jobs.asked[tables.MEMORY, row], 1, memory)
    state.counts[0].timer = share_pass(now, memory)
    return int(write_changes(now, memory, state.actions))
