"""Fetched logs: a folder of this user, with the checksums of logs for which the catalogue has none.

The files have their names in the archive.  ``checksums.json`` next to them keeps, for a file without a known checksum,
the one that it had at first use; later uses must match it.  ``partial`` holds unfinished downloads; its contents
while the lock is free were left by a process that died, and are removed.
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
        folder: it need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, version: Version) -> Path:
        """Return the path of the file of a version, whether it exists or not."""
        return self.folder / version.file

    def checksum(self, version: Version) -> str | None:
        """Return the SHA-256 that a file must have: the catalogue's, else the pinned one; None for neither.

        Raises:
            InputError: ``checksums.json`` is damaged, and the catalogue has no checksum of the file.
        """
        return version.sha256 or self._pinned().get(version.file)

    def holds(self, version: Version) -> bool:
        """Return whether the file exists with the checksum that it must have."""
        path = self.path(version)
        wanted = self.checksum(version)
        return wanted is not None and path.is_file() and sha256_of(path) == wanted

    def pin(self, version: Version, sha256: str) -> None:
        """Keep the checksum of a file without a known one."""
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
        """Give a fetched file its name, replacing an existing file."""
        path = self.path(version)
        os.replace(partial, path)
        return path

    @contextmanager
    def fetching(self) -> Iterator[Path]:
        """Let one process at a time fetch; yield an empty folder for its downloads, which is removed afterwards.

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
        """Return the pinned checksums; a damaged file is refused: without it any log would be accepted."""
        path = self.folder / CHECKSUMS
        try:
            return _CHECKSUMS.decode(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path}: is damaged ({error}); nothing was changed; repair it, or remove it with the logs that it pinned"
            ) from error


def _unwritable(folder: Path, error: OSError) -> OutputError:
    return OutputError(f"{folder}: cannot be written ({error.strerror or error}); set QBATCH_CACHE to another folder")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
