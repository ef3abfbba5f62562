"""``qrerun``: stop running jobs and queue them again (``-W force`` without asking the host)."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import Rerun


def _act(call: Call) -> int:
    said = call.given.last("W")
    if said not in ("", "force"):
        raise UsageFault("illegal -W value")
    is_forced = said == "force" or call.given.has("f")
    return call.act(lambda ids: Rerun(jobs=ids, is_forced=is_forced), operands_of(call))


COMMAND = Command("qrerun", "fmW:", "qrerun [-W force] job_identifier ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qrerun`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qrerun`` as a program."""
    COMMAND.main()
