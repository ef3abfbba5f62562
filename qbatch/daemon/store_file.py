"""The database file while it is at rest: read through a connection of its own, in a thread of its own, as commits go on.

What is committed goes to the log beside the file (:meth:`qbatch.daemon.store.Store.at_rest`), so the file does not change.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from urllib.parse import quote


def _opened(path: Path) -> sqlite3.Connection:
    # ``immutable``: neither a lock nor a log is looked at.
    return sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True, isolation_level=None)


def copy_to(path: Path, target: Path) -> None:
    """Write a copy of a database file.

    Raises:
        sqlite3.Error: it cannot be read or written.
    """
    with closing(_opened(path)) as database:
        database.execute("VACUUM INTO ?", (str(target),))


def look_through(path: Path) -> tuple[int, str]:
    """Check every page and every row of a database file; return how many rows there are and what is damaged, empty if nothing is.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    rows = 0
    with closing(_opened(path)) as database:
        found = database.execute("PRAGMA integrity_check").fetchone()
        if found is None or found[0] != "ok":
            return 0, f" is damaged: {found[0] if found else 'no answer'}"
        for table, column in (("journal", "body"), ("history", "record")):
            for body, crc in database.execute(f"SELECT {column}, crc FROM {table}"):
                rows += 1
                if zlib.crc32(body) != crc:
                    return rows, f": a row of {table} is damaged"
    return rows, ""
