"""The event loop of every compiled policy, in virtual time; its rounds are "The meaning of one
instant" of docs/design.md.

Rows are jobs in order of sequence; ``submit`` ascends.  :func:`loop_around` fills in ``decide`` and
the names in capitals below: to the compiler they are constants, so that a loop contains only what
its policy needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from qbatch.planning.kernels import heap
from qbatch.planning.kernels.jit import kernel, with_constants
from qbatch.planning.kernels.profile import FOREVER
from qbatch.planning.kernels.running import leave
from qbatch.planning.kernels.tables import (
    END,
    ENDS,
    INTERRUPTIONS,
    NO_JOB,
    NO_PARTS,
    PARTS,
    PROCS,
    STARTS,
    Instant,
    JobColumns,
    LogTable,
    Needs,
    ScheduleTable,
    StateTables,
)
from qbatch.planning.kernels.verbs import (
    NOT_LATER,
    carry_out,
    close_gaps,
    close_queue,
    count_allowed,
    end_all,
    give_back,
    kind_of,
    next_end,
    refuse,
    take,
)

GIVES = STARTS
"""What ``decide`` returns: ``STARTS``, or ``INTERRUPTIONS`` too (then it writes
``state.actions``)."""

READS = NO_PARTS
"""What it reads of the running jobs: ``NO_PARTS``, ``ENDS``, ``PARTS``."""

HAS_QUEUE, HAS_HOSTS, HAS_TIMERS = True, False, False
"""Whether the queue is kept here (else by the policy), whether the host of a job matters, and
whether ``decide`` sets ``counts.timer``."""

READS_ENDED = False
"""Whether it reads ``state.ended``."""

HAS_ADMISSION = False
"""Whether a job may be refused by admission when it arrives."""

IS_CHECKED = False
"""Whether each start is checked before it is carried out."""

STOPS = False
"""Whether the loop stops when a policy in Python decides, and continues after its actions have been
carried out."""


def decide(
    instant: Instant, jobs: JobColumns, state: StateTables, done: ScheduleTable, memory: Any
) -> int:
    """Make the decisions of a round: write them into ``state`` and return the number of starts, or
    actions."""
    raise NotImplementedError


@kernel
def run_rounds(  # noqa: PLR0915, it is one thought
    jobs: JobColumns,
    log: LogTable,
    state: StateTables,
    done: ScheduleTable,
    memory: Any,
    budget: int,
) -> bool:
    """Run up to ``budget`` rounds, until ``counts.until``, or until there may be no space for more
    intervals; return whether all is done.

    A start that may not be carried out ends the run: ``counts.fault`` is the reason.
    """
    submit, procs, estimate, run = jobs.submit, jobs.procs, jobs.estimate, log.run
    start, kind = done.start, done.kind
    endings, waiting, started = state.endings, state.waiting, state.started
    ends, amounts = state.parts[END], state.parts[PROCS]
    counts = state.counts[0]
    rows = submit.shape[0]
    arrived, active, free, head, tail = (
        counts.arrived,
        counts.running,
        counts.free,
        counts.head,
        counts.tail,
    )
    first, now, longest = counts.first, counts.now, counts.longest
    # A round records one per job that ends, stops or changes.
    most = state.intervals.shape[0] - 2 * state.actions.shape[0]
    while budget > 0 and (
        arrived < rows
        or active > 0
        or (HAS_TIMERS and counts.timer < FOREVER)
        or (STOPS and counts.decided >= 0)
    ):
        budget -= 1
        if STOPS and counts.decided >= 0:
            count, counts.decided = 0, -1
        else:
            if GIVES == STARTS:
                following = endings[0, heap.INSTANT] if active > 0 else FOREVER
            else:
                if counts.intervals > most:
                    break
                following = next_end(state)
            if HAS_TIMERS and counts.timer < following:
                following = counts.timer
            if arrived < rows and submit[arrived] < following:
                following = submit[arrived]
            if following > counts.until:
                break
            now = following
            ended, returned = 0, 0
            if GIVES == STARTS:
                while active > 0 and endings[0, heap.INSTANT] == now:
                    row = endings[0, heap.ROW]
                    heap.pop(endings, active)
                    if READS == ENDS:
                        leave(ends, amounts, active, start[row] + estimate[row], procs[row])
                    if HAS_HOSTS:
                        give_back(row, READS == PARTS, jobs, state, done)
                    if READS_ENDED:
                        state.ended[ended] = row
                    active -= 1
                    free += procs[row]
                    ended += 1
            else:
                head = end_all(now, state, done)
                free, ended, returned = counts.free, counts.ended, counts.returned
            scan_from = head if ended + returned > 0 else tail
            first_arrived = arrived
            while arrived < rows and submit[arrived] == now:
                if HAS_ADMISSION and not log.may_run[arrived]:
                    refuse(arrived, state, done)
                elif HAS_QUEUE:
                    waiting[tail] = arrived
                    tail += 1
                arrived += 1
            if GIVES == INTERRUPTIONS:
                active, counts.head, counts.tail = counts.running, head, tail
            if STOPS:
                counts.decided, counts.ended = 0, ended
                break
            parts = counts.parts if HAS_HOSTS and READS == PARTS else active
            instant = Instant(
                now, free, head, tail, scan_from, parts, first_arrived, arrived, ended, returned
            )
            if HAS_TIMERS:
                counts.timer = FOREVER
            count = decide(instant, jobs, state, done, memory)
        if IS_CHECKED and HAS_TIMERS and counts.timer <= now:
            counts.fault, count = NOT_LATER, 0
        if GIVES == INTERRUPTIONS:
            if not STOPS:
                carry_out(count, now, jobs, log, state, done)
            count = close_queue(state.counts[0], state.waiting, state.runs)
            active, free, head = counts.running, counts.free, counts.head
            longest = max(longest, tail - head + count)
        else:
            if HAS_QUEUE:
                longest = max(longest, tail - head)
            if IS_CHECKED:
                count = count_allowed(count, arrived, free, HAS_HOSTS, jobs, state, done)
            last, begun = NO_JOB, 0
            for place in range(count):
                row = started[place]
                last = max(last, row)
                start[row] = now
                free -= procs[row]
                if HAS_HOSTS:
                    begun = take(place, begun, now, READS == PARTS, jobs, state, done)
                heap.push(endings, active, now + run[row], row)
                active += 1
            if HAS_QUEUE and count > 0:
                head = close_gaps(waiting, head, start, last)
        if not HAS_QUEUE:
            longest = max(longest, arrived - counts.begun - counts.refused)
            counts.begun += count
            while first < arrived and start[first] != NO_JOB:
                first += 1
        if count > 0:
            if HAS_QUEUE:
                first_left = waiting[head] if head < tail else NO_JOB
            else:
                first_left = first if first < arrived else NO_JOB
            for place in range(count):
                row = started[place]
                kind[row] = kind_of(row, first_left, submit[row], now)
        if IS_CHECKED and counts.fault != 0:
            break
    counts.arrived, counts.running, counts.free, counts.head, counts.tail = (
        arrived,
        active,
        free,
        head,
        tail,
    )
    counts.first, counts.now, counts.longest = first, now, longest
    is_over = arrived >= rows and active == 0 and not (HAS_TIMERS and counts.timer < FOREVER)
    if STOPS:
        is_over = is_over and counts.decided < 0
    return bool(is_over or (IS_CHECKED and counts.fault != 0))


@cache
def loop_around(
    decide: Callable[..., int], needs: Needs, *, has_admission: bool, is_checked: bool
) -> Callable[..., bool]:
    """Return the loop around a ``decide``; ``is_checked``: its starts are checked, which only our
    own policies may omit."""
    constants = {name.upper(): value for name, value in needs._asdict().items()}
    constants |= {"HAS_ADMISSION": has_admission, "IS_CHECKED": is_checked}
    return with_constants(run_rounds, decide=decide, **constants)


run_to_decision = run_rounds


@kernel
def rounds_to_decide(
    jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable, memory: Any
) -> Iterator[int]:
    """Go through the rounds and stop in each when the policy decides, yielding its instant.

    If ``counts.decided`` is more than 0 then, this many of ``state.actions`` are carried out, and
    it stops again; if it is 0, the pass is over.  It yields less than 0 if there may be no space
    for more intervals.

    It is a generator, because that holds the tables: a step costs a fifth of a microsecond, a call
    with all tables several. As for every kernel, the caller has to keep the arrays.
    """
    while True:
        # A name for the record would be a copy of it here: a generator keeps the values of its
        # names.
        if state.counts[0].decided > 0:
            carry_out(state.counts[0].decided, state.counts[0].now, jobs, log, state, done)
            state.counts[0].decided = 0
        elif run_to_decision(jobs, log, state, done, memory, FOREVER):
            break
        yield int(state.counts[0].now)


@cache
def rounds_of(needs: Needs) -> Callable[..., Iterator[int]]:
    """Return the rounds around a policy in Python."""
    constants = {name.upper(): value for name, value in needs._asdict().items()}
    constants |= {"HAS_ADMISSION": True, "STOPS": True}
    return with_constants(rounds_to_decide, run_to_decision=with_constants(run_rounds, **constants))


@kernel
def rounds_to_stops(
    jobs: JobColumns, log: LogTable, state: StateTables, done: ScheduleTable, memory: Any
) -> Iterator[int]:
    """Run to the end, and stop on the way where ``decide`` sets ``counts.until`` before its
    instant; yield that instant.

    The caller sets ``counts.until`` back before it goes on.
    """
    while not run_to_decision(jobs, log, state, done, memory, FOREVER):
        yield int(state.counts[0].now)


@cache
def stops_of(decide: Callable[..., int], needs: Needs) -> Callable[..., Iterator[int]]:
    """Return the stops of the loop around a ``decide`` of ours."""
    run = loop_around(decide, needs, has_admission=True, is_checked=False)
    return with_constants(rounds_to_stops, run_to_decision=run)
