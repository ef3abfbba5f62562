"""From records to jobs: one job for each attempt that ran, and one for each that was cancelled before it ran.

The records of one job identifier are processed in order of time.  An attempt is closed by its end record, or by the record
that put the job back into the queue.  The next attempt is a separate job, submitted when the previous one ended,
which it names as its predecessor.  A trial run that was discarded is no job: the next attempt is, and
waits from its submission.  Another time of creation under the same identifier is another job.

A job ran from its start to its end, except for the time of its suspension.  That time comes from the records, or from the
walltime if it is shorter than the time between by more than ``STAGING_S``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from qbatch.workloads.accounting.record import (
    ABSENT,
    CANCELLED,
    COMPLETED,
    ENDED,
    FAILED,
    KILLED,
    QUEUED,
    REQUEUED,
    RESUMED,
    STARTED,
    SUSPENDED,
    UNFINISHED,
    AccountingRecord,
    ImportTally,
)
from qbatch.workloads.left_out import MEMORY, PARTITIONS, PRIORITY, Asks

STAGING_S = 10
"""The walltime may be this many seconds shorter than the time from start to end before the rest counts as a suspension:
prologues, staging and rounding take less.  A walltime of 0 counts as not measured."""


class _Life(msgspec.Struct):
    """The state of one job while its records are processed."""

    created: int = ABSENT
    queued: AccountingRecord | None = None
    opened: AccountingRecord | None = None
    cancelled: AccountingRecord | None = None
    is_over: bool = False
    is_requeued: bool = False
    suspended_at: int = ABSENT
    suspended: int = 0
    last: AccountingRecord | None = None


def assemble(records: Iterable[AccountingRecord], tally: ImportTally) -> list[AccountingRecord]:
    """Return the jobs that the records make, in no particular order; what makes no job is counted in the tally."""
    groups: dict[tuple[str, int], list[AccountingRecord]] = {}
    for record in records:
        groups.setdefault((record.job, record.part), []).append(record)
    jobs: list[AccountingRecord] = []
    for key in list(groups):
        group = groups.pop(key)  # processed records are not needed any more: a million take much memory
        if len(group) > 1:
            group.sort(key=_moment)
        _walk(group, jobs, tally)
    return _with_whole_heterogeneous(jobs, tally)


def _moment(record: AccountingRecord) -> tuple[int, int]:
    """Return the position of a record in its job's life: in one second, queued first and the end last, else in file order."""
    return record.at, {QUEUED: 0, ENDED: 2}.get(record.kind, 1)


def _walk(group: list[AccountingRecord], jobs: list[AccountingRecord], tally: ImportTally) -> None:
    life = _Life()
    for record in group:
        kind = record.kind
        is_other = record.submit >= 0 and life.created >= 0 and record.submit != life.created
        if is_other or (kind == QUEUED and life.is_over):
            _close(life, jobs, tally)
            life = _Life(last=life.last if life.is_requeued else None, is_requeued=life.is_requeued)
        if record.submit >= 0:
            life.created = record.submit
        if kind == UNFINISHED:
            tally.lose("not over when the records were written (running or waiting)", record.file, record.line)
            life.is_over = True
        elif kind == QUEUED:
            life.queued = life.queued or record
        elif kind == STARTED:
            life.opened, life.is_over = record, False
        elif kind == SUSPENDED:
            life.suspended_at = record.at
        elif kind == RESUMED:
            _resume(life, record.at)
        elif kind == CANCELLED:
            if not life.is_over:
                life.cancelled = record
        elif kind in (ENDED, REQUEUED):
            _end(life, record, jobs, tally)
    _close(life, jobs, tally)


def _resume(life: _Life, at: int) -> None:
    if life.suspended_at >= 0:
        life.suspended += max(at - life.suspended_at, 0)
    life.suspended_at = ABSENT


def _end(life: _Life, record: AccountingRecord, jobs: list[AccountingRecord], tally: ImportTally) -> None:
    """Close an attempt with the record of its end or of its way back into the queue."""
    opened, is_requeue = life.opened, record.kind == REQUEUED
    start = record.start if record.start >= 0 else _instant(opened)
    if start < 0:
        if not is_requeue:
            life.cancelled = record
        return
    if record.is_trial:
        tally.skip("trial runs that were discarded", record.file, record.line)
        life.opened, life.suspended, life.suspended_at = None, 0, ABSENT
        return
    end = record.end if record.end >= 0 else record.at
    _resume(life, end)
    last = life.last
    if last is not None and (last.start, last.end) == (start, end):
        tally.skip("the same record again", record.file, record.line)
        return
    submit = _submitted(life)
    if last is not None and life.is_requeued:
        submit = max(submit, last.end)
    job = _job(life, record, submit, start, end)
    life.opened, life.suspended, life.is_requeued, life.is_over = None, 0, is_requeue, not is_requeue
    if not is_requeue:
        life.cancelled = None
    if _is_sound(job, tally):
        if 0 < record.walltime < job.run - STAGING_S:
            tally.adjust("suspended, by the walltime, which is taken as the run time", job.file, job.line)
            job.suspended += job.run - int(record.walltime)
            job.run = int(record.walltime)
        life.last = job
        jobs.append(job)


def _instant(opened: AccountingRecord | None) -> int:
    if opened is None:
        return ABSENT
    return opened.start if opened.start >= 0 else opened.at


def _submitted(life: _Life) -> int:
    if life.created >= 0 or life.queued is None:
        return life.created
    return life.queued.at


def _job(life: _Life, record: AccountingRecord, submit: int, start: int, end: int) -> AccountingRecord:
    """Return the closing record of a job, with what only the records before it say."""
    others = [each for each in (life.opened, life.queued) if each is not None]
    if others:
        for name in ("eligible", "limit", "cores", "cores_asked", "nodes", "nodes_asked", "memory_asked", "priority"):
            if getattr(record, name) < 0:
                setattr(record, name, max(getattr(each, name) for each in others))
    for name in ("user", "group", "account", "name", "queue", "asks", "hosts"):
        if not getattr(record, name):
            setattr(record, name, next((value for each in others if (value := getattr(each, name))), getattr(record, name)))
    ran = start >= 0
    record.suspended = record.suspended + life.suspended if ran else 0
    record.submit, record.start, record.end = submit, start, end
    record.run = end - start - record.suspended if ran else ABSENT
    if record.kind == REQUEUED:
        record.status = FAILED
    elif record.kind == CANCELLED or not ran or (life.cancelled is not None and record.status != COMPLETED):
        record.status = KILLED
    if record.status == KILLED and 0 < record.limit <= record.run:
        record.status = FAILED
    record.group = record.group or record.account
    record.after = life.last if life.is_requeued else None
    record.hosts = record.hosts if ran else ()
    record.asks = _asks(record.asks, record.memory_asked > 0, record.queue, record.priority)
    return record


@lru_cache(maxsize=4096)
def _asks(asked: Asks, has_memory: bool, queue: str, priority: int) -> Asks:
    """Return all requests of a job that no log contains; jobs with equal requests share the value."""
    asks = {*asked, *([(MEMORY, "")] if has_memory else []), *([(PARTITIONS, queue)] if queue else [])}
    return tuple(sorted(asks | ({(PRIORITY, str(priority))} if priority >= 0 else set())))


def _is_sound(job: AccountingRecord, tally: ImportTally) -> bool:
    """Count a job that cannot be used as lost; mend what can be mended."""
    if job.end < job.start:
        tally.lose("ends before it starts", job.file, job.line)
        return False
    if job.submit < 0:
        tally.lose("without a time of submission", job.file, job.line)
        return False
    if job.cores <= 0 and job.cores_asked <= 0:
        tally.lose("without processors, neither allocated nor requested", job.file, job.line)
        return False
    if job.run < 0:
        tally.adjust("suspended for longer than it existed: its run time is taken as 0 s", job.file, job.line)
        job.run = 0
    if job.start < job.submit:
        tally.adjust("starts before it is submitted: the start is taken for both", job.file, job.line)
        job.submit = job.start
    return True


def _close(life: _Life, jobs: list[AccountingRecord], tally: ImportTally) -> None:
    """Settle what is left of a job when its records are at an end."""
    if life.is_over:
        return
    last = life.cancelled or life.opened or life.queued
    if last is None:
        return
    if life.cancelled is None or life.opened is not None:
        what = (
            "started, but its end is not in the records"
            if life.opened
            else "queued, but its outcome is not in the records"
        )
        tally.lose(what, last.file, last.line)
        return
    submit = _submitted(life)
    if submit < 0 or last.at < submit:
        tally.lose("deleted, but its submission is not in the records", last.file, last.line)
        return
    jobs.append(_job(life, last, submit, ABSENT, last.at))


def _with_whole_heterogeneous(jobs: list[AccountingRecord], tally: ImportTally) -> list[AccountingRecord]:
    """Put the components of each heterogeneous job together: they start at once and are one job."""
    whole: dict[tuple[str, int, bool], AccountingRecord] = {}
    others: list[AccountingRecord] = []
    for job in sorted((job for job in jobs if job.part >= 0), key=lambda job: job.part):
        key = (job.job, job.submit, job.start >= 0)
        first = whole.get(key)
        if first is None:
            whole[key] = job
            continue
        tally.adjust("components of heterogeneous jobs: joined", job.file, job.line)
        for name in ("cores", "cores_asked", "nodes", "nodes_asked", "cpu", "memory_used", "memory_asked"):
            mine, other = getattr(first, name), getattr(job, name)
            setattr(first, name, mine + other if mine >= 0 and other >= 0 else max(mine, other))
        first.start, first.end = min(first.start, job.start), max(first.end, job.end)
        first.run = max(first.run, job.run)
        first.hosts += job.hosts
        first.asks = tuple(sorted({*first.asks, *job.asks}))
    if not whole:
        return jobs
    others = [job for job in jobs if job.part < 0]
    return others + list(whole.values())
