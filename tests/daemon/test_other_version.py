"""A directory of another version is refused by name, with a way out that works, and is left as it
was.

``store-of-version-1.tar.xz`` holds what the version at commit 8d271a3 wrote: ``stopped``, a
directory after ``qbatch down``; ``killed``, one after ``kill -9``, of which the database is still
in its log; ``backup``, made with ``qbatch backup``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from qbatch.daemon import store
from qbatch.daemon.store import StorageError, Store
from tests.daemon.harness import Daemon
from tests.harness import command

REFUSED = (
    "was written by another version of qbatch (version 1 of the store; this one reads "
    f"{store.VERSION}), and is left as it is; "
)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a folder with what the other version wrote."""
    with tarfile.open(Path(__file__).with_name("store-of-version-1.tar.xz")) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["stopped", "killed"])
def test_a_directory_of_another_version_is_refused_by_name_and_left_as_it_was(
    name: str, written: Path
) -> None:
    place = written / "daemon"
    place.mkdir()
    shutil.copytree(written / name, place / "state")
    before = tree(place / "state")
    daemon = Daemon(place).start(wait=False)
    assert daemon.process is not None
    assert daemon.process.wait(60) == 74
    (line,) = daemon.log().splitlines()
    assert line.startswith(f"qbatch: {place}/state/qbatch.db {REFUSED}")
    assert f"qbatch import pbs {place}/state/accounting -o LOG" in line
    assert tree(place / "state") == before


def test_what_ran_there_can_be_imported(written: Path) -> None:
    command(
        "import", "pbs", str(written / "stopped" / "accounting"), "-o", str(written / "log.swf")
    )
    (job,) = [
        line for line in (written / "log.swf").read_text().splitlines() if not line.startswith(";")
    ]
    assert job.split()[:5] == ["1", "0", "0", "60", "8"]


def test_a_backup_of_another_version_is_refused(written: Path) -> None:
    done = command("restore", str(written / "backup"), "--state", str(written / "new"), code=74)
    assert f"{written / 'backup'} {REFUSED}restore it with the version that wrote it" in done.stderr
    assert not (written / "new").exists()


def test_doctor_reports_it(written: Path) -> None:
    (written / "stopped").chmod(0o700)
    done = command("doctor", "--state", str(written / "stopped"), code=1)
    assert f"wrong   store: {written}/stopped/qbatch.db {REFUSED}" in done.stdout


async def _opened(directory: Path) -> None:
    place = Store(directory)
    place.claim()
    try:
        await place.open()
        await place.commit([b"x"], [])
        shutil.copytree(directory, directory.with_name("killed"))
    finally:
        await place.close()
        os.close(place._lock)


def test_a_directory_of_a_later_version_is_refused_too_when_its_daemon_was_killed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    this = store.VERSION
    monkeypatch.setattr(store, "VERSION", this + 1)
    asyncio.run(_opened(tmp_path / "state"))
    monkeypatch.undo()
    before = tree(tmp_path / "killed")
    with pytest.raises(
        StorageError, match=f"version {this + 1} of the store; this one reads {this}"
    ):
        asyncio.run(_opened(tmp_path / "killed"))
    assert {
        name: data for name, data in tree(tmp_path / "killed").items() if not name.endswith("lock")
    } == {name: data for name, data in before.items() if not name.endswith("lock")}


def test_another_database_is_none_of_qbatch(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "qbatch.db") as database:
        database.execute("CREATE TABLE other (text TEXT)")
    with pytest.raises(StorageError, match="is not a qbatch database"):
        asyncio.run(_opened(tmp_path))
