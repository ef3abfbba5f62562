"""Parameters of policies: by name, typed, bounded, documented."""

from __future__ import annotations

import msgspec

from qbatch.model.errors import UsageError, suggestion
from qbatch.model.machine import parse_memory


class Whole(msgspec.Struct, frozen=True):
    """A parameter that is a whole number in a range."""

    name: str
    default: int
    least: int
    most: int
    meaning: str

    @property
    def values(self) -> str:
        """The values that it takes, in words."""
        return f"{self.least} to {self.most}"

    def read(self, text: str, where: str) -> int:
        """Return the value of a text, or raise ``UsageError``."""
        try:
            value = int(text) if text.isascii() else self.least - 1
        except ValueError:
            value = self.least - 1
        if not self.least <= value <= self.most:
            raise UsageError(f"{where}: {self.name}={text} is not a whole number from {self.values}")
        return value


class Choice(msgspec.Struct, frozen=True):
    """A parameter that is one of a few words."""

    name: str
    default: str
    choices: tuple[str, ...]
    meaning: str

    @property
    def values(self) -> str:
        """The values that it takes, in words."""
        return ", ".join(self.choices)

    def read(self, text: str, where: str) -> str:
        """Return the value of a text, or raise ``UsageError``."""
        if text not in self.choices:
            raise UsageError(f"{where}: {self.name}={text} is not one of {self.values}{suggestion(text, self.choices)}")
        return text


class Real(msgspec.Struct, frozen=True):
    """A parameter that is a number in a range."""

    name: str
    default: float
    least: float
    most: float
    meaning: str

    @property
    def values(self) -> str:
        """The values that it takes, in words."""
        return f"{self.least:g} to {self.most:g}"

    def read(self, text: str, where: str) -> float:
        """Return the value of a text, or raise ``UsageError``."""
        try:
            value = float(text) if text.isascii() and "_" not in text else float("nan")
        except ValueError:
            value = float("nan")
        if not self.least <= value <= self.most:
            raise UsageError(f"{where}: {self.name}={text} is not a number from {self.values}")
        return value


class Memory(msgspec.Struct, frozen=True):
    """A parameter that is an amount of memory: bytes, or a number with a binary unit."""

    name: str
    default: int
    least: int
    most: int
    meaning: str

    @property
    def values(self) -> str:
        """The values that it takes, in words."""
        return f"{self.text(self.least)} to {self.text(self.most)}"

    def read(self, text: str, where: str) -> int:
        """Return the value of a text in bytes, or raise ``UsageError``."""
        try:
            value = parse_memory(int(text) if text.isdecimal() and text.isascii() else text)
        except ValueError as error:
            raise UsageError(f"{where}: {self.name}={text}: {error}") from error
        if not self.least <= value <= self.most:
            raise UsageError(f"{where}: {self.name}={text} is not from {self.values}")
        return value

    def text(self, value: int) -> str:
        """Return an amount in the largest unit that leaves it whole."""
        for unit, size in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
            if value and value % size == 0:
                return f"{value // size}{unit}"
        return str(value)


Parameter = Whole | Choice | Real | Memory


def read_parameters(pairs: list[str], known: tuple[Parameter, ...], where: str) -> dict[str, int | float | str]:
    """Return the values for ``key=value`` texts, defaults filled in.

    Raises:
        UsageError: naming the parameter, the reason, and the nearest known name.
    """
    by_name = {parameter.name: parameter for parameter in known}
    values: dict[str, int | float | str] = {parameter.name: parameter.default for parameter in known}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise UsageError(f"{where}: {pair!r} is no parameter; write name=value")
        if name not in by_name:
            takes = f"it takes {', '.join(by_name)}" if by_name else "it takes none"
            raise UsageError(f"{where}: no parameter {name!r}{suggestion(name, by_name)} ({takes})")
        values[name] = by_name[name].read(text, where)
    return values


def canonical_name(name: str, values: dict[str, int | float | str], known: tuple[Parameter, ...]) -> str:
    """Return ``name:key=value,...`` with the parameters that differ from their defaults, in the order of ``known``."""
    changed = [f"{each.name}={_text(each, values[each.name])}" for each in known if values[each.name] != each.default]
    return f"{name}:{','.join(changed)}" if changed else name


def _text(parameter: Parameter, value: int | float | str) -> str:
    if isinstance(parameter, Memory) and isinstance(value, int):
        return parameter.text(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)
