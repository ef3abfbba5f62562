"""The side file of a log: deadlines, which SWF has no field for.

CSV in UTF-8, one header line, one row per job that has a deadline, in order of the log.  Columns: ``job_id`` (the job's number
in the log), ``deadline`` (seconds of the log's own clock, whole or with up to six decimals), ``kind`` (``asked`` or
``artificial``).  Other columns are ignored, and ``kind`` may be missing.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import BinaryIO

import numpy as np

from qbatch.model.errors import InputError
from qbatch.workloads.log import Column, Log
from qbatch.workloads.transform.deadlines import ARTIFICIAL, ASKED, DeadlineLog

COLUMNS = ("job_id", "deadline", "kind")
MICROSECONDS = 1_000_000
_LATEST_S = (1 << 61) // MICROSECONDS


def write_deadlines(out: BinaryIO, log: DeadlineLog) -> None:
    """Write the side file of a log."""
    rows = np.flatnonzero(log.deadline >= 0)
    text = io.StringIO()
    text.write(",".join(COLUMNS) + "\n")
    for job, deadline, is_artificial in zip(
        np.asarray(log.log["job"])[rows].tolist(), log.deadline[rows].tolist(), log.is_artificial[rows].tolist(), strict=True
    ):
        text.write(f"{job},{deadline},{ARTIFICIAL if is_artificial else ASKED}\n")
    out.write(text.getvalue().encode())


def read_deadlines(path: str, log: Log, *, with_artificial: bool = True) -> Column:
    """Return the deadlines of a log's rows in microseconds, -1 for none, from a side file.

    Args:
        with_artificial: whether artificial deadlines count.

    Raises:
        InputError: names the file, the line and the reason.
    """
    numbers = np.asarray(log["job"], np.int64)
    places = {number: row for row, number in enumerate(numbers.tolist())}
    deadline = np.full(len(log), -1, np.int64)
    try:
        text = Path(path).read_bytes().decode()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: it is not a text in UTF-8: {error.reason} at byte {error.start}") from error
    rows = csv.reader(io.StringIO(text))
    header = [name.strip() for name in next(rows, [])]
    if "job_id" not in header or "deadline" not in header:
        raise InputError(f"{path}: line 1: no columns job_id and deadline; a side file begins {','.join(COLUMNS)}")
    for cells in rows:
        if not cells:
            continue
        place = f"{path}: line {rows.line_num}"
        if len(cells) != len(header):
            raise InputError(f"{place}: {len(cells)} values, the header names {len(header)}")
        values = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        job, at = _whole(values["job_id"], place, "job_id"), _instant(values["deadline"], place)
        if job not in places:
            raise InputError(f"{place}: job {job} is not in {log.name}; is this the side file of another log?")
        kind = values.get("kind", ASKED) or ASKED
        if kind not in (ASKED, ARTIFICIAL):
            raise InputError(f"{place}: kind {kind!r} is neither {ASKED} nor {ARTIFICIAL}")
        if deadline[places[job]] >= 0:
            raise InputError(f"{place}: job {job} has a deadline already")
        if with_artificial or kind == ASKED:
            deadline[places[job]] = at
    return deadline


def _whole(text: str, place: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{place}: {name} {text[:40]!r} is not a whole number") from None


def _instant(text: str, place: str) -> int:
    whole, _, fraction = text.partition(".")
    is_number = whole.isdecimal() and whole.isascii() and (fraction == "" or (fraction.isdecimal() and len(fraction) <= 6))
    if not is_number or len(whole) > 18 or int(whole) > _LATEST_S:
        raise InputError(f"{place}: deadline {text[:40]!r} is not seconds of the log's clock, at most six decimals")
    return int(whole) * MICROSECONDS + int(fraction.ljust(6, "0") or 0)
