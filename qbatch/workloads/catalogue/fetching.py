"""From the archive, or a mirror, to the cache: a log is downloaded whole, checked, and only then given its name.

The bytes are taken as they are sent: a server may declare that the content of a packed file is encoded; it would be unpacked on
the way, and no checksum would match.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from qbatch.distribution import install_command
from qbatch.model.errors import InputError, OutputError, UsageError
from qbatch.workloads.catalogue.cache import Cache, sha256_of
from qbatch.workloads.catalogue.entries import Catalogue, Entry, Version
from qbatch.workloads.log import FIELDS

CHUNK_BYTES = 1 << 16
TIMEOUT_S = 30.0


class FetchProgress(Protocol):
    """Called with the number of bytes in total (0: unknown) and the number that has just arrived."""

    def __call__(self, total: int, more: int) -> None:
        """Record the progress."""


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
        InputError: the file is not available, or not as expected, or the checksums of the cache are damaged; the cache is
            unchanged.
        UsageError: the mirror is not an address, or the extra ``catalogue`` is not installed.
        OutputError: the cache cannot be written, or a folder has the name of the file.
    """
    if cache.path(version).is_dir():
        raise OutputError(f"{cache.path(version)}: is a folder; remove it, or set QBATCH_CACHE to another folder")
    if cache.holds(version) or _adopted(cache, version, say):
        return cache.path(version)
    address = f"{_base(mirror or catalogue.archive)}/{catalogue.path(entry, version)}"
    _pooch()
    with cache.fetching() as partial:
        if cache.holds(version):  # another process fetched it while this one waited for the lock
            return cache.path(version)
        known = cache.checksum(version)
        if cache.path(version).is_file():
            say(f"note: {cache.path(version)} is damaged; it is fetched again")
        found = _download(address, partial, version, timeout_s, progress)
        sha256 = sha256_of(found)
        if known is not None and sha256 != known:
            whose = "the catalogue's" if version.sha256 else "the one pinned when it was first fetched"
            raise InputError(
                f"{address}: has the sha256 {sha256}, not {whose}, {known}; nothing was kept; fetch it again, or try --mirror URL"
            )
        if known is None:
            if reason := _why_no_log(found):
                raise InputError(f"{address}: {reason}; nothing was kept; try --mirror URL")
            _pin(cache, version, sha256, say)
        return cache.keep(found, version)


def _adopted(cache: Cache, version: Version, say: Callable[[str], None]) -> bool:
    """Accept a whole file that is in the cache without a checksum, because a user put it there."""
    path = cache.path(version)
    if cache.checksum(version) is not None or not path.is_file() or _why_no_log(path):
        return False
    with cache.fetching():
        _pin(cache, version, sha256_of(path), say)
    return True


def _pin(cache: Cache, version: Version, sha256: str, say: Callable[[str], None]) -> None:
    cache.pin(version, sha256)
    say(f"note: the catalogue has no checksum of {version.file}; pinned on first use: sha256 {sha256}")


def _base(address: str) -> str:
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"mirror {address!r}: write an address that begins with http:// or https://")
    return address.rstrip("/")


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise UsageError(
            f"fetching a log takes pooch: {install_command('catalogue')}"
        ) from None
    return pooch


def _download(address: str, folder: Path, version: Version, timeout_s: float, progress: FetchProgress | None) -> Path:
    """Return the downloaded file in a folder, with all bytes that the server announced."""
    pooch = _pooch()
    pooch.get_logger().setLevel("ERROR")

    def download(url: str, output_file: Any, _: Any) -> None:
        import requests

        with requests.get(url, stream=True, timeout=timeout_s, headers={"Accept-Encoding": "identity"}) as response:
            response.raise_for_status()
            said = response.headers.get("content-length") or ""
            total = int(said) if said.isascii() and said.isdigit() else 0
            came = 0
            with open(output_file, "wb") as file:
                for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
                    file.write(chunk)
                    came += len(chunk)
                    if progress is not None:
                        progress(total, len(chunk))
            if came < total:
                raise InputError(f"{address}: ended after {came:,} of {total:,} bytes; nothing was kept; fetch it again")

    with _explained(address, version):
        return Path(pooch.retrieve(address, known_hash=None, fname=version.file, path=folder, downloader=download))


@contextmanager
def _explained(address: str, version: Version) -> Iterator[None]:
    """Turn network errors into one line."""
    import requests
    import urllib3

    elsewhere = "try --mirror URL, or set QBATCH_MIRROR"
    try:
        yield
    except requests.HTTPError as error:
        said = f"{error.response.status_code} {error.response.reason}" if error.response is not None else str(error)
        raise InputError(f"{address}: the server answers {said}; {elsewhere}") from error
    except (requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
        raise InputError(f"{address}: no answer in time; nothing was kept; try again, or {elsewhere}") from error
    except (urllib3.exceptions.IncompleteRead, urllib3.exceptions.ProtocolError) as error:
        reason = _reason(error)
        raise InputError(f"{address}: the connection broke half-way ({reason}); nothing was kept; fetch it again") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise InputError(f"{address}: cannot be reached ({_reason(error)}); is there a network? else {elsewhere}") from error


def _reason(error: BaseException) -> str:
    """Return the innermost reason of a failed connection, in one line."""
    inner: BaseException | None = error
    reason = str(error)
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror and not str(inner.strerror).startswith("HTTP"):
            reason = inner.strerror
        found = getattr(inner, "reason", None)
        further = found if isinstance(found, BaseException) else inner.__cause__ or inner.__context__
        if further is None and inner.args and isinstance(inner.args[-1], BaseException):
            further = inner.args[-1]
        inner = further
    return " ".join(reason.split())[:200]


def _why_no_log(path: Path) -> str | None:
    """Return why a file is not a packed log (it may be empty, an error page or a part of a log); None if it is one.

    It must be a whole gzip file, with a comment of a log or a job as its first line that is not blank.
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
    return None if _is_of_a_log(first) else "contains no log (its first line is neither a comment nor a job)"


def _is_of_a_log(line: bytes) -> bool:
    """Return whether a line is a comment of a log, or the numbers of a job."""
    if line.lstrip().startswith((b";", b"#")):
        return True
    try:
        return len([float(each) for each in line.split()]) >= len(FIELDS)
    except ValueError:
        return False
