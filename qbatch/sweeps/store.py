"""The store of runs: one SQLite file, which holds each run under the hash of all that it depends
on.

A run is stored completely or not at all, and a stored run survives any end of the process: an
interrupted sweep loses only the runs in progress.  Runs are read in any order and in parts, so that
memory does not grow with their number.

Each row has a checksum of its contents, and all are checked when the store is opened.  Damaged rows
are removed, so that their runs are repeated, and a warning prints their number; a file with other
damage is refused.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from qbatch.model.errors import InputError, OutputError
from qbatch.trust import check_not_open

FILE = "runs.sqlite"
"""The name of the store in its folder."""

_PART = 500
_SCHEMA = 2

_NOT_DAMAGE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
)

_LOGGER = logging.getLogger(__name__)


class CachedRun(msgspec.Struct, frozen=True, array_like=True):
    """A run in the store: its value or its error; ``seconds``: its duration."""

    value: Any
    error: str | None = None
    seconds: float = 0.0
    is_lost: bool = False
    """Whether it has no value because its processes were lost: it may be tried again."""


class RunStore:
    """Runs by key.  Keys are texts; values are anything that msgspec can encode."""

    def __init__(self, folder: Path) -> None:
        """Open the store of a folder; the folder is created if its parent exists.

        Raises:
            OutputError: the folder cannot be created or written, or another process has the store.
            InputError: the file is not a store of runs, or has damage beyond some rows, or every
                user may write to it.
        """
        self.path = folder / FILE
        for each in (folder, self.path):
            check_not_open(each)
        try:
            folder.mkdir(mode=0o775, exist_ok=True)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            self._unlock = weakref.finalize(self, os.close, lock)
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be created ({error.strerror or error}); name another place"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._unlock()
            raise OutputError(
                f"{folder}: another process is at work there; wait for it, or name another place"
            ) from error
        with self._explained():
            self._database = sqlite3.connect(self.path, isolation_level=None)
            self._open()

    def _open(self) -> None:
        run = self._database.execute
        self._database.create_function("checksum_of", 2, _checksum, deterministic=True)
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=NORMAL")
        version = run("PRAGMA user_version").fetchone()[0]
        if version not in (0, _SCHEMA):
            raise InputError(
                f"{self.path}: is of another version of qbatch ({version}); name another place"
            )
        found = run("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise self._damaged(" ".join(found.split()))
        run("BEGIN IMMEDIATE")
        if version == 0:
            run(
                "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, kept BLOB NOT NULL, "
                "checksum BLOB) WITHOUT ROWID"
            )
            run(f"PRAGMA user_version={_SCHEMA}")
        damaged = run(
            "DELETE FROM runs WHERE checksum IS NOT checksum_of(CAST(key AS BLOB), kept)"
        ).rowcount
        run("COMMIT")
        if damaged:
            runs = "1 damaged run was" if damaged == 1 else f"{damaged:,} damaged runs were"
            _LOGGER.warning("%s: %s removed; the sweep repeats what it needs", self.path, runs)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, so that other processes can open it."""
        self._database.close()
        self._unlock()

    def find(self, keys: Sequence[str]) -> dict[str, CachedRun]:
        """Return the stored runs of some keys; keys without a run are left out."""
        found: dict[str, CachedRun] = {}
        with self._explained():
            for begin in range(0, len(keys), _PART):
                part = keys[begin : begin + _PART]
                asked = f"SELECT key, kept FROM runs WHERE key IN ({','.join('?' * len(part))})"
                for key, run in self._database.execute(asked, part):
                    found[key] = msgspec.msgpack.decode(run, type=CachedRun)
        return found

    def put(self, runs: Iterable[tuple[str, CachedRun]]) -> None:
        """Store runs, all or none, each in place of an earlier one with its key.

        Raises:
            OutputError: they cannot be written; earlier runs stay.
        """
        encoded = [(key, msgspec.msgpack.encode(run)) for key, run in runs]
        rows = [(key, run, _checksum(key.encode(), run)) for key, run in encoded]
        with self._explained():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", rows)
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def __len__(self) -> int:
        with self._explained():
            return int(self._database.execute("SELECT count(*) FROM runs").fetchone()[0])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            # SQLite treats a file with a damaged header as read-only, too.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_DAMAGE or not os.access(
                self.path, os.W_OK
            ):
                raise OutputError(
                    f"{self.path}: cannot be used ({error}); earlier runs stay"
                ) from error
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> InputError:
        return InputError(
            f"{self.path}: is no store of runs, or a damaged one ({reason}); name another place, "
            "or remove it: its runs are then "
            "repeated"
        )


def _checksum(key: object, run: object) -> bytes:
    """Return the checksum of a row; for a row of another program, one that never matches."""
    if not isinstance(key, bytes) or not isinstance(run, bytes):
        return b""
    return hashlib.blake2b(len(key).to_bytes(8) + key + run, digest_size=16).digest()
