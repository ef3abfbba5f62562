"""How many passes were made, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PassTimes:
    """``count`` passes took ``seconds`` in all, the longest of them ``longest`` seconds."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """Note one pass."""
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
