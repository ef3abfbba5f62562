"""Run limits: how many jobs may run at once, of a queue, of one user in a queue, of an array.

A waiting job is with the engine of its pool and holds a place in each of its run limits, or waits
at the first that is full.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import msgspec

from qbatch.daemon.core.job import BatchJob, BatchState, Prepared
from qbatch.daemon.core.state import Core, QueueState, RunLimit
from qbatch.daemon.core.steps import STEP, Steps, is_enough
from qbatch.model.events import Withdrawn
from qbatch.model.job import Job
from qbatch.wire.errors import Refusal
from qbatch.wire.identifiers import JobKey

MOST_EXCHANGED = 5000
"""The most waiting jobs with which two of them may still exchange their places."""

MOST_STALE = 64
"""Entries that a run limit may keep of jobs that no longer wait there, beyond as many as jobs
wait."""


def run_limits_of(core: Core, job: BatchJob) -> list[str]:
    """Return the names of the run limits of a job."""
    names = names_of(core.queues[job.queue], job.user)
    if job.is_subjob and core.jobs[job.sequence].slot_limit is not None:
        names.insert(0, f"array {job.sequence}")
    return names


def names_of(queue: QueueState, user: str) -> list[str]:
    """Return the names of the run limits of a queue for a job of a user."""
    names, settings = [], queue.settings
    if settings.max_running is not None or not queue.started:
        names.append(f"queue {settings.name}")
    if settings.max_running_per_user is not None:
        names.append(f"user {settings.name} {user}")
    return names


def request_of(core: Core, job: BatchJob, prepared: Prepared, submit: int, **other: Any) -> Job:
    """Return a job as the engine gets it; ``other``: fields of the request that are not those of
    the job."""
    values = {
        "number": job.sequence,
        "submit": submit,
        "is_rerunnable": prepared.spec.is_rerunnable,
        "user": core.number_of(job.user),
        "group": core.number_of(job.group),
        "queue": core.queues[job.queue].place,
        "deadline": job.deadline,
        "priority": job.priority,
        "is_admitted": job.attempts > 0,
    }
    return msgspec.structs.replace(prepared.request, **(values | other))


def limit_of(core: Core, name: str) -> int:
    """Return how many jobs may have a place in a run limit at once."""
    kind, _, rest = name.partition(" ")
    if kind == "array":
        parent = core.jobs.get(int(rest))
        return 1 << 60 if parent is None or parent.slot_limit is None else parent.slot_limit
    queue = core.queues[rest.partition(" ")[0]]
    if kind == "queue" and not queue.started:
        return 0
    limit = queue.settings.max_running if kind == "queue" else queue.settings.max_running_per_user
    return 1 << 60 if limit is None else limit


def is_past_limit(core: Core, job: BatchJob) -> bool:
    """Return whether a job could not get all of its places again, because a queue was stopped or a
    limit fell."""
    names = run_limits_of(core, job)
    return any(
        core.run_limits[name].used > limit_of(core, name)
        for name in names
        if name in core.run_limits
    )


def is_full(core: Core, name: str) -> bool:
    """Return whether all places of a run limit are taken."""
    return (core.run_limits[name].used if name in core.run_limits else 0) >= limit_of(core, name)


def enter(core: Core, job: BatchJob, submit: int = -1) -> None:
    """Hand an eligible job to the engine of its pool, or let it wait at the first run limit that is
    full.

    ``submit``: the instant of arrival by which the engine ranks it; now if none is given.
    """
    names = run_limits_of(core, job)
    for name in names:
        if is_full(core, name):
            assert job.eligible is not None, "a job that enters is eligible"
            job.run_limit = name
            run_limit = core.run_limits.setdefault(name, RunLimit())
            heapq.heappush(run_limit.waiting, (job.eligible, job.sequence, job.member))
            # All jobs that wait at one run limit are in one queue: more entries than that are
            # stale.
            if (
                len(run_limit.waiting)
                > 2 * core.queues[job.queue].counts.get(BatchState.QUEUED, 0) + MOST_STALE
            ):
                _sweep(core, name)
            return
    for name in names:
        core.run_limits.setdefault(name, RunLimit()).used += 1
    job.run_limit = None
    job.waits_for = "\n".join(names)
    job.is_pending = True
    of_array = {"parent": job.sequence, "task": job.member} if job.is_subjob else {}
    at = core.now if submit < 0 else submit
    core.pool_of(job).pending[job.key] = request_of(core, job, job.prepared, at, **of_array)
    core.is_dirty = True


def withdraw(core: Core, job: BatchJob) -> None:
    """Take a waiting job back from the engine or from the run limit at which it waits; it loses its
    promise."""
    let_through(core, _take_out(core, job))


def _take_out(core: Core, *jobs: BatchJob) -> dict[str, None]:
    """Withdraw waiting jobs; return the run limits in which they gave their places back, each
    once."""
    left: dict[str, None] = {}
    for job in jobs:
        job.promised = job.run_limit = None
        pool = core.pool_of(job)
        if job.is_pending:
            del pool.pending[job.key]
            job.is_pending = False
        elif job.row >= 0:
            pool.events.append(Withdrawn(job.row))
            pool.by_row[job.row] = None
            job.row = -1
            core.is_dirty = True
        left.update(dict.fromkeys(_leave_limits(core, job)))
    return left


def _leave_limits(core: Core, job: BatchJob) -> list[str]:
    names, job.waits_for = job.waits_for.split("\n") if job.waits_for else [], ""
    for name in names:
        core.run_limits[name].used -= 1
    return names


def give_back(core: Core, job: BatchJob) -> None:
    """Give a job's places in its run limits to the jobs that wait there."""
    let_through(core, _leave_limits(core, job))


def let_through(core: Core, names: Iterable[str]) -> None:
    """Let the jobs that wait at run limits go on, in order, while there are free places."""
    for name in names:
        run_limit = core.run_limits.get(name)
        if run_limit is None:
            continue
        while run_limit.waiting and run_limit.used < limit_of(core, name):
            job = _waiting_at(core, name, heapq.heappop(run_limit.waiting))
            if job is not None:
                job.run_limit = None
                enter(core, job)
        if not run_limit.used and not run_limit.waiting:
            del core.run_limits[name]


def _waiting_at(core: Core, name: str, entry: tuple[int, int, int]) -> BatchJob | None:
    """Return the job of an entry of a run limit, or None if it no longer waits there."""
    eligible, sequence, member = entry
    job = core.find(JobKey(sequence, member))
    return job if job is not None and job.run_limit == name and job.eligible == eligible else None


def arrive_again(core: Core, jobs: list[BatchJob]) -> None:
    """Let jobs that wait with the engine leave it and arrive again at this instant; each keeps its
    places in its run limits."""
    left = _take_out(core, *jobs)
    for job in jobs:
        job.queued = job.eligible = core.now
        enter(core, job)
    let_through(core, left)


def exchange(core: Core, first: BatchJob, second: BatchJob) -> None:
    """Exchange the places of two waiting jobs, if not too many jobs wait.

    The engine ranks by arrival: all waiting jobs of the pool leave it and arrive again, in the same
    order except for the two.
    """
    pool = core.pool_of(first)
    waiting = [job for job in pool.by_row if job is not None and job.state is BatchState.QUEUED]
    waiting += [job for job in (core.find(key) for key in pool.pending) if job is not None]
    if len(waiting) > MOST_EXCHANGED:
        raise Refusal(
            "bad-state",
            f"{len(waiting)} jobs wait; places are exchanged where at most {MOST_EXCHANGED} do",
        )
    order = {job.key: place for place, job in enumerate(waiting)}
    order[first.key], order[second.key] = (
        order.get(second.key, len(order)),
        order.get(first.key, len(order)),
    )
    left = _take_out(core, *waiting)
    begin = core.now - len(order)
    for job in sorted(
        {job.key: job for job in [*waiting, first, second]}.values(), key=lambda job: order[job.key]
    ):
        enter(core, job, max(begin + order[job.key], 0))
    let_through(core, left)


def recount(core: Core, queue_names: list[str]) -> Steps[None]:
    """Make the jobs of these queues hold the places that :func:`run_limits_of` names now, in steps.

    Running jobs count even above a limit; waiting jobs leave the engine and arrive again, in the
    order in which they became eligible.
    """
    found = []
    for job in core.jobs.values():
        if job.queue in queue_names:
            found += core.members(job) if job.is_array else [job]
    yield from recount_jobs(core, found)


def recount_jobs(core: Core, jobs: list[BatchJob]) -> Steps[None]:
    """Do so for some jobs, such as those of an array of which the limit has changed."""
    is_long = len(jobs) > STEP
    if is_long:  # the caller's search for them was one step, and sorting them is another
        yield
    waiting = [job for job in jobs if job.state is BatchState.QUEUED]
    waiting.sort(key=attrgetter("eligible", "sequence", "member"))
    if is_long:
        yield
    left: dict[str, None] = {}
    for job in waiting:
        if is_enough(core):
            yield
        if job.state is BatchState.QUEUED:
            if job.run_limit:
                left[job.run_limit] = None
            left |= _take_out(core, job)
    if is_long:
        yield
    _recount_running(core, [job for job in jobs if job.holds_hosts], left)
    begin = core.now - len(waiting)
    for place, job in enumerate(waiting):
        if is_enough(core):
            yield
        is_out = not (job.is_pending or job.row >= 0 or job.run_limit)
        # It may have ended, been held or arrived again in the meantime.
        if is_out and job.state is BatchState.QUEUED:
            enter(core, job, max(begin + place, 0))
    let_through(core, left)


def _recount_running(core: Core, running: list[BatchJob], left: dict[str, None]) -> None:
    """Give running jobs the places that they need now, after waiting jobs have left theirs
    (``left``: in which limits)."""
    for job in running:
        left.update(dict.fromkeys(_leave_limits(core, job)))
    for name in left:
        if name in core.run_limits:
            _sweep(core, name)
    for job in running:
        names = run_limits_of(core, job)
        job.waits_for = "\n".join(names)
        for name in names:
            core.run_limits.setdefault(name, RunLimit()).used += 1


def _sweep(core: Core, name: str) -> None:
    """Remove from a run limit the jobs that no longer wait there, and the run limit itself if no
    job uses it."""
    run_limit = core.run_limits[name]
    run_limit.waiting = sorted(
        {entry for entry in run_limit.waiting if _waiting_at(core, name, entry) is not None}
    )
    if not run_limit.used and not run_limit.waiting:
        del core.run_limits[name]
