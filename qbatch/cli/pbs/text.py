"""Text that is safe to show, cut to a width, and times as PBS writes them.  Pure."""

from __future__ import annotations

import time

MICROSECONDS = 1_000_000


def plain(text: str) -> str:
    """Return a text in which everything that does not print (controls, escapes, bidi and zero-width marks) is written
    as an escape such as ``\\x1b``; it is always one line."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter == "\n":
        return "\\n"
    if letter == "\t":
        return "\\t"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cell(text: str, width: int) -> str:
    """Return a text for a table: at most ``width`` letters, the last a ``*`` if some are missing; what does not print is
    ``?``, and a blank is ``_``, so that the columns can be split."""
    if len(text) > width:
        text = text[: width - 1] + "*"
    return whole_cell(text)


def whole_cell(text: str) -> str:
    """Return a text for a table without cutting it; never empty."""
    if text.isprintable() and " " not in text:
        return text or "-"
    return "".join("_" if letter.isspace() else letter if letter.isprintable() else "?" for letter in text)


def ctime(instant: int) -> str:
    """Return an instant as C's ctime does, in local time: ``Fri Nov 20 11:55:30 2026``."""
    try:
        return time.ctime(instant // MICROSECONDS)
    except (OverflowError, ValueError, OSError):
        return str(instant // MICROSECONDS)


def seconds_of(text: str) -> int:
    """Return the seconds of ``HH:MM:SS``, ``MM:SS`` or ``SS``; 0 if it is none of them."""
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
    """Return a size such as ``8gb`` in at most four digits; ``unit``: ``""`` as it is, ``g`` for gigabytes (-G), ``w``
    for megawords (-M); it grows to the next unit when it has more than 9999."""
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
