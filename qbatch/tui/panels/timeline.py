"""The near future: running jobs until their walltimes, reservations (dotted), expected and promised
starts (dashed), and the line of now."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from qbatch.results.shown import clean, close_moment, short_span
from qbatch.tui.board import Board
from qbatch.tui.colours import job_style
from qbatch.tui.panels.drawn import DrawnPanel, fitted, scheme_of
from qbatch.tui.panels.jobs import danger_of, run_time, short_id, walltime_of
from qbatch.wire.pieces import procs_now

_LABEL = 22
_BEHIND = 0.12
"""The part of the width before now."""

MOST_SHOWN = 200
"""Most bars of future jobs."""

_MINUTE = 60_000_000
_SPANS = [
    minutes * _MINUTE
    for minutes in (
        1,
        2,
        5,
        10,
        30,
        60,
        120,
        180,
        240,
        360,
        720,
        1440,
        2880,
        7200,
        14400,
        43200,
        144000,
    )
]


class TimelineBar(NamedTuple):
    """A job on the axis: ``promised`` is None without a promise; ``is_running`` is False for a
    future job.

    ``danger``: the state of its deadline (:func:`qbatch.tui.panels.jobs.danger_of`).
    ``is_reservation``: it is a reservation, by its name, with the processors of its hosts.
    """

    job: str
    user: str
    procs: int
    start: int
    end: int
    promised: int | None
    is_running: bool
    is_stopped: bool = False
    deadline: int | None = None
    danger: str | None = None
    is_reservation: bool = False


class Timeline(DrawnPanel):
    """A Gantt chart of the next minutes, hours or days."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("plus,equals_sign", "zoom(-1)", "Nearer"),
        Binding("minus", "zoom(1)", "Farther"),
        Binding("0", "zoom(0)", "Fit", show=False),
        Binding("enter", "open", "Details"),
    ]

    @dataclass
    class Opened(Message):
        """A job was chosen."""

        job: str

    def __init__(self, board: Board, **given: Any) -> None:
        super().__init__(**given)
        self.board = board
        self.cursor = 0
        self._bars: list[TimelineBar] = []
        self._span: int | None = None
        self._shown_span = _MINUTE

    @property
    def current(self) -> str:
        return self._bars[self.cursor].job if self.cursor < len(self._bars) else ""

    def show(self) -> None:
        now = self.board.now()
        job = self.current
        bars = []
        for each in self.board.running.values():
            if each.started is not None:
                end = now + walltime_of(each) - run_time(each, now)
                own = (
                    each.id,
                    each.user,
                    procs_now(each),
                    each.started,
                    end,
                    None,
                    True,
                    each.state == "S",
                )
                bars.append(TimelineBar(*own, each.deadline, danger_of(each, end)))
        bars.sort(key=lambda bar: (bar.end, bar.job))
        self._bars = bars + self._reserved() + self._to_come(now)
        self.cursor = next(
            (place for place, bar in enumerate(self._bars) if bar.job == job), self.cursor
        )
        self.cursor = max(min(self.cursor, len(self._bars) - 1), 0)
        # Without a chosen span, show most of the bars.
        first = [bar for bar in self._bars if not bar.is_reservation][: max(self.lines - 1, 4)]
        last = max((bar.end - now for bar in first), default=0)
        fitting = next((span for span in _SPANS if span >= last / (1 - _BEHIND)), _SPANS[-1])
        self._shown_span = self._span or fitting
        self.measure(self.columns, len(self._bars) + 1)
        self.border_subtitle = f"the next {short_span(round(self._shown_span * (1 - _BEHIND)))}"
        self.refresh()

    def _reserved(self) -> list[TimelineBar]:
        """Return the present or next time of each reservation."""
        return [
            TimelineBar(
                each.name,
                "maint" if each.is_maintenance else each.owner or "site",
                each.procs,
                each.start,
                each.end,
                None,
                is_running=False,
                is_reservation=True,
            )
            for each in self.board.reservations
            if each.start is not None and each.end is not None
        ]

    def _to_come(self, now: int) -> list[TimelineBar]:
        """Return the waiting jobs with an expected or promised start, the earliest first."""
        forecasts = self.board.forecasts
        expected = {each.job: each for each in forecasts.jobs} if forecasts is not None else {}
        bars = []
        for job in self.board.waiting.values():
            forecast = expected.get(job.id)
            start = forecast.start if forecast is not None else job.estimated_start
            start = job.promised if start is None else start
            if start is None:
                continue
            end = None if forecast is None else forecast.end
            end = start + walltime_of(job) if end is None else end
            begin = max(start, now)
            end += begin - start
            facts = (job.id, job.user, procs_now(job), begin, end, job.promised, False, False)
            bars.append(TimelineBar(*facts, job.deadline, danger_of(job, end)))
        bars.sort(key=lambda bar: (bar.start, bar.job))
        return bars[:MOST_SHOWN]

    def line(self, number: int) -> list[Segment]:
        """Return the axis (which stays at the top) or a bar."""
        if number == int(self.scroll_offset.y):
            return self._axis()
        place = number - 1
        if place >= len(self._bars):
            return []
        bar = self._bars[place]
        style = self.tone("cursor") if place == self.cursor and self.has_focus else self.plain_style
        label = style if bar.is_running else self.tone("muted")
        if bar.danger is not None and style is self.plain_style:
            label = self.tone(bar.danger)
        text = f"{short_id(bar.job):<7} {clean(bar.user)[:7]:<7} {bar.procs:>4}"
        return [
            Segment(fitted(text, _LABEL - 1), label),
            Segment(" ", self.plain_style),
            *self._drawn(bar),
        ]

    def _column(self, at: int) -> int:
        """Return the column of an instant, which may be outside."""
        width = max(self.columns - _LABEL, 1)
        begin = self.board.now() - self._shown_span * _BEHIND
        return int((at - begin) * width // self._shown_span)

    def _drawn(self, bar: TimelineBar) -> list[Segment]:
        """The bar itself: solid until now, thinner to the walltime; future jobs dashed; a promise
        as a diamond, a deadline as an upright line, coloured if it is in danger."""
        width = max(self.columns - _LABEL, 1)
        scheme = scheme_of(self.app)
        colour = self.plain_style + (job_style(bar.job, scheme) if scheme != "none" else Style())
        now = self._column(self.board.now())
        first, last = (
            self._column(bar.start),
            max(self._column(bar.end), self._column(bar.start) + 1),
        )
        promise = self._column(bar.promised) if bar.promised is not None else -1
        deadline = self._column(bar.deadline) if bar.deadline is not None else -1
        cells: list[tuple[str, Style]] = []
        for at in range(width):
            is_bar = first <= at < last
            if at == promise:
                cells.append(("◆", self.tone("accent")))
            elif at == deadline:
                cells.append(("┃", self.tone(bar.danger or "good")))
            elif is_bar and bar.is_reservation:
                cells.append(("░", self.tone("muted")))
            elif is_bar and bar.is_running:
                cells.append(("▒" if bar.is_stopped else "█" if at < now else "▬", colour))
            elif is_bar:
                cells.append(("╌", colour))
            elif at == now:
                cells.append(("│", self.tone("muted")))
            else:
                cells.append((" ", self.plain_style))
        runs = groupby(cells, key=lambda cell: id(cell[1]))  # neighbours of one style
        return [
            Segment("".join(letter for letter, _ in run), run[0][1])
            for run in (list(each) for _, each in runs)
        ]

    def _axis(self) -> list[Segment]:
        width = max(self.columns - _LABEL, 1)
        now = self.board.now()
        marks = [" "] * width
        texts = [(0.0, f"now {close_moment(now, now)}")]
        texts += [
            (step, f"+{short_span(round(self._shown_span * step))}") for step in (0.25, 0.5, 0.75)
        ]
        for step, text in texts:
            at = max(self._column(now + round(self._shown_span * step)), 0)
            if at + len(text) <= width and set(marks[max(at - 1, 0) : at + len(text)]) == {" "}:
                marks[at : at + len(text)] = text
        style = self.tone("muted")
        return [
            Segment(fitted("job user procs", _LABEL), style),
            Segment("".join(marks)[:width], style),
        ]

    def action_move(self, by: int) -> None:
        self.cursor = max(min(self.cursor + by, len(self._bars) - 1), 0)
        top, lines = int(self.scroll_offset.y), self.lines - 1
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + lines:
            self.scroll_to(y=self.cursor - lines + 1, animate=False, force=True)
        self.refresh()

    def action_zoom(self, by: int) -> None:
        """Show less or more of the future; 0 fits the jobs."""
        if by == 0:
            self._span = None
        else:
            place = min(range(len(_SPANS)), key=lambda each: abs(_SPANS[each] - self._shown_span))
            self._span = _SPANS[max(min(place + by, len(_SPANS) - 1), 0)]
        self.show()

    def action_open(self) -> None:
        if self.current and not self._bars[self.cursor].is_reservation:
            self.post_message(self.Opened(self.current))
