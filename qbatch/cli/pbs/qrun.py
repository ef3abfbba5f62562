"""``qrun``: start waiting jobs now, past the policy, if there is room."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, CommandFault, Surroundings, operands_of
from qbatch.wire.requests import RunNow


def _act(call: Call) -> int:
    jobs = operands_of(call)
    if call.given.has("H"):
        raise CommandFault("-H is not supported: the engine chooses the hosts", 15029 % 256)
    return call.act(lambda ids: RunNow(jobs=ids), jobs)


COMMAND = Command("qrun", "aH:", "qrun [-a] job_identifier ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qrun`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qrun`` as a program."""
    COMMAND.main()
