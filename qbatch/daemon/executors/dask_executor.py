"""The Dask executor: each host of a pool is the Dask worker of its name, and scripts start there.

The daemon's part of an attempt is a run directory like that of the process executor: what was asked, the place to which it
was sent (made with O_EXCL before it is sent), how it ended.  The worker's part is ``dask_worker.py``.  A worker that is gone
is a host that is down: the core is told so first (:class:`HostGate`), then each of its attempts is reported as lost, and is
never sent again.  One that comes back under its name finds its attempts given up, ends what is left of them, and is up.

As there, one path only: an attempt that is new, or is found after a restart of the daemon, is handed to its worker, which starts
it unless it has it already, and tells how it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from qbatch.distribution import __version__
from qbatch.model.errors import InputError
from qbatch.model.machine import Host

from . import dask_worker
from .attempt import LOST, NOT_STARTED, Attempt, Ended, Report, Started
from .dask_cluster import LAST_DELAY, ClusterRefusedError, DaskScheduler, HostGate, Link, SilentError, WorkerSeen
from .dask_track import Track, before_launch, fetch, now, remove
from .process_directory import check_key, ended
from .supervision import files

log = logging.getLogger("qbatch")

LOOK, WATCH = 2.0, 20.0
"""Seconds between looks at the workers, and for which a worker is asked to wait for news."""

FIRST_DELAY = 0.25
"""Seconds before something that failed is tried again: twice as many each time."""

REFUSED_FOR = 30.0
"""Seconds until a worker that cannot be used is asked again."""

OPENING = 15.0
"""Seconds for which a start waits for its workers."""


class DaskExecutor:
    """Runs attempts on the workers of a Dask cluster; see `attempt.Executor` for the contract.

    ``root`` is made if it is absent and belongs to this executor alone; ``identity`` names the daemon's store on the workers.
    ``directory``: where workers keep their attempts ("": where users' states are).  ``timeout``: seconds for which the cluster
    may be silent until its hosts are down.  Call `recover` first, `close` last (jobs go on running).
    """

    def __init__(
        self, address: str, root: Path, report: Callable[[Report], None], gate: HostGate, *, identity: str,
        directory: str = "", timeout: float = 30.0,
    ) -> None:  # fmt: skip
        self.cluster = DaskScheduler(address)
        self._root, self._report, self._gate, self._timeout = root, report, gate, timeout
        self._session = os.urandom(8).hex()
        self._order = {"version": __version__, "identity": identity, "directory": directory}
        self._number = time.time_ns()  # of the last opening: above those of earlier processes, also of one that comes late
        self._tracks: dict[str, Track] = {}
        self._links: dict[str, Link] = {}
        self._absent: dict[str, str] = {}  # hosts without a worker, and why
        self._refused: dict[str, tuple[WorkerSeen, float, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._look_again = asyncio.Event()
        self._silent_since: float | None = None

    # What the daemon asks for

    def launch(self, attempt: Attempt) -> None:
        """Have an attempt started by the worker of its host, at most once, however often it is called."""
        key = check_key(attempt.key)
        if key in self._tracks:
            return
        if attempt.uid != os.getuid():
            why = f"this executor runs jobs of uid {os.getuid()} only, not of uid {attempt.uid}"
            asyncio.get_running_loop().call_soon(self._report, Ended(key, NOT_STARTED, now(), why))
            return
        track = self._tracks[key] = Track(attempt, self._root / key)
        self._start_task(self._begin(track), track=track)

    def stop(self, key: str, grace: float) -> None:
        """TERM, then KILL after ``grace`` seconds, to everything that the attempt started."""
        self._tell("stop", key, max(0.0, float(grace)))

    def signal(self, key: str, number: int) -> None:
        """Send a signal to all processes of the attempt."""
        if not 1 <= number <= 64:
            raise ValueError(f"not a signal: {number}")
        self._tell("signal", key, int(number))

    def resize(self, key: str, procs: int, share: float) -> None:
        """Tell the attempt how many processors it has now."""
        self._tell("resize", key, int(procs), float(share))

    def set_walltime(self, key: str, walltime: float) -> None:
        """Let an attempt run for so many seconds in all."""
        self._tell("set_walltime", key, float(walltime))

    def used(self, key: str) -> dict[str, float]:
        """Return what a running attempt has used by what its worker told last."""
        track = self._tracks.get(key)
        return track.used if track is not None else {}

    def spools(self, key: str) -> tuple[str, str]:
        """Return where the output and the error of an attempt come to when it has ended, until they are delivered."""
        directory = self._root / check_key(key)
        return str(directory / files.OUTPUT), str(directory / files.ERROR)

    def forget(self, key: str) -> None:
        """Remove the run directory of an attempt that ended, here and there; ValueError where it has not."""
        if check_key(key) in self._tracks:
            raise ValueError(f"attempt {key} has not ended")
        self._start_task(remove(self._root / key))
        for link in self._links.values():
            if key in link.keys:
                link.keys.discard(key)
                link.put("forget", key)

    def owns(self, host: str) -> bool:
        """Tell whether a host is one of the pool's."""
        return any(each.name == host for each in self._gate.hosts())

    async def recover(self, expected: list[Attempt]) -> None:
        """After a restart: find the workers, and hand them what was running and what never started.

        Returns when the workers that are there are open, or some time has passed.  A cluster that was never reached must answer.

        Raises:
            InputError: it does not.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = {check_key(attempt.key) for attempt in expected}
        for path in self._root.glob("[0-9]*"):
            if path.name not in wanted:
                self._start_task(remove(path))
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
        """Let go of everything; jobs and their workers go on."""
        while self._tasks:  # what is being ended may begin another thing
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=LOOK)
        await self.cluster.close()

    # The workers

    async def _follow(self) -> None:
        """Look at the workers again and again; a silent scheduler less and less often."""
        loop, delay = asyncio.get_running_loop(), FIRST_DELAY
        while True:
            try:
                workers = await self.cluster.workers()
                if self._silent_since is not None:
                    log.info("the Dask scheduler at %s answers after %.0f seconds", self.cluster.address,
                             loop.time() - self._silent_since)  # fmt: skip
                    self._absent.clear()
                self._compare(workers)
            except Exception as error:
                if not isinstance(error, SilentError | ClusterRefusedError):
                    log.exception("looking at the workers of %s", self.cluster.address)
                self._silence(self._why_silent(error))
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY, max(self._timeout / 4, FIRST_DELAY))
                continue
            delay, self._silent_since = FIRST_DELAY, None
            self._look_again.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._look_again.wait()
            await asyncio.sleep(FIRST_DELAY / 5)  # many workers that fail at once are looked at once

    def _why_silent(self, error: Exception) -> str:
        said = " ".join(str(error).split())[:120]
        return f"no Dask scheduler answers at {self.cluster.address} ({said}); start it, or correct address"

    def _silence(self, why: str) -> None:
        now = asyncio.get_running_loop().time()
        if self._silent_since is None:
            self._silent_since = now
            log.warning("%s", why)
        if now - self._silent_since >= self._timeout:
            for host in self._gate.hosts():
                self._lose(host.name, why)

    def _compare(self, workers: dict[str, WorkerSeen]) -> None:
        """Hold the workers that there are to those that there were."""
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
        """A worker is there that was not: open it, if it can be the host."""
        why = ""
        if seen.threads < host.cpus:
            why = f"its Dask worker has {seen.threads} threads, cpus = {host.cpus}"
        elif host.memory and 0 < seen.memory < host.memory:
            why = f"its Dask worker has {seen.memory} bytes of memory, the host {host.memory}"
        before = self._refused.get(host.name)
        if not why and before is not None and before[0] == seen and asyncio.get_running_loop().time() < before[1]:
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
            link.keys.update(keys)  # the worker keeps what it has of these until it is told to forget them
            self._number += 1
            session = f"{self._session}.{self._number}"
            order = {**self._order, "number": self._number, "session": session, "host": link.name, "keys": keys}
            try:
                said = await self.cluster.call(link.seen.address, dask_worker.open_site, order)
                if "newest" not in said:
                    break
                self._number = max(self._number, said["newest"])
            except SilentError as error:
                if self._is_lost(link, error):
                    return
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)
            except ClusterRefusedError as error:
                if self._links.get(link.name) is link:
                    until = asyncio.get_running_loop().time() + REFUSED_FOR
                    self._refused[link.name] = link.seen, until, str(error)
                    self._lose(link.name, str(error))
                return
        if self._links.get(link.name) is not link:
            return
        self._refused.pop(link.name, None)
        link.opened({**said, "session": session})
        self._absent.pop(link.name, None)
        log.info("host %s is the Dask worker at %s", link.name, link.seen.address)
        self._gate.bring_up(link.name)
        link.tasks = [self._start_task(self._send(link), link=link), self._start_task(self._watch(link), link=link)]
        for track in list(self._tracks.values()):
            if track.host == link.name and track.is_prepared:
                self._hand_over(track, link)

    def _lose(self, name: str, why: str) -> None:
        """A host has no worker: it is down, and its attempts are lost."""
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

    def _is_lost(self, link: Link, error: SilentError) -> bool:
        """A worker did not answer: look at once whether it is there; tell whether it has been silent for too long."""
        if self._links.get(link.name) is not link:
            return True
        now = asyncio.get_running_loop().time()
        link.silent_since = link.silent_since or now
        self._look_again.set()
        if self._silent_since is None and now - link.silent_since >= self._timeout:
            self._lose(link.name, f"its Dask worker has been silent for {self._timeout:.0f} seconds ({error})")
            return True
        return False

    # The two tasks of a link

    async def _send(self, link: Link) -> None:
        """Tell the worker what it is to do, in order, each command until it is heard."""
        delay = FIRST_DELAY
        while True:
            await link.wake.wait()
            last = link.batch()[-1][0]
            try:
                batch = await self._next_batch(link)
                answer = await self.cluster.call(link.seen.address, dask_worker.tell, link.order, batch)
            except SilentError as error:
                if self._is_lost(link, error):
                    return
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)
                continue
            except ClusterRefusedError as error:
                self._lose(link.name, f"its Dask worker cannot be told: {error}")
                return
            if answer is None:
                self._lose(link.name, "its Dask worker was started again")
                return
            delay, link.silent_since = FIRST_DELAY, None
            link.heard(last)

    async def _next_batch(self, link: Link) -> list[tuple[Any, ...]]:
        """Return the commands that are told next, when all that must come before them has."""
        batch = []
        for number, verb, key, *said in link.batch():
            track = self._tracks.get(key)
            if verb == "launch":
                if track is None or track.is_ending:
                    continue
                if not track.is_noted and (problem := await before_launch(self.cluster, link, track)):
                    link.drop(key)
                    self._start_task(self._lose_track(track, problem, NOT_STARTED), track=track)
                    continue
                verb = "resume" if track.must_resume else verb
            batch.append((number, verb, key, *said))
        return batch

    async def _watch(self, link: Link) -> None:
        """Ask the worker for news; it answers when there are some."""
        version, delay = -1, FIRST_DELAY
        while True:
            try:
                news = await self.cluster.call(
                    link.seen.address, dask_worker.watch, link.order, version, WATCH, seconds=WATCH
                )
            except SilentError as error:
                if self._is_lost(link, error):
                    return
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_DELAY)
                continue
            except ClusterRefusedError as error:
                self._lose(link.name, f"its Dask worker cannot be watched: {error}")
                return
            if news is None:
                self._lose(link.name, "its Dask worker was started again")
                self._look_again.set()
                return
            delay, link.silent_since, version = FIRST_DELAY, None, news["version"]
            self._hear(link, news)

    def _hear(self, link: Link, news: dict[str, Any]) -> None:
        for key, (session, at) in news["started"].items():
            track = self._tracks.get(key)
            if track is not None and not track.told_start:
                track.told_start = True
                self._report(Started(key, session, at))
        for key, used in news["used"].items():
            if key in self._tracks:
                self._tracks[key].used = used
        for key, said in news["ended"].items():
            track = self._tracks.get(key)
            if track is not None and not track.is_ending:
                track.is_ending = True
                self._start_task(self._bring_back(track, Ended(key, *said), link), track=track)
        for key in link.keys - news["used"].keys() - news["ended"].keys():
            track = self._tracks.get(key)
            if track is not None and track.is_sent and track.number <= news["told"] and not track.is_ending:
                self._start_task(self._lose_track(track, f"the Dask worker of host {link.name} does not know it"), track=track)

    # One attempt

    async def _begin(self, track: Track) -> None:
        try:
            over = await asyncio.to_thread(track.prepare)
        except OSError as error:
            why = f"its run directory cannot be made: {error.strerror}"
            self._finish(track, Ended(track.key, NOT_STARTED, now(), why))
            return
        if over is not None:  # reported before, and asked for again
            self._finish(track, ended(track.key, over))
            return
        track.is_prepared = True
        link = self._links.get(track.host)
        if link is not None and link.is_open:
            self._hand_over(track, link)
        elif link is None and track.host in self._absent:
            self._gate.take_down(track.host, self._absent[track.host])
            await self._lose_track(track, f"host {track.host} is down: {self._absent[track.host]}")

    def _hand_over(self, track: Track, link: Link) -> None:
        """Have the worker start an attempt, unless it has it already."""
        if track.is_sent or track.is_ending:
            return
        if track.place and track.place != link.place:
            why = f"the directory of its Dask worker {link.name} is not the one in which it ran"
            self._start_task(self._lose_track(track, why), track=track)
            return
        track.is_sent, track.must_resume = True, track.was_sent and track.generation != link.generation
        link.keys.add(track.key)
        track.number = link.put("launch", track.key, msgspec.json.encode(structs.replace(track.attempt, direct="")))
        for verb, *said in track.untold:
            link.put(verb, track.key, *said)

    def _tell(self, verb: str, key: str, *said: Any) -> None:
        track = self._tracks.get(check_key(key))
        if track is None or track.is_ending:
            return
        link = self._links.get(track.host)
        if track.is_sent and link is not None:
            link.put(verb, key, *said)
        else:
            track.untold.append((verb, *said))

    async def _bring_back(self, track: Track, said: Ended, link: Link) -> None:
        """An attempt ended: fetch what it wrote, deliver it, put the end on record, report it."""
        problem = ""
        try:
            for target in track.targets():
                problem = problem or await fetch(
                    self.cluster, link, track, target.spool, target.letter, self._is_lost, FIRST_DELAY
                )
            record = await asyncio.to_thread(track.conclude, said, problem)
        except Exception as error:
            if not isinstance(error, OSError):
                log.exception("the output of attempt %s", track.key)
            why = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            self._finish(track, structs.replace(said, undelivered=f"{track.directory.path}: {why}"))
            return
        self._finish(track, ended(track.key, record))

    async def _lose_track(self, track: Track, why: str, status: int = LOST) -> None:
        if track.is_ending:
            return
        track.is_ending = True
        said = Ended(track.key, status, now(), why, track.used)
        with contextlib.suppress(OSError):  # a full disk: then it is found out again after a restart
            await asyncio.to_thread(track.conclude, said, "")
        self._finish(track, said)

    def _finish(self, track: Track, said: Ended) -> None:
        if self._tracks.get(track.key) is track:
            del self._tracks[track.key]
            self._report(said)

    def _start_task(
        self, work: Coroutine[None, None, None], *, link: Link | None = None, track: Track | None = None
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended_task, link, track))
        return task

    def _ended_task(self, link: Link | None, track: Track | None, task: asyncio.Task[None]) -> None:
        """A task failed as nobody foresaw: what it was about is lost, so that nothing waits for it for ever."""
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("the Dask executor at %s", self.cluster.address, exc_info=error)
        why = f"its Dask worker cannot be followed: {type(error).__name__}: {error}"
        if link is not None and self._links.get(link.name) is link:
            self._refused[link.name] = link.seen, asyncio.get_running_loop().time() + REFUSED_FOR, why
            self._lose(link.name, why)
        if track is not None:
            self._finish(track, Ended(track.key, LOST, now(), why, track.used))
