"""A daemon of one's own for a test: private directories, real sockets, kill -9 on demand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from qbatch.client import ClientSession
from qbatch.daemon.service import BUSY
from qbatch.wire.records import JobRecord, Outcomes, ServerRecord, SubmissionRecord
from qbatch.wire.requests import JobStatus, QueueControl, ServerStatus, Spec, Submit
from tests.daemon.forked import Forked
from tests.harness import NIGHTLY
from tests.harness import command as run_here

ROOT = Path(__file__).resolve().parents[2]

IN_THIS_PROCESS = (
    "backup",
    "check",
    "compare",
    "delete",
    "explain",
    "export",
    "fault",
    "forecast",
    "history",
    "hold",
    "host",
    "hosts",
    "import",
    "jobs",
    "metrics",
    "move",
    "policy",
    "queue",
    "queues",
    "release",
    "reload",
    "maintenance",
    "replay",
    "reservations",
    "reserve",
    "report",
    "rerun",
    "shadow",
    "signal",
    "status",
    "submit",
    "time",
    "verify",
)
"""Commands of qbatch of which a process would prove no more: all have one door, and tests/documents
types many as processes."""


def emulated(hosts: str = "n[1-4]", top: str = "", queues: str = "") -> str:
    """Return a configuration of emulated hosts with 4 processors each and the queue ``batch``.

    ``top``: more lines before the tables; ``queues``: more queues after it.
    """
    return f"""
executor = "emulated"
{top}
[[pool]]
hosts = "{hosts}"
cpus = 4
[[queue]]
name = "batch"
default_walltime = "10:00"
{queues}
"""


class Daemon:
    """One daemon in a directory; starts again in the same one after ``kill``.

    ``is_executed``: as a process of its own, not forked from one that has imported what a daemon
    imports.
    """

    is_executed = NIGHTLY

    def __init__(self, directory: Path, *arguments: str, config: str | None = None) -> None:
        self.directory = directory
        self.socket = str(directory / "s")
        self.state = directory / "state"
        self.arguments = list(arguments)
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.home = os.environ.get("HOME", "/")
        # A test does not depend on the profile files of those who run it; some start much, and hold
        # locks when they are killed.
        plain = "login_shell = false\n"
        config = plain if config is None and not arguments and directory.is_dir() else config
        if config is not None:
            if "login_shell" not in config and 'executor = "emulated"' not in config:
                config = plain + config.removeprefix("\n")
            (directory / "qbatch.toml").write_text(config, encoding="utf-8")
            self.arguments += ["--config", str(directory / "qbatch.toml")]

    @property
    def environment(self) -> dict[str, str]:
        """Variables under which commands talk to this daemon."""
        return {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("PBS_", "QBATCH_"))
            },
            "HOME": self.home,
            "QBATCH_SOCKET": self.socket,
            "QBATCH_STATE": str(self.state),
            "QBATCH_CONFIG": str(self.directory / "none.toml"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def command(self, state: Path | None = None) -> list[str]:
        """Return the command that serves its socket, from its directory or from another."""
        where = ["--state", str(state or self.state), "--socket", self.socket]
        return [sys.executable, "-m", "qbatch", "up", "--foreground", *where]

    def start(self, *more: str, wait: bool = True, wrap: tuple[str, ...] = ()) -> Daemon:
        """Start it and wait until it answers."""
        command = [*wrap, *self.command(), *self.arguments, *more]
        with open(self.directory / "log", "ab") as log:
            if command[:3] == [sys.executable, "-m", "qbatch"] and not self.is_executed:
                self.process = Forked(command[3:], self.directory, self.environment, log.fileno())
            else:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.environment,
                    cwd=self.directory,
                )
        if wait:
            self.wait_until_up()
        return self

    def wait_until_up(self, seconds: float = 60.0) -> None:
        """Wait for the first answer."""
        assert self.process is not None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(
                    f"the daemon ended with {self.process.returncode}:\n{self.log()}"
                )
            try:
                with ClientSession(self.socket, patience=0.0) as session:
                    session.ask(ServerStatus(), ServerRecord)
                return
            except Exception:
                time.sleep(0.01)
        raise AssertionError(f"the daemon does not answer:\n{self.log()}")

    def log(self) -> str:
        """What it has said."""
        path = self.directory / "log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def kill(self, number: int = signal.SIGKILL) -> int:
        """Send a signal and wait for the end; return the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(60)
        self.process = None
        return code

    def session(self) -> ClientSession:
        """Return a session with it, to be used as a context manager."""
        return ClientSession(self.socket)

    def warm(self, seconds: float = 180.0) -> None:
        """Keep it busy until compiled kernels serve."""
        with self.session() as session:
            for _ in range(BUSY):
                session.ask(QueueControl(queues=("batch",), enabled=True), Outcomes)
            deadline = time.monotonic() + seconds
            while not session.ask(ServerStatus(), ServerRecord).is_compiled:
                assert time.monotonic() < deadline, self.log()
                time.sleep(0.05)

    def submit(self, script: str = "true\n", **fields: object) -> str:
        """Submit a script and return its identifier."""
        fields.setdefault("directory", str(self.directory))
        with self.session() as session:
            return session.ask(Submit(spec=Spec(script=script, **fields)), SubmissionRecord).job  # type: ignore[arg-type]

    def jobs(
        self, *names: str, finished: str = "also", subjobs: bool = False
    ) -> dict[str, JobRecord]:
        """Return jobs by identifier."""
        with self.session() as session:
            pages = session.pages(JobStatus(jobs=names, finished=finished, subjobs=subjobs))
            return {job.id: job for page in pages for job in page.jobs}

    def until(self, name: str, states: str, seconds: float = 60.0) -> JobRecord:
        """Wait until a job is in one of the states."""
        deadline = time.monotonic() + seconds
        while True:
            job = self.jobs(name)[name]
            if job.state in states:
                return job
            assert time.monotonic() < deadline, (
                f"job {name} stays in state {job.state}: {job.comment}\n{self.log()}"
            )
            time.sleep(0.02)

    def run(
        self, *command: str, stdin: str = "", code: int | None = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that talks to this daemon."""
        environment = {**self.environment, **variables}
        is_main = threading.current_thread() is threading.main_thread()
        if command[0] == "qbatch" and command[1] in IN_THIS_PROCESS and not stdin and is_main:
            done = run_here(*command[1:], code=None, cwd=self.directory, environment=environment)
        else:
            done = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                env=environment,
                cwd=self.directory,
                timeout=120,
                check=False,
            )
        if code is not None:
            assert done.returncode == code, (
                command,
                done.returncode,
                done.stdout,
                done.stderr,
                self.log()[-3000:],
            )
        return done

    def __enter__(self) -> Daemon:
        return self if self.process is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)
