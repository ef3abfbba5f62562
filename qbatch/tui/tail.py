"""The end of a file that is being written: what is new in it, for the monitor and for ``qbatch output``."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

PIECE = 1 << 20
"""Bytes that one look brings at most."""


class OutputPart(NamedTuple):
    """What a look has found: ``data``; ``is_anew``: it is the beginning; ``skipped``: so many bytes before it are left out."""

    data: bytes
    is_anew: bool = False
    skipped: int = 0


class Tail:
    """Reads on in the first of some files that is there.

    A file that was exchanged or cut is read from its beginning again.

    Args:
        places: paths; one need not be there yet.
        most: bytes of the end that are read at first (None: all).
    """

    def __init__(self, places: Sequence[str] = (), most: int | None = None) -> None:
        self.places = tuple(places)
        self.most = most
        self._at: int | None = None
        self._identity: tuple[int, int] | None = None

    def follow(self, places: Sequence[str], *, is_same: bool = False) -> None:
        """Read on elsewhere; ``is_same``: there is the same text (a spool was delivered), else from the beginning."""
        self.places = tuple(places)
        self._identity = None
        if not is_same:
            self._at = None

    def look(self) -> OutputPart:
        """Return what has been written since the last look.

        Raises:
            OSError: no file can be read; ``filename`` is the last place.
            ValueError: it is no plain file.
        """
        handle = self._open()
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("no plain file")
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
