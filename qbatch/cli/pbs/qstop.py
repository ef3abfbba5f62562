"""``qstop``: let no more jobs of queues start."""

from __future__ import annotations

from qbatch.cli.pbs.queues import queue_command

COMMAND = queue_command("qstop", started=False)

run = COMMAND.run
main = COMMAND.main
