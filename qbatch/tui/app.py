"""The application: panels over one board, the source that feeds it, and the keys.  It paints at
most four times a second."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.css.query import NoMatches
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from qbatch.model.errors import QbatchError, UsageError
from qbatch.tui.asking import Asking
from qbatch.tui.board import Board
from qbatch.tui.keys import Keys
from qbatch.tui.panels.hosts import HostPanel
from qbatch.tui.panels.jobs import JobTable
from qbatch.tui.panels.registry import KEYS, PANELS
from qbatch.tui.panels.status import Status
from qbatch.tui.panels.timeline import Timeline
from qbatch.tui.query import FIELDS, Query
from qbatch.tui.row_table import RowTable
from qbatch.tui.screens.help import Help
from qbatch.tui.screens.host import HostScreen
from qbatch.tui.screens.job import JobScreen
from qbatch.tui.screens.questions import Choose
from qbatch.tui.source import MonitorSource
from qbatch.wire.records import JobRecord

FRAME = 0.25
"""Seconds between two paints."""

LEAST = (80, 24)
"""The smallest terminal, in columns and lines, in which nothing is cut."""


class Monitor(Keys):
    """``qbatch top``.

    Args:
        source: a live daemon or a recording.
    """

    CSS_PATH = "monitor.tcss"
    TITLE = "qbatch"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (LEAST[0], "-narrow"), (120, "-wide")]  # noqa: RUF012 - as in the base class
    VERTICAL_BREAKPOINTS = [(0, "-too-short"), (LEAST[1], "-short"), (36, "-tall")]  # noqa: RUF012

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key, f"panel('{name}')", f"Panel: {name}", show=False)
            for name, key in KEYS.items()
        ),
        Binding("slash", "filter", "Filter"),
        Binding(
            "w",
            "job_tab('why')",
            "Why",
            tooltip="Why this job waits, and when it is expected to start",
        ),
        Binding("o", "job_tab('output')", "Output", tooltip="Follow the output of this job"),
        Binding("h", "job('hold')", "Hold", show=False),
        Binding("r", "job('release')", "Release", show=False),
        Binding("d", "job('delete')", "Delete", show=False),
        Binding("m", "job('move')", "Move", show=False, tooltip="Move this job to another queue"),
        Binding("p", "job('priority')", "Priority", show=False),
        Binding("x", "host", "Drain", show=False, tooltip="Drain this host, or resume it"),
        Binding(
            "e", "queue('submission')", "Enable", show=False, tooltip="Enable or disable this queue"
        ),
        Binding(
            "t", "queue('execution')", "Start/stop", show=False, tooltip="Start or stop this queue"
        ),
        Binding("space", "drive('pause')", "Pause", tooltip="Pause time, or continue"),
        Binding(
            "full_stop",
            "drive('step')",
            "Step",
            show=False,
            tooltip="Pause, and go to the next event",
        ),
        Binding("greater_than_sign", "drive('faster')", "Faster", show=False),
        Binding("less_than_sign", "drive('slower')", "Slower", show=False),
        Binding(
            "u",
            "until",
            "Run until",
            show=False,
            tooltip="Run until an instant, a job's start or end, a count",
        ),
        Binding("g", "jump", "Jump", show=False, tooltip="Jump to an instant of a recording"),
        Binding("c", "columns", "Columns", show=False, tooltip="Choose the columns of this table"),
        Binding("z", "zoom", "Zoom", show=False, tooltip="Show this panel alone, or all again"),
        Binding("T", "theme", "Light/dark", show=False),
        Binding("question_mark", "help", "Keys"),
        Binding("escape", "clear", "Clear", show=False, tooltip="Clear the filter and the marks"),
        Binding(
            "y",
            "copy",
            "Copy",
            show=False,
            tooltip="Copy the identifier of this job, or of all marked jobs",
        ),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: MonitorSource, theme: str = "textual-dark") -> None:
        super().__init__()
        self.source = source
        self.board = Board()
        # The screen shows one instant: the source continues to write on the other board.
        self.shown = Board()
        self.asking = Asking(self.board, source)
        self.failure: QbatchError | None = None
        self.theme = theme
        self._query = Query()
        self._active = "waiting"
        self._frames = 0
        self._trouble = ""

    def compose(self) -> ComposeResult:
        """The panels; the size and the style sheet decide which of them are visible."""
        yield Static(id="small")
        yield Status(self.shown, self.source)
        yield Static(id="names")
        with Container(id="board"):
            for panel in PANELS:
                yield panel.make(
                    self.shown,
                    id=panel.name,
                    classes=f"panel{' bottom' if panel.is_bottom else ''}",
                )
        yield Input(
            id="filter",
            placeholder=f"a word, or {' '.join(f'{name}=' for name in FIELDS)} (procs>=64)",
        )
        yield Footer(show_command_palette=True)

    def on_mount(self) -> None:
        for name, key in KEYS.items():
            self.query_one(f"#{name}").border_title = f"{key} {name}"
        self.query_one("#events").add_class("-bottom")
        self.query_one("#filter").border_title = "filter"
        self.run_worker(self._watch(), exit_on_error=False)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):  # restore the terminal
            with contextlib.suppress(ValueError, RuntimeError):  # not the main thread
                loop.add_signal_handler(number, self.exit, None, 128 + number)
        self.set_interval(FRAME, self.paint)
        self.action_panel("waiting")

    def on_resize(self, event: Resize) -> None:
        """Show a message if the terminal is too small; the style sheet makes it visible then."""
        columns, lines = event.size
        self.query_one("#small", Static).update(
            f"too small ({columns}x{lines}): make it {LEAST[0]}x{LEAST[1]} at least"
        )

    async def _watch(self) -> None:
        try:
            await self.source.run(self.board)
        except QbatchError as error:
            self.failure = error
            self.exit()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self.failure = QbatchError(f"the monitor cannot follow {self.source.title}: {why}")
            self.exit()

    # Painting

    def paint(self) -> None:
        """Draw what has changed; once a second also what changes with time only."""
        self._frames += 1
        changed = self.board.take_changed()
        clock = self.board.clock
        is_moving = not (clock.is_paused or self.board.is_stale)
        every = 4 if clock.mode == "real" or (clock.mode == "virtual" and not clock.speed) else 1
        if is_moving and self._frames % every == 0:
            changed |= {"clock"}
        if self.source.trouble != self._trouble:
            self._trouble = self.source.trouble
            changed |= {"trouble"}
        if not changed:
            return
        self.shown.frame(self.board, changed)
        self.query_one(Status).refresh()
        for panel in PANELS:
            if changed & panel.parts and self.query_one(f"#{panel.name}").display:
                self._draw(panel.name)
        screen = self.screen
        if isinstance(screen, JobScreen | HostScreen) and screen.is_mounted:
            screen.news()
        self.asking.changed(
            changed, {name for name in KEYS if self.query_one(f"#{name}").display}, self._answered
        )

    def _answered(self, name: str) -> None:
        """Draw a panel for which an answer has arrived."""
        with contextlib.suppress(NoMatches):
            self._draw(name)

    def _draw(self, name: str) -> None:
        panel = next(each for each in PANELS if each.name == name)
        panel.draw(self.query_one(f"#{name}"), self.shown, self.asking)

    # Panels

    def action_panel(self, name: str) -> None:
        """Go to a panel; show it, if there is space for only one."""
        panel = self.query_one(f"#{name}")
        self._active = name
        for each in KEYS:
            self.query_one(f"#{each}").set_class(each == name, "-active")
        if panel.has_class("bottom"):
            for other in self.query(".bottom"):
                other.set_class(other is panel, "-bottom")
        names = " ".join(
            f"[b reverse]{key}{each}[/]" if each == name else f"[dim]{key}[/]{each}"
            for each, key in KEYS.items()
        )
        self.query_one("#names", Static).update(names)
        if panel.can_focus:
            panel.focus()
        self.call_after_refresh(self._draw, name)
        self.board.changed.add("view")

    def action_zoom(self) -> None:
        """Show the panel in focus alone, or all again."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        elif isinstance(self.focused, RowTable | HostPanel | Timeline):
            self.screen.maximize(self.focused, container=False)

    def action_theme(self) -> None:
        light = {"textual-dark": "textual-light", "ansi-dark": "ansi-light"}
        dark = {"textual-light": "textual-dark", "ansi-light": "ansi-dark"}
        self.theme = {**light, **dark}.get(self.theme, "textual-light")
        self.board.changed |= {"jobs", "hosts"}

    def action_help(self) -> None:
        groups = [("everywhere", _bindings(type(self)))]
        focused = self.focused
        if focused is not None:
            groups.append(
                (
                    f"in this panel ({focused.id or type(focused).__name__})",
                    _bindings(type(focused)),
                )
            )
        self.push_screen(Help(groups))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The entries of the command palette: every key, and those of Textual."""
        for binding in _bindings(type(self)):
            if binding.description and binding.action not in ("quit", "help"):
                text = f"{binding.tooltip or binding.description} (key {binding.key})"
                yield SystemCommand(
                    binding.description, text, lambda action=binding.action: self._run(action)
                )
        for name, key in KEYS.items():
            yield SystemCommand(
                f"Panel: {name}",
                f"Go to this panel (key {key})",
                lambda name=name: self.action_panel(name),
            )
        yield from super().get_system_commands(screen)

    def _run(self, action: str) -> None:
        self.run_worker(self.run_action(f"app.{action}"))

    # The filter, columns

    def action_filter(self) -> None:
        line = self.query_one("#filter", Input)
        line.add_class("-open")
        line.value = self._query.text
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter while it is typed."""
        if event.input.id != "filter" or not event.input.has_class("-open"):
            return
        try:
            query = Query(event.value)
        except UsageError as error:
            event.input.add_class("-wrong")
            event.input.border_subtitle = Content(str(error))
            return
        event.input.remove_class("-wrong")
        event.input.border_subtitle = ""
        self._take(query)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            event.input.remove_class("-open", "-wrong")
            self.action_panel(self._active)

    def action_clear(self) -> None:
        line = self.query_one("#filter", Input)
        line.remove_class("-open", "-wrong")
        for table in self.query(JobTable):
            table.marked = set()
        self._take(Query())
        self.action_panel(self._active)

    def _take(self, query: Query) -> None:
        self._query = query
        for table in self.query(JobTable):
            table.query_filter = query
        self.asking.choose(query, self._answered)
        self.board.changed.add("jobs")

    def action_columns(self) -> None:
        table = self.focused
        if isinstance(table, RowTable):

            async def choose() -> None:
                choices = [(column.key, column.title) for column in table.columns]
                chosen = await self.show_screen(Choose("Which columns?", choices, table.shown))
                if chosen:
                    table.choose(chosen)

            self.run_worker(choose())

    def on_row_table_sorted(self, event: RowTable.Sorted) -> None:
        if isinstance(self.screen, HostScreen):
            self.screen.news()
        else:
            self._answered(event.table.id or "")

    def on_row_table_near_end(self, event: RowTable.NearEnd) -> None:
        if event.table.id == "history":
            self.asking.more_history(self._answered)

    def on_row_table_opened(self, event: RowTable.Opened) -> None:
        job = (
            event.row.job
            if event.table.id == "events"
            else event.row.id
            if isinstance(event.row, JobRecord)
            else ""
        )
        if job:
            tab = "why" if job in self.shown.waiting else "details"
            self.push_screen(JobScreen(self.shown, self.source, job, tab))

    def on_timeline_opened(self, event: Timeline.Opened) -> None:
        self.push_screen(JobScreen(self.shown, self.source, event.job))

    def on_host_panel_opened(self, event: HostPanel.Opened) -> None:
        self.push_screen(HostScreen(self.shown, event.name))


def _bindings(kind: type[Any]) -> list[Binding]:
    ours = [part for part in kind.__mro__ if part.__module__.startswith("qbatch.")]
    found = [each for part in ours for each in vars(part).get("BINDINGS", ())]
    return [
        each
        for each in found
        if isinstance(each, Binding) and not each.description.startswith("Panel:")
    ]


def watch(source: MonitorSource, theme: str) -> None:
    """Show the monitor until the user quits.

    Raises:
        QbatchError: there is no daemon to watch.
        SystemExit: a signal ended the monitor.
    """
    app = Monitor(source, theme)
    app.run()
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise SystemExit(app.return_code)
