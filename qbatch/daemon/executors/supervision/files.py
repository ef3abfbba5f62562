"""The files of a run directory.

* ``spec.json``: the attempt, which the executor writes before it spawns the supervisor.
* ``lock``: the supervisor holds it (flock) for as long as it lives, which is immune to the reuse of
  process numbers.
* ``claim``: made with O_EXCL by the process that decides the fate of the attempt, once and for all.
* ``control``: lines from the executor (``stop 5.0``, ``signal 19``, ``resize 4 0.5``, ``walltime
  60.0``).
* ``wake``: a FIFO, which wakes the supervisor to read ``control``.
* ``started``: the script runs.
* ``exit.json``: how it ended.  Until then exit.tmp reserves its space on the disk, so that a full
  disk loses no ending.
* ``JOB.SC``: the script, called as in OpenPBS; ``nodes``, ``tmp``, ``log``: for the job and for
  people.
* ``used``: what it has used by the last look.
* ``OU``, ``ER``: its outputs until it has ended; what cannot be delivered then is put into
  ../undelivered.
* ``allocation``: the number of processors that the job has now; replaced when it is resized.
"""

# ruff: noqa: SIM105 (contextlib is not small)
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
NODES, TEMPORARY, LOG, EVENTS = "nodes", "tmp", "log", "events"
ALLOCATION, USED = "allocation", "used"
OUTPUT, ERROR, UNDELIVERED = "OU", "ER", "undelivered"

SCRIPT_ENDING = ".SC"

EXIT_BYTES = 8192
"""Bytes of an exit record, reserved before the script starts."""

WHY_LIMIT = 600
NEW = os.O_CREAT | os.O_EXCL
"""Flags that make a file, and raise FileExistsError if it exists."""


class _Rules:
    """The attributes that the scanner of `_json` reads: plain JSON."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_json(text: str) -> object:
    """Return the value of a JSON text that one of our programs wrote; raise ValueError if it is
    damaged."""
    try:
        value, end = make_scanner(_Rules())(text, 0)  # type: ignore[arg-type]
    except (StopIteration, RecursionError):
        raise ValueError("damaged JSON") from None
    if text[end:].strip():
        raise ValueError("damaged JSON: more than one value")
    return value


def to_json(record: Mapping[str, object]) -> str:
    """Return one line of JSON for texts, numbers and flat dictionaries of these."""
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
    """Return the text of a small file."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)
    with open(handle, encoding="utf-8") as stream:
        return stream.read()


def write(
    name: str,
    text: bytes,
    directory: int | None,
    flags: int,
    mode: int = 0o600,
    *,
    is_synced: bool = False,
) -> None:
    """Write to a file that is opened with these flags; if ``is_synced``, wait until the disk has
    it."""
    handle = os.open(name, os.O_WRONLY | flags, mode, dir_fd=directory)
    try:
        while text:
            text = text[os.write(handle, text) :]
        if is_synced:
            os.fsync(handle)
    finally:
        os.close(handle)


def write_if_possible(name: str, text: bytes, directory: int | None = None, flags: int = 0) -> None:
    """Write to a file that is opened with these flags, and ignore errors."""
    try:
        write(name, text, directory, flags)
    except OSError:
        pass


def replace(name: str, text: str, directory: int) -> None:
    """Replace a file at once: a reader sees either the old or the new text, whole."""
    write(name + ".tmp", text.encode("utf-8"), directory, os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
    os.rename(name + ".tmp", name, src_dir_fd=directory, dst_dir_fd=directory)


def sync_directory(path: str | os.PathLike[str], directory: int | None = None) -> None:
    """Wait until the disk has the names in a directory."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def take_lock(directory: int, patience: float) -> int | None:
    """Return the locked file, or None if another process holds the lock for longer than
    ``patience`` seconds."""
    handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=directory)
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
    """Decide the fate of this attempt; return False if another process did before.  The claim is
    then on the disk.

    The directory and its parent are synced too: if the machine loses power after the script began,
    the claim is still there when it comes back, and the attempt is not started again.
    """
    try:
        write(CLAIM, to_json(record).encode("utf-8"), directory, NEW, is_synced=True)
    except FileExistsError:
        return False
    os.fsync(directory)
    sync_directory("..", directory)
    return True


def reserve_exit(directory: int) -> None:
    """Reserve the space of the exit record while there is some."""
    write(EXIT_TEMPORARY, b" " * EXIT_BYTES, directory, os.O_CREAT | os.O_TRUNC, is_synced=True)


def write_exit(directory: int, record: dict[str, object]) -> None:
    """Record how the attempt ended: write into the reserved space, sync, rename, sync."""
    for name in ("why", "undelivered"):
        record[name] = " ".join(str(record.get(name, "")).split())[:WHY_LIMIT]
    write(
        EXIT_TEMPORARY,
        to_json(record).encode("ascii").ljust(EXIT_BYTES),
        directory,
        os.O_CREAT,
        is_synced=True,
    )
    os.rename(EXIT_TEMPORARY, EXIT, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


def remove_tree(name: str, directory: int | None = None) -> bool:
    """Remove a file or a whole directory, following no link; return whether nothing is left.

    Each directory found is emptied into the topmost one, so that neither depth nor length of paths
    matters: a job may leave ten thousand levels.
    """
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=directory)
            return True
        os.chmod(name, 0o700, dir_fd=directory)
        top = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
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
    """Remove one entry; of a directory, move the directories inside it up first.  Return whether
    anything was removed."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=top)
            return True
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
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
