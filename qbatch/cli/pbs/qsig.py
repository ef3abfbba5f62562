"""``qsig``: send a signal to running jobs: a name, a number, suspend or resume."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import Signal


def _act(call: Call) -> int:
    signal = call.given.last("s", "SIGTERM").strip()
    if not signal:
        raise UsageFault("illegal -s value")
    return call.act(lambda ids: Signal(jobs=ids, signal=signal), operands_of(call))


COMMAND = Command("qsig", "as:", "qsig [-a] [-s signal] job_identifier ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qsig`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qsig`` as a program."""
    COMMAND.main()
