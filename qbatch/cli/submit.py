"""``qbatch submit``: queue a job, with plain options or as a PBS script; ``qbatch wait``: wait for
jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from qbatch.cli.console import talk
from qbatch.cli.daemon_answers import ask, print_json, report_outcomes
from qbatch.model.errors import InputError, UsageError
from qbatch.wire.records import Outcomes, SubmissionRecord
from qbatch.wire.requests import Spec, Submit, Wait


def submit(
    command: list[str] = typer.Argument(
        None, metavar="SCRIPT|-- COMMAND", help="Script, - for stdin, or a command after --."
    ),
    name: str = typer.Option("", "--name", "-N", help="Name of the job."),
    queue: str = typer.Option("", "--queue", "-q", help="Queue of the job."),
    procs: int = typer.Option(0, "--procs", "-n", help="Processors on one host."),
    memory: str = typer.Option("", "--memory", "-m", help="Memory, such as 2gb."),
    walltime: str = typer.Option(
        "", "--walltime", "-t", help="Walltime in seconds, MM:SS or HH:MM:SS."
    ),
    resource: list[str] = typer.Option(
        [], "--resource", "-l", help="PBS resources, such as select=2:ncpus=4."
    ),
    output: str = typer.Option("", "--output", "-o", help="File for the output."),
    error: str = typer.Option("", "--error", "-e", help="File for the errors."),
    depend: str = typer.Option("", "--depend", help="Dependencies, such as afterok:12."),
    array: str = typer.Option("", "--array", "-J", help="Indices of an array, such as 1-10%2."),
    hold: bool = typer.Option(False, "--hold", help="Hold the job until it is released."),
    runtime: str = typer.Option("", "--runtime", help="Run time of an emulated job."),
    exit_status: int | None = typer.Option(None, "--exit", help="Exit status of an emulated job."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Print what would happen; queue nothing."
    ),
    wait: bool = typer.Option(
        False, "--wait", help="Wait for the end; exit with the job's status."
    ),
    json: bool = typer.Option(False, "--json", help="Print the answer as JSON."),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Queue a job and print its identifier.  (qsub does the same with PBS options and #PBS
    lines.)"""
    import msgspec

    from qbatch.cli.pbs.qsub import uploaded
    from qbatch.client import ClientSession
    from qbatch.results.shown import moment
    from qbatch.wire.resources import parse_duration, parse_resources

    options: list[str] = []
    for letter, value in (
        ("-N", name),
        ("-q", queue),
        ("-o", output),
        ("-e", error),
        ("-J", array),
    ):
        options += [letter, value] if value else []
    if depend:
        options += ["-W", f"depend={depend}"]
    if hold:
        options.append("-h")
    for text in resource:
        try:
            parse_resources(text)
        except ValueError as problem:
            raise UsageError(f"--resource {text}: {problem}") from None
        options += ["-l", text]
    if procs or memory:
        options += ["-l", f"select=1:ncpus={max(procs, 1)}{f':mem={memory}' if memory else ''}"]
    if walltime:
        options += ["-l", f"walltime={walltime}"]
    spec = _specification(options, list(command or []))
    changes: dict[str, object] = {} if exit_status is None else {"fate": exit_status}
    if runtime:
        try:
            changes["runtime"] = parse_duration(runtime)
        except ValueError as problem:
            raise UsageError(f"--runtime {problem}") from None
    spec = msgspec.structs.replace(spec, **changes)
    with ClientSession(socket, timeout=60.0) as session:
        if not dry_run:
            spec = uploaded(session, spec)
        said = session.ask(Submit(spec=spec, is_dry_run=dry_run), SubmissionRecord)
    if json:
        print_json("submitted", said)
    else:
        sys.stdout.write(f"{said.job or said.comment}\n")
        instants = (
            {}
            if said.quote is None
            else {
                "start": said.quote.start,
                "end": said.quote.end,
                "earliest deadline": said.quote.earliest_deadline,
            }
        )
        expected = ", ".join(
            f"{name} {moment(at)}" for name, at in instants.items() if at is not None
        )
        if expected and said.quote is not None:
            price = (
                ""
                if said.quote.price is None
                else f", price {said.quote.price / 1e6:g} processor-hours"
            )
            sys.stdout.write(f"as things stand: {expected}{price}\n")
        sys.stdout.flush()
    if wait and said.job:
        try:
            code = _wait((said.job,), None, socket)
        except KeyboardInterrupt:
            talk(f"{said.job} still runs; see qbatch wait {said.job}, or qbatch delete {said.job}")
            raise
        raise typer.Exit(code)


def _specification(options: list[str], words: list[str]) -> Spec:
    """Return what qsub would make of these options and this script or command."""
    from qbatch.cli.pbs.command import Call, CommandFault, UsageFault, parse_options, surroundings
    from qbatch.cli.pbs.qsub import specification
    from qbatch.cli.pbs.submission import SUBMISSION_OPTIONS

    if (
        len(words) == 1
        and words[0] != "-"
        and "--" not in sys.argv
        and not Path(words[0]).is_file()
    ):
        raise InputError(f"{words[0]}: there is no such script (put a command after --)")
    is_script = (
        len(words) == 1 and (words[0] == "-" or Path(words[0]).is_file()) and "--" not in sys.argv
    )
    arguments = [*options, *(words if is_script or not words else ["--", *words])]
    here = surroundings()
    typed = sys.argv[sys.argv.index("submit") + 1 :] if "submit" in sys.argv else []
    call = Call("submit", parse_options(arguments, SUBMISSION_OPTIONS), here, typed)
    try:
        return specification(call)[0]
    except UsageFault as fault:
        raise UsageError(str(fault)) from None
    except CommandFault as fault:
        raise InputError(str(fault)) from None


def _wait(jobs: tuple[str, ...], timeout: float | None, socket: str | None) -> int:
    said = ask(Wait(jobs=jobs, timeout=timeout), Outcomes, socket, timeout=None)
    code = report_outcomes(said)
    for each in said.outcomes:
        if each.exit_status:
            status = each.exit_status
            is_cancelled = each.state in ("F", "X") and not each.has_run
            talk(
                f"{each.name} was cancelled before it ran"
                if is_cancelled
                else f"{each.name} ended with {status}"
            )
            code = code or (status if 0 < status < 256 else 1)
    return code


def wait(
    identifiers: list[str] = typer.Argument(..., metavar="JOB", help="Identifiers of jobs."),
    timeout: float | None = typer.Option(
        None, "--timeout", help="Wait at most this many seconds (then exit 124)."
    ),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Wait until jobs have ended; exit with the status of the first job that failed."""
    raise typer.Exit(_wait(tuple(identifiers), timeout, socket))
