"""What travels between the daemon and a worker in pieces: long scripts there, outputs back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from . import dask_worker
from .dask_cluster import ClusterRefusedError, DaskScheduler, SilentError
from .dask_link import LAST_DELAY, Link
from .dask_track import Track, piece_of


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
