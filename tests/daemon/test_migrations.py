"""A store of an older release opens, and a copy of it is kept; one of a newer release is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from qbatch.daemon import migrations, store
from qbatch.daemon.store import StorageError, Store


async def _open(directory: Path) -> None:
    place = Store(directory)
    place.claim()
    try:
        await place.open()
        await place.commit([b"x"], [])
    finally:
        await place.close()
        place.release()


def _version(path: Path) -> int:
    with sqlite3.connect(path) as database:
        found: int = database.execute("PRAGMA user_version").fetchone()[0]
    return found


def test_an_older_schema_is_led_to_the_present_one_and_a_copy_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_open(tmp_path))
    monkeypatch.setattr(store, "VERSION", 3)
    monkeypatch.setattr(
        migrations, "STEPS",
        {1: ("ALTER TABLE history ADD COLUMN shell TEXT",), 2: ("CREATE TABLE notes (text TEXT) STRICT",)},
    )  # fmt: skip
    asyncio.run(_open(tmp_path))
    assert _version(tmp_path / "qbatch.db") == 3
    copy = tmp_path / "qbatch.db.schema-1"
    assert _version(copy) == 1
    with sqlite3.connect(copy) as database:
        assert database.execute("SELECT count(*) FROM journal").fetchone() == (1,)
    with sqlite3.connect(tmp_path / "qbatch.db") as database:
        assert database.execute("SELECT count(*) FROM journal").fetchone() == (2,)
        assert database.execute("SELECT count(*) FROM notes").fetchone() == (0,)


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_open(tmp_path))
    monkeypatch.setattr(store, "VERSION", 2)
    monkeypatch.setattr(migrations, "STEPS", {1: ("CREATE TABLE notes (text TEXT)", "NO SUCH STATEMENT")})
    with pytest.raises(StorageError, match="syntax error"):
        asyncio.run(_open(tmp_path))
    assert _version(tmp_path / "qbatch.db") == 1


def test_a_newer_schema_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "VERSION", 2)
    asyncio.run(_open(tmp_path))
    monkeypatch.setattr(store, "VERSION", 1)
    with pytest.raises(StorageError, match="made by a newer qbatch"):
        asyncio.run(_open(tmp_path))
