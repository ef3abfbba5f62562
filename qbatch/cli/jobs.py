"""``qbatch jobs``: show the jobs as a table or as JSON, selected, sorted, watched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import typer

from qbatch.cli.console import print_table, talk
from qbatch.cli.daemon_answers import print_json, read_states, report_errors
from qbatch.client import ClientSession
from qbatch.model.errors import UsageError, suggestion
from qbatch.results.shown import clean, is_cancelled, moment, status_of, wait_of, waited
from qbatch.wire.errors import ErrorRecord
from qbatch.wire.identifiers import parse_id
from qbatch.wire.pieces import procs_now, procs_text
from qbatch.wire.records import JobRecord
from qbatch.wire.requests import JobStatus
from qbatch.wire.resources import parse_duration, parse_size

COLUMNS: dict[str, Callable[[JobRecord, int], str]] = {
    "id": lambda job, now: job.id,
    "name": lambda job, now: clean(job.name)[:24],
    "user": lambda job, now: clean(job.user),
    "queue": lambda job, now: job.queue,
    "state": lambda job, now: job.state,
    "procs": lambda job, now: procs_text(job),
    "asked": lambda job, now: job.resources.get("ncpus", "-"),
    "chunks": lambda job, now: job.resources.get("nodect", "-"),
    "walltime": lambda job, now: job.resources.get("walltime", "-"),
    "memory": lambda job, now: job.resources.get("mem", "-"),
    "waited": wait_of,
    "started": lambda job, now: moment(job.started),
    "ended": lambda job, now: moment(job.ended),
    "submitted": lambda job, now: moment(job.submitted),
    "status": lambda job, now: status_of(job),
    "hosts": lambda job, now: job.exec_host or "-",
    "priority": lambda job, now: str(job.priority),
    "estimate": lambda job, now: moment(job.estimated_start),
    "promised": lambda job, now: moment(job.promised),
    "comment": lambda job, now: (
        clean(job.comment)[:70] or ("cancelled" if is_cancelled(job) else "-")
    ),
}
"""The columns that ``--columns`` accepts."""

DEFAULT = "id,name,user,queue,state,procs,walltime,waited,comment"


def jobs(
    identifiers: list[str] = typer.Argument(None, metavar="JOB", help="Show only these jobs."),
    finished: bool = typer.Option(False, "--finished", "-x", help="Show finished jobs too."),
    user: list[str] = typer.Option([], "--user", "-u", help="Show only jobs of this user."),
    queue: list[str] = typer.Option([], "--queue", "-q", help="Show only jobs in this queue."),
    state: str = typer.Option(
        "",
        "--state",
        "-s",
        callback=read_states,
        help="Show only jobs in these states, such as QH.",
    ),
    where: list[str] = typer.Option(
        [], "--where", help="Show only jobs with this value, such as name=run1 or procs=4."
    ),
    subjobs: bool = typer.Option(False, "--subjobs", "-t", help="Show each job of an array."),
    columns: str = typer.Option(
        DEFAULT, "--columns", "-c", help=f"Columns to show: {', '.join(COLUMNS)}."
    ),
    sort: str = typer.Option("", "--sort", help="Sort by this column."),
    limit: int = typer.Option(0, "--limit", help="Show at most this many jobs (0: all)."),
    json: bool = typer.Option(False, "--json", help="Print all fields as JSON."),
    ids: bool = typer.Option(False, "--ids", help="Print only identifiers, one per line."),
    watch: float = typer.Option(
        0.0, "--watch", metavar="SECONDS", help="Show again after each change, at most this often."
    ),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Show the active jobs, or with --finished all jobs."""
    chosen = [name.strip() for name in columns.split(",") if name.strip()]
    conditions = [_condition(text) for text in where]
    for name in [*chosen, *([sort] if sort else []), *(name for name, _ in conditions)]:
        if name not in COLUMNS:
            raise UsageError(
                f"there is no column {name!r}{suggestion(name, COLUMNS)} (known: "
                f"{', '.join(COLUMNS)})"
            )
    request = JobStatus(
        jobs=tuple(identifiers or ()),
        finished="also" if finished or identifiers else "no",
        users=tuple(user),
        queues=tuple(queue),
        states=state,
        subjobs=subjobs,
        with_estimates="estimate" in chosen,
    )
    while True:
        listed: list[JobRecord] = []
        errors: list[ErrorRecord] = []
        with ClientSession(socket) as session:
            for page in session.pages(request):
                listed += page.jobs
                errors += page.errors
                if limit and len(listed) >= limit and not conditions and not sort:
                    break
        now = page.now
        found = [job for job in listed if all(_has(job, now, *each) for each in conditions)]
        if sort:
            found.sort(key=lambda job: _order(job, now, sort))
        found = found[:limit] if limit else found
        if watch and sys.stdout.isatty():
            sys.stdout.write("\x1b[H\x1b[2J")
        if ids:
            sys.stdout.write("".join(f"{job.id}\n" for job in found))
        elif json:
            print_json("jobs", {"now": now, "server": page.server, "jobs": found})
        elif found:
            print_table(
                "", chosen, [[COLUMNS[name](job, now) for name in chosen] for job in found], left=5
            )
        else:
            talk(
                "no jobs"
                if finished or identifiers
                else "no active jobs; finished ones: qbatch jobs --finished"
            )
        code = report_errors(errors)
        if not watch:
            raise typer.Exit(code)
        begin = time.monotonic()
        with ClientSession(socket) as session:
            next(session.events(), None)
        time.sleep(max(watch - (time.monotonic() - begin), 0.0))


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--where {text}: write COLUMN=VALUE")
    return name.strip(), value.strip()


def _has(job: JobRecord, now: int, name: str, value: str) -> bool:
    """Whether a column has a value: as the table shows it, or as the number of processors of the
    job."""
    return value == COLUMNS[name](job, now) or (name == "procs" and value == str(procs_now(job)))


def _order(job: JobRecord, now: int, name: str) -> tuple[bool, tuple[int, ...], str]:
    """Return the sort key of a column: numbers, durations, sizes and instants by value, before
    texts."""
    text = COLUMNS[name](job, now)
    try:
        return False, _NUMBERS[name](job, now) if name in _NUMBERS else (int(text),), ""
    except (KeyError, ValueError):  # there is no number
        return True, (), text


_NUMBERS: dict[str, Callable[[JobRecord, int], tuple[int, ...]]] = {
    "id": lambda job, now: parse_id(job.id),
    "procs": lambda job, now: (procs_now(job),),
    "walltime": lambda job, now: (parse_duration(job.resources["walltime"]),),
    "memory": lambda job, now: (parse_size(job.resources["mem"]),),
    "waited": lambda job, now: (waited(job, now) or 0,),
}
"""Sort keys of the columns that do not sort by their texts; other columns sort as numbers, if they
are numbers."""
