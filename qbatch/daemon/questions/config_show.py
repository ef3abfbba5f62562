"""Show the configuration in use."""

from __future__ import annotations

from qbatch.daemon.config import as_toml
from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.service import Service
from qbatch.wire.records import Text
from qbatch.wire.requests import ConfigShow


def handle(service: Service, client: ConnectedClient, request: ConfigShow) -> Text:
    """Return the settings as TOML that would give them again."""
    return Text(text=as_toml(service.settings))
