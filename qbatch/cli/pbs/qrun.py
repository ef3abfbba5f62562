"""``qrun``: start waiting jobs now, whatever the policy would do, if there is room for them.

Operators may.  ``-H n1+n2`` names the hosts; without it the server finds them.  A job that is held, waits for a time or at a run
limit is refused with the reason, and so is one for which there is no room: nothing that runs is stopped for it.  Exit code 2 if a
start is refused, as in OpenPBS.
"""

from __future__ import annotations

import re
from typing import NoReturn

from qbatch.cli.pbs.command import NO_CONNECTION, Call, Command, CommandFault, Surroundings, UsageFault, operands_of
from qbatch.wire.requests import ForceStart

USAGE = "qrun [-a] [-H host[+host...]] job_identifier ..."

REFUSED = 2
"""Exit code if the server refuses a start, whatever its reason, as in OpenPBS (qrun.c)."""


def hosts_of(text: str) -> tuple[str, ...]:
    """Return the hosts of ``n1+n2``, also in brackets, as ``exec_vnode`` has them: ``(n1)+(n2)``.

    Raises:
        UsageFault: it names none.
        CommandFault: it says how much of a host is to be taken.
    """
    names = tuple(part.strip(" ()") for part in text.split("+"))
    if not all(names):
        raise UsageFault("illegal -H value")
    for name in names:
        if not re.fullmatch(r"[\w.-]+", name):
            raise CommandFault(f"illegal -H value: {name[:80]!r} is no host; write n1+n2: the job says how much it needs", 2)
    return names


def _act(call: Call) -> int:
    hosts = hosts_of(call.given.last("H")) if call.given.has("H") else ()
    code = call.act(lambda ids: ForceStart(jobs=ids, hosts=hosts), operands_of(call))
    return code if code == NO_CONNECTION else min(code, REFUSED)


COMMAND = Command("qrun", "aH:", USAGE, _act)


def run(arguments: list[str], here: Surroundings | None = None) -> int:
    """Run ``qrun`` and return its exit code."""
    return COMMAND.run(arguments, here)


def main() -> NoReturn:
    """Run ``qrun`` as a program."""
    COMMAND.main()
