"""The rows of a side file: CSV with a header, which says more about the jobs of a log; read and
written."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from qbatch.model.errors import InputError


class SideText(NamedTuple):
    """A side file as it is, its bytes; ``name``: its path, or what it belongs to, for messages."""

    name: str
    content: bytes


class SideFile(NamedTuple):
    """The names in the header, and the rows: each the place of its line, and its cells by name.

    ``sha256``: of the bytes of the file.
    """

    header: list[str]
    rows: Iterator[tuple[str, dict[str, str]]]
    sha256: str


def load_side_file(path: str) -> SideText:
    """Return a side file as it is.

    Raises:
        InputError: it cannot be read.
    """
    try:
        return SideText(path, Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def read_side_file(given: str | SideText) -> SideFile:
    """Return the header and the rows of a side file, of a path or as it is.  A row of another
    length is refused when it is read.

    Raises:
        InputError: names the file, the line and the reason.
    """
    path, content = load_side_file(given) if isinstance(given, str) else given
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: it is not a text in UTF-8: {error.reason} at byte {error.start}"
        ) from error
    lines = csv.reader(io.StringIO(text))
    header = [name.strip() for name in next(lines, [])]

    def rows() -> Iterator[tuple[str, dict[str, str]]]:
        for cells in filter(None, lines):
            place = f"{path}: line {lines.line_num}"
            if len(cells) != len(header):
                raise InputError(f"{place}: {len(cells)} values, the header names {len(header)}")
            yield place, dict(zip(header, (cell.strip() for cell in cells), strict=True))

    return SideFile(header, rows(), hashlib.sha256(content).hexdigest())


def side_bytes(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a side file with a header and rows."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(header)
    lines.writerows(rows)
    return text.getvalue().encode(errors="replace")
