"""What a log file leaves out, without reading all of it where its comments say it."""

from __future__ import annotations

import re

from qbatch.workloads.header import parse_header
from qbatch.workloads.left_out import LeftOut, left_out_of
from qbatch.workloads.source import read_bytes_chunks

_PART = re.compile(rb"^[ \t]*[^\s;#]\S*(?:[ \t]+\S+){9}[ \t]+[234](?:\.0*)?(?=\s|\Z)", re.MULTILINE)
"""A row of which field 11, the status, is 2, 3 or 4."""


def left_out_in(path: str) -> tuple[LeftOut, ...]:
    """Return what a log file leaves out by the comments before its first row, and its parts.

    Raises:
        InputError: it cannot be read.
    """
    if _has_parts(path):
        from qbatch.workloads.swf import read_log  # imports Numba

        return left_out_of(read_log(path, lenient=True).header)
    text = b""
    for chunk in read_bytes_chunks(path, 1 << 16):
        text += chunk
        lines = text.split(b"\n")[:-1]
        rows = (
            place for place, line in enumerate(lines) if line.strip()[:1] not in (b"", b";", b"#")
        )
        if (first := next(rows, None)) is not None:
            lines = lines[:first]
            break
    else:
        lines = text.split(b"\n")
    return left_out_of(parse_header(line.decode("utf-8", "surrogateescape") for line in lines))


def _has_parts(path: str) -> bool:
    """Return whether a row has the status of a partial execution."""
    rest = b""
    for chunk in read_bytes_chunks(path):
        whole, _, rest = (rest + bytes(chunk)).rpartition(b"\n")
        if _PART.search(whole) is not None:
            return True
    return _PART.search(rest) is not None
