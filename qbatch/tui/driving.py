"""Control of time from the keyboard: steps of speed, and the texts of "run until" and "jump to"."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from qbatch.model.errors import UsageError
from qbatch.results.shown import clean
from qbatch.tui.board import Board
from qbatch.wire.resources import parse_duration

_STEPS = [step * 10**power for power in range(-1, 9) for step in (1, 2, 5)]


def next_speed(board: Board, is_faster: bool) -> float:
    """Return the next speed above or below the present one; in virtual time 0, as fast as possible,
    is the highest."""
    clock = board.clock
    if not clock.speed:
        return 0.0 if is_faster else 1e6
    if is_faster:
        above = next((step for step in _STEPS if step > clock.speed * 1.0001), None)
        if clock.mode == "virtual" and (above is None or above > 1e6):
            return 0.0
        return clock.speed if above is None else float(above)
    below = [step for step in _STEPS if step < clock.speed * 0.9999]
    return float(below[-1]) if below else clock.speed


def read_until(text: str, board: Board) -> dict[str, Any]:
    """Return the arguments of :meth:`qbatch.tui.source.MonitorSource.drive` for "run until".

    The text is ``start 17``, ``end 17``, ``5 jobs``, an instant (``2026-11-21T08:00``) or
    ``+1:30:00`` from now.

    Raises:
        UsageError: the text is none of these.
    """
    words = text.split()
    if len(words) == 2 and words[0] in ("start", "end"):
        return {"action": f"until-{words[0]}", "job": words[1]}
    if (
        len(words) == 2
        and words[1].startswith("job")
        and words[0].isdecimal()
        and 0 < int(words[0]) < 1 << 62
    ):
        return {"action": "until-count", "count": int(words[0])}
    return {"action": "until", "at": read_instant(text, board.now(), 0, 0)}


def read_instant(text: str, now: int, begin: int, length: int) -> int:
    """Return the instant of a text: ISO, ``+1h`` or ``-1h`` from ``now``, ``50%`` of a recording.

    Raises:
        UsageError: the text is none of these.
    """
    word = text.strip()
    try:
        if word.endswith("%") and length:
            at = begin + round(float(word[:-1]) / 100 * length)
        elif word[:1] in "+-" and word:
            units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
            has_unit = word[-1] in units  # 2h, 15m, 3d; others are 90 or 1:30:00
            span = (
                round(float(word[1:-1]) * units[word[-1]] * 1e6)
                if has_unit
                else parse_duration(word[1:])
            )
            at = now + (1 if word[0] == "+" else -1) * span
        else:
            at = round(datetime.fromisoformat(word).timestamp() * 1e6)
        if abs(at) >= 1 << 62:
            raise ValueError
        return at
    except (ValueError, OverflowError):
        percent = ", 50%" if length else ""
        forms = f"2026-11-21T08:00, +1:30:00, +2h, -15m{percent}"
        raise UsageError(f"{clean(word)!r} is not an instant; write {forms}") from None
