"""A host: its state, its processors and memory, and its jobs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from qbatch.results.shown import clean
from qbatch.tui.board import Board
from qbatch.tui.panels.hosts import memory_text
from qbatch.tui.panels.jobs import JobTable, running_table

_STATES = {
    "offline": "drained: no new job starts here",
    "down": "down",
    "free": "free",
    "job-busy": "fully in use",
    "job-exclusive": "used exclusively by one job",
    "resv-exclusive": "reserved, without a job now",
    "maintenance": "in maintenance",
}


_MOST_WAITING = 12
"""Most jobs of a host's own queue that are named."""


class HostScreen(ModalScreen[None]):
    """One host, updated while the screen is open."""

    DEFAULT_CSS = """
    HostScreen { align: center middle; }
    HostScreen > Vertical { width: 100; max-width: 98%; height: 26; max-height: 96%; background: $surface;
        border: round $primary; padding: 0 1; }
    HostScreen Static { height: auto; margin-bottom: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Leave"),
        Binding("x", "host", "Drain or resume"),
        Binding("y", "app.copy", "Copy job", show=False),
    ]

    def __init__(self, board: Board, host: str) -> None:
        super().__init__()
        self.board = board
        self.host = host

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = f"host {clean(self.host)}"
            yield Static(id="host-text")
            yield running_table(self.board)
            yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.news()
        self.query_one(JobTable).focus()

    def news(self) -> None:
        """Show the host again after a change of the board."""
        place = self.board.grid.places.get(self.host)
        if place is None:
            self.query_one("#host-text", Static).update(
                Content("this host does not exist any more")
            )
            return
        record = place.record
        count = sum(high - low for runs in place.stopped.values() for low, high in runs)
        of_stopped = f"; suspended jobs had {count} of them" if count else ""
        lines = [
            (
                f"pool {record.pool}, "
                f"{_STATES.get(record.state, record.state)}{f': {record.comment}' if record.comment else ''}"
            ),
            f"processors: {place.busy} of {record.cpus} in use{of_stopped}",
            f"memory: {memory_text(place.memory_used, record.memory)}",
            f"queues: {', '.join(record.queues) or '-'}",
        ]
        if record.queue is not None:
            waiting = " ".join(record.queue[:_MOST_WAITING]) + (
                " ..." if len(record.queue) > _MOST_WAITING else ""
            )
            lines.append(f"{len(record.queue)} waiting here: {waiting or '-'}")
        self.query_one("#host-text", Static).update(
            Content("\n".join(clean(line) for line in lines))
        )
        table = self.query_one(JobTable)
        table.show(
            [
                job
                for name in (*place.runs, *place.stopped)
                if (job := self.board.running.get(name)) is not None
            ]
        )

    def action_host(self) -> None:
        self.app.call_next(self.app.run_action, f"app.host({self.host!r})")
