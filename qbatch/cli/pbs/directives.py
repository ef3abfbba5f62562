"""The directives of a script, its ``#PBS`` lines, and the words in them.  Pure functions.

A first line that begins with ``#!`` or ``:`` is no directive.  The search skips comments and blank
lines (also an empty line before ``#!``), and the first other line ends it.  Words are quoted as in
a shell, and a backslash at the end of a line continues it.  Carriage returns and trailing blanks do
not count.  A directive without an option has no effect, and a word that begins with ``#`` ends its
line.
"""

from __future__ import annotations

from typing import NamedTuple

OWN_PREFIX = "#QBATCH"


class Directives(NamedTuple):
    """The words of all directives, line by line, and of the ``#QBATCH`` lines."""

    lines: list[list[str]]
    own: list[list[str]]


def split_words(text: str) -> list[str]:
    """Return the words of a line; single and double quotes protect blanks, a backslash protects the
    next letter.

    Raises:
        ValueError: a quote is not closed.
    """
    words: list[str] = []
    word = ""
    has_word = False
    quote = ""
    place = 0
    while place < len(text):
        letter = text[place]
        place += 1
        if letter == quote:
            quote = ""
        elif letter in "\"'" and not quote:
            quote, has_word = letter, True
        elif not quote and letter.isspace():
            if has_word:
                words.append(word)
            word, has_word = "", False
        elif not quote and letter == "#" and not has_word:
            break
        else:
            if (
                letter == "\\"
                and quote != "'"
                and place < len(text)
                and (not quote or text[place] in '"\\')
            ):
                letter = text[place]
                place += 1
            word, has_word = word + letter, True
    if quote:
        raise ValueError(f"the quote {quote} is not closed in {text.strip()[:200]!r}")
    if has_word:
        words.append(word)
    return words


def _after(line: str, prefix: str) -> str | None:
    """Return the rest of a directive after its prefix, None if the line is no directive."""
    if not prefix or not line.startswith(prefix):
        return None
    rest = line[len(prefix) :]
    return rest if not rest or rest[0].isspace() or rest[0] in "-\"'" else None


def scan(script: str, prefix: str = "#PBS") -> Directives:
    """Return the directives of a script; with an empty prefix only the ``#QBATCH`` lines.

    Raises:
        ValueError: a quote is not closed.
    """
    lines: list[list[str]] = []
    own: list[list[str]] = []
    unfinished = ""
    place, is_first = 0, True
    while place < len(script):
        end = script.find("\n", place)
        end = len(script) if end < 0 else end
        line = script[place:end].strip()
        place = end + 1
        rest, is_start = _after(line, prefix), is_first
        is_first = False
        if rest is None and line and line[0] != "#" and not (is_start and line[0] == ":"):
            break  # the first executable line
        if is_start and (line[:1] == ":" or line[:2] == "#!"):
            continue
        if rest is not None:
            rest = unfinished + rest.rstrip()
            unfinished = ""
            if rest.endswith("\\") and not rest.endswith("\\\\"):
                unfinished = rest[:-1] + " "
            elif words := split_words(rest):
                lines.append(words)
        elif (rest := _after(line, OWN_PREFIX)) is not None:
            own.append(split_words(rest))
    if unfinished.strip():
        lines.append(split_words(unfinished))
    return Directives(lines, own)
