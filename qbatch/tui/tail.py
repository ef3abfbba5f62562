"""The end of a file while it is written, for the monitor and for ``qbatch output``."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

PIECE = 1 << 20
"""Most bytes that one read returns."""


class OutputPart(NamedTuple):
    """The result of a read: ``data``; ``is_anew``: it is the beginning; ``skipped``: the number of
    bytes left out before it."""

    data: bytes
    is_anew: bool = False
    skipped: int = 0


class Tail:
    """Reads the new data of the first of some files that exists.

    A file that was replaced or truncated is read from its beginning again.

    Args:
        places: paths; none need exist yet.
        most: bytes of the end that are read first (None: all).
    """

    def __init__(self, places: Sequence[str] = (), most: int | None = None) -> None:
        self.places = tuple(places)
        self.most = most
        self._at: int | None = None
        self._identity: tuple[int, int] | None = None

    def follow(self, places: Sequence[str], *, is_same: bool = False) -> None:
        """Continue in another file; ``is_same``: it has the same text (a delivered spool), else
        start at its beginning."""
        self.places = tuple(places)
        self._identity = None
        if not is_same:
            self._at = None

    def look(self) -> OutputPart:
        """Return what has been written since the last read.

        Raises:
            OSError: no file can be read; ``filename`` is the last place.
            ValueError: it is not a regular file.
        """
        handle = self._open()
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("not a regular file")
            identity = (found.st_dev, found.st_ino)
            is_other = self._identity is not None and identity != self._identity
            is_anew = self._at is None or is_other or found.st_size < self._at
            self._identity = identity
            skipped = 0
            if is_anew:
                skipped = 0 if self.most is None else max(found.st_size - self.most, 0)
                self._at = skipped
            data = os.pread(handle, PIECE, self._at or 0)
        finally:
            os.close(handle)
        self._at = (self._at or 0) + len(data)
        return OutputPart(data, is_anew, skipped)

    def _open(self) -> int:
        for place in self.places[:-1]:
            try:
                return os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
        return os.open(self.places[-1], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
