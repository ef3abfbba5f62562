"""``Session``: a private batch server and its methods; the pytest plugin's server has the same
methods."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from qbatch.client import ClientSession
from qbatch.library.arguments import speaks_of_arguments
from qbatch.model.errors import UsageError
from qbatch.wire import records, requests
from qbatch.wire.errors import Refusal
from qbatch.wire.records import HostRecord, JobRecord

if TYPE_CHECKING:
    from qbatch.library.private_server import PrivateServer

Answer = TypeVar("Answer", bound=msgspec.Struct)

MICROSECONDS = 1_000_000


class Server:
    """A batch server for a test or a program.  Identifiers are texts such as ``1.qbatch``."""

    def __init__(self, private: PrivateServer) -> None:
        self._private = private

    @property
    def socket(self) -> str:
        """The socket of the daemon."""
        return self._private.socket

    @property
    def environment(self) -> dict[str, str]:
        """The variables of this process, changed so that PBS commands are on PATH and find this
        server."""
        return self._private.environment()

    @property
    def log(self) -> str:
        """The text of the daemon's log."""
        return self._private.log

    def submit(self, script: str | Sequence[str] = "true\n", **fields: Any) -> str:
        """Queue a job and return its identifier.

        Args:
            script: the text of a shell script; or a command, as a list of words.
            fields: those of :class:`qbatch.wire.requests.Spec`: ``name``, ``queue``, ``resources``
                (texts, as ``{"ncpus": "4", "walltime": "600"}``), ``argv`` (a command too),
                ``runtime`` (microseconds, emulated), ...

        Output files go to the working directory, as with qsub.

        Raises:
            Refusal: the server refuses the job.
            UsageError: there is no such field.
        """
        if not isinstance(script, str):
            fields["argv"] = tuple(script)
        given = script if isinstance(script, str) and not fields.get("argv") else None
        fields.setdefault("directory", os.getcwd())
        try:
            spec = requests.Spec(script=given, **fields)
        except TypeError as error:
            raise UsageError(f"submit: {error}") from error
        return str(self._ask(requests.Submit(spec=spec), records.SubmissionRecord).job)

    def wait(self, job: str, timeout: float = 60.0, until: str = "end") -> JobRecord:
        """Wait until a job has ended (or started: ``until="start"``), and return it.

        Raises:
            TimeoutError: it has not after this many seconds.
        """
        try:
            with ClientSession(self.socket) as connection:
                connection.ask(
                    requests.Wait(jobs=(job,), until=until), records.Outcomes, timeout=timeout
                )
        except Refusal as refusal:
            if refusal.code != "timeout":
                raise
            found = self.job(job)
            raise TimeoutError(
                f"job {job} is in state {found.state} after {timeout:g} s: {found.comment}"
            ) from None
        return self.job(job)

    def job(self, job: str) -> JobRecord:
        """Return a job, live or finished.

        Raises:
            KeyError: there is none.
        """
        found: tuple[JobRecord, ...] = self._ask(
            requests.JobStatus(jobs=(job,), finished="also"), records.Jobs
        ).jobs
        if not found:
            raise KeyError(job)
        return found[0]

    def fault(self, kind: str, **options: Any) -> None:
        """Inject a fault as ``qbatch fault`` does; options ``count``, ``seconds``, ``status``,
        ``pattern``, ``message``."""
        self._ask(requests.Fault(kind=kind, **options), records.Done)

    def hosts(self, *names: str, action: str = "") -> dict[str, HostRecord]:
        """Return hosts by name, all if none is named, after the action on them, if one is given.

        ``action``: ``down``, ``up``, ``drain`` or ``resume``.

        Raises:
            KeyError: there is no such host.
        """
        if action:
            self._ask(requests.HostControl(hosts=names, action=action), records.Outcomes)
        said = self._ask(requests.HostStatus(hosts=names), records.Hosts)
        if said.errors:
            raise KeyError(said.errors[0].message)
        return {host.name: host for host in said.hosts}

    def _ask(self, request: requests.Request, kind: type[Answer]) -> Answer:
        with ClientSession(self.socket) as connection:
            return connection.ask(request, kind)


class Session(Server):
    """A private batch server: a daemon in its own directory, which ends with its jobs when the
    block ends.

        with qbatch.Session(executor="emulated", time="virtual") as session: job =
            session.submit("true", resources={"ncpus": "4", "walltime": "600"}, runtime=120_000_000)
            print(session.wait(job).state)

    Args:
        executor: ``"process"`` runs scripts as processes of this machine; ``"emulated"`` runs
            timers on emulated hosts.
        time: ``"real"``; ``"x60"``, sixty times as fast; ``"virtual"``, from event to event (both
            with emulated hosts).
        policy: a name or ``module:Class``, as in :func:`qbatch.policy`; no object, since the daemon
            is another process.
        config: a configuration: the path of a file, or TOML text.
        torque: commands and jobs follow Torque.

    The start raises an InputError if the configuration cannot be used, and a QbatchError with the
    daemon's own message if the daemon does not come up.
    """

    @speaks_of_arguments
    def __init__(
        self,
        *,
        executor: str | None = None,
        time: str | None = None,
        policy: str | None = None,
        config: str | os.PathLike[str] | None = None,
        torque: bool = False,
    ) -> None:
        from qbatch.library.private_server import PrivateServer

        given = {"executor": executor, "time": time, "policy": policy}
        arguments = [
            text for name, value in given.items() if value for text in (f"--{name}", str(value))
        ]
        self._text: Path | None = None
        path = None if config is None else os.fspath(config)
        if path is not None and ("=" in path or "\n" in path):  # a text, not a path
            handle, name = tempfile.mkstemp(prefix="qbatch-", suffix=".toml")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(path)
            self._text, path = Path(name), name
        super().__init__(PrivateServer(*arguments, config=path, is_torque=torque))

    @speaks_of_arguments
    def start(self) -> Session:
        """Start the daemon, if it does not run; return when it answers."""
        if not self._private.keeper:
            self._private.start()
            self._private.wait_until_up()
        return self

    def stop(self) -> None:
        """End the daemon and its jobs and remove its directory; repeated calls are allowed."""
        self._private.stop()
        if self._text is not None:
            self._text.unlink(missing_ok=True)

    def __enter__(self) -> Session:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Session at {self.socket}>" if self._private.keeper else "<Session, not running>"

    def jobs(self, *, finished: bool = True) -> list[JobRecord]:
        """Return the jobs by number, with or without the finished ones.

        Instants of a record (``submitted``, ``started``, ``ended``) are microseconds of the
        server's clock; ``state`` is a letter of PBS; ``exit_status`` is None until the job has
        ended.
        """
        with ClientSession(self.socket) as connection:
            return list(connection.jobs(requests.JobStatus(finished="also" if finished else "no")))

    def run(
        self, command: Sequence[str] | str, *, timeout: float | None = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end with the PBS commands on PATH, connected to this server:
        ``session.run(["qstat", "-x"])``.

        Args:
            command: words, or a line for the shell.
            timeout: seconds; None for no limit.

        Returns:
            What it printed (``stdout``, ``stderr``) and its ``returncode``.

        Raises:
            subprocess.TimeoutExpired: the command took longer.
        """
        return subprocess.run(
            command,
            shell=isinstance(command, str),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    @property
    def policy(self) -> str:
        """The name of the policy; setting it changes the policy of the server."""
        return self._ask(requests.ServerStatus(), records.ServerRecord).policy

    @policy.setter
    def policy(self, name: str) -> None:
        self._ask(requests.PolicySet(policy=name), records.Text)

    @property
    def now(self) -> float:
        """The instant of the server's clock, in seconds."""
        return self._clock("show").now / MICROSECONDS

    def pause(self) -> None:
        """Stop scaled or virtual time."""
        self._clock("pause")

    def play(self, speed: float | None = None) -> None:
        """Continue scaled or virtual time; ``speed``: a factor; None keeps the last one."""
        self._clock("play", speed=speed)

    def run_until(self, second: float) -> float:
        """Continue scaled or virtual time until an instant of the server's clock, in seconds, and
        stop there.

        Returns:
            The instant of the clock at the request: virtual time may arrive there a little later.
        """
        return self._clock("until", at=round(second * MICROSECONDS)).now / MICROSECONDS

    def _clock(self, action: str, **given: Any) -> records.ClockRecord:
        return self._ask(requests.Time(action=action, **given), records.ClockRecord)
