"""``qstart``: let jobs of queues start."""

from __future__ import annotations

from qbatch.cli.pbs.queues import queue_command

COMMAND = queue_command("qstart", started=True)

run = COMMAND.run
main = COMMAND.main
