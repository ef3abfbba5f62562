"""One attempt of the Dask executor: what the daemon's own machine keeps of it, in a run directory like a local one's;
and what travels between it and the worker in pieces: long scripts there, outputs back.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import structs

from . import dask_worker
from .attempt import Attempt, Ended
from .dask_cluster import LAST_DELAY, ClusterRefusedError, DaskScheduler, Link, SilentError
from .process_directory import ExitRecord, Over, RunDirectory
from .supervision.outputs import OutputTarget, targets_of


async def before_launch(cluster: DaskScheduler, link: Link, track: Track) -> str:
    """Put on record where an attempt goes, and send a long script before it; what went wrong with it, in words.

    Raises:
        SilentError: the worker does not answer; to be called again.
    """
    try:
        if not track.place:
            await asyncio.to_thread(track.note_place, link.place, link.generation)
        if track.attempt.script_file:
            offset = 0
            while data := await asyncio.to_thread(piece_of, track.attempt.script_file, offset):
                await cluster.call(link.seen.address, dask_worker.write, link.order, track.key, offset, data)
                offset += len(data)
    except (ClusterRefusedError, OSError) as error:
        if not track.was_sent:
            return f"its script cannot be sent to host {link.name}: {error}"
        track.must_resume = True  # it may run there, with all that it needs
    track.is_noted = True
    return ""


async def fetch(
    cluster: DaskScheduler, link: Link, track: Track, name: str, letter: str, is_lost: Callable[[Link, SilentError], bool],
    first_delay: float,
) -> str:  # fmt: skip
    """Fetch one output piece by piece; what went wrong, in words."""
    offset, delay = 0, first_delay
    while True:
        try:
            piece = await cluster.call(link.seen.address, dask_worker.read, link.order, track.key, letter, offset)
            if piece is None:
                return f"{name}: its Dask worker was started again before the whole of it was fetched"
            if piece["mode"] is not None:
                await asyncio.to_thread(track.keep, name, offset, piece["data"], piece["mode"])
        except SilentError as error:
            if is_lost(link, error):
                return f"{name}: its Dask worker was lost before the whole of it was fetched"
            await asyncio.sleep(delay)
            delay = min(2 * delay, LAST_DELAY)
            continue
        except (ClusterRefusedError, OSError) as error:
            return f"{name}: {error}"
        if not piece["data"]:
            return ""
        offset, delay = offset + len(piece["data"]), first_delay


PLACE = "place"
"""File: the place to which the attempt was sent and its generation, made before it was."""

PIECE = 1 << 20


class Track:
    """One attempt that is not known to have ended.

    ``is_sent``: its worker is being told to start it, by the command ``number``; ``is_noted``: and that is on record, with a
    long script sent.  ``was_sent``: an earlier process or track may have sent it; ``must_resume``: it did, and the worker is to
    go on with it, never to start it anew.
    ``untold``: commands for later.
    The functions that wait for the disk run on other threads.
    """

    def __init__(self, attempt: Attempt, path: Path) -> None:
        self.attempt = structs.replace(attempt, direct="")
        self.key, self.host = attempt.key, attempt.host
        self.directory = RunDirectory(path, attempt.key)
        self.place = self.generation = ""
        self.number = 0
        self.was_sent = self.must_resume = False
        self.told_start = self.is_prepared = self.is_sent = self.is_noted = self.is_ending = False
        self.used: dict[str, float] = {}
        self.untold: list[tuple[Any, ...]] = []

    def prepare(self) -> ExitRecord | None:
        """Make the run directory, unless it is there; return how the attempt ended, if it did."""
        self.directory.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.prepare(self.attempt)
        situation = self.directory.look()
        if isinstance(situation, Over):
            return situation.record
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
        """Keep a piece of an output; the first one begins it anew."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if offset else os.O_TRUNC)
        handle = os.open(self.directory.path / name, flags, 0o600)
        try:
            os.pwrite(handle, data, offset)
            os.fchmod(handle, mode)
        finally:
            os.close(handle)

    def conclude(self, said: Ended, problem: str) -> ExitRecord:
        """Deliver what was fetched, and put the end on record."""
        undelivered = "; ".join(filter(None, (said.undelivered, problem, self.directory.deliver())))
        return self.directory.record_exit(said.status, said.why, undelivered, said.used)


def piece_of(path: str, offset: int) -> bytes:
    """Return a piece of a long script; nothing at its end."""
    with open(path, "rb") as stream:
        stream.seek(offset)
        return stream.read(PIECE)


async def remove(path: Path) -> None:
    """Remove a run directory."""
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


def now() -> int:
    """Return the present, in microseconds since 1970."""
    return time.time_ns() // 1000
