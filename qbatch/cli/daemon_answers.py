"""Functions shared by the commands that talk to a daemon: requests, ``--json``, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from qbatch.cli.console import talk
from qbatch.client import ClientSession
from qbatch.model.errors import UsageError
from qbatch.results.shown import clean
from qbatch.wire.errors import ErrorRecord
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import STATES, Request

Result = TypeVar("Result", bound=msgspec.Struct)


def ask(
    request: Request, kind: type[Result], socket: str | None = None, *, timeout: float | None = 60.0
) -> Result:
    """Send one request to the daemon and return the answer.

    Raises:
        QbatchError: there is no daemon, or it refuses.
    """
    with ClientSession(socket, timeout=timeout) as session:
        return session.ask(request, kind)


def print_json(schema: str, record: Any) -> None:
    """Print a record as a versioned JSON document: ``{"schema": "qbatch.NAME/1", ...}``."""
    body = msgspec.to_builtins(record)
    document = {
        "schema": f"qbatch.{schema}/1",
        **(body if isinstance(body, dict) else {"items": body}),
    }
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")


def read_states(text: str) -> str:
    """Return the value of ``--state`` as state letters.

    Raises:
        UsageError: a letter is no state of a job.
    """
    if set(text) <= set(STATES):
        return text
    way_out = f"; for another daemon: qbatch --state {text} COMMAND" if os.path.isdir(text) else ""
    raise UsageError(f"--state {text}: write letters of {STATES}, such as QH{way_out}")


def report_outcomes(said: Outcomes) -> int:
    """Print the refusals on stderr; return the exit code of the last one, 0 if there is none."""
    return report_errors(each.error for each in said.outcomes if each.error is not None)


def report_errors(errors: Iterable[ErrorRecord | None]) -> int:
    """Print errors on stderr; return the exit code of the last one, 0 if there is none."""
    code = 0
    for error in errors:
        if error is not None:
            talk(f"qbatch: {clean(error.message)}")
            code = error.exit
    return code
