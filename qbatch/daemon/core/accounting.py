"""The texts of PBS accounting records (docs/spec/pbs.md section 6): ``key=value`` pairs; times are seconds since 1970."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from qbatch.daemon.core import records
from qbatch.daemon.core.job import Listed
from qbatch.wire.records import DEFAULT_PROJECT
from qbatch.wire.resources import MICROSECONDS, format_duration

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob
    from qbatch.daemon.core.state import Account, Core
    from qbatch.wire.records import JobRecord


_PLAIN = re.compile(r"[!#-:<-~]+")
# Printable ASCII without space, quotation mark and semicolon.


def _word(text: str) -> str:
    """Return a value without characters that would end the field or the line."""
    if text.isalnum() or _PLAIN.fullmatch(text):
        return text
    clean = "".join(letter if letter.isprintable() and letter not in ' ;"' else "_" for letter in text)
    return clean or '""'


def _text_of(listed: Listed) -> str:
    """Return ``Resource_List`` as text; jobs that ask for the same share it."""
    listed.text = " ".join(f"Resource_List.{name}={_word(value)}" for name, value in listed.items())
    return listed.text


@lru_cache(maxsize=1024)
def _owner(user: str, group: str, account: str, project: str) -> str:
    account = f'account="{_word(account)}" ' if account else ""
    project = _word(project) if project else DEFAULT_PROJECT
    return f"user={_word(user)} group={_word(group)} {account}project={project}"


def _job(job: BatchJob) -> str:
    """Return the beginning of a job's record."""
    spec = job.prepared.spec
    return _beginning(job, spec.account, spec.project)


def _beginning(job: BatchJob | JobRecord, account: str, project: str) -> str:
    name = job.name
    owner = _owner(job.user, job.group, account, project)
    return f"{owner} jobname={name if name.isalnum() else _word(name)} queue={job.queue}"


def _deadline_and_price(job: BatchJob | JobRecord) -> str:
    """Return the deadline (seconds since 1970) and the price (processor-hours) of a job that has them."""
    deadline = "" if job.deadline is None else f" deadline={job.deadline // MICROSECONDS}"
    return deadline if job.price is None else f"{deadline} price={job.price // 1_000_000}.{job.price % 1_000_000:06d}"


def queued(core: Core, job: BatchJob) -> str:
    """Return the text of a Q record."""
    return _job(job)


def refused(job: BatchJob, code: str) -> str:
    """Return the text of the A record of a job that was refused after it was queued."""
    return f"{_job(job)} refused={_word(code)}"


def started(core: Core, job: BatchJob) -> str:
    """Return the text of an S record."""
    return _started(_job(job), job, job.present.started, records.exec_texts(core, job), job.prepared.listed)


def _started(beginning: str, job: BatchJob | JobRecord, start: int, places: tuple[str, str], listed: dict[str, str]) -> str:
    hosts, nodes = places
    asked = listed.text or _text_of(listed) if isinstance(listed, Listed) else _text_of(Listed(listed))
    return (
        f"{beginning} ctime={(job.submitted or 0) // MICROSECONDS} qtime={(job.queued or 0) // MICROSECONDS} "
        f"etime={(job.eligible or 0) // MICROSECONDS} start={start // MICROSECONDS} exec_host={hosts} "
        f"exec_vnode={nodes} {asked}{_deadline_and_price(job)}"
    )


def returned(core: Core, job: BatchJob) -> str:
    """Return the text of the R record of a trial run after its quantum; the last key distinguishes it from that of a rerun."""
    return f"{ended(core, job, 0)} requeue_reason=quantum_over"


def ended(core: Core, job: BatchJob, status: int) -> str:
    """Return the text of the R record of a job that is queued again; it has the fields of an E record."""
    attempt, used = job.present, records.used_of(job)
    measured = _measured(core.now, status, used, attempt.started, job.eligible, job.attempts, attempt.session)
    return f"{started(core, job)} {measured}"


def text_of(account: Account) -> str:
    """Return the text of an accounting record; that of an E record is made here, from the job's record."""
    job = account.record
    if job is None:
        return account.text
    start, places = job.started or 0, (job.exec_host, job.exec_vnode)
    text = _started(_beginning(job, job.account, job.project), job, start, places, job.resources)
    return f"{text} {_measured(account.at, job.exit_status, job.used, start, job.eligible, job.attempt, job.session)}"


def _measured(
    at: int, status: int | None, used: dict[str, str], start: int, eligible: int | None, attempts: int, session: int | None
) -> str:
    """Return the end of the record of a finished attempt: its exit status and what it used."""
    resources = " ".join([f"resources_used.{name}={value}" for name, value in used.items()])
    waited = (start // MICROSECONDS - (eligible or 0) // MICROSECONDS) * MICROSECONDS
    return (
        f"session={session or 0} end={at // MICROSECONDS} Exit_status={status} {resources} "
        f"eligible_time={format_duration(waited)} run_count={attempts}"
    )
