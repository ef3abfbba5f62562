"""``qbatch backup|restore``: write and restore copies of the store."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask
from qbatch.cli.which_daemon import STATE
from qbatch.wire import paths, records, requests


def backup(
    file: Path = typer.Argument(..., metavar="FILE", help="File to create."),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Write a complete and consistent copy of the store while the daemon runs."""
    talk(ask(requests.Backup(path=os.path.abspath(file)), records.Done, socket, timeout=600.0).text)


def restore(
    file: Path = typer.Argument(..., metavar="FILE", help="A file that qbatch backup wrote."),
    state: Path | None = STATE,
) -> None:
    """Replace the store with a backup and keep the old store next to it.  The daemon must not run."""
    from qbatch.daemon.restore import restore_backup

    talk(restore_backup(file, paths.state_directory()))
