"""A private server: a daemon in its own directory that ends with its owner (``qbatch run``, the
pytest plugin).

This module makes the directory, starts the keeper (:mod:`qbatch.library.private_keeper`) of the
daemon, and sets the environment in which commands find it.  It imports no Typer, no NumPy, nothing
slow to import.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from qbatch.daemon.commands import find_commands, link_commands
from qbatch.library import private_keeper
from qbatch.model.errors import InputError, OutputError, QbatchError
from qbatch.wire.paths import LONGEST_SOCKET

EXIT_PATIENCE = 60.0
"""Seconds for the keeper to clear up; it needs about one, and more only if processes resist."""


class ServerEnded(NamedTuple):
    """The daemon ended by itself: its exit code (128 + N for a signal) and its last words."""

    code: int
    why: str


class PrivateServer:
    """A private daemon; a context manager.

    Args:
        arguments: further arguments of ``qbatch up``.
        config: its configuration file; None for the built-in configuration, whatever the user has.
        is_torque: commands and jobs follow Torque.
        is_kept: keep the directory after the server has ended.
    """

    def __init__(
        self,
        *arguments: str,
        config: str | None = None,
        is_torque: bool = False,
        is_kept: bool = False,
    ) -> None:
        self.arguments = list(arguments)
        self.config = None if config is None else os.path.abspath(config)
        self.is_torque = is_torque
        self.is_kept = is_kept
        self.directory = ""
        self._keeper: subprocess.Popen[bytes] | None = None
        self._heard = b""

    @property
    def socket(self) -> str:
        """The socket of the daemon."""
        return f"{self.directory}/{private_keeper.SOCKET}"

    @property
    def state(self) -> str:
        """The directory of its store."""
        return f"{self.directory}/{private_keeper.STATE}"

    @property
    def log(self) -> str:
        """The text of the daemon's log."""
        try:
            return Path(self.directory, private_keeper.LOG).read_text(
                encoding="utf-8", errors="replace"
            )
        except OSError:
            return ""

    @property
    def commands(self) -> str:
        """The directory that holds the PBS commands, and nothing else."""
        return f"{self.directory}/{'torque' if self.is_torque else 'bin'}"

    @property
    def keeper(self) -> int:
        """Process number of the keeper, our child; 0 if there is none."""
        return 0 if self._keeper is None else self._keeper.pid

    def environment(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return an environment (ours if none is given) in which commands find this server and no
        other."""
        base = os.environ if given is None else given
        kept = {
            name: value for name, value in base.items() if not name.startswith(("PBS_", "QBATCH_"))
        }
        if base.get("QBATCH_CACHE"):
            kept["QBATCH_CACHE"] = base["QBATCH_CACHE"]
        return {
            **kept,
            "PATH": f"{self.commands}{os.pathsep}{base.get('PATH') or os.defpath}",
            **self.variables,
        }

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that name this server."""
        own = {
            "QBATCH_SOCKET": self.socket,
            "QBATCH_STATE": self.state,
            "QBATCH_CONFIG": self.config or f"{self.directory}/qbatch.toml",
            "QBATCH_BIN": self.commands,
        }
        return {**own, "QBATCH_DIALECT": "torque"} if self.is_torque else own

    def start(self) -> PrivateServer:
        """Start the keeper, which starts the daemon; return before the daemon answers.

        Raises:
            InputError: the configuration or the PBS commands do not exist.
            OutputError: no directory can be created.
        """
        if self.config is not None and not os.path.isfile(self.config):
            raise InputError(f"{self.config}: no such configuration file")
        find_commands()
        self.directory = make_directory()
        try:
            link_commands(self.commands)
            arguments = [*(["--config", self.config] if self.config else []), *self.arguments]
            keep = "keep" if self.is_kept else "remove"
            command = [
                sys.executable,
                "-m",
                "qbatch.library.private_keeper",
                self.directory,
                keep,
                *arguments,
            ]
            environment, root = self.environment(), Path(__file__).resolve().parents[2]
            # The keeper has another working directory.
            if root.name not in ("site-packages", "dist-packages"):
                before = environment.get("PYTHONPATH")
                environment["PYTHONPATH"] = f"{root}{os.pathsep}{before}" if before else str(root)
            log = os.open(
                f"{self.directory}/keeper", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            self._keeper = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.directory,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            private_keeper.clear_up(self.directory)
            raise OutputError(f"{self.directory}: {error.strerror}") from error
        return self

    def hear(self) -> str | ServerEnded | None:
        """Return the next report of the keeper, without waiting: ``ready``, a :class:`ServerEnded`,
        or None."""
        assert self._keeper is not None
        assert self._keeper.stdout is not None
        handle = self._keeper.stdout.fileno()
        os.set_blocking(handle, False)
        with contextlib.suppress(BlockingIOError):
            self._heard += os.read(handle, 65536)
        line, end, rest = self._heard.partition(b"\n")
        if not end:
            if self._keeper.poll() is not None:
                words = Path(self.directory, "keeper")
                text = (
                    words.read_text(encoding="utf-8", errors="replace").strip()
                    if words.exists()
                    else ""
                )
                return ServerEnded(
                    1, text.rpartition("\n")[2] or "the keeper of the daemon was killed"
                )
            return None
        self._heard = rest
        kind, _, text = line.decode("utf-8", "replace").partition(" ")
        if kind == "ready":
            return kind
        code, _, why = text.partition(" ")
        return ServerEnded(int(code), why)

    def wait_until_up(self) -> None:
        """Wait until the daemon answers; clear up if it does not start.

        Raises:
            QbatchError: the daemon ended; the error has its exit code.
        """
        while (said := self.hear()) is None:
            time.sleep(0.005)
        if isinstance(said, ServerEnded):
            self.stop()
            raise failure(said)

    def stop(self) -> bool:
        """End the daemon and its jobs, remove the directory; True if nothing is left.  Repeated
        calls are allowed."""
        keeper = self._keeper
        if keeper is None:
            return True
        self._keeper = None
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        keeper.stdin.close()
        keeper.stdout.close()
        try:
            code = keeper.wait(EXIT_PATIENCE)
        except subprocess.TimeoutExpired:
            keeper.kill()
            code = keeper.wait()
        if code < 0 and os.path.isdir(self.directory):  # the keeper was killed: do its work
            code = 0 if private_keeper.clear_up(self.directory) else 1
            if not self.is_kept:
                private_keeper.remove(self.directory)
        return code == 0

    def __enter__(self) -> PrivateServer:
        self.start()
        self.wait_until_up()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def failure(said: ServerEnded) -> QbatchError:
    """Return the error for a daemon that ended by itself."""
    error = QbatchError(said.why)
    error.exit_code = said.code or 1
    return error


def make_directory() -> str:
    """Make a directory of our own (0700) with a path short enough for a socket, in TMPDIR if
    possible.

    Raises:
        OutputError: no directory can be created.
    """
    why = ""
    for place in (
        os.environ.get("TMPDIR", ""),
        "/tmp",
        "/var/tmp",
        os.environ.get("XDG_RUNTIME_DIR", ""),
        "/dev/shm",
    ):
        folder = os.path.abspath(place)
        # mkdtemp adds eight letters to the prefix.
        if (
            not place
            or len(os.fsencode(f"{folder}/qbatch-12345678/{private_keeper.SOCKET}"))
            > LONGEST_SOCKET
        ):
            continue
        try:
            return tempfile.mkdtemp(prefix="qbatch-", dir=folder)
        except OSError as error:
            why = why or f"{place}: {error.strerror}"
    raise OutputError(
        f"no directory can be created for the daemon ({why}); set TMPDIR to a short path that is "
        "yours"
    )


def end_with_parent() -> None:
    """Make a child, before it executes, end when its parent is killed and take signals as usual."""
    private_keeper.prctl(private_keeper.PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def become_reaper() -> None:
    """Make this process the parent of its orphaned descendants, so that they can be found."""
    private_keeper.prctl(private_keeper.PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Send TERM to all our descendants, then KILL, and collect them."""
    from qbatch.daemon.executors.supervision import processes

    kill_at = time.monotonic() + private_keeper.GRACE
    is_told = False
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        left = processes.descendants({os.getpid()})
        late = time.monotonic() - kill_at
        if not left or late > private_keeper.STOP_PATIENCE:
            return
        if late > 0 or not is_told:
            is_told = True
            for pid, start in left.items():
                processes.signal_process(pid, start, signal.SIGKILL if late > 0 else signal.SIGTERM)
        time.sleep(private_keeper.TICK)
