"""The texts of PBS accounting records (spec/pbs.md section 6): ``key=value`` pairs; times are seconds since 1970."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from qbatch.daemon.core import records
from qbatch.wire.resources import MICROSECONDS

if TYPE_CHECKING:
    from qbatch.daemon.core.job import BatchJob, Listed
    from qbatch.daemon.core.state import Core
    from qbatch.wire.records import JobRecord


_PLAIN = re.compile(r"[!#-:<-~]+")
# Printable ASCII without space, quotation mark and semicolon.


def _seconds(at: int | None) -> int:
    return (at or 0) // MICROSECONDS


def _word(text: str) -> str:
    """Return a value with nothing in it that would end the field or the line."""
    if text.isalnum() or _PLAIN.fullmatch(text):
        return text
    clean = "".join(letter if letter.isprintable() and letter not in ' ;"' else "_" for letter in text)
    return clean or '""'


def _text_of(listed: Listed) -> str:
    """Return ``Resource_List``; it is put together once for all jobs that ask for the same."""
    if not listed.text:
        listed.text = " ".join(f"Resource_List.{name}={_word(value)}" for name, value in listed.items())
    return listed.text


def _who(job: BatchJob) -> str:
    account = f'account="{_word(job.spec.account)}" ' if job.spec.account else ""
    project = _word(job.spec.project) if job.spec.project else "_pbs_project_default"
    return f"user={_word(job.user)} group={_word(job.group)} {account}project={project}"


def _owed(job: BatchJob) -> str:
    """Return the deadline (seconds since 1970) and the price (processor-hours) of a job that has them."""
    deadline = "" if job.deadline is None else f" deadline={_seconds(job.deadline)}"
    return deadline if job.price is None else f"{deadline} price={job.price // 1_000_000}.{job.price % 1_000_000:06d}"


def queued(core: Core, job: BatchJob) -> str:
    """Return the text of a Q record."""
    return f"{_who(job)} jobname={_word(job.name)} queue={job.queue}"


def refused(job: BatchJob, code: str) -> str:
    """Return the text of the A record of a job that was refused after it was queued."""
    return f"{_who(job)} jobname={_word(job.name)} queue={job.queue} refused={_word(code)}"


def started(core: Core, job: BatchJob, places: tuple[str, str] | None = None) -> str:
    """Return the text of an S record; ``places``: ``exec_host`` and ``exec_vnode``, where they are known already."""
    hosts, nodes = places or records.exec_texts(core, job)
    return (
        f"{_who(job)} jobname={_word(job.name)} queue={job.queue} ctime={_seconds(job.submitted)} qtime={_seconds(job.queued)} "
        f"etime={_seconds(job.eligible)} start={_seconds(job.present.started)} exec_host={hosts} exec_vnode={nodes} "
        f"{_text_of(job.prepared.listed)}{_owed(job)}"
    )


def returned(core: Core, job: BatchJob) -> str:
    """Return the text of the R record of a trial whose quantum is over: its last key tells it from that of a rerun."""
    return f"{ended(core, job, 0)} requeue_reason=quantum_over"


def ended(core: Core, job: BatchJob, status: int, record: JobRecord | None = None) -> str:
    """Return the text of an E (or R) record; ``record``: all that is known of the job, where that was put together already."""
    places, measured = (None, records.used_of(job)) if record is None else ((record.exec_host, record.exec_vnode), record.used)
    used = " ".join([f"resources_used.{name}={value}" for name, value in measured.items()])
    waited = max(_seconds(job.present.started) - _seconds(job.eligible), 0)
    eligible = f"{waited // 3600:02d}:{waited // 60 % 60:02d}:{waited % 60:02d}"
    return (
        f"{started(core, job, places)} session={job.present.session or 0} end={_seconds(core.now)} Exit_status={status} {used} "
        f"eligible_time={eligible} run_count={job.attempts}"
    )
