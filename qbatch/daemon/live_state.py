"""The live state of a server: its core, and what was done to it since the last commit.

The service and its drivers share it: they change the core, add to the next commit, and ask for one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TypeAlias

from qbatch.daemon.connection import ConnectedClient
from qbatch.daemon.containment import Containment
from qbatch.daemon.core.state import Core, Effect
from qbatch.daemon.event_stream import EventStream
from qbatch.model.errors import DecisionError, QbatchError

log = logging.getLogger("qbatch")

Asker: TypeAlias = "tuple[ConnectedClient, int] | asyncio.Future[object]"
"""The receiver of an answer: a client with the number of its request, or a task of the server."""


class Stopped(QbatchError):  # noqa: N818 - the name states what the server has done
    """The server had to stop after an unexpected error (exit code 1); its log has the traceback."""


class CommitGroup:
    """The contents of one commit, and what follows it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.outbox: list[Effect] = []
        self.replies: list[tuple[ConnectedClient, int, object]] = []

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to commit."""
        return not (self.entries or self.replies or self.outbox)


class LiveState:
    """The state in memory, of which the store has all but the present commit group.

    ``is_full``: the disk has no space.  ``failure``: why the server stops.  ``commit_lock``: held
    during a commit.
    """

    def __init__(self, core: Core, containment: Containment, event_stream: EventStream) -> None:
        self.core = core
        self.containment = containment
        self.event_stream = event_stream
        self.event_stream.last = core.events_made
        self.is_full = False
        self.failure: BaseException | None = None
        self.commit_lock = asyncio.Lock()
        self._group = CommitGroup()
        self._work = asyncio.Event()

    @property
    def uncommitted(self) -> int:
        """Entries of the journal that wait for a commit."""
        return len(self._group.entries)

    def journal(self, *entries: bytes) -> None:
        """Add entries to the next commit."""
        self._group.entries += entries

    def collect(self) -> None:
        """Take the new effects from the core's outbox; a commit follows."""
        self._group.outbox += self.core.take_effects()
        self._work.set()

    def answer(self, client: ConnectedClient, number: int, result: object) -> None:
        """Answer a request when its effect is committed."""
        self._group.replies.append((client, number, result))

    def is_at_rest(self) -> bool:
        """Return whether everything that was received is committed."""
        return self._group.is_empty and not self.commit_lock.locked()

    def commit_soon(self) -> None:
        """Commit what was received, even if nothing in it has an effect."""
        self._work.set()

    def fail(self, error: BaseException) -> None:
        """Stop after an unexpected error without an answer to any client; the next start
        recovers."""
        is_known = isinstance(error, QbatchError)
        log.critical(
            "the server stops: %s: %s",
            type(error).__name__,
            error,
            exc_info=None if is_known else error,
        )
        if self.failure is None:
            self.failure = (
                error
                if is_known
                else Stopped(f"the server had to stop: {type(error).__name__}: {error}")
            )
            if isinstance(error, DecisionError):
                again = (
                    "no job is lost: start again under another policy, for example qbatch up "
                    "--policy easy"
                )
                self.failure = DecisionError(f"{error}; {again}")
        self._work.set()
