"""Show queues (qstat -Q)."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.records import queue_record
from qbatch.daemon.service import Service
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Queues
from qbatch.wire.requests import QueueStatus


def handle(service: Service, client: ConnectedClient, request: QueueStatus) -> Queues:
    """Return the queues that are named, or all."""
    core = service.core
    found, errors = [], []
    for name in request.queues or core.queues:
        try:
            found.append(queue_record(core, core.queue(name.partition("@")[0])))
        except Refusal as error:
            errors.append(error.record)
    now = max(core.now, service.clock.now())
    return Queues(queues=tuple(found), errors=tuple(errors), now=now, server=core.settings.name)
