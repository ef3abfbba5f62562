"""Show the configuration in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qbatch.daemon.config import as_toml
from qbatch.wire.records import Text
from qbatch.wire.requests import ConfigShow

if TYPE_CHECKING:
    from qbatch.daemon.connection import Connection
    from qbatch.daemon.service import Service


def handle(service: Service, connection: Connection, request: ConfigShow) -> Text:
    """Return the settings as TOML that would give them again."""
    return Text(text=as_toml(service.settings))
