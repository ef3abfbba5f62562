"""``qbatch top``: show the live monitor."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from qbatch.distribution import __version__, install_command
from qbatch.model.errors import OutputError, QbatchError, UsageError, suggestion


def top(
    recording: str | None = typer.Option(
        None,
        "--recording",
        metavar="FILE|DIR[:POLICY]",
        help="Play a recording, a result or job rows instead.",
    ),
    record: str | None = typer.Option(
        None, "--record", metavar="FILE", help="Record the session in this file."
    ),
    theme: str = typer.Option(
        "", "--theme", help="Colours: textual-dark, textual-light, ansi-dark, ansi-light, ..."
    ),
    speed: float | None = typer.Option(
        None, "--speed", min=0.001, help="Speed of a recording at the start."
    ),
    socket: str | None = typer.Option(None, "--socket", help="Socket of the daemon."),
) -> None:
    """Watch hosts, jobs, queues and forecasts as they change; act on them; play recorded runs."""
    if recording is not None and record is not None:
        raise UsageError("--recording plays and --record writes; give one of them")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "qbatch top needs a terminal; for scripts: qbatch jobs --json, qbatch status --json"
        )
    watch = load_monitor()
    from textual.theme import BUILTIN_THEMES

    if theme and theme not in BUILTIN_THEMES:
        known = ", ".join(BUILTIN_THEMES)
        raise UsageError(
            f"there is no theme {theme!r}{suggestion(theme, BUILTIN_THEMES)}; known: {known}"
        )
    if recording is not None:
        from qbatch.tui.playback import Playback
        from qbatch.tui.schedule_recording import open_recording

        source = Playback(open_recording(recording))
        source.speed = speed or source.speed
        watch(source, theme or "textual-dark")
        return
    from qbatch.tui.live import Live

    if record is None:
        watch(Live(socket), theme or "textual-dark")
        return
    from qbatch.tui.recording import RecordingWriter

    try:
        with open(record, "xb") as file:
            watch(Live(socket, RecordingWriter(file, __version__)), theme or "textual-dark")
    except FileExistsError:
        raise OutputError(
            f"{record}: already exists; name another file, or remove it first"
        ) from None
    except OSError as error:
        raise OutputError(f"{record}: {error.strerror}") from None


def load_monitor() -> Callable[[Any, str], None]:
    """Load the monitor and return the function that shows it.

    Raises:
        QbatchError: its drawing library is not installed.
    """
    try:
        from qbatch.tui.app import watch
    except ModuleNotFoundError as error:
        raise QbatchError(f"the monitor needs {error.name}: {install_command('tui')}") from None
    return watch
