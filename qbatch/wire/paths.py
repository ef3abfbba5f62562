"""Paths of the daemon's socket, its state, the configuration and caches, for the daemon and its
clients.

``QBATCH_SOCKET``, ``QBATCH_STATE`` and ``QBATCH_CONFIG`` decide; then the XDG directories.  A state
directory that is named contains its socket, so that the directory identifies the daemon.  The
module opens no socket and no file; it only checks which users may write to the directories above a
socket.  Functions import ``pathlib`` when they need it, because the short commands need only the
path of the socket.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING

from qbatch.model.errors import QbatchError
from qbatch.trust import who_may_replace

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_SOCKET = 107
"""Bytes of the longest path that the kernel takes for a Unix socket."""

SYSTEM_SOCKET = "/run/qbatch/qbatch.sock"
"""The socket of the daemon that serves the whole machine."""


class UnsafeDirectory(QbatchError):  # noqa: N818 - it describes the directory
    """A directory is open to other users, and qbatch does not use it (exit code 7)."""

    exit_code = 7


def personal_socket_path(environment: Mapping[str, str] = os.environ) -> str:
    """Return the socket of the user's own daemon; it need not exist.

    Raises:
        UnsafeDirectory: the directory under ``/tmp`` exists and others own it or may enter it.
    """
    if environment.get("QBATCH_SOCKET"):
        return environment["QBATCH_SOCKET"]
    if environment.get("QBATCH_STATE"):
        return socket_in(environment["QBATCH_STATE"])
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    return (
        f"{runtime}/qbatch/qbatch.sock"
        if runtime.startswith("/")
        else f"{_own_directory()}/qbatch.sock"
    )


def _own_directory() -> str:
    directory = f"/tmp/qbatch-{os.getuid()}"
    check_directory(directory)
    return directory


def socket_in(state: str | os.PathLike[str]) -> str:
    """Return the socket of the daemon of a state directory: in it, or under ``/tmp`` if that path
    is too long.

    Raises:
        UnsafeDirectory: see ``personal_socket_path``.
    """
    directory = os.path.abspath(state)
    path = f"{directory}/qbatch.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    from hashlib import sha256

    return f"{_own_directory()}/{sha256(os.fsencode(directory)).hexdigest()[:16]}.sock"


def up_command(path: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the command that starts a daemon which listens at a socket."""
    state = environment.get("QBATCH_STATE")
    if state and path == socket_in(state):
        return f"qbatch up --state {state}"
    return (
        "qbatch up"
        if path in (personal_socket_path(environment), SYSTEM_SOCKET)
        else f"qbatch up --socket {path}"
    )


def socket_path(environment: Mapping[str, str] = os.environ) -> str:
    """Return the socket that a command should use: the user's own, or the machine's if only that
    one exists.

    Raises:
        UnsafeDirectory: see ``personal_socket_path``.
    """
    own = personal_socket_path(environment)
    is_named = environment.get("QBATCH_SOCKET") or environment.get("QBATCH_STATE")
    return (
        own
        if is_named or os.path.exists(own) or not os.path.exists(SYSTEM_SOCKET)
        else SYSTEM_SOCKET
    )


def check_directory(directory: str) -> None:
    """Refuse an existing path that is no directory, belongs to another user, or that other users
    may enter.

    Raises:
        UnsafeDirectory: with the reason.
    """
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnsafeDirectory(
            f"{directory}: {error.strerror}; set QBATCH_SOCKET to a path of your own"
        ) from None
    reason = ""
    if not stat.S_ISDIR(found.st_mode):
        reason = "is no directory"
    elif found.st_uid != os.getuid():
        reason = f"belongs to user {found.st_uid}"
    elif found.st_mode & 0o077:
        reason = f"has mode {stat.S_IMODE(found.st_mode):04o}, others may enter"
    if reason:
        raise UnsafeDirectory(
            f"{directory} {reason}; remove it, chmod it to 0700 or set QBATCH_SOCKET"
        )


def check_socket(path: str) -> None:
    """Refuse a socket that a user other than its owner and root may have replaced.

    Raises:
        UnsafeDirectory: with the reason.
    """
    reason = who_may_replace(path)
    if reason:
        raise UnsafeDirectory(
            f"the socket {path} may not be the daemon's: {reason}; have the daemon listen where "
            "only its own user may write"
        )


def make_socket_directory(path: str) -> None:
    """Make the directory of a socket with mode 0700 if it does not exist; under ``/tmp`` it must be
    the user's alone.

    Raises:
        UnsafeDirectory: see ``check_directory`` and ``check_socket``.
    """
    directory = os.path.dirname(path) or "."
    os.makedirs(os.path.dirname(os.path.abspath(directory)), exist_ok=True)
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if directory == f"/tmp/qbatch-{os.getuid()}":
            check_directory(directory)
    check_socket(path)


def _xdg(environment: Mapping[str, str], own: str, variable: str, default: str, last: str) -> Path:
    from pathlib import Path

    if environment.get(own):
        return Path(environment[own])
    base = environment.get(variable, "")
    if base.startswith("/"):
        return Path(base) / "qbatch" / last
    return Path(environment.get("HOME") or os.path.expanduser("~")) / default / "qbatch" / last


def state_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the store: ``$QBATCH_STATE``, ``$XDG_STATE_HOME/qbatch`` or
    ``~/.local/state/qbatch``."""
    return _xdg(environment, "QBATCH_STATE", "XDG_STATE_HOME", ".local/state", "")


def config_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the configuration file: ``$QBATCH_CONFIG``, ``$XDG_CONFIG_HOME/qbatch/qbatch.toml`` or
    ``~/.config/...``."""
    return _xdg(environment, "QBATCH_CONFIG", "XDG_CONFIG_HOME", ".config", "qbatch.toml")


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of caches: ``$QBATCH_CACHE``, ``$XDG_CACHE_HOME/qbatch`` or
    ``~/.cache/qbatch``."""
    return _xdg(environment, "QBATCH_CACHE", "XDG_CACHE_HOME", ".cache", "")
