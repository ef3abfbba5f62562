"""``qbatch fault``: inject faults, so that a tool can be tested against a batch system that fails."""

from __future__ import annotations

import typer

from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask, print_json, report_outcomes
from qbatch.model.errors import UsageError
from qbatch.wire import requests
from qbatch.wire.records import Done, Outcomes


def fault(
    kind: str = typer.Argument(..., metavar="KIND", help="One of the kinds below."),
    hosts: list[str] = typer.Argument(None, metavar="HOST", help="Hosts of host-down and host-up."),
    count: int = typer.Option(-1, "--count", "-n", help="How often the fault occurs [until qbatch fault clear]."),
    seconds: float = typer.Option(0.0, "--seconds", help="For status-slow: how long an answer takes."),
    status: int = typer.Option(1, "--status", help="For job-exit: the exit status that is reported."),
    pattern: str = typer.Option("", "--pattern", help="Only jobs with a name that this regular expression matches."),
    message: str = typer.Option("", "--message", help="For submit-refused and status-failed: text of the error."),
    json: bool = typer.Option(False, "--json", help="Print the answer as JSON."),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Inject faults on demand, to test a tool against a batch system that fails.  KIND is one of:

    submit-refused: qsub fails (exit 162) and queues nothing.

    status-failed: qstat fails (exit 162).

    status-slow: qstat answers after --seconds.

    job-exit: a job that ends by itself reports --status, whatever its script returned.

    job-lost: a job that ends by itself is reported as lost with its host.  It runs again; if it may not
    (qsub -r n), it ends with status -12.

    host-down HOST...: the hosts fail and their jobs are lost (they run again, or end with status -12 if they may not).

    host-up HOST...: the hosts come back.

    clear: remove all faults (hosts stay as they are).
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
