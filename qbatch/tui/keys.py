"""The key actions on jobs, hosts, queues and time, which the application inherits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App
from textual.screen import Screen

from qbatch.model.errors import QbatchError, UsageError
from qbatch.results.shown import clean, short_span
from qbatch.tui import actions, driving
from qbatch.tui.board import Board
from qbatch.tui.panels.hosts import HostPanel
from qbatch.tui.panels.jobs import JobTable
from qbatch.tui.panels.timeline import Timeline
from qbatch.tui.row_table import RowTable
from qbatch.tui.screens.host import HostScreen
from qbatch.tui.screens.job import JobScreen
from qbatch.tui.screens.questions import Ask
from qbatch.tui.source import MonitorSource
from qbatch.wire.records import JobRecord

_NO_JOB = "go to a job first: keys 3, 4 or 2, then the arrows"


class Keys(App[None]):
    """The keys for jobs, hosts, queues and time, over the board, the shown copy of it, and its
    source."""

    board: Board
    shown: Board
    source: MonitorSource

    async def show_screen(self, screen: Screen[Any]) -> Any:
        return await self.push_screen_wait(screen)

    def complain(self, text: str) -> None:
        """Report why an action was not done."""
        self.notify(clean(text), severity="warning", markup=False)

    def chosen_jobs(self) -> list[JobRecord]:
        """Return the marked jobs of the table in focus, else the job under the cursor."""
        table = (
            self.screen.query_one(JobTable) if isinstance(self.screen, HostScreen) else self.focused
        )
        if isinstance(table, JobTable) and not isinstance(self.screen, JobScreen):
            return list(table.chosen_rows)
        job = self.chosen_job()
        return [] if job is None else [job]

    def chosen_job(self) -> JobRecord | None:
        """Return the job under the cursor, or of the screen on top."""
        screen = self.screen
        if isinstance(screen, JobScreen):
            return screen.record or self.board.find(screen.job)
        table = screen.query_one(JobTable) if isinstance(screen, HostScreen) else self.focused
        if isinstance(table, JobTable):
            return table.current
        if isinstance(table, Timeline):
            return self.board.find(table.current)
        if isinstance(table, RowTable) and table.id == "events" and table.current is not None:
            return self.board.find(table.current.job) or table.current.record
        return None

    def action_job(self, what: str) -> None:
        """Act on the marked jobs, or on the one under the cursor, after a question."""
        jobs = self.chosen_jobs()
        if not jobs:
            self.complain(_NO_JOB)
        else:
            self.run_worker(
                self._do(actions.to_jobs(what, jobs, self.board, self.source, self.show_screen))
            )

    def action_copy(self) -> None:
        names = " ".join(job.id for job in self.chosen_jobs())
        if not names:
            self.complain(_NO_JOB)
        else:
            self.copy_to_clipboard(names)
            self.notify(f"copied: {clean(names)}", markup=False)

    def action_job_tab(self, tab: str) -> None:
        job = self.chosen_job()
        if job is None:
            self.complain(_NO_JOB)
        elif not isinstance(self.screen, JobScreen):
            self.push_screen(JobScreen(self.shown, self.source, job.id, tab))

    def action_host(self, name: str = "") -> None:
        hosts = self.focused
        name = name or (hosts.current if isinstance(hosts, HostPanel) else "")
        if not name:
            self.complain("go to a host first: key 1, then the arrows")
        else:
            self.run_worker(
                self._do(actions.to_host(name, self.board, self.source, self.show_screen))
            )

    def action_queue(self, what: str) -> None:
        table = self.focused
        if not isinstance(table, RowTable) or table.id != "queues" or table.current is None:
            self.complain("go to a queue first: key 7, then the arrows")
        else:
            name = table.current.name
            self.run_worker(
                self._do(actions.to_queue(what, name, self.board, self.source, self.show_screen))
            )

    async def _do(self, action: Awaitable[actions.CommandResult | None]) -> None:
        done = await action
        if done is not None:
            self.notify(
                clean(done.text), severity="information" if done.is_done else "error", markup=False
            )

    def action_drive(self, what: str) -> None:
        if what == "pause":
            self._drive("play" if self.board.clock.is_paused else "pause")
        elif what == "step":
            self._drive("step")
        else:
            self._drive("speed", speed=driving.next_speed(self.board, what == "faster"))

    def _drive(self, action: str, **given: Any) -> None:
        async def drive() -> None:
            try:
                await self.source.drive(action, **given)
            except QbatchError as error:
                self.complain(str(error))
            self.board.changed |= {"clock", "jobs"}

        self.run_worker(drive())

    def action_until(self) -> None:
        hint = "start 17 · end 17 · 5 jobs · +2h · 2026-11-21T08:00"
        self._ask_time("Run until?", hint, lambda text: driving.read_until(text, self.board))

    def action_jump(self) -> None:
        played = self.source.progress()
        if played is None:
            self.complain(
                "only a recording allows jumps; with a daemon in virtual time use u (run until)"
            )
            return
        now, length = played
        begin = self.board.now() - now

        def read(text: str) -> dict[str, Any]:
            return {
                "action": "jump",
                "at": driving.read_instant(text, self.board.now(), begin, length),
            }

        self._ask_time(
            "Jump to?", f"50% · +2h · -15m · an instant (it is {short_span(length)} long)", read
        )

    def _ask_time(self, question: str, hint: str, read: Callable[[str], dict[str, Any]]) -> None:
        async def ask() -> None:
            text = await self.show_screen(Ask(question, "", hint))
            if not text:
                return
            try:
                given = read(text)
            except UsageError as error:
                self.complain(str(error))
                return
            self._drive(**given)

        self.run_worker(ask())
