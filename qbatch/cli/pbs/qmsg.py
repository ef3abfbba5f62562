"""``qmsg``: append a line to the output (-O) or the error file (-E, the default) of running jobs."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import Message


def _act(call: Call) -> int:
    text, *jobs = operands_of(call, 2)
    if not text:
        raise UsageFault("no message string")
    files = "".join(letter for letter in "EO" if call.given.has(letter)) or "E"
    return call.act(lambda ids: Message(jobs=ids, text=text, files=files), jobs)


COMMAND = Command("qmsg", "EO", "qmsg [-E] [-O] message_string job_identifier ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qmsg`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qmsg`` as a program."""
    COMMAND.main()
