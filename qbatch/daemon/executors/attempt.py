"""What an executor gets and what it reports: one attempt of one job."""

from __future__ import annotations

import errno
from typing import Protocol

import msgspec

NOT_STARTED = -1
"""Exit status of an attempt of which the script could not be started."""

SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Shortages that pass by themselves: of descriptors, processes or memory.  A start waits for that,
however long it takes."""

LOST = -12
"""Exit status of an attempt of which the supervisor was lost: what the script did is not known."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a supervisor needs to run a job once.

    ``key``: the name of the run directory, for example ``12.1`` or ``12-3.1`` (sequence number,
    array index, attempt); the daemon makes it from numbers only.  ``script``: the submitted text
    (in bytes by ``encoding``), or None and ``argv``, a command without a shell.  ``shell``: runs a
    script that has no ``#!`` line.  ``environment``: all of it; nothing is inherited. ``output``
    and ``error``: absolute paths; if ``join`` is ``oe``, both go to ``output``, if ``eo``, to
    ``error``. ``node_file``: lines of PBS_NODEFILE.  ``walltime``, ``grace``: seconds; None: no
    limit. ``limits``: what it may use, by name: cput and pcput in seconds, mem and vmem in bytes.
    ``direct``: letters of the outputs (``o``, ``e``) that are written to their final paths from the
    start; the others are spooled in the run directory and delivered at the end. ``stage_in``,
    ``stage_out``: (path in ``directory``, path elsewhere), copied before and after; relative ones
    to ``home``. ``login``: whether the shell that runs the script is a login shell.
    ``script_file``: the file with the whole script, if ``script`` is only its beginning.
    ``is_private``: ``directory`` is made for the job and removed after it.  ``arguments``: those of
    the script. ``remove``: letters of the output files (``o``, ``e``) that are removed if it ends
    well. ``host``: the first of its hosts, on which the script starts. ``procs``: its processors at
    the start; ``share``: these as a part of what it asked for, the rate at which its walltime runs.
    """

    key: str
    job_id: str
    script: str | None
    argv: tuple[str, ...]
    shell: str
    environment: dict[str, str]
    directory: str
    output: str
    error: str
    join: str
    node_file: tuple[str, ...]
    walltime: float | None
    grace: float
    umask: int = 0o077
    uid: int
    gid: int
    encoding: str = "utf-8"
    procs: int = 1
    share: float = 1.0
    direct: str = ""
    limits: dict[str, float] = {}
    home: str = "/"
    stage_in: tuple[tuple[str, str], ...] = ()
    stage_out: tuple[tuple[str, str], ...] = ()
    is_private: bool = False
    arguments: tuple[str, ...] = ()
    remove: str = ""
    script_file: str = ""
    host: str = ""
    login: bool = True


class Started(msgspec.Struct, frozen=True, tag=True):
    """The script of an attempt is running; ``session``: its session number, ``at``: microseconds
    since 1970."""

    key: str
    session: int
    at: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """An attempt ended.

    ``status``: 0..255, 256 + N for signal N, or a negative PBS code (-29 walltime, -1 not started,
    ``LOST``).  ``why``: one line if it needs an explanation.  ``used``: measured resources (cput
    and walltime in seconds, mem and vmem in bytes). ``undelivered``: the files that could not be
    delivered, why, and their paths.
    """

    key: str
    status: int
    at: int
    why: str = ""
    used: dict[str, float] = {}
    undelivered: str = ""


Report = Started | Ended


class Executor(Protocol):
    """The base of executors, which run attempts.  Every report goes to the function given when the
    executor was made."""

    def launch(self, attempt: Attempt) -> None:
        """Start an attempt, at most once in the life of its run directory, however often it is
        called."""

    def stop(self, key: str, grace: float) -> None:
        """Send TERM, then KILL after ``grace`` seconds, to everything that the attempt started.

        An attempt of which the script is not started yet is not started any more; its status is
        that of a job ended by TERM.
        """
        self._command("stop", key, max(0.0, float(grace)))

    def signal(self, key: str, number: int) -> None:
        """Send a signal to all processes of the attempt.  SIGSTOP stops its walltime too, until
        SIGCONT."""
        if not 1 <= number <= 64:
            raise ValueError(f"not a signal: {number}")
        self._command("signal", key, int(number))

    def resize(self, key: str, procs: int, share: float) -> None:
        """Write down for the attempt how many processors it has now, send SIGWINCH, and let its
        walltime run at that share."""
        self._command("resize", key, int(procs), float(share))

    def set_walltime(self, key: str, walltime: float) -> None:
        """Let an attempt run for so many seconds in all."""
        self._command("set_walltime", key, float(walltime))

    def _command(self, verb: str, key: str, *arguments: float) -> None:
        """Send a command, the name of a method above, to the supervisor of an attempt."""

    def used(self, key: str) -> dict[str, float]:
        """Return what a running attempt has used by the last look (as in `Ended.used`); nothing
        before the first one."""
        ...

    def spools(self, key: str) -> tuple[str, str]:
        """Return the paths of the output and the error of an attempt until they are delivered, if
        they are spooled."""
        ...

    def forget(self, key: str) -> None:
        """Remove the run directory of an attempt that has ended.

        Raises:
            ValueError: it has not ended.
        """

    async def close(self) -> None:
        """Release everything; jobs and their supervisors go on.  What is being removed is removed
        first."""

    async def recover(self, expected: list[Attempt]) -> None:
        """After a restart: find again what runs, report what ended or was lost, launch what never
        started.

        Directories of attempts that are not expected are given up: what runs there is killed, and
        they are removed without a report.
        """
