"""Reading a workload log: the Standard Workload Format 2.2, or the five-column text format.

The text format is for people: ``submit run procs [estimate [user]]``.  One job per line, seconds,
numbers separated by blanks; ``#`` and ``;`` begin comment lines, and SWF header lines such as ``;
MaxProcs: 16`` are understood.  A user is a number or a word; words are numbered from 1 in order of
appearance.  Job numbers count the rows from 1.  The size of each job is in both the requested and
the allocated processors.

The bytes come in pieces of a few megabytes; a compiled kernel turns whole lines into numbers; each
column is kept piece by piece in its smallest exact type and joined at the end.  What the kernel
only marks (comments, unusual tokens, rows of another length) is resolved here, in order of the
file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.errors import InputError
from qbatch.workloads.checkpoints import without_parts
from qbatch.workloads.header import parse_header
from qbatch.workloads.log import (
    FIELDS,
    Column,
    Log,
    absent,
    compact,
    counted,
    in_order,
    shown_lines,
)
from qbatch.workloads.source import CHUNK_BYTES, LogFile

FIELDS_MIN = 3
FIELDS_MAX = 5
USER_FIELD = 4

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


class RowShape(NamedTuple):
    """The form of a log's rows: the number of fields, and which of them holds words (-1: none)."""

    fields: int
    word_column: int = -1

    @property
    def is_plain_text(self) -> bool:
        """Return whether this is the five-column format."""
        return self.fields < len(FIELDS)

    @property
    def title(self) -> str:
        """Return the name of the format for messages."""
        return "the first row" if self.is_plain_text else "SWF"


SWF_SHAPE = RowShape(len(FIELDS))


def row_shape(first_rows: Sequence[bytes]) -> RowShape:
    """Return the shape of the first rows of a log; SWF unless they are clearly plain text."""
    rows = [row.split() for row in first_rows]
    if not rows or any(len(row) == len(FIELDS) for row in rows):
        return SWF_SHAPE
    first = rows[0]
    if not FIELDS_MIN <= len(first) <= FIELDS_MAX or not all(
        NUMBER.match(token) for token in first[:FIELDS_MIN]
    ):
        return SWF_SHAPE
    has_words = len(first) == FIELDS_MAX and not NUMBER.match(first[USER_FIELD])
    return RowShape(len(first), USER_FIELD if has_words else -1)


def swf_columns(raw: Sequence[Column]) -> dict[str, Column]:
    """Return the 18 columns from the three to five of a plain text log."""
    rows = len(raw[0])
    columns = {name: absent(rows) for name in FIELDS}
    columns["job"] = np.arange(1, rows + 1, dtype=np.int32)
    columns["submit"], columns["run"], columns["procs_requested"] = raw[0], raw[1], raw[2]
    columns["procs_allocated"] = raw[2]
    if len(raw) > FIELDS_MIN:
        columns["time_requested"] = raw[3]
    if len(raw) > USER_FIELD:
        columns["user"] = raw[4]
    return columns


_SHAPES = (
    f"{len(FIELDS)} numbers (SWF) or {FIELDS_MIN} to {FIELDS_MAX} columns, separated by blanks"
)
LINE_BYTES_MAX = 64 << 20
NUMBER_MAX = 2.0**53

_BLOCK_ROWS = 16384
_MARKS = 4096
_SAMPLE_ROWS = 10
_BYTES_OF_A_ROW = 50
_KEPT_BAD_LINES = 100_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_log(
    path: str,
    *,
    lenient: bool = False,
    progress: Callable[[int], None] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Log:
    """Return the log in a plain, gzip or xz file (``-``: standard input), rows by (submit, job,
    line).

    ``lenient`` skips and counts rows that cannot be read, which otherwise raise InputError;
    ``progress`` is called with the stored bytes read so far.
    """
    source = LogFile(path)
    blocks = _line_blocks(source, chunk_bytes, progress)
    head, first_rows = _first_rows(blocks)
    rows = _RowReader(source.title, row_shape(first_rows), lenient)
    for block in chain([head] if head else [], blocks):
        rows.feed(block)
    if source.stored_bytes == 0:
        raise InputError(f"{source.title}: the file is empty; a log has one job per line")
    raw, line = rows.finish()
    columns = swf_columns(raw) if rows.shape.is_plain_text else dict(zip(FIELDS, raw, strict=True))
    header = parse_header(comment.decode("utf-8", "surrogateescape") for comment in rows.comments)
    log = Log(
        path,
        source.sha256,
        header,
        columns,
        line,
        notes=rows.notes(),
        bad_rows=rows.bad_rows,
        bad_lines=tuple(rows.bad_lines),
        bad_reasons=tuple(rows.bad_reasons),
        user_names={number: word for word, number in rows.words.items()},
    )
    return in_order(without_parts(log))


def _line_blocks(
    source: LogFile, chunk_bytes: int, progress: Callable[[int], None] | None
) -> Iterator[bytearray]:
    """Yield the content of the source cut at line ends; the last line gets a newline if it has
    none."""
    pending: list[bytes | memoryview] = []
    pending_bytes = 0
    is_first = True
    for chunk in source.chunks(chunk_bytes):
        if progress is not None:
            progress(source.stored_bytes)
        cut = chunk.rfind(b"\n") + 1
        if cut == 0:
            pending.append(chunk)
            pending_bytes += len(chunk)
            if pending_bytes > LINE_BYTES_MAX:
                raise InputError(
                    f"{source.title}: contains a line of more than 64 MiB; this is not a workload "
                    "log"
                )
            continue
        block = bytearray().join([*pending, memoryview(chunk)[:cut]])
        yield block.removeprefix(_BYTE_ORDER_MARK) if is_first else block
        is_first = False
        pending = [memoryview(chunk)[cut:]]
        pending_bytes = len(chunk) - cut
    if pending_bytes:
        block = bytearray().join([*pending, b"\n"])
        yield block.removeprefix(_BYTE_ORDER_MARK) if is_first else block


def _first_rows(blocks: Iterator[bytearray]) -> tuple[bytearray, list[bytes]]:
    """Take blocks until they contain a few rows of data; return the blocks and these rows."""
    head = bytearray()
    rows: list[bytes] = []
    for block in blocks:
        position = len(head)
        head += block
        while position < len(head) and len(rows) < _SAMPLE_ROWS:
            end = head.index(b"\n", position)
            row = bytes(head[position:end]).strip()
            if row and row[:1] not in (b";", b"#"):
                rows.append(row)
            position = end + 1
        if len(rows) >= _SAMPLE_ROWS:
            break
    return head, rows


def _joined(pieces: list[Column]) -> Column:
    """Return a column of its pieces, each in its smallest exact type."""
    if all(piece.strides == (0,) for piece in pieces):
        return absent(sum(len(piece) for piece in pieces))
    return np.concatenate(pieces)


class _RowReader:
    """Passes blocks of lines to the kernel and resolves what the kernel marked."""

    def __init__(self, title: str, shape: RowShape, lenient: bool) -> None:
        # Numba is slow to import: only when a log is read.
        from qbatch.workloads.kernels import swf_parse

        self._kernel = swf_parse
        self._title = title
        self._lenient = lenient
        self.shape = shape
        self.comments: list[bytes] = []
        self.words: dict[str, int] = {}
        self.bad_rows = 0
        self.bad_lines: list[int] = []
        self.bad_reasons: list[str] = []
        self._first_bad = b""
        self._line = 0
        self._columns: list[list[Column]] = [[] for _ in range(shape.fields)]
        self._line_pieces: list[Column] = []
        self._block = swf_parse.new_row_block(shape.fields, _BLOCK_ROWS, _MARKS)

    def feed(self, data: bytearray) -> None:
        """Read the rows of whole lines; raise InputError at a bad row unless lenient."""
        from qbatch.planning.kernels.entries import little

        text = np.frombuffer(data, dtype=np.uint8)
        position = 0
        while position < text.size:
            parse_rows = little(self._kernel.parse_rows, (text.size - position) // _BYTES_OF_A_ROW)
            position, self._line, rows, marked = parse_rows(
                text, position, self._line, self.shape.word_column, self._block
            )
            dropped = self._settle(data, self._block.marks[:marked].tolist())
            self._keep(rows, dropped)

    def finish(self) -> tuple[list[Column], Column]:
        """Return the columns and the line numbers; raise InputError if there is no row."""
        if not self._line_pieces:
            skipped = counted(self.bad_rows, "unreadable row", "unreadable rows")
            found = counted(self._line, "line", "lines")
            first = (
                f", {skipped}, the first on line {self.bad_lines[0]}: {self.bad_reasons[0]}: "
                f"{_shown(self._first_bad)}"
                if self.bad_rows
                else ""
            )
            raise InputError(
                f"{self._title}: no job in it ({found}, {len(self.comments)} of them "
                f"comments{first}); a log has one job per line, with {_SHAPES}"
            )
        line = np.concatenate(self._line_pieces)
        self._line_pieces = []
        # The pieces of a column go before the next one is joined, which saves memory.
        return [_joined(self._columns.pop(0)) for _ in range(self.shape.fields)], line

    def notes(self) -> list[str]:
        """Return notes for the user about how the rows were read."""
        notes = []
        if self.shape.is_plain_text:
            notes.append(
                "plain text log: submit run procs [estimate [user]]; jobs are numbered by line"
            )
        if self.bad_rows:
            lines = shown_lines(self.bad_lines, self.bad_rows)
            notes.append(
                f"{counted(self.bad_rows, 'unreadable row was', 'unreadable rows were')} skipped "
                f"({lines})"
            )
        return notes

    def _keep(self, rows: int, dropped: set[int]) -> None:
        block, lines = self._block.values[:, :rows], self._block.lines[:rows].copy()
        if dropped:
            keep = np.ones(rows, dtype=np.bool_)
            keep[list(dropped)] = False
            block, lines = block[:, keep], lines[keep]
        if len(lines):
            self._line_pieces.append(lines)
            for pieces, values in zip(self._columns, block, strict=True):
                piece = compact(values)
                pieces.append(piece.copy() if np.may_share_memory(piece, values) else piece)

    def _settle(self, data: bytearray, marks: list[list[int]]) -> set[int]:
        """Read what the kernel marked, in order of the file; return the rows to drop."""
        dropped: set[int] = set()
        for column, row, start, end, line in marks:
            token = data[start:end]
            if column == self._kernel.COMMENT:
                self.comments.append(bytes(token).rstrip(b"\r"))
            elif column == self._kernel.MISCOUNT:
                if any(byte < 32 and byte not in b"\t\r\v\f" for byte in token[:1000]):
                    self._reject(line, "binary data where a row of numbers should be")
                else:
                    found = counted(len(token.split()), "field", "fields")
                    self._reject(line, f"{found} where {self.shape.title} has {self.shape.fields}")
            elif row not in dropped:
                value = self._number(bytes(token), column)
                if isinstance(value, str):
                    self._reject(line, value)
                    dropped.add(row)
                else:
                    self._block.values[column, row] = value
            if self.bad_rows and not self._first_bad:
                begin, end = data.rfind(b"\n", 0, start) + 1, data.index(b"\n", start)
                self._first_bad = bytes(data[begin:end][:200]).strip()
        return dropped

    def _number(self, token: bytes, column: int) -> float | str:
        """Return the value of an unusual token, or the error in it."""
        if column == self.shape.word_column:
            return self.words.setdefault(token.decode("utf-8", "replace"), len(self.words) + 1)
        if NUMBER.match(token):
            value = float(token)
            # 2**53 + 1 would round to 2**53: at the edge, compare the text itself.
            if abs(value) < NUMBER_MAX or (
                abs(value) == NUMBER_MAX and Decimal(token.decode()) == Decimal(value)
            ):
                return value
            return (
                f"{self._field(column)} is {_shown(token)}, which is beyond what a log can "
                "hold "
                "(2**53)"
            )
        if self.shape.is_plain_text and column == USER_FIELD:
            return (
                f"user is {_shown(token)}, but the first row has a number there; use one kind "
                "throughout"
            )
        return f"{self._field(column)} is {_shown(token)}, which is not a number"

    def _field(self, column: int) -> str:
        names: Any = (
            ("submit", "run", "procs", "estimate", "user") if self.shape.is_plain_text else FIELDS
        )
        return f"field {column + 1} ({names[column]})"

    def _reject(self, line: int, reason: str) -> None:
        if not self._lenient:
            raise InputError(
                f"{self._title}, line {line}: {reason}; use --lenient to skip such rows"
            )
        self.bad_rows += 1
        if len(self.bad_lines) < _KEPT_BAD_LINES:
            self.bad_lines.append(line)
            self.bad_reasons.append(reason)


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
