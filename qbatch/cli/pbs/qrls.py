"""``qrls``: take away holds (``-h u|o|s``, user holds if none is said)."""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import Release


def _act(call: Call) -> int:
    kinds = call.given.last("h", "u").strip()
    if not kinds or set(kinds) - set("uospn") or ("n" in kinds and len(kinds) > 1):
        raise UsageFault("illegal -h value")
    jobs = operands_of(call)
    # PBS writes p for the hold of a bad password: here nobody places one; n is none.
    letters = kinds.replace("p", "").replace("n", "")
    return call.act(lambda ids: Release(jobs=ids, kinds=letters), jobs) if letters else call.code


COMMAND = Command("qrls", "h:t:", "qrls [-h hold_list] job_identifier ...", _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qrls`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qrls`` as a program."""
    COMMAND.main()
