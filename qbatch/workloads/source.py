"""The bytes of a log from any source: a file or standard input, plain or compressed.

The kind of compression is read from the first bytes, never from the name, so that a renamed or
piped file works.  The bytes are hashed as stored, while they are read.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

from qbatch.model.errors import InputError, UsageError, suggestion

STANDARD_INPUT = "-"
CHUNK_BYTES = 4 << 20

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_FOREIGN = {
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"\x1f\x9d": "compress (.Z)",
    b"7z\xbc\xaf": "7-zip",
}


class LogFile:
    """One pass over the bytes of a log: decompressed for the reader, hashed as stored."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.title = "standard input" if path == STANDARD_INPUT else f"log {path!r}"
        self._stored: _HashedFile | None = None

    @property
    def stored_bytes(self) -> int:
        """Return the number of bytes read so far, as stored (for a progress bar)."""
        return self._stored.read_bytes if self._stored is not None else 0

    @property
    def sha256(self) -> str:
        """Return the hash of the stored bytes read so far; of the whole log once ``chunks`` is
        exhausted."""
        return (
            self._stored.digest.hexdigest()
            if self._stored is not None
            else hashlib.sha256().hexdigest()
        )

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """Yield the decompressed content in pieces of at most ``size`` bytes; raise InputError if
        that fails."""
        with self._explained(), ExitStack() as stack:
            file = stack.enter_context(self._open())
            self._stored = _HashedFile(file)
            stored = stack.enter_context(io.BufferedReader(self._stored, 1 << 20))
            content = stack.enter_context(self._decompressed(stored))
            while chunk := content.read(size):
                yield chunk
            while stored.read(1 << 20):
                pass  # the hash includes every stored byte, also padding after the last member

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.path == STANDARD_INPUT:
            if sys.stdin is None:
                raise InputError(f"{self.title}: is closed; pipe a log into it or name a file")
            yield sys.stdin.buffer  # standard input stays open
        else:
            with open(self.path, "rb", buffering=0) as file:
                yield file

    def _decompressed(self, stored: Any) -> Any:
        magic = stored.peek(6)[:6]
        if magic.startswith(_GZIP):
            return gzip.GzipFile(fileobj=stored, mode="rb")
        if magic.startswith(_XZ):
            return lzma.LZMAFile(stored, mode="rb")
        for foreign, kind in _FOREIGN.items():
            if magic.startswith(foreign):
                raise InputError(
                    f"{self.title}: is a {kind} file; unpack it first (plain, gzip and xz are read)"
                )
        return stored

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise InputError(
                f"{self.title}: no such file{self._neighbour() or '; check the path'}"
            ) from error
        except IsADirectoryError as error:
            raise InputError(f"{self.title}: is a directory; name a log file in it") from error
        except PermissionError as error:
            raise InputError(
                f"{self.title}: no permission to read it; check its mode and owner"
            ) from error
        except EOFError as error:
            raise InputError(
                f"{self.title}: the compressed data end too early; fetch it again"
            ) from error
        except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise InputError(
                f"{self.title}: the compressed data are corrupt ({error}); fetch it again"
            ) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"{self.title}: cannot be read ({reason}); check the path") from error

    def _neighbour(self) -> str:
        from qbatch.workloads.catalogue.entries import load_catalogue  # slow: only after a mistake

        folder, name = os.path.split(self.path)
        with suppress(UsageError):
            return (
                f"; it is a public log: qbatch trace get {load_catalogue().find(name)[0].name} "
                "fetches it and prints its path"
            )
        try:
            return suggestion(name, os.listdir(folder or "."))
        except OSError:
            return ""


class _HashedFile(io.RawIOBase):
    """A file that hashes and counts what is read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file: Any = file
        self.digest = hashlib.sha256()
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer)
        self.digest.update(memoryview(buffer)[:count])
        self.read_bytes += count
        return count


def read_bytes_chunks(path: str, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the content of a plain, gzip or xz file, or of standard input for ``-``, piece by
    piece."""
    return LogFile(path).chunks(size)


def log_hash(path: str) -> str | None:
    """Return the SHA-256 of the file as stored; None for standard input, which is hashed while it
    is read."""
    if path == STANDARD_INPUT:
        return None
    source = LogFile(path)
    with source._explained(), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
