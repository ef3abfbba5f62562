"""Parameters of policies and sources: by name, typed, bounded, documented."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import msgspec

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import memory_text, parse_memory


class _InRange(msgspec.Struct, frozen=True):
    """A parameter that is a number in a range; subclasses define the words for it (``noun``), and
    how it is read and written."""

    noun: ClassVar[str]

    name: str
    default: float
    least: float
    most: float
    meaning: str

    @property
    def values(self) -> str:
        """The accepted values, in words."""
        return f"{self.text(self.least)} to {self.text(self.most)}"

    def read(self, text: str, where: str) -> float:
        """Return the value of a text, or raise ``UsageError``."""
        try:
            value = self.number(text)
        except ValueError:
            value = math.nan
        if not self.least <= value <= self.most:
            unit = " of seconds" if self.meaning.endswith(", seconds") else ""
            raise UsageError(
                f"{where}: {self.name}={text} is not {self.noun}{unit} from {self.values}"
            )
        return value

    @staticmethod
    def number(text: str) -> float:
        """Return the number in a text, or raise ``ValueError``."""
        return float(text) if text.isascii() and "_" not in text else math.nan

    def text(self, value: float) -> str:
        return f"{value:.15g}"


class Whole(_InRange, frozen=True):
    """A parameter that is a whole number in a range."""

    noun = "a whole number"

    @staticmethod
    def number(text: str) -> float:
        return int(text) if text.isascii() else math.nan


class Real(_InRange, frozen=True):
    """A parameter that is a number in a range."""

    noun = "a number"


class Memory(_InRange, frozen=True):
    """A parameter that is an amount of memory: bytes, or a number with a binary unit."""

    noun = "an amount of memory such as 512MB,"

    @staticmethod
    def number(text: str) -> float:
        return parse_memory(int(text) if text.isdecimal() and text.isascii() else text)

    def text(self, value: float) -> str:
        return memory_text(int(value))


class Choice(msgspec.Struct, frozen=True):
    """A parameter that is one of a few words."""

    name: str
    default: str
    choices: tuple[str, ...]
    meaning: str

    @property
    def values(self) -> str:
        """The accepted values, in words."""
        return ", ".join(self.choices)

    def text(self, value: str) -> str:
        return value

    def read(self, text: str, where: str) -> str:
        """Return the value of a text, or raise ``UsageError``."""
        if text not in self.choices:
            raise UsageError(
                f"{where}: {self.name}={text} is not one of "
                f"{self.values}{suggestion(text, self.choices)}"
            )
        return text


Parameter = Whole | Choice | Real | Memory


def read_parameters(pairs: list[str], known: tuple[Parameter, ...], where: str) -> dict[str, Any]:
    """Return the values for ``key=value`` texts, defaults filled in.

    Raises:
        UsageError: names the parameter, the reason, and the nearest known name.
    """
    by_name = {parameter.name: parameter for parameter in known}
    values: dict[str, Any] = {parameter.name: parameter.default for parameter in known}
    given: set[str] = set()
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise UsageError(f"{where}: {pair!r} is not a parameter; write name=value")
        if name not in by_name:
            takes = f"it takes {', '.join(by_name)}" if by_name else "it takes none"
            raise UsageError(f"{where}: no parameter {name!r}{suggestion(name, by_name)} ({takes})")
        if name in given:
            raise UsageError(f"{where}: {name} appears twice; write it once")
        given.add(name)
        values[name] = by_name[name].read(text, where)
    return values


def canonical_name(name: str, values: dict[str, Any], known: tuple[Parameter, ...]) -> str:
    """Return ``name:key=value,...`` with the parameters that differ from their defaults, in the
    order of ``known``."""
    changed = [
        f"{each.name}={each.text(values[each.name])}"
        for each in known
        if values[each.name] != each.default
    ]
    return f"{name}:{','.join(changed)}" if changed else name
