"""Say who is there."""

from __future__ import annotations

import os

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.submission import check_server
from qbatch.daemon.service import Service
from qbatch.distribution import __version__
from qbatch.wire.records import Welcome
from qbatch.wire.requests import PROTOCOL, Hello


def handle(service: Service, client: ConnectedClient, request: Hello) -> Welcome:
    """Greet, and tell the client whom it is taken for.

    Raises:
        Refusal: the client means another server.
    """
    check_server(service.core, request.server, os.uname().nodename)
    actor = client.actor
    return Welcome(
        server=service.settings.name, version=__version__, protocol=PROTOCOL, user=actor.user, role=actor.role
    )
