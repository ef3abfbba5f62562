"""Named columns of a CSV or Parquet file, possibly of another program, read a block of rows at a
time.

This module reads numbers and words and reports the place of errors.  :mod:`qbatch.results.job_rows`
defines the meaning of the columns.
"""

from __future__ import annotations

import csv
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from qbatch.distribution import install_command
from qbatch.model.errors import InputError, UsageError
from qbatch.model.record import BoolArray, Int64Array

BLOCK_ROWS = 50_000
"""Rows per block of reading and writing."""

_LARGEST = 2**63 - 1
# Larger blocks are slower: the memory of so many small lists is not in the processor's cache.
_CSV_ROWS = 2_000
_SAFE_DIGITS = 12
_LINE_END = re.compile(r"\r\n|\r|\n")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


class Block(ABC):
    """Some rows of a table, with every column that the file's header names."""

    def __init__(self, path: str, names: Sequence[str]) -> None:
        self.path = path
        self.names = names

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Return the place of a row in the file, for messages."""

    @abstractmethod
    def scaled(self, name: str, scale: int, *, may_lack: bool) -> Int64Array:
        """Return a column of numbers that are not negative, times ``scale``, rounded to whole
        numbers.

        With ``may_lack``, an empty cell and -1 mean absent, and become -1.
        """

    @abstractmethod
    def coded(self, name: str) -> tuple[list[str], Int64Array]:
        """Return the distinct words of a column in order of appearance, and each row's index among
        them."""

    def refuse(self, row: int, name: str, reason: str) -> InputError:
        """Return the error for a value of the block."""
        return InputError(f"{self.path}: {self.place(row)}, column {name}: {reason}")

    def check(self, name: str, is_wrong: BoolArray, reason: str) -> None:
        """Refuse the first wrong row."""
        if is_wrong.any():
            raise self.refuse(int(np.argmax(is_wrong)), name, reason)


class CsvBlock(Block):
    """Rows of a CSV file as texts."""

    def __init__(
        self, path: str, names: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[int]
    ) -> None:
        super().__init__(path, names)
        self.lines = lines
        columns: list[tuple[str, ...]] = (
            list(zip(*rows, strict=True)) if rows else [()] * len(names)
        )
        self._texts = dict(zip(names, columns, strict=True))

    def __len__(self) -> int:
        return len(self.lines)

    def place(self, row: int) -> str:
        """Return the line."""
        return f"line {self.lines[row]}"

    def scaled(self, name: str, scale: int, *, may_lack: bool) -> Int64Array:
        """Return the numbers of a column; plain digits, the usual case, are converted fast."""
        texts = self._texts[name]
        if may_lack and "" in texts:
            is_given = np.fromiter(map(bool, texts), bool, len(texts))
            numbers = np.full(len(texts), -1, np.int64)
            given = [text for text in texts if text]
            plain = _plain_numbers(given, scale)
            if plain is not None:
                numbers[is_given] = plain
                return numbers
        else:
            plain = _plain_numbers(texts, scale)
            if plain is not None:
                return plain
            numbers = np.empty(len(texts), np.int64)
        for row, text in enumerate(texts):
            try:
                numbers[row] = _scaled(text.strip(), scale, may_lack)
            except ValueError as error:
                raise self.refuse(row, name, str(error)) from None
        return numbers

    def coded(self, name: str) -> tuple[list[str], Int64Array]:
        """Return the words of a column without blanks around them."""
        texts = self._texts[name]
        codes: dict[str, int] = {}
        for text in dict.fromkeys(texts):
            codes.setdefault(text.strip(), len(codes))
        if len(codes) == 1:
            return list(codes), np.zeros(len(texts), np.int64)
        return list(codes), np.fromiter(
            (codes[text.strip()] for text in texts), np.int64, len(texts)
        )


def _plain_numbers(texts: Sequence[str], scale: int) -> Int64Array | None:
    """Return numbers times ``scale`` if all are plain and short enough to be exact; else None."""
    if not texts:
        return np.empty(0, np.int64)
    together = "".join(texts)
    digits = together.replace(".", "")
    if not (digits.isascii() and digits.isdigit()) or "" in texts:
        return None
    if len(digits) == len(together):
        whole = max(map(len, texts)) <= _SAFE_DIGITS
        return np.fromiter(map(int, texts), np.int64, len(texts)) * scale if whole else None
    try:
        values = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return None
    if scale == 1 or not (values < 2**32).all():
        return None
    seconds = np.floor(values)
    return seconds.astype(np.int64) * scale + np.rint((values - seconds) * scale).astype(np.int64)


def _scaled(text: str, scale: int, may_lack: bool) -> int:
    """Return one number times ``scale``; raise ValueError with the reason if it cannot be used."""
    if may_lack and text in ("", "-1", "-1.0"):
        return -1
    if not text:
        raise ValueError("is empty")
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{_shown(text)} is not a number")
    number = Decimal(text) * scale
    if number < 0:
        raise ValueError(f"{_shown(text)} is negative")
    if number >= _LARGEST:
        raise ValueError(f"{_shown(text)} is too large")
    if scale == 1 and number != int(number):
        raise ValueError(f"{_shown(text)} is not a whole number")
    return round(number)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


class ParquetBlock(Block):
    """Rows of a Parquet file as Arrow arrays."""

    def __init__(self, path: str, names: Sequence[str], batch: Any, first: int) -> None:
        super().__init__(path, names)
        self._batch = batch
        self._first = first

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def place(self, row: int) -> str:
        """Return the row, counted from 1."""
        return f"row {self._first + row + 1}"

    def scaled(self, name: str, scale: int, *, may_lack: bool) -> Int64Array:
        """Return the numbers of a column of integers, floats or decimals; NaN means absent if that
        is allowed."""
        import pyarrow as pa

        column = self._batch.column(name)
        is_null = np.asarray(
            column.is_null(nan_is_null=may_lack).to_numpy(zero_copy_only=False), bool
        )
        if not may_lack:
            self.check(name, is_null, "is empty")
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(self), -1, np.int64)
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        ):
            raise InputError(f"{self.path}: column {name}: holds {kind} values, not numbers")
        if pa.types.is_decimal(kind):
            column = column.cast(pa.float64())
        values = np.where(is_null, -1, column.fill_null(0).to_numpy(zero_copy_only=False))
        is_absent = values == -1 if may_lack else np.zeros(len(self), bool)
        if values.dtype.kind == "f":
            self.check(name, np.isnan(values), "is NaN")
        self.check(name, (values < 0) & ~is_absent, "is negative")
        self.check(name, values >= _LARGEST // scale, "is too large")
        whole = np.floor(values)
        part = values - whole
        if scale == 1:
            self.check(name, part != 0, "is not a whole number")
        numbers = whole.astype(np.int64) * scale + np.rint(part * scale).astype(np.int64)
        return np.where(is_absent, np.int64(-1), numbers)

    def coded(self, name: str) -> tuple[list[str], Int64Array]:
        """Return the words of a column, whatever its type; null is the empty word."""
        import pyarrow as pa

        column = self._batch.column(name)
        try:
            words = column.cast(pa.string()).fill_null("").dictionary_encode()
            return words.dictionary.to_pylist(), words.indices.to_numpy(
                zero_copy_only=False
            ).astype(np.int64)
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path}: column {name}: is not UTF-8 text") from error
        except pa.ArrowException as error:
            raise InputError(
                f"{self.path}: column {name}: holds {column.type} values, not words"
            ) from error


def read_blocks(path: str | Path, wanted: Sequence[str]) -> Iterator[Block]:
    """Read a CSV or Parquet file block by block; at least one block, which may hold no rows.

    Raises:
        InputError: it cannot be read; the message names the file, the line and the reason.
    """
    try:
        with open(path, "rb") as file:
            magic = file.read(4)
        if not magic:
            raise InputError(f"{path}: is empty; it should be job rows, as CSV or Parquet")
        yield from (_parquet_blocks if magic == b"PAR1" else _csv_blocks)(str(path), wanted)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error


def _csv_blocks(path: str, wanted: Sequence[str]) -> Iterator[Block]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            names = [name.strip() for name in next(reader, [])]
            _check_names(path, names)
            if reader.line_num and not any(names):
                raise InputError(f"{path}: line 1: names no columns")
            is_empty = True
            before = reader.line_num
            while rows := list(islice(reader, _CSV_ROWS)):
                lines: Sequence[int] = range(before + 1, before + 1 + len(rows))
                before = reader.line_num
                if before != lines[-1] or any(len(row) != len(names) for row in rows):
                    rows, lines = _checked(path, names, rows, lines[0])
                if rows:
                    yield CsvBlock(path, names, rows, lines)
                    is_empty = False
            if is_empty:
                yield CsvBlock(path, names, (), ())
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: after line {reader.line_num}: is not UTF-8 text") from error
        except csv.Error as error:
            raise InputError(f"{path}: line {reader.line_num}: is not CSV ({error})") from error


def _checked(
    path: str, names: Sequence[str], rows: Sequence[list[str]], line: int
) -> tuple[list[list[str]], list[int]]:
    """Return the rows that are not empty lines, and the line where each begins."""
    kept, lines = [], []
    for row in rows:
        if row:
            if len(row) != len(names):
                raise InputError(
                    f"{path}: line {line}: has {len(row)} fields, but the header names {len(names)}"
                )
            kept.append(row)
            lines.append(line)
        line += 1 + sum(len(_LINE_END.findall(cell)) for cell in row)
    return kept, lines


def _parquet_blocks(path: str, wanted: Sequence[str]) -> Iterator[Block]:
    pa = arrow(f"{path} is Parquet: reading it")
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names, first = file.schema_arrow.names, 0
            _check_names(path, names)
            known = [name for name in wanted if name in names]
            for batch in file.iter_batches(batch_size=BLOCK_ROWS, columns=known):
                yield ParquetBlock(path, names, batch, first)
                first += batch.num_rows
            if first == 0:
                fields = [file.schema_arrow.field(name) for name in known]
                batch = pa.record_batch(
                    [pa.array([], field.type) for field in fields], schema=pa.schema(fields)
                )
                yield ParquetBlock(path, names, batch, 0)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).strip().partition("\n")[0][:120]
        raise InputError(f"{path}: is not a whole Parquet file ({reason})") from error


def _check_names(path: str, names: Sequence[str]) -> None:
    twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: line 1: the header names column {_shown(twice[0])} twice")


def arrow(what: str) -> Any:
    """Return pyarrow.

    Raises:
        UsageError: it is not installed; the message says that ``what`` needs it.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(f"{what} needs pyarrow: {install_command('report')}") from error
    return pa
