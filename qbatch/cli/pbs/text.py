"""Text that is safe to show, text cut to a width, and times as PBS writes them.  Pure functions."""

from __future__ import annotations

import time

MICROSECONDS = 1_000_000


def plain(text: str) -> str:
    """Return a text as one line, with letters that do not print (controls, escapes, bidi and
    zero-width marks) written as escapes such as ``\\x1b``."""
    if text.isprintable():
        return text
    escaped = (
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
    return "".join("\\x0d" if letter == "\\r" else letter for letter in escaped)


def cell(text: str, width: int) -> str:
    """Return a text for a table: at most ``width`` letters, the last a ``*`` if some are missing.

    A letter that does not print becomes ``?``, and a blank ``_``, so that programs can split the
    columns.
    """
    if len(text) > width:
        text = text[: width - 1] + "*"
    return whole_cell(text)


def whole_cell(text: str) -> str:
    """Return the whole text for a table, never empty."""
    if text.isprintable() and " " not in text:
        return text or "-"
    return "".join(
        "_" if letter.isspace() else letter if letter.isprintable() else "?" for letter in text
    )


def ctime(instant: int) -> str:
    """Return an instant in the form of C's ctime, in local time: ``Fri Nov 20 11:55:30 2026``."""
    try:
        return time.ctime(instant // MICROSECONDS)
    except (OverflowError, ValueError, OSError):
        return str(instant // MICROSECONDS)


def seconds_of(text: str) -> int:
    """Return the seconds of ``HH:MM:SS``, ``MM:SS`` or ``SS``; 0 for other texts."""
    seconds = 0
    for part in text.split(":"):
        if not part.isdigit():
            return 0
        seconds = seconds * 60 + int(part)
    return seconds


def clock(seconds: int) -> str:
    """Return seconds as ``HH:MM:SS``."""
    seconds = max(seconds, 0)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def size_in(text: str, unit: str = "") -> str:
    """Return a size such as ``8gb`` in at most four digits; more than 9999 of a unit become the
    next one.

    ``unit``: ``""`` for the size's own, ``g`` for gigabytes (-G), ``w`` for megawords (-M).
    """
    digits = len(text) - len(text.lstrip("0123456789"))
    if not digits:
        return "--"
    number, rest = int(text[:digits]), text[digits:].lower()
    letters = " kmgtp"
    place = letters.find(rest[:1]) if rest[:1] in ("k", "m", "g", "t", "p") else 0
    suffix = "w" if rest.endswith("w") else "b"
    if suffix == "w":
        number *= 8
    target = {"g": 3, "w": 2}.get(unit, place)
    if unit:
        suffix = "w" if unit == "w" else "b"
    if target > place:
        number = -(-number // 1024 ** (target - place))
    else:
        number *= 1024 ** (place - target)
    if suffix == "w":
        number = -(-number // 8)
    while number > 9999 and target < 5:
        number, target = -(-number // 1024), target + 1
    return f"{number}{letters[target].strip()}{suffix}"
