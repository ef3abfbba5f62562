"""Scripts of up to 100 MB: they run, they survive a crash, nothing in the daemon grows with them, nobody can misuse their way."""

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
from tests.daemon.hostile.tools import EMULATED, rss, settled_rss

PROCESS = EMULATED.replace('"emulated"', '"process"')


def long_script(size: int, last: str) -> str:
    line = ": " + "x" * 997 + "\n"
    return "#!/bin/sh\n#PBS -N long\n" + line * (size // len(line)) + last


def qsub(daemon: Daemon, *arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from qbatch.cli.pbs.qsub import main; main()", *arguments]
    return subprocess.run(
        command, env=daemon.environment, cwd=directory, capture_output=True, text=True, timeout=120, check=False
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
        release = [sys.executable, "-c", "from qbatch.cli.pbs.qrls import main; main()", job]
        assert subprocess.run(release, env=daemon.environment, check=False, timeout=60).returncode == 0
        until = time.monotonic() + 60
        while not (tmp_path / "long.o1").exists() or (tmp_path / "long.o1").read_text() != "ran\n":
            assert time.monotonic() < until
            time.sleep(0.05)


def test_who_names_a_script_must_have_sent_it(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with Daemon(tmp_path / "d", config=EMULATED).start() as daemon, ClientSession(daemon.socket) as session:
        digest = hashlib.sha256(b"x").hexdigest()
        for wrong, why in ((digest, "upload it first"), ("../" * 20, "is no SHA-256"), ("A" * 64, "is no SHA-256")):
            with pytest.raises(Refusal, match=why):
                session.ask(Submit(spec=Spec(script="true\n", script_digest=wrong)), SubmissionRecord)
        for piece, why in (
            (Upload(upload="../../etc", offset=0, data=b"x"), "is no name of an upload"),
            (Upload(upload="ab" * 6, offset=5, data=b"x"), "0 bytes have come"),
            (Upload(upload="ab" * 6, offset=1 << 40, data=b"x"), "too long"),
            (Upload(upload="ab" * 6, offset=-1, data=b"x"), "too long"),
            (Upload(upload="cd" * 6, offset=0, data=b"x", digest="00" * 32), "not that of the bytes"),
            (Upload(upload="cd" * 6, offset=0, data=b"x", digest="nonsense"), "not that of the bytes"),
        ):
            with pytest.raises(Refusal, match=why):
                session.ask(piece, Done)
        assert session.ask(Upload(upload="ef" * 6, offset=0, data=b"x", digest=digest), Done).text == digest
        assert session.ask(Submit(spec=Spec(script="x", script_digest=digest)), SubmissionRecord).job == "1.qbatch"
        assert sorted(os.listdir(daemon.state / "scripts"))[0] == digest
        short = Spec(script="true\n")
        assert uploaded(session, short) is short


def test_what_no_job_names_goes_and_too_much_of_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named: set[str] = set()
    place = Scripts(tmp_path / "scripts", lambda: named)
    digests = []
    for number in range(3):
        data = bytes([number]) * 100
        digests.append(hashlib.sha256(data).hexdigest())
        place.append(7, "ab" * 6, 0, data)
        place.finish(7, "ab" * 6, digests[-1])
    named.add(digests[0])
    for digest in digests[:2]:
        os.utime(place.path_of(digest), (0, 0))
    place.append(7, "cd" * 6, 0, b"begun")
    assert set(os.listdir(place.directory)) == {digests[0], digests[2], f"7-{'cd' * 6}.part"}
    monkeypatch.setattr(scripts, "MOST_UNCLAIMED", 99)
    with pytest.raises(Refusal, match="no job names"):
        place.append(7, "ef" * 6, 0, b"x")
    with pytest.raises(Refusal, match="upload it first"):
        place.require(digests[1])
