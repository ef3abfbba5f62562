"""The cells of a column as numbers, instants, order of jobs or words.

Cells are a list of anything (texts of CSV, values of JSON) or a NumPy array of numbers or times.
``datetime64`` is a local time of the table.  ``timedelta64`` is a span, and in a column of instants
the time since 1970 (UTC).  A cell that is empty is missing.  One that cannot be read is *bad*: it counts as
missing, and its reason is kept.  Whole columns are converted at once where their form allows it.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from qbatch.model.machine import expand_names, parse_memory
from qbatch.workloads.accounting.record import ABSENT, TIME_MAX
from qbatch.workloads.accounting.times import SPAN_MAX, WallClock, slurm_span
from qbatch.workloads.log import Column

Cells = list[Any] | Column

MISSING = frozenset(("", "nan", "null", "none", "n/a", "na", "nat", "-", "<na>"))
"""Texts of a cell without a value, in lower case."""

COUNT_LIMIT, MEMORY_LIMIT, NUMBER_LIMIT = 2.0**31 - 1, 2.0**60, 2.0**53
"""The greatest number of a count, of bytes and of anything else."""

_ENDLESS = frozenset(("unlimited", "infinite", "partition_limit"))
_NUMBERS_OF_JOB = re.compile(r"\d+")
_STAMP_LENGTHS = frozenset((0, 19))
_HOSTS = re.compile(r"[^\s,;+\[]+(?:\[[^\]]*\][^\s,;+\[]*)*")


class Numbers(NamedTuple):
    """The values of cells, NaN where there is none, and the reasons of bad cells by index."""

    values: Column
    bad: dict[int, str]


def numbers_of(
    cells: Cells,
    *,
    scale: float = 1.0,
    most: float = NUMBER_LIMIT,
    of_text: Callable[[str], float] | None = None,
) -> Numbers:
    """Return the numbers of cells, times ``scale``; they are from 0 to ``most``.

    Args:
        of_text: the number of a text that is none, not scaled; NaN for a missing one; a
            ``ValueError`` for a bad one.
    """
    bad: dict[int, str] = {}
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "m":
        values = _seconds(cells)
    elif isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf":
        values = cells.astype(np.float64) * scale
    else:
        quick = _quick_numbers(_listed(cells))
        if quick is None:
            values = _each(_listed(cells), lambda cell: _number(cell, scale, of_text), bad)
        else:
            with np.errstate(over="ignore"):  # too large either way
                values = quick * scale
    return _limited(values, bad, most)


def spans_of(cells: Cells, scale: float) -> Numbers:
    """Return spans in seconds: numbers times ``scale``, or texts such as ``1-12:00:00``."""

    def of_text(text: str) -> float:
        if text.casefold() in _ENDLESS:
            return math.nan
        span = slurm_span(text)
        if span == ABSENT:
            raise ValueError("is not a span of time")
        return span

    return numbers_of(cells, scale=scale, most=SPAN_MAX, of_text=of_text)


def memory_of(cells: Cells, scale: float) -> Numbers:
    """Return bytes: numbers times ``scale``, or texts such as ``64GB``."""

    def of_text(text: str) -> float:
        try:
            return float(parse_memory(text))
        except ValueError:
            raise ValueError("is not a memory size") from None

    return numbers_of(cells, scale=scale, most=MEMORY_LIMIT, of_text=of_text)


def instants_of(cells: Cells, scale: float | None, clock: WallClock) -> Numbers:
    """Return instants in whole seconds since 1970, parts of a second cut off.

    Args:
        scale: seconds of the unit of a number; None: no number is an instant.
        clock: the local time of dates without a zone.
    """
    bad: dict[int, str] = {}
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        values = _of_local(cells, clock)
    elif isinstance(cells, np.ndarray) and cells.dtype.kind == "m":
        values = _seconds(cells)
    elif isinstance(cells, np.ndarray) and cells.dtype.kind in "iuf" and scale is not None:
        values = cells.astype(np.float64) * scale
    else:
        listed = _listed(cells)
        quick = _quick_numbers(listed) if scale is not None else None
        if quick is not None and scale is not None:
            with np.errstate(over="ignore"):
                values = quick * scale
        else:
            stamps = _quick_stamps(listed)
            if stamps is None:
                values = _each(listed, lambda cell: _instant(cell, scale, clock), bad)
            else:
                values = _of_local(stamps, clock)
    limited = _limited(values, bad, TIME_MAX)
    return Numbers(np.floor(limited.values), limited.bad)


def job_order(cells: Cells) -> tuple[Column, Column]:
    """Return the first two numbers in the name of each job, -1 where it has fewer."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iu":
        return cells.astype(np.int64), np.full(len(cells), -1)
    listed = _listed(cells)
    try:
        first = np.fromiter(map(int, listed), np.int64, len(listed))
        return first, np.full(len(listed), -1)
    except (TypeError, ValueError, OverflowError):
        pairs = np.full((len(listed), 2), -1, np.int64)
        for row, cell in enumerate(listed):
            for place, digits in enumerate(_NUMBERS_OF_JOB.findall(text_of(cell))[:2]):
                pairs[row, place] = int(digits[-18:])
        return pairs[:, 0], pairs[:, 1]


def hosts_of(cells: Cells) -> Numbers:
    """Return how many hosts each cell lists: a list, or names with blanks, commas or plus signs
    between them, also as ``n[1-4]``."""

    def count(cell: Any) -> float:
        if isinstance(cell, list | tuple | np.ndarray):
            return float(len(cell)) or math.nan
        text = text_of(cell)
        if text.casefold() in MISSING:
            return math.nan
        return float(sum(len(expand_names(part)) for part in _HOSTS.findall(text))) or math.nan

    bad: dict[int, str] = {}

    def checked(cell: Any) -> float:
        try:
            return count(cell)
        except ValueError:
            raise ValueError("is not a list of hosts") from None

    return Numbers(_each(_listed(cells), checked, bad), bad)


class NumberedWords(dict[Any, int]):
    """Numbers from 1 for the words of cells, by first appearance; -1 for a missing one.

    At most ``most`` different words get a number; ``is_full`` says that some did not.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self.words: dict[str, int] = {}
        self.is_full = False

    def __missing__(self, cell: Any) -> int:
        word = text_of(cell)
        if word.casefold() in MISSING:
            return -1
        number = self.words.get(word, 0)
        if not number:
            if len(self.words) >= self._most:
                self.is_full = True
                return -1
            number = self.words[word] = len(self.words) + 1
        self[cell] = number
        return number

    def numbers(self, cells: Cells) -> Column:
        """Return the number of each cell."""
        listed = _listed(cells)
        try:
            return np.fromiter(map(self.__getitem__, listed), np.int32, len(listed))
        except TypeError:  # a list or a table cannot be a key
            words = [text_of(cell) for cell in listed]
            return np.fromiter(map(self.__getitem__, words), np.int32, len(words))


def text_of(cell: Any) -> str:
    """Return a cell as a text: without blanks around it, a whole number without a point."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or (isinstance(cell, float) and cell != cell):
        return ""
    if isinstance(cell, bytes):
        return cell.decode(errors="surrogateescape").strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _listed(cells: Cells) -> list[Any]:
    if isinstance(cells, np.ndarray):
        listed: list[Any] = cells.tolist()
        return listed
    return cells


def _quick_numbers(cells: list[Any]) -> Column | None:
    """Return the numbers of cells that all are numbers or empty; None otherwise."""
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        for cell in cells:
            if not _is_empty(cell):
                float(cell)  # a column of texts fails at its first
                break
        filled = (math.nan if _is_empty(cell) else cell for cell in cells)
        return np.fromiter(map(float, filled), np.float64, len(cells))
    except (TypeError, ValueError, OverflowError):
        return None


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell)


def _quick_stamps(cells: list[Any]) -> Column | None:
    """Return the local times of cells that all have the form ``2024-05-01T08:00:00`` or are empty;
    None otherwise."""
    try:
        if not set(map(len, cells)) <= _STAMP_LENGTHS:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of a zone in the text, which NumPy would ignore
            return np.array(cells, "datetime64[s]")
    except (TypeError, ValueError, Warning):
        return None


def _of_local(stamps: Column, clock: WallClock) -> Column:
    """Return the instants of local times, NaN for none; the earlier one of two."""
    values = np.full(len(stamps), np.nan)
    known = np.flatnonzero(~np.isnat(stamps))
    seconds = stamps[known].astype("datetime64[s]").astype(np.int64)
    hours, which = np.unique(seconds // 3600, return_inverse=True)
    keys = np.datetime_as_string(hours.astype("datetime64[h]")).tolist()
    begins = [clock.begin_of_hour(key) for key in keys]
    values[known] = np.array(begins, np.float64)[which] + seconds % 3600  # None is NaN
    for row in known[np.isnan(values[known])].tolist():
        found = clock.of_iso(str(stamps[row].astype("datetime64[s]")))
        values[row] = found[0] if found else -1  # out of range
    return values


def _seconds(spans: Column) -> Column:
    exact = spans.astype("timedelta64[us]")
    values: Column = exact.astype(np.int64).astype(np.float64) / 1e6
    values[np.isnat(exact)] = np.nan
    return values


def _each(cells: Iterable[Any], read: Callable[[Any], float], bad: dict[int, str]) -> Column:
    """Return the values of cells that are read one by one."""
    values = []
    for row, cell in enumerate(cells):
        try:
            values.append(read(cell))
        except (ValueError, TypeError, OverflowError) as error:
            values.append(math.nan)
            bad[row] = str(error) if isinstance(error, ValueError) else "is not a number"
    return np.array(values, np.float64)


def _number(cell: Any, scale: float, of_text: Callable[[str], float] | None) -> float:
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, bool):
        raise ValueError("is not a number")
    text = text_of(cell)
    if text.casefold() in MISSING:
        return math.nan
    if not isinstance(cell, str | bytes):
        return float(cell) * scale
    try:
        return float(text) * scale
    except ValueError:
        if of_text is None:
            raise ValueError("is not a number") from None
        return of_text(text)


def _instant(cell: Any, scale: float | None, clock: WallClock) -> float:
    if isinstance(cell, datetime):
        if cell != cell:  # a missing time of pandas
            return math.nan
        if cell.tzinfo is not None:
            return cell.timestamp()
    if isinstance(cell, date):
        cell = cell.isoformat()
    text = text_of(cell)
    if text.casefold() in MISSING:
        return math.nan
    if isinstance(cell, bool) or not isinstance(cell, str | bytes | int | float):
        raise ValueError("is not a time")
    if scale is not None:
        try:
            return float(text) * scale
        except ValueError:
            pass
    found = clock.of_iso(text if len(text) != 10 or "-" not in text else f"{text}T00:00:00")
    if not found or (scale is None and text.isdigit()):
        raise ValueError("is not a time")
    return found[0]


def _limited(values: Column, bad: dict[int, str], most: float) -> Numbers:
    with np.errstate(invalid="ignore"):
        outside = np.flatnonzero((values < 0) | (values > most))
    for row in outside.tolist():
        bad[row] = "is negative" if values[row] < 0 else "is too large"
        values[row] = np.nan
    return Numbers(values, bad)
