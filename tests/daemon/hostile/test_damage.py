"""A damaged store: the start reports it with the way out; never an empty server, never less than
was acknowledged."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qbatch.wire.errors import Refusal
from qbatch.wire.records import JobRecord
from tests.daemon.harness import Daemon
from tests.daemon.hostile.tools import EMULATED, all_jobs, check
from tests.harness import size

Jobs = dict[str, JobRecord]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Jobs]]:
    """A store with a snapshot, finished jobs, a journal after the snapshot, and all of it still in
    the WAL; its jobs."""
    place = tmp_path_factory.mktemp("model")
    daemon = Daemon(place, "--time", "virtual", config=EMULATED).start()
    for number in range(20):
        daemon.submit(f"sleep {number}\nexit {number % 3}\n", name=f"done{number}")
    daemon.submit("sleep 5\n", name="held", hold="u")
    daemon.kill(signal.SIGTERM)
    daemon.start()
    for number in range(30):
        daemon.submit(f"sleep {number}\n", name=f"late{number}", hold="u" if number % 2 else "")
    daemon.submit("sleep 3\n", name="array", array="1-5", hold="u")
    jobs = all_jobs(daemon, subjobs=True)
    daemon.kill()
    return place, jobs


def copy_of(model: tuple[Path, Jobs], place: Path) -> Daemon:
    place.mkdir(mode=0o700, exist_ok=True)
    shutil.copytree(
        model[0] / "state", place / "state", ignore=shutil.ignore_patterns("run", "reserve")
    )
    return Daemon(place, "--time", "virtual", config=EMULATED)


def start_of(daemon: Daemon) -> tuple[int | None, str]:
    """Start it; return its exit code and what it said, or (None, "") where it serves."""
    daemon.start(wait=False)
    assert daemon.process is not None
    try:
        daemon.wait_until_up()
    except AssertionError:
        code = daemon.process.wait(60)
        daemon.process = None
        return code, daemon.log()
    return None, ""


def snapshot_of(state: Path) -> Path:
    return next(path for path in state.glob("snapshot-*"))


def write_at(path: Path, place: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(data)


def cut(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "zeroed header": lambda state: write_at(state / "qbatch.db", 0, bytes(100)),
    "zeroed first page": lambda state: write_at(state / "qbatch.db", 0, bytes(4096)),
    "database cut": lambda state: cut(state / "qbatch.db", 0.5),
    "database emptied": lambda state: cut(state / "qbatch.db", 0),
    "database missing": lambda state: (state / "qbatch.db").unlink(),
    "database and wal missing": lambda state: [
        (state / name).unlink() for name in ("qbatch.db", "qbatch.db-wal")
    ],
    "wal missing": lambda state: (state / "qbatch.db-wal").unlink(),
    "wal emptied": lambda state: cut(state / "qbatch.db-wal", 0),
    "wal cut": lambda state: cut(state / "qbatch.db-wal", 0.7),
    "garbage in the wal": lambda state: write_at(state / "qbatch.db-wal", 5000, os.urandom(4096)),
    "wal is garbage": lambda state: (state / "qbatch.db-wal").write_bytes(os.urandom(50_000)),
    "snapshot missing": lambda state: snapshot_of(state).unlink(),
    "snapshot cut": lambda state: cut(snapshot_of(state), 0.5),
    "snapshot emptied": lambda state: cut(snapshot_of(state), 0),
    "snapshot flipped": lambda state: write_at(snapshot_of(state), 40, b"\xff\x00\xff"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_reported_with_the_way_out(
    tmp_path: Path, model: tuple[Path, Jobs], what: str
) -> None:
    daemon = copy_of(model, tmp_path / "d")
    # As long as the WAL holds the first page, the one in the database is not read.
    if what.startswith("zeroed"):
        daemon.start().kill(signal.SIGTERM)
    DAMAGE[what](daemon.state)
    code, said = start_of(daemon)
    last = said.strip().splitlines()[-1] if said.strip() else ""
    assert code == 74, (code, said[-2000:], daemon.kill() if code is None else "")
    assert "Traceback" not in said, said
    assert f"qbatch restore FILE --state {daemon.state}" in last, last


@pytest.mark.parametrize("name", ["qbatch.db", "qbatch.db-wal", "snapshot"])
def test_flipped_bytes_are_noticed_or_change_nothing(
    tmp_path: Path, model: tuple[Path, Jobs], name: str
) -> None:
    seeds = size(4, 70)
    served = 0
    for seed in range(seeds):
        chance = random.Random(f"{name} {seed}")
        place = tmp_path / str(seed)
        daemon = copy_of(model, place)
        path = snapshot_of(daemon.state) if name == "snapshot" else daemon.state / name
        for _ in range(3):
            where = chance.randrange(path.stat().st_size)
            with open(path, "r+b") as file:
                file.seek(where)
                byte = file.read(1)[0]
                file.seek(where)
                file.write(bytes([byte ^ 1 << chance.randrange(8)]))
        code, said = start_of(daemon)
        if code is None:
            served += 1
            try:
                found = all_jobs(daemon, subjobs=True)
            except Refusal as error:  # reported when it is read
                if "damaged" not in str(error):
                    raise
            else:
                changed = {
                    key: (job, found.get(key))
                    for key, job in model[1].items()
                    if not is_same(job, found.get(key))
                }
                assert not changed, (seed, changed)
            daemon.kill()
        else:
            assert code in (3, 74), (seed, code, said[-1500:])
            assert "Traceback" not in said, (seed, said[-3000:])
        shutil.rmtree(place)
    print(f"{name}: {seeds} seeds, {served} served unharmed")


def is_same(job: JobRecord, other: JobRecord | None) -> bool:
    """Whether a job is as it was; time goes on, so that one that could run may have gone
    further."""
    if other is None:
        return False
    return (job.name, job.submitted, job.hold, job.resources) == (
        other.name,
        other.submitted,
        other.hold,
        other.resources,
    ) and (
        job.state not in "FX"
        or (job.state, job.exit_status, job.ended) == (other.state, other.exit_status, other.ended)
    )


def test_a_backup_brings_everything_back(tmp_path: Path, model: tuple[Path, Jobs]) -> None:
    daemon = copy_of(model, tmp_path / "d").start()
    old_mask = os.umask(0)
    try:
        daemon.run("qbatch", "backup", str(tmp_path / "copy"))
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600
    before = all_jobs(daemon, subjobs=True)
    daemon.submit("true\n", name="too-late")
    daemon.kill(signal.SIGTERM)
    DAMAGE["zeroed header"](daemon.state)
    assert start_of(daemon)[0] == 74
    command = [
        sys.executable,
        "-m",
        "qbatch",
        "restore",
        str(tmp_path / "copy"),
        "--state",
        str(daemon.state),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=daemon.environment, check=True
    )
    assert "before-restore-" in done.stderr + done.stdout
    daemon.start()
    assert all_jobs(daemon, subjobs=True) == before
    assert "integrity ok" in check(daemon)
    refused = subprocess.run(
        command, capture_output=True, text=True, env=daemon.environment, check=False
    )
    assert refused.returncode == 75
    daemon.kill(signal.SIGTERM)
    for kept in daemon.state.rglob("*"):
        assert not stat.S_IMODE(kept.lstat().st_mode) & 0o077, kept
    cut(tmp_path / "copy", 0.6)
    refused = subprocess.run(
        command, capture_output=True, text=True, env=daemon.environment, check=False
    )
    assert refused.returncode in (3, 74)
    assert "Traceback" not in refused.stderr
    daemon.start()
    assert all_jobs(daemon, subjobs=True) == before
    daemon.kill(signal.SIGTERM)
