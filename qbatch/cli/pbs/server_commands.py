"""The short commands about the server: ``qenable``, ``qdisable``, ``qstart`` and ``qstop`` for its
queues, and ``qterm``."""

from __future__ import annotations

from qbatch.cli.pbs.command import (
    MESSAGES,
    Call,
    Command,
    CommandFault,
    UsageFault,
    code_of,
    command,
    operands_of,
    queue_of,
    worded,
)
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done, Outcomes, Queues
from qbatch.wire.requests import QueueControl, QueueStatus, Shutdown


def _queue_command(
    name: str, text: str, *, enabled: bool | None = None, started: bool | None = None
) -> Command:
    def act(call: Call) -> int:
        names = tuple(queue_of(operand) for operand in operands_of(call) if call.is_here(operand))
        if "" in names:  # @server: all its queues
            names = tuple(queue.name for queue in call.ask(QueueStatus(), Queues).queues)
        for outcome in call.ask(
            QueueControl(queues=names, enabled=enabled, started=started), Outcomes
        ).outcomes:
            if outcome.error is not None:
                message = MESSAGES.get(outcome.error.pbs, outcome.error.message)
                call.complain(f"{message} {outcome.name}".rstrip(), code_of(outcome.error.pbs))
        return call.code

    return Command(name, text, f"{name} destination ...", {}, act)


qenable = _queue_command("qenable", "let queues take jobs", enabled=True)
qdisable = _queue_command("qdisable", "let queues take no more jobs", enabled=False)
qstart = _queue_command("qstart", "let jobs of queues start", started=True)
qstop = _queue_command("qstop", "let no more jobs of queues start", started=False)


STOP_REFUSED = 2
"""Exit code if the server refuses to stop, as in OpenPBS (qterm.c)."""

MANNERS = {
    "quick": Shutdown(),
    "delay": Shutdown(is_requeueing=True),
    "immediate": Shutdown(is_requeueing=True, is_with_jobs=True),
}
"""The request for each manner."""


@command(
    "qterm [-t immediate|delay|quick] [-f] [-m] [-s] [server]",
    {
        "f": ("", "Ignored: there is no secondary server."),
        "F": ("", "Refused: there is no secondary server."),
        "i": ("", "Refused: there is no secondary server."),
        "m": ("", "Ignored: the hosts are parts of the server."),
        "s": ("", "Ignored: the scheduler is a part of the server."),
        "t": ("manner", "quick (the default), delay or immediate: see above."),
    },
)
def qterm(call: Call) -> int:
    """Stop the server.

    With ``-t quick`` (the default) running jobs run on, and the server finds them again when it
    starts.  ``-t delay`` requeues the rerunnable jobs and lets the others run on; ``-t immediate``
    ends the others.  Scheduler and hosts are parts of this server (``-s`` and ``-m`` add nothing),
    and there is no secondary server.
    """
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
        call.complain(worded(refusal), STOP_REFUSED)
    return call.code
