"""Changes of a job: it is held and released, passes its run limits, starts and ends, with the
effects on its dependents."""

from __future__ import annotations

from qbatch.daemon.core import (
    accounting,
    dependencies,
    faults,
    reservations,
    run_limits,
    slots,
    steps,
)
from qbatch.daemon.core.dependencies import Doomed
from qbatch.daemon.core.execution import executor_of
from qbatch.daemon.core.job import (
    BY_USER,
    AttemptState,
    BatchJob,
    BatchState,
    EarlierAttempts,
    FinalState,
    Prepared,
)
from qbatch.daemon.core.records import TERMINATED, exec_texts, full_record
from qbatch.daemon.core.state import MOST_ENDINGS, MOST_RECENT, Account, Core, Ending, Forget, Mail
from qbatch.daemon.executors.attempt import LOST, NOT_STARTED, Ended, Report, Started
from qbatch.engine.states import State
from qbatch.model.actions import Allocation, is_on_one_host
from qbatch.model.events import NO_RUN_TIME, Finished, Returned, Withdrawn
from qbatch.model.progress import Progress
from qbatch.planning.run_times import LAST
from qbatch.wire.identifiers import PLAIN, JobKey
from qbatch.wire.pieces import Piece, pieces_of

DELETED = 271
"""Exit status of a job that was deleted while it ran: 256 + SIGTERM."""

OVER_WALLTIME = -29
"""Exit status of a job that was killed at its walltime."""

QUANTUM_OVER = "its quantum is over; queued again"
"""The text for a job after a trial that is over before the job's end."""

MOST_LOST = 100
"""Execution intervals of lost attempts that a job's record keeps: the latest.  Its accounting has
every attempt."""

PAUSE = 1_000_000
"""Microseconds that a job waits after it was lost at the instant of its start; else it would be
lost again and again."""


def settle(core: Core, job: BatchJob) -> None:
    """Give a job that is not with the engine the state that its holds, its start time and its
    dependencies require."""
    if _is_held(core, job):
        core.set_state(job, "held")
    elif job.not_before is not None and job.not_before > core.now:
        core.set_state(job, "postponed")
        core.at(job.not_before, "release", job.key)
    else:
        core.set_state(job, "queued")
        job.eligible = core.now
        run_limits.enter(core, job)


def _is_held(core: Core, job: BatchJob) -> bool:
    return bool(job.hold or job.unmet or (job.is_subjob and core.jobs[job.sequence].unmet))


def depend(
    core: Core, job: BatchJob, found: list[dependencies.Dependency], *, is_new: bool = True
) -> bool:
    """Enter the dependencies of a job, and hold the jobs that now wait for it; return whether it
    can still run.

    If the job is not new, they replace those that it has; it may be an array that has begun, for
    which others of its set wait.
    """
    if not is_new:
        if job.has_begun:
            _release_rivals(core, job.key)
        dependencies.forget(core, job)
        job.unmet = 0
    can_run, held = dependencies.register(core, job, found)
    for other in held:
        _hold(core, other, "another job came before it")
    return can_run


def _hold(core: Core, job: BatchJob, why: str) -> None:
    """Hold a job (of an array, all waiting jobs) for one more dependency; a start that this pass
    has decided is taken back."""
    for each in core.members(job):
        if each.holds_hosts:
            continue
        if each.row >= 0 and core.pool_of(each).engine.state_of(each.row) is State.RUNNING:
            _leave_engine(core, each)
            run_limits.give_back(core, each)
        else:
            run_limits.withdraw(core, each)
        settle(core, each)
    core.happened("held", job.key, why)


def _apply_start(core: Core, key: JobKey) -> None:
    """Apply the start of a job to its dependents: each ``after`` is met, and the other jobs of its
    ``runone`` set are held."""
    for child in dependencies.started(core, key):
        _met(core, child)
    for rival in dependencies.rivals(core, key):
        other = core.find(rival)
        if other is not None and not other.is_over and not other.has_begun:
            other.unmet += 1
            _hold(core, other, "another job of its set has begun")


def _release_rivals(core: Core, key: JobKey) -> None:
    """Let the other jobs of a ``runone`` set start, since this one waits again."""
    for rival in dependencies.rivals(core, key):
        _met(core, rival)


def _apply_end(core: Core, key: JobKey, status: int, doomed: list[Doomed] | None) -> None:
    """Apply the end of a job to its dependents: a dependency is met, or the dependent can never run
    and is deleted.

    ``doomed``: a list for the jobs that can never run, if the caller deletes them; a chain of
    thousands must not recurse.  Such a job ends because of its own dependency.
    """
    met, never = dependencies.ended(core, key, status, is_aborted=doomed is not None)
    for child in met:
        _met(core, child)
    if doomed is not None:
        doomed += never
        return
    for child, why in never:  # the list grows during the loop
        job = core.find(child)
        if job is not None and not job.is_over:
            steps.whole(
                delete(
                    core,
                    job,
                    is_forced=False,
                    grace=core.settings.kill_delay,
                    message=why,
                    doomed=never,
                )
            )


def _met(core: Core, key: JobKey) -> None:
    """Count one dependency of a job as met; release the job if that was the last."""
    job = core.find(key)
    if job is None or job.is_over or job.unmet == 0:
        return
    job.unmet -= 1
    held = [each for each in core.members(job) if each.state is BatchState.HELD]
    for each in held:
        settle(core, each)
    if any(each.state is not BatchState.HELD for each in held):
        core.happened("released", job.key, "its dependencies are met")


def begin(core: Core, job: BatchJob, allocation: Allocation, *, is_trial: bool) -> None:
    """Start a job on the hosts that the engine gave it, for a trial or until it ends."""
    core.set_state(job, "started")
    key, pool, request = job.key, core.pool_of(job), job.prepared.request
    job.attempts += 1
    has = (
        allocation[0].procs
        if is_on_one_host(allocation) and not request.is_exclusive
        else request.procs
    )
    sizes = () if has == request.procs else ((core.now, has),)
    job.attempt = AttemptState(core.now, allocation, Progress(has), sizes=sizes)
    job.modified = core.now
    job.comment = ""
    pool.running[key] = job
    if core.keeps_records:
        slots.enter(pool, job)
    if job.is_subjob:
        parent = core.jobs[job.sequence]
        if not parent.has_begun:
            core.set_state(parent, "begun")
            core.arrays[job.sequence].started = parent.modified = core.now
            core.happened("started", parent.key)
            _mail(core, parent, "b", "began")
            _apply_start(core, parent.key)
    if executor_of(core).launch(core, job, has, is_trial=is_trial):
        pool.events.append(Returned(job.row))
    core.happened("started", key)
    if core.keeps_records:
        core.account("S", job, accounting.started(core, job))
    _mail(core, job, "b", "began")
    if core.children:
        _apply_start(core, key)


def resize(core: Core, job: BatchJob, allocation: Allocation) -> None:
    """Give a job another number of processors on its host, as the policy has decided."""
    attempt = job.present
    if core.keeps_records:
        slots.mark(core.pool_of(job), job, in_use=False)
    attempt.allocation = allocation
    if core.keeps_records:
        slots.enter(core.pool_of(job), job)
    attempt.sizes = (*attempt.sizes, (core.now, allocation[0].procs))
    executor_of(core).resize(core, job, job.size)
    core.happened("resized", job.key, f"{job.size} processors")


def _mail(core: Core, job: BatchJob, point: str, what: str) -> None:
    if not core.settings.mail_command:
        return
    spec = job.spec
    if point in spec.mail_points and (not job.is_subjob or "j" in spec.mail_points):
        text = f"PBS Job Id: {core.id_of(job.key)} Job Name: {job.name}: {what}"
        core.outbox.append(Mail(job.key, point, spec.mail_users or job.user, text))


def _leave_hosts(core: Core, job: BatchJob, ran: int) -> None:
    """Take a job off its hosts: report its end to the engine, and give its places in run limits
    back.

    ``ran``: its run time, or ``NO_RUN_TIME`` (:class:`qbatch.model.events.Finished`).  A job that
    the policy has suspended is withdrawn; the end of a trial is known to the engine already.
    """
    pool, row = core.pool_of(job), job.row
    del pool.running[job.key]
    slots.mark(pool, job, in_use=False)
    if row >= 0:
        if pool.events:
            pool.events = [event for event in pool.events if event != Returned(row)]
        is_suspended = pool.engine.state_of(row) is State.SUSPENDED
        pool.events.append(Withdrawn(row) if is_suspended else Finished(row, ran))
        pool.by_row[row] = None
    job.row = -1
    core.is_dirty = True
    run_limits.give_back(core, job)


def ended(
    core: Core, job: BatchJob, status: int, why: str = "", used: dict[str, float] | None = None
) -> None:
    """End the attempt of a running job, by itself or by force; queue the job again if it was
    stopped for that."""
    attempt = job.present
    close_pause(core, attempt)
    attempt.progress.stand_still(core.now)
    attempt.used = (
        used if used is not None else {"cput": 0.0, "walltime": job.walltime_used(core.now) / 1e6}
    )
    if why:
        job.comment = why
    is_again = job.ending in ("rerun", "host") or (status == LOST and not job.ending)
    is_again = is_again and (job.spec.is_rerunnable or job.ending == "rerun")
    ran = NO_RUN_TIME if is_again or status == NOT_STARTED else job.walltime_used(core.now)
    _leave_hosts(core, job, ran)
    if is_again:
        earlier = job.earlier or EarlierAttempts()
        where = exec_texts(core, job)[0]
        intervals = pieces_of(full_record(core, job), core.now) or [
            Piece(attempt.started, attempt.started, job.size)
        ]
        lost = (*earlier.lost, *((job.attempts, *each, where) for each in intervals))
        job.earlier = EarlierAttempts(earlier.trials, lost[-MOST_LOST:], attempt.used)
        job.ending = None
        job.comment = job.comment or "queued again"
        # This record names no hosts and no session.
        attempt.allocation, attempt.slots, attempt.session = (), (), None
        core.account("R", job, accounting.ended(core, job, status))
        core.happened("requeued", job.key, job.comment)
        if status == LOST and attempt.started == core.now:
            job.not_before = core.now + PAUSE
        job.attempt = job.promised = None
        core.set_state(job, "requeued")
        settle(core, job)
        _release_rivals(core, job.key)
        return
    if job.ending == "deleted" and status >= 0:
        job.comment = job.comment or TERMINATED
    elif job.ending == "host":
        status = LOST
    finish(core, job, status)


def finish(core: Core, job: BatchJob, status: int, doomed: list[Doomed] | None = None) -> None:
    """End a job for good: history, dependencies, its array (``doomed``: see :func:`_apply_end`)."""
    has_begun, is_subjob, now, user = job.has_begun, job.is_subjob, core.now, job.user
    core.set_state(job, "expired" if is_subjob else "finished")
    job.final = FinalState(now, status, job.refused)
    job.modified = now
    if not job.is_array:
        users = core.queues[job.queue].users
        users[user] = users.get(user, 0) - 1
        if not users[user]:
            del users[user]
        core.user_jobs[user] -= 1
        core.ended_count += 1
        if job.attempt is not None and status != NOT_STARTED:
            ended = core.run_times.setdefault(user, [])
            ended.append(job.walltime_used(now))
            del ended[:-LAST]
    key = job.key
    if core.keeps_records:
        core.recent[key] = record = full_record(core, job)
        if len(core.recent) > MOST_RECENT:
            core.recent.popitem(last=False)
        core.outbox.append(Ending(key, record))
        if job.attempt is not None:
            core.outbox.append(Account(now, "E", record.id, record=record))
    core.endings[key] = status
    if len(core.endings) > MOST_ENDINGS:
        core.endings.popitem(last=False)
    how = f"refused: {job.comment}" if job.ending == "refused" else ""
    core.happened("ended", key, how)
    _mail(
        core,
        job,
        "e" if has_begun and not job.ending else "a",
        how or f"ended, Exit_status={status}",
    )
    if not is_subjob:
        core.source.finished(now, job.sequence)
        del core.jobs[job.sequence]
        core.arrays.pop(job.sequence, None)
    if core.children:
        if not has_begun:
            dependencies.leave(core, key)
        _apply_end(core, key, status, doomed)
    if is_subjob:
        array = core.arrays.get(job.sequence)
        if array is not None:
            array.live -= 1
            array.failed += status != 0
            if array.live == 0:
                finish(core, core.jobs[job.sequence], 1 if array.failed else 0, doomed)
    elif core.queues[job.queue].reservation:
        reservations.left(core, job.queue)


def delete(
    core: Core,
    job: BatchJob,
    *,
    is_forced: bool,
    grace: int,
    message: str = "",
    by: str = "",
    doomed: list[Doomed] | None = None,
) -> steps.Steps[None]:
    """End a job, or in steps every job of an array: a waiting one at once, a running one by
    signals, or at once if forced.

    ``by``: the user who deletes it; its owner if none is given.
    """
    members = yield from steps.members_of(core, job)
    if job.is_array:
        job.ending = "deleted"
    for one in members:
        if job.is_array and steps.is_enough(core):
            yield
        if one.is_over:
            continue
        one.modified = core.now
        one.comment = message or one.comment
        if one.holds_hosts:
            how = f"{TERMINATED} by {by or one.user}@{one.spec.host or 'localhost'}"
            one.comment = f"{how}; {message}" if message else how
        else:
            run_limits.withdraw(core, one)
        one.ending = "deleted"
        core.account("D", one, f"requestor={by or one.user}@{one.spec.host}")
        if not one.holds_hosts:
            finish(core, one, DELETED, doomed)
        elif executor_of(core).stop(core, one, 0 if is_forced else grace) or is_forced:
            ended(core, one, DELETED)
        elif one.state is not BatchState.EXITING:
            core.set_state(one, "stopped")


def returned(core: Core, job: BatchJob) -> None:
    """Stop a job after a trial in which it did not end; it waits again with the engine, in its old
    place.

    This is neither a failure nor a rerun on request.  A job that is being ended for another reason
    (it is deleted, its host goes down) leaves the engine, and its end is awaited as before.  A job
    that may not start now (it was held, or its queue was stopped, while it ran) leaves the engine
    too, and waits until it may.
    """
    pool = core.pool_of(job)
    if job.ending:
        _leave_engine(core, job)
        return
    attempt = job.present
    close_pause(core, attempt)
    attempt.used = {"cput": 0.0, "walltime": job.walltime_used(core.now) / 1e6}
    executor_of(core).stop(core, job, 0)
    earlier = job.earlier or EarlierAttempts()
    trial = (attempt.started, core.now, job.size, exec_texts(core, job)[0])
    job.earlier = EarlierAttempts((*earlier.trials, trial), earlier.lost, attempt.used)
    job.comment = ""
    # The last key distinguishes this record from that of a rerun.
    core.account("R", job, f"{accounting.ended(core, job, 0)} requeue_reason=quantum_over")
    core.happened("requeued", job.key, QUANTUM_OVER)
    del pool.running[job.key]
    slots.mark(pool, job, in_use=False)
    job.attempt = None
    job.modified = core.now
    core.set_state(job, "requeued")
    if _is_held(core, job) or run_limits.is_past_limit(core, job):
        _leave_engine(core, job)
        run_limits.give_back(core, job)
        settle(core, job)
    _release_rivals(core, job.key)


def _leave_engine(core: Core, job: BatchJob) -> None:
    """Take a job back after its trial; the pass that ended the trial may have started the job
    again, or refused it."""
    pool = core.pool_of(job)
    state = pool.engine.state_of(job.row)
    if state is State.RUNNING:
        pool.events.append(Finished(job.row, NO_RUN_TIME))
    elif state is State.QUEUED:
        pool.events.append(Withdrawn(job.row))
    pool.by_row[job.row] = None
    job.row, job.promised = -1, None
    core.is_dirty = True


def suspend(core: Core, job: BatchJob, by: int = BY_USER) -> None:
    """Stop the clock and the processes of a running job, and note whether a user or the policy
    wants it.

    The processes of a job that is being ended go on: they have got their signal, and have time to
    end.
    """
    attempt = job.present
    attempt.stopped_by |= by
    if job.state is BatchState.SUSPENDED or job.ending:
        return
    executor_of(core).pause(core, job)
    attempt.pauses += ((core.now, None),)
    core.set_state(job, "suspended")
    core.happened("suspended", job.key)


def close_pause(core: Core, attempt: AttemptState) -> None:
    """End the open pause of an attempt, if it has one."""
    if attempt.pauses and attempt.pauses[-1][1] is None:
        attempt.pauses = (*attempt.pauses[:-1], (attempt.pauses[-1][0], core.now))


def resume(core: Core, job: BatchJob, by: int = BY_USER) -> None:
    """Let a suspended job go on, unless a user or the policy still wants it suspended."""
    attempt = job.present
    attempt.stopped_by &= ~by
    if attempt.stopped_by or job.state is not BatchState.SUSPENDED:
        return
    close_pause(core, attempt)
    core.set_state(job, "resumed")
    executor_of(core).resume(core, job)
    core.happened("resumed", job.key)


def stop_running(core: Core, job: BatchJob, why: str, comment: str) -> None:
    """Stop a running job for a reason of the server (``rerun`` or ``host``); :func:`ended` decides
    what follows.

    A job that is being deleted is stopped as well, but it stays deleted.
    """
    if job.ending == "deleted":
        executor_of(core).stop(core, job, 0)
        return
    job.ending = why
    job.comment = comment
    if executor_of(core).stop(core, job, 0):
        ended(core, job, LOST if why == "host" else DELETED)


def change(core: Core, job: BatchJob, prepared: Prepared, queue: str) -> None:
    """Give a waiting job (or an array as a whole) another request or queue; it ranks anew."""
    if job.is_array:
        job.queue = queue
    if job.is_array or job.holds_hosts:
        job.prepared = prepared
        return
    run_limits.withdraw(core, job)
    if queue != job.queue:
        for name, sign in ((job.queue, -1), (queue, 1)):
            of_queue = core.queues[name]
            of_queue.counts[job.state] = of_queue.counts.get(job.state, 0) + sign
            of_queue.users[job.user] = of_queue.users.get(job.user, 0) + sign
            if not of_queue.users[job.user]:
                del of_queue.users[job.user]
    job.prepared = prepared
    job.queue = queue
    job.queued = job.modified = core.now
    settle(core, job)


def job_of_attempt(core: Core, file_key: str) -> BatchJob | None:
    """Return the job with this key of its present attempt, or None."""
    name, _, attempt = file_key.partition(".")
    sequence, dash, member = name.partition("-")
    if not (sequence.isdigit() and attempt.isdigit() and (member.isdigit() or not dash)):
        return None
    job = core.find(JobKey(int(sequence), int(member) if dash else PLAIN))
    return job if job is not None and job.attempts == int(attempt) else None


def reported(core: Core, report: Report) -> None:
    """Apply a report; one of an attempt that is over already changes nothing."""
    job = job_of_attempt(core, report.key)
    if job is None or not job.holds_hosts:
        if isinstance(report, Ended):
            core.outbox.append(Forget(report.key))
        return
    if isinstance(report, Started):
        job.present.session = report.session or None
        return
    core.outbox.append(Forget(report.key))
    status, why = report.status, report.why
    if status >= 0 and not job.ending:
        status = faults.status_of(core.faults, job.name, status)
        why = "a fault on demand" if status == LOST else why
    if status == LOST and not job.ending:
        job.comment = f"LOST: {why or 'the supervisor of the job was lost'}"
        core.happened("lost", job.key, job.comment)
        ended(
            core,
            job,
            LOST,
            _with_files(core, job, job.comment, report.undelivered),
            dict(report.used),
        )
        return
    if job.state is BatchState.SUSPENDED:
        core.set_state(job, "resumed")
    ended(core, job, status, _with_files(core, job, why, report.undelivered), dict(report.used))


def _with_files(core: Core, job: BatchJob, why: str, undelivered: str) -> str:
    """Return the comment on an end, with the files that could not be delivered; mail names them
    whatever ``-m`` asks for."""
    if not undelivered:
        return why
    job.present.is_undelivered = True
    if core.settings.mail_command:
        where = job.spec.host or "localhost"
        text = (
            f"Post job file processing error; job {core.id_of(job.key)} on host {where}: "
            f"{undelivered}"
        )
        core.outbox.append(Mail(job.key, "o", job.spec.mail_users or job.user, text))
    return f"{why}; not delivered: {undelivered}" if why else f"not delivered: {undelivered}"
