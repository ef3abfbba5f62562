"""A live daemon as a source: its pushed events, requests on the same connection, and automatic
reconnection."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from qbatch.client import ConnectionLost, NoDaemon
from qbatch.tui.board import ON_HOSTS, WAITING, WINDOW, Board
from qbatch.wire.errors import ErrorRecord, Refusal, refusal_of
from qbatch.wire.frames import LONGEST_REPLY, FrameError, Splitter, encode
from qbatch.wire.paths import check_socket, socket_path
from qbatch.wire.records import (
    ClockRecord,
    Done,
    EventRecord,
    Hosts,
    JobRecord,
    Jobs,
    Queues,
    ServerRecord,
)
from qbatch.wire.requests import (
    HostStatus,
    JobStatus,
    QueueStatus,
    Request,
    ServerStatus,
    Subscribe,
    Time,
)

Result = TypeVar("Result", bound=msgspec.Struct)

LONGEST_PAUSE = 2.0
"""Seconds between two attempts to reach a daemon that has gone."""

PHASE_PAUSE = 1.0
"""Seconds between two requests for the current slice."""

REFILL = WINDOW // 2
"""Number of waiting jobs on the board below which another page is requested, if the daemon has
more."""

PATIENCE = 3.0
"""Seconds without an answer after which the daemon is reported as not answering."""

_PIECE = 1 << 18


class _PushedFrame(msgspec.Struct):
    id: int = 0
    result: msgspec.Raw = msgspec.Raw(b"{}")
    error: ErrorRecord | None = None
    event: EventRecord | None = None


_frames = msgspec.json.Decoder(_PushedFrame)


class Live:
    """The daemon at a socket.

    Args:
        path: its socket; None for the usual one.
        recorder: records each whole picture and each event.
    """

    is_live = True

    def __init__(self, path: str | None = None, recorder: Any = None) -> None:
        self.title = self.path = path or socket_path()
        self._trouble = ""
        self._asked: dict[int, float] = {}
        self._recorder = recorder
        self._writer: asyncio.StreamWriter | None = None
        self._answers: dict[int, asyncio.Future[_PushedFrame]] = {}
        self._number = 0
        self._is_filling = False
        self._has_loaded = False
        self._board: Board | None = None
        self._waiting = JobStatus(states=WAITING, limit=WINDOW, subjobs=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept: list[EventRecord] | None = None
        self._instant: list[EventRecord] = []
        self._loading = asyncio.Lock()
        self._wanted: set[tuple[str, str]] = set()

    @property
    def trouble(self) -> str:
        """The problem of the connection, empty if there is none: the daemon is gone, or an answer
        is late."""
        if self._trouble or not self._asked:
            return self._trouble
        since = time.monotonic() - min(self._asked.values())
        return f"no answer for {since:.0f} s" if since >= PATIENCE else ""

    def progress(self) -> tuple[int, int] | None:
        return None

    async def run(self, board: Board) -> None:
        """Connect, load a whole picture, follow the events; start again when the daemon comes back.

        Raises:
            NoDaemon: nothing listens at the first attempt.
        """
        self._board = board
        pause = 0.0
        while True:
            try:
                await self._follow(board)
            except (NoDaemon, ConnectionLost, Refusal) as error:
                if not self._has_loaded and not isinstance(error, ConnectionLost):
                    raise
                if not self._trouble:
                    board.say("the daemon has gone; waiting for it to come back")
                self._trouble = (
                    f"refused: {error}" if isinstance(error, Refusal) else "no daemon: reconnecting"
                )
                board.is_stale = True
                board.changed |= {"clock", "server"}
                pause = (
                    0.2 if isinstance(error, ConnectionLost) else min(pause + 0.2, LONGEST_PAUSE)
                )
            self._lose()
            await asyncio.sleep(pause)

    async def _follow(self, board: Board) -> None:
        try:
            check_socket(self.path)
            reader, self._writer = await asyncio.open_unix_connection(self.path, limit=_PIECE)
        except OSError as error:
            raise NoDaemon(self.path, error.errno or 2) from None
        reading = asyncio.create_task(self._read(reader, board))
        following: asyncio.Task[None] | None = None
        try:
            await self.load(board)
            if self._trouble:
                board.say("the daemon is back")
            self._trouble, self._has_loaded = "", True
            board.changed.add("server")
            following = asyncio.create_task(self._follow_unannounced(board))
            following.add_done_callback(lambda task: task.cancelled() or task.exception())
            await reading
        finally:
            reading.cancel()
            if following is not None:
                following.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionLost):
                await reading

    async def _follow_unannounced(self, board: Board) -> None:
        """Ask again for what no event reports: the policy, the current slice, and the queues of
        hosts."""
        while True:
            await asyncio.sleep(PHASE_PAUSE)
            server, was = await self.ask(ServerStatus(), ServerRecord), board.server
            if board.has_host_queues or server.policy != was.policy:
                board.set_host_queues((await self.ask(HostStatus(), Hosts)).hosts)
            if (server.phases, server.policy) != (was.phases, was.policy):
                board.server = msgspec.structs.replace(
                    board.server, phases=server.phases, policy=server.policy
                )
                board.changed.add("server")

    async def load(self, board: Board) -> None:
        """Subscribe and load a whole picture.

        The picture takes several requests; events between the first and the last answer are kept
        and applied after it.
        """
        async with self._loading:
            self._kept = []
            await self.ask(Subscribe(), Done)
            server = await self.ask(ServerStatus(), ServerRecord)
            hosts = await self.ask(HostStatus(), Hosts)
            queues = await self.ask(QueueStatus(), Queues)
            running = await self._pages(JobStatus(states=ON_HOSTS, subjobs=True))
            waiting = await self._pages(self._waiting, WINDOW)
            board.load(server, hosts.hosts, queues.queues, running, waiting)
            self._record(
                board,
                lambda recorder: recorder.picture(
                    server, hosts.hosts, queues.queues, running, waiting
                ),
            )
            kept, self._kept = self._kept, None
            for event in kept:
                self._take(event, board)

    def _record(self, board: Board, write: Callable[[Any], None]) -> None:
        """Record something; a recording that cannot be written ends, and the monitor continues."""
        if self._recorder is not None:
            try:
                write(self._recorder)
            except OSError as error:
                self._recorder = None
                board.say(f"the recording ends here: {error.strerror}")

    async def choose_waiting(self, users: tuple[str, ...], queues: tuple[str, ...]) -> None:
        """Make the daemon filter the waiting jobs on the board (for a filter over more than one
        page)."""
        assert self._board is not None
        self._waiting = msgspec.structs.replace(self._waiting, users=users, queues=queues)
        waiting = await self._pages(self._waiting, WINDOW)
        self._board.waiting = {}
        self._board.more_waiting(waiting)

    async def _pages(self, request: JobStatus, most: int = sys.maxsize) -> list[JobRecord]:
        """Return the jobs of all pages, or the first ``most``."""
        found: list[JobRecord] = []
        while True:
            page = await self.ask(request, Jobs)
            found += page.jobs
            if not page.next or len(found) >= most:
                return found[:most]
            request = msgspec.structs.replace(request, after=page.next)

    async def ask(self, request: Request, kind: type[Result]) -> Result:
        """Send one request to the daemon.

        Raises:
            Refusal: the daemon refuses.
            ConnectionLost: the daemon is gone.
        """
        if self._writer is None:
            raise NoDaemon(self.path, 111)
        self._number += 1
        number = self._number
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._asked[number] = time.monotonic()
        self._writer.write(encode(msgspec.json.encode(msgspec.structs.replace(request, id=number))))
        try:
            frame = await answer
        finally:
            self._answers.pop(number, None)
            self._asked.pop(number, None)
        if frame.error is not None:
            raise refusal_of(frame.error)
        try:
            return msgspec.json.decode(frame.result, type=kind)
        except msgspec.DecodeError as error:
            raise Refusal(
                "protocol-version", f"the daemon's answer cannot be read ({error})"
            ) from None

    async def drive(self, action: str, **given: Any) -> None:
        clock = await self.ask(Time(action=action, **given), ClockRecord)
        if self._board is not None:
            self._board.set_clock(clock)

    async def _read(self, reader: asyncio.StreamReader, board: Board) -> None:
        splitter = Splitter(LONGEST_REPLY)
        try:
            while data := await reader.read(_PIECE):
                for body in splitter.feed(data):
                    frame = _frames.decode(body)
                    if frame.event is None:
                        self._take_instant(board)
                        answer = self._answers.get(frame.id)
                        if answer is not None and not answer.done():
                            answer.set_result(frame)
                        # The requester gets the answer before the events that follow it.
                        await asyncio.sleep(0)
                    elif self._kept is not None:
                        self._kept.append(frame.event)
                    else:
                        if self._instant and self._instant[-1].at != frame.event.at:
                            self._take_instant(board)
                        self._instant.append(frame.event)
                if len(data) < _PIECE and splitter.is_empty:
                    self._take_instant(board)
        except (OSError, FrameError, msgspec.DecodeError):
            pass
        finally:
            self._take_instant(board)
            self._lose()
        raise ConnectionLost(f"the daemon at {self.path} has gone")

    def _take_instant(self, board: Board) -> None:
        """Apply all events of an instant at once, so that none of them is seen without the
        others."""
        instant, self._instant = self._instant, []
        for event in instant:
            self._take(event, board)

    def _take(self, event: EventRecord, board: Board) -> None:
        self._record(board, lambda recorder: recorder.event(event))
        board.apply(event)
        # The configuration was read again: every queue may be new.
        if event.kind == "queue" and not event.queue:
            self._later(self.load(board))
        elif event.kind in ("host", "queue"):
            self._want(board, event.kind, event.host)
        elif (
            event.kind in ("reserved", "unreserved") or event.kind == "moved"
        ):  # each reservation is a queue
            self._want(board, "queue", "")
        if event.record is not None and event.record.is_array and event.kind != "ended":
            self._want(board, "array", event.job)
        is_short = len(board.waiting) < REFILL or board.waiting_total <= board.window
        if board.is_window and is_short and not self._is_filling:
            self._is_filling = True
            self._later(self._fill(board))

    def _later(self, work: Any) -> None:
        async def quietly() -> None:
            with contextlib.suppress(ConnectionLost, NoDaemon, Refusal):
                await work

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _want(self, board: Board, what: str, name: str) -> None:
        """Ask soon for something that an event only reports as changed; many such requests are sent
        as one."""
        self._wanted.add((what, name))
        if len(self._wanted) == 1:
            self._later(self._ask_wanted(board))

    async def _ask_wanted(self, board: Board) -> None:
        wanted, self._wanted = self._wanted, set()
        hosts = tuple(sorted(name for what, name in wanted if what == "host"))
        if hosts:
            board.set_hosts((await self.ask(HostStatus(hosts=hosts), Hosts)).hosts)
        if any(what == "queue" for what, _ in wanted):
            board.set_queues((await self.ask(QueueStatus(), Queues)).queues)
        for array in sorted(name for what, name in wanted if what == "array"):
            # Update the members of the array, as many as are in the window.
            number = array.partition("[")[0]
            before = str(int(number) - 1) if number.isdecimal() and int(number) > 1 else ""
            page = await self.ask(msgspec.structs.replace(self._waiting, after=before), Jobs)
            board.set_members(
                f"{number}[", [job for job in page.jobs if job.id.startswith(f"{number}[")]
            )
        # No event reports it, so a recording needs a picture.
        if any(what != "array" for what, _ in wanted):
            server = msgspec.structs.replace(
                board.server, clock=msgspec.structs.replace(board.clock, now=board.now())
            )
            places = [place.record for place in board.grid.places.values()]
            jobs = list(board.running.values()), list(board.waiting.values())
            self._record(
                board,
                lambda recorder: recorder.picture(
                    server, places, list(board.queues.values()), *jobs
                ),
            )

    async def _fill(self, board: Board) -> None:
        """Ask for another page of waiting jobs, after the last one on the board."""
        try:
            last = next(reversed(board.waiting), "")
            page = await self.ask(msgspec.structs.replace(self._waiting, after=last), Jobs)
            board.more_waiting(page.jobs)
            if not page.jobs and last:  # the waiting ones are earlier: start from the beginning
                page = await self.ask(self._waiting, Jobs)
                board.more_waiting(page.jobs)
        finally:
            # At most once a second, however many events come.
            await asyncio.sleep(1.0)
            self._is_filling = False

    def _lose(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._wanted.clear()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(
                    ConnectionLost(f"the connection to {self.path} broke before the answer came")
                )
        self._answers.clear()
