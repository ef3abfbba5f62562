"""``qbatch fault``: make things go wrong on demand, so that a tool can be tested against a batch system that fails."""

from __future__ import annotations

import typer

from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask, print_json, report_outcomes
from qbatch.model.errors import UsageError
from qbatch.wire import requests
from qbatch.wire.records import Done, Outcomes


def fault(
    kind: str = typer.Argument(..., metavar="KIND", help="See below."),
    hosts: list[str] = typer.Argument(None, metavar="HOST", help="For host-down and host-up."),
    count: int = typer.Option(-1, "--count", "-n", help="How often it strikes; without it, until qbatch fault clear."),
    seconds: float = typer.Option(0.0, "--seconds", help="status-slow: how long an answer takes."),
    status: int = typer.Option(1, "--status", help="job-exit: the exit status that is reported."),
    pattern: str = typer.Option("", "--pattern", help="Only jobs whose name this regular expression finds."),
    message: str = typer.Option("", "--message", help="submit-refused, status-failed: what is said."),
    json: bool = typer.Option(False, "--json", help="The answer as JSON."),
    socket: str | None = typer.Option(None, "--socket", help="The daemon's socket."),
) -> None:
    """Make things go wrong on demand, to test a tool against it.  KIND is one of:

    submit-refused: qsub fails (exit 162), nothing is queued.

    status-failed: qstat fails (exit 162).

    status-slow: qstat answers after --seconds.

    job-exit: a job that ends by itself ends with --status, whatever its script said.

    job-lost: a job that ends by itself is reported as lost with its host: it runs again, or, if it may not
    (qsub -r n), ends with status -12.

    host-down HOST...: the hosts die; their jobs are lost (they run again, or end with status -12 if they may not).

    host-up HOST...: the hosts are back.

    clear: no faults any more (hosts stay as they are).
    """
    if kind in ("host-down", "host-up"):
        if not hosts:
            raise UsageError(f"{kind} needs the names of hosts (see qbatch hosts)")
        action = kind.removeprefix("host-")
        said = ask(requests.HostControl(hosts=tuple(hosts), action=action), Outcomes, socket)
        if json:
            print_json("outcomes", said)
        raise typer.Exit(report_outcomes(said))
    if hosts:
        raise UsageError(f"{kind} takes no hosts")
    if kind == "status-slow" and not seconds:
        raise UsageError("status-slow needs --seconds")
    request = requests.Fault(
        kind=kind, count=count, seconds=seconds, status=status, pattern=pattern, message=message
    )  # fmt: skip
    done = ask(request, Done, socket)
    if json:
        print_json("done", done)
    else:
        talk(done.text)
