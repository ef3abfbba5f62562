"""``qbatch`` as the pages type it, forked from a process that has imported what commands import.

A command of a page then costs what it does, not what its imports cost; it gets the arguments, the
folder, the environment and the open files that it was typed with.  The README, the tests of the
commands and those of their start still execute the program itself.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "qbatch.cli",
    "qbatch.engine",
    "qbatch.library",
    "qbatch.metrics",
    "qbatch.planning",
    "qbatch.policies",
    "qbatch.referee",
    "qbatch.reports",
    "qbatch.results",
    "qbatch.simulation",
    "qbatch.sweeps",
    "qbatch.wire",
    "qbatch.workloads",
)
"""All modules of these, as most commands need most of them."""

MODULES = (
    "email.parser",
    "jinja2.ext",
    "matplotlib.backends.backend_agg",
    "matplotlib.pyplot",
    "numba",
    "numpy.fft",
    "pandas",
    "pyarrow.parquet",
    "qbatch.client",
    "qbatch.daemon.running",
    "typer._adapters",
    "typer._click._textwrap",
    "typer._click.decorators",
)
STUB = """#!{python} -IS
import json, os, signal, socket, sys
asked = {{"arguments": sys.argv[1:], "directory": os.getcwd(), "environment": dict(os.environ)}}
data = json.dumps(asked).encode()
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
socket.send_fds(server, [len(data).to_bytes(4, "big")], [0, 1, 2])
server.sendall(data)
process = int.from_bytes(server.recv(4), "big")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(process, number))
code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


def write_command(path: Path) -> None:
    """Write a program to ``path`` that is ``qbatch``, forked."""
    path.write_text(STUB.format(python=sys.executable, path=_socket_path()), encoding="utf-8")
    path.chmod(0o755)


@cache
def _socket_path() -> str:
    """Start the process of this test process, and return where it listens."""
    folder = tempfile.TemporaryDirectory(prefix="qbatch-pages-")
    path = f"{folder.name}/socket"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PBS_", "QBATCH_"))
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.documents.prepared", path],
        env={**kept, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."

    def end() -> None:
        process.kill()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return path


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    left = int.from_bytes(head, "big")
    data = b""
    while len(data) < left:
        data += connection.recv(left - len(data))
    return json.loads(data), list(files)


def _become(asked: dict[str, Any], files: list[int]) -> None:
    """Be the process of a command: take over what it was typed with."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        errors = "strict" if number == 1 else "backslashreplace"
        stream = open(  # noqa: SIM115
            number, "w", encoding="utf-8", errors=errors, closefd=False, buffering=1
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    os.chdir(asked["directory"])
    sys.argv = ["qbatch", *asked["arguments"]]


def serve(path: str) -> bool:
    """Fork for each command that comes; return True in the process of a command."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    os.write(1, b".")
    found = selectors.DefaultSelector()
    found.register(listening, selectors.EVENT_READ)
    while True:
        for key, _ in found.select():
            if key.fileobj is listening:
                connection, _ = listening.accept()
                asked, files = _received(connection)
                process = os.fork()
                if process == 0:
                    found.close()
                    listening.close()
                    connection.close()
                    _become(asked, files)
                    return True
                for file in files:
                    os.close(file)
                connection.sendall(process.to_bytes(4, "big"))
                found.register(os.pidfd_open(process), selectors.EVENT_READ, (process, connection))
            else:
                process, connection = key.data
                found.unregister(key.fileobj)
                os.close(key.fd)
                code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                with contextlib.suppress(BrokenPipeError):  # the shell that typed it has gone
                    connection.sendall(code.to_bytes(4, "big", signed=True))
                connection.close()


def import_all() -> None:
    """Import what commands import, and have the compiler load what it loads at its first use."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for each in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(each.name)
    for name in MODULES:
        importlib.import_module(name)
    sys.modules["numba"].njit(lambda: None)()


class Ending:
    """Ends the process of a command after all else that is to be done at its end: without freeing
    each object that it has, which takes longer than many commands."""

    def __init__(self) -> None:
        self.code = 1
        atexit.register(self.end)  # what is registered first is called last

    def end(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.code)


if __name__ == "__main__":
    from qbatch.cli.main import run

    ending = Ending()
    import_all()
    gc.freeze()
    if serve(sys.argv[1]):
        ending.code = run(sys.argv[1:])
