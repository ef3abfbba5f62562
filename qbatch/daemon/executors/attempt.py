"""What an executor is told and what it reports: one attempt of one job."""

from __future__ import annotations

import errno
from typing import Protocol

import msgspec

NOT_STARTED = -1
"""Exit status of an attempt whose script could not be started."""

SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""What passes by itself: too few descriptors, processes or memory.  A start waits for that, however long it takes."""

LOST = -12
"""Exit status of an attempt whose supervisor was lost: what the script did is not known."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a supervisor needs to run a job once.

    ``key``: names the run directory, for example ``12.1`` or ``12-3.1`` (sequence number, array index, attempt); made
    by the daemon from numbers only.  ``script`` is the text that was submitted (``encoding``: how it is bytes), or
    ``argv`` a command without a shell.  ``shell``: used where the script has no ``#!`` line.  ``environment``: complete,
    nothing is inherited.  ``output`` and ``error``: absolute paths; where ``join`` is ``oe`` both go to ``output``, ``eo``
    to ``error``.  ``node_file``: lines of PBS_NODEFILE.  ``walltime``, ``grace``: seconds; None: no limit.
    ``limits``: what it may use, by name: cput and pcput in seconds, mem and vmem in bytes.
    ``direct``: letters of the outputs (``o``, ``e``) that are written where they belong from the start; the others are spooled
    in the run directory and delivered at the end.
    ``stage_in``, ``stage_out``: (path in ``directory``, path elsewhere), copied before and after; relative ones to ``home``.
    ``login``: whether the shell that runs the script is a login shell.
    ``script_file``: where the whole script is if ``script`` is its beginning only.
    ``is_private``: ``directory`` is made for the job and removed after it.  ``arguments``: those of the script.  ``remove``:
    letters of the output files (``o``, ``e``) that go when it ends well.
    ``host``: the first of its hosts, on which the script starts.
    ``procs``: how many processors it begins with; ``share``: those as a part of what it asked for, at which its walltime runs.
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
    """The script of an attempt is running; ``session``: its session number, ``at``: microseconds since 1970."""

    key: str
    session: int
    at: int


class Ended(msgspec.Struct, frozen=True, tag=True):
    """An attempt ended.  ``status``: 0..255, 256 + N for signal N, or a negative PBS code (-29 walltime, -1 not started,
    ``LOST``); ``why``: one line where it needs words; ``used``: resources measured (cput and walltime in seconds,
    mem and vmem in bytes); ``undelivered``: which of its files could not be delivered, why, and where they are."""

    key: str
    status: int
    at: int
    why: str = ""
    used: dict[str, float] = {}
    undelivered: str = ""


Report = Started | Ended


class Executor(Protocol):
    """Runs attempts.  Every report goes to the function given when the executor was made."""

    def launch(self, attempt: Attempt) -> None:
        """Start an attempt, at most once in the life of its run directory, however often it is called."""
        ...

    def stop(self, key: str, grace: float) -> None:
        """TERM, then KILL after ``grace`` seconds, to everything that the attempt started."""
        ...

    def signal(self, key: str, number: int) -> None:
        """Send a signal to all processes of the attempt."""
        ...

    def resize(self, key: str, procs: int, share: float) -> None:
        """Tell the attempt how many processors it has now, and let its walltime run at that share of its speed."""
        ...

    def used(self, key: str) -> dict[str, float]:
        """Return what a running attempt has used by the last look (as in `Ended.used`); nothing before the first one."""
        ...

    def set_walltime(self, key: str, walltime: float) -> None:
        """Let an attempt run for so many seconds in all."""
        ...

    def spools(self, key: str) -> tuple[str, str]:
        """Return where the output and the error of an attempt are until they are delivered, if they are spooled."""
        ...

    def forget(self, key: str) -> None:
        """An attempt that has ended may go.

        Raises:
            ValueError: it has not ended.
        """
        ...

    async def close(self) -> None:
        """Let go of everything; jobs run on."""
        ...

    async def recover(self, expected: list[Attempt]) -> None:
        """After a restart: find again what runs, report what ended or was lost, launch what never started."""
        ...
