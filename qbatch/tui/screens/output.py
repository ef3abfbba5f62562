"""The output of a job, followed as it is written: the end of a file, looked at a few times a second."""

from __future__ import annotations

import codecs
import os
import stat
from typing import Any

from textual.widgets import Log

from qbatch.reports.shown import clean

PAUSE = 0.5
"""Seconds between two looks."""

FIRST = 64 * 1024
"""Bytes of the end of a file that are shown at once."""

MOST_LINES = 5000

MOST_OF_A_LINE = 10_000
"""Letters of a line without an end that are kept."""


class Follow(Log):
    """The end of a file; letters that a terminal would obey become question marks.

    Args:
        path: the file; it need not be there yet.
    """

    def __init__(self, path: str, **given: Any) -> None:
        super().__init__(max_lines=MOST_LINES, **given)
        self.path = path
        self._at: int | None = None
        self._identity: tuple[int, int] = (0, 0)
        self._rest = ""
        self._is_rest_shown = False
        self._decoder = _decoder()
        self._said = ""

    def on_mount(self) -> None:
        """Look now and then."""
        self.look()
        self.set_interval(PAUSE, self.look)

    def follow(self, path: str) -> None:
        """Follow another file."""
        if path != self.path:
            self.path = path
            self._restart()
            self.look()

    def _restart(self) -> None:
        self.clear()
        self._at, self._rest, self._said = None, "", ""
        self._is_rest_shown, self._decoder = False, _decoder()

    def look(self) -> None:
        """Show what has been written since the last look."""
        if not self.path:
            self._say("this job has no output file that is known here")
            return
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._say(f"{clean(self.path)}: {error.strerror}")
            return
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                self._say(f"{clean(self.path)}: no plain file")
                return
            identity = (found.st_dev, found.st_ino)
            if self._at is not None and (identity != self._identity or found.st_size < self._at):
                self._restart()
            if self._at is None:
                self._identity = identity
                self.clear()
                self._said = ""
                self._at = max(found.st_size - FIRST, 0)
                if self._at:
                    self.write_line(f"... {self._at:,} bytes before this")
            os.lseek(handle, self._at, os.SEEK_SET)
            data = os.read(handle, 1 << 20)
        finally:
            os.close(handle)
        self._at += len(data)
        if data:
            *lines, rest = (self._rest + self._decoder.decode(data)).split("\n")
            self._show_lines(lines, rest[-MOST_OF_A_LINE:])

    def _show_lines(self, lines: list[str], rest: str) -> None:
        """Show whole lines, and in the last line of all what has been written of the next one."""
        if self._is_rest_shown:
            self._lines.pop()
            self._render_line_cache.clear()
        self._rest, self._is_rest_shown = rest, bool(rest)
        shown = [*lines, rest] if rest else lines
        self.write_lines([_plain(line) or " " for line in shown])  # a line of nothing would not be written

    def _say(self, text: str) -> None:
        if text != self._said:
            self._restart()
            self._said = text
            self.write_line(text)


def _decoder() -> codecs.IncrementalDecoder:
    """Letters of several bytes may be cut in two by the end of what is read."""
    return codecs.getincrementaldecoder("utf-8")("replace")


def _plain(line: str) -> str:
    """Return a line without what a terminal obeys; of a line that was written over, what was left to see."""
    return clean(line.rstrip("\r").rpartition("\r")[2].expandtabs(8))
