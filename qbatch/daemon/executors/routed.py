"""Several executors as one: an attempt goes to the executor of the host on which its script starts."""

from __future__ import annotations

from collections.abc import Sequence

from .attempt import Attempt, Executor
from .dask_executor import DaskExecutor


class RoutedExecutor:
    """The executors of a daemon: ``local`` has every host that none of ``others`` owns; see `attempt.Executor`."""

    def __init__(self, local: Executor, others: Sequence[DaskExecutor]) -> None:
        self._local, self._others = local, others
        self._of_key: dict[str, Executor] = {}

    def launch(self, attempt: Attempt) -> None:
        """Start an attempt where its host is."""
        self._of_key[attempt.key] = executor = self._of(attempt)
        executor.launch(attempt)

    def _of(self, attempt: Attempt) -> Executor:
        return next((each for each in self._others if each.owns(attempt.host)), self._local)

    def _at(self, key: str) -> Executor:
        return self._of_key.get(key, self._local)

    def stop(self, key: str, grace: float) -> None:
        """TERM, then KILL after ``grace`` seconds, to everything that the attempt started."""
        self._at(key).stop(key, grace)

    def signal(self, key: str, number: int) -> None:
        """Send a signal to all processes of the attempt."""
        self._at(key).signal(key, number)

    def resize(self, key: str, procs: int, share: float) -> None:
        """Tell the attempt how many processors it has now."""
        self._at(key).resize(key, procs, share)

    def used(self, key: str) -> dict[str, float]:
        """Return what a running attempt has used by the last look."""
        return self._at(key).used(key)

    def set_walltime(self, key: str, walltime: float) -> None:
        """Let an attempt run for so many seconds in all."""
        self._at(key).set_walltime(key, walltime)

    def spools(self, key: str) -> tuple[str, str]:
        """Return where the output and the error of an attempt are until they are delivered."""
        return self._at(key).spools(key)

    def forget(self, key: str) -> None:
        """An attempt that has ended may go; ValueError where it has not."""
        self._at(key).forget(key)
        self._of_key.pop(key, None)

    async def close(self) -> None:
        """Let go of everything; jobs run on."""
        for executor in (self._local, *self._others):
            await executor.close()

    async def recover(self, expected: list[Attempt]) -> None:
        """After a restart: each executor finds its own again.

        Raises:
            InputError: a cluster that was never reached does not answer.
        """
        found: dict[int, list[Attempt]] = {}
        for attempt in expected:
            self._of_key[attempt.key] = executor = self._of(attempt)
            found.setdefault(id(executor), []).append(attempt)
        for executor in (*self._others, self._local):
            await executor.recover(found.get(id(executor), []))
