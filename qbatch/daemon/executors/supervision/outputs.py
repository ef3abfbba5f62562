"""The files that a job writes to: which are allowed, why others are refused, and how they are
delivered.

A job writes to spools in its run directory.  When it has ended, they are delivered to the paths of
``-o`` and ``-e``.  So the job itself may make the folder, and no reader finds half of a file.
"""

# ruff: noqa: SIM105 (contextlib is not small)
from __future__ import annotations

import errno
import fcntl
import os
import stat

from . import files

FLAGS = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_TRUNC
    | os.O_APPEND
    | os.O_NOFOLLOW
    | os.O_NONBLOCK
    | os.O_NOCTTY
)

KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class RefusedError(Exception):
    """The attempt cannot have something that it asks for; the message names that and the reason."""


def _check(found: os.stat_result, title: str, *, is_own: bool) -> None:
    """Refuse what is neither a regular file (if ``is_own``, of this user, even if the kernel allows
    others) nor /dev/null."""
    if stat.S_ISREG(found.st_mode):
        if is_own and found.st_uid != os.geteuid():
            raise RefusedError(f"{title} belongs to another user ({found.st_uid})")
        return
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == os.makedev(1, 3):
        return
    raise RefusedError(
        f"{title} is {KINDS.get(stat.S_IFMT(found.st_mode), 'not a regular file')}, not a regular "
        "file"
    )


class OutputTarget:
    """One output file: ``what`` it is, its final path, and its spool (none: the job writes to the
    final path).

    ``letter``: ``o`` or ``e``, as ``-k`` and ``-R`` name it.
    """

    def __init__(self, what: str, path: str, letter: str, spool: str) -> None:
        self.what, self.path, self.letter, self.spool = what, path, letter, spool
        self.title = f"{what} file {path}"  # its name in messages


def targets_of(output: str, error: str, join: str, direct: str) -> list[OutputTarget]:
    """Return the output files of an attempt: one if they are joined or are one file.

    ``direct``: those (``o``, ``e``) that are written to their final paths from the start;
    ``/dev/null`` always is.
    """
    both = [("output", output, "o", files.OUTPUT), ("error", error, "e", files.ERROR)]
    if join == "oe" or (join != "eo" and _is_same(output, error)):
        del both[1]
    elif join == "eo":
        del both[0]
    return [
        OutputTarget(what, path, letter, "" if letter in direct or path == "/dev/null" else spool)
        for what, path, letter, spool in both
    ]


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.normpath(one) == os.path.normpath(other) or os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _refused(title: str, error: Exception) -> RefusedError:
    if isinstance(error, RefusedError):
        return error
    return RefusedError(f"{title}: {getattr(error, 'strerror', None) or error}")


def open_output(path: str, title: str) -> int:
    """Open one output file for writing, empty; RefusedError names it if it must not or cannot be
    opened.

    A file of another user is refused: that user would read what the job writes, or has made it as a
    trap.
    """
    handle = -1
    try:
        _exists(path, title, is_own=True)
        handle = os.open(path, FLAGS & ~os.O_TRUNC, 0o666)
        found = os.fstat(handle)  # checked again: the file may have been exchanged in between
        _check(found, title, is_own=True)
        if stat.S_ISREG(found.st_mode):
            os.ftruncate(handle, 0)
    except (OSError, ValueError, RefusedError) as error:
        if handle >= 0:
            os.close(handle)
        raise _refused(title, error) from None
    fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return handle


def _exists(path: str, title: str, *, is_own: bool = False) -> bool:
    """Refuse what cannot be an output file; return whether it exists."""
    if not path.startswith("/"):
        raise RefusedError(f"{title} is not an absolute path")
    try:
        # Before opening: opening a device may do something.
        _check(os.lstat(path), title, is_own=is_own)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise _refused(title, error) from None
    return True


def _open_spool(target: OutputTarget, directory: int) -> int:
    """Make the spool of an output file; an existing file at the final path must be writable."""
    if _exists(target.path, target.title):
        try:
            os.close(os.open(target.path, FLAGS & ~(os.O_CREAT | os.O_TRUNC)))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _refused(target.title, error) from None
    return os.open(target.spool, FLAGS, 0o666, dir_fd=directory)


def open_outputs(targets: list[OutputTarget], directory: int) -> tuple[int, int]:
    """Return the handles to which the script writes its output and its error.

    If one is refused, the other is made all the same and gets the reason, because clients wait for
    it.
    """
    handles: list[int] = []
    refusals: list[str] = []
    for target in targets:
        try:
            handles.append(
                _open_spool(target, directory)
                if target.spool
                else open_output(target.path, target.title)
            )
        except RefusedError as refusal:
            refusals.append(str(refusal))
            target.spool = ""
    if refusals:
        why = "; ".join(refusals)
        for handle in handles:
            write_message(handle, why)
            os.close(handle)
        raise RefusedError(why)
    return handles[0], handles[-1]


def discard(targets: list[OutputTarget], directory: int, letters: str) -> None:
    """Remove what the job wrote to the outputs of these letters; earlier files at the final paths
    of spools stay."""
    for target in targets:
        if target.letter not in letters:
            continue
        try:
            if target.spool:
                os.unlink(target.spool, dir_fd=directory)
            elif stat.S_ISREG(os.lstat(target.path).st_mode):
                os.unlink(target.path)
        except OSError:
            pass


def deliver(targets: list[OutputTarget], directory: int, name: str, job_id: str) -> str:
    """Deliver the spools to their final paths; return which could not be delivered, and why.

    Another process may do this again if the first one was killed meanwhile.  A spool that cannot be
    delivered goes to the folder ``undelivered`` next to the run directory; ``name`` is the name of
    the run directory.
    """
    problems = []
    for target in targets:
        if target.spool:
            try:
                _deliver(target, directory, job_id)
            except (OSError, ValueError, RefusedError) as error:
                problems.append(
                    f"{_refused(target.title, error)}; {_keep(target, directory, name)}"
                )
    return "; ".join(problems)


def _deliver(target: OutputTarget, directory: int, job_id: str) -> None:
    """Give the spool a second name if the file does not exist and the disk is the same, else copy
    it."""
    try:
        source = os.open(target.spool, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory)
    except FileNotFoundError:
        return  # it is kept as undelivered already, or it was never made
    path = target.path
    try:
        # As of -o DIR; the job may have made it.
        if os.path.isdir(path) and not os.path.islink(path):
            path = f"{path}/{job_id}.{target.spool}"
        try:
            os.link(target.spool, path, src_dir_fd=directory, follow_symlinks=False)
            return
        except FileExistsError:
            if os.path.samestat(os.lstat(path), os.fstat(source)):
                return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        _copy(source, path, f"{target.what} file {path}")
    finally:
        os.close(source)


_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)
"""Errors for which a second name is impossible, but a copy may be possible."""


def _copy(source: int, path: str, title: str) -> None:
    is_new = not _exists(path, title)
    target = open_output(path, title)
    try:
        if is_new:
            os.fchmod(target, os.fstat(source).st_mode & 0o777)
        # For sendfile.
        fcntl.fcntl(target, fcntl.F_SETFL, fcntl.fcntl(target, fcntl.F_GETFL) & ~os.O_APPEND)
        while os.sendfile(target, source, None, 1 << 24):
            pass
    finally:
        os.close(target)


def _keep(target: OutputTarget, directory: int, name: str) -> str:
    """Keep a spool that cannot be delivered; return a text with its path."""
    kept = f"{files.UNDELIVERED}/{name}.{target.spool}"
    try:
        try:
            os.mkdir(f"../{files.UNDELIVERED}", 0o700, dir_fd=directory)
        except FileExistsError:
            pass
        os.rename(target.spool, f"../{kept}", src_dir_fd=directory, dst_dir_fd=directory)
        return f"it is kept as {os.path.dirname(os.readlink(f'/proc/self/fd/{directory}'))}/{kept}"
    except OSError as error:
        return f"it could not be kept either: {error.strerror}"


def write_message(handle: int, text: str) -> None:
    """Write a message of qbatch to an output file."""
    try:
        os.write(handle, f"qbatch: {text}\n".encode("utf-8", "surrogateescape"))
    except OSError:
        pass
