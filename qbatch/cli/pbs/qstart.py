"""``qstart``: let jobs of queues start."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, control_queues
from qbatch.wire.requests import QueueControl


def _act(call: Call) -> int:
    return control_queues(call, lambda names: QueueControl(queues=names, started=True))


COMMAND = Command("qstart", "", "qstart destination ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qstart`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qstart`` as a program."""
    COMMAND.main()
