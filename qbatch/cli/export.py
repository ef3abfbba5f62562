"""``qbatch export``: write a result, job rows, or what ran on the live server, for other
programs."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from qbatch.cli.console import OnlyPolicies, talk
from qbatch.client import ClientSession
from qbatch.distribution import install_command
from qbatch.model.errors import InputError, OutputError, UsageError, suggestion
from qbatch.wire import records, requests

if TYPE_CHECKING:
    from qbatch.results.exports import Exportable
    from qbatch.workloads.side_file import SideText

_NOTHING = "no job has run yet: there is nothing to export"

FORMS = ("parquet", "csv", "swf", "chrome", "batsim", "result")


def export(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORM",
            help=(
                "Format to write: parquet, csv, swf, chrome (for Perfetto), batsim, or result (a "
                "directory)."
            ),
        ),
    ],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help=(
                "DIR or DIR:POLICY of a result, or job rows (.csv, .parquet) [the daemon's "
                "history]."
            ),
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File [stdout], or the directory of a result."),
    ] = None,
    policy: OnlyPolicies = None,
    procs: Annotated[
        int | None,
        typer.Option("--procs", min=1, help="Processors of the machine, if SOURCE is job rows."),
    ] = None,
    socket: Annotated[str | None, typer.Option("--socket", help="Socket of the daemon.")] = None,
) -> None:
    """Write a schedule for other programs: job rows, SWF, a Perfetto trace, Batsim's jobs.csv, or a
    result directory."""
    if form not in FORMS:
        raise UsageError(f"export {form}: use one of {', '.join(FORMS)}{suggestion(form, FORMS)}")
    target = None if output in (None, "-") else output
    if source is not None and socket is not None:
        raise UsageError(f"--socket names a daemon and {source!r} a result: leave one out")
    if source is None and (policy or procs):
        raise UsageError(
            "--policy and --procs are for a result or job rows; name one, or leave them out"
        )
    _check_output(form, source, target)
    from qbatch.results.exports import FORMS as FORMS_OF_EXPORT
    from qbatch.results.exports import Exportable, write_directory
    from qbatch.results.output import make_folder, whole_file
    from qbatch.results.reading import read_named
    from qbatch.results.run_words import left_out_notes, recorded_notes
    from qbatch.workloads.resource_rows import side_file_of

    side = None
    if source is None:
        exported, summary, side = _live(form, socket)
    else:
        result = read_named(source, procs=procs).only(policy or [])
        for note in (*recorded_notes(result), *left_out_notes(result.document)):
            talk(f"note: {note}")
        jobs = sum(int(schedule.ran.sum()) for schedule in result.schedules)
        exported, summary = (
            Exportable(result),
            f"{jobs:,} jobs of {result.name} under {', '.join(result.policies)}",
        )
    losses: list[str] = []
    if form == "result" and target is not None:
        make_folder(target)
        write_directory(target, exported)
    else:
        if target is None:
            FORMS_OF_EXPORT[form].write(sys.stdout.buffer, exported)
            sys.stdout.buffer.flush()
        else:
            with ExitStack() as files:
                # Both files get their names at the end, or none does.
                if side is not None:
                    files.enter_context(whole_file(side_file_of(target))).write(side.content)
                FORMS_OF_EXPORT[form].write(files.enter_context(whole_file(target)), exported)
        losses = FORMS_OF_EXPORT[form].losses(exported)
    talk(f"{target or 'standard output'}: {summary}")
    if side is not None and target is not None:
        talk(f"{side_file_of(target)}: what the jobs ask for; replay takes it with --resources")
    elif side is not None:
        losses = [*losses, "nodes, GPUs and features of jobs are left out; -o LOG writes them too"]
    for loss in losses:
        talk(f"note: {loss}")


def _check_output(form: str, source: str | None, target: str | None) -> None:
    """Refuse, before any work, an output that cannot be written."""
    from importlib.util import find_spec

    from qbatch.results.output import check_folder

    if form == "result" and target is None:
        raise UsageError("a result is a directory: name it with -o DIR")
    if form in ("parquet", "result") and find_spec("pyarrow") is None:
        raise UsageError(f"Parquet needs pyarrow: {install_command('report')}")
    if target is None:
        if form == "parquet" and sys.stdout.isatty():
            raise UsageError("a terminal cannot show Parquet; name a file with -o")
        return
    if source is not None and os.path.realpath(source) == os.path.realpath(target):
        raise UsageError(f"-o {target}: is the source of the export; name another file")
    if form == "result":
        check_folder(target)
        return
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise OutputError(f"{target}: the folder {folder} does not exist; create it first")


def _live(form: str, socket: str | None) -> tuple[Exportable, str, SideText | None]:
    """Ask the daemon for its jobs, page by page; return them in their states at the first request,
    with the side file of a workload log."""
    from qbatch.daemon.export import exportable_of

    jobs: list[records.JobRecord] = []
    now = 0
    with ClientSession(socket) as session:
        for page in session.pages(requests.JobStatus(finished="also", subjobs=True)):
            jobs += [job for job in page.jobs if not job.is_array]
            now = now or page.now
        hosts = session.ask(requests.HostStatus(), records.Hosts).hosts
        log = session.ask(requests.ServerStatus(), records.ServerRecord).log
        queues = session.ask(requests.QueueStatus(), records.Queues).queues

    found = exportable_of(jobs, hosts, page.server, now, log, queues)
    if form == "swf" and (found.running or found.waiting):
        summary = (
            f"{found.ended:,} ended, {found.running:,} running (status 2, run time so far) and "
            f"{found.waiting:,} waiting "
            f"(no wait, no run time); {found.others:,} that never ran or are held are left out"
        )
        return found.exported, summary, found.side
    if not found.ended:
        raise InputError(
            "no job has ended yet: there is nothing to export" if found.running else _NOTHING
        )
    summary = (
        f"{found.ended:,} jobs; {found.others:,} that never "
        f"ran{' or are held' * bool(found.running + found.waiting)}"
    )
    if found.running or found.waiting:
        summary += f", {found.running:,} that run and {found.waiting:,} that wait"
    side = found.side if form == "swf" else None
    return found.exported, f"{summary} are left out", side
