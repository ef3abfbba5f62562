"""The stream of events that subscribers get: changes of jobs, hosts and queues, and the state of
the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from qbatch.daemon.connection import ConnectedClient
from qbatch.daemon.core.records import event_record
from qbatch.daemon.core.state import Core, Happening
from qbatch.daemon.unread import SharedFrame
from qbatch.wire.frames import encode
from qbatch.wire.records import ClockRecord, EventRecord

PAUSE = 0.5
"""Seconds between two clock events while time only moves on."""

_encode = msgspec.json.Encoder().encode


class EventStream:
    """Sends events to the clients that ``subscribers`` returns; it costs nothing if there is none.

    ``last``: the number of the last event that was committed.
    """

    def __init__(self, subscribers: Callable[[], Sequence[ConnectedClient]]) -> None:
        self.last = 0
        self._subscribers = subscribers
        self._sent: ClockRecord | None = None
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def is_heard(self) -> bool:
        """Return whether any client gets events now."""
        return bool(self._subscribers())

    def happened(self, core: Core, effect: Happening) -> None:
        """Send what happened, after its commit."""
        words = effect.text.split(" ", 1)
        record = event_record(core, effect.key) if effect.key is not None else None
        queue = core.queues.get(record.queue) if record is not None else None
        event = EventRecord(
            number=effect.number,
            at=effect.at,
            kind=effect.kind,
            job=core.id_of(effect.key) if effect.key is not None else "",
            record=record,
            host=words[0] if effect.kind == "host" else "",
            queue=words[0] if effect.kind == "queue" else "",
            text=effect.text,
            counts={} if queue is None else queue.letter_counts,
        )
        self._send(event, self._subscribers())

    def announce(self, core: Core, kind: str, text: str = "") -> None:
        """Send an event that is not of a job, a host or a queue (``queue``: all of them may have
        changed)."""
        self._send(
            EventRecord(number=core.events_made, at=core.now, kind=kind, text=text),
            self._subscribers(),
        )

    def clock(self, core: Core, record: Callable[[], ClockRecord]) -> None:
        """Send the clock: at once if a command changed it, every ``PAUSE`` seconds if time only
        moved on."""
        subscribers = self._subscribers()
        if not subscribers:
            self._sent = None
            return
        now, sent = record(), self._sent
        if sent == now or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        if sent is not None and _drive(sent) == _drive(now):
            # Clients count on by themselves.
            if now.mode != "virtual" and now.log_arrived == sent.log_arrived:
                return
            if loop.time() < self._next:
                self._timer = loop.call_at(self._next, self._later, core, record)
                return
        self._sent, self._next = now, loop.time() + PAUSE
        self._send(
            EventRecord(number=core.events_made, at=now.now, kind="clock", clock=now), subscribers
        )

    def _later(self, core: Core, record: Callable[[], ClockRecord]) -> None:
        self._timer = None
        self.clock(core, record)

    def _send(self, event: EventRecord, subscribers: Sequence[ConnectedClient]) -> None:
        if subscribers:
            frame = SharedFrame(encode(_encode({"event": event})))
            for subscriber in subscribers:
                subscriber.put(frame)


def _drive(clock: ClockRecord) -> tuple[str, float, bool, str]:
    return clock.mode, clock.speed, clock.is_paused, clock.until
