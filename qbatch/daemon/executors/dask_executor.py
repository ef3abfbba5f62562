"""The Dask executor: each host of a pool is the Dask worker of its name, and scripts start there.

The daemon keeps a run directory for each attempt, like that of the process executor.  It holds what
was asked, the place to which the attempt was sent (made with O_EXCL before it is sent), and how it
ended.  The worker's side is ``dask_worker.py``. A worker that is gone is a host that is down: the
core is informed first (:class:`HostGate`), then each of the attempts is reported as lost, and is
never sent again.  A worker that comes back under its name finds its attempts given up, ends what is
left of them, and is up.

There is one path only, as in the process executor.  An attempt that is new, or is found after a
restart of the daemon, goes to its worker, which starts it unless it has it already, and reports its
state.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import structs

from qbatch.distribution import __version__
from qbatch.model.errors import InputError
from qbatch.model.machine import Host

from . import dask_worker
from .attempt import LOST, NOT_STARTED, Attempt, Ended, Executor, Report, Started
from .dask_cluster import ClusterRefusedError, DaskScheduler, SilentError, WorkerSeen
from .process_directory import RunDirectory, check_key, now
from .supervision import files
from .supervision.outputs import OutputTarget, targets_of

log = logging.getLogger("qbatch")

LOOK, WATCH = 2.0, 20.0
"""Seconds between looks at the workers, and for which a worker is asked to wait for news."""

FIRST_DELAY, LAST_DELAY = 0.25, 10.0
"""Seconds before something that failed is tried again: twice as many each time, up to the last
delay."""

REFUSED_FOR = 30.0
"""Seconds until a worker that cannot be used is asked again."""

OPENING = 15.0
"""Seconds for which a start waits for its workers."""

MOST_SENT = 64
"""Commands in one call."""

PART = 1 << 20
"""Bytes of a long script in one call."""


class HostGate(Protocol):
    """What the executor calls in the core for hosts; a repeated call changes nothing."""

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts of the pool as they are configured now."""
        ...

    def take_down(self, name: str, why: str) -> None:
        """The host is down: what runs there is lost."""

    def bring_up(self, name: str) -> None:
        """The host is up again, unless it was closed for another reason."""


class Link:
    """A worker that is a host, from when it is found until it is lost.

    ``order``: the first argument of each call to the worker, once it is open.  It names the
    ``place``, the worker's directory (the same after a restart), and the ``generation``, which
    changes when the worker gives up an attempt.
    """

    def __init__(self, name: str, seen: WorkerSeen) -> None:
        self.name, self.seen = name, seen
        self.is_open = False
        self.order: dict[str, Any] = {}
        self.keys: set[str] = set()  # attempts that the worker may know
        self.opening: asyncio.Task[None] | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self.silent_since: float | None = None
        self.wake = asyncio.Event()
        self.commands: list[tuple[Any, ...]] = []
        self._number = 0

    def put(self, verb: str, key: str, *arguments: Any) -> int:
        """Queue a command for the worker; return its number."""
        self._number += 1
        self.commands.append((self._number, verb, key, *arguments))
        self.wake.set()
        return self._number

    def keep(self, commands: list[tuple[Any, ...]]) -> None:
        """Keep only these commands."""
        self.commands = commands
        if not commands:
            self.wake.clear()


PLACE = "place"
"""File: the place to which the attempt is sent, and its generation; it is made before the attempt
is sent."""


class Track:
    """One attempt that is not known to have ended.

    ``is_sent``: its worker gets the command ``number`` to start it; ``is_noted``: that is on
    record, and a long script is sent. ``was_sent``: an earlier process or track may have sent it;
    ``must_resume``: it did, and the worker must go on with it, never start it anew.  ``unsent``:
    commands that follow its start.  The functions that wait for the disk run on other threads.
    """

    def __init__(self, attempt: Attempt, path: Path) -> None:
        self.attempt = structs.replace(attempt, direct="")
        self.key, self.host = attempt.key, attempt.host
        self.directory = RunDirectory(path)
        self.place = self.generation = ""
        self.number = 0
        self.was_sent = self.must_resume = False
        self.has_started = self.is_prepared = self.is_sent = self.is_noted = self.is_ending = False
        self.used: dict[str, float] = {}
        self.unsent: list[tuple[Any, ...]] = []

    def prepare(self) -> Ended | None:
        """Make the run directory, unless it exists; return how the attempt ended, if it did."""
        self.directory.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.prepare(self.attempt)
        situation = self.directory.look()
        if isinstance(situation, Ended):
            return situation
        path = self.directory.path / PLACE
        text = path.read_text(encoding="ascii") if path.exists() else ""
        self.place, _, self.generation = text.partition(" ")
        self.was_sent = bool(text)
        return None

    def note_place(self, place: str, generation: str) -> None:
        """Put on record to which place the attempt goes, before it does.

        Raises:
            FileExistsError: it went somewhere before.
        """
        temporary = self.directory.path / f"{PLACE}.tmp"
        temporary.unlink(missing_ok=True)
        files.write(
            str(temporary), f"{place} {generation}".encode("ascii"), None, files.NEW, is_synced=True
        )
        os.link(temporary, self.directory.path / PLACE)
        temporary.unlink()
        self.place, self.generation = place, generation

    def keep(self, name: str, offset: int, data: bytes, mode: int) -> None:
        """Keep a part of an output; the first one begins it anew."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (0 if offset else os.O_TRUNC)
        handle = os.open(self.directory.path / name, flags, 0o600)
        try:
            os.pwrite(handle, data, offset)
            os.fchmod(handle, mode)
        finally:
            os.close(handle)

    def conclude(self, end: Ended, problem: str) -> Ended:
        """Deliver what was fetched, and put the end on record."""
        undelivered = "; ".join(filter(None, (end.undelivered, problem, self.directory.deliver())))
        return self.directory.record_exit(end.status, end.why, undelivered, end.used)


class DaskExecutor(Executor):
    """Runs attempts on the workers of a Dask cluster; see `attempt.Executor` for the contract.

    ``root`` is made if it is absent and belongs to this executor alone; ``identity`` names the
    daemon's store on the workers. ``directory``: where workers keep their attempts ("": in the
    state directories of their users).  ``timeout``: seconds for which the cluster may be silent
    until its hosts are down.  Call `recover` first, `close` last (jobs go on running).
    """

    def __init__(
        self,
        address: str,
        root: Path,
        report: Callable[[Report], None],
        gate: HostGate,
        *,
        identity: str,
        directory: str = "",
        timeout: float = 30.0,
    ) -> None:
        self.cluster = DaskScheduler(address)
        self._root, self._report, self._gate, self._timeout = root, report, gate, timeout
        self._session = os.urandom(8).hex()
        self._order = {"version": __version__, "identity": identity, "directory": directory}
        # Of the last opening: above those of earlier processes, even if one comes late.
        self._number = time.time_ns()
        self._tracks: dict[str, Track] = {}
        self._links: dict[str, Link] = {}
        self._absent: dict[str, str] = {}  # hosts without a worker, and why
        self._refused: dict[str, tuple[WorkerSeen, float, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._look_again = asyncio.Event()
        self._silent_since: float | None = None

    # What the daemon asks for

    def launch(self, attempt: Attempt) -> None:
        key = check_key(attempt.key)
        if key in self._tracks:
            return
        if attempt.uid != os.getuid():
            why = f"this executor runs jobs of uid {os.getuid()} only, not of uid {attempt.uid}"
            asyncio.get_running_loop().call_soon(self._report, Ended(key, NOT_STARTED, now(), why))
            return
        track = self._tracks[key] = Track(attempt, self._root / key)
        self._start_task(self._begin(track), track=track)

    def used(self, key: str) -> dict[str, float]:
        track = self._tracks.get(key)
        return track.used if track is not None else {}

    def spools(self, key: str) -> tuple[str, str]:
        """Return the paths to which the outputs of an ended attempt are fetched, until they are
        delivered."""
        directory = self._root / check_key(key)
        return str(directory / files.OUTPUT), str(directory / files.ERROR)

    def forget(self, key: str) -> None:
        """Remove the run directory of an attempt that ended, here and on its worker; ValueError if
        it has not ended."""
        if check_key(key) in self._tracks:
            raise ValueError(f"attempt {key} has not ended")
        self._remove(self._root / key)
        for link in self._links.values():
            if key in link.keys:
                link.keys.discard(key)
                link.put("forget", key)

    def owns(self, host: str) -> bool:
        """Return whether a host is one of the pool's."""
        return any(each.name == host for each in self._gate.hosts())

    async def recover(self, expected: list[Attempt]) -> None:
        """After a restart: find the workers, and send them what was running and what never started.

        It returns when the present workers are open, or some time has passed.

        Raises:
            InputError: the cluster does not answer and was never reached before.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = {check_key(attempt.key) for attempt in expected}
        for path in self._root.glob("[0-9]*"):
            if path.name not in wanted:
                self._remove(path)
        known = self._root / "address"
        try:
            workers = await self.cluster.workers()
            known.write_text(self.cluster.address, encoding="utf-8")
        except (SilentError, ClusterRefusedError) as error:
            if not known.exists() or known.read_text(encoding="utf-8") != self.cluster.address:
                raise InputError(f"pool {self._root.name}: {self._why_silent(error)}") from error
            self._silent_since = asyncio.get_running_loop().time()
            busy = {attempt.host for attempt in expected}
            for host in self._gate.hosts():
                if host.name not in busy:
                    self._down(host.name, self._why_silent(error))
            workers = None
        for attempt in expected:
            self.launch(attempt)
        if workers is not None:
            self._compare(workers)
            opening = [link.opening for link in self._links.values() if link.opening is not None]
            if opening:
                await asyncio.wait(opening, timeout=OPENING)
        self._start_task(self._follow())

    async def close(self) -> None:
        while self._tasks:  # a task that ends may begin another one
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=LOOK)
        await self.cluster.close()

    def _remove(self, path: Path) -> None:
        self._start_task(asyncio.to_thread(shutil.rmtree, path, ignore_errors=True))

    # The workers

    async def _follow(self) -> None:
        """Look at the workers again and again; a silent scheduler less and less often."""
        loop, delay = asyncio.get_running_loop(), FIRST_DELAY
        while True:
            try:
                workers = await self.cluster.workers()
                if self._silent_since is not None:
                    log.info(
                        "the Dask scheduler at %s answers after %.0f seconds",
                        self.cluster.address,
                        loop.time() - self._silent_since,
                    )
                    self._absent.clear()
                self._compare(workers)
            except Exception as error:
                if not isinstance(error, SilentError | ClusterRefusedError):
                    log.exception("looking at the workers of %s", self.cluster.address)
                why = self._why_silent(error)
                if self._silent_since is None:
                    self._silent_since = loop.time()
                    log.warning("%s", why)
                if loop.time() - self._silent_since >= self._timeout:
                    for host in self._gate.hosts():
                        self._lose(host.name, why)
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY, max(self._timeout / 4, FIRST_DELAY))
                continue
            delay, self._silent_since = FIRST_DELAY, None
            self._look_again.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._look_again.wait()
            # Many workers that fail at once are looked at once.
            await asyncio.sleep(FIRST_DELAY / 5)

    def _why_silent(self, error: Exception) -> str:
        said = " ".join(str(error).split())[:120]
        return (
            f"no Dask scheduler answers at {self.cluster.address} ({said}); start it, or "
            "correct address"
        )

    def _compare(self, workers: dict[str, WorkerSeen]) -> None:
        """Compare the present workers with the known ones."""
        hosts = {host.name: host for host in self._gate.hosts()}
        for name in [name for name in self._links if name not in hosts]:
            self._lose(name, "it is no host of the pool any more")
        for name, host in hosts.items():
            seen, link = workers.get(name), self._links.get(name)
            if link is not None and (seen is None or seen.address != link.seen.address):
                self._lose(name, f"its Dask worker at {link.seen.address} is gone")
                link = None
            if seen is None:
                self._lose(name, self._absent.get(name) or f"there is no Dask worker {name}")
            elif link is not None and link.is_open:
                self._gate.bring_up(name)
            elif link is None:
                self._find(host, seen)

    def _find(self, host: Host, seen: WorkerSeen) -> None:
        """Open a new worker, if it can be the host."""
        why = ""
        if seen.threads < host.cpus:
            why = f"its Dask worker has {seen.threads} threads, cpus = {host.cpus}"
        elif host.memory and 0 < seen.memory < host.memory:
            why = f"its Dask worker has {seen.memory} bytes of memory, the host {host.memory}"
        before = self._refused.get(host.name)
        if (
            not why
            and before is not None
            and before[0] == seen
            and asyncio.get_running_loop().time() < before[1]
        ):
            why = before[2]
        if why:
            self._lose(host.name, why)
            return
        link = self._links[host.name] = Link(host.name, seen)
        link.opening = self._start_task(self._open(link), link=link)

    async def _open(self, link: Link) -> None:
        delay = FIRST_DELAY
        while True:
            keys = [key for key, track in self._tracks.items() if track.host == link.name]
            link.keys.update(keys)  # the worker keeps what it has of these until they are forgotten
            self._number += 1
            session = f"{self._session}.{self._number}"
            order = {
                **self._order,
                "number": self._number,
                "session": session,
                "host": link.name,
                "keys": keys,
            }
            try:
                answer = await self.cluster.call(link.seen.address, dask_worker.open_site, order)
                if "newest" not in answer:
                    break
                self._number = max(self._number, answer["newest"])
            except SilentError as error:
                if not (delay := await self._pause(link, error, delay)):
                    return
            except ClusterRefusedError as error:
                self._refuse(link, str(error))
                return
        if self._links.get(link.name) is not link:
            return
        self._refused.pop(link.name, None)
        link.is_open, link.order = True, {**answer, "session": session}
        self._absent.pop(link.name, None)
        log.info("host %s is the Dask worker at %s", link.name, link.seen.address)
        self._gate.bring_up(link.name)
        link.tasks = [
            self._start_task(self._send(link), link=link),
            self._start_task(self._watch(link), link=link),
        ]
        for track in list(self._tracks.values()):
            if track.host == link.name and track.is_prepared:
                self._send_launch(track, link)

    def _refuse(self, link: Link, why: str) -> None:
        """Lose a worker that cannot be used, and do not ask it for a while."""
        if self._links.get(link.name) is link:
            self._refused[link.name] = (
                link.seen,
                asyncio.get_running_loop().time() + REFUSED_FOR,
                why,
            )
            self._lose(link.name, why)

    def _lose(self, name: str, why: str) -> None:
        """Take a host without a worker down; its attempts are lost."""
        link = self._links.pop(name, None)
        if link is not None:
            link.is_open = False
            for task in link.tasks:
                task.cancel()
        self._down(name, why)
        for track in [track for track in self._tracks.values() if track.host == name]:
            self._start_task(self._lose_track(track, f"host {name} went down: {why}"), track=track)

    def _down(self, name: str, why: str) -> None:
        if self._absent.get(name) != why:
            self._absent[name] = why
            log.warning("host %s is down: %s", name, why)
        self._gate.take_down(name, why)

    async def _pause(self, link: Link, error: SilentError, delay: float) -> float:
        """Wait before a worker that did not answer is called again.

        Return the delay after that one, or 0 if the worker is lost or has been silent for too long.
        """
        if self._links.get(link.name) is not link:
            return 0.0
        present = asyncio.get_running_loop().time()
        link.silent_since = link.silent_since or present
        self._look_again.set()
        if self._silent_since is None and present - link.silent_since >= self._timeout:
            self._lose(
                link.name,
                f"its Dask worker has been silent for {self._timeout:.0f} seconds ({error})",
            )
            return 0.0
        await asyncio.sleep(delay)
        return min(2 * delay, LAST_DELAY)

    # The two tasks of a link

    async def _ask(self, link: Link, call: Callable[[], Awaitable[Any]], what: str) -> Any:
        """Call a worker until it answers; return None if its host is lost instead.  ``what``: the
        words for a refusal."""
        delay = FIRST_DELAY
        while True:
            try:
                answer = await call()
            except SilentError as error:
                if not (delay := await self._pause(link, error, delay)):
                    return None
                continue
            except ClusterRefusedError as error:
                self._lose(link.name, f"its Dask worker {what}: {error}")
                return None
            if answer is None:
                self._lose(link.name, "its Dask worker was started again")
                self._look_again.set()
                return None
            link.silent_since = None
            return answer

    async def _send(self, link: Link) -> None:
        """Send the worker its commands in order, each until it has arrived."""
        while True:
            await link.wake.wait()
            last = link.commands[:MOST_SENT][-1][0]
            if (
                await self._ask(link, partial(self._send_until, link, last), "takes no commands")
                is None
            ):
                return
            link.keep([command for command in link.commands if command[0] > last])

    async def _send_until(self, link: Link, last: int) -> Any:
        """Send the commands up to a number, when all that must come before them has been done."""
        batch = []
        for number, verb, key, *arguments in [
            command for command in link.commands if command[0] <= last
        ]:
            if verb == "launch":
                track = self._tracks.get(key)
                if track is None or track.is_ending:
                    continue
                if not track.is_noted and (problem := await self._before_launch(link, track)):
                    link.keep([command for command in link.commands if command[2] != key])
                    self._start_task(self._lose_track(track, problem, NOT_STARTED), track=track)
                    continue
                verb = "resume" if track.must_resume else verb
            batch.append((number, verb, key, *arguments))
        return await self.cluster.call(link.seen.address, dask_worker.carry_out, link.order, batch)

    async def _before_launch(self, link: Link, track: Track) -> str:
        """Put on record where an attempt goes, and send a long script before it; return what went
        wrong, if anything.

        Raises:
            SilentError: the worker does not answer; call this again.
        """
        try:
            if not track.place:
                await asyncio.to_thread(
                    track.note_place, link.order["place"], link.order["generation"]
                )
            if track.attempt.script_file:
                path = Path(track.attempt.script_file)
                with await asyncio.to_thread(lambda: path.open("rb")) as stream:
                    while data := await asyncio.to_thread(stream.read, PART):
                        offset = stream.tell() - len(data)
                        await self.cluster.call(
                            link.seen.address,
                            dask_worker.write,
                            link.order,
                            track.key,
                            offset,
                            data,
                        )
        except (ClusterRefusedError, OSError) as error:
            if not track.was_sent:
                return f"its script cannot be sent to host {link.name}: {error}"
            track.must_resume = True  # it may run there, with all that it needs
        track.is_noted = True
        return ""

    async def _watch(self, link: Link) -> None:
        """Ask the worker for news; it answers when there are some."""
        version = -1
        while True:
            call = partial(
                self.cluster.call,
                link.seen.address,
                dask_worker.watch,
                link.order,
                version,
                WATCH,
                seconds=WATCH,
            )
            news = await self._ask(link, call, "cannot be watched")
            if news is None:
                return
            version = news["version"]
            self._hear(link, news)

    def _hear(self, link: Link, news: dict[str, Any]) -> None:
        for key, (session, at) in news["started"].items():
            track = self._tracks.get(key)
            if track is not None and not track.has_started:
                track.has_started = True
                self._report(Started(key, session, at))
        for key, used in news["used"].items():
            if key in self._tracks:
                self._tracks[key].used = used
        for key, end in news["ended"].items():
            track = self._tracks.get(key)
            if track is not None and not track.is_ending:
                track.is_ending = True
                self._start_task(self._bring_back(track, Ended(key, *end), link), track=track)
        for key in link.keys - news["used"].keys() - news["ended"].keys():
            track = self._tracks.get(key)
            if (
                track is not None
                and track.is_sent
                and track.number <= news["done"]
                and not track.is_ending
            ):
                self._start_task(
                    self._lose_track(
                        track, f"the Dask worker of host {link.name} does not know it"
                    ),
                    track=track,
                )

    # One attempt

    async def _begin(self, track: Track) -> None:
        try:
            over = await asyncio.to_thread(track.prepare)
        except OSError as error:
            why = f"its run directory cannot be made: {error.strerror}"
            self._finish(track, Ended(track.key, NOT_STARTED, now(), why))
            return
        if over is not None:  # reported before, and asked for again
            self._finish(track, over)
            return
        track.is_prepared = True
        link = self._links.get(track.host)
        if link is not None and link.is_open:
            self._send_launch(track, link)
        elif link is None and track.host in self._absent:
            self._gate.take_down(track.host, self._absent[track.host])
            await self._lose_track(track, f"host {track.host} is down: {self._absent[track.host]}")

    def _send_launch(self, track: Track, link: Link) -> None:
        """Let the worker start an attempt, unless it has it already."""
        if track.is_sent or track.is_ending:
            return
        if track.place and track.place != link.order["place"]:
            why = f"the directory of its Dask worker {link.name} is not the one in which it ran"
            self._start_task(self._lose_track(track, why), track=track)
            return
        track.is_sent, track.must_resume = (
            True,
            track.was_sent and track.generation != link.order["generation"],
        )
        link.keys.add(track.key)
        track.number = link.put("launch", track.key, msgspec.json.encode(track.attempt))
        for verb, *arguments in track.unsent:
            link.put(verb, track.key, *arguments)

    def _command(self, verb: str, key: str, *arguments: float) -> None:
        track = self._tracks.get(check_key(key))
        if track is None or track.is_ending:
            return
        link = self._links.get(track.host)
        if track.is_sent and link is not None:
            link.put(verb, key, *arguments)
        else:
            track.unsent.append((verb, *arguments))

    async def _bring_back(self, track: Track, end: Ended, link: Link) -> None:
        """Fetch what an ended attempt wrote, deliver it, put the end on record, report it."""
        problem, attempt = "", track.attempt
        try:
            for target in targets_of(attempt.output, attempt.error, attempt.join, ""):
                if target.spool and not problem:
                    problem = await self._fetch(track, target, link)
            end = await asyncio.to_thread(track.conclude, end, problem)
        except Exception as error:
            if not isinstance(error, OSError):
                log.exception("the output of attempt %s", track.key)
            why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            end = structs.replace(end, undelivered=f"{track.directory.path}: {why}")
        self._finish(track, end)

    async def _fetch(self, track: Track, target: OutputTarget, link: Link) -> str:
        """Fetch one output part by part; return what went wrong, if anything."""
        name, offset, delay = target.spool, 0, FIRST_DELAY
        while True:
            try:
                part = await self.cluster.call(
                    link.seen.address,
                    dask_worker.read,
                    link.order,
                    track.key,
                    target.letter,
                    offset,
                )
                if part is None:
                    return (
                        f"{name}: its Dask worker was started again before the whole of it was "
                        "fetched"
                    )
                if part["mode"] is not None:
                    await asyncio.to_thread(track.keep, name, offset, part["data"], part["mode"])
            except SilentError as error:
                if not (delay := await self._pause(link, error, delay)):
                    return f"{name}: its Dask worker was lost before the whole of it was fetched"
                continue
            except (ClusterRefusedError, OSError) as error:
                return f"{name}: {error}"
            if not part["data"]:
                return ""
            offset, delay = offset + len(part["data"]), FIRST_DELAY

    async def _lose_track(self, track: Track, why: str, status: int = LOST) -> None:
        if track.is_ending:
            return
        track.is_ending = True
        end = Ended(track.key, status, now(), why, track.used)
        # A full disk: then it is found out again after a restart.
        with contextlib.suppress(OSError):
            await asyncio.to_thread(track.conclude, end, "")
        self._finish(track, end)

    def _finish(self, track: Track, end: Ended) -> None:
        if self._tracks.get(track.key) is track:
            del self._tracks[track.key]
            self._report(end)

    def _start_task(
        self,
        work: Coroutine[Any, Any, None],
        *,
        link: Link | None = None,
        track: Track | None = None,
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._end_task, link, track))
        return task

    def _end_task(self, link: Link | None, track: Track | None, task: asyncio.Task[None]) -> None:
        """If a task failed unexpectedly, its host or its attempt is lost, so that nothing waits for
        it for ever."""
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("the Dask executor at %s", self.cluster.address, exc_info=error)
        why = f"its Dask worker cannot be followed: {type(error).__name__}: {error}"
        if link is not None:
            self._refuse(link, why)
        if track is not None:
            self._finish(track, Ended(track.key, LOST, now(), why, track.used))
