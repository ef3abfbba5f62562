"""``qstat -Q``, ``-q`` and ``-B``: queues and the server."""

from __future__ import annotations

import time
from collections.abc import Iterable

from qbatch.cli.pbs.command import VERSION, Call, queue_of
from qbatch.cli.pbs.format_attributes import Attribute, queue_attributes, server_attributes
from qbatch.cli.pbs.format_full import full_text, json_document, json_object, separated
from qbatch.cli.pbs.text import MICROSECONDS
from qbatch.wire.records import Queues, ServerRecord
from qbatch.wire.requests import QueueStatus, ServerStatus


def show(call: Call, letters: frozenset[str], style: str, separator: str) -> int:
    """Ask for queues or the server and write them; return the exit code."""
    operands = call.given.operands + (call.given.after_dashes or [])
    if "B" in letters:
        return _show_server(call, operands, letters, style, separator)
    names = tuple(queue_of(operand) for operand in operands if call.is_here(operand))
    if operands and not names:
        return call.code
    answer = call.ask(QueueStatus(queues=() if "" in names else names), Queues)
    if "q" in letters:
        from qbatch.cli.pbs.format_alternate import queue_limits_table

        unit = "g" if "G" in letters else "w" if "M" in letters else ""
        call.write(queue_limits_table(answer.queues, answer.server, unit) if answer.queues else "")
    elif "f" in letters:
        named = [(queue.name, queue_attributes(queue)) for queue in answer.queues]
        call.write(_full("Queue", named, style, separator, letters, answer.server, answer.now))
    else:
        from qbatch.cli.pbs.format_table import queue_table

        call.write(queue_table(answer.queues))
    for error in answer.errors:
        call.job_fault(error, "")
    return call.code


def _show_server(call: Call, operands: list[str], letters: frozenset[str], style: str, separator: str) -> int:
    here = [call.is_here(f"@{operand.removeprefix('@')}") for operand in operands]
    if here and not any(here):
        return call.code
    server = call.ask(ServerStatus(), ServerRecord)
    if "f" in letters:
        named = [(server.name, server_attributes(server, VERSION))]
        now = server.clock.now if server.clock is not None else 0
        call.write(_full("Server", named, style, separator, letters, server.name, now))
    else:
        from qbatch.cli.pbs.format_table import server_table

        call.write(server_table([server]))
    return call.code


def _full(
    kind: str,
    named: Iterable[tuple[str, list[Attribute]]],
    style: str,
    separator: str,
    letters: frozenset[str],
    server: str,
    now: int,
) -> str:
    if style == "json":
        body = {name: json_object(attributes) for name, attributes in named}
        seconds = now // MICROSECONDS or int(time.time())
        return json_document(server or "qbatch", VERSION, seconds, {kind: body} if body else {})
    if style == "dsv":
        return "".join(separated(f"{kind}: {name}", attributes, separator) for name, attributes in named)
    is_wide = bool(letters & {"w", "1"})
    return "".join(full_text(f"{kind}: {name}", attributes, is_wide) for name, attributes in named)
