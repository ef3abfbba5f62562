"""Utilisation, queue length and throughput since the monitor was opened, as small bar charts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rich.segment import Segment
from textual.containers import Horizontal

from qbatch.results.shown import short_span
from qbatch.tui.board import Board
from qbatch.tui.panels.drawn import DrawnPanel

_BLOCKS = " ▁▂▃▄▅▆▇█"
_HOUR = 3_600_000_000
_LEAST_LINES = 3
_WIDEST = "0.25"  # the widest text of _short_number


class ChartValues(NamedTuple):
    """The data of a chart: values, the latest last; the top of the scale (None: the highest bar's)
    and its text; the present value as a text."""

    values: list[float]
    top: float | None
    top_text: str
    text: str


class LiveChart(DrawnPanel, can_focus=False):
    """A chart of one quantity over time: bars, with the scale at the left and the time since the
    first look below.

    Args:
        values: returns the data.
        span: returns how far the values reach back, in microseconds.
        tone: the name of the style of its bars.
    """

    def __init__(
        self,
        title: str,
        values: Callable[[], ChartValues],
        span: Callable[[], int],
        tone: str,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.border_title = title
        self._values = values
        self._span = span
        self._tone = tone
        self._points: list[float] = []
        self._margin = 0
        self._top = 1.0
        self._top_text = ""
        self._since = ""

    def show(self) -> None:
        shown = self._values()
        self.border_subtitle = shown.text
        # Cells of the axis at the left; none if there is space for bars only.
        self._margin = len(shown.top_text) + 1 if self.lines >= _LEAST_LINES else 0
        self._points = _resampled(shown.values, self.columns - self._margin)
        self._top, self._top_text = shown.top or 0.0, shown.top_text
        if shown.top is None:
            # A bar is the mean of several values, so the highest bar is lower than the highest
            # value.
            self._top = max(self._points, default=0.0) or 1.0
            self._top_text = _short_number(self._top)
        self._since = f"-{short_span(self._span())}"
        self.measure(self.columns, self.lines)
        self.refresh()

    def on_resize(self) -> None:
        self.show()

    def line(self, number: int) -> list[Segment]:
        """Return one line: bars with their axis, or the time axis below them."""
        has_axes = bool(self._margin)
        lines = self.lines - has_axes
        if number >= lines:
            dashes = "─" * max(len(self._points) - len(self._since) - 3, 1)
            return [
                Segment(f"{' ' * (self._margin - 1)}└{self._since}{dashes}now", self.tone("muted"))
            ]
        below, scale = (lines - 1 - number) * 8, lines * 8 / max(self._top, 1e-9)
        text = "".join(
            _BLOCKS[max(min(round(point * scale) - below, 8), 0)] for point in self._points
        )
        bars = Segment(text, self.tone(self._tone))
        if not has_axes:
            return [bars]
        label = self._top_text if number == 0 else "0" if number == lines - 1 else ""
        return [
            Segment(f"{label.rjust(self._margin - 1)}{'┤' if label else '│'}", self.tone("muted")),
            bars,
        ]


class Charts(Horizontal):
    """The three charts."""

    def __init__(self, board: Board, **given: Any) -> None:
        self.board = board
        self.charts = [
            LiveChart("utilisation", self._busy, self._span, "good"),
            LiveChart("waiting", self._waiting, self._span, "warning"),
            LiveChart("ended per hour", self._ended, self._span, "muted"),
        ]
        super().__init__(*self.charts, **given)

    def show(self) -> None:
        board = self.board
        if not board.is_stale:
            board.series.note(board.now(), board.grid.busy, board.waiting_total)
        for chart in self.charts:
            chart.show()

    def _span(self) -> int:
        series = self.board.series
        return series.width * len(series.ended)

    def _busy(self) -> ChartValues:
        cpus = self.board.grid.cpus
        text = f"{100 * self.board.grid.busy / cpus:.0f} %" if cpus else "-"
        return ChartValues(self.board.series.means()[0], cpus, "100%", text)

    def _waiting(self) -> ChartValues:
        values = self.board.series.means()[1]
        return ChartValues(values, None, _WIDEST, f"{self.board.waiting_total:,}")

    def _ended(self) -> ChartValues:
        series = self.board.series
        rate = _HOUR / series.width
        values = [count * rate for count in series.ended]
        return ChartValues(
            values, None, _WIDEST, f"{self.board.ended:,} in {short_span(self._span())}"
        )


def _short_number(value: float) -> str:
    """Return a number in at most four characters: ``0.25``, ``7.5``, ``637``, ``12k``, ``3.2M``."""
    if value >= 1e4:
        scaled, unit = (value / 1e6, "M") if value >= 1e6 else (value / 1e3, "k")
        return f"{scaled:.0f}{unit}" if scaled >= 10 else f"{scaled:.1f}{unit}"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _resampled(values: list[float], width: int) -> list[float]:
    """Return one value per column: means of neighbours, or repeated values."""
    count = len(values)
    if not count:
        return []
    if count <= width:
        return (
            [values[at * count // width] for at in range(width)] if count * 2 >= width else values
        )
    parts = [values[at * count // width : (at + 1) * count // width] for at in range(width)]
    return [sum(part) / len(part) for part in parts]
