"""The lines at the top: the source, the clock and its speed, the number of jobs by state, and
problems."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.text import Text
from textual.widget import Widget

from qbatch.results.shown import clean, moment, short_span
from qbatch.tui.board import Board
from qbatch.tui.panels.jobs import bar
from qbatch.tui.source import MonitorSource


class Status(Widget):
    """Two lines, redrawn whenever the clock moves."""

    DEFAULT_CSS = """
    Status { height: 2; background: $panel; color: $text; padding: 0 1; }
    """

    def __init__(self, board: Board, source: MonitorSource, **given: Any) -> None:
        super().__init__(**given)
        self.board = board
        self.source = source

    def render(self) -> Text:
        board = self.board
        server = board.server
        text = Text(no_wrap=True, overflow="ellipsis")
        if self.source.trouble:
            text.append(f"{clean(self.source.trouble)}", "bold reverse")
            text.append("  ")
        text.append(clean(server.name or self.source.title), "bold")
        if not (board.queues or board.grid.places):
            text.append("  waiting for the first answer")
            return text
        policies = {queue.policy for queue in board.queues.values() if queue.policy} or {
            server.policy
        }
        text.append(f"  {', '.join(sorted(policies))}")
        text.append(f"  {moment(board.now())}", "bold")
        clock = board.clock
        if clock.mode == "real":
            text.append("  real time\n")
        else:
            speed = "as fast as it can" if not clock.speed else f"x{clock.speed:,.15g}"
            until = f" until {clean(clock.until)}" if clock.until else ""
            mode = clock.mode if self.source.is_live else "recording"
            text.append(f"  {'paused,' if clock.is_paused else '▶'} {mode} {speed}{until}\n")
        counts: Counter[str] = Counter()
        for queue in board.queues.values():
            counts.update(queue.counts)
        words = (("running", "RE"), ("queued", "Q"), ("held", "HW"), ("suspended", "S"))
        shown = [
            f"{number:,} {word}"
            for word, letters in words
            if (number := sum(counts[letter] for letter in letters))
            or word in ("running", "queued")
        ]
        text.append(", ".join(shown))
        text.append(f", {board.ended:,} ended here")
        text.append(self._progress())
        for phase in server.phases:
            text.append(f"  {clean(phase.name)}")
            if phase.until is not None:
                text.append(f", {short_span(max(phase.until - board.now(), 0))} left")
            if phase.on_disk:
                text.append(f", {phase.on_disk:,} on disk")
        return text

    def _progress(self) -> str:
        played = self.source.progress()
        if played is not None:
            now, length = played
            return (
                f"  {bar(now / length if length else 1.0, 16)} {short_span(now)} of "
                f"{short_span(length)}"
            )
        clock = self.board.clock
        if clock.log_jobs:
            arrived = clock.log_arrived or 0
            return f"  log {bar(arrived / clock.log_jobs, 16)} {arrived:,} of {clock.log_jobs:,}"
        return ""
