"""``qbatch delete|hold|release|rerun|move|signal|queue|host``: commands that change jobs, queues and hosts."""

from __future__ import annotations

import typer

from qbatch.cli import completion
from qbatch.cli.daemon_answers import ask, print_json, read_states, report_outcomes
from qbatch.client import ClientSession
from qbatch.model.errors import UsageError
from qbatch.wire import requests
from qbatch.wire.records import Outcomes
from qbatch.wire.requests import JobStatus, Request

_IDENTIFIERS = typer.Argument(None, metavar="JOB", help="Identifiers of jobs.")
_USER = typer.Option("", "--user", "-u", help="Select all active jobs of this user.")
_QUEUE = typer.Option("", "--queue", "-q", help="Select all active jobs in this queue.")
_STATE = typer.Option("", "--state", "-s", callback=read_states, help="Select all active jobs in these states (letters).")
_JSON = typer.Option(False, "--json", help="Print the outcomes as JSON.")
_SOCKET = typer.Option(None, "--socket", help="Socket of the daemon.")


def _chosen(names: list[str] | None, user: str, queue: str, state: str, socket: str | None) -> tuple[str, ...]:
    """Return the jobs of a command: those named, or those that the selectors match."""
    if names and (user or queue or state):
        raise UsageError("name jobs or select them, not both")
    if names:
        return tuple(names)
    if not (user or queue or state):
        raise UsageError("name at least one job, or select with --user, --queue or --state")
    request = JobStatus(
        users=(user,) if user else (), queues=(queue,) if queue else (), states=state, is_brief=True, limit=1000
    )
    with ClientSession(socket) as session:
        return tuple(job.id for job in session.jobs(request))


def _carry_out(request: Request, socket: str | None, *, is_json: bool) -> None:
    said = ask(request, Outcomes, socket)
    if is_json:
        print_json("outcomes", said)
    raise typer.Exit(report_outcomes(said))


def delete(
    identifiers: list[str] = _IDENTIFIERS, user: str = _USER, queue: str = _QUEUE, state: str = _STATE,
    force: bool = typer.Option(False, "--force", help="Remove the job at once, without waiting for its end."),
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Delete jobs: a waiting job leaves its queue; a running job gets TERM, then KILL."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Delete(jobs=jobs, is_forced=force), socket, is_json=json)


def hold(
    identifiers: list[str] = _IDENTIFIERS, user: str = _USER, queue: str = _QUEUE, state: str = _STATE,
    kinds: str = typer.Option("u", "--kinds", help="Kinds of hold: u, o, s (user, operator, system)."),
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Hold jobs: they do not start until they are released."""
    _carry_out(requests.Hold(jobs=_chosen(identifiers, user, queue, state, socket), kinds=kinds), socket, is_json=json)


def release(
    identifiers: list[str] = _IDENTIFIERS, user: str = _USER, queue: str = _QUEUE, state: str = _STATE,
    kinds: str = typer.Option("u", "--kinds", help="Kinds of hold: u, o, s (user, operator, system)."),
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Release held jobs."""
    _carry_out(
        requests.Release(jobs=_chosen(identifiers, user, queue, state, socket), kinds=kinds), socket, is_json=json
    )


def rerun(
    identifiers: list[str] = _IDENTIFIERS, user: str = _USER, queue: str = _QUEUE, state: str = _STATE,
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Stop running jobs and queue them again."""
    _carry_out(requests.Rerun(jobs=_chosen(identifiers, user, queue, state, socket)), socket, is_json=json)


def move(
    destination: str = typer.Argument(..., metavar="QUEUE", autocompletion=completion.queues, help="Destination queue."),
    identifiers: list[str] = _IDENTIFIERS, user: str = _USER, queue: str = _QUEUE, state: str = _STATE,
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Move waiting jobs to another queue."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Move(jobs=jobs, destination=destination), socket, is_json=json)


def signal(
    name: str = typer.Argument(..., metavar="SIGNAL", help="Signal such as TERM or USR1, or suspend or resume."),
    identifiers: list[str] = _IDENTIFIERS, user: str = _USER, queue: str = _QUEUE, state: str = _STATE,
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Send a signal to running jobs."""
    jobs = _chosen(identifiers, user, queue, state, socket)
    _carry_out(requests.Signal(jobs=jobs, signal=name), socket, is_json=json)


def queue(
    action: str = typer.Argument(..., metavar="ACTION", help="One of enable, disable, start, stop."),
    names: list[str] = typer.Argument(..., metavar="QUEUE", autocompletion=completion.queues, help="Names of queues."),
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
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
    action: str = typer.Argument(..., metavar="ACTION", help="One of drain, resume, down, up, comment."),
    names: list[str] = typer.Argument(
        ..., metavar="HOST", autocompletion=completion.hosts, help='Hosts, such as n1 or "n[01-08]".'
    ),
    comment: str | None = typer.Option(None, "--comment", help="Comment that pbsnodes shows."),
    json: bool = _JSON, socket: str | None = _SOCKET,
) -> None:  # fmt: skip
    """Drain hosts, take them down, or bring them back."""
    from qbatch.model.machine import expand_names

    try:
        hosts = tuple(each for name in names for each in expand_names(name))
    except ValueError as error:
        raise UsageError(str(error)) from None
    _carry_out(requests.HostControl(hosts=hosts, action=action, comment=comment), socket, is_json=json)
