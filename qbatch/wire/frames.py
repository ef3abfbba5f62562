"""Frames: a length of four bytes, big-endian, and a body.  The module does no I/O: it turns bytes
into bodies."""

from __future__ import annotations

LONGEST_REQUEST = 1 << 20
"""Bytes of the longest request that a daemon reads."""

LONGEST_REPLY = 1 << 26
"""Bytes of the longest reply that a client reads."""


class FrameError(Exception):
    """A frame cannot be read, and neither can the rest of the stream."""


def encode(body: bytes) -> bytes:
    """Return a body as a frame."""
    return len(body).to_bytes(4, "big") + body


class Splitter:
    """Cuts a stream of bytes into bodies."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether no part of a frame waits for the rest of it."""
        return not self._buffer

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes and return the bodies that they complete.

        Raises:
            FrameError: a frame is longer than allowed, or empty.
        """
        buffer = self._buffer
        buffer += data
        bodies = []
        place, size = 0, len(buffer)
        while size - place >= 4:
            length = int.from_bytes(buffer[place : place + 4], "big")
            if not 0 < length <= self._longest:
                raise FrameError(f"a frame of {length} bytes; 1 to {self._longest} are allowed")
            if size - place - 4 < length:
                break
            bodies.append(bytes(buffer[place + 4 : place + 4 + length]))
            place += 4 + length
        del buffer[:place]
        return bodies
