"""The store: a journal, snapshots and the history of jobs, in one directory that one daemon owns.

``qbatch.db`` (SQLite through aiosqlite, one exclusive connection): the journal of inputs, one row
for each commit, and all finished jobs.  ``snapshot-N``: the state after journal row N.
``committed``: the number of the last committed row; if the journal ends before it, rows are lost
and the daemon refuses to start.  ``lock``: held while a daemon has the directory. ``reserve``:
space to free when the disk is full.  Settings of SQLite: docs/spec/reliability.md 3.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import aiosqlite
import msgspec

from qbatch.daemon.executors.supervision.files import sync_directory
from qbatch.model.errors import QbatchError
from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import JobRecord

APPLICATION = 0x71626174
DATABASE = "qbatch.db"
VERSION = 7
"""The version of all files of a directory: database, journal entries, snapshots, records.  Any
other version is refused."""
RESERVE = 4 << 20

_SCHEMA = "\n".join(
    (
        "",
        (
            "CREATE TABLE journal (number INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT "
            "NULL) STRICT;"
        ),
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;",
        "CREATE TABLE history (",
        (
            "    sequence INTEGER NOT NULL, member INTEGER NOT NULL, user TEXT NOT NULL, queue "
            "TEXT "
            "NOT NULL, name TEXT NOT NULL,"
        ),
        "    submitted INTEGER NOT NULL, started INTEGER, ended INTEGER NOT NULL, status INTEGER,",
        "    record BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (sequence, member)) STRICT;",
        "CREATE INDEX history_ended ON history (ended);",
        "CREATE INDEX history_user ON history (user, ended);",
        "",
    )
)

_ENDED, _COLUMNS = "INSERT OR REPLACE INTO history VALUES ", "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# The database's thread releases the interpreter in each statement and has to wait for it
# afterwards, so many rows are one statement.  Few statements are kept prepared: one of many rows
# takes a quarter of a megabyte.
_ROWS_AT_ONCE, _STATEMENTS = 256, 16
_CHECKPOINT = 2000
_encode = msgspec.msgpack.Encoder().encode
_decode_entries = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_record = msgspec.msgpack.Decoder(JobRecord).decode


class StorageError(QbatchError):
    """The store failed or is damaged (74)."""

    exit_code = 74


class StorageFull(StorageError):  # noqa: N818 - the name states what the disk is
    """The disk is full; nothing was written."""


class StoreOccupied(QbatchError):  # noqa: N818 - the name states what the directory is
    """Another daemon has the directory (75)."""

    exit_code = 75


def _opened(path: Path) -> closing[sqlite3.Connection]:
    # ``immutable``: SQLite ignores locks and the log.
    return closing(
        sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True, isolation_level=None)
    )


class Store:
    """One state directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.number = 0
        self.journal_bytes = 0
        self.snapshot_number = -1
        self._database: aiosqlite.Connection | None = None
        self._lock = -1
        self._rest = asyncio.Lock()
        self._committed = -1

    @property
    def path(self) -> Path:
        """The database file."""
        return self.directory / DATABASE

    @property
    def weight(self) -> int:
        """The approximate number of jobs or commits that recovery has to read."""
        path = self.directory / f"snapshot-{self.snapshot_number}"
        size = path.stat().st_size if path.exists() else 0
        return size // 200 + 20 * (self.number - max(self.snapshot_number, 0))

    def claim(self) -> None:
        """Claim the directory for this process; make it if it is not there.

        Raises:
            StoreOccupied: another daemon has it.
            StorageError: it cannot be used.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(
                self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreOccupied(
                f"another daemon has {self.directory}; stop it with: qbatch down (or give this one "
                "a --state of its own)"
            ) from None
        except OSError as error:
            raise StorageError(
                f"state directory {self.directory}: {error.strerror or error}"
            ) from error

    async def open(self) -> None:
        """Open the database, or make it; check it.

        Raises:
            StorageError: it is damaged, incomplete, or of another version; nothing in it is changed
                then.
        """
        was_used = (self.directory / "committed").exists() or any(self.directory.glob("snapshot-*"))
        is_new = not self.path.exists()
        if is_new and was_used:
            raise StorageError(
                f"{self.path} is missing, but {self.directory} was in use; put the file back, "
                "restore a backup with: "
                f"qbatch restore FILE --state {self.directory}, or start with an empty directory"
            )
        try:
            old_mask = os.umask(0o077)
            try:
                check_directory(self.directory)
                self._database = await aiosqlite.connect(
                    self.path, isolation_level=None, cached_statements=_STATEMENTS
                )
                await self._prepare(is_new, was_used)
            finally:
                os.umask(old_mask)
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"{self.path}: {error}; {_FIRST if is_new else _way_out(self.directory)}"
            ) from error
        try:
            self._committed = os.open(
                self.directory / "committed", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
            stored = os.pread(self._committed, 8, 0)
            # Its block is allocated now, so that a disk that is full later cannot refuse it.
            if not stored:
                os.pwrite(self._committed, self.number.to_bytes(8, "big"), 0)
        except OSError as error:
            raise StorageError(f"{self.directory / 'committed'}: {error.strerror}") from error
        least = int.from_bytes(stored, "big") if len(stored) == 8 else 0
        if self.number < least:
            raise StorageError(
                f"{self.path} ends at commit {self.number}, but {least} were acknowledged: a part "
                "is missing (was the "
                f"-wal file removed?); {_way_out(self.directory)}"
            )
        self.reserve_space()

    async def _prepare(self, is_new: bool, was_used: bool) -> None:
        database = self._db
        # A database of an interrupted first start is empty, and nothing was ever acknowledged.
        is_empty = not was_used and await self._one("SELECT count(*) FROM sqlite_schema") == 0
        # Before there is a log: the file's header has the version from the beginning.
        if is_new or is_empty:
            await database.executescript(
                f"BEGIN;{_SCHEMA}PRAGMA application_id={APPLICATION};"
                f"PRAGMA user_version={VERSION};COMMIT;"
            )
        for pragma in (
            "locking_mode=EXCLUSIVE",
            "journal_mode=WAL",
            "synchronous=FULL",
            f"wal_autocheckpoint={_CHECKPOINT}",
            "foreign_keys=ON",
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "mmap_size=0",
            "temp_store=MEMORY",
            "cache_size=-16000",
        ):
            await database.execute(f"PRAGMA {pragma}")
        if await self._one("PRAGMA synchronous") != 2:
            raise StorageError(f"{self.path}: SQLite does not keep synchronous=FULL")
        if is_new or is_empty:
            sync_directory(self.directory)
        if await self._one("PRAGMA application_id") != APPLICATION:
            raise StorageError(f"{self.path} is not a qbatch database; {_way_out(self.directory)}")
        found = await self._one("PRAGMA quick_check")
        if found != "ok":
            raise StorageError(f"{self.path} is damaged: {found}; {_way_out(self.directory)}")
        self.number = int(str(await self._one("SELECT coalesce(max(number), 0) FROM journal")))
        number = await self._one("SELECT value FROM meta WHERE name = 'snapshot'")
        self.snapshot_number = int(str(number)) if number is not None else -1
        self.number = max(self.number, self.snapshot_number, 0)

    @property
    def _db(self) -> aiosqlite.Connection:
        if self._database is None:
            raise StorageError("the store is closed")
        return self._database

    async def _one(self, statement: str, values: Iterable[object] = ()) -> object:
        async with self._db.execute(statement, values) as cursor:
            row = await cursor.fetchone()
        return None if row is None else row[0]

    @asynccontextmanager
    async def _select(
        self, statement: str, values: Iterable[object] = ()
    ) -> AsyncIterator[aiosqlite.Cursor]:
        """Run a query; an error of the database is a ``StorageError``."""
        try:
            async with self._db.execute(statement, values) as cursor:
                yield cursor
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: {error}") from error

    async def commit(
        self, entries: list[bytes], endings: Sequence[tuple[JobKey, JobRecord]]
    ) -> None:
        """Write one group of inputs and the jobs that they ended, durably.

        Raises:
            StorageFull: the disk is full; nothing was written.
            StorageError: it is not known what was written: the daemon must stop.
        """
        body = _encode(entries)
        number = self.number + 1
        row = (number, body, zlib.crc32(body))
        try:
            if endings:
                await self._db.execute("BEGIN IMMEDIATE")
                await self._db.execute("INSERT INTO journal VALUES (?, ?, ?)", row)
                rows = []
                for key, job in endings:
                    record = _encode(job)
                    rows.append(
                        (
                            key.sequence,
                            key.member,
                            job.user,
                            job.queue,
                            job.name,
                            job.submitted or 0,
                            job.started,
                            job.ended or 0,
                            job.exit_status,
                            record,
                            zlib.crc32(record),
                        )
                    )
                for first in range(0, len(rows), _ROWS_AT_ONCE):
                    some = rows[first : first + _ROWS_AT_ONCE]
                    statement = _ENDED + ", ".join([_COLUMNS] * len(some))
                    await self._db.execute(statement, tuple(chain.from_iterable(some)))
                await self._db.execute("COMMIT")
            else:
                await self._db.execute("INSERT INTO journal VALUES (?, ?, ?)", row)
        except sqlite3.Error as error:
            await self._undo(error)
        self.number = number
        self.journal_bytes += len(body)
        try:
            os.pwrite(self._committed, number.to_bytes(8, "big"), 0)
        except OSError as error:
            raise StorageError(f"{self.directory / 'committed'}: {error.strerror}") from error

    async def _undo(self, error: sqlite3.Error) -> None:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_FULL:
            raise StorageError(f"{self.path}: {error}") from error
        try:
            if self._db.in_transaction:
                await self._db.execute("ROLLBACK")
        except sqlite3.Error as second:
            raise StorageError(f"{self.path}: {second}") from second
        raise StorageFull(f"{self.path}: the disk is full") from error

    async def entries(self) -> list[tuple[int, list[bytes]]]:
        """Return the journal after the snapshot: number and inputs of each commit, in order.

        Raises:
            StorageError: a row is damaged or missing.
        """
        found = []
        expected = max(self.snapshot_number, 0) + 1
        of_journal = "SELECT number, body, crc FROM journal WHERE number >= ? ORDER BY number"
        async with self._select(of_journal, (expected,)) as cursor:
            async for number, body, crc in cursor:
                if number != expected or zlib.crc32(body) != crc:
                    what = "is missing" if number != expected else "is damaged"
                    raise StorageError(
                        f"{self.path}: journal row {expected} {what}; {_way_out(self.directory)}"
                    )
                expected += 1
                self.journal_bytes += len(body)
                found.append((number, _decode_entries(body)))
        return found

    # Snapshots

    def snapshot(self) -> memoryview | None:
        """Return the snapshot from which the journal continues; None if there is none yet.

        Raises:
            StorageError: the snapshot is missing or damaged.
        """
        if self.snapshot_number < 0:
            return None
        path = self.directory / f"snapshot-{self.snapshot_number}"
        try:
            data = memoryview(path.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}; {_way_out(self.directory)}") from error
        if len(data) < 4 or zlib.crc32(data[4:]) != int.from_bytes(data[:4], "big"):
            raise StorageError(f"{path} is damaged; {_way_out(self.directory)}")
        return data[4:]

    def write_snapshot(self, number: int, data: bytes) -> None:
        """Write the state after journal row ``number`` to a file, durably; it counts when it is
        adopted."""
        path = self.directory / f"snapshot-{number}"
        temporary = self.directory / f"snapshot-{number}.{os.getpid()}.tmp"
        with open(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(zlib.crc32(data).to_bytes(4, "big"))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_directory(self.directory)

    async def meta(self, name: str) -> str:
        """Return a text of the ``meta`` table; empty if there is none."""
        async with self._select("SELECT value FROM meta WHERE name = ?", (name,)) as cursor:
            row = await cursor.fetchone()
        return "" if row is None else str(row[0])

    async def adopt_snapshot(self, number: int, settings: str) -> None:
        """Let the journal begin after a snapshot that was written under these settings; delete the
        rows before it.

        Raises:
            StorageError: the database failed.
        """
        try:
            await self._db.execute("BEGIN IMMEDIATE")
            for name, value in (("snapshot", str(number)), ("settings", settings)):
                await self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
            await self._db.execute("DELETE FROM journal WHERE number <= ?", (number,))
            await self._db.execute("COMMIT")
        except sqlite3.Error as error:
            await self._undo(error)
        self.snapshot_number = number
        self.journal_bytes = 0
        for path in self.directory.glob("snapshot-*"):
            if path.name != f"snapshot-{number}":
                path.unlink(missing_ok=True)

    # History

    async def finished(self, keys: list[JobKey]) -> dict[JobKey, JobRecord]:
        """Return the records of finished jobs."""
        return {
            key: record
            for key in keys
            for record in await self.search(
                [("sequence = ?", key.sequence), ("member = ?", key.member)],
                1,
                is_newest_first=False,
            )
        }

    async def search(
        self, where: list[tuple[str, object]], limit: int, *, is_newest_first: bool
    ) -> list[JobRecord]:
        """Return the finished jobs that fulfil every condition (SQL with one ``?``, value)."""
        clauses = " AND ".join(clause for clause, _ in where) or "1"
        order = "ended DESC, sequence DESC, member DESC" if is_newest_first else "sequence, member"
        statement = (
            f"SELECT sequence, record, crc FROM history WHERE {clauses} ORDER BY {order} LIMIT ?"
        )
        found = []
        async with self._select(statement, (*(value for _, value in where), limit)) as cursor:
            async for sequence, body, crc in cursor:
                if zlib.crc32(body) != crc:
                    raise StorageError(
                        f"{self.path}: the record of job {sequence} is damaged; "
                        f"{_way_out(self.directory)}"
                    )
                found.append(_decode_record(body))
        return found

    # Care

    @asynccontextmanager
    async def at_rest(self) -> AsyncIterator[None]:
        """Keep the database file as :meth:`settle` leaves it; commits of the meantime are written
        to its log."""
        async with self._rest:
            await self._db.execute("PRAGMA wal_autocheckpoint=0")
            try:
                yield
            finally:
                await self._db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")

    async def settle(self) -> None:
        """Write all commits from the log into the database file; no commit may be under way.

        Raises:
            StorageError: the database failed.
        """
        while True:
            try:
                await self._one("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            except sqlite3.Error as error:
                # A page of the history is being read on this connection; its statement ends soon.
                if error.sqlite_errorcode != sqlite3.SQLITE_LOCKED:
                    raise StorageError(f"{self.path}: {error}") from error
            await asyncio.sleep(0.01)

    def backup(self, target: Path) -> None:
        """Write a copy of the database file, which must be at rest, to a new path.

        Raises:
            StorageError: the copy cannot be written.
        """
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StorageError(
                f"backup to {str(target)[:300]}: {error.strerror}; name a new file"
            ) from error
        try:
            with _opened(self.path) as database:
                database.execute("VACUUM INTO ?", (str(target),))
        except sqlite3.Error as error:
            target.unlink(missing_ok=True)
            raise StorageError(f"backup to {target}: {error}") from error

    def check(self, last: int) -> str:
        """Check every page and row of the database file, which must be at rest; return a summary.

        ``last``: the number of the last journal entry when the file was settled.

        Raises:
            StorageError: something is damaged.
        """
        first, rows = self.snapshot_number, 0
        try:
            with _opened(self.path) as database:
                found = database.execute("PRAGMA integrity_check").fetchone()
                if found is None or found[0] != "ok":
                    what = found[0] if found else "no answer"
                    raise StorageError(
                        f"{self.path} is damaged: {what}; {_way_out(self.directory)}"
                    )
                for table, column in (("journal", "body"), ("history", "record")):
                    for body, crc in database.execute(f"SELECT {column}, crc FROM {table}"):
                        rows += 1
                        if zlib.crc32(body) != crc:
                            raise StorageError(
                                f"{self.path}: a row of {table} is damaged; "
                                f"{_way_out(self.directory)}"
                            )
        except sqlite3.Error as error:
            raise StorageError(f"{self.path}: {error}") from error
        number = self.snapshot_number
        try:
            self.snapshot()
        except StorageError:
            if number == self.snapshot_number:  # else a later one has replaced it
                raise
        return (
            f"{self.path}: integrity ok, {rows} rows with their checksums, journal {first} to "
            f"{last}"
        )

    def free_reserve(self) -> None:
        """Free the reserved space on a full disk, so that ends of jobs can still be written."""
        (self.directory / "reserve").unlink(missing_ok=True)

    def reserve_space(self) -> bool:
        """Reserve space if twice as much is free, else leave it for commits; return whether so much
        is free."""
        path, disk = self.directory / "reserve", os.statvfs(self.directory)
        size = min(RESERVE, disk.f_blocks * disk.f_frsize // 8)
        if disk.f_bavail * disk.f_frsize < 2 * size:
            return False
        if not path.exists():
            try:
                with open(
                    os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb"
                ) as file:
                    os.posix_fallocate(file.fileno(), 0, size)
            except OSError:
                path.unlink(missing_ok=True)
        return True

    async def close(self) -> None:
        """Close the database; the directory stays claimed until the process ends."""
        if self._database is not None:
            await self._database.close()
            self._database = None
        if self._committed >= 0:
            os.close(self._committed)
            self._committed = -1


_FIRST = (
    "nothing was kept in it yet: make sure that the disk works and has space, or name "
    "another "
    "directory with --state"
)


def check_version(path: Path, way_out: str, *, was_used: bool) -> None:
    """Refuse a database of another version; nothing is written.  ``was_used``: whether a daemon has
    stored anything in it.

    Raises:
        StorageError: the message has both versions and the way out.
    """
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except OSError:
        return  # opening it will raise an error with the reason
    # The fields of the header, https://sqlite.org/fileformat.html section 1.3.  SQLite itself would
    # write when it opens the file.
    version, application = (
        int.from_bytes(header[60:64], "big"),
        int.from_bytes(header[68:72], "big"),
    )
    if header.startswith(b"SQLite") and application == version == 0 and was_used:
        # A daemon of version 1 wrote them into the log of the file at first.
        version, application = 1, APPLICATION
    if application == APPLICATION and version != VERSION:
        raise StorageError(
            f"{path} was written by another version of qbatch (version {version} of the store; "
            f"this one reads {VERSION}), and "
            f"is left as it is; {way_out}"
        )


def check_directory(directory: Path) -> None:
    """Refuse a state directory of another version; nothing in it is changed.

    Raises:
        StorageError: the message has both versions and the way out.
    """
    check_version(
        directory / DATABASE,
        "give this version an empty directory with --state DIR; to keep what ran: qbatch import "
        f"pbs {directory / 'accounting'} "
        f"-o LOG, or, with the version that wrote it, qbatch up --state {directory} and qbatch "
        "export result -o DIR; jobs that "
        "wait there are to be submitted again",
        was_used=(directory / "committed").exists(),
    )


def _way_out(directory: Path) -> str:
    return f"restore a backup with: qbatch restore FILE --state {directory}"
