"""The server's clock: real, scaled or virtual time, in microseconds.  Only this module reads the
machine's clocks.

Real time follows the wall clock, but never runs backwards (docs/explanation/reliability.md).
Between two readings it runs at the pace of the monotonic clock; a difference between the two
clocks is a step of the wall clock.  A step forward is followed at once.  After a small step
backward the server's clock stands until the wall clock has caught up.  After a larger one it runs
on, ahead of the wall clock, and logs by how much.

Scaled time runs ``speed`` times as fast from an origin.  Virtual time stands still until it is
moved: with ``speed`` 0 it goes from event to event as fast as possible, with another speed it waits
between events.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from qbatch.model.errors import UsageError
from qbatch.results.shown import span
from qbatch.wire.records import ClockRecord

log = logging.getLogger("qbatch")

FOREVER = 1 << 62

SLOWEST, FASTEST = 1e-6, 1e9
"""The lowest and the highest speed: seconds of server time for each second of the wall clock."""

STEP = 100_000
"""Microseconds of difference to the monotonic clock from which the wall clock counts as stepped."""

LITTLE = 60_000_000
"""Microseconds for which the clock stands at most until the wall clock has caught up."""

LOOK = 1.0
"""Seconds after which the wall clock is read, whatever is due."""


def wall() -> int:
    """Return the time of the wall clock: microseconds since 1970."""
    return time.time_ns() // 1000


class Clock:
    """The clock that stamps commands and drives timers.

    Args:
        mode: ``real``, ``scaled`` or ``virtual``.
        speed: seconds of server time for each second of the wall clock; 0 in virtual time: as fast
            as possible.
        origin: the instant at which scaled and virtual time begin.
    """

    def __init__(self, mode: str = "real", speed: float = 1.0, origin: int | None = None) -> None:
        self.mode = mode
        self.speed = speed
        self.is_paused = False
        self.until = FOREVER
        self.until_text = ""
        self._last = wall() if origin is None else origin
        self._base = self._last
        self._ahead = 0
        self._mark = time.monotonic()

    @property
    def is_stepped(self) -> bool:
        """Whether time stands still between events."""
        return self.mode == "virtual" and self.speed == 0

    def now(self) -> int:
        """Return the present instant, which never decreases."""
        if not (self.is_stepped or self.is_paused):
            self._last = max(self._last, min(self._moved(), self.until))
        return self._last

    def ahead(self) -> int:
        """Return how far real time is ahead of the wall clock after a large step backward, in
        microseconds."""
        return max(self.now() - wall(), 0) if self.mode == "real" else 0

    def _moved(self) -> int:
        """Return how far time has moved; the value is below ``_last`` when the clock has to
        stand."""
        if self.mode != "real":
            return self._base + int((time.monotonic() - self._mark) * 1e6 * self.speed)
        moved, here = self._base + int((time.monotonic() - self._mark) * 1e6), wall()
        ahead = moved - here
        if abs(ahead - self._ahead) <= STEP and (not self._ahead or ahead > LITTLE):
            return moved
        if ahead < self._ahead:
            log.warning("the machine's clock was set forward by %s", _rounded(self._ahead - ahead))
        else:
            log.warning("the machine's clock was set back by %s", _rounded(ahead - self._ahead))
        if ahead <= LITTLE:
            self._base, self._mark, self._ahead = here, time.monotonic(), 0
            return here
        log.warning(
            "the server's clock goes on %s ahead of it until the server is started again",
            _rounded(ahead),
        )
        self._ahead = ahead
        return moved

    def limit(self) -> int:
        """Return the last instant that may be handled now."""
        if self.is_paused:
            return self._last
        return self.until if self.is_stepped else min(self.now(), self.until)

    def reach(self, at: int) -> None:
        """Move time to ``at`` at least, because an event of that instant is being handled."""
        self._last = max(self._last, at)

    def delay(self, due: int) -> float | None:
        """Return the seconds of the wall clock until an instant is due; None if it is not to be
        waited for."""
        if self.is_paused or due > self.until:
            return None
        if self.is_stepped:
            return 0.0
        if self.mode == "real":
            return min(max(due - self._moved(), 0) / 1e6, LOOK)
        return max(due - self.now(), 0) / 1e6 / self.speed

    def start_at(self, at: int) -> None:
        """Continue from an instant (after a restart); real time stands there until the wall clock
        has caught up."""
        self._last = at
        self._rebase()
        if self.mode == "real":
            self._base = wall()
            if at - self._base > LITTLE:
                self._base, self._ahead = at, at - self._base

    def pause(self) -> None:
        """Stop time."""
        self.now()
        self.is_paused = True
        self.until_text = ""

    def play(self, speed: float | None = None, until: int = FOREVER, text: str = "") -> None:
        """Let time run again, at another speed if one is given, up to an instant."""
        self.now()
        self.is_paused = False
        self.until, self.until_text = until, text
        if speed is not None:
            self.speed = speed
        self._rebase()

    def _rebase(self) -> None:
        self._base, self._mark = self._last, time.monotonic()

    def record(self) -> ClockRecord:
        """Return the clock as clients see it."""
        return ClockRecord(
            mode=self.mode,
            now=self.now(),
            speed=self.speed,
            is_paused=self.is_paused,
            until=self.until_text,
            ahead=self.ahead(),
        )


def _rounded(microseconds: int) -> str:
    return span(microseconds + 500_000)


def parse_time(text: str) -> tuple[str, float]:
    """Return the mode and the speed of ``real``, ``x60``, ``virtual`` or ``virtual:x100``.

    Raises:
        UsageError: for anything else.
    """
    word = text.strip().lower()
    if word == "real":
        return "real", 1.0
    mode, _, factor = word.partition(":") if word.startswith("virtual") else ("scaled", "", word)
    if mode == "virtual" and not factor:
        return "virtual", 0.0
    try:
        speed = float(factor.removeprefix("x")) if factor.startswith("x") else -1.0
    except ValueError:
        speed = -1.0
    if mode not in ("virtual", "scaled") or not SLOWEST <= speed <= FASTEST:
        raise UsageError(
            f"--time {text}: write real, x60 (sixty times as fast), virtual or virtual:x100; a "
            f"speed is from {SLOWEST:g} to "
            f"{FASTEST:g}"
        )
    return mode, speed


@dataclass
class PassTimes:
    """Times of passes: ``count`` passes took ``seconds`` in all, the longest of them ``longest``
    seconds."""

    count: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """Note one pass."""
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
