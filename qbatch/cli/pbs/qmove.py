"""``qmove``: put waiting jobs into another queue."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import Move


def _act(call: Call) -> int:
    destination, *jobs = operands_of(call, 2)
    if not destination or destination[0].isdigit():
        raise UsageFault(f"illegally formed destination: {destination}")
    if not call.is_here(destination):
        return call.code
    return call.act(lambda ids: Move(jobs=ids, destination=destination), jobs)


COMMAND = Command("qmove", "", "qmove destination job_identifier ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qmove`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qmove`` as a program."""
    COMMAND.main()
