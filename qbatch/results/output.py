"""Files that appear complete or not at all."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from qbatch.model.errors import OutputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a binary file that gets its name only when the block ends well; after an error no file
    is left.

    Whatever the umask is, not every user may write to it: such a file would not be read again
    (:mod:`qbatch.trust`).

    Raises:
        OutputError: the file cannot be written (no such folder, no permission, a full disk).
    """
    named = Path(path)
    if named.is_dir():
        raise OutputError(f"{path}: is a directory; name a file in it")
    target = Path(os.path.realpath(path))
    if named.exists() and not named.is_file():
        # A device or a pipe (/dev/stdout, a named pipe) cannot be replaced: it is written to.
        try:
            with open(named, "wb") as out:
                yield cast(BinaryIO, out)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from error
        return
    partial: str | None = None
    try:
        handle, partial = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".partial", dir=target.parent
        )
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(handle, 0o664 & ~umask)
        with os.fdopen(handle, "wb") as out:
            yield cast(BinaryIO, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(partial, target)
        partial = None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"{target}: cannot be written ({reason}); nothing was left there"
        ) from error
    finally:
        if partial is not None:
            with suppress(OSError):
                os.unlink(partial)


def check_folder(path: str | Path) -> None:
    """Refuse, before any work, a path with folders that do not exist and cannot be created.

    Raises:
        OutputError: the path is refused; the message names the nearest existing folder and its
            problem.
    """
    folder = Path(os.path.abspath(path)).parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise OutputError(f"{path}: {folder} is not a folder; name another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: the folder {folder} is not writable; name another place")


def make_folder(path: str | Path) -> None:
    """Create the folders of a path.

    Raises:
        OutputError: that is impossible.
    """
    folder = Path(os.path.abspath(path)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path}: the folder {folder} cannot be created ({error.strerror or error})"
        ) from error


@contextmanager
def log_file(path: str) -> Iterator[BinaryIO]:
    """Open the output of a workload log: ``-`` is standard output, ``.gz`` is compressed, with the
    same bytes for the same log.

    Its folders are created.

    Raises:
        OutputError: as :func:`whole_file`.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    make_folder(path)
    with whole_file(path) as file:
        if path.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield file
