"""The planned hosts of one cycle of Slurm's backfill (``_add_reservation`` and ``node_space``;
docs/spec/production.md 4.2).

A waiting job takes its planned hosts whole, whatever it needs of them.  Time is in whole seconds.
"""

from __future__ import annotations

import numpy as np

from qbatch.planning.kernels.types import BoolArray


class Segment:
    """A span ``[begin, end)`` of the plan, and the hosts that no job is planned on in it."""

    __slots__ = ("begin", "end", "hosts")

    def __init__(self, begin: int, end: int, hosts: BoolArray) -> None:
        self.begin, self.end, self.hosts = begin, end, hosts


class PlannedHosts:
    """The segments of the plan, in order of time."""

    def __init__(self, begin: int, end: int, hosts: BoolArray) -> None:
        self.segments = [Segment(begin, end, hosts.copy())]

    def book(self, start: int, end: int, taken: BoolArray, resolution: int) -> None:
        """Take hosts out of ``[start, end)``, at least one step of the resolution.

        As in Slurm at most one pair of equal neighbours is joined afterwards.
        """
        segments = self.segments
        start = max(start, segments[0].begin)
        end = max(end, start + resolution)
        place, before = 0, 0
        while place < len(segments) and segments[place].end < start:
            before, place = place, place + 1
        after: int | None = None
        if place < len(segments):
            if segments[place].end > start:
                self._cut(place, start)
            for number in range(place + 1, len(segments)):
                if end < segments[number].end:
                    self._cut(number, end)
                segments[number].hosts = segments[number].hosts & ~taken
                if end == segments[number].end:
                    after = number + 1 if number + 1 < len(segments) else None
                    break
        place = before
        while place + 1 < len(segments) and place != after:
            if np.array_equal(segments[place].hosts, segments[place + 1].hosts):
                segments[place].end = segments[place + 1].end
                del segments[place + 1]
                break
            place += 1

    def _cut(self, place: int, instant: int) -> None:
        """Divide a segment at an instant inside it, or at its begin: then the first part is
        empty."""
        segment = self.segments[place]
        self.segments.insert(place + 1, Segment(instant, segment.end, segment.hosts))
        segment.end = instant

    def overlaps(self, chosen: BoolArray, start: int, end: int) -> bool:
        """Return whether one of some hosts is planned for another job in ``[start, end)``."""
        return any(
            segment.end > start and segment.begin < end and bool((chosen & ~segment.hosts).any())
            for segment in self.segments
        )
