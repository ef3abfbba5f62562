"""A blocking session with a daemon: it sends requests over the Unix socket and returns the answers.

This file connects, sends, waits and retries.  It imports no asyncio, NumPy, Typer or rich and does
not know how answers are shown: every short command imports it and must start at once.

When a connection breaks before the answer, questions are repeated, and so are submissions, under
the same key: the daemon knows the key and queues the job once.  Any other command may or may not
have been carried out, and :class:`ConnectionLost` is raised.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from qbatch.model.errors import QbatchError
from qbatch.wire.errors import ErrorRecord, Refusal, refusal_of
from qbatch.wire.frames import LONGEST_REPLY, LONGEST_REQUEST, FrameError, Splitter, encode
from qbatch.wire.paths import check_socket, socket_path, up_command
from qbatch.wire.records import Done, EventRecord, JobRecord, Jobs
from qbatch.wire.requests import History, JobStatus, Question, Request, Submit, Subscribe

Result = TypeVar("Result", bound=msgspec.Struct)

PATIENCE = 5.0
"""Seconds during which a broken connection is tried again (a daemon needs about one to restart)."""

TIMEOUT = 60.0
"""Seconds to wait for an answer."""

_PIECE = 1 << 18


class NoDaemon(QbatchError):  # noqa: N818 - the name describes the situation
    """Nothing listens at the socket (exit code 5).  ``number``: errno of the attempt; ``path``: the
    socket."""

    exit_code = 5

    def __init__(self, path: str, number: int) -> None:
        super().__init__(
            f"no daemon listens at {path} ({os.strerror(number)}); start one with: "
            f"{up_command(path)}"
        )
        self.path = path
        self.number = number


class ConnectionLost(QbatchError):  # noqa: N818 - the name describes the event
    """The connection broke after a command was sent: it may or may not have been carried out (exit
    code 5)."""

    exit_code = 5


class _Broken(Exception):  # noqa: N818
    """The connection ended before the reply."""


class _Frame(msgspec.Struct):
    """Any frame that a daemon sends."""

    id: int = 0
    result: msgspec.Raw = msgspec.Raw(b"{}")
    error: ErrorRecord | None = None
    event: msgspec.Raw = msgspec.Raw(b"")


_FRAMES = msgspec.json.Decoder(_Frame)


class ClientSession:
    """A connection to the daemon; a context manager.  ``timeout``: seconds to wait for an answer;
    None waits without limit."""

    def __init__(
        self, path: str | None = None, timeout: float | None = TIMEOUT, patience: float = PATIENCE
    ) -> None:
        self.path = path or socket_path()
        self.timeout = timeout
        self.patience = patience
        self._socket: socket.socket | None = None
        self._splitter = Splitter(LONGEST_REPLY)
        self._frames: deque[_Frame] = deque()
        self._events: deque[EventRecord] = deque()
        self._number = 0

    def __enter__(self) -> ClientSession:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect, unless a connection is open.

        Raises:
            NoDaemon: nothing listens at the socket.
            UnsafeDirectory: another user could have put the socket there.
        """
        if self._socket is not None:
            return
        check_socket(self.path)
        limit = time.monotonic() + (TIMEOUT if self.timeout is None else self.timeout)
        while True:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(self.timeout)
            try:
                connection.connect(self.path)
                break
            except BlockingIOError as error:  # the daemon's queue of connections is full
                connection.close()
                if time.monotonic() > limit:
                    raise NoDaemon(self.path, error.errno or 11) from None
                time.sleep(0.005)
            except OSError as error:
                connection.close()
                raise NoDaemon(self.path, error.errno or 2) from None
        self._socket = connection
        self._splitter = Splitter(LONGEST_REPLY)
        self._frames.clear()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, request: Request, kind: type[Result], timeout: float | None = -1.0) -> Result:
        """Send a request and return its result.  ``timeout``: seconds; None for no limit; negative
        for the session's.

        Raises:
            Refusal: the daemon refuses; code ``timeout`` if no answer came, ``protocol-version`` if
                the answer cannot be read, ``too-large`` if the request is longer than a daemon
                reads.
            NoDaemon: nothing listens at the socket.
            ConnectionLost: the connection broke, and the request cannot be repeated.
        """
        if isinstance(request, Submit) and not request.key:
            request = msgspec.structs.replace(request, key=os.urandom(12).hex())
        self._number += 1
        number = self._number
        try:
            body = msgspec.json.encode(msgspec.structs.replace(request, id=number))
        except UnicodeEncodeError:
            raise Refusal("bad-value", "the request holds bytes that are not UTF-8 text") from None
        if len(body) > LONGEST_REQUEST:
            raise Refusal(
                "too-large", f"a request of {len(body)} bytes; at most {LONGEST_REQUEST} are read"
            )
        is_repeatable = isinstance(request, Submit | Question) and not isinstance(
            request, Subscribe
        )
        wait = self.timeout if timeout is not None and timeout < 0 else timeout
        first_break = 0.0
        while True:
            try:
                self.connect()
                frame = self._exchange(body, number, wait)
                break
            except (_Broken, NoDaemon) as error:
                self.close()
                if isinstance(error, NoDaemon) and not first_break:
                    raise
                if not is_repeatable:
                    raise ConnectionLost(
                        f"the connection to {self.path} broke before the answer came; the command "
                        "may have been "
                        "carried out: look with qstat before you repeat it"
                    ) from None
                first_break = first_break or time.monotonic()
                if time.monotonic() - first_break > self.patience:
                    raise NoDaemon(self.path, getattr(error, "number", 104)) from None
                time.sleep(0.05)
        if frame.error is not None:
            raise refusal_of(frame.error)
        return self._decoded(frame.result, kind)

    def pages(self, request: JobStatus | History) -> Iterator[Jobs]:
        """Yield the answers to a request for jobs, page after page; at least one."""
        while True:
            page = self.ask(request, Jobs)
            yield page
            if not page.next:
                return
            request = msgspec.structs.replace(request, after=page.next)

    def jobs(self, request: JobStatus | None = None) -> Iterator[JobRecord]:
        """Yield the jobs that a request selects, from all pages; identifiers of unknown jobs are
        left out."""
        for page in self.pages(request or JobStatus()):
            yield from page.jobs

    def events(self, after: int | None = None) -> Iterator[EventRecord]:
        """Subscribe and yield each event as it comes, without end.  ``after``: the last event
        number already known.

        Raises:
            Refusal: ``bad-value``: some events after ``after`` are no longer kept; read the state
                again.
            ConnectionLost: the daemon has gone.  A new subscription ``after`` the last number
                reports whether there is a gap.
        """
        self.ask(Subscribe(after=after), Done)
        while True:
            while self._events:
                yield self._events.popleft()
            try:
                frame = self._read(None)
            except _Broken:
                self.close()
                raise ConnectionLost(
                    f"the daemon at {self.path} has closed the stream of events"
                ) from None
            if bytes(frame.event):
                self._events.append(self._decoded(frame.event, EventRecord))

    def _decoded(self, raw: msgspec.Raw, kind: type[Result]) -> Result:
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.DecodeError as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, why: str) -> Refusal:
        self.close()
        text = (
            f"the answer from {self.path} cannot be read ({why}); is the daemon of another version?"
        )
        return Refusal("protocol-version", text)

    def _exchange(self, body: bytes, number: int, timeout: float | None) -> _Frame:
        assert self._socket is not None
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(encode(body))
        except TimeoutError:
            raise self._too_late(timeout) from None
        except OSError:
            # A daemon that refuses a frame answers before it closes: the answer may already be
            # there.
            pass
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            frame = self._read(limit, timeout)
            if bytes(frame.event):
                self._events.append(self._decoded(frame.event, EventRecord))
            elif frame.id == number or (frame.error is not None and frame.id == 0):
                return frame

    def _read(self, limit: float | None, timeout: float | None = None) -> _Frame:
        assert self._socket is not None
        while not self._frames:
            try:
                self._socket.settimeout(
                    None if limit is None else max(limit - time.monotonic(), 0.001)
                )
                data = self._socket.recv(_PIECE)
            except TimeoutError:
                raise self._too_late(timeout) from None
            except OSError:
                raise _Broken from None
            if not data:
                raise _Broken
            try:
                self._frames.extend(_FRAMES.decode(body) for body in self._splitter.feed(data))
            except (FrameError, msgspec.DecodeError) as error:
                raise self._unreadable(str(error)) from None
        return self._frames.popleft()

    def _too_late(self, timeout: float | None) -> Refusal:
        self.close()
        return Refusal("timeout", f"no answer from {self.path} within {timeout:g} s")
