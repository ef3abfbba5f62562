"""Snapshots of the state: a small one is written at once, a big one by a forked child."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from qbatch.daemon.child import Child, ChildFailed
from qbatch.daemon.config import as_toml
from qbatch.daemon.core import state_snapshot
from qbatch.daemon.store import StorageError, StorageFull

if TYPE_CHECKING:
    from qbatch.daemon.service import Service

log = logging.getLogger("qbatch")

SMALL = 2000
"""Live jobs up to which a snapshot is made in the daemon itself."""

LEAST_JOURNAL = 16 << 20
"""Bytes of journal from which a snapshot is worth its cost under load."""

QUIET_JOURNAL = 1 << 20
"""Bytes of journal from which a snapshot is worth its cost while the server is idle."""


class Snapshots:
    """Writes snapshots, so that the journal stays short."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._last_size = 0

    async def now(self, *, is_needed: bool = False) -> None:
        """Write the state when everything before it is committed; a full disk is an error in the
        log.

        Raises:
            StorageError: it cannot be written, and the disk is not full, or the snapshot
                ``is_needed``.
        """
        try:
            async with self.service.quiet(is_past_snapshot=True):
                store, core = self.service.store, self.service.core
                data = state_snapshot.dump(core)
                self._last_size = len(data)
                number = store.number
                store.write_snapshot(number, data)
                await store.adopt_snapshot(number, as_toml(core.settings))
        except (OSError, StorageFull) as error:
            if is_needed:
                raise StorageError(f"snapshot: {self.service.store.directory}: {error}") from error
            log.error(
                "snapshot: %s: %s; the journal keeps growing", self.service.store.directory, error
            )

    async def keep(self) -> None:
        """Make a snapshot whenever the journal has grown enough."""
        commits = 0
        while True:
            await asyncio.sleep(1.0)
            store = self.service.store
            is_quiet, commits = self.service.commits - commits < 10, self.service.commits
            worth = QUIET_JOURNAL if is_quiet else max(LEAST_JOURNAL, self._last_size // 8)
            if store.journal_bytes > worth and not self.service.is_full:
                try:
                    if len(self.service.core.jobs) <= SMALL:
                        await self.now()
                    else:
                        await self._by_child()
                except StorageFull as error:
                    log.error("snapshot: %s; the journal keeps growing", error)
                except StorageError as error:
                    self.service.fail(error)

    async def _by_child(self) -> None:
        """Fork a child, which writes the state of this instant while the daemon goes on."""
        service, store = self.service, self.service.store
        async with service.quiet():
            number, core = store.number, service.core
            settings = as_toml(core.settings)

            def write() -> bytes:
                store.write_snapshot(number, state_snapshot.dump(core))
                return b""

            child = Child(write)
        try:
            await child.answer()
        except ChildFailed as error:
            log.error("snapshot: %s; the journal keeps growing", error)
            store.journal_bytes = 0
            return
        async with service.quiet():
            if number <= store.snapshot_number:
                return  # a later snapshot was written meanwhile
            self._last_size = (store.directory / f"snapshot-{number}").stat().st_size
            await store.adopt_snapshot(number, settings)
