"""What a start, or a state that is not to be trusted, reads from the store."""

from __future__ import annotations

from dataclasses import dataclass

from qbatch.daemon.core.state import Account, Core


@dataclass(frozen=True)
class Recovered:
    """What was read from the store.

    ``was_there``: whether the store had been used.  ``records``: the accounting of the journal's tail.  ``touched``: the live
    jobs that the commands since the last pass were about.
    """

    core: Core
    was_there: bool
    records: list[Account]
    touched: tuple[str, ...]
