"""Fetched logs: a folder of this user, and the download into it from the archive or a mirror.

A log is downloaded whole, checked, and only then given its name, which is that in the archive.
``checksums.json`` next to the logs keeps, for a file without a known checksum, the one that it had
at first use; later uses must match it.  ``partial`` holds unfinished downloads; its contents while
the lock is free were left by a process that died, and are removed.

The bytes are taken as they are sent: a server may declare that the content of a packed file is
encoded; it would be unpacked on the way, and no checksum would match.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from qbatch.distribution import install_command
from qbatch.model.errors import InputError, OutputError, UsageError
from qbatch.workloads.catalogue.entries import Catalogue, Entry, Version
from qbatch.workloads.log import FIELDS

CHECKSUMS = "checksums.json"
CHUNK_BYTES = 1 << 16
TIMEOUT_S = 30.0

FetchProgress = Callable[[int, int], None]
"""Called with the number of bytes in total (0: unknown) and the number that has just arrived."""

_CHECKSUMS = msgspec.json.Decoder(dict[str, Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]])


class Cache:
    """The folder of fetched logs, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, version: Version) -> Path:
        """Return the path of the file of a version, whether it exists or not."""
        return self.folder / version.file

    def checksum(self, version: Version) -> str | None:
        """Return the SHA-256 that a file must have: the catalogue's, else the pinned one; None for
        neither.

        Raises:
            InputError: ``checksums.json`` is damaged, and the catalogue has no checksum of the
                file.
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

    @contextmanager
    def fetching(self) -> Iterator[Path]:
        """Let one process at a time fetch; yield an empty folder for its downloads, which is
        removed afterwards.

        Raises:
            OutputError: the folder cannot be made or written.
        """
        partial = self.folder / "partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(self.folder / ".lock", "a+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    shutil.rmtree(partial, ignore_errors=True)
                    partial.mkdir(exist_ok=True)
                    yield partial
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(
                f"{self.folder}: cannot be written ({reason}); set QBATCH_CACHE to another folder"
            ) from error

    def _pinned(self) -> dict[str, str]:
        """Return the pinned checksums; a damaged file is refused: without it any log would be
        accepted."""
        path = self.folder / CHECKSUMS
        try:
            return _CHECKSUMS.decode(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise InputError(
                f"{path}: is damaged ({error}); nothing was changed; repair it, or remove it with "
                "the logs that it pinned"
            ) from error


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(
    catalogue: Catalogue,
    entry: Entry,
    version: Version,
    cache: Cache,
    *,
    mirror: str | None = None,
    timeout_s: float = TIMEOUT_S,
    progress: FetchProgress | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Path:
    """Return the file of a log, from the cache if it is there, else downloaded into it.

    Args:
        catalogue, entry, version: the log.
        cache: the destination.
        mirror: an address instead of the archive's; below it are the archive's folders.
        timeout_s: seconds without a connection or a byte after which the download fails.
        progress: called as bytes arrive.
        say: called with notes for the user (a checksum that is pinned, a damaged copy).

    Raises:
        InputError: the file is not available, or not as expected, or the checksums of the cache are
            damaged; the cache is unchanged.
        UsageError: the mirror is not an address, or the extra ``catalogue`` is not installed.
        OutputError: the cache cannot be written, or a folder has the name of the file.
    """
    path = cache.path(version)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; remove it, or set QBATCH_CACHE to another folder")
    if cache.holds(version):
        return path
    if cache.checksum(version) is None and path.is_file() and not _why_no_log(path):
        # A whole file without a checksum was put there by a user.
        with cache.fetching():
            _pin(cache, version, sha256_of(path), say)
        return path
    base = mirror or catalogue.archive
    if not base.startswith(("http://", "https://")):
        raise UsageError(f"mirror {base!r}: write an address that begins with http:// or https://")
    address = f"{base.rstrip('/')}/{entry.folder}/{version.file}"
    _pooch()
    with cache.fetching() as partial:
        if cache.holds(version):  # another process fetched it while this one waited for the lock
            return path
        known = cache.checksum(version)
        if path.is_file():
            say(f"note: {path} is damaged; it is fetched again")
        found = _download(address, partial, version, timeout_s, progress)
        sha256 = sha256_of(found)
        if known is not None and sha256 != known:
            origin = (
                "the catalogue's" if version.sha256 else "the one pinned when it was first fetched"
            )
            wrong = f"{address}: has the sha256 {sha256}, not {origin}, {known}"
            raise InputError(f"{wrong}; nothing was kept; fetch it again, or try --mirror URL")
        if known is None:
            if reason := _why_no_log(found):
                raise InputError(f"{address}: {reason}; nothing was kept; try --mirror URL")
            _pin(cache, version, sha256, say)
        os.replace(found, path)
    return path


def _pin(cache: Cache, version: Version, sha256: str, say: Callable[[str], None]) -> None:
    cache.pin(version, sha256)
    say(
        f"note: the catalogue has no checksum of {version.file}; pinned on first use: sha256 "
        f"{sha256}"
    )


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise UsageError(f"fetching a log takes pooch: {install_command('catalogue')}") from None
    return pooch


def _download(
    address: str, folder: Path, version: Version, timeout_s: float, progress: FetchProgress | None
) -> Path:
    """Return the downloaded file in a folder, with all bytes that the server announced."""
    pooch = _pooch()
    pooch.get_logger().setLevel("ERROR")

    def download(url: str, output_file: Any, _: Any) -> None:
        import requests

        with requests.get(
            url, stream=True, timeout=timeout_s, headers={"Accept-Encoding": "identity"}
        ) as response:
            response.raise_for_status()
            length = response.headers.get("content-length") or ""
            total = int(length) if length.isascii() and length.isdigit() else 0
            came = 0
            with open(output_file, "wb") as file:
                for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
                    file.write(chunk)
                    came += len(chunk)
                    if progress is not None:
                        progress(total, len(chunk))
            if came < total:
                raise InputError(
                    f"{address}: ended after {came:,} of {total:,} bytes; nothing was kept; fetch "
                    "it again"
                )

    with _explained(address, version):
        return Path(
            pooch.retrieve(
                address, known_hash=None, fname=version.file, path=folder, downloader=download
            )
        )


@contextmanager
def _explained(address: str, version: Version) -> Iterator[None]:
    """Turn network errors into one line."""
    import requests
    import urllib3

    elsewhere = "try --mirror URL, or set QBATCH_MIRROR"
    try:
        yield
    except requests.HTTPError as error:
        said = (
            f"{error.response.status_code} {error.response.reason}"
            if error.response is not None
            else str(error)
        )
        raise InputError(f"{address}: the server answers {said}; {elsewhere}") from error
    except (requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
        raise InputError(
            f"{address}: no answer in time; nothing was kept; try again, or {elsewhere}"
        ) from error
    except (urllib3.exceptions.IncompleteRead, urllib3.exceptions.ProtocolError) as error:
        reason = _reason(error)
        raise InputError(
            f"{address}: the connection broke half-way ({reason}); nothing was kept; fetch it again"
        ) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise InputError(
            f"{address}: cannot be reached ({_reason(error)}); is there a network? else {elsewhere}"
        ) from error


def _reason(error: BaseException) -> str:
    """Return the innermost reason of a failed connection, in one line."""
    inner: BaseException | None = error
    reason = str(error)
    while inner is not None:
        if (
            isinstance(inner, OSError)
            and inner.strerror
            and not str(inner.strerror).startswith("HTTP")
        ):
            reason = inner.strerror
        found = getattr(inner, "reason", None)
        further = (
            found if isinstance(found, BaseException) else inner.__cause__ or inner.__context__
        )
        if further is None and inner.args and isinstance(inner.args[-1], BaseException):
            further = inner.args[-1]
        inner = further
    return " ".join(reason.split())[:200]


def _why_no_log(path: Path) -> str | None:
    """Return why a file is not a packed log (it may be empty, an error page or a part of a log);
    None if it is one.

    It must be a whole gzip file, with a comment of a log or a job as its first line that is not
    blank.
    """
    first = b""
    try:
        with gzip.open(path) as file:
            while not first.strip() and (line := file.readline(CHUNK_BYTES)):
                first = line
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        return f"is not a whole gzip file ({error})"
    try:
        is_job = len([float(each) for each in first.split()]) >= len(FIELDS)
    except ValueError:
        is_job = False
    if is_job or first.lstrip().startswith((b";", b"#")):
        return None
    return "contains no log (its first line is neither a comment nor a job)"
