"""What ``qenable``, ``qdisable``, ``qstart`` and ``qstop`` share: one request about the queues that are named."""

from __future__ import annotations

from qbatch.cli.pbs.command import MESSAGES, Call, Command, code_of, operands_of, queue_of
from qbatch.wire.records import Outcomes, Queues
from qbatch.wire.requests import QueueControl, QueueStatus


def queue_command(name: str, *, enabled: bool | None = None, started: bool | None = None) -> Command:
    """Return the command that opens or closes queues for submissions (``enabled``) or for starts (``started``)."""

    def act(call: Call) -> int:
        names = tuple(queue_of(operand) for operand in operands_of(call) if call.is_here(operand))
        if "" in names:  # @server: all its queues
            names = tuple(queue.name for queue in call.ask(QueueStatus(), Queues).queues)
        for outcome in call.ask(QueueControl(queues=names, enabled=enabled, started=started), Outcomes).outcomes:
            if outcome.error is not None:
                message = MESSAGES.get(outcome.error.pbs, outcome.error.message)
                call.complain(f"{message} {outcome.name}".rstrip(), code_of(outcome.error.pbs))
        return call.code

    return Command(name, "", f"{name} destination ...", act)
