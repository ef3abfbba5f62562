"""From the schema of an older release to the present one, with a copy of the old file made first.

``STEPS`` holds, for each older version, the statements that lead to the next one.  Release 0.1.0 has schema 1; whoever
changes the schema raises ``VERSION`` in :mod:`qbatch.daemon.store`, adds a step here, and keeps a database of the old
release for the test.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import aiosqlite

STEPS: dict[int, tuple[str, ...]] = {}
"""Statements by the version that they start from."""


def copy_first(path: Path, version: int) -> Path:
    """Write a complete copy of a database beside it, unless there is one of this version; return its path."""
    target = path.with_name(f"{path.name}.schema-{version}")
    if not target.exists():
        with sqlite3.connect(path) as old:
            old.execute("VACUUM INTO ?", (str(target),))
        old.close()
    return target


async def migrate(database: aiosqlite.Connection, version: int, goal: int) -> None:
    """Lead a database step by step to the present schema, all of it or nothing.

    Raises:
        LookupError: a step is missing.
    """
    await database.execute("BEGIN EXCLUSIVE")
    try:
        for step in range(version, goal):
            for statement in STEPS[step]:
                await database.execute(statement)
        await database.execute(f"PRAGMA user_version={goal}")
        await database.execute("COMMIT")
    except BaseException:
        await database.execute("ROLLBACK")
        raise
