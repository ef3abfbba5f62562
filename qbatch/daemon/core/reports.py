"""What an executor reports: a script runs, an attempt ended or was lost."""

from __future__ import annotations

from qbatch.daemon.core import faults, flow
from qbatch.daemon.core.job import BatchJob
from qbatch.daemon.core.state import Core, Forget, Mail
from qbatch.daemon.core.states import BatchState
from qbatch.daemon.executors.attempt import LOST, Ended, Report, Started
from qbatch.wire.identifiers import PLAIN, JobKey


def job_of(core: Core, file_key: str) -> BatchJob | None:
    """Return the job whose present attempt has this key, or None."""
    name, _, attempt = file_key.partition(".")
    sequence, dash, member = name.partition("-")
    if not (sequence.isdigit() and attempt.isdigit() and (member.isdigit() or not dash)):
        return None
    job = core.find(JobKey(int(sequence), int(member) if dash else PLAIN))
    return job if job is not None and job.attempts == int(attempt) else None


def reported(core: Core, report: Report) -> None:
    """Note a report; one of an attempt that is over already changes nothing."""
    job = job_of(core, report.key)
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
        flow.ended(core, job, LOST, _with_files(core, job, job.comment, report.undelivered), dict(report.used))
        return
    if job.state is BatchState.SUSPENDED:
        core.set_state(job, "resumed")
    flow.ended(core, job, status, _with_files(core, job, why, report.undelivered), dict(report.used))


def _with_files(core: Core, job: BatchJob, why: str, undelivered: str) -> str:
    """Return what is said of an end, and of files that could not be delivered, which mail tells whatever ``-m`` says."""
    if not undelivered:
        return why
    if core.settings.mail_command:
        where = job.spec.host or "localhost"
        text = f"Post job file processing error; job {core.id_of(job.key)} on host {where}: {undelivered}"
        core.outbox.append(Mail(job.key, "o", job.spec.mail_users or job.user, text))
    return f"{why}; not delivered: {undelivered}" if why else f"not delivered: {undelivered}"
