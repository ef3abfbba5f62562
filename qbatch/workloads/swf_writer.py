"""Writing workload logs in the Standard Workload Format 2.2, to a binary file that the caller
opened.

The canonical form is the original header lines, then one row per line, fields separated by one
blank, whole numbers without a point, other numbers with at most six decimals.  A canonical file
that is read is written back byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import BinaryIO

import numpy as np

from qbatch.workloads.header import Header, keyword_of
from qbatch.workloads.log import FIELDS, Column, Log

_ROWS_AT_ONCE = 8192


def write_log(out: BinaryIO, header: Header, columns: Mapping[str, Column]) -> None:
    """Write the header lines and the rows; a missing column is -1; a ``#`` comment becomes
    ``;``."""
    _write_lines(out, header.lines)
    _write_rows(out, columns)


def write_schedule(
    out: BinaryIO,
    log: Log,
    rows: Column,
    *,
    wait_s: Column,
    run_s: Column,
    status: Column,
    procs: Column,
    notes: Iterable[str] = (),
) -> None:
    """Write a simulated schedule of the ``rows`` (indices into the log) that ran, in the order
    given.

    All fields of the log are kept, except wait, run, status and allocated processors, which are the
    given ones (seconds; one value per row).  The header is kept whole; MaxJobs and MaxRecords are
    corrected and their old values noted; ``notes`` follow as Note lines.
    """
    columns = {name: log[name] if log[name].strides == (0,) else log[name][rows] for name in FIELDS}
    for name, column in columns.items():
        if len(column) != len(rows):
            columns[name] = column[: len(rows)]
    columns |= {"wait": wait_s, "run": run_s, "status": status, "procs_allocated": procs}
    _write_lines(out, schedule_header(log.header, len(rows), notes))
    _write_rows(out, columns)


def schedule_header(header: Header, rows: int, notes: Iterable[str] = ()) -> list[str]:
    """Return the header lines for ``rows`` rows of this log: correct counts, old counts and
    ``notes`` as Note lines."""
    lines: list[str] = []
    changed: list[str] = []
    counts = {"maxjobs": "MaxJobs", "maxrecords": "MaxRecords"}
    stated = {"maxjobs": header.max_jobs, "maxrecords": header.max_records}
    missing = dict(counts)
    for line in header.lines:
        keyword = keyword_of(line) or ""
        missing.pop(keyword, None)
        if keyword in counts and stated[keyword] != rows:
            lines.append(f"; {counts[keyword]}: {rows}")
            old = line.partition(":")[2].strip()
            changed.append(f"{counts[keyword]} was {old} in the original log")
        else:
            lines.append(line)
    if header.version is None:
        lines.append("; Version: 2.2")
    lines += [f"; {name}: {rows}" for name in missing.values()]
    return lines + [f"; Note: {' '.join(note.split())}" for note in (*changed, *notes)]


def _write_lines(out: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        bare = line.lstrip()
        if bare.startswith("#"):
            line = f";{bare[1:]}"
        out.write(line.encode("utf-8", "surrogateescape") + b"\n")


def _write_rows(out: BinaryIO, columns: Mapping[str, Column]) -> None:
    rows = max((len(column) for column in columns.values()), default=0)
    for start in range(0, rows, _ROWS_AT_ONCE):
        parts = {name: column[start : start + _ROWS_AT_ONCE] for name, column in columns.items()}
        out.write(_rows_text(parts, min(_ROWS_AT_ONCE, rows - start)).encode("ascii"))


def _rows_text(columns: Mapping[str, Column], rows: int) -> str:
    """Return the text of some rows; constant columns are in the template, not in the rows."""
    template: list[str] = []
    varying: list[list[int] | list[str]] = []
    for name in FIELDS:
        column = columns.get(name)
        if column is None:
            template.append("-1")
        elif bool((column == column[0]).all()):
            template.append(number_text(column[0].item()))
        elif column.dtype.kind in "iu":
            template.append("%d")
            varying.append(column.tolist())
        else:
            template.append("%s")
            varying.append([number_text(value) for value in column.tolist()])
    line = " ".join(template) + "\n"
    if not varying:
        return line * rows
    return "".join(map(line.__mod__, zip(*varying, strict=True)))


def number_text(value: float) -> str:
    """Return the number as SWF writes it: whole without a point, else at most six decimals, no
    trailing zeros."""
    if isinstance(value, int):
        return str(value)
    if value == np.floor(value):
        return str(int(value))
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
