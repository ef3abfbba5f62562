"""The host grid: one cell per processor in the colour of its job, a gauge for memory, and labelled
pools.

Many hosts are drawn small: processors share cells if there are too many, and several hosts share a
line if there are more hosts than lines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region
from textual.message import Message

from qbatch.results.shown import clean
from qbatch.tui.board import Board
from qbatch.tui.colours import job_letter, job_style
from qbatch.tui.grid import ShownHost
from qbatch.tui.panels.drawn import DrawnPanel, fitted, scheme_of
from qbatch.wire.resources import format_size

_GAUGE = " ▁▂▃▄▅▆▇█"
_NAME = 8
_MOST_PITCH = 3
"""Columns of a cell if there is enough space."""

_MARKS = {"runs": "■", "stopped": "▒", "trial": "▣"}
"""Marks of a running job, a suspended job, and a job that runs in the place of a suspended one."""

_STATE_TONES = {"down": "bad", "offline": "warning"}

_TAIL = 5
"""Cells of the memory gauge: a space, the block, its percentage."""

_WAITING = 4
"""Cells of the number of jobs in a host's own queue."""


class HostPanel(DrawnPanel):
    """All hosts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up,k", "move(-1)", "Previous host", show=False),
        Binding("right,down,j", "move(1)", "Next host", show=False),
        Binding("home", "edge(0)", "First host", show=False),
        Binding("end", "edge(1)", "Last host", show=False),
        Binding("enter", "open", "Details"),
    ]

    @dataclass
    class Opened(Message):
        """A host was chosen."""

        name: str

    def __init__(self, board: Board, **given: Any) -> None:
        super().__init__(**given)
        self.board = board
        self.cursor = 0
        self._rows: list[tuple[str, list[ShownHost]]] = []
        self._cells = 16
        self._folds = 1
        self._across = 1
        self._pitch = 1
        self._has_queues = False

    @property
    def current(self) -> str:
        names = list(self.board.grid.places)
        return names[min(self.cursor, len(names) - 1)] if names else ""

    def show(self) -> None:
        self._lay_out()
        grid = self.board.grid
        self.border_subtitle = f"{grid.busy:,} of {grid.cpus:,} processors"
        self.refresh()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        """Determine the cells of a host and the hosts of a line."""
        places = list(self.board.grid.places.values())
        if not places:
            self._rows = []
            return
        most = max(place.record.cpus for place in places)
        tail = _tail(places)
        self._has_queues = self.board.has_host_queues
        width = self.columns
        pools: dict[str, list[ShownHost]] = {}
        for place in places:
            pools.setdefault(place.record.pool, []).append(place)
        self._folds = 1
        if len(places) == 1:
            space = max(self.lines - 1, 1)
            self._pitch = max(min(_MOST_PITCH, space * (width - 1) // max(most, 1)), 1)
            self._cells = max((width - 1) // self._pitch, 1)
            self._folds = max(min(-(-most // self._cells), space), 1)
            self._cells = min(self._cells, -(-most // self._folds))
            self._across = 1
        else:
            self._pitch = 1
            self._cells = max(min(most, width - _NAME - tail - 1), 1)
            labels = len(pools) if len(pools) > 1 else 0
            # As few hosts in a line as possible; cells are shared before hosts are left out.
            across = max(width // (_NAME + self._cells + tail + 1), 1)
            wanted = -(-len(places) // max(self.lines - labels, 1))
            if wanted > across:
                across = min(wanted, max(width // (_NAME + tail + 3), 1))
                self._cells = max(width // across - _NAME - tail - 1, 1)
            self._across = min(across, max(wanted, 1))
            available = width // self._across - _NAME - tail - 1
            self._pitch = max(min(_MOST_PITCH, available // self._cells), 1)
        self._rows = []
        for name, hosts in pools.items():
            if len(pools) > 1 or len(places) == 1:
                self._rows.append((name, []))
            for first in range(0, len(hosts), self._across):
                self._rows += [("", hosts[first : first + self._across])] * self._folds
        self.measure(width, len(self._rows))

    def line(self, number: int) -> list[Segment]:
        """Return one line: a pool's name, or hosts."""
        if number >= len(self._rows):
            return []
        name, hosts = self._rows[number]
        if not hosts:
            return self._label(name)
        # One line of a machine with many processors.
        if self._folds > 1 or len(self.board.grid.places) == 1:
            cells, first = (
                self._cell_jobs(hosts[0], self._cells * self._folds),
                (number - 1) * self._cells,
            )
            return self._painted(cells[first : first + self._cells], hosts[0])
        return [segment for place in hosts for segment in self._host(place)]

    def _label(self, pool: str) -> list[Segment]:
        """A pool's name, its use, and the meaning of the gauge at the right of its hosts."""
        places = [place for place in self.board.grid.places.values() if place.record.pool == pool]
        busy, cpus = sum(place.busy for place in places), sum(place.record.cpus for place in places)
        text = f" {busy:,} of {cpus:,} processors" if self.columns > 50 else ""
        shown = ["memory"] if any(place.record.memory for place in places) else []
        shown += ["+waiting there"] if self.board.has_host_queues else []
        gauge = f"; at the right: {', '.join(shown)}" if text and shown else ""
        return [
            Segment(f"{clean(pool)} ", self.tone("accent")),
            Segment(text + gauge, self.tone("muted")),
        ]

    def _host(self, place: ShownHost) -> list[Segment]:
        record = place.record
        tone = "cursor" if record.name == self.current else _STATE_TONES.get(record.state)
        style = self.tone(tone) if tone is not None else self.plain_style
        count = min(record.cpus, self._cells)
        segments = [
            Segment(fitted(clean(record.name), _NAME - 1), style),
            Segment(" ", self.plain_style),
        ]
        segments += self._painted(self._cell_jobs(place, count), place)
        segments.append(Segment(" " * (self._cells - count) * self._pitch, self.plain_style))
        if record.memory:
            share = place.memory_used / record.memory
            gauge = f" {_GAUGE[round(min(share, 1) * 8)]}{min(round(share * 100), 99):2d}%"
            segments.append(Segment(gauge, self.tone("bad" if share > 0.98 else "muted")))
        elif any(each.record.memory for each in self.board.grid.places.values()):
            segments.append(Segment(" " * _TAIL, self.plain_style))
        if self._has_queues:
            count = len(record.queue or ())
            segments.append(
                Segment(
                    fitted(f" +{min(count, 99)}" if count else "", _WAITING), self.tone("accent")
                )
            )
        segments.append(Segment(" ", self.plain_style))
        return segments

    def _cell_jobs(self, place: ShownHost, count: int) -> list[tuple[str, str]]:
        """Return the job of each cell (empty: free) and its mark in ``_MARKS``; of a cell of
        several processors, the job with most of it."""
        cpus = place.record.cpus
        owners = [("", "")] * cpus
        for each, mark in ((place.stopped, "stopped"), (place.runs, "runs")):
            for job, runs in each.items():
                for low, high in runs:
                    owners[low:high] = [(job, mark)] * (high - low)
        for low, high in place.lent if place.stopped else ():
            owners[low:high] = [(job, "trial") for job, _ in owners[low:high]]
        if cpus <= count:
            return owners
        parts = [owners[cell * cpus // count : (cell + 1) * cpus // count] for cell in range(count)]
        return [Counter(part).most_common(1)[0][0] for part in parts]

    def _painted(self, cells: list[tuple[str, str]], place: ShownHost) -> list[Segment]:
        """Turn cells into segments, merging neighbours of one job."""
        scheme, state = scheme_of(self.app), place.record.state
        free = {"down": "✕", "offline": "/"}.get(state, "·")
        gap = " " * (self._pitch - 1)
        segments: list[Segment] = []
        for (job, mark), run in groupby(cells):
            if not job:
                letter, style = free, self.tone(_STATE_TONES.get(state, "muted"))
            elif scheme == "none":
                letter = job_letter(job).upper() if mark == "stopped" else job_letter(job)
                style = Style.combine([self.plain_style, Style(underline=mark == "trial")])
            else:
                letter, style = (
                    _MARKS[mark],
                    Style.combine([self.plain_style, job_style(job, scheme)]),
                )
            segments.append(Segment((letter + gap) * len(list(run)), style))
        return segments

    # The cursor

    def action_move(self, by: int) -> None:
        count = len(self.board.grid.places)
        self.cursor = max(min(self.cursor + by, count - 1), 0)
        place = self.board.grid.places.get(self.current)
        line = next((number for number, (_, hosts) in enumerate(self._rows) if place in hosts), 0)
        self.scroll_to_region(Region(0, line, 1, 1), animate=False, force=True)
        self.refresh()

    def action_edge(self, which: int) -> None:
        self.action_move(len(self.board.grid.places) if which else -len(self.board.grid.places))

    def action_open(self) -> None:
        if self.current:
            self.post_message(self.Opened(self.current))

    def on_click(self, event: Click) -> None:
        """Choose a host; a click on the chosen one opens it."""
        at = event.get_content_offset(self)
        if at is None:
            return
        number = at.y + int(self.scroll_offset.y)
        hosts = self._rows[number][1] if number < len(self._rows) else []
        across = at.x // (
            _NAME + self._cells * self._pitch + 1 + _tail(list(self.board.grid.places.values()))
        )
        if across < len(hosts):
            was = self.current
            self.cursor = list(self.board.grid.places.values()).index(hosts[across])
            self.refresh()
            if was == self.current and event.chain > 1:
                self.action_open()


def _tail(places: list[ShownHost]) -> int:
    """Return how many cells follow those of a host's processors."""
    memory = _TAIL if any(place.record.memory for place in places) else 0
    return memory + (_WAITING if any(place.record.queue is not None for place in places) else 0)


def memory_text(used: int, total: int) -> str:
    """Return the used and the total memory as a text."""
    return f"{format_size(used)} of {format_size(total)}" if total else "not counted"
