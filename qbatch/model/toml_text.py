"""A TOML text that can name the line of an error: for machine files and configurations."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from qbatch.model.errors import InputError


class TomlText:
    """A decoded text; ``document`` holds its tables.  An InputError if it is not valid TOML;
    ``source``: its name in errors."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._lines = text.splitlines()
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(
                f"{source}: not valid TOML: {error}{self._hint(str(error))}"
            ) from error
        except (RecursionError, ValueError) as error:  # thousands of brackets, or of digits
            why = (
                "nested too deep"
                if isinstance(error, RecursionError)
                else "a number with too many digits"
            )
            raise InputError(f"{source}: cannot be read: {why}") from error

    def error(
        self, key: str, reason: str, value: Any = None, table: dict[str, Any] | None = None
    ) -> InputError:
        """Return the error for a key, with the first line that contains the key (and the value).

        ``table``: the table of the document that the key is in, or is missing from: only its own
        lines count then.
        """
        wanted = re.compile(rf"^\s*(\[\[?\s*([^\]=#]*\.\s*)?)?\"?{re.escape(key)}(?![\w-])")
        lines = None if table is None else self._lines_of(table)
        numbers = [number for number in lines or () if wanted.search(self._lines[number - 1])]
        if lines and not numbers and table is not self.document:
            numbers = [lines[0]]
        if not numbers:
            numbers = [number for number, line in enumerate(self._lines, 1) if wanted.search(line)]
        exact = [
            number
            for number in numbers
            if value is not None and str(value) in self._lines[number - 1]
        ]
        place = f"line {(exact or numbers)[0]}, " if numbers else ""
        return InputError(f"{self.source}: {place}key {key!r}: {reason}")

    def tables(self, key: str, inside: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the tables of an array of tables, of the document or of a table inside it; none if
        the key is absent.

        Raises:
            InputError: the key holds something else.
        """
        tables = (self.document if inside is None else inside).get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            hint = f"; write [[{key}]] in place of [{key}]" if isinstance(tables, dict) else ""
            raise self.error(key, f"must be an array of tables: [[{key}]]{hint}", None, inside)
        return tables

    def _hint(self, error: str) -> str:
        """Return the way out if a table that should be one of an array appears twice."""
        place = re.search(r"\(at line (\d+),", error)
        header = (
            re.match(r"\s*\[\[?([^\[\]]+)\]", self._lines[int(place[1]) - 1]) if place else None
        )
        twice = header is not None and ("twice" in error or "overwrite" in error)
        return (
            f"; if there are several, each begins with [[{header[1].strip()}]]"
            if header and twice
            else ""
        )

    def _lines_of(self, table: dict[str, Any]) -> range | None:
        """Return the line numbers of a table and of the tables in it; None if it has no header of
        its own."""
        first = 1 if table is self.document else None
        seen: dict[int, int] = {}
        for number, line in enumerate(self._lines, 1):
            path = self._path(line, seen)
            if first is None and path and path[-1] is table:
                first = number
            elif first is not None and path and not any(each is table for each in path):
                return range(first, number)
        return None if first is None else range(first, len(self._lines) + 1)

    def _path(self, line: str, seen: dict[int, int]) -> list[dict[str, Any]]:
        """Return the tables that a header opens, from the outermost to its own; none if the line is
        no header.

        ``seen``: by array of tables, how many of them were opened so far.
        """
        try:
            keys: Any = tomllib.loads(line) if line.lstrip().startswith("[") else {}
        except tomllib.TOMLDecodeError:  # the middle of a list
            return []
        path = [self.document]
        while keys:
            ((key, keys),) = keys.items()
            value = path[-1].get(key)
            if isinstance(value, list):
                if isinstance(keys, list):
                    seen[id(value)] = seen.get(id(value), 0) + 1
                    (keys,) = keys
                place = seen.get(id(value), 0) - 1
                value = value[place] if 0 <= place < len(value) else None
            if not isinstance(value, dict):
                return []
            path.append(value)
        return path[1:]
