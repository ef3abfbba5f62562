"""``qbatch output JOB``: print what a job has written, once or while it writes."""

from __future__ import annotations

import sys
import time

import typer

from qbatch.cli.console import talk
from qbatch.client import ClientSession
from qbatch.model.errors import InputError
from qbatch.results.shown import clean
from qbatch.tui.tail import PIECE, Tail
from qbatch.wire.errors import Refusal
from qbatch.wire.records import OutputFiles
from qbatch.wire.requests import JobOutput

PAUSE = 0.2
"""Seconds between two looks at a file, and between two requests while nothing is new."""


def output(
    job: str = typer.Argument(metavar="JOB", help="Identifier of a job."),
    follow: bool = typer.Option(
        False, "--follow", "-f", help="Print what the job writes, until it has ended."
    ),
    stderr: bool = typer.Option(
        False, "--stderr", "-e", help="Print the error output instead of the output."
    ),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Print what a job has written so far, from its spool while it runs and from its delivered
    files afterwards."""
    with ClientSession(socket) as session:
        files = session.ask(JobOutput(job=job), OutputFiles)
        if follow:
            _follow(session, files, is_error=stderr)
        else:
            _print(files, is_error=stderr)


def _places(files: OutputFiles, is_error: bool) -> tuple[str, ...]:
    """Return the files to read, with a note if it is the other file because both outputs go to
    one."""
    places = _of_side(files, is_error)
    if places != (files.error if is_error else files.output):
        talk(f"note: {files.job} writes its output and its error to one file (-j {files.join})")
    if places[-1] == "/dev/null":
        raise InputError(f"{files.job} writes this to /dev/null, where nothing is kept")
    return places


def _print(files: OutputFiles, *, is_error: bool) -> None:
    places = _places(files, is_error)
    if files.is_waiting:
        why = (
            f"state {files.state}; qbatch explain {files.job.partition('.')[0]} shows why; "
            "--follow waits"
        )
        raise Refusal("bad-state", f"{files.job} has not started, so there is no output ({why})")
    tail = Tail(places)
    while data := _look(tail, files):
        sys.stdout.buffer.write(data)  # unchanged: the output of a job need not be text
    sys.stdout.flush()


def _look(tail: Tail, files: OutputFiles) -> bytes:
    name = f"{files.job}: {clean(tail.places[-1])}"
    try:
        return tail.look().data
    except FileNotFoundError:
        if files.is_running:
            return b""  # the job is starting
        if ("o" if tail.places == files.output else "e") in files.removed:
            raise InputError(
                f"{name} was removed when the job had ended well (-R {files.removed})"
            ) from None
        why = (
            f" ({clean(files.comment)})"
            if "not delivered" in files.comment
            else "; was it moved or deleted?"
        )
        raise InputError(f"{name} is not there any more{why}") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{name} is {error}") from None


def _follow(session: ClientSession, files: OutputFiles, *, is_error: bool) -> None:
    """Write new output until the job has ended; after a restart of the job, follow it from the new
    beginning."""
    if files.is_waiting:
        talk(f"{files.job} has not started (state {files.state}); waiting for it")
        files = _until_started(session, files)
    tail, attempt = Tail(_places(files, is_error)), files.attempt
    while True:
        was_running = files.is_running
        data = _look(tail, files)
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        if len(data) == PIECE:
            continue
        if not was_running:  # the job had ended before this look, so nothing more comes
            return
        time.sleep(PAUSE)
        files = session.ask(JobOutput(job=files.job), OutputFiles)
        if files.is_waiting:
            talk(
                f"{files.job} waits again ({clean(files.comment) or 'queued again'}); waiting for "
                "it"
            )
            files = _until_started(session, files)
        places = _of_side(files, is_error)
        if files.attempt != attempt:
            attempt = files.attempt
            tail = Tail(places)
        elif places != tail.places:
            tail.follow(places, is_same=True)


def _of_side(files: OutputFiles, is_error: bool) -> tuple[str, ...]:
    return files.error if {"oe": False, "eo": True}.get(files.join, is_error) else files.output


def _until_started(session: ClientSession, files: OutputFiles) -> OutputFiles:
    while files.is_waiting:
        time.sleep(PAUSE)
        files = session.ask(JobOutput(job=files.job), OutputFiles)
    return files
