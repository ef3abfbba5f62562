"""A scrolled view that keeps its styles and changes its height without a new layout of the
screen."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView


class Styled(ScrollView):
    """A view that looks styles up once, until the theme, the focus or the style sheet changes
    (blending them is slow)."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "styled--muted",
        "styled--good",
        "styled--warning",
        "styled--bad",
        "styled--accent",
        "styled--cursor",
    }

    DEFAULT_CSS = """
    Styled { background: $surface; color: $foreground; }
    Styled > .styled--muted { color: $foreground-muted; }
    Styled > .styled--good { color: $text-success; }
    Styled > .styled--warning { color: $text-warning; }
    Styled > .styled--bad { color: $text-error; }
    Styled > .styled--accent { color: $text-accent; }
    Styled > .styled--cursor { background: $block-cursor-blurred-background; color: $block-cursor-blurred-foreground; }
    Styled:focus > .styled--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    """

    def __init__(self, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self._kept: dict[str, Style] = {}

    @property
    def plain_style(self) -> Style:
        found = self._kept.get("")
        if found is None:
            found = self._kept[""] = self.rich_style
        return found

    def tone(self, name: str) -> Style:
        """Return a style by its name over the view's own: muted, good, warning, bad, accent;
        cursor: with its background."""
        found = self._kept.get(name)
        if found is None:
            over = self.get_component_rich_style(
                f"styled--{name}", partial=name not in ("cursor", "heading")
            )
            found = self._kept[name] = self.plain_style + over
        return found

    def notify_style_update(self) -> None:
        """Forget the styles after a change."""
        self._kept.clear()
        super().notify_style_update()

    def measure(self, width: int, height: int) -> None:
        """Set the size of the scrolled area; the screen is laid out again only if a scroll bar
        appears or disappears."""
        size, was = Size(width, height), self.virtual_size
        if size == was:
            return
        available = self.scrollable_content_region.height
        if (
            size.width != was.width
            or (was.height > available) != (height > available)
            or not available
        ):
            self.virtual_size = size
            return
        self.set_reactive(ScrollView.virtual_size, size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = height
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
