"""A scrolled view that keeps its styles and changes its height without a new layout of the screen."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView


class Styled(ScrollView):
    """A view that looks styles up once, until the theme, the focus or the style sheet changes (blending them is slow)."""

    def __init__(self, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self._kept: dict[str, Style] = {}

    @property
    def plain_style(self) -> Style:
        """The style of the view itself."""
        found = self._kept.get("")
        if found is None:
            found = self._kept[""] = self.rich_style
        return found

    def style_of(self, name: str, *, is_whole: bool = False) -> Style:
        """Return the style of a component class over the view's own; ``is_whole``: with its background."""
        key = f"{name} {is_whole}"
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self.plain_style + self.get_component_rich_style(name, partial=not is_whole)
        return found

    def notify_style_update(self) -> None:
        """Forget the styles after a change."""
        self._kept.clear()
        super().notify_style_update()

    def measure(self, width: int, height: int) -> None:
        """Set the size of the scrolled area; the screen is laid out again only if a scroll bar appears or disappears."""
        size, was = Size(width, height), self.virtual_size
        if size == was:
            return
        room = self.scrollable_content_region.height
        if size.width != was.width or (was.height > room) != (height > room) or not room:
            self.virtual_size = size
            return
        self.set_reactive(ScrollView.virtual_size, size)
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.window_virtual_size = height
        if self.scroll_y > self.max_scroll_y:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
