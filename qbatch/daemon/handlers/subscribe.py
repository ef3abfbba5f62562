"""Push events from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbatch.wire.records import Done
from qbatch.wire.requests import Subscribe

if TYPE_CHECKING:
    from qbatch.daemon.connection import Connection
    from qbatch.daemon.service import Service


def handle(service: Service, connection: Connection, request: Subscribe) -> Done:
    """Enter the connection among those that get events; the text is the number of the last event before them."""
    connection.is_subscribed = True
    return Done(text=str(service.core.events_made))
