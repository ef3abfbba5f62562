"""The tables of jobs that are read: CSV, JSON and Parquet files, and data frames in memory.

The form of a file is found in its first bytes, and so is its compression.  A table is read in
batches of at most ``BATCH_ROWS`` rows, and of each only the columns that a map takes.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from qbatch.distribution import install_command
from qbatch.model.errors import InputError, UsageError
from qbatch.workloads.accounting.record import ImportCounts
from qbatch.workloads.log import Column
from qbatch.workloads.source import STANDARD_INPUT, LogFile
from qbatch.workloads.tables.cells import Cells
from qbatch.workloads.tables.table_map import ATTEMPTS, TableMap

BATCH_ROWS = 4096
RECORD_LETTERS_MAX = 16 << 20
"""The longest record of a JSON array, in letters."""

_PARQUET = b"PAR1"
_WIDE_TEXTS = (b"\xff\xfe", b"\xfe\xff")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_READ_BYTES = 1 << 20

Moved = Callable[[int, int | None], None] | None
"""Called with how many bytes of a file are read, and of how many, if that is known."""


class Batch(NamedTuple):
    """Rows of a table: its name, the line of each row (or its number, from 1), and the cells of
    each column."""

    table: str
    lines: Sequence[int]
    columns: dict[str, Cells]

    def place(self, row: int) -> str:
        """Return the place of a row, as ``file:line``."""
        return f"{self.table}:{self.lines[row]}"


class Table(NamedTuple):
    """A table that is open: its name, its columns, and its batches with some of them.

    Batches can be read once.
    """

    name: str
    columns: list[str]
    batches: Callable[[Sequence[str]], Iterator[Batch]]


def open_table(path: str, table_map: TableMap, counts: ImportCounts, moved: Moved = None) -> Table:
    """Open a file; rows that cannot be used are counted.

    Raises:
        InputError: it cannot be read, is empty, or is no table.
        UsageError: it is Parquet, and pyarrow is missing.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    source = LogFile(path)
    chunks = source.chunks(_READ_BYTES)
    first = next(chunks, b"").removeprefix(_BYTE_ORDER_MARK)
    if first.startswith(_PARQUET):
        chunks.close()  # type: ignore[attr-defined]
        return _parquet(path, name, moved)
    if not first.strip():
        raise InputError(f"{name}: the table is empty; name a file with rows")
    if first.startswith(_WIDE_TEXTS) or b"\0" in first[:1000]:
        raise InputError(
            f"{name}: it is not a text in UTF-8; convert it first: iconv -f UTF-16 -t UTF-8"
        )

    def text() -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        for chunk in chain((first,), chunks):
            if moved is not None:
                moved(source.stored_bytes, None)
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)

    start = first.lstrip()[:1]
    if start == b"[":
        return _json(name, _array_records(name, text()), table_map, counts)
    if start == b"{":
        return _json(name, _line_records(name, text(), counts), table_map, counts)
    return _csv(name, text(), table_map, counts)


def _lines(text: Iterator[str]) -> Iterator[str]:
    """Yield lines with their ends."""
    pending = ""
    for part in text:
        lines = (pending + part).split("\n")
        pending = lines.pop()
        for line in lines:
            yield line + "\n"
    if pending:
        yield pending


def _csv(name: str, text: Iterator[str], table_map: TableMap, counts: ImportCounts) -> Table:
    reader = csv.reader(_lines(text))

    def rows(count: int) -> tuple[Sequence[int], list[list[str]]]:
        """Return the next rows, each with the number of its last line; none at the end."""
        before = reader.line_num
        try:
            found = list(islice(reader, count))
        except csv.Error as error:
            raise InputError(
                f"{name}: line {reader.line_num + 1}: is not CSV ({error}); check the quotes of "
                "the lines before it"
            ) from error
        if reader.line_num - before == len(found):
            return range(before + 1, reader.line_num + 1), found
        # A cell holds line ends.
        each = (1 + sum(cell.count("\n") for cell in row) for row in found)
        return list(accumulate(each, initial=before))[1:], found

    first: list[str] = []
    while not first:
        lines, found = rows(1)
        first = found[0]
    header = [cell.strip() for cell in first]
    known = {each for column in table_map.columns.values() for each in column.names}
    has_header = not table_map.header or not known.isdisjoint(header)
    columns = header if has_header else list(table_map.header)

    def batches(wanted: Sequence[str]) -> Iterator[Batch]:
        places = [columns.index(each) for each in wanted]
        part = (lines, [first]) if not has_header else rows(BATCH_ROWS)
        while part[1]:
            numbers, whole = part
            if set(map(len, whole)) != {len(columns)}:
                numbers, whole = _whole_rows(name, part, len(columns), counts)
            by_place = list(zip(*whole, strict=True)) or [()] * len(columns)
            cells = [list(by_place[place]) for place in places]
            yield Batch(name, numbers, dict(zip(wanted, cells, strict=True)))
            part = rows(BATCH_ROWS)

    return Table(name, columns, batches)


def _whole_rows(
    name: str, part: tuple[Sequence[int], list[list[str]]], length: int, counts: ImportCounts
) -> tuple[Sequence[int], list[list[str]]]:
    """Return the rows with a cell for each column, and their lines; others are counted, but for
    empty lines."""
    lines, whole = [], []
    for line, row in zip(*part, strict=True):
        if len(row) == length:
            lines.append(line)
            whole.append(row)
        elif row:
            counts.lines += 1
            counts.unusable.add("not as many cells as the header has columns", f"{name}:{line}")
    return lines, whole


Records = Iterator[tuple[int, dict[str, Any]]]


def _json(name: str, records: Records, table_map: TableMap, counts: ImportCounts) -> Table:
    if table_map.layout == ATTEMPTS:
        records = _last_attempts(name, records, counts)
    begin = list(islice(records, BATCH_ROWS))
    columns = list(dict.fromkeys(key for _, record in begin for key in record))

    def batches(wanted: Sequence[str]) -> Iterator[Batch]:
        rest = chain(begin, records)
        while part := list(islice(rest, BATCH_ROWS)):
            begin.clear()
            cells: dict[str, Cells] = {
                column: [record.get(column) for _, record in part] for column in wanted
            }
            yield Batch(name, [line for line, _ in part], cells)

    return Table(name, columns, batches)


def _line_records(name: str, text: Iterator[str], counts: ImportCounts) -> Records:
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            continue
        try:
            yield number, decoder.decode(line.encode(errors="replace"))
        except (msgspec.DecodeError, RecursionError):
            counts.lines += 1
            counts.unusable.add("not a record of JSON", f"{name}:{number}")


def _array_records(name: str, text: Iterator[str]) -> Records:
    """Yield the records of an array, numbered from 1; each is decoded when its text is there."""
    decoder, buffer, number, is_last = json.JSONDecoder(), next(text, "").lstrip()[1:], 0, False

    def broken(reason: str) -> InputError:
        return InputError(
            f"{name}: record {number + 1} of the JSON array {reason}; fetch the file again"
        )

    place = 0
    while True:
        while buffer[place : place + 1] in (" ", "\n", "\r", "\t", ","):
            place += 1
        if place == len(buffer):
            if is_last:
                raise broken("is missing: the array does not end")
            part = next(text, None)
            is_last, buffer, place = part is None, part or "", 0
            continue
        if buffer[place] == "]":
            return
        try:
            record, end = decoder.raw_decode(buffer, place)
        except RecursionError:
            raise broken("is nested too deep") from None
        except ValueError:
            part = next(text, None)
            if part is None or len(buffer) - place > RECORD_LETTERS_MAX:
                raise broken("cannot be read") from None
            buffer, place = buffer[place:] + part, 0
            continue
        if not isinstance(record, dict):
            raise broken("is not an object")
        number, place = number + 1, end
        yield number, record


def _last_attempts(name: str, records: Records, counts: ImportCounts) -> Records:
    """Yield jobs of Philly's layout as flat records: times, hosts and GPUs of the last attempt."""
    for line, record in records:
        attempts = _objects(record.pop("attempts", None))
        if len(attempts) > 1:
            counts.ignored.add(
                "earlier attempts of a job, of which the work was lost",
                f"{name}:{line}",
                len(attempts) - 1,
            )
        last = attempts[-1] if attempts else {}
        detail = _objects(last.get("detail"))
        gpus = [each.get("gpus") for each in detail]
        record["start_time"], record["end_time"] = last.get("start_time"), last.get("end_time")
        record["hosts"] = [each.get("ip") for each in detail]
        record["gpus"] = sum(len(each) for each in gpus if isinstance(each, list)) or None
        yield line, record


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _parquet(path: str, name: str, moved: Moved) -> Table:
    if path == STANDARD_INPUT:
        raise UsageError("standard input: Parquet cannot be read from a pipe; name the file")
    if find_spec("pyarrow") is None:
        raise UsageError(f"{path}: Parquet needs pyarrow: {install_command('report')}")
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(path)
        columns = list(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise _not_parquet(path, error) from error
    size, rows = os.path.getsize(path), max(file.metadata.num_rows, 1)

    def batches(wanted: Sequence[str]) -> Iterator[Batch]:
        first = 1
        try:
            for part in file.iter_batches(BATCH_ROWS, columns=list(dict.fromkeys(wanted))):
                cells = {
                    each: _of_arrow(part.column(place))
                    for place, each in enumerate(part.schema.names)
                    if each in wanted
                }
                yield Batch(name, range(first, first + part.num_rows), cells)
                first += part.num_rows
                if moved is not None:
                    moved(size * first // rows, size)
        except (pa.ArrowException, OSError) as error:
            raise _not_parquet(path, error) from error
        finally:
            file.close()

    return Table(name, columns, batches)


def _not_parquet(path: str, error: Exception) -> InputError:
    why = str(error).splitlines()[0].rstrip(".") if str(error) else "it is damaged"
    return InputError(f"{path}: cannot be read as Parquet ({why}); fetch it again")


def _of_arrow(array: Any) -> Cells:
    """Return the cells of an Arrow array: numbers and times as NumPy arrays, the others as a
    list."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_timestamp(kind):
        stamps: Column = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        if array.null_count:
            missing = np.asarray(array.is_null())
            stamps = np.where(missing, np.iinfo(np.int64).min, np.nan_to_num(stamps))
        return _local_or_aware(stamps.astype(np.int64).view(f"M8[{kind.unit}]"), kind.tz)
    if pa.types.is_duration(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers: Column = array.to_numpy(zero_copy_only=False)
        return numbers
    listed: list[Any] = array.to_pylist()
    return listed


def _local_or_aware(stamps: Column, zone: Any) -> Column:
    """Return local times as they are, and those of a known zone (in UTC) as spans since 1970."""
    return stamps if zone is None else stamps - np.datetime64(0, "s")


def table_of_frame(frame: Any, name: str) -> Table:
    """Return the table of a data frame of pandas or polars, an Arrow table, or a dictionary of
    columns.

    Raises:
        InputError: it is none of them, or its columns differ in length.
    """
    listed = next(
        (getattr(frame, each) for each in ("column_names", "columns") if hasattr(frame, each)),
        frame,
    )
    try:
        columns = [str(each) for each in listed]
        whole = {str(each): _of_frame(frame[each]) for each in dict.fromkeys(listed)}
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise InputError(
            f"{name}: a {type(frame).__name__} is no table; give a data frame of pandas or "
            "polars, an Arrow table, or a dictionary of columns"
        ) from error
    lengths = {len(cells) for cells in whole.values()}
    if len(lengths) > 1:
        raise InputError(f"{name}: its columns have {len(lengths)} different lengths")
    rows = lengths.pop() if lengths else 0

    def batches(wanted: Sequence[str]) -> Iterator[Batch]:
        for first in range(0, rows, BATCH_ROWS):
            end = min(first + BATCH_ROWS, rows)
            cells = {each: whole[each][first:end] for each in wanted}
            yield Batch(name, range(first + 1, end + 1), cells)

    return Table(name, columns, batches)


def _of_frame(column: Any) -> Cells:
    if hasattr(column, "combine_chunks"):  # Arrow
        import pyarrow as pa

        whole = column.combine_chunks()
        return _of_arrow(pa.concat_arrays(whole.chunks) if hasattr(whole, "chunks") else whole)
    if isinstance(column, list | tuple):
        return list(column)
    if hasattr(column, "is_null"):  # polars
        zone = getattr(column.dtype, "time_zone", None)
        if column.dtype.is_temporal() or column.dtype.is_numeric():
            cells: Column = column.to_numpy()
            return _local_or_aware(cells, zone) if cells.dtype.kind == "M" else _plain(cells)
        listed: list[Any] = column.to_list()
        return listed
    if hasattr(column, "isna"):  # pandas
        zone = getattr(column.dtype, "tz", None)
        if zone is not None:
            return _local_or_aware(
                column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), zone
            )
        if column.dtype.kind not in "iufMm":
            return _plain(column.to_numpy(dtype=object, na_value=None))
        if column.isna().any() and column.dtype.kind in "iu":
            return _plain(column.to_numpy(dtype=float, na_value=np.nan))
        return _plain(column.to_numpy())
    return _plain(np.asarray(column))


def _plain(cells: Column) -> Cells:
    if cells.ndim != 1:
        raise TypeError("a column has one dimension")
    if cells.dtype.kind in "iufMm":
        return cells
    listed: list[Any] = cells.tolist()
    return listed
