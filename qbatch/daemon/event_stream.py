"""The stream of events that subscribers get: changes of jobs, hosts and queues, and the state of the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.records import event_record
from qbatch.daemon.core.state import Core, Happening
from qbatch.daemon.unread import SharedFrame
from qbatch.wire.frames import encode
from qbatch.wire.records import ClockRecord, EventRecord

PAUSE = 0.5
"""Seconds between two clock events while time only moves on."""

_encode = msgspec.json.Encoder().encode


class _EventFrame(msgspec.Struct):
    """The frame of an event."""

    event: EventRecord


class EventStream:
    """Sends events to subscribers; it costs nothing if there is none.

    Args:
        subscribers: returns the clients that get events now.

    ``last``: the number of the last event that was committed.
    """

    def __init__(self, subscribers: Callable[[], Sequence[ConnectedClient]]) -> None:
        self.last = 0
        self._subscribers = subscribers
        self._told: ClockRecord | None = None
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

    def shadowed(self, core: Core) -> None:
        """Send that the table of the what-if policies is new."""
        self._send(EventRecord(number=core.events_made, at=core.now, kind="shadow"), self._subscribers())

    def reloaded(self, core: Core) -> None:
        """Send that the configuration was read again: a queue event without a queue, as all may have changed."""
        text = "the configuration was read again"
        self._send(EventRecord(number=core.events_made, at=core.now, kind="queue", text=text), self._subscribers())

    def clock(self, core: Core, record: Callable[[], ClockRecord]) -> None:
        """Send the clock: at once if a command changed it, every ``PAUSE`` seconds if time only moved on."""
        subscribers = self._subscribers()
        if not subscribers:
            self._told = None
            return
        said, told = record(), self._told
        if told == said or self._timer is not None:
            return
        is_driven = told is None or _drive(told) != _drive(said)
        is_only_later = said.mode != "virtual" and said.log_arrived == (told.log_arrived if told is not None else None)
        if not is_driven and is_only_later:
            return
        loop = asyncio.get_running_loop()
        if not is_driven and loop.time() < self._next:
            self._timer = loop.call_at(self._next, self._later, core, record)
            return
        self._told, self._next = said, loop.time() + PAUSE
        self._send(EventRecord(number=core.events_made, at=said.now, kind="clock", clock=said), subscribers)

    def _later(self, core: Core, record: Callable[[], ClockRecord]) -> None:
        self._timer = None
        self.clock(core, record)

    def _send(self, event: EventRecord, subscribers: Sequence[ConnectedClient]) -> None:
        if subscribers:
            frame = SharedFrame(encode(_encode(_EventFrame(event))))
            for subscriber in subscribers:
                subscriber.put(frame)


def _drive(clock: ClockRecord) -> tuple[str, float, bool, str]:
    return clock.mode, clock.speed, clock.is_paused, clock.until
