"""The base of the drawn panels: lines made when they are shown, the colour scheme, styles by
name."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.app import App
from textual.strip import Strip

from qbatch.tui.styled import Styled


def scheme_of(app: App[object]) -> str:
    """Return the scheme of job colours for the theme: ``dark``, ``light``, ``ansi``, ``none``."""
    if app.no_color:
        return "none"
    if "ansi" in app.theme:
        return "ansi"
    return "dark" if app.current_theme.dark else "light"


class DrawnPanel(Styled, can_focus=True):
    """A panel that draws its lines itself.  A subclass defines ``line(number)`` and sets
    ``virtual_size``."""

    DEFAULT_CSS = """
    DrawnPanel { scrollbar-size: 1 1; overflow-x: hidden; }
    DrawnPanel > .styled--accent { text-style: bold; }
    """

    @property
    def columns(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    @property
    def lines(self) -> int:
        return max(self.scrollable_content_region.height, 1)

    def line(self, number: int) -> list[Segment]:
        """Return one line of the whole panel, from 0."""
        return [Segment(str(number))]

    def render_line(self, y: int) -> Strip:
        width = self.columns
        return Strip(self.line(y + int(self.scroll_offset.y))).adjust_cell_length(
            width, self.plain_style
        )


def fitted(text: str, width: int) -> str:
    """Return a text in exactly this many cells; a longer text ends in an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)
