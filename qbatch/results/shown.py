"""Text forms of values for tables and the monitor: instants, durations, foreign texts."""

from __future__ import annotations

import time

from qbatch.wire.records import JobRecord


def clean(text: str) -> str:
    """Return a foreign text without characters that a terminal would obey."""
    return (
        text
        if text.isprintable()
        else "".join(letter if letter.isprintable() else "?" for letter in text)
    )


def moment(at: int | None) -> str:
    """Return an instant in local time, ``-`` for none."""
    return (
        "-" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at // 1_000_000))
    )


def span(microseconds: int | None) -> str:
    """Return a duration as ``1:02:03``, ``-`` for none."""
    if microseconds is None:
        return "-"
    seconds = abs(microseconds) // 1_000_000
    sign = "-" if microseconds < 0 else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def waited(job: JobRecord, now: int) -> int | None:
    """Return how long a job has waited or did wait, in microseconds; None if unknown."""
    begin = job.eligible if job.eligible is not None else job.submitted
    if begin is None:
        return None
    end = job.started if job.started is not None else job.ended if job.ended is not None else now
    return max(end - begin, 0)


def is_cancelled(job: JobRecord) -> bool:
    """Whether a job was cancelled before it ever ran."""
    return job.ended is not None and job.started is None and not job.run_count


def status_of(job: JobRecord) -> str:
    """Return how a job ended: its exit status, ``refused`` or ``cancelled`` if it never ran, ``-``
    while it has not ended."""
    if job.refused is not None:
        return "refused"
    if is_cancelled(job):
        return "cancelled"
    return "-" if job.exit_status is None else str(job.exit_status)


def wait_of(job: JobRecord, now: int) -> str:
    """Return how long a job has waited or did wait, for a table."""
    return span(waited(job, now))


def close_moment(at: int | None, now: int) -> str:
    """Return an instant in a short form relative to ``now``: the time of day, with the day if it is
    another."""
    if at is None:
        return "-"
    there, here = time.localtime(at // 1_000_000), time.localtime(now // 1_000_000)
    same_day = there[:3] == here[:3]
    return time.strftime("%H:%M:%S" if same_day else "%m-%d %H:%M", there)


def short_span(microseconds: int | None) -> str:
    """Return a duration in two units at most: ``42s``, ``12m05``, ``3h20``, ``5d03h``."""
    if microseconds is None:
        return "-"
    seconds = abs(microseconds) // 1_000_000
    sign = "-" if microseconds < 0 else ""
    if seconds < 60:
        return f"{sign}{seconds}s"
    if seconds < 3600:
        return f"{sign}{seconds // 60}m{seconds % 60:02d}"
    if seconds < 86_400:
        return f"{sign}{seconds // 3600}h{seconds // 60 % 60:02d}"
    return f"{sign}{seconds // 86_400}d{seconds // 3600 % 24:02d}h"
