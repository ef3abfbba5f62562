"""A table that draws only the rows on the screen: fixed widths, a cursor that stays on its row,
sorting, any length.

(Textual's own table measures every cell: 2,000 rows of eight columns take it 0.7 s; this one
measures only the 40 visible lines.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from rich.cells import set_cell_size
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from qbatch.tui.styled import Styled


class TableColumn(NamedTuple):
    """A column: the ``text`` of a row, the key ``order`` to sort by, ``tone`` (the name of a
    component class) or None.

    If the columns up to the last vital one do not fit, those with ``gives_way`` move behind it, 1
    first, then 2 ...
    """

    key: str
    title: str
    width: int
    text: Callable[[Any], str]
    order: Callable[[Any], Any]
    is_right: bool = False
    tone: Callable[[Any], str | None] | None = None
    gives_way: int = 0
    is_vital: bool = False


class RowTable(Styled, can_focus=True):
    """Rows of records under fixed headings.

    Args:
        columns: all columns, in order.
        key: returns a value that identifies a row.
        empty: the message for a table without rows.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"styled--heading"}

    DEFAULT_CSS = """
    RowTable { overflow-x: auto; overflow-y: auto; scrollbar-size: 0 1; }
    RowTable > .styled--heading { background: $panel; color: $text; text-style: bold; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("left", "slide(-12)", "Left", show=False),
        Binding("right", "slide(12)", "Right", show=False),
        Binding("home", "edge(0)", "First", show=False),
        Binding("end", "edge(1)", "Last", show=False),
        Binding("enter", "open", "Details"),
        Binding("s", "sort", "Sort", show=False),
        Binding("S", "turn", "Reverse", show=False),
    ]

    @dataclass
    class Opened(Message):
        """A row was chosen (Enter, a second click)."""

        table: RowTable
        row: Any

    @dataclass
    class Sorted(Message):
        """The order was changed; the owner of the table fills it again."""

        table: RowTable

    @dataclass
    class NearEnd(Message):
        """The cursor has reached the last rows."""

        table: RowTable

    def __init__(
        self, columns: Sequence[TableColumn], key: Callable[[Any], Any], empty: str, **given: Any
    ) -> None:
        super().__init__(**given)
        self.columns = list(columns)
        self.shown = [column.key for column in columns]
        self.key = key
        self.empty = empty
        self.rows: list[Any] = []
        self.sort_key = ""
        self.is_reversed = False
        self.cursor = 0
        self._cursor_key: Any = None
        self.marked: set[Any] = set()
        self.visible_columns = self.columns

    def _arrange(self) -> None:
        """Put the shown columns in order, so that vital ones are visible without scrolling, and
        draw."""
        chosen = [column for column in self.columns if column.key in self.shown]
        available = self.scrollable_content_region.width
        behind: list[TableColumn] = []
        while available:
            ends = [place for place, column in enumerate(chosen) if column.is_vital]
            head = chosen[: ends[-1] + 1] if ends else []
            yielding = [column for column in head if column.gives_way]
            if sum(column.width + 1 for column in head) <= available or not yielding:
                chosen[len(head) : len(head)] = [
                    column for column in self.columns if column in behind
                ]
                break
            first = min(yielding, key=lambda column: column.gives_way)
            chosen.remove(first)
            behind.append(first)
        self.visible_columns = chosen
        self.measure(sum(column.width + 1 for column in chosen), len(self.rows) + 1)
        self.refresh()

    @property
    def chosen_rows(self) -> list[Any]:
        """The marked rows, else the row under the cursor."""
        marked = [row for row in self.rows if self.key(row) in self.marked]
        return marked or ([] if self.current is None else [self.current])

    def action_mark(self) -> None:
        """Mark the row under the cursor, or remove its mark, and go to the next row."""
        if self.current is not None:
            self.marked ^= {self.key(self.current)}
            self._go(self.cursor + 1)
            self.marks_changed()

    def action_mark_all(self) -> None:
        """Mark every shown row; remove the marks if all rows have one."""
        keys = {self.key(row) for row in self.rows}
        self.marked = set() if keys == self.marked else keys
        self.marks_changed()

    def marks_changed(self) -> None:
        """Draw the marks; a subclass shows their number here."""
        self.refresh()

    @property
    def current(self) -> Any | None:
        """The row under the cursor, None if there is none."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def fill(self, rows: Sequence[Any]) -> None:
        """Show these rows in the chosen order; the cursor stays on its row, or else on its line."""
        column = next((each for each in self.columns if each.key == self.sort_key), None)
        self.rows = (
            list(rows)
            if column is None
            else sorted(rows, key=column.order, reverse=self.is_reversed)
        )
        key = self._cursor_key
        if key is not None and not (
            self.cursor < len(self.rows) and self.key(self.rows[self.cursor]) == key
        ):
            at = next((place for place, row in enumerate(self.rows) if self.key(row) == key), None)
            self.cursor = at if at is not None else self.cursor
        self.cursor = max(min(self.cursor, len(self.rows) - 1), 0)
        self._cursor_key = self.key(self.rows[self.cursor]) if self.rows else None
        if self.marked:  # actions must not affect invisible rows
            self.marked &= {self.key(row) for row in self.rows}
        self._arrange()

    def choose(self, keys: Sequence[str]) -> None:
        self.shown = [column.key for column in self.columns if column.key in keys] or [
            self.columns[0].key
        ]
        self._arrange()

    # The widths of the columns are fixed, but not their order and the height.
    def on_resize(self) -> None:
        self._arrange()

    # The cursor

    def action_move(self, by: int) -> None:
        self._go(self.cursor + by)

    def action_page(self, by: int) -> None:
        self._go(self.cursor + by * max(self.scrollable_content_region.height - 2, 1))

    def action_slide(self, by: int) -> None:
        self.scroll_to(x=self.scroll_offset.x + by, animate=False, force=True)

    def action_edge(self, which: int) -> None:
        self._go(len(self.rows) - 1 if which else 0)

    def action_open(self) -> None:
        if self.current is not None:
            self.post_message(self.Opened(self, self.current))

    def action_sort(self) -> None:
        """Sort by the next column; after the last column, do not sort."""
        keys = ["", *(column.key for column in self.visible_columns)]
        place = keys.index(self.sort_key) if self.sort_key in keys else 0
        self.sort_by(keys[(place + 1) % len(keys)])

    def action_turn(self) -> None:
        self.is_reversed = not self.is_reversed
        self.post_message(self.Sorted(self))

    def sort_by(self, key: str) -> None:
        """Sort by a column; by the same one again in reverse."""
        if key and key == self.sort_key:
            self.is_reversed = not self.is_reversed
        else:
            self.sort_key, self.is_reversed = key, False
        self.post_message(self.Sorted(self))

    def _go(self, place: int) -> None:
        self.cursor = max(min(place, len(self.rows) - 1), 0)
        self._cursor_key = self.key(self.rows[self.cursor]) if self.rows else None
        # The heading covers the first line of the scrolled area.
        self.scroll_to_region(
            Region(int(self.scroll_offset.x), self.cursor, 1, 2), animate=False, force=True
        )
        self.refresh()
        if self.cursor >= len(self.rows) - 2:
            self.post_message(self.NearEnd(self))

    def on_click(self, event: Click) -> None:
        """Sort by a clicked heading, choose a clicked row, open a chosen row."""
        at = event.get_content_offset(self)
        if at is None:
            return
        if at.y == 0:
            x = at.x + int(self.scroll_offset.x)
            for column in self.visible_columns:
                if x < column.width + 1:
                    self.sort_by(column.key)
                    return
                x -= column.width + 1
            return
        place = at.y - 1 + int(self.scroll_offset.y)
        if place < len(self.rows):
            is_again = place == self.cursor and event.chain > 1
            self._go(place)
            if is_again:
                self.action_open()

    # Drawing

    def render_line(self, y: int) -> Strip:
        x, top = int(self.scroll_offset.x), int(self.scroll_offset.y)
        width = self.scrollable_content_region.width
        base = self.plain_style
        if y == 0:
            return self._heading(x, width)
        place = y - 1 + top
        if place >= len(self.rows):
            text = self.empty if not self.rows and y == 1 else ""
            style = self.tone("muted")
            return Strip(
                [Segment(set_cell_size(f" {text}" if text else "", width), style if text else base)]
            )
        row = self.rows[place]
        is_cursor = place == self.cursor
        if is_cursor:
            base = self.tone("cursor")
        segments = []
        for column in self._drawn(x, width):
            tone = column.tone(row) if column.tone is not None and not is_cursor else None
            style = self.tone(tone) if tone else base
            segments.append(
                Segment(_cell(column.text(row), column.width, is_right=column.is_right), style)
            )
        if self.marked and self.key(row) in self.marked:
            mark = base if is_cursor else self.tone("accent")
            segments[0] = Segment(f"{segments[0].text[:-1]}●", mark)
        return Strip(segments).crop_extend(x, x + width, base)

    def _heading(self, x: int, width: int) -> Strip:
        style = self.tone("heading")
        segments = []
        for column in self._drawn(x, width):
            mark = (
                ("▼" if self.is_reversed else "▲")
                if column.key == self.sort_key and column.title
                else ""
            )
            segments.append(
                Segment(
                    _cell(f"{column.title}{mark}", column.width, is_right=column.is_right), style
                )
            )
        line = Strip(segments).crop_extend(x, x + width, style)
        if sum(column.width + 1 for column in self.visible_columns) - 1 > x + width:
            line = Strip([*line.crop(0, width - 1), Segment("»", style)])
        return line

    def _drawn(self, x: int, width: int) -> list[TableColumn]:
        """Return the columns as they are drawn if cells ``x`` to ``x + width`` are visible.

        A column that is cut there is left blank with its heading, because half a number is a wrong
        number.  A text is drawn as far as possible if its heading fits.
        """
        drawn, begin = [], 0
        for column in self.visible_columns:
            available = x + width - 1 - begin
            is_cut = begin < x or column.width > available
            if is_cut and begin >= x and not column.is_right and len(column.title) < available:
                drawn.append(column._replace(text=_shortened(column.text, available)))
            elif is_cut and column.width < width:
                drawn.append(column._replace(title="", text=lambda _: "", tone=None))
            else:
                drawn.append(column)
            begin += column.width + 1
        return drawn


def _shortened(text: Callable[[Any], str], width: int) -> Callable[[Any], str]:
    return lambda row: _cell(text(row), width, is_right=False)


def _cell(text: str, width: int, *, is_right: bool) -> str:
    """Return a text in the width of its column, one space after it; a longer text ends in an
    ellipsis."""
    if not text.isascii() or len(text) > width:
        if len(set_cell_size(text, width).rstrip()) < len(text.rstrip()):
            text = set_cell_size(text, width - 1) + "…"
        return set_cell_size(text, width) + " "
    return (text.rjust(width) if is_right else text.ljust(width)) + " "
