"""Stop the daemon (qbatch down)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbatch.wire.records import Done
from qbatch.wire.requests import Shutdown

if TYPE_CHECKING:
    from qbatch.daemon.connection import Connection
    from qbatch.daemon.service import Service


def handle(service: Service, connection: Connection, request: Shutdown) -> Done:
    """Commit what was taken, snapshot, stop; jobs run on unless they are to end too."""
    if request.is_with_jobs:
        service.effects.stop_all()
    service.tools["stop"](f"at request of {connection.actor.user}")
    return Done(text=f"stopping; {sum(len(pool.running) for pool in service.core.pools)} jobs run on")
