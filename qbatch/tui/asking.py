"""Data of panels that is not on the board: forecasts, ended jobs, what-if policies.

The monitor asks for it when something has happened and its panel is visible, and pauses for twenty
times the last answer's time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import takewhile

import msgspec

from qbatch.client import ConnectionLost, NoDaemon
from qbatch.model.errors import QbatchError
from qbatch.tui.board import Board
from qbatch.tui.live import Live
from qbatch.tui.query import Query
from qbatch.tui.source import MonitorSource
from qbatch.wire.records import Forecasts, JobRecord, Jobs, Reservations, ShadowRecord, Shadows
from qbatch.wire.requests import Forecast, History, ReservationStatus, Shadow

Answered = Callable[[str], None]
"""A function that is called with the name of a panel when its answer has arrived."""

LEAST = 2.0
"""Least number of seconds between two requests of one kind."""

MOST_TO_COME = 200
PAGE = 200

SEARCHED = 1000
"""Jobs of a page that the monitor filters itself."""

MOST_SEARCHED = 20_000
"""Most jobs that one search filters; at the end of the list the search continues."""

ENOUGH = 50
MOST_KEPT = 20_000
"""Most ended jobs that are kept of those shown."""


class _Pace:
    """The requests of one kind: at most one is in progress, and a pause follows it."""

    def __init__(self) -> None:
        self.is_due = False
        self._next = 0.0
        self._task: asyncio.Task[None] | None = None

    def ask(self, question: Callable[[], Awaitable[None]]) -> None:
        """Ask if a request is due and the pause is over."""
        if not self.is_due or self._task is not None or time.monotonic() < self._next:
            return
        self.is_due = False
        self._task = asyncio.create_task(self._run(question))

    async def _run(self, question: Callable[[], Awaitable[None]]) -> None:
        began = time.monotonic()
        try:
            await question()
        except (QbatchError, ConnectionLost, NoDaemon):
            pass  # the board shows that the daemon is gone; refused data stays as it was
        finally:
            took = time.monotonic() - began
            self._next = time.monotonic() + max(LEAST, 20 * took)
            self._task = None


class Asking:
    """The answers for panels: the board shows what has happened, and the source answers requests.

    ``more`` identifies the next page of ended jobs, empty if there is none.
    """

    def __init__(self, board: Board, source: MonitorSource) -> None:
        self.board = board
        self.source = source
        self.history: list[JobRecord] = []
        self.shadow_rows: list[ShadowRecord] = []
        self.shadow_note = ""
        self._query = Query()
        self.more = ""
        self._ended = -1
        self._paces = {name: _Pace() for name in ("timeline", "history", "shadows", "waiting")}
        self._paces["shadows"].is_due = True

    def changed(self, parts: set[str], visible: set[str], answered: Answered) -> None:
        """Ask for the data of visible panels after a change."""
        if self.source.is_live and parts & {"jobs", "hosts"}:
            self._paces["timeline"].is_due = True
        if self.board.ended != self._ended:
            self._ended = self.board.ended
            self._paces["history"].is_due = True
        if "server" in parts:  # another daemon, or the same one after a restart
            self.history, self.more = [], ""
            self._paces["history"].is_due = True
        if "shadows" in parts:
            self._paces["shadows"].is_due = True
        questions = {
            "timeline": self._ask_forecasts,
            "history": self._ask_history,
            "shadows": self._ask_shadows,
        }
        for name, question in questions.items():
            is_seen = name in visible or (name == "timeline" and "waiting" in visible)
            if is_seen and (self.source.is_live or name == "history"):
                self._paces[name].ask(lambda question=question: question(answered))  # type: ignore[misc]
        if isinstance(source := self.source, Live):
            self._paces["waiting"].ask(lambda: self._ask_waiting(source, answered))

    def choose(self, query: Query, answered: Answered) -> None:
        """Apply a new filter: search the history again; the daemon filters waiting jobs if not all
        are on the board."""
        was, self._query = self._query, query
        if was.text != query.text:
            self.history, self.more = [], ""
            self._paces["history"] = _Pace()
            self._paces["history"].is_due = True
        chosen, before = ((each.exact("user"), each.exact("queue")) for each in (query, was))
        if chosen != before and (self.board.is_window or any(before)):
            self._paces["waiting"].is_due = True

    def more_history(self, answered: Answered) -> None:
        if self.more:
            pace = self._paces["history"] = _Pace()
            pace.is_due = True
            more, self.more = self.more, ""
            pace.ask(lambda: self._ask_history(answered, more))

    async def _ask_forecasts(self, answered: Answered) -> None:
        self.board.take_reservations(await self.source.ask(ReservationStatus(), Reservations))
        self.board.take_forecasts(await self.source.ask(Forecast(limit=MOST_TO_COME), Forecasts))

    async def _ask_history(self, answered: Answered, after: str = "") -> None:
        query, more = self._query, after
        names = [
            each.value
            for each in query.conditions
            if each.field == "name" and each.comparison == "="
        ]
        request = History(
            users=query.exact("user"),
            queues=query.exact("queue"),
            status=(query.exact("status") or ("",))[0],
            name=names[0] if names and "[" not in names[0] else "",
            limit=SEARCHED if query.text else PAGE,
        )
        found: list[JobRecord] = []
        try:
            # The daemon filters by some fields only; the other conditions are tested here.
            looked = 0
            while looked < MOST_SEARCHED:
                said = await self.source.ask(msgspec.structs.replace(request, after=more), Jobs)
                looked += len(said.jobs)
                found += [job for job in said.jobs if query.keeps(job)]
                more = said.next
                if not more or not query.text or len(found) >= ENOUGH:
                    break
        except QbatchError:
            self.more = after
            raise
        if self._query is not query:
            return
        # Another page comes after the shown jobs, and new jobs before them; pages already shown
        # stay.
        known = {job.id for job in self.history}
        fresh = list(takewhile(lambda job: job.id not in known, found))
        if after:
            self.history, self.more = (
                [*self.history, *(job for job in found if job.id not in known)],
                more,
            )
        elif len(fresh) < len(found):
            self.history = [*fresh, *self.history]
            if len(self.history) > MOST_KEPT:
                self.history = self.history[:MOST_KEPT]
                self.more = self.history[-1].id if self.source.is_live else self.more
        else:
            self.history, self.more = found, more
        answered("history")

    async def _ask_shadows(self, answered: Answered) -> None:
        said = await self.source.ask(Shadow(), Shadows)
        self.shadow_rows = list(said.policies)
        self.shadow_note = said.note
        answered("shadows")

    async def _ask_waiting(self, source: Live, answered: Answered) -> None:
        await source.choose_waiting(self._query.exact("user"), self._query.exact("queue"))
        answered("waiting")
