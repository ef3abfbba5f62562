"""``qbatch status|queues|hosts|explain|forecast|history|time|reload|check|backup|restore``: the
daemon and its store."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import typer

from qbatch.cli.console import print_table, talk
from qbatch.cli.daemon_answers import ask, print_json
from qbatch.cli.which_daemon import STATE
from qbatch.model.errors import UsageError
from qbatch.results.shown import clean, moment, span, status_of, wait_of
from qbatch.wire import paths, records, requests
from qbatch.wire.resources import format_size

_JSON = typer.Option(False, "--json", help="Print all fields as JSON.")
_SOCKET = typer.Option(None, "--socket", help="Socket of the daemon.")


def status(
    json: bool = _JSON,
    prometheus: bool = typer.Option(
        False, "--prometheus", help="Print metrics in the Prometheus text format instead."
    ),
    socket: str | None = _SOCKET,
) -> None:
    """Show the state of the server: its clock, its jobs by state, its policy and files, and what is
    wrong."""
    if prometheus:
        sys.stdout.write(ask(requests.Metrics(), records.Text, socket).text)
        return
    server = ask(requests.ServerStatus(), records.ServerRecord, socket)
    if json:
        print_json("server", server)
        return
    clock = server.clock or records.ClockRecord(mode="real", now=0)
    speed = (
        ""
        if clock.mode == "real"
        else " as fast as it can"
        if not clock.speed
        else f" x{clock.speed:g}"
    )
    log = (
        ""
        if clock.log_jobs is None
        else f", {clock.log_arrived} of {clock.log_jobs} jobs of the log have arrived"
    )
    counts = (
        ", ".join(f"{count} {letter}" for letter, count in sorted(server.counts.items())) or "none"
    )
    lines = [
        (
            "server",
            f"{server.name} (qbatch {server.version}, process {server.pid}), {server.state}",
        ),
        (
            "time",
            (
                f"{clock.mode}{speed}{', paused' if clock.is_paused else ''}, now "
                f"{moment(clock.now)}{log}"
            ),
        ),
        ("jobs", counts),
        ("policy", server.policy + ("" if server.is_compiled else " (plain kernels so far)")),
        ("executor", server.executor),
        ("socket", server.socket),
        ("store", server.store),
        ("configuration", server.config),
    ]
    # The current one and its end, those that follow, and the jobs on disk.
    for phase in server.phases:
        text = phase.name
        if phase.until is not None:
            turns = "".join(
                f"; {name} jobs from {moment(at)}" for name, at in phase.following.items()
            )
            count, jobs = phase.on_disk, "job" if phase.on_disk == 1 else "jobs"
            disk = f"; {count} {jobs} on disk ({phase.procs_on_disk} processors)" if count else ""
            text = f"{phase.name} until {moment(phase.until)}{turns}{disk}"
        lines.append(("slice" if len(server.phases) == 1 else phase.pool, text))
    if error := server.forecast_error:
        text = f"off by {error['mean_absolute_s']:.0f} s on average over {error['count']:.0f} jobs"
        lines.append(("forecasts", text))
    lines += [("problem", problem) for problem in server.problems]
    for name, text in lines:
        sys.stdout.write(f"{name + ':':<15}{text}\n")


def queues(json: bool = _JSON, socket: str | None = _SOCKET) -> None:
    """Show the queues."""
    said = ask(requests.QueueStatus(), records.Queues, socket)
    if json:
        print_json("queues", said)
        return
    rows = []
    for queue in said.queues:
        count = queue.counts.get
        limits = [
            f"{name} {value}"
            for name, value in (
                ("running", queue.max_running),
                ("per user", queue.max_running_per_user),
                ("procs", queue.max_procs),
                ("queued", queue.max_queued),
            )
            if value is not None
        ]
        if queue.max_walltime is not None:
            limits.append(f"walltime {span(queue.max_walltime)}")
        rows.append(
            [
                queue.name,
                queue.pool,
                "yes" if queue.enabled else "no",
                "yes" if queue.started else "no",
                str(count("Q", 0)),
                str(count("R", 0)),
                str(count("H", 0)),
                queue.policy,
                ", ".join(limits) or "-",
            ]
        )
    headings = [
        "queue",
        "pool",
        "enabled",
        "started",
        "queued",
        "running",
        "held",
        "policy",
        "limits",
    ]
    print_table("", headings, rows, left=4)


def hosts(json: bool = _JSON, socket: str | None = _SOCKET) -> None:
    """Show the hosts and what runs on them."""
    said = ask(requests.HostStatus(), records.Hosts, socket)
    if json:
        print_json("hosts", said)
        return
    has_queues = any(host.queue is not None for host in said.hosts)
    rows = [
        [
            host.name,
            host.pool,
            host.state,
            f"{host.cpus_used}/{host.cpus}",
            f"{format_size(host.memory_used)}/{format_size(host.memory)}" if host.memory else "-",
            _first_of(host.jobs),
            *([_first_of(host.queue or ())] if has_queues else []),
            clean(host.comment) or "-",
        ]
        for host in said.hosts
    ]
    titles = [
        "host",
        "pool",
        "state",
        "cpus",
        "memory",
        "jobs",
        *(["queue"] if has_queues else []),
        "comment",
    ]
    print_table("", titles, rows, left=3)


def _first_of(names: tuple[str, ...]) -> str:
    return " ".join(names[:4]) + (f" +{len(names) - 4}" if len(names) > 4 else "") or "-"


def explain(
    job: str = typer.Argument(..., metavar="JOB", help="Identifier of a job or a reservation."),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Explain why a job waits and when it is expected to start, or what a reservation keeps."""
    said = ask(requests.Explain(job=job), records.Explanation, socket)
    if json:
        print_json("explanation", said)
        return
    what = "reservation" if said.code == "reservation" else "job"
    sys.stdout.write(f"{what} {said.job} ({said.state}): {clean(said.text)}\n")
    if said.blocked_by:
        sys.stdout.write(f"ahead of it: {', '.join(said.blocked_by)}\n")
    if said.promised is not None:
        sys.stdout.write(
            f"promised to start by {moment(said.promised)}, in {span(said.promised - said.now)}\n"
        )
    if said.estimated_start is not None:
        at, in_ = moment(said.estimated_start), span(said.estimated_start - said.now)
        sys.stdout.write(f"expected to start {at}, in {in_}\n")
    elif said.no_estimate:
        sys.stdout.write(f"no forecast: {clean(said.no_estimate)}\n")
    sys.stdout.write(f"said by {said.said_by} ({said.code})\n")


def forecast(json: bool = _JSON, socket: str | None = _SOCKET) -> None:
    """Show when every waiting job is expected to start, if nothing else is submitted."""
    said = ask(requests.Forecast(), records.Forecasts, socket, timeout=600.0)
    if json:
        print_json("forecasts", said)
        return
    expected = [each for each in said.jobs if each.start is not None]
    rows = [
        [each.job, moment(each.start), span((each.start or 0) - said.made), moment(each.end)]
        for each in expected
    ]
    headings = _with_deadlines(
        ["job", "start", "in", "end"], rows, [each.deadline for each in expected], 4
    )
    print_table("", headings, rows, left=2)
    others = [[each.job, each.code, clean(each.reason)] for each in said.jobs if each.start is None]
    if others:
        print_table("", ["job", "no forecast", "because"], others, left=3)
    if said.error_mean is not None:
        talk(
            f"forecasts so far were off by {said.error_mean:.0f} s on average ({said.error_count} "
            "jobs)"
        )


def _with_deadlines(
    headings: list[str], rows: list[list[str]], deadlines: list[int | None], place: int
) -> list[str]:
    """Put a column of deadlines into rows, if any job has one; return the headings with it."""
    if all(each is None for each in deadlines):
        return headings
    for row, deadline in zip(rows, deadlines, strict=True):
        row.insert(place, moment(deadline))
    return [*headings[:place], "deadline", *headings[place:]]


def history(
    user: str = typer.Option("", "--user", "-u", help="Show only jobs of this user."),
    queue: str = typer.Option("", "--queue", "-q", help="Show only jobs in this queue."),
    name: str = typer.Option(
        "", "--name", help="Show only jobs with this name; * and ? are wildcards."
    ),
    status_: str = typer.Option(
        "", "--exit", help="Show only jobs with this exit status, or failed ones."
    ),
    since: str = typer.Option(
        "", "--since", help="Show only jobs that ended at or after this day or time (ISO)."
    ),
    until: str = typer.Option(
        "", "--until", help="Show only jobs that ended before this day or time (ISO)."
    ),
    limit: int = typer.Option(50, "--limit", min=1, help="Show at most this many jobs."),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Search all jobs that have ended; the latest come first."""
    request = requests.History(
        users=(user,) if user else (),
        queues=(queue,) if queue else (),
        name=name,
        status=status_,
        since=_instant(since, "--since"),
        until=_instant(until, "--until"),
        limit=limit,
    )
    found: list[records.JobRecord] = []
    while True:
        request = msgspec.structs.replace(request, limit=min(limit - len(found), 1000))
        page = ask(request, records.Jobs, socket)
        found += page.jobs
        if not page.next or len(found) >= limit:
            break
        request = msgspec.structs.replace(request, after=page.next)
    said = msgspec.structs.replace(page, jobs=tuple(found))
    if json:
        print_json("history", said)
        return
    rows = [
        [
            job.id,
            clean(job.name)[:24],
            job.user,
            job.queue,
            job.resources.get("ncpus", "-"),
            moment(job.submitted),
            wait_of(job, said.now),
            moment(job.ended),
            status_of(job),
        ]
        for job in said.jobs
    ]
    if not rows:
        talk("no ended job matches")
        return
    headings = ["id", "name", "user", "queue", "procs", "submitted", "waited", "ended", "status"]
    print_table(
        "", _with_deadlines(headings, rows, [job.deadline for job in said.jobs], 8), rows, left=4
    )
    if said.next:
        talk(f"there are more; show them with --limit {limit * 10}, or narrow the search")


def _instant(text: str, option: str) -> int | None:
    from datetime import datetime

    if not text:
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6)
    except ValueError:
        raise UsageError(
            f"{option} {text}: write a day or a time, such as 2026-11-20 or 2026-11-20T08:00"
        ) from None


def time(
    action: str = typer.Argument(
        "show",
        metavar="ACTION",
        help="One of show, pause, play, step, speed, until, until-start, until-end, until-count.",
    ),
    value: str = typer.Argument(
        "",
        metavar="VALUE",
        help="Speed, instant in seconds (of the clock, or of the log), job, or count.",
    ),
    json: bool = _JSON,
    socket: str | None = _SOCKET,
) -> None:
    """Control scaled and virtual time."""
    given: dict[str, object] = {}
    try:
        if action in ("speed", "play") and value:
            given["speed"] = float(value.removeprefix("x"))
        elif action == "until":
            given["at"] = round(float(value) * 1e6)
        elif action == "until-count":
            given["count"] = int(value)
        elif action in ("until-start", "until-end"):
            given["job"] = value
    except ValueError:
        raise UsageError(f"time {action} {value}: write a number") from None
    said = ask(requests.Time(action=action, **given), records.ClockRecord, socket)  # type: ignore[arg-type]
    if json:
        print_json("clock", said)
        return
    speed = (
        ""
        if said.mode == "real"
        else ", as fast as it can"
        if not said.speed
        else f", x{said.speed:g}"
    )
    until = f", until {said.until}" if said.until else ""
    log = (
        f", {said.log_arrived} of {said.log_jobs} jobs of the log"
        if said.log_jobs is not None
        else ""
    )
    sys.stdout.write(
        f"{said.mode}{speed}{', paused' if said.is_paused else ''}{until}: {said.now / 1e6:.6f} s "
        f"({moment(said.now)}){log}\n"
    )


def reload(socket: str | None = _SOCKET) -> None:
    """Make the daemon read its configuration again; it takes all of the new one, or prints what is
    wrong with it."""
    sys.stdout.write(ask(requests.Reload(), records.Text, socket).text + "\n")


def check(socket: str | None = _SOCKET) -> None:
    """Check the store, every row of it, and the invariants of the running state."""
    sys.stdout.write(ask(requests.Check(), records.Text, socket, timeout=600.0).text)


def backup(
    file: Path = typer.Argument(..., metavar="FILE", help="File to create."),
    socket: str | None = _SOCKET,
) -> None:
    """Write a complete and consistent copy of the store while the daemon runs."""
    talk(ask(requests.Backup(path=os.path.abspath(file)), records.Done, socket, timeout=600.0).text)


def restore(
    file: Path = typer.Argument(..., metavar="FILE", help="A file that qbatch backup wrote."),
    state: Path | None = STATE,
) -> None:
    """Replace the store with a backup and keep the old store next to it.  The daemon must not
    run."""
    from qbatch.daemon.restore import restore_backup

    talk(restore_backup(file, paths.state_directory()))
