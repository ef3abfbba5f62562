"""Callers that wait for jobs to start or to end, by the job."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from qbatch.wire.identifiers import JobKey
from qbatch.wire.records import Outcome


class Waiters:
    """Two tables of promised answers: what is known when a job has started, and when it has ended."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[JobKey, list[asyncio.Future[Outcome]]]] = {"start": {}, "end": {}}

    def __len__(self) -> int:
        """Return how many answers are promised."""
        return sum(len(futures) for table in self._tables.values() for futures in table.values())

    def __bool__(self) -> bool:
        """Tell whether any answer is promised."""
        return any(self._tables.values())

    def enter(self, key: JobKey, until: str) -> asyncio.Future[Outcome]:
        """Promise an answer for when a job has come to its ``start`` or ``end``."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._tables[until].setdefault(key, []).append(future)
        return future

    def started(self, key: JobKey, outcome: Outcome) -> None:
        """A job has started: answer who waited for that."""
        self._answer("start", key, outcome)

    def ended(self, key: JobKey, outcome: Outcome) -> None:
        """A job has ended: answer all who waited for it; one that never started does not start any more."""
        self._answer("end", key, outcome)
        self._answer("start", key, outcome)

    def _answer(self, until: str, key: JobKey, outcome: Outcome) -> None:
        for future in self._tables[until].pop(key, ()):
            if not future.done():
                future.set_result(outcome)

    def forget(self, until: str, futures: Iterable[asyncio.Future[Outcome]]) -> None:
        """Nobody waits for these any more (who waited has been answered, has given up, or has left)."""
        table, gone = self._tables[until], set(futures)
        for key in [key for key, held in table.items() if not gone.isdisjoint(held)] if gone else ():
            left = [each for each in table[key] if each not in gone]
            if left:
                table[key] = left
            else:
                del table[key]
