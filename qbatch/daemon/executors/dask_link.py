"""What holds a host and its Dask worker together: the commands that it is told, in their order; what the core is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from qbatch.model.machine import Host

from .dask_cluster import WorkerSeen

MOST_TOLD = 64
"""Commands in one call."""

LAST_DELAY = 10.0
"""Seconds at most before something that failed is tried again."""


class HostGate(Protocol):
    """What the executor tells the core about hosts; telling it again changes nothing."""

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts of the pool as they are configured now."""
        ...

    def take_down(self, name: str, why: str) -> None:
        """The host is down: what runs there is lost."""
        ...

    def bring_up(self, name: str) -> None:
        """The host is up again, unless somebody else closed it."""
        ...


class Link:
    """A worker that is a host, from when it is found until it is lost.

    ``order``: what each call to the worker begins with, once it is open; ``place``: its directory, also after a restart;
    ``generation``: another one since it gave up an attempt.
    """

    def __init__(self, name: str, seen: WorkerSeen) -> None:
        self.name, self.seen = name, seen
        self.is_open = False
        self.place = self.generation = ""
        self.order: dict[str, Any] = {}
        self.keys: set[str] = set()  # attempts that the worker has heard of
        self.opening: asyncio.Task[None] | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self.silent_since: float | None = None
        self.wake = asyncio.Event()
        self._commands: list[tuple[Any, ...]] = []
        self._number = 0

    def opened(self, order: dict[str, Any]) -> None:
        """The worker has let the daemon in."""
        self.is_open, self.order = True, order
        self.place, self.generation = order["place"], order["generation"]

    def put(self, verb: str, key: str, *said: Any) -> int:
        """Have the worker told a command, after those before it; return its number."""
        self._number += 1
        self._commands.append((self._number, verb, key, *said))
        self.wake.set()
        return self._number

    def batch(self) -> list[tuple[Any, ...]]:
        """Return the commands that are to be told next."""
        return self._commands[:MOST_TOLD]

    def heard(self, number: int) -> None:
        """The commands up to this number were heard."""
        self._keep(lambda command: command[0] > number)

    def drop(self, key: str) -> None:
        """The worker is not to be told of an attempt after all."""
        self._keep(lambda command: command[2] != key)

    def _keep(self, is_left: Callable[[tuple[Any, ...]], bool]) -> None:
        self._commands = [command for command in self._commands if is_left(command)]
        if not self._commands:
            self.wake.clear()
