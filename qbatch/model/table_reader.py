"""Reading the tables of a TOML text with errors that name key, line, reason and way out."""

from __future__ import annotations

import re
from typing import Any

from qbatch.model.errors import suggestion
from qbatch.model.machine import expand_names, parse_memory
from qbatch.model.toml_text import TomlText

_SECOND = 1_000_000
_SPAN = re.compile(r"(?:(\d{1,6})-)?(\d{1,6}):([0-5]?\d):([0-5]?\d)")


class TableReader:
    """Reads values of tables; ``text`` finds the line of an error."""

    def __init__(self, text: TomlText) -> None:
        self.error = text.error

    def known_keys(self, table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
        """Refuse an unknown key, naming the nearest known one."""
        for key in table:
            if key not in known:
                near = suggestion(key, known)
                raise self.error(
                    key, f"is not known{where}{near} (known: {', '.join(known)})", None, table
                )

    def whole(
        self, table: dict[str, Any], key: str, least: int, unit: str = "", way_out: str = ""
    ) -> int | None:
        """Return a whole number of at least ``least``, or None if the key is absent."""
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 2**31 - 1:
            text = f"{value!r} is not a whole number{unit} from {least} to {2**31 - 1}{way_out}"
            raise self.error(key, text, None, table)
        return value

    def boolean(self, table: dict[str, Any], key: str) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false", None, table)
        return value

    def text(self, table: dict[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, f"{value!r} is not a text; put it in quotes", None, table)
        return value

    def memory(self, table: dict[str, Any]) -> int | None:
        if "memory" not in table:
            return None
        try:
            return parse_memory(table["memory"])
        except ValueError as error:
            raise self.error("memory", str(error), None, table) from error

    def names(self, table: dict[str, Any], key: str, known: set[str], noun: str) -> tuple[str, ...]:
        """Return a list of names, all of them known."""
        listed = table.get(key, [])
        if not isinstance(listed, list):
            raise self.error(
                key,
                f"must be a list of names of a {noun}, such as {sorted(known)[:2]}",
                None,
                table,
            )
        self.check_known(table, key, list(map(str, listed)), known, noun)
        return tuple(map(str, listed))

    def check_known(
        self, table: dict[str, Any], key: str, names: list[str], known: set[str], noun: str
    ) -> None:
        """Refuse an unknown name, naming the nearest known one."""
        for name in names:
            if name not in known:
                raise self.error(
                    key, f"there is no {noun} {name!r}{suggestion(name, known)}", name, table
                )

    def check_amounts(
        self, table: dict[str, Any], key: str, amounts: dict[str, Any], most: int
    ) -> None:
        """Refuse an amount that is not a whole number up to ``most``."""
        for name, many in amounts.items():
            if isinstance(many, bool) or not isinstance(many, int) or not 0 <= many <= most:
                raise self.error(
                    key, f"{name} = {many!r} is not a whole number from 0 to {most}", name, table
                )

    def seconds(self, table: dict[str, Any], key: str, least: int) -> int | None:
        """Return whole seconds as microseconds, or None if the key is absent."""
        value = self.whole(table, key, least, " of seconds", "; ten minutes, for example, are 600")
        return None if value is None else value * _SECOND

    def span(self, table: dict[str, Any], key: str) -> int:
        """Return a time span as microseconds, 0 if the key is absent: whole seconds, or a text such
        as "8:00:00" or "2-00:00:00" (days first)."""
        value = table.get(key)
        if value is None:
            return 0
        found = _SPAN.fullmatch(value) if isinstance(value, str) else None
        if found is not None:
            days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
            value = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**31 - 1:
            text = (
                f'{value!r} is not a time; write seconds, or a text such as "8:00:00" or '
                '"2-00:00:00"'
            )
            raise self.error(key, text, None, table)
        return value * _SECOND

    def host_list(self, table: dict[str, Any], places: dict[str, int]) -> tuple[int, ...]:
        """Return the indices of the hosts that a table lists; ``places``: those of all hosts."""
        listed = table.get("hosts")
        if not isinstance(listed, list) or not listed:
            text = 'must be a list of hosts, such as ["n[01-64]"], or ["all"]'
            raise self.error("hosts", text, None, table)
        chosen: set[int] = set()
        for pattern in map(str, listed):
            try:
                names = list(places) if pattern == "all" else expand_names(pattern)
            except ValueError as error:
                raise self.error("hosts", str(error), None, table) from error
            self.check_known(table, "hosts", names, set(places), "host")
            chosen |= {places[each] for each in names}
        return tuple(sorted(chosen))
