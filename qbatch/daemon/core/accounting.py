"""The texts of PBS accounting records (spec/pbs.md section 6): ``key=value`` pairs; times are seconds since 1970."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from qbatch.daemon.core import records
from qbatch.wire.resources import MICROSECONDS

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob, Listed
    from qbatch.daemon.core.state import Core
    from qbatch.wire.records import JobRecord


_PLAIN = re.compile(r"[!#-:<-~]+")
# Printable ASCII without space, quotation mark and semicolon.


def _word(text: str) -> str:
    """Return a value with nothing in it that would end the field or the line."""
    if text.isalnum() or _PLAIN.fullmatch(text):
        return text
    clean = "".join(letter if letter.isprintable() and letter not in ' ;"' else "_" for letter in text)
    return clean or '""'


def _text_of(listed: Listed) -> str:
    """Return ``Resource_List``; it is put together once for all jobs that ask for the same."""
    listed.text = " ".join(f"Resource_List.{name}={_word(value)}" for name, value in listed.items())
    return listed.text


@lru_cache(maxsize=1024)
def _owner(user: str, group: str, account: str, project: str) -> str:
    account = f'account="{_word(account)}" ' if account else ""
    project = _word(project) if project else "_pbs_project_default"
    return f"user={_word(user)} group={_word(group)} {account}project={project}"


def _job(job: BatchJob) -> str:
    """Return with what the record of a job begins."""
    spec, name = job.prepared.spec, job.name
    owner = _owner(job.user, job.group, spec.account, spec.project)
    return f"{owner} jobname={name if name.isalnum() else _word(name)} queue={job.queue}"


def _owed(job: BatchJob) -> str:
    """Return the deadline (seconds since 1970) and the price (processor-hours) of a job that has them."""
    deadline = "" if job.deadline is None else f" deadline={job.deadline // MICROSECONDS}"
    return deadline if job.price is None else f"{deadline} price={job.price // 1_000_000}.{job.price % 1_000_000:06d}"


def queued(core: Core, job: BatchJob) -> str:
    """Return the text of a Q record."""
    return _job(job)


def refused(job: BatchJob, code: str) -> str:
    """Return the text of the A record of a job that was refused after it was queued."""
    return f"{_job(job)} refused={_word(code)}"


def started(core: Core, job: BatchJob, places: tuple[str, str] | None = None) -> str:
    """Return the text of an S record; ``places``: ``exec_host`` and ``exec_vnode``, where they are known already."""
    hosts, nodes = places or records.exec_texts(core, job)
    listed = job.prepared.listed
    return (
        f"{_job(job)} ctime={job.submitted // MICROSECONDS} qtime={job.queued // MICROSECONDS} "
        f"etime={(job.eligible or 0) // MICROSECONDS} start={job.present.started // MICROSECONDS} exec_host={hosts} "
        f"exec_vnode={nodes} {listed.text or _text_of(listed)}{_owed(job)}"
    )


def returned(core: Core, job: BatchJob) -> str:
    """Return the text of the R record of a trial whose quantum is over: its last key tells it from that of a rerun."""
    return f"{ended(core, job, 0)} requeue_reason=quantum_over"


def ended(core: Core, job: BatchJob, status: int, record: JobRecord | None = None) -> str:
    """Return the text of an E (or R) record; ``record``: all that is known of the job, where that was put together already."""
    places, measured = (None, records.used_of(job)) if record is None else ((record.exec_host, record.exec_vnode), record.used)
    used = " ".join([f"resources_used.{name}={value}" for name, value in measured.items()])
    attempt = job.present
    waited = max(attempt.started // MICROSECONDS - (job.eligible or 0) // MICROSECONDS, 0)
    eligible = f"{waited // 3600:02d}:{waited // 60 % 60:02d}:{waited % 60:02d}"
    return (
        f"{started(core, job, places)} session={attempt.session or 0} end={core.now // MICROSECONDS} Exit_status={status} {used} "
        f"eligible_time={eligible} run_count={job.attempts}"
    )
