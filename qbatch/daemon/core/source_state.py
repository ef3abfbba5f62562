"""Where the jobs of a source that reacts are, so that it knows again after a restart.

The journal holds what arrived; this holds whose those jobs are, and which have ended and not come back.
"""

from __future__ import annotations

import msgspec

OWNER = "source_job"
"""The attribute of an arrival that says which job of the source it is."""

LOG_NUMBER = "log_number"
"""The attribute of an arrival of a log that says which job of the log it is."""

REFUSED_FOR = 1_000_000
"""A job that was turned away has not ended before so many microseconds have passed: else time could stand still."""


class SourceState(msgspec.Struct):
    """``visits``: how often each job of the source has come.  ``at_work``: by sequence number, which of them a job or an array of
    the server is.  ``ended``: instants in microseconds and jobs of the source that have ended and are with its I/O station, which
    takes one after another, by instant and number.  ``io_end``: when the last one that has come back did so.
    """

    visits: dict[int, int] = {}
    at_work: dict[int, int] = {}
    ended: list[tuple[int, int]] = []
    io_end: int = 0

    def arrived(self, at: int, sequence: int, owner: int) -> None:
        """A job of the source was submitted."""
        self._came(at, owner)
        self.at_work[sequence] = owner

    def refused(self, at: int, owner: int) -> None:
        """A job of the source was turned away."""
        self._came(at, owner)
        self.ended.append((at + REFUSED_FOR, owner))

    def finished(self, at: int, sequence: int) -> None:
        """A job or an array of the server is over."""
        owner = self.at_work.pop(sequence, None)
        if owner is not None:
            self.ended.append((at, owner))

    def _came(self, at: int, owner: int) -> None:
        self.visits[owner] = self.visits.get(owner, 0) + 1
        self.ended = [each for each in self.ended if each[1] != owner]
        self.io_end = max(self.io_end, at)
