"""The store of runs: one SQLite file, in which each run stands under the hash of all that it depends on.

A run is there whole or not at all, and what was kept stays there whatever happens to the process: an interrupted sweep loses the
runs under way.  Runs are read in any order and in parts, so that memory does not grow with their number.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from qbatch.model.errors import InputError, OutputError

FILE = "runs.sqlite"
"""The name of the store in its folder."""

_PART = 500
_SCHEMA = 1


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A run as it is kept: its value, or the error that it ended with; ``seconds``: how long it took."""

    value: Any
    error: str | None = None
    seconds: float = 0.0
    is_lost: bool = False
    """Whether it has no value because the processes that were to make it were lost: it may be tried again."""


class RunStore:
    """Runs by key.  Keys are texts; values are what msgspec can encode."""

    def __init__(self, folder: Path) -> None:
        """Open the store of a folder; the folder is made if only it is missing.

        Raises:
            OutputError: the folder cannot be made or written, or another process has the store.
            InputError: the file there is no store of runs.
        """
        self.path = folder / FILE
        try:
            folder.mkdir(exist_ok=True)
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            self._unlock = weakref.finalize(self, os.close, lock)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made ({error.strerror or error}); name another place") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._unlock()
            raise OutputError(f"{folder}: another process is at work there; wait for it, or name another place") from error
        with self._explained():
            self._database = sqlite3.connect(self.path, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _SCHEMA):
                raise InputError(f"{self.path}: is of another version of qbatch ({version}); name another place")
            self._database.execute("CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, kept BLOB NOT NULL) WITHOUT ROWID")
            self._database.execute(f"PRAGMA user_version={_SCHEMA}")

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and let others have it."""
        self._database.close()
        self._unlock()

    def find(self, keys: Sequence[str]) -> dict[str, Kept]:
        """Return what is kept under some keys; those of which nothing is kept are left out."""
        found: dict[str, Kept] = {}
        with self._explained():
            for begin in range(0, len(keys), _PART):
                part = keys[begin : begin + _PART]
                asked = f"SELECT key, kept FROM runs WHERE key IN ({','.join('?' * len(part))})"
                for key, kept in self._database.execute(asked, part):
                    found[key] = msgspec.msgpack.decode(kept, type=Kept)
        return found

    def put(self, runs: Iterable[tuple[str, Kept]]) -> None:
        """Keep runs, all or none, each in place of what was kept under its key.

        Raises:
            OutputError: they cannot be written; those that were kept before stay.
        """
        rows = [(key, msgspec.msgpack.encode(kept)) for key, kept in runs]
        with self._explained():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?)", rows)
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
            if isinstance(error, sqlite3.OperationalError):
                raise OutputError(f"{self.path}: cannot be used ({error}); the runs that were kept before stay") from error
            raise InputError(f"{self.path}: is no store of runs ({error}); name another place, or remove it") from error
