"""Say who is there."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.distribution import __version__
from qbatch.wire.records import Welcome
from qbatch.wire.requests import PROTOCOL, Hello


def handle(service: Service, client: ConnectedClient, request: Hello) -> Welcome:
    """Greet, and tell the client whom it is taken for."""
    actor = client.actor
    return Welcome(
        server=service.settings.name, version=__version__, protocol=PROTOCOL, user=actor.user, role=actor.role
    )
