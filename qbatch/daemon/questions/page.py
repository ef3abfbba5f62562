"""How much goes into one page of an answer: so many jobs, and so many bytes."""

from __future__ import annotations

import msgspec

from qbatch.wire.records import JobRecord

MOST = 1000
"""Jobs in one page."""

MOST_BYTES = 1 << 18
"""Bytes of a page; a job that is longer by itself is a page of its own."""

_encode = msgspec.json.Encoder().encode


class PageRoom:
    """The room that a page has left.

    Args:
        limit: jobs that are asked for.
    """

    def __init__(self, limit: int) -> None:
        self._jobs = min(max(limit, 1), MOST)
        self._bytes = MOST_BYTES

    def takes(self, record: JobRecord) -> bool:
        """Tell whether a job still goes into the page, and take it in."""
        if self._jobs == 0 or self._bytes <= 0:
            return False
        size = len(_encode(record))
        is_first = self._bytes == MOST_BYTES
        if size > self._bytes and not is_first:
            self._bytes = 0
            return False
        self._jobs -= 1
        self._bytes -= size
        return True
