"""What the commands that talk to a daemon share: asking, ``--json``, instants and names for tables, exit codes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from qbatch.cli.console import talk
from qbatch.client import Session
from qbatch.wire.errors import ErrorRecord
from qbatch.wire.records import JobRecord, Outcomes
from qbatch.wire.requests import Request

Result = TypeVar("Result", bound=msgspec.Struct)


def ask(request: Request, kind: type[Result], socket: str | None = None, *, timeout: float | None = 60.0) -> Result:
    """Ask the daemon one thing.

    Raises:
        QbatchError: there is no daemon, or it refuses.
    """
    with Session(socket, timeout=timeout) as session:
        return session.ask(request, kind)


def print_json(schema: str, record: Any) -> None:
    """Print a record as a versioned JSON document: ``{"schema": "qbatch.NAME/1", ...}``."""
    body = msgspec.to_builtins(record)
    document = {"schema": f"qbatch.{schema}/1", **(body if isinstance(body, dict) else {"items": body})}
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")


def clean(text: str) -> str:
    """Return a text of others with nothing in it that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def moment(at: int | None) -> str:
    """Return an instant in local time, ``-`` for none."""
    return "-" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at // 1_000_000))


def span(microseconds: int | None) -> str:
    """Return a duration as ``1:02:03``, ``-`` for none."""
    if microseconds is None:
        return "-"
    seconds = abs(microseconds) // 1_000_000
    sign = "-" if microseconds < 0 else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def wait_of(job: JobRecord, now: int) -> str:
    """Return how long a job has waited or did wait."""
    begin = job.eligible if job.eligible is not None else job.submitted
    if begin is None:
        return "-"
    end = job.started if job.started is not None else job.ended if job.ended is not None else now
    return span(max(end - begin, 0))


def report_outcomes(said: Outcomes) -> int:
    """Tell what was refused, on stderr; return the exit code of the last refusal, 0 if there is none."""
    return report_errors(each.error for each in said.outcomes if each.error is not None)


def report_errors(errors: Iterable[ErrorRecord | None]) -> int:
    """Tell errors on stderr; return the exit code of the last one, 0 if there is none."""
    code = 0
    for error in errors:
        if error is not None:
            talk(f"qbatch: {clean(error.message)}")
            code = error.exit
    return code
