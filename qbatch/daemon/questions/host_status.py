"""Show hosts (pbsnodes)."""

from __future__ import annotations

from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core.records import host_records
from qbatch.daemon.service import Service
from qbatch.model.errors import suggestion
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Hosts
from qbatch.wire.requests import HostStatus


def handle(service: Service, client: ConnectedClient, request: HostStatus) -> Hosts:
    """Return the hosts that are named, or all."""
    core = service.core
    records = {record.name: record for record in host_records(core)}
    names = request.hosts or tuple(records)
    errors = [
        Refusal("unknown-host", f"Unknown node {name[:80]}{suggestion(name[:80], records)}").record
        for name in names
        if name not in records
    ]
    found = tuple(records[name] for name in names if name in records)
    now = max(core.now, service.clock.now())
    return Hosts(hosts=found, errors=tuple(errors), now=now, server=core.settings.name)
