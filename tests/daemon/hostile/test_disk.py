"""A disk that fails, is full, or is wanted by two: no acknowledgement that is not kept, and a way
on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import SubmissionRecord
from qbatch.wire.requests import Spec, Submit
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import (
    EMULATED,
    REAL,
    Load,
    all_jobs,
    check,
    fill,
    needs_root,
    needs_strace,
    small_disk,
    until,
)
from tests.harness import NIGHTLY, size


def plain(key: str) -> Spec:
    return Spec(script="sleep 600\n", name=f"k{key}", hold="u")


FIRST_START = {
    "mkdir state": "state",
    "openat state/lock": "state",
    "pwrite64 state/qbatch.db": "state/qbatch.db",
    "fdatasync state/qbatch.db-wal": "state/qbatch.db",
    "fsync state": "state",
    "pwrite64 state/committed": "state/committed",
    "mkdir state/accounting": "state/accounting",
    "mkdir state/run": "state/run",
}
"""A call on a file that fails when a daemon starts for the first time, and what the message
names."""


@needs_strace
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("failing", FIRST_START if NIGHTLY else [*FIRST_START][2:8])
def test_a_disk_that_fails_at_the_first_start_is_named(
    tmp_path: Path, failing: str, error: str
) -> None:
    call, _, file = failing.partition(" ")
    daemon = Daemon(tmp_path, config=REAL)
    if file != "state":
        daemon.state.mkdir(mode=0o700)
    injected = (
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:error={error}:when=1+",
        "-P",
        str(tmp_path / file),
    )
    daemon.start(wrap=("strace", "-f", "-qq", "-o", str(tmp_path / "trace"), *injected), wait=False)
    assert daemon.process is not None
    assert daemon.process.wait(60) == 74, daemon.log()[-2000:]
    assert "(INJECTED)" in (tmp_path / "trace").read_text(encoding="utf-8", errors="replace")
    said = daemon.log()
    assert str(tmp_path / FIRST_START[failing]) in said
    assert "Traceback" not in said
    assert "restore a backup" not in said  # of what never was
    daemon.start()  # on a disk that works
    assert "integrity ok" in check(daemon)
    daemon.kill(signal.SIGTERM)


@needs_strace
@pytest.mark.parametrize("number", [3, 11, 25, 40, 90] if NIGHTLY else [11])
@pytest.mark.parametrize("call", ["fdatasync", "pwrite64"])
def test_a_failing_disk_ends_the_daemon_before_it_acknowledges(
    tmp_path: Path, call: str, number: int
) -> None:
    daemon = Daemon(tmp_path, config=EMULATED)
    daemon.start().kill()  # what the first start writes is not what this is about
    trace = tmp_path / "trace"
    # Descriptors of files only: an answer to a client that says so would be an acknowledgement.
    daemon.start(
        wrap=(
            "strace",
            "-f",
            "-qq",
            "-ttt",
            "-o",
            str(trace),
            "-e",
            f"trace={call},sendto",
            "-e",
            f"inject={call}:error=EIO:when={number * (2 if call == 'pwrite64' else 1)}+",
        )
    )
    process = daemon.process
    assert process is not None
    with Load(daemon.socket, plain, clients=4) as load:
        assert process.wait(60) == 74, daemon.log()[-2000:]
    daemon.process = None
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    failed = next(place for place, line in enumerate(lines) if "EIO" in line)
    began = float(lines[failed].split()[1])
    after = [line for line in lines[failed:] if '\\"job\\"' in line]
    assert after == []
    assert float(lines[-1].split()[1]) - began < size(3, 1), lines[-3:]
    assert "Input/output error" in daemon.log() or "disk I/O error" in daemon.log()
    daemon.start()
    kept = {job.name[1:]: name for name, job in all_jobs(daemon).items()}
    assert {key: kept.get(key) for key in load.acknowledged} == load.acknowledged
    assert "integrity ok" in check(daemon)
    assert daemon.kill(signal.SIGTERM) == 0


@needs_root
def test_a_full_disk_refuses_submissions_and_records_the_ends_of_jobs(tmp_path: Path) -> None:
    with small_disk("16m") as disk:
        daemon = Daemon(tmp_path, "--state", str(disk / "state"), config=REAL)
        daemon.state = disk / "state"
        daemon.start()
        go, nowhere = tmp_path / "go", {"output": "/dev/null", "error": "/dev/null"}
        running = [
            daemon.submit(
                f"touch {go}{code}; while [ ! -e {go} ]; do sleep 0.05; done; exit {code}\n",
                **nowhere,
            )
            for code in range(1, 6)
        ]
        until(
            lambda: all((tmp_path / f"go{code}").exists() for code in range(1, 6)),
            "five scripts that run",
        )
        big = "# " + "x" * 60_000 + "\n"
        acknowledged: list[str] = []
        filler = disk / "filler"
        fill(filler)

        def submit_until_refused() -> None:
            with daemon.session() as session:
                for number in range(400):
                    spec = Spec(
                        script=big, name=f"big{number}", hold="u", variables={"N": str(number)}
                    )
                    acknowledged.append(session.ask(Submit(spec=spec), SubmissionRecord).job)

        with pytest.raises(Refusal) as refusal:
            submit_until_refused()
        assert refusal.value.code == "storage-full", refusal.value
        go.touch()
        # Questions are answered, submissions refused by name, and the daemon neither spins nor
        # dies.
        assert set(acknowledged) <= set(all_jobs(daemon))
        with daemon.session() as session, pytest.raises(Refusal) as refusal:
            session.ask(Submit(spec=Spec(script="true\n")), SubmissionRecord)
        assert refusal.value.code == "storage-full"
        assert str(daemon.state) in str(refusal.value)
        assert daemon.process is not None
        began, used = time.monotonic(), sum(os_times(daemon.process.pid))
        until(lambda: time.monotonic() - began > 2.0, "two seconds")
        assert sum(os_times(daemon.process.pid)) - used < 1.6, "it spins"
        filler.unlink()
        for code, name in enumerate(running, 1):
            assert daemon.until(name, "F").exit_status == code
        until(lambda: is_taken(daemon), "a submission that is taken again")
        assert set(acknowledged) <= set(all_jobs(daemon))
        assert "integrity ok" in check(daemon)
        daemon.kill()
        daemon.start()
        found = all_jobs(daemon)
        assert set(acknowledged) <= set(found)
        assert [found[name].exit_status for name in running] == [1, 2, 3, 4, 5]
        assert daemon.kill(signal.SIGTERM) == 0


def os_times(pid: int) -> tuple[float, float]:
    """Return the processor seconds of a process, user and system."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(words[11]) / 100, int(words[12]) / 100


def is_taken(daemon: Daemon) -> bool:
    try:
        daemon.submit("true\n", output="/dev/null", error="/dev/null")
    except Refusal:
        return False
    return True


@needs_root
def test_a_daemon_starts_on_a_full_disk_and_takes_no_submission(tmp_path: Path) -> None:
    with small_disk("4m") as disk:
        daemon = Daemon(tmp_path, config=EMULATED)
        daemon.state = disk / "state"
        daemon.start()
        job = daemon.submit("sleep 600\n", hold="u")
        daemon.kill()
        fill(disk / "filler")
        daemon.start()
        assert job in all_jobs(daemon)
        until(lambda: not is_taken(daemon), "a refusal", 30)
        (disk / "filler").unlink()
        until(lambda: is_taken(daemon), "a submission that is taken again")
        assert daemon.kill(signal.SIGTERM) == 0


def test_a_second_daemon_on_the_directory_ends_with_75_and_does_no_harm(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=EMULATED).start() as daemon:
        job = daemon.submit("sleep 600\n")
        inode = os.stat(daemon.socket).st_ino
        command = daemon.command()
        many = [
            subprocess.Popen(
                [*command, *daemon.arguments],
                stderr=subprocess.PIPE,
                env=daemon.environment,
                cwd=tmp_path,
            )
            for _ in range(size(6, 20))
        ]
        for each in many:
            _, said = each.communicate(timeout=60)
            assert each.returncode == 75
            assert b"another daemon has" in said
            assert b"qbatch down" in said
        assert os.stat(daemon.socket).st_ino == inode
        assert job in all_jobs(daemon)
        began = time.monotonic()
        assert (
            subprocess.run(
                command, capture_output=True, env=daemon.environment, cwd=tmp_path, check=False
            ).returncode
            == 75
        )
        assert time.monotonic() - began < size(5, 1)


def test_a_daemon_of_another_directory_does_not_steal_a_live_socket(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=EMULATED).start() as daemon:
        inode = os.stat(daemon.socket).st_ino
        command = daemon.command(tmp_path / "other")
        done = subprocess.run(
            command,
            capture_output=True,
            env=daemon.environment,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        assert done.returncode == 75, done
        assert b"another daemon listens at" in done.stderr
        assert os.stat(daemon.socket).st_ino == inode
        daemon.submit("sleep 600\n")


SENT = re.compile(r'sendto\(.*?\\"result\\":\{\\"job\\"')


@needs_strace
def test_every_acknowledgement_is_sent_after_the_sync_of_what_it_says(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, config=EMULATED)
    trace = tmp_path / "trace"
    daemon.start(
        wrap=(
            "strace",
            "-f",
            "-qq",
            "-y",
            "-s",
            "200",
            "-o",
            str(trace),
            "-e",
            "trace=pwrite64,fdatasync,sendto",
        )
    )
    with Load(daemon.socket, plain, clients=1) as one:
        until(lambda: len(one.acknowledged) >= 20, "twenty submissions")
    with Load(daemon.socket, lambda key: plain("x" + key), clients=4) as four:
        until(lambda: len(four.acknowledged) >= size(80, 2000), "eighty submissions")
    daemon.run("qbatch", "down")  # strace does not pass signals on
    assert daemon.process is not None
    assert daemon.process.wait(60) == 0
    events = order_of(trace.read_text(encoding="utf-8", errors="replace").splitlines())
    first_part = events[: [place for place, what in enumerate(events) if what == "ack"][15] + 1]
    # One client, one submission at a time: write, sync, acknowledgement, each time.
    pending = False
    for what in first_part:
        if what == "write":
            pending = True
        elif what == "sync":
            pending = False
        else:
            assert not pending, first_part
    assert events.count("ack") >= size(100, 2020) - 10
    # With several clients: an acknowledgement never outruns the sync of the commit that it belongs
    # to: with four of them, each with one submission at a time, a sync is followed by four at most.
    behind = 0
    for what in events:
        behind = 0 if what == "sync" else behind + (what == "ack")
        assert behind <= 4


def order_of(lines: list[str]) -> list[str]:
    """Return what happened in order: writes of the WAL as they begin, syncs as they end,
    acknowledgements as they begin."""
    events = []
    waiting: set[str] = set()
    for line in lines:
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.startswith("pwrite64(") and "-wal>" in call:
            events.append("write")
        elif call.startswith("fdatasync(") and "-wal>" in call:
            if "unfinished" in call:
                waiting.add(thread)
            else:
                events.append("sync")
        elif "fdatasync resumed" in call and thread in waiting:
            waiting.discard(thread)
            events.append("sync")
        elif call.startswith("sendto(") and SENT.search(call):
            events.append("ack")
    return events
