"""The files of a run directory: who may start (lock, claim), what is asked (spec, control), how it ended (exit).

spec.json   the attempt, written by the executor before the supervisor is spawned
lock        held (flock) by the supervisor for as long as it lives: immune to the reuse of process numbers
claim       made with O_EXCL by whoever decides the fate of the attempt, once and for all
control     lines appended by the executor (``stop 5.0``, ``signal 19``, ``resize 4 0.5``, ``walltime 60.0``); ``wake`` is a
            FIFO that says: read it
started     the script runs
exit.json   how it ended; until then its room on the disk is kept by exit.tmp, so that a full disk loses no ending
script, nodes, tmp, log     for the job and for people
used        what it has used by the last look
OU, ER      what it writes, until it has ended; what cannot be delivered then is put into ../undelivered
allocation  how many processors the job has now; replaced when it is resized
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

# The C halves of `json`: the module itself costs as much as a whole start of Python.
from _json import encode_basestring_ascii as quote
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SPEC, LOCK, CLAIM, CONTROL, WAKE = "spec.json", "lock", "claim", "control", "wake"
STARTED, EXIT, EXIT_TEMPORARY = "started", "exit.json", "exit.tmp"
SCRIPT, NODES, TEMPORARY, LOG, EVENTS = "script", "nodes", "tmp", "log", "events"
ALLOCATION, USED = "allocation", "used"
OUTPUT, ERROR, UNDELIVERED = "OU", "ER", "undelivered"

ROOM = 8192
"""Bytes that an exit record may have, set aside before the script starts."""

WHY_LIMIT = 600


class _Rules:
    """What the scanner of `_json` asks for: plain JSON."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_json(text: str) -> object:
    """The value of a JSON text that one of our programs wrote; ValueError where it is damaged."""
    try:
        value, end = make_scanner(_Rules())(text, 0)  # type: ignore[arg-type]
    except (StopIteration, RecursionError):
        raise ValueError("damaged JSON") from None
    if text[end:].strip():
        raise ValueError("damaged JSON: more than one value")
    return value


def to_json(record: Mapping[str, object]) -> str:
    """One line of JSON from text, numbers and flat dictionaries of these."""
    parts = []
    for name, value in record.items():
        if isinstance(value, str):
            text = quote(value.encode("utf-8", "replace").decode("utf-8"))
        elif isinstance(value, dict):
            text = to_json(value).rstrip("\n")
        else:
            text = repr(value)
        parts.append(f"{quote(name)}: {text}")
    return "{" + ", ".join(parts) + "}\n"


def read_text(name: str, directory: int) -> str:
    """The whole of a small file."""
    handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=directory)
    with open(handle, encoding="utf-8") as stream:
        return stream.read()


def write_new(name: str, text: str, directory: int, mode: int = 0o600, encoding: str = "utf-8") -> None:
    """Make a file that is not there yet (FileExistsError where it is)."""
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=directory)
    with open(handle, "w", encoding=encoding, newline="") as stream:
        stream.write(text)


def replace(name: str, text: str, directory: int) -> None:
    """Put a file in the place of another at once: who reads it sees the one or the other, whole."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(name + ".tmp", flags, 0o600, dir_fd=directory), "w", encoding="utf-8") as stream:
        stream.write(text)
    os.rename(name + ".tmp", name, src_dir_fd=directory, dst_dir_fd=directory)


def write_synced(name: str, text: bytes, directory: int, flags: int) -> None:
    """Write a file and wait until the disk has it."""
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600, dir_fd=directory)
    try:
        while text:
            text = text[os.write(handle, text) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(path: str | os.PathLike[str], directory: int | None = None) -> None:
    """Wait until the disk has the names in a directory."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_lock(directory: int, patience: float) -> int | None:
    """The locked file, or None where another process holds it for longer than the patience."""
    handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=directory)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                return None
        time.sleep(0.005)


def make_claim(directory: int, record: Mapping[str, object]) -> bool:
    """Decide the fate of this attempt; False where someone did before.  On the disk when it returns.

    The directory and its parent are synced too: if the machine loses power after the script began, the claim is
    there when it comes back, and the attempt is not started again.
    """
    try:
        write_synced(CLAIM, to_json(record).encode("utf-8"), directory, os.O_EXCL)
    except FileExistsError:
        return False
    os.fsync(directory)
    sync_directory("..", directory)
    return True


def reserve_exit(directory: int) -> None:
    """Set the room of the exit record aside while there is some."""
    write_synced(EXIT_TEMPORARY, b" " * ROOM, directory, os.O_TRUNC)


def write_exit(directory: int, record: dict[str, object]) -> None:
    """Record how the attempt ended: in the room set aside, synced, then given its name, synced."""
    for name in ("why", "undelivered"):
        record[name] = " ".join(str(record.get(name, "")).split())[:WHY_LIMIT]
    text = to_json(record).encode("ascii")
    write_synced(EXIT_TEMPORARY, text.ljust(ROOM, b" "), directory, 0)
    os.rename(EXIT_TEMPORARY, EXIT, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


def remove_tree(name: str, directory: int | None = None) -> bool:
    """Remove a file or a whole directory, following no link; True where nothing is left.

    Each directory found is emptied into the topmost one, so that neither depth nor length of paths matters (a job
    may leave ten thousand levels).
    """
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=directory)
            return True
        os.chmod(name, 0o700, dir_fd=directory)
        top = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        gained = True
        while gained:
            gained = False
            for child in os.listdir(top):
                gained |= _flatten(top, child)
        os.rmdir(name, dir_fd=directory)
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def _flatten(top: int, name: str) -> bool:
    """Remove one entry; of a directory, move the directories inside it up first.  False where nothing was gained."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=top)
            return True
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    except OSError:
        return False
    try:
        for child in os.listdir(inner):
            if stat.S_ISDIR(os.stat(child, dir_fd=inner, follow_symlinks=False).st_mode):
                os.chmod(child, 0o700, dir_fd=inner)
                os.rename(child, "." + os.urandom(8).hex(), src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=inner)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    finally:
        os.close(inner)
    return True
