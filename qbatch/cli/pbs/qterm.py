"""``qterm``: stop the server.

``-t quick`` (default) leaves the running jobs to run on; they are found again when the server starts.  ``-t delay`` queues those
again that may be run again, and leaves the others to run on; ``-t immediate`` ends the others.  Scheduler and hosts are parts of
this server (``-s`` and ``-m`` add nothing), and there is no secondary server.
"""

from __future__ import annotations

from typing import NoReturn

from qbatch.cli.pbs.command import Call, Command, CommandFault, Surroundings, UsageFault, code_of, worded
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done
from qbatch.wire.requests import Shutdown

USAGE = "qterm [-t immediate|delay|quick] [-f] [-m] [-s] [server]"

REFUSED = 2
"""Exit code if the server refuses to stop, as in OpenPBS (qterm.c)."""

MANNERS = {
    "quick": Shutdown(),
    "delay": Shutdown(is_requeueing=True),
    "immediate": Shutdown(is_requeueing=True, is_with_jobs=True),
}
"""What each manner asks for."""


def _act(call: Call) -> int:
    given = call.given
    manner = given.last("t", "quick")
    if manner not in MANNERS:
        raise UsageFault(f"illegal -t value {manner[:40]!r}")
    if given.has("Fi"):
        raise CommandFault("there is no secondary server here: leave -F and -i out", code_of(15029))
    servers = given.operands + (given.after_dashes or [])
    if not all(call.is_here(f"@{server.removeprefix('@')}") for server in servers):
        return call.code
    try:
        call.ask(MANNERS[manner], Done)
    except Refusal as refusal:
        call.complain(worded(refusal), REFUSED)
    return call.code


COMMAND = Command("qterm", "Ffimst:", USAGE, _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qterm`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qterm`` as a program."""
    COMMAND.main()
