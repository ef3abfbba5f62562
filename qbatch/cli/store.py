"""``qbatch backup|restore|export``: copies of the store, and what really ran as a workload log."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask
from qbatch.model.errors import InputError, UsageError
from qbatch.wire import paths, records, requests


def backup(
    file: Path = typer.Argument(..., help="A new file."),
    socket: str | None = typer.Option(None, "--socket", help="The daemon's socket."),
) -> None:
    """Write a copy of the store, complete and consistent, while the daemon runs."""
    talk(ask(requests.Backup(path=os.path.abspath(file)), records.Done, socket, timeout=600.0).text)


def restore(
    file: Path = typer.Argument(..., help="A file that qbatch backup wrote."),
    state: Path | None = typer.Option(None, "--state", help="Directory of the store."),
) -> None:
    """Put a backup in place of the store; what was there is kept beside it.  The daemon must not run."""
    from qbatch.daemon.restoring import restore_backup

    talk(restore_backup(file, state or paths.state_directory()))


def export(
    kind: str = typer.Argument(..., help="What to write: swf."),
    output: Path | None = typer.Option(None, "--output", "-o", help="The file (stdout if none is given)."),
    socket: str | None = typer.Option(None, "--socket", help="The daemon's socket."),
) -> None:
    """Turn what really ran into a workload log that qbatch replay takes."""
    if kind != "swf":
        raise UsageError(f"export {kind}: only swf is known")
    from qbatch.daemon.export import swf_of
    from qbatch.reports.output import whole_file

    jobs: list[records.JobRecord] = []
    after = ""
    while True:
        page = ask(requests.JobStatus(finished="only", subjobs=True, after=after), records.Jobs, socket)
        jobs += [job for job in page.jobs if not job.is_array]
        after = page.next
        if not after:
            break
    hosts = ask(requests.HostStatus(), records.Hosts, socket).hosts
    text, left_out = swf_of(jobs, hosts, page.server)
    if not jobs:
        raise InputError("no job has ended yet: there is nothing to export")
    if output is None:
        sys.stdout.write(text)
    else:
        with whole_file(output) as file:
            file.write(text.encode())
    talk(f"{len(jobs) - left_out} jobs; {left_out} that never ran are left out")
