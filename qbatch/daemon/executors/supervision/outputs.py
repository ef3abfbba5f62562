"""The files that a job writes to: what may be one, and why another may not."""

# ruff: noqa: SIM105 (contextlib is not small)
from __future__ import annotations

import fcntl
import os
import stat

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class RefusedError(Exception):
    """Something that the attempt asks for cannot be had; the message says what and why."""


def _check(found: os.stat_result, title: str) -> None:
    """Refuse what is neither a regular file nor /dev/null."""
    if stat.S_ISREG(found.st_mode) or (stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3)):
        return
    kind = next((name for test, name in KINDS if test(found.st_mode)), "not a regular file")
    raise RefusedError(f"{title} is {kind}, not a regular file")


def open_output(path: str, what: str) -> int:
    """Open one output file for writing, empty; RefusedError names it where that must not or cannot be."""
    title = f"{what} file {path}"
    if not path.startswith("/"):
        raise RefusedError(f"{title} is not an absolute path")
    try:
        try:
            _check(os.lstat(path), title)  # before opening: opening a device may do something
        except FileNotFoundError:
            pass
        handle = os.open(path, FLAGS, 0o666)
    except (OSError, ValueError) as error:
        raise RefusedError(f"{title}: {getattr(error, 'strerror', None) or error}") from None
    try:
        _check(os.fstat(handle), title)  # and after: it may have been exchanged in between
    except RefusedError:
        os.close(handle)
        raise
    fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return handle


def open_outputs(output: str, error: str, join: str) -> tuple[int, int]:
    """Both outputs, as one where they are joined or are one file.

    Where one is refused, the other is made all the same and says why: clients wait for it.
    """
    wanted = {"oe": [("output", output)], "eo": [("error", error)]}.get(join, [("output", output), ("error", error)])
    handles: list[int] = []
    refusals: list[str] = []
    for what, path in wanted:
        try:
            handles.append(open_output(path, what))
        except RefusedError as refusal:
            refusals.append(str(refusal))
    if refusals:
        why = "; ".join(refusals)
        for handle in handles:
            say(handle, why)
            os.close(handle)
        raise RefusedError(why)
    if len(handles) == 2 and os.path.sameopenfile(*handles):
        os.close(handles.pop())
    return handles[0], handles[-1]


def say(handle: int, text: str) -> None:
    """Put a line of ours into an output file."""
    try:
        os.write(handle, f"qbatch: {text}\n".encode("utf-8", "surrogateescape"))
    except OSError:
        pass
