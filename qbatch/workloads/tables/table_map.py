"""What the columns of a table of jobs mean: the map, read from TOML (docs/spec/production.md 8).

A map gives each of our names (``NAMES``) a column of the table.  docs/reference/table-maps.md
describes all keys.  ``SHIPPED`` are the maps of public data that come with qbatch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from qbatch.model.errors import InputError, UsageError, suggestion
from qbatch.model.toml_text import TomlText

SHIPPED = ("alcf", "eagle", "fdata", "helios", "kestrel", "mustang", "pai2020", "philly", "pm100")
"""The names of the maps that come with qbatch."""

INSTANTS = ("submit", "eligible", "start", "end")
SPANS = ("run", "limit")
COUNTS = ("procs", "procs_allocated", "procs_per_node", "nodes", "gpus", "gpus_per_node")
MEMORY = ("memory", "memory_per_node")
WORDS = ("user", "group", "account", "partition", "qos", "reservation", "gpu_type", "name")
NAMES = (*INSTANTS, *SPANS, *COUNTS, *MEMORY, *WORDS, "job", "state", "priority", "hosts")
"""Our names: what a column may be."""

STATES = ("completed", "failed", "killed", "cancelled", "unfinished")
ANY_STATE = "*"
"""In ``[state]``: every word that is not listed."""

TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
"""Seconds of a unit in which a table has instants; ``iso`` has no number."""

SPAN_UNITS = TIME_UNITS | {"min": 60.0, "h": 3600.0}
MEMORY_UNITS = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}

ATTEMPTS = "attempts"
"""The layout of Philly: a job has a list of attempts, each with its hosts and their GPUs."""

_KEYS = ("title", "layout", "header", "notes", "columns", "times", "state", "filter", "defaults")
_COLUMN_KEYS = ("column", "scale", "unit", "optional")


class MappedColumn(msgspec.Struct, frozen=True):
    """The column of one of our names: of ``names`` the first that the table has.  A number counts
    ``scale`` times the ``unit`` (empty: that of ``[times]``, seconds, bytes or 1)."""

    names: tuple[str, ...]
    scale: float = 1.0
    unit: str = ""
    is_optional: bool = False


class Bounds(msgspec.Struct, frozen=True):
    """A half-open range of a filter: numbers, or for a column of instants also ISO times."""

    low: float | str | None
    high: float | str | None


class TableMap(msgspec.Struct, frozen=True):
    """A checked map.  ``filters``: by column of the table, the texts that count or the bounds.
    ``defaults``: by our name, the value of a cell that is empty.  ``header``: the columns of a CSV
    file without a header.  ``notes``: what a reader of the log has to know."""

    name: str
    title: str
    columns: dict[str, MappedColumn]
    time_unit: str = "s"
    timezone: str = "UTC"
    states: dict[str, str] = {}
    filters: dict[str, tuple[str, ...] | Bounds] = {}
    defaults: dict[str, float | str] = {}
    header: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    layout: str = ""

    def chosen(self, there: Sequence[str], table: str) -> dict[str, str]:
        """Return by our name the column of a table with these columns.

        Raises:
            InputError: a column is missing, or is there twice.
        """
        found: dict[str, str] = {}
        for name, column in self.columns.items():
            has = [each for each in column.names if each in there]
            if has:
                found[name] = has[0]
            elif not column.is_optional:
                raise InputError(
                    f"{table}: there is no column {' or '.join(map(repr, column.names))}, which "
                    f"the map {self.name} takes for {name}{suggestion(column.names[0], there)}; "
                    f"there are {_shown(there)}"
                )
        for column_name in self.filters:
            if column_name not in there:
                raise InputError(
                    f"{table}: there is no column {column_name!r}, which the filter of the map "
                    f"{self.name} needs{suggestion(column_name, there)}; there are {_shown(there)}"
                )
        for name in {*found.values(), *self.filters}:
            if there.count(name) > 1:
                raise InputError(
                    f"{table}: the column {name!r} appears twice; rename one of the two"
                )
        missing = missing_name({*found, *self.defaults})
        if missing:
            raise InputError(
                f"{table}: no column for {missing}, which a log needs; the map {self.name} names "
                "columns that this table does not have"
            )
        return found


def missing_name(names: Collection[str]) -> str:
    """Return which of our names a log needs and these do not give; empty if none."""
    for needed in ("submit", "start"):
        if needed not in names:
            return needed
    if "end" not in names and "run" not in names:
        return "end or run"
    has_procs = "procs" in names or ({"nodes", "hosts"} & set(names) and "procs_per_node" in names)
    return "" if has_procs else "procs (or nodes and procs_per_node)"


def read_map(given: str | os.PathLike[str] | Mapping[str, Any]) -> TableMap:
    """Return a map: one that comes with qbatch, by its name; a file, by its path; or the document
    of a map as a dictionary.

    Raises:
        UsageError: there is neither a map nor a file of this name.
        InputError: names the map, the key, the reason and the way out.
    """
    if isinstance(given, Mapping):
        text = TomlText("", "map")
        text.document = {**given}
        return _checked(text, "map")
    name = os.fspath(given)
    if name in SHIPPED:
        source = files("qbatch.workloads.tables") / "maps" / f"{name}.toml"
        return _checked(TomlText(source.read_text("utf-8"), f"map {name}"), name)
    try:
        return _checked(TomlText(Path(name).read_bytes().decode(), name), name)
    except FileNotFoundError as error:
        raise UsageError(
            f"--map {name!r}: there is no such file, and no map of this name comes with qbatch"
            f"{suggestion(name, SHIPPED)} (known: {', '.join(SHIPPED)})"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", error)
        raise InputError(f"{name}: cannot be read as a map: {reason}") from error


def _checked(text: TomlText, name: str) -> TableMap:
    document = text.document
    for key in document:
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise text.error(key, f"is not known{suggestion(str(key), _KEYS)} (known: {known})")
    columns = {key: _column(text, key, value) for key, value in _table(text, "columns").items()}
    defaults = {key: _default(text, key, value) for key, value in _table(text, "defaults").items()}
    missing = missing_name({*columns, *defaults})
    if missing:
        raise text.error("columns", f"no column for {missing}, which a log needs; add it")
    times = _table(text, "times")
    _known(text, "times", times, ("unit", "timezone"))
    unit = times.get("unit", "s")
    if unit not in (*TIME_UNITS, "iso"):
        raise text.error("unit", f"{unit!r} is none of {', '.join(TIME_UNITS)}, iso", unit)
    zone = times.get("timezone", "UTC")
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise text.error(
            "timezone", f"{zone!r} is not a known time zone (such as Europe/Berlin)", zone
        ) from error
    states = _table(text, "state")
    for word, state in states.items():
        if state not in STATES:
            raise text.error(word, f"{state!r} is none of {', '.join(STATES)}", state)
    layout = document.get("layout", "")
    if layout not in ("", ATTEMPTS):
        raise text.error("layout", f"{layout!r} is not known; leave it out or write {ATTEMPTS!r}")
    return TableMap(
        name,
        _text(text, "title", document.get("title", "")),
        columns,
        unit,
        zone,
        {word.casefold(): state for word, state in states.items()},
        {key: _filter(text, key, value) for key, value in _table(text, "filter").items()},
        defaults,
        _texts(text, "header", document.get("header", [])),
        _texts(text, "notes", document.get("notes", [])),
        layout,
    )


def _column(text: TomlText, key: str, value: Any) -> MappedColumn:
    if key not in NAMES:
        known = ", ".join(NAMES)
        raise text.error(key, f"is no name of ours{suggestion(key, NAMES)} (known: {known})")
    entry = value if isinstance(value, dict) else {"column": value}
    _known(text, key, entry, _COLUMN_KEYS)
    column = entry.get("column")
    names = _texts(text, key, [column] if isinstance(column, str) else column)
    if not names or not all(names):
        raise text.error(key, 'needs a column: write its name, or column = "NAME"')
    scale, unit, is_optional = entry.get("scale", 1), entry.get("unit", ""), entry.get("optional")
    if not _is_number(scale) or scale <= 0:
        raise text.error(key, f"the scale {scale!r} is not a number above 0", scale)
    units: Collection[str] = (
        (*TIME_UNITS, "iso")
        if key in INSTANTS
        else SPAN_UNITS
        if key in SPANS
        else MEMORY_UNITS
        if key in MEMORY
        else ()
    )
    if unit != "" and unit not in units:
        known = f"one of {', '.join(units)}" if units else "none: it is a plain number or a text"
        raise text.error(key, f"the unit {unit!r} is not known; its unit is {known}", unit)
    if is_optional not in (None, True, False):
        raise text.error(key, "optional is true or false")
    return MappedColumn(names, float(scale), unit, bool(is_optional))


def _default(text: TomlText, key: str, value: Any) -> float | str:
    if key not in NAMES or key in ("job", "state", "hosts", *INSTANTS):
        known = [name for name in NAMES if name not in ("job", "state", "hosts", *INSTANTS)]
        raise text.error(
            key, f"can have no default{suggestion(key, known)} (known: {', '.join(known)})"
        )
    if key in WORDS:
        return _text(text, key, value)
    if not _is_number(value) or value < 0:
        raise text.error(key, f"the default {value!r} is not a number of 0 or more", value)
    return float(value)


def _filter(text: TomlText, key: str, value: Any) -> tuple[str, ...] | Bounds:
    if isinstance(value, dict):
        _known(text, key, value, ("from", "to"))
        ends = value.get("from"), value.get("to")
        if ends == (None, None) or not all(
            end is None or isinstance(end, str) or _is_number(end) for end in ends
        ):
            raise text.error(key, "a range has from, to or both: numbers or ISO times in quotes")
        return Bounds(*ends)
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(each, str | int | float) for each in listed):
        raise text.error(
            key, "a filter is a text, a number, a list of them, or a range { from, to }"
        )
    return tuple(str(each) for each in listed)


def _table(text: TomlText, key: str) -> dict[str, Any]:
    value = text.document.get(key, {})
    if not isinstance(value, Mapping):
        raise text.error(key, f"must be a table: [{key}]")
    return {**value}


def _known(text: TomlText, key: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in table:
        if name not in known:
            near = suggestion(str(name), known)
            raise text.error(key, f"{name!r} is not known{near} (known: {', '.join(known)})")


def _text(text: TomlText, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise text.error(key, f"{value!r} is not a text", value)
    return value


def _texts(text: TomlText, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise text.error(key, "must be a text or a list of texts")
    return tuple(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(names: Sequence[str], most: int = 40) -> str:
    listed = ", ".join(name[:40] for name in names[:most])
    return f"{listed}{', ...' if len(names) > most else ''}" if names else "none"
