"""The keys, from the bindings themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "space": "space",
    "full_stop": ".",
    "comma": ",",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "escape": "esc",
}


class Help(ModalScreen[None]):
    """All keys, in groups (heading, bindings) by where they apply."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help > VerticalScroll { width: 78; max-width: 96%; height: auto; max-height: 92%; background: $surface;
        border: round $primary; padding: 0 2; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss", "Leave")]

    def __init__(self, groups: Sequence[tuple[str, Sequence[Binding]]]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        lines = []
        for heading, bindings in self._groups:
            lines.append(f"[b]{heading}[/b]")
            for binding in bindings:
                if binding.description:
                    keys = " ".join(_NAMES.get(key, key) for key in binding.key.split(","))
                    lines.append(
                        f"  {keys.replace('[', chr(92) + '['):<16} "
                        f"{binding.tooltip or binding.description}"
                    )
            lines.append("")
        with VerticalScroll(can_focus=True) as box:
            box.border_title = "keys"
            box.border_subtitle = "esc leaves"
            yield Static(Content.from_markup("\n".join(lines)))
