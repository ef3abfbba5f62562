"""Scripts of up to 100 MB: they run and survive a crash; nothing in the daemon grows with them, no
user can misuse uploads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qbatch.cli.pbs.qsub import LONGEST_SENT, uploaded
from qbatch.client import ClientSession
from qbatch.daemon import scripts
from qbatch.daemon.scripts import Scripts
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done, SubmissionRecord
from qbatch.wire.requests import Spec, Submit, Upload
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, needs_root, rss, settled_rss, small_disk

PROCESS = EMULATED.replace('"emulated"', '"process"')


def long_script(size: int, last: str) -> str:
    line = ": " + "x" * 997 + "\n"
    return "#!/bin/sh\n#PBS -N long\n" + line * (size // len(line)) + last


def qsub(daemon: Daemon, *arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from qbatch.cli.pbs.start import qsub; qsub()", *arguments]
    return subprocess.run(
        command,
        env=daemon.environment,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_script_of_a_hundred_megabytes_runs_and_the_daemon_does_not_grow(tmp_path: Path) -> None:
    # The last line ends it: a shell reads scripts as it goes, and takes seconds for so many lines.
    text = "#!/bin/sh\n#PBS -N long\nwc -c < $0\nexit 7\n"
    text += "#" * (scripts.LONGEST - len(text) - 1) + "\n"
    (tmp_path / "big.sh").write_text(text)
    (tmp_path / "d").mkdir()
    with Daemon(tmp_path / "d", config=PROCESS).start() as daemon:
        assert daemon.process is not None
        small = qsub(daemon, "-W", "block=true", "-z", "--", "true", directory=tmp_path)
        assert small.returncode == 0, small.stderr
        before = settled_rss(daemon)
        done = qsub(daemon, "-W", "block=true", "big.sh", directory=tmp_path)
        assert (done.returncode, done.stderr) == (7, "")
        assert (tmp_path / "long.o2").read_text().strip() == str(scripts.LONGEST)
        assert rss(daemon.process.pid) - before < 40 << 20
        assert (daemon.state / "qbatch.db").stat().st_size < 10 << 20
        (tmp_path / "over.sh").write_text(text + "#\n")
        over = qsub(daemon, "over.sh", directory=tmp_path)
        assert (over.returncode, over.stdout) == (1, "")
        assert "the script is too long: at most 104857600 bytes" in over.stderr


def test_a_long_script_that_waits_is_there_after_a_crash(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "job.sh").write_text(long_script(LONGEST_SENT + 5000, "echo ran\n"))
    with Daemon(tmp_path / "d", config=PROCESS).start() as daemon:
        job = qsub(daemon, "-h", "job.sh", directory=tmp_path).stdout.strip()
        assert job == "1.qbatch"
        daemon.kill()
        daemon.start()
        release = [sys.executable, "-c", "from qbatch.cli.pbs.start import qrls; qrls()", job]
        assert (
            subprocess.run(release, env=daemon.environment, check=False, timeout=60).returncode == 0
        )
        until = time.monotonic() + 60
        while not (tmp_path / "long.o1").exists() or (tmp_path / "long.o1").read_text() != "ran\n":
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_user_that_names_a_script_must_have_sent_it(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with (
        Daemon(tmp_path / "d", config=EMULATED).start() as daemon,
        ClientSession(daemon.socket) as session,
    ):
        digest = hashlib.sha256(b"x").hexdigest()
        for wrong, why in (
            (digest, "upload it first"),
            ("../" * 20, "is no SHA-256"),
            ("A" * 64, "is no SHA-256"),
        ):
            with pytest.raises(Refusal, match=why):
                session.ask(
                    Submit(spec=Spec(script="true\n", script_digest=wrong)), SubmissionRecord
                )
        for piece, why in (
            (Upload(upload="../../etc", offset=0, data=b"x"), "is no name of an upload"),
            (Upload(upload="ab" * 6, offset=5, data=b"x"), "0 bytes have come"),
            (Upload(upload="ab" * 6, offset=1 << 40, data=b"x"), "too long"),
            (Upload(upload="ab" * 6, offset=-1, data=b"x"), "too long"),
            (
                Upload(upload="cd" * 6, offset=0, data=b"x", digest="00" * 32),
                "not that of the bytes",
            ),
            (
                Upload(upload="cd" * 6, offset=0, data=b"x", digest="nonsense"),
                "not that of the bytes",
            ),
        ):
            with pytest.raises(Refusal, match=why):
                session.ask(piece, Done)
        assert (
            session.ask(Upload(upload="ef" * 6, offset=0, data=b"x", digest=digest), Done).text
            == digest
        )
        assert (
            session.ask(Submit(spec=Spec(script="x", script_digest=digest)), SubmissionRecord).job
            == "1.qbatch"
        )
        assert digest in os.listdir(daemon.state / "scripts")
        short = Spec(script="true\n")
        assert uploaded(session, short) is short


def send(place: Scripts, uid: int, upload: str, data: bytes) -> str:
    """Send a script in one piece, and return its digest."""
    digest = hashlib.sha256(data).hexdigest()
    place.append(uid, upload, 0, data)
    place.finish(uid, upload, digest)()
    return digest


def names(place: Scripts) -> set[str]:
    return set(os.listdir(place.directory))


def test_what_no_job_names_goes(tmp_path: Path) -> None:
    named: set[str] = set()
    place = Scripts(tmp_path / "scripts", lambda: named)
    digests = [send(place, 7, "ab" * 6, bytes([number]) * 100) for number in range(3)]
    named.add(digests[0])
    for digest in digests[:2]:
        for path in (place.path_of(digest), place.directory / f"7-{digest}.owner"):
            os.utime(path, (0, 0))
    place.append(7, "cd" * 6, 0, b"begun")
    owners = {f"7-{digest}.owner" for digest in (digests[0], digests[2])}
    assert names(place) >= {digests[0], digests[2], f"7-{'cd' * 6}.part"} | owners
    assert digests[1] not in names(place)
    place.append(7, "ef" * 6, 0, b"begun")
    assert f"7-{digests[1]}.owner" not in names(place)
    with pytest.raises(Refusal, match="upload it first"):
        place.require(digests[1])


def test_the_space_of_a_user_holds_for_all_pieces_and_for_that_user_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripts, "MOST_BYTES", 1000)
    place = Scripts(tmp_path / "scripts", set)
    uploads = [f"{number:012x}" for number in range(5)]
    for upload in uploads[:4]:  # each begins while there is space
        place.append(7, upload, 0, b"x" * 100)
    for upload in uploads[:3]:
        place.append(7, upload, 100, b"x" * 200)
    for upload, offset in ((uploads[3], 100), (uploads[4], 0)):
        with pytest.raises(
            Refusal, match="you would have 1001 bytes of long scripts here, and 1000 are allowed"
        ) as error:
            place.append(7, upload, offset, b"x")
        assert error.value.code == "busy"
    place.append(8, uploads[4], 0, b"x" * 1000)
    # It counts what is whole too, also after a restart, and what was sent twice or refused no more
    # than once.
    place.finish(7, uploads[0], hashlib.sha256(b"x" * 300).hexdigest())()
    again = Scripts(tmp_path / "scripts", set)
    with pytest.raises(Refusal, match="1001 bytes"):
        again.append(7, uploads[3], 100, b"x")
    with pytest.raises(Refusal, match="not that of the bytes"):
        again.finish(7, uploads[1], "0" * 64)()
    again.append(7, uploads[3], 100, b"x" * 300)


@pytest.mark.parametrize(
    ("limit", "what"),
    [("MOST_UPLOADS", "uploads that are not whole"), ("MOST_SCRIPTS", "long scripts")],
)
def test_the_number_of_scripts_of_a_user_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, what: str
) -> None:
    monkeypatch.setattr(scripts, limit, 3)
    place = Scripts(tmp_path / "scripts", set)
    for number in range(3):
        place.append(7, f"{number:012x}", 0, b"")
    with pytest.raises(Refusal, match=f"you would have 4 {what} here, and 3 are allowed"):
        place.append(7, "f" * 12, 0, b"")
    place.append(8, "f" * 12, 0, b"")
    place.append(7, "0" * 12, 0, b"anew")
    send(place, 8, "e" * 12, b"whole")


def test_what_is_checked_cannot_be_changed_any_more(tmp_path: Path) -> None:
    place = Scripts(tmp_path / "scripts", set)
    upload, digest = "ab" * 6, hashlib.sha256(b"true").hexdigest()
    place.append(7, upload, 0, b"true")
    keep = place.finish(7, upload, digest)
    with pytest.raises(Refusal, match="0 bytes have come"):
        place.append(7, upload, 4, b"; false")
    place.append(7, upload, 0, b"false")
    with pytest.raises(Refusal, match="is being checked"):
        place.finish(7, upload, digest)
    keep()
    assert place.path_of(digest).read_bytes() == b"true"


def send_pieces(session: ClientSession, count: int) -> None:
    for number in range(count):
        session.ask(Upload(upload="ab" * 6, offset=number * 500_000, data=b"x" * 500_000), Done)


@needs_root
def test_a_full_disk_refuses_uploads_by_name_and_keeps_nothing_of_them(tmp_path: Path) -> None:
    with (
        small_disk("8m") as disk,
        Daemon(tmp_path, "--state", str(disk / "state"), config=EMULATED).start() as daemon,
    ):
        directory = disk / "state" / "scripts"
        with daemon.session() as session:
            for _ in range(3):  # nothing is left of those before
                with pytest.raises(Refusal) as error:
                    send_pieces(session, 20)
                assert error.value.code == "storage-full"
                assert str(error.value).startswith(f"the disk of {directory} is full")
                assert os.listdir(directory) == []
            assert (
                session.ask(Submit(spec=Spec(script="sleep 1\n")), SubmissionRecord).job
                == "1.qbatch"
            )
