"""The side of a Dask worker: what the daemon calls there, and the attempts that run there.

A worker runs attempts with the process executor, in a directory of its own for each daemon and
host.  So a script starts under the same supervisor as on the daemon's machine, at most once in the
life of its run directory, however often it is asked for. The daemon calls functions
(``client.run``); nothing here is a task of Dask's, because Dask would run a lost task again
elsewhere.

When the worker's process ends, a guard (``dask_guard.py``) ends its jobs, because the daemon then
takes the host to be down and may run them again on another.

Each function returns plain values.  ``None``: the site does not exist any more; ``{"error":
text}``: it cannot be done.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from qbatch.daemon.executors.attempt import LOST, NOT_STARTED, Attempt, Ended, Report, Started
from qbatch.daemon.executors.process import ProcessExecutor
from qbatch.daemon.executors.process_directory import (
    GONE_PREFIX,
    RunDirectory,
    check_key,
    is_key,
    now,
)
from qbatch.daemon.executors.supervision import files
from qbatch.distribution import __version__
from qbatch.wire.paths import state_directory

log = logging.getLogger("qbatch")

LOST_MARK = "worker-lost"
"""File in a run directory: the worker's process ended while the attempt ran, and the guard ended
it."""

OUTPUTS, SCRIPTS, PLACE, GENERATION = "outputs", "scripts", "place", "generation"
PIECE = 1 << 20
"""Bytes of a file in one call."""

LOST_WITH_WORKER = "its Dask worker ended while the job ran"
GIVEN_UP = "its Dask worker had given it up"
_CLOSED = ("closed", "closing", "failed")

_decode_attempt = msgspec.json.Decoder(Attempt).decode


class Site:
    """The attempts of one daemon on one worker, for as long as the worker's process lives.

    ``place``: the name of the directory, which lasts when the worker is started again;
    ``incarnation``: of this process. ``generation``: it changes when an attempt is given up; what
    was sent under an earlier one is never started. ``session``: the opening of which the commands
    are obeyed, ``number``: its number; an opening with a lower one came late. ``done``: the number
    of the last command.
    """

    def __init__(self, root: Path) -> None:
        for folder in (root, root / OUTPUTS, root / SCRIPTS):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root = root
        self.place, self.incarnation, self.session = _place_of(root), os.urandom(8).hex(), ""
        generation = root / GENERATION
        self.generation = generation.read_text(encoding="ascii") if generation.exists() else "first"
        self.executor = ProcessExecutor(root, self._hear)
        self.live: set[str] = set()
        self.started: dict[str, Started] = {}
        self.ended: dict[str, Ended] = {}
        self.version = self.done = self.number = 0
        self.abandoned: set[str] = set()
        self.lost: set[str] = set()  # given up, and asked for again while they end
        self.news = asyncio.Event()
        guard = [sys.executable, "-m", "qbatch.daemon.executors.dask_guard", str(root)]
        self.guard = subprocess.Popen(
            guard,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._tasks: set[asyncio.Future[Any]] = set()

    def admit(self, number: int, session: str, keys: set[str]) -> None:
        """Open the site for a daemon's process, which expects these attempts; any other is given
        up."""
        given_up = sorted(
            ({entry for entry in os.listdir(self.root) if is_key(entry)} | self.live) - keys
        )
        # On record first: a directory that is removed here looks as if it had never come.
        if given_up:
            self.generation = os.urandom(8).hex()
            temporary = self.root / f"{GENERATION}.{os.getpid()}"
            flags = os.O_CREAT | os.O_TRUNC
            files.write(
                str(temporary), self.generation.encode("ascii"), None, flags, is_synced=True
            )
            temporary.replace(self.root / GENERATION)
        self.number, self.session, self.done = number, session, 0
        for key in given_up:
            if key in self.live:
                self.abandoned.add(key)
                self.executor.stop(key, 0.0)
            else:
                self.forget(key)

    def obey(self, verb: str, key: str, *arguments: Any) -> None:
        """Carry out one command for an attempt."""
        if verb in ("launch", "resume"):
            self._launch(_decode_attempt(arguments[0]), is_new=verb == "launch")
        elif verb == "forget":
            self.forget(key)
        elif key in self.live:
            getattr(self.executor, verb)(key, *arguments)

    def _launch(self, attempt: Attempt, *, is_new: bool) -> None:
        key = check_key(attempt.key)
        if key in self.abandoned:
            self.abandoned.discard(key)
            self.lost.add(key)
            if key in self.ended:
                self._hear(self.ended[key])
        elif key in self.ended:
            return
        elif not is_new and key not in self.live and not (self.root / key).is_dir():
            self._hear(Ended(key, LOST, now(), GIVEN_UP))
        else:
            self.live.add(key)
            self.executor.launch(as_here(attempt, self.root))

    def refuse(self, key: str, error: Exception) -> None:
        """Refuse an attempt that cannot be taken; one that was here before may have run."""
        status = LOST if (self.root / key).is_dir() else NOT_STARTED
        self._hear(
            Ended(
                key,
                status,
                now(),
                f"its Dask worker cannot take it: {type(error).__name__}: {error}",
            )
        )

    def forget(self, key: str) -> None:
        """Remove everything of an attempt that has ended."""
        if key in self.live:
            return
        self.started.pop(key, None)
        self.ended.pop(key, None)
        self.abandoned.discard(key)
        self.lost.discard(key)
        for path in (self.path_of(key, "o"), self.path_of(key, "e"), self.root / SCRIPTS / key):
            path.unlink(missing_ok=True)
        self.executor.forget(key)

    def path_of(self, key: str, letter: str) -> Path:
        """Return the path of an output (``o``, ``e``) of an attempt when it has ended."""
        return (
            self.root
            / OUTPUTS
            / f"{check_key(key)}.{files.OUTPUT if letter == 'o' else files.ERROR}"
        )

    def _hear(self, report: Report) -> None:
        if isinstance(report, Started):
            self.started[report.key] = report
        else:
            self.live.discard(report.key)
            if (self.root / report.key / LOST_MARK).exists():
                report = structs.replace(report, status=LOST, why=LOST_WITH_WORKER)
            if report.key in self.lost:
                report = structs.replace(report, status=LOST, why=GIVEN_UP)
            self.ended[report.key] = report
            if report.key in self.abandoned:
                asyncio.get_running_loop().call_soon(self._forget_abandoned, report.key)
        self.version += 1
        self.news.set()
        self.news = asyncio.Event()

    def _forget_abandoned(self, key: str) -> None:
        if key in self.abandoned:  # unless it was asked for meanwhile
            self.forget(key)

    async def until_closed(self, worker: Any) -> None:
        """Wait for the end of a worker, also of one of several in a process that goes on, and end
        its jobs too."""
        while worker.status.name not in _CLOSED:
            await asyncio.sleep(1.0)
        _sites.pop((worker.id, self.root), None)
        if self.guard.stdin is not None:
            self.guard.stdin.close()
        await asyncio.to_thread(self.guard.wait)
        await self.executor.close()

    def begin(self, worker: Any) -> None:
        """Wait for the worker's end, and remove what an earlier process of it was removing."""
        removals = [
            asyncio.to_thread(RunDirectory(path).discard)
            for path in self.root.glob(f"{GONE_PREFIX}*")
        ]
        for work in (self.until_closed(worker), *removals):
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


_sites: dict[tuple[str, Path], Site] = {}


def as_here(attempt: Attempt, root: Path) -> Attempt:
    """Return an attempt as the worker's own user runs it on this machine.

    Its outputs stay next to its run directory until the daemon has fetched them.  A missing home
    becomes that of the worker.
    """
    home = attempt.home
    environment, directory = attempt.environment, attempt.directory
    if not os.path.isdir(home):
        home = os.path.expanduser("~")
        environment = {**environment, "HOME": home}
        directory = home if directory == attempt.home else directory
    script = str(root / SCRIPTS / attempt.key) if attempt.script_file else ""
    # Outputs with one path keep one path, which may be /dev/null.
    ours = {attempt.error: str(root / OUTPUTS / f"{attempt.key}.{files.ERROR}")}
    ours |= {
        attempt.output: str(root / OUTPUTS / f"{attempt.key}.{files.OUTPUT}"),
        os.devnull: os.devnull,
    }
    return structs.replace(
        attempt,
        uid=os.getuid(),
        gid=os.getgid(),
        output=ours[attempt.output],
        error=ours[attempt.error],
        direct="",
        home=home,
        directory=directory,
        environment=environment,
        script_file=script,
    )


def _place_of(root: Path) -> str:
    """Return the name of a directory, which is made with it: another directory, or an emptied one,
    has another name."""
    path = root / PLACE
    with contextlib.suppress(FileExistsError):
        temporary = root / f"{PLACE}.{os.getpid()}"
        temporary.write_text(os.urandom(16).hex(), encoding="ascii")
        try:
            os.link(temporary, path)
        finally:
            temporary.unlink()
    return path.read_text(encoding="ascii")


def _find(worker: Any, order: dict[str, Any]) -> Site | None:
    site = _sites.get((worker.id, Path(order["root"])))
    if site is None or site.incarnation != order["incarnation"] or site.session != order["session"]:
        return None
    return site


# What the daemon calls


async def open_site(order: dict[str, Any], dask_worker: Any) -> dict[str, Any]:
    """Open the site of a daemon.

    ``order``: version, number, session, identity, host, directory and the keys of the expected
    attempts.  An order with a number not above the latest came late, and changes nothing; the
    answer is then that number, ``newest``.
    """
    if order["version"] != __version__:
        return {
            "error": (
                f"its Dask worker has qbatch {__version__}, the daemon {order['version']}: "
                "install the same there"
            )
        }
    base = order["directory"]
    if not base:
        environment = {name: value for name, value in os.environ.items() if name != "QBATCH_STATE"}
        base = str(state_directory(environment) / "workers")
    root = Path(os.path.abspath(os.path.expanduser(base))) / order["identity"] / order["host"]
    known = dask_worker.id, root
    try:
        if known not in _sites:
            _sites[known] = Site(root)
            _sites[known].begin(dask_worker)
        site = _sites[known]
        if order["number"] <= site.number:
            return {"newest": site.number}
        site.admit(order["number"], order["session"], set(order["keys"]))
    except OSError as error:
        return {"error": f"its Dask worker cannot use {root}: {error.strerror}"}
    return {
        "root": str(root),
        "place": site.place,
        "generation": site.generation,
        "incarnation": site.incarnation,
    }


async def carry_out(
    order: dict[str, Any], commands: list[tuple[Any, ...]], dask_worker: Any
) -> dict[str, Any] | None:
    """Carry out commands (number, verb, key, ...), each once: those that came before are
    ignored."""
    site = _find(dask_worker, order)
    if site is None:
        return None
    for number, verb, key, *arguments in commands:
        if number > site.done:
            site.done = number
            try:
                site.obey(verb, key, *arguments)
            except Exception as error:
                log.exception("%s for attempt %s failed", verb, key)
                if verb in ("launch", "resume"):
                    site.refuse(key, error)
    return {}


async def watch(
    order: dict[str, Any], version: int, seconds: float, dask_worker: Any
) -> dict[str, Any] | None:
    """Return the state of all attempts as soon as it differs from that at ``version``, or after
    some seconds."""
    site = _find(dask_worker, order)
    if site is None:
        return None
    if site.version == version:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await site.news.wait()
    if site.session != order["session"]:
        return None
    return {
        "version": site.version,
        "done": site.done,
        "started": {key: structs.astuple(start)[1:] for key, start in site.started.items()},
        "ended": {
            key: structs.astuple(end)[1:]
            for key, end in site.ended.items()
            if key not in site.abandoned
        },
        "used": {key: site.executor.used(key) for key in site.live},
    }


async def read(
    order: dict[str, Any], key: str, letter: str, offset: int, dask_worker: Any
) -> dict[str, Any] | None:
    """Return a part of an output: ``data`` and ``mode``; no data at its end; no mode if the file
    does not exist."""
    site = _find(dask_worker, order)
    if site is None:
        return None
    try:
        return await asyncio.to_thread(_read, site.path_of(key, letter), offset)
    except (OSError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _read(path: Path, offset: int) -> dict[str, Any]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {"data": b"", "mode": None}
    try:
        return {"data": os.pread(handle, PIECE, offset), "mode": os.fstat(handle).st_mode & 0o777}
    finally:
        os.close(handle)


async def write(
    order: dict[str, Any], key: str, offset: int, data: bytes, dask_worker: Any
) -> dict[str, Any] | None:
    """Keep a part of a long script, which comes before the attempt that needs it."""
    site = _find(dask_worker, order)
    if site is None:
        return None
    try:
        await asyncio.to_thread(_write, site.root / SCRIPTS / check_key(key), offset, data)
    except (OSError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {}


def _write(path: Path, offset: int, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.pwrite(handle, data, offset)
    finally:
        os.close(handle)
