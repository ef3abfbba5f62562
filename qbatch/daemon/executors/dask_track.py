"""One attempt of the Dask executor: what the daemon's machine keeps of it, in a run directory as for a local attempt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import structs

from .attempt import Attempt, Ended
from .process_directory import ExitRecord, RunDirectory
from .supervision.outputs import OutputTarget, targets_of

PLACE = "place"
"""File: the place to which the attempt is sent, and its generation; it is made before the attempt is sent."""


class Track:
    """One attempt that is not known to have ended.

    ``is_sent``: its worker gets the command ``number`` to start it; ``is_noted``: that is on record, and a long script is sent.
    ``was_sent``: an earlier process or track may have sent it; ``must_resume``: it did, and the worker must go on with it, never
    start it anew.  ``unsent``: commands that follow its start.  The functions that wait for the disk run on other threads.
    """

    def __init__(self, attempt: Attempt, path: Path) -> None:
        self.attempt = structs.replace(attempt, direct="")
        self.key, self.host = attempt.key, attempt.host
        self.directory = RunDirectory(path)
        self.place = self.generation = ""
        self.number = 0
        self.was_sent = self.must_resume = False
        self.has_started = self.is_prepared = self.is_sent = self.is_noted = self.is_ending = False
        self.used: dict[str, float] = {}
        self.unsent: list[tuple[Any, ...]] = []

    def prepare(self) -> ExitRecord | None:
        """Make the run directory, unless it exists; return how the attempt ended, if it did."""
        self.directory.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.prepare(self.attempt)
        situation = self.directory.look()
        if isinstance(situation, ExitRecord):
            return situation
        path = self.directory.path / PLACE
        text = path.read_text(encoding="ascii") if path.exists() else ""
        self.place, _, self.generation = text.partition(" ")
        self.was_sent = bool(text)
        return None

    def note_place(self, place: str, generation: str) -> None:
        """Put on record to which place the attempt goes, before it does.

        Raises:
            FileExistsError: it went somewhere before.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        temporary = self.directory.path / f"{PLACE}.tmp"
        temporary.unlink(missing_ok=True)
        with open(os.open(temporary, flags, 0o600), "w", encoding="ascii") as stream:
            stream.write(f"{place} {generation}")
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, self.directory.path / PLACE)
        temporary.unlink()
        self.place, self.generation = place, generation

    def targets(self) -> list[OutputTarget]:
        """Return the outputs that are fetched."""
        attempt = self.attempt
        return [each for each in targets_of(attempt.output, attempt.error, attempt.join, "") if each.spool]

    def keep(self, name: str, offset: int, data: bytes, mode: int) -> None:
        """Keep a part of an output; the first one begins it anew."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if offset else os.O_TRUNC)
        handle = os.open(self.directory.path / name, flags, 0o600)
        try:
            os.pwrite(handle, data, offset)
            os.fchmod(handle, mode)
        finally:
            os.close(handle)

    def conclude(self, end: Ended, problem: str) -> ExitRecord:
        """Deliver what was fetched, and put the end on record."""
        undelivered = "; ".join(filter(None, (end.undelivered, problem, self.directory.deliver())))
        return self.directory.record_exit(end.status, end.why, undelivered, end.used)
