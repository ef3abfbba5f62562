"""Where a board gets its facts from: a live daemon or a recording, behind one interface."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from qbatch.tui.board import Board
from qbatch.wire.requests import Request

Result = TypeVar("Result", bound=msgspec.Struct)


class MonitorSource(Protocol):
    """What feeds a board and answers questions."""

    @property
    def title(self) -> str:
        """What is watched, in a few words."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether there is a daemon that takes commands."""
        ...

    @property
    def trouble(self) -> str:
        """What is wrong with the connection, empty if nothing is."""
        ...

    async def run(self, board: Board) -> None:
        """Keep the board up to date until cancelled."""
        ...

    async def ask(self, request: Request, kind: type[Result]) -> Result:
        """Ask something or command something.

        Raises:
            QbatchError: it is refused, or there is nobody to ask.
        """
        ...

    async def drive(self, action: str, **given: Any) -> None:
        """Drive time: an action of :class:`qbatch.wire.requests.Time`, or ``jump`` (``at``) in a recording.

        Raises:
            QbatchError: it cannot be done here.
        """
        ...

    def progress(self) -> tuple[int, int] | None:
        """How far a recording has been played: (now, length) in microseconds from its begin; None for a daemon."""
        ...
