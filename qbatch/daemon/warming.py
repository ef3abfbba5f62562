"""Kernels at the first start: their plain form serves while a child process compiles them into the cache."""

from __future__ import annotations

import asyncio
import logging
import sys

from qbatch.planning.kernels.live import serve_compiled, serve_uncompiled
from qbatch.planning.kernels.warm import is_warm

log = logging.getLogger("qbatch")


class Warming:
    """Compiles what some policies need, beside the daemon."""

    def __init__(self, policies: list[str]) -> None:
        self.policies = list(dict.fromkeys(policies))
        self._is_over = is_warm(self.policies)
        if not self._is_over:
            serve_uncompiled()

    def is_over(self) -> bool:
        """Whether compiled kernels serve."""
        return self._is_over

    async def run(self) -> None:
        """Compile in a child process, at low priority; then let the compiled kernels serve."""
        if self._is_over:
            return
        log.info("kernels for %s are being compiled; their plain form serves until then", ", ".join(self.policies))
        command = (sys.executable, "-m", "qbatch.planning.kernels.warm", *self.policies)
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
        if child.returncode == 0:
            serve_compiled()
            self._is_over = True
            log.info("compiled kernels serve")
        else:
            lines = said.decode("utf-8", "replace").strip().splitlines()
            log.warning(
                "kernels cannot be compiled (%s); their plain form serves on", lines[-1] if lines else child.returncode
            )
