"""A TOML text taken apart that can say where in it something is wrong: of machine files and configurations."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from qbatch.model.errors import InputError


class TomlText:
    """A decoded text; ``document`` holds its tables.

    Args:
        text: in TOML.
        source: names it in errors.

    Raises:
        InputError: it is not valid TOML.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._lines = text.splitlines()
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{source}: not valid TOML: {error}") from error

    def error(self, key: str, reason: str, value: Any = None) -> InputError:
        """Return the error for a key, with the first line where the key (and the value) stands."""
        wanted = re.compile(rf"^\s*(\[\[?)?\s*\"?{re.escape(key)}\b")
        numbers = [number for number, line in enumerate(self._lines, 1) if wanted.search(line)]
        exact = [number for number in numbers if value is not None and str(value) in self._lines[number - 1]]
        place = f"line {(exact or numbers)[0]}, " if numbers else ""
        return InputError(f"{self.source}: {place}key {key!r}: {reason}")

    def tables(self, key: str, inside: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the tables of an array of tables, of the document or of a table inside it; none where the key is absent.

        Raises:
            InputError: the key holds something else.
        """
        tables = (self.document if inside is None else inside).get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.error(key, f"must be an array of tables: [[{key}]]")
        return tables
