"""``qenable``: let queues take jobs."""

from __future__ import annotations

from qbatch.cli.pbs.queues import queue_command

COMMAND = queue_command("qenable", enabled=True)

run = COMMAND.run
main = COMMAND.main
