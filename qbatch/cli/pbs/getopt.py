"""Options the POSIX way, as the GNU C library reads them: operands may stand between options, ``--`` ends them."""

from __future__ import annotations

from typing import NamedTuple


class OptionFault(Exception):  # noqa: N818 - a fault of the caller
    """An option that is not known, or one without its argument."""


class Parsed(NamedTuple):
    """Options in order, as (letter, argument; empty if it takes none), the operands, and those after ``--``."""

    options: list[tuple[str, str]]
    operands: list[str]
    after_dashes: list[str] | None

    def has(self, letters: str) -> bool:
        """Return whether any of the letters was given."""
        return any(letter in letters for letter, _ in self.options)

    def last(self, letter: str, default: str = "") -> str:
        """Return the argument of the last such option."""
        for name, value in reversed(self.options):
            if name == letter:
                return value
        return default


def parse_options(arguments: list[str], letters: str, stops_early: bool = False) -> Parsed:
    """Return the options of ``arguments`` by the option string ``letters`` (``f`` is a flag, ``u:`` has an argument).

    Raises:
        OptionFault: with the text that getopt(3) prints.
    """
    options: list[tuple[str, str]] = []
    operands: list[str] = []
    place = 0
    while place < len(arguments):
        word = arguments[place]
        place += 1
        if word == "--":
            return Parsed(options, operands, arguments[place:])
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            if stops_early:
                return Parsed(options, operands + arguments[place:], None)
            continue
        spot = 1
        while spot < len(word):
            letter = word[spot]
            spot += 1
            found = letters.find(letter)
            if found < 0 or letter == ":":
                raise OptionFault(f"invalid option -- '{letter}'")
            if letters[found + 1 : found + 2] != ":":
                options.append((letter, ""))
                continue
            if spot < len(word):
                options.append((letter, word[spot:]))
            elif place < len(arguments):
                options.append((letter, arguments[place]))
                place += 1
            else:
                raise OptionFault(f"option requires an argument -- '{letter}'")
            break
    return Parsed(options, operands, None)
