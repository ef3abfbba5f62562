"""Say who is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbatch import __version__
from qbatch.wire.records import Welcome
from qbatch.wire.requests import PROTOCOL, Hello

if TYPE_CHECKING:
    from qbatch.daemon.connection import Connection
    from qbatch.daemon.service import Service


def handle(service: Service, connection: Connection, request: Hello) -> Welcome:
    """Greet, and tell the client whom it is taken for."""
    actor = connection.actor
    return Welcome(
        server=service.settings.name, version=__version__, protocol=PROTOCOL, user=actor.user, role=actor.role
    )
