"""A job: its facts, why it waits and when it is expected to start, its history, its output."""

from __future__ import annotations

import contextlib
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.screen import ModalScreen
from textual.widgets import Footer, Static, TabbedContent, TabPane

from qbatch.model.errors import QbatchError
from qbatch.results.shown import clean, is_cancelled, moment, short_span, span, status_of, waited
from qbatch.tui.board import WAITING, Board
from qbatch.tui.panels.jobs import hosts_text, run_time, short_id, walltime_of
from qbatch.tui.screens.output import Follow
from qbatch.tui.source import MonitorSource
from qbatch.wire.errors import Refusal
from qbatch.wire.pieces import procs_asked, procs_now, procs_text
from qbatch.wire.records import Explanation, JobRecord, Jobs, OutputFiles, Trails
from qbatch.wire.requests import Explain, JobOutput, JobStatus, Trail

_STATES = {
    "Q": "queued",
    "H": "held",
    "W": "waits for its time",
    "R": "runs",
    "E": "is ending",
    "S": "suspended",
    "F": "has ended",
    "X": "has ended",
    "B": "array that has begun",
    "M": "moved",
    "T": "in transit",
}


class JobScreen(ModalScreen[None]):
    """One job, in four tabs (details, why, trail, output), updated while the screen is open."""

    DEFAULT_CSS = """
    JobScreen { align: center middle; }
    JobScreen > Vertical { width: 100; max-width: 98%; height: 32; max-height: 96%; background: $surface;
        border: round $primary; }
    JobScreen VerticalScroll { padding: 0 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Leave"),
        Binding("1", "tab('details')", "Details", show=False),
        Binding("w,2", "tab('why')", "Why"),
        Binding("3", "tab('trail')", "History", show=False),
        Binding("o,4", "tab('output')", "Output"),
        Binding("h", "job('hold')", "Hold"),
        Binding("r", "job('release')", "Release"),
        Binding("d", "job('delete')", "Delete"),
        Binding("m", "job('move')", "Move"),
        Binding("p", "job('priority')", "Priority"),
        Binding("y", "app.copy", "Copy"),
    ]

    def __init__(self, board: Board, source: MonitorSource, job: str, tab: str = "details") -> None:
        super().__init__()
        self.board = board
        self.source = source
        self.job = job
        self._tab = tab
        self._seen: JobRecord | None = None
        self._attempt = -1
        self.record: JobRecord | None = None

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = f"job {short_id(self.job)}"
            with TabbedContent(initial=self._tab):
                with TabPane("Details", id="details"), VerticalScroll():
                    yield Static(id="details-text")
                with TabPane("Why and when", id="why"), VerticalScroll():
                    yield Static(id="why-text")
                with TabPane("History", id="trail"), VerticalScroll():
                    yield Static(id="trail-text")
                with TabPane("Output", id="output"):
                    yield Follow("", id="follow")
            yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Request everything once, and again when something has happened to the job."""
        self.run_worker(self.look(), exclusive=True)

    def news(self) -> None:
        """Request the job again if it has changed on the board."""
        found = self.board.find(self.job)
        if found is not self._seen:
            self.run_worker(self.look(), exclusive=True)

    async def look(self) -> None:
        """Request the job and show it, unless the screen has been closed meanwhile."""
        with contextlib.suppress(NoMatches):
            await self._look()

    async def _look(self) -> None:
        self._seen = self.board.find(self.job)
        try:
            said = await self.source.ask(JobStatus(jobs=(self.job,), finished="also"), Jobs)
        except QbatchError as error:
            self._show("details", str(error))
            return
        if not said.jobs:
            self._show("details", f"job {short_id(self.job)} is unknown now")
            return
        self.record = said.jobs[0]
        self._show("details", _details(self.record, self.board.now()))
        await self._follow(self.record)
        await self._show_why(self.record)
        try:
            trail = await self.source.ask(Trail(job=self.job), Trails)
            lines = [
                f"{moment(entry.at)}  {entry.kind}  {clean(entry.text)}" for entry in trail.entries
            ]
        except QbatchError:
            events = [event for event in self.board.events if event.job == self.job]
            lines = [
                f"{moment(event.at)}  {event.kind} {clean(event.text)}" for event in events
            ] or ["there is no record here"]
        self._show("trail", "\n".join(lines))

    async def _follow(self, record: JobRecord) -> None:
        """Follow the output at the source's location of it; without one, at that of the record."""
        try:
            files = await self.source.ask(JobOutput(job=record.id), OutputFiles)
        except QbatchError as error:
            # A recording, which has no answer.
            if isinstance(error, Refusal) and error.code != "bad-state":
                self.query_one(Follow).tell(str(error))
            else:
                host, colon, path = record.output.partition(":/")  # host:/path, or /path
                self.query_one(Follow).follow(
                    f"/{path}" if colon and not host.startswith("/") else record.output
                )
            return
        is_same = files.attempt == self._attempt
        self._attempt = files.attempt
        self.query_one(Follow).follow(*files.output, is_same=is_same)

    async def _show_why(self, record: JobRecord) -> None:
        if record.state in WAITING or record.state == "S":
            try:
                text = _why(await self.source.ask(Explain(job=self.job), Explanation))
            except QbatchError as error:
                text = str(error)
        else:
            began = "it never started"
            if record.started is not None:
                began = (
                    f"it waited {short_span(waited(record, self.board.now()))} and started "
                    f"{moment(record.started)}"
                )
            how = "was cancelled" if is_cancelled(record) else "ended"
            status = "" if is_cancelled(record) else f" with exit status {record.exit_status}"
            ended = f"; it {how} {moment(record.ended)}{status}" if record.ended is not None else ""
            text = f"job {short_id(record.id)} does not wait: {began}{ended}"
        self._show("why", text)

    def _show(self, which: str, text: str) -> None:
        self.query_one(f"#{which}-text", Static).update(Content(text))

    def action_tab(self, which: str) -> None:
        self.query_one(TabbedContent).active = which

    def action_job(self, what: str) -> None:
        """Act on the job; the application asks first."""
        self.app.call_next(self.app.run_action, f"app.job('{what}')")


def _details(job: JobRecord, now: int) -> str:
    ran = None if job.started is None else run_time(job, now)
    memory = f", {job.resources['mem']}" if "mem" in job.resources else ""
    select = f" ({job.resources['select']})" if "select" in job.resources else ""
    rows: list[tuple[str, str]] = [
        ("name", job.name),
        ("user", f"{job.user}{f' ({job.group})' if job.group else ''}"),
        ("queue", job.queue),
        (
            "state",
            f"{job.state}, {_STATES.get(job.state, 'in another state')}"
            + (f" ({job.hold} hold)" if job.state == "H" and job.hold not in ("n", "") else ""),
        ),
        (
            "asks for",
            (
                f"{procs_asked(job)} processors{memory}, {short_span(walltime_of(job))} of "
                f"walltime{select}"
            ),
        ),
        ("has", f"{procs_text(job)} processors" if procs_now(job) != procs_asked(job) else ""),
        ("submitted", moment(job.submitted)),
        ("waited", short_span(waited(job, now))),
        ("started", moment(job.started)),
        ("ran", span(ran) if ran is not None else "-"),
        ("ended", moment(job.ended)),
        ("runs on" if job.ended is None else "ran on", hosts_text(job)),
        ("exit status", status_of(job)),
        ("used", " ".join(f"{name}={value}" for name, value in job.used.items())),
        ("priority", str(job.priority)),
        ("attempt", str(job.attempt) if job.attempt > 1 else ""),
        (
            "lost",
            "; ".join(
                f"{moment(since)} to {moment(until)} on {where}"
                for _, since, until, _, where in job.lost
            ),
        ),
        ("depends on", job.depend),
        ("output", job.output),
        ("error", job.error),
        ("directory", job.directory),
        ("comment", job.comment),
    ]
    return "\n".join(f"{name:<12} {clean(text)}" for name, text in rows if text and text != "-")


def _why(why: Explanation) -> str:
    lines = [clean(why.text)]
    if why.blocked_by:
        lines.append(f"ahead of it: {', '.join(short_id(each) for each in why.blocked_by[:12])}")
    if why.promised is not None:
        lines.append(
            f"promised to start by {moment(why.promised)}, in {short_span(why.promised - why.now)}"
        )
    if why.estimated_start is not None:
        lines.append(
            f"expected to start {moment(why.estimated_start)}, in "
            f"{short_span(why.estimated_start - why.now)}"
        )
    lines.append(f"said by {why.said_by} ({why.code})" if why.said_by else f"({why.code})")
    return "\n\n".join(lines)
