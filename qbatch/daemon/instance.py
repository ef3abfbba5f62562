"""The process in which a service runs, as far as the service is asked about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MOST_CONNECTIONS = 12_000
"""Connections at the same time, where the limit of descriptors lets so many be."""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """The process in which a service runs, as far as the service is asked about it.

    ``started``: microseconds since 1970.  ``socket``, ``config``: paths.  ``is_compiled``: whether compiled kernels serve.
    ``reload``: reads the configuration again and tells what has changed.  ``most_connections``: at the same time.
    """

    started: int
    socket: str
    config: str
    is_compiled: Callable[[], bool]
    reload: Callable[[], Awaitable[str]]
    most_connections: int = MOST_CONNECTIONS
