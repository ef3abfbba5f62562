"""The server's clock: real, scaled or virtual time, in microseconds.  The one place that reads the machine's clocks.

Real time follows the monotonic clock from one look at the wall (a jump of the wall moves nothing).  Scaled time runs
``speed`` times as fast from an origin.  Virtual time stands still until it is moved: ``speed`` 0 goes from event to event
as fast as it can, another speed waits between them.
"""

from __future__ import annotations

import time

from qbatch.model.errors import UsageError
from qbatch.wire.records import ClockRecord

FOREVER = 1 << 62

SLOWEST, FASTEST = 1e-6, 1e9
"""Seconds of server time a second of the wall, at the least and at the most."""


class Clock:
    """The time that commands are stamped with and timers are due in.

    Args:
        mode: ``real``, ``scaled`` or ``virtual``.
        speed: seconds of server time a second of the wall; 0 in virtual time: as fast as it can.
        origin: the instant at which scaled and virtual time begin.
    """

    def __init__(self, mode: str = "real", speed: float = 1.0, origin: int | None = None) -> None:
        self.mode = mode
        self.speed = speed
        self.is_paused = False
        self.until = FOREVER
        self.until_text = ""
        self._last = time.time_ns() // 1000 if origin is None else origin
        self._base = self._last
        self._mark = time.monotonic()

    @property
    def is_stepped(self) -> bool:
        """Whether time stands still between events."""
        return self.mode == "virtual" and self.speed == 0

    def now(self) -> int:
        """Return the instant; it never runs backwards."""
        if not (self.is_stepped or self.is_paused):
            rate = 1.0 if self.mode == "real" else self.speed
            moved = self._base + int((time.monotonic() - self._mark) * 1e6 * rate)
            self._last = max(self._last, min(moved, self.until))
        return self._last

    def limit(self) -> int:
        """Return the last instant that may be handled now."""
        if self.is_paused:
            return self._last
        return self.until if self.is_stepped else min(self.now(), self.until)

    def reach(self, at: int) -> None:
        """An event at ``at`` is being handled: time is not before it."""
        self._last = max(self._last, at)

    def delay(self, due: int) -> float | None:
        """Return the seconds of the wall until an instant is due, None if it is not to be waited for."""
        if self.is_paused or due > self.until:
            return None
        if self.is_stepped:
            return 0.0
        rate = 1.0 if self.mode == "real" else self.speed
        return max(due - self.now(), 0) / 1e6 / rate

    def start_at(self, at: int) -> None:
        """Go on from an instant (after a restart); real time is not before the wall."""
        self._last = max(at, time.time_ns() // 1000) if self.mode == "real" else at
        self._rebase()

    def pause(self) -> None:
        """Let time stand still."""
        if not self.is_paused:
            self.now()
        self.is_paused = True
        self.until_text = ""

    def play(self, speed: float | None = None, until: int = FOREVER, text: str = "") -> None:
        """Let time go on, with another speed, up to an instant."""
        self.now()
        self.is_paused = False
        self.until, self.until_text = until, text
        if speed is not None:
            self.speed = speed
        self._rebase()

    def _rebase(self) -> None:
        self._base, self._mark = self._last, time.monotonic()

    def record(self) -> ClockRecord:
        """Return the clock as the outside sees it."""
        return ClockRecord(
            mode=self.mode, now=self.now(), speed=self.speed, is_paused=self.is_paused, until=self.until_text
        )


def parse_time(text: str) -> tuple[str, float]:
    """Return mode and speed of ``real``, ``x60``, ``virtual``, ``virtual:x100``.

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
            f"--time {text}: write real, x60 (sixty times as fast), virtual or virtual:x100; a speed is from {SLOWEST:g} to "
            f"{FASTEST:g}"
        )
    return mode, speed
