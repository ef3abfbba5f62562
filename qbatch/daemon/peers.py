"""Who a peer is: its name and its role, from the numbers that the kernel gives; what the daemon's own user can do for it."""

from __future__ import annotations

import grp
import os
import pwd
from functools import lru_cache

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
