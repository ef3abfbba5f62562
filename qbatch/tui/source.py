"""The interface of the sources of a board: a live daemon or a recording."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from qbatch.tui.board import Board
from qbatch.wire.requests import Request

Result = TypeVar("Result", bound=msgspec.Struct)


class MonitorSource(Protocol):
    """A source that feeds a board and answers requests."""

    @property
    def title(self) -> str:
        """Short name of the source."""

    @property
    def is_live(self) -> bool:
        """Whether there is a daemon that accepts commands."""

    @property
    def trouble(self) -> str:
        """The problem of the connection, empty if there is none."""

    async def run(self, board: Board) -> None:
        """Keep the board up to date until cancelled."""

    async def ask(self, request: Request, kind: type[Result]) -> Result:
        """Send a request or a command.

        Raises:
            QbatchError: it is refused, or there is no daemon.
        """

    async def drive(self, action: str, **given: Any) -> None:
        """Control time: an action of :class:`qbatch.wire.requests.Time`, or ``jump`` (``at``) in a
        recording.

        Raises:
            QbatchError: it is not possible here.
        """

    def progress(self) -> tuple[int, int] | None:
        """The played and the total length of a recording, in microseconds; None for a daemon."""
