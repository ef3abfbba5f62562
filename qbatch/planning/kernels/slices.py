"""Passes of a machine that is shared in time: jobs of one class have a slice of time; other classes
use what these leave.

Source: SCOJO-PECT (Esbaugh and Sodan 2007; the thesis on group optimisation, section 4); exact
readings in docs/spec/papers.md 4.10, rules 4 to 7 and 16.

The waiting, running and suspended jobs are ``jobs[space]`` of ``TIMED_JOB``, in order of row,
``count`` of them in use.  A *node* is a processor, numbered host by host; a job owns its nodes from
its first start to its end.  ``owners[3, P]``: the row that owns a node, by class; -1 for none (two
jobs of one class never own the same).  ``busy[P]``: the row that runs there, -1 for none,
``CLOSED`` if the host takes no job.  The profile is in *class time*: as if the slice never ended,
except that jobs of other classes leave at its end.

Passes write their decisions to ``decisions[2, 1 + n]``: column 0 holds their number, each further
column a row, and whether it starts or resumes.
"""

from __future__ import annotations

from qbatch.planning.kernels.jit import kernel
from qbatch.planning.kernels.order import first_from
from qbatch.planning.kernels.profile import FOREVER, add, earliest, fits, reset
from qbatch.planning.kernels.tables import record
from qbatch.planning.kernels.types import Int64Array, RecordArray

TIMED_JOB = record(
    "row",  # in the engine.
    "procs",
    "open_procs",  # its processors on open hosts.
    "kind",  # its class.
    "estimate",
    "submit",
    "done",  # its executed time before ``since``.
    "since",  # when it began to run, or stopped.
    "state",
)
"""A job in the table."""

WAITING, PLANNED, RUNNING, SUSPENDED, STRAY = range(5)
"""States: it waits; it waits and is in the plan of a group; it runs; it is suspended; it was
suspended before this policy, and its hosts have no nodes for it to own yet."""

NO_JOB, CLOSED = -1, -2
"""Values in ``busy``: a node on which no job runs, and one that takes no job."""

START, RESUME = 0, 1
"""Decisions."""

SECOND = 1_000_000
"""The least remaining time of a job, in microseconds."""


@kernel
def slot_of(jobs: RecordArray, count: int, row: int) -> int:
    """Return the slot of a row, -1 if it is not in the table."""
    low = first_from(jobs["row"], count, row)
    return low if low < count and jobs[low].row == row else -1


@kernel
def left_of(jobs: RecordArray, slot: int, now: int) -> int:
    """Return how long a job still has to execute by its estimate, at least a second (``rem``)."""
    left = jobs[slot].estimate - jobs[slot].done
    if jobs[slot].state == RUNNING:
        left -= now - jobs[slot].since
    return int(max(left, SECOND))


@kernel
def leave(jobs: RecordArray, count: int, slot: int, owners: Int64Array, busy: Int64Array) -> None:
    """Remove a job from the table; its nodes have no owner."""
    row, kind = jobs[slot].row, jobs[slot].kind
    if jobs[slot].state >= RUNNING:
        for node in range(len(busy)):
            if owners[kind, node] == row:
                owners[kind, node] = NO_JOB
                if busy[node] == row:
                    busy[node] = NO_JOB
    for place in range(slot, count - 1):
        jobs[place] = jobs[place + 1]


@kernel
def suspend_all(jobs: RecordArray, count: int, now: int, busy: Int64Array) -> None:
    """Suspend every running job."""
    for slot in range(count):
        if jobs[slot].state == RUNNING:
            jobs[slot].done += now - jobs[slot].since
            jobs[slot].since = now
            jobs[slot].state = SUSPENDED
    for node in range(len(busy)):
        if busy[node] != CLOSED:
            busy[node] = NO_JOB


@kernel
def draw_profile(
    profile: Int64Array, now: int, until: int, kind: int, procs: int, jobs: RecordArray, count: int
) -> None:
    """Write what the running jobs leave: those of the slice's class run to their ends, others at
    most until the slice ends (rule 5)."""
    reset(profile, procs, now)
    for slot in range(count):
        if jobs[slot].state == RUNNING:
            end = now + left_of(jobs, slot, now)
            add(
                profile,
                now,
                end if jobs[slot].kind == kind else min(end, until),
                -jobs[slot].open_procs,
            )


@kernel
def _decide(decisions: Int64Array, row: int, what: int) -> None:
    decisions[0, 0] += 1
    decisions[0, decisions[0, 0]] = row
    decisions[1, decisions[0, 0]] = what


@kernel
def _start(
    jobs: RecordArray,
    slot: int,
    now: int,
    owners: Int64Array,
    busy: Int64Array,
    decisions: Int64Array,
) -> bool:
    """Start a job on the first idle nodes that no job of its own class owns, if there are enough
    (rule 6)."""
    row, kind, procs = jobs[slot].row, jobs[slot].kind, jobs[slot].procs
    missing = procs
    for node in range(len(busy)):
        if busy[node] == NO_JOB and owners[kind, node] == NO_JOB:
            missing -= 1
            if missing == 0:
                break
    if missing > 0:
        return False
    for node in range(len(busy)):
        if busy[node] == NO_JOB and owners[kind, node] == NO_JOB:
            busy[node] = owners[kind, node] = row
            procs -= 1
            if procs == 0:
                break
    jobs[slot].state, jobs[slot].since = RUNNING, now
    _decide(decisions, row, START)
    return True


@kernel
def _resume(
    jobs: RecordArray,
    slot: int,
    now: int,
    owners: Int64Array,
    busy: Int64Array,
    decisions: Int64Array,
) -> bool:
    """Resume a suspended job on its own nodes, if no job runs there."""
    row, kind = jobs[slot].row, jobs[slot].kind
    for node in range(len(busy)):
        if owners[kind, node] == row and busy[node] != NO_JOB:
            return False
    for node in range(len(busy)):
        if owners[kind, node] == row:
            busy[node] = row
    jobs[slot].state, jobs[slot].since = RUNNING, now
    _decide(decisions, row, RESUME)
    return True


@kernel
def resume_class(
    now: int,
    kind: int,
    jobs: RecordArray,
    count: int,
    owners: Int64Array,
    busy: Int64Array,
    decisions: Int64Array,
    is_placing: bool,
    progress: Int64Array,
) -> int:
    """Resume all suspended jobs of a class (rule 4); ``is_placing``, ``progress``: see
    :func:`book_in_order`."""
    for slot in range(progress[0], count):
        if jobs[slot].state == SUSPENDED and jobs[slot].kind == kind:
            if not is_placing:
                progress[0] = slot + 1
                return slot
            _resume(jobs, slot, now, owners, busy, decisions)
    return -1


@kernel
def book_in_order(
    now: int,
    order: Int64Array,
    profile: Int64Array,
    jobs: RecordArray,
    owners: Int64Array,
    busy: Int64Array,
    decisions: Int64Array,
    planned: Int64Array,
    is_placing: bool,
    progress: Int64Array,
) -> int:
    """Book each job (by slot) at its earliest start, one after another; a job booked for now
    starts.

    ``planned``: ``[len(order)]``, receives the starts.  ``is_placing``: whether free processors are
    all that a job needs, so that it gets its nodes here.  ``progress``: ``[2]``, zeros at first:
    where to continue.

    Returns:
        -1 when all is done; else the slot of a job that may start if the caller finds hosts for it:
        the caller then calls again.
    """
    for place in range(progress[0], len(order)):
        slot = order[place]
        lasts = left_of(jobs, slot, now)
        start = earliest(profile, jobs[slot].procs, lasts, now)
        planned[place] = start
        if start >= FOREVER:
            continue
        add(profile, start, start + lasts, -jobs[slot].procs)
        if start == now:
            if not is_placing:
                progress[0] = place + 1
                return int(slot)
            _start(jobs, slot, now, owners, busy, decisions)
    return -1


@kernel
def backfill_easily(
    now: int,
    order: Int64Array,
    is_in_order: bool,
    profile: Int64Array,
    jobs: RecordArray,
    owners: Int64Array,
    busy: Int64Array,
    decisions: Int64Array,
    is_placing: bool,
    progress: Int64Array,
) -> int:
    """Start each job (by slot) that fits over its whole estimate.

    ``is_in_order``: the first that does not fit is booked at its earliest start before the scan
    continues (EASY). ``is_placing``, ``progress``: see :func:`book_in_order`; the caller books what
    it starts.
    """
    for place in range(progress[0], len(order)):
        slot = order[place]
        procs, lasts = jobs[slot].procs, left_of(jobs, slot, now)
        if fits(profile, procs, now, now + lasts):
            if not is_placing:
                progress[0] = place + 1
                return int(slot)
            if _start(jobs, slot, now, owners, busy, decisions):
                add(profile, now, now + lasts, -procs)
        elif is_in_order and progress[1] == 0:
            progress[1] = 1
            start = earliest(profile, procs, lasts, now)
            if start < FOREVER:
                add(profile, start, start + lasts, -procs)
    return -1


@kernel
def fill_in(
    now: int,
    until: int,
    kind: int,
    order: Int64Array,
    profile: Int64Array,
    jobs: RecordArray,
    owners: Int64Array,
    busy: Int64Array,
    decisions: Int64Array,
    is_placing: bool,
    progress: Int64Array,
) -> int:
    """Start or resume each job (by slot) that fits until it, or the slice, ends; a job of the class
    is booked to its end, others until the slice ends (rules 7 and 16).

    ``is_placing``, ``progress``: see :func:`book_in_order`; the caller books what it starts.
    """
    for place in range(progress[0], len(order)):
        slot = order[place]
        end = now + left_of(jobs, slot, now)
        if not fits(profile, jobs[slot].procs, now, min(end, until)):
            continue
        if not is_placing:
            progress[0] = place + 1
            return int(slot)
        if jobs[slot].state == SUSPENDED:
            is_running = _resume(jobs, slot, now, owners, busy, decisions)
        else:
            is_running = _start(jobs, slot, now, owners, busy, decisions)
        if is_running:
            add(
                profile,
                now,
                end if jobs[slot].kind == kind else min(end, until),
                -jobs[slot].open_procs,
            )
    return -1


@kernel
def of_other_classes(
    kind: int, plan: Int64Array, jobs: RecordArray, count: int, found: Int64Array
) -> int:
    """Write the slots of the jobs of other classes in the order in which they may use what is left:
    suspended, planned (``plan``: by row), waiting (rule 7); return their number."""
    length = 0
    for state in (SUSPENDED, PLANNED, WAITING):
        if state == PLANNED:
            for row in plan:
                slot = slot_of(jobs, count, row)
                if jobs[slot].state == PLANNED:
                    found[length] = slot
                    length += 1
            continue
        for other in range(3):
            for slot in range(count):
                if other != kind and jobs[slot].kind == other and jobs[slot].state == state:
                    found[length] = slot
                    length += 1
    return length
