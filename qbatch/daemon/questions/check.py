"""Check the store and the invariants of the running state."""

from __future__ import annotations

import msgspec

from qbatch.daemon.child import Child
from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.invariants import breaches
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Text
from qbatch.wire.requests import Check


async def handle(service: Service, client: ConnectedClient, request: Check) -> Text:
    """Return what was looked at, or refuse with what is wrong."""
    async with service.store.at_rest():
        async with service.quiet():
            await service.store.settle()
            last = service.store.number
            child = Child(lambda: msgspec.json.encode(breaches(service.core)))
        found = msgspec.json.decode(await child.said(), type=list[str])
        if found:
            raise Refusal("failed", f"{len(found)} invariants do not hold; the first: {found[0]}")
        said = await service.store.check(last)
    return Text(text=f"{said}\n{len(service.core.jobs)} live jobs: all counts, gates, hosts and rows agree\n")
