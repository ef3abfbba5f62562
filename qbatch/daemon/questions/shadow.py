"""Show the policies in shadow, or say which ones there are to be (qbatch shadow)."""

from __future__ import annotations

from collections.abc import Awaitable

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.model.errors import suggestion
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Shadows
from qbatch.wire.requests import Shadow

ACTIONS = ("show", "set")


def handle(service: Service, client: ConnectedClient, request: Shadow) -> Shadows | Awaitable[Shadows]:
    """Return the last table, or begin other shadows."""
    if request.action not in ACTIONS:
        word = request.action[:20]
        raise Refusal("bad-value", f"{word!r} is nothing to do with shadows{suggestion(word, ACTIONS)}")
    return _set(service, request) if request.action == "set" else service.shadows.table()


async def _set(service: Service, request: Shadow) -> Shadows:
    await service.own_policies.admit(request.policies)
    async with service.quiet():
        service.shadows.begin(request.policies)
    return service.shadows.table()
