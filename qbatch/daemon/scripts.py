"""Long scripts: they come in pieces, lie in files beside the store, and are named by the SHA-256 of their bytes.

A script that fits into a frame is part of its submission and of the journal.  A longer one (up to 100 MB) is sent before, with
``upload``; the submission names its digest, and holds its beginning.  So neither frames nor journal nor snapshots nor the
memory of the daemon grow with it.  A file is synced before its upload is answered, so that an acknowledged submission has its
script after a power failure; the supervisor of an attempt copies it from here.  What no live job names goes an hour after it was
last wanted.  A backup does not hold these files: a job whose script is gone ends with -1 and says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from qbatch.wire.errors import Refusal

LONGEST = 100 << 20
"""Bytes of the longest script."""

MOST_UNCLAIMED = 1 << 30
"""Bytes of scripts that no live job names."""

KEPT = 3600.0
"""Seconds for which a script is kept that no live job names."""

_PIECE = 1 << 20


class Scripts:
    """The directory of long scripts.

    Args:
        directory: it is made when it is first needed.
        named: returns the digests that live jobs name.
    """

    def __init__(self, directory: Path, named: Callable[[], set[str]]) -> None:
        self.directory = directory
        self._named = named

    def append(self, uid: int, upload: str, offset: int, data: bytes) -> None:
        """Write a piece of an upload of a user behind the pieces before it.

        Raises:
            Refusal: it is no piece that can come next, there is too much, or the disk does not take it.
        """
        path = self._part(uid, upload)
        if not 0 <= offset <= LONGEST or offset + len(data) > LONGEST:
            raise Refusal("too-large", f"the script is too long: at most {LONGEST} bytes")
        try:
            if offset == 0:
                self.directory.mkdir(mode=0o700, exist_ok=True)
                self._sweep()
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            flags |= 0 if offset else os.O_CREAT | os.O_TRUNC
            with open(os.open(path, flags, 0o600), "ab") as stream:
                if stream.tell() != offset:
                    raise Refusal("bad-value", f"upload: {stream.tell()} bytes have come; the piece begins at {offset}")
                stream.write(data)
        except FileNotFoundError:
            raise Refusal("bad-value", f"upload: 0 bytes have come; the piece begins at {offset}") from None
        except OSError as error:
            raise Refusal("failed", f"{path}: {error.strerror}") from error

    def finish(self, uid: int, upload: str, digest: str) -> None:
        """Check what has come, sync it and give it its name; may be called in a thread.

        Raises:
            Refusal: its digest is another, or the disk does not take it.
        """
        path = self._part(uid, upload)
        found = hashlib.sha256()
        try:
            with open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
                while piece := stream.read(_PIECE):
                    found.update(piece)
                if found.hexdigest() != digest:
                    path.unlink()
                    raise Refusal("bad-value", "upload: the digest is not that of the bytes that came")
                os.fsync(stream.fileno())
            os.replace(path, self.path_of(digest))
            for folder in (self.directory, self.directory.parent):
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
        except OSError as error:
            raise Refusal("failed", f"{path}: {error.strerror}") from error

    def require(self, digest: str) -> None:
        """Keep a script from now on for a submission that names it.

        Raises:
            Refusal: it is not here.
        """
        try:
            os.utime(self.path_of(digest))
        except OSError:
            raise Refusal("bad-value", f"no script {digest[:64]} is here; upload it first") from None

    def path_of(self, digest: str) -> Path:
        """Return where a script is.

        Raises:
            Refusal: it is no digest.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise Refusal("bad-value", f"{digest[:64]!r} is no SHA-256 digest")
        return self.directory / digest

    def _part(self, uid: int, upload: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{8,64}", upload):
            raise Refusal("bad-value", f"{upload[:64]!r} is no name of an upload: 8 to 64 letters of 0-9 and a-f")
        return self.directory / f"{uid}-{upload}.part"

    def _sweep(self) -> None:
        """Remove what nobody wants any more.

        Raises:
            Refusal: too much is here that no live job names, and it is too young to go.
        """
        named = self._named()
        oldest = time.time() - KEPT
        unclaimed = 0
        for each in os.scandir(self.directory):
            with contextlib.suppress(FileNotFoundError):
                if each.name in named:
                    continue
                about = each.stat(follow_symlinks=False)
                if about.st_mtime < oldest:
                    os.unlink(each.path)
                else:
                    unclaimed += about.st_size
        if unclaimed > MOST_UNCLAIMED:
            raise Refusal("busy", f"{unclaimed} bytes of scripts are here that no job names; try again in an hour")
