"""The directives of a script, its ``#PBS`` lines, and the words in them.  Pure functions.

A line that begins with ``:`` or ``#!`` is no directive.  The search skips comments and blank lines
(also an empty line before ``#!``), and the first other line ends it.  Blanks may stand before the
prefix.  Quotes protect blanks, and a backslash outside of them the next letter; a backslash at the
end of a directive continues it with the whole next line.  Carriage returns and trailing blanks do
not count.  A directive without an option has no effect.

Source: OpenPBS qsub.c (get_script, make_argv) and check_job_script.c.
"""

from __future__ import annotations

import re
from typing import NamedTuple

OWN_PREFIX = "#QBATCH"


class Directives(NamedTuple):
    """The words of all directives, line by line, and of the ``#QBATCH`` lines."""

    lines: list[list[str]]
    own: list[list[str]]


def split_words(text: str) -> list[str]:
    """Return the words of a line; single and double quotes protect blanks, a backslash outside of
    them protects the next letter.

    Raises:
        ValueError: a quote is not closed.
    """
    words: list[str] = []
    word = ""
    has_word = False
    quote = ""
    letters = iter(text)
    for letter in letters:
        if quote:
            quote, word = ("", word) if letter == quote else (quote, word + letter)
        elif letter in "\"'":
            quote, has_word = letter, True
        elif letter.isspace():
            if has_word:
                words.append(word)
            word, has_word = "", False
        else:
            word, has_word = word + (next(letters, "") if letter == "\\" else letter), True
    if quote:
        raise ValueError(f"unmatched {quote} in {text.strip()[:200]!r}")
    if has_word:
        words.append(word)
    return words


def _after(line: str, prefix: str) -> str | None:
    """Return the rest of a directive after its prefix, None if the line is no directive."""
    return line[len(prefix) :] if prefix and line.startswith(prefix) else None


def scan(script: str, prefix: str = "#PBS") -> Directives:
    """Return the directives of a script; with an empty prefix only the ``#QBATCH`` lines.

    Raises:
        ValueError: a quote is not closed, or the script ends where a directive goes on.
    """
    found: list[list[str]] = []
    own: list[list[str]] = []
    place = 0
    while place < len(script):
        end = script.find("\n", place)
        end = len(script) if end < 0 else end
        line = script[place:end]
        place = end + 1
        rest = _after(line.strip(), prefix)
        if rest is not None:
            rest = line.lstrip()[len(prefix) :]
            while rest.endswith("\\"):
                if place >= len(script):
                    raise ValueError("unexpected end-of-file or read error in script")
                end = script.find("\n", place)
                end = len(script) if end < 0 else end
                rest = rest[:-1] + script[place:end]
                place = end + 1
            if words := split_words(rest.rstrip()):
                found.append(words)
        elif re.match(rf"{OWN_PREFIX}(\s|$)", line.strip()):
            rest = line.strip()[len(OWN_PREFIX) :]
            own.append(split_words(rest))
        elif line.strip() and line.strip()[0] != "#" and line[0] != ":":
            break  # the first executable line
    return Directives(found, own)
