"""A quantity over time in a limited number of buckets; when they are full, every two are merged."""

from __future__ import annotations

import copy

CAPACITY = 480
"""The most buckets of one series (an even number)."""


class Series:
    """The busy processors, waiting jobs and ended jobs over time, from the first look until now.

    Times are microseconds on the server's clock; ``width`` is the length of a bucket.  ``busy`` and
    ``waiting`` hold integrals (processors x microseconds, jobs x microseconds), so that two buckets
    are merged by addition.
    """

    def __init__(self, width: int = 1_000_000) -> None:
        self.width = width
        self.begin: int | None = None
        self.busy: list[float] = []
        self.waiting: list[float] = []
        self.ended: list[int] = []
        self._last = 0
        self._levels = (0, 0)

    def note(self, at: int, busy: int, waiting: int, ended: int = 0) -> None:
        """Record ``busy`` processors and ``waiting`` jobs from ``at`` on, and ``ended`` jobs at
        it."""
        if self.begin is None:
            self.begin = self._last = at
            self._open()
        at = max(at, self._last)
        while at >= self.begin + CAPACITY * self.width:
            for name in ("busy", "waiting", "ended"):  # merge every two buckets
                buckets = getattr(self, name)
                setattr(
                    self,
                    name,
                    [sum(buckets[place : place + 2]) for place in range(0, len(buckets), 2)],
                )
            self.width *= 2
        while at >= self.begin + len(self.busy) * self.width:
            self._fill(self.begin + len(self.busy) * self.width)
            self._open()
        self._fill(at)
        self._levels = (busy, waiting)
        self.ended[-1] += ended

    def means(self) -> tuple[list[float], list[float]]:
        """Return the mean of each bucket, of the last one so far: busy processors, waiting jobs."""
        if self.begin is None:
            return [], []
        passed = self._last - (self.begin + (len(self.busy) - 1) * self.width)
        last = (self.busy[-1] / passed, self.waiting[-1] / passed) if passed else self._levels
        return (
            [*(each / self.width for each in self.busy[:-1]), float(last[0])],
            [*(each / self.width for each in self.waiting[:-1]), float(last[1])],
        )

    def copy(self) -> Series:
        duplicate = copy.copy(self)
        duplicate.busy, duplicate.waiting, duplicate.ended = (
            list(self.busy),
            list(self.waiting),
            list(self.ended),
        )
        return duplicate

    def _open(self) -> None:
        self.busy.append(0.0)
        self.waiting.append(0.0)
        self.ended.append(0)

    def _fill(self, until: int) -> None:
        """Extend the present levels until an instant within the last bucket."""
        passed = until - self._last
        self.busy[-1] += self._levels[0] * passed
        self.waiting[-1] += self._levels[1] * passed
        self._last = until
