"""Take a piece of a script that is too long for one frame."""

from __future__ import annotations

import asyncio

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.records import Done
from qbatch.wire.requests import Upload


async def handle(service: Service, client: ConnectedClient, request: Upload) -> Done:
    """Write the piece; with the digest the script is complete, and the answer comes when it is safe."""
    uid = client.actor.uid
    service.refuse_if_busy()
    service.scripts.append(uid, request.upload, request.offset, request.data)
    if request.digest:
        keep = service.scripts.finish(uid, request.upload, request.digest)
        async with service.unread.turn_of(uid):
            await asyncio.get_running_loop().run_in_executor(None, keep)
    return Done(text=request.digest)
