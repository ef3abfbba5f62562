"""Logs that were fetched: a folder of this user, with the checksums of those that the catalogue has none for.

The files stand under their names in the archive.  ``checksums.json`` beside them keeps, for a file whose checksum was not known,
the one that it had when it was first used: from then on it is held to that.  ``partial`` holds what is being fetched; all that is
there while the lock is free was left by a process that died, and goes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec

from qbatch.model.errors import InputError, OutputError
from qbatch.workloads.catalogue.entries import Version

CHECKSUMS = "checksums.json"

_CHECKSUMS = msgspec.json.Decoder(dict[str, Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]])


class Cache:
    """The folder of fetched logs.

    Args:
        folder: need not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, version: Version) -> Path:
        """Return where the file of a version stands, or would."""
        return self.folder / version.file

    def checksum(self, version: Version) -> str | None:
        """Return the SHA-256 that a file has to have: the catalogue's, else the one that is pinned; None for neither.

        Raises:
            InputError: ``checksums.json`` is damaged, and the catalogue has no checksum of the file.
        """
        return version.sha256 or self._pinned().get(version.file)

    def holds(self, version: Version) -> bool:
        """Return whether the file is there with the checksum that it has to have."""
        path = self.path(version)
        wanted = self.checksum(version)
        return wanted is not None and path.is_file() and sha256_of(path) == wanted

    def pin(self, version: Version, sha256: str) -> None:
        """Keep the checksum of a file for which none was known."""
        text = json.dumps(self._pinned() | {version.file: sha256}, indent=2, sort_keys=True) + "\n"
        handle, partial = tempfile.mkstemp(prefix=".checksums.", dir=self.folder)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(partial, self.folder / CHECKSUMS)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise

    def keep(self, partial: Path, version: Version) -> Path:
        """Give a file that was fetched its name; a file that stood there is replaced."""
        path = self.path(version)
        os.replace(partial, path)
        return path

    @contextmanager
    def fetching(self) -> Iterator[Path]:
        """Let one process at a time fetch; give it an empty folder for what it fetches, which is gone afterwards.

        Raises:
            OutputError: the folder cannot be made or written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / ".lock", "a+b")  # noqa: SIM115 - closed below, which frees it
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        partial = self.folder / "partial"
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(exist_ok=True)
                yield partial
            except OSError as error:
                raise _unwritable(self.folder, error) from error
            finally:
                shutil.rmtree(partial, ignore_errors=True)

    def _pinned(self) -> dict[str, str]:
        """Return the checksums that are pinned; a file that is damaged is refused: without them any file would be taken."""
        path = self.folder / CHECKSUMS
        try:
            return _CHECKSUMS.decode(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path}: is damaged ({error}); nothing was changed; mend it, or remove it with the logs that it pinned"
            ) from error


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder}: cannot be written ({error.strerror or error}); set QBATCH_CACHE to another folder")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
