"""Accounting records as PBS writes them: one file a day, named YYYYMMDD, one record a line
(docs/spec/pbs.md 6).

A line is appended after the commit to which it belongs.  After a crash the core makes the lines of
the journal's tail again; a line that is in its file already is not written twice.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from qbatch.daemon.core.accounting import text_of
from qbatch.daemon.core.state import Account

log = logging.getLogger("qbatch")

SPARE = 1 << 20
"""Bytes that are read of a file in addition to those that the records of a journal's tail can take
there."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class AccountingFiles:
    """The accounting directory of one server."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, records: list[Account]) -> None:
        """Append records; a file that cannot be written is an error in the log, and stops nothing
        else."""
        for day, lines in _by_day(records).items():
            path = self.directory / day
            try:
                with open(os.open(path, _APPEND, 0o600), "a", encoding="utf-8") as file:
                    file.write("".join(line for line, _ in lines))
            except OSError as error:
                log.error(
                    "accounting file %s: %s; %d records are lost", path, error.strerror, len(lines)
                )

    def write_missing(self, records: list[Account]) -> None:
        """Append the records that are not in the files yet (after a crash).

        ``records``: all since the snapshot; those that were written are therefore at the ends of
        their files.
        """
        missing: list[Account] = []
        for day, lines in _by_day(records).items():
            known: set[str] = set()
            with suppress(OSError), open(self.directory / day, "rb") as file:
                size = sum(len(line.encode()) for line, _ in lines)
                file.seek(max(file.seek(0, os.SEEK_END) - size - SPARE, 0))
                known.update(file.read().decode(errors="replace").splitlines(keepends=True))
            missing += [record for line, record in lines if line not in known]
        self.write(missing)


def _by_day(records: list[Account]) -> dict[str, list[tuple[str, Account]]]:
    """Return the line of each record, with the record, by the names of the files."""
    found: dict[str, list[tuple[str, Account]]] = {}
    for record in records:
        day, moment = _day_and_moment(record.at // 1_000_000)
        found.setdefault(day, []).append(
            (f"{moment};{record.kind};{record.job};{text_of(record)}\n", record)
        )
    return found


@lru_cache(maxsize=64)
def _day_and_moment(seconds: int) -> tuple[str, str]:
    day, _, moment = time.strftime("%Y%m%d %m/%d/%Y %H:%M:%S", time.localtime(seconds)).partition(
        " "
    )
    return day, moment
