"""The connection of one client: frames in, requests out, replies back.  Its user is read from the
socket when it connects."""

from __future__ import annotations

import asyncio
import grp
import logging
import os
import pwd
import re
import socket
import struct
from collections import deque
from functools import lru_cache

import msgspec

from qbatch.daemon.core.state import Actor, Core
from qbatch.daemon.core.submission import check_server
from qbatch.daemon.handlers.verbs import permit
from qbatch.daemon.own_policies import is_own
from qbatch.daemon.questions.asking import ask, may_be_long, wait_for
from qbatch.daemon.service import Service
from qbatch.daemon.unread import MOST_OF_CONNECTION, SharedFrame
from qbatch.wire.errors import Refusal
from qbatch.wire.frames import LONGEST_REPLY, LONGEST_REQUEST, FrameError, Splitter, encode
from qbatch.wire.requests import (
    PROTOCOL,
    Alter,
    AnyRequest,
    Command,
    PolicySet,
    Request,
    Spec,
    Submit,
)
from qbatch.wire.resource_values import ResourceFault
from qbatch.wire.resources import check_resources

log = logging.getLogger("qbatch")

STALLED = 30.0
"""Seconds after which the connection of a client that does not finish a frame or read its replies
is closed."""

MOST_BEHIND = 1 << 26
"""Bytes of events and answers that may wait for a client to read: enough for a burst of events,
which subscribers share."""

MOST_LONG_WAITS = 8
"""Long answers that a client may wait for at once; a further request for one is handled later."""

TURN = 0.02
"""Seconds for which the requests of one client are handled before others get their turn."""

_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_decoder = msgspec.json.Decoder(AnyRequest)
_encode = msgspec.json.Encoder().encode


class _Head(msgspec.Struct):
    """The fields of a request that are read if the whole cannot be read."""

    v: int = PROTOCOL
    id: int = 0


@lru_cache(maxsize=1024)
def _names_of(uid: int, gid: int) -> tuple[str, str]:
    """Return the names of a user and a group, or their numbers if they have no name."""
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    try:
        return user, grp.getgrgid(gid).gr_name
    except KeyError:
        return user, str(gid)


def _check_entering(core: Core, actor: Actor, request: Request) -> None:
    """Refuse what cannot be carried out here, before the request enters the journal: an accepted
    job stays accepted.

    Raises:
        Refusal: an illegal resource, a dependency on a job of another server, or a real job of
            another user, because the process executor runs jobs as the daemon's user only.
    """
    if not isinstance(request, Submit | Alter):
        return
    if (
        core.settings.executor == "process"
        and isinstance(request, Submit)
        and actor.uid != os.getuid()
    ):
        own = _names_of(os.getuid(), os.getgid())[0]
        raise Refusal(
            "unsupported",
            f"executor process runs jobs of {own} only, the user of this daemon, not of "
            f"{actor.user}; start a daemon of "
            'your own with: qbatch up (or set executor = "emulated")',
        )
    wanted = request.spec if isinstance(request, Submit) else request.changes
    depend = wanted.depend or ""
    for name in re.split("[:,]", depend) if "@" in depend else ():
        check_server(core, name.partition("@")[2], os.uname().nodename)
    if wanted.resources:
        try:
            is_torque = isinstance(wanted, Spec) and wanted.is_torque
            check_resources(wanted.resources, is_torque=is_torque)
        except ResourceFault as fault:
            raise Refusal(fault.code, str(fault)) from None


class ConnectedClient(asyncio.Protocol):
    """One connected client.

    ``waits``: its questions without an answer yet; they end with the connection.
     ``is_subscribed``: it gets events. ``long_answers``: held while a long answer is made;
    ``long_waits``: how many long answers it waits for.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.uid = self.gid = -1
        self.waits: set[asyncio.Task[None]] = set()
        self.is_subscribed = False
        self.long_answers = asyncio.Lock()
        self.long_waits = 0
        self._splitter = Splitter(LONGEST_REQUEST)
        self._transport: asyncio.Transport | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._unfinished: asyncio.TimerHandle | None = None
        self._bodies: deque[bytes] = deque()
        self._behind: deque[bytes] = deque()
        self._bytes_behind = 0
        self._bytes_shared = 0
        self._is_unread = False
        self._must_wait = False
        self._has_turn = False
        self._uncommitted = 0
        self._may_answer = asyncio.Event()
        self._is_read = asyncio.Event()
        self._is_read.set()

    @property
    def actor(self) -> Actor:
        """The user of the client; the daemon's own user and root are managers, others have the role
        of the settings in force."""
        settings, (user, group) = self.service.settings, _names_of(self.uid, self.gid)
        role = "operator" if user in settings.operators else "user"
        if self.uid in (0, os.getuid()) or user in settings.managers:
            role = "manager"
        return Actor(self.uid, user, group, role)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read the credentials that the peer had when it connected."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer: socket.socket = transport.get_extra_info("socket")
        _, self.uid, self.gid = struct.unpack(
            "3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
        transport.set_write_buffer_limits(high=MOST_OF_CONNECTION)
        if not self.service.clients.accept(self):
            self.fail(0, Refusal("busy", "too many connections; try again later"))
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; handle each request that is complete."""
        try:
            bodies = self._splitter.feed(data)
        except FrameError as error:
            self.fail(0, Refusal("too-large", str(error)))
            self.close()
            return
        self._bodies += bodies
        if not self._has_turn:
            self._handle_bodies()
        if bodies and self._unfinished is not None:
            self._unfinished.cancel()
            self._unfinished = None
        # Counted from the first byte of a frame: a client that sends one byte a second is as slow
        # as one that sends none.
        if self._unfinished is None and not self._splitter.is_empty:
            self._unfinished = asyncio.get_running_loop().call_later(STALLED, self.close)

    def _handle_bodies(self) -> None:
        """Handle complete requests as long as the client reads its replies, for the time of one
        turn."""
        loop = asyncio.get_running_loop()
        end = loop.time() + TURN
        while self._bodies and not (self._is_unread or self._must_wait):
            if self.service.containment.is_spoiled:
                self._pause_reading()
                return
            self._request(self._bodies.popleft())
            if self._bodies and loop.time() > end:
                self._pause_reading()
                self.go_on()
                return

    def go_on(self) -> None:
        """Schedule one turn for the requests that the client has sent; never two, because other
        clients would wait for both."""
        if not self._has_turn:
            self._has_turn = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._has_turn = False
        if self._transport is None or self._transport.is_closing():
            return
        self._handle_bodies()
        if not self._bodies and not self._is_unread:
            self._transport.resume_reading()

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def may_go_on(self) -> None:
        """Try the request that waited again, because enough has been read."""
        self._must_wait = False
        self._may_answer.set()
        self.go_on()

    @property
    def unread(self) -> int:
        """Bytes of answers that the client has not read, without events, of which all subscribers
        share one copy."""
        transport = self._transport
        return (
            0
            if transport is None
            else transport.get_write_buffer_size() + self._bytes_behind - self._bytes_shared
        )

    def _request(self, body: bytes) -> None:
        try:
            request = _decoder.decode(body)
        except _UNREADABLE as error:
            self._unreadable(body, error)
            return
        if request.v != PROTOCOL:
            self._other_version(request.id, request.v)
            return
        is_long = may_be_long(request, body)
        if (is_long and self.long_waits >= MOST_LONG_WAITS) or self.service.unread.must_wait(
            self, is_long=is_long
        ):
            self._must_wait = True
            self._bodies.appendleft(body)
            self._pause_reading()
            return
        service, actor = self.service, self.actor
        try:
            permit(actor, request)
            if not isinstance(request, Command):
                ask(service, self, request)
                return
            _check_entering(service.core, actor, request)
            if isinstance(request, PolicySet) and is_own(request.policy):
                wait_for(service, self, request, self._set_own_policy(request, body))
            else:
                self._receive(request, body)
        except Refusal as error:
            self.fail(request.id, error)
        except Exception as error:
            self.fail(request.id, service.containment.question_failed(actor, request, error))

    def _receive(self, request: Request, body: bytes) -> None:
        self.service.receive(self, request, body)
        self._uncommitted += 1

    async def _set_own_policy(self, request: PolicySet, body: bytes) -> None:
        await self.service.own_policies.admit([request.policy])
        async with self.service.quiet():
            self._receive(request, body)

    def _unreadable(self, body: bytes, error: Exception) -> None:
        head, code = _Head(), "unknown-verb" if "`$.verb`" in str(error) else "bad-request"
        try:
            head = msgspec.json.decode(body, type=_Head)
        except _UNREADABLE:
            code = "bad-request"
        if head.v != PROTOCOL:
            self._other_version(head.id, head.v)
        else:
            self.fail(head.id, Refusal(code, f"the request cannot be read: {error}"))

    def _other_version(self, number: int, version: int) -> None:
        text = (
            f"the daemon speaks protocol {PROTOCOL}, the client {version}; upgrade the older "
            "of "
            "the two"
        )
        self.fail(number, Refusal("protocol-version", text))

    def settled(self) -> None:
        """Note that a command of the client is committed, or found no space on the disk; its answer
        follows."""
        self._uncommitted -= 1

    def reply(self, number: int, result: object) -> None:
        """Send a result."""
        try:
            body = _encode({"id": number, "result": result})
        except Exception as error:  # the request is carried out; only its answer cannot be sent
            log.exception("the answer to %s cannot be written", self.actor.user)
            self.fail(number, Refusal("failed", f"done, but the answer cannot be written: {error}"))
            return
        if len(body) > LONGEST_REPLY:
            text = (
                f"done, but the answer has {len(body)} bytes, and {LONGEST_REPLY} are allowed; "
                "ask for less at once"
            )
            self.fail(number, Refusal("too-large", text))
            return
        self.put(encode(body))

    def fail(self, number: int, error: Refusal) -> None:
        """Send a refusal."""
        self.put(encode(_encode({"id": number, "error": error.record})))

    def put(self, frame: bytes) -> None:
        """Send a frame, or keep it until the client has read more; close the connection if it
        leaves too much unread."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not self._is_unread:
            transport.write(frame)
        else:
            self._behind.append(frame)
            self._bytes_behind += len(frame)
            self._bytes_shared += len(frame) * isinstance(frame, SharedFrame)
            if self._bytes_behind > MOST_BEHIND:
                transport.abort()
        self.service.unread.note(self)

    def _catch_up(self, *, is_last: bool = False) -> None:
        """Send the frames that were kept, as far as the client reads them; ``is_last``: all of
        them."""
        assert self._transport is not None
        while self._behind and (is_last or not self._is_unread):
            frame = self._behind.popleft()
            self._bytes_behind -= len(frame)
            self._bytes_shared -= len(frame) * isinstance(frame, SharedFrame)
            self._transport.write(frame)

    def pause_writing(self) -> None:
        """Stop receiving from a client that does not read, and close the connection if it stays so
        (asyncio)."""
        self._is_unread = True
        self._is_read.clear()
        self._pause_reading()
        assert self._transport is not None
        self._stall = self._stall or asyncio.get_running_loop().call_later(
            STALLED, self._transport.abort
        )

    def resume_writing(self) -> None:
        """Continue with a client that reads again (asyncio)."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        self._is_unread = False
        self._catch_up()
        self.service.unread.note(self)
        if not self._is_unread:
            self._is_read.set()
            self.go_on()

    async def has_read(self) -> None:
        """Wait until the client has read most of what was sent to it, and the connections of its
        user have read enough."""
        await self._is_read.wait()
        while self.service.unread.must_wait(self, is_long=True):
            self._may_answer.clear()
            await self._may_answer.wait()
            await self._is_read.wait()

    def eof_received(self) -> bool:
        """Answer what is still open when the client sends nothing more, then end the connection
        (asyncio)."""
        if not (self._bodies or self.waits or self._uncommitted or self._is_unread):
            return False
        if self._stall is None:
            self._stall = asyncio.get_running_loop().call_later(
                STALLED if self.waits else 2.0, self.close
            )
        return True

    def close(self) -> None:
        """Close the connection after everything was sent."""
        if self._transport is not None:
            self._catch_up(is_last=True)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Cancel the questions of a client that has gone; its commands are still carried out
        (asyncio)."""
        for timer in (self._stall, self._unfinished):
            if timer is not None:
                timer.cancel()
        self._bodies.clear()
        self._behind.clear()
        for task in list(self.waits):
            task.cancel()
        self._transport = None
        self.service.clients.discard(self)
        self.service.unread.forget(self)
