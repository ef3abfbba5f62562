"""Recorded runs: what a monitor recorded while it watched, as numbered events.

A recording is UTF-8 JSON lines: a header (``{"schema": "qbatch.recording/1", ...}``), then
``{"picture": ...}`` for each whole picture and ``{"event": ...}`` for each event, as the daemon
sent it (docs/reference/protocol.md).
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from qbatch.model.errors import InputError
from qbatch.wire.records import (
    EventRecord,
    HostRecord,
    JobRecord,
    QueueRecord,
    Record,
    ServerRecord,
)

SCHEMA = "qbatch.recording/1"
"""The schema of the recordings that this program writes and reads."""


class Picture(Record, frozen=True):
    """The whole state at one instant."""

    server: ServerRecord
    hosts: tuple[HostRecord, ...] = ()
    queues: tuple[QueueRecord, ...] = ()
    running: tuple[JobRecord, ...] = ()
    waiting: tuple[JobRecord, ...] = ()


class Recording(Protocol):
    """Events in order, with the pictures that they start from."""

    title: str

    @property
    def at(self) -> Sequence[int]:
        """The instant of each event, in microseconds, never decreasing."""

    @property
    def kinds(self) -> Sequence[str]:
        """The kind of each event."""

    def picture(self, place: int) -> Picture | None:
        """Return the whole picture before an event, or None."""

    def event(self, place: int) -> EventRecord:
        """Return an event."""


class _Event(msgspec.Struct):
    at: int
    kind: str


class _Line(msgspec.Struct):
    schema: str = ""
    event: _Event | None = None
    picture: msgspec.Raw = msgspec.Raw(b"")


class _EventLine(msgspec.Struct):
    event: EventRecord


_lines = msgspec.json.Decoder(_Line)
_events = msgspec.json.Decoder(_EventLine)


class RecordingWriter:
    """Writes a recording, line by line; an interrupted one is complete up to its last line."""

    def __init__(self, file: BinaryIO, version: str) -> None:
        self._file = file
        self._write({"schema": SCHEMA, "version": version})

    def picture(
        self,
        server: ServerRecord,
        hosts: Sequence[HostRecord],
        queues: Sequence[QueueRecord],
        running: Sequence[JobRecord],
        waiting: Sequence[JobRecord],
    ) -> None:
        picture = Picture(
            server=server,
            hosts=tuple(hosts),
            queues=tuple(queues),
            running=tuple(running),
            waiting=tuple(waiting),
        )
        self._write({"picture": picture})

    def event(self, event: EventRecord) -> None:
        self._write({"event": event})

    def _write(self, line: object) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")


class FileRecording:
    """A recording in a file; events are decoded when they are played.

    Raises:
        InputError: the file does not exist, or is no recording; the message names the line.
    """

    def __init__(self, path: str) -> None:
        self.title = Path(path).name
        self.at: array[int] = array("q")
        self.kinds: list[str] = []
        self._begins: array[int] = array("q")
        self._ends: array[int] = array("q")
        self._pictures: dict[int, tuple[int, int]] = {}
        try:
            with open(path, "rb") as file:
                self._data: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            self._data = b""
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        self._index(path)

    def _index(self, path: str) -> None:
        data, place, number, latest = self._data, 0, 0, -(1 << 62)
        known: dict[str, str] = {}
        while place < len(data):
            end = data.find(b"\n", place)
            number += 1
            if end < 0:  # the writer was interrupted: the rest of the line never came
                break
            try:
                line = _lines.decode(data[place:end])
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise InputError(
                    f"{path}, line {number}: not a line of a recording ({error})"
                ) from None
            if number == 1 and line.schema != SCHEMA:
                raise InputError(
                    f"{path}: not a recording of this version (schema "
                    f"{line.schema or 'missing'!r}, not {SCHEMA}); "
                    "qbatch top --record FILE makes one"
                )
            if bytes(line.picture):
                self._pictures[len(self.at)] = (place, end)
            elif line.event is not None:
                latest = max(latest, line.event.at)
                self.at.append(latest)
                self.kinds.append(known.setdefault(line.event.kind, line.event.kind))
                self._begins.append(place)
                self._ends.append(end)
            place = end + 1
        if 0 not in self._pictures:
            raise InputError(
                f"{path}: the recording has no first picture; it was cut off at its beginning"
            )

    def picture(self, place: int) -> Picture | None:
        where = self._pictures.get(place)
        if where is None:
            return None
        line = msgspec.json.decode(self._data[where[0] : where[1]], type=dict[str, Picture])
        return line["picture"]

    def event(self, place: int) -> EventRecord:
        return _events.decode(self._data[self._begins[place] : self._ends[place]]).event
