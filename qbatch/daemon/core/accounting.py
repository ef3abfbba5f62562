"""The texts of PBS accounting records (docs/spec/pbs.md section 6): ``key=value`` pairs; times are
seconds since 1970."""

from __future__ import annotations

import re
from functools import lru_cache

from qbatch.daemon.core import records
from qbatch.daemon.core.job import BatchJob, Listed
from qbatch.daemon.core.state import Account, Core
from qbatch.wire.records import DEFAULT_PROJECT, JobRecord
from qbatch.wire.requests import Spec
from qbatch.wire.resources import MICROSECONDS, format_duration

_PLAIN = re.compile(r"[!#-:<-~]+")
# Printable ASCII without space, quotation mark and semicolon.


def _word(text: str) -> str:
    """Return a value without characters that would end the field or the line."""
    if text.isalnum() or _PLAIN.fullmatch(text):
        return text
    clean = "".join(
        letter if letter.isprintable() and letter not in ' ;"' else "_" for letter in text
    )
    return clean or '""'


@lru_cache(maxsize=1024)
def _owner(user: str, group: str, account: str, project: str) -> str:
    account = f'account="{_word(account)}" ' if account else ""
    project = _word(project) if project else DEFAULT_PROJECT
    return f"user={_word(user)} group={_word(group)} {account}project={project}"


def _beginning(job: BatchJob | JobRecord, spec: Spec | JobRecord) -> str:
    owner = _owner(job.user, job.group, spec.account, spec.project)
    return (
        f"{owner} jobname={job.name if job.name.isalnum() else _word(job.name)} queue={job.queue}"
    )


def queued(job: BatchJob) -> str:
    """Return the text of a Q record, with which the other records of a job begin."""
    return _beginning(job, job.prepared.spec)


def refused(job: BatchJob, code: str) -> str:
    """Return the text of the A record of a job that was refused after it was queued."""
    return f"{queued(job)} refused={_word(code)}"


def started(core: Core, job: BatchJob) -> str:
    """Return the text of an S record."""
    return _started(
        queued(job), job, job.present.started, records.exec_texts(core, job), job.prepared.listed
    )


def _started(
    beginning: str,
    job: BatchJob | JobRecord,
    start: int,
    places: tuple[str, str],
    listed: dict[str, str],
) -> str:
    asked = listed if isinstance(listed, Listed) else Listed(listed)
    if not asked.text:  # jobs that ask for the same share it
        asked.text = " ".join(
            f"Resource_List.{name}={_word(value)}" for name, value in asked.items()
        )
    # The deadline is in seconds since 1970, the price in processor-hours.
    deadline = "" if job.deadline is None else f" deadline={job.deadline // MICROSECONDS}"
    price = (
        "" if job.price is None else f" price={job.price // 1_000_000}.{job.price % 1_000_000:06d}"
    )
    return (
        f"{beginning} ctime={(job.submitted or 0) // MICROSECONDS} "
        f"qtime={(job.queued or 0) // MICROSECONDS} "
        f"etime={(job.eligible or 0) // MICROSECONDS} start={start // MICROSECONDS} "
        f"exec_host={places[0]} "
        f"exec_vnode={places[1]} {asked.text}{deadline}{price}"
    )


def ended(core: Core, job: BatchJob, status: int) -> str:
    """Return the text of the R record of a job that is queued again; it has the fields of an E
    record."""
    attempt, used = job.present, records.used_of(job)
    measured = _measured(
        core.now, status, used, attempt.started, job.eligible, job.attempts, attempt.session
    )
    return f"{started(core, job)} {measured}"


def text_of(account: Account) -> str:
    """Return the text of an accounting record; that of an E record is made here, from the job's
    record."""
    job = account.record
    return account.text if job is None else text_of_record(job, "E", account.at)


def text_of_record(job: JobRecord, kind: str, at: int = 0) -> str:
    """Return the text of the Q, S or E record of a job; ``at``: the instant of its end."""
    beginning = _beginning(job, job)
    if kind == "Q":
        return beginning
    start = job.started or 0
    text = _started(beginning, job, start, (job.exec_host, job.exec_vnode), job.resources)
    if kind == "S":
        return text
    return f"{text} {_measured(at, job.exit_status, job.used, start, job.eligible, job.attempt, job.session)}"


def _measured(
    at: int,
    status: int | None,
    used: dict[str, str],
    start: int,
    eligible: int | None,
    attempts: int,
    session: int | None,
) -> str:
    """Return the end of the record of a finished attempt: its exit status and what it used."""
    resources = " ".join([f"resources_used.{name}={value}" for name, value in used.items()])
    waited = (start // MICROSECONDS - (eligible or 0) // MICROSECONDS) * MICROSECONDS
    return (
        f"session={session or 0} end={at // MICROSECONDS} Exit_status={status} {resources} "
        f"eligible_time={format_duration(waited)} run_count={attempts}"
    )
