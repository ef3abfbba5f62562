"""Long scripts: they arrive in pieces, are kept in files next to the store, and are named by the
SHA-256 of their bytes.

A script that fits into a frame is part of its submission and of the journal.  A longer one (up to
100 MB) is sent before, with ``upload``; the submission has its digest and its beginning.  So
neither frames nor journal nor snapshots nor the memory of the daemon grow with it.  A file is
synced before its upload is answered, so that an acknowledged submission has its script after a
power failure.  The supervisor of an attempt copies it from here.  A script that no live job names
is removed an hour after its last use.  A backup does not contain these files: a job without its
script ends with -1 and a message.

``UID-UPLOAD.part`` has the pieces of an upload so far, and ``UID-UPLOAD.whole`` all of them while
their digest is computed. ``DIGEST`` is a script; an empty file ``UID-DIGEST.owner`` marks a user
that has sent it.  Each user has limits of bytes, files and uploads under way, whatever others have.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qbatch.daemon.executors.supervision.files import sync_directory
from qbatch.wire.errors import Refusal

LONGEST = 100 << 20
"""Bytes of the longest script."""

MOST_BYTES = 1 << 30
"""Bytes of the scripts of a user at most, with those of unfinished uploads."""

MOST_SCRIPTS = 1000
"""Scripts of a user at most."""

MOST_UPLOADS = 100
"""Unfinished uploads of a user at most."""

KEPT = 3600.0
"""Seconds for which a script without a live job is kept."""

_PIECE = 1 << 20
_OWNED = re.compile(r"([0-9]+)-([0-9a-f]+)\.(part|whole|owner)")
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass
class _Usage:
    """The scripts of a user, counted against the limits: ``size`` in bytes."""

    size: int = 0
    scripts: int = 0
    uploads: int = 0


class Scripts:
    """The directory of long scripts, which is made when it is first needed; ``named`` returns the
    digests that live jobs name."""

    def __init__(self, directory: Path, named: Callable[[], set[str]]) -> None:
        self.directory = directory
        self._named = named
        self._usage: dict[int, _Usage] | None = None

    def append(self, uid: int, upload: str, offset: int, data: bytes) -> None:
        """Append a piece to an upload of a user.

        Raises:
            Refusal: the piece is not the next one, the user is at a limit, or the disk is full.
        """
        path = self._part(uid, upload)
        if not 0 <= offset <= LONGEST or offset + len(data) > LONGEST:
            raise Refusal("too-large", f"the script is too long: at most {LONGEST} bytes")
        try:
            if offset == 0:  # an upload of this name begins anew
                path.unlink(missing_ok=True)
            usage = self._usage_of(uid, is_new=offset == 0, more=len(data))
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            flags |= 0 if offset else os.O_CREAT | os.O_EXCL
            with open(os.open(path, flags, 0o600), "ab") as stream:
                if stream.tell() != offset:
                    raise Refusal(
                        "bad-value",
                        f"upload: {stream.tell()} bytes have come; the piece begins at {offset}",
                    )
                stream.write(data)
            usage.size += len(data)
        except FileNotFoundError:
            raise Refusal(
                "bad-value", f"upload: 0 bytes have come; the piece begins at {offset}"
            ) from None
        except OSError as error:
            raise self._failed(path, error) from error

    def finish(self, uid: int, upload: str, digest: str) -> Callable[[], None]:
        """Close an upload.  Return a function, to be called in a thread, that checks its digest,
        syncs it and names it.

        Raises:
            Refusal: there is no such upload.  The returned function raises it too: the digest
                differs, or the disk is full.
        """
        part = self._part(uid, upload)
        whole = part.with_suffix(".whole")
        try:
            if whole.exists():
                raise Refusal(
                    "bad-value", "upload: one of this name is being checked; take another name"
                )
            os.replace(part, whole)
        except FileNotFoundError:
            raise Refusal("bad-value", "upload: 0 bytes have come") from None
        except OSError as error:
            raise self._failed(part, error) from error
        return lambda: self._keep(uid, whole, digest)

    def _keep(self, uid: int, whole: Path, digest: str) -> None:
        found = hashlib.sha256()
        try:
            with open(os.open(whole, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
                while piece := stream.read(_PIECE):
                    found.update(piece)
                if found.hexdigest() != digest:
                    whole.unlink()
                    raise Refusal(
                        "bad-value", "upload: the digest is not that of the bytes that came"
                    )
                os.fsync(stream.fileno())
            owner = self.directory / f"{uid}-{digest}.owner"
            os.close(os.open(owner, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.replace(whole, self.path_of(digest))
            sync_directory(self.directory)
            sync_directory(self.directory.parent)
        except OSError as error:
            raise self._failed(whole, error) from error

    def _failed(self, path: Path, error: OSError) -> Refusal:
        """Remove an upload for which there is no space; return the refusal for its sender."""
        if error.errno not in _FULL:
            return Refusal("failed", f"{path}: {error.strerror}")
        path.unlink(missing_ok=True)
        self._usage = None
        text = (
            f"the disk of {self.directory} is full: the script cannot be taken until there is space"
        )
        return Refusal("storage-full", text)

    def require(self, digest: str) -> None:
        """Keep a script from now on for a submission that names it.

        Raises:
            Refusal: there is no such script.
        """
        try:
            os.utime(self.path_of(digest))
        except OSError:
            raise Refusal(
                "bad-value", f"no script {digest[:64]} is here; upload it first"
            ) from None

    def path_of(self, digest: str) -> Path:
        """Return the path of a script.

        Raises:
            Refusal: the digest is malformed.
        """
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise Refusal("bad-value", f"{digest[:64]!r} is no SHA-256 digest")
        return self.directory / digest

    def _part(self, uid: int, upload: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{8,64}", upload):
            raise Refusal(
                "bad-value",
                f"{upload[:64]!r} is no name of an upload: 8 to 64 letters of 0-9 and a-f",
            )
        return self.directory / f"{uid}-{upload}.part"

    def _usage_of(self, uid: int, *, is_new: bool, more: int) -> _Usage:
        """Return the counts of a user.  ``more``: bytes to come; ``is_new``: they belong to a new
        script.

        Raises:
            Refusal: the user would exceed a limit.
        """
        usage = None if self._usage is None else self._usage.get(uid)
        if is_new or usage is None or usage.size + more > MOST_BYTES:
            self.directory.mkdir(mode=0o700, exist_ok=True)
            self._usage = self._count()
            usage = self._usage.setdefault(uid, _Usage())
        for has, most, what in (
            (usage.size + more, MOST_BYTES, "bytes of long scripts"),
            (usage.scripts + is_new, MOST_SCRIPTS, "long scripts"),
            (usage.uploads + is_new, MOST_UPLOADS, "uploads that are not whole"),
        ):
            if has > most:
                text = (
                    f"you would have {has} {what} here, and {most} are allowed; scripts "
                    "without "
                    "a job go within two hours"
                )
                raise Refusal("busy", text)
        return usage

    def _count(self) -> dict[int, _Usage]:
        """Remove unused files, and return the counts of each user."""
        oldest = time.time() - KEPT
        files: dict[str, os.stat_result] = {}
        for each in os.scandir(self.directory):
            with contextlib.suppress(FileNotFoundError):
                files[each.name] = each.stat(follow_symlinks=False)
        old = {
            name
            for name, about in files.items()
            if about.st_mtime < oldest and not name.endswith(".owner")
        }
        named = self._named() if old else set()
        for name in old:
            if name in named:
                # So its use by jobs is not checked again for an hour.
                os.utime(self.directory / name)
            else:
                (self.directory / name).unlink(missing_ok=True)
                del files[name]
        found: dict[int, _Usage] = {}
        for name, about in files.items():
            if (owned := _OWNED.fullmatch(name)) is None:
                continue
            uid, of, kind = int(owned[1]), owned[2], owned[3]
            if kind == "owner" and of not in files:
                if about.st_mtime < oldest:
                    (self.directory / name).unlink(missing_ok=True)
                continue
            usage = found.setdefault(uid, _Usage())
            usage.size += files[of].st_size if kind == "owner" else about.st_size
            usage.scripts += 1
            usage.uploads += kind != "owner"
        return found
