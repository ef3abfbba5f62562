"""Read the configuration again (SIGHUP, qbatch reload)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbatch.wire.records import Text
from qbatch.wire.requests import Reload

if TYPE_CHECKING:
    from qbatch.daemon.connection import Connection
    from qbatch.daemon.service import Service


async def handle(service: Service, connection: Connection, request: Reload) -> Text:
    """Take the new configuration as a whole, or keep the old one and say what is wrong."""
    return Text(text=await service.tools["reload"]())
