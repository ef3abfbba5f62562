"""Utilisation, queue length and throughput since the monitor was opened, as small bar charts side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.segment import Segment
from textual.containers import Horizontal

from qbatch.reports.shown import short_span
from qbatch.tui.board import Board
from qbatch.tui.panels.drawn import Drawn

_BLOCKS = " ▁▂▃▄▅▆▇█"
_HOUR = 3_600_000_000


class Chart(Drawn, can_focus=False):
    """One quantity.

    Args:
        values: gives the values, the latest last, what the highest is, and the present one as a text.
        tone: the name of the style of its bars.
    """

    def __init__(
        self, title: str, values: Callable[[], tuple[list[float], float, str]], tone: str, **given: Any
    ) -> None:
        super().__init__(**given)
        self.border_title = title
        self._values = values
        self._tone = tone
        self._points: list[float] = []
        self._top = 1.0

    def show(self) -> None:
        """Draw what is on the board."""
        values, top, text = self._values()
        self.border_subtitle = text
        self._top = max(top, 1e-9)
        self._points = _resampled(values, self.columns)
        self.measure(self.columns, self.lines)
        self.refresh()

    def line(self, number: int) -> list[Segment]:
        """Return one line of the bars."""
        lines = self.lines
        below, scale = (lines - 1 - number) * 8, lines * 8 / self._top
        text = "".join(_BLOCKS[max(min(round(point * scale) - below, 8), 0)] for point in self._points)
        return [Segment(text, self.tone(self._tone))]


class Charts(Horizontal):
    """The three charts.

    Args:
        board: what is shown.
    """

    def __init__(self, board: Board, **given: Any) -> None:
        self.board = board
        self.charts = [
            Chart("utilisation", self._busy, "good"),
            Chart("waiting", self._waiting, "warning"),
            Chart("ended an hour", self._ended, "muted"),
        ]
        super().__init__(*self.charts, **given)

    def show(self) -> None:
        """Draw what is on the board."""
        board = self.board
        if not board.is_stale:
            board.series.note(board.now(), board.grid.busy, board.waiting_total)
        for chart in self.charts:
            chart.show()

    def _busy(self) -> tuple[list[float], float, str]:
        cpus = self.board.grid.cpus
        return self.board.series.means()[0], cpus, f"{100 * self.board.grid.busy / cpus:.0f} %" if cpus else "-"

    def _waiting(self) -> tuple[list[float], float, str]:
        values = self.board.series.means()[1]
        return values, max(values, default=1.0), f"{self.board.waiting_total:,}"

    def _ended(self) -> tuple[list[float], float, str]:
        series = self.board.series
        rate = _HOUR / series.width
        values = [count * rate for count in series.ended]
        since = short_span(series.width * len(series.ended))
        return values, max(values, default=1.0), f"{self.board.ended:,} in {since}"


def _resampled(values: list[float], width: int) -> list[float]:
    """Return values as many as there are columns: means of neighbours, or each repeated."""
    count = len(values)
    if not count:
        return []
    if count <= width:
        return [values[at * count // width] for at in range(width)] if count * 2 >= width else values
    points = []
    for at in range(width):
        part = values[at * count // width : (at + 1) * count // width]
        points.append(sum(part) / len(part))
    return points
