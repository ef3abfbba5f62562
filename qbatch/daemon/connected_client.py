"""Who asks: what the service and its questions need of one connected client, whatever carries it; its name and its role, from the
numbers that the kernel gives.
"""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
from functools import lru_cache
from typing import Protocol

from qbatch.daemon.core.state import Actor
from qbatch.daemon.settings import Settings
from qbatch.wire import requests
from qbatch.wire.errors import Refusal


@lru_cache(maxsize=1024)
def names_of(uid: int, gid: int) -> tuple[str, str]:
    """Return the names of a user and a group; the number where there is no name."""
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    try:
        group = grp.getgrgid(gid).gr_name
    except KeyError:
        group = str(gid)
    return user, group


def actor_of(settings: Settings, uid: int, gid: int) -> Actor:
    """Return who a peer is: the daemon's own user and root are managers, others as the configuration says."""
    user, group = names_of(uid, gid)
    role = "user"
    if uid in (0, os.getuid()) or user in settings.managers:
        role = "manager"
    elif user in settings.operators:
        role = "operator"
    return Actor(uid, user, group, role)


def permit_executor(actor: Actor, request: requests.Request, executor: str) -> None:
    """Refuse a real job of another user: the process executor cannot become somebody else.

    Asked when the request comes, not when the journal is replayed: what was taken stays taken.

    Raises:
        Refusal: the executor is ``process`` and the asker is not the daemon's own user.
    """
    if executor == "process" and isinstance(request, requests.Submit) and actor.uid != os.getuid():
        own = names_of(os.getuid(), os.getgid())[0]
        raise Refusal(
            "unsupported",
            f"executor process runs jobs of {own} only, the user of this daemon, not of {actor.user}; start a daemon of "
            'your own with: qbatch up (or set executor = "emulated")',
        )


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
        """Bytes that it holds of answers that are not read, events aside: all subscribers share those."""
        ...

    def may_go_on(self) -> None:
        """Enough has been read: the request that waited is tried again."""
        ...

    def close(self) -> None:
        """Close after what was sent."""
        ...
