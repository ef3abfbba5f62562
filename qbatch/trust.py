"""Whether other users may write to a file that is read: kernels to run, a daemon's socket, a
result.

*Other users* are all but ourselves and root.  A group counts as other users unless it is root's or
has no other member, as the groups that many systems give to each user.  A directory with a sticky
bit to which others may write (``/tmp``) counts as safe: others cannot replace files that are ours
or root's.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from typing import TYPE_CHECKING

from qbatch.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def others_may_write(found: os.stat_result) -> bool:
    """Whether other users may write to a file or directory, by its mode; its owner is not
    checked."""
    mode = found.st_mode
    return bool(mode & stat.S_IWOTH) or bool(mode & stat.S_IWGRP and _has_others(found.st_gid))


def is_of_another(found: os.stat_result) -> bool:
    """Whether a file belongs neither to us nor to root."""
    return found.st_uid not in (0, os.geteuid())


def check_not_open(path: Path) -> None:
    """Refuse a file or folder to which every user may write; accept one that a group may write to.

    Raises:
        InputError: naming it.
    """
    try:
        mode = path.stat().st_mode
    except OSError:  # the reader reports this
        return
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise InputError(
            f"{path}: every user may write to it (mode {stat.S_IMODE(mode):04o}), so it is not "
            "read; take that right away "
            f"(chmod o-w {path}), or make a copy of your own"
        )


def who_may_replace(path: str | os.PathLike[str]) -> str:
    """Return a description of how other users could replace the file at a path; empty if they
    cannot.

    Every directory of the path counts, also those behind symbolic links.  A path that does not
    exist or cannot be read is safe.
    """
    for whole in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        folder = "/"
        for name in whole.split("/")[1:]:
            entry = os.path.join(folder, name)
            try:
                place = os.stat(folder)
                is_open = others_may_write(place)
                if is_open and not place.st_mode & stat.S_ISVTX:
                    return f"others may write to {folder} (mode {stat.S_IMODE(place.st_mode):04o})"
                found = os.lstat(entry)
            except OSError:
                break
            if is_open and is_of_another(found):
                return (
                    f"{entry} belongs to user {found.st_uid}, in {folder}, to which others may "
                    "write"
                )
            folder = entry
    return ""


@cache
def _has_others(group: int) -> bool:
    import grp  # the short commands seldom need this
    import pwd

    if group == 0:
        return False
    own = os.geteuid()
    try:
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return group != own  # a user without a name, as in a container, has such a group
    users = {user.pw_name: user for user in pwd.getpwall()}
    members |= {name for name, user in users.items() if user.pw_gid == group}
    return any(name not in users or users[name].pw_uid not in (0, own) for name in members)
