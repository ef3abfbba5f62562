"""Set a state back that is ahead of the real time (docs/explanation/reliability.md).

The clock of the machine was ahead, and is right again.  Every instant of the state moves back by as
much as the latest one is ahead: when a job came, started, is to be released, is to end.  Durations
stay.  The records of ended jobs stay too, in the history and in the accounting files.
"""

from __future__ import annotations

import msgspec

from qbatch.daemon.core.job import BatchJob, EarlierAttempts, Prepared
from qbatch.daemon.core.state import Core
from qbatch.engine.engine import job_set_back
from qbatch.model.events import Woken
from qbatch.model.progress import NEVER


def set_back(core: Core, by: int) -> None:
    """Set a state back by ``by`` microseconds; a pass follows, which makes promises anew.

    Raises:
        QbatchError: a policy cannot begin anew; nothing has changed.
    """
    for pool in core.pools:
        pool.engine.check_exchange(pool.policy)  # before anything changes
    for pool in core.pools:
        pool.engine.set_back(by)
        pool.pending = {key: job_set_back(job, by) for key, job in pool.pending.items()}
        pool.events.append(Woken())
    shared: dict[int, Prepared] = {}
    for job in core.jobs.values():
        for one in (job, *core.arrays[job.sequence].members.values()) if job.is_array else (job,):
            _job(one, by)
            shared[id(one.prepared)] = one.prepared
    for prepared in shared.values():
        spec = prepared.spec
        not_before, deadline = _earlier(spec.not_before, by), _earlier(spec.deadline, by)
        prepared.spec = msgspec.structs.replace(spec, not_before=not_before, deadline=deadline)
    core.prepared.clear()
    core.asked.clear()
    for array in core.arrays.values():
        array.started = _earlier(array.started, by)
    core.calendar = [(due - by, *entry) for due, *entry in core.calendar]  # type: ignore[misc]
    for limit in core.run_limits.values():
        limit.waiting = [
            (eligible - by, sequence, member) for eligible, sequence, member in limit.waiting
        ]
    core.source.ended = [(at - by, owner) for at, owner in core.source.ended]
    if core.log_arrived:
        core.log_offset -= by
        core.source.io_end -= by
    core.now -= by
    core.is_dirty = True


def _earlier(at: int | None, by: int) -> int | None:
    return None if at is None else at - by


def _job(job: BatchJob, by: int) -> None:
    job.submitted -= by
    job.queued -= by
    job.modified -= by
    job.eligible = _earlier(job.eligible, by)
    job.not_before = _earlier(job.not_before, by)
    job.deadline = _earlier(job.deadline, by)
    job.promised = None
    job.broken = tuple((at - by, promised - by, why) for at, promised, why in job.broken)
    if (attempt := job.attempt) is not None:
        attempt.started -= by
        attempt.pauses = tuple((since - by, _earlier(until, by)) for since, until in attempt.pauses)
        attempt.sizes = tuple((at - by, procs) for at, procs in attempt.sizes)
        progress = attempt.progress
        if progress.since != NEVER:
            progress.since -= by
        if progress.due != NEVER:
            progress.due -= by
    if job.earlier is not None:
        trials = tuple(
            (since - by, until - by, procs, where)
            for since, until, procs, where in job.earlier.trials
        )
        lost = tuple(
            (number, since - by, until - by, *rest)
            for number, since, until, *rest in job.earlier.lost
        )
        job.earlier = EarlierAttempts(trials, lost, job.earlier.used)  # type: ignore[arg-type]
    if job.final is not None:
        job.final.ended -= by
