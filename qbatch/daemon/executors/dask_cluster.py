"""The connection to a Dask scheduler: its workers, and calls to one of them.  A broken connection
is made again.

A call goes to one worker, outside Dask's tasks, so that nothing is run again elsewhere.  It may
have been carried out although it failed; the called functions allow for that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from qbatch.distribution import NAME, __version__, install_command
from qbatch.model.errors import InputError

PATIENCE = 5.0
"""Seconds for a connection, and for a worker's answer beyond the time that it may wait itself."""


class SilentError(Exception):
    """There was no answer; the call may have been carried out."""


class ClusterRefusedError(Exception):
    """The other side answered that it cannot do that."""


class WorkerSeen(NamedTuple):
    """A worker as its scheduler knows it; ``memory``: bytes, 0: not limited."""

    address: str
    threads: int
    memory: int


def require_dask(pool: str) -> None:
    """Load Dask.

    Raises:
        InputError: it is not installed.
    """
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise InputError(
            f'pool {pool}: executor "dask" needs distributed: {install_command("dask")}'
        ) from error


class DaskScheduler:
    """One Dask scheduler at an address such as ``tcp://head:8786``, with its workers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Any = None
        self._lock = asyncio.Lock()

    async def workers(self) -> dict[str, WorkerSeen]:
        """Return the workers by name.

        Raises:
            SilentError: the scheduler does not answer.
        """
        answer = await self._ask(lambda client: client.scheduler.identity(), PATIENCE)
        return {
            str(each["name"]): WorkerSeen(
                address, int(each["nthreads"]), int(each.get("memory_limit") or 0)
            )
            for address, each in answer["workers"].items()
        }

    async def call(
        self,
        address: str,
        function: Callable[..., Awaitable[Any]],
        *arguments: Any,
        seconds: float = 0.0,
    ) -> Any:
        """Return what a function of ``dask_worker`` returns on the worker at an address; it may
        wait there for ``seconds``.

        Raises:
            SilentError: the worker or the scheduler does not answer.
            ClusterRefusedError: the worker cannot do it; with the reason.
        """
        answers = await self._ask(
            lambda client: client.run(function, *arguments, workers=[address]),
            seconds + 2 * PATIENCE,
        )
        if address not in answers:
            raise SilentError(f"no answer of {address}")
        answer = answers[address]
        if isinstance(answer, dict) and "error" in answer:
            raise ClusterRefusedError(answer["error"])
        return answer

    async def close(self) -> None:
        """Leave the cluster; what runs there runs on."""
        async with self._lock:
            await self._drop()

    async def _ask(self, question: Callable[[Any], Awaitable[Any]], seconds: float) -> Any:
        try:
            client = await self._connected()
            async with asyncio.timeout(seconds):
                return await question(client)
        except (OSError, TimeoutError) as error:  # Dask's own errors of connections are these
            raise SilentError(" ".join(str(error).split()) or type(error).__name__) from error
        except ImportError as error:
            raise ClusterRefusedError(
                f"its Dask worker has no {NAME} {__version__}: install it there ({error})"
            ) from error
        except (
            RuntimeError,
            KeyError,
            AttributeError,
            ValueError,
            TypeError,
        ) as error:  # closed meanwhile, or damaged
            if self._client is None or self._client.status != "running":
                raise SilentError(f"{type(error).__name__}: {error}") from error
            raise ClusterRefusedError(f"{type(error).__name__}: {error}") from error

    async def _connected(self) -> Any:
        async with self._lock:
            if self._client is not None and self._client.status in ("running", "connecting"):
                return self._client
            await self._drop()
            import distributed

            client: Any = distributed.Client(
                self.address, asynchronous=True, set_as_default=False, timeout=PATIENCE, name=NAME
            )  # type: ignore[no-untyped-call]
            try:
                await client
            except BaseException:
                with contextlib.suppress(Exception):
                    await client.close(timeout=0)
                raise
            self._client = client
            return client

    async def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                await client.close(timeout=1)
