"""Several executors as one: an attempt goes to the executor of the host on which its script
starts."""

from __future__ import annotations

from collections.abc import Sequence

from .attempt import Attempt, Executor
from .dask_executor import DaskExecutor


class RoutedExecutor(Executor):
    """The executors of a daemon: ``local`` has every host that none of ``others`` owns; see
    `attempt.Executor`."""

    def __init__(self, local: Executor, others: Sequence[DaskExecutor]) -> None:
        self._local, self._others = local, others
        self._of_key: dict[str, Executor] = {}

    def _of(self, attempt: Attempt) -> Executor:
        """Choose the executor of an attempt."""
        owner = next((each for each in self._others if each.owns(attempt.host)), self._local)
        self._of_key[attempt.key] = owner
        return owner

    def _at(self, key: str) -> Executor:
        return self._of_key.get(key, self._local)

    def launch(self, attempt: Attempt) -> None:
        self._of(attempt).launch(attempt)

    def _command(self, verb: str, key: str, *arguments: float) -> None:
        getattr(self._at(key), verb)(key, *arguments)

    def used(self, key: str) -> dict[str, float]:
        return self._at(key).used(key)

    def spools(self, key: str) -> tuple[str, str]:
        return self._at(key).spools(key)

    def forget(self, key: str) -> None:
        self._at(key).forget(key)
        self._of_key.pop(key, None)

    async def close(self) -> None:
        for executor in (self._local, *self._others):
            await executor.close()

    async def recover(self, expected: list[Attempt]) -> None:
        """Let each executor recover its own attempts.

        Raises:
            InputError: a cluster that was never reached does not answer.
        """
        found: dict[int, list[Attempt]] = {}
        for attempt in expected:
            found.setdefault(id(self._of(attempt)), []).append(attempt)
        for executor in (*self._others, self._local):
            await executor.recover(found.get(id(executor), []))
