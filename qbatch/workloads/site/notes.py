"""What the reading of a site's files used, did not use and refused, with file and line."""

from __future__ import annotations

from typing import NamedTuple

from qbatch.model.errors import InputError


class Note(NamedTuple):
    """One fact of a file: its place (``file: line 12``), its name there, and what became of it."""

    place: str
    name: str
    text: str


class SiteNotes:
    """The facts that were ``used``, those that are ``ignored``, and those ``refused``: with them a
    replay would decide differently from the site.

    ``without``: names of settings that the user wants to leave out although they are refused.
    """

    def __init__(self, without: frozenset[str] = frozenset()) -> None:
        self.used: list[Note] = []
        self.ignored: list[Note] = []
        self.refused: list[Note] = []
        self._without = frozenset(name.lower() for name in without)

    def use(self, place: str, name: str, text: str) -> None:
        """Note where a fact went."""
        self.used.append(Note(place, name, text))

    def ignore(self, place: str, name: str, text: str) -> None:
        """Note why a fact has no effect."""
        self.ignored.append(Note(place, name, text))

    def refuse(self, place: str, name: str, text: str) -> None:
        """Note a fact that qbatch cannot follow; one that the user leaves out is ignored."""
        is_left_out = name.lower() in self._without
        (self.ignored if is_left_out else self.refused).append(Note(place, name, text))

    def check(self) -> None:
        """Raise the first refusal.

        Raises:
            InputError: names the place, the setting, the reason and the way out.
        """
        for place, name, text in self.refused[:1]:
            more = f" ({len(self.refused) - 1} more)" if len(self.refused) > 1 else ""
            raise InputError(
                f"{place}: {name}: {text}; to read the files without it, give --without {name}{more}"
            )
