"""``qbatch delete|hold|release|rerun|move|signal|queue|host|fault``: commands that change jobs,
queues and hosts."""

from __future__ import annotations

from typing import NoReturn

import typer

from qbatch.cli import completion
from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask, print_json, read_states, report_outcomes
from qbatch.client import ClientSession
from qbatch.model.errors import UsageError
from qbatch.wire import requests
from qbatch.wire.records import Done, Outcomes
from qbatch.wire.requests import JobStatus, Request

_IDENTIFIERS = typer.Argument(None, metavar="JOB", help="Identifiers of jobs.")
_USER = typer.Option("", "--user", "-u", help="Select all active jobs of this user.")
_QUEUE = typer.Option("", "--queue", "-q", help="Select all active jobs in this queue.")
_STATE = typer.Option(
    "",
    "--state",
    "-s",
    callback=read_states,
    help="Select all active jobs in these states (letters).",
)
_JSON = typer.Option(False, "--json", help="Print the outcomes as JSON.")
_SOCKET = typer.Option(None, "--socket", help="Socket of the daemon.")


def _chosen(
    names: list[str] | None, user: str, queue: str, state: str, socket: str | None
) -> tuple[str, ...]:
    """Return the jobs of a command: those named, or those that the selectors match."""
    if names and (user or queue or state):
        raise UsageError("name jobs or select them, not both")
    if names:
        return tuple(names)
    if not (user or queue or state):
        raise UsageError("name at least one job, or select with --user, --queue or --state")
    request = JobStatus(
        users=(user,) if user else (),
        queues=(queue,) if queue else (),
        states=state,
        is_brief=True,
        limit=1000,
    )
    with ClientSession(socket) as session:
        return tuple(job.id for job in session.jobs(request))


def _carry_out(request: Request, socket: str | None, *, is_json: bool) -> NoReturn:
    said = ask(request, Outcomes, socket)
    if is_json:
        print_json("outcomes", said)
    raise typer.Exit(report_outcomes(said))


def delete(
    identifiers: list[str] = _IDENTIFIERS,
    user: str = _USER,
    queue: str = _QUEUE,
    state: str = _STATE,
    force: bool = typer.Option(
        False, "--force", help="Remove the job at once, without waiting for its end."
    ),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Delete jobs: a waiting job leaves its queue; a running job gets TERM, then KILL."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Delete(jobs=jobs, is_forced=force), socket, is_json=json)


def hold(
    identifiers: list[str] = _IDENTIFIERS,
    user: str = _USER,
    queue: str = _QUEUE,
    state: str = _STATE,
    kinds: str = typer.Option(
        "u", "--kinds", help="Kinds of hold: u, o, s (user, operator, system)."
    ),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Hold jobs: they do not start until they are released."""
    _carry_out(
        requests.Hold(jobs=_chosen(identifiers, user, queue, state, socket), kinds=kinds),
        socket,
        is_json=json,
    )


def release(
    identifiers: list[str] = _IDENTIFIERS,
    user: str = _USER,
    queue: str = _QUEUE,
    state: str = _STATE,
    kinds: str = typer.Option(
        "u", "--kinds", help="Kinds of hold: u, o, s (user, operator, system)."
    ),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Release held jobs."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Release(jobs=jobs, kinds=kinds), socket, is_json=json)


def rerun(
    identifiers: list[str] = _IDENTIFIERS,
    user: str = _USER,
    queue: str = _QUEUE,
    state: str = _STATE,
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Stop running jobs and queue them again."""
    _carry_out(
        requests.Rerun(jobs=_chosen(identifiers, user, queue, state, socket)), socket, is_json=json
    )


def move(
    destination: str = typer.Argument(
        ..., metavar="QUEUE", autocompletion=completion.queues, help="Destination queue."
    ),
    identifiers: list[str] = _IDENTIFIERS,
    user: str = _USER,
    queue: str = _QUEUE,
    state: str = _STATE,
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Move waiting jobs to another queue."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Move(jobs=jobs, destination=destination), socket, is_json=json)


def signal(
    name: str = typer.Argument(
        ..., metavar="SIGNAL", help="Signal such as TERM or USR1, or suspend or resume."
    ),
    identifiers: list[str] = _IDENTIFIERS,
    user: str = _USER,
    queue: str = _QUEUE,
    state: str = _STATE,
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Send a signal to running jobs."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Signal(jobs=jobs, signal=name), socket, is_json=json)


def queue(
    action: str = typer.Argument(
        ..., metavar="ACTION", help="One of enable, disable, start, stop."
    ),
    names: list[str] = typer.Argument(
        ..., metavar="QUEUE", autocompletion=completion.queues, help="Names of queues."
    ),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Open and close queues: enable or disable submission, start or stop execution."""
    changes = {
        "enable": {"enabled": True},
        "disable": {"enabled": False},
        "start": {"started": True},
        "stop": {"started": False},
    }
    if action not in changes:
        raise UsageError(f"{action!r} is no action on a queue (known: {', '.join(changes)})")
    _carry_out(requests.QueueControl(queues=tuple(names), **changes[action]), socket, is_json=json)


def host(
    action: str = typer.Argument(
        ..., metavar="ACTION", help="One of drain, resume, down, up, comment."
    ),
    names: list[str] = typer.Argument(
        ...,
        metavar="HOST",
        autocompletion=completion.hosts,
        help='Hosts, such as n1 or "n[01-08]".',
    ),
    comment: str | None = typer.Option(None, "--comment", help="Comment that pbsnodes shows."),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Drain hosts, take them down, or bring them back."""
    from qbatch.model.machine import expand_names

    try:
        hosts = tuple(each for name in names for each in expand_names(name))
    except ValueError as error:
        raise UsageError(str(error)) from None
    _carry_out(
        requests.HostControl(hosts=hosts, action=action, comment=comment), socket, is_json=json
    )


def fault(
    kind: str = typer.Argument(..., metavar="KIND", help="One of the kinds below."),
    hosts: list[str] = typer.Argument(None, metavar="HOST", help="Hosts of host-down and host-up."),
    count: int = typer.Option(
        -1, "--count", "-n", help="How often the fault occurs [until qbatch fault clear]."
    ),
    seconds: float = typer.Option(
        0.0, "--seconds", help="For status-slow: how long an answer takes."
    ),
    status: int = typer.Option(
        1, "--status", help="For job-exit: the exit status that is reported."
    ),
    pattern: str = typer.Option(
        "", "--pattern", help="Only jobs with a name that this regular expression matches."
    ),
    message: str = typer.Option(
        "", "--message", help="For submit-refused and status-failed: text of the error."
    ),
    json: bool = typer.Option(False, "--json", help="Print the answer as JSON."),
    socket: str | None = _SOCKET,
) -> None:
    """Inject faults on demand, to test a tool against a batch system that fails.  KIND is one of:

    submit-refused: qsub fails (exit 162) and queues nothing.

    status-failed: qstat fails (exit 162).

    status-slow: qstat answers after --seconds.

    job-exit: a job that ends by itself reports --status, whatever its script returned.

    job-lost: a job that ends by itself is reported as lost with its host.  It runs again; if it may
    not (qsub -r n), it ends with status -12.

    host-down HOST...: the hosts fail and their jobs are lost (they run again, or end with status
    -12 if they may not).

    host-up HOST...: the hosts come back.

    clear: remove all faults (hosts stay as they are).
    """
    if kind in ("host-down", "host-up"):
        if not hosts:
            raise UsageError(f"{kind} needs the names of hosts (see qbatch hosts)")
        _carry_out(
            requests.HostControl(hosts=tuple(hosts), action=kind.removeprefix("host-")),
            socket,
            is_json=json,
        )
    if hosts:
        raise UsageError(f"{kind} takes no hosts")
    if kind == "status-slow" and not seconds:
        raise UsageError("status-slow needs --seconds")
    request = requests.Fault(
        kind=kind, count=count, seconds=seconds, status=status, pattern=pattern, message=message
    )
    done = ask(request, Done, socket)
    if json:
        print_json("done", done)
    else:
        talk(done.text)
