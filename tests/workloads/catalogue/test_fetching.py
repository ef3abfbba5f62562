"""Fetching a log: what comes is checked before it has its name, and whatever goes wrong leaves
nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from qbatch.model.errors import InputError, OutputError, UsageError
from qbatch.workloads.catalogue import CLEANED, Cache, Catalogue, Entry, Version, fetch
from tests.workloads.catalogue import archive_server
from tests.workloads.catalogue.archive_server import LOG, Archive, archive

KNOWN = Version(kind=CLEANED, file="X-1999-1.swf.gz", sha256=hashlib.sha256(LOG).hexdigest())
UNKNOWN = Version(kind=CLEANED, file="Y-1999-1.swf.gz")


@pytest.fixture
def server() -> Iterator[Archive]:
    with archive() as found:
        yield found


class Fetched:
    """A cache, and what was printed to the user."""

    def __init__(self, folder: Path, address: str) -> None:
        self.cache = Cache(folder / "cache")
        self.address = address
        self.said: list[str] = []
        self.moves: list[tuple[int, int]] = []

    def get(self, version: Version, mirror: str | None = None, timeout_s: float = 5) -> Path:
        entry = Entry(name="X", folder="l_x", source="", version=(version,))
        known = Catalogue(schema=1, archive=self.address, acknowledge="", citation="", log=(entry,))
        return fetch(
            known,
            entry,
            version,
            self.cache,
            mirror=mirror,
            timeout_s=timeout_s,
            say=self.said.append,
            progress=lambda total, more: self.moves.append((total, more)),
        )

    @property
    def files(self) -> list[str]:
        """The names of all that is in the cache, but for the lock."""
        return sorted(path.name for path in self.cache.folder.iterdir() if path.name != ".lock")


@pytest.fixture
def fetched(tmp_path: Path, server: Archive) -> Fetched:
    return Fetched(tmp_path, server.address)


def test_a_log_is_fetched_once_and_needs_no_network_then(fetched: Fetched, server: Archive) -> None:
    path = fetched.get(KNOWN)
    assert path == fetched.cache.folder / "X-1999-1.swf.gz"
    assert path.read_bytes() == LOG
    assert server.asked == ["/workload/l_x/X-1999-1.swf.gz"]
    assert sum(more for _, more in fetched.moves) == len(LOG)
    assert {total for total, _ in fetched.moves} == {len(LOG)}
    server.answer = archive_server.absent
    assert fetched.get(KNOWN) == path
    assert fetched.get(KNOWN, mirror="http://127.0.0.1:9/nobody") == path
    assert (len(server.asked), fetched.files, fetched.said) == (1, ["X-1999-1.swf.gz"], [])


def test_an_unknown_checksum_is_pinned_on_first_use_and_said(
    fetched: Fetched, server: Archive
) -> None:
    path = fetched.get(UNKNOWN)
    digest = hashlib.sha256(LOG).hexdigest()
    assert fetched.said == [
        (
            "note: the catalogue has no checksum of Y-1999-1.swf.gz; pinned on first use: sha256 "
            f"{digest}"
        )
    ]
    assert json.loads((path.parent / "checksums.json").read_text()) == {"Y-1999-1.swf.gz": digest}
    server.body = gzip.compress(b"another log")
    assert fetched.get(UNKNOWN).read_bytes() == LOG
    path.unlink()
    with pytest.raises(
        InputError,
        match=f"not the one pinned when it was first fetched, {digest}; nothing was kept",
    ):
        fetched.get(UNKNOWN)
    assert fetched.files == ["checksums.json"]


def test_a_wrong_checksum_is_refused_with_both_and_nothing_is_kept(
    fetched: Fetched, server: Archive
) -> None:
    server.body = gzip.compress(b"another log", mtime=0)
    wrong = hashlib.sha256(server.body).hexdigest()
    with pytest.raises(
        InputError,
        match=f"has the sha256 {wrong}, not the catalogue's, {KNOWN.sha256}; nothing was kept",
    ):
        fetched.get(KNOWN)
    assert fetched.files == []
    server.body = LOG
    assert fetched.get(KNOWN).read_bytes() == LOG


@pytest.mark.parametrize("version", [KNOWN, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            "truncated",
            (
                r"(the connection broke half-way|ended after \d+,?\d* of .* bytes).*; nothing was "
                r"kept; fetch it again"
            ),
        ),
        (
            "truncated_unannounced",
            r"(not the catalogue's|is not a whole gzip file).*; nothing was kept",
        ),
        ("sorry", r"(not the catalogue's|is not a whole gzip file).*; nothing was kept"),
        ("absent", r"the server answers 404 Not Found; try --mirror URL"),
        ("stalled", r"no answer in time; nothing was kept"),
    ],
)
def test_what_comes_wrong_is_said_and_leaves_nothing(
    version: Version, answer: str, said: str, fetched: Fetched, server: Archive
) -> None:
    server.answer = getattr(archive_server, answer)
    with pytest.raises(InputError, match=said) as caught:
        fetched.get(version, timeout_s=0.5)
    assert str(caught.value).startswith(f"{server.address}/l_x/")
    assert "\n" not in str(caught.value)
    assert fetched.files == []
    server.answer = archive_server.whole
    assert fetched.get(version).read_bytes() == LOG


def test_a_slow_server_is_waited_for_as_long_as_bytes_come(
    fetched: Fetched, server: Archive
) -> None:
    server.answer = archive_server.slow
    assert fetched.get(KNOWN, timeout_s=0.7).read_bytes() == LOG


def test_a_server_that_calls_the_packing_an_encoding_does_not_unpack_it(
    fetched: Fetched, server: Archive
) -> None:
    server.answer = archive_server.encoded
    assert fetched.get(KNOWN).read_bytes() == LOG


def test_no_server_there_and_no_such_host_are_reported_in_a_line(fetched: Fetched) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(
        InputError,
        match=r"cannot be reached \(Connection refused\); is there a network\? else try --mirror",
    ):
        fetched.get(KNOWN, mirror=f"http://127.0.0.1:{port}")
    with pytest.raises(
        InputError,
        match=r"^http://no\.such\.host\.invalid/l_x/X-1999-1\.swf\.gz: cannot be reached",
    ):
        fetched.get(KNOWN, mirror="http://no.such.host.invalid/")
    assert fetched.files == []


@pytest.mark.parametrize("mirror", ["/work/traces", "file:///work", "ftp://x", "archive"])
def test_a_mirror_that_is_no_address_is_refused(mirror: str, fetched: Fetched) -> None:
    with pytest.raises(UsageError, match="write an address that begins with http:// or https://"):
        fetched.get(KNOWN, mirror=mirror)


def test_a_damaged_copy_is_fetched_again_and_kept_where_it_cannot_be(
    fetched: Fetched, server: Archive
) -> None:
    path = fetched.get(KNOWN)
    path.write_bytes(LOG[:-5])
    server.answer = archive_server.absent
    with pytest.raises(InputError, match="404"):
        fetched.get(KNOWN)
    assert path.read_bytes() == LOG[:-5]
    server.answer = archive_server.whole
    assert fetched.get(KNOWN).read_bytes() == LOG
    assert fetched.said == [f"note: {path} is damaged; it is fetched again"] * 2


def test_a_copy_put_there_by_hand_is_taken_and_pinned_if_it_is_whole(
    fetched: Fetched, server: Archive
) -> None:
    path = fetched.cache.path(UNKNOWN)
    path.parent.mkdir()
    path.write_bytes(LOG)
    assert fetched.get(UNKNOWN) == path
    assert server.asked == []
    assert "pinned on first use" in fetched.said[0]
    (path.parent / "checksums.json").unlink()
    path.write_bytes(LOG[:-5])
    assert fetched.get(UNKNOWN).read_bytes() == LOG
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "damaged", ["", "{", "[]", '{"Y-1999-1.swf.gz": 5}', '{"Y-1999-1.swf.gz": "e3b0"}']
)
def test_damaged_checksums_are_refused_and_no_altered_log_is_taken(
    damaged: str, fetched: Fetched, server: Archive
) -> None:
    path, known = fetched.get(UNKNOWN), fetched.get(KNOWN)
    checksums = path.parent / "checksums.json"
    pinned = checksums.read_text()
    path.write_bytes(altered := gzip.compress(b"; another log\n"))
    checksums.write_text(damaged, encoding="utf-8")
    said = (
        r"checksums.json: is damaged \(.*\); nothing was changed; repair it, or remove it with "
        r"the logs that it pinned"
    )
    with pytest.raises(InputError, match=said) as caught:
        fetched.get(UNKNOWN)
    assert "\n" not in str(caught.value)
    assert (checksums.read_text(), path.read_bytes()) == (damaged, altered)
    assert fetched.get(KNOWN) == known  # the catalogue has its checksum
    checksums.write_text(pinned, encoding="utf-8")
    assert fetched.get(UNKNOWN).read_bytes() == LOG


@pytest.mark.parametrize("text", [None, b"", b"\n \n", b"<html>log in</html>\n", b"1 2 3\n"])
def test_what_holds_no_line_of_a_log_is_neither_kept_nor_pinned(
    text: bytes | None, fetched: Fetched, server: Archive
) -> None:
    # Compressed bytes hold the second in which they were made: names of tests must not.
    server.body = body = b"" if text is None else gzip.compress(text)
    with pytest.raises(
        InputError, match=r"Y-1999-1.swf.gz: contains no log \(.*\); nothing was kept"
    ):
        fetched.get(UNKNOWN)
    assert fetched.files == []
    fetched.cache.path(UNKNOWN).write_bytes(body)  # nor is it taken where it was put by hand
    server.body = LOG
    assert fetched.get(UNKNOWN).read_bytes() == LOG


def test_a_log_without_comments_is_one(fetched: Fetched, server: Archive) -> None:
    server.body = gzip.compress(gzip.decompress(LOG).partition(b"\n")[2])
    assert fetched.get(UNKNOWN).read_bytes() == server.body


@pytest.mark.parametrize("said", ["abc", "-5", "1.5"])
def test_a_length_that_is_no_number_is_as_none(
    said: str, fetched: Fetched, server: Archive
) -> None:
    server.answer = lambda handler, body: archive_server.whole(handler, body, said=said)  # type: ignore[arg-type]
    assert fetched.get(UNKNOWN).read_bytes() == LOG
    assert {total for total, _ in fetched.moves} == {0}


@pytest.mark.parametrize("version", [KNOWN, UNKNOWN], ids=["known", "unknown"])
def test_a_folder_in_the_place_of_the_file_is_named_and_nothing_is_pinned(
    version: Version, fetched: Fetched, server: Archive
) -> None:
    fetched.cache.path(version).mkdir(parents=True)
    with pytest.raises(OutputError, match=rf"cache/{version.file}: is a folder; remove it"):
        fetched.get(version)
    assert (fetched.files, server.asked) == ([version.file], [])


def test_what_a_dead_process_left_half_way_is_gone_after_the_next(fetched: Fetched) -> None:
    partial = fetched.cache.folder / "partial"
    partial.mkdir(parents=True)
    (partial / "tmp123").write_bytes(LOG[:100])
    fetched.get(KNOWN)
    assert fetched.files == ["X-1999-1.swf.gz"]


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path, server: Archive) -> None:
    (tmp_path / "cache").write_text("a file stands there")
    with pytest.raises(
        OutputError, match=r"cache: cannot be written \(.*\); set QBATCH_CACHE to another folder"
    ):
        Fetched(tmp_path, server.address).get(KNOWN)


def test_without_pooch_the_extra_is_named_and_a_cached_copy_needs_none(
    fetched: Fetched, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fetched.get(KNOWN)
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    assert fetched.get(KNOWN) == path
    with pytest.raises(
        UsageError, match=r"fetching a log takes pooch: pip install '\.\[catalogue\]' in the folder"
    ):
        fetched.get(UNKNOWN)
