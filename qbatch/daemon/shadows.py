"""Shadow policies in a process of their own: forked from the daemon, fed with what is committed, asked nothing.

The child holds a copy of the state as it was when it began.  It gets the entries of the journal through a pipe after they
are committed and answered, and gives a table back now and then.  It runs only when nothing else wants the processor, has
none of the daemon's files, sockets or rights to a job, and ends with the daemon, however that ends.

Nothing here waits for the child.  If it falls behind by more than ``MOST_UNREAD`` bytes, or dies, it is given up and the
note of the table says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import gc
import logging
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

import msgspec

from qbatch.daemon.core.state import Core, machine_of
from qbatch.daemon.event_stream import EventStream
from qbatch.daemon.pass_driver import PassDriver
from qbatch.daemon.settings import MOST_SHADOWS, shadow_policy
from qbatch.daemon.shadowing.team import Team
from qbatch.engine.engine import Engine
from qbatch.model.errors import QbatchError
from qbatch.planning.kernels.entries import serve_compiled, serve_uncompiled, serves_compiled
from qbatch.planning.policy import name_of
from qbatch.wire import records
from qbatch.wire.errors import Refusal

log = logging.getLogger("qbatch")

PAUSE = 0.1
"""Seconds for which entries gather before they are sent."""

HEARTBEAT = 1.0
"""Seconds after which the child is told how far time has gone if nothing else happens."""

MOST_UNREAD = 1 << 26
"""Bytes that may wait for the child."""

OFTEN, SELDOM = 1.0, 10.0
"""Least seconds between two tables: while jobs come and go, and while only time passes."""

SHARE = 9.0
"""Rest after a table in times of what it took: tables take a tenth of a processor at most."""

BUDGET = 30.0
"""Seconds after which a table that is not ready is given up."""

_ENTRIES, _TABLES = 3, 4
_PARENT_DIES = 1
_encode = msgspec.msgpack.Encoder().encode
_decode_feed = msgspec.msgpack.Decoder(tuple[int, list[bytes]]).decode
_decode_table = msgspec.msgpack.Decoder(records.Shadows).decode


class Followed(Protocol):
    """The service that is followed."""

    core: Core
    event_stream: EventStream
    pass_driver: PassDriver

    def is_at_rest(self) -> bool:
        """Whether everything that was taken is committed."""
        ...

    def commit_soon(self) -> None:
        """Commit what was taken, also if nothing in it has an effect."""
        ...


class ShadowProcess:
    """The policies in shadow, as the daemon sees them.

    Args:
        service: tells the state and how far time has gone; its event stream tells of new tables.
    """

    def __init__(self, service: Followed) -> None:
        self.policies: tuple[str, ...] = ()
        self._service = service
        self._table = records.Shadows()
        self._child: _Child | None = None
        self._entries: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._sent = -1

    @property
    def process(self) -> int | None:
        """The child's process number, None if there is none."""
        return None if self._child is None else self._child.number

    def table(self) -> records.Shadows:
        """Return the last table."""
        return self._table

    def _tell(self) -> None:
        self._service.event_stream.shadowed(self._service.core)

    def begin(self, policies: Sequence[str]) -> None:
        """Follow these policies from the present state on, in place of those before; none ends them.

        It must be called in a moment in which nothing is under way (:meth:`Service.quiet`).

        Raises:
            Refusal: there are too many, or one cannot be used; those before stay.
        """
        check(self._service.core, policies)
        self.end()
        self.policies = tuple(policies)
        self._table = records.Shadows()
        if policies:
            core = self._service.core
            since = self._service.pass_driver.frontier()
            self._child = child = _Child(core, self.policies, since, self._said, self._gone)
            self._table = records.Shadows(since=since, note="the first table is being made")
            self._sent = since
            self._timer = asyncio.get_running_loop().call_later(HEARTBEAT, self._send)
            log.info("in shadow: %s (process %d)", ", ".join(policies), child.number)
        self._tell()

    def begin_again(self, policies: Sequence[str]) -> None:
        """The state was exchanged: follow these policies from the new one on; what cannot be used is told, not raised."""
        if not policies and not self.policies:
            return
        try:
            self.begin(policies)
        except Refusal as error:
            self._give_up(f"nothing is in shadow since the configuration was read again: {error}")

    def follow(self, entries: list[bytes]) -> None:
        """Take entries that were committed."""
        if self._child is None:
            return
        if not self._entries:
            self._schedule(PAUSE)
        self._entries += entries

    def _schedule(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._send)

    def _send(self) -> None:
        """Send what has gathered, and how far time has gone."""
        child, self._timer = self._child, None
        if child is None:
            return
        frontier = self._service.pass_driver.frontier() if self._service.is_at_rest() else -1
        if frontier < 0 and not self._entries:
            # Passes that changed nothing wait for a commit; in a quiet moment it disturbs nobody.
            self._service.commit_soon()
        if self._entries or frontier > self._sent:
            entries, self._entries = self._entries, []
            self._sent = max(frontier, self._sent)
            unread = child.send(_encode((frontier, entries)))
            if unread > MOST_UNREAD:
                self._give_up(f"they fell behind by {unread >> 20} MiB of events and were given up")
                return
        self._schedule(HEARTBEAT)

    def _said(self, data: bytes) -> None:
        """The child has made a table."""
        self._table = _decode_table(data)
        self._tell()

    def _gone(self, status: int) -> None:
        """The child has ended by itself."""
        number = os.waitstatus_to_exitcode(status)
        why = signal.Signals(-number).name if number < 0 else f"status {number}"
        note = self._table.note if number > 0 else ""
        self._give_up("; ".join(text for text in (f"their process has ended ({why})", note) if text))

    def _give_up(self, why: str) -> None:
        """End the shadows; the last table stays, with a note that says that it is not followed any more."""
        self.end()
        names = ", ".join(self.policies)
        log.warning("%s in shadow: %s", names, why)
        self._table = msgspec.structs.replace(
            self._table,
            note=f"not followed any more: {why}; begin again with: qbatch shadow set {' '.join(self.policies)}",
        )
        self._tell()

    def end(self) -> None:
        """End the child, if there is one."""
        child, self._child = self._child, None
        self._entries = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if child is not None:
            child.end()


def check(core: Core, policies: Sequence[str]) -> None:
    """Refuse policies that cannot be followed in shadow of a state.

    Raises:
        Refusal: there are too many, one is there twice, is not known, or a pool refuses it.
    """
    if len(policies) > MOST_SHADOWS:
        raise Refusal("bad-value", f"{len(policies)} policies; at most {MOST_SHADOWS} are followed in shadow")
    was_compiled = serves_compiled()
    serve_uncompiled()  # what is looked at for a moment is not worth a compiler
    try:
        _check_each(core, policies)
    finally:
        if was_compiled:
            serve_compiled()


def _check_each(core: Core, policies: Sequence[str]) -> None:
    names = set()
    for policy in policies:
        for pool in core.settings.pools:
            try:
                loaded = shadow_policy(policy)
                Engine(machine_of(pool), loaded)
            except QbatchError as error:
                text = str(error)
                where = f" (pool {pool.name})" if len(core.settings.pools) > 1 else ""
                raise Refusal(
                    "bad-value", f"{text if policy in text else f'policy {policy!r}: {text}'}{where}"
                ) from None
        if name_of(loaded) in names:
            raise Refusal("bad-value", f"policy {policy!r} is named twice")
        names.add(name_of(loaded))


class _Child(asyncio.Protocol):
    """The process, as its parent sees it: entries go in, tables come out.  ``ended``: is told its wait status."""

    def __init__(
        self,
        core: Core,
        policies: tuple[str, ...],
        since: int,
        said: Callable[[bytes], None],
        ended: Callable[[int], None],
    ) -> None:
        self._said = said
        self._ended = ended
        self._unread = bytearray()
        self._writer: asyncio.WriteTransport | None = None
        self._early: list[bytes] = []
        self._is_over = False
        entries_out, entries_in = os.pipe()
        tables_out, tables_in = os.pipe()
        daemon = os.getpid()
        self.number = os.fork()
        if not self.number:
            _run_child(core, policies, since, entries_out, tables_in, daemon)
        os.close(entries_out)
        os.close(tables_in)
        self._connecting = asyncio.get_running_loop().create_task(self._connect(entries_in, tables_out))

    async def _connect(self, entries_in: int, tables_out: int) -> None:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: self, os.fdopen(tables_out, "rb", 0))
        writer, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(entries_in, "wb", 0))
        self._writer = writer
        writer.set_write_buffer_limits(high=2 * MOST_UNREAD)
        writer.writelines(self._early)
        self._early.clear()
        if self._is_over:
            self._close()

    def send(self, data: bytes) -> int:
        """Send a frame without waiting; return how many bytes the child has not read yet."""
        frame = len(data).to_bytes(4, "big") + data
        if self._writer is not None and self._writer.is_closing():
            return 0  # it is gone, of which it will be told
        if self._writer is None:
            self._early.append(frame)
            return sum(len(each) for each in self._early)
        self._writer.write(frame)
        return self._writer.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        """Take what the child says."""
        self._unread += data
        while len(self._unread) >= 4:
            size = int.from_bytes(self._unread[:4], "big")
            if len(self._unread) < 4 + size:
                return
            frame = bytes(self._unread[4 : 4 + size])
            del self._unread[: 4 + size]
            if not self._is_over:
                self._said(frame)

    def connection_lost(self, error: Exception | None) -> None:
        """The child says no more: it is collected, and if nobody ended it, that is told."""
        status = asyncio.get_running_loop().run_in_executor(None, _collect, self.number)
        status.add_done_callback(self._collected)

    def _collected(self, status: asyncio.Future[int]) -> None:
        self._close()
        if not self._is_over and not status.cancelled():
            self._is_over = True
            self._ended(status.result())

    def end(self) -> None:
        """End it now."""
        if self._is_over:
            return
        self._is_over = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)
        self._close()

    def _close(self) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.abort()


def _collect(number: int) -> int:
    """Wait for the end of a child; return its wait status.  One that only keeps silent is ended."""
    with contextlib.suppress(ProcessLookupError):
        if not _is_ending(number):
            os.kill(number, signal.SIGKILL)
    return os.waitpid(number, 0)[1]


def _is_ending(number: int) -> bool:
    """Whether a child has ended within a moment."""
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(0.01)
    return False


# In the child


def _run_child(
    core: Core, policies: tuple[str, ...], since: int, entries: int, tables: int, daemon: int
) -> NoReturn:  # pragma: no cover - it runs in a process of its own
    """Be the child, to its end."""
    status = 1
    try:
        _leave_the_daemon(entries, tables, daemon)
        _Follower(core, policies, since).run()
        status = 0
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        with contextlib.suppress(BaseException):
            _write(_TABLES, _encode(records.Shadows(since=since, note=text)))
    finally:
        os._exit(status)


def _leave_the_daemon(entries: int, tables: int, daemon: int) -> None:  # pragma: no cover - as above
    """Keep two pipes and nothing else of the daemon; run when nothing else does; end with it."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    entries, tables = fcntl.fcntl(entries, fcntl.F_DUPFD, 10), fcntl.fcntl(tables, fcntl.F_DUPFD, 10)
    os.dup2(entries, _ENTRIES)
    os.dup2(tables, _TABLES)
    os.closerange(_TABLES + 1, os.sysconf("SC_OPEN_MAX"))
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    os.close(nothing)
    # A group, so that a terminal's signals pass it by, but no session of its own: the kernel would weigh that against the
    # daemon's as a whole (autogroups), and an idle task in it would not give way to the daemon.
    os.setpgid(0, 0)
    with contextlib.suppress(OSError):
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _end_with(daemon)
    gc.freeze()
    serve_compiled()


def _end_with(parent: int) -> None:  # pragma: no cover - as above
    """End when the parent ends, also if it has done so already."""
    ctypes.CDLL(None).prctl(_PARENT_DIES, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _write(file: int, data: bytes) -> None:  # pragma: no cover - as above
    rest = memoryview(len(data).to_bytes(4, "big") + data)
    while rest:
        rest = rest[os.write(file, rest) :]


class _Follower:  # pragma: no cover - as above
    """The child's work: take entries, and make a table when it is time for one."""

    def __init__(self, core: Core, policies: tuple[str, ...], since: int) -> None:
        self.team = Team(core, policies, since)
        self.unread = bytearray()
        self.is_new = True
        self.next_table = 0.0
        self.maker: tuple[int, int, float] | None = None

    def run(self) -> None:
        """Work until the daemon closes the pipe."""
        while True:
            files = [_ENTRIES] if self.maker is None else [_ENTRIES, self.maker[1]]
            ready, _, _ = select.select(files, [], [], self._patience())
            if _ENTRIES in ready:
                data = os.read(_ENTRIES, 1 << 20)
                if not data:
                    return
                self.unread += data
                self._follow()
            if self.maker is not None:
                self._collect(is_ready=self.maker[1] in ready)
            elif time.monotonic() >= self.next_table:
                self._make()

    def _patience(self) -> float:
        until = self.next_table if self.maker is None else self.maker[2]
        return max(until - time.monotonic(), 0.0)

    def _follow(self) -> None:
        """Take the frames that are complete."""
        begin = 0
        while len(self.unread) - begin >= 4:
            size = int.from_bytes(self.unread[begin : begin + 4], "big")
            if len(self.unread) - begin - 4 < size:
                break
            frontier, entries = _decode_feed(bytes(self.unread[begin + 4 : begin + 4 + size]))
            begin += 4 + size
            self.team.follow(entries, frontier)
            if entries and not self.is_new:
                self.is_new = True
                self.next_table = min(self.next_table, time.monotonic() + OFTEN)
        del self.unread[:begin]

    def _make(self) -> None:
        """Make a table; where run times are not known, a copy of this process goes on to the present."""
        if not self.team.is_provisional:
            begun = time.process_time()
            _write(_TABLES, _encode(self.team.report()))
            self._rest(time.process_time() - begun)
            return
        reader, writer = os.pipe()
        me = os.getpid()
        child = os.fork()
        if not child:
            try:
                _end_with(me)
                self.team.go_on()
                with os.fdopen(writer, "wb") as file:
                    file.write(_encode(self.team.report()))
            finally:
                os._exit(0)
        os.close(writer)
        self.maker = (child, reader, time.monotonic() + BUDGET)
        self.pieces: list[bytes] = []

    def _collect(self, *, is_ready: bool) -> None:
        """Take what the copy says; pass it on when it is whole."""
        assert self.maker is not None
        child, reader, deadline = self.maker
        is_late = time.monotonic() >= deadline
        piece = os.read(reader, 1 << 20) if is_ready else b""
        if piece:
            self.pieces.append(piece)
            return
        if not is_ready and not is_late:
            return
        os.close(reader)
        if not is_ready:
            os.kill(child, signal.SIGKILL)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.waitpid(child, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.maker = None
        if self.pieces:
            _write(_TABLES, b"".join(self.pieces))
        self._rest(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)

    def _rest(self, took: float) -> None:
        pause = OFTEN if self.is_new else SELDOM
        self.is_new = False
        self.next_table = time.monotonic() + max(pause, SHARE * took)
