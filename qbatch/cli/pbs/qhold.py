"""``qhold``: place holds (``-h u|o|s``, user holds if none is said)."""

from __future__ import annotations

from qbatch.cli.pbs.holds import hold_command
from qbatch.wire.requests import Hold

COMMAND = hold_command("qhold", Hold)

run = COMMAND.run
main = COMMAND.main
