"""``qbatch run``: run one command beside a private batch server that is gone afterwards."""

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

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that the command gets when we do."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
NOT_FOUND, NOT_EXECUTABLE = 127, 126
SI_KERNEL = 0x80
"""Where a signal came from: the terminal, which sends it to the whole foreground group, the command included."""


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: list[str] = typer.Argument(..., metavar="-- COMMAND", help="What to run."),
    config: Path | None = typer.Option(None, "--config", help="Configuration file (TOML); else the built-in one."),
    executor: str | None = typer.Option(
        None, "--executor", help="process (scripts run) or emulated (they are timers)."
    ),
    policy: str | None = typer.Option(None, "--policy", "-p", help="Policy of all pools."),
    time_: str = typer.Option("real", "--time", help="real, x60 (scaled), virtual or virtual:x100."),
    torque: bool = typer.Option(False, "--torque", help="The commands speak Torque's dialect."),
    keep: bool = typer.Option(False, "--keep", help="Leave the server's directory (log, accounting, store) behind."),
) -> None:
    """Run a command beside a private batch server; exit with the command's code.

    The server lives in a temporary directory, the PBS commands are on PATH, and when the command ends, the server, its
    jobs and the directory go: qbatch run -- sh -c 'echo hostname | qsub -W block=true'.  What the command leaves running
    in the background is ended too.  Exit codes: the command's, 128+N if signal N ended it, 127 if it is not there, 126 if
    it cannot be executed; the server's if that failed.
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
    server = PrivateServer(*arguments, config=None if config is None else str(config), is_torque=torque, is_kept=keep)
    try:
        server.start()
        said = _wait_until_up(server)
        if isinstance(said, int):
            raise typer.Exit(128 + said)
        if said is not None:
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
    """Say why a command cannot be run, as shells do, and return the code for it; 0 if it can."""
    if shutil.which(name) is not None:
        return 0
    # It may be one of ours, which are on PATH only beside the server.
    from qbatch.daemon.commands import COMMANDS

    if name in COMMANDS:
        return 0
    places = [name] if "/" in name else [f"{each}/{name}" for each in os.get_exec_path()]
    there = [place for place in places if os.path.exists(place)]
    if there:
        talk(f"qbatch run: {there[0]}: {'Is a directory' if os.path.isdir(there[0]) else 'Permission denied'}")
        return NOT_EXECUTABLE
    talk(f"qbatch run: {name}: {'No such file or directory' if '/' in name else 'command not found'}")
    return NOT_FOUND


def _wait_until_up(server: PrivateServer) -> ServerEnded | int | None:
    """Wait until the server answers: None; how it ended; or the number of the signal that told us to end."""
    while True:
        said = server.hear()
        if said is not None:
            return None if isinstance(said, str) else said
        for number in ENDING:
            if number in signal.sigpending():
                return int(number)
        time.sleep(0.005)


def _attend(server: PrivateServer, command: list[str]) -> int:
    """Run the command, hand it the signals that we get, and return its exit code."""
    from qbatch.library.private_server import outlive_nobody

    environment = server.environment()
    path = shutil.which(command[0], path=environment["PATH"]) or command[0]
    sys.stdout.flush()
    try:
        child = subprocess.Popen(command, executable=path, env=environment, preexec_fn=outlive_nobody)
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
    """Say it if the server has ended by itself; one that was told to end (qbatch down) is not worth a word."""
    said = server.hear()
    if said is None or isinstance(said, str):
        return None
    if said.code:
        talk(f"qbatch run: the server has ended with {said.code}: {said.why}")
    return said
