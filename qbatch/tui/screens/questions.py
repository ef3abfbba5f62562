"""Small questions: yes or no, a value, a choice of several."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, SelectionList, Static

_BOX = """
    align: center middle;
    & > Vertical { width: 64; max-width: 90%; height: auto; max-height: 90%; background: $surface; padding: 1 2;
        border: round $primary; }
    & Label { width: 100%; margin-bottom: 1; }
    & Horizontal { height: auto; align-horizontal: right; margin-top: 1; }
    & Button { margin-left: 2; }
"""


class Confirm(ModalScreen[bool]):
    """Ask for a confirmation; return whether it was given."""

    DEFAULT_CSS = f"Confirm {{ {_BOX} }}"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n,escape", "dismiss(False)", "No"),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, verb: str) -> None:
        super().__init__()
        self._question = question
        self._verb = verb

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Content(self._question))
            with Horizontal():
                yield Button(f"{self._verb} (y)", id="yes", variant="error")
                yield Button("No (n)", id="no")

    def on_mount(self) -> None:
        """Focus No, so that Enter alone changes nothing."""
        self.query_one("#no").focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


class Ask(ModalScreen[str | None]):
    """Ask for a value; return it, or None."""

    DEFAULT_CSS = f"Ask {{ {_BOX} }} Ask Static {{ color: $text-muted; }}"

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "Leave")]

    def __init__(self, question: str, value: str = "", hint: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._hint = hint

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Content(self._question))
            yield Input(value=self._value)
            yield Static(Content(self._hint))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())


class Choose(ModalScreen[list[str] | None]):
    """Ask for a choice of several; return their keys, or None."""

    DEFAULT_CSS = f"Choose {{ {_BOX} }} Choose SelectionList {{ height: auto; max-height: 20; }}"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Leave"),
        Binding("enter", "take", "Take", priority=True),
    ]

    def __init__(self, question: str, choices: list[tuple[str, str]], chosen: list[str]) -> None:
        super().__init__()
        self._question = question
        self._choices = choices
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(Content(self._question))
            yield SelectionList[str](
                *((text, key, key in self._chosen) for key, text in self._choices)
            )
            yield Static(Content("space marks, enter accepts"))

    def action_take(self) -> None:
        self.dismiss(list(self.query_one(SelectionList).selected))
