"""Daemons forked from one process that has imported all that a daemon imports, in a tenth of the
time of a new interpreter.

What a test asks of a daemon is the same: it is a process with its own number, directory,
environment and files, that is killed and waited for.  The commands (``qbatch up``, ``qbatch run``),
the documents, a daemon under strace and every daemon of the nightly run still start as processes
that are executed.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "qbatch.cli.up",
    "qbatch.daemon.process",
    "qbatch.daemon.running",
    "qbatch.daemon.executors.process",
    "qbatch.policies.registry",
    "qbatch.workloads",
    "qbatch.simulation.prepare",
    "qbatch.results.run_words",
)


class Forked:
    """A daemon as :class:`subprocess.Popen` shows a process: number, signals, and how it ended."""

    def __init__(
        self, arguments: Sequence[str], directory: Path, environment: dict[str, str], log: int
    ) -> None:
        self.returncode: int | None = None
        request = {
            "arguments": list(arguments),
            "directory": str(directory),
            "environment": environment,
        }
        self.pid = _parent().ask(request, log)

    def poll(self) -> int | None:
        """Return how it ended, None while it runs."""
        if self.returncode is None:
            self.returncode = _parent().ask({"wait": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a forked daemon", timeout or 0.0)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)


class _Parent:
    """The process that forks them, and a socket to it."""

    def __init__(self) -> None:
        self.mine, other = socket.socketpair()
        self.lock = threading.Lock()
        given = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PBS_", "QBATCH_"))
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.daemon.forked", str(other.fileno())],
            pass_fds=(other.fileno(),),
            stdin=subprocess.DEVNULL,
            env={**given, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
            cwd=ROOT,
        )
        other.close()
        atexit.register(self.end)

    def ask(self, what: dict[str, Any], *files: int) -> Any:
        with self.lock:
            data = json.dumps(what).encode()
            socket.send_fds(self.mine, [len(data).to_bytes(4, "big")], files)
            self.mine.sendall(data)
            answer = _read(self.mine, int.from_bytes(_read(self.mine, 4), "big"))
        return json.loads(answer)

    def end(self) -> None:
        self.mine.close()
        self.process.wait(60)


@cache
def _parent() -> _Parent:
    return _Parent()


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise EOFError("the process that forks daemons has gone")
        data += piece
    return data


def _waited(pid: int) -> int | None:
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _begin(request: dict[str, Any], log: int, connection: socket.socket) -> list[str]:
    """Be the child: give it what an executed process would have, and return its arguments."""
    connection.close()
    for number in (1, 2):
        os.dup2(log, number)
    os.close(log)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["directory"])
    sys.argv = ["qbatch", *request["arguments"]]
    return request["arguments"]  # type: ignore[no-any-return]


def serve(connection: socket.socket) -> list[str]:
    """Fork and wait as asked until no more requests come; return the arguments of a daemon in its
    process, none in this one."""
    while True:
        head, files, _, _ = socket.recv_fds(connection, 4, 1)
        if not head:
            return []
        head += _read(connection, 4 - len(head)) if len(head) < 4 else b""
        request = json.loads(_read(connection, int.from_bytes(head, "big")))
        if "wait" in request:
            answer = _waited(request["wait"])
        else:
            answer = os.fork()
            if answer == 0:
                return _begin(request, files[0], connection)
            os.close(files[0])
        data = json.dumps(answer).encode()
        connection.sendall(len(data).to_bytes(4, "big") + data)


if __name__ == "__main__":
    from qbatch.cli.main import run

    for each in MODULES:
        importlib.import_module(each)
    if asked := serve(socket.socket(fileno=int(sys.argv[1]))):
        sys.exit(run(asked))
