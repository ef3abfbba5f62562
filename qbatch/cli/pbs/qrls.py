"""``qrls``: take away holds (``-h u|o|s``, user holds if none is said)."""

from __future__ import annotations

from qbatch.cli.pbs.holds import hold_command
from qbatch.wire.requests import Release

COMMAND = hold_command("qrls", Release)

run = COMMAND.run
main = COMMAND.main
