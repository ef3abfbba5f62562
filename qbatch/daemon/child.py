"""A forked child that works on the state of one instant while the daemon goes on."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import time
from collections.abc import Callable

from qbatch.model.errors import QbatchError

_FOREVER = 86_400.0


class ChildFailed(QbatchError):  # noqa: N818 - the name states what the child did
    """The child raised an exception, died or took too long; the message names which."""


class Child:
    """A child that is forked at once, before anything else changes the state.

    The child has none of the daemon's open files: neither the lock and the database, which it would
    keep open after the daemon was killed, nor the sockets.

    Args:
        work: runs in the child and returns the answer.  It must use no thread, and nothing of the
            daemon that another thread may hold (the database).
    """

    def __init__(self, work: Callable[[], bytes]) -> None:
        self._reader, writer = os.pipe()
        self._number = os.fork()
        if not self._number:
            _run(work, writer)
        os.close(writer)

    async def answer(self, seconds: float = _FOREVER) -> bytes:
        """Return the answer of the child when it has ended.

        Raises:
            ChildFailed: the child raised an exception, died, or sent no answer within ``seconds``.
        """
        data = await asyncio.get_running_loop().run_in_executor(None, self._read, seconds)
        if not data.startswith(b"+"):
            raise ChildFailed(
                data[1:].decode("utf-8", "replace") or "the child has ended without an answer"
            )
        return data[1:]

    def _read(self, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        pieces = []
        try:
            while True:
                ready, _, _ = select.select(
                    [self._reader], [], [], max(deadline - time.monotonic(), 0)
                )
                piece = os.read(self._reader, 1 << 20) if ready else b""
                if not piece:
                    break
                pieces.append(piece)
        finally:
            os.close(self._reader)
            if time.monotonic() >= deadline:
                os.kill(self._number, signal.SIGKILL)
            os.waitpid(self._number, 0)
        return b"".join(pieces)


def _run(work: Callable[[], bytes], writer: int) -> None:
    """Do the work in the child, then end the child."""
    try:
        os.dup2(writer, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        with os.fdopen(3, "wb") as file:
            try:
                answer = work()
            except Exception as error:
                file.write(f"-{type(error).__name__}: {error}".encode())
            else:
                file.write(b"+")
                file.write(answer)
    finally:
        os._exit(0)
