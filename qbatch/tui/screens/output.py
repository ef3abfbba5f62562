"""The output of a job while it is written: the end of a file, read a few times a second."""

from __future__ import annotations

import codecs
from typing import Any

from textual.widgets import Log

from qbatch.results.shown import clean
from qbatch.tui.tail import Tail

PAUSE = 0.5
"""Seconds between two reads."""

FIRST = 64 * 1024
"""Bytes of the end of a file that are shown first."""

MOST_LINES = 5000

MOST_OF_A_LINE = 10_000
"""Most characters of an unfinished line that are kept."""


class Follow(Log):
    """The end of a file, which may not exist yet; control characters become question marks."""

    def __init__(self, path: str, **given: Any) -> None:
        super().__init__(max_lines=MOST_LINES, **given)
        self._tail = Tail((path,) if path else (), FIRST)
        self._rest = ""
        self._is_rest_shown = False
        self._decoder = _decoder()
        self._said = ""
        self._none = "this job has no known output file"

    def on_mount(self) -> None:
        self.look()
        self.set_interval(PAUSE, self.look)

    def follow(self, *places: str, is_same: bool = False) -> None:
        """Follow another file: the first of these that exists; ``is_same``: it holds the same
        text."""
        if places != self._tail.places:
            self._tail.follow(places, is_same=is_same)
            if not is_same:
                self._restart()
            self.look()

    def tell(self, text: str) -> None:
        """Follow no file, and show why."""
        self._tail.follow(())
        self._none = clean(text)
        self.look()

    def _restart(self) -> None:
        self.clear()
        self._rest, self._said = "", ""
        self._is_rest_shown, self._decoder = False, _decoder()

    def look(self) -> None:
        """Show what has been written since the last read."""
        if not any(self._tail.places):
            self._say(self._none)
            return
        try:
            piece = self._tail.look()
        except (OSError, ValueError) as error:
            self._say(
                f"{clean(self._tail.places[-1])}: {getattr(error, 'strerror', None) or error}"
            )
            return
        if piece.is_anew or self._said:
            self._restart()
            if piece.skipped:
                self.write_line(f"... {piece.skipped:,} bytes before this")
        data = piece.data
        if data:
            *lines, rest = (self._rest + self._decoder.decode(data)).split("\n")
            if self._is_rest_shown:  # replace the beginning of the last line
                self._lines.pop()
                self._render_line_cache.clear()
            self._rest = rest[-MOST_OF_A_LINE:]
            self._is_rest_shown = bool(rest)
            shown = [*lines, self._rest] if rest else lines
            # An empty line would not be written.
            self.write_lines([_plain(line) or " " for line in shown])

    def _say(self, text: str) -> None:
        if text != self._said:
            self._restart()
            self._said = text
            self.write_line(text)
            self._tail.follow(self._tail.places)


def _decoder() -> codecs.IncrementalDecoder:
    """Return a decoder that accepts characters cut in two between reads."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def _plain(line: str) -> str:
    """Return a line without control characters; of an overwritten line, its last text."""
    return clean(line.rstrip("\r").rpartition("\r")[2].expandtabs(8))
