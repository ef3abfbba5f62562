"""Talking to systemd: readiness, reloads, the watchdog, and the sockets that it passes (sd_notify(3), sd_listen_fds(3))."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING

from qbatch.daemon.core.states import BatchState

if TYPE_CHECKING:
    from qbatch.daemon.service import Service

_FIRST = 3


def passed_sockets() -> list[socket.socket]:
    """Return the listening sockets that systemd passed to this process, and forget the variables that say so."""
    pid, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdigit():
        return []
    found = []
    for handle in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(handle, False)
        found.append(socket.socket(fileno=handle))
    return found


class Notifier:
    """Says to systemd how the daemon is; to nobody where there is no systemd."""

    def __init__(self) -> None:
        self.address = os.environ.pop("NOTIFY_SOCKET", "")
        usec, pid = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", str(os.getpid()))
        self.interval = int(usec) / 2e6 if usec.isdigit() and pid == str(os.getpid()) else 0.0

    def send(self, text: str) -> None:
        """Send lines such as ``READY=1``."""
        if not self.address:
            return
        address = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            try:
                channel.sendto(text.encode(), address)
            except OSError:
                return

    def ready(self, status: str) -> None:
        """Recovery is over, or the new configuration is in force."""
        self.send(f"READY=1\nSTATUS={status}" if status else "READY=1")

    def reloading(self) -> None:
        """The configuration is being read again."""
        self.send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The daemon is about to end."""
        self.send("STOPPING=1")

    async def watch(self, service: Service) -> None:
        """Feed the watchdog as long as the committer gets on: a probe goes through it each time."""
        while True:
            await asyncio.sleep(self.interval or 5.0)
            if await service.gets_on(self.interval or 5.0):
                queued = sum(queue.counts.get(BatchState.QUEUED, 0) for queue in service.core.queues.values())
                running = sum(len(pool.running) for pool in service.core.pools)
                self.send(f"WATCHDOG=1\nSTATUS={queued} queued, {running} running, {service.clock.mode} time")
