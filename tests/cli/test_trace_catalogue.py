"""``qbatch trace catalogue`` and ``trace get``, as a user types them, against an archive on this
machine."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import command
from tests.workloads.catalogue import archive_server
from tests.workloads.catalogue.archive_server import LOG, Archive, archive

FILE = "LCG-2005-1.swf.gz"


@pytest.fixture
def server() -> Iterator[Archive]:
    with archive() as found:
        yield found


class Shell:
    """Where commands are typed: a cache of its own, and a mirror in the environment."""

    def __init__(self, folder: Path, server: Archive) -> None:
        self.folder = folder
        self.cache = folder / "cache" / "traces"
        self.environment = os.environ | {
            "QBATCH_CACHE": str(folder / "cache"),
            "QBATCH_MIRROR": server.address,
        }

    def start(self, *words: str, **streams: object) -> subprocess.Popen[str]:
        given: dict = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
        return subprocess.Popen(
            [sys.executable, "-m", "qbatch", "trace", *words],
            text=True,
            env=self.environment,
            cwd=self.folder,
            **given,
        )

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        done = command("trace", *words, code=code, cwd=self.folder, environment=self.environment)
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.cache.iterdir() if path.name != ".lock")


@pytest.fixture
def shell(tmp_path: Path, server: Archive) -> Shell:
    return Shell(tmp_path, server)


def wait_for(path: Path) -> None:
    """Wait until bytes of a download have arrived below a folder."""
    deadline = time.monotonic() + 60
    while not any(each.stat().st_size for each in path.glob("*") if each.is_file()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_get_prints_the_path_alone_and_works_without_a_network_then(
    shell: Shell, server: Archive
) -> None:
    out, err = shell.run("get", "lcg")
    assert out == f"{shell.cache / FILE}\n"
    assert err.splitlines() == [
        (
            f"note: the catalogue has no checksum of {FILE}; pinned on first use: sha256 "
            f"{hashlib.sha256(LOG).hexdigest()}"
        )
    ]
    assert server.asked == [f"/workload/l_lcg/{FILE}"]
    server.answer = archive_server.absent
    assert shell.run("get", "LCG-2005-1.swf.gz") == (out, "")
    assert shell.run("get", "LCG", "--mirror", "http://127.0.0.1:9") == (out, "")
    assert len(server.asked) == 1
    rows, _ = shell.run("info", out.strip(), "--json")
    assert json.loads(rows)["log"]["rows"] == 4000


def test_get_puts_a_copy_where_it_is_asked_to(shell: Shell) -> None:
    out, _ = shell.run("get", "LCG", "--to", "my/logs")
    assert out == f"my/logs/{FILE}\n"
    assert (shell.folder / out.strip()).read_bytes() == LOG
    (shell.folder / "taken").touch()
    _, err = shell.run("get", "LCG", "--to", "taken", code=4)
    assert err.startswith("qbatch: taken/") or "taken" in err


def test_a_version_is_chosen_by_its_kind_or_by_its_file(shell: Shell, server: Archive) -> None:
    for words in (("osc-clust", "--version", "unfiltered"), ("OSC-Clust-2000-3.swf.gz",)):
        out, _ = shell.run("get", *words)
        assert out == f"{shell.cache / 'OSC-Clust-2000-3.swf.gz'}\n"
    assert shell.run("get", "OSC-Clust")[0] == f"{shell.cache / 'OSC-Clust-2000-3.1-cln.swf.gz'}\n"
    assert server.asked == [
        f"/workload/l_osc/{name}.swf.gz" for name in ("OSC-Clust-2000-3", "OSC-Clust-2000-3.1-cln")
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("KTH-SP2",),
            3,
            (
                "not the catalogue's, "
                "3e152f201fd2e96808a735bced6ea6eb0bb07fdc447689cafb0750d87b264c0b; nothing was"
            ),
        ),
        (
            ("KTH-SP2", "--mirror", "http://127.0.0.1:9"),
            3,
            "cannot be reached (Connection refused)",
        ),
        (("KHT-SP2",), 2, "'KHT-SP2': the catalogue has no such log; did you mean KTH-SP2?"),
        (("KTH-SP2", "--version", "raw"), 2, "--version 'raw': use one of cleaned, unfiltered"),
        (
            ("HPC2N", "--version", "unfiltered"),
            2,
            "HPC2N: the catalogue knows no unfiltered version of it",
        ),
        (
            ("KTH-SP2-1996-2", "--version", "cleaned"),
            2,
            "KTH-SP2-1996-2 is the unfiltered version; leave out --version cleaned",
        ),
        (
            ("LCG", "--mirror", "/some/where"),
            2,
            "write an address that begins with http:// or https://",
        ),
        (("LCG", "--timeout", "0"), 2, "--timeout"),
        ((), 2, "Missing argument"),
    ],
)
def test_what_goes_wrong_is_one_line_with_its_code_and_nothing_on_stdout(
    words: tuple[str, ...], code: int, said: str, shell: Shell
) -> None:
    out, err = shell.run("get", *words, code=code)
    assert out == ""
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not shell.cache.exists() or shell.files == []


def test_a_cache_that_cannot_be_written_has_its_code(shell: Shell) -> None:
    (shell.folder / "cache").touch()
    _, err = shell.run("get", "LCG", code=4)
    assert "set QBATCH_CACHE to another folder" in err


def test_an_interrupted_download_leaves_nothing_and_a_killed_one_nothing_after_the_next(
    shell: Shell, server: Archive
) -> None:
    server.answer, server.body = (
        archive_server.stalled,
        gzip.compress(b"; MaxProcs: 8\n" + os.urandom(300_000)),
    )
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        process = shell.start("get", "LCG")
        wait_for(shell.cache / "partial")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (code, "")
        assert "Traceback" not in err
        assert not (shell.cache / FILE).exists()
        assert (shell.cache / "partial").exists() == (number == signal.SIGKILL)
    server.answer = archive_server.whole
    shell.run("get", "LCG")
    assert (shell.cache / FILE).read_bytes() == server.body
    assert shell.files == [FILE, "checksums.json"]


def test_a_disk_that_is_full_is_named_and_nothing_is_left(shell: Shell, server: Archive) -> None:
    server.body = gzip.compress(b"; MaxProcs: 8\n" + os.urandom(300_000))
    # Bytes that a file may have: a disk with so much free space answers the same.
    limit = (100_000, 100_000)
    process = shell.start(
        "get", "LCG", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (4, "")
    assert err.startswith(
        f"qbatch: {shell.cache}: cannot be written (File too large); set QBATCH_CACHE"
    )
    assert shell.files == []


def test_two_at_once_fetch_it_once(shell: Shell, server: Archive) -> None:
    server.answer = archive_server.slow
    processes = [shell.start("get", "LCG", "-q") for _ in range(3)]
    assert {process.communicate(timeout=120) for process in processes} == {
        (f"{shell.cache / FILE}\n", "")
    }
    assert len(server.asked) == 1
    assert shell.files == [FILE, "checksums.json"]


def test_progress_is_shown_on_a_terminal_only_and_never_on_stdout(
    shell: Shell, server: Archive
) -> None:
    server.answer = archive_server.slow
    ours, theirs = pty.openpty()
    process = shell.start("get", "LCG", stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:
        pass  # the other end of a terminal is closed
    finally:
        os.close(ours)
    assert process.communicate(timeout=60)[0] == f"{shell.cache / FILE}\n"
    assert process.returncode == 0
    assert FILE.encode() in seen
    assert b"\x1b[" in seen


def test_the_catalogue_is_a_table_and_json_and_knows_what_is_cached(shell: Shell) -> None:
    shell.run("get", "LCG", "-q")
    table, _ = shell.run("catalogue")
    rows = {line.split()[0]: line for line in table.splitlines()}
    assert len(rows) == 41
    assert "28,476" in rows["KTH-SP2"]
    assert rows["KTH-SP2"].endswith("known")
    assert rows["LCG"].endswith("yes")
    document = json.loads(shell.run("catalogue", "--json")[0])
    assert document["schema"] == "qbatch.trace-catalogue/1"
    logs = {each["name"]: each for each in document["logs"]}
    assert len(logs) == 40
    kth = logs["KTH-SP2"]["versions"][0]
    assert (
        kth["url"]
        == "https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"
    )
    assert (kth["jobs"], kth["bytes"], kth["cached"]) == (28_476, 411_455, None)
    lcg = logs["LCG"]
    assert (lcg["processors"], lcg["licence"], lcg["system"]) == (None, None, None)
    (version,) = lcg["versions"]
    assert version["cached"] == str(shell.cache / FILE)
    assert (version["sha256"], version["pinned_sha256"]) == (None, hashlib.sha256(LOG).hexdigest())
    assert {tuple(each) for each in document["logs"]} == {tuple(lcg)}
    one, _ = shell.run("catalogue", "sdsc-sp2")
    assert "licence        educational, research and non-profit use" in one
    assert [
        each["name"] for each in json.loads(shell.run("catalogue", "das2-fs2", "--json")[0])["logs"]
    ] == ["DAS2-fs2"]
