"""``qbatch run``: run one command with a private batch server that exists only for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from qbatch.cli.console import command_group, talk
from qbatch.model.errors import UsageError

if TYPE_CHECKING:
    from qbatch.library.private_server import PrivateServer, ServerEnded

app = command_group()

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""Signals that are passed on to the command."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
NOT_FOUND, NOT_EXECUTABLE = 127, 126
SI_KERNEL = 0x80
"""Origin of a signal: the terminal, which sends it to the whole foreground group, the command
included."""


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: list[str] = typer.Argument(..., metavar="-- COMMAND", help="Command to run."),
    config: Path | None = typer.Option(
        None, "--config", help="Configuration file (TOML) [the built-in one]."
    ),
    executor: str | None = typer.Option(
        None, "--executor", help="process (scripts run) or emulated (jobs are timers)."
    ),
    policy: str | None = typer.Option(None, "--policy", "-p", help="Policy of all pools."),
    time_: str = typer.Option(
        "real", "--time", help="Clock: real, x60 (scaled), virtual or virtual:x100."
    ),
    torque: bool = typer.Option(False, "--torque", help="Make the PBS commands follow Torque."),
    keep: bool = typer.Option(
        False, "--keep", help="Keep the server's directory (log, accounting, store)."
    ),
) -> None:
    """Run a command with a private batch server; exit with the command's code.

    The server lives in a temporary directory and the PBS commands are on PATH.  When the command
    ends, the server, its jobs and the directory are removed: qbatch run -- sh -c 'echo hostname |
    qsub -W block=true'.  Processes that the command leaves in the background are ended too.  Exit
    codes: the command's; 128+N if signal N ended it; 127 if the command does not exist; 126 if it
    cannot be executed; the server's if that failed.
    """
    from qbatch.daemon.clock import parse_time
    from qbatch.library.private_server import PrivateServer, become_reaper, end_descendants, failure

    parse_time(time_)
    if executor not in (None, "process", "emulated"):
        raise UsageError(f"--executor {executor}: write process or emulated")
    arguments = ["--time", time_]
    arguments += ["--executor", executor] if executor else []
    arguments += ["--policy", policy] if policy else []
    code = _cannot_run(command[0])
    if code:
        raise typer.Exit(code)
    become_reaper()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    server = PrivateServer(
        *arguments, config=None if config is None else str(config), is_torque=torque, is_kept=keep
    )
    try:
        server.start()
        while (said := server.hear()) is None:
            for number in ENDING:
                if number in signal.sigpending():
                    raise typer.Exit(128 + number)
            time.sleep(0.005)
        if not isinstance(said, str):
            raise failure(said)
        code = _attend(server, command)
    finally:
        is_clean = server.stop()
        end_descendants()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if keep and server.directory:
            talk(f"qbatch run: the server's files are in {server.directory}")
        if not is_clean:
            talk("qbatch run: some processes of the server's jobs could not be ended")
    raise typer.Exit(code)


def _cannot_run(name: str) -> int:
    """Print why a command cannot be run, as shells do, and return the exit code for it; 0 if it can
    run."""
    if shutil.which(name) is not None:
        return 0
    # It may be one of our commands, which are on PATH only while the server runs.
    from qbatch.daemon.commands import COMMANDS

    if name in COMMANDS:
        return 0
    places = [name] if "/" in name else [f"{each}/{name}" for each in os.get_exec_path()]
    there = [place for place in places if os.path.exists(place)]
    if there:
        talk(
            f"qbatch run: {there[0]}: "
            f"{'Is a directory' if os.path.isdir(there[0]) else 'Permission denied'}"
        )
        return NOT_EXECUTABLE
    talk(
        f"qbatch run: {name}: {'No such file or directory' if '/' in name else 'command not found'}"
    )
    return NOT_FOUND


def _attend(server: PrivateServer, command: list[str]) -> int:
    """Run the command, pass on the signals that we get, and return its exit code."""
    from qbatch.library.private_server import end_with_parent

    environment = server.environment()
    path = shutil.which(command[0], path=environment["PATH"]) or command[0]
    sys.stdout.flush()
    try:
        child = subprocess.Popen(
            command, executable=path, env=environment, preexec_fn=end_with_parent
        )
    except OSError as error:
        talk(f"qbatch run: {command[0]}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    ended: ServerEnded | None = None
    while child.poll() is None:
        come = signal.sigtimedwait({*FORWARDED, signal.SIGCHLD}, 1.0)
        if come is not None and come.si_signo != signal.SIGCHLD and come.si_code != SI_KERNEL:
            child.send_signal(come.si_signo)
        if ended is None:
            ended = _ending_of(server)
    code = 128 - child.returncode if child.returncode < 0 else child.returncode
    ended = ended or _ending_of(server)
    return code or (ended.code if ended is not None else 0)


def _ending_of(server: PrivateServer) -> ServerEnded | None:
    """Print how the server ended if it ended by itself; print nothing after an orderly end (qbatch
    down)."""
    said = server.hear()
    if said is None or isinstance(said, str):
        return None
    if said.code:
        talk(f"qbatch run: the server has ended with {said.code}: {said.why}")
    return said
