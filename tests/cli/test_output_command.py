"""``qbatch output``: what a job has written, from its spool while it runs and from where it was
delivered."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qbatch.tui.tail import Tail
from tests.daemon.harness import Daemon, emulated

REAL = emulated("n1").replace('"emulated"', '"process"')


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("output"), config=REAL) as daemon:
        yield daemon


def script(*lines: str) -> str:
    return "#!/bin/sh\n" + "\n".join(lines) + "\n"


def said(daemon: Daemon, *arguments: str, holds: Callable[[str], bool]) -> str:
    """Ask for output until it holds."""
    deadline = time.monotonic() + 40
    while True:
        done = daemon.run("qbatch", "output", *arguments, code=None)
        if holds(done.stdout):
            return done.stdout
        assert time.monotonic() < deadline, done
        time.sleep(0.1)


def test_a_job_is_read_while_it_runs_and_after_it(daemon: Daemon) -> None:
    go = daemon.directory / "go1"
    job = daemon.submit(
        script("echo out", "echo err >&2", f"until test -e {go}; do sleep 0.05; done", "echo late")
    )
    assert said(daemon, job, holds=bool) == "out\n"
    assert said(daemon, job, "--stderr", holds=bool) == "err\n"
    assert not list(daemon.directory.glob(f"STDIN.o{job.partition('.')[0]}"))
    go.touch()
    daemon.until(job, "F")
    assert daemon.run("qbatch", "output", job).stdout == "out\nlate\n"
    assert daemon.run("qbatch", "output", job.partition(".")[0], "-e").stdout == "err\n"
    path = daemon.directory / f"STDIN.o{job.partition('.')[0]}"
    path.unlink()
    gone = daemon.run("qbatch", "output", job, code=3)
    assert gone.stderr == f"qbatch: {job}: {path} is not there any more; was it moved or deleted?\n"


def test_output_that_was_to_be_removed_is_said_to_have_been(daemon: Daemon) -> None:
    job = daemon.submit(script("echo out", "echo err >&2"), extra={"remove": "o"})
    daemon.until(job, "F")
    path = daemon.directory / f"STDIN.o{job.partition('.')[0]}"
    gone = daemon.run("qbatch", "output", job, code=3)
    assert gone.stderr == f"qbatch: {job}: {path} was removed when the job had ended well (-R o)\n"
    assert daemon.run("qbatch", "output", job, "--stderr").stdout == "err\n"


@pytest.mark.parametrize("place", ["here", "other disk", "old file", "direct"])
def test_following_ends_with_the_job_and_brings_each_byte_once(daemon: Daemon, place: str) -> None:
    path = (
        Path("/dev/shm" if place == "other disk" else daemon.directory)
        / f"qbatch-{place.replace(' ', '-')}.out"
    )
    if place == "old file":
        path.write_text("stale\n")
    keep = {"keep": "od"} if place == "direct" else {}
    lines = [f"echo {n}; sleep 0.05" for n in range(20)]
    job = daemon.submit(script(*lines), output=str(path), join="oe", **keep)
    done = daemon.run("qbatch", "output", "--follow", job)
    try:
        assert done.stdout == path.read_text() == "".join(f"{n}\n" for n in range(20))
        assert daemon.jobs(job)[job].state == "F"
        joined = daemon.run("qbatch", "output", "--stderr", job)
        assert joined.stdout == done.stdout
        assert "one file (-j oe)" in joined.stderr
    finally:
        path.unlink()


def test_bytes_are_not_changed(daemon: Daemon) -> None:
    job = daemon.submit(script(r"printf '\000\377\033[31m'; head -c 3000000 /dev/zero"))
    daemon.until(job, "F")
    done = subprocess.run(
        ["qbatch", "output", job],
        env=daemon.environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == b"\0\xff\x1b[31m" + bytes(3_000_000)


def test_what_is_not_there_is_said_in_one_line(daemon: Daemon) -> None:
    held = daemon.submit(script("echo late"), hold="u")
    array = daemon.submit(script("echo $PBS_ARRAY_INDEX"), array="1-2")
    nowhere = daemon.submit(script("echo x"), output="/dev/null")
    kept = daemon.submit(script("echo kept"), output="/no/such/place/file")
    first = array.replace("[]", "[1]")
    for job in (first, nowhere, kept):
        daemon.until(job, "FX")
    for arguments, code, text in (
        ((held,), 1, f"{held} has not started, so there is no output (state H; qbatch explain"),
        ((array,), 2, f"{array} is an array: name one of its jobs, such as {first}"),
        ((nowhere,), 3, f"{nowhere} writes this to /dev/null"),
        (("99999",), 6, "Unknown Job Id 99999"),
    ):
        done = daemon.run("qbatch", "output", *arguments, code=code)
        assert done.stdout == ""
        assert text in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert daemon.run("qbatch", "output", first).stdout == "1\n"
    assert daemon.run("qbatch", "output", kept).stdout == "kept\n"
    comment = daemon.jobs(kept)[kept].comment
    assert comment.startswith(
        "not delivered: output file /no/such/place/file: No such file or directory; it is kept as "
    )
    daemon.run("qdel", held)
    assert "never ran, so there is no output" in daemon.run("qbatch", "output", held, code=6).stderr


def test_one_that_begins_anew_is_followed_from_its_new_beginning(daemon: Daemon) -> None:
    again = daemon.directory / "again"
    job = daemon.submit(
        script("echo one $$", f"test -e {again} && exit 0", f"touch {again}", "sleep 60")
    )
    follower = subprocess.Popen(
        ["qbatch", "output", "-f", job], env=daemon.environment, stdout=subprocess.PIPE, text=True
    )
    assert follower.stdout is not None
    first = follower.stdout.readline()
    daemon.run("sh", "-c", f"until test -e {again}; do sleep 0.1; done")
    daemon.run("qrerun", job)
    out, _ = follower.communicate(timeout=60)
    assert first.startswith("one ")
    assert out.startswith("one ")
    assert out != first


def test_emulated_jobs_write_nothing(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=emulated("n1")) as daemon:
        job = daemon.submit("sleep 1\n")
        assert "emulated jobs write no output" in daemon.run("qbatch", "output", job, code=8).stderr


def test_a_tail_reads_on_in_what_was_delivered_and_anew_in_what_was_exchanged(
    tmp_path: Path,
) -> None:
    spool, file = tmp_path / "OU", tmp_path / "file"
    spool.write_text("one\n")
    tail = Tail((str(spool),))
    assert tail.look() == (b"one\n", True, 0)
    assert tail.look() == (b"", False, 0)
    file.write_text("one\ntwo\n")  # a copy, on another disk
    spool.unlink()
    with pytest.raises(FileNotFoundError):
        tail.look()
    tail.follow((str(spool), str(file)), is_same=True)
    assert tail.look() == (b"two\n", False, 0)
    file.write_text("x\n")
    assert tail.look() == (b"x\n", True, 0)
    other = tmp_path / "other"
    other.write_text("longer than before\n")
    other.rename(file)
    assert tail.look() == (b"longer than before\n", True, 0)
    end = Tail((str(file),), most=7)
    assert end.look() == (b"before\n", True, 12)
