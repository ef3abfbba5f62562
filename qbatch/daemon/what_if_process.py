"""What-if policies in a process of their own, forked from the daemon and fed with committed
entries.

The child begins with a copy of the state.  It receives the entries of the journal through a pipe
after they are committed and answered, and sends a table back now and then.  It runs only on an idle
processor, has none of the daemon's files, sockets or rights to a job, and ends with the daemon,
however that ends.

The daemon never waits for the child.  If the child falls behind by more than ``MOST_UNREAD`` bytes,
or dies, it is given up and the note of the table reports it.
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
from typing import NoReturn

import msgspec

from qbatch.daemon.core.state import Core, machine_of
from qbatch.daemon.live_state import LiveState
from qbatch.daemon.pass_driver import PassDriver
from qbatch.daemon.settings import MOST_SHADOWS, shadow_policy
from qbatch.daemon.what_if.group import PolicyGroup
from qbatch.engine.engine import Engine
from qbatch.model.errors import QbatchError
from qbatch.planning.kernels.entries import serve_compiled, serve_uncompiled, serves_compiled
from qbatch.planning.policy import name_of
from qbatch.wire import records
from qbatch.wire.errors import Refusal
from qbatch.wire.frames import Splitter, encode

log = logging.getLogger("qbatch")

PAUSE = 0.1
"""Seconds for which entries gather before they are sent."""

HEARTBEAT = 1.0
"""Seconds after which the child gets the present instant if nothing else happens."""

MOST_UNREAD = 1 << 26
"""Bytes that may wait for the child to read."""

OFTEN, SELDOM = 1.0, 10.0
"""Least seconds between two tables: while jobs arrive, start and end, and while only time
passes."""

SHARE = 9.0
"""Rest after a table, as a multiple of the time that it took: tables use a tenth of a processor at
most."""

BUDGET = 30.0
"""Seconds after which a table that is not ready is given up."""

_ENTRIES, _TABLES = 3, 4
_PARENT_DIES = 1
_LONGEST = (1 << 32) - 1
_encode = msgspec.msgpack.Encoder().encode
_decode_feed = msgspec.msgpack.Decoder(tuple[int, list[bytes]]).decode
_decode_table = msgspec.msgpack.Decoder(records.Shadows).decode


class WhatIfProcess:
    """The daemon's side of the what-if policies; the event stream of the service announces new
    tables."""

    def __init__(self, live: LiveState, pass_driver: PassDriver) -> None:
        self.policies: tuple[str, ...] = ()
        self._live = live
        self._pass_driver = pass_driver
        self._table = records.Shadows()
        self._child: _Child | None = None
        self._entries: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._sent = -1

    @property
    def process(self) -> int | None:
        """The child's process number; None if there is no child."""
        return None if self._child is None else self._child.number

    def table(self) -> records.Shadows:
        """Return the last table."""
        return self._table

    def _announce(self) -> None:
        self._live.event_stream.announce(self._live.core, "shadow")

    def begin(self, policies: Sequence[str]) -> None:
        """Follow these policies from the present state on instead of the earlier ones; an empty
        list ends them.

        It must be called in a moment in which nothing is under way (:meth:`qbatch.daemon.service.Service.quiet`).

        Raises:
            Refusal: there are too many, or one cannot be used; the earlier ones stay.
        """
        check(self._live.core, policies)
        self.end()
        self.policies = tuple(policies)
        self._table = records.Shadows()
        if policies:
            core = self._live.core
            since = self._pass_driver.frontier()
            self._child = child = _Child(core, self.policies, since, self._receive, self._gone)
            self._table = records.Shadows(since=since, note="the first table is being made")
            self._sent = since
            self._timer = asyncio.get_running_loop().call_later(HEARTBEAT, self._send)
            log.info("what-if policies: %s (process %d)", ", ".join(policies), child.number)
        self._announce()

    def begin_again(self, policies: Sequence[str]) -> None:
        """Follow these policies from a new state on; if one cannot be used, the note reports it
        instead of an exception."""
        if not policies and not self.policies:
            return
        try:
            self.begin(policies)
        except Refusal as error:
            self._give_up(f"they ended when the configuration was read again: {error}")

    def follow(self, entries: list[bytes]) -> None:
        """Add committed entries for the child."""
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
        """Send the gathered entries and the present instant."""
        child, self._timer = self._child, None
        if child is None:
            return
        frontier = self._pass_driver.frontier() if self._live.is_at_rest() else -1
        if frontier < 0 and not self._entries:
            # Passes that changed nothing wait for a commit, which disturbs no client in a quiet
            # moment.
            self._live.commit_soon()
        if self._entries or frontier > self._sent:
            entries, self._entries = self._entries, []
            self._sent = max(frontier, self._sent)
            unread = child.send(_encode((frontier, entries)))
            if unread > MOST_UNREAD:
                self._give_up(f"they fell behind by {unread >> 20} MiB of events and were given up")
                return
        self._schedule(HEARTBEAT)

    def _receive(self, data: bytes) -> None:
        """Receive a table of the child."""
        self._table = _decode_table(data)
        self._announce()

    def _gone(self, status: int) -> None:
        """Give up after the child has ended by itself."""
        number = os.waitstatus_to_exitcode(status)
        why = signal.Signals(-number).name if number < 0 else f"status {number}"
        note = self._table.note if number > 0 else ""
        self._give_up(
            "; ".join(text for text in (f"their process has ended ({why})", note) if text)
        )

    def _give_up(self, why: str) -> None:
        """End the child; the last table stays, with a note that it is not followed any more."""
        self.end()
        log.warning("what-if policies %s: %s", ", ".join(self.policies), why)
        note = (
            f"not followed any more: {why}; begin again with: qbatch shadow set "
            f"{' '.join(self.policies)}"
        )
        self._table = msgspec.structs.replace(self._table, note=note)
        self._announce()

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
    """Refuse policies that cannot be what-if policies of a state.

    Raises:
        Refusal: there are too many, or one is named twice, is unknown, or is refused by a pool.
    """
    if len(policies) > MOST_SHADOWS:
        raise Refusal(
            "bad-value",
            f"{len(policies)} policies; at most {MOST_SHADOWS} what-if policies are allowed",
        )
    was_compiled = serves_compiled()
    serve_uncompiled()  # a check of a moment is not worth compiling for
    names = set()
    try:
        for policy in policies:
            for pool in core.settings.pools:
                try:
                    loaded = shadow_policy(policy)
                    Engine(machine_of(pool), loaded)
                except QbatchError as error:
                    text = str(error) if policy in str(error) else f"policy {policy!r}: {error}"
                    where = f" (pool {pool.name})" if len(core.settings.pools) > 1 else ""
                    raise Refusal("bad-value", f"{text}{where}") from None
            if name_of(loaded) in names:
                raise Refusal("bad-value", f"policy {policy!r} is named twice")
            names.add(name_of(loaded))
    finally:
        if was_compiled:
            serve_compiled()


class _Child(asyncio.Protocol):
    """The parent's side of the process: entries go in, tables come out.  ``ended`` is called with
    the wait status."""

    def __init__(
        self,
        core: Core,
        policies: tuple[str, ...],
        since: int,
        receive: Callable[[bytes], None],
        ended: Callable[[int], None],
    ) -> None:
        self._receive = receive
        self._ended = ended
        self._splitter = Splitter(_LONGEST)
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
        self._connecting = asyncio.get_running_loop().create_task(
            self._connect(entries_in, tables_out)
        )

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
        if self._writer is None:
            self._early.append(encode(data))
            return sum(len(each) for each in self._early)
        if self._writer.is_closing():
            return 0  # it is gone; ``connection_lost`` follows
        self._writer.write(encode(data))
        return self._writer.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        """Receive bytes of the child (asyncio)."""
        for table in self._splitter.feed(data):
            if not self._is_over:
                self._receive(table)

    def connection_lost(self, error: Exception | None) -> None:
        """Reap the child, which sends nothing any more, and call ``ended`` if it was not ended from
        here (asyncio)."""

        def collected(status: asyncio.Future[int]) -> None:
            self._close()
            if not self._is_over and not status.cancelled():
                self._is_over = True
                self._ended(status.result())

        asyncio.get_running_loop().run_in_executor(None, _collect, self.number).add_done_callback(
            collected
        )

    def end(self) -> None:
        """End the process now."""
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
    """Wait for the end of a child and return its wait status; end it if it has only closed its pipe
    and runs on."""
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        found, status = os.waitpid(number, os.WNOHANG)
        if found:
            return status
        time.sleep(0.01)
    os.kill(number, signal.SIGKILL)
    return os.waitpid(number, 0)[1]


# In the child


def _run_child(
    core: Core, policies: tuple[str, ...], since: int, entries: int, tables: int, daemon: int
) -> NoReturn:  # pragma: no cover - it runs in a process of its own
    status = 1
    try:
        _leave_the_daemon(entries, tables, daemon)
        _Follower(core, policies, since).run()
        status = 0
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        with contextlib.suppress(BaseException):
            _write(_encode(records.Shadows(since=since, note=text)))
    finally:
        os._exit(status)


def _leave_the_daemon(
    entries: int, tables: int, daemon: int
) -> None:  # pragma: no cover - as above
    """Keep only two pipes of the daemon, run only on an idle processor, and end with the daemon."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    entries, tables = (
        fcntl.fcntl(entries, fcntl.F_DUPFD, 10),
        fcntl.fcntl(tables, fcntl.F_DUPFD, 10),
    )
    os.dup2(entries, _ENTRIES)
    os.dup2(tables, _TABLES)
    os.closerange(_TABLES + 1, os.sysconf("SC_OPEN_MAX"))
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    os.close(nothing)
    # It gets a group, so that signals of a terminal do not reach it.  It gets no session: the
    # kernel schedules sessions against each other (autogroups), and an idle task in a session of
    # its own would not give way to the daemon.
    os.setpgid(0, 0)
    with contextlib.suppress(OSError):
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _end_with(daemon)
    gc.freeze()
    serve_compiled()


def _end_with(parent: int) -> None:  # pragma: no cover - as above
    """End when the parent ends, or now if it has ended."""
    ctypes.CDLL(None).prctl(_PARENT_DIES, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _write(data: bytes) -> None:  # pragma: no cover - as above
    rest = memoryview(encode(data))
    while rest:
        rest = rest[os.write(_TABLES, rest) :]


class _Follower:  # pragma: no cover - as above
    """The work of the child: apply entries, and make a table when it is due."""

    def __init__(self, core: Core, policies: tuple[str, ...], since: int) -> None:
        self.group = PolicyGroup(core, policies, since)
        self.splitter = Splitter(_LONGEST)
        self.is_new = True
        self.next_table = 0.0
        self.maker: tuple[int, int, float] | None = None

    def run(self) -> None:
        """Work until the daemon closes the pipe."""
        while True:
            files = [_ENTRIES] if self.maker is None else [_ENTRIES, self.maker[1]]
            until = self.next_table if self.maker is None else self.maker[2]
            ready, _, _ = select.select(files, [], [], max(until - time.monotonic(), 0.0))
            if _ENTRIES in ready:
                data = os.read(_ENTRIES, 1 << 20)
                if not data:
                    return
                for frontier, entries in map(_decode_feed, self.splitter.feed(data)):
                    self.group.follow(entries, frontier)
                    if entries and not self.is_new:
                        self.is_new = True
                        self.next_table = min(self.next_table, time.monotonic() + OFTEN)
            if self.maker is not None:
                self._collect(is_ready=self.maker[1] in ready)
            elif time.monotonic() >= self.next_table:
                self._make()

    def _make(self) -> None:
        """Make a table; if run times are not known, a fork of this process runs on to the
        present."""
        if not self.group.is_provisional:
            begun = time.process_time()
            _write(_encode(self.group.report()))
            self._rest(time.process_time() - begun)
            return
        reader, writer = os.pipe()
        me = os.getpid()
        child = os.fork()
        if not child:
            try:
                _end_with(me)
                self.group.go_on()
                with os.fdopen(writer, "wb") as file:
                    file.write(_encode(self.group.report()))
            finally:
                os._exit(0)
        os.close(writer)
        self.maker = (child, reader, time.monotonic() + BUDGET)
        self.pieces: list[bytes] = []

    def _collect(self, *, is_ready: bool) -> None:
        """Read the output of the fork; pass it on when it is complete."""
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
            _write(b"".join(self.pieces))
        self._rest(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)

    def _rest(self, took: float) -> None:
        pause = OFTEN if self.is_new else SELDOM
        self.is_new = False
        self.next_table = time.monotonic() + max(pause, SHARE * took)
