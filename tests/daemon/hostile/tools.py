"""What the hostile tests share: sizes, raw frames, clients that load a daemon, strace around
one."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qbatch.client import ClientSession
from qbatch.wire.errors import Refusal
from qbatch.wire.records import JobRecord, SubmissionRecord, Text
from qbatch.wire.requests import Check, JobStatus, Spec, Submit
from tests.daemon.harness import Daemon, emulated

EMULATED = emulated()

REAL = """
executor = "process"
kill_delay = 1
[[pool]]
hosts = "n[1-4]"
cpus = 16
[[queue]]
name = "batch"
default_walltime = "10:00"
"""

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root: mounts, other users")
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """Wait for something to be true and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.01)
    return found


def settled_rss(daemon: Daemon) -> int:
    """Return the daemon's resident bytes once its compiled kernels are loaded, for which it must be
    busy."""
    assert daemon.process is not None
    daemon.warm()
    return rss(daemon.process.pid)


class Raw:
    """A connection that sends whatever the test asks it to send."""

    def __init__(self, path: str, seconds: float = 30.0) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(seconds)
        self.socket.connect(path)
        self._buffer = b""

    def send(self, body: bytes | dict[str, Any]) -> None:
        """Send a frame."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.socket.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self) -> dict[str, Any] | None:
        """Return the next reply, None where the daemon has closed the connection."""
        while len(self._buffer) < 4 or len(self._buffer) < 4 + int.from_bytes(
            self._buffer[:4], "big"
        ):
            try:
                data = self.socket.recv(1 << 18)
            except ConnectionError:
                return None
            if not data:
                return None
            self._buffer += data
        end = 4 + int.from_bytes(self._buffer[:4], "big")
        body, self._buffer = self._buffer[4:end], self._buffer[end:]
        return json.loads(body)  # type: ignore[no-any-return]

    def ask(self, body: bytes | dict[str, Any]) -> dict[str, Any] | None:
        """Send a frame and return the reply."""
        self.send(body)
        return self.receive()

    def close(self) -> None:
        """Close it."""
        self.socket.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def all_jobs(daemon: Daemon, *, subjobs: bool = False) -> dict[str, JobRecord]:
    """Return every job that the daemon knows, ended ones too, by identifier."""
    with daemon.session() as session:
        pages = session.pages(JobStatus(finished="also", subjobs=subjobs))
        return {job.id: job for page in pages for job in page.jobs}


def check(daemon: Daemon) -> str:
    """Let the daemon check its store and its invariants."""
    with daemon.session() as session:
        return session.ask(Check(), Text).text


def rss(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


class Load:
    """Clients that submit one job after the other, each under its name as the key, and remember
    what was acknowledged.

    ``spec_of``: the specification of a key.  A submission that was not answered is repeated under
    its key.
    """

    def __init__(
        self, path: str, spec_of: Callable[[str], Spec], clients: int = 3, pause: float = 0.0
    ) -> None:
        self.path, self.spec_of, self.pause = path, spec_of, pause
        self.acknowledged: dict[str, str] = {}
        self.refused: list[Refusal] = []
        self.broken = 0
        self.is_over = False
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._client, args=(number,)) for number in range(clients)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        for thread in self._threads:
            thread.join(60)

    def _client(self, client: int) -> None:
        number = 0
        session = ClientSession(self.path, patience=0.0)
        while not self.is_over:
            key = f"{client}-{number}"
            number += 1
            while not self.is_over:
                try:
                    spec = self.spec_of(key)
                    job = session.ask(Submit(spec=spec, key=spec.name), SubmissionRecord).job
                except Refusal as error:
                    with self._lock:
                        self.refused.append(error)
                    time.sleep(0.01)
                except Exception:
                    self.broken += 1
                    time.sleep(0.02)
                else:
                    with self._lock:
                        assert self.acknowledged.setdefault(key, job) == job
                    break
            time.sleep(self.pause)
        session.close()


@contextmanager
def small_disk(size_of: str) -> Iterator[Path]:
    """Give a file system of its own of this size (tmpfs), gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="qbatch-disk-"))
    code = os.system(f"mount -t tmpfs -o size={size_of},mode=0700 tmpfs {place}")
    if code:
        place.rmdir()
        pytest.skip("no tmpfs can be mounted here")
    try:
        yield place
    finally:
        os.system(f"umount -l {place}")
        place.rmdir()


def fill(path: Path) -> None:
    """Write a file until its disk is full."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for piece in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    os.write(handle, b"\0" * piece)
            except OSError:
                continue
    finally:
        os.close(handle)
