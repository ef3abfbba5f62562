"""Limits of the memory for answers that clients have not read yet, for each user and for all.

The server does not read from a connection with more than :data:`MOST_OF_CONNECTION` unread bytes,
so a connection holds these and one answer at most.  Many connections hold as much each, so there is
a limit for all connections of a user.  Beyond it, questions with possibly long answers wait until
something is read, or until the connections that read nothing are closed.  Short questions wait only
on connections that have not read their last answers.  Beyond the limit of all users the same
applies to each user with more than a little unread.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections import Counter
from typing import Protocol

MOST_OF_CONNECTION = 1 << 16
"""Unread bytes from which nothing more is read from a connection."""

MOST_OF_USER = 1 << 24
"""Unread bytes of all connections of a user from which long answers wait."""

MOST_OF_ALL = 1 << 26
"""Unread bytes of all connections from which long answers wait."""

LITTLE_OF_USER = 1 << 20
"""Unread bytes that a user may have however many others have."""

LITTLE_OF_CONNECTION = 1 << 12
"""Unread bytes of a connection with which it still gets short answers."""

PAUSE = 0.05
"""Seconds between two checks whether waiting connections may go on."""

WORTH_A_TRIM = 1 << 22
"""Unread bytes from which, when most of them were read, memory is returned to the system."""


class SharedFrame(bytes):
    """An event as a frame: one copy for all subscribers."""


class Reader(Protocol):
    """A connection: its user, its unread bytes, and what is called when it need not wait any
    more."""

    uid: int

    @property
    def unread(self) -> int: ...

    def may_go_on(self) -> None: ...


class Unread:
    """The unread answers of all connections."""

    def __init__(self) -> None:
        self._sizes: dict[Reader, int] = {}
        self._of_user: Counter[int] = Counter()
        self._total = 0
        self._most = 0
        self._waiting: dict[Reader, None] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self._timer: asyncio.TimerHandle | None = None

    def turn_of(self, uid: int) -> asyncio.Lock:
        """Return the lock of a user, held while a page is read from the store or a script is
        checked: one at a time."""
        return self._turns.setdefault(uid, asyncio.Lock())

    def note(self, reader: Reader) -> None:
        """Note the unread bytes of a connection, after something was sent or when it is closed."""
        size, before = reader.unread, self._sizes.get(reader, 0)
        if size == before:
            return
        if size:
            self._sizes[reader] = size
        else:
            del self._sizes[reader]
        self._of_user[reader.uid] += size - before
        self._total += size - before
        self._most = max(self._most, self._total)
        if self._most >= WORTH_A_TRIM and self._total < WORTH_A_TRIM // 4:
            self._most = self._total
            loop = asyncio.get_running_loop()
            loop.call_later(1.0, loop.run_in_executor, None, give_memory_back)

    def must_wait(self, reader: Reader, *, is_long: bool) -> bool:
        """Return whether an answer (``is_long``: a long one) must wait; the client's ``may_go_on``
        is then called later."""
        if not self._is_over(reader.uid) or not (is_long or reader.unread > LITTLE_OF_CONNECTION):
            return False
        if self._timer is None:  # the noted bytes may have been read since
            for each in list(self._sizes):
                self.note(each)
            if not self._is_over(reader.uid):
                return False
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._look_again)
        self._waiting[reader] = None
        return True

    def forget(self, reader: Reader) -> None:
        """Forget a closed connection."""
        self._waiting.pop(reader, None)
        self.note(reader)

    def _is_over(self, uid: int) -> bool:
        mine = self._of_user[uid]
        return mine > MOST_OF_USER or (self._total > MOST_OF_ALL and mine > LITTLE_OF_USER)

    def _look_again(self) -> None:
        """Let connections go on that need not wait any more."""
        for reader in list(self._sizes):
            self.note(reader)
        for reader in [each for each in self._waiting if not self._is_over(each.uid)]:
            del self._waiting[reader]
            reader.may_go_on()
        self._timer = (
            asyncio.get_running_loop().call_later(PAUSE, self._look_again)
            if self._waiting
            else None
        )


def give_memory_back() -> None:
    """Return freed memory of the C library to the system, if the library can do so (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
