"""Kernels in a daemon: their plain form serves until it is busy, the first time also while a child process compiles them
into the cache.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable

from qbatch.daemon.warm import is_warm, warm
from qbatch.model.errors import InputError
from qbatch.planning.kernels.live import serve_compiled, serve_uncompiled

log = logging.getLogger("qbatch")


BIG = 5000
"""Waiting jobs from which a pass in plain Python would take too long: the kernels are loaded before the first one."""

QUIET = 0.3
"""Seconds without a commit after which loading the kernels disturbs nobody."""

PATIENCE = 5.0
"""Seconds after which they are loaded all the same."""


class Warming:
    """Compiles what some policies need, beside the daemon, and loads it in a quiet moment."""

    def __init__(self, policies: list[str]) -> None:
        self.policies = list(dict.fromkeys(policies))
        self._is_over = False
        serve_uncompiled()

    def is_over(self) -> bool:
        """Whether compiled kernels serve."""
        return self._is_over

    def before_the_first_pass(self, waiting: int) -> None:
        """With many jobs waiting, or many passes to make again, load at once what is in the cache."""
        if not self._is_over and waiting >= BIG and self._is_cached():
            self._load()

    def _is_cached(self) -> bool:
        try:
            return is_warm(self.policies)
        except InputError as error:
            log.warning("%s; the plain form of the kernels serves", error)
            return False

    def _load(self) -> None:
        serve_compiled()
        warm(self.policies)
        self._is_over = True

    async def run(self, is_busy: asyncio.Event, commits: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Once the daemon is busy, compile in a child process where the cache has nothing; load when nobody waits for an answer
        or the queue has become long."""
        if self._is_over:
            return
        await is_busy.wait()
        if not self._is_cached() and not await self._compile():
            return
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            before = commits()
            await asyncio.sleep(QUIET)
            if commits() == before or waiting() >= BIG:
                break
        self._load()
        log.info("compiled kernels serve")

    async def _compile(self) -> bool:
        log.info("kernels for %s are being compiled; their plain form serves until then", ", ".join(self.policies))
        command = (sys.executable, "-m", "qbatch.daemon.warm", *self.policies)
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await child.communicate()
        except asyncio.CancelledError:
            child.kill()
            raise
        if child.returncode != 0:
            lines = said.decode("utf-8", "replace").strip().splitlines()
            log.warning(
                "kernels cannot be compiled (%s); their plain form serves on", lines[-1] if lines else child.returncode
            )
            return False
        return True
