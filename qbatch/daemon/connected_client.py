"""A connected client as the service and its questions see it; its user's name and role, from the kernel's numbers."""

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
    """Return the names of a user and a group, or their numbers if they have no name."""
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
    """Return the user of a client: the daemon's own user and root are managers, others have the role of the configuration."""
    user, group = names_of(uid, gid)
    role = "user"
    if uid in (0, os.getuid()) or user in settings.managers:
        role = "manager"
    elif user in settings.operators:
        role = "operator"
    return Actor(uid, user, group, role)


def permit_executor(actor: Actor, request: requests.Request, executor: str) -> None:
    """Refuse a real job of another user, because the process executor runs jobs as the daemon's user only.

    It is called when a request comes, not when the journal is replayed: an accepted job stays accepted.

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
    """One connected client, and the ways to answer it.

    ``waits``: its questions without an answer yet; they end with the connection.  ``is_subscribed``: it gets events.
    ``long_answers``: held while a long answer is made; ``long_waits``: how many long answers it waits for.
    """

    uid: int
    waits: set[asyncio.Task[None]]
    is_subscribed: bool
    long_answers: asyncio.Lock
    long_waits: int

    @property
    def actor(self) -> Actor:
        """The user of the client, with the role of the settings in force."""
        ...

    def settled(self) -> None:
        """Note that a command of the client is committed, or found no space on the disk; its answer follows."""
        ...

    def reply(self, number: int, result: object) -> None:
        """Send a result; ``number``: the number of the request."""
        ...

    def fail(self, number: int, error: Refusal) -> None:
        """Send a refusal."""
        ...

    def go_on(self) -> None:
        """Handle the requests that the client has sent, after the state was recovered."""
        ...

    async def has_read(self) -> None:
        """Wait until the client has read most of what was sent to it, and the connections of its user have read enough."""
        ...

    def put(self, frame: bytes) -> None:
        """Send a frame."""
        ...

    @property
    def unread(self) -> int:
        """Bytes of answers that the client has not read, without events, of which all subscribers share one copy."""
        ...

    def may_go_on(self) -> None:
        """Try the request that waited again, because enough has been read."""
        ...

    def close(self) -> None:
        """Close the connection after everything was sent."""
        ...
