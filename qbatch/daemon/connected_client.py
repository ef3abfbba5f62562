"""Who asks: what the service and its questions need of one connected client, whatever carries it."""

from __future__ import annotations

import asyncio
from typing import Protocol

from qbatch.daemon.core.state import Actor
from qbatch.wire.errors import Refusal
from qbatch.wire.requests import Request


class ConnectedClient(Protocol):
    """Who asks: what is known of one connected client, and the ways to answer it.

    ``waits``: its questions that have no answer yet; they end with it.  ``is_subscribed``: it gets events.
    ``long_answers``: held while a long answer is made; ``long_waits``: how many are waited for.
    """

    uid: int
    waits: set[asyncio.Task[None]]
    is_subscribed: bool
    long_answers: asyncio.Lock
    long_waits: int

    @property
    def actor(self) -> Actor:
        """Who it is, under the settings in force."""
        ...

    def settled(self) -> None:
        """A command of it is committed, or there is no space for it: the answer follows."""
        ...

    def reply(self, number: int, result: object) -> None:
        """Send a result; ``number``: that of the request."""
        ...

    def fail(self, number: int, error: Refusal) -> None:
        """Send a refusal."""
        ...

    def refuse(self, request: Request, error: Refusal) -> None:
        """Refuse a request."""
        ...

    def go_on(self) -> None:
        """Have what it has sent handled: the state is back."""
        ...

    async def has_read(self) -> None:
        """Wait until it has read most of what was sent to it, and the connections of its user enough."""
        ...

    def put(self, frame: bytes) -> None:
        """Send a frame."""
        ...

    @property
    def unread(self) -> int:
        """Bytes of answers that it has not read."""
        ...

    def may_go_on(self) -> None:
        """Enough has been read: the request that waited is tried again."""
        ...

    def close(self) -> None:
        """Close after what was sent."""
        ...
