"""Read the configuration again (SIGHUP, qbatch reload)."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.records import Text
from qbatch.wire.requests import Reload


async def handle(service: Service, client: ConnectedClient, request: Reload) -> Text:
    """Take the new configuration as a whole, or keep the old one and say what is wrong."""
    return Text(text=await service.instance.reload())
