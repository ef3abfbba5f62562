"""Write a copy of the store."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from qbatch.daemon.child import Child, ChildFailed
from qbatch.daemon.config import as_toml
from qbatch.daemon.connected_client import ConnectedClient
from qbatch.daemon.core import state_snapshot
from qbatch.daemon.restore import add_snapshot
from qbatch.daemon.service import Service
from qbatch.daemon.uninterrupted import to_its_end
from qbatch.wire.errors import Refusal
from qbatch.wire.records import Done
from qbatch.wire.requests import Backup


async def handle(service: Service, client: ConnectedClient, request: Backup) -> Done:
    """Copy the database, with the snapshot in it, to a file that does not exist yet."""
    path = Path(request.path)
    if not path.is_absolute() or "\0" in request.path:
        raise Refusal("bad-value", f"{request.path[:200]!r} is no absolute path")
    return await to_its_end(_written(service, path))


async def _written(service: Service, path: Path) -> Done:
    async with service.store.at_rest():
        async with service.quiet():
            await service.store.settle()
            number, settings = service.store.number, as_toml(service.settings)
            child = Child(lambda: state_snapshot.dump(service.core))
        try:
            await asyncio.get_running_loop().run_in_executor(None, service.store.backup, path)
            data = await child.said()
            await asyncio.get_running_loop().run_in_executor(None, add_snapshot, path, number, data, settings)
            return Done(text=f"{path}: {path.stat().st_size} bytes")
        except (OSError, sqlite3.Error, ChildFailed) as error:
            path.unlink(missing_ok=True)
            raise Refusal("failed", f"backup to {path}: {error}") from error
