"""The panels of the monitor, one entry each: a new panel is a widget in a file of this folder and
an entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from qbatch.tui.asking import Asking
from qbatch.tui.board import Board
from qbatch.tui.panels.charts import Charts
from qbatch.tui.panels.hosts import HostPanel
from qbatch.tui.panels.jobs import history_table, running_table, waiting_table
from qbatch.tui.panels.lists import event_table, queue_table, shadow_table
from qbatch.tui.panels.timeline import Timeline


class Panel(NamedTuple):
    """One panel.

    ``make(board, id=..., classes=...)`` returns its widget; ``draw(widget, board, asking)`` shows
    what is there now. ``parts``: the parts of the board with a change of which it is drawn anew.
    ``is_bottom``: it shares the place at the bottom.
    """

    name: str
    make: Callable[..., Any]
    draw: Callable[[Any, Board, Asking], None]
    parts: frozenset[str] = frozenset()
    is_bottom: bool = False


def _draw_itself(panel: Any, board: Board, asking: Asking) -> None:
    panel.show()


def _draw_history(panel: Any, board: Board, asking: Asking) -> None:
    panel.show(asking.history)
    panel.border_subtitle = f"{panel.border_subtitle}{' and more' if asking.more else ''}"


def _draw_shadows(panel: Any, board: Board, asking: Asking) -> None:
    panel.fill(asking.shadow_rows)
    panel.border_subtitle = asking.shadow_note


PANELS = (
    Panel("hosts", HostPanel, _draw_itself, frozenset({"hosts", "jobs"})),
    Panel("timeline", Timeline, _draw_itself, frozenset({"jobs", "clock", "forecasts"})),
    Panel(
        "waiting",
        waiting_table,
        lambda panel, board, _: panel.show(list(board.waiting.values()), board.waiting_total),
        frozenset({"jobs", "clock", "queues", "forecasts"}),
    ),
    Panel(
        "running",
        running_table,
        lambda panel, board, _: panel.show(list(board.running.values())),
        frozenset({"jobs", "clock"}),
    ),
    Panel("charts", Charts, _draw_itself, frozenset({"hosts", "queues", "clock", "events"})),
    Panel(
        "events",
        event_table,
        lambda panel, board, _: panel.fill(list(reversed(board.events))),
        frozenset({"events"}),
        is_bottom=True,
    ),
    Panel(
        "queues",
        queue_table,
        lambda panel, board, _: panel.fill(list(board.queues.values())),
        frozenset({"queues"}),
        is_bottom=True,
    ),
    Panel("history", history_table, _draw_history, is_bottom=True),
    Panel("shadows", shadow_table, _draw_shadows, is_bottom=True),
)
"""Every panel, in the order of their keys."""

KEYS = {
    panel.name: str(number) if number < 10 else f"f{number}"
    for number, panel in enumerate(PANELS, 1)
}
"""The key of each panel: a digit, or a function key from the tenth on."""
