"""A Dask cluster of one's own for a test: a scheduler and workers as separate processes on
loopback, to be killed at will."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from qbatch.wire.records import HostRecord, Hosts
from qbatch.wire.requests import HostStatus
from tests.daemon.harness import ROOT, Daemon

DEADLINE = 90.0


def until(condition: Callable[[], object], what: str, seconds: float = DEADLINE) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not in {seconds:.0f} seconds: {what}"
        time.sleep(0.02)


class DaskCluster:
    """A scheduler at ``address``; ``worker`` starts workers by name."""

    def __init__(self, base: Path) -> None:
        self.base, self.address = base, ""
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        base.mkdir(exist_ok=True)
        self.start_scheduler(0)

    def start_scheduler(self, port: int) -> None:
        """Start the scheduler, on a port of the system's choice (0) or on the one that it had."""
        file = self.base / "scheduler.json"
        file.unlink(missing_ok=True)
        words = [
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        ]
        self.scheduler = self._run("dask_scheduler", *words)

        def is_there() -> bool:
            try:
                self.address = json.loads(file.read_text(encoding="utf-8"))["address"]
            except (OSError, ValueError, KeyError):
                return False
            return True

        until(is_there, "the scheduler begins")

    def restart_scheduler(self) -> None:
        """Start a scheduler where the killed one was."""
        self.start_scheduler(int(self.address.rpartition(":")[2]))

    def worker(self, *names: str, threads: int = 2) -> None:
        """Start workers."""
        for name in names:
            self.workers[name] = self._run(
                "dask_worker",
                self.address,
                "--name",
                name,
                "--nthreads",
                str(threads),
                "--no-dashboard",
                "--no-nanny",
                "--host",
                "127.0.0.1",
                "--local-directory",
                str(self.base / name),
            )

    def _run(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PBS_", "QBATCH_"))
        }
        with open(self.base / "log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.base,
                env={**environment, "PYTHONPATH": str(ROOT)},
            )

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a worker a signal and wait for its end."""
        self.workers[name].send_signal(number)
        self.workers.pop(name).wait(60)

    def kill_scheduler(self) -> None:
        """End the scheduler as a power failure would."""
        self.scheduler.kill()
        self.scheduler.wait(60)

    def close(self) -> None:
        """End everything."""
        for name in list(self.workers):
            self.kill(name)
        if self.scheduler.poll() is None:
            self.kill_scheduler()

    def config(self, hosts: str = "w[1-2]", *, timeout: int = 60, more: str = "") -> str:
        """Return a configuration with this cluster as its pool."""
        return f"""
kill_delay = 1
[[pool]]
name = "cluster"
executor = "dask"
address = "{self.address}"
directory = "{self.base}/attempts"
timeout = {timeout}
hosts = "{hosts}"
cpus = 2
{more}
[[queue]]
name = "batch"
default_walltime = "10:00"
"""


def host(daemon: Daemon, name: str) -> HostRecord:
    """Return what the daemon says of a host."""
    with daemon.session() as session:
        return session.ask(HostStatus(hosts=(name,)), Hosts).hosts[0]


def until_up(daemon: Daemon, *names: str) -> None:
    """Wait until hosts can be used."""
    for name in names:
        until(
            lambda name=name: host(daemon, name).state in ("free", "job-busy"), f"host {name} is up"
        )


def until_down(daemon: Daemon, name: str) -> str:
    """Wait until a host is down; return why."""
    until(lambda: host(daemon, name).state == "down", f"host {name} is down")
    return host(daemon, name).comment
