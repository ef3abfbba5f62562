"""Reading the lines of accounting files: several files, directories of daily files, standard input, compressed or not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from qbatch.model.errors import InputError
from qbatch.workloads.accounting.record import Line
from qbatch.workloads.source import STANDARD_INPUT, LogFile

LINE_BYTES_MAX = 16 << 20
"""A longer line is not an accounting record; it is yielded cut to ``_SHOWN`` bytes and marked as not whole."""

_SHOWN = 256
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def accounting_files(paths: Sequence[str]) -> list[str]:
    """Return the files of these paths; a directory gives its files in order of name, without hidden ones.

    Raises:
        InputError: a directory contains no file, or the same file is named twice.
    """
    found: list[str] = []
    for path in paths:
        if path != STANDARD_INPUT and os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith("."))
            inside = [os.path.join(path, name) for name in names]
            inside = [each for each in inside if os.path.isfile(each)]
            if not inside:
                raise InputError(f"{path}: the directory contains no file; name the directory of the accounting files")
            found += inside
        else:
            found.append(path)
    seen: dict[str, str] = {}
    for path in found:
        real = path if path == STANDARD_INPUT else os.path.realpath(path)
        if real in seen:
            raise InputError(f"{path}: is named twice; name each file once")
        seen[real] = path
    return found


def lines_of(path: str, progress: Callable[[int], None] | None = None) -> Iterator[Line]:
    """Yield the lines of one file, of any length and any bytes; CR LF ends a line like LF.

    Raises:
        InputError: the file cannot be read, or its compressed data are corrupt.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    source = LogFile(path)
    number, pending, is_cut = 0, b"", False
    for chunk in source.chunks(1 << 20):
        if progress is not None:
            progress(source.stored_bytes)
        parts = chunk.split(b"\n")
        parts[0] = pending + parts[0]
        pending = parts.pop()
        for part in parts:
            number += 1
            if number == 1:
                part = part.removeprefix(_BYTE_ORDER_MARK)
            yield Line(name, number, part[:-1] if part.endswith(b"\r") else part, not is_cut)
            is_cut = False
        if len(pending) > LINE_BYTES_MAX:
            pending, is_cut = pending[:_SHOWN], True
    if pending:
        yield Line(name, number + 1, pending, is_whole=False)
