"""The tables of queues, of events, and of what-if policies."""

from __future__ import annotations

from typing import Any

from qbatch.results.shown import clean, close_moment, is_cancelled, short_span
from qbatch.tui.board import Board
from qbatch.tui.panels.jobs import hosts_text, short_id
from qbatch.tui.row_table import RowTable, TableColumn
from qbatch.wire.pieces import procs_text
from qbatch.wire.records import EventRecord, QueueRecord, ShadowRecord

_EVENT_TONES = {
    "started": "good",
    "resumed": "good",
    "suspended": "warning",
    "held": "warning",
    "lost": "bad",
    "requeued": "warning",
    "promise-broken": "bad",
    "resized": "good",
    "host": "accent",
    "queue": "accent",
    "monitor": "accent",
}


def queue_table(board: Board, **given: Any) -> RowTable:
    """Return the table of queues."""

    def number(key: str, title: str, letters: str) -> TableColumn:
        def counted(queue: QueueRecord) -> int:
            return sum(queue.counts.get(letter, 0) for letter in letters)

        return TableColumn(
            key, title, 8, lambda queue: f"{counted(queue):,}", counted, is_right=True
        )

    return RowTable(
        [
            TableColumn(
                "name", "queue", 12, lambda queue: clean(queue.name), lambda queue: queue.name
            ),
            TableColumn(
                "pool", "pool", 9, lambda queue: clean(queue.pool), lambda queue: queue.pool
            ),
            TableColumn(
                "state",
                "state",
                17,
                _state,
                _state,
                tone=lambda queue: "good" if queue.enabled and queue.started else "warning",
            ),
            number("queued", "queued", "Q"),
            number("running", "running", "RE"),
            number("held", "held", "HW"),
            number("suspended", "susp.", "S"),
            TableColumn(
                "policy", "policy", 24, lambda queue: queue.policy, lambda queue: queue.policy
            ),
            TableColumn("limits", "limits", 40, _limits, _limits),
        ],
        key=lambda queue: queue.name,
        empty="no queue",
        **given,
    )


def _state(queue: QueueRecord) -> str:
    return f"{'open' if queue.enabled else 'closed'}, {'running' if queue.started else 'stopped'}"


def _limits(queue: QueueRecord) -> str:
    limits = [
        f"{name} {value}"
        for name, value in (
            ("running", queue.max_running),
            ("per user", queue.max_running_per_user),
            ("procs", queue.max_procs),
            ("queued", queue.max_queued),
            ("walltime", queue.max_walltime and short_span(queue.max_walltime)),
        )
        if value is not None
    ]
    return ", ".join(limits) or "-"


def event_table(board: Board, **given: Any) -> RowTable:
    """Return the log of events, the latest first."""

    def tone(event: EventRecord) -> str:
        is_failed = (
            event.kind == "ended" and event.record is not None and bool(event.record.exit_status)
        )
        return "bad" if is_failed else _EVENT_TONES.get(event.kind, "")

    return RowTable(
        [
            TableColumn(
                "at",
                "time",
                11,
                lambda event: close_moment(event.at, board.now()),
                lambda event: event.at,
            ),
            TableColumn(
                "kind", "event", 10, lambda event: event.kind, lambda event: event.kind, tone=tone
            ),
            TableColumn(
                "job", "job", 10, lambda event: short_id(event.job), lambda event: event.job
            ),
            TableColumn("what", "what", 100, event_text, event_text),
        ],
        key=lambda event: (event.number, event.at, event.kind, event.text),
        empty="no events yet",
        **given,
    )


def event_text(event: EventRecord) -> str:
    """Return the text of an event without its kind and its job."""
    record = event.record
    if record is None:
        return clean(event.text)
    words = [clean(record.name), clean(record.user), f"{procs_text(record)} procs", record.queue]
    if event.kind == "ended" and record.exit_status is not None:
        words.append(
            "cancelled before it ran" if is_cancelled(record) else f"exit {record.exit_status}"
        )
    if event.kind in ("started", "resized") and record.exec_host:
        words.append(f"on {clean(hosts_text(record))[:60]}")
    if event.text:
        words.append(clean(event.text))
    return ", ".join(words)


def shadow_table(board: Board, **given: Any) -> RowTable:
    """Return the table of policies: the real one and the what-if policies."""

    def number(key: str, title: str, value: Any, decimals: int, width: int = 10) -> TableColumn:
        def text(row: ShadowRecord) -> str:
            found = value(row)
            return "-" if found is None else f"{found:,.{decimals}f}"

        return TableColumn(key, title, width, text, lambda row: value(row) or 0, is_right=True)

    return RowTable(
        [
            TableColumn(
                "policy",
                "policy",
                26,
                lambda row: f"{row.policy}{' (real)' if row.is_real else ''}",
                lambda row: row.policy,
                tone=lambda row: "accent" if row.is_real else "",
            ),
            number("wait", "mean wait s", lambda row: row.wait_mean_s, 1, 12),
            number("most", "max wait s", lambda row: row.wait_max_s, 0),
            number("slowdown", "bounded sld", lambda row: row.bounded_slowdown_mean, 2, 11),
            number(
                "utilisation",
                "util. %",
                lambda row: row.utilisation and 100 * row.utilisation,
                1,
                8,
            ),
            number("started", "started", lambda row: row.started, 0),
            number("ended", "ended", lambda row: row.ended, 0),
            number("waiting", "waiting", lambda row: row.waiting, 0),
            TableColumn(
                "provisional",
                "provisional",
                16,
                lambda row: f"{row.provisional:,} jobs" if row.provisional else "settled",
                lambda row: row.provisional,
                tone=lambda row: "warning" if row.provisional else "good",
            ),
            TableColumn("pool", "pool", 10, lambda row: row.pool, lambda row: row.pool),
        ],
        key=lambda row: (row.pool, row.policy, row.is_real),
        empty="no what-if policies; set some with: qbatch shadow set fcfs conservative",
        **given,
    )
