"""Equal shares of hosts: on which host a job is placed, how a host is divided, what is owed to jobs
that wait for memory.

The rules and their source are in :mod:`qbatch.policies.equispatial`.  The live policy and the
compiled one call the same kernels: :func:`depart` and :func:`come` for what happened, then
:func:`share_pass` and :func:`write_changes`.

One table holds the waiting and running jobs, each in a fixed slot.  The jobs of a host form a list
in order of sequence; jobs for which no host has memory form the list of the *queue*, the table row
after the last host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbatch.model.machine import Machine
from qbatch.planning.kernels import tables
from qbatch.planning.kernels.jit import allocating_kernel, kernel
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.tables import (
    NO_JOB,
    Instant,
    JobColumns,
    ScheduleTable,
    StateTables,
    record,
)
from qbatch.planning.kernels.types import RecordArray

SHARER = record(
    "row",  # ``NO_JOB``: the slot is empty.
    "host",  # the number of hosts: it waits for memory.
    "next",  # the next slot on the list of the host, -1: none.
    "requested",  # requested processors.
    "held",  # bytes that it holds or waits for.
    "procs",  # processors that it has now.
    "had",  # processors before this pass; -1: it has not begun.
    "share",  # its equal share; of a waiting job: the share that it would have.
    "owed",  # processor-microseconds that are owed to it, by ``at`` of its host.
    "executed",  # its executed time, by ``at`` of its host.
    "trial",  # ``NO_TRIAL``, ``ON_IDLE`` or ``SQUEEZING``.
    "is_new",  # whether it may get a trial run in this pass.
)
"""A job that waits or is on a host."""

NO_TRIAL, ON_IDLE, SQUEEZING = 0, 1, 2
"""Trial runs: on processors that were idle, or on processors that other jobs gave up for it."""

SHARED_HOST = record(
    "cpus",
    "memory",  # bytes; 0: not counted.
    "free_memory",
    "is_closed",
    "idle",  # processors that no job has.
    "demand",  # processors that all jobs there ask for.
    "trial_procs",  # processors of trial runs.
    "sharing",  # number of jobs without trial runs.
    "owing",  # number of these jobs to which something is owed.
    "at",  # the instant up to which its account is updated.
    "last",  # when it was last divided.
    "is_due",  # whether it must be divided again.
    "is_stale",  # whether its jobs changed since shares were found.
    "look_at",  # when to look at it again.
    "is_touched",  # whether its account was updated in this pass.
    "is_forced",  # whether it is divided in this pass regardless of the interval.
    "first",  # the slot of the first job there, -1: none.
)
"""A host on which jobs have equal shares."""

SHARES = record("used", "interval", "long", "quantum", "most_memory")
"""The slots used so far, and rules: the shortest time between two divisions of a host; the executed
time after which a job gets all that it asks for (``FOREVER``: never).  Then the length of a trial
run, and its most memory."""


class SharesState(NamedTuple):
    """The jobs that share ``H`` hosts: ``jobs[S]`` of ``SHARER``; ``hosts[H + 1]`` of
    ``SHARED_HOST``: the hosts, then the queue; ``counts[1]`` of ``SHARES``."""

    jobs: RecordArray
    hosts: RecordArray
    counts: RecordArray


NEVER = -FOREVER
"""``last`` of a host that was never divided."""

ALL, FAVOURED, OTHERS = 0, 1, 2
"""Groups of jobs on a host that share processors: all but trial runs; of those the jobs that are to
get all that they ask for; the rest."""

_LEVELS = 64
"""The number of levels kept while the shares of waiting jobs are computed."""


def new_state(machine: Machine, rules: tuple[int, int, int, int], slots: int = 64) -> SharesState:
    """Return the state of a machine before its first event.

    ``rules``: the values of ``counts`` from ``interval`` on.  ``slots``: the initial space, in
    jobs.
    """
    hosts = np.zeros(len(machine.hosts) + 1, SHARED_HOST)
    for place, host in enumerate(machine.hosts):
        hosts[place].cpus = hosts[place].idle = host.cpus
        hosts[place].memory = hosts[place].free_memory = host.memory
    hosts["first"], hosts["last"], hosts["look_at"] = -1, NEVER, FOREVER
    hosts[-1].is_closed = 1
    return SharesState(np.zeros(slots, SHARER), hosts, np.array([(0, *rules)], SHARES))


@kernel
def slot_of(row: int, state: SharesState) -> int:
    """Return the slot of a row, -1 if it is not there."""
    for slot in range(state.counts[0].used):
        if state.jobs[slot].row == row:
            return slot
    return -1


@kernel
def link(slot: int, host: int, state: SharesState) -> None:
    """Add a job to the list of a host, or of the queue."""
    jobs, hosts = state.jobs, state.hosts
    before, after = -1, hosts[host].first
    while after >= 0 and jobs[after].row < jobs[slot].row:
        before, after = after, jobs[after].next
    jobs[slot].host, jobs[slot].next = host, after
    if before < 0:
        hosts[host].first = slot
    else:
        jobs[before].next = slot
    if jobs[slot].trial == NO_TRIAL:
        hosts[host].sharing += 1


@kernel
def unlink(slot: int, state: SharesState) -> None:
    """Remove a job from its list."""
    jobs, hosts, host = state.jobs, state.hosts, state.jobs[slot].host
    if hosts[host].first == slot:
        hosts[host].first = jobs[slot].next
    else:
        before = hosts[host].first
        while jobs[before].next != slot:
            before = jobs[before].next
        jobs[before].next = jobs[slot].next
    if jobs[slot].trial == NO_TRIAL:
        hosts[host].sharing -= 1


@kernel
def touch(now: int, host: int, state: SharesState) -> None:
    """Update the account of a host, or of the queue: how long each job has executed, and what is
    owed to it."""
    at, counts = state.hosts[host], state.counts[0]
    is_queue, length = host == state.hosts.shape[0] - 1, now - at.at
    at.is_touched, at.at = 1, now
    slot = at.first if length > 0 else -1
    while slot >= 0:
        job = state.jobs[slot]
        if job.procs > 0:
            job.executed += length
            if job.trial == NO_TRIAL and job.executed - length <= counts.long < job.executed:
                at.is_due = 1
        if job.owed > 0 or is_queue:
            job.owed = max(job.owed - (job.procs - job.share) * length, 0)
            if job.owed == 0 and not is_queue:
                at.owing -= 1
                at.is_due = 1
        slot = job.next


@kernel
def come(row: int, requested: int, held: int, is_new: int, state: SharesState) -> int:
    """Add a waiting job and return its slot; the caller ensures that ``jobs`` has an empty one.

    ``held``: bytes that it asks for.  ``is_new``: 1 if it may have a trial run in this pass, else
    0.
    """
    slot = slot_of(NO_JOB, state)
    if slot < 0:
        slot = state.counts[0].used
        state.counts[0].used += 1
    job = state.jobs[slot]
    job.row, job.requested, job.held, job.procs, job.had, job.share = row, requested, held, 0, -1, 0
    job.owed, job.executed, job.trial, job.is_new = 0, 0, NO_TRIAL, is_new
    link(slot, state.hosts.shape[0] - 1, state)
    return slot


@kernel
def enter(now: int, slot: int, host: int, procs: int, trial: int, state: SharesState) -> None:
    """Move a waiting job to a host, with ``procs`` processors; the host must be divided again.

    ``trial``: ``NO_TRIAL``, ``ON_IDLE`` or ``SQUEEZING``.
    """
    touch(now, host, state)
    job, at = state.jobs[slot], state.hosts[host]
    unlink(slot, state)
    job.procs, job.trial, job.is_new = procs, trial, 0
    link(slot, host, state)
    at.idle -= procs
    at.demand += job.requested
    at.free_memory -= job.held
    at.trial_procs += procs if trial != NO_TRIAL else 0
    at.owing += 1 if job.owed > 0 else 0
    at.is_due = at.is_stale = 1


@kernel
def depart(now: int, row: int, state: SharesState) -> None:
    """Remove a row if it is present; its host must be divided again, at once if other jobs gave up
    processors for it."""
    slot = slot_of(row, state)
    if slot < 0:
        return
    job, at = state.jobs[slot], state.hosts[state.jobs[slot].host]
    if job.host < state.hosts.shape[0] - 1:
        touch(now, job.host, state)
        at.idle += job.procs
        at.demand -= job.requested
        at.free_memory += job.held
        at.trial_procs -= job.procs if job.trial != NO_TRIAL else 0
        at.owing -= 1 if job.owed > 0 else 0
        at.is_due = at.is_stale = 1
        if job.trial == SQUEEZING:
            at.is_forced = 1
    unlink(slot, state)
    job.row, job.procs, job.had = NO_JOB, 0, 0


@kernel
def belongs(slot: int, group: int, state: SharesState) -> bool:
    """Return whether a job of a host belongs to a group that shares processors."""
    job = state.jobs[slot]
    if job.trial != NO_TRIAL:
        return False
    return group == ALL or (job.owed > 0 or job.executed > state.counts[0].long) == (
        group == FAVOURED
    )


@kernel
def water_level(
    host: int, group: int, procs: int, requested: int, state: SharesState
) -> tuple[int, int]:
    """Return the greatest common level that the processors allow, and how many of the jobs that ask
    for more get one above it.

    ``procs``: the processors.  ``requested``: the processors of one additional job; 0: none.
    """
    jobs, level = state.jobs, 0
    while True:
        left, count = procs, 0
        if requested > level:
            count += 1
        else:
            left -= requested
        slot = state.hosts[host].first
        while slot >= 0:
            if belongs(slot, group, state):
                if jobs[slot].requested > level:
                    count += 1
                else:
                    left -= jobs[slot].requested
            slot = jobs[slot].next
        if count == 0:
            return FOREVER, 0
        if left // count == level:
            return level, left - level * count
        level = left // count


@kernel
def fill(host: int, group: int, procs: int, is_given: bool, state: SharesState) -> int:
    """Divide processors equally and return how many are used: no job gets more than it asks for;
    the remainder goes in order.

    ``is_given``: whether each job gets these processors now; otherwise they are only recorded as
    its share.
    """
    level, spare = water_level(host, group, procs, 0, state)
    given, slot = 0, state.hosts[host].first
    while slot >= 0:
        job = state.jobs[slot]
        if belongs(slot, group, state):
            share = min(job.requested, level)
            if job.requested > level and spare > 0:
                share += 1
                spare -= 1
            if is_given:
                job.procs = share
            else:
                job.share = share
            given += share
        slot = job.next
    return given


@kernel
def find_shares(host: int, state: SharesState) -> None:
    """Record the equal share of each job of a host, whether the host is divided now or later."""
    at = state.hosts[host]
    if at.is_stale:
        fill(host, ALL, at.cpus - at.trial_procs, False, state)
        at.is_stale = 0


@kernel
def divide(now: int, host: int, state: SharesState) -> None:
    """Divide a host among its jobs.

    A job that is to get all that it asks for leaves one processor to every other job; several such
    jobs share the rest.
    """
    touch(now, host, state)
    jobs, at = state.jobs, state.hosts[host]
    procs, favoured = at.cpus - at.trial_procs, 0
    slot = at.first
    while slot >= 0:
        favoured += 1 if belongs(slot, FAVOURED, state) else 0
        slot = jobs[slot].next
    if favoured > 0 and procs >= at.sharing:
        given = fill(host, FAVOURED, procs - (at.sharing - favoured), True, state)
        given += fill(host, OTHERS, procs - given, True, state)
    else:
        given = fill(host, ALL, procs, True, state)
    at.idle, at.last, at.is_due = procs - given, now, 0


@kernel
def extra(host: int, state: SharesState) -> int:
    """Return how many processors beyond their share the jobs have, on one host, to which something
    is owed."""
    if state.hosts[host].owing == 0:
        return 0
    find_shares(host, state)
    found, slot = 0, state.hosts[host].first
    while slot >= 0:
        job = state.jobs[slot]
        if job.owed > 0:
            found += max(job.procs - job.share, 0)
        slot = job.next
    return found


@kernel
def could_hold(host: int, requested: int, held: int, is_trial: int, state: SharesState) -> bool:
    """Return whether an open host has the memory for a job, and as many processors as it asks for.

    A trial run needs them to be left when every other job keeps one processor, and every other
    trial run all that it has.
    """
    at = state.hosts[host]
    least = requested + (at.sharing + at.trial_procs if is_trial else 0)
    return bool(
        at.is_closed == 0 and at.cpus >= least and (at.memory == 0 or at.free_memory >= held)
    )


@kernel
def best_ratio(requested: int, held: int, is_trial: int, state: SharesState) -> int:
    """Return the host with the most processors per requested one, including the new job; -1 if no
    host could hold the job."""
    best, most, least = -1, 0, 1
    for host in range(state.hosts.shape[0] - 1):
        if could_hold(host, requested, held, is_trial, state):
            size, demand = (
                state.hosts[host].cpus - extra(host, state),
                state.hosts[host].demand + requested,
            )
            if best < 0 or size * least > most * demand:
                best, most, least = host, size, demand
    return best


@kernel
def choose(requested: int, held: int, is_trial: int, state: SharesState) -> int:
    """Return the host for a job: the one with the fewest free processors that suffice, else by the
    ratio; -1 for none."""
    best = -1
    for host in range(state.hosts.shape[0] - 1):
        idle = state.hosts[host].idle
        if requested <= idle and (best < 0 or idle < state.hosts[best].idle):
            best = host if could_hold(host, requested, held, is_trial, state) else best
    return best if best >= 0 else best_ratio(requested, held, is_trial, state)


@kernel
def place(now: int, state: SharesState) -> None:
    """Move waiting jobs to hosts, in order of sequence.

    A job that found no host in an earlier pass finds one only after memory was given back, or a
    host opened.
    """
    jobs, hosts, most = state.jobs, state.hosts, -1
    for host in range(hosts.shape[0] - 1):
        if hosts[host].is_closed == 0:
            most = max(most, FOREVER if hosts[host].memory == 0 else hosts[host].free_memory)
    slot = hosts[hosts.shape[0] - 1].first
    while slot >= 0:
        job = jobs[slot]
        after = job.next
        if job.held <= most:
            host = choose(job.requested, job.held, 0, state)
            if host >= 0:
                enter(now, slot, host, min(job.requested, hosts[host].idle), NO_TRIAL, state)
        slot = after


@kernel
def serve(now: int, state: SharesState) -> None:
    """Give arrivals without memory their trial run, if there is a host for it."""
    jobs, hosts = state.jobs, state.hosts
    slot = hosts[hosts.shape[0] - 1].first
    while slot >= 0:
        job = jobs[slot]
        after, need = job.next, min(job.held, state.counts[0].most_memory)
        if job.is_new and need < job.held:
            host = choose(job.requested, need, 1, state)
            if host >= 0:
                is_squeezing = hosts[host].idle < job.requested
                job.held, job.owed = need, 0
                enter(now, slot, host, job.requested, SQUEEZING if is_squeezing else ON_IDLE, state)
                if is_squeezing:
                    hosts[host].is_forced = 1
        job.is_new = 0
        slot = after


@kernel
def level_with(requested: int, state: SharesState) -> tuple[int, int]:
    """Return the level after adding a job where the ratio puts it, and up to which row a job gets
    one processor above it."""
    host = best_ratio(requested, 0, 0, state)
    if host < 0:
        return 0, NO_JOB
    at = state.hosts[host]
    reached, spare = water_level(host, ALL, at.cpus - at.trial_procs, requested, state)
    slot, last = at.first, NO_JOB if spare == 0 else FOREVER
    while slot >= 0 and spare > 0:
        job = state.jobs[slot]
        if job.trial == NO_TRIAL and job.requested > reached:
            spare -= 1
            last = job.row if spare == 0 else last
        slot = job.next
    return reached, last


@allocating_kernel
def would_share(state: SharesState) -> None:
    """Record the share that each waiting job would have on the host that the ratio picks.

    It depends on the requested processors and, if the level is lower, on the earlier jobs of the
    host.
    """
    jobs, slot = state.jobs, state.hosts[state.hosts.shape[0] - 1].first
    if slot < 0:
        return
    levels = np.zeros((_LEVELS, 3), np.int64)
    while slot >= 0:
        job = jobs[slot]
        found = levels[job.requested % _LEVELS]
        if found[0] != job.requested:
            found[0] = job.requested
            found[1], found[2] = level_with(job.requested, state)
        job.share = job.requested
        if job.requested > found[1]:
            job.share = found[1] + (1 if job.row < found[2] else 0)
        slot = job.next


@kernel
def next_look(now: int, host: int, state: SharesState) -> int:
    """Return when a debt is paid or a job becomes a long one, if nothing else changes; ``FOREVER``
    if never."""
    found, longest, long = FOREVER, -1, state.counts[0].long
    slot = state.hosts[host].first if state.hosts[host].is_closed == 0 else -1
    while slot >= 0:
        job = state.jobs[slot]
        if job.owed > 0 and job.procs > job.share:
            found = min(found, now - (-job.owed // (job.procs - job.share)))
        if job.trial == NO_TRIAL and job.procs > 0 and job.executed <= long:
            longest = max(longest, job.executed)
        slot = job.next
    return min(found, now + long - longest + 1) if longest >= 0 and long < FOREVER else found


@allocating_kernel
def share_pass(now: int, state: SharesState) -> int:
    """Place the waiting jobs and divide the hosts that are due; return when to make another pass,
    ``FOREVER`` for never.

    :func:`write_changes` returns the jobs that have other processors than before.
    """
    hosts, queue = state.hosts, state.hosts.shape[0] - 1
    for host in range(queue):
        if hosts[host].look_at <= now:
            touch(now, host, state)
    touch(now, queue, state)
    place(now, state)
    serve(now, state)
    for host in range(queue):
        if hosts[host].is_due and not hosts[host].is_closed:
            find_shares(host, state)
            if now - hosts[host].last >= state.counts[0].interval or hosts[host].is_forced:
                divide(now, host, state)
    would_share(state)
    instant = FOREVER
    for host in range(queue):
        at = hosts[host]
        if at.is_touched:
            at.look_at = next_look(now, host, state)
        if at.look_at > now:
            instant = min(instant, at.look_at)
        if at.is_due and not at.is_closed and at.last + state.counts[0].interval > now:
            instant = min(instant, at.last + state.counts[0].interval)
        at.is_touched = at.is_forced = 0
    hosts[queue].is_touched = 0
    return instant


@kernel
def write_changes(now: int, state: SharesState, actions: RecordArray) -> int:
    """Write the changes of the pass into ``actions``, first of jobs that give processors up, each
    group in order of sequence; return their number."""
    count = 0
    for is_more in (False, True):
        begin = count
        for slot in range(state.counts[0].used):
            job = state.jobs[slot]
            had, procs = job.had, job.procs
            if procs == max(had, 0) or (procs > had) != is_more:
                continue
            place, row = count, job.row
            while place > begin and actions[place - 1].row > row:
                actions[place] = actions[place - 1]
                place -= 1
            action = actions[place]
            action.row, action.host, action.procs, action.until, action.parts = (
                row,
                job.host,
                procs,
                -1,
                0,
            )
            action.held = job.held if state.hosts[job.host].memory > 0 else 0
            if procs == 0:
                action.kind, action.held = tables.SUSPEND, 1
            elif had > 0:
                action.kind = tables.RESIZE
            elif had == 0:
                action.kind = tables.RESUME
            elif job.trial == NO_TRIAL:
                action.kind = tables.START
            else:
                action.kind, action.until = tables.TRY, now + state.counts[0].quantum
            job.had = procs
            count += 1
    return count


@kernel
def decide_shares(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: SharesState
) -> int:
    """Make one pass of equal shares.  No host closes in a replay, and the jobs of a log may start
    twice."""
    now = instant.now
    for place in range(instant.ended):
        depart(now, state.ended[place], memory)
    for place in range(instant.returned):
        row = state.returned[place]
        depart(now, row, memory)
        come(row, jobs.procs[row], jobs.asked[tables.MEMORY, row], 0, memory)
    for row in range(instant.first_arrived, instant.arrived):
        if done.start[row] != tables.REFUSED_START:
            come(row, jobs.procs[row], jobs.asked[tables.MEMORY, row], 1, memory)
    state.counts[0].timer = share_pass(now, memory)
    return int(write_changes(now, memory, state.actions))
