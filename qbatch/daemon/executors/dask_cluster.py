"""The connection to a Dask scheduler: which workers there are, and calls to one of them; it is made again where it broke.

A call goes to one worker, out of Dask's band: no task, so that nothing is run again elsewhere.  It may have been carried out
although it failed; what is called is made for that.

A ``Link`` holds a host and its worker together: the commands that the worker is told, in their order, and what the core is told
of the host.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from qbatch.distribution import NAME, __version__, install_command
from qbatch.model.errors import InputError
from qbatch.model.machine import Host

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


PATIENCE = 5.0
"""Seconds for a connection, and for what a worker is asked beyond what it was given."""


class SilentError(Exception):
    """Nobody answered; it may be that what was asked was done."""


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
        raise InputError(f'pool {pool}: executor "dask" needs distributed: {install_command("dask")}') from error


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
        said = await self._ask(lambda client: client.scheduler.identity(), PATIENCE)
        return {
            str(each["name"]): WorkerSeen(address, int(each["nthreads"]), int(each.get("memory_limit") or 0))
            for address, each in said["workers"].items()
        }

    async def call(
        self, address: str, function: Callable[..., Awaitable[Any]], *said: Any, seconds: float = 0.0
    ) -> Any:
        """Return what a function of ``dask_worker`` returns on the worker at an address.

        ``seconds``: for which it may wait there.

        Raises:
            SilentError: the worker or the scheduler does not answer.
            RefusedError: the worker cannot do it; with the reason.
        """
        answers = await self._ask(lambda client: client.run(function, *said, workers=[address]), seconds + 2 * PATIENCE)
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
            raise ClusterRefusedError(f"its Dask worker has no {NAME} {__version__}: install it there ({error})") from error
        except (RuntimeError, KeyError, AttributeError, ValueError, TypeError) as error:  # closed meanwhile, or damaged
            if self._client is None or self._client.status != "running":
                raise SilentError(f"{type(error).__name__}: {error}") from error
            raise ClusterRefusedError(f"{type(error).__name__}: {error}") from error

    async def _connected(self) -> Any:
        async with self._lock:
            if self._client is not None and self._client.status in ("running", "connecting"):
                return self._client
            await self._drop()
            import distributed

            client: Any = distributed.Client(self.address, asynchronous=True, set_as_default=False, timeout=PATIENCE, name=NAME)  # type: ignore[no-untyped-call]
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
