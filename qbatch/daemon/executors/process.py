"""The process executor: scripts run for real, as the daemon's own user, each under a supervisor of its own.

The daemon's part is small: write the attempt down, spawn ``supervisor.py``, watch it by a pidfd, read its files when it
ends.  All that must survive the daemon is in the run directory and in the supervisor.  One function, `_step`, looks at
a run directory and does the next thing, whether the attempt is new, was found after a restart, or just lost its
supervisor: there is no second path that only runs after a crash.

No call blocks the event loop: files, spawning and /proc are read on two threads, one that launches and tells (in
order, so that a stop never overtakes its launch), one that kills and removes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from .attempt import NOT_STARTED, SHORTAGES, Attempt, Ended, Report
from .process_directory import (
    Alive,
    DirectoryClaim,
    ExitRecord,
    Gone,
    Over,
    RunDirectory,
    check_key,
    discard,
    ended,
    kill_leftovers,
    lost,
)
from .supervision import files, processes

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
GONE_PREFIX = ".gone-"
SPAWN_TRIES = 3
AGAIN, SWEEP = 0.1, 1.0
"""Seconds until a situation that is about to change is looked at again, and between looks at everything."""


class _Track:
    """One attempt that is not known to have ended."""

    __slots__ = (
        "attempt",
        "child",
        "directory",
        "handle",
        "is_busy",
        "key",
        "spawned",
        "told_start",
        "tries",
        "untold",
    )

    def __init__(self, key: str, directory: RunDirectory, attempt: Attempt) -> None:
        self.key, self.directory, self.attempt = key, directory, attempt
        self.handle: int | None = None  # pidfd of the supervisor
        self.child: int | None = None  # its number, where it is our child and not yet collected
        self.spawned = self.tries = 0
        self.is_busy = self.told_start = False
        self.untold: list[str] = []  # for a supervisor, from before there was a run directory


class _Finished(msgspec.Struct, frozen=True):
    """A step's news: the attempt ended."""

    record: ExitRecord


class _Lost(msgspec.Struct, frozen=True):
    """A step's news: the supervisor is lost, and what it left is to be killed."""

    claim: DirectoryClaim | None
    why: str


class _WatchedAttempt(msgspec.Struct, frozen=True):
    """A step's news: a supervisor lives; its pidfd, or None: look again soon."""

    handle: int | None


_News = _Finished | _Lost | _WatchedAttempt


class ProcessExecutor:
    """Runs attempts as local processes; see `attempt.Executor` for the contract.

    ``run_root`` is made if it is absent (0700) and belongs to this executor alone.  It must last as long as the
    daemon's journal (not on a file system that a restart of the machine empties): an expected attempt without a
    directory is taken to be one whose launch never began.  ``report`` is called in the event loop.  To be used within
    a running event loop; call `recover` first, `close` last (jobs go on running).
    """

    def __init__(self, run_root: Path, report: Callable[[Report], None], *, python: str = sys.executable) -> None:
        self._root, self._report, self._python = Path(os.path.abspath(run_root)), report, python
        self._tracks: dict[str, _Track] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._uncollected: set[int] = set()  # supervisors, children of ours, whose attempts are over already
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False
        self._events = -1
        self._sweeper: asyncio.TimerHandle | None = None
        self._launcher = ThreadPoolExecutor(1, "qbatch-launch")
        self._cleaner = ThreadPoolExecutor(1, "qbatch-clean")

    # What the daemon asks for

    def launch(self, attempt: Attempt) -> None:
        """Start an attempt, at most once in the life of its run directory, however often it is called."""
        key = check_key(attempt.key)
        loop = self._attach()
        if attempt.uid != os.getuid():
            why = f"this executor runs jobs as uid {os.getuid()} only, not as uid {attempt.uid}"
            loop.call_soon(self._report, Ended(key, NOT_STARTED, _now(), why))
        elif key not in self._tracks:
            self._follow(key, attempt)

    def stop(self, key: str, grace: float) -> None:
        """TERM, then KILL after ``grace`` seconds, to everything that the attempt started.

        An attempt whose script is not started yet is not started any more; its status is that of a job ended by TERM.
        """
        self._tell(key, f"stop {max(0.0, float(grace))!r}")

    def signal(self, key: str, number: int) -> None:
        """Send a signal to all processes of the attempt.  SIGSTOP stops its walltime too, until SIGCONT."""
        if not 1 <= number <= 64:
            raise ValueError(f"not a signal: {number}")
        self._tell(key, f"signal {int(number)}")

    def resize(self, key: str, procs: int, share: float) -> None:
        """Write down for the attempt how many processors it has now, and tell its processes (SIGWINCH)."""
        self._tell(key, f"resize {int(procs)} {float(share)!r}")

    def set_walltime(self, key: str, walltime: float) -> None:
        """Let an attempt run for so many seconds in all."""
        self._tell(key, f"walltime {float(walltime)!r}")

    def used(self, key: str) -> dict[str, float]:
        """Return what a running attempt has used by the last look (as in `Ended.used`); nothing before the first one."""
        return RunDirectory(self._root / check_key(key), key).used()

    def spools(self, key: str) -> tuple[str, str]:
        """Return where the output and the error of an attempt are until they are delivered, if they are spooled."""
        directory = self._root / check_key(key)
        return str(directory / files.OUTPUT), str(directory / files.ERROR)

    async def recover(self, expected: list[Attempt]) -> None:
        """After a restart: find again what runs, report what ended or was lost, launch what never started.

        Returns when each attempt is watched, reported or being cleared up as lost (its report follows).  Directories
        that nobody expects are given up: what runs there is killed, and they are removed, silently.
        """
        self._attach()
        wanted = {check_key(attempt.key) for attempt in expected}
        for entry in sorted(os.listdir(self._root)):
            if entry.startswith(GONE_PREFIX):
                self._discard(self._root / entry)
            elif entry not in wanted and entry not in self._tracks and _is_key(entry):
                self._give_up(entry)
        before = set(self._tasks)
        for attempt in expected:
            self.launch(attempt)
        new = self._tasks - before
        if new:
            await asyncio.wait(new)

    def forget(self, key: str) -> None:
        """Remove the run directory of an attempt that ended; ValueError where it has not."""
        if check_key(key) in self._tracks:
            raise ValueError(f"attempt {key} has not ended")
        self._attach()
        self._give_up(key)

    async def close(self) -> None:
        """Let go of everything; jobs and their supervisors go on.  What is being removed is removed first."""
        if self._loop is None:
            return
        self._is_closing = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._loop.remove_reader(self._events)
        os.close(self._events)
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._loop.run_in_executor(None, self._launcher.shutdown)
        await self._loop.run_in_executor(None, self._cleaner.shutdown)
        for track in self._tracks.values():
            self._unwatch(track)
        self._tracks.clear()
        self._loop = None

    # Following one attempt

    def _attach(self) -> asyncio.AbstractEventLoop:
        """Take the running loop; make the directory, and the FIFO into which supervisors write."""
        if self._loop is not None:
            return self._loop
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root.chmod(0o700)
        files.sync_directory(self._root.parent)  # claims in it would be lost with it
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._root / files.EVENTS, 0o600)
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        self._events = os.open(self._root / files.EVENTS, flags)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._events, self._hear)
        self._sweeper = self._loop.call_later(SWEEP, self._sweep)
        return self._loop

    def _follow(self, key: str, attempt: Attempt) -> None:
        track = _Track(key, RunDirectory(self._root / key, key), attempt)
        self._tracks[key] = track
        self._advance(track)

    def _advance(self, track: _Track) -> None:
        """Take the next step, unless one is being taken."""
        if not track.is_busy and not self._is_closing and self._tracks.get(track.key) is track:
            track.is_busy = True
            self._start_task(self._take_step(track))

    async def _take_step(self, track: _Track) -> None:
        loop = asyncio.get_running_loop()
        try:
            news = await loop.run_in_executor(self._launcher, self._step, track)
        except Exception as error:  # a full disk, a directory that is not ours, ...
            is_short = isinstance(error, OSError) and error.errno in SHORTAGES
            news = _WatchedAttempt(None) if is_short else await self._after_failure(track, f"{type(error).__name__}: {error}")
        finally:
            track.is_busy = False
        if isinstance(news, _WatchedAttempt):
            self._tell_start(track)
            self._watch(track, news.handle)
        elif isinstance(news, _Finished):
            self._finish(track, news.record)
        else:
            track.is_busy = True
            self._start_task(self._clear_up(track, news))

    def _step(self, track: _Track) -> _News:
        """Look at the run directory and do the next thing.  On the launching thread; raises OSError."""
        if track.child is not None:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(track.child, os.WNOHANG) == (0, 0):
                    return _WatchedAttempt(os.pidfd_open(track.child))
            track.child = None
        situation = track.directory.look()
        if isinstance(situation, Over):
            return _Finished(situation.record)
        if isinstance(situation, Gone):
            return _Lost(situation.claim, situation.why)
        if isinstance(situation, Alive):
            claim = situation.claim
            return _WatchedAttempt(processes.open_process(claim.pid, claim.start) if claim and claim.start else None)
        if track.told_start or (track.spawned and not (track.directory.path / files.SPEC).exists()):
            return _Lost(None, "its run directory was removed or emptied by someone else")  # never start it again
        if track.spawned >= SPAWN_TRIES:
            words = track.directory.last_words()
            return self._refuse(track, "its supervisor does not start" + (f": {words}" if words else ""))
        track.directory.prepare(track.attempt)
        while track.untold and track.directory.tell(track.untold[0]):
            del track.untold[0]
        return _WatchedAttempt(os.pidfd_open(self._spawn(track)))

    def _spawn(self, track: _Track) -> int:
        """Start a supervisor.  It may find that another has the attempt, and leaves then."""
        # The token is in the supervisor's own environment too: so the script is marked from the instant of its fork.
        environment = {processes.MARKER: os.urandom(16).hex()}
        if "LD_LIBRARY_PATH" in os.environ:  # for Python itself; the job does not inherit it
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        path = str(track.directory.path)
        log = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        track.spawned += 1
        track.child = os.posix_spawn(
            self._python,
            [self._python, "-I", "-S", "-X", "utf8", SUPERVISOR, path],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, f"{path}/{files.LOG}", log, 0o600),
            ],
            setsid=True,
            setsigmask=[],
        )
        return track.child

    def _refuse(self, track: _Track, why: str) -> _News:
        """Give an attempt up that never started: claimed by ourselves first, so that it never can."""
        if track.directory.fence():
            return _Finished(track.directory.record_exit(NOT_STARTED, why))
        return _WatchedAttempt(None)

    async def _after_failure(self, track: _Track, why: str) -> _News:
        """A step raised: try again a few times, then give up as truthfully as possible."""
        track.tries += 1
        if track.tries < SPAWN_TRIES:
            return _WatchedAttempt(None)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._launcher, self._refuse, track, why)
        except (OSError, ValueError):
            if track.spawned or (track.directory.path / files.CLAIM).exists():
                return _Lost(None, why)
            return _Finished(ExitRecord(NOT_STARTED, _now(), why))

    async def _clear_up(self, track: _Track, news: _Lost) -> None:
        """Kill what a lost attempt left, put the loss on record, report it."""
        record = await asyncio.get_running_loop().run_in_executor(self._cleaner, self._bury, track, news)
        track.is_busy = False
        self._finish(track, record)

    def _bury(self, track: _Track, news: _Lost) -> ExitRecord:
        """On the cleaning thread."""
        if news.claim is not None and news.claim.pid == 0:
            return track.directory.record_exit(NOT_STARTED, "given up before it was started")
        why = news.why
        try:
            if not kill_leftovers(track.directory, news.claim):
                why += "; some of its processes cannot be killed"
        except Exception as error:
            why += f"; its processes could not be looked for: {error}"
        directory = track.directory
        return directory.record_exit(lost(track.key, why).status, why, directory.deliver(), directory.used())

    def _watch(self, track: _Track, handle: int | None) -> None:
        """Wait for the supervisor's end, or look again soon."""
        assert self._loop is not None
        self._unwatch(track)
        if handle is None:
            self._loop.call_later(AGAIN, self._advance, track)
            return
        track.handle = handle
        self._loop.add_reader(handle, self._supervisor_ended, track)

    def _unwatch(self, track: _Track) -> None:
        if track.handle is not None:
            if self._loop is not None:
                self._loop.remove_reader(track.handle)
            os.close(track.handle)
            track.handle = None

    def _supervisor_ended(self, track: _Track) -> None:
        self._unwatch(track)
        self._advance(track)

    def _finish(self, track: _Track, record: ExitRecord) -> None:
        """Report an end, and the start before it if that was not told."""
        if self._tracks.get(track.key) is not track:
            return
        self._unwatch(track)
        self._tell_start(track)
        del self._tracks[track.key]
        if track.child is not None:
            self._uncollected.add(track.child)
        self._report(ended(track.key, record))

    # News of starts, and looks at everything

    def _tell_start(self, track: _Track) -> None:
        if not track.told_start:
            with contextlib.suppress(OSError):
                report = track.directory.started()
                if report is not None:
                    track.told_start = True
                    self._report(report)

    def _hear(self) -> None:
        """Supervisors name the attempts whose scripts they started."""
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self._events, 65536).decode("ascii", "replace").split("\n"):
                track = self._tracks.get(line)
                if track is not None:
                    self._tell_start(track)

    def _sweep(self) -> None:
        """What no event told: a start whose word was lost in a full FIFO, a supervisor that came too late."""
        assert self._loop is not None
        for child in list(self._uncollected):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(child, os.WNOHANG) == (0, 0):
                    continue
            self._uncollected.discard(child)
        for track in list(self._tracks.values()):
            if track.handle is not None and not track.told_start:
                self._tell_start(track)
        self._sweeper = self._loop.call_later(SWEEP, self._sweep)

    # Odds and ends

    def _tell(self, key: str, line: str) -> None:
        directory = RunDirectory(self._root / check_key(key), key)
        self._attach()
        self._start_task(self._tell_directory(directory, line, self._tracks.get(key)))

    async def _tell_directory(self, directory: RunDirectory, line: str, track: _Track | None) -> None:
        def tell() -> None:
            if not directory.tell(line) and track is not None:
                track.untold.append(line)

        await asyncio.get_running_loop().run_in_executor(self._launcher, tell)

    def _give_up(self, key: str) -> None:
        """Move a directory out of the way at once, and remove it in the background."""
        gone = self._root / f"{GONE_PREFIX}{key}~{os.urandom(6).hex()}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._root / key, gone)
            self._discard(gone)

    def _discard(self, path: Path) -> None:
        key = path.name.removeprefix(GONE_PREFIX).partition("~")[0]
        self._start_task(self._remove(path, key))

    async def _remove(self, path: Path, key: str) -> None:
        await asyncio.get_running_loop().run_in_executor(self._cleaner, discard, path, key)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_key(text: str) -> bool:
    try:
        check_key(text)
    except ValueError:
        return False
    return True


def _now() -> int:
    return lost("", "").at
