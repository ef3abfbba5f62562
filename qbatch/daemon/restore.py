"""Backups: one file, the database with the snapshot inside it; and how a backup is restored."""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path

from qbatch.daemon.store import APPLICATION, DATABASE, StorageError, Store, check_version
from qbatch.model.errors import InputError

RESTORED = "restored"
"""File that marks a restored store: the attempts that ran when the backup was made are lost."""


def add_snapshot(target: Path, number: int, data: bytes, settings: str) -> None:
    """Complete a copy of the database with a snapshot and its settings."""
    with closing(sqlite3.connect(target)) as database, database:
        database.execute("CREATE TABLE snapshot (number INTEGER, body BLOB, crc INTEGER)")
        database.execute("INSERT INTO snapshot VALUES (?, ?, ?)", (number, data, zlib.crc32(data)))
        for name, value in (("snapshot", str(number)), ("settings", settings)):
            database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
        database.execute("DELETE FROM journal")


def restore_backup(source: Path, state: Path) -> str:
    """Replace the store in a directory by a backup; return what was done.

    Raises:
        InputError: the file is not a backup, or is damaged.
        StoreOccupied: a daemon runs there.
    """
    number, snapshot = _read(source)
    store = Store(state)
    store.claim()
    kept = ""
    names = [
        DATABASE,
        f"{DATABASE}-wal",
        "committed",
        *(path.name for path in state.glob("snapshot-*")),
    ]
    present = [name for name in names if (state / name).exists()]
    if present:
        aside = state / f"before-restore-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
        aside.mkdir(mode=0o700)
        for name in present:
            os.replace(state / name, aside / name)
        kept = f"; what was there is in {aside}"
    data = source.read_bytes()
    temporary = state / f"{DATABASE}.tmp"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    store.write_snapshot(number, snapshot)
    with closing(sqlite3.connect(temporary)) as database, database:
        database.execute("DROP TABLE snapshot")
    # A job that ran when the backup was made may have ended since: it must not start again as if
    # nothing had happened.
    (state / RESTORED).touch(mode=0o600)
    os.replace(temporary, state / DATABASE)
    return f"{state} is as it was in {source}{kept}"


def _read(source: Path) -> tuple[int, bytes]:
    if not source.is_file():
        raise InputError(f"{source}: there is no such file")
    check_version(source, "restore it with the version that wrote it", was_used=False)
    try:
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as database:
            if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise InputError(f"{source} is no backup of qbatch")
            found = database.execute("PRAGMA integrity_check").fetchone()[0]
            row = database.execute("SELECT number, body, crc FROM snapshot").fetchone()
    except sqlite3.Error as error:
        raise InputError(f"{source} is no backup of qbatch: {error}") from error
    if found != "ok" or row is None or zlib.crc32(row[1]) != row[2]:
        raise StorageError(
            f"{source} is damaged: "
            f"{found if found != 'ok' else 'its snapshot does not fit its checksum'}"
        )
    return int(row[0]), bytes(row[1])
