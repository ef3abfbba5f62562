"""The base of the drawn panels: lines made when they are shown, the colour scheme, styles by name."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
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
    """A panel that draws its lines itself.  A subclass defines ``line(number)`` and sets ``virtual_size``."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "drawn--muted", "drawn--good", "drawn--warning", "drawn--bad", "drawn--accent", "drawn--strong", "drawn--cursor",
    }  # fmt: skip

    DEFAULT_CSS = """
    DrawnPanel { background: $surface; color: $foreground; scrollbar-size: 1 1; overflow-x: hidden; }
    DrawnPanel > .drawn--muted { color: $foreground-muted; }
    DrawnPanel > .drawn--good { color: $text-success; }
    DrawnPanel > .drawn--warning { color: $text-warning; }
    DrawnPanel > .drawn--bad { color: $text-error; }
    DrawnPanel > .drawn--accent { color: $text-accent; text-style: bold; }
    DrawnPanel > .drawn--strong { text-style: bold; }
    DrawnPanel > .drawn--cursor { background: $block-cursor-blurred-background; color: $block-cursor-blurred-foreground; }
    DrawnPanel:focus > .drawn--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    """

    @property
    def columns(self) -> int:
        """The width for drawing."""
        return max(self.scrollable_content_region.width, 1)

    @property
    def lines(self) -> int:
        """The height for drawing."""
        return max(self.scrollable_content_region.height, 1)

    def tone(self, name: str) -> Style:
        """Return a style by its name: muted, good, warning, bad, accent, strong, cursor."""
        return self.style_of(f"drawn--{name}", is_whole=name == "cursor")

    def line(self, number: int) -> list[Segment]:
        """Return one line of the whole panel, from 0."""
        return [Segment(str(number))]

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        width = self.columns
        return Strip(self.line(y + int(self.scroll_offset.y))).adjust_cell_length(width, self.plain_style)


def fitted(text: str, width: int) -> str:
    """Return a text in exactly this many cells; a longer text ends in an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)
