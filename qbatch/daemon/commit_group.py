"""What one commit holds."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.state import Effect


class CommitGroup:
    """What one commit holds, and what follows it."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.outbox: list[Effect] = []
        self.replies: list[tuple[ConnectedClient, int, object]] = []

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.entries or self.replies or self.outbox)
