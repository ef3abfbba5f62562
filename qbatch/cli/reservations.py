"""``qbatch reserve|maintenance|reservations``: hosts that are kept for some jobs, or free of jobs."""

from __future__ import annotations

from datetime import datetime

import typer

from qbatch.cli.console import print_table, talk
from qbatch.cli.daemon_answers import ask, print_json, report_outcomes
from qbatch.model.errors import UsageError
from qbatch.model.machine import fold_names
from qbatch.results.shown import clean, moment, span
from qbatch.wire import requests
from qbatch.wire.records import Outcomes, ReservationRecord, Reservations
from qbatch.wire.resources import parse_duration

_HOSTS = typer.Argument(
    None, metavar="HOST", help='Hosts, such as n1 or "n[01-04]"; all: every host of the pool.'
)
_START = typer.Option(
    "", "--start", help="Begin at this ISO time (without it now), or after a time such as +1:00:00."
)
_DURATION = typer.Option(..., "--duration", help="How long it lasts: seconds or HH:MM:SS.")
_NAME = typer.Option("", "--name", help="A name (as a rule R and a number, or M and a number).")
_REPEAT = typer.Option("", "--repeat", help="Repeat it: hourly, daily, weekday, weekend or weekly.")
_TIMES = typer.Option(0, "--times", min=0, help="Repeat it so often (0: for ever).")
_IGNORE = typer.Option(False, "--ignore-jobs", help="Running jobs may run into it.")
_POOL = typer.Option("", "--pool", help="The pool, if the hosts are not named.")
_JSON = typer.Option(False, "--json", help="Print all fields as JSON.")
_SOCKET = typer.Option(None, "--socket", help="Socket of the daemon.")


def reserve(
    hosts: list[str] = _HOSTS,
    resources: str = typer.Option(
        "",
        "--select",
        "-l",
        help="In place of hosts: chunks that the hosts must hold together, such as 2:ncpus=8.",
    ),
    start: str = _START,
    duration: str = _DURATION,
    name: str = _NAME,
    users: str = typer.Option(
        "", "--users", help="Those who may submit to its queue (as a rule, only you): ann,bob."
    ),
    repeat: str = _REPEAT,
    times: int = _TIMES,
    flexible: bool = typer.Option(
        False, "--flexible", help="Its jobs may also use other hosts, and run before and after it."
    ),
    ignore_jobs: bool = _IGNORE,
    pool: str = _POOL,
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Keep hosts for the jobs of a queue that is named as the reservation is (qsub -q NAME).

    It is refused if jobs may run into it, or another reservation has the hosts then.
    """
    _make(
        requests.Reserve(
            duration=_duration(duration),
            start=_instant(start),
            delay=_delay(start),
            hosts=tuple(hosts or ()),
            resources={"select": resources} if resources else {},
            name=name,
            repeat=repeat,
            times=times,
            users=tuple(user for user in users.split(",") if user),
            pool=pool,
            is_flexible=flexible,
            ignores_jobs=ignore_jobs,
        ),
        socket,
        is_json=json,
    )


def maintenance(
    hosts: list[str] = _HOSTS,
    start: str = _START,
    duration: str = _DURATION,
    name: str = _NAME,
    repeat: str = _REPEAT,
    times: int = _TIMES,
    ignore_jobs: bool = _IGNORE,
    pool: str = _POOL,
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Keep hosts free of jobs for some time: no job starts that may run into it."""
    _make(
        requests.Reserve(
            duration=_duration(duration),
            start=_instant(start),
            delay=_delay(start),
            hosts=tuple(hosts or ()),
            name=name,
            repeat=repeat,
            times=times,
            pool=pool,
            is_maintenance=True,
            ignores_jobs=ignore_jobs,
        ),
        socket,
        is_json=json,
    )


def reservations(
    names: list[str] = typer.Argument(None, metavar="NAME", help="Reservations (without: all)."),
    delete: bool = typer.Option(
        False, "--delete", help="End the named ones, and delete the jobs in their queues."
    ),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Show reservations with their present or next time, or end them."""
    if delete:
        if not names:
            raise UsageError(
                "--delete needs the names of reservations; qbatch reservations lists them"
            )
        said = ask(requests.Unreserve(reservations=tuple(names)), Outcomes, socket)
        if json:
            print_json("outcomes", said)
        raise typer.Exit(report_outcomes(said))
    found = ask(requests.ReservationStatus(reservations=tuple(names or ())), Reservations, socket)
    if json:
        print_json("reservations", found)
    elif found.reservations:
        rows = [_row(each) for each in found.reservations]
        print_table(
            "",
            ["reservation", "state", "hosts", "kind", "users", "start", "end", "repeats"],
            rows,
            left=5,
        )
    elif not found.errors:
        talk("there are no reservations")
    for error in found.errors:
        talk(f"qbatch: {error.message}")
    if found.errors:
        raise typer.Exit(found.errors[-1].exit)


def _row(kept: ReservationRecord) -> list[str]:
    return [
        kept.name,
        kept.state,
        ",".join(fold_names(kept.hosts)),
        "maintenance" if kept.is_maintenance else "flexible" if kept.is_flexible else "jobs",
        clean(",".join(kept.users)) or "-",
        moment(kept.start),
        moment(kept.end),
        (f"{kept.repeat}, {kept.times} times" if kept.times else kept.repeat) or "-",
    ]


def _make(request: requests.Reserve, socket: str | None, *, is_json: bool) -> None:
    made = ask(request, ReservationRecord, socket)
    if is_json:
        print_json("reservation", made)
        return
    typer.echo(made.name)
    where = ", ".join(fold_names(made.hosts))
    use = "no job runs there" if made.is_maintenance else f"submit with qsub -q {made.name}"
    talk(f"{where} from {moment(made.start)} for {span(made.duration)}; {use}")


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--duration {text[:40]!r}: {error}") from None


def _delay(text: str) -> int:
    """Return the time from now of a text that begins with ``+``, in microseconds."""
    try:
        return parse_duration(text[1:]) if text.startswith("+") else 0
    except ValueError as error:
        raise UsageError(f"--start {text[:40]!r}: {error}") from None


def _instant(text: str) -> int | None:
    """Return an instant; None if the text is empty or counts from now."""
    if not text or text.startswith("+"):
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--start {text[:40]!r} is no time; write it as 2026-12-01T08:00, or +1:00:00"
        ) from None
