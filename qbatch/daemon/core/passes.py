"""The passage of time: what is due in the calendar, and one pass of each pool's engine.

``next_due`` returns the next instant at which something happens by itself; ``advance`` handles such
an instant.  The driver calls them; the same calls in the same order give the same state after a
crash.
"""

from __future__ import annotations

import heapq
from operator import attrgetter

import msgspec
from msgspec.structs import force_setattr

from qbatch.daemon.core import accounting, flow, reservations, run_limits
from qbatch.daemon.core.emulation import fate_of
from qbatch.daemon.core.faults import status_of
from qbatch.daemon.core.job import BY_POLICY, BatchJob, BatchState, FinalState
from qbatch.daemon.core.state import RENEWAL, Core, PoolState
from qbatch.daemon.executors.attempt import LOST
from qbatch.model.actions import Action, Break, Promise, Reject, Resize, Resume, Start, Suspend
from qbatch.model.events import Returned, Woken
from qbatch.model.job import Job
from qbatch.model.reasons import Reason
from qbatch.wire.identifiers import JobKey

REFUSED = -1
"""Exit status of a job that was refused: it never ran."""

MOST_BROKEN = 100
"""Broken promises that a job's record keeps: the latest."""

_SUBMIT = attrgetter("submit")

_WORDS = {flow.OVER_WALLTIME: "walltime exceeded", LOST: "LOST: a fault on demand"}


def next_due(core: Core) -> int | None:
    """Return the next instant at which something happens by itself, or None."""
    due = core.calendar[0][0] if core.calendar else None
    for pool in core.pools:
        timer = pool.engine.next_timer()
        if timer is not None and (due is None or timer < due):
            due = timer
    return due


def advance(core: Core, at: int) -> None:
    """Handle the instant ``at``, in rounds: what the calendar holds for it and before, then passes
    of the pools."""
    core.now = max(core.now, at)
    while True:
        _take_due(core)
        for pool in core.pools:
            _pass_if_due(core, pool)
        core.is_dirty = _has_more(core)
        # Jobs without length, and trials with too little memory, end at the instant of their start:
        # another round follows.
        is_due = core.calendar and core.calendar[0][0] <= core.now
        if is_due or (
            core.is_dirty
            and any(isinstance(each, Returned) for pool in core.pools for each in pool.events)
        ):
            continue
        return


def make_pass(core: Core, pool: PoolState) -> None:
    """Handle what is due by now, then make the pass of one pool at this instant, if it has anything
    to take in.

    Another round at the instant, and the other pools, are left to :func:`advance`.
    """
    _take_due(core)
    _pass_if_due(core, pool)
    core.is_dirty = _has_more(core)


def _pass_if_due(core: Core, pool: PoolState) -> None:
    if (
        pool.events
        or pool.pending
        or ((timer := pool.engine.next_timer()) is not None and timer <= core.now)
    ):
        _one_pass(core, pool)


def _has_more(core: Core) -> bool:
    for pool in core.pools:  # noqa: SIM110 - any() costs a generator, twice an instant
        if pool.events or pool.pending:
            return True
    return False


def _take_due(core: Core) -> None:
    while core.calendar and core.calendar[0][0] <= core.now:
        due, _, what, sequence, member, attempt = heapq.heappop(core.calendar)
        if what == RENEWAL:
            reservations.renew_if_due(core, sequence, due)
            continue
        job = core.find(JobKey(sequence, member))
        if job is None:
            continue
        if (
            what == "end"
            and job.attempts == attempt
            and job.attempt is not None
            and job.attempt.progress.due == due
        ):
            status = fate_of(core, job)
            if status >= 0:
                status = status_of(core.faults, job.name, status)
            worked, used_memory = job.worked(core.now), job.prepared.spec.used_memory
            used = {"cput": worked / 1e6, "walltime": worked // job.prepared.request.procs / 1e6}
            if used_memory is not None:
                used["mem"] = float(used_memory)
            flow.ended(core, job, status, _WORDS.get(status, ""), used)
        elif what == "release" and job.state is BatchState.WAITING_FOR_TIME:
            flow.settle(core, job)
            core.happened("released", job.key, "its time has come")


def _one_pass(core: Core, pool: PoolState) -> None:
    events, pool.events = pool.events, []
    arrivals: list[Job] = []
    if pool.pending:
        # A total order, by (submit, number, member), whatever the order of arrival: a snapshot
        # keeps no other.
        pending, pool.pending = pool.pending, {}
        arrived = sorted(
            zip(map(_SUBMIT, pending.values()), pending, pending.values(), strict=True)
        )
        for row, (_, key, request) in enumerate(arrived, len(pool.by_row)):
            job = core.find(key)
            assert job is not None
            job.row = row
            job.is_pending = False
            pool.by_row.append(job)
            # No other code has it yet, and the engine need not copy it.
            force_setattr(request, "row", row)
            arrivals.append(request)
    done = pool.engine.handle(core.now, events or ([] if arrivals else [Woken()]), arrivals)
    for row, reason in done.refused:
        if (job := pool.by_row[row]) is not None:
            _refused(core, pool, job, row, reason)
    for row in done.requeued:
        if (job := pool.by_row[row]) is not None:
            flow.returned(core, job)
    for row in done.stopped:
        if (job := pool.by_row[row]) is not None:
            flow.suspend(core, job, BY_POLICY)
    for action in done.actions:
        row = getattr(action, "row", -1)
        if row >= 0 and (job := pool.by_row[row]) is not None:
            _carry_out(core, pool, job, action)


def _carry_out(core: Core, pool: PoolState, job: BatchJob, action: Action) -> None:
    match action:
        case Start():
            flow.begin(core, job, action.allocation, is_trial=action.is_trial)
        case Promise():
            job.promised = action.at
            core.has_promised = True
            if job.price is None:
                job.price = pool.engine.price_of(action.row)
        case Break():
            if job.promised is not None:
                job.broken = (*job.broken, (core.now, job.promised, action.reason.text))[
                    -MOST_BROKEN:
                ]
            job.comment = f"the promised start is lost: {action.reason.text}"
            job.promised = None
            core.happened("promise-broken", job.key, action.reason.text)
        case Reject():
            _refused(core, pool, job, action.row, action.reason)
        case Suspend():
            flow.suspend(core, job, BY_POLICY)
        case Resume():
            flow.resume(core, job, BY_POLICY)
        case Resize():
            flow.resize(
                core, job, (msgspec.structs.replace(job.present.allocation[0], procs=action.procs),)
            )


def _refused(core: Core, pool: PoolState, job: BatchJob, row: int, reason: Reason) -> None:
    """End a job as refused, without a run; its array ends as refused, too, if all its jobs were
    refused."""
    pool.by_row[row] = None
    job.row, job.promised = -1, None
    _note_refusal(core, job, reason)
    array = core.arrays.get(job.sequence)
    if (
        array is not None
        and array.live == 1
        and all(each.refused is not None for each in array.members.values())
    ):
        _note_refusal(core, core.jobs[job.sequence], reason)
    run_limits.give_back(core, job)
    flow.finish(core, job, REFUSED)


def _note_refusal(core: Core, job: BatchJob, reason: Reason) -> None:
    job.final = FinalState(core.now, REFUSED, msgspec.structs.replace(reason, blocked_by=()))
    job.comment, job.ending = reason.text, "refused"
    core.account("A", job, accounting.refused(job, reason.code))
