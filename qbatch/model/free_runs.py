"""Which processors are free, for pictures that show the processors of a job (Gantt charts, the host
grid)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class FreeRuns:
    """The free processors of a machine, as ascending runs ``[low, high)`` that do not touch."""

    def __init__(self, total: int) -> None:
        self.lows = [0] if total > 0 else []
        self.highs = [total] if total > 0 else []

    @property
    def count(self) -> int:
        """The number of free processors."""
        return sum(self.highs) - sum(self.lows)

    def take(self, procs: int) -> list[tuple[int, int]]:
        """Take the lowest run that is long enough, else the lowest processors; fewer than asked if
        there are not enough."""
        for place, (low, high) in enumerate(zip(self.lows, self.highs, strict=True)):
            if high - low >= procs:
                self._shorten(place, low + procs)
                return [(low, low + procs)]
        taken = []
        while procs and self.lows:
            low, high = self.lows[0], self.highs[0]
            until = min(high, low + procs)
            taken.append((low, until))
            self._shorten(0, until)
            procs -= until - low
        return taken

    def remove(self, low: int, high: int) -> list[tuple[int, int]]:
        """Take what is free from ``low`` to before ``high``, and return it."""
        runs = [*zip(self.lows, self.highs, strict=True)]
        taken = [
            (max(first, low), min(last, high))
            for first, last in runs
            if first < high and last > low
        ]
        for begin, end in taken:
            place = bisect_right(self.lows, begin) - 1
            first, last = self.lows[place], self.highs[place]
            left = [(at, until) for at, until in ((first, begin), (end, last)) if at < until]
            self.lows[place : place + 1] = [at for at, _ in left]
            self.highs[place : place + 1] = [until for _, until in left]
        return taken

    def copy(self) -> FreeRuns:
        """Return an independent copy."""
        duplicate = FreeRuns(0)
        duplicate.lows, duplicate.highs = list(self.lows), list(self.highs)
        return duplicate

    def _shorten(self, place: int, low: int) -> None:
        if low == self.highs[place]:
            del self.lows[place], self.highs[place]
        else:
            self.lows[place] = low

    def give(self, low: int, high: int) -> None:
        """Give a run back, joined to its neighbours."""
        place = bisect_left(self.lows, low)
        if place < len(self.lows) and self.lows[place] == high:
            high = self.highs[place]
            del self.lows[place], self.highs[place]
        if place and self.highs[place - 1] == low:
            self.highs[place - 1] = high
        else:
            self.lows.insert(place, low)
            self.highs.insert(place, high)
