"""From records to jobs: one job for each attempt that ran, and one for each that was cancelled
before it ran.

The records of one job identifier of one cluster are processed in order of time.  An attempt is closed by its end
record, or by the record that put the job back into the queue.  The next attempt is a separate job,
submitted when the previous one ended, which it names as its predecessor.  A trial run that was
discarded is no job: the next attempt is, and waits from its submission.  Another time of creation
under the same identifier is another job.  Attempts of one job do not overlap: a closing record that
would make them so closes the same attempt again, and the last one holds.

A job ran from its start to its end, except for the time of its suspension.  That time comes from
the records, or from the walltime if it is shorter than the time between by more than ``STAGING_S``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from qbatch.workloads import left_out
from qbatch.workloads.accounting.record import ABSENT, AccountingRecord, ImportCounts, Kind, Status
from qbatch.workloads.left_out import Asks

STAGING_S = 10
"""The walltime may be this many seconds shorter than the time from start to end before the rest
counts as a suspension: prologues, staging and rounding take less.  A walltime of 0 counts as not
measured."""


class _JobState(msgspec.Struct):
    """The state of one job while its records are processed.

    ``last``: the attempt that was closed last; ``before``: the one that the next attempt follows.
    """

    created: int = ABSENT
    queued: AccountingRecord | None = None
    opened: AccountingRecord | None = None
    cancelled: AccountingRecord | None = None
    unfinished: AccountingRecord | None = None
    is_over: bool = False
    suspended_at: int = ABSENT
    suspended: int = 0
    last: AccountingRecord | None = None
    last_suspended: int = 0
    before: AccountingRecord | None = None


def assemble(records: Iterable[AccountingRecord], counts: ImportCounts) -> list[AccountingRecord]:
    """Return the jobs that the records make, in no particular order; ``counts`` gets what makes no
    job."""
    groups: dict[tuple[str, str, int], list[AccountingRecord]] = {}
    for record in records:
        groups.setdefault((record.cluster, record.job, record.part), []).append(record)
    jobs: list[AccountingRecord] = []
    for key in list(groups):
        # Processed records are not needed any more: a million take much memory.
        group = groups.pop(key)
        # In one second, queued comes first and the end last, else records are in file order.
        group.sort(
            key=lambda record: (record.at, {Kind.QUEUED: 0, Kind.ENDED: 2}.get(record.kind, 1))
        )
        _jobs_of(group, jobs, counts)
    return _with_whole_heterogeneous(jobs, counts)


def _jobs_of(
    group: list[AccountingRecord], jobs: list[AccountingRecord], counts: ImportCounts
) -> None:
    state = _JobState()
    for record in group:
        kind = record.kind
        is_other = record.submit >= 0 and state.created >= 0 and record.submit != state.created
        if is_other or (kind == Kind.QUEUED and state.is_over):
            _close(state, jobs, counts)
            state = _JobState(before=state.before)
        if record.submit >= 0:
            state.created = record.submit
        if kind == Kind.UNFINISHED:
            state.unfinished = record
        elif kind == Kind.QUEUED:
            state.queued = state.queued or record
        elif kind == Kind.STARTED:
            state.opened, state.is_over = record, False
        elif kind == Kind.SUSPENDED:
            state.suspended_at = record.at
        elif kind == Kind.RESUMED:
            _resume(state, record.at)
        elif kind == Kind.CANCELLED:
            if not state.is_over:
                state.cancelled, state.unfinished = record, None
        elif kind in (Kind.ENDED, Kind.REQUEUED):
            _end(state, record, jobs, counts)
    _close(state, jobs, counts)


def _resume(state: _JobState, at: int) -> None:
    if state.suspended_at >= 0:
        state.suspended += max(at - state.suspended_at, 0)
    state.suspended_at = ABSENT


def _end(
    state: _JobState, record: AccountingRecord, jobs: list[AccountingRecord], counts: ImportCounts
) -> None:
    """Close an attempt with the record of its end or of its way back into the queue."""
    opened, is_requeue = state.opened, record.kind == Kind.REQUEUED
    start = record.start
    if start < 0 and opened is not None:
        start = opened.start if opened.start >= 0 else opened.at
    if start < 0:
        if not is_requeue:
            state.cancelled = record
        return
    if record.is_trial:
        counts.ignored.add("trial runs that were discarded", record.place)
        state.opened, state.suspended, state.suspended_at = None, 0, ABSENT
        return
    end = record.end if record.end >= 0 else record.at
    _resume(state, end)
    last = state.last
    if last is not None and (last.start, last.end) == (start, end):
        counts.ignored.add("the same record again", record.place)
        return
    is_again = last is not None and _closes_again(last, start, end, is_opened=opened is not None)
    if last is not None and is_again:
        state.suspended += state.last_suspended
        state.before, state.opened = last.after, opened or last
    submit = _submitted(state)
    if state.before is not None:
        submit = max(submit, state.before.end)
    job, suspended = _job(state, record, submit, start, end), state.suspended
    state.opened, state.suspended, state.is_over = None, 0, not is_requeue
    if not is_requeue:
        state.cancelled, state.unfinished = None, None
    if _is_sound(job, counts):
        if 0 < record.walltime < job.run - STAGING_S:
            counts.adjusted.add(
                "suspended, by the walltime, which is taken as the run time", job.place
            )
            job.suspended += job.run - int(record.walltime)
            job.run = int(record.walltime)
        if is_again:
            counts.adjusted.add("an attempt closed again: its last record holds", job.place)
            jobs.pop()
        state.last, state.last_suspended = job, suspended
        jobs.append(job)
    state.before = state.last if is_requeue else None


def _closes_again(last: AccountingRecord, start: int, end: int, *, is_opened: bool) -> bool:
    """Return whether a record from ``start`` to ``end`` closes the attempt that was closed last.

    ``is_opened``: an attempt was opened in between, which may start where one of no length did.
    """
    if start == last.start:
        return last.end > last.start or not is_opened
    return not is_opened and start < last.end and last.start < end


def _submitted(state: _JobState) -> int:
    if state.created >= 0 or state.queued is None:
        return state.created
    return state.queued.at


def _job(
    state: _JobState, record: AccountingRecord, submit: int, start: int, end: int
) -> AccountingRecord:
    """Return the closing record of a job, with what only the records before it say."""
    others = [each for each in (state.opened, state.queued) if each is not None]
    if others:
        for name in (
            "eligible",
            "limit",
            "cores",
            "cores_asked",
            "nodes",
            "nodes_asked",
            "memory_asked",
            "priority",
        ):
            if getattr(record, name) < 0:
                setattr(record, name, max(getattr(each, name) for each in others))
    for name in ("user", "group", "account", "name", "queue", "asks", "hosts", "request"):
        if not getattr(record, name):
            setattr(
                record,
                name,
                next(
                    (value for each in others if (value := getattr(each, name))),
                    getattr(record, name),
                ),
            )
    ran = start >= 0
    record.suspended = record.suspended + state.suspended if ran else 0
    record.submit, record.start, record.end = submit, start, end
    record.run = end - start - record.suspended if ran else ABSENT
    if record.kind == Kind.REQUEUED:
        record.status = Status.FAILED
    elif (
        record.kind == Kind.CANCELLED
        or not ran
        or (state.cancelled is not None and record.status != Status.COMPLETED)
    ):
        record.status = Status.KILLED
    if record.status == Status.KILLED and 0 < record.limit <= record.run:
        record.status = Status.FAILED
    record.group = record.group or record.account
    record.after = state.before
    record.hosts = record.hosts if ran else ()
    record.asks = _asks(
        record.asks, record.memory_asked > 0, record.queue, record.priority, record.cluster
    )
    return record


@lru_cache(maxsize=4096)
def _asks(asked: Asks, has_memory: bool, queue: str, priority: int, cluster: str) -> Asks:
    """Return all requests of a job that no log contains; jobs with equal requests share the
    value."""
    asks = {
        *asked,
        *([(left_out.MEMORY, "")] if has_memory else []),
        *([(left_out.PARTITIONS, queue)] if queue else []),
        *([(left_out.PRIORITY, str(priority))] if priority >= 0 else []),
        *([(left_out.CLUSTERS, cluster)] if cluster else []),
    }
    return tuple(sorted(asks))


def _is_sound(job: AccountingRecord, counts: ImportCounts) -> bool:
    """Return whether a job can be used; correct what can be corrected, and count both."""
    for is_wrong, reason in (
        (job.end < job.start, "ends before it starts"),
        (job.submit < 0, "without a time of submission"),
        (
            job.cores <= 0 and job.cores_asked <= 0,
            "without processors, neither allocated nor requested",
        ),
    ):
        if is_wrong:
            counts.unusable.add(reason, job.place)
            return False
    if job.run < 0:
        counts.adjusted.add(
            "suspended for longer than it existed: its run time is taken as 0 s", job.place
        )
        job.run = 0
    if job.start < job.submit:
        counts.adjusted.add("starts before it is submitted: the start is taken for both", job.place)
        job.submit = job.start
    return True


def _close(state: _JobState, jobs: list[AccountingRecord], counts: ImportCounts) -> None:
    """Settle what is left of a job when its records are at an end."""
    if state.unfinished is not None:
        counts.unusable.add(
            "not over when the records were written (running or waiting)", state.unfinished.place
        )
        return
    if state.is_over:
        return
    last = state.cancelled or state.opened or state.queued
    if last is None:
        return
    if state.cancelled is None or state.opened is not None:
        what = "started, but its end" if state.opened else "queued, but its outcome"
        counts.unusable.add(f"{what} is not in the records", last.place)
        return
    submit = _submitted(state)
    if submit < 0 or last.at < submit:
        counts.unusable.add("deleted, but its submission is not in the records", last.place)
        return
    jobs.append(_job(state, last, submit, ABSENT, last.at))


def _with_whole_heterogeneous(
    jobs: list[AccountingRecord], counts: ImportCounts
) -> list[AccountingRecord]:
    """Put the components of each heterogeneous job together: they start at once and are one job."""
    whole: dict[tuple[str, str, int, bool], AccountingRecord] = {}
    for job in sorted((job for job in jobs if job.part >= 0), key=lambda job: job.part):
        key = (job.cluster, job.job, job.submit, job.start >= 0)
        first = whole.get(key)
        if first is None:
            whole[key] = job
            continue
        counts.adjusted.add("components of heterogeneous jobs: joined", job.place)
        for name in (
            "cores",
            "cores_asked",
            "nodes",
            "nodes_asked",
            "cpu",
            "memory_used",
            "memory_asked",
        ):
            mine, other = getattr(first, name), getattr(job, name)
            setattr(first, name, mine + other if mine >= 0 and other >= 0 else max(mine, other))
        first.start, first.end = min(first.start, job.start), max(first.end, job.end)
        first.run = max(first.run, job.run)
        first.hosts += job.hosts
        first.request = ()  # a line of resources has nodes of one kind
        first.asks = tuple(sorted({*first.asks, *job.asks}))
    return [job for job in jobs if job.part < 0] + list(whole.values())
