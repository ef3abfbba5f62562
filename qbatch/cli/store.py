"""``qbatch backup|restore``: copies of the store."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask
from qbatch.cli.which_daemon import STATE
from qbatch.wire import paths, records, requests


def backup(
    file: Path = typer.Argument(..., metavar="FILE", help="A new file."),
    socket: str | None = typer.Option(None, "--socket", help="The daemon's socket."),
) -> None:
    """Write a copy of the store, complete and consistent, while the daemon runs."""
    talk(ask(requests.Backup(path=os.path.abspath(file)), records.Done, socket, timeout=600.0).text)


def restore(
    file: Path = typer.Argument(..., metavar="FILE", help="A file that qbatch backup wrote."),
    state: Path | None = STATE,
) -> None:
    """Put a backup in place of the store; what was there is kept beside it.  The daemon must not run."""
    from qbatch.daemon.restore import restore_backup

    talk(restore_backup(file, paths.state_directory()))
