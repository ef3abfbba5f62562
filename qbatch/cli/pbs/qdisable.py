"""``qdisable``: let queues take no more jobs."""

from __future__ import annotations

from qbatch.cli.pbs.queues import queue_command

COMMAND = queue_command("qdisable", enabled=False)

run = COMMAND.run
main = COMMAND.main
