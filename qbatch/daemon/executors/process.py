"""The process executor: scripts run for real, as the daemon's own user, each under a supervisor of
its own.

The daemon writes the attempt down, spawns ``supervisor.py``, watches it by a pidfd, and reads its
files when it ends. Everything that must survive the daemon is in the run directory and in the
supervisor.  One function, `_step`, looks at a run directory and does the next thing, whether the
attempt is new, was found after a restart, or just lost its supervisor.  So there is no second path
that only runs after a crash.

No call blocks the event loop.  Two threads handle files, spawn and read /proc: one launches and
sends commands (in order, so that a stop never overtakes its launch), the other kills and removes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .attempt import LOST, NOT_STARTED, SHORTAGES, Attempt, Ended, Executor, Report, Started
from .process_directory import GONE_PREFIX, Alive, Gone, RunDirectory, check_key, is_key, now
from .supervision import files, processes

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
SPAWN_TRIES = 3
AGAIN, SWEEP = 0.1, 1.0
"""Seconds until an attempt that is about to change is looked at again, and between looks at all
attempts."""


class _Track:
    """One attempt that is not known to have ended."""

    def __init__(self, directory: RunDirectory, attempt: Attempt) -> None:
        self.key, self.directory, self.attempt = attempt.key, directory, attempt
        self.handle: int | None = None  # pidfd of the supervisor
        self.child: int | None = None  # its number, if it is our child and not yet collected
        self.spawned = self.tries = 0
        self.is_busy = self.has_started = False
        # Commands for the supervisor from before there was a run directory.
        self.unsent: list[str] = []


class ProcessExecutor(Executor):
    """Runs attempts as local processes; see `attempt.Executor` for the contract.

    ``run_root`` is made if it is absent (0700) and belongs to this executor alone.  It must last as
    long as the daemon's journal, so it must not be on a file system that a restart of the machine
    empties.  An expected attempt without a directory is taken to be one that was never launched.
    ``report`` is called in the event loop.  The executor needs a running event loop; call
    `recover` first, `close` last (jobs go on running).
    """

    def __init__(self, run_root: Path, report: Callable[[Report], None]) -> None:
        self._root, self._report = Path(os.path.abspath(run_root)), report
        self._tracks: dict[str, _Track] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Supervisors, children of ours, of attempts that are over already.
        self._uncollected: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closing = False
        self._events = -1
        self._sweeper: asyncio.TimerHandle | None = None
        self._launcher = ThreadPoolExecutor(1, "qbatch-launch")
        self._cleaner = ThreadPoolExecutor(1, "qbatch-clean")

    # What the daemon asks for

    def launch(self, attempt: Attempt) -> None:
        key = check_key(attempt.key)
        loop = self._attach()
        if attempt.uid != os.getuid():
            why = f"this executor runs jobs as uid {os.getuid()} only, not as uid {attempt.uid}"
            loop.call_soon(self._report, Ended(key, NOT_STARTED, now(), why))
        elif key not in self._tracks:
            track = self._tracks[key] = _Track(RunDirectory(self._root / key), attempt)
            self._advance(track)

    def used(self, key: str) -> dict[str, float]:
        return RunDirectory(self._root / check_key(key)).used()

    def spools(self, key: str) -> tuple[str, str]:
        directory = self._root / check_key(key)
        return str(directory / files.OUTPUT), str(directory / files.ERROR)

    async def recover(self, expected: list[Attempt]) -> None:
        """Recover as `attempt.Executor` describes; return when each attempt is watched, reported or
        being cleared up as lost (its report follows)."""
        self._attach()
        wanted = {check_key(attempt.key) for attempt in expected}
        for entry in sorted(os.listdir(self._root)):
            if entry.startswith(GONE_PREFIX):
                self._start_task(self._discard(self._root / entry))
            elif entry not in wanted and entry not in self._tracks and is_key(entry):
                self._give_up(entry)
        before = set(self._tasks)
        for attempt in expected:
            self.launch(attempt)
        new = self._tasks - before
        if new:
            await asyncio.wait(new)

    def forget(self, key: str) -> None:
        if check_key(key) in self._tracks:
            raise ValueError(f"attempt {key} has not ended")
        self._attach()
        self._give_up(key)

    async def close(self) -> None:
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
        files.sync_directory(self._root.parent)  # without it the claims inside could be lost
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self._root / files.EVENTS, 0o600)
        self._events = os.open(self._root / files.EVENTS, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._events, self._hear)
        self._sweeper = self._loop.call_later(SWEEP, self._sweep)
        return self._loop

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
            news = (
                None
                if is_short
                else await self._after_failure(track, f"{type(error).__name__}: {error}")
            )
        finally:
            track.is_busy = False
        if isinstance(news, Ended):
            self._finish(track, news)
        elif isinstance(news, Gone):
            track.is_busy = True
            self._start_task(self._clear_up(track, news))
        else:
            self._report_start(track)
            self._unwatch(track)
            if news is None:
                loop.call_later(AGAIN, self._advance, track)
            else:
                track.handle = news
                loop.add_reader(news, self._supervisor_ended, track)

    def _step(self, track: _Track) -> Ended | Gone | int | None:
        """Look at the run directory and do the next thing, on the launching thread.

        Return how the attempt ended, that its supervisor is lost, a pidfd of its supervisor, or
        None to look again soon.

        Raises:
            OSError: the thing cannot be done.
        """
        directory = track.directory
        if track.child is not None:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(track.child, os.WNOHANG) == (0, 0):
                    return os.pidfd_open(track.child)
            track.child = None
        situation = directory.look()
        if isinstance(situation, Alive):
            claim = situation.claim
            return processes.open_process(claim.pid, claim.start) if claim and claim.start else None
        if situation is not None:
            return situation
        if track.has_started or (track.spawned and not (directory.path / files.SPEC).exists()):
            # Never start it again.
            return Gone(None, "its run directory was removed or emptied by someone else")
        if track.spawned >= SPAWN_TRIES:
            words = directory.last_words()
            return self._refuse(
                track, "its supervisor does not start" + (f": {words}" if words else "")
            )
        directory.prepare(track.attempt)
        while track.unsent and directory.send(track.unsent[0]):
            del track.unsent[0]
        # The token is in the supervisor's own environment too: so the script is marked from the
        # instant of its fork.
        environment = {processes.MARKER: os.urandom(16).hex()}
        if "LD_LIBRARY_PATH" in os.environ:  # for Python itself; the job does not inherit it
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        track.spawned += 1
        # If another supervisor has the attempt already, this one ends at once.
        track.child = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-X", "utf8", SUPERVISOR, str(directory.path)],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (
                    os.POSIX_SPAWN_OPEN,
                    2,
                    str(directory.path / files.LOG),
                    os.O_WRONLY | os.O_CREAT | os.O_APPEND,
                    0o600,
                ),
            ],
            setsid=True,
            setsigmask=[],
        )
        return os.pidfd_open(track.child)

    def _refuse(self, track: _Track, why: str) -> Ended | None:
        """Give an attempt up that never started: claim it first, so that no supervisor can start
        it; None if one has it."""
        return track.directory.record_exit(NOT_STARTED, why) if track.directory.fence() else None

    async def _after_failure(self, track: _Track, why: str) -> Ended | Gone | None:
        """A step raised an exception: try again a few times, then give the attempt up with the end
        that is known."""
        track.tries += 1
        if track.tries < SPAWN_TRIES:
            return None
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._launcher, self._refuse, track, why
            )
        except (OSError, ValueError):
            if track.spawned or (track.directory.path / files.CLAIM).exists():
                return Gone(None, why)
            return Ended(track.key, NOT_STARTED, now(), why)

    async def _clear_up(self, track: _Track, news: Gone) -> None:
        """Kill what a lost attempt left, put the loss on record, report it."""
        end = await asyncio.get_running_loop().run_in_executor(
            self._cleaner, self._record_loss, track, news
        )
        track.is_busy = False
        self._finish(track, end)

    def _record_loss(self, track: _Track, news: Gone) -> Ended:
        directory, why = track.directory, news.why
        if news.claim is not None and news.claim.pid == 0:
            return directory.record_exit(NOT_STARTED, "given up before it was started")
        try:
            if not directory.kill_leftovers(news.claim):
                why += "; some of its processes cannot be killed"
        except Exception as error:
            why += f"; its processes could not be looked for: {error}"
        return directory.record_exit(LOST, why, directory.deliver(), directory.used())

    def _supervisor_ended(self, track: _Track) -> None:
        self._unwatch(track)
        self._advance(track)

    def _unwatch(self, track: _Track) -> None:
        if track.handle is not None:
            if self._loop is not None:
                self._loop.remove_reader(track.handle)
            os.close(track.handle)
            track.handle = None

    def _finish(self, track: _Track, end: Ended) -> None:
        """Report an end, and the start before it if that was not reported."""
        if self._tracks.get(track.key) is track:
            self._unwatch(track)
            self._report_start(track)
            del self._tracks[track.key]
            if track.child is not None:
                self._uncollected.add(track.child)
            self._report(end)

    # News of starts, and looks at all attempts

    def _report_start(self, track: _Track) -> None:
        if not track.has_started:
            with contextlib.suppress(OSError):
                record = track.directory.started()
                if record is not None:
                    track.has_started = True
                    self._report(Started(track.key, record.session, record.at))

    def _hear(self) -> None:
        """Read the keys of attempts of which supervisors started the scripts."""
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self._events, 65536).decode("ascii", "replace").split("\n"):
                track = self._tracks.get(line)
                if track is not None:
                    self._report_start(track)

    def _sweep(self) -> None:
        """Look for what no event has shown: a start that did not fit into a full FIFO, a supervisor
        that came too late."""
        assert self._loop is not None
        for child in list(self._uncollected):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(child, os.WNOHANG) == (0, 0):
                    continue
            self._uncollected.discard(child)
        for track in list(self._tracks.values()):
            if track.handle is not None:
                self._report_start(track)
        self._sweeper = self._loop.call_later(SWEEP, self._sweep)

    # Commands to supervisors, and removal

    def _command(self, verb: str, key: str, *arguments: float) -> None:
        line = " ".join([verb.removeprefix("set_"), *map(repr, arguments)])
        directory, track = RunDirectory(self._root / check_key(key)), self._tracks.get(key)
        loop = self._attach()

        def send() -> None:
            if not directory.send(line) and track is not None:
                track.unsent.append(line)

        async def send_in_order() -> None:
            await loop.run_in_executor(self._launcher, send)

        self._start_task(send_in_order())

    def _give_up(self, key: str) -> None:
        """Move a directory away at once, and remove it in the background."""
        gone = self._root / f"{GONE_PREFIX}{key}~{os.urandom(6).hex()}"
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._root / key, gone)
            self._start_task(self._discard(gone))

    async def _discard(self, path: Path) -> None:
        await asyncio.get_running_loop().run_in_executor(self._cleaner, RunDirectory(path).discard)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
