"""Where the jobs of a source that reacts are, so that it knows again after a restart.

The journal holds what arrived; this holds whose those jobs are, who has ended since, and who is away until when.
"""

from __future__ import annotations

import msgspec

OWNER = "source_job"
"""The attribute of an arrival that says which job of the source it is."""


class SourceState(msgspec.Struct):
    """``visits``: how often each job of the source has come.  ``at_work``: by sequence number, which of them a job or an array of
    the server is.  ``ended``: instants in microseconds and jobs of the source that ended, or were turned away, since the source
    looked last.  ``away``: jobs of the source that are with its I/O station, each with the instant at which it comes back, in
    that order; ``io_end``: when the station will have done all that has joined it.
    """

    visits: dict[int, int] = {}
    at_work: dict[int, int] = {}
    ended: list[tuple[int, int]] = []
    away: list[tuple[int, int]] = []
    io_end: int = 0

    def arrived(self, at: int, sequence: int, owner: int) -> None:
        """A job of the source was submitted."""
        self._came(at, owner)
        self.at_work[sequence] = owner

    def refused(self, at: int, owner: int) -> None:
        """A job of the source was turned away: it has ended."""
        self._came(at, owner)
        self.ended.append((at, owner))

    def finished(self, at: int, sequence: int) -> None:
        """A job or an array of the server is over."""
        owner = self.at_work.pop(sequence, None)
        if owner is not None:
            self.ended.append((at, owner))

    def _came(self, at: int, owner: int) -> None:
        self.visits[owner] = self.visits.get(owner, 0) + 1
        self.away = [each for each in self.away if each[1] != owner]
        # When the journal is given to the core again, the source does not look in between.  Who comes back now was with the
        # station until now, and whoever joined it before has come back already.
        self.ended.sort()
        place = next((number for number, each in enumerate(self.ended) if each[1] == owner), None)
        if place is not None:
            del self.ended[: place + 1]
            self.io_end = max(self.io_end, at)
